// SPDX-License-Identifier: Apache-2.0
//
// Ops on images as ops that backends compile. Each is the arithmetic of the kernel of its name in routine/, number by
// number: pixels are moved by gathers, slices and pads, sums are built in the same order, f32 throughout.
#include <algorithm>
#include <functional>
#include <iterator>
#include <limits>
#include <utility>

#include "data/call/device_lowering.h"
#include "data/routine/random_draws.h"
#include "data/routine/resample.h"
#include "graph/ops/op_attributes.h"

namespace tutti::impl::data {

namespace {

using base::RandomStream;
using base::Result;
using base::Status;
using graph::Dim;
using graph::GraphBuilder;
using graph::Node;
using graph::ValueId;
using tensor::DType;
using tensor::Shape;
using tensor::Tensor;
namespace ops = graph::ops;

using Side = DeviceLowering::Side;
using Values = DeviceLowering::Values;

// Axes of images.
constexpr int64_t kRows = 1, kColumns = 2;

template <tensor::Element T>
Result<ValueId> constant(GraphBuilder &builder, const std::vector<T> &values, std::vector<int64_t> extents) {
  TUTTI_ASSIGN(const Shape shape, Shape::make(extents));
  TUTTI_ASSIGN(Tensor tensor, Tensor::from_values<T>(shape, values));
  return builder.constant(std::move(tensor));
}

// Slices of x along an axis, by index.
Result<ValueId> pick(GraphBuilder &builder, ValueId x, int64_t axis, const std::vector<int32_t> &indices) {
  const auto count = static_cast<int64_t>(indices.size());
  TUTTI_ASSIGN(const ValueId picked, constant<int32_t>(builder, indices, {count}));
  return builder.op("gather", {x, picked}, {{"axis", axis}});
}

std::vector<int32_t> indices_of(int64_t count, const std::function<int64_t(int64_t)> &index) {
  std::vector<int32_t> indices;
  for (int64_t i = 0; i < count; ++i)
    indices.push_back(static_cast<int32_t>(index(i)));
  return indices;
}

Result<ValueId> mirrored(GraphBuilder &builder, ValueId x, int64_t axis, int64_t length) {
  return pick(builder, x, axis, indices_of(length, [length](int64_t i) { return length - 1 - i; }));
}

// A value of each row, [batch], to go with [batch, ...] of so many axes.
ValueId for_each_pixel(GraphBuilder &builder, ValueId of_row, size_t rank) {
  graph::Dims dims{GraphBuilder::batch()};
  dims.resize(rank, Dim(1));
  return builder.reshape(of_row, std::move(dims));
}

ValueId bytes_to_floats(GraphBuilder &builder, ValueId x) {
  return builder.mul(builder.cast(x, DType::f32), builder.constant(double{1.0F / 255.0F}, DType::f32));
}

ValueId floats_to_bytes(GraphBuilder &builder, ValueId x) {
  const ValueId value = builder.mul(x, builder.constant(255.5, DType::f32));
  return builder.cast(value, DType::u8);  // truncates and saturates; what is no number becomes 0
}

// What a pixel is set to: u8 is rounded, halves up.
double pixel_value(double value, DType dtype) {
  if (dtype != DType::u8) return static_cast<double>(static_cast<float>(value));
  return static_cast<double>(static_cast<uint8_t>(std::clamp(value, 0.0, 255.0) + 0.5));
}

ValueId padded(GraphBuilder &builder, ValueId x, const std::vector<int64_t> &pads, double value) {
  if (std::ranges::all_of(pads, [](int64_t pad) { return pad == 0; })) return x;
  const std::vector<int64_t> low{0, pads[0], pads[2], 0}, high{0, pads[1], pads[3], 0};
  return builder.op("pad", {x}, {{"low", low}, {"high", high}, {"value", pixel_value(value, builder.dtype(x))}});
}

// ---- pixels that are moved ----

Result<Values> lower_flip(DeviceLowering &lowering, const Node &node, Side side) {
  TUTTI_ASSIGN(const auto attributes, ops::FlipAttributes::from(node));
  TUTTI_ASSIGN(const ValueId x, lowering.input(node, 0, side));
  TUTTI_ASSIGN(const ImageDims image, lowering.image(node, x));
  const bool is_vertical = attributes.direction == ops::FlipAttributes::Direction::vertical;
  TUTTI_ASSIGN(const ValueId y, is_vertical ? mirrored(lowering.builder(), x, kRows, image.height)
                                            : mirrored(lowering.builder(), x, kColumns, image.width));
  return Values{y};
}

Result<Values> lower_rotate90(DeviceLowering &lowering, const Node &node, Side side) {
  TUTTI_ASSIGN(const auto attributes, ops::Rotate90Attributes::from(node));
  TUTTI_ASSIGN(ValueId x, lowering.input(node, 0, side));
  TUTTI_ASSIGN(const ImageDims image, lowering.image(node, x));
  GraphBuilder &builder = lowering.builder();
  const int64_t turns = attributes.turns % 4;
  if (turns == 2) {
    TUTTI_ASSIGN(x, mirrored(builder, x, kRows, image.height));
    TUTTI_ASSIGN(x, mirrored(builder, x, kColumns, image.width));
  } else if (turns != 0) {
    x = builder.transpose(x, {0, 2, 1, 3});
    TUTTI_ASSIGN(x,
                 turns == 1 ? mirrored(builder, x, kRows, image.width) : mirrored(builder, x, kColumns, image.height));
  }
  return Values{builder.op("identity", {x})};
}

Result<Values> lower_crop(DeviceLowering &lowering, const Node &node, Side side) {
  TUTTI_ASSIGN(const auto attributes, ops::CropAttributes::from(node));
  if (node.inputs.size() > 1 && node.inputs[1] != graph::kNoValue)
    return base::unimplemented("windows given by the data are not supported on devices");
  TUTTI_ASSIGN(const ValueId x, lowering.input(node, 0, side));
  TUTTI_ASSIGN(const ImageDims image, lowering.image(node, x));
  const int64_t height = attributes.size[0], width = attributes.size[1];
  const int64_t top = attributes.centered ? (image.height - height) / 2 : attributes.offset[0];
  const int64_t left = attributes.centered ? (image.width - width) / 2 : attributes.offset[1];
  const bool fits =
      height > 0 && width > 0 && height <= image.height - top && width <= image.width - left && top >= 0 && left >= 0;
  if (!fits) {
    return base::unimplemented("a window of ", height, " x ", width, " pixels at row ", top, ", column ", left,
                               " does not lie in images of ", image.height, " x ", image.width);
  }
  const graph::Dims size{GraphBuilder::batch(), height, width, image.channels};
  return Values{lowering.builder().slice(x, {0, top, left, 0}, size)};
}

Result<Values> lower_pad_image(DeviceLowering &lowering, const Node &node, Side side) {
  using Attributes = ops::PadImageAttributes;
  TUTTI_ASSIGN(const Attributes attributes, Attributes::from(node));
  TUTTI_ASSIGN(ValueId x, lowering.input(node, 0, side));
  TUTTI_ASSIGN(const ImageDims image, lowering.image(node, x));
  const std::vector<int64_t> &pads = attributes.pads;
  if (attributes.mode == Attributes::Mode::constant)
    return Values{padded(lowering.builder(), x, pads, attributes.value)};
  const bool reflects = attributes.mode == Attributes::Mode::reflect;
  for (const int64_t axis : {kRows, kColumns}) {
    const int64_t length = axis == kRows ? image.height : image.width;
    const int64_t before = pads[axis == kRows ? 0 : 2], after = pads[axis == kRows ? 1 : 3];
    if (reflects && length <= std::max(before, after))
      return base::unimplemented("images of ", image.height, " x ", image.width, " pixels cannot be padded by ", pads);
    const auto index = [=](int64_t i) {
      const int64_t at = i - before;
      if (!reflects) return std::clamp<int64_t>(at, 0, length - 1);
      if (at < 0) return -at;
      return at < length ? at : 2 * (length - 1) - at;
    };
    TUTTI_ASSIGN(x, pick(lowering.builder(), x, axis, indices_of(before + length + after, index)));
  }
  return Values{x};
}

// ---- resize ----

std::vector<int32_t> tap_indices(const ResampleAxis &axis, int64_t tap) {
  std::vector<int32_t> indices = axis.starts;
  for (int32_t &index : indices)
    index += static_cast<int32_t>(tap);
  return indices;
}

// Sums over the taps of an axis, in their order, of weight times slice. `skips`: taps of weight 0 are not added, as
// they are not by the kernel where it mixes rows (not its first).
Result<ValueId> mixed(GraphBuilder &builder, ValueId x, int64_t axis, const ResampleAxis &by, bool skips) {
  const auto count = static_cast<int64_t>(by.starts.size());
  const std::vector<int64_t> extents =
      axis == kRows ? std::vector<int64_t>{count, 1, 1} : std::vector<int64_t>{count, 1};
  ValueId sum = graph::kNoValue;
  for (int64_t tap = 0; tap < by.taps; ++tap) {
    std::vector<float> weights;
    std::vector<uint8_t> counts;
    for (int64_t i = 0; i < count; ++i) {
      weights.push_back(by.weights[static_cast<size_t>(i * by.taps + tap)]);
      counts.push_back(weights.back() != 0 ? 1 : 0);
    }
    TUTTI_ASSIGN(const ValueId slices, pick(builder, x, axis, tap_indices(by, tap)));
    TUTTI_ASSIGN(const ValueId weight, constant<float>(builder, weights, extents));
    const ValueId product = builder.mul(builder.cast(slices, DType::f32), weight);
    const bool may_skip = skips && (tap >= 2 || by.taps == 2) && std::ranges::count(counts, 0) > 0;
    if (sum == graph::kNoValue) {
      sum = product;
    } else if (may_skip) {
      TUTTI_ASSIGN(const ValueId counted, constant<uint8_t>(builder, counts, extents));
      sum = builder.select(builder.cast(counted, DType::boolean), builder.add(sum, product), sum);
    } else {
      sum = builder.add(sum, product);
    }
  }
  return sum;
}

// Beyond, a graph of gathers and sums takes longer than the way to the device.
constexpr int64_t kMostTaps = 16;

ResizeMethod method_of(const ops::ResizeAttributes &attributes) {
  if (attributes.method == ops::ResizeAttributes::Method::nearest) return ResizeMethod::nearest;
  if (attributes.method == ops::ResizeAttributes::Method::area) return ResizeMethod::area;
  return attributes.antialias ? ResizeMethod::bilinear_antialias : ResizeMethod::bilinear;
}

Result<Values> lower_resize(DeviceLowering &lowering, const Node &node, Side side) {
  TUTTI_ASSIGN(const auto attributes, ops::ResizeAttributes::from(node));
  TUTTI_ASSIGN(ValueId x, lowering.input(node, 0, side));
  TUTTI_ASSIGN(const ImageDims image, lowering.image(node, x));
  GraphBuilder &builder = lowering.builder();
  const bool gives_bytes = builder.dtype(x) == DType::u8 && attributes.output == ops::ResizeAttributes::Output::same;
  const ResizeMethod method = method_of(attributes);
  ResampleAxis vertical, horizontal;
  vertical.set(method, image.height, attributes.size[0]);
  horizontal.set(method, image.width, attributes.size[1]);
  if (method == ResizeMethod::nearest) {
    TUTTI_ASSIGN(x, pick(builder, x, kRows, vertical.starts));
    TUTTI_ASSIGN(x, pick(builder, x, kColumns, horizontal.starts));
    return Values{gives_bytes ? x : builder.cast(x, DType::f32)};
  }
  if (std::max(vertical.taps, horizontal.taps) > kMostTaps) {
    return base::unimplemented("a pixel of the result depends on up to ", std::max(vertical.taps, horizontal.taps),
                               " pixels along an axis; devices support at most ", kMostTaps);
  }
  TUTTI_ASSIGN(x, mixed(builder, x, kRows, vertical, true));
  TUTTI_ASSIGN(x, mixed(builder, x, kColumns, horizontal, false));
  if (!gives_bytes) return Values{x};
  const ValueId limited = builder.op(
      "minimum", {builder.op("maximum", {x, builder.constant(0, DType::f32)}), builder.constant(255, DType::f32)});
  return Values{builder.cast(builder.add(limited, builder.constant(0.5, DType::f32)), DType::u8)};
}

// ---- colours ----

Result<Values> lower_convert_image_dtype(DeviceLowering &lowering, const Node &node, Side side) {
  TUTTI_ASSIGN(const auto attributes, ops::ConvertImageDtypeAttributes::from(node));
  TUTTI_ASSIGN(const ValueId x, lowering.input(node, 0, side));
  GraphBuilder &builder = lowering.builder();
  if (builder.dtype(x) == attributes.dtype) return Values{x};
  return Values{attributes.dtype == DType::f32 ? bytes_to_floats(builder, x) : floats_to_bytes(builder, x)};
}

Result<Values> lower_normalize_image(DeviceLowering &lowering, const Node &node, Side side) {
  TUTTI_ASSIGN(const auto attributes, ops::NormalizeImageAttributes::from(node));
  TUTTI_ASSIGN(const ValueId x, lowering.input(node, 0, side));
  GraphBuilder &builder = lowering.builder();
  const size_t count = std::max(attributes.mean.size(), attributes.stddev.size());
  std::vector<float> scale, offset;
  for (size_t c = 0; c < count; ++c) {
    const double mean = attributes.mean[attributes.mean.size() == 1 ? 0 : c];
    const double stddev = attributes.stddev[attributes.stddev.size() == 1 ? 0 : c];
    scale.push_back(static_cast<float>(attributes.scale / stddev));
    offset.push_back(static_cast<float>(-mean / stddev));
  }
  const auto channels = static_cast<int64_t>(count);
  TUTTI_ASSIGN(const ValueId factor, constant<float>(builder, scale, {channels}));
  TUTTI_ASSIGN(const ValueId summand, constant<float>(builder, offset, {channels}));
  return Values{builder.add(builder.mul(builder.cast(x, DType::f32), factor), summand)};
}

Result<Values> lower_adjust_brightness(DeviceLowering &lowering, const Node &node, Side side) {
  TUTTI_ASSIGN(const auto attributes, ops::AdjustBrightnessAttributes::from(node));
  TUTTI_ASSIGN(const ValueId x, lowering.input(node, 0, side));
  GraphBuilder &builder = lowering.builder();
  const bool has_bytes = builder.dtype(x) == DType::u8;
  const ValueId floats = has_bytes ? bytes_to_floats(builder, x) : x;
  const ValueId sum = builder.add(floats, builder.constant(attributes.delta, DType::f32));
  return Values{has_bytes ? floats_to_bytes(builder, sum) : sum};
}

// ---- what is drawn ----

template <typename T>
void put(void *to, std::initializer_list<T> values) {
  std::copy(values.begin(), values.end(), static_cast<T *>(to));
}

Result<Values> lower_random_flip(DeviceLowering &lowering, const Node &node, Side side) {
  TUTTI_ASSIGN(const auto attributes, ops::RandomFlipAttributes::from(node));
  TUTTI_ASSIGN(const ValueId x, lowering.input(node, 0, side));
  TUTTI_ASSIGN(const ImageDims image, lowering.image(node, x));
  GraphBuilder &builder = lowering.builder();
  const bool is_vertical = attributes.direction == ops::RandomFlipAttributes::Direction::vertical;
  const auto fill = [probability = attributes.probability](RandomStream random, const RowDraw::Place &, void *to) {
    put<uint8_t>(to, {static_cast<uint8_t>(random_flips(probability, random) ? 1 : 0)});
  };
  const ValueId flips = lowering.draw(node, attributes.key, {DType::boolean, 1, 0, fill}, side);
  TUTTI_ASSIGN(const ValueId flipped,
               is_vertical ? mirrored(builder, x, kRows, image.height) : mirrored(builder, x, kColumns, image.width));
  return Values{builder.select(for_each_pixel(builder, flips, 4), flipped, x)};
}

// The window of each row begins at a pixel of its own; [pixels of all rows, channels] is what is picked from.
Result<Values> lower_random_crop(DeviceLowering &lowering, const Node &node, Side side) {
  TUTTI_ASSIGN(const auto attributes, ops::RandomCropAttributes::from(node));
  TUTTI_ASSIGN(ValueId x, lowering.input(node, 0, side));
  TUTTI_ASSIGN(const ImageDims image, lowering.image(node, x));
  const PixelSize whole{image.height, image.width};
  const int64_t height = attributes.size[0], width = attributes.size[1], padding = attributes.padding;
  if (!has_random_place(whole, attributes)) {
    return base::unimplemented("images of ", image.height, " x ", image.width, " pixels with a padding of ", padding,
                               " have no part of ", height, " x ", width);
  }
  GraphBuilder &builder = lowering.builder();
  x = padded(builder, x, {padding, padding, padding, padding}, attributes.value);
  const int64_t columns = image.width + 2 * padding, pixels = columns * (image.height + 2 * padding);
  if (lowering.most_rows() > std::numeric_limits<int32_t>::max() / pixels)
    return base::unimplemented(lowering.most_rows(), " images of ", pixels, " pixels are more than 2^31 pixels");
  const auto fill = [=](RandomStream random, const RowDraw::Place &place, void *to) {
    const PixelWindow window = random_place(whole, attributes, random);
    put<int32_t>(to, {static_cast<int32_t>(place.local_row * pixels + window.top * columns + window.left)});
  };
  const ValueId first = lowering.draw(node, attributes.key, {DType::i32, 1, 0, fill}, side);
  const auto inside = indices_of(height * width, [=](int64_t i) { return i / width * columns + i % width; });
  TUTTI_ASSIGN(const ValueId steps, constant<int32_t>(builder, inside, {1, height, width}));
  const ValueId places = builder.add(for_each_pixel(builder, first, 3), steps);
  const ValueId flat = builder.reshape(x, {GraphBuilder::batch() * Dim(pixels), image.channels});
  return Values{builder.op("gather", {flat, places}, {{"axis", int64_t{0}}})};
}

RowDraw part_draw(std::function<PixelWindow(RandomStream &, const RowDraw::Place &)> part) {
  const auto fill = [part = std::move(part)](RandomStream random, const RowDraw::Place &place, void *to) {
    const PixelWindow window = part(random, place);
    put<int32_t>(to,
                 {static_cast<int32_t>(window.top), static_cast<int32_t>(window.left),
                  static_cast<int32_t>(window.top + window.height), static_cast<int32_t>(window.left + window.width)});
  };
  return {DType::i32, 4, 0, fill};
}

// [batch, height, width, 1]: does a pixel lie in the part of its row, [batch, 4] of top, left, bottom, right?
ValueId lies_inside(GraphBuilder &builder, ValueId parts, const ImageDims &image) {
  const auto bound = [&](int64_t index) {
    const ValueId column = builder.slice(parts, {0, index}, {GraphBuilder::batch(), 1});
    return builder.reshape(column, {GraphBuilder::batch(), 1, 1, 1});
  };
  const auto count = [&](std::vector<Dim> dims, int64_t axis) {
    return builder.op("iota", Values{},
                      {{"dims", graph::Dims(std::move(dims))}, {"axis", axis}, {"dtype", DType::i32}});
  };
  const ValueId row = count({1, image.height, 1, 1}, kRows), column = count({1, 1, image.width, 1}, kColumns);
  const auto between = [&](ValueId at, int64_t begin, int64_t end) {
    return builder.op("logical_and",
                      {builder.op("greater_equal", {at, bound(begin)}), builder.op("less", {at, bound(end)})});
  };
  return builder.op("logical_and", {between(row, 0, 2), between(column, 1, 3)});
}

Result<Values> lower_random_cutout(DeviceLowering &lowering, const Node &node, Side side) {
  TUTTI_ASSIGN(const auto attributes, ops::RandomCutoutAttributes::from(node));
  TUTTI_ASSIGN(const ValueId x, lowering.input(node, 0, side));
  TUTTI_ASSIGN(const ImageDims image, lowering.image(node, x));
  GraphBuilder &builder = lowering.builder();
  const PixelSize whole{image.height, image.width};
  const auto part = [=](RandomStream &random, const RowDraw::Place &) {
    return random_cutout_part(whole, attributes, random);
  };
  const ValueId parts = lowering.draw(node, attributes.key, part_draw(part), side);
  const DType dtype = builder.dtype(x);
  const ValueId value = builder.constant(pixel_value(attributes.value, dtype), dtype);
  return Values{builder.select(lies_inside(builder, parts, image), value, x)};
}

// ---- rows that are mixed ----

// The values of an input of the rows, and of the rows that they are mixed with.
struct Pair {
  ValueId own, partner;
};

Result<Pair> both_sides(DeviceLowering &lowering, const Node &node, size_t index) {
  Pair pair{};
  TUTTI_ASSIGN(pair.own, lowering.input(node, index, Side::own));
  TUTTI_ASSIGN(pair.partner, lowering.input(node, index, Side::partner));
  return pair;
}

ValueId blend(GraphBuilder &builder, const Pair &pair, ValueId share) {
  const ValueId of_own = for_each_pixel(builder, share, builder.rank(pair.own));
  const ValueId rest = builder.sub(builder.constant(1, DType::f32), of_own);
  return builder.add(builder.mul(of_own, pair.own), builder.mul(rest, pair.partner));
}

Status check_mixing(DeviceLowering &lowering, const Node &node, int64_t key, Side side) {
  if (side == Side::partner) return base::unimplemented("rows are mixed by two ops in a row");
  return lowering.mix(node, key);
}

Result<Values> lower_mixup(DeviceLowering &lowering, const Node &node, Side side) {
  TUTTI_ASSIGN(const auto attributes, ops::MixupAttributes::from(node));
  TUTTI_TRY(check_mixing(lowering, node, attributes.key, side));
  TUTTI_ASSIGN(const Pair x, both_sides(lowering, node, 0));
  TUTTI_ASSIGN(const Pair targets, both_sides(lowering, node, 1));
  const auto fill = [alpha = attributes.alpha](RandomStream random, const RowDraw::Place &place, void *to) {
    (void)random_rotation(random, place.rows);
    put<float>(to, {static_cast<float>(beta_variate(alpha, random))});
  };
  const ValueId share = lowering.draw(node, attributes.key, {DType::f32, 1, 0, fill}, side);
  return Values{blend(lowering.builder(), x, share), blend(lowering.builder(), targets, share)};
}

Result<Values> lower_cutmix(DeviceLowering &lowering, const Node &node, Side side) {
  TUTTI_ASSIGN(const auto attributes, ops::CutmixAttributes::from(node));
  TUTTI_TRY(check_mixing(lowering, node, attributes.key, side));
  TUTTI_ASSIGN(const Pair x, both_sides(lowering, node, 0));
  TUTTI_ASSIGN(const Pair targets, both_sides(lowering, node, 1));
  TUTTI_ASSIGN(const ImageDims image, lowering.image(node, x.own));
  const PixelSize whole{image.height, image.width};
  const auto part = [whole, alpha = attributes.alpha](RandomStream &random, const RowDraw::Place &place) {
    (void)random_rotation(random, place.rows);
    return random_rectangle(whole, 1 - beta_variate(alpha, random), random);
  };
  const auto fill = [whole, part](RandomStream random, const RowDraw::Place &place, void *to) {
    const PixelWindow window = part(random, place);
    put<float>(to,
               {1 - static_cast<float>(window.height * window.width) / static_cast<float>(whole.height * whole.width)});
  };
  const ValueId parts = lowering.draw(node, attributes.key, part_draw(part), side);
  const ValueId share = lowering.draw(node, attributes.key, {DType::f32, 1, 0, fill}, side);
  GraphBuilder &builder = lowering.builder();
  return Values{builder.select(lies_inside(builder, parts, image), x.partner, x.own), blend(builder, targets, share)};
}

struct DeviceOpEntry {
  std::string_view op;
  DeviceOp lower;
};

constexpr DeviceOpEntry kOps[] = {
    {"adjust_brightness", lower_adjust_brightness},
    {"convert_image_dtype", lower_convert_image_dtype},
    {"crop", lower_crop},
    {"cutmix", lower_cutmix},
    {"flip", lower_flip},
    {"mixup", lower_mixup},
    {"normalize_image", lower_normalize_image},
    {"pad_image", lower_pad_image},
    {"random_crop", lower_random_crop},
    {"random_cutout", lower_random_cutout},
    {"random_flip", lower_random_flip},
    {"resize", lower_resize},
    {"rotate90", lower_rotate90},
};

}  // namespace

DeviceOp find_device_op(std::string_view op) {
  const auto *const found = std::ranges::find(kOps, op, &DeviceOpEntry::op);
  return found != std::end(kOps) ? found->lower : nullptr;
}

}  // namespace tutti::impl::data
