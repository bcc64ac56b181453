// SPDX-License-Identifier: Apache-2.0
#include "data/file/byte_source.h"
#include "base/gzip.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace tutti::impl::data {

using base::Result;
using base::Status;

Status ByteSource::inflate(size_t packed_bytes) {
  TUTTI_ASSIGN(base::Inflater inflater, base::Inflater::create({INT64_MAX}));
  inflater_.emplace(std::move(inflater));
  packed_.reset(new char[packed_bytes]);
  packed_capacity_ = packed_bytes;
  packed_begin_ = packed_end_ = 0;
  file_offset_ = 0;
  return Status();
}

Result<size_t> ByteSource::read(std::span<char> target) {
  if (inflater_) return read_inflated(target);
  TUTTI_ASSIGN(const size_t got, file_->read_at(file_offset_, target));
  file_offset_ += static_cast<int64_t>(got);
  return got;
}

Result<size_t> ByteSource::read_inflated(std::span<char> target) {
  for (;;) {
    const std::string_view input(packed_.get() + packed_begin_, packed_end_ - packed_begin_);
    TUTTI_ASSIGN(const base::Inflater::Progress progress, inflater_->inflate(input, target));
    packed_begin_ += progress.consumed;
    if (progress.produced > 0) return progress.produced;
    if (packed_begin_ < packed_end_) continue;
    TUTTI_ASSIGN(const size_t got, file_->read_at(file_offset_, {packed_.get(), packed_capacity_}));
    if (got == 0) {
      TUTTI_TRY(inflater_->finish());
      return size_t{0};
    }
    file_offset_ += static_cast<int64_t>(got);
    packed_begin_ = 0;
    packed_end_ = got;
  }
}

int64_t ByteSource::most_left() const {
  const int64_t unread = std::max<int64_t>(file_->size_bytes() - file_offset_, 0);
  if (!inflater_) return unread;
  const int64_t packed = unread + static_cast<int64_t>(packed_end_ - packed_begin_);
  return packed > INT64_MAX / base::kMostDeflateRatio / 2 ? INT64_MAX / 2
                                                          : packed * base::kMostDeflateRatio + base::kDeflateRatioSlack;
}

}  // namespace tutti::impl::data
