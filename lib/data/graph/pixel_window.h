// SPDX-License-Identifier: Apache-2.0
//
// Sizes of images, and parts of them.
//
// Threads: values.
#ifndef TUTTI_DATA_GRAPH_PIXEL_WINDOW_H_
#define TUTTI_DATA_GRAPH_PIXEL_WINDOW_H_

#include <cstdint>

namespace tutti::impl::data {

struct PixelSize {
  int64_t height = 0;
  int64_t width = 0;
};

/// A part of an image, in pixels.
struct PixelWindow {
  int64_t top = 0;
  int64_t left = 0;
  int64_t height = 0;
  int64_t width = 0;
};

}  // namespace tutti::impl::data

#endif  // TUTTI_DATA_GRAPH_PIXEL_WINDOW_H_
