// SPDX-License-Identifier: Apache-2.0
//
// A factor of all learning rates that the host sets while training, without a new compilation: a host scalar with a
// name of its own, which only models that are given it have.
#ifndef TUTTI_GRAPH_RATE_FACTOR_H_
#define TUTTI_GRAPH_RATE_FACTOR_H_

#include <algorithm>
#include <string>
#include <string_view>

#include "graph/model.h"

namespace tutti::impl::graph {

/// Name of the host scalar, which a model function cannot take; 1 at first.
inline constexpr std::string_view kRateFactor = "learning_rate_factor";

inline bool has_rate_factor(const Model &model) {
  return std::ranges::any_of(model.host_scalars,
                             [](const HostScalarSpec &scalar) { return scalar.name == kRateFactor; });
}

/// From now on the learning rates of the optimizer and of all parameter groups are times the factor.
inline void add_rate_factor(Model &model) {
  if (!has_rate_factor(model)) model.host_scalars.push_back({std::string(kRateFactor), 1});
}

}  // namespace tutti::impl::graph

#endif  // TUTTI_GRAPH_RATE_FACTOR_H_
