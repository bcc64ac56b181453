// SPDX-License-Identifier: Apache-2.0
//
// The extents of a tensor, outermost first: up to 8 of them, stored inline. A Shape is a value; copying costs 72 bytes.
//
//   Shape shape{64, 784};
//   shape.elements();                 // 50176
//   shape.to_string();                // "[64, 784]"
//
// Invariant: every extent is >= 0 and the number of elements fits int64 times 16 bytes: make() and the functions that
// return a Result check it. The constructor from literals is for extents the program itself writes.
#ifndef TUTTI_TENSOR_SHAPE_H_
#define TUTTI_TENSOR_SHAPE_H_

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include "base/status.h"

namespace tutti::impl::tensor {

class Shape {
 public:
  static constexpr int32_t kMaxRank = 8;
  /// No shape has more elements: 16 bytes times this still fits int64.
  static constexpr int64_t kMaxElements = int64_t{1} << 58;

  /// A scalar.
  constexpr Shape() = default;
  /// From literals: at most 8, none negative, product not too large.
  constexpr Shape(std::initializer_list<int64_t> extents) {
    for (const int64_t extent : extents) {
      if (rank_ < kMaxRank) extents_[static_cast<size_t>(rank_++)] = extent;
    }
  }
  /// Checked: INVALID_ARGUMENT for rank > 8, a negative extent or too many elements.
  static base::Result<Shape> make(std::span<const int64_t> extents);

  int32_t rank() const { return rank_; }
  /// 0 <= axis < rank().
  int64_t operator[](int32_t axis) const { return extents_[static_cast<size_t>(axis)]; }
  std::span<const int64_t> extents() const { return {extents_.data(), static_cast<size_t>(rank_)}; }
  const int64_t *begin() const { return extents_.data(); }
  const int64_t *end() const { return extents_.data() + rank_; }

  /// The product of all extents; 1 for a scalar.
  int64_t elements() const;
  /// The product of the extents from `axis` on; elements of one row for axis 1.
  int64_t elements_from(int32_t axis) const;
  /// The first extent; 1 for a scalar.
  int64_t rows() const { return rank_ == 0 ? 1 : extents_[0]; }

  /// The axis with a negative one counted from the end; OUT_OF_RANGE naming the shape.
  base::Result<int32_t> normalize_axis(int64_t axis) const;
  /// With the first extent replaced; requires rank > 0 and rows >= 0.
  Shape with_rows(int64_t rows) const;
  /// Without the first extent; a scalar stays one.
  Shape row_shape() const;
  /// With `extent` put in front. INVALID_ARGUMENT beyond rank 8 or too many elements.
  base::Result<Shape> prepend(int64_t extent) const;

  /// "[64, 784]"; "[]" for a scalar.
  std::string to_string() const;
  friend bool operator==(const Shape &a, const Shape &b);

 private:
  std::array<int64_t, kMaxRank> extents_{};
  int32_t rank_ = 0;
};

/// a * b when it neither overflows nor is negative; RESOURCE_EXHAUSTED naming `what` otherwise.
base::Result<int64_t> checked_product(int64_t a, int64_t b, std::string_view what);

}  // namespace tutti::impl::tensor

#endif  // TUTTI_TENSOR_SHAPE_H_
