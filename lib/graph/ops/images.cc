// SPDX-License-Identifier: Apache-2.0
//
// Ops on images, which run per element in datasets: shape rules.
#include "graph/ops/rules.h"

namespace tutti::impl::graph::ops {
namespace {

using tensor::DType;

// x is an image or rows of images of a dtype that kernels know.
base::Status require_image(const InferContext &context, size_t index) {
  if (context.rank(index) < 3) {
    return context.input_error(index, "is no image; expected [..., height, width, channels]");
  }
  const DType dtype = context.input(index).dtype;
  if (dtype == DType::u8 || dtype == DType::f32) return {};
  return context.input_error(index, base::concat("has dtype ", tensor::name(dtype), ", expected u8 or f32"));
}

// The dims of x with another height and width.
Dims with_size(const Dims &dims, Dim height, Dim width) {
  Dims result = dims;
  result[dims.size() - 3] = std::move(height);
  result[dims.size() - 2] = std::move(width);
  return result;
}

// A window for each of the values of dims `lead`.
base::Status require_windows(const InferContext &context, size_t index, const Dims &lead) {
  Dims expected = lead;
  expected.push_back(4);
  if (context.dims(index) == expected) return {};
  return context.input_error(index, base::concat("expected ", to_string(expected)));
}

}  // namespace

base::Status infer_decode_jpeg(InferContext &context) {
  TUTTI_ASSIGN(const DecodeJpegAttributes attributes, DecodeJpegAttributes::from(context.node()));
  if (attributes.channels == 2) return context.attribute_error("channels", "is 2, expected 1 or 3");
  if ((attributes.ratio & (attributes.ratio - 1)) != 0) {
    return context.attribute_error("ratio", base::concat("is ", attributes.ratio, ", expected 1, 2, 4 or 8"));
  }
  if (attributes.ratio != 1 && (attributes.minimum_height != 0 || attributes.minimum_width != 0)) {
    return context.attribute_error("ratio", "is given together with a minimum height or width; expected one of them");
  }
  if (context.has_input(1)) TUTTI_TRY(require_windows(context, 1, context.dims(0)));
  Dims dims = context.dims(0);
  dims.push_back(data_dependent_dim(context, "height"));
  dims.push_back(data_dependent_dim(context, "width"));
  dims.push_back(attributes.channels);
  context.add_output(DType::u8, std::move(dims));
  return {};
}

base::Status infer_resize(InferContext &context) {
  TUTTI_ASSIGN(const ResizeAttributes attributes, ResizeAttributes::from(context.node()));
  TUTTI_TRY(require_image(context, 0));
  if (attributes.antialias && attributes.method != ResizeAttributes::Method::bilinear) {
    return context.attribute_error("antialias", "is set, which is for the method bilinear");
  }
  const bool is_float = attributes.output == ResizeAttributes::Output::f32;
  context.add_output(is_float ? DType::f32 : context.input(0).dtype,
                     with_size(context.dims(0), attributes.size[0], attributes.size[1]));
  return {};
}

}  // namespace tutti::impl::graph::ops
