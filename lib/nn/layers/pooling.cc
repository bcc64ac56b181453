// SPDX-License-Identifier: Apache-2.0
#include "nn/expansion.h"

namespace tutti::impl::nn {
namespace {

ValueId pool(Expansion &e, std::string_view op) {
  const int64_t size = e.i64("size");
  const int64_t stride = e.i64("stride") != 0 ? e.i64("stride") : size;
  return e.builder().op(op, {e.input(0)},
                        {{"window", std::vector<int64_t>{size, size}},
                         {"stride", std::vector<int64_t>{stride, stride}},
                         {"padding", e.text("padding")}});
}

}  // namespace

ValueId expand_layer_max_pool2d(Expansion &e) { return pool(e, "max_pool2d"); }

ValueId expand_layer_average_pool2d(Expansion &e) { return pool(e, "avg_pool2d"); }

ValueId expand_layer_global_average_pool2d(Expansion &e) { return e.builder().reduce_mean(e.input(0), {1, 2}); }

ValueId expand_layer_global_max_pool2d(Expansion &e) { return e.builder().reduce("reduce_max", e.input(0), {1, 2}); }

}  // namespace tutti::impl::nn
