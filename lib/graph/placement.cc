// SPDX-License-Identifier: Apache-2.0
//
// The rules of placement, one per op or family. A value of the top region is sharded exactly when its shape carries the
// batch, so the rules decide two things: whether the rows stay rows (else the op is refused), and what becomes of
// values without rows.
#include <algorithm>
#include <array>
#include <string>
#include <unordered_map>

#include "graph/batch.h"
#include "graph/op_registry.h"
#include "graph/region_placement.h"
#include "graph/replicate.h"

namespace tutti::impl::graph {
namespace {

using base::Result;
using base::Status;

/// What the rules of one node see.
class NodeView {
 public:
  NodeView(const Graph &graph, const Node &node, const std::vector<Placement> &placements)
      : graph_(graph), node_(node), placements_(placements) {}

  const Node &node() const { return node_; }
  size_t input_count() const { return node_.inputs.size(); }
  bool has_input(size_t i) const { return i < node_.inputs.size() && node_.inputs[i] != kNoValue; }
  const Dims &dims(size_t i) const { return graph_.value(node_.inputs[i]).dims; }
  const Dims &output_dims(size_t i) const { return graph_.value(node_.outputs[i]).dims; }
  const ValueInfo &input(size_t i) const { return graph_.value(node_.inputs[i]); }
  const ValueInfo &output(size_t i) const { return graph_.value(node_.outputs[i]); }
  Placement placement(size_t i) const { return placements_[static_cast<size_t>(node_.inputs[i])]; }
  /// Zeros, whatever the run.
  bool is_nothing(size_t i) const { return is_zero(graph_, node_.inputs[i]); }
  bool is_sharded(size_t i) const { return has_input(i) && placement(i) == Placement::sharded; }
  bool any_input(Placement wanted) const {
    for (size_t i = 0; i < input_count(); ++i) {
      if (has_input(i) && placement(i) == wanted) return true;
    }
    return false;
  }
  bool output_carries(size_t i) const { return batch_axis(output_dims(i)).kind != BatchAxis::Kind::none; }
  bool any_output_carries() const {
    for (size_t i = 0; i < node_.outputs.size(); ++i) {
      if (output_carries(i)) return true;
    }
    return false;
  }
  /// Axis of input i that carries the rows, -1 when it has none.
  int64_t row_axis(size_t i) const { return has_input(i) ? carried_axis(dims(i)) : -1; }

  template <typename T>
  T attribute(std::string_view name, T otherwise) const {
    const OpDefinition *definition = find_op(node_.op, node_.revision);
    const Attribute *found = definition == nullptr ? nullptr : resolve_attribute(*definition, node_, name);
    const T *value = found == nullptr ? nullptr : std::get_if<T>(found);
    return value == nullptr ? otherwise : *value;
  }

  Status refuse(std::string_view why) const {
    return base::invalid_argument("node '", node_.scope_name, "' (", node_.op, "): ", why,
                                  ", so it cannot be computed on parts of a batch")
        .with_detail("node", node_.scope_name);
  }

 private:
  const Graph &graph_;
  const Node &node_;
  const std::vector<Placement> &placements_;
};

NodePlacement everywhere(const NodeView &view, Placement placement) {
  return {std::vector<Placement>(view.node().outputs.size(), placement), {}};
}

/// Every partial input must become the true value first.
void reduce_partial_inputs(const NodeView &view, NodePlacement &result) {
  for (size_t i = 0; i < view.input_count(); ++i) {
    if (view.has_input(i) && is_partial(view.placement(i))) result.reduced_inputs.push_back(static_cast<int32_t>(i));
  }
}

// ---- Values without rows ------------------------------------------------------------------------------------------

enum class Linear { no, jointly, bilinear, first };

/// How the result depends on the inputs: jointly linear in all, linear in each of two, linear in the first only.
Linear linearity(const NodeView &view) {
  static const std::unordered_map<std::string_view, Linear> table = {
      {"identity", Linear::jointly},
      {"stop_gradient", Linear::jointly},
      {"neg", Linear::jointly},
      {"add", Linear::jointly},
      {"sub", Linear::jointly},
      {"reduce_sum", Linear::jointly},
      {"reduce_mean", Linear::jointly},
      {"reshape", Linear::jointly},
      {"transpose", Linear::jointly},
      {"broadcast_to", Linear::jointly},
      {"concat", Linear::jointly},
      {"slice", Linear::jointly},
      {"slice_gradient", Linear::jointly},
      {"reverse_axes", Linear::jointly},
      {"running_sum", Linear::jointly},
      {"interpolate2d", Linear::jointly},
      {"avg_pool2d", Linear::jointly},
      {"avg_pool2d_gradient", Linear::jointly},
      {"mul", Linear::bilinear},
      {"matmul", Linear::bilinear},
      {"conv2d_input_gradient", Linear::bilinear},
      {"conv2d_kernel_gradient", Linear::bilinear},
      {"div", Linear::first},
      {"gather", Linear::first},
      {"gather_gradient", Linear::first},
      {"relu_gradient", Linear::first},
      {"sigmoid_gradient", Linear::first},
      {"tanh_gradient", Linear::first},
      {"gelu_gradient", Linear::first},
      {"softmax_gradient", Linear::first},
      {"log_softmax_gradient", Linear::first},
      {"max_pool2d_gradient", Linear::first},
      {"top_k_gradient", Linear::first},
      {"running_product_gradient", Linear::first},
      {"batch_norm_training_gradient", Linear::first},
      {"layer_norm_gradient", Linear::first},
      {"rms_norm_gradient", Linear::first},
      {"group_norm_gradient", Linear::first},
      {"attention_gradient", Linear::first},
      {"dropout_attention_gradient", Linear::first},
      {"sparse_softmax_cross_entropy_gradient", Linear::first},
      {"softmax_cross_entropy_gradient", Linear::first},
  };
  const auto found = table.find(view.node().op);
  if (found != table.end()) return found->second;
  if (view.node().op == "conv2d" && !view.has_input(2)) return Linear::bilinear;
  if (view.node().op == "pad" && view.attribute<double>("value", 0) == 0) return Linear::jointly;
  if (view.node().op == "cast" && tensor::is_floating(view.input(0).dtype) &&
      tensor::is_floating(view.output(0).dtype)) {
    return Linear::jointly;
  }
  return Linear::no;
}

/// Moves elements only, so a partial maximum stays one.
bool moves_elements(std::string_view op) {
  static constexpr std::array<std::string_view, 5> names = {"identity", "stop_gradient", "reshape", "transpose",
                                                            "broadcast_to"};
  return std::find(names.begin(), names.end(), op) != names.end();
}

/// A choice that is the same for all parts, between sums, or between a sum and nothing.
bool selects_sums(const NodeView &view) {
  if (view.node().op != "select" || view.placement(0) != Placement::replicated) return false;
  const auto is_sum = [&](size_t i) { return view.placement(i) == Placement::partial_sum || view.is_nothing(i); };
  return is_sum(1) && is_sum(2);
}

bool keeps_partial_sum(const NodeView &view) {
  if (selects_sums(view)) return true;
  size_t partial = 0, present = 0;
  for (size_t i = 0; i < view.input_count(); ++i) {
    if (!view.has_input(i)) continue;
    ++present;
    const Placement placement = view.placement(i);
    if (placement == Placement::partial_max || placement == Placement::partial_min) return false;
    if (placement == Placement::partial_sum) ++partial;
  }
  switch (linearity(view)) {
    case Linear::jointly:
      return partial == present;
    case Linear::bilinear:
      return partial == 1;
    case Linear::first:
      return partial == 1 && view.placement(0) == Placement::partial_sum;
    case Linear::no:
      return false;
  }
  return false;
}

NodePlacement place_without_rows(const NodeView &view) {
  const bool any_partial = view.any_input(Placement::partial_sum) || view.any_input(Placement::partial_max) ||
                           view.any_input(Placement::partial_min);
  if (any_partial && keeps_partial_sum(view)) return everywhere(view, Placement::partial_sum);
  if (any_partial && moves_elements(view.node().op)) return everywhere(view, view.placement(0));
  NodePlacement result =
      everywhere(view, view.any_input(Placement::varying) ? Placement::varying : Placement::replicated);
  reduce_partial_inputs(view, result);
  return result;
}

// ---- Leaves and effects -------------------------------------------------------------------------------------------

Placement placement_of_scalar(const NodeView &view) {
  const std::string kind = view.attribute<std::string>("kind", "");
  if (kind == "first_flag" || kind == "local_rows" || kind == "data_faults") return Placement::partial_sum;
  return kind == "row_offset" ? Placement::varying : Placement::replicated;
}

Result<NodePlacement> place_state_write(const NodeView &view) {
  NodePlacement result;
  if (view.is_sharded(0)) return view.refuse("rows cannot be written to state");
  if (view.placement(0) == Placement::partial_max || view.placement(0) == Placement::partial_min) {
    result.reduced_inputs.push_back(0);
  }
  return result;
}

// ---- Values with rows ---------------------------------------------------------------------------------------------

bool has_axis(const std::vector<int64_t> &axes, int64_t axis, size_t rank) {
  if (axes.empty()) return true;
  return std::any_of(axes.begin(), axes.end(),
                     [&](int64_t a) { return (a < 0 ? a + static_cast<int64_t>(rank) : a) == axis; });
}

Result<NodePlacement> place_reduction(const NodeView &view) {
  const bool over_rows =
      has_axis(view.attribute<std::vector<int64_t>>("axes", {}), view.row_axis(0), view.dims(0).size());
  if (!over_rows) return everywhere(view, Placement::sharded);
  const std::string &op = view.node().op;
  if (op == "reduce_sum") return everywhere(view, Placement::partial_sum);
  if (op == "reduce_max") return everywhere(view, Placement::partial_max);
  if (op == "reduce_min") return everywhere(view, Placement::partial_min);
  return view.refuse("it reduces over the rows of the batch");
}

/// Ops that mix the elements of one axis.
Result<NodePlacement> place_along_axis(const NodeView &view, int64_t axis) {
  for (size_t i = 0; i < view.input_count(); ++i) {
    if (!view.is_sharded(i)) continue;
    const int64_t rank = static_cast<int64_t>(view.dims(i).size());
    if (view.row_axis(i) == (axis < 0 ? axis + rank : axis)) return view.refuse("it mixes the rows of the batch");
  }
  NodePlacement result = everywhere(view, Placement::sharded);
  reduce_partial_inputs(view, result);
  return result;
}

Dim product_before(const Dims &dims, int64_t axis) {
  Dim product(1);
  for (int64_t i = 0; i < axis; ++i)
    product = product * dims[static_cast<size_t>(i)];
  return product;
}

Result<NodePlacement> place_reshape(const NodeView &view) {
  const int64_t from = view.row_axis(0), to = carried_axis(view.output_dims(0));
  if (from < 0 || to < 0 || !(product_before(view.dims(0), from) == product_before(view.output_dims(0), to))) {
    return view.refuse("it takes the rows of the batch apart");
  }
  return everywhere(view, Placement::sharded);
}

Result<NodePlacement> place_concat(const NodeView &view) {
  const int64_t axis = view.attribute<int64_t>("axis", 0);
  return place_along_axis(view, axis);
}

Result<NodePlacement> place_slice(const NodeView &view, const Dims &whole, const Dims &part) {
  const int64_t axis = carried_axis(whole);
  const auto position = static_cast<size_t>(axis);
  const Dims begin = view.attribute<Dims>("begin", {});
  const auto strides = view.attribute<std::vector<int64_t>>("strides", {});
  const bool all_rows = axis >= 0 && part[position] == whole[position] && begin[position] == Dim(0) &&
                        (strides.empty() || strides[position] == 1);
  if (!all_rows) return view.refuse("it takes some rows of the batch");
  return everywhere(view, Placement::sharded);
}

Result<NodePlacement> place_pad(const NodeView &view) {
  const auto axis = static_cast<size_t>(view.row_axis(0));
  const auto low = view.attribute<std::vector<int64_t>>("low", {});
  const auto high = view.attribute<std::vector<int64_t>>("high", {});
  if (low.at(axis) != 0 || high.at(axis) != 0) return view.refuse("it adds rows to the batch");
  return everywhere(view, Placement::sharded);
}

Result<NodePlacement> place_reverse_axes(const NodeView &view) {
  if (std::ranges::count(view.attribute<std::vector<int64_t>>("axes", {}), view.row_axis(0)) != 0)
    return view.refuse("it changes the order of the rows of the batch");
  return everywhere(view, Placement::sharded);
}

Result<NodePlacement> place_gather(const NodeView &view) {
  const int64_t rank = static_cast<int64_t>(view.dims(0).size());
  int64_t axis = view.attribute<int64_t>("axis", 0);
  if (axis < 0) axis += rank;
  if (view.is_sharded(0) && (view.is_sharded(1) || view.row_axis(0) == axis)) {
    return view.refuse("it picks among the rows of the batch");
  }
  NodePlacement result = everywhere(view, Placement::sharded);
  reduce_partial_inputs(view, result);
  return result;
}

/// Ops whose outputs without rows are sums over rows.
NodePlacement place_contraction(const NodeView &view) {
  NodePlacement result;
  for (size_t i = 0; i < view.node().outputs.size(); ++i) {
    result.outputs.push_back(view.output_carries(i) ? Placement::sharded : Placement::partial_sum);
  }
  reduce_partial_inputs(view, result);
  return result;
}

Result<NodePlacement> place_images(const NodeView &view) {
  for (size_t i = 0; i < view.input_count(); ++i) {
    if (view.is_sharded(i) && view.row_axis(i) != 0) return view.refuse("the rows of the batch are not on axis 0");
  }
  return place_contraction(view);
}

Result<NodePlacement> place_batch_norm(const NodeView &view) {
  const size_t x = view.node().op == "batch_norm_training" ? 0 : 1;
  if (view.row_axis(x) == static_cast<int64_t>(view.dims(x).size()) - 1) {
    return view.refuse("the channels of a batch norm are the rows of the batch");
  }
  NodePlacement result;
  if (x == 0) {
    const bool own = view.attribute<std::string>("statistics", "global") == "per_replica";
    const Placement statistics = own ? Placement::varying : Placement::replicated;
    result.outputs = {Placement::sharded, statistics, statistics};
  } else {
    result.outputs = {Placement::sharded, Placement::partial_sum, Placement::partial_sum};
  }
  reduce_partial_inputs(view, result);
  return result;
}

/// Each row for itself, and no other axis so: heads of attention may share keys, channels of a group statistics.
Result<NodePlacement> place_first_axis(const NodeView &view) {
  for (size_t i = 0; i < view.input_count(); ++i) {
    if (view.is_sharded(i) && view.row_axis(i) != 0) return view.refuse("the rows of the batch are not on axis 0");
  }
  NodePlacement result = everywhere(view, Placement::sharded);
  reduce_partial_inputs(view, result);
  return result;
}

using Rule = Result<NodePlacement> (*)(const NodeView &);

const std::unordered_map<std::string_view, Rule> &row_rules() {
  static const Rule last_axis = [](const NodeView &view) { return place_along_axis(view, -1); };
  static const Rule own_axis = [](const NodeView &view) {
    return place_along_axis(view, view.attribute<int64_t>("axis", -1));
  };
  static const Rule contraction = [](const NodeView &view) { return Result<NodePlacement>(place_contraction(view)); };
  static const std::unordered_map<std::string_view, Rule> rules = {
      {"reduce_sum", place_reduction},
      {"reduce_mean", place_reduction},
      {"reduce_max", place_reduction},
      {"reduce_min", place_reduction},
      {"reduce_prod", place_reduction},
      {"argmax", own_axis},
      {"argmin", own_axis},
      {"running_sum", own_axis},
      {"running_product", own_axis},
      {"running_product_gradient", own_axis},
      {"reverse_axes", place_reverse_axes},
      {"top_k", last_axis},
      {"top_k_gradient", last_axis},
      {"softmax", own_axis},
      {"log_softmax", own_axis},
      {"softmax_gradient", own_axis},
      {"log_softmax_gradient", own_axis},
      {"layer_norm", last_axis},
      {"rms_norm", last_axis},
      {"group_norm", place_first_axis},
      {"reshape", place_reshape},
      {"concat", place_concat},
      {"slice", [](const NodeView &view) { return place_slice(view, view.dims(0), view.output_dims(0)); }},
      {"slice_gradient", [](const NodeView &view) { return place_slice(view, view.output_dims(0), view.dims(0)); }},
      {"pad", place_pad},
      {"gather", place_gather},
      {"gather_gradient", contraction},
      {"matmul", contraction},
      {"conv2d", place_images},
      {"conv2d_input_gradient", place_images},
      {"conv2d_kernel_gradient", place_images},
      {"max_pool2d", place_images},
      {"max_pool2d_gradient", place_images},
      {"avg_pool2d", place_images},
      {"avg_pool2d_gradient", place_images},
      {"interpolate2d", place_images},
      {"batch_norm_training", place_batch_norm},
      {"batch_norm_training_gradient", place_batch_norm},
      {"batch_norm_moments", contraction},
      {"batch_norm_gradient_moments", contraction},
      {"layer_norm_gradient", contraction},
      {"rms_norm_gradient", contraction},
      {"group_norm_gradient", place_images},
      {"attention", place_first_axis},
      {"attention_gradient", place_first_axis},
      {"dropout_attention", place_first_axis},
      {"dropout_attention_gradient", place_first_axis},
  };
  return rules;
}

/// Ops over the last axis ("classes") whose other axes are rows.
bool works_on_classes(std::string_view op) {
  return op.find("softmax_cross_entropy") != std::string_view::npos || op == "in_top_k";
}

Result<NodePlacement> place_with_rows(const NodeView &view) {
  for (size_t i = 0; i < view.node().outputs.size(); ++i) {
    if (batch_axis(view.output_dims(i)).kind == BatchAxis::Kind::mixed) {
      return view.refuse(base::concat("its result ", to_string(view.output_dims(i)), " combines rows of the batch"));
    }
  }
  const auto found = row_rules().find(view.node().op);
  if (found != row_rules().end()) return found->second(view);
  if (works_on_classes(view.node().op)) {
    const size_t logits = view.node().op.ends_with("_gradient") ? 1 : 0;
    if (view.row_axis(logits) == static_cast<int64_t>(view.dims(logits).size()) - 1) {
      return view.refuse("the classes are the rows of the batch");
    }
  }
  const OpDefinition *definition = find_op(view.node().op, view.node().revision);
  if (definition == nullptr || definition->batch != BatchBehaviour::rowwise) {
    return view.refuse("it combines rows of the batch");
  }
  for (size_t i = 0; i < view.node().outputs.size(); ++i) {
    if (!view.output_carries(i)) return view.refuse("it combines rows of the batch");
  }
  NodePlacement result = everywhere(view, Placement::sharded);
  reduce_partial_inputs(view, result);
  return result;
}

}  // namespace

std::string_view to_string(Placement placement) {
  switch (placement) {
    case Placement::replicated:
      return "replicated";
    case Placement::sharded:
      return "sharded";
    case Placement::partial_sum:
      return "partial_sum";
    case Placement::partial_max:
      return "partial_max";
    case Placement::partial_min:
      return "partial_min";
    case Placement::varying:
      return "varying";
  }
  return "unknown";
}

Result<NodePlacement> place_node(const Graph &graph, const Node &node, const std::vector<Placement> &placements) {
  const NodeView view(graph, node, placements);
  if (node.op == "run_scalar") return everywhere(view, placement_of_scalar(view));
  if (node.op == "all_reduce") return everywhere(view, Placement::replicated);
  if (node.op == "state_write") return place_state_write(view);
  if (node.outputs.empty() && !node.regions.empty()) return NodePlacement();  // a rule of update, for other graphs
  if (!node.regions.empty()) return place_regions(graph, node, placements);
  if (view.any_input(Placement::sharded) || view.any_output_carries()) return place_with_rows(view);
  return place_without_rows(view);
}

bool gives_rows(const Graph &graph, const Node &node) {
  std::vector<Placement> placements(graph.values().size(), Placement::replicated);
  for (const ValueId value : node.inputs) {
    if (value != kNoValue && batch_axis(graph.value(value)).kind != BatchAxis::Kind::none)
      placements[static_cast<size_t>(value)] = Placement::sharded;
  }
  const Result<NodePlacement> placed = place_node(graph, node, placements);
  return placed.ok() &&
         std::ranges::all_of(placed->outputs, [](Placement placement) { return placement == Placement::sharded; });
}

Result<std::vector<Placement>> place(const Graph &graph, bool several) {
  std::vector<Placement> placements(graph.values().size(), Placement::replicated);
  for (const NodeId id : graph.body().nodes) {
    const Node &node = graph.node(id);
    Result<NodePlacement> placed = place_node(graph, node, placements);
    if (!placed.ok() && several) return placed.status();
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      const ValueId output = node.outputs[i];
      const bool rows = batch_axis(graph.value(output).dims).kind != BatchAxis::Kind::none;
      placements[static_cast<size_t>(output)] =
          placed.ok() ? placed->outputs[i] : (rows ? Placement::sharded : Placement::replicated);
    }
  }
  return placements;
}

}  // namespace tutti::impl::graph
