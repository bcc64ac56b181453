// SPDX-License-Identifier: Apache-2.0
//
// operator new by way of malloc(), which fault_injector.c lets fail: AddressSanitizer's own asks no one.
#include <stdlib.h>

#include <new>

#define EXPORTED __attribute__((visibility("default")))

namespace {

void *allocate(size_t size, size_t alignment = 0) {
  void *made = alignment == 0 ? malloc(size) : aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  if (made == nullptr) throw std::bad_alloc();
  return made;
}

}  // namespace

EXPORTED void *operator new(size_t size) { return allocate(size); }
EXPORTED void *operator new[](size_t size) { return allocate(size); }
EXPORTED void *operator new(size_t size, std::align_val_t alignment) {
  return allocate(size, static_cast<size_t>(alignment));
}
EXPORTED void *operator new[](size_t size, std::align_val_t alignment) {
  return allocate(size, static_cast<size_t>(alignment));
}
EXPORTED void *operator new(size_t size, const std::nothrow_t &) noexcept { return malloc(size); }
EXPORTED void *operator new[](size_t size, const std::nothrow_t &) noexcept { return malloc(size); }

EXPORTED void operator delete(void *memory) noexcept { free(memory); }
EXPORTED void operator delete[](void *memory) noexcept { free(memory); }
EXPORTED void operator delete(void *memory, size_t) noexcept { free(memory); }
EXPORTED void operator delete[](void *memory, size_t) noexcept { free(memory); }
EXPORTED void operator delete(void *memory, std::align_val_t) noexcept { free(memory); }
EXPORTED void operator delete[](void *memory, std::align_val_t) noexcept { free(memory); }
EXPORTED void operator delete(void *memory, size_t, std::align_val_t) noexcept { free(memory); }
EXPORTED void operator delete[](void *memory, size_t, std::align_val_t) noexcept { free(memory); }
EXPORTED void operator delete(void *memory, const std::nothrow_t &) noexcept { free(memory); }
EXPORTED void operator delete[](void *memory, const std::nothrow_t &) noexcept { free(memory); }
