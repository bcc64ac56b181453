// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "backend/cpu/attributes.h"
#include "backend/cpu/layouts.h"
#include "backend/cpu/lower.h"
#include "backend/cpu/simd_update.h"

namespace tutti::impl::backend::cpu {

using graph::Node;
using graph::ValueId;
using tensor::DType;

namespace {

constexpr const char *kScalarNames[] = {"step",      "batch_counter", "row_offset", "local_rows",
                                        "step_rows", "first_flag",    "seed",       "iteration"};

bool all_f32(const Lowering &l, const Node &node, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    if (!l.is_f32(node.inputs[i])) return false;
  }
  return true;
}

/// How the arrays of an update lie: as the variable does in state. All elements of the storage are updated; where a
/// layout pads, gradients are zero.
struct Storage {
  std::string layout;
  int64_t elements = 0;
};

Storage storage_of(const Lowering &l, const Node &node) {
  const StateEntry *entry = l.entry_of(node.inputs[0]);
  const std::string layout = entry == nullptr ? std::string() : entry->layout;
  const LoweredValue &value = l.value(node.inputs[0]);
  return {layout, layout.empty() ? value.elements : storage_bytes(value, layout) / int64_t{sizeof(float)}};
}

/// The learning rate may be f32 or f64.
struct Rate {
  BufferId buffer = -1;
  bool is_double = false;

  double get(const RunContext &c) const {
    if (is_double) return *static_cast<const double *>(c.buffers[buffer]);
    return static_cast<double>(*c.in(buffer));
  }
};

Rate read_rate(Lowering &l, ValueId id) { return {l.read(id), l.value(id).dtype == DType::f64}; }

bool has_rate_dtype(const Lowering &l, ValueId id) {
  return l.value(id).dtype == DType::f32 || l.value(id).dtype == DType::f64;
}

bool is_ok(const RunContext &c, BufferId ok) { return *static_cast<const uint8_t *>(c.buffers[ok]) != 0; }

/// What an update leaves when it may not happen: its inputs.
void keep(const RunContext &c, BufferId from, BufferId to, Range r) {
  if (c.buffers[from] == c.buffers[to]) return;
  std::memmove(c.out(to) + r.begin, c.in(from) + r.begin, static_cast<size_t>(r.size()) * sizeof(float));
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

bool lower_sgd_update(Lowering &l, const Node &node) {
  if (!all_f32(l, node, 2) || !has_rate_dtype(l, node.inputs[2])) return false;
  const auto &[layout, n] = storage_of(l, node);
  const BufferId w = l.read(node.inputs[0], layout), g = l.read(node.inputs[1], layout);
  const Rate rate = read_rate(l, node.inputs[2]);
  const BufferId ok = l.read(node.inputs[3]);
  const BufferId w_out = l.write(node.outputs[0], layout, {node.inputs[0]}, true);
  const auto decay = static_cast<float>(number(node, "weight_decay"));
  l.emit_ranges("simd:sgd", n, grain_of(2), [=](const RunContext &c, Range r) {
    if (!is_ok(c, ok)) return keep(c, w, w_out, r);
    const int64_t at = r.begin;
    sgd_update({static_cast<float>(rate.get(c)), decay}, r.size(), c.in(w) + at, c.in(g) + at, c.out(w_out) + at);
  });
  return true;
}

bool lower_momentum_update(Lowering &l, const Node &node) {
  if (!all_f32(l, node, 3) || !has_rate_dtype(l, node.inputs[3])) return false;
  const auto &[layout, n] = storage_of(l, node);
  const BufferId w = l.read(node.inputs[0], layout), g = l.read(node.inputs[1], layout);
  const BufferId v = l.read(node.inputs[2], layout);
  const Rate rate = read_rate(l, node.inputs[3]);
  const BufferId ok = l.read(node.inputs[4]);
  const BufferId w_out = l.write(node.outputs[0], layout, {node.inputs[0]}, true);
  const BufferId v_out = l.write(node.outputs[1], layout, {node.inputs[2]}, true);
  MomentumRule rule;
  rule.momentum = static_cast<float>(number(node, "momentum"));
  rule.weight_decay = static_cast<float>(number(node, "weight_decay"));
  rule.nesterov = flag(node, "nesterov");
  l.emit_ranges("simd:momentum", n, grain_of(3), [=](const RunContext &c, Range r) {
    if (!is_ok(c, ok)) {
      keep(c, w, w_out, r);
      return keep(c, v, v_out, r);
    }
    MomentumRule now = rule;
    now.learning_rate = static_cast<float>(rate.get(c));
    const int64_t at = r.begin;
    momentum_update(now, r.size(), c.in(w) + at, c.in(g) + at, c.in(v) + at, c.out(w_out) + at, c.out(v_out) + at);
  });
  return true;
}

bool lower_adam_update(Lowering &l, const Node &node) {
  if (!all_f32(l, node, 4) || !has_rate_dtype(l, node.inputs[4])) return false;
  const auto &[layout, n] = storage_of(l, node);
  BufferId in[4], out[3];
  for (size_t i = 0; i < 4; ++i)
    in[i] = l.read(node.inputs[i], layout);
  const Rate rate = read_rate(l, node.inputs[4]);
  const BufferId iteration = l.read(node.inputs[5]), ok = l.read(node.inputs[6]);
  out[0] = l.write(node.outputs[0], layout, {node.inputs[0]}, true);
  out[1] = l.write(node.outputs[1], layout, {node.inputs[2]}, true);
  out[2] = l.write(node.outputs[2], layout, {node.inputs[3]}, true);
  const double beta1 = number(node, "beta1"), beta2 = number(node, "beta2");
  const double epsilon = number(node, "epsilon"), decay = number(node, "weight_decay");
  const BufferId w = in[0], g = in[1], m = in[2], v = in[3], w_out = out[0], m_out = out[1], v_out = out[2];
  l.emit_ranges("simd:adam", n, grain_of(4), [=](const RunContext &c, Range r) {
    if (!is_ok(c, ok)) {
      keep(c, w, w_out, r);
      keep(c, m, m_out, r);
      return keep(c, v, v_out, r);
    }
    const int64_t t = *static_cast<const int64_t *>(c.buffers[iteration]);
    const AdamRule rule = AdamRule::at(rate.get(c), beta1, beta2, epsilon, decay, t);
    const int64_t at = r.begin;
    adam_update(rule, r.size(), c.in(w) + at, c.in(g) + at, c.in(m) + at, c.in(v) + at, c.out(w_out) + at,
                c.out(m_out) + at, c.out(v_out) + at);
  });
  return true;
}

}  // namespace tutti::impl::backend::cpu
