// SPDX-License-Identifier: Apache-2.0
// Any pattern matches any name or does not, soon; a text without special meaning matches itself alone.
#include <cstdlib>

#include "data/file/file_system.h"

using namespace tutti::impl;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char *>(data), size);
  const size_t middle = bytes.find('\n');
  const std::string_view pattern = bytes.substr(0, middle);
  const std::string_view name = middle == std::string_view::npos ? pattern : bytes.substr(middle + 1);
  const bool matches = data::matches_pattern(pattern, name);
  const bool is_plain = !data::is_pattern(pattern) && pattern.find('\\') == std::string_view::npos;
  if (is_plain && matches != (pattern == name)) std::abort();
  return 0;
}
