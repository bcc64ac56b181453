// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "nn/optimizers/optimizer.h"

namespace tutti::impl::nn {

ValueId expand_parameter_group(Expansion &e) {
  GraphBuilder &b = e.builder();
  graph::ParameterGroup group{.pattern = e.text("pattern"),
                              .rate_factor = e.f64("rate_factor"),
                              .learning_rate = e.input(0),
                              .frozen = e.flag("frozen"),
                              .as_vectors = e.flag("as_vectors")};
  const double weight_decay = e.f64("weight_decay");
  if (weight_decay > 0) group.weight_decay = weight_decay;
  if (e.flag("without_decay")) group.weight_decay = 0;
  if (weight_decay > 0 && group.weight_decay == 0) return e.fail("weight_decay and without_decay are both set");
  const auto groups = b.model().train ? b.model().train->groups : std::vector<graph::ParameterGroup>();
  const bool is_there = std::ranges::any_of(groups, [&](const auto &one) { return one.pattern == group.pattern; });
  if (is_there) return e.fail("there is already a group '" + group.pattern + "'");
  b.add_parameter_group(std::move(group));
  return kNoValue;
}

}  // namespace tutti::impl::nn
