// SPDX-License-Identifier: Apache-2.0
//
// Batch normalisation over all axes but the last.
#include "backend/gpu/device/device_batch_norm.h"
#include "backend/gpu/fusion/norm_fronts.h"
#include "backend/gpu/fusion/product_epilogues.h"
#include "backend/gpu/kernel/kernels.h"
#include "graph/ops/op_attributes.h"

namespace tutti::impl::backend::gpu {

using base::Result;
using base::Status;

namespace {

/// What all ops know of inputs `x` and `parameter`.
BatchNormWork norm_work(KernelRequest &request, size_t x, size_t parameter, double epsilon) {
  const LoweredValue &value = request.input(x);
  BatchNormWork work{};
  work.dtype = value.dtype;
  work.parameter = request.input(parameter).dtype;
  work.channels = value.dims.back();
  work.rows = work.channels == 0 ? 0 : value.elements / work.channels;
  work.epsilon = epsilon;
  request.reserve_scratch(batch_norm_scratch_bytes(work));
  return work;
}

/// Inputs of the gradients: dy, x, ...
BatchNormWork with_slopes(BatchNormWork work, const Frame &frame) {
  work.dy = frame.input(0);
  work.x = frame.input(1);
  work.scratch = frame.scratch();
  return work;
}

}  // namespace

Result<Kernel> make_batch_norm_training(KernelRequest &request) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::BatchNormTrainingAttributes::from(request.node));
  BatchNormWork work = norm_work(request, 0, 1, attributes.epsilon);
  work.statistics = request.output(1).dtype;
  return Kernel([work, tail = KeptEpilogue(request)](const Frame &frame) {
    Epilogue epilogue;
    BatchNormWork issued = work;
    issued.epilogue = tail.place(frame, epilogue);
    issued.x = frame.input(0);
    issued.scale = frame.input(1);
    issued.offset = frame.input(2);
    issued.y = frame.output(0);
    issued.first = frame.output(1);
    issued.second = frame.output(2);
    issued.scratch = frame.scratch();
    return status_of(launch_batch_norm_training(issued, frame.stream()), "launching a batch normalisation");
  });
}

Result<Kernel> make_batch_norm_training_gradient(KernelRequest &request) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::BatchNormTrainingGradientAttributes::from(request.node));
  return Kernel([work = norm_work(request, 1, 2, attributes.epsilon), front = KeptFront(request)](const Frame &frame) {
    Epilogue epilogue;
    BatchNormWork issued = with_slopes(work, frame);
    front.put(frame, epilogue, issued);
    issued.scale = frame.input(2);
    issued.mean = frame.input(3);
    issued.variance = frame.input(4);
    issued.y = frame.output(0);
    issued.first = frame.output(1);
    issued.second = frame.output(2);
    return status_of(launch_batch_norm_training_gradient(issued, frame.stream()),
                     "launching a gradient of batch normalisation");
  });
}

Result<Kernel> make_batch_norm_inference(KernelRequest &request) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::BatchNormInferenceAttributes::from(request.node));
  return Kernel(
      [work = norm_work(request, 0, 1, attributes.epsilon), tail = KeptEpilogue(request)](const Frame &frame) {
        Epilogue epilogue;
        BatchNormWork issued = work;
        issued.epilogue = tail.place(frame, epilogue);
        issued.x = frame.input(0);
        issued.scale = frame.input(1);
        issued.offset = frame.input(2);
        issued.mean = frame.input(3);
        issued.variance = frame.input(4);
        issued.y = frame.output(0);
        return status_of(launch_batch_norm_inference(issued, frame.stream()), "launching a batch normalisation");
      });
}

Result<Kernel> make_batch_norm_moments(KernelRequest &request) {
  return Kernel([work = norm_work(request, 0, 0, 0)](const Frame &frame) {
    BatchNormWork issued = work;
    issued.x = frame.input(0);
    issued.first = frame.output(0);
    issued.second = frame.output(1);
    issued.scratch = frame.scratch();
    return status_of(launch_batch_norm_moments(issued, frame.stream()), "launching the moments of a batch");
  });
}

Result<Kernel> make_batch_norm_gradient_moments(KernelRequest &request) {
  return Kernel([work = norm_work(request, 1, 2, 0), front = KeptFront(request)](const Frame &frame) {
    Epilogue epilogue;
    BatchNormWork issued = with_slopes(work, frame);
    front.put(frame, epilogue, issued);
    issued.mean = frame.input(2);
    issued.first = frame.output(0);
    issued.second = frame.output(1);
    return status_of(launch_batch_norm_gradient_moments(issued, frame.stream()),
                     "launching the sums of a gradient of batch normalisation");
  });
}

Result<Kernel> make_batch_norm_gradient_apply(KernelRequest &request) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::BatchNormGradientApplyAttributes::from(request.node));
  return Kernel([work = norm_work(request, 1, 2, attributes.epsilon)](const Frame &frame) {
    BatchNormWork issued = with_slopes(work, frame);
    issued.scale = frame.input(2);
    issued.mean = frame.input(3);
    issued.variance = frame.input(4);
    issued.sum_dy = frame.input_as<double>(5);
    issued.sum_dy_xc = frame.input_as<double>(6);
    issued.count = frame.input_as<double>(7);
    issued.y = frame.output(0);
    return status_of(launch_batch_norm_gradient_apply(issued, frame.stream()),
                     "launching a gradient of batch normalisation");
  });
}

}  // namespace tutti::impl::backend::gpu
