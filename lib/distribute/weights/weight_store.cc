// SPDX-License-Identifier: Apache-2.0
#include "distribute/weights/weight_store.h"

#include <algorithm>
#include <cstring>

#include "distribute/plan/weight_averages.h"

namespace tutti::impl::distribute {

using backend::StateEntry;
using base::Result;
using base::Status;
using tensor::Tensor;

namespace {

constexpr std::string_view kWeightPrefix = "weight/", kSlotPrefix = "slot/";

/// The arenas as they were at one step boundary. Immutable.
class PackedVersion : public checkpoint::WeightVersion {
 public:
  PackedVersion(int64_t step, backend::BackendRef backend, std::vector<std::byte> weights, std::vector<std::byte> slots)
      : step_(step), backend_(std::move(backend)), weights_(std::move(weights)), slots_(std::move(slots)) {}

  Status add(const StateEntry &entry, checkpoint::StateRole role) {
    const size_t prefix = role == checkpoint::StateRole::weight ? kWeightPrefix.size() : kSlotPrefix.size();
    return add(entry, role, entry.name.substr(prefix));
  }

  Status add(const StateEntry &entry, checkpoint::StateRole role, std::string name) {
    TUTTI_ASSIGN(const tensor::Shape shape, tensor::Shape::make(entry.dims));
    entries_.push_back({std::move(name), role, entry.dtype, shape});
    places_.push_back(entry);
    return Status();
  }

  int64_t step() const override { return step_; }
  const std::vector<checkpoint::StateEntry> &entries() const override { return entries_; }
  Result<Tensor> read(size_t index) const override {
    const bool is_weight = entries_[index].role == checkpoint::StateRole::weight;
    return unpack_entry(*backend_, places_[index], is_weight ? weights_.data() : slots_.data());
  }

 private:
  const int64_t step_;
  const backend::BackendRef backend_;
  const std::vector<std::byte> weights_, slots_;
  std::vector<checkpoint::StateEntry> entries_;
  std::vector<StateEntry> places_;
};

}  // namespace

Result<backend::Buffer> allocate_zeros(backend::Device &device, int64_t bytes) {
  TUTTI_ASSIGN(backend::Buffer buffer, device.allocate(std::max<int64_t>(bytes, 64)));
  TUTTI_TRY(buffer.fill_zero(0, buffer.size_bytes()));
  return buffer;
}

Result<Tensor> unpack_entry(const backend::Backend &backend, const StateEntry &entry, const void *arena) {
  TUTTI_ASSIGN(const tensor::Shape shape, tensor::Shape::make(entry.dims));
  TUTTI_ASSIGN(Tensor value, Tensor::allocate(entry.dtype, shape));
  TUTTI_TRY(backend.unpack(entry.layout, entry.dtype, entry.dims, static_cast<const std::byte *>(arena) + entry.offset,
                           entry.storage_bytes, value.mutable_data()));
  return value;
}

/// A variable or a slot by the name that programs know it by.
static std::string described(std::string_view entry) {
  if (entry.starts_with(kWeightPrefix)) return base::concat("variable '", entry.substr(kWeightPrefix.size()), "'");
  if (entry.starts_with(kSlotPrefix)) return base::concat("slot '", entry.substr(kSlotPrefix.size()), "'");
  return base::concat("state '", entry, "'");
}

Result<std::vector<std::byte>> pack_entry(const backend::Backend &backend, const StateEntry &entry,
                                          const Tensor &value) {
  if (value.dtype() != entry.dtype || !std::ranges::equal(value.shape().extents(), entry.dims)) {
    return base::invalid_argument(described(entry.name), " is ", tensor::name(entry.dtype), " ", entry.dims, ", got ",
                                  value.describe());
  }
  std::vector<std::byte> storage(static_cast<size_t>(entry.storage_bytes));
  TUTTI_TRY(backend.pack(entry.layout, entry.dtype, entry.dims, value.data(), storage.data(), entry.storage_bytes));
  return storage;
}

Result<WeightStore> WeightStore::create(const StatePlan &plan, std::vector<backend::DeviceRef> devices, Slots slots,
                                        Weights shared) {
  WeightStore store;
  store.weights_ = shared != nullptr ? shared : std::make_shared<std::vector<backend::Buffer>>();
  store.plan_ = &plan;
  store.devices_ = std::move(devices);
  for (const backend::DeviceRef &device : store.devices_) {
    if (shared == nullptr) {
      TUTTI_ASSIGN(backend::Buffer weights, allocate_zeros(*device, plan.arena_bytes(Arena::weights)));
      store.weights_->push_back(std::move(weights));
    }
    TUTTI_ASSIGN(backend::Buffer host, allocate_zeros(*device, plan.arena_bytes(Arena::host)));
    store.host_.push_back(std::move(host));
    if (slots == Slots::with_the_first && !store.slots_.empty()) continue;
    TUTTI_ASSIGN(backend::Buffer with_copy, allocate_zeros(*device, plan.arena_bytes(Arena::slots)));
    store.slots_.push_back(std::move(with_copy));
  }
  return store;
}

const backend::Buffer *WeightStore::find(Arena arena, size_t copy) const {
  switch (arena) {
    case Arena::weights:
      return &(*weights_)[copy];
    case Arena::slots:
      return &slots_[copy];
    case Arena::host:
      return &host_[copy];
    default:
      return nullptr;
  }
}

Result<Tensor> WeightStore::read(const StateEntry &entry) const {
  const backend::Buffer *buffer = find(static_cast<Arena>(entry.arena), 0);
  std::vector<std::byte> storage(static_cast<size_t>(entry.storage_bytes));
  TUTTI_TRY(buffer->read(entry.offset, storage.data(), entry.storage_bytes));
  StateEntry alone = entry;
  alone.offset = 0;
  return unpack_entry(devices_.front()->backend(), alone, storage.data());
}

Status WeightStore::write(const StateEntry &entry, const Tensor &value) {
  TUTTI_ASSIGN(const std::vector<std::byte> storage, pack_entry(devices_.front()->backend(), entry, value));
  const auto arena = static_cast<Arena>(entry.arena);
  for (size_t copy = 0; copy < copies_of(arena); ++copy) {
    auto *buffer = const_cast<backend::Buffer *>(find(arena, copy));
    TUTTI_TRY(buffer->write(entry.offset, storage.data(), entry.storage_bytes));
  }
  return Status();
}

Result<std::vector<std::byte>> WeightStore::snapshot(Arena arena, int64_t end) const {
  std::vector<std::byte> bytes(static_cast<size_t>(end < 0 ? plan_->arena_bytes(arena) : end));
  TUTTI_TRY(find(arena, 0)->read(0, bytes.data(), static_cast<int64_t>(bytes.size())));
  return bytes;
}

Result<bool> WeightStore::copies_are_identical() const {
  for (const Arena arena : {Arena::weights, Arena::slots}) {
    TUTTI_ASSIGN(const std::vector<std::byte> first, snapshot(arena));
    std::vector<std::byte> other(first.size());
    for (size_t copy = 1; copy < copies_of(arena); ++copy) {
      TUTTI_TRY(find(arena, copy)->read(0, other.data(), static_cast<int64_t>(other.size())));
      if (first != other) return false;
    }
  }
  return true;
}

Status WeightStore::copy(size_t from, size_t to) {
  constexpr int64_t kPiece = int64_t{16} << 20;
  std::vector<std::byte> piece;
  for (const Arena arena : {Arena::weights, Arena::slots}) {
    if (to >= copies_of(arena)) continue;
    auto *const target = const_cast<backend::Buffer *>(find(arena, to));
    for (int64_t at = 0; at < plan_->arena_bytes(arena); at += kPiece) {
      const int64_t bytes = std::min(kPiece, plan_->arena_bytes(arena) - at);
      piece.resize(static_cast<size_t>(bytes));
      TUTTI_TRY(find(arena, from)->read(at, piece.data(), bytes));
      TUTTI_TRY(target->write(at, piece.data(), bytes));
    }
  }
  return Status();
}

Result<base::Ref<checkpoint::WeightVersion>> make_packed_version(const StatePlan &plan,
                                                                 const backend::BackendRef &backend,
                                                                 const WeightStore &store, int64_t step,
                                                                 bool with_slots) {
  TUTTI_ASSIGN(std::vector<std::byte> weights, store.snapshot(Arena::weights));
  std::vector<const StateEntry *> kept;
  int64_t end = 0;
  for (const StateEntry &entry : plan.entries()) {
    if (entry.arena != static_cast<int32_t>(Arena::slots) || !(with_slots || is_average(entry))) continue;
    kept.push_back(&entry);
    end = std::max(end, entry.offset + entry.storage_bytes);
  }
  std::vector<std::byte> slots;
  if (!kept.empty()) {
    TUTTI_ASSIGN(slots, store.snapshot(Arena::slots, end));
  }
  auto version = base::make_ref<PackedVersion>(step, backend, std::move(weights), std::move(slots));
  for (const StateEntry &entry : plan.entries()) {
    if (entry.arena == static_cast<int32_t>(Arena::weights))
      TUTTI_TRY(version->add(entry, checkpoint::StateRole::weight));
  }
  for (const StateEntry *entry : kept)
    TUTTI_TRY(version->add(*entry, checkpoint::StateRole::slot));
  return base::Ref<checkpoint::WeightVersion>(std::move(version));
}

std::string scoped_slot(std::string_view slot, std::string_view scope) {
  if (scope.empty()) return std::string(slot);
  const size_t at = slot.rfind('/') + 1;
  return base::concat(slot.substr(0, at), scope, "/", slot.substr(at));
}

Result<base::Ref<checkpoint::WeightVersion>> make_packed_slots(const StatePlan &plan,
                                                               const backend::BackendRef &backend,
                                                               const WeightStore &store, std::string_view scope) {
  TUTTI_ASSIGN(std::vector<std::byte> slots, store.snapshot(Arena::slots));
  auto version = base::make_ref<PackedVersion>(0, backend, std::vector<std::byte>(), std::move(slots));
  for (const StateEntry &entry : plan.entries()) {
    if (entry.arena != static_cast<int32_t>(Arena::slots)) continue;
    TUTTI_TRY(version->add(entry, checkpoint::StateRole::slot,
                           scoped_slot(std::string_view(entry.name).substr(kSlotPrefix.size()), scope)));
  }
  return base::Ref<checkpoint::WeightVersion>(std::move(version));
}

}  // namespace tutti::impl::distribute
