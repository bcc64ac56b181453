// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/shapes/strided_copy.h"

#include <algorithm>
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

/// Neighbours in reverse order, several at a time.
template <typename T>
void copy_reversed(int64_t n, const char *from, char *to) {
  typedef T Block __attribute__((vector_size(16)));
  constexpr int64_t kCount = 16 / sizeof(T);
  int64_t i = 0;
  for (; i + kCount <= n; i += kCount) {
    Block block, turned;
    std::memcpy(&block, from - (i + kCount - 1) * static_cast<int64_t>(sizeof(T)), sizeof(block));
    for (int64_t k = 0; k < kCount; ++k)
      turned[k] = block[kCount - 1 - k];
    std::memcpy(to + i * static_cast<int64_t>(sizeof(T)), &turned, sizeof(turned));
  }
  for (; i < n; ++i)
    std::memcpy(to + i * static_cast<int64_t>(sizeof(T)), from - i * static_cast<int64_t>(sizeof(T)), sizeof(T));
}

template <typename T>
void copy_elements(int64_t n, int64_t from_step, int64_t to_step, const char *from, char *to) {
  constexpr auto kSize = static_cast<int64_t>(sizeof(T));
  if (from_step == -kSize && to_step == kSize) return copy_reversed<T>(n, from, to);
  for (int64_t i = 0; i < n; ++i) {
    std::memcpy(to + i * to_step, from + i * from_step, sizeof(T));
  }
}

/// Two views of a matrix: to[row][column] = from[column][row]. Neighbours in a row of `to` and in a column of `from`
/// adjoin; the steps are bytes.
struct Turn {
  const char *from;
  char *to;
  int64_t from_step, to_step;

  template <typename T>
  Turn at(int64_t row, int64_t column) const {
    constexpr auto kSize = static_cast<int64_t>(sizeof(T));
    return {from + column * from_step + row * kSize, to + row * to_step + column * kSize, from_step, to_step};
  }
};

template <typename T>
void turn_elements(const Turn &turn, int64_t rows, int64_t columns) {
  for (int64_t row = 0; row < rows; ++row)
    copy_elements<T>(columns, turn.from_step, sizeof(T), turn.at<T>(row, 0).from, turn.at<T>(row, 0).to);
}

/// Of four by four numbers of four bytes.
void turn_four(const Turn &turn) {
  using Four = uint32_t __attribute__((vector_size(16)));
  Four r[4];
  for (int i = 0; i < 4; ++i)
    std::memcpy(&r[i], turn.from + i * turn.from_step, sizeof(Four));
  const Four low0 = __builtin_shufflevector(r[0], r[1], 0, 4, 1, 5),
             low1 = __builtin_shufflevector(r[2], r[3], 0, 4, 1, 5);
  const Four high0 = __builtin_shufflevector(r[0], r[1], 2, 6, 3, 7);
  const Four high1 = __builtin_shufflevector(r[2], r[3], 2, 6, 3, 7);
  r[0] = __builtin_shufflevector(low0, low1, 0, 1, 4, 5), r[1] = __builtin_shufflevector(low0, low1, 2, 3, 6, 7);
  r[2] = __builtin_shufflevector(high0, high1, 0, 1, 4, 5), r[3] = __builtin_shufflevector(high0, high1, 2, 3, 6, 7);
  for (int i = 0; i < 4; ++i)
    std::memcpy(turn.to + i * turn.to_step, &r[i], sizeof(Four));
}

template <typename T>
void turn_tile(const Turn &turn, int64_t rows, int64_t columns) {
  int64_t row = 0;
  if constexpr (sizeof(T) == 4) {
    for (; row + 4 <= rows; row += 4) {
      int64_t column = 0;
      for (; column + 4 <= columns; column += 4)
        turn_four(turn.at<T>(row, column));
      turn_elements<T>(turn.at<T>(row, column), 4, columns - column);
    }
  }
  turn_elements<T>(turn.at<T>(row, 0), rows - row, columns);
}

/// A tile at a time, so that of each line of memory all is used while it is near.
template <typename T>
void turn_all(const Turn &turn, int64_t rows, int64_t columns) {
  constexpr int64_t kTile = 16;
  for (int64_t row = 0; row < rows; row += kTile) {
    for (int64_t column = 0; column < columns; column += kTile)
      turn_tile<T>(turn.at<T>(row, column), std::min(kTile, rows - row), std::min(kTile, columns - column));
  }
}

}  // namespace

bool StridedCopy::turns(size_t axis) const {
  const bool has_size = run_bytes_ == 1 || run_bytes_ == 2 || run_bytes_ == 4 || run_bytes_ == 8;
  return has_size && axis + 2 == dims_.size() && from_strides_[axis] == run_bytes_ &&
         to_strides_[axis + 1] == run_bytes_;
}

void StridedCopy::turn(size_t axis, int64_t rows, const char *from, char *to) const {
  const Turn turn{from, to, from_strides_[axis + 1], to_strides_[axis]};
  const int64_t columns = dims_[axis + 1];
  switch (run_bytes_) {
    case 1:
      return turn_all<uint8_t>(turn, rows, columns);
    case 2:
      return turn_all<uint16_t>(turn, rows, columns);
    case 4:
      return turn_all<uint32_t>(turn, rows, columns);
    default:
      return turn_all<uint64_t>(turn, rows, columns);
  }
}

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
  if (turns(axis)) return turn(axis, dims_[axis], from, to);
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
  if (turns(0)) return turn(0, end - first, source, target);
  for (int64_t i = first; i < end; ++i, source += from_strides_[0], target += to_strides_[0])
    run_axis(1, source, target);
}

}  // namespace tutti::impl::backend::cpu
