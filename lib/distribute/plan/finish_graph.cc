// SPDX-License-Identifier: Apache-2.0
#include "distribute/plan/finish_graph.h"

#include <memory>
#include <utility>

#include "distribute/plan/finish_context.h"
#include "distribute/plan/finish_gradients.h"
#include "distribute/plan/finish_updates.h"
#include "distribute/plan/gradient_clip.h"
#include "graph/clone.h"
#include "graph/rewrite/rewrites.h"

namespace tutti::impl::distribute {

using base::Result;
using base::Status;
using graph::Graph;
using graph::NodeCloner;
using graph::ValueId;
using tensor::DType;

double global_clip_norm(const graph::Model &model, const StepGraphOptions &options) {
  return options.clip_norm > 0 ? options.clip_norm : model.train->clip_global_norm.value_or(0);
}

/// The tail of the model reads the sums that contributors left.
static void read_sums(FinishContext &finish, NodeCloner &tail) {
  const Frontier &frontier = finish.parts.frontier;
  for (size_t i = 0; i < frontier.values.size(); ++i) {
    const graph::ValueInfo &info = finish.traits.model.graph.value(frontier.values[i].value);
    tail.map(frontier.tail_inputs[i], finish.builder.state_read(sum_entry(i), info.dtype, info.dims));
  }
}

/// The loss, or something that is not finite.
static ValueId without_faults(FinishContext &finish, ValueId loss) {
  graph::GraphBuilder &builder = finish.builder;
  const DType dtype = finish.traits.dtype_of_faults();
  const ValueId faults = builder.state_read(std::string(fault_sum_entry), dtype, {});
  const ValueId none = builder.op("equal", {faults, builder.constant(0.0, dtype)});
  return builder.div(loss, builder.cast(none, builder.dtype(loss)));
}

/// What the step's data and its group have to say of the update; reports the loss.
static Status add_loss(FinishContext &finish, NodeCloner &tail) {
  const StepTraits &traits = finish.traits;
  TUTTI_ASSIGN(ValueId loss, tail.clone_value(finish.parts.tail_loss));
  if (traits.is_guarded()) loss = without_faults(finish, loss);
  finish.ok = traits.options.ok_lasts ? finish.is_finite(loss) : finish.builder.unary("all_finite", loss);
  if (traits.options.ok_lasts) finish.require(finish.builder.state_read("report/ok", DType::boolean, {}));
  if (traits.may_be_ended()) finish.require(finish.builder.state_read(std::string(alive_entry), DType::boolean, {}));
  finish.report("loss", loss);
  return Status();
}

static Status add_metrics(FinishContext &finish, NodeCloner &tail, std::vector<std::string> &names) {
  for (const auto &[name, value] : finish.traits.model.metrics) {
    TUTTI_ASSIGN(const ValueId metric, tail.clone_value(finish.parts.tail.result("metric/" + name)));
    finish.report("metric/" + name, metric);
    names.push_back(name);
  }
  for (const graph::SummarySpec *summary : reduced_summaries(finish.traits.model, true)) {
    const std::string entry = summary_entry(summary->name);
    TUTTI_ASSIGN(const ValueId value, tail.clone_value(finish.parts.tail.result(entry)));
    finish.report(entry, value);
  }
  return Status();
}

static Status limit_gradients(FinishContext &finish, VariableGradients &gradients) {
  const StepTraits &traits = finish.traits;
  const GradientLimits limits{traits.model.train->clip, global_clip_norm(traits.model, traits.options),
                              traits.options.slices > 1};
  TUTTI_ASSIGN(const ValueId norm, clip_gradients(finish.builder, limits, gradients, finish.ok));
  if (norm != graph::kNoValue) finish.report("gradient_norm", norm);
  return Status();
}

Result<FinishGraph> make_finish_graph(const StepTraits &traits, StepParts &parts) {
  FinishGraph result;
  FinishContext finish{traits, parts};
  NodeCloner tail(parts.tail, finish.builder);
  read_sums(finish, tail);
  TUTTI_TRY(add_loss(finish, tail));
  TUTTI_TRY(add_metrics(finish, tail, result.metrics));
  TUTTI_ASSIGN(VariableGradients gradients, combine_gradients(finish, tail));
  TUTTI_TRY(unscale_gradients(finish, gradients));
  TUTTI_TRY(limit_gradients(finish, gradients));
  TUTTI_ASSIGN(const UpdateScalars scalars, add_update_scalars(finish));
  finish.report("ok", finish.ok);
  TUTTI_TRY(update_variables(finish, gradients, scalars));
  TUTTI_TRY(update_aggregates(finish));
  TUTTI_ASSIGN(Graph finished, finish.builder.finish_graph());
  result.graph = std::make_shared<const Graph>(graph::rewrite::optimize(std::move(finished)));
  result.reports = std::move(finish.reports);
  return result;
}

}  // namespace tutti::impl::distribute
