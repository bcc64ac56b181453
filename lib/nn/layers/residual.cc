// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "nn/expansion.h"

namespace tutti::impl::nn {
namespace {

struct Step {
  std::string_view name;  // of the scope
  int64_t filters = 1, size = 1, stride = 1;
};

/// A convolution with size / 2 pixels of padding on each side, and a batch norm.
ValueId convolve_step(Expansion &e, ValueId x, const Step &step) {
  GraphBuilder &b = e.builder();
  const LayerScope scope(b, step.name);
  const int64_t channels = e.last_dimension(x), pad = step.size / 2;
  if (channels == 0) return kNoValue;
  const ValueId kernel = e.kernel("kernel", x, {step.size, step.size, channels, step.filters});
  const ValueId y = b.op("conv2d", {x, kernel, kNoValue},
                         {{"stride", std::vector<int64_t>{step.stride, step.stride}},
                          {"padding", "explicit"},
                          {"pads", std::vector<int64_t>{pad, pad, pad, pad}}});
  return expand(b, "layer_batch_norm", 1, {y}, {{"momentum", e.f64("momentum")}, {"epsilon", e.f64("epsilon")}},
                {.training = e.training()});
}

}  // namespace

ValueId expand_layer_residual_block2d(Expansion &e) {
  GraphBuilder &b = e.builder();
  const LayerScope scope(b, "residual_block2d");
  const ValueId x = e.input(0);
  if (x == kNoValue) return kNoValue;
  if (b.rank(x) != 4) {
    return e.fail(
        base::concat("expected x of rank 4, [batch, height, width, channels], got ", graph::to_string(b.dims(x))));
  }
  const int64_t filters = e.i64("filters"), stride = e.i64("stride");
  ValueId y = convolve_step(e, x, {.name = "first", .filters = filters, .size = 3, .stride = stride});
  y = convolve_step(e, b.unary("relu", y), {.name = "second", .filters = filters, .size = 3});
  const bool is_same = stride == 1 && e.last_dimension(x) == filters;
  const ValueId shortcut =
      is_same ? x : convolve_step(e, x, {.name = "shortcut", .filters = filters, .size = 1, .stride = stride});
  return b.unary("relu", b.add(y, shortcut));
}

}  // namespace tutti::impl::nn
