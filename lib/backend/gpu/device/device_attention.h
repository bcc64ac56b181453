// SPDX-License-Identifier: Apache-2.0
//
// Scaled dot-product attention on a device, in tiles of queries by keys: scores are computed when they are needed and
// never stored. The statistics of the scores come first, so that probabilities need no correction afterwards, and are
// what the gradient makes them of again (Dao et al.: FlashAttention, 2022). Every sum has one order.
#ifndef TUTTI_BACKEND_GPU_DEVICE_DEVICE_ATTENTION_H_
#define TUTTI_BACKEND_GPU_DEVICE_DEVICE_ATTENTION_H_

#include <tutti_gpu.h>

#include <cstdint>

#include "tensor/element_type.h"

namespace tutti::impl::backend::gpu {

/// What dropout_attention forgets: AttentionDropout, with what a run adds. least 0: nothing.
struct AttentionForgetting {
  uint32_t least;  ///< upper 24 bits of the words that keep a probability
  int32_t has_batch;
  double scale;  ///< of those that are kept
  int64_t factor, blocks;
  uint64_t stream;
  int64_t iteration;       ///< of the scans around
  const int64_t *scalars;  ///< on the device
};

/// q, y, dy, dq are [rows, length, heads, channels], k, v, dk, dv [rows, key_length, key_heads, channels], statistics
/// [rows, heads, length], f64 for f64, else f32. Heads share keys where key_heads, a divisor of heads, is less. All lie
/// dense but q, k and v, which may be parts of something wider.
struct AttentionWork {
  tensor::DType dtype;
  int64_t rows, length, key_length, heads, key_heads, channels;
  double scale;
  bool is_causal;          ///< query i sees keys up to i + key_length - length
  const int32_t *lengths;  ///< keys of each row, or null: all
  const void *q, *k, *v;
  int64_t q_pitch, k_pitch, v_pitch;  ///< elements from a position to the next
  void *y, *statistics;               ///< what forward writes and the gradient reads
  const void *dy;                     ///< of the gradient, as are those behind
  void *dq, *dk, *dv, *scratch;
  AttentionForgetting forgets;
};

gpuError_t launch_attention(const AttentionWork &work, gpuStream_t stream);

int64_t attention_gradient_scratch_bytes(const AttentionWork &work);
gpuError_t launch_attention_gradient(const AttentionWork &work, gpuStream_t stream);

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_DEVICE_DEVICE_ATTENTION_H_
