// SPDX-License-Identifier: Apache-2.0
#include "distribute/predict/predict_signature.h"

#include <utility>

namespace tutti::impl::distribute {

using base::Result;
using base::Status;
using tensor::Tensor;

Result<PredictSignature> PredictSignature::of(const graph::Model &model) {
  PredictSignature signature(model);
  for (const auto &[name, value] : model.outputs) {
    const graph::ValueInfo &info = model.graph.value(value);
    signature.output_names_.push_back(name);
    signature.outputs_.push_back({name, info.dtype, info.dims});
  }
  data::ElementSpec spec;
  for (const graph::InputSpec &feature : model.features) {
    signature.feature_names_.push_back(feature.name);
    spec.components.push_back({feature.name, data::Role::feature, feature.dtype, feature.dims});
  }
  TUTTI_ASSIGN(InputBinding binding, InputBinding::make(model.features, spec));
  signature.binding_ = std::make_shared<const InputBinding>(std::move(binding));
  return signature;
}

Result<data::Element> PredictSignature::element_of(std::span<const Tensor> features) const {
  if (features.size() != feature_names_.size()) {
    return base::invalid_argument("the model has ", feature_names_.size(), " features ", feature_names_, ", got ",
                                  features.size(), " tensors");
  }
  data::Element batch;
  for (size_t i = 0; i < features.size(); ++i) {
    const graph::InputSpec &feature = model_->features[i];
    if (features[i].dtype() != feature.dtype) {
      return base::invalid_argument("feature '", feature.name, "' is ", tensor::name(feature.dtype),
                                    graph::to_string(feature.dims), ", got ", features[i].describe());
    }
    batch.components.push_back(features[i]);
  }
  return batch;
}

Status PredictSignature::allocate_outputs(PredictCall &call, const InputBinding &binding) const {
  std::vector<int64_t> key;
  binding.fill_key(call.batch, call.rows, key);
  const graph::SymbolBindings bindings = binding.bindings(key);
  for (const OutputSpec &output : outputs_) {
    TUTTI_ASSIGN(const std::vector<int64_t> dims, graph::evaluate(output.dims, bindings));
    TUTTI_ASSIGN(const tensor::Shape shape, tensor::Shape::make(dims));
    TUTTI_ASSIGN(Tensor tensor, Tensor::allocate(output.dtype, shape));
    call.outputs.push_back(std::move(tensor));
  }
  return Status();
}

}  // namespace tutti::impl::distribute
