// SPDX-License-Identifier: Apache-2.0
//
// Moves elements between two strided views of equal dims: transposes, slices, broadcasts and concatenations are all
// this.
//
//   StridedCopy copy = StridedCopy::make({2, 3}, {1, 2}, 0, {3, 1}, 0, sizeof(float));   // transposes [3, 2]
//   copy.run(from, to);
//
// Immutable once made.
#ifndef TUTTI_BACKEND_CPU_SHAPES_STRIDED_COPY_H_
#define TUTTI_BACKEND_CPU_SHAPES_STRIDED_COPY_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tutti::impl::backend::cpu {

/// Strides of a dense row-major array, in elements.
std::vector<int64_t> dense_strides(const std::vector<int64_t> &dims);

class StridedCopy {
 public:
  /// Strides and offsets count elements of `element_bytes`; a stride of 0 repeats.
  static StridedCopy make(const std::vector<int64_t> &dims, const std::vector<int64_t> &from_strides,
                          int64_t from_offset, const std::vector<int64_t> &to_strides, int64_t to_offset,
                          int64_t element_bytes);

  void run(const void *from, void *to) const { run(0, steps(), from, to); }
  /// Steps first .. end - 1 of the outermost axis; several threads may do steps of one copy.
  void run(int64_t first, int64_t end, const void *from, void *to) const;
  int64_t steps() const { return empty_ ? 0 : dims_.empty() ? 1 : dims_[0]; }
  int64_t step_bytes() const;

 private:
  void run_axis(size_t axis, const char *from, char *to) const;
  /// Are the last two axes, of which this is the first, those of a transposed matrix?
  bool turns(size_t axis) const;
  void turn(size_t axis, int64_t rows, const char *from, char *to) const;
  void run_rows(int64_t rows, int64_t from_step, int64_t to_step, const char *from, char *to) const;

  std::vector<int64_t> dims_;                       // of what is outside of the inner run
  std::vector<int64_t> from_strides_, to_strides_;  // bytes
  int64_t from_offset_ = 0, to_offset_ = 0;         // bytes
  int64_t run_bytes_ = 0;                           // contiguous on both sides
  bool empty_ = false;
};

}  // namespace tutti::impl::backend::cpu

#endif  // TUTTI_BACKEND_CPU_SHAPES_STRIDED_COPY_H_
