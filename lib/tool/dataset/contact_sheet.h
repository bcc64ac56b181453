// SPDX-License-Identifier: Apache-2.0
//
// A picture of the first images of a dataset, side by side.
#ifndef TUTTI_TOOL_DATASET_CONTACT_SHEET_H_
#define TUTTI_TOOL_DATASET_CONTACT_SHEET_H_

#include <cstdint>
#include <string>
#include <tutti/tutti.hpp>

namespace tutti::tool {

/// The component that holds images: bytes of JPEG or PNG files, or numbers of shape [height, width],
/// [height, width, 1 or 3], [1, height, width] or [3, height, width]; -1 when there is none. `seed` is that of the
/// iterator.
int64_t find_images(const Dataset &dataset, int64_t seed);

/// Writes the first `count` images of that component as a PNG file, in rows, each into a square of 96 pixels; numbers
/// other than u8 are stretched from their least to their greatest. How many there were. An error names the file.
int64_t write_contact_sheet(const Dataset &dataset, int64_t seed, int64_t component, int64_t count,
                            const std::string &path, const Context &context);

}  // namespace tutti::tool

#endif  // TUTTI_TOOL_DATASET_CONTACT_SHEET_H_
