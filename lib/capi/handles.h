// SPDX-License-Identifier: Apache-2.0
//
// Handles of the C interface: how they are made, looked up and counted. Every public type has one HandleType here and
// one object class in the header of its <object>_c.cc.
//
//   TUTTI_ASSIGN(Ref<TensorObject> tensor, find(handle, tensor_handles, "tensor"));
//   return emit(std::move(object), tensor_handles, out);
//
// After fork() the child has the handles, but what their objects hold (threads, locks, files, devices) is the parent's:
// unref leaves them alone there, and all that takes an error says so. Errors are released everywhere.
//
// Threads: all functions may be called from any thread.
#ifndef TUTTI_CAPI_HANDLES_H_
#define TUTTI_CAPI_HANDLES_H_

#include <limits>
#include <string_view>
#include <utility>

#include "base/forked.h"
#include "base/handle_table.h"
#include "base/object.h"
#include "base/status.h"
#include "base/thread.h"

namespace tutti::impl::capi {

using base::HandleTable;
using base::HandleType;
using base::Ref;
using base::Result;
using base::Status;

/// What getters of doubles return for what is not known.
inline constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();

/// The object behind a handle, or INVALID_ARGUMENT naming the argument.
template <typename T>
Result<Ref<T>> find(const void *handle, const HandleType<T> &type, std::string_view argument) {
  return HandleTable::process().find(handle, type, argument);
}

/// As find(), null for a wrong handle: for getters that cannot fail.
template <typename T>
Ref<T> peek(const void *handle, const HandleType<T> &type) {
  return HandleTable::process().try_find(handle, type);
}

/// As peek(), null in a forked child too: for getters of what threads change.
template <typename T>
Ref<T> peek_shared(const void *handle, const HandleType<T> &type) {
  return base::is_forked() ? Ref<T>() : peek(handle, type);
}

/// Stores a new handle of `object` in *out.
template <typename T, typename C>
Status emit(Ref<T> object, HandleType<T> &type, C **out) {
  TUTTI_ASSIGN(void *const handle, HandleTable::process().insert(std::move(object), type));
  *out = static_cast<C *>(handle);
  return Status();
}

inline void ref_handle(const void *handle, const base::HandleTypeBase &type) noexcept {
  static_cast<void>(HandleTable::process().ref(handle, type));
}

/// Nothing in a forked child.
inline void unref_handle(const void *handle, const base::HandleTypeBase &type) noexcept {
  if (base::is_forked()) return;
  static_cast<void>(HandleTable::process().unref(handle, type));
}

/// A handle that an object lends out, made on first use and dropped with the object.
class LentHandle {
 public:
  LentHandle() = default;
  LentHandle(const LentHandle &) = delete;
  LentHandle &operator=(const LentHandle &) = delete;
  ~LentHandle() { reset(); }

  void *get() const { return handle_; }
  template <typename T>
  Status set(Ref<T> object, HandleType<T> &type) {
    reset();
    TUTTI_ASSIGN(handle_, HandleTable::process().insert(std::move(object), type));
    type_ = &type;
    return Status();
  }
  void reset() {
    if (handle_ != nullptr) unref_handle(std::exchange(handle_, nullptr), *type_);
  }

 private:
  void *handle_ = nullptr;
  const base::HandleTypeBase *type_ = nullptr;
};

}  // namespace tutti::impl::capi

/// The two counting functions that every handle type has.
#define TUTTI_DEFINE_COUNTING(name, type)                                                          \
  void tutti_##name##_ref(tutti_##name *handle) { ::tutti::impl::capi::ref_handle(handle, type); } \
  void tutti_##name##_unref(tutti_##name *handle) { ::tutti::impl::capi::unref_handle(handle, type); }

#endif  // TUTTI_CAPI_HANDLES_H_
