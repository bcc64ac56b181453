// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/fusion/norm_biases.h"

#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/batch.h"
#include "graph/builder.h"
#include "graph/clone.h"
#include "graph/rewrite/rewrites.h"

namespace tutti::impl::backend::gpu {

using base::Result;
using base::Status;
using graph::Graph;
using graph::GraphBuilder;
using graph::kNoValue;
using graph::Node;
using graph::NodeId;
using graph::ValueId;
using tensor::DType;

namespace {

/// An op that reads what is normalised, at `x`, and its mean, at `mean`; else it makes that, or sums.
struct NormOp {
  std::string_view op;
  size_t x = 0;
  std::optional<size_t> mean{};
};
constexpr NormOp kNormOps[] = {
    {"batch_norm_training", 0},
    {"batch_norm_moments", 0},
    {"batch_norm_inference", 0, 3},
    {"batch_norm_training_gradient", 1, 3},
    {"batch_norm_gradient_moments", 1, 2},
    {"batch_norm_gradient_apply", 1, 3},
};

const NormOp *norm_op(const Node &node) {
  for (const NormOp &one : kNormOps) {
    if (one.op == node.op) return &one;
  }
  return nullptr;
}

bool has_bias(const Node &node) { return node.op == "conv2d" && node.inputs.size() == 3 && node.inputs[2] != kNoValue; }

/// Elements of each channel where the last axis is that of channels, as multiples of the rows if there is a batch.
struct ChannelSize {
  int64_t positions = 1;
  bool has_rows = false;
};

/// Nothing where a dimension is neither a number nor that of the batch.
std::optional<ChannelSize> channel_size(const graph::Dims &dims) {
  const graph::BatchAxis rows = graph::batch_axis(dims);
  if (rows.kind == graph::BatchAxis::Kind::mixed || !rows.factor.is_constant()) return std::nullopt;
  ChannelSize size{rows.factor.constant(), rows.kind == graph::BatchAxis::Kind::carried};
  for (size_t i = 0; i + 1 < dims.size(); ++i) {
    if (size.has_rows && static_cast<int32_t>(i) == rows.axis) continue;
    if (!dims[i].is_constant()) return std::nullopt;
    size.positions *= dims[i].constant();
  }
  return size;
}

class BiasMover {
 public:
  BiasMover(const Graph &graph, DType half) : graph_(graph), cloner_(graph, builder_) {
    for (const NodeId id : graph.body().nodes) {
      const Node &node = graph.node(id);
      if (has_bias(node) && is_multiplied_in(node.outputs[0], half) &&
          channel_size(graph.value(node.outputs[0]).dims).has_value())
        biases_[node.outputs[0]] = node.inputs[2];
    }
    keep_what_others_read();
  }

  bool is_needed() const { return !biases_.empty(); }

  Result<Graph> run() {
    for (const NodeId id : graph_.body().nodes) {
      const Node &node = graph_.node(id);
      const NormOp *const norm = norm_op(node);
      if (has_bias(node) && biases_.count(node.outputs[0]) != 0) {
        add_plain(node);
      } else if (norm != nullptr && biases_.count(node.inputs[norm->x]) != 0) {
        add_norm(node, *norm);
      } else {
        TUTTI_TRY(cloner_.clone_node(node));
      }
      TUTTI_TRY(builder_.status());
    }
    for (const auto &[name, value] : graph_.results())
      builder_.set_result(name, cloner_.mapped(value));
    return builder_.finish_graph();
  }

 private:
  bool is_multiplied_in(ValueId value, DType half) const {
    const DType dtype = graph_.value(value).dtype;
    return dtype == half || dtype == DType::f32;
  }

  void keep_what_others_read() {
    std::map<ValueId, bool> has_statistics;  // of values that normalisations alone read
    for (const NodeId id : graph_.body().nodes) {
      const Node &node = graph_.node(id);
      const NormOp *const norm = norm_op(node);
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        if (norm == nullptr || i != norm->x) {
          biases_.erase(node.inputs[i]);
        } else if (!norm->mean) {
          has_statistics[node.inputs[i]] = true;
        }
      }
    }
    for (const auto &[name, value] : graph_.results())
      biases_.erase(value);
    std::erase_if(biases_, [&](const auto &one) { return has_statistics.count(one.first) == 0; });
  }

  /// A copy with these inputs.
  void copy(const Node &node, const std::vector<ValueId> &inputs) {
    const std::vector<ValueId> outputs = builder_.copy_node(graph_, node, inputs);
    for (size_t i = 0; i < node.outputs.size(); ++i)
      cloner_.map(node.outputs[i], outputs[i]);
  }

  std::vector<ValueId> mapped_inputs(const Node &node) const {
    std::vector<ValueId> inputs;
    for (const ValueId input : node.inputs)
      inputs.push_back(input == kNoValue ? kNoValue : cloner_.mapped(input));
    return inputs;
  }

  void add_plain(const Node &convolution) {
    std::vector<ValueId> inputs = mapped_inputs(convolution);
    inputs.pop_back();
    copy(convolution, inputs);
  }

  void add_norm(const Node &node, const NormOp &norm) {
    const ValueId x = node.inputs[norm.x], bias = biases_.at(x);
    builder_.push_root_scope(node.scope_name);
    std::vector<ValueId> inputs = mapped_inputs(node);
    if (norm.mean) inputs[*norm.mean] = mean_without(bias, node.inputs[*norm.mean]);
    copy(node, inputs);
    if (node.op == "batch_norm_training") {
      const ValueId mean = cloner_.mapped(node.outputs[1]);
      without_[{bias, node.outputs[1]}] = mean;
      cloner_.map(node.outputs[1], builder_.add(mean, bias_as(bias, builder_.dtype(mean))));
    } else if (node.op == "batch_norm_moments") {
      add_to_sums(node, x, bias);
    }
    builder_.pop_scope();
  }

  /// Of x + b, n times for each channel: sum(x) + n b, and sum(x²) + b (2 sum(x) + n b).
  void add_to_sums(const Node &moments, ValueId x, ValueId bias) {
    const ChannelSize size = *channel_size(graph_.value(x).dims);
    const auto positions = static_cast<double>(size.positions);
    const ValueId count = size.has_rows ? builder_.scale(builder_.run_scalar("local_rows", DType::f64), positions)
                                        : builder_.constant(positions, DType::f64);
    const ValueId wide = bias_as(bias, DType::f64), plain = cloner_.mapped(moments.outputs[0]);
    const ValueId sum = builder_.add(plain, builder_.mul(wide, count));
    cloner_.map(moments.outputs[0], sum);
    cloner_.map(moments.outputs[1],
                builder_.add(cloner_.mapped(moments.outputs[1]), builder_.mul(wide, builder_.add(plain, sum))));
  }

  ValueId bias_as(ValueId bias, DType dtype) { return builder_.cast(cloner_.mapped(bias), dtype); }

  /// What the mean would be without the bias. What was rounded from f64 is rounded behind the subtraction only.
  ValueId mean_without(ValueId bias, ValueId mean) {
    const auto known = without_.find({bias, mean});
    if (known != without_.end()) return known->second;
    const NodeId producer = graph_.value(mean).producer;
    ValueId from = mean;
    if (producer != graph::kNoNode && graph_.node(producer).op == "cast") from = graph_.node(producer).inputs[0];
    if (graph_.value(from).dtype != DType::f64) from = mean;
    const ValueId exact = cloner_.mapped(from);
    const ValueId made =
        builder_.cast(builder_.sub(exact, bias_as(bias, builder_.dtype(exact))), graph_.value(mean).dtype);
    without_[{bias, mean}] = made;
    return made;
  }

  const Graph &graph_;
  GraphBuilder builder_;
  graph::NodeCloner cloner_;
  std::map<ValueId, ValueId> biases_;                       // by result of a convolution, of those that go without
  std::map<std::pair<ValueId, ValueId>, ValueId> without_;  // by bias and mean: the mean of what has no bias
};

}  // namespace

Result<Graph> move_norm_biases(Graph graph, DType half) {
  BiasMover mover(graph, half);
  if (!mover.is_needed()) return graph;
  TUTTI_ASSIGN(Graph moved, mover.run());
  return graph::rewrite::eliminate_dead_code(std::move(moved));
}

}  // namespace tutti::impl::backend::gpu
