// SPDX-License-Identifier: Apache-2.0
//
// Metrics of nn.yaml, each without and with a weight for each example.
#include "entries/entry_case.h"

namespace tutti::testing::entries {

namespace {

Cases metrics_of_numbers() {
  Cases cases = {{.entry = "metric_mean", .inputs = {given({3})}}};
  for (const char *metric :
       {"metric_mean_squared_error", "metric_root_mean_squared_error", "metric_mean_absolute_error",
        "metric_mean_absolute_percentage_error", "metric_r_squared", "metric_cosine_similarity"})
    cases.push_back({.entry = metric, .inputs = {given({3}), given({3}, Fill::positive)}});
  return cases;
}

Cases metrics_of_classes() {
  const std::vector<Port> two = {given({3}, Fill::unit), given({3}, Fill::binary)};
  const std::vector<Port> more = {given({4}, Fill::unit), numbers(4, {})};
  Cases cases = {{.entry = "metric_accuracy", .inputs = more},
                 {.entry = "metric_top_k_accuracy", .inputs = more, .attributes = {{"k", whole(2)}}},
                 {.entry = "metric_log_loss", .inputs = more},
                 {.entry = "metric_perplexity", .inputs = more},
                 {.entry = "metric_binary_accuracy", .inputs = two},
                 {.entry = "metric_binary_log_loss", .inputs = two},
                 {.entry = "metric_auc", .inputs = two}};
  for (const char *metric : {"metric_precision", "metric_recall", "metric_f_beta", "metric_specificity"}) {
    cases.push_back({.entry = metric, .inputs = two});
    cases.push_back({.entry = metric, .inputs = more, .attributes = {{"average", text("none")}}});
  }
  for (const char *metric :
       {"metric_balanced_accuracy", "metric_matthews_correlation", "metric_mean_iou", "metric_confusion_matrix"}) {
    cases.push_back({.entry = metric, .inputs = two});
    cases.push_back({.entry = metric, .inputs = more});
  }
  return cases;
}

}  // namespace

Cases metric_cases() {
  Cases cases;
  for (const auto &list : {metrics_of_numbers, metrics_of_classes}) {
    for (EntryCase &one : list()) {
      cases.push_back(one);
      one.named.emplace_back("weights", given({}, Fill::positive));
      cases.push_back(one);
    }
  }
  return cases;
}

}  // namespace tutti::testing::entries
