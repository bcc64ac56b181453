// SPDX-License-Identifier: Apache-2.0
//
// interpolate2d: along the height, then along the width.
#include "backend/reference/elements.h"
#include "backend/reference/kernels.h"
#include "graph/ops/interpolation.h"

namespace tutti::impl::backend::reference {

using base::Result;
using base::Status;
using graph::ops::InterpolatedElement;

namespace {

double between(const InterpolatedElement &element, double low, double high) {
  return element.share == 0 ? low : low + element.share * (high - low);
}

}  // namespace

Result<Kernel> make_interpolate2d(KernelRequest &request) {
  const LoweredValue &x = request.input(0), &y = request.output(0);
  const auto vertical = graph::ops::interpolated_axis(x.dims[1], y.dims[1]);
  const auto horizontal = graph::ops::interpolated_axis(x.dims[2], y.dims[2]);
  return Kernel([=, rows = x.dims[0], height = x.dims[1], width = x.dims[2], channels = x.dims[3],
                 dtype = x.dtype](const Frame &frame) {
    int64_t to = 0;
    for (int64_t row = 0; row < rows; ++row) {
      for (const InterpolatedElement &v : vertical) {
        for (const InterpolatedElement &h : horizontal) {
          for (int64_t channel = 0; channel < channels; ++channel, ++to) {
            const auto pixel = [&](int64_t i, int64_t j) {
              return load_one(dtype, frame.input(0), ((row * height + i) * width + j) * channels + channel);
            };
            const double left = between(v, pixel(v.low, h.low), pixel(v.high, h.low));
            const double right = between(v, pixel(v.low, h.high), pixel(v.high, h.high));
            const double value = between(h, left, right);
            store(dtype, frame.output(0), to, 1, &value);
          }
        }
      }
    }
    return Status();
  });
}

}  // namespace tutti::impl::backend::reference
