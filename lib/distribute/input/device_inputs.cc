// SPDX-License-Identifier: Apache-2.0
#include "distribute/input/device_inputs.h"

#include <algorithm>
#include <cstring>

#include "base/memory.h"

namespace tutti::impl::distribute {

using base::Result;
using base::Status;

namespace {

int64_t row_bytes(const data::Element &element, int32_t component) {
  const tensor::Tensor &tensor = element.components[static_cast<size_t>(component)];
  return tensor.rows() == 0 ? 0 : tensor.size_bytes() / tensor.rows();
}

}  // namespace

Result<std::unique_ptr<DeviceInputs>> DeviceInputs::create(const std::vector<Target> &targets, int32_t parts,
                                                           int32_t contributors, Room room) {
  std::unique_ptr<DeviceInputs> inputs(new DeviceInputs(parts, contributors));
  for (const Target &target : targets) {
    Replica replica;
    replica.target = target;
    TUTTI_ASSIGN(replica.stream, target.device->create_stream());
    replica.slots.resize(static_cast<size_t>(room.slots));
    for (std::vector<Batch> &slot : replica.slots) {
      for (int32_t m = 0; m < room.batches; ++m) {
        Batch batch;
        batch.parts.resize(static_cast<size_t>(parts));
        batch.map_runs.resize(static_cast<size_t>(parts));
        TUTTI_ASSIGN(batch.copied, target.device->create_event());
        slot.push_back(std::move(batch));
      }
    }
    inputs->replicas_.push_back(std::move(replica));
  }
  return inputs;
}

DeviceInputs::~DeviceInputs() {
  for (size_t slot = 0; !replicas_.empty() && slot < replicas_.front().slots.size(); ++slot)
    settle(static_cast<int32_t>(slot));
}

Status DeviceInputs::set_map(const std::shared_ptr<const DeviceMap> &map, int64_t seed) {
  seed_ = seed;
  used_slots_ = 0;
  if (map == map_) return Status();
  map_ = nullptr;
  for (Replica &replica : replicas_) {
    replica.mapped = nullptr;
    // Components have other numbers now, and sizes.
    for (std::vector<Batch> &slot : replica.slots) {
      for (Batch &batch : slot)
        std::ranges::for_each(batch.parts, [](std::vector<backend::Buffer> &buffers) { buffers.clear(); });
    }
  }
  if (map == nullptr) return Status();
  std::vector<std::unique_ptr<MappedRows>> all;
  for (const Replica &replica : replicas_) {
    TUTTI_ASSIGN(std::unique_ptr<MappedRows> mapped, MappedRows::create(map, replica.target.device));
    all.push_back(std::move(mapped));
  }
  for (size_t r = 0; r < all.size(); ++r)
    replicas_[r].mapped = std::move(all[r]);
  map_ = map;
  return Status();
}

Status DeviceInputs::begin(int32_t slot, int32_t batch, const data::Element &element, int64_t rows,
                           const InputBinding &binding) {
  used_slots_ = std::max(used_slots_, static_cast<size_t>(slot) + 1);
  const auto m = static_cast<size_t>(batch);
  for (Replica &replica : replicas_) {
    Status status = copy(replica, replica.slots[static_cast<size_t>(slot)][m], element, rows, binding);
    for (size_t s = used_slots_; s < replica.slots.size() && status.ok(); ++s)
      status = reserve(replica, replica.slots[s][m], element, rows, binding);
    if (status.ok()) continue;
    settle(slot);
    (void)replica.stream.synchronize();
    return status.wrap(base::concat("copying the batch to device ", replica.target.device->name(), " failed"));
  }
  return Status();
}

Status DeviceInputs::copy(Replica &replica, Batch &batch, const data::Element &element, int64_t rows,
                          const InputBinding &binding) {
  TUTTI_TRY(reserve(replica, batch, element, rows, binding));
  for (int32_t p = 0; p < parts_; ++p) {
    const auto part = static_cast<size_t>(p);
    const RowRange range = share_of_rows(rows, replica.target.first_contributor + p, contributors_);
    if (replica.mapped != nullptr) {
      TUTTI_TRY(map_part(replica, batch, part, element, range));
      continue;
    }
    for (const int32_t component : binding.components())
      TUTTI_TRY(copy_part(replica, batch, part, element, range, component));
  }
  TUTTI_TRY(batch.copied.record(replica.stream));
  batch.is_under_way = true;
  batches_.fetch_add(1, std::memory_order_relaxed);
  if (replica.mapped != nullptr) mapped_.fetch_add(1, std::memory_order_relaxed);
  return Status();
}

Status DeviceInputs::reserve(const Replica &replica, Batch &batch, const data::Element &element, int64_t rows,
                             const InputBinding &binding) {
  reserve_staging(replica, batch, element, rows, binding);
  for (int32_t p = 0; p < parts_; ++p) {
    const RowRange range = share_of_rows(rows, replica.target.first_contributor + p, contributors_);
    std::vector<backend::Buffer> &buffers = batch.parts[static_cast<size_t>(p)];
    if (replica.mapped != nullptr) {
      TUTTI_TRY(replica.mapped->reserve(element, range.rows(), buffers));
      continue;
    }
    for (const int32_t component : binding.components())
      TUTTI_TRY(reserve_bytes(replica.target, buffers, component, range.rows() * row_bytes(element, component)));
  }
  return Status();
}

Status DeviceInputs::reserve_bytes(const Target &target, std::vector<backend::Buffer> &buffers, int32_t component,
                                   int64_t bytes) {
  if (buffers.size() <= static_cast<size_t>(component)) buffers.resize(static_cast<size_t>(component) + 1);
  backend::Buffer &buffer = buffers[static_cast<size_t>(component)];
  if (!buffer.empty() && buffer.size_bytes() >= bytes) return Status();
  buffer = backend::Buffer();  // before the larger one, so that both need not fit
  TUTTI_ASSIGN(buffer, target.device->allocate(std::max<int64_t>(bytes, 1)));
  return Status();
}

void DeviceInputs::reserve_staging(const Replica &replica, Batch &batch, const data::Element &element, int64_t rows,
                                   const InputBinding &binding) {
  const Target &target = replica.target;
  batch.staged = 0;
  if (!has_staging_ || !target.device->backend().copies_by_address()) return;
  int64_t bytes = 0;
  for (int32_t p = 0; p < parts_; ++p) {
    const RowRange range = share_of_rows(rows, target.first_contributor + p, contributors_);
    if (replica.mapped != nullptr) {
      bytes += replica.mapped->copied_bytes(element, range.rows());
      continue;
    }
    for (const int32_t component : binding.components())
      bytes += base::round_up_aligned(range.rows() * row_bytes(element, component));
  }
  if (batch.staging.size_bytes() >= bytes) return;
  batch.staging = backend::HostMemory();
  Result<backend::HostMemory> memory = target.device->allocate_host(bytes);
  // Page-locked memory may be scarce: copies then read the element, more slowly.
  has_staging_ = memory.ok();
  if (has_staging_) batch.staging = std::move(*memory);
}

const void *DeviceInputs::stage(Batch &batch, const void *rows, int64_t bytes) {
  if (bytes == 0 || batch.staging.size_bytes() - batch.staged < bytes) return rows;
  std::byte *const to = batch.staging.data() + batch.staged;
  std::memcpy(to, rows, static_cast<size_t>(bytes));
  batch.staged += base::round_up_aligned(bytes);
  staged_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  return to;
}

Status DeviceInputs::copy_part(Replica &replica, Batch &batch, size_t part, const data::Element &element,
                               RowRange range, int32_t component) {
  const int64_t bytes = range.rows() * row_bytes(element, component);
  backend::Buffer &buffer = batch.parts[part][static_cast<size_t>(component)];
  return copy_bytes(replica, batch, buffer, 0, InputBinding::row_pointer(element, component, range.begin), bytes);
}

Status DeviceInputs::map_part(Replica &replica, Batch &batch, size_t part, const data::Element &element,
                              RowRange range) {
  std::vector<backend::Buffer> &buffers = batch.parts[part];
  const auto copy = [&](backend::Buffer &to, int64_t offset, const void *from, int64_t bytes) {
    return copy_bytes(replica, batch, to, offset, from, bytes);
  };
  return replica.mapped->run(seed_, element, range, buffers, batch.map_runs[part], copy, replica.stream);
}

Status DeviceInputs::copy_bytes(Replica &replica, Batch &batch, backend::Buffer &to, int64_t offset, const void *from,
                                int64_t bytes) {
  TUTTI_TRY(to.write(offset, stage(batch, from, bytes), bytes, &replica.stream));
  bytes_.fetch_add(bytes, std::memory_order_relaxed);
  return Status();
}

void DeviceInputs::settle(int32_t slot) {
  for (Replica &replica : replicas_) {
    for (Batch &batch : replica.slots[static_cast<size_t>(slot)]) {
      // An error of the copies came back, or will, from the stream that waited for them.
      if (batch.is_under_way) (void)batch.copied.synchronize();
      batch.is_under_way = false;
    }
  }
}

Status DeviceInputs::wait(size_t replica, int32_t slot, int32_t batch, backend::Stream &stream) {
  Batch &of = replicas_[replica].slots[static_cast<size_t>(slot)][static_cast<size_t>(batch)];
  if (of.copied.is_done()) in_time_.fetch_add(1, std::memory_order_relaxed);
  return stream.wait(of.copied);
}

const void *DeviceInputs::rows(size_t replica, int32_t slot, int32_t batch, size_t part, int32_t component) const {
  const Batch &of = replicas_[replica].slots[static_cast<size_t>(slot)][static_cast<size_t>(batch)];
  return of.parts[part][static_cast<size_t>(component)].device_pointer();
}

DeviceInputCounters DeviceInputs::counters() const {
  return {batches_.load(std::memory_order_relaxed), bytes_.load(std::memory_order_relaxed),
          staged_bytes_.load(std::memory_order_relaxed), in_time_.load(std::memory_order_relaxed),
          mapped_.load(std::memory_order_relaxed)};
}

}  // namespace tutti::impl::distribute
