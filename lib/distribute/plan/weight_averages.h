// SPDX-License-Identifier: Apache-2.0
//
// Moving averages of weights (Polyak and Juditsky, Acceleration of stochastic approximation by averaging, 1992; with
// exponential weights as in graph::AverageSpec): an entry of slots for each variable that is updated, which follows
// behind its update, in the same slice and layout, and not at all where the step is skipped. Training never reads it.
//
// Internal to this folder; pure functions.
#ifndef TUTTI_DISTRIBUTE_PLAN_WEIGHT_AVERAGES_H_
#define TUTTI_DISTRIBUTE_PLAN_WEIGHT_AVERAGES_H_

#include <string>
#include <string_view>

#include "backend/state_table.h"
#include "graph/builder.h"
#include "graph/model.h"

namespace tutti::impl::distribute {

/// "slot/<variable>/average".
std::string average_entry(std::string_view variable);

/// Of that kind; slots of such entries lie before all others.
bool is_average(const backend::StateEntry &entry);

/// How far averages go towards the weights with the update under way: a scalar, f64, from 0 to 1.
graph::ValueId average_rate(graph::GraphBuilder &finish, const graph::AverageSpec &spec);

/// average + rate * (weight - average), or `average` where ok does not hold: done in place, as an update is.
graph::ValueId follow_weight(graph::GraphBuilder &finish, graph::ValueId average, graph::ValueId weight,
                             graph::ValueId rate, graph::ValueId ok);

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_PLAN_WEIGHT_AVERAGES_H_
