// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/device/device_update.h"

#include <type_traits>

#include "backend/gpu/device/device-inl.h"
#include "backend/gpu/device/rows-inl.h"
#include "backend/gpu/device/storage-inl.h"
#include "backend/gpu/device/vector4-inl.h"

namespace tutti::impl::backend::gpu {
namespace {

/// Four on each multiprocessor of a large GPU: each makes the step once and goes on with the next of its chunks.
constexpr int64_t kMostBlocks = 512;

// A step is a rule with what the run says, in the type that is computed in: kMakers threads make it, each its part.
// Where a product is added to something it is said how that is rounded: the bits are the same in every kernel.

template <typename C>
struct SgdStep {
  static constexpr int32_t kSlots = 0, kMakers = 1;
  C rate, decay;

  __device__ void make(int, const SgdRule &rule, double learning_rate, const int64_t *) {
    rate = static_cast<C>(learning_rate);
    decay = static_cast<C>(rule.decay);
  }
  __device__ void apply(C &weight, C gradient, C *) const {
    weight = gpu_multiply_add(-rate, gpu_multiply_add(decay, weight, gradient), weight);
  }
};

template <typename C>
struct MomentumStep {
  static constexpr int32_t kSlots = 1, kMakers = 1;
  C rate, momentum, decay;
  int32_t is_nesterov;

  __device__ void make(int, const MomentumRule &rule, double learning_rate, const int64_t *) {
    rate = static_cast<C>(learning_rate);
    momentum = static_cast<C>(rule.momentum);
    decay = static_cast<C>(rule.decay);
    is_nesterov = rule.is_nesterov;
  }
  __device__ void apply(C &weight, C gradient, C *slots) const {
    const C step = gpu_multiply_add(decay, weight, gradient);
    slots[0] = gpu_multiply_add(momentum, slots[0], step);
    const C direction = is_nesterov != 0 ? gpu_multiply_add(momentum, slots[0], step) : slots[0];
    weight = gpu_multiply_add(-rate, direction, weight);
  }
};

template <typename C>
struct AdamStep {
  static constexpr int32_t kSlots = 2, kMakers = 2;
  C rate, beta1, beta2, rest1, rest2, epsilon, decay;
  C correction1, correction2;  ///< 1 / (1 - beta^t)

  __device__ void make(int part, const AdamRule &rule, double learning_rate, const int64_t *iteration) {
    const double t = static_cast<double>(*iteration), beta = part == 0 ? rule.beta1 : rule.beta2;
    (part == 0 ? correction1 : correction2) = static_cast<C>(1 / gpu_multiply_add(-1.0, std::pow(beta, t), 1.0));
    if (part != 0) return;
    rate = static_cast<C>(learning_rate);
    beta1 = static_cast<C>(rule.beta1);
    beta2 = static_cast<C>(rule.beta2);
    rest1 = static_cast<C>(1 - rule.beta1);
    rest2 = static_cast<C>(1 - rule.beta2);
    epsilon = static_cast<C>(rule.epsilon);
    decay = static_cast<C>(rule.decay);
  }
  __device__ void apply(C &weight, C gradient, C *slots) const {
    slots[0] = gpu_multiply_add(rest1, gradient, beta1 * slots[0]);
    slots[1] = gpu_multiply_add(rest2 * gradient, gradient, beta2 * slots[1]);
    const C direction = slots[0] * correction1 / (std::sqrt(slots[1] * correction2) + epsilon);
    weight = gpu_multiply_add(-rate, gpu_multiply_add(decay, weight, direction), weight);
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

/// Four neighbours of what is updated. Written out by slot: an array that a loop indexes would not stay in registers.
template <typename Step, typename C>
struct UpdateVector4 {
  C weight[4], slots[kUpdateSlots][4];

  __device__ void load(const UpdateArrays &arrays, const UpdateScalars &scalars, int64_t four) {
    load_vector4(scalars.weight_dtype, arrays.weight, four, weight);
    if constexpr (Step::kSlots > 0) load_vector4(scalars.slot_dtype, arrays.slots[0], four, slots[0]);
    if constexpr (Step::kSlots > 1) load_vector4(scalars.slot_dtype, arrays.slots[1], four, slots[1]);
  }

  __device__ void update(const Step &step, const C (&gradient)[4]) {
    for (int k = 0; k < 4; ++k) {
      C own[kUpdateSlots] = {};
      if constexpr (Step::kSlots > 0) own[0] = slots[0][k];
      if constexpr (Step::kSlots > 1) own[1] = slots[1][k];
      step.apply(weight[k], gradient[k], own);
      if constexpr (Step::kSlots > 0) slots[0][k] = own[0];
      if constexpr (Step::kSlots > 1) slots[1][k] = own[1];
    }
  }

  __device__ void store(const UpdateArrays &arrays, const UpdateScalars &scalars, int64_t four) const {
    store_vector4(scalars.weight_dtype, arrays.weight_out, four, weight);
    if constexpr (Step::kSlots > 0) store_vector4(scalars.slot_dtype, arrays.slots_out[0], four, slots[0]);
    if constexpr (Step::kSlots > 1) store_vector4(scalars.slot_dtype, arrays.slots_out[1], four, slots[1]);
  }
};

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
  if (arrays.takes_vector4 == 0) {
    for (int64_t i = begin + threadIdx.x; i < end; i += blockDim.x)
      update_one<Step, C>(step, arrays, scalars, i);
    return;
  }
  const int64_t first = begin + int64_t{threadIdx.x} * 4;
  if (first + 4 > end) {
    for (int64_t i = first; i < end; ++i)
      update_one<Step, C>(step, arrays, scalars, i);
    return;
  }
  UpdateVector4<Step, C> vectors;
  C gradient[4];
  vectors.load(arrays, scalars, first / 4);
  load_vector4(scalars.gradient_dtype, arrays.gradient, first / 4, gradient);
  vectors.update(step, gradient);
  vectors.store(arrays, scalars, first / 4);
}

/// The makers are the first threads of as many warps.
template <typename Step, typename Rule>
__device__ inline void make_step(Step &step, const UpdateScalars &scalars, const Rule &rule) {
  const int thread = static_cast<int>(threadIdx.x);
  if (thread % warpSize != 0 || thread / warpSize >= Step::kMakers) return;
  step.make(thread / warpSize, rule, load_element<double>(scalars.rate_dtype, scalars.rate, 0), scalars.iteration);
}

template <typename Step, typename C, typename Rule>
__global__ void update(const Rows<UpdateArrays> rows, const UpdateArrays one, const UpdateScalars scalars,
                       const Rule rule) {
  const bool ok = *scalars.ok;
  __shared__ Step made;
  if (ok) make_step(made, scalars, rule);
  for_chunks(rows, one, [&](const UpdateArrays &arrays, int64_t chunk) {
    const int64_t begin = chunk * kUpdateChunk;
    const int64_t end = begin + kUpdateChunk < arrays.elements ? begin + kUpdateChunk : arrays.elements;
    if (!ok) return keep_all<Step>(arrays, scalars, begin, end);
    const Step step = made;
    update_chunk<Step, C>(step, arrays, scalars, begin, end);
  });
}

/// What a thread does of a variable that takes vectors of four, in f32 but for gradients of type G: what the next one
/// needs is on its way while one is computed, and what the first needs from the beginning, whether or not there will be
/// a step.
template <typename Step, typename G>
class PrefetchedVector4 {
 public:
  __device__ PrefetchedVector4(const UpdateArrays &arrays, const UpdateScalars &scalars)
      : arrays_(arrays), scalars_(scalars), four_(grid_thread()) {
    load();
  }

  /// Of the vectors in turn.
  __device__ void update(const Step &step) {
    const int64_t four = four_;
    UpdateVector4<Step, float> now = next_;
    const HeldPack<G, 4> held = gradient_;
    four_ += grid_threads();
    load();
    if (has(four)) {
      float gradient[4];
      widen_held<4>(held, gradient);
      now.update(step, gradient);
      now.store(arrays_, scalars_, four);
    } else {
      for (int64_t i = four * 4; i < arrays_.elements; ++i)
        update_one<Step, float>(step, arrays_, scalars_, i);
    }
  }

 private:
  __device__ bool has(int64_t four) const { return four * 4 + 4 <= arrays_.elements; }
  __device__ void load() {
    if (!has(four_)) return;
    next_.load(arrays_, scalars_, four_);
    gradient_ = held_pack_at<4>(static_cast<const G *>(arrays_.gradient), four_ * 4);
  }

  const UpdateArrays &arrays_;
  const UpdateScalars &scalars_;
  int64_t four_;
  UpdateVector4<Step, float> next_;
  HeldPack<G, 4> gradient_;
};

/// Of one variable that takes vectors of four, in f32 but for the gradient.
template <typename G, typename Step, typename Rule>
__global__ void __launch_bounds__(kBlockThreads, 4)
    update_alone(const int64_t chunks, const UpdateArrays arrays, const UpdateScalars given, const Rule rule) {
  UpdateScalars scalars = given;
  scalars.weight_dtype = scalars.slot_dtype = DType::f32;  // as compilers are to know
  PrefetchedVector4<Step, G> vectors(arrays, scalars);
  const bool ok = *scalars.ok;
  __shared__ Step made;
  if (ok) make_step(made, scalars, rule);
  __syncthreads();
  for (int64_t chunk = blockIdx.x; chunk < chunks; chunk += gridDim.x) {
    const int64_t begin = chunk * kUpdateChunk;
    const int64_t end = begin + kUpdateChunk < arrays.elements ? begin + kUpdateChunk : arrays.elements;
    if (ok)
      vectors.update(made);
    else
      keep_all<Step>(arrays, scalars, begin, end);
  }
}

/// Null where dtypes are others.
template <typename Step, typename Rule>
auto kernel_alone(const UpdateScalars &scalars) -> decltype(&update_alone<float, Step, Rule>) {
  if (scalars.weight_dtype != DType::f32 || (Step::kSlots > 0 && scalars.slot_dtype != DType::f32)) return nullptr;
  switch (scalars.gradient_dtype) {
    case DType::f32:
      return update_alone<float, Step, Rule>;
    case DType::f16:
      return update_alone<Float16, Step, Rule>;
    case DType::bf16:
      return update_alone<BFloat16, Step, Rule>;
    default:
      return nullptr;
  }
}

template <typename C, typename Rule>
gpuError_t launch(const Rows<UpdateArrays> &rows, const UpdateArrays &one, const UpdateScalars &scalars,
                  const Rule &rule, gpuStream_t stream) {
  using Step = decltype(step_of<C>(rule));
  const auto blocks = static_cast<unsigned>(rows.chunks < kMostBlocks ? rows.chunks : kMostBlocks);
  if constexpr (std::is_same_v<C, float>) {
    const auto alone = rows.table == nullptr && one.takes_vector4 != 0 ? kernel_alone<Step, Rule>(scalars) : nullptr;
    if (alone != nullptr) return gpu_launch(alone, blocks, kBlockThreads, 0, stream, rows.chunks, one, scalars, rule);
  }
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

bool takes_vector4(const UpdateArrays &arrays, const UpdateScalars &scalars, int32_t slots) {
  bool all = is_vector4_aligned(scalars.weight_dtype, arrays.weight) &&
             is_vector4_aligned(scalars.weight_dtype, arrays.weight_out) &&
             is_vector4_aligned(scalars.gradient_dtype, arrays.gradient);
  for (int32_t slot = 0; slot < slots; ++slot)
    all = all && is_vector4_aligned(scalars.slot_dtype, arrays.slots[slot]) &&
          is_vector4_aligned(scalars.slot_dtype, arrays.slots_out[slot]);
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
