// SPDX-License-Identifier: Apache-2.0
#include "data/element/bytes_rows.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace tutti::impl::data {

using base::Ref;
using base::Result;
using base::Status;
using tensor::Buffer;

namespace {

constexpr size_t kFirstBytes = 4096;
// Tensors whose memory is remembered.
constexpr size_t kMostGiven = 16;

}  // namespace

Status BytesRows::begin(int64_t most_rows) {
  const size_t offset_bytes = static_cast<size_t>(most_rows + 1) * sizeof(int64_t);
  // A little more than last time is likely to be enough.
  const size_t wanted = std::max(offset_bytes + kFirstBytes, usual_ + usual_ / 8);
  rows_ = 0;
  most_rows_ = most_rows;
  end_ = offset_bytes;
  const auto fits = [&](const Ref<Buffer> &buffer) {
    const auto size = static_cast<size_t>(buffer->size_bytes());
    return buffer->reference_count() == 1 && size >= std::max(offset_bytes, usual_) && size / 4 <= wanted;
  };
  const auto found = std::find_if(given_.begin(), given_.end(), fits);
  if (found != given_.end()) {
    buffer_ = std::move(*found);
    given_.erase(found);
    return Status();
  }
  TUTTI_ASSIGN(buffer_, Buffer::allocate(static_cast<int64_t>(wanted)));
  return Status();
}

Result<char *> BytesRows::add(size_t size) {
  if (rows_ == most_rows_) return base::internal_error("more rows than the ", most_rows_, " there is room for");
  if (static_cast<size_t>(buffer_->size_bytes()) - end_ < size) TUTTI_TRY(grow(size));
  char *const target = static_cast<char *>(buffer_->data()) + end_;
  offsets()[rows_++] = static_cast<int64_t>(end_);
  end_ += size;
  return target;
}

Status BytesRows::grow(size_t size) {
  const size_t wanted = std::max(2 * static_cast<size_t>(buffer_->size_bytes()), end_ + size);
  TUTTI_ASSIGN(Ref<Buffer> larger, Buffer::allocate(static_cast<int64_t>(wanted)));
  std::memcpy(larger->data(), buffer_->data(), end_);
  buffer_ = std::move(larger);
  return Status();
}

Result<tensor::Tensor> BytesRows::finish() {
  offsets()[rows_] = static_cast<int64_t>(end_);
  usual_ = end_;
  if (given_.size() == kMostGiven) given_.erase(given_.begin());
  given_.push_back(buffer_);
  return tensor::Tensor::from_buffer(tensor::DType::bytes, {rows_}, std::move(buffer_));
}

}  // namespace tutti::impl::data
