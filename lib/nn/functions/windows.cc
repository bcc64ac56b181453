// SPDX-License-Identifier: Apache-2.0
//
// Windows along sequences [rows, length, channels]: those of images of height 1.
#include "nn/functions/sequences.h"

namespace tutti::impl::nn {
ValueId as_image(Expansion &e, ValueId x) {
  const Dims dims = e.builder().dims(x);
  if (dims.size() == 3) return e.builder().reshape(x, {dims[0], 1, dims[1], dims[2]});
  return e.fail(base::concat("expected sequences [rows, length, channels], got ", graph::to_string(dims)));
}

ValueId as_sequence(GraphBuilder &b, ValueId y) {
  if (y == kNoValue) return kNoValue;
  const Dims dims = b.dims(y);
  return b.reshape(y, {dims[0], dims[2], dims[3]});
}

ValueId as_flat_kernel(Expansion &e, ValueId kernel, std::string_view expected) {
  const Dims dims = e.builder().dims(kernel);
  if (dims.size() == 3) return e.builder().reshape(kernel, {1, dims[0], dims[1], dims[2]});
  return e.fail(base::concat("expected a kernel ", expected, ", got ", graph::to_string(dims)));
}

namespace {

/// What is padded, as the ops of images have it.
void add_padding(const Expansion &e, graph::Attributes &attributes) {
  attributes["padding"] = e.text("padding");
  attributes["pads"] = std::vector<int64_t>{0, 0, e.ints("pads")[0], e.ints("pads")[1]};
}

ValueId pool_sequence(Expansion &e, std::string_view op) {
  const int64_t window = e.i64("window"), stride = e.i64("stride") != 0 ? e.i64("stride") : window;
  graph::Attributes attributes{{"window", std::vector<int64_t>{1, window}},
                               {"stride", std::vector<int64_t>{1, stride}}};
  add_padding(e, attributes);
  if (op == "avg_pool2d") attributes["count_include_padding"] = e.flag("count_include_padding");
  const ValueId x = as_image(e, e.input(0));
  return x == kNoValue ? kNoValue : as_sequence(e.builder(), e.builder().op(op, {x}, std::move(attributes)));
}

}  // namespace

ValueId expand_function_conv1d(Expansion &e) {
  GraphBuilder &b = e.builder();
  const ValueId x = as_image(e, e.input(0));
  const ValueId kernel = x == kNoValue ? kNoValue : as_flat_kernel(e, e.input(1), "[size, channels / groups, filters]");
  if (kernel == kNoValue) return kNoValue;
  graph::Attributes attributes{{"stride", std::vector<int64_t>{1, e.i64("stride")}},
                               {"dilation", std::vector<int64_t>{1, e.i64("dilation")}},
                               {"groups", e.i64("groups")}};
  add_padding(e, attributes);
  Values inputs = {x, kernel};
  if (e.has_input(2)) inputs.push_back(e.input(2));
  return as_sequence(b, b.op("conv2d", inputs, std::move(attributes)));
}

ValueId expand_function_max_pool1d(Expansion &e) { return pool_sequence(e, "max_pool2d"); }

ValueId expand_function_avg_pool1d(Expansion &e) { return pool_sequence(e, "avg_pool2d"); }

}  // namespace tutti::impl::nn
