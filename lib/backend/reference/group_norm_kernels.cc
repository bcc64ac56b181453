// SPDX-License-Identifier: Apache-2.0
//
// Group normalisation of [rows, positions, channels], one row at a time as doubles in scratch memory.
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

struct GroupNormPlan {
  int64_t rows = 0, positions = 0, channels = 0, groups = 1;
  DType dtype{}, parameter{}, statistics{};
  double epsilon = 0;

  int64_t row_elements() const { return positions * channels; }
  int64_t group_channels() const { return channels / groups; }
  /// Elements of a group; 1 where there are none, to divide by.
  double count() const { return static_cast<double>(std::max<int64_t>(positions * group_channels(), 1)); }

  /// Calls function(element of the row, channel) for the elements of a group.
  template <typename Function>
  void for_group(int64_t group, Function function) const {
    const int64_t begin = group * group_channels(), end = begin + group_channels();
    for (int64_t position = 0; position < positions; ++position) {
      for (int64_t channel = begin; channel < end; ++channel)
        function(position * channels + channel, channel);
    }
  }
};

/// Scratch memory: `images` arrays as large as a row, then `vectors` as long as the channels.
GroupNormPlan group_plan(KernelRequest &request, size_t x, size_t scale, int64_t groups, int64_t images,
                         int64_t vectors) {
  const LoweredValue &value = request.input(x);
  GroupNormPlan plan;
  plan.rows = value.dims.front();
  plan.channels = value.dims.back();
  plan.positions = 1;
  for (size_t axis = 1; axis + 1 < value.dims.size(); ++axis)
    plan.positions *= value.dims[axis];
  plan.groups = groups;
  plan.dtype = value.dtype;
  plan.parameter = request.input(scale).dtype;
  request.scratch_bytes =
      (images * plan.row_elements() + vectors * plan.channels) * static_cast<int64_t>(sizeof(double));
  return plan;
}

}  // namespace

Result<Kernel> make_group_norm(KernelRequest &request) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::GroupNormAttributes::from(request.node));
  GroupNormPlan plan = group_plan(request, 0, 1, attributes.groups, 1, 2);
  plan.statistics = request.output(1).dtype;
  plan.epsilon = attributes.epsilon;
  return Kernel([plan](const Frame &frame) {
    double *const x = frame.scratch_doubles(), *const scale = x + plan.row_elements();
    double *const offset = scale + plan.channels;
    load(plan.parameter, frame.input(1), 0, 1, plan.channels, scale);
    load(plan.parameter, frame.input(2), 0, 1, plan.channels, offset);
    for (int64_t row = 0; row < plan.rows; ++row) {
      load(plan.dtype, frame.input(0), row * plan.row_elements(), 1, plan.row_elements(), x);
      for (int64_t group = 0; group < plan.groups; ++group) {
        double mean = 0, variance = 0;
        plan.for_group(group, [&](int64_t i, int64_t) { mean += x[i] / plan.count(); });
        plan.for_group(group, [&](int64_t i, int64_t) { variance += (x[i] - mean) * (x[i] - mean) / plan.count(); });
        const double rstd = 1 / std::sqrt(variance + plan.epsilon);
        plan.for_group(group, [&](int64_t i, int64_t c) { x[i] = (x[i] - mean) * rstd * scale[c] + offset[c]; });
        store(plan.statistics, frame.output(1), row * plan.groups + group, 1, &mean);
        store(plan.statistics, frame.output(2), row * plan.groups + group, 1, &rstd);
      }
      store(plan.dtype, frame.output(0), row * plan.row_elements(), plan.row_elements(), x);
    }
    return Status();
  });
}

/// With n = (x - mean) · rstd and g = dy · scale, averages over the group: dx = rstd · (g - average(g) -
/// n · average(g · n)), dscale = sum(dy · n), doffset = sum(dy).
Result<Kernel> make_group_norm_gradient(KernelRequest &request) {
  GroupNormPlan plan = group_plan(request, 1, 2, request.input(3).dims.back(), 2, 3);
  plan.statistics = request.input(3).dtype;
  return Kernel([plan](const Frame &frame) {
    double *const x = frame.scratch_doubles(), *const dy = x + plan.row_elements();
    double *const scale = dy + plan.row_elements(), *const dscale = scale + plan.channels;
    double *const doffset = dscale + plan.channels;
    load(plan.parameter, frame.input(2), 0, 1, plan.channels, scale);
    std::fill(dscale, doffset + plan.channels, 0.0);
    for (int64_t row = 0; row < plan.rows; ++row) {
      load(plan.dtype, frame.input(0), row * plan.row_elements(), 1, plan.row_elements(), dy);
      load(plan.dtype, frame.input(1), row * plan.row_elements(), 1, plan.row_elements(), x);
      for (int64_t group = 0; group < plan.groups; ++group) {
        const double mean = load_one(plan.statistics, frame.input(3), row * plan.groups + group);
        const double rstd = load_one(plan.statistics, frame.input(4), row * plan.groups + group);
        double average = 0, projection = 0;
        plan.for_group(group, [&](int64_t i, int64_t c) {
          x[i] = (x[i] - mean) * rstd;
          dscale[c] += dy[i] * x[i];
          doffset[c] += dy[i];
          dy[i] *= scale[c];
          average += dy[i] / plan.count();
          projection += dy[i] * x[i] / plan.count();
        });
        plan.for_group(group, [&](int64_t i, int64_t) { x[i] = rstd * (dy[i] - average - x[i] * projection); });
      }
      store(plan.dtype, frame.output(0), row * plan.row_elements(), plan.row_elements(), x);
    }
    store(plan.parameter, frame.output(1), 0, plan.channels, dscale);
    store(plan.parameter, frame.output(2), 0, plan.channels, doffset);
    return Status();
  });
}

}  // namespace tutti::impl::backend::reference
