// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/fusion/region_fusion.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "backend/gpu/fusion/fused_program_maker.h"
#include "backend/gpu/fusion/region_nodes.h"

namespace tutti::impl::backend::gpu {

using graph::kNoNode;
using graph::kNoValue;
using graph::NodeId;
using graph::Region;
using graph::ValueId;

namespace {

/// Launches of one level depend on none of a later one. In a level calls come first, then groups.
class LevelPlanner {
 public:
  explicit LevelPlanner(const RegionNodes &nodes) : nodes_(nodes), levels_(nodes.count(), 0) {
    for (size_t at = 0; at < nodes.count(); ++at)
      levels_[at] = earliest(at);
    for (size_t at = nodes.count(); at-- > 0;)
      delay(at);
  }

  int32_t level(size_t at) const { return levels_[at]; }

 private:
  int32_t earliest(size_t at) {
    int32_t level = 0;
    for (const ValueId input : nodes_.node(at).inputs) {
      if (input == kNoValue) continue;
      if (nodes_.kind(at) == NodeKind::call) {
        level = std::max(level, stored(input));
      } else {
        level = std::max(level, read(input, nodes_.space(at)));
      }
    }
    return level;
  }

  /// The level from which on a group over the space can read the value.
  int32_t read(ValueId value, const Space &space) {
    const auto key = std::tuple(value, space.rows, space.columns);
    const auto known = read_.find(key);
    if (known != read_.end()) return known->second;
    const int32_t level = find_read(value, space);
    read_.emplace(key, level);
    return level;
  }

  int32_t find_read(ValueId value, const Space &space) {
    const std::optional<size_t> at = nodes_.producer(value);
    if (!at.has_value()) return 0;
    switch (nodes_.kind(*at)) {
      case NodeKind::call:
        return levels_[*at];
      case NodeKind::elementwise:
        return levels_[*at] + (nodes_.space(*at) == space ? 0 : 1);
      case NodeKind::concat:
        return levels_[*at] + 1;
      case NodeKind::view:
      case NodeKind::narrowed:
        break;
    }
    int32_t level = 0;
    for (const ValueId input : nodes_.node(*at).inputs)
      level = std::max(level, read(input, space));
    return level;
  }

  /// The level from which on a call can read the value.
  int32_t stored(ValueId value) const {
    const std::optional<size_t> at = nodes_.producer(value);
    return at.has_value() ? levels_[*at] + 1 : 0;
  }

  /// What one later group alone reads is computed there; a call is made when the first of its readers wants it, so that
  /// its results take no memory before.
  void delay(size_t at) {
    if (nodes_.kind(at) == NodeKind::call) return delay_call(at);
    if (nodes_.kind(at) != NodeKind::elementwise || nodes_.is_result(nodes_.output(at))) return;
    int32_t latest = INT32_MAX;
    for (const size_t reader : nodes_.readers(nodes_.output(at))) {
      const bool is_like = (nodes_.kind(reader) == NodeKind::elementwise || nodes_.kind(reader) == NodeKind::concat) &&
                           nodes_.space(reader) == nodes_.space(at);
      latest = is_like ? std::min(latest, levels_[reader]) : 0;
      if (!is_like) break;
    }
    if (latest != INT32_MAX) levels_[at] = std::max(levels_[at], latest);
  }

  void delay_call(size_t at) {
    int32_t latest = INT32_MAX;
    for (const ValueId value : nodes_.node(at).outputs) {
      if (nodes_.is_result(value)) return;
      for (const size_t reader : nodes_.readers(value))
        latest = std::min(latest, levels_[reader] - (nodes_.kind(reader) == NodeKind::call ? 1 : 0));
    }
    if (latest != INT32_MAX) levels_[at] = std::max(levels_[at], latest);
  }

  const RegionNodes &nodes_;
  std::vector<int32_t> levels_;
  std::map<std::tuple<ValueId, int64_t, int64_t>, int32_t> read_;  // by value and space
};

struct Members {
  int32_t level = 0;
  Space space;
  std::vector<size_t> nodes;  // in order; several results, too, are stored where their node is
};

/// One attempt: all nodes have their kinds.
class RegionPlanner {
 public:
  RegionPlanner(const RegionNodes &nodes, const LoopPlaces &places)
      : nodes_(nodes), places_(places), levels_(nodes), group_of_(nodes.count(), -1) {}

  /// The node that is to be a call of its own because no program holds it; none: the plan is made.
  std::optional<size_t> make() {
    collect();
    place_parameters();
    note_dense();
    for (size_t group = 0; group < members_.size();) {
      if (add_group(group)) {
        ++group;
        continue;
      }
      if (members_[group].nodes.size() > 1) {
        split(group);
      } else if (!drop_passed(group)) {
        return members_[group].nodes[0];
      }
      plan_.groups.clear();
      group = 0;
    }
    add_steps();
    return std::nullopt;
  }

  RegionPlan take() { return std::move(plan_); }

 private:
  const Region &region() const { return nodes_.region(); }

  void collect() {
    std::map<std::tuple<int32_t, int64_t, int64_t>, size_t> known;
    for (size_t at = 0; at < nodes_.count(); ++at) {
      const NodeKind kind = nodes_.kind(at);
      const bool is_member = kind == NodeKind::elementwise || kind == NodeKind::concat ||
                             (kind == NodeKind::view && nodes_.is_wanted(nodes_.output(at)));
      if (!is_member) continue;
      const Space space = nodes_.space(at);
      const auto [found, is_new] = known.try_emplace({levels_.level(at), space.rows, space.columns}, members_.size());
      if (is_new) members_.push_back({levels_.level(at), space, {}});
      members_[found->second].nodes.push_back(at);
    }
    std::stable_sort(members_.begin(), members_.end(),
                     [](const Members &a, const Members &b) { return a.level < b.level; });
    number_groups();
  }

  void number_groups() {
    for (size_t group = 0; group < members_.size(); ++group) {
      for (const size_t at : members_[group].nodes)
        group_of_[at] = static_cast<int32_t>(group);
    }
  }

  /// Two launches, the second of which may read what the first stores.
  void split(size_t group) {
    Members &first = members_[group];
    const auto middle = first.nodes.begin() + static_cast<std::ptrdiff_t>(first.nodes.size() / 2);
    Members second{first.level, first.space, {middle, first.nodes.end()}};
    first.nodes.erase(middle, first.nodes.end());
    members_.insert(members_.begin() + static_cast<std::ptrdiff_t>(group) + 1, std::move(second));
    bool is_second = false;
    for (auto &[result, at] : passed_) {
      at += at > group || (at == group && is_second) ? 1 : 0;
      is_second = !is_second;
    }
    number_groups();
  }

  /// Whoever wants the parameters that the group stores copies them. False: there are none.
  bool drop_passed(size_t group) {
    const size_t dropped = std::erase_if(passed_, [&](const auto &one) { return one.second == group; });
    if (dropped > 0) note_dense();
    return dropped > 0;
  }

  /// Results that are parameters: any group over their space can store them elsewhere, too.
  void place_parameters() {
    for (size_t result = 0; result < region().results.size(); ++result) {
      const ValueId value = region().results[result];
      if (places_.of_result(result) == 0 || nodes_.producer(value).has_value() || !nodes_.is_readable(value)) continue;
      const auto group = std::find_if(members_.begin(), members_.end(),
                                      [&](const Members &members) { return members.space == nodes_.space_of(value); });
      if (group != members_.end()) passed_[result] = static_cast<size_t>(group - members_.begin());
    }
  }

  /// In its further place a result is stored by the group that makes it.
  bool is_placed(size_t result) const {
    if (places_.of_result(result) == 0) return false;
    if (passed_.count(result) != 0) return true;
    const std::optional<size_t> at = nodes_.producer(region().results[result]);
    return at.has_value() && group_of_[*at] >= 0;
  }

  void note_dense() {
    plan_.is_dense.assign(region().parameters.size(), 0);
    plan_.is_placed.assign(region().results.size(), 0);
    for (size_t result = 0; result < region().results.size(); ++result)
      plan_.is_placed[result] = is_placed(result) ? 1 : 0;
    for (size_t parameter = 0; parameter < region().parameters.size(); ++parameter) {
      const ValueId value = region().parameters[parameter];
      bool is_dense =
          places_.of_parameter(parameter) == 0 || nodes_.is_read_by_call(value) || !nodes_.is_readable(value);
      for (size_t result = 0; result < region().results.size(); ++result)
        is_dense = is_dense || (region().results[result] == value && plan_.is_placed[result] == 0);
      plan_.is_dense[parameter] = is_dense ? 1 : 0;
    }
  }

  int64_t pitch_of(ValueId value) const {
    const auto found = std::find(region().parameters.begin(), region().parameters.end(), value);
    if (found == region().parameters.end()) return 0;
    const auto parameter = static_cast<size_t>(found - region().parameters.begin());
    return plan_.is_dense[parameter] != 0 ? 0 : places_.of_parameter(parameter);
  }

  /// Does anyone but its own group read the memory of what the node makes?
  bool has_memory(size_t at) const {
    const ValueId value = nodes_.output(at);
    if (nodes_.is_read_by_call(value)) return true;
    for (size_t result = 0; result < region().results.size(); ++result) {
      if (region().results[result] == value && (plan_.is_placed[result] == 0 || places_.of_result(result) == 0))
        return true;
    }
    if (nodes_.kind(at) == NodeKind::view) return false;  // groups read what it is a view of
    const std::vector<size_t> readers = nodes_.readers(value);
    return std::any_of(readers.begin(), readers.end(), [&](size_t reader) {
      if (nodes_.kind(reader) == NodeKind::call) return false;  // behind a view, which has memory then
      return nodes_.kind(at) == NodeKind::concat || group_of_[reader] != group_of_[at];
    });
  }

  bool add_group(size_t group) {
    const Members &members = members_[group];
    FusedProgramMaker maker(
        nodes_, members.space, [this](ValueId value) { return pitch_of(value); },
        [&](size_t at) { return group_of_[at] == static_cast<int32_t>(group); });
    for (const size_t at : members.nodes) {
      if (has_memory(at)) maker.store(at, 0, {nodes_.output(at), -1});
    }
    for (size_t result = 0; result < region().results.size(); ++result) {
      const ValueId value = region().results[result];
      const std::optional<size_t> at = nodes_.producer(value);
      const auto passed = passed_.find(result);
      const FusedTarget target{kNoValue, static_cast<int32_t>(result)};
      if (passed != passed_.end() && passed->second == group) {
        maker.store_value(value, places_.of_result(result), target);
      } else if (plan_.is_placed[result] != 0 && at.has_value() && group_of_[*at] == static_cast<int32_t>(group)) {
        maker.store(*at, places_.of_result(result), target);
      }
    }
    if (!maker.fits()) return false;
    plan_.groups.push_back(maker.take(static_cast<int32_t>(members.nodes.size())));
    return true;
  }

  void add_steps() {
    int32_t last = 0;
    for (size_t at = 0; at < nodes_.count(); ++at)
      last = std::max(last, levels_.level(at));
    for (int32_t level = 0; level <= last; ++level) {
      for (size_t at = 0; at < nodes_.count(); ++at) {
        if (nodes_.kind(at) == NodeKind::call && levels_.level(at) == level) plan_.steps.push_back({nodes_.id(at), -1});
      }
      for (size_t group = 0; group < members_.size(); ++group) {
        if (members_[group].level == level && plan_.groups[group].program.output_count > 0)
          plan_.steps.push_back({kNoNode, static_cast<int32_t>(group)});
      }
    }
  }

  const RegionNodes &nodes_;
  const LoopPlaces &places_;
  const LevelPlanner levels_;
  std::vector<Members> members_;
  std::vector<int32_t> group_of_;    // by node; -1: of none
  std::map<size_t, size_t> passed_;  // by result that is a parameter: the group that stores it
  RegionPlan plan_;
};

}  // namespace

RegionPlan plan_region(const LoweredGraph &lowered, const Region &region, const LoopPlaces &places) {
  std::set<NodeId> calls;
  for (;;) {
    const RegionNodes nodes(lowered, region, calls);
    RegionPlanner planner(nodes, places);
    const std::optional<size_t> too_large = planner.make();
    if (!too_large.has_value()) return planner.take();
    calls.insert(nodes.id(*too_large));
  }
}

}  // namespace tutti::impl::backend::gpu
