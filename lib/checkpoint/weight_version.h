// SPDX-License-Identifier: Apache-2.0
//
// The state of a model at one step boundary, as savers, evaluators and predictors see it: an immutable list of named
// tensors. distribute/ publishes versions; a checkpoint that was read is one too (TensorVersion).
//
// Tensors are handed out in canonical layout (dense, row-major, the shape the variable was made with). A version may
// hold its bytes in another layout and convert in read(), so that the cost falls on the reader's thread and not on the
// step loop.
//
// Threads: every member function may be called from any number of threads at once.
// Invariants: entries() never changes; names are unique; read(i) has exactly the dtype and shape of entries()[i].
#ifndef TUTTI_CHECKPOINT_WEIGHT_VERSION_H_
#define TUTTI_CHECKPOINT_WEIGHT_VERSION_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/object.h"
#include "base/status.h"
#include "tensor/tensor.h"

namespace tutti::impl::checkpoint {

/// Which of a checkpoint's files an entry belongs to: what predicting needs, and what only training needs.
enum class StateRole : int32_t { weight = 1, slot = 2 };

/// The slot that holds a variable's moving average: predicting may need that one, too.
inline constexpr std::string_view kAverageSlot = "average";

/// One named tensor of a version.
struct StateEntry {
  std::string name;  // a variable's name; for a slot "<variable>/<slot>"
  StateRole role = StateRole::weight;
  tensor::DType dtype = tensor::DType::f32;
  tensor::Shape shape;

  bool is_average() const { return role == StateRole::slot && name.substr(name.rfind('/') + 1) == kAverageSlot; }
};

class WeightVersion : public base::Object {
 public:
  /// The global step after which the state was taken.
  virtual int64_t step() const = 0;
  virtual const std::vector<StateEntry> &entries() const = 0;
  /// The tensor of entries()[index] in canonical layout. It stays valid after the version is gone.
  virtual base::Result<tensor::Tensor> read(size_t index) const = 0;

  /// The index of an entry, or -1. Linear: for set-up, not for the step loop.
  int64_t find(StateRole role, std::string_view name) const {
    const std::vector<StateEntry> &list = entries();
    for (size_t i = 0; i < list.size(); ++i) {
      if (list[i].role == role && list[i].name == name) return static_cast<int64_t>(i);
    }
    return -1;
  }
};

/// A version made of tensors that exist already.
class TensorVersion : public WeightVersion {
 public:
  TensorVersion(int64_t step, std::vector<StateEntry> entries, std::vector<tensor::Tensor> tensors)
      : step_(step), entries_(std::move(entries)), tensors_(std::move(tensors)) {}

  int64_t step() const override { return step_; }
  const std::vector<StateEntry> &entries() const override { return entries_; }
  base::Result<tensor::Tensor> read(size_t index) const override { return tensors_[index]; }

 private:
  const int64_t step_;
  const std::vector<StateEntry> entries_;
  const std::vector<tensor::Tensor> tensors_;
};

}  // namespace tutti::impl::checkpoint

#endif  // TUTTI_CHECKPOINT_WEIGHT_VERSION_H_
