// SPDX-License-Identifier: Apache-2.0
//
// Geometry of convolution and pooling windows along one axis, symbolic for shape rules and concrete for kernels.
//
//   output = ceil(input / stride)                                            for same
//   output = floor((input + before + after − extent) / stride) + 1           for valid (no padding) and explicit
//   extent = (window − 1) · dilation + 1
//
// Output o covers input positions o · stride − before + k · dilation, k = 0 .. window − 1.
#ifndef TUTTI_GRAPH_OPS_WINDOW_H_
#define TUTTI_GRAPH_OPS_WINDOW_H_

#include <cstdint>

#include "graph/dim.h"

namespace tutti::impl::graph::ops {

/// In the order of the enumerations of the ops.
enum class WindowPadding { same, valid, explicitly };

struct WindowAxis {
  int64_t window = 1;
  int64_t stride = 1;
  int64_t dilation = 1;
  WindowPadding padding = WindowPadding::valid;
  int64_t before = 0;  // padding; for same and valid set by resolve()
  int64_t after = 0;

  int64_t extent() const { return (window - 1) * dilation + 1; }
  /// Length of the output, symbolic; may be negative or unrepresentable when the window does not fit.
  Dim output(const Dim &input) const;
  /// Length of the output for a concrete input, and before and after as they are there; 0 when the window does not fit.
  int64_t resolve(int64_t input);
};

/// Both axes of an op from its attribute struct; A has stride, padding, pads and perhaps dilation.
struct Window2d {
  WindowAxis vertical, horizontal;

  template <typename A>
  static Window2d from(const A &attributes, int64_t height, int64_t width) {
    Window2d result;
    WindowAxis *axes[2] = {&result.vertical, &result.horizontal};
    const int64_t sizes[2] = {height, width};
    for (size_t i = 0; i < 2; ++i) {
      axes[i]->window = sizes[i];
      axes[i]->stride = attributes.stride.empty() ? sizes[i] : attributes.stride[i];
      if constexpr (requires { attributes.dilation; }) axes[i]->dilation = attributes.dilation[i];
      axes[i]->padding = static_cast<WindowPadding>(attributes.padding);
      if (axes[i]->padding == WindowPadding::explicitly) {
        axes[i]->before = attributes.pads[2 * i];
        axes[i]->after = attributes.pads[2 * i + 1];
      }
    }
    return result;
  }
};

}  // namespace tutti::impl::graph::ops

#endif  // TUTTI_GRAPH_OPS_WINDOW_H_
