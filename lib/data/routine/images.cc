// SPDX-License-Identifier: Apache-2.0
#include "data/routine/images.h"

#include <algorithm>
#include <array>
#include <span>

namespace tutti::impl::data {

using base::Result;
using base::Status;
using tensor::Shape;

bool is_jpeg(std::string_view contents) { return contents.substr(0, 3) == "\xff\xd8\xff"; }

bool is_png(std::string_view contents) { return contents.substr(0, 8) == "\x89PNG\r\n\x1a\n"; }

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

namespace {

Result<Shape> append(const Shape &lead, std::span<const int64_t> more) {
  std::array<int64_t, Shape::kMaxRank + 3> extents{};
  std::copy(lead.begin(), lead.end(), extents.begin());
  std::copy(more.begin(), more.end(), extents.begin() + lead.rank());
  return Shape::make({extents.data(), static_cast<size_t>(lead.rank()) + more.size()});
}

}  // namespace

Result<Shape> append_image(const Shape &lead, int64_t height, int64_t width, int64_t channels) {
  const std::array<int64_t, 3> more{height, width, channels};
  return append(lead, more);
}

Result<Shape> append_axis(const Shape &lead, int64_t extent) { return append(lead, {&extent, 1}); }

Shape leading_axes(const Shape &shape, int32_t count) {
  return Shape::make({shape.begin(), static_cast<size_t>(shape.rank() - count)}).value_or(Shape());
}

int64_t index_at(const RoutineValue &value, int64_t index) {
  return value.dtype == tensor::DType::i32 ? static_cast<int64_t>(value.as<int32_t>()[index])
                                           : value.as<int64_t>()[index];
}

PixelWindow window_at(const RoutineValue &windows, int64_t index) {
  const int64_t first = index * 4;
  return {index_at(windows, first), index_at(windows, first + 1), index_at(windows, first + 2),
          index_at(windows, first + 3)};
}

}  // namespace tutti::impl::data
