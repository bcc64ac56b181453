// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/lower/lowering.h"

#include <algorithm>
#include <cstring>

#include "backend/cpu/dnnl/layouts.h"
#include "backend/cpu/lower/lower.h"
#include "backend/cpu/lower/variable_update.h"
#include "backend/cpu/shapes/attributes.h"
#include "backend/cpu/simd/simd_reduce.h"
#include "backend/memory_plan.h"

namespace tutti::impl::backend::cpu {

using base::Status;
using graph::kNoValue;
using graph::Node;
using graph::ValueId;
using tensor::DType;

namespace {

constexpr int64_t kPlaceAlignment = 64;

bool is_alias_op(const std::string &op) { return op == "identity" || op == "stop_gradient" || op == "reshape"; }

bool is_leaf(const std::string &op) {
  return op == "input" || op == "constant" || op == "state_read" || is_alias_op(op) || op == "all_reduce";
}

bool is_gradient_of_update(const Node &node, ValueId id) {
  return is_update(node.op) && gradient_of(node) == id && node.inputs[0] != id;
}

}  // namespace

Lowering::Lowering(const LoweredGraph &graph)
    : graph_(graph),
      fusion_(FusionPlan::make(graph)),
      images_(ImageLayouts::make(graph, fusion_)),
      views_(AttentionViews::find(graph, sizeof(float),
                                  [&](const Node &node) { return has_attention_kernel(graph, node); })) {
  copies_.resize(graph.values().size());
  write_done_.assign(static_cast<size_t>(graph.step_count()), 0);
  output_done_.assign(graph.outputs().size(), 0);
}

// ---- where values lie ----------------------------------------------------------------------------------------------

BufferId Lowering::add_buffer(Location location, int64_t bytes) {
  list_.buffers.push_back({location, bytes, INT32_MAX, -1, 0});
  return static_cast<BufferId>(list_.buffers.size() - 1);
}

void Lowering::touch(BufferId buffer, bool writes) {
  if (buffer < 0) return;
  const auto known =
      std::find_if(touched_.begin(), touched_.end(), [&](const BufferUse &use) { return use.buffer == buffer; });
  if (known == touched_.end()) {
    touched_.push_back({buffer, writes});
  } else {
    known->writes |= writes;
  }
}

std::string Lowering::layout_of(ValueId id) const {
  const auto &copies = copies_[static_cast<size_t>(id)];
  return copies.empty() ? std::string() : copies[0].layout;
}

void Lowering::set_primary(ValueId id, std::string_view layout, BufferId buffer) {
  auto &copies = copies_[static_cast<size_t>(id)];
  copies.insert(copies.begin(), {std::string(layout), buffer});
  list_.buffers[static_cast<size_t>(buffer)].uses_left += fusion_.use_count(id);
}

void Lowering::alias(ValueId id, ValueId source) {
  const BufferId buffer = read(source);
  // A reordered copy belongs to its value as well: nobody may overwrite it.
  if (buffer != copies_[static_cast<size_t>(source)][0].buffer) ++list_.buffers[static_cast<size_t>(buffer)].uses_left;
  set_primary(id, "", buffer);
  touched_.clear();
}

BufferId Lowering::read(ValueId id, std::string_view layout) {
  if (id == kNoValue) return -1;
  auto &copies = copies_[static_cast<size_t>(id)];
  for (const Copy &copy : copies) {
    if (copy.layout == layout) {
      touch(copy.buffer, false);
      return copy.buffer;
    }
  }
  const Copy from = copies[0];
  if (is_same_memory(value(id), from.layout, layout)) {
    copies.push_back({std::string(layout), from.buffer});
    touch(from.buffer, false);
    return from.buffer;
  }
  const int64_t bytes = storage_bytes(value(id), layout);
  const BufferId to = add_buffer({Place::workspace, 0, 0}, bytes);
  std::vector<BufferUse> pending;
  pending.swap(touched_);
  reorder(id, from.buffer, from.layout, to, layout);
  touched_.swap(pending);
  copies_[static_cast<size_t>(id)].push_back({std::string(layout), to});
  touch(to, false);
  return to;
}

BufferId Lowering::overwritable(std::span<const ValueId> candidates, std::string_view layout, int64_t bytes) const {
  for (ValueId id : candidates) {
    if (id == kNoValue || copies_[static_cast<size_t>(id)].empty()) continue;
    const Copy &copy = copies_[static_cast<size_t>(id)][0];
    const BufferInfo &buffer = list_.buffers[static_cast<size_t>(copy.buffer)];
    if (copy.layout != layout || buffer.location.place != Place::workspace || buffer.bytes < bytes) continue;
    int32_t uses_now = 0;
    for (int32_t step : group_steps_) {
      for (ValueId input : graph_.step(step).inputs) {
        if (input == kNoValue || copies_[static_cast<size_t>(input)].empty()) continue;
        uses_now += copies_[static_cast<size_t>(input)][0].buffer == copy.buffer ? 1 : 0;
      }
    }
    if (buffer.uses_left == uses_now) return copy.buffer;
  }
  return -1;
}

BufferId Lowering::write(ValueId id, std::string_view layout, std::span<const ValueId> overwrite, bool elementwise,
                         int64_t bytes) {
  if (bytes < 0) bytes = storage_bytes(value(id), layout);
  BufferId buffer = -1;
  const auto found = pins_.find(id);
  if (found != pins_.end()) {
    for (const Pin &pin : found->second) {
      if (pin.layout != layout || pin.bytes < bytes || overlaps_later_reads(pin, id, elementwise)) continue;
      buffer = add_buffer(pin.location, bytes);
      if (pin.step >= 0) write_done_[static_cast<size_t>(pin.step)] = 1;
      if (pin.step < 0) output_done_[static_cast<size_t>(pin.location.index)] = 1;
      break;
    }
  }
  if (buffer < 0) buffer = overwritable(overwrite, layout, bytes);
  if (buffer < 0) buffer = add_buffer({Place::workspace, 0, 0}, bytes);
  set_primary(id, layout, buffer);
  if (!layout.empty()) written_layout_ = layout;
  touch(buffer);
  return buffer;
}

BufferId Lowering::write_again(ValueId id, std::string_view layout) {
  auto &copies = copies_[static_cast<size_t>(id)];
  const int32_t uses_left = list_.buffers[static_cast<size_t>(copies[0].buffer)].uses_left;
  const BufferId buffer = add_buffer({Place::workspace, 0, 0}, storage_bytes(value(id), layout));
  list_.buffers[static_cast<size_t>(buffer)].uses_left = uses_left;
  copies.assign(1, {std::string(layout), buffer});
  if (!layout.empty()) written_layout_ = layout;
  touch(buffer);
  return buffer;
}

void Lowering::prefer(ValueId id, std::string_view layout) {
  const BufferId buffer = read(id, layout);
  touched_.clear();
  auto &copies = copies_[static_cast<size_t>(id)];
  if (copies[0].layout == layout) return;
  const auto found = std::find_if(copies.begin(), copies.end(), [&](const Copy &c) { return c.layout == layout; });
  if (buffer != copies[0].buffer) list_.buffers[static_cast<size_t>(buffer)].uses_left += fusion_.use_count(id);
  std::rotate(copies.begin(), found, found + 1);
}

BufferId Lowering::scratch(int64_t bytes) {
  const BufferId buffer = add_buffer({Place::workspace, 0, 0}, std::max<int64_t>(bytes, 1));
  touch(buffer);
  return buffer;
}

BufferId Lowering::repeat(ValueId id, int64_t bytes, std::function<void(const void *from, void *to)> make) {
  std::vector<BufferUse> pending;
  pending.swap(touched_);
  const BufferId from = read(id);
  const BufferId to = scratch(bytes);
  emit("broadcast", [=, make = std::move(make)](const RunContext &c) { make(c.buffers[from], c.buffers[to]); });
  touched_.swap(pending);
  touch(to, false);
  return to;
}

Call Lowering::new_call(std::string_view kernel_name) {
  const Node &node = graph_.step(step_);
  Call call;
  call.node = node.scope_name;
  call.op = node.op;
  call.kernel_name = kernel_name;
  call.layout = std::exchange(written_layout_, {});
  call.uses = std::exchange(touched_, {});
  return call;
}

void Lowering::emit_kernel(std::string_view kernel_name, std::unique_ptr<Kernel> kernel) {
  list_.append(new_call(kernel_name), std::move(kernel));
}

std::optional<Parts> Lowering::image_parts(int64_t rows, int64_t elements) const {
  // Half of a usual second-level cache.
  constexpr int64_t kElements = 128 << 10;
  // Enough for several threads to have something to do; fewer are in a cache anyway.
  constexpr int64_t kFewest = 8;
  const bool everything = cut_everything.load(std::memory_order_relaxed);
  const int64_t images = everything ? 1 : std::max<int64_t>(1, kElements / std::max<int64_t>(elements, 1));
  const int64_t count = std::min<int64_t>((rows + images - 1) / images, Team::kMostParts);
  if (count < (everything ? 2 : kFewest)) return std::nullopt;
  return Parts::exactly(rows, static_cast<int32_t>(count), threads());
}

bool Lowering::is_in_chain(ValueId image) const {
  return has_place(image) && chain_uses(copies_[static_cast<size_t>(image)][0].buffer);
}

bool Lowering::chain_uses(BufferId buffer) const {
  const Call *chain = list_.open_chain();
  if (chain == nullptr) return false;
  return std::any_of(chain->uses.begin(), chain->uses.end(),
                     [&](const BufferUse &use) { return use.buffer == buffer && use.image_bytes > 0; });
}

void Lowering::emit_stage(std::string_view kernel_name, std::span<const ImageUse> images,
                          std::unique_ptr<ImageStage> stage) {
  Call call = new_call(kernel_name);
  for (BufferUse &use : call.uses) {
    for (const ImageUse &image : images)
      if (image.buffer == use.buffer) use.image_bytes = image.bytes;
  }
  list_.append_stage(std::move(call), std::move(stage));
}

void Lowering::copy(BufferId from, BufferId to, int64_t bytes, std::string_view kernel_name) {
  touch(from, false);
  touch(to);
  emit_ranges(kernel_name, bytes, kPartElements * static_cast<int64_t>(sizeof(float)),
              [=](const RunContext &c, Range r) {
                if (r.size() == 0) return;
                std::memcpy(static_cast<char *>(c.buffers[to]) + r.begin,
                            static_cast<const char *>(c.buffers[from]) + r.begin, static_cast<size_t>(r.size()));
              });
}

bool Lowering::reorder_in_chain(const LoweredValue &image, BufferId from, std::string_view from_layout, BufferId to,
                                std::string_view to_layout) {
  const bool to_blocks = to_layout == kBlocked16;
  if ((!to_blocks && from_layout != kBlocked16) || !chain_uses(from)) return false;
  const int64_t rows = image.dims[0], elements = image.elements / rows, channels = image.dims[3];
  const int64_t bytes = elements * static_cast<int64_t>(sizeof(float));
  const auto nothing = [](const RunContext &) {};
  emit_stage(
      base::concat("reorder:", from_layout, "->", to_layout), open_chain_parts(), {{from, bytes}, {to, bytes}}, nothing,
      [=](const RunContext &c, Range images, int32_t) {
        const int64_t at = images.begin * elements;
        (to_blocks ? to_blocked : from_blocked)(images.size(), elements / channels, channels, c.in(from) + at,
                                                c.out(to) + at);
      },
      nothing);
  return true;
}

void Lowering::reorder(ValueId id, BufferId from, std::string_view from_layout, BufferId to,
                       std::string_view to_layout) {
  ++list_.reorders;
  std::string pending = std::exchange(written_layout_, std::string(to_layout));
  touch(from, false);
  touch(to);
  if (reorder_in_chain(value(id), from, from_layout, to, to_layout)) {
    written_layout_ = std::move(pending);
    return;
  }
  auto kernel = make_reorder(value(id), from_layout, to_layout, from, to, threads());
  if (!kernel.ok()) {
    if (status_.ok()) status_ = kernel.status().wrap(describe(graph_.step(step_)));
    return;
  }
  emit_kernel(base::concat("reorder:", from_layout, "->", to_layout), std::move(kernel).value());
  written_layout_ = std::move(pending);
}

const StateEntry *Lowering::entry_of(ValueId id) const {
  const int32_t producer = fusion_.producer(id);
  int32_t step = producer >= 0 && graph_.step(producer).op == "state_read" ? producer : -1;
  for (int32_t use : fusion_.uses(id)) {
    if (step < 0 && graph_.step(use).op == "state_write") step = use;
    if (step < 0 && is_gradient_of_update(graph_.step(use), id)) return entry_of(graph_.step(use).inputs[0]);
  }
  if (step < 0 || graph_.access(step).flat) return nullptr;
  return &graph_.state().entries()[static_cast<size_t>(graph_.access(step).entry)];
}

// ---- pins: values computed where they are wanted ----

/// Is a value read, under any name, at the turn of `step` or later? Results are read at the end.
bool Lowering::is_read_from(ValueId id, int32_t step) const {
  if (fusion_.is_result(id)) return true;
  return std::ranges::any_of(fusion_.uses(id), [&](int32_t use) {
    return is_alias_op(graph_.step(use).op) ? is_read_from(graph_.step(use).outputs[0], step)
                                            : fusion_.position(use) >= step;
  });
}

/// Behind an external that moves nothing the host may change what was written before it.
bool Lowering::is_read_behind_mark(ValueId id, int32_t written) const {
  for (int32_t step = written + 1; step < graph_.step_count(); ++step) {
    const Node &node = graph_.step(step);
    if (node.op == "all_reduce" && value(node.outputs[0]).elements == 0) return is_read_from(id, step);
  }
  return false;
}

void Lowering::plan_pin(ValueId id, Pin pin) {
  // Through aliases to the value that a kernel computes.
  for (int32_t step = fusion_.producer(id); step >= 0; step = fusion_.producer(id)) {
    if (!is_alias_op(graph_.step(step).op)) break;
    if (!pin.layout.empty()) return;
    id = graph_.step(step).inputs[0];
  }
  const int32_t producer = fusion_.producer(id);
  if (producer < 0 || is_leaf(graph_.step(producer).op)) return;
  if (pin.step >= 0 && is_read_behind_mark(id, pin.step)) return;
  for (int32_t use : fusion_.uses(id)) {
    // External nodes work in the workspace.
    if (graph_.step(use).op == "all_reduce") return;
  }
  pins_[id].push_back(std::move(pin));
}

void Lowering::plan_pins() {
  std::map<int32_t, int32_t> writes;  // by entry
  for (int32_t step = 0; step < graph_.step_count(); ++step) {
    const Node &node = graph_.step(step);
    if (node.op == "state_write") ++writes[graph_.access(step).entry];
    if (node.op == "state_read" && fusion_.group_of(step) != nullptr) entry_reads_.push_back(node.outputs[0]);
  }
  for (int32_t step = 0; step < graph_.step_count(); ++step) {
    const Node &node = graph_.step(step);
    if (node.op != "state_write" || text(node, "mode") != "write") continue;
    const StateAccess &access = graph_.access(step);
    if (writes[access.entry] > 1) continue;
    const StateEntry &entry = graph_.state().entries()[static_cast<size_t>(access.entry)];
    plan_pin(node.inputs[0],
             {{Place::arena, access.arena, access.offset}, access.flat ? "" : entry.layout, step, access.bytes});
  }
  for (size_t i = 0; i < graph_.outputs().size(); ++i) {
    const ValueId id = graph_.outputs()[i].value;
    plan_pin(id, {{Place::output, static_cast<int32_t>(i), 0}, "", -1, value(id).bytes});
  }
}

bool Lowering::overlaps_later_reads(const Pin &pin, ValueId id, bool elementwise) const {
  if (pin.location.place != Place::arena) return false;
  const int32_t position = fusion_.position(fusion_.producer(id));
  for (ValueId other : entry_reads_) {
    const StateAccess &access = graph_.access(fusion_.producer(other));
    const bool apart = access.arena != pin.location.index || access.offset >= pin.location.offset + pin.bytes ||
                       pin.location.offset >= access.offset + access.bytes;
    if (apart) continue;
    const bool same = access.offset == pin.location.offset && access.bytes == pin.bytes;
    // A value that is the entry itself under another name would change with it.
    for (int32_t use : fusion_.uses(other)) {
      if (is_alias_op(graph_.step(use).op) || fusion_.position(use) > position) return true;
      if (fusion_.position(use) == position && !(elementwise && same)) return true;
    }
    if (fusion_.is_result(other)) return true;
  }
  return false;
}

// ---- nodes ----

void Lowering::lower_leaf(int32_t step) {
  const Node &node = graph_.step(step);
  const ValueId y = node.outputs[0];
  if (node.op == "input") {
    int32_t index = 0;
    while (graph_.inputs()[static_cast<size_t>(index)].value != y)
      ++index;
    return set_primary(y, "", add_buffer({Place::input, index, 0}, value(y).bytes));
  }
  if (node.op == "constant") {
    return set_primary(y, "",
                       add_buffer({Place::constant, graph_.steps()[static_cast<size_t>(step)], 0}, value(y).bytes));
  }
  const StateAccess &access = graph_.access(step);
  const StateEntry &entry = graph_.state().entries()[static_cast<size_t>(access.entry)];
  set_primary(y, access.flat ? std::string_view() : std::string_view(entry.layout),
              add_buffer({Place::arena, access.arena, access.offset}, access.bytes));
}

void Lowering::lower_state_write(int32_t step) {
  if (write_done_[static_cast<size_t>(step)]) return;
  const Node &node = graph_.step(step);
  const StateAccess &access = graph_.access(step);
  const StateEntry &entry = graph_.state().entries()[static_cast<size_t>(access.entry)];
  const ValueId x = node.inputs[0];
  const std::string layout = access.flat ? "" : entry.layout;
  const int64_t bytes = layout.empty() ? value(x).bytes : access.bytes;
  const BufferId from = read(x, layout);
  const BufferId to = add_buffer({Place::arena, access.arena, access.offset}, bytes);
  if (text(node, "mode") == "write") {
    touched_.clear();
    return copy(from, to, bytes, "copy");
  }
  touch(to);
  if (value(x).dtype == DType::f32) {
    const int64_t n = bytes / static_cast<int64_t>(sizeof(float));
    return emit_ranges("add_to", n, kPartElements, [=](const RunContext &c, Range r) {
      add_to(c.in(from) + r.begin, c.out(to) + r.begin, r.size());
    });
  }
  emit("add_to",
       make_plain_add(value(x).dtype, bytes / static_cast<int64_t>(tensor::size_bytes(value(x).dtype)), from, to));
}

void Lowering::lower_all_reduce(int32_t step) {
  const Node &node = graph_.step(step);
  const ValueId x = node.inputs[0];
  const ValueId y = node.outputs[0];
  const std::string layout = layout_of(x);
  BufferId buffer = read(x, layout);
  const BufferInfo info = list_.buffers[static_cast<size_t>(buffer)];
  const int64_t bytes = storage_bytes(value(x), layout);
  touched_.clear();
  if (info.location.place != Place::workspace || info.uses_left > 1) {
    const BufferId own = add_buffer({Place::workspace, 0, 0}, bytes);
    copy(buffer, own, bytes, "copy");
    buffer = own;
  }
  set_primary(y, layout, buffer);
  touch(buffer);
  list_.external_calls.push_back(static_cast<int32_t>(list_.calls.size()));
  ExternalDescription external;
  external.kind = base::concat("all_reduce_", text(node, "kind"));
  external.label = text(node, "label");
  external.offset = buffer;  // replaced when the workspace is planned
  external.dtype = value(x).dtype;
  external.elements = bytes / static_cast<int64_t>(tensor::size_bytes(external.dtype));
  list_.externals.push_back(external);
  emit_kernel("external", nullptr);
}

Status Lowering::lower_step(int32_t step) {
  const Group &group = *fusion_.group_of(step);
  if (group.emit_at != step) return Status();
  step_ = step;
  group_steps_ = group.steps;
  const Node &node = graph_.step(step);
  if (group.kind == GroupKind::single && node.op == "all_reduce") {
    lower_all_reduce(step);
  } else if (group.kind == GroupKind::single && node.op == "state_write") {
    lower_state_write(step);
  } else if (group.kind == GroupKind::single && is_alias_op(node.op)) {
    alias(node.outputs[0], node.inputs[0]);
    keep_state_results(node.outputs[0]);
  } else if (group.kind == GroupKind::single && is_leaf(node.op)) {
    lower_leaf(step);
    keep_state_results(node.outputs[0]);
  } else {
    TUTTI_TRY(lower_group(*this, group));
  }
  finish_uses(group.steps);
  return status_;
}

void Lowering::finish_uses(const std::vector<int32_t> &steps) {
  for (int32_t step : steps) {
    for (ValueId input : graph_.step(step).inputs) {
      if (input == kNoValue || copies_[static_cast<size_t>(input)].empty()) continue;
      --list_.buffers[static_cast<size_t>(copies_[static_cast<size_t>(input)][0].buffer)].uses_left;
    }
  }
}

void Lowering::copy_to_output(size_t index) {
  if (output_done_[index]) return;
  const ValueId id = graph_.outputs()[index].value;
  const BufferId from = read(id);
  touched_.clear();
  copy(from, add_buffer({Place::output, static_cast<int32_t>(index), 0}, value(id).bytes), value(id).bytes, "copy");
  output_done_[index] = 1;
}

/// Results that are state as it was read are kept before anybody writes it.
void Lowering::keep_state_results(ValueId id) {
  const BufferId buffer = copies_[static_cast<size_t>(id)][0].buffer;
  if (list_.buffers[static_cast<size_t>(buffer)].location.place != Place::arena) return;
  for (size_t i = 0; i < graph_.outputs().size(); ++i) {
    if (graph_.outputs()[i].value == id) copy_to_output(i);
  }
}

void Lowering::plan_workspace() {
  list_.finish();
  std::vector<MemoryBlock> blocks;
  std::vector<BufferId> ids;
  for (size_t i = 0; i < list_.buffers.size(); ++i) {
    const BufferInfo &buffer = list_.buffers[i];
    if (buffer.location.place != Place::workspace || buffer.last < 0) continue;
    blocks.push_back({buffer.bytes, buffer.first, buffer.last});
    ids.push_back(static_cast<BufferId>(i));
  }
  const MemoryPlan plan = plan_memory(blocks, kPlaceAlignment);
  for (size_t i = 0; i < ids.size(); ++i)
    list_.buffers[static_cast<size_t>(ids[i])].location.offset = plan.offsets[i];
  list_.workspace_bytes = plan.bytes;
  list_.workspace_lower_bound = plan.lower_bound_bytes;
  for (ExternalDescription &external : list_.externals) {
    external.offset = list_.buffers[static_cast<size_t>(external.offset)].location.offset;
  }
}

base::Result<CallList> Lowering::run() {
  plan_pins();
  for (int32_t step = 0; step < graph_.step_count(); ++step) {
    if (fusion_.group_of(step) != nullptr) TUTTI_TRY(lower_step(step));
  }
  for (size_t i = 0; i < graph_.outputs().size(); ++i)
    copy_to_output(i);
  TUTTI_TRY(status_);
  plan_workspace();
  return std::move(list_);
}

}  // namespace tutti::impl::backend::cpu
