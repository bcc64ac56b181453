// SPDX-License-Identifier: Apache-2.0
#include "backend/gpu/fusion/horizontal_fusion.h"

#include <algorithm>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>

namespace tutti::impl::backend::gpu {

using graph::kNoValue;
using graph::Node;
using graph::ValueId;

namespace {

constexpr int64_t kMostKept = 1 << 20, kMostKeptOfGroup = 16 << 20;
constexpr int64_t kRowAlignment = 16;

/// Chooses groups, going through the steps in order.
class GroupFinder {
 public:
  GroupFinder(const LoweredGraph &lowered, const std::vector<KernelCall> &by_step, const StorageWishes &wishes)
      : lowered_(lowered), by_step_(by_step), wishes_(wishes) {}

  /// Steps of each group, at least two.
  std::vector<std::vector<int32_t>> run() {
    for (int32_t step = 0; step < lowered_.step_count(); ++step) {
      const Node &node = lowered_.step(step);
      if (node.op == "all_reduce") close_all();
      const KernelCall &call = by_step_[static_cast<size_t>(step)];
      if (node.op != "state_write") close_read(node.inputs);
      close_read(call.inputs);
      if (call.kernel && call.joinable != nullptr) add(step, call);
    }
    close_all();
    return std::move(groups_);
  }

  /// Memory that a call reads and that may be used again after it: not state, not constants.
  std::vector<ValueId> kept_by(const KernelCall &call) const {
    std::vector<ValueId> kept;
    for (ValueId value : call.inputs) {
      if (value == kNoValue) continue;
      while (wishes_.same_memory[static_cast<size_t>(value)] != kNoValue)
        value = wishes_.same_memory[static_cast<size_t>(value)];
      const std::string &op = lowered_.graph().node(lowered_.graph().value(value).producer).op;
      if (op == "state_read" || op == "constant" || op == "input") continue;
      if (std::find(kept.begin(), kept.end(), value) == kept.end()) kept.push_back(value);
    }
    return kept;
  }

 private:
  struct Group {
    std::vector<int32_t> steps;
    int64_t kept_bytes = 0;
  };

  void add(int32_t step, const KernelCall &call) {
    int64_t bytes = 0;
    for (const ValueId value : kept_by(call))
      bytes += lowered_.value(value).bytes;
    if (bytes > kMostKept) return;
    const std::string &key = call.joinable->key;
    if (open_[key].kept_bytes + bytes > kMostKeptOfGroup) close(key);
    Group &group = open_[key];
    group.steps.push_back(step);
    group.kept_bytes += bytes;
    for (const ValueId value : call.outputs)
      made_by_[value] = key;
  }

  /// What a node, or a call that does more than a node, reads has to be made before it.
  void close_read(const std::vector<ValueId> &inputs) {
    for (const ValueId input : inputs) {
      const auto made = made_by_.find(input);
      if (made != made_by_.end()) close(made->second);
    }
  }

  void close(const std::string &key) {
    const auto found = open_.find(key);
    if (found == open_.end()) return;
    if (found->second.steps.size() > 1) groups_.push_back(std::move(found->second.steps));
    open_.erase(found);
  }

  void close_all() {
    while (!open_.empty())
      close(std::string(open_.begin()->first));
  }

  const LoweredGraph &lowered_;
  const std::vector<KernelCall> &by_step_;
  const StorageWishes &wishes_;
  std::map<std::string, Group> open_;  // by key
  std::unordered_map<ValueId, std::string> made_by_;
  std::vector<std::vector<int32_t>> groups_;
};

/// Bytes that calls touch.
class Touched {
 public:
  void add(const PlacedBytes &place) {
    if (place.bytes > 0 && place.location.place != Place::none) places_.push_back(place);
  }
  void add(const Touched &other) { places_.insert(places_.end(), other.places_.begin(), other.places_.end()); }

  bool overlaps(const Touched &other) const {
    return std::any_of(places_.begin(), places_.end(), [&](const PlacedBytes &a) {
      return std::any_of(other.places_.begin(), other.places_.end(), [&](const PlacedBytes &b) {
        return a.location.place == b.location.place && a.location.index == b.location.index &&
               a.location.offset < b.location.offset + b.bytes && b.location.offset < a.location.offset + a.bytes;
      });
    });
  }

 private:
  std::vector<PlacedBytes> places_;
};

struct Access {
  Touched read, written;

  void add(const Access &other) {
    read.add(other.read);
    written.add(other.written);
  }
  /// May not change places.
  bool depends_on(const Access &other) const {
    return written.overlaps(other.read) || written.overlaps(other.written) || read.overlaps(other.written);
  }
};

Access access_of(const KernelCall &call, const std::function<PlacedBytes(int32_t)> &place_of) {
  Access access;
  for (const int32_t input : call.inputs) {
    if (input != kNoValue) access.read.add(place_of(input));
  }
  for (const int32_t output : call.outputs)
    access.written.add(place_of(output));
  access.written.add({{Place::workspace, 0, call.scratch_offset}, call.scratch_bytes});
  return access;
}

/// "update/adam_update" of "update/first/kernel/adam_update" and "update/second/bias/adam_update".
std::string common_name(const std::vector<KernelCall> &calls, const std::vector<size_t> &members) {
  const std::string_view first = calls[members.front()].trace_name;
  const size_t scope_end = first.rfind('/') + 1;  // 0 without a scope
  std::string_view scope = first.substr(0, scope_end);
  for (const size_t member : members) {
    while (!calls[member].trace_name.starts_with(scope))
      scope = scope.substr(0, scope.find_last_of('/', scope.size() - 2) + 1);
  }
  return base::concat(scope, first.substr(scope_end));
}

/// Which calls of [begin, end) can be done together: positions of each set, at least two.
std::vector<std::vector<size_t>> sets_of(const std::vector<KernelCall> &calls, size_t begin, size_t end,
                                         const std::function<PlacedBytes(int32_t)> &place_of) {
  struct Set {
    std::vector<size_t> members;
    Access access;
  };
  std::map<int32_t, Set> open;  // by group
  std::vector<std::vector<size_t>> sets;
  const auto close = [&](Set &set) {
    if (set.members.size() > 1) sets.push_back(std::move(set.members));
  };
  for (size_t i = begin; i < end; ++i) {
    const Access access = access_of(calls[i], place_of);
    for (auto set = open.begin(); set != open.end();) {
      const bool is_over = access.depends_on(set->second.access);
      if (is_over) close(set->second);
      set = is_over ? open.erase(set) : std::next(set);
    }
    if (calls[i].group < 0) continue;
    Set &own = open[calls[i].group];
    own.members.push_back(i);
    own.access.add(access);
  }
  for (auto &[group, set] : open)
    close(set);
  return sets;
}

}  // namespace

void KernelCall::fill_rows(void *const *table, void *all_rows) const {
  const IssueContext nothing;
  rows->fill(Frame(table, inputs.data(), outputs.data(), nullptr, nothing), row_elements,
             static_cast<char *>(all_rows) + rows_offset);
}

HorizontalFusion HorizontalFusion::find(const LoweredGraph &lowered, KernelBatch &batch,
                                        std::vector<KernelCall> &by_step, StorageWishes &wishes) {
  HorizontalFusion joined;
  GroupFinder finder(lowered, by_step, wishes);
  wishes.kept_until.assign(lowered.values().size(), -1);
  for (const std::vector<int32_t> &steps : finder.run()) {
    int64_t elements = 0;
    for (const int32_t step : steps) {
      KernelCall &call = by_step[static_cast<size_t>(step)];
      call.group = static_cast<int32_t>(joined.kernels_.size());
      elements += call.joinable->elements;
      for (const ValueId value : finder.kept_by(call)) {
        int32_t &until = wishes.kept_until[static_cast<size_t>(value)];
        until = std::max(until, steps.back());
      }
    }
    joined.kernels_.push_back(by_step[static_cast<size_t>(steps.front())].joinable->join(batch, elements));
  }
  return joined;
}

KernelCall HorizontalFusion::make_call(std::vector<KernelCall> &calls, const std::vector<size_t> &members) {
  const KernelCall &first = calls[members.front()];
  KernelCall made;
  made.rows = kernels_[static_cast<size_t>(first.group)];
  made.generated = made.rows->generated();
  made.step = first.step;
  made.trace_name = common_name(calls, members);
  made.kernel_name = base::concat(first.kernel_name, " x ", members.size());
  made.rows_offset = rows_bytes_;
  for (const size_t member : members) {
    const KernelCall &call = calls[member];
    made.inputs.insert(made.inputs.end(), call.inputs.begin(), call.inputs.end());
    made.outputs.insert(made.outputs.end(), call.outputs.begin(), call.outputs.end());
    made.row_elements.push_back(call.joinable->elements);
  }
  made.kernel = [rows = made.rows, elements = made.row_elements](const Frame &frame) {
    return rows->launch(frame, elements);
  };
  const int64_t bytes = made.rows->row_bytes() * static_cast<int64_t>(members.size());
  rows_bytes_ += (bytes + kRowAlignment - 1) / kRowAlignment * kRowAlignment;
  return made;
}

void HorizontalFusion::join(std::vector<KernelCall> &calls, std::vector<int32_t> &segment_ends,
                            const std::function<PlacedBytes(int32_t)> &place_of) {
  std::vector<KernelCall> kept;
  size_t begin = 0;
  for (int32_t &segment_end : segment_ends) {
    const auto end = static_cast<size_t>(segment_end);
    std::map<size_t, KernelCall> joined;  // by the position of the last
    std::vector<char> is_done(end - begin, 0);
    for (const std::vector<size_t> &members : sets_of(calls, begin, end, place_of)) {
      joined.emplace(members.back(), make_call(calls, members));
      for (const size_t member : members)
        is_done[member - begin] = 1;
    }
    for (size_t i = begin; i < end; ++i) {
      if (is_done[i - begin] == 0) kept.push_back(std::move(calls[i]));
      if (const auto found = joined.find(i); found != joined.end()) kept.push_back(std::move(found->second));
    }
    segment_end = static_cast<int32_t>(kept.size());
    begin = end;
  }
  calls = std::move(kept);
}

}  // namespace tutti::impl::backend::gpu
