// SPDX-License-Identifier: Apache-2.0
//
// What goes into a model that predicts, and what comes out of it: names, dtypes and dims. Internal to this folder.
//
// Threads: immutable.
#ifndef TUTTI_DISTRIBUTE_PREDICT_PREDICT_SIGNATURE_H_
#define TUTTI_DISTRIBUTE_PREDICT_PREDICT_SIGNATURE_H_

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "data/element/element.h"
#include "distribute/input/input_binding.h"
#include "distribute/predict/predict_call.h"
#include "distribute/predict/worker_predict_stream.h"
#include "graph/model.h"
#include "tensor/tensor.h"

namespace tutti::impl::distribute {

class PredictSignature {
 public:
  /// `model` outlives it.
  static base::Result<PredictSignature> of(const graph::Model &model);

  const std::vector<std::string> &feature_names() const { return feature_names_; }
  const std::vector<std::string> &output_names() const { return output_names_; }
  const std::vector<OutputSpec> &outputs() const { return outputs_; }
  /// Of elements that are the features, in their order.
  const std::shared_ptr<const InputBinding> &binding() const { return binding_; }

  /// The features as an element. INVALID_ARGUMENT where their number or dtypes are not the model's.
  base::Result<data::Element> element_of(std::span<const tensor::Tensor> features) const;
  /// Memory for all outputs of a call, whose batch is of `binding`.
  base::Status allocate_outputs(PredictCall &call, const InputBinding &binding) const;

 private:
  explicit PredictSignature(const graph::Model &model) : model_(&model) {}

  const graph::Model *model_;
  std::vector<std::string> feature_names_, output_names_;
  std::vector<OutputSpec> outputs_;
  std::shared_ptr<const InputBinding> binding_;
};

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_PREDICT_PREDICT_SIGNATURE_H_
