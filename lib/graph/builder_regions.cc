// SPDX-License-Identifier: Apache-2.0
//
// GraphBuilder: ops that own regions.
#include <algorithm>

#include "graph/builder.h"

namespace tutti::impl::graph {

void GraphBuilder::push_frame(std::string_view owner, bool captures_allowed) {
  Frame frame;
  frame.id = ++frame_count_;
  frame.owner = std::string(owner);
  frame.captures_allowed = captures_allowed;
  frames_.push_back(std::move(frame));
}

std::vector<ValueInfo> GraphBuilder::infos(const Values &values) const {
  std::vector<ValueInfo> result;
  for (const ValueId value : values) {
    if (graph_.contains(value)) result.push_back(graph_.value(value));
  }
  return result;
}

// Runs `function` inside a new frame. False after an error.
bool GraphBuilder::build_region(std::string_view owner, const std::vector<ValueInfo> &parameters,
                                const RegionFunction &function, bool captures_allowed, BuiltRegion *built) {
  push_frame(owner, captures_allowed);
  const size_t depth = frames_.size();
  const std::vector<std::string> scopes = scopes_;
  Values ids;
  for (ValueInfo info : parameters) {
    info.producer = kNoNode;
    info.output_index = static_cast<int32_t>(ids.size());
    ids.push_back(add_value(std::move(info), frames_.back().id));
  }
  frames_.back().region.parameters = ids;
  const Values results = function(*this, ids);
  if (ok() && frames_.size() != depth) fail(base::internal_error("a region of ", owner, " was left unbalanced"));
  frames_.resize(depth);
  for (const ValueId result : results) {
    ValueId own = result;
    if (result != kNoValue && ok()) {
      own = graph_.contains(result) ? capture(result, depth - 1)
                                    : fail(base::invalid_argument("a region of ", owner, " returns value ", result,
                                                                  ", which does not exist"));
    }
    frames_.back().region.results.push_back(own);
  }
  built->region = std::move(frames_.back().region);
  built->captures = std::move(frames_.back().captures);
  frames_.pop_back();
  scopes_ = scopes;
  return ok();
}

Region GraphBuilder::copy_region(const Graph &source, const Region &region, std::string_view owner) {
  push_frame(owner, false);
  std::map<ValueId, ValueId> made;
  const auto find = [&](ValueId old) {
    const auto found = made.find(old);
    return found == made.end() ? kNoValue : found->second;
  };
  for (const ValueId parameter : region.parameters) {
    ValueInfo info = source.value(parameter);
    made[parameter] = add_value(std::move(info), frames_.back().id);
    frames_.back().region.parameters.push_back(made[parameter]);
  }
  for (const NodeId id : region.nodes) {
    const Node node = source.node(id);
    Values inputs;
    for (const ValueId input : node.inputs)
      inputs.push_back(find(input));
    const Values outputs = copy_node(source, node, inputs);
    for (size_t i = 0; i < outputs.size(); ++i)
      made[node.outputs[i]] = outputs[i];
  }
  for (const ValueId result : region.results)
    frames_.back().region.results.push_back(find(result));
  Region copy = std::move(frames_.back().region);
  frames_.pop_back();
  return copy;
}

GraphBuilder::Values GraphBuilder::call(const Values &inputs, const RegionFunction &body) {
  BuiltRegion built;
  if (!ok() || !build_region("call", infos(inputs), body, true, &built)) return {};
  Node node;
  node.op = "call";
  node.inputs = inputs;
  node.inputs.insert(node.inputs.end(), built.captures.begin(), built.captures.end());
  const size_t outputs = built.region.results.size();
  node.regions.push_back(std::move(built.region));
  return insert(std::move(node), outputs, frames_.size() - 1);
}

GraphBuilder::Values GraphBuilder::custom_gradient(const Values &inputs, const RegionFunction &forward,
                                                   const RegionFunction &backward) {
  BuiltRegion first, second;
  if (!ok() || !build_region("custom_gradient", infos(inputs), forward, false, &first)) return {};
  const size_t outputs = first.region.results.size();
  std::vector<ValueInfo> parameters = infos(inputs);
  for (int round = 0; round < 2; ++round) {  // the outputs, then their gradients
    for (const ValueInfo &info : infos(first.region.results))
      parameters.push_back(info);
  }
  if (!build_region("custom_gradient", parameters, backward, false, &second)) return Values(outputs, kNoValue);
  Node node;
  node.op = "custom_gradient";
  node.inputs = inputs;
  node.regions = {std::move(first.region), std::move(second.region)};
  return insert(std::move(node), outputs, frames_.size() - 1);
}

GraphBuilder::Values GraphBuilder::scan(const Values &states, const Values &sequences, const RegionFunction &body,
                                        int64_t axis, bool reverse) {
  if (!ok()) return {};
  std::vector<ValueInfo> parameters = infos(states);
  for (ValueInfo info : infos(sequences)) {
    if (axis < 0 || static_cast<size_t>(axis) >= info.dims.size()) {
      fail(base::invalid_argument("scan in scope '", scope(), "': a sequence ", to_string(info.dims), " has no axis ",
                                  axis));
      return {};
    }
    info.dims.erase(info.dims.begin() + static_cast<std::ptrdiff_t>(axis));
    parameters.push_back(std::move(info));
  }
  BuiltRegion built;
  if (!build_region("scan", parameters, body, true, &built)) return {};
  Node node;
  node.op = "scan";
  for (const Values *list : std::initializer_list<const Values *>{&states, &sequences, &built.captures})
    node.inputs.insert(node.inputs.end(), list->begin(), list->end());
  node.attributes = {{"states", static_cast<int64_t>(states.size())},
                     {"sequences", static_cast<int64_t>(sequences.size())}};
  if (axis != 0) node.attributes["axis"] = axis;
  if (reverse) node.attributes["reverse"] = true;
  const size_t outputs = built.region.results.size();
  node.regions.push_back(std::move(built.region));
  return insert(std::move(node), outputs, frames_.size() - 1);
}

GraphBuilder::Values GraphBuilder::cond(ValueId predicate, const RegionFunction &then_region,
                                        const RegionFunction &else_region) {
  BuiltRegion built[2];
  if (!ok() || !build_region("cond", {}, then_region, true, &built[0]) ||
      !build_region("cond", {}, else_region, true, &built[1])) {
    return {};
  }
  // Both regions take the same inputs: the captures of the first, then those only the second has.
  Values captures = built[0].captures;
  for (const ValueId outer : built[1].captures) {
    if (std::count(captures.begin(), captures.end(), outer) == 0) captures.push_back(outer);
  }
  for (BuiltRegion &branch : built) {
    std::vector<ValueId> parameters;
    for (const ValueId outer : captures) {
      const auto known = std::find(branch.captures.begin(), branch.captures.end(), outer);
      ValueId parameter = kNoValue;
      if (known != branch.captures.end()) {
        parameter = branch.region.parameters[static_cast<size_t>(known - branch.captures.begin())];
      } else {
        ValueInfo info = graph_.value(outer);
        info.producer = kNoNode;
        parameter = add_value(std::move(info), -1);
      }
      graph_.mutable_value(parameter).output_index = static_cast<int32_t>(parameters.size());
      parameters.push_back(parameter);
    }
    branch.region.parameters = std::move(parameters);
  }
  Node node;
  node.op = "cond";
  node.inputs = {predicate};
  node.inputs.insert(node.inputs.end(), captures.begin(), captures.end());
  const size_t outputs = built[0].region.results.size();
  node.regions = {std::move(built[0].region), std::move(built[1].region)};
  return insert(std::move(node), outputs, frames_.size() - 1);
}

}  // namespace tutti::impl::graph
