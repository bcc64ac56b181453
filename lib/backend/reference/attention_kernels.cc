// SPDX-License-Identifier: Apache-2.0
//
// Attention and its gradient, with dropout or without, one query at a time as doubles in scratch memory. With
// s_j = scale · <q, k_j> over the keys j that the query sees and L = log(sum(exp(s_j))):
//   p_j = exp(s_j - L)       y = sum(p_j · v_j)
//   dv_j += p_j · dy         ds_j = scale · p_j · (<dy, v_j> - <dy, y>)
//   dq = sum(ds_j · k_j)     dk_j += ds_j · q
// With dropout p_j · m_j stands for p_j in y and dv, and <dy, v_j> · m_j for <dy, v_j>, where m_j is 0 or
// 1 / (1 - rate). Without keys y is 0 and L is infinite, so that exp(s - L) is 0 for whoever computes it.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include "backend/attention_dropout.h"
#include "backend/reference/elements.h"
#include "backend/reference/kernels.h"
#include "graph/ops/op_attributes.h"

namespace tutti::impl::backend::reference {

using base::Result;
using base::Status;
using tensor::DType;

namespace {

struct AttentionPlan {
  int64_t rows = 0, length = 0, heads = 0, channels = 0, key_length = 0, key_heads = 0;
  int32_t lengths = -1;  ///< the input, or none
  bool causal = false;
  double scale = 0;
  DType dtype{}, statistics{};
  std::optional<AttentionDropout> dropout;

  int64_t at(int64_t row, int64_t position, int64_t head) const {
    return ((row * length + position) * heads + head) * channels;
  }
  int64_t key_at(int64_t row, int64_t position, int64_t key_head) const {
    return ((row * key_length + position) * key_heads + key_head) * channels;
  }
  int64_t statistic_at(int64_t row, int64_t position, int64_t head) const {
    return (row * heads + head) * length + position;
  }
  /// How many keys, counted from the first, a query sees.
  int64_t visible(const Frame &frame, int64_t row, int64_t position) const {
    int64_t count = key_length;
    if (lengths >= 0) count = std::min<int64_t>(count, frame.input_as<int32_t>(lengths)[row]);
    if (causal) count = std::min(count, position + key_length - length + 1);
    return std::max<int64_t>(count, 0);
  }
};

template <typename Attributes>
AttentionPlan attention_plan(const KernelRequest &request, const Attributes &attributes, size_t q, size_t lengths) {
  const std::vector<int64_t> &queries = request.input(q).dims, &keys = request.input(q + 1).dims;
  AttentionPlan plan;
  plan.rows = queries[0], plan.length = queries[1], plan.heads = queries[2], plan.channels = queries[3];
  plan.key_length = keys[1], plan.key_heads = keys[2];
  if (request.has_input(lengths)) plan.lengths = static_cast<int32_t>(lengths);
  plan.causal = attributes.causal;
  plan.scale = attributes.scale != 0 ? attributes.scale : 1 / std::sqrt(static_cast<double>(plan.channels));
  plan.dtype = request.input(q).dtype;
  return plan;
}

/// m_j of the keys of a query, one after the other.
class Mask {
 public:
  Mask(const AttentionPlan &plan, const Frame &frame, int64_t row, int64_t position, int64_t head)
      : dropout_(plan.dropout) {
    if (!dropout_) return;
    key_ = dropout_->rows.key(frame.scalars(), frame.scalars()[kScanIteration]);
    row_ = dropout_->global_row(row, frame.scalars());
    first_block_ = dropout_->first_block(row, head, position);
  }
  double operator()(int64_t j) {
    if (!dropout_) return 1;
    if (j % 4 == 0) words_ = key_.words(row_, first_block_ + static_cast<uint64_t>(j / 4));
    return dropout_->keeps(words_[static_cast<size_t>(j % 4)]) ? 1 / (1 - dropout_->rate) : 0;
  }

 private:
  const std::optional<AttentionDropout> &dropout_;
  base::RandomKey key_{};
  uint64_t row_ = 0, first_block_ = 0;
  base::PhiloxWords words_{};
};

void load_row(const AttentionPlan &plan, const void *source, int64_t first, double *out) {
  load(plan.dtype, source, first, 1, plan.channels, out);
}

double dot_product(const double *a, const double *b, int64_t count) { return std::inner_product(a, a + count, b, 0.0); }

void add_scaled(double factor, const double *x, int64_t count, double *sum) {
  for (int64_t i = 0; i < count; ++i)
    sum[i] += factor * x[i];
}

/// One query against the keys of its row and head; scratch holds 3 · channels + key_length numbers.
void attend(const AttentionPlan &plan, const Frame &frame, int64_t row, int64_t position, int64_t head) {
  const int64_t channels = plan.channels, count = plan.visible(frame, row, position);
  const int64_t key_head = head / (plan.heads / plan.key_heads);
  double *const q = frame.scratch_doubles(), *const other = q + channels, *const y = other + channels;
  double *const scores = y + channels;
  load_row(plan, frame.input(0), plan.at(row, position, head), q);
  std::fill(y, y + channels, 0.0);
  double largest = -std::numeric_limits<double>::infinity(), sum = 0;
  for (int64_t j = 0; j < count; ++j) {
    load_row(plan, frame.input(1), plan.key_at(row, j, key_head), other);
    scores[j] = plan.scale * dot_product(q, other, channels);
    largest = std::max(largest, scores[j]);
  }
  for (int64_t j = 0; j < count; ++j)
    sum += std::exp(scores[j] - largest);
  Mask mask(plan, frame, row, position, head);
  const double total = count == 0 ? std::numeric_limits<double>::infinity() : largest + std::log(sum);
  for (int64_t j = 0; j < count; ++j) {
    load_row(plan, frame.input(2), plan.key_at(row, j, key_head), other);
    add_scaled(std::exp(scores[j] - total) * mask(j), other, channels, y);
  }
  store(plan.dtype, frame.output(0), plan.at(row, position, head), channels, y);
  store(plan.statistics, frame.output(1), plan.statistic_at(row, position, head), 1, &total);
}

/// What one query adds to the gradients of the keys and values of its head, dk and dv, and its own gradient.
/// `scratch` holds 6 · channels numbers.
void attend_back(const AttentionPlan &plan, const Frame &frame, int64_t row, int64_t position, int64_t head, double *dk,
                 double *dv, double *scratch) {
  const int64_t channels = plan.channels, count = plan.visible(frame, row, position);
  const int64_t key_head = head / (plan.heads / plan.key_heads), at = plan.at(row, position, head);
  double *const dy = scratch, *const q = dy + channels, *const k = q + channels, *const v = k + channels;
  double *const y = v + channels, *const dq = y + channels;
  load_row(plan, frame.input(0), at, dy);
  load_row(plan, frame.input(1), at, q);
  load_row(plan, frame.input(4), at, y);
  std::fill(dq, dq + channels, 0.0);
  const double total = load_one(plan.statistics, frame.input(5), plan.statistic_at(row, position, head));
  const double average = dot_product(dy, y, channels);
  Mask mask(plan, frame, row, position, head);
  for (int64_t j = 0; j < count; ++j) {
    load_row(plan, frame.input(2), plan.key_at(row, j, key_head), k);
    load_row(plan, frame.input(3), plan.key_at(row, j, key_head), v);
    const double p = std::exp(plan.scale * dot_product(q, k, channels) - total);
    const double m = mask(j);
    const double ds = plan.scale * p * (dot_product(dy, v, channels) * m - average);
    add_scaled(p * m, dy, channels, dv + j * channels);
    add_scaled(ds, q, channels, dk + j * channels);
    add_scaled(ds, k, channels, dq);
  }
  store(plan.dtype, frame.output(0), at, channels, dq);
}

Kernel forward_kernel(KernelRequest &request, AttentionPlan plan) {
  plan.statistics = request.output(1).dtype;
  request.scratch_bytes = (3 * plan.channels + plan.key_length) * static_cast<int64_t>(sizeof(double));
  return Kernel([plan](const Frame &frame) {
    for (int64_t row = 0; row < plan.rows; ++row) {
      for (int64_t position = 0; position < plan.length; ++position) {
        for (int64_t head = 0; head < plan.heads; ++head)
          attend(plan, frame, row, position, head);
      }
    }
    return Status();
  });
}

Kernel attention_gradient_kernel(KernelRequest &request, AttentionPlan plan) {
  plan.statistics = request.input(5).dtype;
  const int64_t keys = plan.key_length * plan.channels;
  request.scratch_bytes = (2 * keys + 6 * plan.channels) * static_cast<int64_t>(sizeof(double));
  return Kernel([plan, keys](const Frame &frame) {
    double *const dk = frame.scratch_doubles(), *const dv = dk + keys;
    for (int64_t row = 0; row < plan.rows; ++row) {
      for (int64_t key_head = 0; key_head < plan.key_heads; ++key_head) {
        const int64_t group = plan.heads / plan.key_heads;
        std::fill(dk, dk + 2 * keys, 0.0);
        for (int64_t head = key_head * group; head < (key_head + 1) * group; ++head) {
          for (int64_t position = 0; position < plan.length; ++position)
            attend_back(plan, frame, row, position, head, dk, dv, dv + keys);
        }
        for (int64_t j = 0; j < plan.key_length; ++j) {
          const int64_t at = plan.key_at(row, j, key_head);
          store(plan.dtype, frame.output(1), at, plan.channels, dk + j * plan.channels);
          store(plan.dtype, frame.output(2), at, plan.channels, dv + j * plan.channels);
        }
      }
    }
    return Status();
  });
}

template <typename Attributes>
void add_dropout(const KernelRequest &request, const Attributes &attributes, AttentionPlan &plan) {
  plan.dropout = AttentionDropout::of(request.lowered, request.node, attributes.key, attributes.rate, plan.key_length);
}

}  // namespace

Result<Kernel> make_attention(KernelRequest &request) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::AttentionAttributes::from(request.node));
  return forward_kernel(request, attention_plan(request, attributes, 0, 3));
}

Result<Kernel> make_attention_gradient(KernelRequest &request) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::AttentionGradientAttributes::from(request.node));
  return attention_gradient_kernel(request, attention_plan(request, attributes, 1, 6));
}

Result<Kernel> make_dropout_attention(KernelRequest &request) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::DropoutAttentionAttributes::from(request.node));
  AttentionPlan plan = attention_plan(request, attributes, 0, 3);
  add_dropout(request, attributes, plan);
  return forward_kernel(request, std::move(plan));
}

Result<Kernel> make_dropout_attention_gradient(KernelRequest &request) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::DropoutAttentionGradientAttributes::from(request.node));
  AttentionPlan plan = attention_plan(request, attributes, 1, 6);
  add_dropout(request, attributes, plan);
  return attention_gradient_kernel(request, std::move(plan));
}

}  // namespace tutti::impl::backend::reference
