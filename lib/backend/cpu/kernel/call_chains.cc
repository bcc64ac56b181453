// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/kernel/call_chains.h"

#include <algorithm>
#include <utility>

namespace tutti::impl::backend::cpu {

namespace {

/// Calls between a chain and a stage that are looked at.
constexpr int32_t kMostBetween = 64;

bool is_convolution(const std::string &op) { return op.starts_with("conv2d"); }

/// A chain goes by the name of its first convolution, where most of its time goes; all its nodes stand behind that.
void add_names(Call &chain, const Call &stage) {
  if (chain.stages.empty()) chain.stages = chain.main_stage = chain.node;
  if (is_convolution(stage.op) && !is_convolution(chain.op)) {
    chain.main_stage = stage.node;
    chain.op = stage.op;
  }
  chain.stages += " > " + stage.node;
  chain.node = chain.main_stage + " (" + chain.stages + ")";
  chain.kernel_name += " > " + stage.kernel_name;
}

}  // namespace

bool CallList::overlap(BufferId a, BufferId b) const {
  if (a == b) return true;
  const BufferInfo &one = buffers[static_cast<size_t>(a)], &other = buffers[static_cast<size_t>(b)];
  // In the workspace buffers have no places yet: it is planned by when they are used.
  if (one.location.place != other.location.place || one.location.place == Place::workspace) return false;
  return one.location.index == other.location.index && one.location.offset < other.location.offset + other.bytes &&
         other.location.offset < one.location.offset + one.bytes;
}

bool CallList::collide(const std::vector<BufferUse> &a, const std::vector<BufferUse> &b) const {
  for (const BufferUse &one : a) {
    for (const BufferUse &other : b) {
      if ((one.writes || other.writes) && overlap(one.buffer, other.buffer)) return true;
    }
  }
  return false;
}

bool CallList::may_join(const std::vector<BufferUse> &chain, const std::vector<BufferUse> &stage) const {
  for (const BufferUse &one : chain) {
    for (const BufferUse &other : stage) {
      if (!(one.writes || other.writes) || !overlap(one.buffer, other.buffer)) continue;
      const bool same_images = one.buffer == other.buffer && one.image_bytes == other.image_bytes;
      if (!same_images || one.image_bytes == 0) return false;
    }
  }
  return true;
}

int32_t CallList::place_to_join(const Call &stage, const Parts &parts) const {
  const Call *chain = open_chain();
  if (chain == nullptr || chain->chain->parts() != parts || !may_join(chain->uses, stage.uses)) return -1;
  const auto end = static_cast<int32_t>(calls.size());
  if (end - last_chain > kMostBetween) return -1;
  bool may_rise = true, may_sink = true;
  for (int32_t i = last_chain + 1; i < end; ++i) {
    const Call &between = calls[static_cast<size_t>(i)];
    if (between.kernel == nullptr) return -1;
    may_rise = may_rise && !collide(between.uses, stage.uses);
    may_sink = may_sink && !collide(between.uses, chain->uses);
  }
  return may_rise ? last_chain : may_sink ? end - 1 : -1;
}

void CallList::append(Call call, std::unique_ptr<Kernel> kernel) {
  for (const BufferUse &use : call.uses)
    call.bytes += buffers[static_cast<size_t>(use.buffer)].bytes;
  call.kernel = std::move(kernel);
  calls.push_back(std::move(call));
}

void CallList::append_stage(Call call, std::unique_ptr<ImageStage> stage) {
  const Parts parts = stage->parts();
  const int32_t place = place_to_join(call, parts);
  if (place < 0) {
    auto chain = std::make_unique<ImageChain>(parts);
    chain->add(std::move(stage));
    call.chain = chain.get();
    last_chain = static_cast<int32_t>(calls.size());
    return append(std::move(call), std::move(chain));
  }
  std::rotate(calls.begin() + last_chain, calls.begin() + last_chain + 1, calls.begin() + place + 1);
  last_chain = place;
  Call &chain = calls[static_cast<size_t>(place)];
  chain.chain->add(std::move(stage));
  add_names(chain, call);
  if (!call.layout.empty()) chain.layout = std::move(call.layout);
  for (const BufferUse &use : call.uses) {
    const auto known = std::find_if(chain.uses.begin(), chain.uses.end(),
                                    [&](const BufferUse &other) { return other.buffer == use.buffer; });
    if (known == chain.uses.end()) {
      chain.uses.push_back(use);
      chain.bytes += buffers[static_cast<size_t>(use.buffer)].bytes;
      continue;
    }
    known->writes |= use.writes;
    // Both read it, else it had not joined: one of them perhaps as a whole.
    if (known->image_bytes != use.image_bytes) known->image_bytes = 0;
  }
}

void CallList::finish() {
  for (int32_t i = 0; i < static_cast<int32_t>(calls.size()); ++i) {
    for (const BufferUse &use : calls[static_cast<size_t>(i)].uses) {
      BufferInfo &buffer = buffers[static_cast<size_t>(use.buffer)];
      buffer.first = std::min(buffer.first, i);
      buffer.last = std::max(buffer.last, i);
    }
  }
  find_locals();
}

void CallList::find_locals() {
  for (Call &call : calls) {
    if (call.chain == nullptr) continue;
    std::vector<ImageChain::Local> locals;
    for (const BufferUse &use : call.uses) {
      BufferInfo &buffer = buffers[static_cast<size_t>(use.buffer)];
      const bool local = buffer.location.place == Place::workspace && buffer.first == buffer.last;
      if (!local || use.image_bytes == 0) continue;
      locals.push_back({use.buffer, use.image_bytes});
      call.bytes -= buffer.bytes;
      buffer.bytes = call.chain->local_bytes(use.image_bytes);
      call.bytes += buffer.bytes;
    }
    call.chain->set_locals(std::move(locals), buffers.size());
  }
}

}  // namespace tutti::impl::backend::cpu
