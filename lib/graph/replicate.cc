// SPDX-License-Identifier: Apache-2.0
#include "graph/replicate.h"

#include <unordered_map>

#include "graph/batch.h"
#include "graph/builder.h"
#include "graph/clone.h"

namespace tutti::impl::graph {
namespace {

using base::Result;
using base::Status;
using tensor::DType;

double attribute_double(const Node &node, std::string_view name) {
  const OpDefinition *definition = find_op(node.op, node.revision);
  const Attribute *found = definition == nullptr ? nullptr : resolve_attribute(*definition, node, name);
  return found == nullptr ? 0 : std::get<double>(*found);
}

/// Rewrites one graph, node by node.
class Replicator {
 public:
  Replicator(const Graph &global, const ReplicateOptions &options)
      : global_(global),
        options_(options),
        cloner_(global, builder_),
        placements_(global.values().size(), Placement::replicated) {}

  Result<Graph> run() {
    for (const NodeId id : global_.body().nodes) {
      const Node &node = global_.node(id);
      TUTTI_ASSIGN(const NodePlacement placed, place_node(global_, node, placements_));
      for (size_t i = 0; i < node.outputs.size(); ++i) {
        placements_[static_cast<size_t>(node.outputs[i])] = placed.outputs[i];
      }
      TUTTI_TRY(check_accumulation(node, placed));
      if (options_.contributors == 1) {
        TUTTI_TRY(cloner_.clone_node(node));
      } else {
        TUTTI_TRY(rewrite(node, placed));
      }
    }
    for (const auto &[name, value] : global_.results())
      builder_.set_result(name, cloner_.mapped(value));
    return builder_.finish_graph();
  }

 private:
  /// With several micro-batches a sum over the rows of a step is not known before the last of them.
  Status check_accumulation(const Node &node, const NodePlacement &placed) const {
    if (options_.accumulation <= 1 || placed.reduced_inputs.empty()) return Status();
    const ValueInfo &value = global_.value(node.inputs[static_cast<size_t>(placed.reduced_inputs.front())]);
    const std::string producer = value.producer == kNoNode ? "a parameter" : global_.node(value.producer).scope_name;
    return base::invalid_argument("node '", node.scope_name, "' (", node.op, ") needs '", producer,
                                  "', a result over all rows, before all rows are computed")
        .with_detail("node", node.scope_name);
  }

  Status rewrite(const Node &node, const NodePlacement &placed) {
    if (node.op == "batch_norm_training" && placed.outputs[1] == Placement::replicated &&
        placements_[static_cast<size_t>(node.inputs[0])] == Placement::sharded) {
      return lower_batch_norm(node, placed);
    }
    if (node.op == "batch_norm_training_gradient" && counts_.count(node.inputs[3]) != 0) {
      return lower_batch_norm_gradient(node, placed);
    }
    TUTTI_ASSIGN(const std::vector<ValueId> outputs, clone_with_reduced(node, placed));
    if (node.op == "iota") return offset_iota(node, outputs[0]);
    return builder_.status();
  }

  /// The true value of an input: itself, or its all_reduce.
  ValueId input_of(const Node &node, const NodePlacement &placed, size_t position) {
    const ValueId input = node.inputs[position];
    if (input == kNoValue) return kNoValue;
    for (const int32_t reduced : placed.reduced_inputs) {
      if (static_cast<size_t>(reduced) == position) return reduce(input);
    }
    return cloner_.mapped(input);
  }

  ValueId reduce(ValueId value) {
    const auto found = reduced_.find(value);
    if (found != reduced_.end()) return found->second;
    const Placement placement = placements_[static_cast<size_t>(value)];
    const std::string kind = placement == Placement::partial_sum   ? "sum"
                             : placement == Placement::partial_max ? "max"
                                                                   : "min";
    const NodeId producer = global_.value(value).producer;
    const std::string label = producer == kNoNode ? "value" : global_.node(producer).scope_name;
    const ValueId local = cloner_.mapped(value);
    ValueId result = builder_.op("all_reduce", {local}, {{"kind", kind}, {"label", label}});
    if (kind != "sum" && tensor::is_floating(builder_.dtype(local))) result = with_nans(result, local, label);
    reduced_[value] = result;
    return result;
  }

  /// A library that combines devices may forget a NaN in a maximum, as fmax does, but not in a sum.
  ValueId with_nans(ValueId extreme, ValueId local, const std::string &label) {
    const ValueId zero = builder_.constant(0, builder_.dtype(local));
    const ValueId own = builder_.select(builder_.op("equal", {local, local}), zero, local);
    const ValueId nans = builder_.op("all_reduce", {own}, {{"kind", std::string("sum")}, {"label", label}});
    return builder_.select(builder_.op("equal", {nans, nans}), extreme, nans);
  }

  Result<std::vector<ValueId>> clone_with_reduced(const Node &node, const NodePlacement &placed) {
    if (placed.reduced_inputs.empty()) return cloner_.clone_node(node);
    std::vector<ValueId> inputs;
    for (size_t i = 0; i < node.inputs.size(); ++i)
      inputs.push_back(input_of(node, placed, i));
    std::vector<ValueId> outputs = builder_.copy_node(global_, node, inputs);
    TUTTI_TRY(builder_.status());
    for (size_t i = 0; i < node.outputs.size(); ++i)
      cloner_.map(node.outputs[i], outputs[i]);
    return outputs;
  }

  /// Counting along the rows goes on where the contributor before ends.
  Status offset_iota(const Node &node, ValueId local) {
    const ValueInfo &info = global_.value(node.outputs[0]);
    const BatchAxis rows = batch_axis(info.dims);
    const auto *axis = std::get_if<int64_t>(&node.attributes.find("axis")->second);
    if (rows.kind != BatchAxis::Kind::carried || axis == nullptr || *axis != rows.axis) return builder_.status();
    ValueId offset = positions_of(builder_, builder_.run_scalar("row_offset", DType::i64), rows.factor);
    offset = builder_.cast(offset, info.dtype);
    cloner_.map(node.outputs[0], builder_.add(local, offset));
    return builder_.status();
  }

  /// Rows of this contributor times positions, in f64, as a vector of one element.
  ValueId local_count(ValueId x) {
    const Dims &dims = global_.value(x).dims;
    const BatchAxis rows = batch_axis(dims);
    Dim positions = rows.factor;
    for (size_t i = 0; i + 1 < dims.size(); ++i) {
      if (static_cast<int32_t>(i) != rows.axis) positions = positions * dims[i];
    }
    return builder_.reshape(positions_of(builder_, builder_.run_scalar("local_rows", DType::f64), positions), {Dim(1)});
  }

  ValueId part(ValueId packed, int64_t begin, int64_t size) {
    return builder_.slice(packed, {Dim(begin)}, {Dim(size)});
  }

  Status lower_batch_norm(const Node &node, const NodePlacement &placed) {
    const ValueId x = cloner_.mapped(node.inputs[0]);
    const ValueInfo mean_info = global_.value(node.outputs[1]);
    const int64_t channels = mean_info.dims[0].constant();
    builder_.push_scope(node.scope_name + "/global");
    const auto moments = builder_.op_n("batch_norm_moments", {x});
    const ValueId count = local_count(node.inputs[0]);
    TUTTI_TRY(builder_.status());
    const ValueId packed = builder_.op("all_reduce", {builder_.concat({moments[0], moments[1], count}, 0)},
                                       {{"label", node.scope_name + "/moments"}});
    const ValueId total = builder_.reshape(part(packed, 2 * channels, 1), {});
    const ValueId mean = builder_.div(part(packed, 0, channels), total);
    const ValueId square = builder_.div(part(packed, channels, channels), total);
    const ValueId variance =
        builder_.op("maximum", {builder_.sub(square, builder_.mul(mean, mean)), builder_.constant(0, DType::f64)});
    const ValueId mean_out = builder_.cast(mean, mean_info.dtype);
    const ValueId variance_out = builder_.cast(variance, mean_info.dtype);
    const ValueId y = builder_.op("batch_norm_inference",
                                  {x, input_of(node, placed, 1), input_of(node, placed, 2), mean_out, variance_out},
                                  {{"epsilon", attribute_double(node, "epsilon")}});
    builder_.pop_scope();
    cloner_.map(node.outputs[0], y);
    cloner_.map(node.outputs[1], mean_out);
    cloner_.map(node.outputs[2], variance_out);
    counts_[node.outputs[1]] = total;
    return builder_.status();
  }

  Status lower_batch_norm_gradient(const Node &node, const NodePlacement &placed) {
    const ValueId dy = cloner_.mapped(node.inputs[0]), x = cloner_.mapped(node.inputs[1]);
    const ValueId scale = input_of(node, placed, 2), mean = input_of(node, placed, 3);
    const ValueId variance = input_of(node, placed, 4);
    const double epsilon = attribute_double(node, "epsilon");
    const ValueInfo scale_info = global_.value(node.inputs[2]);
    const int64_t channels = scale_info.dims[0].constant();
    builder_.push_scope(node.scope_name + "/global");
    const auto sums = builder_.op_n("batch_norm_gradient_moments", {dy, x, mean});
    TUTTI_TRY(builder_.status());
    const ValueId rstd = builder_.unary("rsqrt", builder_.add_scalar(builder_.cast(variance, DType::f64), epsilon));
    cloner_.map(node.outputs[1], builder_.cast(builder_.mul(sums[1], rstd), scale_info.dtype));
    cloner_.map(node.outputs[2], builder_.cast(sums[0], scale_info.dtype));
    const ValueId packed =
        builder_.op("all_reduce", {builder_.concat({sums[0], sums[1]}, 0)}, {{"label", node.scope_name + "/moments"}});
    const ValueId dx = builder_.op("batch_norm_gradient_apply",
                                   {dy, x, scale, mean, variance, part(packed, 0, channels),
                                    part(packed, channels, channels), counts_.at(node.inputs[3])},
                                   {{"epsilon", epsilon}});
    builder_.pop_scope();
    cloner_.map(node.outputs[0], dx);
    return builder_.status();
  }

  const Graph &global_;
  const ReplicateOptions &options_;
  GraphBuilder builder_;
  NodeCloner cloner_;
  std::vector<Placement> placements_;             // of the values of global_
  std::unordered_map<ValueId, ValueId> reduced_;  // value of global_ -> its all_reduce in the new graph
  std::unordered_map<ValueId, ValueId> counts_;   // mean of a lowered batch norm -> number of its elements
};

}  // namespace

Result<Graph> replicate(const Graph &global, const ReplicateOptions &options) {
  if (options.contributors == 1 && options.accumulation <= 1) return global.clone();
  return Replicator(global, options).run();
}

}  // namespace tutti::impl::graph
