// SPDX-License-Identifier: Apache-2.0
//
// Scaled dot-product attention and its gradients as graphs of cuDNN, which fuses each into one kernel and never stores
// the scores (FlashAttention: Dao et al., 2022).
//
// Threads: functions may be called from any thread.
#ifndef TUTTI_BACKEND_CUDA_CUDNN_ATTENTION_H_
#define TUTTI_BACKEND_CUDA_CUDNN_ATTENTION_H_

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "backend/cuda/cudnn_plan.h"
#include "base/status.h"
#include "tensor/dtype.h"

namespace tutti::impl::backend::cuda {

/// q and y are [rows, length, heads, channels], k and v [rows, key_length, key_heads, channels], statistics f32
/// [rows, heads, length].
struct AttentionShape {
  tensor::DType dtype = tensor::DType::bf16;  ///< f16 or bf16
  int64_t rows = 0, length = 0, key_length = 0, heads = 0, key_heads = 0, channels = 0;
  bool is_causal = false;
  float scale = 1;
  int64_t q_pitch = 0, k_pitch = 0,
          v_pitch = 0;  ///< from a position to the next, where they do not lie dense; 0: dense

  int64_t score_rows() const { return rows * heads * length; }
};

enum class AttentionPass : int32_t { forward, gradient };

/// Where the tensors of a pass lie. Forward reads q, k, v and writes y and statistics; the gradient reads these and dy
/// and writes dq, dk, dv.
struct AttentionTensors {
  const void *q = nullptr, *k = nullptr, *v = nullptr;
  void *y = nullptr, *statistics = nullptr;
  const void *dy = nullptr;
  void *dq = nullptr, *dk = nullptr, *dv = nullptr;
};

/// A pass of attention with its plan for one device.
class CudnnAttention {
 public:
  /// The plans that cuDNN has, best estimate first; none of versions that compute such attention wrongly.
  static base::Result<std::vector<CudnnAttention>> find(const Cudnn &cudnn, const CudnnDevice &device,
                                                        const AttentionShape &shape, AttentionPass pass,
                                                        const CudnnLimits &limits, const CudnnWish &wish = {});

  const CudnnPlan &plan() const { return plan_; }
  /// Of the plan and of the tensors that the graph keeps between its operations.
  int64_t scratch_bytes() const;
  /// Puts the pass on the handle's stream. `scratch` is aligned to 256.
  base::Status execute(cudnnHandle_t handle, const AttentionTensors &tensors, void *scratch) const;

 private:
  CudnnAttention(const AttentionShape &shape, AttentionPass pass, bool is_repeatable, float masked, CudnnPlan plan)
      : shape_(shape), pass_(pass), is_repeatable_(is_repeatable), masked_(masked), plan_(std::move(plan)) {}
  int64_t sums_bytes() const;
  int64_t accumulator_bytes() const;

  AttentionShape shape_;
  AttentionPass pass_;
  bool is_repeatable_;
  float masked_;
  CudnnPlan plan_;
};

/// What times of engines depend on.
std::string describe(const AttentionShape &shape, AttentionPass pass, const CudnnLimits &limits);

}  // namespace tutti::impl::backend::cuda

#endif  // TUTTI_BACKEND_CUDA_CUDNN_ATTENTION_H_
