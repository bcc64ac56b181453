// SPDX-License-Identifier: Apache-2.0
//
// Geometry of windows over images [rows, height, width, channels], for convolution and pooling: where a window begins
// and which part of it lies inside.
#ifndef TUTTI_BACKEND_IMAGE_WINDOW_H_
#define TUTTI_BACKEND_IMAGE_WINDOW_H_

#include <algorithm>
#include <cstdint>
#include <vector>

namespace tutti::impl::backend {

/// One axis: input of `input` elements, `output` windows of `window` elements.
struct WindowAxis {
  int64_t input = 0, output = 0, window = 0;
  int64_t stride = 1, dilation = 1;
  int64_t pad_before = 0;

  /// Position in the input of element `k` of window `o`; may lie outside.
  constexpr int64_t position(int64_t o, int64_t k) const { return o * stride + k * dilation - pad_before; }
  constexpr bool is_inside(int64_t position) const { return position >= 0 && position < input; }
};

enum class WindowPadding { same, valid, explicit_ };

/// Padding before the first element: `same` puts the odd one behind.
inline int64_t window_pad_before(WindowPadding padding, int64_t explicit_pad, int64_t input, int64_t output,
                                 int64_t window, int64_t stride, int64_t dilation) {
  if (padding == WindowPadding::valid) return 0;
  if (padding == WindowPadding::explicit_) return explicit_pad;
  const int64_t covered = (output - 1) * stride + (window - 1) * dilation + 1;
  return std::max<int64_t>(covered - input, 0) / 2;
}

/// Both axes from an op's attributes (stride, dilation, padding, pads = top, bottom, left, right).
struct ImageWindow {
  WindowAxis y, x;
  int64_t rows = 0;

  static ImageWindow make(const std::vector<int64_t> &image, const std::vector<int64_t> &result,
                          const std::vector<int64_t> &window, const std::vector<int64_t> &stride,
                          const std::vector<int64_t> &dilation, WindowPadding padding,
                          const std::vector<int64_t> &pads) {
    ImageWindow made;
    made.rows = image[0];
    WindowAxis *const axes[] = {&made.y, &made.x};
    for (size_t i = 0; i < 2; ++i) {
      WindowAxis &axis = *axes[i];
      axis.input = image[1 + i];
      axis.output = result[1 + i];
      axis.window = window[i];
      axis.stride = stride[i];
      axis.dilation = dilation[i];
      axis.pad_before =
          window_pad_before(padding, pads[2 * i], axis.input, axis.output, axis.window, axis.stride, axis.dilation);
    }
    return made;
  }
};

}  // namespace tutti::impl::backend

#endif  // TUTTI_BACKEND_IMAGE_WINDOW_H_
