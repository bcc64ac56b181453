// SPDX-License-Identifier: Apache-2.0
#include "monitor/precision_recall.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "monitor/event_messages.h"
#include "monitor/tensor_numbers.h"

namespace tutti::impl::monitor {

using base::Result;
using base::Status;
using tensor::Tensor;

namespace {

enum class PluginMessage : protozero::pbf_tag_type { thresholds = 2 };

constexpr int64_t kMostThresholds = 1 << 20;
constexpr double kLeast = 1e-7;  // of what is divided by

/// Weights of the positive and negative examples from each threshold up to the next one.
struct Buckets {
  std::vector<double> positive, negative;
};

Result<Buckets> fill(const std::vector<double> &labels, const std::vector<double> &predictions,
                     const std::vector<double> &weights, int64_t thresholds) {
  const auto count = static_cast<size_t>(thresholds);
  Buckets buckets{std::vector<double>(count), std::vector<double>(count)};
  for (size_t i = 0; i < labels.size(); ++i) {
    if (!(predictions[i] >= 0 && predictions[i] <= 1))
      return base::invalid_argument("prediction ", i, " is ", predictions[i], ", expected a number from 0 to 1");
    const auto at = static_cast<size_t>(std::floor(static_cast<float>(predictions[i]) * static_cast<float>(count - 1)));
    const double weight = weights.empty() ? 1 : weights[i], label = labels[i];
    buckets.positive[at] += label * weight;
    buckets.negative[at] += (1 - label) * weight;
  }
  return buckets;
}

std::vector<float> rows_of(const Buckets &buckets) {
  const size_t count = buckets.positive.size();
  std::vector<double> positive = buckets.positive, negative = buckets.negative;  // from each threshold on
  for (size_t i = count - 1; i > 0; --i) {
    positive[i - 1] += positive[i];
    negative[i - 1] += negative[i];
  }
  std::vector<float> rows(6 * count);
  for (size_t i = 0; i < count; ++i) {
    const double misses = positive[0] - positive[i];
    const std::array<double, 6> column{positive[i],
                                       negative[i],
                                       negative[0] - negative[i],
                                       misses,
                                       positive[i] / std::max(kLeast, positive[i] + negative[i]),
                                       positive[i] / std::max(kLeast, positive[i] + misses)};
    for (size_t row = 0; row < column.size(); ++row)
      rows[row * count + i] = static_cast<float>(column[row]);
  }
  return rows;
}

}  // namespace

Status add_precision_recall(Summary &summary, std::string_view tag, const Tensor &labels, const Tensor &predictions,
                            const Tensor &weights, int64_t thresholds) {
  if (thresholds < 2 || thresholds > kMostThresholds)
    return base::invalid_argument("thresholds is ", thresholds, ", expected 2 to ", kMostThresholds);
  if (labels.elements() != predictions.elements() || (weights && weights.elements() != labels.elements())) {
    return base::invalid_argument("expected as many labels as predictions and weights, got ", labels.describe(), ", ",
                                  predictions.describe(), weights ? " and " + weights.describe() : std::string());
  }
  TUTTI_ASSIGN(const std::vector<double> truths, numbers_of(labels));
  TUTTI_ASSIGN(const std::vector<double> scores, numbers_of(predictions));
  std::vector<double> factors;
  if (weights) {
    TUTTI_ASSIGN(factors, numbers_of(weights));
  }
  TUTTI_ASSIGN(const Buckets buckets, fill(truths, scores, factors, thresholds));
  std::string content;
  {
    protozero::pbf_builder<PluginMessage> message(content);
    message.add_uint32(PluginMessage::thresholds, static_cast<uint32_t>(thresholds));
  }
  summary.add_matrix(tag, "pr_curves", content, 6, rows_of(buckets));
  return Status();
}

}  // namespace tutti::impl::monitor
