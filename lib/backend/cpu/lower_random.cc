// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/attributes.h"
#include "backend/cpu/lower.h"
#include "backend/cpu/simd_random.h"
#include "backend/random_elements.h"

namespace tutti::impl::backend::cpu {

using graph::Node;
using graph::ValueId;

namespace {

/// The rows of one run. Only for values whose rows lie one after the other (outer is 1).
RandomArray array_of(const RandomRows &rows, const int64_t *scalars) {
  RandomArray array;
  array.key = rows.key(scalars).value;
  array.first_row = rows.global_row(0, scalars);
  array.row_step = rows.has_batch ? 1 : 0;
  array.rows = rows.rows;
  array.width = rows.elements_per_row();
  return array;
}

}  // namespace

bool lower_dropout(Lowering &l, const Node &node) {
  const ValueId x = node.inputs[0];
  const RandomRows rows = RandomRows::of(l.graph(), node, integer(node, "key"));
  if (!l.is_f32(x) || rows.outer != 1) return false;
  const double rate = number(node, "rate");
  const BufferId in = l.read(x);
  const BufferId out = l.write(node.outputs[0], "", {x});
  l.emit("simd:dropout",
         [=](const RunContext &c) { random_dropout(array_of(rows, c.scalars), rate, c.in(in), c.out(out)); });
  return true;
}

bool lower_random_uniform(Lowering &l, const Node &node) {
  const ValueId y = node.outputs[0];
  const RandomRows rows = RandomRows::of(l.graph(), node, integer(node, "key"));
  const bool is_unit = number(node, "low") == 0.0 && number(node, "high") == 1.0;
  if (!l.is_f32(y) || rows.outer != 1 || !is_unit) return false;
  const BufferId out = l.write(y);
  l.emit("simd:random_uniform", [=](const RunContext &c) { random_uniform(array_of(rows, c.scalars), c.out(out)); });
  return true;
}

}  // namespace tutti::impl::backend::cpu
