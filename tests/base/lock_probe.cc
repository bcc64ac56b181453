// SPDX-License-Identifier: Apache-2.0
#include "base/lock_probe.h"

#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>

namespace {

std::atomic<int64_t> locks_taken{0}, heap_requests{0};
thread_local int excused = 0;

[[maybe_unused]] void count_heap_request() {
  if (excused == 0) heap_requests.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

namespace tutti::testing {

int64_t LockProbe::locks_now() { return locks_taken.load(std::memory_order_relaxed); }
int64_t LockProbe::heap_calls_now() { return heap_requests.load(std::memory_order_relaxed); }
LockProbe::Excuse::Excuse() { ++excused; }
LockProbe::Excuse::~Excuse() { --excused; }

}  // namespace tutti::testing

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__GLIBC__)

bool tutti::testing::LockProbe::counts() { return false; }

#else

bool tutti::testing::LockProbe::counts() { return true; }

namespace {

// The next definition of a function in the order of loading: libc's own.
template <typename Function>
Function *next(const char *name) {
  return reinterpret_cast<Function *>(dlsym(RTLD_NEXT, name));
}

int count_lock(int (*lock)(void *), void *object) {
  locks_taken.fetch_add(1, std::memory_order_relaxed);
  return lock(object);
}

}  // namespace

#define COUNTED_LOCK(name, type)                                  \
  __attribute__((visibility("default"))) int name(type *object) { \
    static const auto real = next<int(void *)>(#name);            \
    return count_lock(real, object);                              \
  }

extern "C" {

COUNTED_LOCK(pthread_mutex_lock, pthread_mutex_t)
COUNTED_LOCK(pthread_rwlock_rdlock, pthread_rwlock_t)
COUNTED_LOCK(pthread_rwlock_wrlock, pthread_rwlock_t)

// glibc's own names for what is replaced here.
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *memory, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

__attribute__((visibility("default"))) void *malloc(size_t size) {
  count_heap_request();
  return __libc_malloc(size);
}
__attribute__((visibility("default"))) void *calloc(size_t count, size_t size) {
  count_heap_request();
  return __libc_calloc(count, size);
}
__attribute__((visibility("default"))) void *realloc(void *memory, size_t size) {
  count_heap_request();
  return __libc_realloc(memory, size);
}
__attribute__((visibility("default"))) void *aligned_alloc(size_t alignment, size_t size) {
  count_heap_request();
  return __libc_memalign(alignment, size);
}
__attribute__((visibility("default"))) int posix_memalign(void **out, size_t alignment, size_t size) {
  count_heap_request();
  void *memory = __libc_memalign(alignment, size);
  if (memory == nullptr) return ENOMEM;
  *out = memory;
  return 0;
}

}  // extern "C"

#endif
