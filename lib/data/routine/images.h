// SPDX-License-Identifier: Apache-2.0
//
// Values as images: [..., height, width, channels], each row of the leading axes one image.
//
// Threads: pure functions.
#ifndef TUTTI_DATA_ROUTINE_IMAGES_H_
#define TUTTI_DATA_ROUTINE_IMAGES_H_

#include <cstdint>

#include "base/status.h"
#include "data/graph/routine_kernel.h"
#include "data/routine/image_file.h"
#include "data/routine/resample.h"
#include "tensor/shape.h"

namespace tutti::impl::data {

/// How many images a value holds, and how large each is.
struct ImageRows {
  int64_t count = 0;
  int64_t height = 0;
  int64_t width = 0;
  int64_t channels = 0;

  /// Rank at least 3, as shape rules see to.
  static ImageRows of(const tensor::Shape &shape);
  int64_t elements() const { return height * width * channels; }
  template <typename T>
  ImageView<T> view(const RoutineValue &value, int64_t index) const {
    return {value.as<T>() + index * elements(), height, width, channels, width * channels};
  }
};

/// The shape with its last three axes replaced.
tensor::Shape with_image(const tensor::Shape &shape, int64_t height, int64_t width, int64_t channels);
/// `lead` with three axes behind it; INVALID_ARGUMENT beyond the highest rank.
base::Result<tensor::Shape> append_image(const tensor::Shape &lead, int64_t height, int64_t width, int64_t channels);
/// `lead` with one axis behind it.
base::Result<tensor::Shape> append_axis(const tensor::Shape &lead, int64_t extent);
/// The shape without its last `count` axes.
tensor::Shape leading_axes(const tensor::Shape &shape, int32_t count);
/// An element of an i32 or i64 value.
int64_t index_at(const RoutineValue &value, int64_t index);
/// Row `index` of a value [..., 4]: top, left, height, width.
PixelWindow window_at(const RoutineValue &windows, int64_t index);

}  // namespace tutti::impl::data

#endif  // TUTTI_DATA_ROUTINE_IMAGES_H_
