// SPDX-License-Identifier: Apache-2.0
//
// Batch normalisation over all axes but the last. Rows here are the positions over which the statistics run; channels
// are worked on together, as doubles in scratch memory. Two passes for the variance.
#include <algorithm>
#include <cmath>
#include <utility>

#include "backend/reference/elements.h"
#include "backend/reference/kernels.h"
#include "graph/ops/op_attributes.h"

namespace tutti::impl::backend::reference {

using base::Result;
using base::Status;
using tensor::DType;

namespace {

struct BatchNormPlan {
  int64_t rows = 0, channels = 0;
  DType dtype{}, parameter{};
  double epsilon = 0;
};

/// Scratch memory for `arrays` arrays of one double per channel.
BatchNormPlan norm_plan(KernelRequest &request, size_t x, size_t parameter, int64_t arrays, double epsilon) {
  const LoweredValue &value = request.input(x);
  BatchNormPlan plan;
  plan.channels = value.dims.back();
  plan.rows = plan.channels == 0 ? 0 : value.elements / plan.channels;
  plan.dtype = value.dtype;
  plan.parameter = request.input(parameter).dtype;
  plan.epsilon = epsilon;
  request.scratch_bytes = arrays * plan.channels * static_cast<int64_t>(sizeof(double));
  return plan;
}

/// Hands out arrays of one double per channel.
class ChannelArrays {
 public:
  ChannelArrays(const BatchNormPlan &plan, const Frame &frame) : next_(frame.scratch_doubles()), plan_(plan) {}
  double *take() { return std::exchange(next_, next_ + plan_.channels); }
  double *take_zeros() {
    double *const array = take();
    std::fill(array, array + plan_.channels, 0.0);
    return array;
  }
  double *take_parameter(DType dtype, const void *source) {
    double *const array = take();
    if (plan_.channels != 0) load(dtype, source, 0, 1, plan_.channels, array);
    return array;
  }

 private:
  double *next_;
  const BatchNormPlan &plan_;
};

/// Calls function(row) with `x` holding that row of `source`.
template <typename Function>
void for_rows(const BatchNormPlan &plan, const void *source, double *x, Function function) {
  for (int64_t row = 0; row < plan.rows; ++row) {
    load(plan.dtype, source, row * plan.channels, 1, plan.channels, x);
    function(row);
  }
}

void normalize(const BatchNormPlan &plan, const Frame &frame, double *x, const double *scale, const double *offset,
               const double *mean, const double *variance) {
  for_rows(plan, frame.input(0), x, [&](int64_t row) {
    for (int64_t c = 0; c < plan.channels; ++c)
      x[c] = (x[c] - mean[c]) / std::sqrt(variance[c] + plan.epsilon) * scale[c] + offset[c];
    store(plan.dtype, frame.output(0), row * plan.channels, plan.channels, x);
  });
}

/// Sums over rows of dy and dy · (x - mean); inputs 0 and 1 are dy and x.
void gradient_sums(const BatchNormPlan &plan, const Frame &frame, double *x, double *dy, const double *mean,
                   double *sum_dy, double *sum_dy_xc) {
  for_rows(plan, frame.input(1), x, [&](int64_t row) {
    load(plan.dtype, frame.input(0), row * plan.channels, 1, plan.channels, dy);
    for (int64_t c = 0; c < plan.channels; ++c) {
      sum_dy[c] += dy[c];
      sum_dy_xc[c] += dy[c] * (x[c] - mean[c]);
    }
  });
}

/// dx = scale · r · (dy - sum_dy / count - (x - mean) · r² · sum_dy_xc / count), r = 1 / sqrt(variance + epsilon).
void gradient_apply(const BatchNormPlan &plan, const Frame &frame, double *x, double *dy, const double *scale,
                    const double *mean, const double *variance, const double *sum_dy, const double *sum_dy_xc,
                    double count) {
  for_rows(plan, frame.input(1), x, [&](int64_t row) {
    load(plan.dtype, frame.input(0), row * plan.channels, 1, plan.channels, dy);
    for (int64_t c = 0; c < plan.channels; ++c) {
      const double r = 1 / std::sqrt(variance[c] + plan.epsilon);
      x[c] = scale[c] * r * (dy[c] - sum_dy[c] / count - (x[c] - mean[c]) * r * r * sum_dy_xc[c] / count);
    }
    store(plan.dtype, frame.output(0), row * plan.channels, plan.channels, x);
  });
}

void store_channels(const BatchNormPlan &plan, DType dtype, void *target, const double *array) {
  if (plan.channels != 0) store(dtype, target, 0, plan.channels, array);
}

}  // namespace

Result<Kernel> make_batch_norm_training(KernelRequest &request) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::BatchNormTrainingAttributes::from(request.node));
  const BatchNormPlan plan = norm_plan(request, 0, 1, 5, attributes.epsilon);
  return Kernel([plan, statistics = request.output(1).dtype](const Frame &frame) {
    ChannelArrays arrays(plan, frame);
    double *const x = arrays.take(), *const mean = arrays.take_zeros(), *const variance = arrays.take_zeros();
    const double *const scale = arrays.take_parameter(plan.parameter, frame.input(1));
    const double *const offset = arrays.take_parameter(plan.parameter, frame.input(2));
    const double count = static_cast<double>(std::max<int64_t>(plan.rows, 1));
    for_rows(plan, frame.input(0), x, [&](int64_t) {
      for (int64_t c = 0; c < plan.channels; ++c)
        mean[c] += x[c] / count;
    });
    for_rows(plan, frame.input(0), x, [&](int64_t) {
      for (int64_t c = 0; c < plan.channels; ++c)
        variance[c] += (x[c] - mean[c]) * (x[c] - mean[c]) / count;
    });
    normalize(plan, frame, x, scale, offset, mean, variance);
    store_channels(plan, statistics, frame.output(1), mean);
    store_channels(plan, statistics, frame.output(2), variance);
    return Status();
  });
}

Result<Kernel> make_batch_norm_training_gradient(KernelRequest &request) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::BatchNormTrainingGradientAttributes::from(request.node));
  const BatchNormPlan plan = norm_plan(request, 1, 2, 7, attributes.epsilon);
  return Kernel([plan](const Frame &frame) {
    ChannelArrays arrays(plan, frame);
    double *const x = arrays.take(), *const dy = arrays.take();
    double *const sum_dy = arrays.take_zeros(), *const sum_dy_xc = arrays.take_zeros();
    const double *const scale = arrays.take_parameter(plan.parameter, frame.input(2));
    const double *const mean = arrays.take_parameter(plan.parameter, frame.input(3));
    const double *const variance = arrays.take_parameter(plan.parameter, frame.input(4));
    gradient_sums(plan, frame, x, dy, mean, sum_dy, sum_dy_xc);
    gradient_apply(plan, frame, x, dy, scale, mean, variance, sum_dy, sum_dy_xc,
                   static_cast<double>(std::max<int64_t>(plan.rows, 1)));
    for (int64_t c = 0; c < plan.channels; ++c)
      sum_dy_xc[c] /= std::sqrt(variance[c] + plan.epsilon);
    store_channels(plan, plan.parameter, frame.output(1), sum_dy_xc);
    store_channels(plan, plan.parameter, frame.output(2), sum_dy);
    return Status();
  });
}

Result<Kernel> make_batch_norm_inference(KernelRequest &request) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::BatchNormInferenceAttributes::from(request.node));
  const BatchNormPlan plan = norm_plan(request, 0, 1, 5, attributes.epsilon);
  return Kernel([plan](const Frame &frame) {
    ChannelArrays arrays(plan, frame);
    double *const x = arrays.take();
    const double *parameters[4];
    for (int32_t i = 0; i < 4; ++i)
      parameters[i] = arrays.take_parameter(plan.parameter, frame.input(1 + i));
    normalize(plan, frame, x, parameters[0], parameters[1], parameters[2], parameters[3]);
    return Status();
  });
}

Result<Kernel> make_batch_norm_moments(KernelRequest &request) {
  const BatchNormPlan plan = norm_plan(request, 0, 0, 3, 0);
  return Kernel([plan](const Frame &frame) {
    ChannelArrays arrays(plan, frame);
    double *const x = arrays.take(), *const sum = arrays.take_zeros(), *const squares = arrays.take_zeros();
    for_rows(plan, frame.input(0), x, [&](int64_t) {
      for (int64_t c = 0; c < plan.channels; ++c) {
        sum[c] += x[c];
        squares[c] += x[c] * x[c];
      }
    });
    store_channels(plan, DType::f64, frame.output(0), sum);
    store_channels(plan, DType::f64, frame.output(1), squares);
    return Status();
  });
}

Result<Kernel> make_batch_norm_gradient_moments(KernelRequest &request) {
  const BatchNormPlan plan = norm_plan(request, 1, 2, 5, 0);
  return Kernel([plan](const Frame &frame) {
    ChannelArrays arrays(plan, frame);
    double *const x = arrays.take(), *const dy = arrays.take();
    double *const sum_dy = arrays.take_zeros(), *const sum_dy_xc = arrays.take_zeros();
    const double *const mean = arrays.take_parameter(plan.parameter, frame.input(2));
    gradient_sums(plan, frame, x, dy, mean, sum_dy, sum_dy_xc);
    store_channels(plan, DType::f64, frame.output(0), sum_dy);
    store_channels(plan, DType::f64, frame.output(1), sum_dy_xc);
    return Status();
  });
}

Result<Kernel> make_batch_norm_gradient_apply(KernelRequest &request) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::BatchNormGradientApplyAttributes::from(request.node));
  const BatchNormPlan plan = norm_plan(request, 1, 2, 7, attributes.epsilon);
  return Kernel([plan](const Frame &frame) {
    ChannelArrays arrays(plan, frame);
    double *const x = arrays.take(), *const dy = arrays.take();
    const double *const scale = arrays.take_parameter(plan.parameter, frame.input(2));
    const double *const mean = arrays.take_parameter(plan.parameter, frame.input(3));
    const double *const variance = arrays.take_parameter(plan.parameter, frame.input(4));
    const double *const sum_dy = arrays.take_parameter(DType::f64, frame.input(5));
    const double *const sum_dy_xc = arrays.take_parameter(DType::f64, frame.input(6));
    gradient_apply(plan, frame, x, dy, scale, mean, variance, sum_dy, sum_dy_xc, *frame.input_as<double>(7));
    return Status();
  });
}

}  // namespace tutti::impl::backend::reference
