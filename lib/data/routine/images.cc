// SPDX-License-Identifier: Apache-2.0
#include "data/routine/images.h"

#include <array>
#include <vector>

namespace tutti::impl::data {

using base::Result;
using base::Status;
using tensor::Shape;

Status check_window(const PixelWindow &window, const PixelSize &size) {
  const bool fits = window.top >= 0 && window.left >= 0 && window.height > 0 && window.width > 0 &&
                    window.height <= size.height && window.width <= size.width &&
                    window.top <= size.height - window.height && window.left <= size.width - window.width;
  if (fits) return Status();
  return base::invalid_argument("a window of ", window.height, " x ", window.width, " pixels at row ", window.top,
                                ", column ", window.left, " does not lie in an image of ", size.height, " x ",
                                size.width, " pixels");
}

ImageRows ImageRows::of(const Shape &shape) {
  const int32_t rank = shape.rank();
  ImageRows rows{1, shape[rank - 3], shape[rank - 2], shape[rank - 1]};
  for (int32_t axis = 0; axis < rank - 3; ++axis)
    rows.count *= shape[axis];
  return rows;
}

Shape with_image(const Shape &shape, int64_t height, int64_t width, int64_t channels) {
  std::array<int64_t, Shape::kMaxRank> extents{};
  const auto rank = static_cast<size_t>(shape.rank());
  for (size_t axis = 0; axis < rank; ++axis)
    extents[axis] = shape[static_cast<int32_t>(axis)];
  extents[rank - 3] = height;
  extents[rank - 2] = width;
  extents[rank - 1] = channels;
  return Shape::make({extents.data(), rank}).value_or(Shape());
}

Result<Shape> append_image(const Shape &lead, int64_t height, int64_t width, int64_t channels) {
  std::array<int64_t, Shape::kMaxRank + 3> extents{};
  const auto rank = static_cast<size_t>(lead.rank());
  for (size_t axis = 0; axis < rank; ++axis)
    extents[axis] = lead[static_cast<int32_t>(axis)];
  extents[rank] = height;
  extents[rank + 1] = width;
  extents[rank + 2] = channels;
  return Shape::make({extents.data(), rank + 3});
}

PixelWindow window_at(const RoutineValue &windows, int64_t index) {
  const auto at = [&](int64_t i) {
    return windows.dtype == tensor::DType::i32 ? static_cast<int64_t>(windows.as<int32_t>()[index * 4 + i])
                                               : windows.as<int64_t>()[index * 4 + i];
  };
  return {at(0), at(1), at(2), at(3)};
}

}  // namespace tutti::impl::data
