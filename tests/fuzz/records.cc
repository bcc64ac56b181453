// SPDX-License-Identifier: Apache-2.0
// Any bytes are a file of records (plain, gzip or zlib), or an error; and any record is an Example or an error. What
// comes out is no more than the file can hold, and reading ends; a thread that reads ahead changes nothing.
#include <cstdlib>
#include <string_view>
#include <vector>

#include "base/cancel.h"
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

// What a file of records gives: the size of each, or -1 for one that fails. With a thread that reads ahead or without.
std::vector<int64_t> read_records(std::string_view bytes, bool reads_ahead) {
  std::vector<int64_t> sizes;
  auto stream = data::open_record_stream(data::memory_file(bytes, "fuzz"), data::Compression::automatic);
  if (!stream.ok()) return sizes;
  if (reads_ahead && stream->is_worth_reading_ahead() && !stream->read_ahead(base::CancelToken::create()).ok())
    std::abort();
  data::RecordReader reader;
  tensor::Tensor record;
  for (size_t total = 0;;) {
    const auto more = reader.read(*stream, record);
    if (more.ok() && !*more) return sizes;
    if (!more.ok()) sizes.push_back(-1);
    if (!more.ok() && (stream->has_failed() || !reader.can_go_on())) return sizes;
    if (!more.ok()) continue;
    const std::string_view text = tensor::bytes_at(record, 0);
    sizes.push_back(static_cast<int64_t>(text.size()));
    total += text.size() + 16;
    if (total > bytes.size() * 1032 + 16) std::abort();
    read_example(text);
    read_sequence_example(text);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char *>(data), size);
  read_example(bytes);
  read_sequence_example(bytes);
  const std::vector<int64_t> sizes = read_records(bytes, false);
  // Files that are worth it are large: -max_len=6000000, and one of them to begin with.
  if (read_records(bytes, true) != sizes) std::abort();
  return 0;
}
