// SPDX-License-Identifier: Apache-2.0
//
// Where elements of images [images, down, across, channels] lie, without divisions. Included by .cu files only.
#ifndef TUTTI_BACKEND_GPU_DEVICE_IMAGE_PLACES_INL_H_
#define TUTTI_BACKEND_GPU_DEVICE_IMAGE_PLACES_INL_H_

#include <tutti_gpu.h>

#include <cstdint>

#include "backend/gpu/device/divider.h"

namespace tutti::impl::backend::gpu {

__device__ inline int64_t quotient(int64_t n, const Divider &by) {
  if (n <= Divider::kMost) return divide(static_cast<uint32_t>(n), by);
  return static_cast<int64_t>(divide(static_cast<uint64_t>(n), by));
}

struct ImagePlace {
  int64_t image, row, column, channel;
};

struct ImagePlaces {
  Divider down, across, channels;

  static ImagePlaces of(int64_t down, int64_t across, int64_t channels) {
    return {Divider::of(down), Divider::of(across), Divider::of(channels)};
  }
  __device__ ImagePlace at(int64_t element) const {
    const int64_t pixel = quotient(element, channels), line = quotient(pixel, across), image = quotient(line, down);
    return {image, line - image * down.divisor, pixel - line * across.divisor, element - pixel * channels.divisor};
  }
};

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_DEVICE_IMAGE_PLACES_INL_H_
