// SPDX-License-Identifier: Apache-2.0
//
// Larger and smaller sequences, images and volumes: repeated positions, zeros around them, borders cut off.
#include <utility>

#include "base/text.h"
#include "nn/layers/windows.h"

namespace tutti::impl::nn {
namespace {

using graph::Dim;
using graph::Dims;

/// x with each index of an axis so many times.
ValueId repeated(GraphBuilder &b, ValueId x, size_t axis, int64_t factor) {
  if (factor == 1 || x == kNoValue) return x;
  Dims dims = b.dims(x);
  Dim outer = 1, inner = 1;
  for (size_t i = 0; i < dims.size(); ++i)
    (i <= axis ? outer : inner) = (i <= axis ? outer : inner) * dims[i];
  const ValueId several = b.broadcast_to(b.reshape(x, {outer, 1, inner}), {outer, factor, inner});
  dims[axis] = dims[axis] * Dim(factor);
  return b.reshape(several, dims);
}

ValueId repeat_elements(Expansion &e, const std::vector<int64_t> &factors) {
  ValueId x = e.input(0);
  if (!has_axes(e, x, factors.size())) return kNoValue;
  // From the last axis on: the smallest copies come first.
  for (size_t i = factors.size(); i > 0; --i)
    x = repeated(e.builder(), x, i, factors[i - 1]);
  return x;
}

ValueId bilinear(Expansion &e, const std::vector<int64_t> &factors) {
  const ValueId x = e.input(0);
  if (!has_axes(e, x, factors.size())) return kNoValue;
  const Dims &dims = e.builder().dims(x);
  std::vector<int64_t> size;
  for (size_t i = 0; i < factors.size(); ++i) {
    const Dim length = dims[i + 1] * Dim(factors[i]);
    if (!length.is_constant())
      return e.fail(base::concat("expected images of known height and width, got ", graph::to_string(dims)));
    size.push_back(length.constant());
  }
  return expand(e.builder(), "resize2d", 1, {x}, {{"size", size}}, {.training = e.training()});
}

ValueId zero_padding(Expansion &e, size_t axes) {
  const ValueId x = e.input(0);
  if (!has_axes(e, x, axes)) return kNoValue;
  const std::vector<int64_t> &pads = e.ints("pads");
  std::vector<int64_t> low(axes + 2, 0), high(axes + 2, 0);
  for (size_t i = 0; i < axes; ++i)
    low[i + 1] = pads[2 * i], high[i + 1] = pads[2 * i + 1];
  return e.builder().op("pad", {x}, {{"low", low}, {"high", high}});
}

ValueId cropping(Expansion &e, size_t axes) {
  const ValueId x = e.input(0);
  if (!has_axes(e, x, axes)) return kNoValue;
  const std::vector<int64_t> &crops = e.ints("crops");
  const Dims dims = e.builder().dims(x);
  Dims begin(axes + 2, 0), size = dims;
  for (size_t i = 0; i < axes; ++i) {
    begin[i + 1] = crops[2 * i];
    size[i + 1] = dims[i + 1] - Dim(crops[2 * i]) - Dim(crops[2 * i + 1]);
    if (size[i + 1].is_constant() && size[i + 1].constant() < 1) {
      return e.fail(base::concat("nothing is left of axis ", i + 1, " of ", graph::to_string(dims), " without ",
                                 crops[2 * i], " at its beginning and ", crops[2 * i + 1], " at its end"));
    }
  }
  return e.builder().slice(x, begin, size);
}

}  // namespace

ValueId expand_layer_up_sampling1d(Expansion &e) { return repeat_elements(e, {e.i64("factor")}); }

ValueId expand_layer_up_sampling2d(Expansion &e) {
  const std::vector<int64_t> factors = along_axes(e, "factor", "factors", 2);
  return e.text("method") == "nearest" ? repeat_elements(e, factors) : bilinear(e, factors);
}

ValueId expand_layer_up_sampling3d(Expansion &e) { return repeat_elements(e, along_axes(e, "factor", "factors", 3)); }

ValueId expand_layer_zero_padding1d(Expansion &e) { return zero_padding(e, 1); }

ValueId expand_layer_zero_padding2d(Expansion &e) { return zero_padding(e, 2); }

ValueId expand_layer_zero_padding3d(Expansion &e) { return zero_padding(e, 3); }

ValueId expand_layer_cropping1d(Expansion &e) { return cropping(e, 1); }

ValueId expand_layer_cropping2d(Expansion &e) { return cropping(e, 2); }

ValueId expand_layer_cropping3d(Expansion &e) { return cropping(e, 3); }

}  // namespace tutti::impl::nn
