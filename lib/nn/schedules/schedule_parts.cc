// SPDX-License-Identifier: Apache-2.0
#include "nn/schedules/schedule_parts.h"

#include <algorithm>
#include <numbers>
#include <set>
#include <string>
#include <vector>

#include "base/text.h"
#include "graph/clone.h"

namespace tutti::impl::nn {

ValueId completed_steps(GraphBuilder &b) { return b.run_scalar("step", kExact); }

ValueId exact(GraphBuilder &b, double number) { return b.constant(number, kExact); }

ValueId divide(GraphBuilder &b, ValueId x, double divisor) { return b.div(x, exact(b, divisor)); }

ValueId clamp01(GraphBuilder &b, ValueId x) {
  return b.op("minimum", {b.op("maximum", {x, exact(b, 0)}), exact(b, 1)});
}

ValueId half_wave(GraphBuilder &b, ValueId x) {
  return b.unary("square", b.unary("sin", b.scale(x, std::numbers::pi / 2)));
}

ValueId as_rate(GraphBuilder &b, ValueId x) { return b.cast(x, kRate); }

ValueId rate_input(Expansion &e, size_t index) {
  const GraphBuilder &b = e.builder();
  const ValueId rate = e.input(index);
  if (rate == kNoValue || !b.ok()) return kNoValue;
  if (b.rank(rate) == 0 && tensor::is_floating(b.dtype(rate))) return rate;
  return e.fail(base::concat("input '", e.input_name(index), "' is ", tensor::name(b.dtype(rate)), " ",
                             graph::to_string(b.dims(rate)), ", expected a floating point scalar"));
}

namespace {

bool is_step(const graph::Node &node) {
  return node.op == "run_scalar" && std::get<std::string>(node.attributes.find("kind")->second) == "step";
}

bool reads_step(const graph::Graph &graph, const graph::Region &region) {
  return std::ranges::any_of(region.nodes, [&](graph::NodeId id) {
    const graph::Node &node = graph.node(id);
    return is_step(node) ||
           std::ranges::any_of(node.regions, [&](const graph::Region &inner) { return reads_step(graph, inner); });
  });
}

/// Maps each value that does not depend on the number of completed steps to itself, that number to what it was.
class StepDelay {
 public:
  StepDelay(GraphBuilder &builder, int64_t steps)
      : builder_(builder), steps_(steps), cloner_(builder.graph(), builder) {}

  base::Result<ValueId> apply(ValueId rate) {
    for (const graph::NodeId id : nodes_before(rate)) {
      const graph::Node node = builder_.graph().node(id);  // a copy: the graph grows
      TUTTI_TRY(visit(node));
    }
    return cloner_.mapped(rate);
  }

 private:
  /// The nodes that a value is computed by, in the order in which they were made.
  std::set<graph::NodeId> nodes_before(ValueId value) const {
    std::set<graph::NodeId> nodes;
    std::vector<ValueId> left = {value};
    while (!left.empty()) {
      const graph::NodeId producer = builder_.graph().value(left.back()).producer;
      left.pop_back();
      if (producer == graph::kNoNode || !nodes.insert(producer).second) continue;
      for (const ValueId input : builder_.graph().node(producer).inputs)
        if (input != kNoValue) left.push_back(input);
    }
    return nodes;
  }

  base::Status visit(const graph::Node &node) {
    if (is_step(node)) {
      cloner_.map(node.outputs[0], before(builder_.dtype(node.outputs[0])));
      changed_.push_back(node.outputs[0]);
      return builder_.status();
    }
    for (const graph::Region &region : node.regions) {
      if (!reads_step(builder_.graph(), region)) continue;
      return base::invalid_argument("the rate reads the number of completed steps inside a region of node '",
                                    node.scope_name, "' (", node.op, "), where it cannot be shifted: read it outside");
    }
    const bool changes = std::ranges::any_of(
        node.inputs, [&](ValueId input) { return std::ranges::find(changed_, input) != changed_.end(); });
    if (!changes) {
      for (const ValueId output : node.outputs)
        cloner_.map(output, output);
      return base::Status();
    }
    changed_.insert(changed_.end(), node.outputs.begin(), node.outputs.end());
    return cloner_.clone_node(node).status();
  }

  /// max(completed steps - steps, 0), computed where it is exact.
  ValueId before(tensor::DType dtype) {
    const tensor::DType whole = tensor::DType::i64;
    const ValueId steps = builder_.sub(builder_.run_scalar("step", whole), builder_.constant(double(steps_), whole));
    return builder_.cast(builder_.op("maximum", {steps, builder_.constant(0, whole)}), dtype);
  }

  GraphBuilder &builder_;
  const int64_t steps_;
  graph::NodeCloner cloner_;
  std::vector<ValueId> changed_;
};

}  // namespace

ValueId delayed(Expansion &e, ValueId rate, int64_t steps) {
  if (rate == kNoValue || !e.builder().ok()) return kNoValue;
  base::Result<ValueId> moved = StepDelay(e.builder(), steps).apply(rate);
  if (!moved.ok()) return e.fail(moved.status().message());
  return *moved;
}

}  // namespace tutti::impl::nn
