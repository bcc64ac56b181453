// SPDX-License-Identifier: Apache-2.0
//
// Running sums and products: shape and gradient rules.
#include "graph/ops/running.h"

#include "graph/ops/rules.h"

namespace tutti::impl::graph::ops {

base::Result<RunningSumAttributes> running_of(const Node &node) {
  Node alike;
  alike.op = "running_sum";
  alike.scope_name = node.scope_name;
  alike.attributes = node.attributes;
  return RunningSumAttributes::from(alike);
}

base::Status infer_running(InferContext &context) {
  TUTTI_ASSIGN(const RunningSumAttributes attributes, running_of(context.node()));
  TUTTI_ASSIGN(const int64_t axis, context.normalize_axis("axis", attributes.axis, context.rank(0)));
  if (context.input_count() > 1) TUTTI_TRY(require_same_dims(context, 0, 1));
  context.normalize("axis", axis);
  context.add_output(context.input(0).dtype, context.dims(0));
  return {};
}

// An element is in all sums from its index on.
base::Status gradient_running_sum(GradientContext &context) {
  TUTTI_ASSIGN(RunningSumAttributes attributes, running_of(context.node()));
  attributes.backward = !attributes.backward;
  context.set(0, context.builder().op("running_sum", {context.output_gradient(0)}, attributes.to_attributes()));
  return {};
}

base::Status gradient_running_product(GradientContext &context) {
  context.set(0, context.builder().op("running_product_gradient", {context.output_gradient(0), context.input(0)},
                                      context.node().attributes));
  return {};
}

}  // namespace tutti::impl::graph::ops
