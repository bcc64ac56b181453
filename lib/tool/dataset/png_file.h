// SPDX-License-Identifier: Apache-2.0
#ifndef TUTTI_TOOL_DATASET_PNG_FILE_H_
#define TUTTI_TOOL_DATASET_PNG_FILE_H_

#include <cstdint>
#include <string>

namespace tutti::tool {

/// Writes rows of RGB pixels, top to bottom. Throws std::runtime_error, also where the command was built without
/// libspng.
void write_png(const std::string &path, const uint8_t *pixels, int64_t width, int64_t height);

}  // namespace tutti::tool

#endif  // TUTTI_TOOL_DATASET_PNG_FILE_H_
