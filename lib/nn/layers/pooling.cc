// SPDX-License-Identifier: Apache-2.0
#include <numeric>

#include "nn/layers/windows.h"

namespace tutti::impl::nn {
namespace {

ValueId pool(Expansion &e, std::string_view stem, size_t axes) {
  const ValueId x = e.input(0);
  if (!has_axes(e, x, axes)) return kNoValue;
  const std::vector<int64_t> size = along_axes(e, "size", "sizes", axes);
  std::vector<int64_t> stride = along_axes(e, "stride", "strides", axes);
  for (size_t i = 0; i < axes; ++i)
    stride[i] = stride[i] != 0 ? stride[i] : size[i];
  graph::Attributes attributes{
      {"window", for_axes(size)}, {"stride", for_axes(stride)}, {"padding", e.text("padding")}};
  if (e.text("padding") == "explicit") attributes["pads"] = e.ints("pads");
  if (stem == "avg_pool") attributes["count_include_padding"] = e.flag("count_include_padding");
  return on_axes(e, stem, axes, {x}, std::move(attributes));
}

/// All axes between the batch and the channels.
std::vector<int64_t> inner_axes(size_t axes) {
  std::vector<int64_t> list(axes);
  std::iota(list.begin(), list.end(), 1);
  return list;
}

ValueId global_average(Expansion &e, size_t axes) {
  return has_axes(e, e.input(0), axes) ? e.builder().reduce_mean(e.input(0), inner_axes(axes)) : kNoValue;
}

ValueId global_max(Expansion &e, size_t axes) {
  return has_axes(e, e.input(0), axes) ? e.builder().reduce("reduce_max", e.input(0), inner_axes(axes)) : kNoValue;
}

}  // namespace

ValueId expand_layer_max_pool1d(Expansion &e) { return pool(e, "max_pool", 1); }

ValueId expand_layer_max_pool2d(Expansion &e) { return pool(e, "max_pool", 2); }

ValueId expand_layer_max_pool3d(Expansion &e) { return pool(e, "max_pool", 3); }

ValueId expand_layer_average_pool1d(Expansion &e) { return pool(e, "avg_pool", 1); }

ValueId expand_layer_average_pool2d(Expansion &e) { return pool(e, "avg_pool", 2); }

ValueId expand_layer_average_pool3d(Expansion &e) { return pool(e, "avg_pool", 3); }

ValueId expand_layer_global_average_pool1d(Expansion &e) { return global_average(e, 1); }

ValueId expand_layer_global_average_pool2d(Expansion &e) { return global_average(e, 2); }

ValueId expand_layer_global_average_pool3d(Expansion &e) { return global_average(e, 3); }

ValueId expand_layer_global_max_pool1d(Expansion &e) { return global_max(e, 1); }

ValueId expand_layer_global_max_pool2d(Expansion &e) { return global_max(e, 2); }

ValueId expand_layer_global_max_pool3d(Expansion &e) { return global_max(e, 3); }

}  // namespace tutti::impl::nn
