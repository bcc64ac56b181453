// SPDX-License-Identifier: Apache-2.0
//
// Sums and products up to each index.
#include "nn/functions/function_parts.h"

namespace tutti::impl::nn {
namespace {

ValueId run_along_axis(Expansion &e, std::string_view op) {
  GraphBuilder &b = e.builder();
  const ValueId x = e.input(0);
  const auto axis = axis_of(e, e.i64("axis"), b.rank(x));
  if (!axis || !known_length(e, x, *axis)) return kNoValue;
  return b.op(op, {x}, {{"axis", *axis}, {"exclusive", e.flag("exclusive")}, {"backward", e.flag("backward")}});
}

}  // namespace

ValueId expand_function_cumsum(Expansion &e) { return run_along_axis(e, "running_sum"); }

ValueId expand_function_cumprod(Expansion &e) { return run_along_axis(e, "running_product"); }

}  // namespace tutti::impl::nn
