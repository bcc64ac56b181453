// SPDX-License-Identifier: Apache-2.0
//
// A saved model as a part of another one: what a checkpoint predicts, with its weights, as nodes of a model under
// construction.
//
//   const ValueId logits = add_saved_model(builder, {.path = "runs/first", .output = "logits"});
//
// Threads: as the builder.
#ifndef TUTTI_ESTIMATOR_MODEL_SAVED_MODEL_H_
#define TUTTI_ESTIMATOR_MODEL_SAVED_MODEL_H_

#include <string>

#include "graph/builder.h"

namespace tutti::impl::estimator::model {

struct SavedModel {
  /// A checkpoint, or a directory of them, whose newest one is meant: older ones are not taken where it is damaged.
  std::string path;
  /// A value in the place of a feature of the saved model, empty: the only one. Others, and all where there is no
  /// value, are the builder's features of their names.
  graph::ValueId input = graph::kNoValue;
  std::string feature = {};
  /// Empty: the only one, or the only one of floating point.
  std::string output = {};
  /// Variables begin with the saved weights, averages where the optimizer kept some; else only their shapes are known.
  bool has_weights = true;
};

/// The output. Variables are in a scope of their own in the current one, "model", "model_1" and so on, and are trained
/// unless they are statistics. kNoValue with an error in the builder that names the path and what does not fit.
graph::ValueId add_saved_model(graph::GraphBuilder &builder, const SavedModel &saved);

}  // namespace tutti::impl::estimator::model

#endif  // TUTTI_ESTIMATOR_MODEL_SAVED_MODEL_H_
