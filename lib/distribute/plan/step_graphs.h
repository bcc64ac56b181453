// SPDX-License-Identifier: Apache-2.0
//
// From a model (one mode, global batch) to the graphs that a contributor runs.
//
//   train     accumulate: forward and backward of one micro-batch on the contributor's rows; leaves partial sums in
//             state (`write` for the first micro-batch of a step, `add` for the others; where what is added up is
//             rounded, `last` for the last)
//             finish: from the summed partials to loss, metrics and update
//   evaluate  accumulate: forward only, sums; finish: metrics, once after the last batch
//   predict   forward: outputs, row by row
//
// The loss frontier cuts a model between them. The tail is what lies between sums over the batch and loss or metrics
// and feeds no row; it moves to finish. Its inputs are sums S_j (partial) and values R_i that are known without the
// batch (an L2 penalty), which contributor 0 adds once. Gradients start at the frontier: where d loss / d S_j follows
// from constants, run scalars and R alone it is the seed (gradient set 0); else S_j gets a gradient set of its own with
// seed 1, and finish scales that set with d loss / d S_j. So the gradient is exact for any number of contributors,
// micro-batches and rows, and nothing waits for the loss in mid-step.
//
// In finish every variable-shaped value is a flat array of length "slice.<variable>". Where the partial sums of all
// contributors lie in memory that each of them reads, finish adds them up as it uses them (sums_in_finish): an update
// then passes over K gradients, the variable and its slots once, and no total is stored. Gradients of large kernels are
// not even made before: accumulate leaves their factors (shared_factors.h), and finish multiplies those for its slice.
//
// One contributor with one micro-batch to a step needs no sums to wait for: then both are joined to one program, where
// each variable is updated as soon as its gradient is there and its old value no longer needed, and gradients are
// never stored. Not so when gradients are clipped by a norm, scaled, asked for, or made by the model; nor when a
// node behind the first update could still refuse its input.
//
// Devices that reduce in their programs get a step of several contributors as one program, too (spmd_step.h), for
// batches that they share evenly; the other graphs are for the rest.
//
// Threads: functions without state; the graphs are sealed.
#ifndef TUTTI_DISTRIBUTE_PLAN_STEP_GRAPHS_H_
#define TUTTI_DISTRIBUTE_PLAN_STEP_GRAPHS_H_

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "distribute/plan/shared_factors.h"
#include "distribute/plan/state_plan.h"
#include "graph/graph.h"
#include "graph/model.h"

namespace tutti::impl::distribute {

struct StepGraphOptions {
  /// Replicas, or logical replicas, that share a batch.
  int32_t contributors = 1;
  /// Contributors that each update a slice of the variables; 1 or `contributors`.
  int32_t slices = 1;
  /// Micro-batches per step; above 1 a value that needs the whole batch in mid-step is refused.
  int32_t accumulation = 1;
  /// Clips by global norm; 0 = what the model says.
  double clip_norm = 0;
  /// Finish reads gradients and aggregates of each contributor (entries of_contributor(k, ...)); false: they are
  /// reduced before, in place. Needs `slices` = `contributors`.
  bool sums_in_finish = false;
  /// Another device than those that accumulate runs finish, so they are two programs in any case.
  bool updates_apart = false;
  /// Gradients stay readable in state.
  bool keep_gradients = false;
  /// Accumulate gives the model's outputs, as results output_result(name) (kept_outputs.h).
  bool keep_outputs = false;
  /// Besides, there are programs that give the rows of the model's summaries, too, as results summary_entry(name): for
  /// steps that somebody looks at.
  bool shows_rows = false;
  /// The gradient of the loss is multiplied by what stands in loss_scale_entry, gradients are divided by it, and where
  /// one is not finite nothing is updated. Not for gradients that the model made.
  bool scales_loss = false;
  /// The report's ok stays false from the first step on that is not, until somebody sets it: steps that were issued
  /// before it was read change nothing.
  bool ok_lasts = false;
  /// It is also false where any contributor's data were bad (run scalar data_faults) or, with several contributors, an
  /// operation of the group was ended (alive_entry): so nobody updates, though nobody has looked. For devices that the
  /// host does not wait for.
  bool is_guarded = false;
  /// What f32 gradients are rounded to before those of several contributors are added up: f32 or bf16. Micro-batches
  /// are added up before, in f32.
  tensor::DType gradient_dtype = tensor::DType::f32;
  /// A step has several batches, of micro-batches or workers, whose lengths of other axes than the first may differ.
  bool lengths_differ = false;
  /// The whole step is made as one program for all contributors, too, where that can be. Needs accumulation 1.
  bool spmd = false;
  /// Which gradients finish makes itself of shared factors. Needs sums_in_finish and accumulation 1.
  FactorRule factors = {};
};

struct TrainGraphs {
  graph::SealedGraph accumulate_write;
  /// Null when accumulation is 1.
  graph::SealedGraph accumulate_add;
  /// The last micro-batch of a step, where accumulated gradients are rounded; before it these are zeros or what the
  /// other two left. Else null.
  graph::SealedGraph accumulate_last;
  /// In place of passes(), where rows of summaries are to be seen; else none.
  std::vector<graph::SealedGraph> showing;
  /// Null when accumulate_write does everything.
  graph::SealedGraph finish;
  /// The step as one program of all contributors, each with as many rows, over the same state; or null.
  graph::SealedGraph spmd;
  /// All state, in the order StatePlan::make wants.
  std::vector<StateSpec> state;
  /// Gradient sets of the model; set 0 exists even if it is empty.
  int32_t gradient_sets = 1;
  /// Where finish reports: "report/loss", "report/ok", "report/learning_rate", "report/metric/<name>",
  /// "report/summary/<name>".
  std::vector<std::string> metrics;
  /// What replicas leave for finish, and the variables whose gradients it makes of that: they are cut between rows.
  std::vector<SharedFactor> factors;
  std::vector<std::string> factored;
  /// Variables that updates take as matrices, which are not cut.
  std::vector<std::string> matrices;
  /// Others that are not cut, for the norms of their constraints or as stacks of matrices.
  std::vector<std::string> undivided;

  /// What the micro-batches of a step run: the first one, others, the last one where accumulated gradients are rounded.
  std::vector<graph::SealedGraph> passes(int32_t accumulation) const;
};

struct EvaluateGraphs {
  graph::SealedGraph accumulate_write, accumulate_add;
  graph::SealedGraph finish;
  std::vector<StateSpec> state;
  std::vector<std::string> metrics;  ///< names; "loss" first when the model has one
  /// Names of summaries: of those reported as metrics are, and of those that accumulate gives the rows of, as results
  /// summary_entry(name).
  std::vector<std::string> reduced_summaries, summary_rows;
  std::vector<std::string> known;  ///< entries that are no sums: whoever has rows finds all of them
};

struct PredictGraph {
  graph::SealedGraph forward;
  /// From the weights to entries "derived/<number>" that forward reads (kernels with a normalisation folded in): run
  /// once per weight version. Null when there are none.
  graph::SealedGraph prepare;
  std::vector<StateSpec> state;
  std::vector<std::string> outputs;  ///< names, in order of the model
  /// What forward gives for a row depends on no other row: it may run with more rows than one wants.
  bool rows_stand_alone = false;
};

/// "summary/<name>": of results, and behind "report/" of state.
std::string summary_entry(std::string_view name);

/// Does it, or what it follows from, say that a node cannot be computed of a batch in pieces?
bool is_of_pieces(const base::Status &status);

base::Result<TrainGraphs> make_train_graphs(const graph::Model &model, const StepGraphOptions &options);
base::Result<EvaluateGraphs> make_evaluate_graphs(const graph::Model &model, const StepGraphOptions &options);
base::Result<PredictGraph> make_predict_graph(const graph::Model &model, const StepGraphOptions &options);

/// The accumulate graph with marks where buckets of `plan` are complete: external nodes labelled "bucket/<i>" that move
/// no data. The last bucket needs none.
base::Result<graph::SealedGraph> mark_buckets(const graph::SealedGraph &accumulate, const StatePlan &plan);

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_PLAN_STEP_GRAPHS_H_
