// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <unordered_map>

#include "base/text.h"
#include "distribute/plan/finish_graph.h"
#include "distribute/plan/frontier.h"
#include "distribute/plan/joined_step.h"
#include "distribute/plan/kept_outputs.h"
#include "distribute/plan/loss_scale.h"
#include "distribute/plan/spmd_step.h"
#include "distribute/plan/step_graphs.h"
#include "distribute/plan/step_writes.h"
#include "distribute/plan/weight_averages.h"
#include "distribute/plan/weight_constraints.h"
#include "graph/autodiff.h"
#include "graph/clone.h"
#include "graph/rewrite/rewrites.h"
#include "graph/update_rule.h"

namespace tutti::impl::distribute {
namespace {

using base::Result;
using base::Status;
using graph::Dim;
using graph::Graph;
using graph::GraphBuilder;
using graph::Model;
using graph::NodeCloner;
using graph::ValueId;
using graph::VariableSpec;
using tensor::DType;

/// One frontier value that gradients start from.
struct Start {
  size_t frontier = 0;
  ValueId seed = graph::kNoValue;  // d loss / d value, in the tail's graph
  bool early = true;               // the seed is known before the sums are
};

/// Builds the graphs of one training model.
class TrainGraphBuilder {
 public:
  /// `joined`: to one program, where that may be done. `shows_rows`: its programs give the rows of summaries.
  TrainGraphBuilder(const Model &model, const StepGraphOptions &options, bool joined, bool shows_rows = false)
      : model_(model),
        shows_rows_(shows_rows),
        options_(options),
        traits_{model, options, joined},
        parts_(options, joined),
        forward_(model.graph, step_) {}

  Result<TrainGraphs> run() {
    TUTTI_TRY(check_model());
    TUTTI_ASSIGN(parts_.frontier, cut_frontier(model_, {options_.contributors > 1, options_.accumulation > 1, true}));
    TUTTI_TRY(find_starts());
    TUTTI_TRY(build_forward());
    TUTTI_TRY(build_gradients());
    TUTTI_TRY(leave_rows());
    TUTTI_TRY(share_factors());
    TUTTI_TRY(write_sums());
    TUTTI_TRY(write_assignments());
    TUTTI_TRY(seal_accumulate());
    TUTTI_ASSIGN(FinishGraph finish, make_finish_graph(traits_, parts_));
    result_.finish = std::move(finish.graph);
    result_.metrics = std::move(finish.metrics);
    reports_.insert(reports_.end(), finish.reports.begin(), finish.reports.end());
    result_.gradient_sets = static_cast<int32_t>(parts_.coefficients.size());
    if (traits_.joined) TUTTI_TRY(join());
    list_state();
    return std::move(result_);
  }

 private:
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
    for (const graph::NodeId id : graph::nodes_needed_for(parts_.tail, {seed})) {
      const graph::Node &node = parts_.tail.node(id);
      if (node.op != "input") continue;
      const auto at =
          std::find(parts_.frontier.tail_inputs.begin(), parts_.frontier.tail_inputs.end(), node.outputs[0]);
      if (parts_.frontier.values[static_cast<size_t>(at - parts_.frontier.tail_inputs.begin())].is_sum) return true;
    }
    return false;
  }

  Status find_starts() {
    parts_.tail_loss = parts_.frontier.tail.graph().result("loss");
    std::vector<ValueId> inputs, seeds;
    std::vector<size_t> positions;
    for (size_t i = 0; i < parts_.frontier.values.size(); ++i) {
      if (!parts_.frontier.values[i].has_gradient || !model_.train->gradients.empty()) continue;
      inputs.push_back(parts_.frontier.tail_inputs[i]);
      positions.push_back(i);
    }
    if (!inputs.empty()) {
      const ValueId targets[] = {parts_.tail_loss};
      TUTTI_ASSIGN(seeds, graph::gradients(parts_.frontier.tail, targets, {}, inputs));
    }
    TUTTI_ASSIGN(parts_.tail, parts_.frontier.tail.finish_graph());
    bool late_vector = false;
    for (size_t i = 0; i < seeds.size(); ++i) {
      if (seeds[i] == graph::kNoValue) continue;
      const bool early = !needs_sums(seeds[i]);
      starts_.push_back({positions[i], seeds[i], early});
      late_vector = late_vector || (!early && graph::element_count(parts_.tail.value(seeds[i]).dims) != Dim(1));
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
    for (const FrontierValue &value : parts_.frontier.values)
      roots.push_back(value.value);
    for (const auto &[name, value] : model_.assignments)
      roots.push_back(value);
    for (const auto &[name, value] : model_.train->gradients)
      roots.push_back(value);
    const auto results = results_of_rows();
    for (const auto &[name, value] : results)
      roots.push_back(value);
    for (const graph::SummarySpec &summary : model_.summaries)
      if (shows_rows_ && summary.is_known) roots.push_back(summary.value);
    for (const graph::NodeId id : graph::nodes_needed_for(model_.graph, roots)) {
      const graph::Node &node = model_.graph.node(id);
      if (node.op == "variable") {
        TUTTI_TRY(read_variable(node.outputs[0]));
      } else {
        TUTTI_TRY(forward_.clone_node(node));
      }
    }
    for (const auto &[name, value] : results)
      step_.set_result(name, forward_.mapped(value));
    show_known();
    return step_.status();
  }

  /// Of the first contributor in its first micro-batch. As a number that is multiplied: an update in the same program
  /// may write a weight in its place, where a result is the weight itself.
  void show_known() {
    for (const graph::SummarySpec &summary : model_.summaries) {
      if (!shows_rows_ || !summary.is_known) continue;
      const ValueId value = forward_.mapped(summary.value);
      step_.set_result(summary_entry(summary.name), step_.mul(value, first_flag(step_.dtype(value))));
    }
  }

  /// What accumulate gives for the rows of a contributor, by the names of its results.
  std::vector<std::pair<std::string, ValueId>> results_of_rows() const {
    std::vector<std::pair<std::string, ValueId>> results;
    for (const auto &[name, value] : model_.outputs)
      if (options_.keep_outputs) results.emplace_back(output_result(name), value);
    for (const graph::SummarySpec &summary : model_.summaries)
      if (shows_rows_ && summary.has_rows) results.emplace_back(summary_entry(summary.name), summary.value);
    return results;
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
    NodeCloner cloner(parts_.tail, step_);
    for (size_t i = 0; i < parts_.frontier.values.size(); ++i) {
      cloner.map(parts_.frontier.tail_inputs[i], forward_.mapped(parts_.frontier.values[i].value));
    }
    TUTTI_ASSIGN(ValueId seed, cloner.clone_value(start.seed));
    if (!parts_.frontier.values[start.frontier].is_sum) seed = step_.mul(seed, first_flag(step_.dtype(seed)));
    return scaled(seed);
  }

  ValueId scaled(ValueId seed) {
    if (!traits_.scales_loss()) return seed;
    const ValueId scale = step_.state_read(std::string(loss_scale_entry), DType::f32, {});
    return step_.mul(seed, step_.cast(scale, step_.dtype(seed)));
  }

  Status build_gradients() {
    if (!model_.train->gradients.empty()) return take_explicit_gradients();
    std::vector<ValueId> targets, seeds;
    for (const Start &start : starts_) {
      if (!start.early) continue;
      TUTTI_ASSIGN(const ValueId seed, early_seed(start));
      targets.push_back(forward_.mapped(parts_.frontier.values[start.frontier].value));
      seeds.push_back(seed);
    }
    if (!targets.empty()) TUTTI_TRY(add_set(targets, seeds, graph::kNoValue));
    for (const Start &start : starts_) {
      if (start.early) continue;
      const FrontierValue &value = parts_.frontier.values[start.frontier];
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
    const size_t set = parts_.coefficients.size();
    parts_.coefficients.push_back(coefficient);
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
    parts_.sets_of[variable].push_back(set);
    writes_.push_back(std::move(write));
  }

  Status take_explicit_gradients() {
    parts_.coefficients.push_back(graph::kNoValue);
    for (const auto &[name, value] : model_.train->gradients) {
      const VariableSpec *variable = model_.find_variable(name);
      if (variable == nullptr)
        return base::invalid_argument("a gradient is given for variable '", name, "', which is not in the model");
      if (!variable->trainable) continue;  // frozen after the model function returned
      add_gradient(0, name, forward_.mapped(value));
    }
    return Status();
  }

  /// Takes gradients that reach some rows of a variable out of what is written.
  Status leave_rows() {
    std::map<std::string, std::vector<GradientOfSet>> gradients;
    for (const StepWrite &write : writes_) {
      const std::vector<size_t> &sets = parts_.sets_of[write.variable];
      gradients[write.variable].push_back({sets[gradients[write.variable].size()], write.value});
    }
    for (const auto &[name, parts] : gradients) {
      const VariableSpec *const variable = model_.find_variable(name);
      if (variable == nullptr || !updates_rows(model_, *variable) || !are_of_lookups(step_.graph(), parts)) continue;
      const std::string_view why_not = why_no_rows(parts);
      if (why_not.empty()) {
        parts_.rows.take(step_, *variable, parts);
      } else if (model_.train->optimizer.lazy) {
        return base::unimplemented("the optimizer is lazy, but rows of variable '", name,
                                   "' cannot be updated alone: ", why_not);
      }
    }
    std::erase_if(writes_, [&](const StepWrite &write) { return parts_.rows.has(write.variable); });
    return step_.status();
  }

  /// Empty where finish may be given rows of gradients.
  std::string_view why_no_rows(const std::vector<GradientOfSet> &gradients) const {
    if (options_.updates_apart) return "they are updated by a device that looks nothing up";
    if (options_.keep_gradients) return "gradients are to be read";
    if (!model_.train->gradients.empty()) return "the model makes its gradients itself";
    if (options_.lengths_differ && !have_known_lengths(step_.graph(), gradients))
      return "how many an example looks up may differ between workers and micro-batches";
    return "";
  }

  /// Takes gradients that finish makes itself out of what is written.
  Status share_factors() {
    std::erase_if(writes_, [&](const StepWrite &write) {
      const std::vector<size_t> &sets = parts_.sets_of[write.variable];
      return sets.size() == 1 && parts_.coefficients[sets[0]] == graph::kNoValue && !is_whole(write.variable) &&
             parts_.factored.take(step_, write.variable, write.value);
    });
    result_.factors = parts_.factored.factors();
    result_.factored = parts_.factored.variables();
    if (traits_.joined) return step_.status();
    result_.factors.insert(result_.factors.end(), parts_.rows.factors().begin(), parts_.rows.factors().end());
    for (const std::string &variable : parts_.rows.variables()) {
      if (options_.slices > 1) result_.factored.push_back(variable);
    }
    return step_.status();
  }

  /// Does the optimizer's rule take the variable as a whole, or its constraint?
  bool is_whole(const std::string &name) const {
    const VariableSpec *const variable = model_.find_variable(name);
    if (variable != nullptr && variable->constraint.has_norms()) return true;
    if (variable == nullptr || !model_.train->optimizer.has_rules()) return false;
    const Result<size_t> rule = graph::rule_for(model_, *variable);
    return rule.ok() && graph::needs_of(model_.graph, model_.graph.node(model_.train->optimizer.rules[*rule])).whole;
  }

  Status write_sums() {
    for (size_t i = 0; i < parts_.frontier.values.size(); ++i) {
      ValueId value = forward_.mapped(parts_.frontier.values[i].value);
      if (!parts_.frontier.values[i].is_sum && traits_.several())
        value = step_.mul(value, first_flag(step_.dtype(value)));
      writes_.push_back({value, sum_entry(i), ""});
    }
    if (traits_.is_guarded()) write_faults();
    return step_.status();
  }

  void write_faults() {
    const ValueId faults = step_.run_scalar("data_faults", traits_.dtype_of_faults());
    writes_.push_back({faults, std::string(fault_sum_entry), ""});
    if (!traits_.may_be_ended()) return;  // the stream alone tells whose they are
    writes_.push_back({faults, std::string(fault_entry), ""});
    reports_.push_back({std::string(fault_entry), Arena::report, traits_.dtype_of_faults(), {}, ""});
  }

  Status write_assignments() {
    TUTTI_ASSIGN(const std::vector<graph::Placement> placements, graph::place(model_.graph, traits_.several()));
    for (const auto &[name, value] : model_.assignments) {
      ValueId mapped = forward_.mapped(value);
      // A sum over the rows of the step is whole when that of all its parts is.
      if (traits_.several() && placements[static_cast<size_t>(value)] != graph::Placement::partial_sum) {
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
    parts_.written = std::move(graphs.specs);
    return Status();
  }

  Status join() {
    constexpr std::string_view passing[] = {"gradient/", "aggregate/", "sum/", "rows/"};
    graph::SealedGraph first = result_.accumulate_write;
    if (options_.contributors > 1) first = std::make_shared<const Graph>(with_reduced_writes(*first, passing));
    TUTTI_ASSIGN(Graph graph, graph::rewrite::join_programs(*first, *result_.finish, passing));
    result_.accumulate_write = std::make_shared<const Graph>(std::move(graph));
    result_.finish = nullptr;
    return Status();
  }

  // ---- state ----

  /// Elements of a variable that are not cut.
  int64_t slice_unit(const VariableSpec &variable) const {
    if (!parts_.factored.has(variable.name) && !parts_.rows.has(variable.name)) return 0;
    return std::accumulate(variable.dims.begin() + 1, variable.dims.end(), int64_t{1}, std::multiplies<>());
  }

  void list_state() {
    std::vector<const VariableSpec *> ordered;
    std::set<std::string> seen;
    const auto take = [&](const std::string &name) {
      if (!name.empty() && seen.insert(name).second) ordered.push_back(model_.find_variable(name));
    };
    for (const StateSpec &spec : parts_.written)
      take(spec.variable);
    for (const VariableSpec &variable : model_.variables)
      take(variable.name);
    std::vector<StateSpec> &state = result_.state;
    for (const VariableSpec *variable : ordered) {
      state.push_back(
          {"weight/" + variable->name, Arena::weights, variable->dtype, variable->dims, variable->name,
           slice_unit(*variable), is_whole(variable->name),
           model_.train->optimizer.has_rules() || variable->constraint.has_norms() || parts_.rows.has(variable->name)});
    }
    std::erase_if(ordered, [&](const VariableSpec *variable) { return parts_.sets_of.count(variable->name) == 0; });
    // In front, so that what predictions read of the slots is one range.
    for (const VariableSpec *variable : ordered) {
      if (!model_.train->average.is_on()) break;
      state.push_back({average_entry(variable->name), Arena::slots, variable->dtype, variable->dims, variable->name});
    }
    for (const VariableSpec *variable : ordered) {
      if (has_constrained_rows(*variable) || graph::is_stack(model_, *variable)) {
        result_.undivided.push_back(variable->name);
      } else if (graph::matrix_of(model_, *variable)) {
        result_.matrices.push_back(variable->name);
      }
      for (const graph::SlotSpec &slot : graph::slots_for(model_, *variable)) {
        StateSpec spec{"slot/" + variable->name + "/" + slot.name, Arena::slots, variable->dtype,
                       graph::slot_dims(slot.per, variable->dims), variable->name};
        spec.has_own_dims = slot.per != graph::SlotPer::element;
        state.push_back(std::move(spec));
      }
    }
    if (!traits_.joined) state.insert(state.end(), parts_.written.begin(), parts_.written.end());
    state.insert(state.end(), reports_.begin(), reports_.end());
    for (const graph::HostScalarSpec &scalar : model_.host_scalars) {
      state.push_back({"host/" + scalar.name, Arena::host, DType::f32, {}, ""});
    }
    if (traits_.may_be_ended()) state.push_back({std::string(alive_entry), Arena::signal, DType::boolean, {}, ""});
  }

  const Model &model_;
  const bool shows_rows_;
  const StepGraphOptions &options_;
  const StepTraits traits_;
  StepParts parts_;
  std::vector<Start> starts_;

  GraphBuilder step_;
  NodeCloner forward_;
  std::unordered_map<std::string, ValueId> weights_;  // reads in the step graph
  std::vector<StepWrite> writes_;
  std::vector<StateSpec> reports_;

  TrainGraphs result_;
};

bool may_be_joined(const Model &model, const StepGraphOptions &options) {
  if (options.contributors > 1 || options.accumulation > 1 || options.keep_gradients || options.keep_outputs ||
      options.scales_loss || options.updates_apart)
    return false;
  // Norms, which may not be finite, come before the first update; gradients that the model made may be anything.
  return model.train && global_clip_norm(model, options) <= 0 && model.train->clip.norm <= 0 &&
         model.train->gradients.empty();
}

/// Null where something might refuse its input unseen by the loss.
Result<graph::SealedGraph> spmd_graph(const Model &model, const StepGraphOptions &options, bool has_rows) {
  if (!model.train->gradients.empty()) return graph::SealedGraph();  // which may be anything
  if (has_rows) return graph::SealedGraph();                         // which nobody gathers in it
  TUTTI_ASSIGN(const TrainGraphs graphs, TrainGraphBuilder(model, options, true).run());
  const bool is_safe = refuses_before_updates(*graphs.accumulate_write, true);
  return is_safe ? graphs.accumulate_write : graph::SealedGraph();
}

/// The programs over the same state that give rows of summaries, too; none where the model has no such summaries.
Status add_showing(const Model &model, const StepGraphOptions &options, bool joined, TrainGraphs &graphs) {
  const auto is_shown = [](const graph::SummarySpec &summary) { return summary.has_rows || summary.is_known; };
  if (!options.shows_rows || std::ranges::none_of(model.summaries, is_shown)) return Status();
  TUTTI_ASSIGN(const TrainGraphs showing, TrainGraphBuilder(model, options, joined, true).run());
  graphs.showing = showing.passes(options.accumulation);
  return Status();
}

/// Null where a step cannot be one program.
Result<std::optional<TrainGraphs>> joined_graphs(const Model &model, const StepGraphOptions &options) {
  if (!may_be_joined(model, options)) return std::optional<TrainGraphs>();
  TUTTI_ASSIGN(TrainGraphs graphs, TrainGraphBuilder(model, options, true).run());
  TUTTI_TRY(add_showing(model, options, true, graphs));
  std::vector<graph::SealedGraph> joined = graphs.showing;
  joined.push_back(graphs.accumulate_write);
  for (const graph::SealedGraph &one : joined)
    if (!refuses_before_updates(*one, options.is_guarded)) return std::optional<TrainGraphs>();
  return std::optional(std::move(graphs));
}

Result<TrainGraphs> train_graphs(const Model &model, const StepGraphOptions &options) {
  TUTTI_ASSIGN(std::optional<TrainGraphs> joined, joined_graphs(model, options));
  if (joined) return std::move(*joined);
  TUTTI_ASSIGN(TrainGraphs graphs, TrainGraphBuilder(model, options, false).run());
  TUTTI_TRY(add_showing(model, options, false, graphs));
  if (options.spmd) {
    const bool has_rows = std::ranges::any_of(graphs.factors, [](const SharedFactor &one) { return !one.is_feature; });
    TUTTI_ASSIGN(graphs.spmd, spmd_graph(model, options, has_rows));
  }
  return graphs;
}

/// "3 parts of its batch for replicas, 2 micro-batches".
std::string describe_pieces(const StepGraphOptions &options) {
  std::vector<std::string> pieces;
  if (options.contributors > 1)
    pieces.push_back(base::concat(options.contributors, " parts of its batch for replicas"));
  if (options.accumulation > 1) pieces.push_back(base::concat(options.accumulation, " micro-batches"));
  return base::join(pieces, ", ");
}

}  // namespace

std::string summary_entry(std::string_view name) { return base::concat("summary/", name); }

std::vector<graph::SealedGraph> TrainGraphs::passes(int32_t accumulation) const {
  std::vector<graph::SealedGraph> all{accumulate_write};
  if (accumulation > (accumulate_last != nullptr ? 2 : 1)) all.push_back(accumulate_add);
  if (accumulate_last != nullptr) all.push_back(accumulate_last);
  return all;
}

bool is_of_pieces(const Status &status) {
  for (const base::Error *error = status.error().get(); error != nullptr; error = error->cause().get()) {
    if (error->code() == base::Code::invalid_argument && error->find_detail("node") != nullptr) return true;
  }
  return false;
}

Result<TrainGraphs> make_train_graphs(const Model &model, const StepGraphOptions &options) {
  Result<TrainGraphs> graphs = train_graphs(model, options);
  const std::string pieces = describe_pieces(options);
  if (graphs.ok() || pieces.empty() || !is_of_pieces(graphs.status())) return graphs;
  return graphs.status().wrap(
      base::concat("a step is computed in ", pieces, ", so its results must be sums or means over independent rows: ",
                   "define loss, metrics and gradients so, or train on the whole batch at once: on one device",
                   options.accumulation > 1 ? ", without accumulation_steps" : ""));
}

}  // namespace tutti::impl::distribute
