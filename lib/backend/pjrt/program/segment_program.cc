// SPDX-License-Identifier: Apache-2.0
#include "backend/pjrt/program/segment_program.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "backend/pjrt/emit/node_emitter.h"
#include "graph/ops/op_attributes.h"

namespace tutti::impl::backend::pjrt {

using base::Result;
using base::Status;
using graph::Node;
using graph::ValueId;
using tensor::DType;

namespace {

constexpr int64_t kAlignment = 64;

bool is_leaf(const Node &node) { return node.op == "input" || node.op == "constant" || node.op == "state_read"; }

bool is_add(const Node &node) {
  const auto mode = node.attributes.find("mode");
  return mode != node.attributes.end() && std::get<std::string>(mode->second) == "add";
}

/// Writes the segments one after the other.
class SegmentWriter {
 public:
  SegmentWriter(const LoweredGraph &lowered, const SegmentOptions &options)
      : lowered_(lowered),
        options_(options),
        made_in_(lowered.values().size(), 0),
        last_used_in_(lowered.values().size(), -1),
        carried_at_(lowered.values().size(), -1),
        external_of_(lowered.values().size(), -1) {}

  Result<SegmentedProgram> write() {
    find_uses();
    TUTTI_TRY(list_externals());
    for (int32_t segment = 0, step = 0; segment <= static_cast<int32_t>(program_.externals.size()); ++segment)
      TUTTI_TRY(write_segment(segment, step));
    return std::move(program_);
  }

 private:
  /// A segment in the making.
  struct Open {
    explicit Open(const LoweredGraph &lowered, bool permits_less)
        : text(permits_less), run{lowered, text, {}, {}, {}, {}, {}} {
      run.values.resize(lowered.values().size());
    }
    ProgramText text;
    EmittedRun run;
    SegmentText made;
    std::vector<Value> results;
    std::map<int32_t, Value> state;            // by entry: its value now
    std::map<int32_t, size_t> state_argument;  // by entry
    std::map<int32_t, size_t> written;         // by entry: its result
    std::string fault_before;                  // what its fault was called at its beginning
  };

  /// Where a segment ends, for the host to reduce a value.
  bool is_cut(const Node &node) const { return node.op == "all_reduce" && options_.replicas == 1; }

  // ---- uses ----

  void use(ValueId id, int32_t segment) {
    if (id != graph::kNoValue) last_used_in_[static_cast<size_t>(id)] = segment;
  }

  void find_uses() {
    int32_t segment = 0;
    for (const graph::NodeId id : lowered_.steps()) {
      const Node &node = lowered_.graph().node(id);
      for (const ValueId input : node.inputs)
        use(input, segment);
      if (is_cut(node)) ++segment;
      for (const ValueId output : node.outputs)
        made_in_[static_cast<size_t>(output)] = segment;
    }
    for (const LoweredPort &port : lowered_.outputs())
      use(port.value,
          std::max(last_used_in_[static_cast<size_t>(port.value)], made_in_[static_cast<size_t>(port.value)]));
  }

  Status list_externals() {
    for (const graph::NodeId id : lowered_.steps()) {
      const Node &node = lowered_.graph().node(id);
      if (!is_cut(node)) continue;
      TUTTI_ASSIGN(const auto attributes, graph::ops::AllReduceAttributes::from(node));
      const LoweredValue &value = lowered_.value(node.outputs[0]);
      constexpr std::string_view kKinds[] = {"all_reduce_sum", "all_reduce_max", "all_reduce_min"};
      ExternalDescription external;
      external.kind = kKinds[static_cast<size_t>(attributes.kind)];
      external.label = attributes.label;
      external.offset = program_.workspace_bytes;
      external.elements = value.elements;
      external.dtype = value.dtype;
      external_of_[static_cast<size_t>(node.outputs[0])] = static_cast<int32_t>(program_.externals.size());
      program_.workspace_bytes += (value.bytes + kAlignment - 1) / kAlignment * kAlignment;
      program_.externals.push_back(std::move(external));
    }
    return Status();
  }

  // ---- one segment ----

  Status write_segment(int32_t segment, int32_t &step) {
    const bool permits_less = lowered_.allows_bf16() || lowered_.allows_tf32();
    Open open(lowered_, permits_less);
    open.run.checks = program_.checks;
    open.run.scalars = argument(open, {Slot::scalars, 0}, DType::i64, {TUTTI_RUN_SCALAR_COUNT});
    if (has_fault_) open.run.fault = argument(open, {Slot::fault, 0}, DType::i64, {3});
    open.fault_before = open.run.fault.name;
    for (; step < lowered_.step_count(); ++step) {
      const Node &node = lowered_.step(step);
      for (const ValueId input : node.inputs)
        bring(open, input, segment);
      if (is_cut(node)) {
        send_external(open, node);
        ++step;
        break;
      }
      TUTTI_TRY(write_step(open, node, step));
    }
    finish(open, segment);
    program_.checks = std::move(open.run.checks);
    program_.segments.push_back(std::move(open.made));
    return Status();
  }

  Status write_step(Open &open, const Node &node, int32_t step) {
    if (is_leaf(node)) return Status();  // brought where it is used
    if (node.op == "state_write") {
      write_state(open, node, step);
      return Status();
    }
    if (node.op == "all_reduce") return reduce_over_devices(open, node);
    return emit_node(open.run, node);
  }

  Status reduce_over_devices(Open &open, const Node &node) {
    TUTTI_ASSIGN(const auto attributes, graph::ops::AllReduceAttributes::from(node));
    constexpr Reduction kKinds[] = {Reduction::sum, Reduction::max, Reduction::min};
    const Value &own = open.run.values[static_cast<size_t>(node.inputs[0])];
    const Reduction kind = kKinds[static_cast<size_t>(attributes.kind)];
    open.run.values[static_cast<size_t>(node.outputs[0])] =
        is_empty(own.dims) ? own : open.text.all_reduce(kind, own, options_.replicas);
    return Status();
  }

  Value argument(Open &open, SegmentPort port, DType dtype, const Dims &dims) {
    open.made.arguments.push_back(port);
    open.made.is_donated.push_back(0);
    return open.text.argument(dtype, dims);
  }

  void add_result(Open &open, SegmentPort port, const Value &value) {
    open.made.results.push_back(port);
    open.results.push_back(value);
  }

  /// Makes a value there that is not computed in this segment.
  void bring(Open &open, ValueId id, int32_t segment) {
    if (id == graph::kNoValue || !open.run.values[static_cast<size_t>(id)].is_absent()) return;
    const LoweredValue &value = lowered_.value(id);
    const Node &producer = lowered_.graph().node(lowered_.graph().value(id).producer);
    Value &found = open.run.values[static_cast<size_t>(id)];
    const int32_t external = external_of_[static_cast<size_t>(id)];
    if (producer.op == "input") {
      found = argument(open, {Slot::input, input_index(id)}, value.dtype, value.dims);
    } else if (producer.op == "constant") {
      found = open.text.constant(std::get<tensor::Tensor>(producer.attributes.at("value")));
    } else if (producer.op == "state_read") {
      found = read_state(open, id);
    } else if (external >= 0 && value.elements == 0) {
      found = open.text.splat(value.dtype, value.dims, 0);
    } else if (external >= 0) {
      const Value flat = argument(open, {Slot::external, external}, value.dtype, {value.elements});
      found = open.text.reshape(flat, value.dims);
    } else if (made_in_[static_cast<size_t>(id)] < segment) {
      found = argument(open, {Slot::carried, carried_at_[static_cast<size_t>(id)]}, value.dtype, value.dims);
    }
  }

  int32_t input_index(ValueId id) const {
    const auto found = std::ranges::find(lowered_.inputs(), id, [](const LoweredPort &port) { return port.value; });
    return static_cast<int32_t>(found - lowered_.inputs().begin());
  }

  /// The entry's value now; an argument the first time.
  Value &entry_value(Open &open, int32_t entry) {
    const auto found = open.state.find(entry);
    if (found != open.state.end()) return found->second;
    const StateEntry &of = lowered_.state().entries()[static_cast<size_t>(entry)];
    open.state_argument[entry] = open.made.arguments.size();
    return open.state[entry] = argument(open, {Slot::state, entry}, of.dtype, of.dims);
  }

  const StateAccess &access_of(ValueId read) const {
    const graph::NodeId node = lowered_.graph().value(read).producer;
    const auto &steps = lowered_.steps();
    return lowered_.access(static_cast<int32_t>(std::ranges::find(steps, node) - steps.begin()));
  }

  Value read_state(Open &open, ValueId id) {
    const StateAccess &access = access_of(id);
    const StateEntry &entry = lowered_.state().entries()[static_cast<size_t>(access.entry)];
    const Value whole = entry_value(open, access.entry);
    if (!access.flat) return whole;
    const Value flat = open.text.reshape(whole, {entry.storage_elements()});
    const int64_t end = entry.slice_offset + entry.flat_length();
    return open.text.reshape(open.text.slice(flat, {entry.slice_offset}, {end}), lowered_.value(id).dims);
  }

  void write_state(Open &open, const Node &node, int32_t step) {
    const StateAccess &access = lowered_.access(step);
    const StateEntry &entry = lowered_.state().entries()[static_cast<size_t>(access.entry)];
    const Value value = open.run.values[static_cast<size_t>(node.inputs[0])];
    const bool is_whole = !access.flat || entry.flat_length() == entry.storage_elements();
    if (is_whole && !is_add(node)) {
      open.state[access.entry] = open.text.reshape(value, entry.dims);
    } else if (is_whole) {
      Value &old = entry_value(open, access.entry);
      old = open.text.add(old, open.text.reshape(value, entry.dims));
    } else {
      Value &old = entry_value(open, access.entry);
      const Value flat = open.text.reshape(old, {entry.storage_elements()});
      Value part = open.text.reshape(value, {entry.flat_length()});
      if (is_add(node)) {
        const int64_t end = entry.slice_offset + entry.flat_length();
        part = open.text.add(open.text.slice(flat, {entry.slice_offset}, {end}), part);
      }
      const Value begin = open.text.integer(DType::i64, entry.slice_offset);
      old = open.text.reshape(open.text.dynamic_update_slice(flat, part, std::vector{begin}), entry.dims);
    }
    open.written.try_emplace(access.entry, 0);
  }

  void send_external(Open &open, const Node &node) {
    const Value &value = open.run.values[static_cast<size_t>(node.inputs[0])];
    const int32_t external = external_of_[static_cast<size_t>(node.outputs[0])];
    const int64_t elements = lowered_.value(node.inputs[0]).elements;
    if (elements != 0) add_result(open, {Slot::external, external}, open.text.reshape(value, {elements}));
  }

  void finish(Open &open, int32_t segment) {
    for (size_t i = 0; i < lowered_.outputs().size(); ++i) {
      const ValueId id = lowered_.outputs()[i].value;
      if (made_in_[static_cast<size_t>(id)] != segment) continue;
      bring(open, id, segment);
      add_result(open, {Slot::output, static_cast<int32_t>(i)}, open.run.values[static_cast<size_t>(id)]);
    }
    for (auto &[entry, result] : open.written) {
      result = open.results.size();
      add_result(open, {Slot::state, entry}, open.state.at(entry));
      const auto read = open.state_argument.find(entry);
      if (read == open.state_argument.end() || !options_.may_donate) continue;
      open.text.donate(read->second, result);
      open.made.is_donated[read->second] = 1;
    }
    for (size_t id = 0; id < made_in_.size(); ++id) {
      const Value &value = open.run.values[id];
      if (made_in_[id] != segment || last_used_in_[id] <= segment || value.is_absent() || external_of_[id] >= 0)
        continue;
      const graph::NodeId producer = lowered_.graph().value(static_cast<ValueId>(id)).producer;
      if (producer == graph::kNoNode || is_leaf(lowered_.graph().node(producer))) continue;
      carried_at_[id] = program_.carried_count++;
      add_result(open, {Slot::carried, carried_at_[id]}, value);
    }
    if (open.run.fault.name != open.fault_before) {
      has_fault_ = true;
      open.made.checks_data = true;
      add_result(open, {Slot::fault, 0}, open.run.fault);
    }
    open.made.module = open.text.finish(open.results, options_.replicas);
  }

  const LoweredGraph &lowered_;
  const SegmentOptions options_;
  SegmentedProgram program_;
  std::vector<int32_t> made_in_, last_used_in_;    // by value: segment
  std::vector<int32_t> carried_at_, external_of_;  // by value: number, or -1
  bool has_fault_ = false;
};

}  // namespace

Result<SegmentedProgram> SegmentedProgram::emit(const LoweredGraph &lowered, const SegmentOptions &options) {
  return SegmentWriter(lowered, options).write();
}

}  // namespace tutti::impl::backend::pjrt
