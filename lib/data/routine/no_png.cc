// SPDX-License-Identifier: Apache-2.0
//
// In place of png.cc where libspng is missing.
#include "data/routine/image_file.h"

namespace tutti::impl::data {

struct PngReader::State {};

PngReader::PngReader() = default;
PngReader::~PngReader() = default;
bool PngReader::is_built() { return false; }

base::Result<PixelSize> PngReader::open(std::string_view, int64_t) {
  return base::unimplemented("this build of tutti reads no PNG files: it was made without libspng");
}

base::Status PngReader::read(int32_t, uint8_t *) { return base::internal_error("no file is open"); }

base::Result<std::string> write_png(const uint8_t *, const PixelSize &, int32_t) {
  return base::unimplemented("this build of tutti writes no PNG files: it was made without libspng");
}

}  // namespace tutti::impl::data
