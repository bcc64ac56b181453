// SPDX-License-Identifier: Apache-2.0
//
// Rules of update that are written as graphs: the op update_rule, whose region computes a variable's new value and
// slots. The region is written once, over arrays [elements], matrices [rows, columns] or stacks [matrices, rows,
// columns] of one dtype, and copied into the finish graph of a step for each variable, or for the slice of it that a
// contributor updates. Slots are such arrays, too; with a stack some may be [matrices, rows] or [matrices, columns].
//
//   parameters  weight, gradient, learning rate, weight decay, number of the update (i64, from 1), slots, captures
//   results     the new weight, the new slots
//
// Threads: functions without state.
#ifndef TUTTI_GRAPH_UPDATE_RULE_H_
#define TUTTI_GRAPH_UPDATE_RULE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "graph/builder.h"
#include "graph/model.h"

namespace tutti::impl::graph {

inline constexpr std::string_view kUpdateRule = "update_rule";
/// Dimensions of the arrays in the region.
inline constexpr std::string_view kElementsSymbol = "elements", kRowsSymbol = "rows", kColumnsSymbol = "columns",
                                  kMatricesSymbol = "matrices";

/// Positions among the parameters of the region; slots and captures follow.
enum class RuleParameter : size_t { weight, gradient, learning_rate, weight_decay, iteration, slots };
constexpr size_t at(RuleParameter parameter) { return static_cast<size_t>(parameter); }

/// What variables come as. Those with two axes or more have as many columns as their last axis; in a stack a matrix has
/// as many rows as the axis before it, else all axes before it count rows.
enum class RuleView { vector, matrix, wide_matrix, stack };

/// What the attributes of a rule say.
struct RuleSettings {
  RuleView view = RuleView::vector;
  std::vector<SlotSpec> slots;
  double weight_decay = 0;
  tensor::DType dtype = tensor::DType::f32;
  bool lazy = false, keeps_unreached = false;  ///< as in OptimizerSpec
  ClipSpec clip;
  AverageSpec average;

  /// INVALID_ARGUMENT for a slot without a name or with that of another, for initial values that are not one for each
  /// slot, for slots of rows or columns where there is no stack, and for a dtype that rules are not written for.
  static base::Result<RuleSettings> from(const Node &rule);
};

/// The region's own parameters.
base::Result<std::vector<ValueInfo>> rule_parameters(const Node &rule);

/// Of the arrays of its region.
tensor::DType rule_dtype(const Graph &graph, const Node &rule);
/// Which of the optimizer's rules is for a variable; f16 and bf16 ones are computed in f32. INVALID_ARGUMENT when there
/// is none of its dtype.
base::Result<size_t> rule_for(const Model &model, const VariableSpec &variable);
/// Slots that the optimizer keeps for a variable.
std::vector<SlotSpec> slots_for(const Model &model, const VariableSpec &variable);
/// What the optimizer's rule takes a variable as, where that is a matrix or a stack.
std::optional<std::vector<int64_t>> matrix_of(const Model &model, const VariableSpec &variable);
/// Is that a stack?
bool is_stack(const Model &model, const VariableSpec &variable);

/// Of a slot, where those of its variable, or of what that is taken as, are these. Two at least, unless it has a value
/// for each element.
template <typename Extent>
std::vector<Extent> slot_dims(SlotPer per, std::vector<Extent> dims) {
  if (per != SlotPer::element) dims.erase(dims.end() - (per == SlotPer::row ? 1 : 2));
  return dims;
}

/// What a rule may be given.
struct RuleNeeds {
  /// All elements of a variable at once: the rule reduces them, or does more than compute element by element.
  bool whole = false;
  /// One axis, in row-major order: the rule has ops other than element by element and reductions of everything.
  bool flat = false;
};
RuleNeeds needs_of(const Graph &graph, const Node &rule);

/// Copies the region into a builder. `arguments` stand for all its parameters; arrays may have any one shape unless the
/// rule is flat, matrices have two axes, and stacks three. Gives the results.
base::Result<std::vector<ValueId>> inline_rule(const Graph &graph, const Node &rule, GraphBuilder &destination,
                                               std::span<const ValueId> arguments);

}  // namespace tutti::impl::graph

#endif  // TUTTI_GRAPH_UPDATE_RULE_H_
