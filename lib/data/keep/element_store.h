// SPDX-License-Identifier: Apache-2.0
//
// ElementStore: elements that lie somewhere by position, in memory (memory_store.h) or in a file
// (element_file.h), and ElementStoreWriter, which puts them there.
//
// Threads: a store is constant and may be read from any thread; a writer belongs to one thread at a time.
#ifndef TUTTI_DATA_KEEP_ELEMENT_STORE_H_
#define TUTTI_DATA_KEEP_ELEMENT_STORE_H_

#include <cstdint>
#include <memory>
#include <span>

#include "base/status.h"
#include "data/dataset/stage.h"
#include "data/element/element.h"

namespace tutti::impl::data {

class ElementStore {
 public:
  virtual ~ElementStore() = default;

  virtual int64_t size() const = 0;
  /// Where the element at a position came from: the index of its lineage.
  virtual int64_t lineage(int64_t position) const = 0;
  /// And its file; null where it is not kept.
  virtual FileName file(int64_t) const { return nullptr; }
  /// The components of an element, views where they can be. An error belongs to this element alone.
  virtual base::Status element(int64_t position, Element &element) const = 0;
  /// As RandomAccess::gather(), static shapes only.
  virtual base::Status gather(std::span<const int64_t> positions, std::span<const RowTarget> targets) const = 0;
  /// Rows position .. position + count - 1 to rows 0, 1, ... of the targets; static shapes only.
  virtual base::Status copy_rows(int64_t position, int64_t count, std::span<const RowTarget> targets) const = 0;
  /// The same rows as views, if they lie together, aligned and without errors; false means that nothing happened.
  virtual bool view(int64_t position, int64_t count, Element &batch) const = 0;
};

class ElementStoreWriter {
 public:
  virtual ~ElementStoreWriter() = default;

  /// Appends a copy of an element, or the element itself.
  virtual base::Status add(const Element &element) = 0;
  /// The next element failed.
  virtual void add_failure(const base::Status &status) = 0;
  /// What has been added; once, and last.
  virtual base::Result<std::shared_ptr<const ElementStore>> finish() = 0;
};

}  // namespace tutti::impl::data

#endif  // TUTTI_DATA_KEEP_ELEMENT_STORE_H_
