// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/lower/lower.h"
#include "backend/cpu/shapes/attributes.h"
#include "backend/cpu/simd/simd_random.h"
#include "backend/random_elements.h"

namespace tutti::impl::backend::cpu {

using graph::Node;
using graph::ValueId;

namespace {

/// A random number costs as much as so many elements that are moved.
constexpr int64_t kRandomCost = 4;

/// Some of the rows of one run. Only for values whose rows lie one after the other (outer is 1).
RandomArray array_of(const RandomRows &rows, const int64_t *scalars, Range range) {
  RandomArray array;
  array.key = rows.key(scalars).value;
  array.row_step = rows.has_batch ? 1 : 0;
  array.first_row = rows.global_row(0, scalars) + static_cast<uint64_t>(range.begin) * array.row_step;
  array.rows = range.size();
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
  const int64_t width = rows.elements_per_row();
  l.emit_ranges("simd:dropout", rows.rows, grain_of(kRandomCost * width), [=](const RunContext &c, Range range) {
    const int64_t at = range.begin * width;
    random_dropout(array_of(rows, c.scalars, range), rate, c.in(in) + at, c.out(out) + at);
  });
  return true;
}

bool lower_random_uniform(Lowering &l, const Node &node) {
  const ValueId y = node.outputs[0];
  const RandomRows rows = RandomRows::of(l.graph(), node, integer(node, "key"));
  const bool is_unit = number(node, "low") == 0.0 && number(node, "high") == 1.0;
  if (!l.is_f32(y) || rows.outer != 1 || !is_unit) return false;
  const BufferId out = l.write(y);
  const int64_t width = rows.elements_per_row();
  l.emit_ranges("simd:random_uniform", rows.rows, grain_of(kRandomCost * width), [=](const RunContext &c, Range range) {
    random_uniform(array_of(rows, c.scalars, range), c.out(out) + range.begin * width);
  });
  return true;
}

bool lower_random_normal(Lowering &l, const Node &node) {
  const ValueId y = node.outputs[0];
  const RandomRows rows = RandomRows::of(l.graph(), node, integer(node, "key"));
  if (!l.is_f32(y) || rows.outer != 1) return false;
  const bool is_truncated = node.op == "random_truncated_normal";
  const double mean = number(node, "mean"), deviation = number(node, "stddev");
  const BufferId out = l.write(y);
  const int64_t width = rows.elements_per_row();
  l.emit_ranges("simd:" + node.op, rows.rows, grain_of(kRandomCost * width), [=](const RunContext &c, Range range) {
    random_normal(array_of(rows, c.scalars, range), is_truncated, mean, deviation, c.out(out) + range.begin * width);
  });
  return true;
}

}  // namespace tutti::impl::backend::cpu
