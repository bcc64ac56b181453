// SPDX-License-Identifier: Apache-2.0
#include "distribute/plan/finish_graph.h"

#include <algorithm>

#include "distribute/plan/gradient_clip.h"
#include "distribute/plan/loss_scale.h"
#include "distribute/plan/weight_averages.h"
#include "graph/clone.h"
#include "graph/op_registry.h"
#include "graph/rewrite/rewrites.h"

namespace tutti::impl::distribute {

using base::Result;
using base::Status;
using graph::Dim;
using graph::Dims;
using graph::Graph;
using graph::GraphBuilder;
using graph::NodeCloner;
using graph::ValueId;
using graph::VariableSpec;
using tensor::DType;

std::string gradient_entry(size_t set, const std::string &variable) {
  return "gradient/" + std::to_string(set) + "/" + variable;
}

double global_clip_norm(const graph::Model &model, const StepGraphOptions &options) {
  return options.clip_norm > 0 ? options.clip_norm : model.train->clip_global_norm.value_or(0);
}

DType StepTraits::dtype_of_faults() const {
  return model.graph.value(model.loss).dtype == DType::f64 ? DType::f64 : DType::f32;
}

namespace {

class FinishGraphBuilder {
 public:
  FinishGraphBuilder(const StepTraits &traits, StepParts &parts) : traits_(traits), parts_(parts) {}

  Result<FinishGraph> run() {
    NodeCloner tail(parts_.tail, graph_);
    for (size_t i = 0; i < parts_.frontier.values.size(); ++i) {
      const graph::ValueInfo &info = traits_.model.graph.value(parts_.frontier.values[i].value);
      tail.map(parts_.frontier.tail_inputs[i], graph_.state_read(sum_entry(i), info.dtype, info.dims));
    }
    TUTTI_ASSIGN(ValueId loss, tail.clone_value(parts_.tail_loss));
    if (traits_.is_guarded()) loss = without_faults(loss);
    ok_ = traits_.options.ok_lasts ? is_finite(loss) : graph_.unary("all_finite", loss);
    if (traits_.options.ok_lasts)
      ok_ = graph_.op("logical_and", {ok_, graph_.state_read("report/ok", DType::boolean, {})});
    if (traits_.may_be_ended()) {
      ok_ = graph_.op("logical_and", {ok_, graph_.state_read(std::string(alive_entry), DType::boolean, {})});
    }
    report("loss", loss);
    for (const auto &[name, value] : traits_.model.metrics) {
      TUTTI_ASSIGN(const ValueId metric, tail.clone_value(parts_.tail.result("metric/" + name)));
      report("metric/" + name, metric);
      result_.metrics.push_back(name);
    }
    TUTTI_TRY(combine_gradients(tail));
    TUTTI_TRY(unscale());
    TUTTI_TRY(clip());
    TUTTI_ASSIGN(rate_, learning_rate());
    report("ok", ok_);
    TUTTI_TRY(update_variables());
    TUTTI_TRY(update_aggregates());
    TUTTI_ASSIGN(Graph finished, graph_.finish_graph());
    result_.graph = std::make_shared<const Graph>(graph::rewrite::optimize(std::move(finished)));
    return std::move(result_);
  }

 private:
  Dims slice_dims(const std::string &variable) const {
    if (traits_.joined) return graph::to_dims(traits_.model.find_variable(variable)->dims);
    if (parts_.factored.has(variable)) return parts_.factored.slice_dims(variable);
    return {Dim::symbol("slice." + variable)};
  }

  /// A slice of what all contributors left in an entry, summed in their order.
  ValueId read_total(const std::string &entry, const std::string &variable) {
    if (!traits_.options.sums_in_finish) return read_slice(entry, variable);
    ValueId total = read_slice(of_contributor(0, entry), variable);
    for (int32_t c = 1; c < traits_.options.contributors; ++c)
      total = graph_.add(total, read_slice(of_contributor(c, entry), variable));
    return total;
  }

  ValueId read_slice(const std::string &entry, const std::string &variable) {
    const auto written =
        std::find_if(parts_.written.begin(), parts_.written.end(), [&](const auto &one) { return one.name == entry; });
    const DType dtype = written == parts_.written.end() ? traits_.model.find_variable(variable)->dtype : written->dtype;
    return graph_.state_read(entry, dtype, slice_dims(variable));
  }

  /// The same as all_finite of a scalar, elementwise: with what else `ok` depends on it is one launch on a device.
  ValueId is_finite(ValueId scalar) {
    return graph_.op("equal", {graph_.sub(scalar, scalar), graph_.constant(0.0, graph_.dtype(scalar))});
  }

  /// The loss, or something that is not finite.
  ValueId without_faults(ValueId loss) {
    const ValueId faults = graph_.state_read(std::string(fault_sum_entry), traits_.dtype_of_faults(), {});
    const ValueId none = graph_.op("equal", {faults, graph_.constant(0.0, traits_.dtype_of_faults())});
    return graph_.div(loss, graph_.cast(none, graph_.dtype(loss)));
  }

  void report(const std::string &name, ValueId value) {
    graph_.state_write(value, "report/" + name);
    result_.reports.push_back({"report/" + name, Arena::report, graph_.dtype(value), {}, ""});
  }

  Status combine_gradients(NodeCloner &tail) {
    std::vector<ValueId> factors;
    for (size_t set = 0; set < parts_.coefficients.size(); ++set) {
      ValueId factor = graph::kNoValue;
      if (parts_.coefficients[set] != graph::kNoValue) {
        TUTTI_ASSIGN(factor, tail.clone_value(parts_.coefficients[set]));
        factor = graph_.reshape(factor, {});
        report("coefficient/" + std::to_string(set), factor);
      }
      factors.push_back(factor);
    }
    for (const VariableSpec &variable : traits_.model.variables) {
      const auto sets = parts_.sets_of.find(variable.name);
      if (sets == parts_.sets_of.end()) continue;
      ValueId total = graph::kNoValue;
      for (const size_t set : sets->second) {
        ValueId part = parts_.factored.has(variable.name)
                           ? parts_.factored.product(graph_, variable.name)
                           : read_total(gradient_entry(set, variable.name), variable.name);
        if (sets->second.size() > 1) part = graph_.cast(part, variable.dtype);
        if (factors[set] != graph::kNoValue)
          part = graph_.mul(graph_.cast(part, variable.dtype), graph_.cast(factors[set], variable.dtype));
        total = total == graph::kNoValue ? part : graph_.add(total, part);
      }
      gradients_.emplace_back(&variable, total);
    }
    return graph_.status();
  }

  /// In the variables' dtype, and exactly: the scale is a power of two. No gradient, no update.
  Status unscale() {
    if (!traits_.scales_loss() || gradients_.empty()) return Status();
    const ValueId scale = graph_.state_read(std::string(loss_scale_entry), DType::f32, {});
    result_.reports.push_back({std::string(loss_scale_entry), Arena::report, DType::f32, {}, ""});
    const ValueId factor = graph_.div(graph_.constant(1.0, DType::f32), scale);
    ValueId finite = graph::kNoValue;
    for (auto &[variable, gradient] : gradients_) {
      gradient = graph_.mul(graph_.cast(gradient, variable->dtype), graph_.cast(factor, variable->dtype));
      const ValueId part = graph_.unary("all_finite", gradient);
      finite = finite == graph::kNoValue ? part : graph_.op("logical_and", {finite, part});
    }
    if (traits_.options.slices > 1) {
      finite = graph_.op("all_reduce", {graph_.cast(finite, DType::f32)},
                         {{"kind", std::string("min")}, {"label", std::string("finite gradients")}});
      finite = graph_.cast(finite, DType::boolean);
    }
    ok_ = graph_.op("logical_and", {ok_, finite});
    return graph_.status();
  }

  Status clip() {
    const graph::TrainSpec &train = *traits_.model.train;
    const GradientLimits limits{train.clip, global_clip_norm(traits_.model, traits_.options),
                                traits_.options.slices > 1};
    TUTTI_ASSIGN(const ValueId norm, clip_gradients(graph_, limits, gradients_, ok_));
    if (norm != graph::kNoValue) report("gradient_norm", norm);
    return Status();
  }

  Result<ValueId> learning_rate() {
    const graph::OptimizerSpec &optimizer = traits_.model.train->optimizer;
    bool is_hosts = false;  // who may have divided by zero
    for (const graph::NodeId id : graph::nodes_needed_for(traits_.model.graph, {optimizer.learning_rate})) {
      const graph::Node &node = traits_.model.graph.node(id);
      if (node.op == "input" || node.op == "variable") {
        return base::invalid_argument("the learning rate depends on node '", node.scope_name, "' (", node.op,
                                      "); it may use constants, run scalars and host scalars only");
      }
      is_hosts = is_hosts || node.op == "state_read";
    }
    NodeCloner cloner(traits_.model.graph, graph_);
    TUTTI_ASSIGN(const ValueId rate, cloner.clone_value(optimizer.learning_rate));
    report("learning_rate", rate);
    if (is_hosts) ok_ = graph_.op("logical_and", {ok_, is_finite(rate)});
    return rate;
  }

  Status update_variables() {
    const graph::OptimizerSpec &optimizer = traits_.model.train->optimizer;
    TUTTI_ASSIGN(const graph::OpDefinition *definition, graph::require_op(optimizer.op, optimizer.revision));
    const bool counts = std::any_of(definition->inputs.begin(), definition->inputs.end(),
                                    [](const graph::InputDefinition &input) { return input.name == "iteration"; });
    const bool averages = traits_.model.train->average.is_on() && !gradients_.empty();
    const ValueId average_step = averages ? average_rate(graph_, traits_.model.train->average) : graph::kNoValue;
    for (const auto &[variable, gradient] : gradients_) {
      graph_.push_root_scope("update/" + variable->name);
      GraphBuilder::Values inputs{read_slice("weight/" + variable->name, variable->name), gradient};
      std::vector<std::string> outputs{"weight/" + variable->name};
      for (const graph::SlotSpec &slot : optimizer.slots) {
        outputs.push_back("slot/" + variable->name + "/" + slot.name);
        inputs.push_back(read_slice(outputs.back(), variable->name));
      }
      inputs.push_back(rate_);
      if (counts) inputs.push_back(graph_.run_scalar("iteration", DType::i64));
      inputs.push_back(ok_);
      const auto updated = graph_.op_n(optimizer.op, inputs, optimizer.attributes, outputs.size());
      TUTTI_TRY(graph_.status());
      for (size_t i = 0; i < outputs.size(); ++i)
        graph_.state_write(updated[i], outputs[i]);
      if (averages) update_average(variable->name, updated[0], average_step);
      graph_.pop_scope();
    }
    return graph_.status();
  }

  void update_average(const std::string &variable, ValueId weight, ValueId rate) {
    const std::string entry = average_entry(variable);
    graph_.state_write(follow_weight(graph_, read_slice(entry, variable), weight, rate, ok_), entry);
  }

  Status update_aggregates() {
    for (const auto &[name, value] : traits_.model.assignments) {
      const ValueId old_value = read_slice("weight/" + name, name), new_value = read_total("aggregate/" + name, name);
      graph_.state_write(graph_.select(ok_, new_value, old_value), "weight/" + name);
    }
    return graph_.status();
  }

  const StepTraits &traits_;
  StepParts &parts_;
  GraphBuilder graph_;
  ValueId ok_ = graph::kNoValue, rate_ = graph::kNoValue;
  VariableGradients gradients_;
  FinishGraph result_;
};

}  // namespace

Result<FinishGraph> make_finish_graph(const StepTraits &traits, StepParts &parts) {
  return FinishGraphBuilder(traits, parts).run();
}

}  // namespace tutti::impl::distribute
