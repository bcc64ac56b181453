// SPDX-License-Identifier: Apache-2.0
#include "graph/region_placement.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "graph/batch.h"
#include "graph/op_registry.h"

namespace tutti::impl::graph {
namespace {

using base::Result;
using base::Status;

int64_t attribute_of(const Node &node, std::string_view attribute) {
  const OpDefinition *const definition = find_op(node.op, node.revision);
  const Attribute *const found = definition == nullptr ? nullptr : resolve_attribute(*definition, node, attribute);
  const int64_t *const number = found == nullptr ? nullptr : std::get_if<int64_t>(found);
  return number == nullptr ? 0 : *number;
}

bool is_zero(const tensor::Tensor &tensor) {
  const auto *const bytes = static_cast<const std::byte *>(tensor.data());
  return tensor.dtype() != tensor::DType::bytes &&
         std::all_of(bytes, bytes + tensor.size_bytes(), [](std::byte byte) { return byte == std::byte{0}; });
}

/// The placements of one node's regions.
class RegionPlacer {
 public:
  RegionPlacer(const Graph &graph, const Node &node, const std::vector<Placement> &placements)
      : graph_(graph), node_(node), placements_(placements) {
    for (const ValueId input : node.inputs)
      inputs_.push_back(input == kNoValue ? Placement::replicated : placements[static_cast<size_t>(input)]);
  }

  /// With sums that stay sums within the regions where they can, else with their true values.
  Result<NodePlacement> run() {
    NodePlacement result;
    Status status = place(result);
    if (status.ok()) return result;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (is_partial(inputs_[i])) result.reduced_inputs.push_back(static_cast<int32_t>(i));
    }
    if (result.reduced_inputs.empty()) return status;
    for (const int32_t i : result.reduced_inputs)
      inputs_[static_cast<size_t>(i)] = Placement::replicated;
    TUTTI_TRY(place(result));
    return result;
  }

 private:
  Status refuse(const Node &node, std::string_view why) const {
    return base::invalid_argument("node '", node.scope_name, "' (", node.op, "): ", why,
                                  ", so it cannot be computed on parts of a batch")
        .with_detail("node", node.scope_name);
  }

  Status place(NodePlacement &result) {
    if (node_.op == "scan") return place_scan(result);
    if (node_.op == "cond") return place_cond(result);
    const Region &body = node_.regions.front();
    TUTTI_TRY(place_body(body, inputs_));
    for (const ValueId value : body.results)
      result.outputs.push_back(placement(value));
    return Status();
  }

  Placement placement(ValueId value) const { return placements_[static_cast<size_t>(value)]; }

  /// Of all nodes of a region.
  Status place_body(const Region &body, const std::vector<Placement> &parameters) {
    for (size_t i = 0; i < body.parameters.size(); ++i)
      placements_[static_cast<size_t>(body.parameters[i])] = parameters[i];
    for (const NodeId id : body.nodes) {
      const Node &node = graph_.node(id);
      TUTTI_TRY(check_stands_alone(node));
      TUTTI_ASSIGN(const NodePlacement placed, place_node(graph_, node, placements_));
      if (!placed.reduced_inputs.empty()) return refuse(node, "it needs a result over all rows within a region");
      for (size_t i = 0; i < node.outputs.size(); ++i)
        placements_[static_cast<size_t>(node.outputs[i])] = placed.outputs[i];
    }
    return Status();
  }

  /// Outside of regions these become other nodes for each contributor.
  Status check_stands_alone(const Node &node) const {
    if (node.op == "iota") {
      const BatchAxis rows = batch_axis(graph_.value(node.outputs[0]).dims);
      if (rows.kind != BatchAxis::Kind::none && attribute_of(node, "axis") == rows.axis)
        return refuse(node, "it counts the rows of the batch within a region");
    }
    const bool is_norm = node.op == "batch_norm_training" || node.op == "batch_norm_training_gradient";
    const size_t rows_of = node.op == "batch_norm_training" ? 0 : 1;
    if (!is_norm || placement(node.inputs[rows_of]) != Placement::sharded) return Status();
    const auto statistics = node.attributes.find("statistics");
    const bool is_own =
        statistics != node.attributes.end() && std::get<std::string>(statistics->second) == "per_replica";
    return is_own ? Status() : refuse(node, "it needs the statistics of all rows within a region");
  }

  /// States that begin with zeros, to which sums over rows are added, are such sums themselves.
  void find_sums(const Region &body, size_t states, std::vector<Placement> &parameters) {
    for (bool has_changed = true; has_changed;) {
      has_changed = false;
      trace_sums(body, parameters);
      for (size_t i = 0; i < states; ++i) {
        if (parameters[i] != Placement::replicated || placement(body.results[i]) != Placement::partial_sum) continue;
        if (!is_zero(graph_, node_.inputs[i])) continue;
        parameters[i] = Placement::partial_sum;
        has_changed = true;
      }
    }
  }

  /// As place_body(), but whatever a sum over rows flows into is taken for one, and nothing is refused.
  void trace_sums(const Region &body, const std::vector<Placement> &parameters) {
    for (size_t i = 0; i < body.parameters.size(); ++i)
      placements_[static_cast<size_t>(body.parameters[i])] = parameters[i];
    for (const NodeId id : body.nodes) {
      const Node &node = graph_.node(id);
      const Result<NodePlacement> placed = place_node(graph_, node, placements_);
      for (size_t i = 0; i < node.outputs.size(); ++i) {
        const bool has_rows = batch_axis(graph_.value(node.outputs[i]).dims).kind != BatchAxis::Kind::none;
        const bool is_known = placed.ok() && placed->reduced_inputs.empty();
        placements_[static_cast<size_t>(node.outputs[i])] =
            is_known ? placed->outputs[i] : (has_rows ? Placement::sharded : Placement::partial_sum);
      }
    }
  }

  Status place_scan(NodePlacement &result) {
    const Region &body = node_.regions.front();
    const auto states = static_cast<size_t>(attribute_of(node_, "states"));
    const auto sequences = static_cast<size_t>(attribute_of(node_, "sequences"));
    for (size_t i = states; i < states + sequences; ++i) {
      if (carried_axis(graph_.value(node_.inputs[i]).dims) == attribute_of(node_, "axis"))
        return refuse(node_, "it walks over the rows of the batch");
    }
    std::vector<Placement> parameters = inputs_;
    find_sums(body, states, parameters);
    TUTTI_TRY(place_body(body, parameters));
    for (size_t i = 0; i < states; ++i) {
      const Placement next = placement(body.results[i]);
      const bool stays_zero = parameters[i] == Placement::partial_sum && is_zero(graph_, body.results[i]);
      if (next != parameters[i] && !stays_zero)
        return refuse(node_, base::concat("its state #", i, " begins as ", to_string(parameters[i]), " and goes on as ",
                                          to_string(next)));
    }
    for (size_t i = 0; i < body.results.size(); ++i)
      result.outputs.push_back(i < states ? parameters[i] : placement(body.results[i]));
    return Status();
  }

  Status place_cond(NodePlacement &result) {
    if (inputs_.front() != Placement::replicated)
      return refuse(node_, "its predicate is not the same for all parts of a batch");
    const std::vector<Placement> parameters(inputs_.begin() + 1, inputs_.end());
    for (const Region &branch : node_.regions)
      TUTTI_TRY(place_body(branch, parameters));
    const Region &first = node_.regions[0], &second = node_.regions[1];
    for (size_t i = 0; i < first.results.size(); ++i) {
      const ValueId a = first.results[i], b = second.results[i];
      const bool is_same = placement(a) == placement(b);
      const bool is_sum = placement(a) == Placement::partial_sum || placement(b) == Placement::partial_sum;
      if (!is_same && !(is_sum && (is_zero(graph_, a) || is_zero(graph_, b))))
        return refuse(node_, base::concat("its result #", i, " is ", to_string(placement(a)), " in one region and ",
                                          to_string(placement(b)), " in the other"));
      result.outputs.push_back(is_sum ? Placement::partial_sum : placement(a));
    }
    return Status();
  }

  const Graph &graph_;
  const Node &node_;
  std::vector<Placement> placements_;  // of all values, those of the regions included
  std::vector<Placement> inputs_;      // of the node's
};

}  // namespace

bool is_zero(const Graph &graph, ValueId value) {
  const NodeId producer = graph.value(value).producer;
  if (producer == kNoNode) return false;
  const Node &node = graph.node(producer);
  if (node.op == "constant") return is_zero(std::get<tensor::Tensor>(node.attributes.find("value")->second));
  static constexpr std::string_view moves[] = {"broadcast_to", "reshape", "identity", "cast", "transpose"};
  return std::ranges::find(moves, node.op) != std::end(moves) && is_zero(graph, node.inputs[0]);
}

Result<NodePlacement> place_regions(const Graph &graph, const Node &node, const std::vector<Placement> &placements) {
  return RegionPlacer(graph, node, placements).run();
}

}  // namespace tutti::impl::graph
