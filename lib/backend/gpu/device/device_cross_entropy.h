// SPDX-License-Identifier: Apache-2.0
//
// Losses over rows of logits on a device. A loss reads its row once, by the online softmax (Milakov and Gimelshein
// 2018); a gradient keeps it in registers if it fits.
//   sparse: target t is 1 - s + s/C at the label and s/C elsewhere (s = label smoothing, C = classes)
//   loss    = sum(t) * logsumexp(x) - sum(t * x)
//   dlogits = (softmax(x) * sum(t) - t) * dloss
#ifndef TUTTI_BACKEND_GPU_DEVICE_DEVICE_CROSS_ENTROPY_H_
#define TUTTI_BACKEND_GPU_DEVICE_DEVICE_CROSS_ENTROPY_H_

#include <tutti_gpu.h>

#include <cstdint>

#include "backend/gpu/device/faults.h"
#include "backend/gpu/device/reduction_data.h"
#include "tensor/element_type.h"

namespace tutti::impl::backend::gpu {

struct CrossEntropyWork {
  tensor::DType dtype, target;  ///< of logits and their gradients; of targets or labels
  tensor::DType loss;           ///< of losses and their gradients
  bool is_sparse;               ///< targets are labels
  SumOrder order;
  int64_t rows, classes;
  double smoothing;
  int32_t fault;  ///< a label out of range; its row becomes NaN
  FaultSink faults;
  const void *logits, *targets;
  const void *dloss;  ///< of the gradient only
  void *result;
};

gpuError_t launch_cross_entropy(const CrossEntropyWork &work, gpuStream_t stream);
gpuError_t launch_cross_entropy_gradient(const CrossEntropyWork &work, gpuStream_t stream);

/// result[row]: fewer than k logits of the row are larger than that of its label, which is finite.
gpuError_t launch_in_top_k(const CrossEntropyWork &work, int64_t k, gpuStream_t stream);

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_DEVICE_DEVICE_CROSS_ENTROPY_H_
