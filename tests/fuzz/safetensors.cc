// SPDX-License-Identifier: Apache-2.0
// Any JSON is the header of a safetensors file with so much data, or an error; tensors then fill the data without
// holes. The first two bytes say how much data there is.
#include "checkpoint/safetensors.h"

#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 2) return 0;
  const int64_t data_bytes = data[0] << 8 | data[1];
  const std::string_view json(reinterpret_cast<const char *>(data) + 2, size - 2);
  const auto read = tutti::impl::checkpoint::parse_safetensors_header(json, data_bytes);
  if (!read.ok()) return 0;
  int64_t end = 0;
  for (const auto &entry : read->entries) {
    if (entry.begin_byte != end || entry.end_byte < entry.begin_byte) std::abort();
    end = entry.end_byte;
  }
  if (end != data_bytes) std::abort();
  return 0;
}
