// SPDX-License-Identifier: Apache-2.0
//
// GraphBuilder: ops that own regions.
#include <algorithm>

#include "base/text.h"
#include "graph/builder.h"
#include "graph/update_rule.h"

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

// ---- piece by piece ----

// An attribute that is an integer; 0 where it is not there.
static int64_t number_of(const Node &node, std::string_view attribute) {
  const auto found = node.attributes.find(attribute);
  const int64_t *const number = found == node.attributes.end() ? nullptr : std::get_if<int64_t>(&found->second);
  return number != nullptr ? *number : 0;
}

void GraphBuilder::begin_op(std::string_view op_name, Values inputs, Attributes attributes) {
  OpenOp op;
  op.node.op = std::string(op_name);
  for (size_t i = 0; i < inputs.size() && ok(); ++i) {
    if (inputs[i] == kNoValue)
      fail(base::invalid_argument(op_name, " in scope '", scope(), "': input #", i, " is missing"));
  }
  op.node.inputs = std::move(inputs);
  op.node.attributes = std::move(attributes);
  open_ops_.push_back(std::move(op));
}

std::vector<ValueInfo> GraphBuilder::next_parameters(const OpenOp &op) {
  const Node &node = op.node;
  if (node.op == "cond") return {};
  if (node.op == kUpdateRule) {
    const auto parameters = rule_parameters(node);
    if (!parameters.ok()) fail(parameters.status().wrap(base::concat("update_rule in scope '", scope(), "'")));
    return parameters.ok() ? *parameters : std::vector<ValueInfo>();
  }
  std::vector<ValueInfo> parameters = infos(node.inputs);
  if (node.op == "custom_gradient" && op.regions.size() == 1) {
    for (int round = 0; round < 2; ++round) {  // the outputs, then their gradients
      for (const ValueInfo &info : infos(op.regions.front().region.results))
        parameters.push_back(info);
    }
  }
  if (node.op != "scan" || !ok()) return parameters;
  const int64_t states = number_of(node, "states"), sequences = number_of(node, "sequences"),
                axis = number_of(node, "axis");
  if (states < 0 || sequences < 1 || states + sequences != static_cast<int64_t>(parameters.size())) {
    fail(base::invalid_argument("scan in scope '", scope(), "' has ", parameters.size(), " inputs, but ", states,
                                " states and ", sequences, " sequences, of which there must be one"));
    return {};
  }
  for (size_t i = static_cast<size_t>(states); i < parameters.size(); ++i) {
    Dims &dims = parameters[i].dims;
    if (axis < 0 || static_cast<size_t>(axis) >= dims.size()) {
      fail(
          base::invalid_argument("scan in scope '", scope(), "': a sequence ", to_string(dims), " has no axis ", axis));
      return {};
    }
    dims.erase(dims.begin() + axis);
  }
  return parameters;
}

GraphBuilder::Values GraphBuilder::begin_region() {
  const OpenOp &op = open_ops_.back();
  const std::vector<ValueInfo> parameters = next_parameters(op);
  push_frame(op.node.op, op.node.op != "custom_gradient");
  open_regions_.push_back({frames_.size(), scopes_});
  if (!ok()) return {};
  Values ids;
  for (ValueInfo info : parameters) {
    info.producer = kNoNode;
    info.output_index = static_cast<int32_t>(ids.size());
    ids.push_back(add_value(std::move(info), frames_.back().id));
  }
  frames_.back().region.parameters = ids;
  return ids;
}

void GraphBuilder::end_region(const Values &results) {
  OpenOp &op = open_ops_.back();
  const OpenRegion open = std::move(open_regions_.back());
  open_regions_.pop_back();
  if (ok() && frames_.size() != open.depth)
    fail(base::internal_error("a region of ", op.node.op, " was left unbalanced"));
  frames_.resize(open.depth);
  for (const ValueId result : results) {
    ValueId own = result;
    if (result != kNoValue && ok()) {
      own = graph_.contains(result) ? capture(result, open.depth - 1)
                                    : fail(base::invalid_argument("a region of ", op.node.op, " returns value ", result,
                                                                  ", which does not exist"));
    }
    frames_.back().region.results.push_back(own);
  }
  op.regions.push_back({std::move(frames_.back().region), std::move(frames_.back().captures)});
  frames_.pop_back();
  scopes_ = open.scopes;
}

GraphBuilder::Values GraphBuilder::end_op() {
  OpenOp op = std::move(open_ops_.back());
  open_ops_.pop_back();
  if (!ok()) return Values(op.regions.empty() ? 0 : op.regions.front().region.results.size(), kNoValue);
  const OpDefinition *const definition = find_op(op.node.op);
  if (definition == nullptr || op.regions.size() != definition->regions.size()) {
    fail(base::invalid_argument(op.node.op, " in scope '", scope(), "' has ", op.regions.size(), " regions, expected ",
                                definition == nullptr ? 0 : definition->regions.size()));
    return {};
  }
  if (op.node.op == "cond") join_captures(op.regions);
  const Values &captures = op.regions.front().captures;
  op.node.inputs.insert(op.node.inputs.end(), captures.begin(), captures.end());
  const bool is_rule = op.node.op == kUpdateRule;
  const size_t outputs = is_rule ? 0 : op.regions.front().region.results.size();
  for (BuiltRegion &built : op.regions)
    op.node.regions.push_back(std::move(built.region));
  Values made = insert(std::move(op.node), outputs, frames_.size() - 1);
  if (is_rule && ok()) keep_rule(static_cast<NodeId>(graph_.nodes().size()) - 1);
  return made;
}

// Both regions take the same inputs: the captures of the first, then those only the second has.
void GraphBuilder::join_captures(std::vector<BuiltRegion> &branches) {
  Values captures = branches[0].captures;
  for (const ValueId outer : branches[1].captures) {
    if (std::count(captures.begin(), captures.end(), outer) == 0) captures.push_back(outer);
  }
  for (BuiltRegion &branch : branches) {
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
    branch.captures = captures;
  }
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

// ---- by lambdas ----

void GraphBuilder::run_region(const RegionFunction &function) {
  const Values parameters = begin_region();
  end_region(ok() ? function(*this, parameters) : Values());
}

GraphBuilder::Values GraphBuilder::call(const Values &inputs, const RegionFunction &body) {
  if (!ok()) return {};
  begin_op("call", inputs);
  run_region(body);
  return end_op();
}

GraphBuilder::Values GraphBuilder::custom_gradient(const Values &inputs, const RegionFunction &forward,
                                                   const RegionFunction &backward) {
  if (!ok()) return {};
  begin_op("custom_gradient", inputs);
  run_region(forward);
  run_region(backward);
  return end_op();
}

GraphBuilder::Values GraphBuilder::scan(const Values &states, const Values &sequences, const RegionFunction &body,
                                        int64_t axis, bool reverse) {
  if (!ok()) return {};
  Values inputs = states;
  inputs.insert(inputs.end(), sequences.begin(), sequences.end());
  Attributes attributes = {{"states", static_cast<int64_t>(states.size())},
                           {"sequences", static_cast<int64_t>(sequences.size())}};
  if (axis != 0) attributes["axis"] = axis;
  if (reverse) attributes["reverse"] = true;
  begin_op("scan", std::move(inputs), std::move(attributes));
  run_region(body);
  return end_op();
}

GraphBuilder::Values GraphBuilder::cond(ValueId predicate, const RegionFunction &then_region,
                                        const RegionFunction &else_region) {
  if (!ok()) return {};
  begin_op("cond", {predicate});
  run_region(then_region);
  run_region(else_region);
  return end_op();
}

}  // namespace tutti::impl::graph
