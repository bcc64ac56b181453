// SPDX-License-Identifier: Apache-2.0
//
// Optimizer rules. Inputs are w, g, slots, then the scalars: learning rate, (adam:) iteration, ok.
#include "backend/gpu/device/device_update.h"
#include "backend/gpu/kernel/kernels.h"
#include "backend/gpu/kernel/rows_kernel.h"
#include "graph/ops/op_attributes.h"

namespace tutti::impl::backend::gpu {

using base::Result;
using base::Status;

namespace {

/// The update of one variable or of several, whose operands stand one behind the other in a frame. Scalars are those of
/// the first: all share them.
template <typename Rule>
class Update final : public RowsKernel {
 public:
  Update(const KernelRequest &request, int32_t slots, const Rule &rule)
      : slots_(slots),
        inputs_(static_cast<int32_t>(request.input_count())),
        has_iteration_(inputs_ == slots + 5),
        rule_(rule) {
    scalars_.weight_dtype = request.input(0).dtype;
    scalars_.gradient_dtype = request.input(1).dtype;
    scalars_.slot_dtype = request.input(2).dtype;
    scalars_.rate_dtype = request.input(static_cast<size_t>(slots) + 2).dtype;
  }

  int64_t row_bytes() const override { return sizeof(UpdateArrays); }

  void fill(const Frame &frame, std::span<const int64_t> elements, void *rows) const override {
    const std::span<UpdateArrays> table(static_cast<UpdateArrays *>(rows), elements.size());
    for (size_t i = 0; i < elements.size(); ++i)
      table[i] = arrays(frame, static_cast<int32_t>(i), elements[i]);
    place_chunks(table, kUpdateChunk);
  }

  Status launch(const Frame &frame, std::span<const int64_t> elements) const override {
    const Rows<UpdateArrays> rows{static_cast<const UpdateArrays *>(frame.rows()),
                                  static_cast<int32_t>(elements.size()), count_chunks(elements, kUpdateChunk)};
    return issue(frame, rows, {});
  }

  Status launch_one(const Frame &frame, int64_t elements) const {
    return issue(frame, {nullptr, 1, count_chunks({&elements, 1}, kUpdateChunk)}, arrays(frame, 0, elements));
  }

 private:
  UpdateArrays arrays(const Frame &frame, int32_t variable, int64_t elements) const {
    const int32_t input = variable * inputs_, output = variable * (slots_ + 1);
    UpdateArrays arrays{};
    arrays.elements = elements;
    arrays.weight = frame.input(input);
    arrays.gradient = frame.input(input + 1);
    arrays.weight_out = frame.output(output);
    for (int32_t slot = 0; slot < slots_; ++slot) {
      arrays.slots[slot] = frame.input(input + 2 + slot);
      arrays.slots_out[slot] = frame.output(output + 1 + slot);
    }
    arrays.takes_vector4 = takes_vector4(arrays, scalars_, slots_) ? 1 : 0;
    return arrays;
  }

  Status issue(const Frame &frame, const Rows<UpdateArrays> &rows, const UpdateArrays &one) const {
    UpdateScalars scalars = scalars_;
    scalars.rate = frame.input(slots_ + 2);
    scalars.iteration = has_iteration_ ? frame.input_as<int64_t>(slots_ + 3) : nullptr;
    scalars.ok = frame.input_as<bool>(inputs_ - 1);
    return status_of(launch_update(rows, one, scalars, rule_, frame.stream()), "launching an update");
  }

  const int32_t slots_, inputs_;
  const bool has_iteration_;
  const Rule rule_;
  UpdateScalars scalars_{};
};

/// Equal for nodes of one rule with the same scalars.
std::string key_of(const KernelRequest &request, size_t slots) {
  std::string key = request.node.op;
  for (const auto &[name, value] : request.node.attributes)
    key += base::concat(" ", name, "=", graph::to_string(value));
  for (size_t i = 0; i < request.input_count(); ++i) {
    key += base::concat(" ", request.input(i).dtype);
    if (i >= slots + 2) key += base::concat(" ", request.node.inputs[i]);
  }
  return key;
}

template <typename Rule>
Kernel update_kernel(KernelRequest &request, int32_t slots, const Rule &rule) {
  const auto update = std::make_shared<Update<Rule>>(request, slots, rule);
  const int64_t elements = request.output(0).elements;
  request.joinable = std::make_shared<Joinable>(Joinable{key_of(request, static_cast<size_t>(slots)), elements,
                                                         [update](KernelBatch &, int64_t) { return update; }});
  return [update, elements](const Frame &frame) { return update->launch_one(frame, elements); };
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
