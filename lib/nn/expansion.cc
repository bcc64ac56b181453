// SPDX-License-Identifier: Apache-2.0
#include "nn/expansion.h"

#include <algorithm>

#include "base/text.h"
#include "graph/constraint.h"
#include "graph/initializer.h"
#include "graph/ops/op_attributes.h"
#include "nn/kernel_normalization.h"

namespace tutti::impl::nn {

ValueId Expansion::fail(std::string_view text) {
  const std::string &scope = builder_.scope();
  if (definition_.is_function) return builder_.fail(base::invalid_argument(scope, ": ", text));  // its name ends it
  return builder_.fail(
      base::invalid_argument(scope.empty() ? "" : base::concat(scope, ": "), definition_.name, ": ", text));
}

int64_t Expansion::last_dimension(ValueId value) {
  if (value == kNoValue) return 0;
  const graph::Dims &dims = builder_.dims(value);
  if (!dims.empty() && dims.back().is_constant()) return dims.back().constant();
  fail(base::concat("expected an input whose last dimension is known, got shape ", graph::to_string(dims)));
  return 0;
}

ValueId Expansion::activate(ValueId value) {
  const std::string &activation = text("activation");
  if (activation == "gelu_tanh") {
    graph::ops::GeluAttributes attributes;
    attributes.approximate = true;
    return builder_.op("gelu", {value}, attributes.to_attributes());
  }
  return activation == "none" ? value : builder_.unary(activation, value);
}

ValueId Expansion::weight(std::string_view name, ValueId like, std::vector<int64_t> dims,
                          std::string_view initializer) {
  if (like == kNoValue || !builder_.ok()) return kNoValue;
  if (!tensor::is_floating(builder_.dtype(like))) {
    const auto place = std::find(inputs_.begin(), inputs_.end(), like) - inputs_.begin();
    const bool is_input = place < static_cast<int64_t>(definition_.inputs.size());
    return fail(base::concat("input", is_input ? base::concat(" '", definition_.inputs[size_t(place)].name, "'") : "",
                             " is ", tensor::name(builder_.dtype(like)), ", expected floating point: cast it"));
  }
  base::Result<graph::InitializerSpec> spec = graph::parse_initializer(initializer);
  if (!spec.ok()) return fail(spec.status().message());
  return builder_.variable(name, builder_.dtype(like), std::move(dims), spec.take(), {.automatic_name = true});
}

ValueId Expansion::kernel(std::string_view name, ValueId like, std::vector<int64_t> dims) {
  const ValueId value = weight(name, like, std::move(dims), text("kernel_initializer"));
  builder_.add_penalty({value, f64("kernel_l1"), f64("kernel_l2")});
  if (has("kernel_constraint")) {
    base::Result<graph::ConstraintSpec> constraint = graph::parse_constraint(text("kernel_constraint"));
    if (!constraint.ok()) return fail(constraint.status().message());
    builder_.constrain(value, constraint.take());
  }
  return has("kernel_normalization") ? normalized_kernel(*this, name, value) : value;
}

}  // namespace tutti::impl::nn
