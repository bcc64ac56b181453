// SPDX-License-Identifier: Apache-2.0
//
// Shared objects with the count inside. An Object is made with one reference, usually by make_ref; Ref<T> owns one
// reference and is one pointer wide.
//
//   Ref<Buffer> buffer = make_ref<HostBuffer>(bytes);
//   Ref<const Buffer> lent = buffer;                  // converts like a pointer
//
// Threads: counting is atomic, so references may be copied and dropped on any thread; one Ref object itself is not
// shared without a lock. The thread that drops the last reference runs destroy().
#ifndef TUTTI_BASE_OBJECT_H_
#define TUTTI_BASE_OBJECT_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace tutti::impl::base {

/// Base class of everything counted from inside. Never copied.
class Object {
 public:
  Object() = default;
  Object(const Object &) = delete;
  Object &operator=(const Object &) = delete;
  virtual ~Object() = default;

  /// One more reference. The caller holds one already.
  void ref() const noexcept { references_.fetch_add(1, std::memory_order_relaxed); }
  /// One reference less; the last one destroys the object.
  void unref() const noexcept {
    if (references_.fetch_sub(1, std::memory_order_release) == 1) {
      // An acquire load in place of a fence: the same on x86 and understood by the thread sanitizer.
      references_.load(std::memory_order_acquire);
      const_cast<Object *>(this)->destroy();
    }
  }
  /// One more reference unless the object is already dying; for back pointers that hold none.
  bool try_ref() const noexcept {
    int32_t count = references_.load(std::memory_order_relaxed);
    while (count > 0 && !references_.compare_exchange_weak(count, count + 1, std::memory_order_relaxed)) {
    }
    return count > 0;
  }
  /// The number of references at some moment; 1 means the caller holds the only one.
  int32_t reference_count() const noexcept { return references_.load(std::memory_order_acquire); }

 protected:
  /// What happens to an object nobody holds: delete, unless a pool takes it back.
  virtual void destroy() noexcept { delete this; }
  /// For pools: makes an unreferenced object usable again, with one reference.
  void revive() noexcept { references_.store(1, std::memory_order_relaxed); }

 private:
  mutable std::atomic<int32_t> references_{1};
};

/// Owns one reference to a T (an Object), or is null.
template <typename T>
class Ref {
 public:
  Ref() = default;
  Ref(std::nullptr_t) {}
  /// Takes over a reference the caller owns.
  static Ref adopt(T *object) { return Ref(object, 0); }
  /// Adds a reference of its own.
  static Ref share(T *object) {
    if (object != nullptr) object->ref();
    return Ref(object, 0);
  }

  Ref(const Ref &other) : object_(other.object_) {
    if (object_ != nullptr) object_->ref();
  }
  Ref(Ref &&other) noexcept : object_(other.release()) {}
  template <typename U>
  requires std::is_convertible_v<U *, T *> Ref(const Ref<U> &other) : object_(other.get()) {
    if (object_ != nullptr) object_->ref();
  }
  template <typename U>
  requires std::is_convertible_v<U *, T *> Ref(Ref<U> &&other)
  noexcept : object_(other.release()) {}
  Ref &operator=(Ref other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() {
    if (object_ != nullptr) object_->unref();
  }

  T *get() const { return object_; }
  T *operator->() const { return object_; }
  T &operator*() const { return *object_; }
  explicit operator bool() const { return object_ != nullptr; }
  /// Gives the reference away: the caller must unref() or adopt() it.
  T *release() { return std::exchange(object_, nullptr); }
  void reset() { Ref().swap(*this); }
  void swap(Ref &other) noexcept { std::swap(object_, other.object_); }

  template <typename U>
  friend bool operator==(const Ref &a, const Ref<U> &b) {
    return a.get() == b.get();
  }
  friend bool operator==(const Ref &a, std::nullptr_t) { return a.object_ == nullptr; }

 private:
  Ref(T *object, int) : object_(object) {}

  T *object_ = nullptr;
};

/// A new T with its first reference.
template <typename T, typename... Arguments>
Ref<T> make_ref(Arguments &&...arguments) {
  return Ref<T>::adopt(new T(std::forward<Arguments>(arguments)...));
}

/// The same object seen as a derived type the caller knows it has.
template <typename T, typename U>
Ref<T> static_ref_cast(Ref<U> object) {
  return Ref<T>::adopt(static_cast<T *>(object.release()));
}

}  // namespace tutti::impl::base

#endif  // TUTTI_BASE_OBJECT_H_
