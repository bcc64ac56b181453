// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/attributes.h"
#include "backend/cpu/lower.h"
#include "backend/cpu/variable_update.h"
#include "base/text.h"

namespace tutti::impl::backend::cpu {

using graph::Node;
using graph::ValueId;
using tensor::DType;

namespace {

constexpr const char *kScalarNames[] = {"step",      "batch_counter", "row_offset", "local_rows",
                                        "step_rows", "first_flag",    "seed",       "iteration"};

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

bool lower_update(Lowering &l, const Node &node) {
  if (!VariableUpdate::suits(l.graph(), node)) return false;
  const BufferId gradient = l.read(gradient_of(node), VariableUpdate::layout(l, node));
  const VariableUpdate variable(l, node);
  l.emit_ranges(base::concat("simd:", variable.name()), variable.elements(), grain_of(variable.array_count()),
                [=](const RunContext &c, Range r) {
                  if (!variable.is_allowed(c)) return variable.keep(c, r);
                  update(variable.rule(c), r.size(), c.in(gradient) + r.begin, variable.arrays(c, r.begin));
                });
  return true;
}

}  // namespace tutti::impl::backend::cpu
