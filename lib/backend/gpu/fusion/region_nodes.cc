// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/fusion/region_nodes.h"

#include <algorithm>

#include "backend/gpu/kernel/extents.h"
#include "backend/gpu/kernel/program_maker.h"
#include "graph/ops/op_attributes.h"

namespace tutti::impl::backend::gpu {

using graph::kNoValue;
using graph::Node;
using graph::NodeId;
using graph::ValueId;

RegionNodes::RegionNodes(const LoweredGraph &lowered, const graph::Region &region, const std::set<NodeId> &calls)
    : lowered_(lowered), region_(region), results_(region.results.begin(), region.results.end()) {
  for (const NodeId id : region.nodes) {
    const Node &node = lowered.graph().node(id);
    if (node.op == "constant") continue;
    int64_t first_column = 0;
    kinds_.push_back(calls.count(id) != 0 ? NodeKind::call : kind_of(node, first_column));
    first_columns_.push_back(first_column);
    for (const ValueId output : node.outputs)
      producers_[output] = ids_.size();
    for (const ValueId input : node.inputs) {
      if (input != kNoValue) users_[input].push_back(ids_.size());
    }
    ids_.push_back(id);
  }
  for (size_t at = count(); at-- > 0;)
    narrow(at);
}

Space RegionNodes::space_of(ValueId value) const {
  const std::vector<int64_t> &dims = lowered_.value(value).dims;
  Space space;
  for (size_t axis = 0; axis + 1 < dims.size(); ++axis)
    space.rows *= dims[axis];
  if (!dims.empty()) space.columns = dims.back();
  return space;
}

Space RegionNodes::space(size_t at) const {
  return space_of(kind(at) == NodeKind::concat ? node(at).inputs[0] : node(at).outputs[0]);
}

std::optional<size_t> RegionNodes::producer(ValueId value) const {
  const auto found = producers_.find(value);
  return found == producers_.end() ? std::nullopt : std::optional<size_t>(found->second);
}

bool RegionNodes::is_read_by_call(ValueId value) const {
  const auto users = users_.find(value);
  return users != users_.end() && std::any_of(users->second.begin(), users->second.end(),
                                              [&](size_t user) { return kinds_[user] == NodeKind::call; });
}

bool RegionNodes::is_readable(ValueId value) const { return is_float_like(lowered_.value(value).dtype); }

std::vector<size_t> RegionNodes::readers(ValueId value) const {
  std::set<size_t> found, seen;
  std::vector<ValueId> values = {value};
  while (!values.empty()) {
    const auto users = users_.find(values.back());
    values.pop_back();
    if (users == users_.end()) continue;
    for (const size_t user : users->second) {
      if (!seen.insert(user).second) continue;
      const bool passes_on = kinds_[user] == NodeKind::view || kinds_[user] == NodeKind::narrowed;
      if (!passes_on || is_wanted(output(user))) found.insert(user);
      if (passes_on) values.push_back(output(user));
    }
  }
  return {found.begin(), found.end()};
}

bool RegionNodes::broadcasts(ValueId operand, ValueId result) const {
  const Space from = space_of(operand), to = space_of(result);
  return (from.columns == to.columns || from.columns == 1) && (from.rows == to.rows || from.rows == 1);
}

bool RegionNodes::is_elementwise_over(const Node &node) const {
  if (!is_elementwise(node.op) || !fuses(lowered_, node)) return false;
  return std::all_of(node.inputs.begin(), node.inputs.end(),
                     [&](ValueId input) { return broadcasts(input, node.outputs[0]); });
}

bool RegionNodes::is_concat_of_columns(const Node &node) const {
  if (node.op != "concat" || !is_readable(node.outputs[0])) return false;
  const auto attributes = graph::ops::ConcatAttributes::from(node);
  const auto rank = static_cast<int64_t>(lowered_.value(node.outputs[0]).dims.size());
  if (!attributes.ok() || (attributes.value().axis != rank - 1 && attributes.value().axis != -1)) return false;
  return std::all_of(node.inputs.begin(), node.inputs.end(),
                     [&](ValueId input) { return lowered_.value(input).dims == lowered_.value(node.inputs[0]).dims; });
}

std::optional<int64_t> RegionNodes::slice_of(const Node &node) const {
  const auto attributes = graph::ops::SliceAttributes::from(node);
  if (!attributes.ok()) return std::nullopt;
  const auto &strides = attributes.value().strides;
  if (std::any_of(strides.begin(), strides.end(), [](int64_t stride) { return stride != 1; })) return std::nullopt;
  const auto begin = lowered_.evaluate(attributes.value().begin);
  if (!begin.ok()) return std::nullopt;
  const Extents &from = lowered_.value(node.inputs[0]).dims, &to = lowered_.value(node.outputs[0]).dims;
  if (to.empty()) return 0;
  for (size_t axis = 0; axis + 1 < to.size(); ++axis) {
    if (begin.value()[axis] != 0 || from[axis] != to[axis]) return std::nullopt;
  }
  const int64_t first = begin.value().back();
  return first >= 0 && first + to.back() <= from.back() ? std::optional<int64_t>(first) : std::nullopt;
}

std::optional<int64_t> RegionNodes::view_of(const Node &node) const {
  if (node.outputs.size() != 1 || !is_readable(node.outputs[0])) return std::nullopt;
  if (node.op == "slice") return slice_of(node);
  const bool is_same_space = node.inputs.size() == 1 && space_of(node.inputs[0]) == space_of(node.outputs[0]);
  if (node.op == "reshape" || node.op == "identity" || node.op == "stop_gradient")
    return is_same_space ? std::optional<int64_t>(0) : std::nullopt;
  if (node.op == "broadcast_to" && broadcasts(node.inputs[0], node.outputs[0])) return 0;
  return std::nullopt;
}

NodeKind RegionNodes::kind_of(const Node &node, int64_t &first_column) const {
  if (node.outputs.size() != 1 || lowered_.value(node.outputs[0]).elements == 0) return NodeKind::call;
  if (is_elementwise_over(node)) return NodeKind::elementwise;
  if (is_concat_of_columns(node)) return NodeKind::concat;
  const std::optional<int64_t> column = view_of(node);
  first_column = column.value_or(0);
  return column.has_value() ? NodeKind::view : NodeKind::call;
}

void RegionNodes::narrow(size_t at) {
  if (kinds_[at] != NodeKind::elementwise || is_result(output(at))) return;
  const auto users = users_.find(output(at));
  if (users == users_.end()) return;
  const bool is_narrowed = std::all_of(users->second.begin(), users->second.end(), [&](size_t user) {
    if (kinds_[user] == NodeKind::narrowed) return space(user) == space(at);
    return kinds_[user] == NodeKind::view && node(user).op == "slice" && space(user) != space(at);
  });
  if (is_narrowed) kinds_[at] = NodeKind::narrowed;
}

}  // namespace tutti::impl::backend::gpu
