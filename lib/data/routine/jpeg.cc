// SPDX-License-Identifier: Apache-2.0
//
// JPEG by libjpeg-turbo's own interface. It reports errors by calling back, and the callback must not return: it jumps
// to where the call was made, over C frames only; so the functions that call the library hold nothing that needs
// destroying.
#include <cstddef>
#include <cstdio>

#include <jpeglib.h>

// After jpeglib.h, which declares what it uses.
#include <jerror.h>

#include <algorithm>
#include <array>
#include <csetjmp>
#include <vector>

#include "base/text.h"
#include "data/routine/image_file.h"

namespace tutti::impl::data {

using base::Result;
using base::Status;

struct JpegErrorManager {
  jpeg_error_mgr base;  // first: the library's pointer to it is a pointer to this
  std::jmp_buf jump;
  std::array<char, JMSG_LENGTH_MAX> text;
  bool is_damaged;  // data was missing or made no sense; the library went on with something
  bool ends_early;  // the library made up the end of the file
};

namespace {

// Each block of 64 samples costs at least one bit, and the samples of some component stand for at most 16 pixels.
constexpr int64_t kMostJpegPixelsPerByte = 16 * 64 * 8;
constexpr int64_t kSmallJpeg = int64_t{1} << 16;
// Scans of one file: a progressive file has about ten, and each is a pass over the whole image.
constexpr int kMostScans = 500;

JpegErrorManager &manager_of(j_common_ptr decoder) { return *reinterpret_cast<JpegErrorManager *>(decoder->err); }

void on_error(j_common_ptr decoder) {
  JpegErrorManager &manager = manager_of(decoder);
  manager.base.format_message(decoder, manager.text.data());
  std::longjmp(manager.jump, 1);
}

void on_message(j_common_ptr decoder, int level) {
  JpegErrorManager &manager = manager_of(decoder);
  if (level >= 0 || manager.is_damaged) return;
  switch (manager.base.msg_code) {
    case JWRN_JPEG_EOF:
      manager.ends_early = true;
      manager.base.format_message(decoder, manager.text.data());
      break;
    case JWRN_HIT_MARKER:
    case JWRN_HUFF_BAD_CODE:
    case JWRN_MUST_RESYNC:
    case JWRN_NOT_SEQUENTIAL:
    case JWRN_TOO_MUCH_DATA:
    case JWRN_BOGUS_PROGRESSION:
    case JWRN_ARITH_BAD_CODE:
      manager.is_damaged = true;
      manager.base.format_message(decoder, manager.text.data());
      break;
    default:
      break;  // leaves the pixels as they are
  }
}

void on_output(j_common_ptr) {}

void on_progress(j_common_ptr decoder) {
  const auto *const reader = reinterpret_cast<j_decompress_ptr>(decoder);
  if (reader->input_scan_number <= kMostScans) return;
  JpegErrorManager &manager = manager_of(decoder);
  std::snprintf(manager.text.data(), manager.text.size(), "more than %d scans", kMostScans);
  std::longjmp(manager.jump, 1);
}

}  // namespace

struct JpegReader::State {
  struct Span {
    int64_t left, width;
  };
  struct Target {
    uint8_t *pixels;
    int64_t row_bytes;
  };

  jpeg_decompress_struct decoder{};
  JpegErrorManager errors{};
  jpeg_progress_mgr progress{};
  bool is_ready = false;  // the decoder is made
  bool is_open = false;
  bool has_inks = false;      // cyan, magenta, yellow and black
  int32_t channels = 3;       // wanted
  std::vector<uint8_t> line;  // wider than the window

  // The functions below call the library: false = manager.text says what is wrong.
  bool create();
  bool read_header(std::string_view contents);
  bool scale(const JpegSettings &settings);
  bool read(const PixelWindow &window, const Span &decoded, const Target &target, Rest rest);
  void read_rest();
  bool has_all_data() const;
  void choose_ratio(const JpegSettings &settings);
  void mix_inks(const uint8_t *inks, int64_t width, uint8_t *to) const;
  Status failure(std::string_view what) const {
    return base::data_loss("the JPEG file ", what, ": ", errors.text.data());
  }
};

bool JpegReader::State::create() {
  if (is_ready) return true;
  decoder.err = jpeg_std_error(&errors.base);
  errors.base.error_exit = on_error;
  errors.base.emit_message = on_message;
  errors.base.output_message = on_output;
  if (setjmp(errors.jump) != 0) return false;
  jpeg_create_decompress(&decoder);
  progress.progress_monitor = on_progress;
  decoder.progress = &progress;
  is_ready = true;
  return true;
}

bool JpegReader::State::read_header(std::string_view contents) {
  if (setjmp(errors.jump) != 0) return false;
  errors.is_damaged = errors.ends_early = false;
  jpeg_abort_decompress(&decoder);
  jpeg_mem_src(&decoder, reinterpret_cast<const unsigned char *>(contents.data()), contents.size());
  jpeg_read_header(&decoder, TRUE);
  return true;
}

// Ratios go from large to small; the library rounds sizes up.
void JpegReader::State::choose_ratio(const JpegSettings &settings) {
  decoder.scale_num = 1;
  decoder.scale_denom = static_cast<unsigned>(settings.ratio);
  if (settings.minimum_height == 0 && settings.minimum_width == 0) return;
  for (unsigned ratio = 8; ratio > 1; ratio /= 2) {
    decoder.scale_denom = ratio;
    const int64_t height = (decoder.image_height + ratio - 1) / ratio;
    const int64_t width = (decoder.image_width + ratio - 1) / ratio;
    if (height >= settings.minimum_height && width >= settings.minimum_width) return;
  }
  decoder.scale_denom = 1;
}

bool JpegReader::State::scale(const JpegSettings &settings) {
  if (setjmp(errors.jump) != 0) return false;
  choose_ratio(settings);
  decoder.out_color_space = settings.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  channels = settings.channels;
  has_inks = decoder.num_components == 4;
  if (has_inks) decoder.out_color_space = JCS_CMYK;
  decoder.dct_method = settings.has_fast_dct ? JDCT_IFAST : JDCT_ISLOW;
  decoder.do_fancy_upsampling = settings.has_fancy_upsampling ? TRUE : FALSE;
  jpeg_calc_output_dimensions(&decoder);
  return true;
}

// Colours of light for those of print. Adobe's programs, which mark their files, store how much light passes an ink.
void JpegReader::State::mix_inks(const uint8_t *inks, int64_t width, uint8_t *to) const {
  const unsigned flip = decoder.saw_Adobe_marker ? 0 : 255;
  for (int64_t x = 0; x < width; ++x, inks += 4, to += channels) {
    uint8_t rgb[3];
    for (int c = 0; c < 3; ++c)
      rgb[c] = static_cast<uint8_t>(((inks[c] ^ flip) * (inks[3] ^ flip) + 127) / 255);
    if (channels == 1) {
      to[0] = gray_of(rgb);
    } else {
      std::copy_n(rgb, 3, to);
    }
  }
}

// Rows that are skipped to the end of an image are not even looked at, those before a row that is read are.
void JpegReader::State::read_rest() {
  const JDIMENSION left = decoder.output_height - decoder.output_scanline;
  if (left == 0) return;
  if (left > 1) jpeg_skip_scanlines(&decoder, left - 1);
  JSAMPROW rows[] = {line.data()};
  jpeg_read_scanlines(&decoder, rows, 1);
}

// Where the file's end marker was missing: had all scans come, each to its end? A scan without its last data is damage
// that the library tells, but not so in arithmetic coding, where zeros may be left out.
bool JpegReader::State::has_all_data() const {
  if (decoder.arith_code) return false;
  for (int component = 0; component < decoder.num_components; ++component) {
    if (decoder.comp_info[component].quant_table == nullptr) return false;  // set by its first scan
    if (!decoder.progressive_mode) continue;
    // Bits of each coefficient that are still to come, -1 = all.
    const int *const bits = decoder.coef_bits[component];
    if (std::any_of(bits, bits + DCTSIZE2, [](int left) { return left != 0; })) return false;
  }
  return true;
}

bool JpegReader::State::read(const PixelWindow &window, const Span &span, const Target &target, Rest rest) {
  if (setjmp(errors.jump) != 0) return false;
  jpeg_start_decompress(&decoder);
  const auto samples = static_cast<size_t>(decoder.output_components);
  auto offset = static_cast<JDIMENSION>(span.left);
  auto decoded = static_cast<JDIMENSION>(span.width);
  if (span.width < static_cast<int64_t>(decoder.output_width)) jpeg_crop_scanline(&decoder, &offset, &decoded);
  const size_t skipped = static_cast<size_t>(window.left - static_cast<int64_t>(offset)) * samples;
  const size_t row_bytes = static_cast<size_t>(window.width) * samples;
  const bool is_direct = !has_inks && skipped == 0 && decoded == static_cast<JDIMENSION>(window.width);
  if (line.size() < decoded * samples) line.resize(decoded * samples);
  if (window.top > 0) jpeg_skip_scanlines(&decoder, static_cast<JDIMENSION>(window.top));
  for (int64_t row = 0; row < window.height; ++row) {
    uint8_t *const to = target.pixels + row * target.row_bytes;
    JSAMPROW rows[] = {is_direct ? to : line.data()};
    jpeg_read_scanlines(&decoder, rows, 1);
    if (has_inks) {
      mix_inks(line.data() + skipped, window.width, to);
    } else if (!is_direct) {
      std::copy_n(line.data() + skipped, row_bytes, to);
    }
  }
  if (rest == Rest::checked) read_rest();
  if (errors.ends_early && !has_all_data()) errors.is_damaged = true;
  jpeg_abort_decompress(&decoder);
  return true;
}

bool JpegReader::is_built() { return true; }

JpegReader::JpegReader() : state_(std::make_unique<State>()) {}

JpegReader::~JpegReader() {
  if (state_->is_ready) jpeg_destroy_decompress(&state_->decoder);
}

Result<PixelSize> JpegReader::open(std::string_view contents, const JpegSettings &settings) {
  State &state = *state_;
  state.is_open = false;
  if (contents.size() < 2 || contents[0] != '\xff' || contents[1] != '\xd8') {
    return base::invalid_argument("not a JPEG file: it does not begin with FF D8");
  }
  if (!state.create()) return base::resource_exhausted("a JPEG decoder cannot be made: ", state.errors.text.data());
  if (!state.read_header(contents)) return state.failure("has no valid header");
  const int64_t pixels = static_cast<int64_t>(state.decoder.image_width) * state.decoder.image_height;
  const auto believable = static_cast<int64_t>(contents.size()) * kMostJpegPixelsPerByte + kSmallJpeg;
  if (pixels > settings.maximum_pixels) {
    return base::resource_exhausted("the JPEG file says that it has ", state.decoder.image_width, " x ",
                                    state.decoder.image_height,
                                    " pixels, more than maximum_pixels = ", settings.maximum_pixels);
  }
  if (pixels > believable) {
    return base::data_loss("the JPEG file says that it has ", pixels, " pixels, which ", contents.size(),
                           " bytes cannot hold");
  }
  if (!state.scale(settings)) return state.failure("cannot be scaled");
  state.is_open = true;
  return PixelSize{static_cast<int64_t>(state.decoder.output_height), static_cast<int64_t>(state.decoder.output_width)};
}

Status JpegReader::read(const PixelWindow &window, uint8_t *pixels, int64_t row_bytes, Rest rest) {
  State &state = *state_;
  if (!state.is_open) return base::failed_precondition("no JPEG file is open");
  state.is_open = false;
  const PixelSize size{static_cast<int64_t>(state.decoder.output_height),
                       static_cast<int64_t>(state.decoder.output_width)};
  TUTTI_TRY(check_window(window, size));
  // Colours at the edge of what is decoded are interpolated as at the edge of the image: a margin keeps them apart.
  constexpr int64_t kMargin = 4;
  const int64_t left = std::max<int64_t>(window.left - kMargin, 0);
  const int64_t right = std::min(window.left + window.width + kMargin, size.width);
  if (!state.read(window, {left, right - left}, {pixels, row_bytes}, rest)) return state.failure("cannot be decoded");
  if (state.errors.is_damaged) return state.failure("is damaged");
  return Status();
}

}  // namespace tutti::impl::data
