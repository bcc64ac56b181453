// SPDX-License-Identifier: Apache-2.0
//
// Scaled dot-product attention and its gradients, with dropout or without.
#include <cmath>

#include "backend/attention_dropout.h"
#include "backend/gpu/device/device_attention.h"
#include "backend/gpu/kernel/kernels.h"
#include "graph/ops/op_attributes.h"

namespace tutti::impl::backend::gpu {

using base::Result;

namespace {

/// Where q, k and v begin in the memory of their inputs.
struct Offsets {
  int64_t q, k, v;  ///< bytes
};

/// Of the inputs from `first` on, which is q.
Offsets offsets_of(const KernelRequest &request, size_t first) {
  const auto bytes = static_cast<int64_t>(tensor::size_bytes(request.input(first).dtype));
  const auto offset = [&](size_t i) { return request.place_of(first + i).offset * bytes; };
  return {offset(0), offset(1), offset(2)};
}

const void *behind(const void *memory, int64_t bytes) { return static_cast<const char *>(memory) + bytes; }

/// q is input `first`, k the one behind it.
template <typename Attributes>
AttentionWork attention_work(const Attributes &attributes, const KernelRequest &request, size_t first) {
  const LoweredValue &q = request.input(first), &k = request.input(first + 1);
  AttentionWork work{};
  work.q_pitch = request.place_of(first).pitch;
  work.k_pitch = request.place_of(first + 1).pitch;
  work.v_pitch = request.place_of(first + 2).pitch;
  work.dtype = q.dtype;
  work.rows = q.dims[0];
  work.length = q.dims[1];
  work.heads = q.dims[2];
  work.channels = q.dims[3];
  work.key_length = k.dims[1];
  work.key_heads = k.dims[2];
  work.is_causal = attributes.causal;
  work.scale = attributes.scale > 0 ? attributes.scale : 1 / std::sqrt(static_cast<double>(work.channels));
  return work;
}

template <typename Attributes>
void forget(const KernelRequest &request, const Attributes &attributes, AttentionWork &work) {
  const AttentionDropout dropout =
      AttentionDropout::of(request.lowered, request.node, attributes.key, attributes.rate, work.key_length);
  // uniform >= rate, both times 2^24.
  work.forgets.least = static_cast<uint32_t>(std::ceil(dropout.rate * 0x1.0p24));
  work.forgets.scale = 1 / (1 - dropout.rate);
  work.forgets.has_batch = dropout.rows.has_batch ? 1 : 0;
  work.forgets.factor = dropout.factor;
  work.forgets.blocks = dropout.blocks;
  work.forgets.stream = dropout.rows.stream;
}

AttentionWork in_run(AttentionWork work, const Frame &frame) {
  work.forgets.iteration = frame.scan_iteration();
  work.forgets.scalars = frame.scalars();
  return work;
}

Kernel forward_kernel(const KernelRequest &request, const AttentionWork &work) {
  return Kernel([work, at = offsets_of(request, 0), has_lengths = request.has_input(3)](const Frame &frame) {
    AttentionWork issued = in_run(work, frame);
    issued.q = behind(frame.input(0), at.q);
    issued.k = behind(frame.input(1), at.k);
    issued.v = behind(frame.input(2), at.v);
    if (has_lengths) issued.lengths = frame.input_as<int32_t>(3);
    issued.y = frame.output(0);
    issued.statistics = frame.output(1);
    return status_of(launch_attention(issued, frame.stream()), "launching attention");
  });
}

Kernel gradient_kernel(KernelRequest &request, const AttentionWork &work) {
  request.reserve_scratch(attention_gradient_scratch_bytes(work));
  return Kernel([work, at = offsets_of(request, 1), has_lengths = request.has_input(6)](const Frame &frame) {
    AttentionWork issued = in_run(work, frame);
    issued.dy = frame.input(0);
    issued.q = behind(frame.input(1), at.q);
    issued.k = behind(frame.input(2), at.k);
    issued.v = behind(frame.input(3), at.v);
    issued.y = const_cast<void *>(frame.input(4));
    issued.statistics = const_cast<void *>(frame.input(5));
    if (has_lengths) issued.lengths = frame.input_as<int32_t>(6);
    issued.dq = frame.output(0);
    issued.dk = frame.output(1);
    issued.dv = frame.output(2);
    issued.scratch = frame.scratch();
    return status_of(launch_attention_gradient(issued, frame.stream()), "launching the gradients of attention");
  });
}

}  // namespace

Result<Kernel> make_attention(KernelRequest &request) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::AttentionAttributes::from(request.node));
  return forward_kernel(request, attention_work(attributes, request, 0));
}

Result<Kernel> make_attention_gradient(KernelRequest &request) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::AttentionGradientAttributes::from(request.node));
  return gradient_kernel(request, attention_work(attributes, request, 1));
}

Result<Kernel> make_dropout_attention(KernelRequest &request) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::DropoutAttentionAttributes::from(request.node));
  AttentionWork work = attention_work(attributes, request, 0);
  forget(request, attributes, work);
  return forward_kernel(request, work);
}

Result<Kernel> make_dropout_attention_gradient(KernelRequest &request) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::DropoutAttentionGradientAttributes::from(request.node));
  AttentionWork work = attention_work(attributes, request, 1);
  forget(request, attributes, work);
  return gradient_kernel(request, work);
}

}  // namespace tutti::impl::backend::gpu
