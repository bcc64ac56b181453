// SPDX-License-Identifier: Apache-2.0
//
// Where what finish programs take of a step's batches is left (shared_factors.h, row_gradients.h): one for all replicas
// in one memory, else one for each, and then every replica is given what the others have left. Internal to this folder.
#ifndef TUTTI_DISTRIBUTE_TRAIN_FACTOR_MEMORY_H_
#define TUTTI_DISTRIBUTE_TRAIN_FACTOR_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
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
  FactorMemory(std::vector<SharedFactor> factors, int32_t contributors)
      : factors_(std::move(factors)), contributors_(contributors) {}

  const std::vector<SharedFactor> &factors() const { return factors_; }
  /// Position by name; -1 if there is none, or it is a feature.
  int32_t find(std::string_view name) const;
  /// Bytes for a step of so many rows in one part, with the lengths that `bindings` has of other axes.
  base::Result<int64_t> bytes(int64_t rows, const graph::SymbolBindings &bindings) const;
  /// How many rows finish programs find of lookups.
  static int64_t looking_up(const StepRows &rows, int32_t contributors);
  /// Makes room for such steps. All replicas call it between the step before, which is over for all, and their part of
  /// the next one; once more for the same step it changes nothing.
  base::Status reserve(const StepRows &rows, const graph::SymbolBindings &bindings, backend::Device &device);

  // ---- of what was reserved ----
  int64_t bytes() const { return bytes_; }
  void *data() const { return buffer_.device_pointer(); }
  /// Which bytes are which contributor's, ascending.
  std::span<const collective::Slice> slices() const { return slices_; }
  /// All rows of a factor.
  std::byte *rows(int32_t factor) const {
    return static_cast<std::byte *>(data()) + places_[static_cast<size_t>(factor)].offset;
  }
  /// Those of a contributor in micro-batch m.
  std::byte *rows(int32_t factor, int32_t m, int32_t contributor) const {
    const auto at = static_cast<size_t>(factor);
    const std::vector<RowRange> &parts = factors_[at].is_of_lookups ? lookup_parts_ : parts_;
    const RowRange &part = parts[static_cast<size_t>(m * contributors_ + contributor)];
    return rows(factor) + part.begin * places_[at].row_bytes;
  }

 private:
  struct Place {
    int64_t offset = 0, row_bytes = 0;
    friend bool operator==(const Place &, const Place &) = default;
  };
  /// Of all factors; `end` becomes the bytes that they take.
  base::Result<std::vector<Place>> place(int64_t rows, int64_t looking_up, const graph::SymbolBindings &bindings,
                                         int64_t &end) const;
  void list_slices();
  /// No row is a lookup.
  base::Status clear_indices(int64_t looking_up);

  const std::vector<SharedFactor> factors_;
  const int32_t contributors_;
  std::mutex mutex_;
  // Written under the mutex; read by those that have called reserve() since.
  std::vector<int64_t> reserved_rows_;
  std::vector<Place> places_;
  std::vector<RowRange> parts_, lookup_parts_;  // by micro-batch and contributor
  std::vector<collective::Slice> slices_;
  int64_t bytes_ = 0;
  backend::Buffer buffer_;
};

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_TRAIN_FACTOR_MEMORY_H_
