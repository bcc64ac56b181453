// SPDX-License-Identifier: Apache-2.0
// Any bytes are a JPEG file or an error, under any settings: the first byte chooses them, the next two a window.
#include <cstdlib>
#include <vector>

#include "data/routine/image_file.h"

using namespace tutti::impl::data;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 3) return 0;
  JpegSettings settings;
  settings.channels = (data[0] & 1) != 0 ? 1 : 3;
  settings.ratio = 1 << (data[0] >> 1 & 3);
  settings.minimum_height = (data[0] & 8) != 0 ? 16 : 0;
  settings.has_fancy_upsampling = (data[0] & 16) != 0;
  settings.has_fast_dct = (data[0] & 32) != 0;
  settings.maximum_pixels = 1 << 18;
  static JpegReader reader;  // one for all inputs: what a file leaves behind must not harm the next
  const auto image = reader.open({reinterpret_cast<const char *>(data) + 3, size - 3}, settings);
  if (!image.ok()) return 0;
  PixelWindow window{0, 0, image->height, image->width};
  if ((data[0] & 64) != 0) {
    window.top = data[1] % image->height;
    window.left = data[2] % image->width;
    window.height -= window.top;
    window.width -= window.left;
  }
  std::vector<uint8_t> pixels(static_cast<size_t>(window.height * window.width * settings.channels));
  const auto rest = (data[0] & 128) != 0 ? JpegReader::Rest::checked : JpegReader::Rest::ignored;
  (void)reader.read(window, pixels.data(), window.width * settings.channels, rest);
  return 0;
}
