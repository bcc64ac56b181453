// SPDX-License-Identifier: Apache-2.0
#include "distribute/plan/weight_averages.h"

#include "base/text.h"
#include "checkpoint/weight_version.h"

namespace tutti::impl::distribute {

using graph::GraphBuilder;
using graph::ValueId;
using tensor::DType;

std::string average_entry(std::string_view variable) {
  return base::concat("slot/", variable, "/", checkpoint::kAverageSlot);
}

bool is_average(const backend::StateEntry &entry) {
  return entry.name.starts_with("slot/") &&
         std::string_view(entry.name).substr(entry.name.rfind('/') + 1) == checkpoint::kAverageSlot;
}

ValueId average_rate(GraphBuilder &finish, const graph::AverageSpec &spec) {
  const auto number = [&](double value) { return finish.constant(value, DType::f64); };
  if (!spec.has_ramp && spec.start == 0) return number(1 - spec.decay);
  const ValueId after_start =
      finish.sub(finish.run_scalar("iteration", DType::f64), number(static_cast<double>(spec.start)));
  ValueId rate = number(1 - spec.decay);
  if (spec.has_ramp) {
    // 1 - (1 + n) / (10 + n)
    const ValueId updates = finish.op("maximum", {after_start, number(0)});
    rate = finish.op("maximum", {rate, finish.div(number(9), finish.add(updates, number(10)))});
  }
  return finish.select(finish.op("greater", {after_start, number(0)}), rate, number(1));
}

ValueId follow_weight(GraphBuilder &finish, ValueId average, ValueId weight, ValueId rate, ValueId ok) {
  // a - (-rate) * (weight + (-1) * a)
  return finish.op("sgd_update", {average, weight, finish.neg(rate), ok}, {{"weight_decay", -1.0}});
}

}  // namespace tutti::impl::distribute
