// SPDX-License-Identifier: Apache-2.0
// Any bytes are a file of records (plain, gzip or zlib), or an error; and any record is an Example or an error. What
// comes out is no more than the file can hold, and reading ends.
#include <cstdlib>

#include "data/format/example.h"
#include "data/format/record.h"
#include "data/format/sequence_example.h"
#include "tensor/bytes_tensor.h"

using namespace tutti::impl;

namespace {

const data::ExampleParser &parser() {
  static const auto *const made = new data::ExampleParser(
      data::ExampleParser::create({"label: i64", "box: f32[4] = 1", "words: bytes[?]", "ids: u8[?, 2]", "x: f16[2]"})
          .value());
  return *made;
}

void read_example(std::string_view bytes) {
  std::vector<tensor::Tensor> tensors(5);
  (void)parser().parse(bytes, tensors);
}

const data::SequenceExampleParser &sequence_parser() {
  static const auto *const made = new data::SequenceExampleParser(
      data::SequenceExampleParser::create(
          {"id: i64 = 0"}, {"frames: f32[2] = 1", "word: bytes = x", "letters: bytes[?]", "tokens: u8[?, 2]"})
          .value());
  return *made;
}

void read_sequence_example(std::string_view bytes) {
  std::vector<tensor::Tensor> tensors(sequence_parser().components().size());
  (void)sequence_parser().parse(bytes, tensors);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char *>(data), size);
  read_example(bytes);
  read_sequence_example(bytes);
  auto stream = data::open_record_stream(data::memory_file(bytes, "fuzz"), data::Compression::automatic);
  if (!stream.ok()) return 0;
  data::RecordReader reader;
  tensor::Tensor record;
  for (size_t total = 0;;) {
    const auto more = reader.read(*stream, record);
    if (more.ok() && !*more) return 0;
    if (!more.ok() && (stream->has_failed() || !reader.can_go_on())) return 0;
    if (!more.ok()) continue;
    const std::string_view text = tensor::bytes_at(record, 0);
    total += text.size() + 16;
    if (total > size * 1032 + 16) std::abort();
    read_example(text);
    read_sequence_example(text);
  }
}
