// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/kernel/image_stage.h"

#include <algorithm>

namespace tutti::impl::backend::cpu {

using base::Result;

namespace {

class ChainState final : public KernelState {
 public:
  std::vector<std::unique_ptr<KernelState>> stages;
  std::vector<std::vector<void *>> buffers;  ///< by thread: the program's, but for local ones
};

}  // namespace

Parts groups_of(const Parts &parts) {
  const int32_t threads = parts.threads();
  const int32_t most = threads == 1 ? 1 : threads * Parts::kPartsPerThread;
  return Parts::exactly(parts.count(), std::min(parts.count(), most), threads);
}

int32_t ImageStage::run(const RunContext &context, KernelState *state) const {
  begin(context, state);
  context.for_each(groups_.count(), [&](int32_t group, int32_t thread) {
    const Range range = groups_[group];
    for (int64_t part = range.begin; part < range.end; ++part)
      run_part(context, state, {static_cast<int32_t>(part), thread, group, part == range.begin});
  });
  return end(context, state);
}

int64_t ImageChain::slot_bytes(int64_t image_bytes) const {
  constexpr int64_t kLine = 64;
  const int64_t images = (parts_.items() + parts_.count() - 1) / parts_.count();
  return (images * image_bytes + kLine - 1) / kLine * kLine;
}

Result<std::unique_ptr<KernelState>> ImageChain::make_state() const {
  auto state = std::make_unique<ChainState>();
  for (const auto &stage : stages_) {
    TUTTI_ASSIGN(state->stages.emplace_back(), stage->make_state());
  }
  if (!locals_.empty()) {
    state->buffers.resize(static_cast<size_t>(parts_.threads()));
    for (std::vector<void *> &buffers : state->buffers)
      buffers.resize(buffer_count_);
  }
  return std::unique_ptr<KernelState>(std::move(state));
}

void ImageChain::place_locals(const RunContext &context, const ImagePart &part, void **buffers) const {
  const int64_t first = parts_[part.part].begin;
  for (const Local &local : locals_) {
    char *own = static_cast<char *>(context.buffers[local.buffer]) + part.thread * slot_bytes(local.image_bytes);
    buffers[local.buffer] = own - first * local.image_bytes;
  }
}

void ImageChain::run_group(const RunContext &context, KernelState *chain_state, int32_t group, int32_t thread) const {
  auto &state = static_cast<ChainState &>(*chain_state);
  RunContext own = context;
  void **buffers = nullptr;
  if (!locals_.empty()) {
    buffers = state.buffers[static_cast<size_t>(thread)].data();
    std::copy_n(context.buffers, buffer_count_, buffers);
    own.buffers = buffers;
  }
  const Range range = groups_[group];
  for (int64_t number = range.begin; number < range.end; ++number) {
    const ImagePart part{static_cast<int32_t>(number), thread, group, number == range.begin};
    if (buffers != nullptr) place_locals(context, part, buffers);
    for (size_t i = 0; i < stages_.size(); ++i)
      stages_[i]->run_part(own, state.stages[i].get(), part);
  }
}

int32_t ImageChain::run(const RunContext &context, KernelState *chain_state) const {
  const auto &states = static_cast<const ChainState &>(*chain_state).stages;
  for (size_t i = 0; i < stages_.size(); ++i)
    stages_[i]->begin(context, states[i].get());
  context.for_each(groups_.count(),
                   [&](int32_t group, int32_t thread) { run_group(context, chain_state, group, thread); });
  for (size_t i = 0; i < stages_.size(); ++i) {
    const int32_t code = stages_[i]->end(context, states[i].get());
    if (code != 0) return code;
  }
  return 0;
}

}  // namespace tutti::impl::backend::cpu
