// SPDX-License-Identifier: Apache-2.0
//
// Model: what a model function makes for one mode: one graph over the global batch and what its values mean: features,
// labels, variables, outputs, loss, metrics, assignments and the rule of training. Made by GraphBuilder::finish();
// turned into step graphs above (graph/replicate.h); stored in checkpoints (graph/serialize.h) in PREDICT form.
//
// Threads: immutable once made; share it as shared_ptr<const Model>.
#ifndef TUTTI_GRAPH_MODEL_H_
#define TUTTI_GRAPH_MODEL_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "graph/graph.h"

namespace tutti::impl::graph {

/// A named input of the model; rows of the batch are axis 0.
struct InputSpec {
  std::string name;
  tensor::DType dtype{};
  Dims dims;
  ValueId value = kNoValue;  // output of the `input` node
};

/// How a variable gets its first value: "zeros", "ones", "constant" {value}, "normal", "truncated_normal" {mean,
/// stddev}, "uniform" {low, high}, "glorot_uniform", "he_normal", ... interpreted by the floor that creates weights.
/// Each may have {zero_row} (initializer.h).
struct InitializerSpec {
  std::string name = "zeros";
  Attributes attributes;
};

/// What a variable is kept to by each update of it (constraint.h).
struct ConstraintSpec {
  std::string kind{};           ///< "max_norm", "unit_norm" or "non_negative"; empty = to nothing
  double limit = 2;             ///< of max_norm
  std::vector<int64_t> axes{};  ///< along which norms are; of a variable ascending and not negative

  bool is_on() const { return !kind.empty(); }
  /// Then all of the variable is needed at once.
  bool has_norms() const { return is_on() && kind != "non_negative"; }
};

/// Who keeps a variable's value. trained: updated from its gradient. aggregated: assigned, the mean over replicas
/// weighted by rows. per_replica: assigned, each replica has its own.
enum class Aggregation { trained, aggregated, per_replica };

std::string_view name(Aggregation aggregation);

struct VariableSpec {
  std::string name;
  tensor::DType dtype{};
  std::vector<int64_t> dims;
  InitializerSpec initializer;
  bool trainable = true;
  Aggregation aggregation = Aggregation::trained;
  std::string creator;         // scope of the layer that made it
  bool automatic_name = true;  // the name came from scope and ordinal, not from the user
  ValueId value = kNoValue;    // output of the `variable` node
  ConstraintSpec constraint{};
};

/// What a slot has a value for: each element of its variable, or each row or column of its matrices, of which there is
/// one of the last two axes for each index of the axes before.
enum class SlotPer { element, row, column };

std::string_view name(SlotPer per);
/// Nothing for another text.
std::optional<SlotPer> slot_per(std::string_view text);

/// Further state an optimizer keeps per variable.
struct SlotSpec {
  std::string name;  // "velocity", "m", "v"
  double initial = 0;
  SlotPer per = SlotPer::element;
};

/// The rule of training: an update op of the registry, its attributes, and a learning rate that is a value of the
/// graph. The update's inputs are w, g, slots in order, learning rate, iteration if it has one, ok; or it is
/// update_rule, and `rules` are its nodes, for dtypes and shapes of variables (update_rule.h); `slots` are of all.
struct OptimizerSpec {
  std::string op;  // "adam_update"
  int32_t revision = 1;
  Attributes attributes;
  ValueId learning_rate = kNoValue;  // a scalar computed from constants, run scalars and host scalars only
  std::vector<SlotSpec> slots;
  std::vector<NodeId> rules{};
  /// Rows of a variable that a step does not look up, where the model does nothing else with it, keep weight and slots.
  bool lazy = false;
  /// An element whose gradient is 0 keeps its value and its slots, unless it is subject to weight decay.
  bool keeps_unreached = false;

  bool has_rules() const { return !rules.empty(); }
};

/// Variables whose full name matches a pattern with * and ?, and what the optimizer does otherwise for them. A variable
/// belongs to the first group that it matches.
struct ParameterGroup {
  std::string pattern;
  double rate_factor = 1;            ///< times the learning rate
  ValueId learning_rate = kNoValue;  ///< in place of the optimizer's, if there is one
  double weight_decay = -1;          ///< in place of the optimizer's; below 0 = that
  bool frozen = false;               ///< they keep their values
  bool as_vectors = false;           ///< no rule takes them as matrices

  bool has(std::string_view variable) const;
};

/// Moving averages of the variables that an optimizer updates. After update t = 1, 2, ... (skipped steps do not count)
/// average = d * average + (1 - d) * weight with d = decay, with a ramp at most (1 + n) / (10 + n) where n = t - start.
/// Up to update `start` an average is the weight itself; before the first update it is the initial weight.
struct AverageSpec {
  double decay = 0;  ///< 0 = there are no averages
  bool has_ramp = false;
  int64_t start = 0;

  bool is_on() const { return decay > 0; }
  /// INVALID_ARGUMENT naming the number that makes no sense.
  base::Status check() const;
};

/// What gradients of the global batch are limited to before an update; 0 = not. By value first, then by the norm of
/// each variable's gradient; the global norm of all comes last (TrainSpec::clip_global_norm).
struct ClipSpec {
  double value = 0;  ///< each element to [-value, value]
  double norm = 0;   ///< of each variable: g * norm / max(|g|, norm)

  /// INVALID_ARGUMENT naming the number that is negative or not finite.
  base::Status check() const;
};

struct TrainSpec {
  OptimizerSpec optimizer;
  std::vector<ParameterGroup> groups{};
  ClipSpec clip{};
  AverageSpec average{};
  std::optional<double> clip_global_norm{};
  /// Explicit gradients, variable name → gradient value; empty = those of the loss for every trainable variable. A
  /// variable that was frozen since keeps its value.
  std::map<std::string, ValueId, std::less<>> gradients{};

  /// Null when the variable is in none.
  const ParameterGroup *group_of(std::string_view variable) const;
};

/// A scalar that the host can set while training, read as state entry host/<name>.
struct HostScalarSpec {
  std::string name;
  double initial = 0;
};

enum class SummaryKind : uint8_t { scalar, histogram, image, text };

/// What a model shows of itself, for people: of steps that are looked at, and of evaluations.
struct SummarySpec {
  SummaryKind kind = SummaryKind::scalar;
  std::string name;
  ValueId value = kNoValue;  ///< none of a text
  bool has_rows = false;     ///< it carries the batch: parts of a batch have parts of it
  bool is_known = false;     ///< a tensor of floating point numbers that follows from no batch, such as a weight
  int64_t most_images = 3;   ///< of a batch
  std::string text{};
};

struct Model {
  Model();
  Model(const Model &other);
  Model(Model &&other) noexcept;
  Model &operator=(const Model &other);
  Model &operator=(Model &&other) noexcept;
  ~Model();

  Graph graph;
  std::vector<InputSpec> features;
  std::vector<InputSpec> labels;
  std::vector<VariableSpec> variables;                      // in order of creation
  std::map<std::string, ValueId, std::less<>> outputs;      // predictions; rows on axis 0
  std::map<std::string, ValueId, std::less<>> metrics;      // without rows
  std::map<std::string, ValueId, std::less<>> assignments;  // variable name → its new value
  ValueId loss = kNoValue;                                  // scalar; absent for PREDICT
  std::vector<SummarySpec> summaries{};                     // by different names; none for PREDICT
  std::optional<TrainSpec> train;
  std::vector<HostScalarSpec> host_scalars;

  const VariableSpec *find_variable(std::string_view variable_name) const;
  const InputSpec *find_feature(std::string_view feature_name) const;
  const SummarySpec *find_summary(std::string_view summary_name) const;
};

/// The part of a model that prediction needs: nodes, features and variables its outputs depend on. Value ids change.
base::Result<Model> predict_model(const Model &model);

}  // namespace tutti::impl::graph

#endif  // TUTTI_GRAPH_MODEL_H_
