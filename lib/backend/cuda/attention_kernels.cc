// SPDX-License-Identifier: Apache-2.0
//
// Attention by cuDNN, in 16 bits. Where rows have lengths of their own, or a query may see no key, the kernels of all
// platforms do it.
#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backend/cuda/cudnn_attention.h"
#include "backend/cuda/cudnn_operations.h"
#include "backend/cuda/library_kernels.h"
#include "backend/gpu/device/device_plans.h"
#include "graph/ops/op_attributes.h"

namespace tutti::impl::backend::cuda {

using base::Result;
using base::Status;
using gpu::Frame;
using gpu::Kernel;
using gpu::KernelRequest;
using tensor::DType;

namespace {

/// What dq may be added up in, and the scores' gradients where they are kept for sums in one order.
constexpr int64_t kMostAttentionScratch = int64_t{1} << 30;

/// One pass, with its plan for each GPU that it ran on.
class PlannedAttention {
 public:
  PlannedAttention(const AttentionShape &shape, AttentionPass pass, const CudnnLimits &limits)
      : shape_(shape), pass_(pass), limits_(limits) {}

  /// Null where cuDNN has none.
  Result<const CudnnAttention *> plan_for(const Handles &handles, const DeviceHandles::Use &use) {
    return plans_.get(handles, [&]() -> Result<std::optional<CudnnAttention>> {
      const Cudnn *const cudnn = handles->cudnn(use);
      if (cudnn == nullptr) return std::optional<CudnnAttention>();
      TUTTI_ASSIGN(std::vector<CudnnAttention> found,
                   CudnnAttention::find(*cudnn, handles->cudnn_device(use), shape_, pass_, limits_, {1, engine_name_}));
      if (found.empty()) return std::optional<CudnnAttention>();
      engine_name_ = found.front().plan().name();
      limits_.most_scratch = std::min(limits_.most_scratch, found.front().plan().scratch_bytes());
      return std::optional<CudnnAttention>(std::move(found.front()));
    });
  }

  Status issue(const Frame &frame, const AttentionTensors &tensors) {
    TUTTI_ASSIGN(const Handles handles, DeviceHandles::of_current_device());
    const DeviceHandles::Use use(*handles);
    TUTTI_ASSIGN(const CudnnAttention *const attention, plan_for(handles, use));
    if (attention == nullptr) return base::internal_error("cuDNN has no plan for attention on this device");
    TUTTI_TRY(handles->issue_cudnn_on(use, frame.stream()));
    return attention->execute(handles->cudnn_handle(), tensors, frame.scratch());
  }

 private:
  const AttentionShape shape_;
  const AttentionPass pass_;
  // Changed while a plan is looked for only:
  CudnnLimits limits_;
  std::string engine_name_;  // of the first; "" = none yet
  gpu::DevicePlans<Handles, CudnnAttention> plans_;
};

/// q is input `first`, k and v are those behind it.
template <typename Attributes>
AttentionShape shape_of(const Attributes &attributes, const KernelRequest &request, size_t first) {
  const LoweredValue &q = request.input(first), &k = request.input(first + 1);
  AttentionShape shape;
  shape.dtype = q.dtype;
  shape.rows = q.dims[0];
  shape.length = q.dims[1];
  shape.heads = q.dims[2];
  shape.channels = q.dims[3];
  shape.key_length = k.dims[1];
  shape.key_heads = k.dims[2];
  shape.is_causal = attributes.causal;
  shape.scale =
      static_cast<float>(attributes.scale > 0 ? attributes.scale : 1 / std::sqrt(static_cast<double>(shape.channels)));
  const auto pitch = [&](size_t i, int64_t heads) {
    const int64_t between = request.place_of(first + i).pitch;
    return between == heads * shape.channels ? 0 : between;
  };
  shape.q_pitch = pitch(0, shape.heads);
  shape.k_pitch = pitch(1, shape.key_heads);
  shape.v_pitch = pitch(2, shape.key_heads);
  return shape;
}

/// Where q, k and v of the inputs from `first` on lie.
class Factors {
 public:
  Factors(const KernelRequest &request, size_t first) : first_(static_cast<int32_t>(first)) {
    for (size_t i = 0; i < 3; ++i)
      offsets_[i] =
          request.place_of(first + i).offset * static_cast<int64_t>(tensor::size_bytes(request.input(first).dtype));
  }
  void set(const Frame &frame, AttentionTensors &tensors) const {
    tensors.q = frame.input_as<char>(first_) + offsets_[0];
    tensors.k = frame.input_as<char>(first_ + 1) + offsets_[1];
    tensors.v = frame.input_as<char>(first_ + 2) + offsets_[2];
  }

 private:
  int32_t first_;
  int64_t offsets_[3];
};

/// Do q, k and v, the inputs from `first` on, begin where cuDNN is told that tensors do, in each row?
bool are_aligned(const KernelRequest &request, size_t first) {
  const auto bytes = static_cast<int64_t>(tensor::size_bytes(request.input(first).dtype));
  int64_t places = 0;
  for (size_t i = first; i < first + 3; ++i) {
    const auto place = request.place_of(i);
    const std::vector<int64_t> &dims = request.input(i).dims;
    // A part of a whole lies otherwise than dense.
    if (place.offset != 0 || place.pitch != dims[2] * dims[3]) places |= place.offset | place.pitch;
  }
  return places * bytes % CudnnGraphWriter::kAlignment == 0;
}

/// Ready to be issued, its scratch memory reserved; null where cuDNN has nothing.
Result<std::shared_ptr<PlannedAttention>> prepare(KernelRequest &request, const Handles &handles,
                                                  const AttentionShape &shape, AttentionPass pass) {
  std::shared_ptr<PlannedAttention> none;
  const bool is_16_bit = shape.dtype == DType::f16 || shape.dtype == DType::bf16;
  const bool is_empty = shape.score_rows() * shape.key_length == 0;
  if (!is_16_bit || is_empty || (shape.is_causal && shape.length > shape.key_length)) return none;
  if (!are_aligned(request, pass == AttentionPass::forward ? 0 : 1)) return none;
  CudnnLimits limits;
  limits.most_scratch = kMostAttentionScratch;
  limits.must_repeat = request.lowered.level() != TUTTI_LEVEL_FAST;
  auto attention = std::make_shared<PlannedAttention>(shape, pass, limits);
  const DeviceHandles::Use use(*handles);
  TUTTI_ASSIGN(const CudnnAttention *const plan, attention->plan_for(handles, use));
  if (plan == nullptr) return none;
  request.reserve_scratch(plan->scratch_bytes());
  request.kernel_name = base::concat("cudnn_attention_", plan->plan().engine());
  return attention;
}

}  // namespace

Result<Kernel> make_attention(KernelRequest &request, const Handles &handles) {
  if (request.has_input(3)) return Kernel();
  TUTTI_ASSIGN(const auto attributes, graph::ops::AttentionAttributes::from(request.node));
  TUTTI_ASSIGN(const auto attention,
               prepare(request, handles, shape_of(attributes, request, 0), AttentionPass::forward));
  if (attention == nullptr) return Kernel();
  return Kernel([attention, factors = Factors(request, 0)](const Frame &frame) {
    AttentionTensors tensors;
    factors.set(frame, tensors);
    tensors.y = frame.output(0);
    tensors.statistics = frame.output(1);
    return attention->issue(frame, tensors);
  });
}

Result<Kernel> make_attention_gradient(KernelRequest &request, const Handles &handles) {
  if (request.has_input(6)) return Kernel();
  TUTTI_ASSIGN(const auto attributes, graph::ops::AttentionGradientAttributes::from(request.node));
  TUTTI_ASSIGN(const auto attention,
               prepare(request, handles, shape_of(attributes, request, 1), AttentionPass::gradient));
  if (attention == nullptr) return Kernel();
  return Kernel([attention, factors = Factors(request, 1)](const Frame &frame) {
    AttentionTensors tensors;
    factors.set(frame, tensors);
    tensors.dy = frame.input(0);
    tensors.y = const_cast<void *>(frame.input(4));
    tensors.statistics = const_cast<void *>(frame.input(5));
    tensors.dq = frame.output(0);
    tensors.dk = frame.output(1);
    tensors.dv = frame.output(2);
    return attention->issue(frame, tensors);
  });
}

}  // namespace tutti::impl::backend::cuda
