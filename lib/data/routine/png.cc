// SPDX-License-Identifier: Apache-2.0
#include <spng.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "data/routine/image_file.h"

namespace tutti::impl::data {

using base::Result;
using base::Status;

namespace {

// Deflate makes at most 1032 bytes of one; of one bit per pixel these are eight times as many.
constexpr int64_t kMostPngPixelsPerByte = 1032 * 8;
constexpr int64_t kSmallPng = int64_t{1} << 16;

Status failure(int error, std::string_view what) {
  if (error == SPNG_EMEM) return base::resource_exhausted("the PNG file ", what, ": ", spng_strerror(error));
  return base::data_loss("the PNG file ", what, ": ", spng_strerror(error));
}

constexpr size_t kSignature = 8, kChunkHead = 8, kChunkTail = 4;  // length and kind; checksum

constexpr std::string_view kEndChunk("\0\0\0\0IEND\xae\x42\x60\x82", 12);

uint32_t big_endian(const char *bytes) {
  uint32_t value = 0;
  for (int i = 0; i < 4; ++i)
    value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

// Critical chunks, whose kind begins with a capital letter, and transparency. The others (texts, profiles, times) leave
// the pixels as they are; the library would take memory for them.
bool is_read(std::string_view kind) { return (kind[0] & 0x20) == 0 || kind == "tRNS"; }

}  // namespace

// The file without the chunks that nobody reads, and with an end where only that is missing. PNG specification, 5.3.
class PngChunks {
 public:
  PngChunks() = default;
  explicit PngChunks(std::string_view contents) : left_(contents), piece_(std::min(kSignature, contents.size())) {}

  // False where less is left.
  bool read(char *target, size_t size) {
    while (size > 0) {
      if (piece_ == 0 && !find_piece()) return false;
      const size_t here = std::min(size, piece_);
      std::memcpy(target, left_.data(), here);
      left_.remove_prefix(here);
      piece_ -= here;
      target += here;
      size -= here;
    }
    return true;
  }

 private:
  bool find_piece() {
    while (left_.size() >= kChunkHead) {
      const size_t whole = kChunkHead + big_endian(left_.data()) + kChunkTail;
      const size_t here = std::min(whole, left_.size());
      if (is_read(left_.substr(4, 4))) {
        piece_ = here;
        return true;
      }
      left_.remove_prefix(here);
    }
    if (left_.empty() && !has_end_) left_ = kEndChunk;
    has_end_ = true;
    piece_ = left_.size();  // of a chunk's head, or of the end
    return piece_ > 0;
  }

  std::string_view left_;
  bool has_end_ = false;
  size_t piece_ = 0;  // bytes of `left_` to give before the next chunk is looked at
};

namespace {

int read_chunks(spng_ctx *, void *chunks, void *target, size_t size) {
  return static_cast<PngChunks *>(chunks)->read(static_cast<char *>(target), size) ? 0 : SPNG_IO_EOF;
}

}  // namespace

struct PngReader::State {
  spng_ctx *decoder = nullptr;
  spng_ihdr header{};
  PngChunks chunks;
  std::vector<uint8_t> colors;  // where gray is made of them

  ~State() { close(); }
  void close() {
    spng_ctx_free(decoder);
    decoder = nullptr;
  }
  Status decode(int format, void *pixels, size_t size) {
    size_t needed = 0;
    int error = spng_decoded_image_size(decoder, format, &needed);
    if (error != 0) return failure(error, "cannot be decoded");
    if (needed != size) return base::internal_error("a PNG image of ", needed, " bytes, expected ", size);
    error = spng_decode_image(decoder, pixels, size, format, format == SPNG_FMT_RGBA8 ? SPNG_DECODE_TRNS : 0);
    // The pixels may be there before the last of their bytes, and the checksum behind them, have been read.
    if (error == 0) error = spng_decode_chunks(decoder);
    return error == 0 ? Status() : failure(error, "is damaged");
  }
};

PngReader::PngReader() : state_(std::make_unique<State>()) {}
PngReader::~PngReader() = default;
bool PngReader::is_built() { return true; }

Result<PixelSize> PngReader::open(std::string_view contents, int64_t maximum_pixels) {
  State &state = *state_;
  if (!is_png(contents)) return base::invalid_argument("not a PNG file: it does not begin with the PNG signature");
  state.close();
  state.decoder = spng_ctx_new(0);
  if (state.decoder == nullptr) return base::resource_exhausted("a PNG decoder cannot be made");
  spng_set_chunk_limits(state.decoder, size_t{1} << 20, size_t{1} << 20);
  state.chunks = PngChunks(contents);
  int error = spng_set_png_stream(state.decoder, read_chunks, &state.chunks);
  if (error == 0) error = spng_get_ihdr(state.decoder, &state.header);
  if (error != 0) return failure(error, "has no valid header");
  const int64_t pixels = static_cast<int64_t>(state.header.width) * state.header.height;
  if (pixels > maximum_pixels) {
    return base::resource_exhausted("the PNG file says that it has ", state.header.width, " x ", state.header.height,
                                    " pixels, more than maximum_pixels = ", maximum_pixels);
  }
  if (pixels > static_cast<int64_t>(contents.size()) * kMostPngPixelsPerByte + kSmallPng) {
    return base::data_loss("the PNG file says that it has ", pixels, " pixels, which ", contents.size(),
                           " bytes cannot hold");
  }
  return PixelSize{static_cast<int64_t>(state.header.height), static_cast<int64_t>(state.header.width)};
}

Status PngReader::read(int32_t channels, uint8_t *pixels) {
  State &state = *state_;
  if (state.decoder == nullptr) return base::failed_precondition("no PNG file is open");
  const size_t count = static_cast<size_t>(state.header.width) * state.header.height;
  const bool is_small_gray = state.header.color_type == SPNG_COLOR_TYPE_GRAYSCALE && state.header.bit_depth <= 8;
  Status status;
  if (channels == 4) {
    status = state.decode(SPNG_FMT_RGBA8, pixels, count * 4);
  } else if (channels == 3) {
    status = state.decode(SPNG_FMT_RGB8, pixels, count * 3);
  } else if (is_small_gray) {
    status = state.decode(SPNG_FMT_G8, pixels, count);
  } else {
    state.colors.resize(count * 3);
    status = state.decode(SPNG_FMT_RGB8, state.colors.data(), count * 3);
    for (size_t i = 0; status.ok() && i < count; ++i)
      pixels[i] = gray_of(state.colors.data() + 3 * i);
  }
  state.close();
  return status;
}

Result<std::string> write_png(const uint8_t *pixels, const PixelSize &size, int32_t channels) {
  const std::unique_ptr<spng_ctx, decltype(&spng_ctx_free)> encoder(spng_ctx_new(SPNG_CTX_ENCODER), spng_ctx_free);
  if (encoder == nullptr) return base::resource_exhausted("a PNG encoder cannot be made");
  spng_ihdr header{};
  header.width = static_cast<uint32_t>(size.width);
  header.height = static_cast<uint32_t>(size.height);
  header.bit_depth = 8;
  header.color_type = channels == 1   ? SPNG_COLOR_TYPE_GRAYSCALE
                      : channels == 3 ? SPNG_COLOR_TYPE_TRUECOLOR
                                      : SPNG_COLOR_TYPE_TRUECOLOR_ALPHA;
  int error = spng_set_option(encoder.get(), SPNG_ENCODE_TO_BUFFER, 1);
  if (error == 0) error = spng_set_ihdr(encoder.get(), &header);
  const size_t bytes = static_cast<size_t>(size.height * size.width) * static_cast<size_t>(channels);
  if (error == 0) error = spng_encode_image(encoder.get(), pixels, bytes, SPNG_FMT_PNG, SPNG_ENCODE_FINALIZE);
  size_t written = 0;
  const std::unique_ptr<void, decltype(&std::free)> file(
      error == 0 ? spng_get_png_buffer(encoder.get(), &written, &error) : nullptr, std::free);
  if (file == nullptr) return base::internal_error("an image cannot be written as PNG: ", spng_strerror(error));
  return std::string(static_cast<const char *>(file.get()), written);
}

}  // namespace tutti::impl::data
