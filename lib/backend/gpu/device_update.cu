// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/device_update.h"

#include "backend/gpu/device-inl.h"
#include "backend/gpu/fours-inl.h"
#include "backend/gpu/rows-inl.h"

namespace tutti::impl::backend::gpu {
namespace {

/// Enough for any GPU; each goes on with the next of its chunks.
constexpr int64_t kMostBlocks = 4096;

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

/// Elements begin .. end - 1 stay what they are; begin is a multiple of 16.
__device__ inline void keep(DType dtype, void *to, const void *from, int64_t begin, int64_t end) {
  if (to == from) return;
  const int64_t bytes = dtype == DType::f64 ? 8 : (dtype == DType::f32 ? 4 : 2);
  const bool is_wide = (reinterpret_cast<uintptr_t>(to) | reinterpret_cast<uintptr_t>(from)) % 16 == 0;
  const int64_t first = begin * bytes, last = end * bytes, wide = is_wide ? last / 16 * 16 : first;
  for (int64_t i = first / 16 + threadIdx.x; i < wide / 16; i += blockDim.x)
    static_cast<Bytes16 *>(to)[i] = static_cast<const Bytes16 *>(from)[i];
  for (int64_t i = wide + threadIdx.x; i < last; i += blockDim.x)
    static_cast<char *>(to)[i] = static_cast<const char *>(from)[i];
}

template <typename Step>
__device__ inline void keep_all(const UpdateArrays &arrays, const UpdateScalars &scalars, int64_t begin, int64_t end) {
  keep(scalars.weight_dtype, arrays.weight_out, arrays.weight, begin, end);
  for (int32_t slot = 0; slot < Step::kSlots; ++slot)
    keep(scalars.slot_dtype, arrays.slots_out[slot], arrays.slots[slot], begin, end);
}

// Written out by slot: an array that a loop indexes would not stay in registers.

template <typename Step, typename C>
__device__ inline void update_four(const Step &step, const UpdateArrays &arrays, const UpdateScalars &scalars,
                                   int64_t four) {
  C weight[4], gradient[4], slots[kUpdateSlots][4] = {};
  load_four(scalars.weight_dtype, arrays.weight, four, weight);
  load_four(scalars.gradient_dtype, arrays.gradient, four, gradient);
  if constexpr (Step::kSlots > 0) load_four(scalars.slot_dtype, arrays.slots[0], four, slots[0]);
  if constexpr (Step::kSlots > 1) load_four(scalars.slot_dtype, arrays.slots[1], four, slots[1]);
  for (int k = 0; k < 4; ++k) {
    C own[kUpdateSlots] = {slots[0][k], slots[1][k]};
    step.apply(weight[k], gradient[k], own);
    slots[0][k] = own[0];
    slots[1][k] = own[1];
  }
  store_four(scalars.weight_dtype, arrays.weight_out, four, weight);
  if constexpr (Step::kSlots > 0) store_four(scalars.slot_dtype, arrays.slots_out[0], four, slots[0]);
  if constexpr (Step::kSlots > 1) store_four(scalars.slot_dtype, arrays.slots_out[1], four, slots[1]);
}

template <typename Step, typename C>
__device__ inline void update_one(const Step &step, const UpdateArrays &arrays, const UpdateScalars &scalars,
                                  int64_t i) {
  C weight = load_element<C>(scalars.weight_dtype, arrays.weight, i), slots[kUpdateSlots];
  for (int32_t slot = 0; slot < Step::kSlots; ++slot)
    slots[slot] = load_element<C>(scalars.slot_dtype, arrays.slots[slot], i);
  step.apply(weight, load_element<C>(scalars.gradient_dtype, arrays.gradient, i), slots);
  store_element<C>(scalars.weight_dtype, arrays.weight_out, i, weight);
  for (int32_t slot = 0; slot < Step::kSlots; ++slot)
    store_element<C>(scalars.slot_dtype, arrays.slots_out[slot], i, slots[slot]);
}

template <typename Step, typename C>
__device__ inline void update_chunk(const Step &step, const UpdateArrays &arrays, const UpdateScalars &scalars,
                                    int64_t begin, int64_t end) {
  if (arrays.takes_fours == 0) {
    for (int64_t i = begin + threadIdx.x; i < end; i += blockDim.x)
      update_one<Step, C>(step, arrays, scalars, i);
    return;
  }
  const int64_t first = begin + int64_t{threadIdx.x} * 4;
  if (first + 4 <= end) return update_four<Step, C>(step, arrays, scalars, first / 4);
  for (int64_t i = first; i < end; ++i)
    update_one<Step, C>(step, arrays, scalars, i);
}

template <typename Step, typename C, typename Rule>
__global__ void update(const Rows<UpdateArrays> rows, const UpdateArrays one, const UpdateScalars scalars,
                       const Rule rule) {
  const bool ok = *scalars.ok;
  __shared__ Step made;
  if (ok && threadIdx.x == 0)
    made.make(rule, load_element<double>(scalars.rate_dtype, scalars.rate, 0), scalars.iteration);
  for_chunks(rows, one, [&](const UpdateArrays &arrays, int64_t chunk) {
    const int64_t begin = chunk * kUpdateChunk;
    const int64_t end = begin + kUpdateChunk < arrays.elements ? begin + kUpdateChunk : arrays.elements;
    if (!ok) return keep_all<Step>(arrays, scalars, begin, end);
    const Step step = made;
    update_chunk<Step, C>(step, arrays, scalars, begin, end);
  });
}

template <typename C, typename Rule>
gpuError_t launch(const Rows<UpdateArrays> &rows, const UpdateArrays &one, const UpdateScalars &scalars,
                  const Rule &rule, gpuStream_t stream) {
  using Step = decltype(step_of<C>(rule));
  const auto blocks = static_cast<unsigned>(rows.chunks < kMostBlocks ? rows.chunks : kMostBlocks);
  return gpu_launch(update<Step, C, Rule>, blocks, kBlockThreads, 0, stream, rows, one, scalars, rule);
}

template <typename Rule>
gpuError_t launch_rule(const Rows<UpdateArrays> &rows, const UpdateArrays &one, const UpdateScalars &scalars,
                       bool has_slots, const Rule &rule, gpuStream_t stream) {
  if (rows.chunks == 0) return gpuSuccess;
  const bool is_double = scalars.weight_dtype == DType::f64 || scalars.gradient_dtype == DType::f64 ||
                         (has_slots && scalars.slot_dtype == DType::f64);
  return is_double ? launch<double>(rows, one, scalars, rule, stream) : launch<float>(rows, one, scalars, rule, stream);
}

}  // namespace

bool takes_fours(const UpdateArrays &arrays, const UpdateScalars &scalars, int32_t slots) {
  bool all = has_fours(scalars.weight_dtype, arrays.weight) && has_fours(scalars.weight_dtype, arrays.weight_out) &&
             has_fours(scalars.gradient_dtype, arrays.gradient);
  for (int32_t slot = 0; slot < slots; ++slot)
    all = all && has_fours(scalars.slot_dtype, arrays.slots[slot]) &&
          has_fours(scalars.slot_dtype, arrays.slots_out[slot]);
  return all;
}

gpuError_t launch_update(const Rows<UpdateArrays> &rows, const UpdateArrays &one, const UpdateScalars &scalars,
                         const SgdRule &rule, gpuStream_t stream) {
  return launch_rule(rows, one, scalars, false, rule, stream);
}
gpuError_t launch_update(const Rows<UpdateArrays> &rows, const UpdateArrays &one, const UpdateScalars &scalars,
                         const MomentumRule &rule, gpuStream_t stream) {
  return launch_rule(rows, one, scalars, true, rule, stream);
}
gpuError_t launch_update(const Rows<UpdateArrays> &rows, const UpdateArrays &one, const UpdateScalars &scalars,
                         const AdamRule &rule, gpuStream_t stream) {
  return launch_rule(rows, one, scalars, true, rule, stream);
}

}  // namespace tutti::impl::backend::gpu
