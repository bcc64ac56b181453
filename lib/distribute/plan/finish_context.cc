// SPDX-License-Identifier: Apache-2.0
#include "distribute/plan/finish_context.h"

#include <algorithm>

#include "distribute/plan/step_writes.h"
#include "distribute/plan/weight_constraints.h"
#include "graph/update_rule.h"

namespace tutti::impl::distribute {

using graph::Dim;
using graph::Dims;
using graph::ValueId;
using tensor::DType;

void FinishContext::report(const std::string &name, ValueId value) {
  builder.state_write(value, "report/" + name);
  reports.push_back(report_spec(builder, name, value));
}

static Dims slice_dims(const FinishContext &context, const std::string &variable, graph::SlotPer per) {
  const graph::Model &model = context.traits.model;
  const graph::VariableSpec &spec = *model.find_variable(variable);
  Dims whole = graph::to_dims(spec.dims);
  if (context.parts.rows.has(variable) && context.traits.options.slices > 1)
    whole[0] = Dim::symbol(rows_symbol(variable));
  if (context.traits.joined || context.parts.rows.has(variable)) return graph::slot_dims(per, whole);
  if (spec.constraint.has_norms() || graph::is_stack(model, spec))
    return graph::slot_dims(per, undivided_dims(model, spec));
  if (const auto matrix = graph::matrix_of(model, spec))
    return {Dim::symbol(rows_symbol(variable)), Dim(matrix->back())};
  if (context.parts.factored.has(variable)) return context.parts.factored.slice_dims(variable);
  return {Dim::symbol("slice." + variable)};
}

ValueId FinishContext::read_slice(const std::string &entry, const std::string &variable, graph::SlotPer per) {
  const auto written =
      std::find_if(parts.written.begin(), parts.written.end(), [&](const auto &one) { return one.name == entry; });
  const DType dtype = written == parts.written.end() ? traits.model.find_variable(variable)->dtype : written->dtype;
  return builder.state_read(entry, dtype, slice_dims(*this, variable, per));
}

ValueId FinishContext::read_total(const std::string &entry, const std::string &variable) {
  if (!traits.options.sums_in_finish) return read_slice(entry, variable);
  ValueId total = read_slice(of_contributor(0, entry), variable);
  for (int32_t c = 1; c < traits.options.contributors; ++c)
    total = builder.add(total, read_slice(of_contributor(c, entry), variable));
  return total;
}

ValueId FinishContext::is_finite(ValueId scalar) {
  return builder.op("equal", {builder.sub(scalar, scalar), builder.constant(0.0, builder.dtype(scalar))});
}

}  // namespace tutti::impl::distribute
