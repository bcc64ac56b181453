// SPDX-License-Identifier: Apache-2.0
// Any bytes are a tar archive (plain or gzip) or an error; reading ends, and parts lie in the file.
#include "data/format/tar.h"

#include <cstdlib>

using namespace tutti::impl;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char *>(data), size);
  auto stream = data::ByteStream::open(data::memory_file(bytes, "fuzz"), data::Compression::automatic);
  if (!stream.ok()) return 0;
  data::TarReader reader;
  data::TarSample sample;
  for (int64_t offset = -1;;) {
    const auto more = reader.read(*stream, sample);
    if (!more.ok() || !*more) return 0;
    if (stream->offset() <= offset) std::abort();
    offset = stream->offset();
    for (const data::TarSample::Part &part : sample.parts) {
      if (part.begin > sample.bytes.size() || sample.bytes.size() - part.begin < part.size) std::abort();
    }
  }
}
