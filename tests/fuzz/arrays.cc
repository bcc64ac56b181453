// SPDX-License-Identifier: Apache-2.0
// Any bytes are a NumPy array or archive, or an error; a file of N bytes gives no more elements than its bytes can
// hold.
#include <cstdlib>
#include <cstring>

#include "data/format/npy.h"

using namespace tutti::impl;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const auto whole = tensor::Buffer::allocate(static_cast<int64_t>(size) + 1).value();
  if (size > 0) std::memcpy(whole->data(), data, size);
  const auto buffer = tensor::Buffer::slice(whole, 0, static_cast<int64_t>(size)).value();
  const auto array = data::decode_npy(buffer, 0, buffer->size_bytes(), "fuzz.npy");
  if (array.ok() && array->elements() > buffer->size_bytes()) std::abort();
  const auto archive = data::decode_npz(buffer, {}, "fuzz.npz", int64_t{1} << 24);
  return 0;
}
