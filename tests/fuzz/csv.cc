// SPDX-License-Identifier: Apache-2.0
// Any bytes are CSV or an error; reading ends, values are no longer than the file, and lines are counted.
#include "data/format/csv.h"

#include <algorithm>
#include <cstdlib>

#include "data/format/field.h"

using namespace tutti::impl;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char *>(data), size);
  (void)data::parse_field(bytes);
  auto stream = data::ByteStream::open(data::memory_file(bytes, "fuzz"), data::Compression::none);
  if (!stream.ok()) std::abort();
  data::CsvReader reader(',');
  if (!reader.begin(*stream).ok()) std::abort();
  size_t length = 0;
  for (int64_t offset = -1;;) {
    const auto more = reader.read(*stream);
    if (more.ok() && !*more) break;
    if (stream->offset() <= offset) std::abort();
    offset = stream->offset();
    if (!more.ok()) continue;
    for (const data::CsvReader::Value &value : reader.values())
      length += value.text.size();
  }
  if (length > size || stream->offset() != static_cast<int64_t>(size)) std::abort();
  const auto ends = std::count(bytes.begin(), bytes.end(), '\n');
  return reader.next_line() <= ends + 2 ? 0 : (std::abort(), 0);
}
