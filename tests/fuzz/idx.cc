// SPDX-License-Identifier: Apache-2.0
// Any bytes are an IDX file or an error; a file of N bytes gives no more elements than its bytes can hold, 1,032 times
// as many when it is compressed.
#include "data/format/idx.h"

#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const auto read =
      tutti::impl::data::decode_idx(std::string_view(reinterpret_cast<const char *>(data), size), "fuzz.idx");
  if (read.ok() && read->elements() > static_cast<int64_t>(size) * 1032) std::abort();
  return 0;
}
