// SPDX-License-Identifier: Apache-2.0
//
// Optimizer rules, one pass over the arrays, four elements a thread. Each thread reads all it needs of its elements
// before it writes, so results may lie on top of the inputs they replace. Where the flag says no, every result is the
// input it replaces, byte by byte. Arithmetic is done in float, in double where an array is f64; what all elements
// share is made once for a block, in double.
#ifndef TUTTI_BACKEND_GPU_DEVICE_DEVICE_UPDATE_H_
#define TUTTI_BACKEND_GPU_DEVICE_DEVICE_UPDATE_H_

#include <tutti_gpu.h>

#include <cstdint>

#include "backend/gpu/device/rows.h"
#include "tensor/element_type.h"

namespace tutti::impl::backend::gpu {

constexpr int32_t kUpdateSlots = 2;

/// Of one variable. All on the device. A rule has the first so many slots.
struct UpdateArrays {
  int64_t elements;
  const void *weight, *gradient, *slots[kUpdateSlots];
  void *weight_out, *slots_out[kUpdateSlots];
  int32_t takes_vector4;  ///< all lie where four elements can be taken together: takes_vector4()
  int64_t first_chunk;    ///< as a row among others (rows.h)
};

/// What all variables of a launch share. Float dtypes; pointers on the device.
struct UpdateScalars {
  tensor::DType weight_dtype, gradient_dtype, slot_dtype, rate_dtype;
  const void *rate;
  const int64_t *iteration;  ///< adam only
  const bool *ok;
};

struct SgdRule {
  double decay;
};
/// One slot: velocity.
struct MomentumRule {
  double momentum, decay;
  int32_t is_nesterov;
};
/// Two slots: first and second moment.
struct AdamRule {
  double beta1, beta2, epsilon, decay;
};

/// Elements of a chunk of rows.
constexpr int64_t kUpdateChunk = int64_t{kBlockThreads} * 4;

bool takes_vector4(const UpdateArrays &arrays, const UpdateScalars &scalars, int32_t slots);

/// Of the variables of a table, or of `one` where there is none.
gpuError_t launch_update(const Rows<UpdateArrays> &rows, const UpdateArrays &one, const UpdateScalars &scalars,
                         const SgdRule &rule, gpuStream_t stream);
gpuError_t launch_update(const Rows<UpdateArrays> &rows, const UpdateArrays &one, const UpdateScalars &scalars,
                         const MomentumRule &rule, gpuStream_t stream);
gpuError_t launch_update(const Rows<UpdateArrays> &rows, const UpdateArrays &one, const UpdateScalars &scalars,
                         const AdamRule &rule, gpuStream_t stream);

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_DEVICE_DEVICE_UPDATE_H_
