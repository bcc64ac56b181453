// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>
#include <unordered_map>

#include "distribute/frontier.h"
#include "distribute/gradient_clip.h"
#include "distribute/joined_step.h"
#include "distribute/kept_outputs.h"
#include "distribute/loss_scale.h"
#include "distribute/step_graphs.h"
#include "distribute/step_writes.h"
#include "distribute/weight_averages.h"
#include "graph/autodiff.h"
#include "graph/clone.h"
#include "graph/op_registry.h"
#include "graph/rewrite/rewrites.h"

namespace tutti::impl::distribute {
namespace {

using base::Result;
using base::Status;
using graph::Dim;
using graph::Dims;
using graph::Graph;
using graph::GraphBuilder;
using graph::Model;
using graph::NodeCloner;
using graph::ValueId;
using graph::VariableSpec;
using tensor::DType;

std::string gradient_entry(size_t set, const std::string &variable) {
  return "gradient/" + std::to_string(set) + "/" + variable;
}

/// One frontier value that gradients start from.
struct Start {
  size_t frontier = 0;
  ValueId seed = graph::kNoValue;  // d loss / d value, in the tail's graph
  bool early = true;               // the seed is known before the sums are
};

double global_clip_norm(const Model &model, const StepGraphOptions &options) {
  return options.clip_norm > 0 ? options.clip_norm : model.train->clip_global_norm.value_or(0);
}

/// Builds the graphs of one training model.
class TrainGraphBuilder {
 public:
  /// `joined`: to one program, where that may be done.
  TrainGraphBuilder(const Model &model, const StepGraphOptions &options, bool joined)
      : model_(model),
        options_(options),
        joined_(joined),
        forward_(model.graph, step_),
        factored_(options.factors, options.slices) {}

  Result<TrainGraphs> run() {
    TUTTI_TRY(check_model());
    TUTTI_ASSIGN(frontier_, cut_frontier(model_, {options_.contributors > 1, options_.accumulation > 1}));
    TUTTI_TRY(find_starts());
    TUTTI_TRY(build_forward());
    TUTTI_TRY(build_gradients());
    TUTTI_TRY(share_factors());
    TUTTI_TRY(write_sums());
    TUTTI_TRY(write_assignments());
    TUTTI_TRY(seal_accumulate());
    TUTTI_TRY(build_finish());
    if (joined_) TUTTI_TRY(join());
    list_state();
    return std::move(result_);
  }

 private:
  bool several() const { return options_.contributors > 1 || options_.accumulation > 1; }
  /// What is joined refuses bad data before its first update.
  bool is_guarded() const { return options_.is_guarded && !joined_; }
  bool may_be_ended() const { return options_.is_guarded && options_.contributors > 1; }

  Status check_model() const {
    if (model_.loss == graph::kNoValue) return base::invalid_argument("the model has no loss: call set_loss");
    const graph::ValueInfo &loss = model_.graph.value(model_.loss);
    if (!loss.dims.empty() || !tensor::is_floating(loss.dtype)) {
      return base::invalid_argument("the loss must be a floating point scalar, got ", tensor::name(loss.dtype),
                                    graph::to_string(loss.dims));
    }
    if (!model_.train) return base::invalid_argument("the model has no optimizer: a TRAIN model needs one");
    return Status();
  }

  // ---- the tail's gradients ----

  bool needs_sums(ValueId seed) const {
    for (const graph::NodeId id : graph::nodes_needed_for(tail_, {seed})) {
      const graph::Node &node = tail_.node(id);
      if (node.op != "input") continue;
      const auto at = std::find(frontier_.tail_inputs.begin(), frontier_.tail_inputs.end(), node.outputs[0]);
      if (frontier_.values[static_cast<size_t>(at - frontier_.tail_inputs.begin())].is_sum) return true;
    }
    return false;
  }

  Status find_starts() {
    tail_loss_ = frontier_.tail.graph().result("loss");
    std::vector<ValueId> inputs, seeds;
    std::vector<size_t> positions;
    for (size_t i = 0; i < frontier_.values.size(); ++i) {
      if (!frontier_.values[i].has_gradient || !model_.train->gradients.empty()) continue;
      inputs.push_back(frontier_.tail_inputs[i]);
      positions.push_back(i);
    }
    if (!inputs.empty()) {
      const ValueId targets[] = {tail_loss_};
      TUTTI_ASSIGN(seeds, graph::gradients(frontier_.tail, targets, {}, inputs));
    }
    TUTTI_ASSIGN(tail_, frontier_.tail.finish_graph());
    bool late_vector = false;
    for (size_t i = 0; i < seeds.size(); ++i) {
      if (seeds[i] == graph::kNoValue) continue;
      const bool early = !needs_sums(seeds[i]);
      starts_.push_back({positions[i], seeds[i], early});
      late_vector = late_vector || (!early && graph::element_count(tail_.value(seeds[i]).dims) != Dim(1));
    }
    // A vector of sums would need a gradient set per element: its seed is computed in mid-step instead (an all_reduce).
    if (late_vector) {
      for (Start &start : starts_)
        start.early = true;
    }
    return Status();
  }

  // ---- accumulate ----

  Status build_forward() {
    std::vector<ValueId> roots;
    for (const FrontierValue &value : frontier_.values)
      roots.push_back(value.value);
    for (const auto &[name, value] : model_.assignments)
      roots.push_back(value);
    for (const auto &[name, value] : model_.train->gradients)
      roots.push_back(value);
    for (const auto &[name, value] : kept_outputs())
      roots.push_back(value);
    for (const graph::NodeId id : graph::nodes_needed_for(model_.graph, roots)) {
      const graph::Node &node = model_.graph.node(id);
      if (node.op == "variable") {
        TUTTI_TRY(read_variable(node.outputs[0]));
      } else {
        TUTTI_TRY(forward_.clone_node(node));
      }
    }
    for (const auto &[name, value] : kept_outputs())
      step_.set_result(output_result(name), forward_.mapped(value));
    return step_.status();
  }

  std::map<std::string, ValueId, std::less<>> kept_outputs() const {
    if (!options_.keep_outputs) return {};
    return model_.outputs;
  }

  Status read_variable(ValueId value) {
    for (const VariableSpec &variable : model_.variables) {
      if (variable.value != value) continue;
      const ValueId read = step_.state_read("weight/" + variable.name, variable.dtype, graph::to_dims(variable.dims));
      forward_.map(value, read);
      weights_[variable.name] = read;
      return step_.status();
    }
    return base::internal_error("a variable node of the model is not in its list of variables");
  }

  ValueId first_flag(DType dtype) { return step_.run_scalar("first_flag", dtype); }

  /// A seed of the tail in the step graph; its sums, if it needs any, are the local ones.
  Result<ValueId> early_seed(const Start &start) {
    NodeCloner cloner(tail_, step_);
    for (size_t i = 0; i < frontier_.values.size(); ++i) {
      cloner.map(frontier_.tail_inputs[i], forward_.mapped(frontier_.values[i].value));
    }
    TUTTI_ASSIGN(ValueId seed, cloner.clone_value(start.seed));
    if (!frontier_.values[start.frontier].is_sum) seed = step_.mul(seed, first_flag(step_.dtype(seed)));
    return scaled(seed);
  }

  bool scales_loss() const { return options_.scales_loss && model_.train->gradients.empty(); }

  ValueId scaled(ValueId seed) {
    if (!scales_loss()) return seed;
    const ValueId scale = step_.state_read(std::string(loss_scale_entry), DType::f32, {});
    return step_.mul(seed, step_.cast(scale, step_.dtype(seed)));
  }

  Status build_gradients() {
    if (!model_.train->gradients.empty()) return take_explicit_gradients();
    std::vector<ValueId> targets, seeds;
    for (const Start &start : starts_) {
      if (!start.early) continue;
      TUTTI_ASSIGN(const ValueId seed, early_seed(start));
      targets.push_back(forward_.mapped(frontier_.values[start.frontier].value));
      seeds.push_back(seed);
    }
    if (!targets.empty()) TUTTI_TRY(add_set(targets, seeds, graph::kNoValue));
    for (const Start &start : starts_) {
      if (start.early) continue;
      const FrontierValue &value = frontier_.values[start.frontier];
      const ValueId target = forward_.mapped(value.value);
      const DType dtype = step_.dtype(target);
      ValueId seed = value.is_sum ? step_.constant(1.0, dtype) : first_flag(dtype);
      seed = step_.reshape(scaled(seed), step_.dims(target));
      TUTTI_TRY(add_set({target}, {seed}, start.seed));
    }
    return step_.status();
  }

  Status add_set(const std::vector<ValueId> &targets, const std::vector<ValueId> &seeds, ValueId coefficient) {
    std::vector<ValueId> wrt;
    std::vector<std::string> names;
    for (const VariableSpec &variable : model_.variables) {
      const auto read = weights_.find(variable.name);
      if (!variable.trainable || read == weights_.end()) continue;
      wrt.push_back(read->second);
      names.push_back(variable.name);
    }
    TUTTI_ASSIGN(const std::vector<ValueId> gradients, graph::gradients(step_, targets, seeds, wrt));
    const size_t set = coefficients_.size();
    coefficients_.push_back(coefficient);
    for (size_t i = 0; i < gradients.size(); ++i) {
      if (gradients[i] != graph::kNoValue) add_gradient(set, names[i], gradients[i]);
    }
    return step_.status();
  }

  void add_gradient(size_t set, const std::string &variable, ValueId value) {
    StepWrite write{value, gradient_entry(set, variable), variable};
    const bool rounds = step_.dtype(value) == DType::f32 && options_.gradient_dtype != DType::f32;
    if (rounds && options_.accumulation == 1) write.value = step_.cast(value, options_.gradient_dtype);
    if (rounds && options_.accumulation > 1) write.rounded = options_.gradient_dtype;
    sets_of_[variable].push_back(set);
    writes_.push_back(std::move(write));
  }

  Status take_explicit_gradients() {
    coefficients_.push_back(graph::kNoValue);
    for (const auto &[name, value] : model_.train->gradients) {
      const VariableSpec *variable = model_.find_variable(name);
      if (variable == nullptr)
        return base::invalid_argument("a gradient is given for variable '", name, "', which the model does not have");
      if (!variable->trainable) continue;  // frozen after the model function returned
      add_gradient(0, name, forward_.mapped(value));
    }
    return Status();
  }

  /// Takes gradients that finish makes itself out of what is written.
  Status share_factors() {
    std::erase_if(writes_, [&](const StepWrite &write) {
      const std::vector<size_t> &sets = sets_of_[write.variable];
      return sets.size() == 1 && coefficients_[sets[0]] == graph::kNoValue &&
             factored_.take(step_, write.variable, write.value);
    });
    result_.factors = factored_.factors();
    result_.factored = factored_.variables();
    return step_.status();
  }

  Status write_sums() {
    for (size_t i = 0; i < frontier_.values.size(); ++i) {
      ValueId value = forward_.mapped(frontier_.values[i].value);
      if (!frontier_.values[i].is_sum && several()) value = step_.mul(value, first_flag(step_.dtype(value)));
      writes_.push_back({value, sum_entry(i), ""});
    }
    if (is_guarded()) write_faults();
    return step_.status();
  }

  DType dtype_of_faults() const {
    return model_.graph.value(model_.loss).dtype == DType::f64 ? DType::f64 : DType::f32;
  }

  void write_faults() {
    const ValueId faults = step_.run_scalar("data_faults", dtype_of_faults());
    writes_.push_back({faults, std::string(fault_sum_entry), ""});
    if (!may_be_ended()) return;  // the stream alone tells whose they are
    writes_.push_back({faults, std::string(fault_entry), ""});
    reports_.push_back({std::string(fault_entry), Arena::report, dtype_of_faults(), {}, ""});
  }

  Status write_assignments() {
    for (const auto &[name, value] : model_.assignments) {
      ValueId mapped = forward_.mapped(value);
      if (several()) {
        const ValueId share =
            step_.div(step_.run_scalar("local_rows", DType::f64), step_.run_scalar("step_rows", DType::f64));
        mapped = step_.mul(mapped, step_.cast(share, step_.dtype(mapped)));
      }
      writes_.push_back({mapped, "aggregate/" + name, name});
    }
    return step_.status();
  }

  Status seal_accumulate() {
    StepWriteOptions options{options_.contributors, options_.accumulation};
    TUTTI_ASSIGN(AccumulateGraphs graphs, seal_with_writes(std::move(step_), writes_, options));
    result_.accumulate_write = std::move(graphs.write);
    if (options_.accumulation > 1) result_.accumulate_add = std::move(graphs.add);
    result_.accumulate_last = std::move(graphs.last);
    written_ = std::move(graphs.specs);
    return Status();
  }

  // ---- finish ----

  Dims slice_dims(const std::string &variable) const {
    if (joined_) return graph::to_dims(model_.find_variable(variable)->dims);
    if (factored_.has(variable)) return factored_.slice_dims(variable);
    return {Dim::symbol("slice." + variable)};
  }

  /// A slice of what all contributors left in an entry, summed in their order.
  ValueId read_total(const std::string &entry, const std::string &variable) {
    if (!options_.sums_in_finish) return read_slice(entry, variable);
    ValueId total = read_slice(of_contributor(0, entry), variable);
    for (int32_t c = 1; c < options_.contributors; ++c)
      total = finish_.add(total, read_slice(of_contributor(c, entry), variable));
    return total;
  }

  ValueId read_slice(const std::string &entry, const std::string &variable) {
    const auto written =
        std::find_if(written_.begin(), written_.end(), [&](const auto &one) { return one.name == entry; });
    const DType dtype = written == written_.end() ? model_.find_variable(variable)->dtype : written->dtype;
    return finish_.state_read(entry, dtype, slice_dims(variable));
  }

  Status build_finish() {
    NodeCloner tail(tail_, finish_);
    for (size_t i = 0; i < frontier_.values.size(); ++i) {
      const graph::ValueInfo &info = model_.graph.value(frontier_.values[i].value);
      tail.map(frontier_.tail_inputs[i], finish_.state_read(sum_entry(i), info.dtype, info.dims));
    }
    TUTTI_ASSIGN(ValueId loss, tail.clone_value(tail_loss_));
    if (is_guarded()) loss = without_faults(loss);
    ok_ = options_.ok_lasts ? is_finite(loss) : finish_.unary("all_finite", loss);
    if (options_.ok_lasts) ok_ = finish_.op("logical_and", {ok_, finish_.state_read("report/ok", DType::boolean, {})});
    if (may_be_ended()) {
      ok_ = finish_.op("logical_and", {ok_, finish_.state_read(std::string(alive_entry), DType::boolean, {})});
    }
    report("loss", loss);
    for (const auto &[name, value] : model_.metrics) {
      TUTTI_ASSIGN(const ValueId metric, tail.clone_value(tail_.result("metric/" + name)));
      report("metric/" + name, metric);
      result_.metrics.push_back(name);
    }
    TUTTI_TRY(combine_gradients(tail));
    TUTTI_TRY(unscale());
    TUTTI_TRY(clip());
    report("ok", ok_);
    TUTTI_TRY(update_variables());
    TUTTI_TRY(update_aggregates());
    TUTTI_ASSIGN(Graph finish, finish_.finish_graph());
    result_.finish = std::make_shared<const Graph>(graph::rewrite::optimize(std::move(finish)));
    result_.gradient_sets = static_cast<int32_t>(coefficients_.size());
    return Status();
  }

  /// The same as all_finite of a scalar, elementwise: with what else `ok` depends on it is one launch on a device.
  ValueId is_finite(ValueId scalar) {
    return finish_.op("equal", {finish_.sub(scalar, scalar), finish_.constant(0.0, finish_.dtype(scalar))});
  }

  /// The loss, or something that is not finite.
  ValueId without_faults(ValueId loss) {
    const ValueId faults = finish_.state_read(std::string(fault_sum_entry), dtype_of_faults(), {});
    const ValueId none = finish_.op("equal", {faults, finish_.constant(0.0, dtype_of_faults())});
    return finish_.div(loss, finish_.cast(none, finish_.dtype(loss)));
  }

  void report(const std::string &name, ValueId value) {
    finish_.state_write(value, "report/" + name);
    reports_.push_back({"report/" + name, Arena::report, finish_.dtype(value), {}, ""});
  }

  Status combine_gradients(NodeCloner &tail) {
    std::vector<ValueId> factors;
    for (size_t set = 0; set < coefficients_.size(); ++set) {
      ValueId factor = graph::kNoValue;
      if (coefficients_[set] != graph::kNoValue) {
        TUTTI_ASSIGN(factor, tail.clone_value(coefficients_[set]));
        factor = finish_.reshape(factor, {});
        report("coefficient/" + std::to_string(set), factor);
      }
      factors.push_back(factor);
    }
    for (const VariableSpec &variable : model_.variables) {
      const auto sets = sets_of_.find(variable.name);
      if (sets == sets_of_.end()) continue;
      ValueId total = graph::kNoValue;
      for (const size_t set : sets->second) {
        ValueId part = factored_.has(variable.name) ? factored_.product(finish_, variable.name)
                                                    : read_total(gradient_entry(set, variable.name), variable.name);
        if (sets->second.size() > 1) part = finish_.cast(part, variable.dtype);
        if (factors[set] != graph::kNoValue)
          part = finish_.mul(finish_.cast(part, variable.dtype), finish_.cast(factors[set], variable.dtype));
        total = total == graph::kNoValue ? part : finish_.add(total, part);
      }
      gradients_.emplace_back(&variable, total);
    }
    return finish_.status();
  }

  /// In the variables' dtype, and exactly: the scale is a power of two. No gradient, no update.
  Status unscale() {
    if (!scales_loss() || gradients_.empty()) return Status();
    const ValueId scale = finish_.state_read(std::string(loss_scale_entry), DType::f32, {});
    reports_.push_back({std::string(loss_scale_entry), Arena::report, DType::f32, {}, ""});
    const ValueId factor = finish_.div(finish_.constant(1.0, DType::f32), scale);
    ValueId finite = graph::kNoValue;
    for (auto &[variable, gradient] : gradients_) {
      gradient = finish_.mul(finish_.cast(gradient, variable->dtype), finish_.cast(factor, variable->dtype));
      const ValueId part = finish_.unary("all_finite", gradient);
      finite = finite == graph::kNoValue ? part : finish_.op("logical_and", {finite, part});
    }
    if (options_.slices > 1) {
      finite = finish_.op("all_reduce", {finish_.cast(finite, DType::f32)},
                          {{"kind", std::string("min")}, {"label", std::string("finite gradients")}});
      finite = finish_.cast(finite, DType::boolean);
    }
    ok_ = finish_.op("logical_and", {ok_, finite});
    return finish_.status();
  }

  Status clip() {
    const graph::TrainSpec &train = *model_.train;
    const GradientLimits limits{train.clip, global_clip_norm(model_, options_), options_.slices > 1};
    TUTTI_ASSIGN(const ValueId norm, clip_gradients(finish_, limits, gradients_, ok_));
    if (norm != graph::kNoValue) report("gradient_norm", norm);
    return Status();
  }

  Result<ValueId> learning_rate() {
    const graph::OptimizerSpec &optimizer = model_.train->optimizer;
    for (const graph::NodeId id : graph::nodes_needed_for(model_.graph, {optimizer.learning_rate})) {
      const graph::Node &node = model_.graph.node(id);
      if (node.op == "input" || node.op == "variable") {
        return base::invalid_argument("the learning rate depends on node '", node.scope_name, "' (", node.op,
                                      "); it may use constants, run scalars and host scalars only");
      }
    }
    NodeCloner cloner(model_.graph, finish_);
    TUTTI_ASSIGN(const ValueId rate, cloner.clone_value(optimizer.learning_rate));
    report("learning_rate", rate);
    return rate;
  }

  Status update_variables() {
    const graph::OptimizerSpec &optimizer = model_.train->optimizer;
    TUTTI_ASSIGN(const graph::OpDefinition *definition, graph::require_op(optimizer.op, optimizer.revision));
    TUTTI_ASSIGN(const ValueId rate, learning_rate());
    const bool counts = std::any_of(definition->inputs.begin(), definition->inputs.end(),
                                    [](const graph::InputDefinition &input) { return input.name == "iteration"; });
    const bool averages = model_.train->average.is_on() && !gradients_.empty();
    const ValueId average_step = averages ? average_rate(finish_, model_.train->average) : graph::kNoValue;
    for (const auto &[variable, gradient] : gradients_) {
      finish_.push_root_scope("update/" + variable->name);
      GraphBuilder::Values inputs{read_slice("weight/" + variable->name, variable->name), gradient};
      std::vector<std::string> outputs{"weight/" + variable->name};
      for (const graph::SlotSpec &slot : optimizer.slots) {
        outputs.push_back("slot/" + variable->name + "/" + slot.name);
        inputs.push_back(read_slice(outputs.back(), variable->name));
      }
      inputs.push_back(rate);
      if (counts) inputs.push_back(finish_.run_scalar("iteration", DType::i64));
      inputs.push_back(ok_);
      const auto updated = finish_.op_n(optimizer.op, inputs, optimizer.attributes, outputs.size());
      TUTTI_TRY(finish_.status());
      for (size_t i = 0; i < outputs.size(); ++i)
        finish_.state_write(updated[i], outputs[i]);
      if (averages) update_average(variable->name, updated[0], average_step);
      finish_.pop_scope();
    }
    return finish_.status();
  }

  void update_average(const std::string &variable, ValueId weight, ValueId rate) {
    const std::string entry = average_entry(variable);
    finish_.state_write(follow_weight(finish_, read_slice(entry, variable), weight, rate, ok_), entry);
  }

  Status update_aggregates() {
    for (const auto &[name, value] : model_.assignments) {
      const ValueId old_value = read_slice("weight/" + name, name), new_value = read_total("aggregate/" + name, name);
      finish_.state_write(finish_.select(ok_, new_value, old_value), "weight/" + name);
    }
    return finish_.status();
  }

  Status join() {
    constexpr std::string_view passing[] = {"gradient/", "aggregate/", "sum/"};
    TUTTI_ASSIGN(Graph graph, graph::rewrite::join_programs(*result_.accumulate_write, *result_.finish, passing));
    result_.accumulate_write = std::make_shared<const Graph>(std::move(graph));
    result_.finish = nullptr;
    return Status();
  }

  // ---- state ----

  void list_state() {
    std::vector<const VariableSpec *> ordered;
    std::set<std::string> seen;
    const auto take = [&](const std::string &name) {
      if (!name.empty() && seen.insert(name).second) ordered.push_back(model_.find_variable(name));
    };
    for (const StateSpec &spec : written_)
      take(spec.variable);
    for (const VariableSpec &variable : model_.variables)
      take(variable.name);
    std::vector<StateSpec> &state = result_.state;
    for (const VariableSpec *variable : ordered) {
      state.push_back({"weight/" + variable->name, Arena::weights, variable->dtype, variable->dims, variable->name,
                       factored_.has(variable->name) ? variable->dims[1] : 0});
    }
    std::erase_if(ordered, [&](const VariableSpec *variable) { return sets_of_.count(variable->name) == 0; });
    // In front, so that what predictions read of the slots is one range.
    for (const VariableSpec *variable : ordered) {
      if (!model_.train->average.is_on()) break;
      state.push_back({average_entry(variable->name), Arena::slots, variable->dtype, variable->dims, variable->name});
    }
    for (const VariableSpec *variable : ordered) {
      for (const graph::SlotSpec &slot : model_.train->optimizer.slots) {
        state.push_back({"slot/" + variable->name + "/" + slot.name, Arena::slots, variable->dtype, variable->dims,
                         variable->name});
      }
    }
    if (!joined_) state.insert(state.end(), written_.begin(), written_.end());
    state.insert(state.end(), reports_.begin(), reports_.end());
    for (const graph::HostScalarSpec &scalar : model_.host_scalars) {
      state.push_back({"host/" + scalar.name, Arena::host, DType::f32, {}, ""});
    }
    if (may_be_ended()) state.push_back({std::string(alive_entry), Arena::signal, DType::boolean, {}, ""});
  }

  const Model &model_;
  const StepGraphOptions options_;
  const bool joined_;
  Frontier frontier_;
  Graph tail_;
  ValueId tail_loss_ = graph::kNoValue;
  std::vector<Start> starts_;

  GraphBuilder step_;
  NodeCloner forward_;
  std::unordered_map<std::string, ValueId> weights_;  // reads in the step graph
  std::vector<StepWrite> writes_;
  std::vector<ValueId> coefficients_;  // per gradient set, in the tail's graph
  std::unordered_map<std::string, std::vector<size_t>> sets_of_;
  FactoredGradients factored_;
  std::vector<StateSpec> written_;

  GraphBuilder finish_;
  ValueId ok_ = graph::kNoValue;
  VariableGradients gradients_;
  std::vector<StateSpec> reports_;

  TrainGraphs result_;
};

bool may_be_joined(const Model &model, const StepGraphOptions &options) {
  if (options.contributors > 1 || options.accumulation > 1 || options.keep_gradients || options.keep_outputs ||
      options.scales_loss)
    return false;
  // Norms, which may not be finite, come before the first update; gradients that the model made may be anything.
  return model.train && global_clip_norm(model, options) <= 0 && model.train->clip.norm <= 0 &&
         model.train->gradients.empty();
}

}  // namespace

Result<TrainGraphs> make_train_graphs(const Model &model, const StepGraphOptions &options) {
  if (may_be_joined(model, options)) {
    TUTTI_ASSIGN(TrainGraphs graphs, TrainGraphBuilder(model, options, true).run());
    const Graph &joined = *graphs.accumulate_write;
    if (refuses_before_updates(joined, options.is_guarded)) return graphs;
  }
  return TrainGraphBuilder(model, options, false).run();
}

}  // namespace tutti::impl::distribute
