// SPDX-License-Identifier: Apache-2.0
//
// Images that look a little like photos (smooth shades, edges, some noise), and JPEG files of them; and a decoder that
// is nothing but the calls of libjpeg-turbo in a row.
#ifndef TUTTI_TESTS_DATA_SAMPLE_IMAGES_H_
#define TUTTI_TESTS_DATA_SAMPLE_IMAGES_H_

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "base/random/philox.h"

// Last: it needs size_t and FILE.
#include <jpeglib.h>

namespace tutti::testing {

struct Pixels {
  int64_t height = 0;
  int64_t width = 0;
  int64_t channels = 3;
  std::vector<uint8_t> values{};

  uint8_t at(int64_t y, int64_t x, int64_t c) const {
    return values[static_cast<size_t>((y * width + x) * channels + c)];
  }
};

inline Pixels sample_photo(int64_t height, int64_t width, uint64_t seed, int64_t channels = 3) {
  Pixels image{height, width, channels};
  impl::base::RandomStream noise(impl::base::RandomKey::of(seed, 17, 0));
  const double tilt = 0.02 + 0.01 * static_cast<double>(seed % 5);
  const double radius = 0.3 * static_cast<double>(std::min(height, width));
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      const double dy = static_cast<double>(y) - 0.5 * static_cast<double>(height);
      const double dx = static_cast<double>(x) - 0.4 * static_cast<double>(width);
      const bool is_inside = dx * dx + dy * dy < radius * radius;
      for (int64_t c = 0; c < channels; ++c) {
        const double shade = 110 + 70 * std::sin(tilt * static_cast<double>(x + 2 * y) + static_cast<double>(c)) +
                             (is_inside ? 45 - 30 * static_cast<double>(c) : 0) +
                             static_cast<double>(noise.next() % 16);
        image.values.push_back(static_cast<uint8_t>(std::min(255.0, std::max(0.0, shade))));
      }
    }
  }
  return image;
}

/// Of an image with 1 (gray), 3 (RGB) or 4 (CMYK) channels. `adjust` changes the encoder's settings.
inline std::string jpeg_file(const Pixels &image, int quality = 90, bool is_progressive = false,
                             const std::function<void(jpeg_compress_struct &)> &adjust = {}) {
  jpeg_compress_struct encoder{};
  jpeg_error_mgr errors{};
  encoder.err = jpeg_std_error(&errors);
  jpeg_create_compress(&encoder);
  unsigned char *data = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&encoder, &data, &size);
  encoder.image_height = static_cast<JDIMENSION>(image.height);
  encoder.image_width = static_cast<JDIMENSION>(image.width);
  encoder.input_components = static_cast<int>(image.channels);
  encoder.in_color_space = image.channels == 1 ? JCS_GRAYSCALE : image.channels == 3 ? JCS_RGB : JCS_CMYK;
  jpeg_set_defaults(&encoder);
  jpeg_set_quality(&encoder, quality, TRUE);
  if (is_progressive) jpeg_simple_progression(&encoder);
  if (adjust) adjust(encoder);
  jpeg_start_compress(&encoder, TRUE);
  while (encoder.next_scanline < encoder.image_height) {
    auto *row = const_cast<uint8_t *>(image.values.data()) +
                static_cast<size_t>(encoder.next_scanline) * static_cast<size_t>(image.width * image.channels);
    jpeg_write_scanlines(&encoder, &row, 1);
  }
  jpeg_finish_compress(&encoder);
  jpeg_destroy_compress(&encoder);
  std::string file(reinterpret_cast<char *>(data), size);
  std::free(data);
  return file;
}

struct PlainJpegSettings {
  int channels = 3;
  unsigned ratio = 1;
  bool fancy = true;
  bool fast = false;
};

inline Pixels plain_jpeg_decode(const std::string &file, PlainJpegSettings settings = {}) {
  jpeg_decompress_struct decoder{};
  jpeg_error_mgr errors{};
  decoder.err = jpeg_std_error(&errors);
  jpeg_create_decompress(&decoder);
  jpeg_mem_src(&decoder, reinterpret_cast<const unsigned char *>(file.data()), file.size());
  jpeg_read_header(&decoder, TRUE);
  decoder.out_color_space = settings.channels == 1 ? JCS_GRAYSCALE : settings.channels == 3 ? JCS_RGB : JCS_CMYK;
  decoder.scale_num = 1;
  decoder.scale_denom = settings.ratio;
  decoder.do_fancy_upsampling = settings.fancy ? TRUE : FALSE;
  decoder.dct_method = settings.fast ? JDCT_IFAST : JDCT_ISLOW;
  jpeg_start_decompress(&decoder);
  Pixels image{static_cast<int64_t>(decoder.output_height), static_cast<int64_t>(decoder.output_width),
               settings.channels};
  image.values.resize(static_cast<size_t>(image.height * image.width * image.channels));
  while (decoder.output_scanline < decoder.output_height) {
    uint8_t *row = image.values.data() +
                   static_cast<size_t>(decoder.output_scanline) * static_cast<size_t>(image.width * image.channels);
    jpeg_read_scanlines(&decoder, &row, 1);
  }
  jpeg_finish_decompress(&decoder);
  jpeg_destroy_decompress(&decoder);
  return image;
}

}  // namespace tutti::testing

#endif  // TUTTI_TESTS_DATA_SAMPLE_IMAGES_H_
