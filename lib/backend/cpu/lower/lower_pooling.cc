// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/kernel/pool.h"
#include "backend/cpu/lower/batch_norm.h"
#include "backend/cpu/lower/lower.h"
#include "backend/cpu/shapes/attributes.h"
#include "backend/cpu/shapes/image_geometry.h"

namespace tutti::impl::backend::cpu {

using graph::Node;
using graph::ValueId;

namespace {

PoolShape shape_of(const Lowering &l, const Node &node, ValueId x, ValueId y, std::string_view layout) {
  const std::vector<int64_t> &in = l.value(x).dims;
  const std::vector<int64_t> &out = l.value(y).dims;
  const std::vector<int64_t> window = integers(node, "window");
  PoolShape s;
  const int64_t blocks = layout == kBlocked16 ? in[3] / 16 : 1;
  s.images = in[0] * blocks;
  s.channels = in[3] / blocks;
  s.in_height = in[1];
  s.in_width = in[2];
  s.out_height = out[1];
  s.out_width = out[2];
  const WindowGeometry geometry =
      window_geometry(node, {in[1], in[2]}, {out[1], out[2]}, {window[0], window[1]}, {window[0], window[1]});
  for (size_t axis = 0; axis < 2; ++axis) {
    s.window[axis] = window[axis];
    s.stride[axis] = geometry.stride[axis];
    s.pad_low[axis] = geometry.pad_low[axis];
  }
  s.count_padding = node.op.starts_with("avg") && flag(node, "count_include_padding");
  return s;
}

/// A pool over some of the images; function(context, part, offset of x, offset of y).
template <typename Function>
void emit_pool(Lowering &l, const char *name, const PoolShape &shape, Function function) {
  const int64_t in = shape.in_height * shape.in_width * shape.channels;
  const int64_t out = shape.out_height * shape.out_width * shape.channels;
  l.emit_ranges(name, shape.images, grain_of(in + out), [=](const RunContext &c, Range images) {
    PoolShape part = shape;
    part.images = images.size();
    function(c, part, images.begin * in, images.begin * out);
  });
}

}  // namespace

bool lower_max_pool(Lowering &l, const Node &node) {
  if (!l.is_f32(node.inputs[0])) return false;
  const std::string_view layout = image_layout(l, node.inputs[0]);
  const PoolShape shape = shape_of(l, node, node.inputs[0], node.outputs[0], layout);
  const BufferId x = l.read(node.inputs[0], layout);
  const BufferId y = l.write(node.outputs[0], layout);
  emit_pool(l, "simd:max_pool", shape, [=](const RunContext &c, const PoolShape &part, int64_t x_at, int64_t y_at) {
    max_pool(part, c.in(x) + x_at, c.out(y) + y_at);
  });
  return true;
}

bool lower_max_pool_gradient(Lowering &l, const Group &group) {
  const Node &node = l.graph().step(group.steps.front());
  if (!l.is_f32(node.inputs[0])) return false;
  const bool relu = group.steps.size() > 1;
  const std::string_view layout = image_layout(l, node.inputs[1]);
  const PoolShape shape = shape_of(l, node, node.inputs[1], node.inputs[2], layout);
  const BufferId dy = l.read(node.inputs[0], layout), x = l.read(node.inputs[1], layout);
  const BufferId y = l.read(node.inputs[2], layout);
  const BufferId dx = l.write(l.graph().step(group.steps.back()).outputs[0], layout);
  emit_pool(l, relu ? "simd:max_pool_gradient+relu_gradient" : "simd:max_pool_gradient", shape,
            [=](const RunContext &c, const PoolShape &part, int64_t x_at, int64_t y_at) {
              max_pool_gradient(part, c.in(dy) + y_at, c.in(x) + x_at, c.in(y) + y_at, relu, c.out(dx) + x_at);
            });
  return true;
}

bool lower_average_pool(Lowering &l, const Node &node) {
  if (!l.is_f32(node.inputs[0])) return false;
  const std::string_view layout = image_layout(l, node.inputs[0]);
  const PoolShape shape = shape_of(l, node, node.inputs[0], node.outputs[0], layout);
  const BufferId x = l.read(node.inputs[0], layout);
  const BufferId y = l.write(node.outputs[0], layout);
  emit_pool(l, "simd:average_pool", shape, [=](const RunContext &c, const PoolShape &part, int64_t x_at, int64_t y_at) {
    average_pool(part, c.in(x) + x_at, c.out(y) + y_at);
  });
  return true;
}

bool lower_average_pool_gradient(Lowering &l, const Node &node) {
  if (!l.is_f32(node.inputs[0])) return false;
  const PoolShape shape = shape_of(l, node, node.outputs[0], node.inputs[0], "");
  const BufferId dy = l.read(node.inputs[0]);
  const BufferId dx = l.write(node.outputs[0]);
  emit_pool(l, "simd:average_pool_gradient", shape,
            [=](const RunContext &c, const PoolShape &part, int64_t x_at, int64_t y_at) {
              average_pool_gradient(part, c.in(dy) + y_at, c.out(dx) + x_at);
            });
  return true;
}

}  // namespace tutti::impl::backend::cpu
