// SPDX-License-Identifier: Apache-2.0
#include "distribute/plan/finish_gradients.h"

#include <string>
#include <vector>

#include "distribute/plan/loss_scale.h"

namespace tutti::impl::distribute {

using base::Result;
using base::Status;
using graph::kNoValue;
using graph::NodeCloner;
using graph::ValueId;
using graph::VariableSpec;
using tensor::DType;

/// By gradient set; no value: 1.
static Result<std::vector<ValueId>> coefficients_of(FinishContext &finish, NodeCloner &tail) {
  const std::vector<ValueId> &coefficients = finish.parts.coefficients;
  std::vector<ValueId> cloned(coefficients.size(), kNoValue);
  for (size_t set = 0; set < coefficients.size(); ++set) {
    if (coefficients[set] == kNoValue) continue;
    TUTTI_ASSIGN(const ValueId coefficient, tail.clone_value(coefficients[set]));
    cloned[set] = finish.builder.reshape(coefficient, {});
    finish.report("coefficient/" + std::to_string(set), cloned[set]);
  }
  return cloned;
}

/// The sum of a variable's gradients in these sets.
static ValueId total_gradient(FinishContext &finish, const VariableSpec &variable, const std::vector<size_t> &sets,
                              const std::vector<ValueId> &coefficients) {
  graph::GraphBuilder &builder = finish.builder;
  FactoredGradients &factored = finish.parts.factored;
  ValueId total = kNoValue;
  for (const size_t set : sets) {
    ValueId part = factored.has(variable.name) ? factored.product(builder, variable.name)
                                               : finish.read_total(gradient_entry(set, variable.name), variable.name);
    if (sets.size() > 1) part = builder.cast(part, variable.dtype);
    if (coefficients[set] != kNoValue)
      part = builder.mul(builder.cast(part, variable.dtype), builder.cast(coefficients[set], variable.dtype));
    total = total == kNoValue ? part : builder.add(total, part);
  }
  return total;
}

Result<VariableGradients> combine_gradients(FinishContext &finish, NodeCloner &tail) {
  TUTTI_ASSIGN(const std::vector<ValueId> coefficients, coefficients_of(finish, tail));
  VariableGradients gradients;
  for (const VariableSpec &variable : finish.traits.model.variables) {
    const auto sets = finish.parts.sets_of.find(variable.name);
    if (sets == finish.parts.sets_of.end()) continue;
    const bool is_of_rows = finish.parts.rows.has(variable.name);
    gradients.emplace_back(
        &variable,
        is_of_rows
            ? finish.parts.rows.merge(finish.builder, variable, coefficients, finish.traits.options.slices > 1).sums
            : total_gradient(finish, variable, sets->second, coefficients));
  }
  TUTTI_TRY(finish.builder.status());
  return gradients;
}

Status unscale_gradients(FinishContext &finish, VariableGradients &gradients) {
  if (!finish.traits.scales_loss() || gradients.empty()) return Status();
  graph::GraphBuilder &builder = finish.builder;
  const ValueId scale = builder.state_read(std::string(loss_scale_entry), DType::f32, {});
  finish.reports.push_back({std::string(loss_scale_entry), Arena::report, DType::f32, {}, ""});
  const ValueId factor = builder.div(builder.constant(1.0, DType::f32), scale);
  ValueId finite = kNoValue;
  for (auto &[variable, gradient] : gradients) {
    gradient = builder.mul(builder.cast(gradient, variable->dtype), builder.cast(factor, variable->dtype));
    const ValueId part = builder.unary("all_finite", gradient);
    finite = finite == kNoValue ? part : builder.op("logical_and", {finite, part});
  }
  if (finish.traits.options.slices > 1) {
    finite = builder.op("all_reduce", {builder.cast(finite, DType::f32)},
                        {{"kind", std::string("min")}, {"label", std::string("finite gradients")}});
    finite = builder.cast(finite, DType::boolean);
  }
  finish.require(finite);
  return builder.status();
}

}  // namespace tutti::impl::distribute
