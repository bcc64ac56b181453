// SPDX-License-Identifier: Apache-2.0
//
// Maximum and average over windows of images [rows, height, width, channels], and their gradients, in f32 or f64.
#include <algorithm>
#include <limits>

#include "backend/image_window.h"
#include "backend/pjrt/emit/op_emitters.h"
#include "base/text.h"
#include "graph/ops/op_attributes.h"

namespace tutti::impl::backend::pjrt {

using base::concat;
using base::Status;

namespace {

template <typename Attributes>
ImageWindow pooling_window(const Attributes &attributes, const Dims &image, const Dims &result) {
  const std::vector<int64_t> &stride = attributes.stride.empty() ? attributes.window : attributes.stride;
  return ImageWindow::make(image, result, attributes.window, stride, {1, 1},
                           static_cast<WindowPadding>(attributes.padding), attributes.pads);
}

/// Elements behind the image that the last window covers; negative where it does not reach the end.
int64_t pad_after(const WindowAxis &axis) {
  return (axis.output - 1) * axis.stride + axis.window - axis.input - axis.pad_before;
}

/// The image with what windows need around it, `value`, or without what no window reaches.
Value padded(ProgramText &text, const Value &x, const ImageWindow &window, double value) {
  return text.pad(x, value, {0, window.y.pad_before, window.x.pad_before, 0},
                  {0, pad_after(window.y), pad_after(window.x), 0});
}

WindowText plain_window(const ImageWindow &window) {
  return {{1, window.y.window, window.x.window, 1}, {1, window.y.stride, window.x.stride, 1}, Dims(4, 0), Dims(4, 0)};
}

/// How many elements of each window lie inside the image.
Dims counts_inside(const WindowAxis &axis) {
  Dims counts;
  for (int64_t o = 0; o < axis.output; ++o) {
    int64_t count = 0;
    for (int64_t k = 0; k < axis.window; ++k)
      count += axis.is_inside(axis.position(o, k)) ? 1 : 0;
    counts.push_back(count);
  }
  return counts;
}

/// By window: 1 / the number of elements that its mean is taken of, as [1, height, width, 1] to be broadcast.
Value shares(ProgramText &text, tensor::DType dtype, const ImageWindow &window, bool counts_padding, const Dims &dims) {
  std::vector<double> all;
  const Dims down = counts_inside(window.y), across = counts_inside(window.x);
  for (const int64_t y : down) {
    for (const int64_t x : across) {
      const int64_t count = counts_padding ? window.y.window * window.x.window : y * x;
      all.push_back(count == 0 ? 0 : 1 / static_cast<double>(count));
    }
  }
  return text.broadcast(text.constant(dtype, {window.y.output, window.x.output}, all), dims, {1, 2});
}

/// Windows of more places are left to the operation select_and_scatter.
constexpr int64_t kMostPlaces = 64;

/// Which place of its window each result of a maximum came from: the first of equals, and the first of what is not a
/// number before all numbers. Found place by place, so that padding takes no part whatever the image holds.
class MaxPlaces {
 public:
  MaxPlaces(ProgramText &text, const Value &x, const ImageWindow &window) : text_(text), window_(window) {
    image_ = padded(text, x, window, 0);
    for (int64_t k = 0; k < places(); ++k)
      consider(k);
  }

  /// dy at the places, summed where windows overlap; like the image.
  Value scatter(const Value &dy) {
    Value sum;
    for (int64_t k = 0; k < places(); ++k) {
      const Value here = text_.select(text_.compare("EQ", chosen_, static_cast<double>(k)), dy, text_.like(dy, 0));
      const Dims low = {0, k / window_.x.window, k % window_.x.window, 0};
      Dims high = {0, 0, 0, 0};
      for (size_t i = 1; i < 3; ++i) {
        const int64_t stride = i == 1 ? window_.y.stride : window_.x.stride;
        high[i] = image_.dims[i] - low[i] - (dy.dims[i] - 1) * stride - 1;
      }
      const Value placed = text_.pad(here, 0, low, high, {0, window_.y.stride - 1, window_.x.stride - 1, 0});
      sum = sum.is_absent() ? placed : text_.add(sum, placed);
    }
    return text_.pad(sum, 0, {0, -window_.y.pad_before, -window_.x.pad_before, 0},
                     {0, -pad_after(window_.y), -pad_after(window_.x), 0});
  }

 private:
  int64_t places() const { return window_.y.window * window_.x.window; }

  void consider(int64_t k) {
    const int64_t i = k / window_.x.window, j = k % window_.x.window;
    const Dims begin = {0, i, j, 0}, strides = {1, window_.y.stride, window_.x.stride, 1};
    const Dims limit = {image_.dims[0], i + (window_.y.output - 1) * window_.y.stride + 1,
                        j + (window_.x.output - 1) * window_.x.stride + 1, image_.dims[3]};
    const Value x = text_.slice(image_, begin, limit, strides);
    const Value is_nan = text_.is_nan(x);
    Value is_better;
    if (k == 0) {
      best_ = x;
      chosen_ = text_.splat(tensor::DType::i32, x.dims, -1);
      is_better = text_.splat(tensor::DType::boolean, x.dims, 1);
    } else {
      const Value has_none = text_.compare("LT", chosen_, 0);
      const Value beats = text_.binary("or", text_.compare("GT", x, best_), is_nan);
      const Value is_number = text_.unary("not", text_.is_nan(best_));
      is_better = text_.binary("or", has_none, text_.binary("and", is_number, beats));
    }
    is_better = text_.binary("and", is_better, inside(i, j, x.dims));
    best_ = text_.select(is_better, x, best_);
    chosen_ = text_.select(is_better, text_.splat(tensor::DType::i32, x.dims, static_cast<double>(k)), chosen_);
  }

  /// Where element (i, j) of a window lies inside the image.
  Value inside(int64_t i, int64_t j, const Dims &dims) {
    std::vector<double> all;
    for (int64_t p = 0; p < window_.y.output; ++p) {
      for (int64_t q = 0; q < window_.x.output; ++q)
        all.push_back(window_.y.is_inside(window_.y.position(p, i)) && window_.x.is_inside(window_.x.position(q, j)));
    }
    return text_.broadcast(text_.constant(tensor::DType::boolean, {window_.y.output, window_.x.output}, all), dims,
                           {1, 2});
  }

  ProgramText &text_;
  const ImageWindow &window_;
  Value image_, best_, chosen_;
};

/// The same with one operation, which finds the places itself.
Value scatter_to_selected(ProgramText &text, const Value &x, const Value &dy, const ImageWindow &window) {
  const Value element{"", x.dtype, {}};
  const std::string choose = text.region({element, element}, [&](std::span<const Value> of) -> std::vector<Value> {
    return {text.binary("or", text.compare("GE", of[0], of[1]), text.is_nan(of[0]))};
  });
  const std::string add = text.region(
      {element, element}, [&](std::span<const Value> of) -> std::vector<Value> { return {text.add(of[0], of[1])}; });
  // What no window reaches is cut off, and given zeros at the end.
  const int64_t down = std::max<int64_t>(-pad_after(window.y), 0), across = std::max<int64_t>(-pad_after(window.x), 0);
  const Value reached = text.pad(x, 0, Dims(4, 0), {0, -down, -across, 0});
  WindowText how = plain_window(window);
  how.low = {0, window.y.pad_before, window.x.pad_before, 0};
  how.high = {0, pad_after(window.y) + down, pad_after(window.x) + across, 0};
  const Value scattered = text.op("select_and_scatter", {reached, dy, text.scalar(x.dtype, 0)}, window_attributes(how),
                                  x.dtype, reached.dims, concat(choose, ", ", add));
  return text.pad(scattered, 0, Dims(4, 0), {0, down, across, 0});
}

}  // namespace

Status emit_max_pool2d(NodeEmitter &node) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::MaxPool2dAttributes::from(node.node()));
  ProgramText &text = node.text();
  const Value x = node.wide_input(0);
  const Dims &dims = node.output(0).dims;
  const ImageWindow window = pooling_window(attributes, x.dims, dims);
  if (is_empty(dims)) {
    node.set_output(0, text.splat(x.dtype, dims, 0));
    return Status();
  }
  const Value all = padded(text, x, window, -std::numeric_limits<double>::infinity());
  node.set_output(0, text.reduce_window(Reduction::max, all, plain_window(window)));
  return Status();
}

Status emit_max_pool2d_gradient(NodeEmitter &node) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::MaxPool2dGradientAttributes::from(node.node()));
  ProgramText &text = node.text();
  const Value dy = node.wide_input(0), x = node.wide_input(1);
  const ImageWindow window = pooling_window(attributes, x.dims, dy.dims);
  if (is_empty(dy.dims) || is_empty(x.dims)) {
    node.set_output(0, text.splat(x.dtype, x.dims, 0));
  } else if (window.y.window * window.x.window <= kMostPlaces) {
    node.set_output(0, MaxPlaces(text, x, window).scatter(dy));
  } else {
    node.set_output(0, scatter_to_selected(text, x, dy, window));
  }
  return Status();
}

Status emit_avg_pool2d(NodeEmitter &node) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::AvgPool2dAttributes::from(node.node()));
  ProgramText &text = node.text();
  const Value x = node.wide_input(0);
  const Dims &dims = node.output(0).dims;
  const ImageWindow window = pooling_window(attributes, x.dims, dims);
  if (is_empty(dims)) {
    node.set_output(0, text.splat(x.dtype, dims, 0));
    return Status();
  }
  const Value sums = text.reduce_window(Reduction::sum, padded(text, x, window, 0), plain_window(window));
  node.set_output(0, text.mul(sums, shares(text, x.dtype, window, attributes.count_include_padding, dims)));
  return Status();
}

Status emit_avg_pool2d_gradient(NodeEmitter &node) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::AvgPool2dGradientAttributes::from(node.node()));
  ProgramText &text = node.text();
  const Value dy = node.wide_input(0);
  const Dims &dims = node.output(0).dims;
  const ImageWindow window = pooling_window(attributes, dims, dy.dims);
  if (is_empty(dy.dims) || is_empty(dims)) {
    node.set_output(0, text.splat(dy.dtype, dims, 0));
    return Status();
  }
  const Value shared = text.mul(dy, shares(text, dy.dtype, window, attributes.count_include_padding, dy.dims));
  // Spread by the stride, each element of the image is in the windows that end at it or up to window − 1 later.
  Dims low = {0, 0, 0, 0}, high = {0, 0, 0, 0};
  const WindowAxis axes[] = {window.y, window.x};
  for (size_t i = 0; i < 2; ++i) {
    low[1 + i] = axes[i].window - 1 - axes[i].pad_before;
    high[1 + i] = axes[i].input - (axes[i].output - 1) * axes[i].stride - 1 - low[1 + i] + axes[i].window - 1;
  }
  const Value spread = text.pad(shared, 0, low, high, {0, window.y.stride - 1, window.x.stride - 1, 0});
  const WindowText plain{{1, window.y.window, window.x.window, 1}, {1, 1, 1, 1}, Dims(4, 0), Dims(4, 0)};
  node.set_output(0, text.reduce_window(Reduction::sum, spread, plain));
  return Status();
}

}  // namespace tutti::impl::backend::pjrt
