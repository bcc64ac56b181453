// SPDX-License-Identifier: Apache-2.0
#include "distribute/plan/step_parts.h"

namespace tutti::impl::distribute {

using tensor::DType;

std::string gradient_entry(size_t set, const std::string &variable) {
  return "gradient/" + std::to_string(set) + "/" + variable;
}

DType StepTraits::dtype_of_faults() const {
  return model.graph.value(model.loss).dtype == DType::f64 ? DType::f64 : DType::f32;
}

}  // namespace tutti::impl::distribute
