// SPDX-License-Identifier: Apache-2.0
//
// Elements kept in memory by position: the contents of a cache. Elements of static shape lie as rows in blocks, any
// others as they are. What failed is kept as its error.
//
// Threads: filled by one thread; then constant and readable from any.
#ifndef TUTTI_DATA_KEEP_MEMORY_STORE_H_
#define TUTTI_DATA_KEEP_MEMORY_STORE_H_

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "base/status.h"
#include "data/dataset/stage.h"
#include "data/element/element.h"
#include "data/keep/element_store.h"
#include "tensor/buffer.h"
#include "tensor/shape.h"

namespace tutti::impl::data {

class MemoryStore : public ElementStore {
 public:
  explicit MemoryStore(const ElementSpec &spec);

  int64_t size() const override { return static_cast<int64_t>(lineages_.size()); }
  bool has_failures() const { return !failures_.empty(); }
  int64_t lineage(int64_t position) const override { return lineages_[static_cast<size_t>(position)]; }
  FileName file(int64_t position) const override;

  /// Appends a copy of an element, or the element itself if its shape is not static.
  base::Status add(const Element &element);
  void add_failure(const base::Status &status);

  base::Status element(int64_t position, Element &element) const override;
  base::Status gather(std::span<const int64_t> positions, std::span<const RowTarget> targets) const override;
  base::Status copy_rows(int64_t position, int64_t count, std::span<const RowTarget> targets) const override;
  bool view(int64_t position, int64_t count, Element &batch) const override;

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
  std::vector<std::pair<int64_t, FileName>> files_;  // each from a position on
  std::map<int64_t, base::Status> failures_;
};

}  // namespace tutti::impl::data

#endif  // TUTTI_DATA_KEEP_MEMORY_STORE_H_
