// SPDX-License-Identifier: Apache-2.0
//
// Where replicas in one memory leave what they share of a batch (shared_factors.h). Internal to this folder.
#ifndef TUTTI_DISTRIBUTE_TRAIN_FACTOR_MEMORY_H_
#define TUTTI_DISTRIBUTE_TRAIN_FACTOR_MEMORY_H_

#include <mutex>
#include <string_view>
#include <vector>

#include "backend/backend.h"
#include "base/status.h"
#include "distribute/plan/shared_factors.h"

namespace tutti::impl::distribute {

/// The factors of one batch, for all replicas of a trainer, whose threads call it.
class FactorMemory {
 public:
  explicit FactorMemory(std::vector<SharedFactor> factors) : factors_(std::move(factors)) {}

  const std::vector<SharedFactor> &factors() const { return factors_; }
  /// Position by name; -1 if there is none, or it is a feature.
  int32_t find(std::string_view name) const;
  /// Bytes for a batch of so many rows.
  int64_t bytes(int64_t rows) const;
  /// Makes room for batches of so many rows. All replicas call it between the steps before, which is over for all, and
  /// their part of the next one.
  base::Status reserve(int64_t rows, backend::Device &device);
  /// A row of a factor of the batch that was reserved for.
  std::byte *row(int32_t factor, int64_t index) const {
    const auto at = static_cast<size_t>(factor);
    return static_cast<std::byte *>(buffer_.device_pointer()) + offsets_[at] + index * row_bytes(factors_[at]);
  }

 private:
  static int64_t row_bytes(const SharedFactor &factor) { return factor.width * static_cast<int64_t>(sizeof(float)); }
  static int64_t place(const SharedFactor &factor, int64_t rows, int64_t &end);

  const std::vector<SharedFactor> factors_;
  std::mutex mutex_;
  // Written under the mutex; read by those that have called reserve() since.
  int64_t rows_ = -1;
  std::vector<int64_t> offsets_;
  backend::Buffer buffer_;
};

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_TRAIN_FACTOR_MEMORY_H_
