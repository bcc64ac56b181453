// SPDX-License-Identifier: Apache-2.0
//
// Optimizer updates: shape rule. Inputs are arrays of one shape but for the scalars lr, iteration and ok.
#include "graph/ops/rules.h"

namespace tutti::impl::graph::ops {

base::Status infer_update(InferContext &context) {
  const std::vector<InputDefinition> &inputs = context.definition().inputs;
  for (size_t i = 1; i < inputs.size(); ++i) {
    const bool is_scalar = inputs[i].name == "lr" || inputs[i].name == "iteration" || inputs[i].name == "ok";
    TUTTI_TRY(is_scalar ? require_scalar(context, i) : require_same_dims(context, 0, i));
  }
  for (const OutputDefinition &output : context.definition().outputs) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i].name == output.name) context.add_output(context.input(i).dtype, context.dims(i));
    }
  }
  return {};
}

}  // namespace tutti::impl::graph::ops
