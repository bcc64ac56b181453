// SPDX-License-Identifier: Apache-2.0
#include <spng.h>

#include <vector>

#include "data/routine/image_file.h"

namespace tutti::impl::data {

using base::Result;
using base::Status;

namespace {

// Deflate makes at most 1032 bytes of one; of one bit per pixel these are eight times as many.
constexpr int64_t kMostPixelsPerByte = 1032 * 8;
constexpr int64_t kSmallImage = int64_t{1} << 16;

Status failure(int error, std::string_view what) {
  if (error == SPNG_EMEM) return base::resource_exhausted("the PNG file ", what, ": ", spng_strerror(error));
  return base::data_loss("the PNG file ", what, ": ", spng_strerror(error));
}

// 0.299 R + 0.587 G + 0.114 B in units of 2^-16, rounded; as Pillow does.
uint8_t gray_of(const uint8_t *rgb) {
  return static_cast<uint8_t>((19595U * rgb[0] + 38470U * rgb[1] + 7471U * rgb[2] + 0x8000U) >> 16);
}

}  // namespace

struct PngReader::State {
  spng_ctx *decoder = nullptr;
  spng_ihdr header{};
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
    return error == 0 ? Status() : failure(error, "is damaged");
  }
};

PngReader::PngReader() : state_(std::make_unique<State>()) {}
PngReader::~PngReader() = default;

Result<PixelSize> PngReader::open(std::string_view contents, int64_t maximum_pixels) {
  State &state = *state_;
  if (!is_png(contents)) return base::invalid_argument("no PNG file: it does not begin with its signature");
  state.close();
  state.decoder = spng_ctx_new(0);
  if (state.decoder == nullptr) return base::resource_exhausted("a PNG decoder cannot be made");
  // Chunks beside the image are not wanted.
  spng_set_chunk_limits(state.decoder, size_t{1} << 20, size_t{1} << 20);
  int error = spng_set_png_buffer(state.decoder, contents.data(), contents.size());
  if (error == 0) error = spng_get_ihdr(state.decoder, &state.header);
  if (error != 0) return failure(error, "has no valid header");
  const int64_t pixels = static_cast<int64_t>(state.header.width) * state.header.height;
  if (pixels > maximum_pixels) {
    return base::resource_exhausted("the PNG file says that it has ", state.header.width, " x ", state.header.height,
                                    " pixels, more than maximum_pixels = ", maximum_pixels);
  }
  if (pixels > static_cast<int64_t>(contents.size()) * kMostPixelsPerByte + kSmallImage) {
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

}  // namespace tutti::impl::data
