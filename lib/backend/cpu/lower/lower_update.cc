// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <span>
#include <vector>

#include "backend/cpu/lower/lower.h"
#include "backend/cpu/lower/variable_update.h"
#include "backend/cpu/shapes/attributes.h"
#include "base/text.h"

namespace tutti::impl::backend::cpu {

using graph::Node;
using graph::ValueId;
using tensor::DType;

namespace {

constexpr const char *kScalarNames[] = {"step",       "batch_counter", "row_offset", "local_rows", "step_rows",
                                        "first_flag", "seed",          "iteration",  "data_faults"};

using Gradients = std::vector<BufferId>;

/// The gradients that a group adds up for its update: one that is computed elsewhere, or the operands of its adds.
Gradients read_gradients(Lowering &l, const Group &group) {
  const Node &update = l.graph().step(group.steps.back());
  const std::string layout = VariableUpdate::layout(l, update);
  if (group.steps.size() == 1) return {l.read(gradient_of(update), layout)};
  Gradients gradients = {l.read(l.graph().step(group.steps.front()).inputs[0], layout)};
  for (size_t i = 0; i + 1 < group.steps.size(); ++i)
    gradients.push_back(l.read(l.graph().step(group.steps[i]).inputs[1], layout));
  return gradients;
}

}  // namespace

bool lower_run_scalar(Lowering &l, const Node &node) {
  const std::string kind = text(node, "kind");
  size_t which = 0;
  while (which < TUTTI_RUN_SCALAR_COUNT && kind != kScalarNames[which])
    ++which;
  if (which == TUTTI_RUN_SCALAR_COUNT) return false;
  const BufferId y = l.write(node.outputs[0]);
  switch (l.value(node.outputs[0]).dtype) {
    case DType::i64:
      l.emit("run_scalar", [=](const RunContext &c) { *static_cast<int64_t *>(c.buffers[y]) = c.scalars[which]; });
      return true;
    case DType::f64:
      l.emit("run_scalar", [=](const RunContext &c) {
        *static_cast<double *>(c.buffers[y]) = static_cast<double>(c.scalars[which]);
      });
      return true;
    default:
      l.emit("run_scalar", [=](const RunContext &c) { *c.out(y) = static_cast<float>(c.scalars[which]); });
      return true;
  }
}

bool lower_update(Lowering &l, const Group &group) {
  const Node &node = l.graph().step(group.steps.back());
  if (!VariableUpdate::suits(l.graph(), node)) return false;
  const Gradients gradients = read_gradients(l, group);
  const VariableUpdate variable(l, node);
  const auto count = static_cast<int32_t>(gradients.size());
  l.emit_ranges(base::concat("simd:", variable.name(), count > 1 ? "+sum" : ""), variable.elements(),
                grain_of(variable.array_count() + count - 1), [=](const RunContext &c, Range r) {
                  if (!variable.is_allowed(c)) return variable.keep(c, r);
                  std::array<const float *, kMaximumGradients> at;
                  for (size_t i = 0; i < gradients.size(); ++i)
                    at[i] = c.in(gradients[i]) + r.begin;
                  update(variable.rule(c), r.size(), std::span(at).first(gradients.size()),
                         variable.arrays(c, r.begin));
                });
  return true;
}

}  // namespace tutti::impl::backend::cpu
