// SPDX-License-Identifier: Apache-2.0
//
// Scaled dot-product attention and its gradients.
#include <cmath>

#include "backend/gpu/device_attention.h"
#include "backend/gpu/kernels.h"
#include "graph/ops/op_attributes.h"

namespace tutti::impl::backend::gpu {

using base::Result;

namespace {

template <typename Attributes>
AttentionWork attention_work(const Attributes &attributes, const LoweredValue &q, const LoweredValue &k) {
  AttentionWork work{};
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

}  // namespace

Result<Kernel> make_attention(KernelRequest &request) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::AttentionAttributes::from(request.node));
  const AttentionWork work = attention_work(attributes, request.input(0), request.input(1));
  return Kernel([work, has_lengths = request.has_input(3)](const Frame &frame) {
    AttentionWork issued = work;
    issued.q = frame.input(0);
    issued.k = frame.input(1);
    issued.v = frame.input(2);
    if (has_lengths) issued.lengths = frame.input_as<int32_t>(3);
    issued.y = frame.output(0);
    issued.statistics = frame.output(1);
    return status_of(launch_attention(issued, frame.stream()), "launching attention");
  });
}

Result<Kernel> make_attention_gradient(KernelRequest &request) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::AttentionGradientAttributes::from(request.node));
  const AttentionWork work = attention_work(attributes, request.input(1), request.input(2));
  request.reserve_scratch(attention_gradient_scratch_bytes(work));
  return Kernel([work, has_lengths = request.has_input(6)](const Frame &frame) {
    AttentionWork issued = work;
    issued.dy = frame.input(0);
    issued.q = frame.input(1);
    issued.k = frame.input(2);
    issued.v = frame.input(3);
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

}  // namespace tutti::impl::backend::gpu
