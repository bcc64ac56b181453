// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/strided_copy.h"

#include <cstring>

namespace tutti::impl::backend::cpu {

std::vector<int64_t> dense_strides(const std::vector<int64_t> &dims) {
  std::vector<int64_t> strides(dims.size(), 1);
  for (size_t axis = dims.size(); axis-- > 1;)
    strides[axis - 1] = strides[axis] * dims[axis];
  return strides;
}

StridedCopy StridedCopy::make(const std::vector<int64_t> &dims, const std::vector<int64_t> &from_strides,
                              int64_t from_offset, const std::vector<int64_t> &to_strides, int64_t to_offset,
                              int64_t element_bytes) {
  StridedCopy copy;
  copy.from_offset_ = from_offset * element_bytes;
  copy.to_offset_ = to_offset * element_bytes;
  // Axes of length 1 go, neighbours that step as one are merged.
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    if (dims[axis] == 0) copy.empty_ = true;
    if (dims[axis] == 1) continue;
    const int64_t from = from_strides[axis] * element_bytes;
    const int64_t to = to_strides[axis] * element_bytes;
    const bool merges = !copy.dims_.empty() && copy.from_strides_.back() == from * dims[axis] &&
                        copy.to_strides_.back() == to * dims[axis];
    if (merges) {
      copy.dims_.back() *= dims[axis];
      copy.from_strides_.back() = from;
      copy.to_strides_.back() = to;
    } else {
      copy.dims_.push_back(dims[axis]);
      copy.from_strides_.push_back(from);
      copy.to_strides_.push_back(to);
    }
  }
  copy.run_bytes_ = element_bytes;
  if (!copy.dims_.empty() && copy.from_strides_.back() == element_bytes && copy.to_strides_.back() == element_bytes) {
    copy.run_bytes_ *= copy.dims_.back();
    copy.dims_.pop_back();
    copy.from_strides_.pop_back();
    copy.to_strides_.pop_back();
  }
  return copy;
}

namespace {

template <typename T>
void copy_elements(int64_t n, int64_t from_step, int64_t to_step, const char *from, char *to) {
  for (int64_t i = 0; i < n; ++i) {
    std::memcpy(to + i * to_step, from + i * from_step, sizeof(T));
  }
}

}  // namespace

void StridedCopy::run_rows(int64_t rows, int64_t from_step, int64_t to_step, const char *from, char *to) const {
  switch (run_bytes_) {
    case 1:
      return copy_elements<uint8_t>(rows, from_step, to_step, from, to);
    case 2:
      return copy_elements<uint16_t>(rows, from_step, to_step, from, to);
    case 4:
      return copy_elements<uint32_t>(rows, from_step, to_step, from, to);
    case 8:
      return copy_elements<uint64_t>(rows, from_step, to_step, from, to);
    default:
      break;
  }
  for (int64_t i = 0; i < rows; ++i) {
    std::memcpy(to + i * to_step, from + i * from_step, static_cast<size_t>(run_bytes_));
  }
}

void StridedCopy::run_axis(size_t axis, const char *from, char *to) const {
  if (axis + 1 == dims_.size()) return run_rows(dims_[axis], from_strides_[axis], to_strides_[axis], from, to);
  for (int64_t i = 0; i < dims_[axis]; ++i) {
    run_axis(axis + 1, from + i * from_strides_[axis], to + i * to_strides_[axis]);
  }
}

int64_t StridedCopy::step_bytes() const {
  int64_t bytes = run_bytes_;
  for (size_t axis = 1; axis < dims_.size(); ++axis)
    bytes *= dims_[axis];
  return bytes;
}

void StridedCopy::run(int64_t first, int64_t end, const void *from, void *to) const {
  if (first >= end) return;
  const char *source = static_cast<const char *>(from) + from_offset_;
  char *target = static_cast<char *>(to) + to_offset_;
  if (dims_.empty()) return run_rows(1, 0, 0, source, target);
  source += first * from_strides_[0];
  target += first * to_strides_[0];
  if (dims_.size() == 1) return run_rows(end - first, from_strides_[0], to_strides_[0], source, target);
  for (int64_t i = first; i < end; ++i, source += from_strides_[0], target += to_strides_[0])
    run_axis(1, source, target);
}

}  // namespace tutti::impl::backend::cpu
