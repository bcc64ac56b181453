// SPDX-License-Identifier: Apache-2.0
//
// Losses over logits, row by row in scratch memory, and in_top_k.
//   sparse: target t is 1 - s + s/C at the label and s/C elsewhere (s = label smoothing, C = classes)
//   loss    = -sum(t * log(softmax(x)))
//   dlogits = (softmax(x) * sum(t) - t) * dloss
// log(softmax(x)) is made of differences of logits, so that it is exact where they are large and near each other.
#include <algorithm>
#include <cmath>

#include "backend/bounded_integers.h"
#include "backend/reference/elements.h"
#include "backend/reference/kernels.h"
#include "graph/ops/op_attributes.h"

namespace tutti::impl::backend::reference {

using base::Result;
using base::Status;
using tensor::DType;

namespace {

struct RowPlan {
  int64_t rows = 0, classes = 0;
  double smoothing = 0;
  DType dtype{}, label_dtype{};
  BoundedIntegers bounds;  // of labels
};

RowPlan row_plan(KernelRequest &request, size_t logits, size_t labels, double smoothing) {
  const LoweredValue &x = request.input(logits);
  RowPlan plan;
  plan.classes = x.dims.back();
  plan.rows = plan.classes == 0 ? 0 : x.elements / plan.classes;
  plan.smoothing = smoothing;
  plan.dtype = x.dtype;
  plan.label_dtype = request.input(labels).dtype;
  plan.bounds = BoundedIntegers::of(request.lowered, request.node, labels, plan.classes, "label");
  request.scratch_bytes = 2 * plan.classes * static_cast<int64_t>(sizeof(double));
  return plan;
}

/// log(softmax(x)) of one logit of a row.
struct LogShare {
  double largest = 0, log_sum = 0;  // log_sum of exp(x - largest)

  LogShare(const double *x, int64_t count) : largest(*std::max_element(x, x + count)) {
    double sum = 0;
    for (int64_t i = 0; i < count; ++i)
      sum += std::exp(x[i] - largest);
    log_sum = std::log(sum);
  }
  double of(double x) const { return x - largest - log_sum; }
};

/// The row's target probabilities from its label; an error when the label is out of range.
Status target_from_label(const RowPlan &plan, const Frame &frame, const void *labels, int64_t row, double *target) {
  int64_t label = 0;
  load(plan.label_dtype, labels, row, 1, 1, &label);
  if (label < 0 || label >= plan.classes) return plan.bounds.error(row, label, frame.scalars()[TUTTI_RUN_ROW_OFFSET]);
  const double share = plan.smoothing / static_cast<double>(plan.classes);
  std::fill(target, target + plan.classes, share);
  target[label] += 1 - plan.smoothing;
  return Status();
}

Status target_from_probabilities(const RowPlan &plan, const Frame &, const void *targets, int64_t row, double *target) {
  load(plan.label_dtype, targets, row * plan.classes, 1, plan.classes, target);
  const double share = plan.smoothing / static_cast<double>(plan.classes);
  for (int64_t i = 0; i < plan.classes; ++i)
    target[i] = target[i] * (1 - plan.smoothing) + share;
  return Status();
}

using TargetFunction = Status (*)(const RowPlan &plan, const Frame &frame, const void *source, int64_t row,
                                  double *target);

/// Inputs: logits, labels or targets.
Kernel loss_kernel(RowPlan plan, TargetFunction read_target) {
  return [plan = std::move(plan), read_target](const Frame &frame) -> Status {
    double *const x = frame.scratch_doubles(), *const target = x + plan.classes;
    for (int64_t row = 0; row < plan.rows; ++row) {
      load(plan.dtype, frame.input(0), row * plan.classes, 1, plan.classes, x);
      TUTTI_TRY(read_target(plan, frame, frame.input(1), row, target));
      const LogShare log_share(x, plan.classes);
      double loss = 0;
      for (int64_t i = 0; i < plan.classes; ++i)
        loss -= target[i] == 0 ? 0 : target[i] * log_share.of(x[i]);
      store(plan.dtype, frame.output(0), row, 1, &loss);
    }
    return Status();
  };
}

/// Inputs: dloss, logits, labels or targets.
Kernel gradient_kernel(RowPlan plan, TargetFunction read_target) {
  return [plan = std::move(plan), read_target](const Frame &frame) -> Status {
    double *const x = frame.scratch_doubles(), *const target = x + plan.classes;
    for (int64_t row = 0; row < plan.rows; ++row) {
      load(plan.dtype, frame.input(1), row * plan.classes, 1, plan.classes, x);
      TUTTI_TRY(read_target(plan, frame, frame.input(2), row, target));
      const double dloss = load_one(plan.dtype, frame.input(0), row);
      const LogShare log_share(x, plan.classes);
      double weight = 0;
      for (int64_t i = 0; i < plan.classes; ++i)
        weight += target[i];
      for (int64_t i = 0; i < plan.classes; ++i)
        x[i] = (std::exp(log_share.of(x[i])) * weight - target[i]) * dloss;
      store(plan.dtype, frame.output(0), row * plan.classes, plan.classes, x);
    }
    return Status();
  };
}

}  // namespace

Result<Kernel> make_sparse_softmax_cross_entropy(KernelRequest &request) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::SparseSoftmaxCrossEntropyAttributes::from(request.node));
  return loss_kernel(row_plan(request, 0, 1, attributes.label_smoothing), target_from_label);
}

Result<Kernel> make_sparse_softmax_cross_entropy_gradient(KernelRequest &request) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::SparseSoftmaxCrossEntropyGradientAttributes::from(request.node));
  return gradient_kernel(row_plan(request, 1, 2, attributes.label_smoothing), target_from_label);
}

Result<Kernel> make_softmax_cross_entropy(KernelRequest &request) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::SoftmaxCrossEntropyAttributes::from(request.node));
  return loss_kernel(row_plan(request, 0, 1, attributes.label_smoothing), target_from_probabilities);
}

Result<Kernel> make_softmax_cross_entropy_gradient(KernelRequest &request) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::SoftmaxCrossEntropyGradientAttributes::from(request.node));
  return gradient_kernel(row_plan(request, 1, 2, attributes.label_smoothing), target_from_probabilities);
}

Result<Kernel> make_sigmoid_cross_entropy(KernelRequest &request) {
  const DType dtype = request.output(0).dtype;
  return Kernel([dtype, count = request.output(0).elements](const Frame &frame) {
    for_runs(count, [&](int64_t first, int64_t length) {
      double x[kRun], target[kRun];
      load(dtype, frame.input(0), first, 1, length, x);
      load(dtype, frame.input(1), first, 1, length, target);
      for (int64_t i = 0; i < length; ++i)
        x[i] = std::max(x[i], 0.0) - x[i] * target[i] + std::log1p(std::exp(-std::fabs(x[i])));
      store(dtype, frame.output(0), first, length, x);
    });
    return Status();
  });
}

Result<Kernel> make_in_top_k(KernelRequest &request) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::InTopKAttributes::from(request.node));
  RowPlan plan = row_plan(request, 0, 1, 0);
  return Kernel([plan = std::move(plan), k = attributes.k](const Frame &frame) {
    double *const x = frame.scratch_doubles();
    for (int64_t row = 0; row < plan.rows; ++row) {
      int64_t label = 0, larger = 0;
      load(plan.dtype, frame.input(0), row * plan.classes, 1, plan.classes, x);
      load(plan.label_dtype, frame.input(1), row, 1, 1, &label);
      bool is_usable = label >= 0 && label < plan.classes && std::isfinite(x[label]);
      for (int64_t i = 0; is_usable && i < plan.classes; ++i)
        larger += x[i] > x[label];
      frame.output_as<bool>(0)[row] = is_usable && larger < k;
    }
    return Status();
  });
}

}  // namespace tutti::impl::backend::reference
