// SPDX-License-Identifier: Apache-2.0
#include "nn/expansion.h"

namespace tutti::impl::nn {

ValueId expand_layer_dense(Expansion &e) {
  const LayerScope scope(e.builder(), "dense");
  const ValueId x = e.input(0);
  const int64_t units = e.i64("units");
  const ValueId kernel = e.kernel("kernel", x, {e.last_dimension(x), units});
  ValueId y = e.builder().matmul(x, kernel);
  if (e.flag("use_bias")) y = e.builder().add(y, e.weight("bias", x, {units}, e.text("bias_initializer")));
  return e.activate(y);
}

ValueId expand_layer_flatten(Expansion &e) {
  const ValueId x = e.input(0);
  if (x == kNoValue) return kNoValue;
  const graph::Dims &dims = e.builder().dims(x);
  if (dims.empty()) return e.fail("expected at least one dimension, got a scalar");
  graph::Dim rest = 1;
  for (size_t i = 1; i < dims.size(); ++i)
    rest = rest * dims[i];
  return e.builder().reshape(x, {dims[0], rest});
}

ValueId expand_layer_dropout(Expansion &e) {
  const double rate = e.f64("rate");
  if (rate >= 1) return e.fail("attribute 'rate' must be below 1");
  if (!e.training() || rate == 0) return e.input(0);
  return e.builder().op("dropout", {e.input(0)}, {{"rate", rate}});
}

}  // namespace tutti::impl::nn
