// SPDX-License-Identifier: Apache-2.0
#include "distribute/train/factor_memory.h"

namespace tutti::impl::distribute {

namespace {

constexpr int64_t kAlignment = 64;

}  // namespace

int32_t FactorMemory::find(std::string_view name) const {
  for (size_t i = 0; i < factors_.size(); ++i) {
    if (factors_[i].name == name) return factors_[i].is_feature ? -1 : static_cast<int32_t>(i);
  }
  return -1;
}

/// The factor's offset; `end` moves behind it.
int64_t FactorMemory::place(const SharedFactor &factor, int64_t rows, int64_t &end) {
  const int64_t offset = end;
  if (!factor.is_feature) end += (rows * row_bytes(factor) + kAlignment - 1) / kAlignment * kAlignment;
  return offset;
}

int64_t FactorMemory::bytes(int64_t rows) const {
  int64_t end = 0;
  for (const SharedFactor &factor : factors_)
    place(factor, rows, end);
  return end;
}

base::Status FactorMemory::reserve(int64_t rows, backend::Device &device) {
  std::lock_guard lock(mutex_);
  if (rows == rows_) return base::Status();
  if (const int64_t needed = bytes(rows); needed > buffer_.size_bytes()) {
    buffer_ = backend::Buffer();
    rows_ = -1;
    TUTTI_ASSIGN(buffer_, device.allocate(needed, kAlignment));
  }
  int64_t end = 0;
  offsets_.clear();
  for (const SharedFactor &factor : factors_)
    offsets_.push_back(place(factor, rows, end));
  rows_ = rows;
  return base::Status();
}

}  // namespace tutti::impl::distribute
