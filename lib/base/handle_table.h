// SPDX-License-Identifier: Apache-2.0
//
// Handles for the C ABI. A handle is a pointer-sized number, never an address: index and generation of a slot in a
// process-wide table. So NULL, a handle that was released, a handle of another type and a pointer from elsewhere are
// all recognised without touching memory behind them, and answered with INVALID_ARGUMENT.
//
//   inline constinit HandleType<Dataset> dataset_handles{"dataset"};
//   void *handle = HandleTable::process().insert(dataset, dataset_handles).value();
//   TUTTI_ASSIGN(Ref<Dataset> dataset, HandleTable::process().find(handle, dataset_handles, "dataset"));
//   TUTTI_TRY(HandleTable::process().unref(handle, dataset_handles));
//
// A handle has its own count (ref, unref); it holds one reference to its object and drops it with its last one. The
// object may live longer through inner references.
//
// Threads: every function may be called from any thread at any time. find() takes no lock: three atomic operations on
// the slot and the object. insert() and the last unref() take a short lock. No lock is held while an object dies.
//
// Invariants: bit 63 of a handle is set (no user-space address has it) and bits 0-2 are clear. A slot's word holds
// generation, handle references and pins; a slot whose generations are used up is retired, so no handle value ever
// comes twice.
#ifndef TUTTI_BASE_HANDLE_TABLE_H_
#define TUTTI_BASE_HANDLE_TABLE_H_

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string_view>

#include "base/object.h"
#include "base/status.h"

namespace tutti::impl::base {

/// What a handle may refer to: a name for messages and the number of live handles. One static object per type.
class HandleTypeBase {
 public:
  explicit constexpr HandleTypeBase(const char *name) : name_(name) {}
  const char *name() const { return name_; }
  /// Handles of this type that are not yet released.
  int64_t live_count() const { return live_.load(std::memory_order_relaxed); }

 private:
  friend class HandleTable;

  const char *name_;
  std::atomic<int64_t> live_{0};
};

/// The handle type of class T; its address is the type tag.
template <typename T>
class HandleType : public HandleTypeBase {
 public:
  using HandleTypeBase::HandleTypeBase;
};

class HandleTable {
 public:
  HandleTable();
  /// Releases what is left in it. The process-wide table is never destroyed.
  ~HandleTable();
  HandleTable(const HandleTable &) = delete;
  HandleTable &operator=(const HandleTable &) = delete;

  /// The one table of the process; made on first use, leaked on purpose.
  static HandleTable &process();

  /// A new handle with one reference to `object`. RESOURCE_EXHAUSTED when 16 million handles live.
  template <typename T>
  Result<void *> insert(Ref<T> object, HandleType<T> &type) {
    return insert_object(Ref<Object>(std::move(object)), type);
  }
  /// The object behind a handle, pinned by the reference returned. `argument` names the parameter in the error.
  template <typename T>
  Result<Ref<T>> find(const void *handle, const HandleType<T> &type, std::string_view argument) const {
    if (Object *object = pin(handle, type)) [[likely]]
      return Ref<T>::adopt(static_cast<T *>(object));
    return explain(handle, type, argument);
  }
  /// As find(), without an error: null when the handle is not a live one of this type.
  template <typename T>
  Ref<T> try_find(const void *handle, const HandleType<T> &type) const {
    return Ref<T>::adopt(static_cast<T *>(pin(handle, type)));
  }
  /// One more reference to the handle.
  Status ref(const void *handle, const HandleTypeBase &type);
  /// One reference less; the last makes the handle stale and lets go of the object. NULL is a no-op.
  Status unref(const void *handle, const HandleTypeBase &type);

  /// Live handles of all types.
  int64_t live_count() const { return live_.load(std::memory_order_relaxed); }

 private:
  struct Slot;

  Result<void *> insert_object(Ref<Object> object, HandleTypeBase &type);
  /// The object with a new reference, or null.
  Object *pin(const void *handle, const HandleTypeBase &type) const;
  Status explain(const void *handle, const HandleTypeBase &type, std::string_view argument) const;
  Slot *slot_of(uint64_t bits) const;
  /// The slot of a live handle, kept from being recycled until unpin(); or null.
  Slot *pin_slot(uint64_t bits) const;
  Slot *pin_slot(const void *handle, const HandleTypeBase &type) const;
  Slot *take_free_slot();
  void unpin(Slot *slot) const;
  void recycle(Slot *slot, uint64_t word) const;

  static constexpr uint32_t kChunkSlots = 4096;
  static constexpr uint32_t kChunks = 4096;

  std::atomic<Slot *> chunks_[kChunks] = {};
  mutable std::mutex mutex_;
  mutable Slot *free_ = nullptr;  // guarded by mutex_
  uint32_t used_ = 0;             // slots ever handed out; guarded by mutex_
  mutable std::atomic<int64_t> live_{0};
};

}  // namespace tutti::impl::base

#endif  // TUTTI_BASE_HANDLE_TABLE_H_
