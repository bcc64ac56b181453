// SPDX-License-Identifier: Apache-2.0
#include "distribute/train/storage_update.h"

#include <algorithm>

#include "distribute/weights/weight_store.h"

namespace tutti::impl::distribute {

using backend::Buffer;
using base::Result;
using base::Status;

// What was issued may still use the memory.
StorageUpdate::~StorageUpdate() {
  if (stream_.handle() != nullptr) (void)stream_.synchronize();
}

Result<std::unique_ptr<StorageUpdate>> StorageUpdate::open(const TrainProgramSet &programs, const StatePlan &plan,
                                                           ExecutableCache &executables,
                                                           const backend::DeviceRef &device,
                                                           const ArenaPointers &arenas, const Buffer &stored,
                                                           Buffer &computed_with) {
  std::unique_ptr<StorageUpdate> update(new StorageUpdate(programs, plan, stored, computed_with));
  TUTTI_ASSIGN(update->stream_, device->create_stream());
  TUTTI_ASSIGN(update->partials_, allocate_zeros(*device, plan.arena_bytes(Arena::partials)));
  TUTTI_ASSIGN(update->report_, allocate_zeros(*device, plan.arena_bytes(Arena::report)));
  TUTTI_TRY(update->bind(executables, device, arenas));
  return update;
}

Status StorageUpdate::bind(ExecutableCache &executables, const backend::DeviceRef &device, ArenaPointers arenas) {
  arenas[static_cast<size_t>(Arena::partials)] = partials_.device_pointer();
  arenas[static_cast<size_t>(Arena::report)] = report_.device_pointer();
  workspace_ = std::make_unique<Workspace>(device, stream_);
  cache_ = std::make_unique<ProgramCache>(executables, device, *workspace_, 1);
  cache_->set_arenas(arenas);
  const GraphSource *const source = &programs_.finish.front();
  return cache_->prepare({&source, 1}, programs_.finish_keys.front(), [&] { return programs_.finish_bindings.front(); },
                         {&program_, 1});
}

Status StorageUpdate::run(const Contributor &sums, backend::Stream &of_sums, const backend::RunScalars &scalars,
                          int64_t loss_scale) {
  TUTTI_TRY(of_sums.synchronize());
  TUTTI_TRY(copy(sums.partials, partials_, 0, plan_.arena_bytes(Arena::partials)));
  TUTTI_TRY(write_loss_scale(loss_scale));
  for (int32_t segment = 0; segment < program_->description().segment_count(); ++segment)
    TUTTI_TRY(program_->program.run(segment, {nullptr, nullptr, scalars.data()}, stream_));
  return Status();
}

Status StorageUpdate::hand_over(Contributor &replica) {
  TUTTI_TRY(stream_.synchronize());
  for (const UpdatedRange &range : programs_.updated) {
    const bool is_report = range.arena == Arena::report;
    TUTTI_TRY(
        copy(is_report ? report_ : stored_, is_report ? replica.report : computed_with_, range.offset, range.bytes));
  }
  return Status();
}

Status StorageUpdate::copy(const Buffer &from, Buffer &to, int64_t offset, int64_t bytes) {
  auto *const source = static_cast<const std::byte *>(from.host_pointer());
  auto *const target = static_cast<std::byte *>(to.host_pointer());
  if (target != nullptr) return from.read(offset, target + offset, bytes);
  if (source != nullptr) return to.write(offset, source + offset, bytes);
  staging_.resize(static_cast<size_t>(programs_.piece_bytes));
  for (int64_t at = 0; at < bytes; at += programs_.piece_bytes) {
    const int64_t piece = std::min(programs_.piece_bytes, bytes - at);
    TUTTI_TRY(from.read(offset + at, staging_.data(), piece));
    TUTTI_TRY(to.write(offset + at, staging_.data(), piece));
  }
  return Status();
}

Status StorageUpdate::write_loss_scale(int64_t scale) {
  if (scale_entry_ == nullptr || scale == written_scale_) return Status();
  const auto value = static_cast<float>(scale);
  TUTTI_TRY(report_.write(scale_entry_->offset, &value, sizeof(value)));
  written_scale_ = scale;
  return Status();
}

}  // namespace tutti::impl::distribute
