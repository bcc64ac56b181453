// SPDX-License-Identifier: Apache-2.0
//
// Elements kept in memory by position: the contents of a cache. Elements of static shape lie as rows in blocks, any
// others as they are. What failed is kept as its error.
//
// Threads: filled by one thread; then constant and readable from any.
#ifndef TUTTI_DATA_KEPT_ELEMENTS_H_
#define TUTTI_DATA_KEPT_ELEMENTS_H_

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "base/status.h"
#include "data/element.h"
#include "data/stage.h"
#include "tensor/buffer.h"
#include "tensor/shape.h"

namespace tutti::impl::data {

class KeptElements {
 public:
  explicit KeptElements(const ElementSpec &spec);

  int64_t size() const { return static_cast<int64_t>(lineages_.size()); }
  bool has_failures() const { return !failures_.empty(); }
  int64_t lineage(int64_t position) const { return lineages_[static_cast<size_t>(position)]; }

  /// Appends a copy of an element, or the element itself if its shape is not static.
  base::Status add(const Element &element);
  void add_failure(const base::Status &status);
  /// Appends all elements a stage gives. A final error is returned; after an interrupt call it again for the rest.
  base::Status add_all(Stage &stage, const base::CancelToken *cancel);

  /// A view of the element, or its error.
  base::Status element(int64_t position, Element &element) const;
  base::Status gather(std::span<const int64_t> positions, std::span<const RowTarget> targets) const;
  /// Rows position .. position + count - 1; static shapes without failures only.
  void copy_rows(int64_t position, int64_t count, std::span<const RowTarget> targets) const;
  /// The same as views, when they lie in one block, aligned.
  bool view(int64_t position, int64_t count, Element &batch) const;

 private:
  struct Column {
    tensor::DType dtype;
    tensor::Shape shape;
    int64_t row_bytes;
    std::vector<base::Ref<tensor::Buffer>> blocks;
  };
  /// Makes room up to a position.
  base::Status reserve(int64_t position);
  base::Result<tensor::Tensor> rows_of(const Column &column, int64_t position, const tensor::Shape &shape) const;
  std::byte *row(const Column &column, int64_t position) const;

  bool is_static_;
  int64_t rows_per_block_ = 1;
  std::vector<Column> columns_;    // static shapes
  std::vector<Element> elements_;  // others
  std::vector<int64_t> lineages_;
  std::map<int64_t, base::Status> failures_;
};

}  // namespace tutti::impl::data

#endif  // TUTTI_DATA_KEPT_ELEMENTS_H_
