// SPDX-License-Identifier: Apache-2.0
// Any text is JSON or an error; what was read reads back equal from what is written of it.
#include "base/json.h"

#include <cstdlib>
#include <string_view>

using tutti::impl::base::Json;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const auto read = Json::parse(std::string_view(reinterpret_cast<const char *>(data), size));
  if (!read.ok()) return 0;
  for (const int indent : {-1, 2}) {
    const auto again = Json::parse(read->dump(indent));
    if (!again.ok() || !(*again == *read)) std::abort();
  }
  return 0;
}
