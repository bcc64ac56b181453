// SPDX-License-Identifier: Apache-2.0
//
// Where what finish programs take of a step's batches is left (shared_factors.h, row_gradients.h): one for all replicas
// in one memory, else one for each, and then every replica is given what the others have left. Internal to this folder.
#ifndef TUTTI_DISTRIBUTE_TRAIN_FACTOR_MEMORY_H_
#define TUTTI_DISTRIBUTE_TRAIN_FACTOR_MEMORY_H_

#include <mutex>
#include <string_view>
#include <vector>

#include "backend/backend.h"
#include "base/status.h"
#include "collective/group.h"
#include "distribute/input/step_rows.h"
#include "distribute/plan/shared_factors.h"

namespace tutti::impl::distribute {

/// The factors of all rows of a step, for replicas of a trainer, whose threads call it.
class FactorMemory {
 public:
  explicit FactorMemory(std::vector<SharedFactor> factors) : factors_(std::move(factors)) {}

  const std::vector<SharedFactor> &factors() const { return factors_; }
  /// Position by name; -1 if there is none, or it is a feature.
  int32_t find(std::string_view name) const;
  /// Bytes for a step of so many rows, with the lengths that `bindings` has of other axes.
  base::Result<int64_t> bytes(int64_t rows, const graph::SymbolBindings &bindings) const;
  /// Makes room for such steps. All replicas call it between the step before, which is over for all, and their part of
  /// the next one.
  base::Status reserve(int64_t rows, const graph::SymbolBindings &bindings, backend::Device &device);
  /// Of what was reserved.
  int64_t bytes() const { return bytes_; }
  void *data() const { return buffer_.device_pointer(); }
  /// Which bytes are which contributor's, ascending.
  void list_slices(const StepRows &rows, int32_t contributors, std::vector<collective::Slice> &slices) const;
  /// A row of a factor of the step that was reserved for.
  std::byte *row(int32_t factor, int64_t index) const {
    const auto at = static_cast<size_t>(factor);
    return static_cast<std::byte *>(buffer_.device_pointer()) + places_[at].offset + index * places_[at].row_bytes;
  }

 private:
  struct Place {
    int64_t offset = 0, row_bytes = 0;
    friend bool operator==(const Place &, const Place &) = default;
  };
  /// Of all factors; `end` becomes the bytes that they take.
  base::Result<std::vector<Place>> place(int64_t rows, const graph::SymbolBindings &bindings, int64_t &end) const;

  const std::vector<SharedFactor> factors_;
  std::mutex mutex_;
  // Written under the mutex; read by those that have called reserve() since.
  std::vector<Place> places_;
  int64_t bytes_ = 0;
  backend::Buffer buffer_;
};

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_TRAIN_FACTOR_MEMORY_H_
