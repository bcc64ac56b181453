// SPDX-License-Identifier: Apache-2.0
//
// Layer and RMS normalisation over the last axis, one row at a time as doubles in scratch memory.
#include <algorithm>
#include <cmath>

#include "backend/reference/elements.h"
#include "backend/reference/kernels.h"
#include "graph/ops/op_attributes.h"

namespace tutti::impl::backend::reference {

using base::Result;
using base::Status;
using tensor::DType;

namespace {

struct LayerNormPlan {
  int64_t rows = 0, width = 0;
  DType dtype{}, parameter{}, statistics{};
  double epsilon = 0;
};

LayerNormPlan layer_norm_plan(KernelRequest &request, size_t x, size_t scale, DType statistics, int64_t arrays) {
  const LoweredValue &value = request.input(x);
  LayerNormPlan plan;
  plan.width = value.dims.back();
  plan.rows = plan.width == 0 ? 0 : value.elements / plan.width;
  plan.dtype = value.dtype;
  plan.parameter = request.input(scale).dtype;
  plan.statistics = statistics;
  request.scratch_bytes = arrays * plan.width * static_cast<int64_t>(sizeof(double));
  return plan;
}

}  // namespace

Result<Kernel> make_layer_norm(KernelRequest &request) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::LayerNormAttributes::from(request.node));
  LayerNormPlan plan = layer_norm_plan(request, 0, 1, request.output(1).dtype, 3);
  plan.epsilon = attributes.epsilon;
  return Kernel([plan](const Frame &frame) {
    double *const x = frame.scratch_doubles(), *const scale = x + plan.width, *const offset = scale + plan.width;
    if (plan.rows == 0) return Status();
    load(plan.parameter, frame.input(1), 0, 1, plan.width, scale);
    load(plan.parameter, frame.input(2), 0, 1, plan.width, offset);
    const double width = static_cast<double>(plan.width);
    for (int64_t row = 0; row < plan.rows; ++row) {
      load(plan.dtype, frame.input(0), row * plan.width, 1, plan.width, x);
      double mean = 0, variance = 0;
      for (int64_t i = 0; i < plan.width; ++i)
        mean += x[i] / width;
      for (int64_t i = 0; i < plan.width; ++i)
        variance += (x[i] - mean) * (x[i] - mean) / width;
      const double rstd = 1 / std::sqrt(variance + plan.epsilon);
      for (int64_t i = 0; i < plan.width; ++i)
        x[i] = (x[i] - mean) * rstd * scale[i] + offset[i];
      store(plan.dtype, frame.output(0), row * plan.width, plan.width, x);
      store(plan.statistics, frame.output(1), row, 1, &mean);
      store(plan.statistics, frame.output(2), row, 1, &rstd);
    }
    return Status();
  });
}

/// With n = (x - mean) · rstd and g = dy · scale: dx = rstd · (g - average(g) - n · average(g · n)),
/// dscale = sum(dy · n), doffset = sum(dy).
Result<Kernel> make_layer_norm_gradient(KernelRequest &request) {
  const LayerNormPlan plan = layer_norm_plan(request, 1, 2, request.input(3).dtype, 5);
  return Kernel([plan](const Frame &frame) {
    double *const x = frame.scratch_doubles(), *const dy = x + plan.width, *const scale = dy + plan.width;
    double *const dscale = scale + plan.width, *const doffset = dscale + plan.width;
    if (plan.width == 0) return Status();
    load(plan.parameter, frame.input(2), 0, 1, plan.width, scale);
    std::fill(dscale, doffset + plan.width, 0.0);
    const double width = static_cast<double>(plan.width);
    for (int64_t row = 0; row < plan.rows; ++row) {
      load(plan.dtype, frame.input(0), row * plan.width, 1, plan.width, dy);
      load(plan.dtype, frame.input(1), row * plan.width, 1, plan.width, x);
      const double mean = load_one(plan.statistics, frame.input(3), row);
      const double rstd = load_one(plan.statistics, frame.input(4), row);
      double average = 0, projection = 0;
      for (int64_t i = 0; i < plan.width; ++i) {
        x[i] = (x[i] - mean) * rstd;
        dscale[i] += dy[i] * x[i];
        doffset[i] += dy[i];
        dy[i] *= scale[i];
        average += dy[i] / width;
        projection += dy[i] * x[i] / width;
      }
      for (int64_t i = 0; i < plan.width; ++i)
        x[i] = rstd * (dy[i] - average - x[i] * projection);
      store(plan.dtype, frame.output(0), row * plan.width, plan.width, x);
    }
    store(plan.parameter, frame.output(1), 0, plan.width, dscale);
    store(plan.parameter, frame.output(2), 0, plan.width, doffset);
    return Status();
  });
}

Result<Kernel> make_rms_norm(KernelRequest &request) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::RmsNormAttributes::from(request.node));
  LayerNormPlan plan = layer_norm_plan(request, 0, 1, request.output(1).dtype, 2);
  plan.epsilon = attributes.epsilon;
  return Kernel([plan](const Frame &frame) {
    double *const x = frame.scratch_doubles(), *const scale = x + plan.width;
    if (plan.rows == 0) return Status();
    load(plan.parameter, frame.input(1), 0, 1, plan.width, scale);
    for (int64_t row = 0; row < plan.rows; ++row) {
      load(plan.dtype, frame.input(0), row * plan.width, 1, plan.width, x);
      double square = 0;
      for (int64_t i = 0; i < plan.width; ++i)
        square += x[i] * x[i] / static_cast<double>(plan.width);
      const double rstd = 1 / std::sqrt(square + plan.epsilon);
      for (int64_t i = 0; i < plan.width; ++i)
        x[i] *= rstd * scale[i];
      store(plan.dtype, frame.output(0), row * plan.width, plan.width, x);
      store(plan.statistics, frame.output(1), row, 1, &rstd);
    }
    return Status();
  });
}

/// With n = x · rstd and g = dy · scale: dx = rstd · (g - n · average(g · n)), dscale = sum(dy · n).
Result<Kernel> make_rms_norm_gradient(KernelRequest &request) {
  const LayerNormPlan plan = layer_norm_plan(request, 1, 2, request.input(3).dtype, 4);
  return Kernel([plan](const Frame &frame) {
    double *const x = frame.scratch_doubles(), *const dy = x + plan.width, *const scale = dy + plan.width;
    double *const dscale = scale + plan.width;
    if (plan.width == 0) return Status();
    load(plan.parameter, frame.input(2), 0, 1, plan.width, scale);
    std::fill_n(dscale, plan.width, 0.0);
    for (int64_t row = 0; row < plan.rows; ++row) {
      load(plan.dtype, frame.input(0), row * plan.width, 1, plan.width, dy);
      load(plan.dtype, frame.input(1), row * plan.width, 1, plan.width, x);
      const double rstd = load_one(plan.statistics, frame.input(3), row);
      double projection = 0;
      for (int64_t i = 0; i < plan.width; ++i) {
        x[i] *= rstd;
        dscale[i] += dy[i] * x[i];
        dy[i] *= scale[i];
        projection += dy[i] * x[i] / static_cast<double>(plan.width);
      }
      for (int64_t i = 0; i < plan.width; ++i)
        x[i] = rstd * (dy[i] - x[i] * projection);
      store(plan.dtype, frame.output(0), row * plan.width, plan.width, x);
    }
    store(plan.parameter, frame.output(1), 0, plan.width, dscale);
    return Status();
  });
}

}  // namespace tutti::impl::backend::reference
