// SPDX-License-Identifier: Apache-2.0
#include "data/format/zip.h"

#include <zlib.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/gzip.h"

namespace tutti::impl::data {

using base::Ref;
using base::Result;
using base::Status;
using tensor::Buffer;

namespace {

constexpr std::string_view kEnd = "PK\x05\x06", kEnd64 = "PK\x06\x06", kLocator64 = "PK\x06\x07";
constexpr std::string_view kEntry = "PK\x01\x02", kLocal = "PK\x03\x04";
constexpr size_t kEndBytes = 22, kLocatorBytes = 20, kEnd64Bytes = 56, kEntryBytes = 46, kLocalBytes = 30;
constexpr size_t kMostComment = 65535;

template <typename... Pieces>
Status corrupt_zip(std::string_view path, const Pieces &...pieces) {
  return base::data_loss("corrupt zip archive ", base::quoted(path, 400), ": ", base::concat(pieces...));
}

// A little-endian number of 2, 4 or 8 bytes; the caller knows that it is there.
uint64_t number(std::string_view bytes, size_t at, size_t size) {
  uint64_t value = 0;
  for (size_t i = size; i-- > 0;)
    value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

// `size` bytes at `at`, if they are there and begin with `signature`.
std::optional<std::string_view> record_at(std::string_view archive, uint64_t at, size_t size,
                                          std::string_view signature) {
  if (at > archive.size() || archive.size() - at < size) return std::nullopt;
  const std::string_view record = archive.substr(at);
  if (!record.starts_with(signature)) return std::nullopt;
  return record;
}

struct Directory {
  uint64_t offset = 0, count = 0;
};

Result<Directory> find_directory(std::string_view archive, std::string_view path) {
  const size_t most = std::min(archive.size(), kEndBytes + kMostComment);
  const size_t found = archive.size() < kEndBytes ? std::string_view::npos : archive.rfind(kEnd);
  if (found == std::string_view::npos || archive.size() - found > most || archive.size() - found < kEndBytes)
    return corrupt_zip(path, "it has no end-of-directory record");
  const std::string_view end = archive.substr(found);
  Directory directory{number(end, 16, 4), number(end, 10, 2)};
  if (directory.offset != UINT32_MAX && directory.count != UINT16_MAX) return directory;
  const auto locator =
      found < kLocatorBytes ? std::nullopt : record_at(archive, found - kLocatorBytes, kLocatorBytes, kLocator64);
  if (!locator) return directory;
  const auto end64 = record_at(archive, number(*locator, 8, 8), kEnd64Bytes, kEnd64);
  if (!end64) return corrupt_zip(path, "its zip64 directory is not at the expected offset");
  return Directory{number(*end64, 48, 8), number(*end64, 32, 8)};
}

// Sizes and places that need 64 bits stand in an extra field, in this order, those that do not are left out.
Status read_extra(std::string_view extra, uint64_t &bytes, uint64_t &packed, uint64_t &offset, std::string_view path) {
  while (extra.size() >= 4) {
    const size_t size = number(extra, 2, 2);
    if (extra.size() - 4 < size) break;
    if (number(extra, 0, 2) == 1) {
      std::string_view field = extra.substr(4, size);
      for (uint64_t *value : {&bytes, &packed, &offset}) {
        if (*value != UINT32_MAX) continue;
        if (field.size() < 8) return corrupt_zip(path, "a zip64 member has no sizes");
        *value = number(field, 0, 8);
        field.remove_prefix(8);
      }
    }
    extra.remove_prefix(4 + size);
  }
  return Status();
}

}  // namespace

Result<std::vector<ZipMember>> read_zip_directory(std::string_view archive, std::string_view path) {
  TUTTI_ASSIGN(const Directory directory, find_directory(archive, path));
  if (directory.offset > archive.size() || directory.count > (archive.size() - directory.offset) / kEntryBytes)
    return corrupt_zip(path, "expected a directory of ", directory.count, " members, which the file cannot hold");
  std::vector<ZipMember> members;
  uint64_t at = directory.offset;
  for (uint64_t i = 0; i < directory.count; ++i) {
    const auto entry = record_at(archive, at, kEntryBytes, kEntry);
    if (!entry) return corrupt_zip(path, "expected member ", i, " of the directory at offset ", at);
    const size_t name = number(*entry, 28, 2), extra = number(*entry, 30, 2), comment = number(*entry, 32, 2);
    if (entry->size() < kEntryBytes + name + extra + comment) return corrupt_zip(path, "member ", i, " is cut");
    uint64_t packed = number(*entry, 20, 4), bytes = number(*entry, 24, 4), offset = number(*entry, 42, 4);
    TUTTI_TRY(read_extra(entry->substr(kEntryBytes + name, extra), bytes, packed, offset, path));
    if (packed > archive.size() || offset > archive.size() || bytes > uint64_t{INT64_MAX})
      return corrupt_zip(path, "member ", i, " is larger than the file");
    members.push_back({std::string(entry->substr(kEntryBytes, name)), static_cast<uint16_t>(number(*entry, 10, 2)),
                       static_cast<uint32_t>(number(*entry, 16, 4)), static_cast<int64_t>(packed),
                       static_cast<int64_t>(bytes), static_cast<int64_t>(offset)});
    at += kEntryBytes + name + extra + comment;
  }
  return members;
}

namespace {

Result<Piece> inflate_member(std::string_view packed, const ZipMember &member, std::string_view path) {
  if (member.bytes > member.packed_bytes * base::kMostDeflateRatio + base::kDeflateRatioSlack)
    return corrupt_zip(path, "member '", member.name, "' says ", member.bytes,
                       " bytes, more than its compressed data can hold");
  TUTTI_ASSIGN(base::Inflater inflater,
               base::Inflater::create({member.bytes, base::kMostDeflateRatio}, base::Inflater::Header::none));
  TUTTI_ASSIGN(Ref<Buffer> buffer, Buffer::allocate(std::max<int64_t>(member.bytes, 1)));
  auto *const data = static_cast<char *>(buffer->data());
  size_t done = 0;
  for (;;) {
    const Result<base::Inflater::Progress> progress =
        inflater.inflate(packed, {data + done, static_cast<size_t>(member.bytes) - done});
    if (!progress.ok())
      return progress.status().wrap(base::Code::data_loss, base::concat("corrupt zip archive ", base::quoted(path, 400),
                                                                        ": member '", member.name, "'"));
    packed.remove_prefix(progress->consumed);
    done += progress->produced;
    if (progress->consumed == 0 && progress->produced == 0) break;
  }
  if (static_cast<int64_t>(done) != member.bytes)
    return corrupt_zip(path, "member '", member.name, "': expected ", member.bytes, " bytes, got ", done);
  return Piece{std::move(buffer), 0, member.bytes};
}

}  // namespace

Result<Piece> read_zip_member(const Ref<Buffer> &archive, const ZipMember &member, std::string_view path) {
  const std::string_view bytes(static_cast<const char *>(archive->data()), static_cast<size_t>(archive->size_bytes()));
  const auto local = record_at(bytes, static_cast<uint64_t>(member.header_offset), kLocalBytes, kLocal);
  if (!local) return corrupt_zip(path, "member '", member.name, "' is not at the offset in the directory");
  const size_t begin = kLocalBytes + number(*local, 26, 2) + number(*local, 28, 2);
  if (local->size() < begin || local->size() - begin < static_cast<uint64_t>(member.packed_bytes))
    return corrupt_zip(path, "member '", member.name, "' is cut");
  Piece piece{archive, member.header_offset + static_cast<int64_t>(begin), member.packed_bytes};
  if (member.method == 8) {
    TUTTI_ASSIGN(piece, inflate_member(local->substr(begin, static_cast<size_t>(member.packed_bytes)), member, path));
  } else if (member.method != 0) {
    return base::unimplemented("zip archive ", base::quoted(path, 400), ": member '", member.name,
                               "' is compressed by method ", member.method, "; only deflate can be read");
  } else if (member.bytes != member.packed_bytes) {
    return corrupt_zip(path, "member '", member.name, "' is not compressed but has two different sizes");
  }
  const auto *data = reinterpret_cast<const Bytef *>(static_cast<const char *>(piece.buffer->data()) + piece.offset);
  if (crc32_z(0, data, static_cast<size_t>(piece.size)) != member.checksum)
    return corrupt_zip(path, "member '", member.name, "' has a wrong checksum");
  return piece;
}

}  // namespace tutti::impl::data
