// SPDX-License-Identifier: Apache-2.0
//
// Windows in volumes [rows, depth, height, width, channels]: those of images, whose rows are the slices of all volumes,
// and then along the depth.
#include <algorithm>

#include "nn/functions/function_parts.h"

namespace tutti::impl::nn {
namespace {

bool is_volume(Expansion &e, ValueId x) {
  const Dims &dims = e.builder().dims(x);
  if (dims.size() == 5) return true;
  e.fail(base::concat("expected volumes [rows, depth, height, width, channels], got ", graph::to_string(dims)));
  return false;
}

/// All slices as images [rows * depth, height, width, channels].
ValueId as_slices(GraphBuilder &b, ValueId x) {
  const Dims dims = b.dims(x);
  return b.reshape(x, {dims[0] * dims[1], dims[2], dims[3], dims[4]});
}

/// Images of slices as volumes of that depth.
ValueId as_volumes(GraphBuilder &b, ValueId slices, const Dim &rows, const Dim &depth) {
  if (slices == kNoValue) return kNoValue;
  const Dims dims = b.dims(slices);
  return b.reshape(slices, {rows, depth, dims[1], dims[2], dims[3]});
}

std::vector<int64_t> behind_depth(const std::vector<int64_t> &list, size_t depth) {
  return {list.begin() + static_cast<std::ptrdiff_t>(depth), list.end()};
}

/// One axis of a convolution: what is padded, and how many windows there are.
struct Walk {
  int64_t before = 0, after = 0, count = 0;
};

Walk walk_of(const std::string &padding, const std::vector<int64_t> &pads, int64_t length, int64_t extent,
             int64_t stride) {
  if (padding == "same") {
    const int64_t count = (length + stride - 1) / stride;
    const int64_t total = std::max<int64_t>((count - 1) * stride + extent - length, 0);
    return {total / 2, total - total / 2, count};
  }
  const bool is_explicit = padding == "explicit";
  const int64_t before = is_explicit ? pads[0] : 0, after = is_explicit ? pads[1] : 0;
  const int64_t room = length + before + after - extent;
  return {before, after, room < 0 ? 0 : room / stride + 1};
}

/// Every `stride`-th slice, `count` of them.
ValueId every(GraphBuilder &b, ValueId x, int64_t begin, int64_t count, int64_t stride) {
  Dims first(5, 0), size = b.dims(x);
  first[1] = begin, size[1] = count;
  return b.slice(x, first, size, {1, stride, 1, 1, 1});
}

ValueId pool_volumes(Expansion &e, std::string_view op) {
  GraphBuilder &b = e.builder();
  const ValueId x = e.input(0);
  if (!is_volume(e, x)) return kNoValue;
  const std::vector<int64_t> &window = e.ints("window"), &pads = e.ints("pads");
  std::vector<int64_t> stride = e.ints("stride");
  for (size_t i = 0; i < stride.size(); ++i)
    stride[i] = stride[i] == 0 ? window[i] : stride[i];
  const auto pooled = [&](ValueId images, Axes size, Axes step, Axes border) {
    graph::Attributes attributes{{"window", std::move(size)},
                                 {"stride", std::move(step)},
                                 {"padding", e.text("padding")},
                                 {"pads", std::move(border)}};
    if (op == "avg_pool2d") attributes["count_include_padding"] = e.flag("count_include_padding");
    return b.op(op, {images}, std::move(attributes));
  };
  const Dims dims = b.dims(x);
  const ValueId slices =
      pooled(as_slices(b, x), behind_depth(window, 1), behind_depth(stride, 1), behind_depth(pads, 2));
  if (slices == kNoValue) return kNoValue;
  const Dims small = b.dims(slices);
  const ValueId columns = b.reshape(slices, {dims[0], dims[1], small[1] * small[2], small[3]});
  const ValueId deep = pooled(columns, {window[0], 1}, {stride[0], 1}, {pads[0], pads[1], 0, 0});
  if (deep == kNoValue) return kNoValue;
  const Dim depth = b.dims(deep)[1];
  return b.reshape(deep, {dims[0], depth, small[1], small[2], small[3]});
}

/// What the kernel's slice at `offset` of the depth makes of all slices of the volume, at their places in a result of
/// that depth: every `stride`-th slice, from `offset` on.
ValueId placed(GraphBuilder &b, ValueId made, const Dim &rows, int64_t depth, int64_t stride, int64_t offset,
               int64_t result_depth) {
  if (made == kNoValue) return kNoValue;
  const Dims image = b.dims(made);
  const Dims tail(image.begin() + 1, image.end());
  const auto volumes = [&](const Dim &first, const Dim &second) {
    Dims dims{first, second};
    dims.insert(dims.end(), tail.begin(), tail.end());
    return dims;
  };
  ValueId y = b.reshape(made, volumes(rows * Dim(depth), 1));
  if (stride > 1) y = b.op("pad", {y}, {{"low", Axes(5, 0)}, {"high", Axes{0, stride - 1, 0, 0, 0}}});
  y = b.reshape(y, volumes(rows, depth * stride));
  const int64_t before = std::max<int64_t>(offset, 0);
  const int64_t after = std::max<int64_t>(result_depth - offset - depth * stride, 0);
  y = b.op("pad", {y}, {{"low", Axes{0, before, 0, 0, 0}}, {"high", Axes{0, after, 0, 0, 0}}});
  return part_of(b, y, 1, std::max<int64_t>(-offset, 0), result_depth);
}

/// Times the largest stride it is far from the limit of integers.
constexpr int64_t kMostDepth = int64_t{1} << 32;

/// The depth of the result of a transposed convolution, and how much of its beginning is cut off.
struct Spread {
  int64_t depth = 0, cut = 0;
};

Spread spread_of(const Expansion &e, int64_t depth, int64_t extent) {
  const int64_t stride = e.ints("stride")[0];
  if (e.text("padding") == "same")
    return {depth * stride, std::max<int64_t>((depth - 1) * stride + extent - depth * stride, 0) / 2};
  const bool is_explicit = e.text("padding") == "explicit";
  const int64_t front = is_explicit ? e.ints("pads")[0] : 0, back = is_explicit ? e.ints("pads")[1] : 0;
  return {(depth - 1) * stride + extent + e.ints("extra")[0] - front - back, front};
}

/// The attributes of the images' part of a transposed convolution.
graph::Attributes transposed_images(const Expansion &e) {
  return {{"stride", behind_depth(e.ints("stride"), 1)},
          {"dilation", behind_depth(e.ints("dilation"), 1)},
          {"padding", e.text("padding")},
          {"pads", behind_depth(e.ints("pads"), 2)},
          {"extra", behind_depth(e.ints("extra"), 1)},
          {"groups", e.i64("groups")}};
}

/// Less than the stride along the depth, and none for same padding.
bool check_extra(Expansion &e) {
  const int64_t extra = e.ints("extra")[0], stride = e.ints("stride")[0];
  if (extra == 0 || (extra < stride && e.text("padding") != "same")) return true;
  e.fail(e.text("padding") == "same" ? "with same padding there is nothing extra"
                                     : base::concat("expected less extra than the stride ", stride, ", got ", extra));
  return false;
}

}  // namespace

namespace {

/// A kernel [depth, height, width, channels, filters] of images whose pixels have the channels of several slices.
ValueId as_image_kernel(GraphBuilder &b, ValueId kernel) {
  const Dims dims = b.dims(kernel);
  return b.reshape(b.transpose(kernel, {1, 2, 0, 3, 4}), {dims[1], dims[2], dims[0] * dims[3], dims[4]});
}

}  // namespace

// Where channels are not in groups, one convolution of images that have the channels of all slices that the kernel sees
// at a time; else the sum over the kernel's slices of two-dimensional convolutions.
ValueId expand_function_conv3d(Expansion &e) {
  GraphBuilder &b = e.builder();
  ValueId x = e.input(0);
  const ValueId kernel = e.input(1);
  if (!is_volume(e, x)) return kNoValue;
  const Dims window = b.dims(kernel);
  if (window.size() != 5 || !window[0].is_constant()) {
    return e.fail(base::concat("expected a kernel [depth, height, width, channels / groups, filters], got ",
                               graph::to_string(window)));
  }
  const auto depth = known_length(e, x, 1);
  if (!depth) return kNoValue;
  const std::vector<int64_t> &stride = e.ints("stride"), &dilation = e.ints("dilation"), &pads = e.ints("pads");
  const int64_t extent = (window[0].constant() - 1) * dilation[0] + 1;
  const Walk walk = walk_of(e.text("padding"), pads, *depth, extent, stride[0]);
  if (walk.count < 1) return e.fail(base::concat("the kernel is deeper than the padded volume of depth ", *depth));
  if (walk.before != 0 || walk.after != 0)
    x = b.op("pad", {x}, {{"low", Axes{0, walk.before, 0, 0, 0}}, {"high", Axes{0, walk.after, 0, 0, 0}}});
  const graph::Attributes attributes{{"stride", behind_depth(stride, 1)},
                                     {"dilation", behind_depth(dilation, 1)},
                                     {"padding", e.text("padding")},
                                     {"pads", behind_depth(pads, 2)},
                                     {"groups", e.i64("groups")}};
  if (e.i64("groups") == 1) {
    Values seen;
    for (int64_t k = 0; k < window[0].constant() && b.ok(); ++k)
      seen.push_back(every(b, x, k * dilation[0], walk.count, stride[0]));
    Values inputs = {as_slices(b, b.concat(seen, 4)), as_image_kernel(b, kernel)};
    if (e.has_input(2)) inputs.push_back(e.input(2));
    return as_volumes(b, b.op("conv2d", inputs, attributes), b.dims(x)[0], walk.count);
  }
  ValueId sum = kNoValue;
  for (int64_t k = 0; k < window[0].constant() && b.ok(); ++k) {
    const ValueId slices = as_slices(b, every(b, x, k * dilation[0], walk.count, stride[0]));
    const ValueId flat = b.reshape(part_of(b, kernel, 0, k, 1), Dims(window.begin() + 1, window.end()));
    Values inputs = {slices, flat};
    if (k == 0 && e.has_input(2)) inputs.push_back(e.input(2));
    const ValueId made = b.op("conv2d", inputs, attributes);
    sum = sum == kNoValue ? made : b.add(sum, made);
  }
  return b.ok() ? as_volumes(b, sum, b.dims(x)[0], walk.count) : kNoValue;
}

ValueId expand_function_conv3d_transpose(Expansion &e) {
  GraphBuilder &b = e.builder();
  const ValueId x = e.input(0), kernel = e.input(1);
  if (!is_volume(e, x)) return kNoValue;
  const Dims window = b.dims(kernel), dims = b.dims(x);
  if (window.size() != 5 || !window[0].is_constant()) {
    return e.fail(base::concat("expected a kernel [depth, height, width, filters / groups, channels], got ",
                               graph::to_string(window)));
  }
  const auto depth = known_length(e, x, 1);
  if (!depth || !check_extra(e)) return kNoValue;
  if (*depth > kMostDepth) return e.fail(base::concat("expected a depth of at most ", kMostDepth, ", got ", *depth));
  const int64_t stride = e.ints("stride")[0], dilation = e.ints("dilation")[0];
  const Spread spread = spread_of(e, *depth, (window[0].constant() - 1) * dilation + 1);
  if (spread.depth < 1) return e.fail(base::concat("the result of a volume of depth ", *depth, " has no slices"));
  ValueId sum = kNoValue;
  for (int64_t k = 0; k < window[0].constant() && b.ok(); ++k) {
    const ValueId flat = b.reshape(part_of(b, kernel, 0, k, 1), Dims(window.begin() + 1, window.end()));
    const ValueId made = expand(b, "conv2d_transpose", 1, {as_slices(b, x), flat}, transposed_images(e), {});
    const ValueId y = placed(b, made, dims[0], *depth, stride, k * dilation - spread.cut, spread.depth);
    sum = sum == kNoValue ? y : b.add(sum, y);
  }
  return e.has_input(2) ? b.add(sum, e.input(2)) : sum;
}

ValueId expand_function_max_pool3d(Expansion &e) { return pool_volumes(e, "max_pool2d"); }

ValueId expand_function_avg_pool3d(Expansion &e) { return pool_volumes(e, "avg_pool2d"); }

}  // namespace tutti::impl::nn
