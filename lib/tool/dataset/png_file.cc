// SPDX-License-Identifier: Apache-2.0
#include "tool/dataset/png_file.h"

#include <spng.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <stdexcept>

namespace tutti::tool {

void write_png(const std::string &path, const uint8_t *pixels, int64_t width, int64_t height) {
  const auto fail = [&](const char *why) { throw std::runtime_error("cannot write '" + path + "': " + why); };
  const std::unique_ptr<FILE, int (*)(FILE *)> file(std::fopen(path.c_str(), "wb"), std::fclose);
  if (file == nullptr) fail(std::strerror(errno));
  const std::unique_ptr<spng_ctx, void (*)(spng_ctx *)> encoder(spng_ctx_new(SPNG_CTX_ENCODER), spng_ctx_free);
  if (encoder == nullptr) fail("out of memory");
  spng_ihdr header{};
  header.width = static_cast<uint32_t>(width);
  header.height = static_cast<uint32_t>(height);
  header.bit_depth = 8;
  header.color_type = SPNG_COLOR_TYPE_TRUECOLOR;
  int error = spng_set_png_file(encoder.get(), file.get());
  if (error == 0) error = spng_set_ihdr(encoder.get(), &header);
  const auto size = static_cast<size_t>(width * height * 3);
  if (error == 0) error = spng_encode_image(encoder.get(), pixels, size, SPNG_FMT_PNG, SPNG_ENCODE_FINALIZE);
  if (error != 0) fail(spng_strerror(error));
  if (std::fflush(file.get()) != 0) fail(std::strerror(errno));
}

}  // namespace tutti::tool
