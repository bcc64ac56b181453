// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/device_update.h"

#include "backend/gpu/device-inl.h"
#include "backend/gpu/fours-inl.h"

namespace tutti::impl::backend::gpu {
namespace {

// A step is a rule with what the run says, in the type that is computed in.

template <typename C>
struct SgdStep {
  static constexpr int32_t kSlots = 0;
  C rate, decay;

  __device__ void make(const SgdRule &rule, double learning_rate, const int64_t *) {
    rate = static_cast<C>(learning_rate);
    decay = static_cast<C>(rule.decay);
  }
  __device__ void apply(C &weight, C gradient, C *) const { weight -= rate * (gradient + decay * weight); }
};

template <typename C>
struct MomentumStep {
  static constexpr int32_t kSlots = 1;
  C rate, momentum, decay;
  int32_t is_nesterov;

  __device__ void make(const MomentumRule &rule, double learning_rate, const int64_t *) {
    rate = static_cast<C>(learning_rate);
    momentum = static_cast<C>(rule.momentum);
    decay = static_cast<C>(rule.decay);
    is_nesterov = rule.is_nesterov;
  }
  __device__ void apply(C &weight, C gradient, C *slots) const {
    const C step = gradient + decay * weight;
    slots[0] = momentum * slots[0] + step;
    weight -= rate * (is_nesterov != 0 ? step + momentum * slots[0] : slots[0]);
  }
};

template <typename C>
struct AdamStep {
  static constexpr int32_t kSlots = 2;
  C rate, beta1, beta2, rest1, rest2, epsilon, decay;
  C correction1, correction2;  ///< 1 / (1 - beta^t)

  __device__ void make(const AdamRule &rule, double learning_rate, const int64_t *iteration) {
    const double t = static_cast<double>(*iteration);
    rate = static_cast<C>(learning_rate);
    beta1 = static_cast<C>(rule.beta1);
    beta2 = static_cast<C>(rule.beta2);
    rest1 = static_cast<C>(1 - rule.beta1);
    rest2 = static_cast<C>(1 - rule.beta2);
    epsilon = static_cast<C>(rule.epsilon);
    decay = static_cast<C>(rule.decay);
    correction1 = static_cast<C>(1 / (1 - std::pow(rule.beta1, t)));
    correction2 = static_cast<C>(1 / (1 - std::pow(rule.beta2, t)));
  }
  __device__ void apply(C &weight, C gradient, C *slots) const {
    slots[0] = beta1 * slots[0] + rest1 * gradient;
    slots[1] = beta2 * slots[1] + rest2 * gradient * gradient;
    const C direction = slots[0] * correction1 / (std::sqrt(slots[1] * correction2) + epsilon);
    weight -= rate * (direction + decay * weight);
  }
};

template <typename C>
SgdStep<C> step_of(const SgdRule &);
template <typename C>
MomentumStep<C> step_of(const MomentumRule &);
template <typename C>
AdamStep<C> step_of(const AdamRule &);

__device__ inline void keep_bytes(void *to, const void *from, int64_t bytes) {
  if (to == from) return;
  const bool is_wide = (reinterpret_cast<uintptr_t>(to) | reinterpret_cast<uintptr_t>(from)) % 16 == 0;
  const int64_t wide = is_wide ? bytes / 16 : 0;
  for (int64_t i = grid_thread(); i < wide; i += grid_threads())
    static_cast<Bytes16 *>(to)[i] = static_cast<const Bytes16 *>(from)[i];
  for (int64_t i = wide * 16 + grid_thread(); i < bytes; i += grid_threads())
    static_cast<char *>(to)[i] = static_cast<const char *>(from)[i];
}

__device__ inline int64_t bytes_of(DType dtype) { return dtype == DType::f64 ? 8 : (dtype == DType::f32 ? 4 : 2); }

// Written out by slot: an array that a loop indexes would not stay in registers.

template <typename Step, typename C>
__device__ inline void update_four(const Step &step, const UpdateArrays &arrays, int64_t four) {
  C weight[4], gradient[4], slots[kUpdateSlots][4] = {};
  load_four(arrays.weight_dtype, arrays.weight, four, weight);
  load_four(arrays.gradient_dtype, arrays.gradient, four, gradient);
  if constexpr (Step::kSlots > 0) load_four(arrays.slot_dtype, arrays.slots[0], four, slots[0]);
  if constexpr (Step::kSlots > 1) load_four(arrays.slot_dtype, arrays.slots[1], four, slots[1]);
  for (int k = 0; k < 4; ++k) {
    C own[kUpdateSlots] = {slots[0][k], slots[1][k]};
    step.apply(weight[k], gradient[k], own);
    slots[0][k] = own[0];
    slots[1][k] = own[1];
  }
  store_four(arrays.weight_dtype, arrays.weight_out, four, weight);
  if constexpr (Step::kSlots > 0) store_four(arrays.slot_dtype, arrays.slots_out[0], four, slots[0]);
  if constexpr (Step::kSlots > 1) store_four(arrays.slot_dtype, arrays.slots_out[1], four, slots[1]);
}

template <typename Step, typename C>
__device__ inline void update_one(const Step &step, const UpdateArrays &arrays, int64_t i) {
  C weight = load_element<C>(arrays.weight_dtype, arrays.weight, i), slots[kUpdateSlots];
  for (int32_t slot = 0; slot < Step::kSlots; ++slot)
    slots[slot] = load_element<C>(arrays.slot_dtype, arrays.slots[slot], i);
  step.apply(weight, load_element<C>(arrays.gradient_dtype, arrays.gradient, i), slots);
  store_element<C>(arrays.weight_dtype, arrays.weight_out, i, weight);
  for (int32_t slot = 0; slot < Step::kSlots; ++slot)
    store_element<C>(arrays.slot_dtype, arrays.slots_out[slot], i, slots[slot]);
}

template <typename Step, typename C, typename Rule>
__global__ void update(const UpdateArrays arrays, const Rule rule, int64_t fours) {
  if (!*arrays.ok) {
    keep_bytes(arrays.weight_out, arrays.weight, arrays.count * bytes_of(arrays.weight_dtype));
    for (int32_t slot = 0; slot < Step::kSlots; ++slot)
      keep_bytes(arrays.slots_out[slot], arrays.slots[slot], arrays.count * bytes_of(arrays.slot_dtype));
    return;
  }
  __shared__ Step made;
  if (threadIdx.x == 0) made.make(rule, load_element<double>(arrays.rate_dtype, arrays.rate, 0), arrays.iteration);
  __syncthreads();
  const Step step = made;
  for (int64_t four = grid_thread(); four < fours; four += grid_threads())
    update_four<Step, C>(step, arrays, four);
  for (int64_t i = fours * 4 + grid_thread(); i < arrays.count; i += grid_threads())
    update_one<Step, C>(step, arrays, i);
}

bool takes_fours(const UpdateArrays &arrays, int32_t slots) {
  bool all = has_fours(arrays.weight_dtype, arrays.weight) && has_fours(arrays.weight_dtype, arrays.weight_out) &&
             has_fours(arrays.gradient_dtype, arrays.gradient);
  for (int32_t slot = 0; slot < slots; ++slot)
    all =
        all && has_fours(arrays.slot_dtype, arrays.slots[slot]) && has_fours(arrays.slot_dtype, arrays.slots_out[slot]);
  return all;
}

template <typename C, typename Rule>
gpuError_t launch(const UpdateArrays &arrays, const Rule &rule, gpuStream_t stream) {
  using Step = decltype(step_of<C>(rule));
  const int64_t fours = takes_fours(arrays, Step::kSlots) ? arrays.count / 4 : 0;
  const int64_t work = fours == 0 ? arrays.count : fours;
  return gpu_launch(update<Step, C, Rule>, blocks_for(work), kBlockThreads, 0, stream, arrays, rule, fours);
}

template <typename Rule>
gpuError_t launch_rule(const UpdateArrays &arrays, bool has_slots, const Rule &rule, gpuStream_t stream) {
  if (arrays.count == 0) return gpuSuccess;
  const bool is_double = arrays.weight_dtype == DType::f64 || arrays.gradient_dtype == DType::f64 ||
                         (has_slots && arrays.slot_dtype == DType::f64);
  return is_double ? launch<double>(arrays, rule, stream) : launch<float>(arrays, rule, stream);
}

}  // namespace

gpuError_t launch_update(const UpdateArrays &arrays, const SgdRule &rule, gpuStream_t stream) {
  return launch_rule(arrays, false, rule, stream);
}
gpuError_t launch_update(const UpdateArrays &arrays, const MomentumRule &rule, gpuStream_t stream) {
  return launch_rule(arrays, true, rule, stream);
}
gpuError_t launch_update(const UpdateArrays &arrays, const AdamRule &rule, gpuStream_t stream) {
  return launch_rule(arrays, true, rule, stream);
}

}  // namespace tutti::impl::backend::gpu
