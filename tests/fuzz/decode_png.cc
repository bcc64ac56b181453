// SPDX-License-Identifier: Apache-2.0
// Any bytes are a PNG file or an error; the first byte chooses the channels.
#include <cstdlib>
#include <vector>

#include "data/routine/image_file.h"

using namespace tutti::impl::data;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 1) return 0;
  const int32_t channels = data[0] % 3 == 0 ? 1 : data[0] % 3 == 1 ? 3 : 4;
  static PngReader reader;
  const auto image = reader.open({reinterpret_cast<const char *>(data) + 1, size - 1}, 1 << 18);
  if (!image.ok()) return 0;
  std::vector<uint8_t> pixels(static_cast<size_t>(image->height * image->width * channels));
  (void)reader.read(channels, pixels.data());
  return 0;
}
