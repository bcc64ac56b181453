// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/attributes.h"
#include "backend/cpu/image_geometry.h"
#include "backend/cpu/lower.h"
#include "backend/cpu/simd_pool.h"

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

std::string_view image_layout(const Lowering &l, ValueId x) {
  return l.layout_of(x) == kBlocked16 ? kBlocked16 : std::string_view();
}

}  // namespace

bool lower_max_pool(Lowering &l, const Node &node) {
  if (!l.is_f32(node.inputs[0])) return false;
  const std::string_view layout = image_layout(l, node.inputs[0]);
  const PoolShape shape = shape_of(l, node, node.inputs[0], node.outputs[0], layout);
  const BufferId x = l.read(node.inputs[0], layout);
  const BufferId y = l.write(node.outputs[0], layout);
  l.emit("simd:max_pool", [=](const RunContext &c) { max_pool(shape, c.in(x), c.out(y)); });
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
  l.emit(relu ? "simd:max_pool_gradient+relu_gradient" : "simd:max_pool_gradient",
         [=](const RunContext &c) { max_pool_gradient(shape, c.in(dy), c.in(x), c.in(y), relu, c.out(dx)); });
  return true;
}

bool lower_average_pool(Lowering &l, const Node &node) {
  if (!l.is_f32(node.inputs[0])) return false;
  const std::string_view layout = image_layout(l, node.inputs[0]);
  const PoolShape shape = shape_of(l, node, node.inputs[0], node.outputs[0], layout);
  const BufferId x = l.read(node.inputs[0], layout);
  const BufferId y = l.write(node.outputs[0], layout);
  l.emit("simd:average_pool", [=](const RunContext &c) { average_pool(shape, c.in(x), c.out(y)); });
  return true;
}

bool lower_average_pool_gradient(Lowering &l, const Node &node) {
  if (!l.is_f32(node.inputs[0])) return false;
  const PoolShape shape = shape_of(l, node, node.outputs[0], node.inputs[0], "");
  const BufferId dy = l.read(node.inputs[0]);
  const BufferId dx = l.write(node.outputs[0]);
  l.emit("simd:average_pool_gradient", [=](const RunContext &c) { average_pool_gradient(shape, c.in(dy), c.out(dx)); });
  return true;
}

}  // namespace tutti::impl::backend::cpu
