// SPDX-License-Identifier: Apache-2.0
//
// dropout and the random leaves: the numbers of backend/random_elements.h.
#include "backend/gpu/device/device_random.h"
#include "backend/gpu/kernel/kernels.h"
#include "backend/random_elements.h"
#include "graph/ops/op_attributes.h"

namespace tutti::impl::backend::gpu {

using base::Result;
using base::Status;

namespace {

/// Of output 0, but for what a run adds.
RandomLayout layout_of(const KernelRequest &request, int64_t key) {
  const RandomRows rows = RandomRows::of(request.lowered, request.node, key);
  RandomLayout layout{};
  layout.outer = rows.outer;
  layout.rows = rows.rows;
  layout.factor = rows.factor;
  layout.inner = rows.inner;
  layout.has_batch = rows.has_batch ? 1 : 0;
  layout.dtype = request.output(0).dtype;
  layout.stream = rows.stream;
  return layout;
}

RandomLayout in_run(RandomLayout layout, const Frame &frame) {
  layout.iteration = frame.scan_iteration();
  layout.scalars = frame.scalars();
  return layout;
}

template <typename Attributes>
Result<Kernel> make_normal(KernelRequest &request, Normal kind) {
  TUTTI_ASSIGN(const Attributes attributes, Attributes::from(request.node));
  return Kernel([layout = layout_of(request, attributes.key), kind, mean = attributes.mean,
                 deviation = attributes.stddev](const Frame &frame) {
    return status_of(
        launch_random_normal(in_run(layout, frame), kind, mean, deviation, frame.output(0), frame.stream()),
        "launching random numbers");
  });
}

}  // namespace

Result<Kernel> make_dropout(KernelRequest &request) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::DropoutAttributes::from(request.node));
  return Kernel([layout = layout_of(request, attributes.key), rate = attributes.rate](const Frame &frame) {
    return status_of(launch_dropout(in_run(layout, frame), rate, frame.input(0), frame.output(0), frame.stream()),
                     "launching dropout");
  });
}

Result<Kernel> make_random_uniform(KernelRequest &request) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::RandomUniformAttributes::from(request.node));
  return Kernel(
      [layout = layout_of(request, attributes.key), low = attributes.low, high = attributes.high](const Frame &frame) {
        return status_of(launch_random_uniform(in_run(layout, frame), low, high, frame.output(0), frame.stream()),
                         "launching random numbers");
      });
}

Result<Kernel> make_random_normal(KernelRequest &request) {
  return make_normal<graph::ops::RandomNormalAttributes>(request, Normal::plain);
}

Result<Kernel> make_random_truncated_normal(KernelRequest &request) {
  return make_normal<graph::ops::RandomTruncatedNormalAttributes>(request, Normal::truncated);
}

}  // namespace tutti::impl::backend::gpu
