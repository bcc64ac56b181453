// SPDX-License-Identifier: Apache-2.0
//
// Maximum and average over windows of images [rows, height, width, channels], and their gradients. Channels are worked
// on together, as doubles in scratch memory.
#include <algorithm>
#include <limits>

#include "backend/image_window.h"
#include "backend/reference/elements.h"
#include "backend/reference/kernels.h"
#include "graph/ops/op_attributes.h"

namespace tutti::impl::backend::reference {

using base::Result;
using base::Status;
using tensor::DType;

namespace {

constexpr int64_t kDoubleBytes = static_cast<int64_t>(sizeof(double));

struct PoolPlan {
  ImageWindow window;
  int64_t channels = 0;
  bool counts_padding = false;
  DType dtype{};

  int64_t image_elements() const { return window.y.input * window.x.input * channels; }
  int64_t image_at(int64_t n, int64_t h, int64_t w) const {
    return ((n * window.y.input + h) * window.x.input + w) * channels;
  }
  int64_t result_at(int64_t n, int64_t p, int64_t q) const {
    return ((n * window.y.output + p) * window.x.output + q) * channels;
  }
};

template <typename Attributes>
PoolPlan pool_plan(const Attributes &attributes, const std::vector<int64_t> &image, const LoweredValue &result) {
  PoolPlan plan;
  const std::vector<int64_t> &stride = attributes.stride.empty() ? attributes.window : attributes.stride;
  plan.window = ImageWindow::make(image, result.dims, attributes.window, stride, {1, 1},
                                  static_cast<WindowPadding>(attributes.padding), attributes.pads);
  plan.channels = image[3];
  plan.dtype = result.dtype;
  return plan;
}

template <typename Function>
void for_pooled(const ImageWindow &window, int64_t n, Function function) {
  for (int64_t p = 0; p < window.y.output; ++p) {
    for (int64_t q = 0; q < window.x.output; ++q)
      function(n, p, q);
  }
}

/// Calls function(h, w) for the elements of window (p, q) inside the image, in row-major order; their number.
template <typename Function>
int64_t for_pool_window(const ImageWindow &window, int64_t p, int64_t q, Function function) {
  int64_t count = 0;
  for (int64_t i = 0; i < window.y.window; ++i) {
    const int64_t h = window.y.position(p, i);
    for (int64_t j = 0; j < window.x.window && window.y.is_inside(h); ++j) {
      const int64_t w = window.x.position(q, j);
      if (!window.x.is_inside(w)) continue;
      function(h, w);
      ++count;
    }
  }
  return count;
}

double window_share(const PoolPlan &plan, int64_t inside) {
  const int64_t count = plan.counts_padding ? plan.window.y.window * plan.window.x.window : inside;
  return count == 0 ? 0 : 1 / static_cast<double>(count);
}

}  // namespace

Result<Kernel> make_max_pool2d(KernelRequest &request) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::MaxPool2dAttributes::from(request.node));
  const PoolPlan plan = pool_plan(attributes, request.input(0).dims, request.output(0));
  request.scratch_bytes = 2 * plan.channels * kDoubleBytes;
  return Kernel([plan](const Frame &frame) {
    double *const best = frame.scratch_doubles(), *const x = best + plan.channels;
    for (int64_t n = 0; n < plan.window.rows; ++n) {
      for_pooled(plan.window, n, [&](int64_t, int64_t p, int64_t q) {
        std::fill(best, best + plan.channels, -std::numeric_limits<double>::infinity());
        for_pool_window(plan.window, p, q, [&](int64_t h, int64_t w) {
          load(plan.dtype, frame.input(0), plan.image_at(n, h, w), 1, plan.channels, x);
          for (int64_t c = 0; c < plan.channels; ++c) {
            if (x[c] > best[c] || x[c] != x[c]) best[c] = x[c];
          }
        });
        store(plan.dtype, frame.output(0), plan.result_at(n, p, q), plan.channels, best);
      });
    }
    return Status();
  });
}

Result<Kernel> make_max_pool2d_gradient(KernelRequest &request) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::MaxPool2dGradientAttributes::from(request.node));
  const PoolPlan plan = pool_plan(attributes, request.input(1).dims, request.input(2));
  request.scratch_bytes = (plan.image_elements() + 4 * plan.channels) * kDoubleBytes;
  return Kernel([plan](const Frame &frame) {
    const int64_t image = plan.image_elements(), channels = plan.channels;
    double *const dx = frame.scratch_doubles(), *const dy = dx + image, *const x = dy + channels;
    double *const best = x + channels, *const place = best + channels;
    for (int64_t n = 0; n < plan.window.rows && image != 0; ++n) {
      std::fill(dx, dx + image, 0.0);
      for_pooled(plan.window, n, [&](int64_t, int64_t p, int64_t q) {
        std::fill(place, place + channels, -1.0);
        for_pool_window(plan.window, p, q, [&](int64_t h, int64_t w) {
          load(plan.dtype, frame.input(1), plan.image_at(n, h, w), 1, channels, x);
          for (int64_t c = 0; c < channels; ++c) {
            // The first maximum wins; the first NaN beats every number.
            const bool is_better = place[c] < 0 || (best[c] == best[c] && (x[c] > best[c] || x[c] != x[c]));
            if (!is_better) continue;
            best[c] = x[c];
            place[c] = static_cast<double>(plan.image_at(0, h, w) + c);
          }
        });
        load(plan.dtype, frame.input(0), plan.result_at(n, p, q), 1, channels, dy);
        for (int64_t c = 0; c < channels; ++c) {
          if (place[c] >= 0) dx[static_cast<int64_t>(place[c])] += dy[c];
        }
      });
      store(plan.dtype, frame.output(0), n * image, image, dx);
    }
    return Status();
  });
}

Result<Kernel> make_avg_pool2d(KernelRequest &request) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::AvgPool2dAttributes::from(request.node));
  PoolPlan plan = pool_plan(attributes, request.input(0).dims, request.output(0));
  plan.counts_padding = attributes.count_include_padding;
  request.scratch_bytes = 2 * plan.channels * kDoubleBytes;
  return Kernel([plan](const Frame &frame) {
    double *const sums = frame.scratch_doubles(), *const x = sums + plan.channels;
    for (int64_t n = 0; n < plan.window.rows; ++n) {
      for_pooled(plan.window, n, [&](int64_t, int64_t p, int64_t q) {
        std::fill(sums, sums + plan.channels, 0.0);
        const int64_t inside = for_pool_window(plan.window, p, q, [&](int64_t h, int64_t w) {
          load(plan.dtype, frame.input(0), plan.image_at(n, h, w), 1, plan.channels, x);
          for (int64_t c = 0; c < plan.channels; ++c)
            sums[c] += x[c];
        });
        for (int64_t c = 0; c < plan.channels; ++c)
          sums[c] *= window_share(plan, inside);
        store(plan.dtype, frame.output(0), plan.result_at(n, p, q), plan.channels, sums);
      });
    }
    return Status();
  });
}

Result<Kernel> make_avg_pool2d_gradient(KernelRequest &request) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::AvgPool2dGradientAttributes::from(request.node));
  PoolPlan plan = pool_plan(attributes, request.output(0).dims, request.input(0));
  plan.counts_padding = attributes.count_include_padding;
  request.scratch_bytes = (plan.image_elements() + plan.channels) * kDoubleBytes;
  return Kernel([plan](const Frame &frame) {
    const int64_t image = plan.image_elements();
    double *const dx = frame.scratch_doubles(), *const dy = dx + image;
    for (int64_t n = 0; n < plan.window.rows && image != 0; ++n) {
      std::fill(dx, dx + image, 0.0);
      for_pooled(plan.window, n, [&](int64_t, int64_t p, int64_t q) {
        load(plan.dtype, frame.input(0), plan.result_at(n, p, q), 1, plan.channels, dy);
        const int64_t inside = for_pool_window(plan.window, p, q, [](int64_t, int64_t) {});
        const double share = window_share(plan, inside);
        for_pool_window(plan.window, p, q, [&](int64_t h, int64_t w) {
          double *const pixel = dx + plan.image_at(0, h, w);
          for (int64_t c = 0; c < plan.channels; ++c)
            pixel[c] += dy[c] * share;
        });
      });
      store(plan.dtype, frame.output(0), n * image, image, dx);
    }
    return Status();
  });
}

}  // namespace tutti::impl::backend::reference
