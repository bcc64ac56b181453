// SPDX-License-Identifier: Apache-2.0
#include "tensor/shape.h"

#include <algorithm>

namespace tutti::impl::tensor {

base::Result<int64_t> checked_product(int64_t a, int64_t b, std::string_view what) {
  int64_t product = 0;
  if (a < 0 || b < 0 || __builtin_mul_overflow(a, b, &product)) {
    return base::resource_exhausted(what, ": ", a, " x ", b, " is too large");
  }
  return product;
}

base::Result<Shape> Shape::make(std::span<const int64_t> extents) {
  const auto text = [extents] { return base::concat("[", base::join(extents, ", "), "]"); };
  if (extents.size() > static_cast<size_t>(kMaxRank)) {
    return base::invalid_argument("shape of rank ", extents.size(), ": the largest rank is ", kMaxRank);
  }
  Shape shape;
  // Extents of zero do not excuse the others: reshaping may bring them together.
  int64_t elements = 1;
  for (const int64_t extent : extents) {
    if (extent < 0) return base::invalid_argument("shape ", text(), ": extent ", extent, " is negative");
    if (__builtin_mul_overflow(elements, std::max<int64_t>(1, extent), &elements) || elements > kMaxElements) {
      return base::invalid_argument("shape ", text(), " has too many elements");
    }
    shape.extents_[static_cast<size_t>(shape.rank_++)] = extent;
  }
  return shape;
}

int64_t Shape::elements() const { return elements_from(0); }

int64_t Shape::elements_from(int32_t axis) const {
  int64_t product = 1;
  for (int32_t i = axis; i < rank_; ++i)
    product *= (*this)[i];
  return product;
}

base::Result<int32_t> Shape::normalize_axis(int64_t axis) const {
  if (axis < -rank_ || axis >= rank_) {
    return base::out_of_range("axis ", axis, " is out of range for shape ", *this);
  }
  return static_cast<int32_t>(axis < 0 ? axis + rank_ : axis);
}

Shape Shape::with_rows(int64_t rows) const {
  Shape changed = *this;
  changed.extents_[0] = rows;
  return changed;
}

Shape Shape::row_shape() const {
  Shape row;
  for (int32_t i = 1; i < rank_; ++i)
    row.extents_[static_cast<size_t>(row.rank_++)] = (*this)[i];
  return row;
}

base::Result<Shape> Shape::prepend(int64_t extent) const {
  std::array<int64_t, kMaxRank + 1> extents;
  extents[0] = extent;
  std::copy(begin(), end(), extents.begin() + 1);
  return make(std::span<const int64_t>(extents).first(static_cast<size_t>(rank_) + 1));
}

std::string Shape::to_string() const { return base::concat("[", base::join(extents(), ", "), "]"); }

bool operator==(const Shape &a, const Shape &b) { return std::equal(a.begin(), a.end(), b.begin(), b.end()); }

}  // namespace tutti::impl::tensor
