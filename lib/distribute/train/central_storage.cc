// SPDX-License-Identifier: Apache-2.0
#include "distribute/train/central_storage.h"

#include <algorithm>
#include <set>
#include <string>

namespace tutti::impl::distribute {

using base::Status;

namespace {

/// Copies of the weights for each device are asked for.
bool asks_for_copies(const TrainerOptions &options) {
  return options.lowering == Lowering::replicated || options.all_reduce != AllReduceChoice::automatic;
}

bool use_one_memory(const Strategy &strategy) {
  const bool is_stored_there = !strategy.storage() || strategy.storage()->backend->has_host_memory();
  return strategy.backend()->has_host_memory() && is_stored_there;
}

std::set<std::string> entries_written(const graph::Graph &graph) {
  std::set<std::string> names;
  for (const graph::NodeId id : graph.body().nodes) {
    const graph::Node &node = graph.node(id);
    if (node.op == "state_write") names.insert(std::get<std::string>(node.attributes.find("entry")->second));
  }
  return names;
}

int64_t end_of(const backend::StateEntry &entry) { return (entry.offset + entry.storage_bytes + 63) / 64 * 64; }

}  // namespace

Keeping keeping_of(const Strategy &strategy, const TrainerOptions &options, int32_t contributors) {
  Keeping keeping;
  const bool may_share = use_one_memory(strategy) && !asks_for_copies(options);
  keeping.shared = may_share && contributors > 1 && strategy.workers().count == 1;
  if (!strategy.storage() || may_share) return keeping;
  keeping.apart = strategy.stores_apart();
  keeping.central = keeping.apart || strategy.replica_count() > 1;
  return keeping;
}

Status check_central(const TrainerOptions &options) {
  const AllReduceChoice choice = options.all_reduce;
  if (choice == AllReduceChoice::automatic || choice == AllReduceChoice::device || choice == AllReduceChoice::host)
    return Status();
  return base::invalid_argument("all_reduce is ", name(choice),
                                ", but with central storage gradients are added up in one place, for the one update "
                                "that is made: expected automatic, device or host");
}

std::vector<UpdatedRange> updated_ranges(const graph::Graph &finish, const StatePlan &plan) {
  const std::set<std::string> written = entries_written(finish);
  std::vector<UpdatedRange> ranges;
  for (const Arena arena : {Arena::weights, Arena::report}) {
    bool continues = false;  // what is between two entries belongs to nobody
    for (const backend::StateEntry &entry : plan.entries()) {
      if (entry.arena != static_cast<int32_t>(arena)) continue;
      const bool is_written = written.contains(entry.name);
      if (is_written && !continues) ranges.push_back({arena, entry.offset, 0});
      if (is_written) ranges.back().bytes = end_of(entry) - ranges.back().offset;
      continues = is_written;
    }
  }
  return ranges;
}

}  // namespace tutti::impl::distribute
