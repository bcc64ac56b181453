// SPDX-License-Identifier: Apache-2.0
#include "data/keep/memory_store.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/memory.h"

namespace tutti::impl::data {

using base::Ref;
using base::Result;
using base::Status;
using tensor::Buffer;
using tensor::Shape;
using tensor::Tensor;

namespace {

// A block holds a multiple of 64 rows, so that each block of rows begins aligned; about a megabyte of the widest
// column.
constexpr int64_t kKeptBlockBytes = int64_t{1} << 20;
constexpr int64_t kBlockRowGranule = 64;

}  // namespace

MemoryStore::MemoryStore(const ElementSpec &spec) : is_static_(spec.is_static()) {
  if (!is_static_) return;
  const std::vector<int64_t> bytes = row_bytes(spec);
  int64_t widest = 1;
  for (size_t i = 0; i < bytes.size(); ++i) {
    Result<Shape> shape = Shape::make(*graph::constant_shape(spec.components[i].dims));
    if (!shape.ok()) {
      is_static_ = false;
      return;
    }
    columns_.push_back({spec.components[i].dtype, *shape, bytes[i], {}});
    widest = std::max(widest, bytes[i]);
  }
  rows_per_block_ = std::max<int64_t>(kKeptBlockBytes / widest / kBlockRowGranule, 1) * kBlockRowGranule;
}

Status MemoryStore::reserve(int64_t position) {
  const auto needed = static_cast<size_t>(position / rows_per_block_ + 1);
  for (Column &column : columns_) {
    while (column.blocks.size() < needed) {
      TUTTI_ASSIGN(Ref<Buffer> block, Buffer::allocate(std::max<int64_t>(rows_per_block_ * column.row_bytes, 1)));
      column.blocks.push_back(std::move(block));
    }
  }
  return Status();
}

std::byte *MemoryStore::row(const Column &column, int64_t position) const {
  const Ref<Buffer> &block = column.blocks[static_cast<size_t>(position / rows_per_block_)];
  return static_cast<std::byte *>(block->data()) + position % rows_per_block_ * column.row_bytes;
}

Status MemoryStore::add(const Element &element) {
  const int64_t position = size();
  if (is_static_) {
    TUTTI_TRY(reserve(position));
    std::vector<RowTarget> targets;
    for (const Column &column : columns_)
      targets.push_back({row(column, position), column.row_bytes});
    TUTTI_TRY(copy_to_row(element, targets, 0));
  } else {
    elements_.push_back(element);
  }
  lineages_.push_back(element.lineage.index);
  const FileName &file = element.lineage.file;
  if (files_.empty() ? file != nullptr : file != files_.back().second) files_.emplace_back(position, file);
  return Status();
}

FileName MemoryStore::file(int64_t position) const {
  const auto behind = std::upper_bound(files_.begin(), files_.end(), position,
                                       [](int64_t wanted, const auto &entry) { return wanted < entry.first; });
  return behind == files_.begin() ? nullptr : std::prev(behind)->second;
}

void MemoryStore::add_failure(const Status &status) {
  const int64_t position = size();
  if (!is_static_) elements_.emplace_back();
  lineages_.push_back(position);
  failures_.emplace(position, status);
}

Result<Tensor> MemoryStore::rows_of(const Column &column, int64_t position, const Shape &shape) const {
  const Ref<Buffer> &block = column.blocks[static_cast<size_t>(position / rows_per_block_)];
  return Tensor::from_buffer(column.dtype, shape, block, position % rows_per_block_ * column.row_bytes);
}

Status MemoryStore::element(int64_t position, Element &element) const {
  if (const auto failure = failures_.find(position); failure != failures_.end()) return failure->second;
  if (!is_static_) {
    element.components = elements_[static_cast<size_t>(position)].components;
    return Status();
  }
  element.components.resize(columns_.size());
  for (size_t i = 0; i < columns_.size(); ++i) {
    TUTTI_ASSIGN(element.components[i], rows_of(columns_[i], position, columns_[i].shape));
  }
  return Status();
}

Status MemoryStore::gather(std::span<const int64_t> positions, std::span<const RowTarget> targets) const {
  Status first_error;
  for (size_t c = 0; c < columns_.size(); ++c) {
    const auto bytes = static_cast<size_t>(columns_[c].row_bytes);
    for (size_t i = 0; bytes > 0 && i < positions.size(); ++i) {
      if (!failures_.empty() && failures_.contains(positions[i])) continue;
      std::memcpy(targets[c].data + i * bytes, row(columns_[c], positions[i]), bytes);
    }
  }
  for (size_t i = 0; !failures_.empty() && first_error.ok() && i < positions.size(); ++i) {
    if (const auto failure = failures_.find(positions[i]); failure != failures_.end()) first_error = failure->second;
  }
  return first_error;
}

Status MemoryStore::copy_rows(int64_t position, int64_t count, std::span<const RowTarget> targets) const {
  for (size_t c = 0; c < columns_.size(); ++c) {
    const int64_t bytes = columns_[c].row_bytes;
    for (int64_t row_done = 0; bytes > 0 && row_done < count;) {
      const int64_t at = position + row_done;
      const int64_t together = std::min(count - row_done, rows_per_block_ - at % rows_per_block_);
      std::memcpy(targets[c].from_row(row_done).data, row(columns_[c], at), static_cast<size_t>(together * bytes));
      row_done += together;
    }
  }
  const auto failure = failures_.lower_bound(position);
  return failure == failures_.end() || failure->first >= position + count ? Status() : failure->second;
}

bool MemoryStore::view(int64_t position, int64_t count, Element &batch) const {
  if (has_failures() || !is_static_ || position / rows_per_block_ != (position + count - 1) / rows_per_block_)
    return false;
  batch.components.resize(columns_.size());
  for (size_t i = 0; i < columns_.size(); ++i) {
    Result<Shape> shape = columns_[i].shape.prepend(count);
    if (!shape.ok()) return false;
    Result<Tensor> rows = rows_of(columns_[i], position, *shape);
    if (!rows.ok() || reinterpret_cast<uintptr_t>(rows->data()) % base::kAlignment != 0) return false;
    batch.components[i] = rows.take();
  }
  return true;
}

}  // namespace tutti::impl::data
