// SPDX-License-Identifier: Apache-2.0
#include "base/handle_table.h"

#include <pthread.h>

#include <new>

namespace tutti::impl::base {

namespace {

static_assert(sizeof(void *) == 8, "a handle needs 64 bits");

// A handle: bit 63 set, 24 bits generation, 24 bits index, a fixed pattern, three zero bits.
constexpr uint64_t kTopBit = uint64_t{1} << 63;
constexpr uint64_t kPattern = 0x2e58;  // bits 3-14
constexpr uint64_t kFixedMask = kTopBit | 0x7fff;
constexpr uint64_t kFixed = kTopBit | kPattern;
constexpr uint64_t kField = 0xffffff;

constexpr uint64_t handle_bits(uint64_t generation, uint64_t index) { return kFixed | generation << 39 | index << 15; }
constexpr bool is_handle(uint64_t bits) { return (bits & kFixedMask) == kFixed; }
constexpr uint64_t handle_generation(uint64_t bits) { return bits >> 39 & kField; }
constexpr uint32_t handle_index(uint64_t bits) { return static_cast<uint32_t>(bits >> 15 & kField); }

// A slot's word: 24 bits generation, 24 bits references of the handle, 16 bits pins of lookups in progress.
constexpr uint64_t kPin = 1;
constexpr uint64_t kReference = uint64_t{1} << 16;
constexpr uint64_t word_of(uint64_t generation, uint64_t references) {
  return generation << 40 | references * kReference;
}
constexpr uint64_t word_generation(uint64_t word) { return word >> 40; }
constexpr uint64_t word_references(uint64_t word) { return word >> 16 & kField; }
constexpr bool is_unused(uint64_t word) { return (word & 0xffffffffff) == 0; }

uint64_t bits_of(const void *handle) { return reinterpret_cast<uintptr_t>(handle); }

// "a dataset handle", "an estimator handle".
std::string described(const HandleTypeBase &type) {
  const bool vowel = std::string_view("aeiou").find(type.name()[0]) != std::string_view::npos;
  return concat(vowel ? "an " : "a ", type.name(), " handle");
}

Status not_live(const HandleTypeBase &type, std::string_view argument, std::string_view got) {
  return invalid_argument("argument '", argument, "': expected ", described(type), ", got ", got);
}

}  // namespace

// object and type are written while no handle to the slot exists and read while it is pinned.
struct HandleTable::Slot {
  std::atomic<uint64_t> word{word_of(1, 0)};
  Object *object = nullptr;
  HandleTypeBase *type = nullptr;
  Slot *next_free = nullptr;
  uint32_t index = 0;
};

HandleTable::HandleTable() = default;

HandleTable::~HandleTable() {
  for (uint32_t index = 0; index < used_; ++index) {
    Slot &slot = chunks_[index / kChunkSlots].load(std::memory_order_acquire)[index % kChunkSlots];
    if (word_references(slot.word.load(std::memory_order_acquire)) == 0) continue;
    slot.type->live_.fetch_sub(1, std::memory_order_relaxed);
    slot.object->unref();
  }
  for (auto &chunk : chunks_)
    delete[] chunk.load(std::memory_order_relaxed);
}

HandleTable &HandleTable::process() {
  static HandleTable *const table = [] {
    auto *const made = new HandleTable;
    // A forked child makes handles of errors, whichever thread was at the table when it was forked.
    static_cast<void>(pthread_atfork([] { process().mutex_.lock(); }, [] { process().mutex_.unlock(); },
                                     [] { process().mutex_.unlock(); }));
    return made;
  }();
  return *table;
}

HandleTable::Slot *HandleTable::slot_of(uint64_t bits) const {
  if (!is_handle(bits)) return nullptr;
  const uint32_t index = handle_index(bits);
  Slot *chunk = chunks_[index / kChunkSlots].load(std::memory_order_acquire);
  return chunk == nullptr ? nullptr : &chunk[index % kChunkSlots];
}

HandleTable::Slot *HandleTable::pin_slot(uint64_t bits) const {
  Slot *slot = slot_of(bits);
  if (slot == nullptr) return nullptr;
  uint64_t word = slot->word.load(std::memory_order_relaxed);
  do {
    if (word_generation(word) != handle_generation(bits) || word_references(word) == 0) return nullptr;
  } while (!slot->word.compare_exchange_weak(word, word + kPin, std::memory_order_acquire, std::memory_order_relaxed));
  return slot;
}

HandleTable::Slot *HandleTable::pin_slot(const void *handle, const HandleTypeBase &type) const {
  Slot *slot = pin_slot(bits_of(handle));
  if (slot == nullptr || slot->type == &type) return slot;
  unpin(slot);
  return nullptr;
}

void HandleTable::unpin(Slot *slot) const {
  const uint64_t word = slot->word.fetch_sub(kPin, std::memory_order_acq_rel) - kPin;
  if (is_unused(word)) recycle(slot, word);
}

void HandleTable::recycle(Slot *slot, uint64_t word) const {
  Object *object = std::exchange(slot->object, nullptr);
  HandleTypeBase *type = std::exchange(slot->type, nullptr);
  const uint64_t generation = word_generation(word) + 1;
  // A slot whose generations are used up never comes back.
  if (generation <= kField) {
    slot->word.store(word_of(generation, 0), std::memory_order_relaxed);
    std::lock_guard lock(mutex_);
    slot->next_free = free_;
    free_ = slot;
  }
  type->live_.fetch_sub(1, std::memory_order_relaxed);
  live_.fetch_sub(1, std::memory_order_relaxed);
  object->unref();
}

Object *HandleTable::pin(const void *handle, const HandleTypeBase &type) const {
  Slot *slot = pin_slot(handle, type);
  if (slot == nullptr) return nullptr;
  Object *object = slot->object;
  object->ref();
  unpin(slot);
  return object;
}

Status HandleTable::explain(const void *handle, const HandleTypeBase &type, std::string_view argument) const {
  const uint64_t bits = bits_of(handle);
  if (bits == 0) return not_live(type, argument, "NULL");
  if (slot_of(bits) == nullptr) return not_live(type, argument, "a pointer that is not a handle of this library");
  Slot *slot = pin_slot(bits);
  if (slot == nullptr) return not_live(type, argument, "one that was already released");
  Status status = not_live(type, argument, described(*slot->type));
  unpin(slot);
  return status;
}

HandleTable::Slot *HandleTable::take_free_slot() {
  std::lock_guard lock(mutex_);
  if (free_ != nullptr) return std::exchange(free_, free_->next_free);
  if (used_ == kChunkSlots * kChunks) return nullptr;
  auto &chunk = chunks_[used_ / kChunkSlots];
  Slot *slots = chunk.load(std::memory_order_relaxed);
  if (slots == nullptr) {
    slots = new (std::nothrow) Slot[kChunkSlots];
    if (slots == nullptr) return nullptr;
    chunk.store(slots, std::memory_order_release);
  }
  Slot *slot = &slots[used_ % kChunkSlots];
  slot->index = used_++;
  return slot;
}

Result<void *> HandleTable::insert_object(Ref<Object> object, HandleTypeBase &type) {
  if (object == nullptr) return internal_error(described(type), " needs an object");
  Slot *slot = take_free_slot();
  if (slot == nullptr) return resource_exhausted("too many ", type.name(), " handles: ", live_count(), " are live");
  slot->object = object.release();
  slot->type = &type;
  type.live_.fetch_add(1, std::memory_order_relaxed);
  live_.fetch_add(1, std::memory_order_relaxed);
  const uint64_t generation = word_generation(slot->word.load(std::memory_order_relaxed));
  slot->word.store(word_of(generation, 1), std::memory_order_release);
  return reinterpret_cast<void *>(handle_bits(generation, slot->index));
}

Status HandleTable::ref(const void *handle, const HandleTypeBase &type) {
  Slot *slot = pin_slot(handle, type);
  if (slot == nullptr) return explain(handle, type, type.name());
  Status status;
  uint64_t word = slot->word.load(std::memory_order_relaxed);
  do {
    if (word_references(word) == 0) {
      status = not_live(type, type.name(), "one that was already released");
    } else if (word_references(word) == kField) {
      status = resource_exhausted(described(type), " has ", kField, " references already");
    }
  } while (status.ok() && !slot->word.compare_exchange_weak(word, word + kReference, std::memory_order_relaxed));
  unpin(slot);
  return status;
}

Status HandleTable::unref(const void *handle, const HandleTypeBase &type) {
  if (handle == nullptr) return Status();
  Slot *slot = pin_slot(handle, type);
  if (slot == nullptr) return explain(handle, type, type.name());
  uint64_t word = slot->word.load(std::memory_order_relaxed);
  do {
    if (word_references(word) == 0) {
      unpin(slot);
      return not_live(type, type.name(), "one that was already released");
    }
  } while (!slot->word.compare_exchange_weak(word, word - kReference - kPin, std::memory_order_acq_rel,
                                             std::memory_order_relaxed));
  word -= kReference + kPin;
  if (is_unused(word)) recycle(slot, word);
  return Status();
}

}  // namespace tutti::impl::base
