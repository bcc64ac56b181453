// SPDX-License-Identifier: Apache-2.0
#include <stdexcept>

#include "tool/dataset/png_file.h"

namespace tutti::tool {

void write_png(const std::string &path, const uint8_t *, int64_t, int64_t) {
  throw std::runtime_error("cannot write '" + path + "': this command was built without libspng");
}

}  // namespace tutti::tool
