// SPDX-License-Identifier: Apache-2.0
//
// Image files in memory as pixels. A build without a library has a source file in its place that says so.
//
//   JpegReader reader;                                        // keeps its memory from file to file
//   TUTTI_ASSIGN(PixelSize size, reader.open(contents, settings));
//   TUTTI_TRY(reader.read(window, pixels, row_bytes, JpegReader::Rest::ignored));
//
// Errors: DATA_LOSS for a corrupt or truncated file, INVALID_ARGUMENT for what is no such file, UNIMPLEMENTED for kinds
// that the library cannot read or where it is missing, RESOURCE_EXHAUSTED beyond the limit of pixels.
// Threads: a reader belongs to one thread.
#ifndef TUTTI_DATA_ROUTINE_IMAGE_FILE_H_
#define TUTTI_DATA_ROUTINE_IMAGE_FILE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "data/graph/pixel_window.h"

namespace tutti::impl::data {

/// Is the window in the image, with at least one pixel?
base::Status check_window(const PixelWindow &window, const PixelSize &size);

struct JpegSettings {
  int32_t channels = 3;        ///< 1 or 3
  int32_t ratio = 1;           ///< 1, 2, 4, 8
  int64_t minimum_height = 0;  ///< with minimum_width, in place of ratio; 0 = not asked for
  int64_t minimum_width = 0;
  bool has_fancy_upsampling = true;
  bool has_fast_dct = false;
  int64_t maximum_pixels = int64_t{1} << 27;
};

/// Does the file begin as a JPEG file does?
bool is_jpeg(std::string_view contents);
/// Does the file begin as a PNG file does?
bool is_png(std::string_view contents);

/// 0.299 R + 0.587 G + 0.114 B in units of 2^-16, rounded; as Pillow does.
inline uint8_t gray_of(const uint8_t *rgb) {
  return static_cast<uint8_t>((19595U * rgb[0] + 38470U * rgb[1] + 7471U * rgb[2] + 0x8000U) >> 16);
}

/// Files in four inks (CMYK, YCCK) give the colours that their inks leave of white, without regard to a profile. One
/// that lacks its end marker alone is whole.
class JpegReader {
 public:
  /// What becomes of the file behind a window: it is left alone, or its data are read, though not made pixels, so that
  /// damage is found wherever it is.
  enum class Rest { ignored, checked };

  JpegReader();
  ~JpegReader();
  /// Was the library built with what reads such files?
  static bool is_built();

  /// Reads the header. The size of the image after scaling. `contents` must live until read() is done.
  base::Result<PixelSize> open(std::string_view contents, const JpegSettings &settings);
  /// Decodes a window, its rows `row_bytes` apart, at least window.width * channels; once for each open().
  base::Status read(const PixelWindow &window, uint8_t *pixels, int64_t row_bytes, Rest rest);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Rows of pixels of 1, 3 or 4 bytes as a PNG file. UNIMPLEMENTED where PngReader is not built.
base::Result<std::string> write_png(const uint8_t *pixels, const PixelSize &size, int32_t channels);

class PngReader {
 public:
  PngReader();
  ~PngReader();
  static bool is_built();

  /// Reads the header. `contents` must live until read() is done.
  base::Result<PixelSize> open(std::string_view contents, int64_t maximum_pixels);
  /// Decodes the image with 1 (gray), 3 (RGB) or 4 (RGBA) channels; once for each open().
  base::Status read(int32_t channels, uint8_t *pixels);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tutti::impl::data

#endif  // TUTTI_DATA_ROUTINE_IMAGE_FILE_H_
