// SPDX-License-Identifier: Apache-2.0
#include "data/routine/images.h"
#include "data/routine/kernels.h"
#include "graph/ops/op_attributes.h"

namespace tutti::impl::data {

using base::Result;
using base::Status;
using graph::ops::ResizeAttributes;
using tensor::DType;

namespace {

ResizeMethod method_of(const ResizeAttributes &attributes) {
  switch (attributes.method) {
    case ResizeAttributes::Method::nearest:
      return ResizeMethod::nearest;
    case ResizeAttributes::Method::area:
      return ResizeMethod::area;
    default:
      return attributes.antialias ? ResizeMethod::bilinear_antialias : ResizeMethod::bilinear;
  }
}

template <typename T, typename R>
Status resize_rows(RoutineFrame &frame, const Resizing &resizing) {
  const RoutineValue &x = frame.input(0);
  const ImageRows rows = ImageRows::of(x.shape);
  if (rows.height == 0 || rows.width == 0) return base::invalid_argument("an image without pixels: ", x.shape);
  TUTTI_ASSIGN(R *const y, frame.output_as<R>(0, with_image(x.shape, resizing.height, resizing.width, rows.channels)));
  auto &resampler = frame.state<Resampler>();
  for (int64_t i = 0; i < rows.count; ++i)
    resampler.run(rows.view<T>(x, i), resizing, y + i * resizing.height * resizing.width * rows.channels);
  return Status();
}

}  // namespace

Result<RoutineKernel> make_resize(const RoutineNode &node) {
  TUTTI_ASSIGN(const ResizeAttributes attributes, ResizeAttributes::from(node.node));
  const Resizing resizing{method_of(attributes), attributes.size[0], attributes.size[1]};
  if (node.input(0).dtype == DType::f32) {
    return RoutineKernel([=](RoutineFrame &frame) { return resize_rows<float, float>(frame, resizing); });
  }
  if (node.output(0).dtype == DType::f32) {
    return RoutineKernel([=](RoutineFrame &frame) { return resize_rows<uint8_t, float>(frame, resizing); });
  }
  return RoutineKernel([=](RoutineFrame &frame) { return resize_rows<uint8_t, uint8_t>(frame, resizing); });
}

}  // namespace tutti::impl::data
