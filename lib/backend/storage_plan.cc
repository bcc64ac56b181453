// SPDX-License-Identifier: Apache-2.0
#include "backend/storage_plan.h"

#include <algorithm>
#include <utility>

#include "backend/memory_plan.h"

namespace tutti::impl::backend {

using base::Json;
using base::JsonArray;
using base::JsonObject;
using graph::kNoValue;
using graph::Node;
using graph::ValueId;

namespace {

bool is_update(const Node &node) { return node.op.ends_with("_update"); }

/// Outputs of an update come in the order of w and its slots, which are inputs 0, 2, 3, ... (1 is the gradient).
bool update_may_overwrite(const Node &node, int32_t output, int32_t input) {
  return is_update(node) && input == (output == 0 ? 0 : output + 1);
}

}  // namespace

StorageWishes StorageWishes::row_major(const LoweredGraph &lowered) {
  StorageWishes wishes;
  for (const LoweredValue &value : lowered.values())
    wishes.bytes.push_back(value.bytes);
  wishes.same_memory.assign(lowered.values().size(), kNoValue);
  wishes.plain.assign(lowered.values().size(), 1);
  wishes.scratch.assign(lowered.steps().size(), 0);
  for (const graph::NodeId id : lowered.steps()) {
    const Node &node = lowered.graph().node(id);
    if (node.op == "identity" || node.op == "stop_gradient" || node.op == "reshape")
      wishes.same_memory[static_cast<size_t>(node.outputs[0])] = node.inputs[0];
  }
  wishes.may_overwrite = update_may_overwrite;
  return wishes;
}

namespace {

/// Values that share memory. Groups are identified by their first value.
class StoragePlanner {
 public:
  StoragePlanner(const LoweredGraph &lowered, const StorageWishes &wishes) : lowered_(lowered), wishes_(wishes) {
    const size_t count = lowered.values().size();
    group_of_.assign(count, kNoValue);
    groups_.resize(count);
    last_use_.assign(count, -1);
    content_of_.assign(count, kNoValue);
    plan_.locations.resize(count);
    plan_.scratch_offset.assign(lowered.steps().size(), 0);
    plan_.write_is_done.assign(lowered.steps().size(), 0);
  }

  StoragePlan run() {
    find_last_uses();
    for (int32_t step = 0; step < lowered_.step_count(); ++step)
      group_outputs(step);
    place_writes();
    place_outputs();
    place_in_workspace();
    for (size_t value = 0; value < group_of_.size(); ++value) {
      if (group_of_[value] != kNoValue) plan_.locations[value] = group(static_cast<ValueId>(value)).location;
    }
    add_output_copies();
    list_externals();
    return std::move(plan_);
  }

 private:
  struct Group {
    Location location;
    int32_t first = 0, last = 0;
    int64_t bytes = 0;
    bool is_reduced = false;     // an all_reduce works on it: must stay in the workspace
    ValueId maker = kNoValue;    // the value whose producer writes these bytes first
    ValueId content = kNoValue;  // and last
  };

  Group &group(ValueId value) { return groups_[static_cast<size_t>(group_of_[static_cast<size_t>(value)])]; }
  int32_t end() const { return lowered_.step_count(); }

  void find_last_uses() {
    for (int32_t step = 0; step < lowered_.step_count(); ++step) {
      for (const ValueId input : lowered_.step(step).inputs) {
        if (input == kNoValue || input == unread_by(step)) continue;
        int32_t &last = last_use_[static_cast<size_t>(input)];
        last = std::max(last, turn_of(step));
      }
    }
    for (size_t value = 0; value < wishes_.kept_until.size(); ++value)
      last_use_[value] = std::max(last_use_[value], wishes_.kept_until[value]);
    // Results stay untouched to the end.
    for (const LoweredPort &port : lowered_.outputs())
      last_use_[static_cast<size_t>(port.value)] = end();
  }

  void start_group(ValueId value, int32_t step, Location location) {
    group_of_[static_cast<size_t>(value)] = value;
    step = std::min(step, turn_of(step));
    Group &made = group(value);
    made = {location,
            step,
            std::max(step, last_use_[static_cast<size_t>(value)]),
            wishes_.bytes[static_cast<size_t>(value)],
            false,
            value,
            value};
    content_of_[static_cast<size_t>(value)] = value;
  }

  /// `value` lies where `other` does, and either is the same bytes or replaces them.
  void join_group(ValueId value, ValueId other, bool replaces) {
    group_of_[static_cast<size_t>(value)] = group_of_[static_cast<size_t>(other)];
    Group &joined = group(other);
    joined.last = std::max(joined.last, last_use_[static_cast<size_t>(value)]);
    content_of_[static_cast<size_t>(value)] = replaces ? value : content_of_[static_cast<size_t>(other)];
    if (replaces) joined.content = value;
  }

  void group_outputs(int32_t step) {
    const Node &node = lowered_.step(step);
    if (node.op == "input") {
      int32_t index = 0;
      while (lowered_.inputs()[static_cast<size_t>(index)].value != node.outputs[0])
        ++index;
      return start_group(node.outputs[0], step, {Place::input, index, 0});
    }
    if (node.op == "state_read") {
      const StateAccess &access = lowered_.access(step);
      return start_group(node.outputs[0], step, {Place::arena, access.arena, access.offset});
    }
    if (node.op == "constant")
      return start_group(node.outputs[0], step, {Place::constant, lowered_.steps()[static_cast<size_t>(step)], 0});
    if (node.op == "all_reduce") return group_all_reduce(step);
    for (size_t output = 0; output < node.outputs.size(); ++output) {
      const ValueId value = node.outputs[output];
      const ValueId same = wishes_.same_memory[static_cast<size_t>(value)];
      const ValueId dying = same != kNoValue ? kNoValue : overwritten_input(step, static_cast<int32_t>(output));
      if (same != kNoValue) {
        join_group(value, same, false);
      } else if (dying != kNoValue) {
        join_group(value, dying, true);
      } else {
        start_group(value, step, {Place::workspace, 0, 0});
      }
    }
  }

  /// The input whose dying memory an output may take over, or none.
  ValueId overwritten_input(int32_t step, int32_t output) {
    const Node &node = lowered_.step(step);
    const int64_t bytes = wishes_.bytes[static_cast<size_t>(node.outputs[static_cast<size_t>(output)])];
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId input = node.inputs[i];
      if (input == kNoValue || !wishes_.may_overwrite(node, output, static_cast<int32_t>(i))) continue;
      const Group &candidate = group(input);
      if (candidate.location.place == Place::workspace && candidate.last == step && candidate.bytes == bytes &&
          !taken_by_sibling(node, output, input))
        return input;
    }
    return kNoValue;
  }

  bool taken_by_sibling(const Node &node, int32_t output, ValueId input) {
    for (int32_t i = 0; i < output; ++i) {
      if (group_of_[static_cast<size_t>(node.outputs[static_cast<size_t>(i)])] == group_of_[static_cast<size_t>(input)])
        return true;
    }
    return false;
  }

  void group_all_reduce(int32_t step) {
    const Node &node = lowered_.step(step);
    const ValueId x = node.inputs[0], y = node.outputs[0];
    const Group &before = group(x);
    if (before.location.place == Place::workspace && before.last == step) {
      join_group(y, x, true);
    } else {
      start_group(y, step, {Place::workspace, 0, 0});
      plan_.copies.push_back({step, x, {}});  // `to` is known once the workspace is planned
    }
    group(y).is_reduced = true;
    plan_.external_steps.push_back(step);
  }

  // ---- state_write ----

  void place_writes() {
    for (int32_t step = 0; step < lowered_.step_count(); ++step) {
      const Node &node = lowered_.step(step);
      if (node.op != "state_write") continue;
      const StateAccess &access = lowered_.access(step);
      Group &written = group(node.inputs[0]);
      const Location target{Place::arena, access.arena, access.offset};
      const bool is_there =
          written.location == target && written.content == content_of_[static_cast<size_t>(node.inputs[0])];
      if (is_there && !is_add(node)) {
        plan_.write_is_done[static_cast<size_t>(step)] = 1;
      } else if (can_compute_in_place(step, written)) {
        written.location = target;
        plan_.write_is_done[static_cast<size_t>(step)] = 1;
      }
    }
  }

  static bool is_add(const Node &node) {
    const auto mode = node.attributes.find("mode");
    return mode != node.attributes.end() && std::get<std::string>(mode->second) == "add";
  }

  bool overlaps(const StateAccess &a, const StateAccess &b) const {
    return a.arena == b.arena && a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
  }

  /// May the value that `step` writes be computed in the entry itself?
  bool can_compute_in_place(int32_t step, const Group &written) {
    const Node &node = lowered_.step(step);
    const StateAccess &access = lowered_.access(step);
    const StateEntry &entry = lowered_.state().entries()[static_cast<size_t>(access.entry)];
    const size_t value = static_cast<size_t>(node.inputs[0]);
    if (is_add(node) || written.location.place != Place::workspace || written.is_reduced) return false;
    if (written.content != content_of_[value]) return false;
    if (is_read_behind_mark(step, written)) return false;
    if (written.bytes != access.bytes || !wishes_.plain[value] || !(access.flat || entry.layout.empty())) return false;
    for (int32_t other = 0; other < lowered_.step_count(); ++other) {
      if (other == step || lowered_.access(other).entry < 0 || !overlaps(access, lowered_.access(other))) continue;
      if (lowered_.step(other).op == "state_write" || !is_read_before(other, written, access)) return false;
    }
    return true;
  }

  /// Is the group read after the host may have changed what the step writes?
  bool is_read_behind_mark(int32_t step, const Group &written) const {
    return std::ranges::any_of(plan_.external_steps, [&](int32_t external) {
      const bool moves_nothing = lowered_.value(lowered_.step(external).outputs[0]).elements == 0;
      return moves_nothing && external > step && external < written.last;
    });
  }

  ValueId unread_by(int32_t step) const {
    return wishes_.unread.empty() ? kNoValue : wishes_.unread[static_cast<size_t>(step)];
  }
  int32_t turn_of(int32_t step) const { return wishes_.turn.empty() ? step : wishes_.turn[static_cast<size_t>(step)]; }

  /// Is everything that reads through the state_read at `read` done when the group is first written, or is it what is
  /// computed at that turn, working element by element on the same bytes?
  bool is_read_before(int32_t read, const Group &written, const StateAccess &target) {
    const ValueId value = lowered_.step(read).outputs[0];
    const int32_t last = group(value).last;
    if (last < written.first) return true;
    if (last > written.first || lowered_.access(read).offset != target.offset) return false;
    for (int32_t step = 0; step < lowered_.step_count(); ++step) {
      if (turn_of(step) == written.first && !works_by_elements(step, value, written.maker)) return false;
    }
    return true;
  }

  /// May all inputs of the node that are the value be overwritten as they are read? By `made`, if it is the node's.
  bool works_by_elements(int32_t step, ValueId value, ValueId made) {
    const Node &node = lowered_.step(step);
    const auto found = std::find(node.outputs.begin(), node.outputs.end(), made);
    const auto output = static_cast<int32_t>(found == node.outputs.end() ? 0 : found - node.outputs.begin());
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId input = node.inputs[i];
      if (input == kNoValue || group_of_[static_cast<size_t>(input)] != group_of_[static_cast<size_t>(value)]) continue;
      if (!wishes_.may_overwrite(node, output, static_cast<int32_t>(i))) return false;
    }
    return true;
  }

  // ---- outputs and workspace ----

  void place_outputs() {
    for (size_t i = 0; i < lowered_.outputs().size(); ++i) {
      const ValueId value = lowered_.outputs()[i].value;
      Group &made = group(value);
      if (made.location.place == Place::workspace && !made.is_reduced && wishes_.plain[static_cast<size_t>(value)] &&
          made.bytes == lowered_.value(value).bytes)
        made.location = {Place::output, static_cast<int32_t>(i), 0};
    }
  }

  void place_in_workspace() {
    std::vector<MemoryBlock> blocks;
    std::vector<Group *> owners;
    for (size_t value = 0; value < groups_.size(); ++value) {
      Group &candidate = groups_[value];
      if (group_of_[value] != static_cast<ValueId>(value) || candidate.location.place != Place::workspace) continue;
      blocks.push_back({candidate.bytes, candidate.first, candidate.last});
      owners.push_back(&candidate);
    }
    for (int32_t step = 0; step < lowered_.step_count(); ++step)
      blocks.push_back({wishes_.scratch[static_cast<size_t>(step)], step, step});
    const MemoryPlan memory = plan_memory(blocks, wishes_.alignment);
    for (size_t i = 0; i < owners.size(); ++i)
      owners[i]->location.offset = memory.offsets[i];
    for (size_t step = 0; step < wishes_.scratch.size(); ++step)
      plan_.scratch_offset[step] = memory.offsets[owners.size() + step];
    plan_.workspace_bytes = memory.bytes;
    plan_.workspace_lower_bound = memory.lower_bound_bytes;
  }

  void add_output_copies() {
    for (StorageCopy &copy : plan_.copies)
      copy.to = group(lowered_.step(copy.step).outputs[0]).location;
    for (size_t i = 0; i < lowered_.outputs().size(); ++i) {
      const Location wanted{Place::output, static_cast<int32_t>(i), 0};
      const ValueId value = lowered_.outputs()[i].value;
      if (group(value).location == wanted) continue;
      const graph::NodeId producer = lowered_.graph().value(value).producer;
      const auto step = std::find(lowered_.steps().begin(), lowered_.steps().end(), producer);
      plan_.copies.push_back({static_cast<int32_t>(step - lowered_.steps().begin()), value, wanted});
    }
  }

  void list_externals() {
    for (const int32_t step : plan_.external_steps) {
      const Node &node = lowered_.step(step);
      const LoweredValue &value = lowered_.value(node.outputs[0]);
      const auto kind = node.attributes.find("kind"), label = node.attributes.find("label");
      ExternalDescription external;
      external.kind = "all_reduce_" + (kind == node.attributes.end() ? "sum" : std::get<std::string>(kind->second));
      external.label = label == node.attributes.end() ? node.scope_name : std::get<std::string>(label->second);
      external.offset = group(node.outputs[0]).location.offset;
      external.elements = value.elements;
      external.dtype = value.dtype;
      plan_.externals.push_back(std::move(external));
    }
  }

  const LoweredGraph &lowered_;
  const StorageWishes &wishes_;
  std::vector<ValueId> group_of_;    // by value
  std::vector<Group> groups_;        // by the group's first value
  std::vector<ValueId> content_of_;  // by value: whose producer wrote the bytes it stands for
  std::vector<int32_t> last_use_;    // by value: step, step count for results, -1 for none
  StoragePlan plan_;
};

JsonArray describe_ports(const LoweredGraph &lowered, const std::vector<LoweredPort> &ports) {
  JsonArray list;
  for (const LoweredPort &port : ports) {
    const LoweredValue &value = lowered.value(port.value);
    list.push_back(
        JsonObject{{"name", port.name}, {"dtype", name(value.dtype)}, {"dims", value.dims}, {"bytes", value.bytes}});
  }
  return list;
}

}  // namespace

StoragePlan plan_storage(const LoweredGraph &lowered, const StorageWishes &wishes) {
  return StoragePlanner(lowered, wishes).run();
}

std::string describe_executable(const LoweredGraph &lowered, const StoragePlan &plan, Json report) {
  JsonArray externals;
  for (const ExternalDescription &external : plan.externals) {
    externals.push_back(JsonObject{{"kind", external.kind},
                                   {"label", external.label},
                                   {"arena", external.arena},
                                   {"offset", external.offset},
                                   {"elements", external.elements},
                                   {"dtype", name(external.dtype)}});
  }
  report.set("workspace_lower_bound_bytes", plan.workspace_lower_bound);
  return Json(JsonObject{{"inputs", describe_ports(lowered, lowered.inputs())},
                         {"outputs", describe_ports(lowered, lowered.outputs())},
                         {"workspace_bytes", plan.workspace_bytes},
                         {"workspace_alignment", 64},
                         {"externals", std::move(externals)},
                         {"report", std::move(report)}})
      .dump();
}

}  // namespace tutti::impl::backend
