// SPDX-License-Identifier: Apache-2.0
#include "distribute/weights/weight_share.h"

#include <utility>

namespace tutti::impl::distribute {

WeightShare share_of(const StatePlan &plan, const WeightStore &store, std::string name) {
  WeightShare share;
  share.name = std::move(name);
  share.memory = store.all_weights();
  for (const backend::StateEntry &entry : plan.entries()) {
    if (entry.arena != static_cast<int32_t>(Arena::weights)) continue;
    const std::string variable = entry.name.substr(entry.name.find('/') + 1);
    share.variables.push_back({entry.name, Arena::weights, entry.dtype, entry.dims, variable});
    if (!entry.layout.empty()) share.layouts.push_back({entry.name, entry.layout, entry.storage_bytes});
  }
  return share;
}

std::vector<StateSpec> with_shared_weights(std::vector<StateSpec> state, const WeightShare &share) {
  std::erase_if(state, [](const StateSpec &spec) { return spec.arena == Arena::weights; });
  state.insert(state.begin(), share.variables.begin(), share.variables.end());
  return state;
}

}  // namespace tutti::impl::distribute
