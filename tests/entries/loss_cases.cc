// SPDX-License-Identifier: Apache-2.0
//
// Losses of nn.yaml, each with the mean over examples, with weights, and as a number for each example.
#include "entries/entry_case.h"
#include "nn/registry.h"

namespace tutti::testing::entries {

namespace {

Cases mean_losses() {
  Cases cases;
  for (const char *loss :
       {"loss_mean_squared_error", "loss_mean_absolute_error", "loss_huber", "loss_log_cosh", "loss_cosine_similarity"})
    cases.push_back({.entry = loss, .inputs = {rows({4}), given({4})}});
  for (const char *loss : {"loss_sparse_softmax_cross_entropy", "loss_sparse_softmax_focal", "loss_multi_margin"})
    cases.push_back({.entry = loss, .inputs = {rows({4}), numbers(4, {})}});
  for (const char *loss : {"loss_softmax_cross_entropy", "loss_softmax_focal"})
    cases.push_back({.entry = loss, .inputs = {rows({4}), given({4}, Fill::shares)}});
  for (const char *loss : {"loss_sigmoid_cross_entropy", "loss_sigmoid_focal", "loss_categorical_hinge"})
    cases.push_back({.entry = loss, .inputs = {rows({4}), given({4}, Fill::binary)}});
  for (const char *loss : {"loss_hinge", "loss_squared_hinge"})
    cases.push_back({.entry = loss, .inputs = {rows({4}), given({4}, Fill::signs)}});
  for (const char *loss : {"loss_categorical_cross_entropy", "loss_kullback_leibler"})
    cases.push_back({.entry = loss, .inputs = {rows({4}, Fill::unit), given({4}, Fill::shares)}});
  const Cases more = {
      {.entry = "loss_quantile", .inputs = {rows({4}), given({4})}, .attributes = {{"quantile", 0.25}}},
      {.entry = "loss_poisson", .inputs = {rows({4}, Fill::positive), given({4}, Fill::positive)}},
      {.entry = "loss_binary_cross_entropy", .inputs = {rows({4}, Fill::unit), given({4}, Fill::binary)}},
      {.entry = "loss_sparse_categorical_cross_entropy", .inputs = {rows({4}, Fill::unit), numbers(4, {})}},
      {.entry = "loss_dice", .inputs = {rows({4}, Fill::unit), given({4}, Fill::binary)}},
      {.entry = "loss_contrastive", .inputs = {rows({4}), rows({4}), given({}, Fill::binary)}},
      {.entry = "loss_triplet", .inputs = {rows({4}), rows({4}), rows({4})}},
      {.entry = "loss_ctc",
       .inputs = {rows({5, 4}), numbers(3, {2})},
       .named = {{"label_lengths", lengths(2)}},
       .attributes = {{"blank", whole(3)}}},
  };
  append(cases, more);
  return cases;
}

}  // namespace

Cases loss_cases() {
  Cases cases;
  for (const EntryCase &mean : mean_losses()) {
    cases.push_back(mean);
    for (const char *reduction : {"none", "sum", "weighted_mean"}) {
      EntryCase other = mean;
      other.attributes.insert_or_assign("reduction", text(reduction));
      if (text(reduction) == "weighted_mean") other.named.emplace_back("weights", given({}, Fill::positive));
      cases.push_back(other);
    }
  }
  cases.push_back({.entry = "loss_l2_penalty", .inputs = {weights({4, 2})}, .attributes = {{"rate", 0.5}}});
  cases.push_back({.entry = "loss_dice",
                   .inputs = {rows({4}, Fill::unit), given({4}, Fill::binary)},
                   .attributes = {{"over", text("batch")}}});
  return cases;
}

}  // namespace tutti::testing::entries
