// SPDX-License-Identifier: Apache-2.0
//
// Optimizer rules, element by element; results may lie on top of the inputs they replace.
#include <cmath>
#include <cstring>

#include "backend/reference/elements.h"
#include "backend/reference/kernels.h"
#include "graph/ops/op_attributes.h"

namespace tutti::impl::backend::reference {

using base::Result;
using base::Status;
using tensor::DType;

namespace {

struct UpdatePlan {
  int64_t count = 0;
  DType weight{}, gradient{}, slot{}, rate{};
  int32_t rate_input = 0, ok_input = 0;
};

/// Inputs: w, g, slots..., then scalars that end with ok.
UpdatePlan update_plan(const KernelRequest &request, int32_t rate_input) {
  UpdatePlan plan;
  plan.count = request.output(0).elements;
  plan.weight = request.input(0).dtype;
  plan.gradient = request.input(1).dtype;
  plan.slot = request.input(2).dtype;
  plan.rate_input = rate_input;
  plan.rate = request.input(static_cast<size_t>(rate_input)).dtype;
  plan.ok_input = static_cast<int32_t>(request.input_count()) - 1;
  return plan;
}

/// Not ok: every result is the input it replaces.
void keep(const UpdatePlan &plan, const Frame &frame, int32_t slots) {
  const size_t bytes = static_cast<size_t>(plan.count) * tensor::size_bytes(plan.weight);
  const size_t slot_bytes = static_cast<size_t>(plan.count) * tensor::size_bytes(plan.slot);
  if (plan.count == 0) return;
  std::memmove(frame.output(0), frame.input(0), bytes);
  for (int32_t slot = 0; slot < slots; ++slot)
    std::memmove(frame.output(1 + slot), frame.input(2 + slot), slot_bytes);
}

/// Calls rule(w, g, first slot, second slot) for each element, as doubles, and stores what it leaves in w and the
/// slots.
template <int32_t Slots, typename Rule>
void update(const UpdatePlan &plan, const Frame &frame, Rule rule) {
  if (!*frame.input_as<bool>(plan.ok_input)) return keep(plan, frame, Slots);
  for_runs(plan.count, [&](int64_t first, int64_t length) {
    double w[kRun], g[kRun], slots[2][kRun];
    load(plan.weight, frame.input(0), first, 1, length, w);
    load(plan.gradient, frame.input(1), first, 1, length, g);
    for (int32_t slot = 0; slot < Slots; ++slot)
      load(plan.slot, frame.input(2 + slot), first, 1, length, slots[slot]);
    for (int64_t i = 0; i < length; ++i)
      rule(w[i], g[i], slots[0][i], slots[1][i]);
    store(plan.weight, frame.output(0), first, length, w);
    for (int32_t slot = 0; slot < Slots; ++slot)
      store(plan.slot, frame.output(1 + slot), first, length, slots[slot]);
  });
}

}  // namespace

Result<Kernel> make_sgd_update(KernelRequest &request) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::SgdUpdateAttributes::from(request.node));
  return Kernel([plan = update_plan(request, 2), decay = attributes.weight_decay](const Frame &frame) {
    const double rate = load_one(plan.rate, frame.input(plan.rate_input));
    update<0>(plan, frame, [=](double &w, double g, double &, double &) { w -= rate * (g + decay * w); });
    return Status();
  });
}

Result<Kernel> make_momentum_update(KernelRequest &request) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::MomentumUpdateAttributes::from(request.node));
  return Kernel([plan = update_plan(request, 3), decay = attributes.weight_decay, momentum = attributes.momentum,
                 is_nesterov = attributes.nesterov](const Frame &frame) {
    const double rate = load_one(plan.rate, frame.input(plan.rate_input));
    update<1>(plan, frame, [=](double &w, double g, double &velocity, double &) {
      const double step = g + decay * w;
      velocity = momentum * velocity + step;
      w -= rate * (is_nesterov ? step + momentum * velocity : velocity);
    });
    return Status();
  });
}

Result<Kernel> make_adam_update(KernelRequest &request) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::AdamUpdateAttributes::from(request.node));
  return Kernel([plan = update_plan(request, 4), beta1 = attributes.beta1, beta2 = attributes.beta2,
                 epsilon = attributes.epsilon, decay = attributes.weight_decay](const Frame &frame) {
    const double rate = load_one(plan.rate, frame.input(plan.rate_input));
    const double iteration = static_cast<double>(*frame.input_as<int64_t>(5));
    const double correction1 = 1 - std::pow(beta1, iteration), correction2 = 1 - std::pow(beta2, iteration);
    update<2>(plan, frame, [=](double &w, double g, double &m, double &v) {
      m = beta1 * m + (1 - beta1) * g;
      v = beta2 * v + (1 - beta2) * g * g;
      w -= rate * (m / correction1 / (std::sqrt(v / correction2) + epsilon) + decay * w);
    });
    return Status();
  });
}

}  // namespace tutti::impl::backend::reference
