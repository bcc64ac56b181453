// SPDX-License-Identifier: Apache-2.0
//
// In place of jpeg.cc where libjpeg-turbo is missing.
#include "data/routine/image_file.h"

namespace tutti::impl::data {

struct JpegReader::State {};

JpegReader::JpegReader() = default;
JpegReader::~JpegReader() = default;
bool JpegReader::is_built() { return false; }

base::Result<PixelSize> JpegReader::open(std::string_view, const JpegSettings &) {
  return base::unimplemented("this build of tutti reads no JPEG files: it was made without libjpeg-turbo");
}

base::Status JpegReader::read(const PixelWindow &, uint8_t *, int64_t, Rest) {
  return base::internal_error("no file is open");
}

}  // namespace tutti::impl::data
