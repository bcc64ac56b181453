// SPDX-License-Identifier: Apache-2.0
//
// Losses over logits and their gradients, and in_top_k.
#include "backend/gpu/device/device_cross_entropy.h"
#include "backend/gpu/kernel/kernels.h"
#include "graph/ops/op_attributes.h"

namespace tutti::impl::backend::gpu {

using base::Result;
using base::Status;

namespace {

/// Work on the rows of input `logits`, whose targets or labels are the input after it.
CrossEntropyWork row_work(KernelRequest &request, size_t logits, bool is_sparse, double smoothing) {
  const LoweredValue &x = request.input(logits);
  CrossEntropyWork work{};
  work.dtype = x.dtype;
  work.target = request.input(logits + 1).dtype;
  work.is_sparse = is_sparse;
  work.order = request.sum_order();
  work.classes = x.dims.back();
  work.rows = work.classes == 0 ? 0 : x.elements / work.classes;
  work.smoothing = smoothing;
  return work;
}

/// A label out of range is a fault; labels are input `labels`.
void add_label_fault(KernelRequest &request, CrossEntropyWork &work, size_t labels) {
  if (work.is_sparse) work.fault = request.add_fault(labels, work.classes, "label");
}

/// Inputs: logits, labels or targets.
Kernel loss_kernel(KernelRequest &request, bool is_sparse, double smoothing) {
  CrossEntropyWork work = row_work(request, 0, is_sparse, smoothing);
  work.loss = request.output(0).dtype;
  add_label_fault(request, work, 1);
  return [work](const Frame &frame) {
    CrossEntropyWork issued = work;
    issued.faults = frame.faults();
    issued.logits = frame.input(0);
    issued.targets = frame.input(1);
    issued.result = frame.output(0);
    return status_of(launch_cross_entropy(issued, frame.stream()), "launching a cross entropy");
  };
}

/// Inputs: dloss, logits, labels or targets.
Kernel gradient_kernel(KernelRequest &request, bool is_sparse, double smoothing) {
  CrossEntropyWork work = row_work(request, 1, is_sparse, smoothing);
  work.loss = request.input(0).dtype;
  add_label_fault(request, work, 2);
  return [work](const Frame &frame) {
    CrossEntropyWork issued = work;
    issued.faults = frame.faults();
    issued.dloss = frame.input(0);
    issued.logits = frame.input(1);
    issued.targets = frame.input(2);
    issued.result = frame.output(0);
    return status_of(launch_cross_entropy_gradient(issued, frame.stream()), "launching a gradient of cross entropy");
  };
}

}  // namespace

Result<Kernel> make_sparse_softmax_cross_entropy(KernelRequest &request) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::SparseSoftmaxCrossEntropyAttributes::from(request.node));
  return loss_kernel(request, true, attributes.label_smoothing);
}

Result<Kernel> make_sparse_softmax_cross_entropy_gradient(KernelRequest &request) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::SparseSoftmaxCrossEntropyGradientAttributes::from(request.node));
  return gradient_kernel(request, true, attributes.label_smoothing);
}

Result<Kernel> make_softmax_cross_entropy(KernelRequest &request) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::SoftmaxCrossEntropyAttributes::from(request.node));
  return loss_kernel(request, false, attributes.label_smoothing);
}

Result<Kernel> make_softmax_cross_entropy_gradient(KernelRequest &request) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::SoftmaxCrossEntropyGradientAttributes::from(request.node));
  return gradient_kernel(request, false, attributes.label_smoothing);
}

Result<Kernel> make_in_top_k(KernelRequest &request) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::InTopKAttributes::from(request.node));
  return Kernel([work = row_work(request, 0, true, 0), k = attributes.k](const Frame &frame) {
    CrossEntropyWork issued = work;
    issued.logits = frame.input(0);
    issued.targets = frame.input(1);
    issued.result = frame.output(0);
    return status_of(launch_in_top_k(issued, k, frame.stream()), "launching in_top_k");
  });
}

}  // namespace tutti::impl::backend::gpu
