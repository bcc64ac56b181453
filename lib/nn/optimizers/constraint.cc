// SPDX-License-Identifier: Apache-2.0
#include "graph/constraint.h"

#include "nn/expansion.h"

namespace tutti::impl::nn {

ValueId expand_parameter_constraint(Expansion &e) {
  if (e.text("pattern").empty()) return e.fail("the pattern is empty, expected one such as '*bias'");
  base::Result<graph::ConstraintSpec> constraint = graph::parse_constraint(e.text("constraint"));
  if (!constraint.ok()) return e.fail(constraint.status().message());
  e.builder().add_constraint(e.text("pattern"), constraint.take());
  return kNoValue;
}

}  // namespace tutti::impl::nn
