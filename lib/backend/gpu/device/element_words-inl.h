// SPDX-License-Identifier: Apache-2.0
//
// Elements as words of their size, for kernels that do not compute with them. Included by .cu files only.
#ifndef TUTTI_BACKEND_GPU_DEVICE_ELEMENT_WORDS_INL_H_
#define TUTTI_BACKEND_GPU_DEVICE_ELEMENT_WORDS_INL_H_

#include <tutti_gpu.h>

#include <cstdint>

#include "backend/gpu/device/device-inl.h"

namespace tutti::impl::backend::gpu {

/// Calls function(W{}) with a word of so many bytes: 1, 2, 4, 8 or 16.
template <typename Function>
gpuError_t with_word(int64_t bytes, Function function) {
  switch (bytes) {
    case 1:
      return function(uint8_t{});
    case 2:
      return function(uint16_t{});
    case 4:
      return function(uint32_t{});
    case 8:
      return function(uint64_t{});
    case 16:
      return function(Bytes16{});
    default:
      return gpuErrorInvalidValue;
  }
}

/// 16 bytes of one element, again and again.
inline Bytes16 repeated(uint64_t element, int64_t element_bytes) {
  Bytes16 word{};
  for (int64_t at = 0; at < 16; at += element_bytes)
    memcpy(reinterpret_cast<char *>(&word) + at, &element, static_cast<size_t>(element_bytes));
  return word;
}

/// The first bytes of a repeated element as a word.
template <typename W>
__device__ inline W first_word(const Bytes16 &repeated) {
  W word;
  memcpy(&word, &repeated, sizeof(word));
  return word;
}

/// The widest word, of `element_bytes` and up to 16, that divides all of `sizes`: bytes and addresses combined by or.
inline int64_t widest_word(uint64_t sizes, int64_t element_bytes) {
  int64_t width = 16;
  while (width > element_bytes && sizes % static_cast<uint64_t>(width) != 0)
    width /= 2;
  return width;
}

}  // namespace tutti::impl::backend::gpu

#endif  // TUTTI_BACKEND_GPU_DEVICE_ELEMENT_WORDS_INL_H_
