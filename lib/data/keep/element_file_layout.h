// SPDX-License-Identifier: Apache-2.0
//
// What the writer and the reader of element files (element_file.h) must agree on. Plain values.
#ifndef TUTTI_DATA_KEEP_ELEMENT_FILE_LAYOUT_H_
#define TUTTI_DATA_KEEP_ELEMENT_FILE_LAYOUT_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "data/keep/element_file.h"

namespace tutti::impl::data {

inline constexpr std::string_view kElementFileMagic = "TUTTIELM";
inline constexpr uint32_t kElementFileVersion = 1;
/// Magic, version, bytes of the text.
inline constexpr uint64_t kElementFileHeaderBytes = 16;
/// Values of elements of varying shape begin at multiples of this.
constexpr uint64_t value_alignment(uint64_t bytes) { return bytes < 1024 ? 16 : 64; }

/// What ends the file.
struct ElementFileTrailer {
  uint64_t index_offset = 0;
  uint64_t blocks = 0;
  uint64_t elements = 0;
  uint32_t header_checksum = 0;
  uint32_t index_checksum = 0;
  uint8_t zeros[24] = {};
  uint32_t checksum = 0;  ///< of what precedes it
  char magic[4] = {'T', 'E', 'L', 'M'};
};
static_assert(sizeof(ElementFileTrailer) == 64 && offsetof(ElementFileTrailer, checksum) == 56);
static_assert(sizeof(ElementBlock) == 32 && offsetof(ElementBlock, checksum) == 28);

constexpr uint64_t round_up(uint64_t value, uint64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

}  // namespace tutti::impl::data

#endif  // TUTTI_DATA_KEEP_ELEMENT_FILE_LAYOUT_H_
