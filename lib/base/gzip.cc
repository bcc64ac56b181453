// SPDX-License-Identifier: Apache-2.0
#include "base/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <array>

namespace tutti::impl::base {

namespace {

constexpr int kAnyHeader = 15 + 32;   // largest window; gzip or zlib
constexpr int kGzipHeader = 15 + 16;  // what follows a first gzip member
constexpr int kZlibHeader = 15;
constexpr int kNoHeader = -15;
constexpr size_t kMostAtOnce = size_t{1} << 30;
constexpr int64_t kRatioGrace = 1 << 20;

Bytef *input_pointer(const char *data) { return reinterpret_cast<Bytef *>(const_cast<char *>(data)); }

}  // namespace

struct Inflater::State {
  z_stream stream{};
  InflateLimits limits;
  int64_t total_in = 0;
  int64_t total_out = 0;
  bool started = false;
  bool member_ended = false;
  bool is_gzip = false, is_bare = false;
  Status failure;

  ~State() {
    if (started) inflateEnd(&stream);
  }

  Status fail(Status status) { return failure = std::move(status); }
  // The one step of zlib, with its answers turned into ours.
  Status step(std::string_view *input, std::span<char> *output);
  Status begin_next_member(std::string_view *input);
};

Status Inflater::State::begin_next_member(std::string_view *input) {
  // Writers pad with zeros up to a block.
  const size_t zeros = std::min(input->find_first_not_of('\0'), input->size());
  input->remove_prefix(zeros);
  total_in += static_cast<int64_t>(zeros);
  if (input->empty()) return Status();
  if (!is_gzip || input->front() != '\x1f')
    return fail(data_loss("unexpected data after the end of the compressed data"));
  if (inflateReset2(&stream, kGzipHeader) != Z_OK) return fail(internal_error("zlib cannot be reset"));
  member_ended = false;
  return Status();
}

Status Inflater::State::step(std::string_view *input, std::span<char> *output) {
  if (total_in == 0) is_gzip = !is_bare && input->front() == '\x1f';
  const size_t room = std::min(output->size(), kMostAtOnce), given = std::min(input->size(), kMostAtOnce);
  stream.next_in = input_pointer(input->data());
  stream.avail_in = static_cast<uInt>(given);
  stream.next_out = reinterpret_cast<Bytef *>(output->data());
  stream.avail_out = static_cast<uInt>(room);
  const int answer = ::inflate(&stream, Z_NO_FLUSH);
  const size_t used = given - stream.avail_in, made = room - stream.avail_out;
  input->remove_prefix(used);
  *output = output->subspan(made);
  total_in += static_cast<int64_t>(used);
  total_out += static_cast<int64_t>(made);
  if (answer == Z_STREAM_END) member_ended = true;
  if (answer == Z_MEM_ERROR) return fail(resource_exhausted("out of memory while inflating"));
  if (answer != Z_OK && answer != Z_STREAM_END && answer != Z_BUF_ERROR) {
    const char *reason = stream.msg != nullptr ? stream.msg : "bad data";
    return fail(data_loss("compressed data is damaged near byte ", total_in, ": ", reason).with_domain("zlib", answer));
  }
  if (total_out > limits.max_output_bytes) {
    return fail(
        resource_exhausted("compressed data inflates to more than the limit of ", limits.max_output_bytes, " bytes"));
  }
  if ((total_out - kRatioGrace) / std::max<int64_t>(1, total_in) > limits.max_ratio) {
    return fail(resource_exhausted("compressed data inflates more than ", limits.max_ratio, " times"));
  }
  return Status();
}

Inflater::Inflater(std::unique_ptr<State> state) : state_(std::move(state)) {}
Inflater::Inflater(Inflater &&) noexcept = default;
Inflater &Inflater::operator=(Inflater &&) noexcept = default;
Inflater::~Inflater() = default;

Result<Inflater> Inflater::create(InflateLimits limits, Header header) {
  auto state = std::make_unique<State>();
  state->limits = limits;
  if (inflateInit2(&state->stream, header == Header::none ? kNoHeader : kAnyHeader) != Z_OK)
    return resource_exhausted("zlib cannot be initialized");
  state->started = true;
  state->is_bare = header == Header::none;
  return Inflater(std::move(state));
}

Result<Inflater::Progress> Inflater::inflate(std::string_view input, std::span<char> output) {
  const size_t input_size = input.size(), output_size = output.size();
  TUTTI_TRY(state_->failure);
  while (!input.empty()) {
    if (state_->member_ended) TUTTI_TRY(state_->begin_next_member(&input));
    if (input.empty() || output.empty()) break;
    const Status status = state_->step(&input, &output);
    // What came out before the damage is good; the error waits for the next call.
    if (!status.ok() && output.size() < output_size)
      return Progress{input_size - input.size(), output_size - output.size()};
    TUTTI_TRY(status);
  }
  // What zlib holds back comes out without more input.
  if (input.empty() && !output.empty() && !state_->member_ended && state_->total_in > 0) {
    TUTTI_TRY(state_->step(&input, &output));
  }
  return Progress{input_size - input.size(), output_size - output.size()};
}

bool Inflater::at_end() const { return state_->member_ended && state_->failure.ok(); }

Status Inflater::finish() const {
  TUTTI_TRY(state_->failure);
  if (at_end()) return Status();
  return data_loss("compressed data ends early, after ", state_->total_in, " bytes");
}

bool looks_like_gzip(std::string_view bytes) { return bytes.starts_with("\x1f\x8b"); }

Result<std::string> gunzip(std::string_view bytes, InflateLimits limits) {
  TUTTI_ASSIGN(Inflater inflater, Inflater::create(limits));
  std::string out;
  std::vector<char> piece(size_t{1} << 16);
  for (;;) {
    TUTTI_ASSIGN(const Inflater::Progress progress, inflater.inflate(bytes, piece));
    bytes.remove_prefix(progress.consumed);
    out.append(piece.data(), progress.produced);
    if (bytes.empty() && progress.produced < piece.size()) break;
    if (out.size() > piece.size() * 8 && piece.size() < (size_t{1} << 22)) piece.resize(piece.size() * 4);
  }
  TUTTI_TRY(inflater.finish());
  return out;
}

struct Deflater::State {
  z_stream stream{};
  bool started = false;

  ~State() {
    if (started) deflateEnd(&stream);
  }
};

Deflater::Deflater(std::unique_ptr<State> state) : state_(std::move(state)) {}
Deflater::Deflater(Deflater &&) noexcept = default;
Deflater &Deflater::operator=(Deflater &&) noexcept = default;
Deflater::~Deflater() = default;

Result<Deflater> Deflater::create(Format format, int level, int memory_level) {
  if (level < 1 || level > 9) return invalid_argument("compression level: expected 1 to 9, got ", level);
  auto state = std::make_unique<State>();
  const int window = format == Format::gzip ? kGzipHeader : kZlibHeader;
  if (deflateInit2(&state->stream, level, Z_DEFLATED, window, memory_level, Z_DEFAULT_STRATEGY) != Z_OK) {
    return resource_exhausted("zlib cannot be initialized");
  }
  state->started = true;
  return Deflater(std::move(state));
}

Status Deflater::step(std::string_view input, bool last, std::string &out) {
  z_stream &stream = state_->stream;
  std::array<char, 1 << 15> piece;
  for (int answer = Z_OK; last ? answer != Z_STREAM_END : !input.empty();) {
    const size_t given = std::min(input.size(), kMostAtOnce);
    stream.next_in = input_pointer(input.data());
    stream.avail_in = static_cast<uInt>(given);
    do {
      stream.next_out = reinterpret_cast<Bytef *>(piece.data());
      stream.avail_out = static_cast<uInt>(piece.size());
      answer = deflate(&stream, last ? Z_FINISH : Z_NO_FLUSH);
      if (answer == Z_STREAM_ERROR) return internal_error("zlib cannot compress");
      out.append(piece.data(), piece.size() - stream.avail_out);
    } while (stream.avail_out == 0);
    input.remove_prefix(given - stream.avail_in);
  }
  return Status();
}

Result<std::string> gzip(std::string_view bytes, int level) {
  TUTTI_ASSIGN(Deflater deflater, Deflater::create(Deflater::Format::gzip, level));
  std::string out;
  TUTTI_TRY(deflater.append(bytes, out));
  TUTTI_TRY(deflater.finish(out));
  return out;
}

}  // namespace tutti::impl::base
