// SPDX-License-Identifier: Apache-2.0
//
// Walking a box of indices with several operands at once, each with strides of its own: what broadcasting, transposing,
// slicing and reducing have in common.
//
//   StridedWalk walk(output_dims);
//   walk.add_dense();                                  // operand 0: the output
//   walk.add(broadcast_strides(a_dims, output_dims));  // operand 1
//   walk.run([&](const int64_t *offsets, int64_t count) { ... });
//
// run() calls its function for runs along the last axis: `offsets` has the first element of each operand; consecutive
// elements are walk.step(operand) apart. Axes that every operand walks evenly are merged first (finish()).
#ifndef TUTTI_BACKEND_REFERENCE_STRIDED_H_
#define TUTTI_BACKEND_REFERENCE_STRIDED_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace tutti::impl::backend::reference {

using Extents = std::vector<int64_t>;

/// Strides of a dense row-major array, in elements.
Extents dense_strides(const Extents &dims);
/// Strides that read an array of `dims` as if it had been broadcast to `to`: 0 on repeated axes.
Extents broadcast_strides(const Extents &dims, const Extents &to);

class StridedWalk {
 public:
  static constexpr int32_t kMaxOperands = 4;

  explicit StridedWalk(Extents dims) : dims_(std::move(dims)) {}
  void add(Extents strides) { strides_.push_back(std::move(strides)); }
  void add_dense() { add(dense_strides(dims_)); }
  /// Merges axes. Call after the last add().
  void finish();

  /// Elements between neighbours of a run.
  int64_t step(int32_t operand) const { return steps_[static_cast<size_t>(operand)]; }

  /// The function may return void. The order is row-major.
  template <typename Function>
  void run(Function &&function) const {
    std::array<int64_t, kMaxOperands> offsets{};
    if (run_length_ == 0) return;
    walk_axis(0, offsets, function);
  }

 private:
  template <typename Function>
  void walk_axis(size_t axis, std::array<int64_t, kMaxOperands> offsets, Function &function) const {
    if (axis + 1 >= dims_.size()) return static_cast<void>(function(offsets.data(), run_length_));
    for (int64_t i = 0; i < dims_[axis]; ++i) {
      walk_axis(axis + 1, offsets, function);
      for (size_t operand = 0; operand < strides_.size(); ++operand)
        offsets[operand] += strides_[operand][axis];
    }
  }

  Extents dims_;
  std::vector<Extents> strides_;  // by operand, then axis
  int64_t run_length_ = 0;
  std::array<int64_t, kMaxOperands> steps_{};
};

}  // namespace tutti::impl::backend::reference

#endif  // TUTTI_BACKEND_REFERENCE_STRIDED_H_
