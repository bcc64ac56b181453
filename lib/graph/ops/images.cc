// SPDX-License-Identifier: Apache-2.0
//
// Ops on images, which run per element in datasets: shape rules.
#include <algorithm>

#include "graph/ops/rules.h"

namespace tutti::impl::graph::ops {
namespace {

using tensor::DType;

// x is an image or rows of images of a dtype that kernels know.
base::Status require_image(const InferContext &context, size_t index) {
  if (context.rank(index) < 3) {
    return context.input_error(index, "is not an image; expected [..., height, width, channels]");
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

// What decoding the files of input 0 gives.
void add_pixels(InferContext &context, int64_t channels) {
  Dims dims = context.dims(0);
  dims.push_back(data_dependent_dim(context, "height"));
  dims.push_back(data_dependent_dim(context, "width"));
  dims.push_back(channels);
  context.add_output(DType::u8, std::move(dims));
}

// The part of a size along an axis: as far as constants tell, it fits.
bool fits(const Dim &length, int64_t needed) { return !length.is_constant() || length.constant() >= needed; }

Dim height_of(const Dims &dims) { return dims[dims.size() - 3]; }
Dim width_of(const Dims &dims) { return dims[dims.size() - 2]; }

// Parts and padding that image ops take from an image of dims.
base::Status require_part(const InferContext &context, const std::vector<int64_t> &size, int64_t top, int64_t left) {
  const Dims &dims = context.dims(0);
  if (fits(height_of(dims), top + size[0]) && fits(width_of(dims), left + size[1])) return {};
  return context.input_error(
      0, base::concat("has no part of ", size[0], " x ", size[1], " pixels at row ", top, ", column ", left));
}

// Three channels, where they are known.
base::Status require_colors(const InferContext &context) {
  TUTTI_TRY(require_image(context, 0));
  const Dim channels = context.dims(0).back();
  if (!channels.is_constant() || channels.constant() == 3) return {};
  return context.input_error(0, base::concat("has ", channels, " channels, expected 3"));
}

base::Status require_ordered(const InferContext &context, const char *attribute, const std::vector<double> &bounds) {
  if (bounds[0] <= bounds[1]) return {};
  return context.attribute_error(attribute, base::concat("begins with ", bounds[0], ", expected at most ", bounds[1]));
}

// One per channel, or one for all.
base::Status require_per_channel(const InferContext &context, const char *attribute, size_t count) {
  const Dim channels = context.dims(0).back();
  if (count == 1 || (channels.is_constant() && channels.constant() == static_cast<int64_t>(count))) return {};
  return context.attribute_error(attribute, base::concat("has ", count, " elements for ", channels, " channels"));
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
  add_pixels(context, attributes.channels);
  return {};
}

base::Status infer_decode_png(InferContext &context) {
  TUTTI_ASSIGN(const DecodePngAttributes attributes, DecodePngAttributes::from(context.node()));
  if (attributes.channels == 2) return context.attribute_error("channels", "is 2, expected 1, 3 or 4");
  add_pixels(context, attributes.channels);
  return {};
}

base::Status infer_decode_image(InferContext &context) {
  TUTTI_ASSIGN(const DecodeImageAttributes attributes, DecodeImageAttributes::from(context.node()));
  if (attributes.channels == 2) return context.attribute_error("channels", "is 2, expected 1 or 3");
  add_pixels(context, attributes.channels);
  return {};
}

base::Status infer_image_size(InferContext &context) {
  Dims dims = context.dims(0);
  dims.push_back(2);
  context.add_output(DType::i64, std::move(dims));
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

// Of x, with the dims of its windows or a size of its own.
base::Status infer_crop(InferContext &context) {
  TUTTI_ASSIGN(const CropAttributes attributes, CropAttributes::from(context.node()));
  TUTTI_TRY(require_image(context, 0));
  const Dims &dims = context.dims(0);
  const bool has_size = attributes.size[0] != 0 || attributes.size[1] != 0;
  if (has_size && (attributes.size[0] == 0 || attributes.size[1] == 0)) {
    return context.attribute_error("size", "has one 0; expected both or none");
  }
  if (context.has_input(1)) {
    TUTTI_TRY(require_windows(context, 1, Dims(dims.begin(), dims.end() - 3)));
    if (attributes.centered || attributes.offset[0] != 0 || attributes.offset[1] != 0) {
      return context.attribute_error("offset", "and a window are both given; expected one of them");
    }
    Dim height = has_size ? Dim(attributes.size[0]) : data_dependent_dim(context, "height");
    Dim width = has_size ? Dim(attributes.size[1]) : data_dependent_dim(context, "width");
    context.add_output(context.input(0).dtype, with_size(dims, std::move(height), std::move(width)));
    return {};
  }
  if (!has_size) return context.attribute_error("size", "is missing, and so is a window; expected one of them");
  if (attributes.centered && (attributes.offset[0] != 0 || attributes.offset[1] != 0)) {
    return context.attribute_error("offset", "is given for a part in the middle");
  }
  TUTTI_TRY(require_part(context, attributes.size, attributes.offset[0], attributes.offset[1]));
  context.add_output(context.input(0).dtype, with_size(dims, attributes.size[0], attributes.size[1]));
  return {};
}

base::Status infer_pad_image(InferContext &context) {
  TUTTI_ASSIGN(const PadImageAttributes attributes, PadImageAttributes::from(context.node()));
  TUTTI_TRY(require_image(context, 0));
  const Dims &dims = context.dims(0);
  const std::vector<int64_t> &pads = attributes.pads;
  const bool reflects = attributes.mode == PadImageAttributes::Mode::reflect;
  if (reflects && (!fits(height_of(dims), std::max(pads[0], pads[1]) + 1) ||
                   !fits(width_of(dims), std::max(pads[2], pads[3]) + 1))) {
    return context.input_error(0, "has too few pixels for mirrored padding of this size");
  }
  context.add_output(context.input(0).dtype,
                     with_size(dims, height_of(dims) + pads[0] + pads[1], width_of(dims) + pads[2] + pads[3]));
  return {};
}

// flip, random_flip, random_cutout: x stays as it is, in shape.
base::Status infer_image(InferContext &context) {
  TUTTI_TRY(require_image(context, 0));
  context.add_output(context.input(0).dtype, context.dims(0));
  return {};
}

base::Status infer_color_image(InferContext &context) {
  TUTTI_TRY(require_colors(context));
  context.add_output(context.input(0).dtype, context.dims(0));
  return {};
}

base::Status infer_rotate90(InferContext &context) {
  TUTTI_ASSIGN(const Rotate90Attributes attributes, Rotate90Attributes::from(context.node()));
  TUTTI_TRY(require_image(context, 0));
  const Dims &dims = context.dims(0);
  const bool turns = attributes.turns % 2 != 0;
  context.add_output(context.input(0).dtype, turns ? with_size(dims, width_of(dims), height_of(dims)) : dims);
  return {};
}

base::Status infer_convert_image_dtype(InferContext &context) {
  TUTTI_ASSIGN(const ConvertImageDtypeAttributes attributes, ConvertImageDtypeAttributes::from(context.node()));
  for (const DType dtype : {context.input(0).dtype, attributes.dtype}) {
    if (dtype != DType::u8 && dtype != DType::f32) {
      return context.attribute_error(
          "dtype", base::concat("is ", tensor::name(attributes.dtype), " for ", tensor::name(context.input(0).dtype),
                                ", expected u8 and f32"));
    }
  }
  context.add_output(attributes.dtype, context.dims(0));
  return {};
}

base::Status infer_normalize_image(InferContext &context) {
  TUTTI_ASSIGN(const NormalizeImageAttributes attributes, NormalizeImageAttributes::from(context.node()));
  TUTTI_TRY(require_image(context, 0));
  TUTTI_TRY(require_per_channel(context, "mean", attributes.mean.size()));
  TUTTI_TRY(require_per_channel(context, "stddev", attributes.stddev.size()));
  context.add_output(DType::f32, context.dims(0));
  return {};
}

base::Status infer_random_crop(InferContext &context) {
  TUTTI_ASSIGN(const RandomCropAttributes attributes, RandomCropAttributes::from(context.node()));
  TUTTI_TRY(require_image(context, 0));
  TUTTI_TRY(require_part(context, attributes.size, -2 * attributes.padding, -2 * attributes.padding));
  context.add_output(context.input(0).dtype, with_size(context.dims(0), attributes.size[0], attributes.size[1]));
  return {};
}

base::Status infer_random_resized_crop(InferContext &context) {
  TUTTI_ASSIGN(const RandomResizedCropAttributes attributes, RandomResizedCropAttributes::from(context.node()));
  TUTTI_TRY(require_image(context, 0));
  TUTTI_TRY(require_ordered(context, "area", attributes.area));
  TUTTI_TRY(require_ordered(context, "aspect", attributes.aspect));
  const bool is_float = attributes.output == RandomResizedCropAttributes::Output::f32;
  context.add_output(is_float ? DType::f32 : context.input(0).dtype,
                     with_size(context.dims(0), attributes.size[0], attributes.size[1]));
  return {};
}

base::Status infer_random_crop_window(InferContext &context) {
  TUTTI_ASSIGN(const RandomCropWindowAttributes attributes, RandomCropWindowAttributes::from(context.node()));
  TUTTI_TRY(require_ordered(context, "area", attributes.area));
  TUTTI_TRY(require_ordered(context, "aspect", attributes.aspect));
  Dims dims = context.dims(0);
  if (dims.empty() || !(dims.back() == 2)) return context.input_error(0, "expected [..., 2]: height and width");
  dims.back() = 4;
  context.add_output(DType::i64, std::move(dims));
  return {};
}

// mixup, cutmix: rows of images and of what they are.
base::Status infer_mix_rows(InferContext &context) {
  if (context.node().op == "cutmix") {
    TUTTI_TRY(require_image(context, 0));
    if (context.rank(0) != 4) return context.input_error(0, "expected [rows, height, width, channels]");
  }
  for (size_t i = 0; i < 2; ++i) {
    if (context.rank(i) == 0) return context.input_error(i, "has no rows");
  }
  if (!(context.dims(0)[0] == context.dims(1)[0])) return context.inputs_error(0, 1, "differ in their rows");
  context.add_output(context.input(0).dtype, context.dims(0));
  context.add_output(context.input(1).dtype, context.dims(1));
  return {};
}

}  // namespace tutti::impl::graph::ops
