// SPDX-License-Identifier: Apache-2.0
#include "distribute/train/contributors.h"

#include <algorithm>
#include <array>

#include "distribute/train/step_reports.h"
#include "distribute/weights/weight_store.h"

namespace tutti::impl::distribute {

using base::Result;
using base::Status;

Status Contributors::open(ExecutableCache &executables, const ArenaPointers &arenas, int32_t parts,
                          size_t cache_capacity, int32_t steps_in_flight) {
  steps_in_flight_ = steps_in_flight;
  contributors_.reserve(static_cast<size_t>(parts));
  for (int32_t p = 0; p < parts; ++p)
    TUTTI_TRY(add(executables, arenas, cache_capacity));
  return Status();
}

Status Contributors::add(ExecutableCache &executables, ArenaPointers arenas, size_t cache_capacity) {
  const TrainProgramSet &programs = rank_.programs();
  Contributor contributor;
  contributor.arguments.resize(static_cast<size_t>(steps_in_flight_ * programs.accumulation));
  if (programs.keeps_outputs || !programs.showing.empty())
    contributor.outputs = std::make_unique<KeptOutputs>(programs.accumulation);
  TUTTI_TRY(allocate(contributor, arenas));
  if (workspaces_.empty() || programs.parts_alternate)
    workspaces_.push_back(std::make_unique<Workspace>(rank_.device(), rank_.stream()));
  const auto make_cache = [&](size_t capacity) {
    auto cache = std::make_unique<ProgramCache>(executables, rank_.device(), *workspaces_.back(), capacity);
    cache->set_arenas(arenas);
    return cache;
  };
  contributor.accumulate_programs = make_cache(cache_capacity);
  contributor.finish_programs = make_cache(programs.factors.empty() ? 1 : cache_capacity);
  contributors_.push_back(std::move(contributor));
  return Status();
}

Status Contributors::allocate(Contributor &contributor, ArenaPointers &arenas) {
  const StatePlan &plan = rank_.plan();
  backend::Device &device = *rank_.device();
  const int64_t bytes_of_partials = std::max<int64_t>(plan.arena_bytes(Arena::partials), 64);
  TUTTI_ASSIGN(contributor.partials, rank_.programs().contributors > 1 ? device.allocate_shared(bytes_of_partials)
                                                                       : device.allocate(bytes_of_partials));
  TUTTI_TRY(contributor.partials.fill_zero(0, bytes_of_partials));
  TUTTI_ASSIGN(contributor.report, allocate_zeros(device, plan.arena_bytes(Arena::report)));
  if (const int64_t bytes = plan.arena_bytes(Arena::accumulated); bytes > 0) {
    TUTTI_ASSIGN(contributor.accumulated, allocate_zeros(device, bytes));
    arenas[static_cast<size_t>(Arena::accumulated)] = contributor.accumulated.device_pointer();
  }
  arenas[static_cast<size_t>(Arena::partials)] = contributor.partials.device_pointer();
  arenas[static_cast<size_t>(Arena::report)] = contributor.report.device_pointer();
  return Status();
}

std::vector<void *> Contributors::partials() const {
  std::vector<void *> pointers;
  for (const Contributor &contributor : contributors_)
    pointers.push_back(contributor.partials.device_pointer());
  return pointers;
}

void Contributors::see_partials(std::span<void *const> partials) {
  for (Contributor &contributor : contributors_) {
    ArenaPointers arenas = contributor.finish_programs->arenas();
    std::copy(partials.begin(), partials.end(), arenas.begin() + arena_count);
    contributor.finish_programs->set_arenas(arenas);
  }
}

void Contributors::join_group() {
  int32_t index = rank_.group().rank() * rank_.group().parts();
  for (Contributor &contributor : contributors_)
    contributor.index = index++;
}

void Contributors::forget_programs() {
  for (Contributor &contributor : contributors_) {
    contributor.accumulate_programs->forget();
    contributor.binding = -1;
  }
}

void Contributors::register_partials() {
  const int64_t bytes = rank_.plan().arena_bytes(Arena::partials);
  if (rank_.device_stream() == nullptr || bytes == 0) return;
  for (const Contributor &contributor : contributors_)
    rank_.group().register_memory(contributor.partials.device_pointer(), bytes);
}

void Contributors::set_seed(int64_t seed) {
  for (Contributor &contributor : contributors_) {
    for (Contributor::Arguments &arguments : contributor.arguments)
      arguments.scalars.set(backend::RunScalar::seed, seed);
  }
}

void Contributors::set_traced(bool traced) {
  for (Contributor &contributor : contributors_) {
    contributor.accumulate_programs->set_traced(traced);
    contributor.finish_programs->set_traced(traced);
    contributor.finish = nullptr;
  }
}

int64_t Contributors::programs_built() const {
  int64_t built = 0;
  for (const Contributor &contributor : contributors_)
    built += contributor.accumulate_programs->built() + contributor.finish_programs->built();
  return built;
}

Status Contributors::write_loss_scale(int64_t scale) {
  if (scale_entry_ == nullptr || scale == written_scale_) return Status();
  const auto value = static_cast<float>(scale);
  for (Contributor &contributor : contributors_)
    TUTTI_TRY(contributor.report.write(scale_entry_->offset, &value, sizeof(value)));
  written_scale_ = scale;
  return Status();
}

Status Contributors::clear_accumulated() {
  for (Contributor &contributor : contributors_)
    TUTTI_TRY(contributor.accumulated.fill_zero(0, contributor.accumulated.size_bytes(), &rank_.stream()));
  return Status();
}

Result<double> Contributors::report_value(const backend::StateEntry &entry) const {
  std::array<std::byte, 8> bytes{};
  TUTTI_TRY(contributors_.front().report.read(entry.offset, bytes.data(), entry.storage_bytes));
  return number_at(bytes.data(), entry.dtype);
}

Result<tensor::Tensor> Contributors::report_tensor(const backend::StateEntry &entry) const {
  return read_entry(contributors_.front().report, entry);
}

Status Contributors::read_partials(int32_t part, int64_t offset, int64_t bytes, void *destination) const {
  return contributors_[static_cast<size_t>(part)].partials.read(offset, destination, bytes);
}

std::vector<const KeptOutputs *> Contributors::kept_outputs() const {
  std::vector<const KeptOutputs *> outputs;
  for (const Contributor &contributor : contributors_)
    outputs.push_back(contributor.outputs.get());
  return outputs;
}

}  // namespace tutti::impl::distribute
