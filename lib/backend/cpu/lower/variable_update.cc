// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/lower/variable_update.h"

#include <cstring>

#include "backend/cpu/dnnl/layouts.h"
#include "backend/cpu/shapes/attributes.h"

namespace tutti::impl::backend::cpu {

using graph::Node;
using graph::ValueId;
using tensor::DType;

namespace {

constexpr size_t kWeightInput = 0, kGradientInput = 1, kFirstSlotInput = 2;

struct OpForm {
  std::string_view op, name;
  int32_t slots;
  bool counts;  // takes the iteration
};

constexpr OpForm kForms[] = {
    {"sgd_update", "sgd", 0, false}, {"momentum_update", "momentum", 1, false}, {"adam_update", "adam", 2, true}};

const OpForm *form_of(std::string_view op) {
  for (const OpForm &form : kForms) {
    if (form.op == op) return &form;
  }
  return nullptr;
}

}  // namespace

bool is_update(std::string_view op) { return form_of(op) != nullptr; }

ValueId gradient_of(const Node &update) { return update.inputs[kGradientInput]; }

bool VariableUpdate::suits(const LoweredGraph &graph, const Node &node) {
  const auto arrays = kFirstSlotInput + static_cast<size_t>(form_of(node.op)->slots);
  for (size_t i = 0; i < arrays; ++i) {
    if (graph.value(node.inputs[i]).dtype != DType::f32) return false;
  }
  const DType rate = graph.value(node.inputs[arrays]).dtype;
  return rate == DType::f32 || rate == DType::f64;
}

std::string VariableUpdate::layout(const Lowering &l, const Node &node) {
  const StateEntry *entry = l.entry_of(node.inputs[kWeightInput]);
  return entry == nullptr ? std::string() : entry->layout;
}

VariableUpdate::VariableUpdate(Lowering &l, const Node &node) {
  const OpForm &form = *form_of(node.op);
  const std::string where = layout(l, node);
  const LoweredValue &variable = l.value(node.inputs[kWeightInput]);
  name_ = form.name;
  slot_count_ = form.slots;
  elements_ = where.empty() ? variable.elements : storage_bytes(variable, where) / static_cast<int64_t>(sizeof(float));
  weight_ = l.read(node.inputs[kWeightInput], where);
  size_t input = kFirstSlotInput;
  for (int32_t i = 0; i < slot_count_; ++i)
    slots_[i] = l.read(node.inputs[input++], where);
  rate_is_double_ = l.value(node.inputs[input]).dtype == DType::f64;
  rate_ = l.read(node.inputs[input++]);
  if (form.counts) iteration_ = l.read(node.inputs[input++]);
  ok_ = l.read(node.inputs[input]);
  weight_out_ = l.write(node.outputs[0], where, {node.inputs[kWeightInput]}, true);
  for (int32_t i = 0; i < slot_count_; ++i) {
    const auto at = static_cast<size_t>(i);
    slots_out_[i] = l.write(node.outputs[at + 1], where, {node.inputs[kFirstSlotInput + at]}, true);
  }
  decay_ = number(node, "weight_decay");
  if (slot_count_ == 0) rule_ = SgdRule{0, static_cast<float>(decay_)};
  if (slot_count_ == 1) {
    rule_ = MomentumRule{0, static_cast<float>(number(node, "momentum")), static_cast<float>(decay_),
                         flag(node, "nesterov")};
  }
  if (slot_count_ < 2) return;
  beta1_ = number(node, "beta1"), beta2_ = number(node, "beta2"), epsilon_ = number(node, "epsilon");
  rule_ = AdamRule{};
}

void VariableUpdate::keep(const RunContext &context, Range range) const {
  const auto keep_one = [&](BufferId from, BufferId to) {
    if (context.buffers[from] == context.buffers[to]) return;
    std::memmove(context.out(to) + range.begin, context.in(from) + range.begin,
                 static_cast<size_t>(range.size()) * sizeof(float));
  };
  keep_one(weight_, weight_out_);
  for (int32_t i = 0; i < slot_count_; ++i)
    keep_one(slots_[i], slots_out_[i]);
}

double VariableUpdate::learning_rate(const RunContext &context) const {
  if (rate_is_double_) return *static_cast<const double *>(context.buffers[rate_]);
  return static_cast<double>(*context.in(rate_));
}

UpdateRule VariableUpdate::rule(const RunContext &context) const {
  const double rate = learning_rate(context);
  UpdateRule rule = rule_;
  if (auto *sgd = std::get_if<SgdRule>(&rule)) sgd->learning_rate = static_cast<float>(rate);
  if (auto *momentum = std::get_if<MomentumRule>(&rule)) momentum->learning_rate = static_cast<float>(rate);
  if (iteration_ < 0) return rule;
  const int64_t iteration = *static_cast<const int64_t *>(context.buffers[iteration_]);
  return AdamRule::at(rate, beta1_, beta2_, epsilon_, decay_, iteration);
}

UpdateArrays VariableUpdate::arrays(const RunContext &context, int64_t first) const {
  UpdateArrays arrays;
  arrays.weight = context.in(weight_) + first;
  arrays.weight_out = context.out(weight_out_) + first;
  for (int32_t i = 0; i < slot_count_; ++i) {
    arrays.slots[i] = context.in(slots_[i]) + first;
    arrays.slots_out[i] = context.out(slots_out_[i]) + first;
  }
  return arrays;
}

}  // namespace tutti::impl::backend::cpu
