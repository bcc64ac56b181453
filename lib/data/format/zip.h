// SPDX-License-Identifier: Apache-2.0
//
// Zip archives in memory (PKWARE APPNOTE 6.3): their directory, with the forms for large files, and their members,
// stored or deflated. Names are those of the archive and never become paths.
//
// Threads: pure functions.
#ifndef TUTTI_DATA_FORMAT_ZIP_H_
#define TUTTI_DATA_FORMAT_ZIP_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/object.h"
#include "base/status.h"
#include "tensor/buffer.h"

namespace tutti::impl::data {

struct ZipMember {
  std::string name;
  uint16_t method = 0;  // 0 stored, 8 deflated
  uint32_t checksum = 0;
  int64_t packed_bytes = 0, bytes = 0;
  int64_t header_offset = 0;
};

/// The members in the order of the directory. DATA_LOSS naming the archive and what was expected.
base::Result<std::vector<ZipMember>> read_zip_directory(std::string_view archive, std::string_view path);

/// A piece of memory: `size` bytes of a buffer from `offset` on.
struct Piece {
  base::Ref<tensor::Buffer> buffer;
  int64_t offset = 0, size = 0;
};
/// The contents of a member, checked against their checksum: where they lie, or inflated. UNIMPLEMENTED for another
/// method.
base::Result<Piece> read_zip_member(const base::Ref<tensor::Buffer> &archive, const ZipMember &member,
                                    std::string_view path);

}  // namespace tutti::impl::data

#endif  // TUTTI_DATA_FORMAT_ZIP_H_
