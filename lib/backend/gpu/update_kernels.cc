// SPDX-License-Identifier: Apache-2.0
//
// Optimizer rules. Inputs are w, g, slots, then the scalars: learning rate, (adam:) iteration, ok.
#include "backend/gpu/device_update.h"
#include "backend/gpu/kernels.h"
#include "graph/ops/op_attributes.h"

namespace tutti::impl::backend::gpu {

using base::Result;

namespace {

template <typename Rule>
Kernel update_kernel(const KernelRequest &request, int32_t slots, const Rule &rule) {
  const int32_t rate = 2 + slots, ok = static_cast<int32_t>(request.input_count()) - 1;
  UpdateArrays arrays{};
  arrays.count = request.output(0).elements;
  arrays.weight_dtype = request.input(0).dtype;
  arrays.gradient_dtype = request.input(1).dtype;
  arrays.slot_dtype = request.input(2).dtype;
  arrays.rate_dtype = request.input(static_cast<size_t>(rate)).dtype;
  return [=](const Frame &frame) {
    UpdateArrays placed = arrays;
    placed.weight = frame.input(0);
    placed.gradient = frame.input(1);
    placed.weight_out = frame.output(0);
    for (int32_t slot = 0; slot < slots; ++slot) {
      placed.slots[slot] = frame.input(2 + slot);
      placed.slots_out[slot] = frame.output(1 + slot);
    }
    placed.rate = frame.input(rate);
    placed.iteration = rate + 1 < ok ? frame.input_as<int64_t>(rate + 1) : nullptr;
    placed.ok = frame.input_as<bool>(ok);
    return status_of(launch_update(placed, rule, frame.stream()), "launching an update");
  };
}

}  // namespace

Result<Kernel> make_sgd_update(KernelRequest &request) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::SgdUpdateAttributes::from(request.node));
  return update_kernel(request, 0, SgdRule{attributes.weight_decay});
}

Result<Kernel> make_momentum_update(KernelRequest &request) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::MomentumUpdateAttributes::from(request.node));
  return update_kernel(request, 1,
                       MomentumRule{attributes.momentum, attributes.weight_decay, attributes.nesterov ? 1 : 0});
}

Result<Kernel> make_adam_update(KernelRequest &request) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::AdamUpdateAttributes::from(request.node));
  return update_kernel(request, 2,
                       AdamRule{attributes.beta1, attributes.beta2, attributes.epsilon, attributes.weight_decay});
}

}  // namespace tutti::impl::backend::gpu
