// SPDX-License-Identifier: Apache-2.0
#include "base/allocation_probe.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<int64_t> calls{0};

void *counted(void *memory) {
  calls.fetch_add(1, std::memory_order_relaxed);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

size_t rounded(size_t size, std::align_val_t alignment) {
  const auto unit = static_cast<size_t>(alignment);
  return (size + unit - 1) / unit * unit;
}

}  // namespace

namespace tutti::testing {

int64_t operator_new_calls() { return calls.load(std::memory_order_relaxed); }

}  // namespace tutti::testing

// All forms that allocate: under a sanitizer those left out would be the sanitizer's own.
void *operator new(size_t size) { return counted(std::malloc(size > 0 ? size : 1)); }
void *operator new(size_t size, std::align_val_t alignment) {
  return counted(std::aligned_alloc(static_cast<size_t>(alignment), rounded(size > 0 ? size : 1, alignment)));
}
void *operator new[](size_t size) { return operator new(size); }
void *operator new[](size_t size, std::align_val_t alignment) { return operator new(size, alignment); }
void *operator new(size_t size, const std::nothrow_t &) noexcept {
  calls.fetch_add(1, std::memory_order_relaxed);
  return std::malloc(size > 0 ? size : 1);
}
void *operator new[](size_t size, const std::nothrow_t &nothrow) noexcept { return operator new(size, nothrow); }
void operator delete(void *memory) noexcept { std::free(memory); }
void operator delete(void *memory, size_t) noexcept { std::free(memory); }
void operator delete(void *memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void *memory, size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void *memory, const std::nothrow_t &) noexcept { std::free(memory); }
void operator delete[](void *memory) noexcept { std::free(memory); }
void operator delete[](void *memory, size_t) noexcept { std::free(memory); }
void operator delete[](void *memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void *memory, size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void *memory, const std::nothrow_t &) noexcept { std::free(memory); }
