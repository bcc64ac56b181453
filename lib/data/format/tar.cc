// SPDX-License-Identifier: Apache-2.0
#include "data/format/tar.h"

#include <algorithm>
#include <optional>

#include "data/file/file_system.h"

namespace tutti::impl::data {

using base::Result;
using base::Status;

namespace {

constexpr size_t kBlock = 512;
constexpr int64_t kLongestName = int64_t{1} << 16;

template <typename... Pieces>
Status corrupt_archive(const ByteStream &stream, size_t at, const Pieces &...pieces) {
  return base::data_loss("corrupt tar file ", base::quoted(stream.path(), 400), " at offset ",
                         stream.offset() + static_cast<int64_t>(at), ": ", base::concat(pieces...));
}

Status ends_within(const ByteStream &stream, size_t at, const std::string &member, int64_t size) {
  return corrupt_archive(stream, at, "the file ends within ", base::quoted(member, 400), ", ", size, " bytes");
}

size_t whole_blocks(int64_t size) { return (static_cast<size_t>(size) + kBlock - 1) / kBlock * kBlock; }

std::string_view text_field(std::string_view header, size_t at, size_t size) {
  const std::string_view field = header.substr(at, size);
  return field.substr(0, field.find('\0'));
}

// Octal digits between spaces and zeros; or, with the first bit set, a binary number.
std::optional<int64_t> number_field(std::string_view header, size_t at, size_t size) {
  std::string_view field = header.substr(at, size);
  uint64_t value = 0;
  if ((static_cast<unsigned char>(field[0]) & 0x80) != 0) {
    for (size_t i = 0; i < size; ++i) {
      if (value >> 55 != 0) return std::nullopt;
      value = value << 8 | (static_cast<unsigned char>(field[i]) & (i == 0 ? 0x7f : 0xff));
    }
    return static_cast<int64_t>(value);
  }
  field = field.substr(0, field.find('\0'));
  field = base::trim(field);
  for (const char digit : field) {
    if (digit < '0' || digit > '7' || value >> 59 != 0) return std::nullopt;
    value = value << 3 | static_cast<uint64_t>(digit - '0');
  }
  return static_cast<int64_t>(value);
}

// The sum of the header's bytes with the field of the sum itself as spaces; old writers summed signed bytes.
bool has_checksum(std::string_view header, int64_t expected) {
  int64_t unsigned_sum = 0, signed_sum = 0;
  for (size_t i = 0; i < kBlock; ++i) {
    const char c = i >= 148 && i < 156 ? ' ' : header[i];
    unsigned_sum += static_cast<unsigned char>(c);
    signed_sum += static_cast<signed char>(c);
  }
  return expected == unsigned_sum || expected == signed_sum;
}

// The path split at the first dot of the name; false where nothing precedes or follows it.
bool split_path(const std::string &path, std::string &key, std::string &part) {
  const size_t name = path.rfind('/') + 1;  // 0 without a slash
  const size_t dot = path.find('.', name);
  if (dot == std::string::npos || dot == name || dot + 1 == path.size()) return false;
  key = path.substr(0, dot);
  part = small_letters(std::string_view(path).substr(dot + 1));
  return true;
}

}  // namespace

// A file of the archive; places count from the stream's next byte.
struct TarReader::Member {
  std::string path;
  char type = 0;
  int64_t size = 0;
  size_t begin = 0, end = 0;  // of the contents, and of the member with its padding
  std::string long_name;      // said by the members before
  std::optional<int64_t> long_size;
};

// False at the end: a block of zeros, or nothing more.
Result<bool> TarReader::read_header(ByteStream &stream, size_t at, Member &member) {
  TUTTI_ASSIGN(const std::string_view all, stream.peek(at + kBlock, most_ahead_));
  if (all.size() <= at) return false;
  if (all.size() < at + kBlock)
    return corrupt_archive(stream, at, "expected a header of 512 bytes, the file ends before");
  const std::string_view header = all.substr(at, kBlock);
  if (header.find_first_not_of('\0') == std::string_view::npos) return false;
  const std::optional<int64_t> size = number_field(header, 124, 12), sum = number_field(header, 148, 8);
  if (!sum || !has_checksum(header, *sum)) return corrupt_archive(stream, at, "the checksum of a header is wrong");
  if (!size || *size < 0) return corrupt_archive(stream, at, "a header without a size");
  member.type = header[156];
  const std::string_view prefix =
      header.substr(257, 5) == "ustar" && header[262] == '\0' ? text_field(header, 345, 155) : std::string_view();
  member.path = base::concat(prefix, prefix.empty() ? "" : "/", text_field(header, 0, 100));
  const bool is_file = member.type == '0' || member.type == '\0' || member.type == '7';
  member.size = is_file && member.long_size ? *member.long_size : *size;
  member.begin = at + kBlock;
  if (member.size > stream.most_left())
    return corrupt_archive(stream, at, "a member of ", member.size, " bytes does not fit");
  member.end = member.begin + whole_blocks(member.size);
  return true;
}

// "L" holds a name; "x" records "LENGTH KEY=VALUE\n".
Status TarReader::read_long_name(ByteStream &stream, size_t begin, Member &member) {
  if (member.size > kLongestName) return corrupt_archive(stream, begin, "a name of ", member.size, " bytes");
  TUTTI_ASSIGN(const std::string_view all, stream.peek(member.end));
  if (all.size() < member.end) return corrupt_archive(stream, begin, "the file ends within a long name");
  std::string_view text = all.substr(member.begin, static_cast<size_t>(member.size));
  if (member.type == 'L') {
    member.long_name = text.substr(0, text.find('\0'));
    return Status();
  }
  while (!text.empty()) {
    const size_t space = text.find(' ');
    const std::optional<int64_t> length = base::parse_integer(text.substr(0, std::min(space, text.size())));
    if (!length || *length <= static_cast<int64_t>(space) + 1 || static_cast<uint64_t>(*length) > text.size())
      return corrupt_archive(stream, begin, "a bad extended header");
    const std::string_view record = text.substr(space + 1, static_cast<size_t>(*length) - space - 2);
    if (record.starts_with("path=")) member.long_name = record.substr(5);
    if (record.starts_with("size=")) {
      member.long_size = base::parse_integer(record.substr(5));
      if (!member.long_size || *member.long_size < 0) return corrupt_archive(stream, begin, "a bad extended header");
    }
    text.remove_prefix(static_cast<size_t>(*length));
  }
  return Status();
}

// The next file from `at` on; what is no file is passed over.
Result<bool> TarReader::find_member(ByteStream &stream, size_t at, Member &member) {
  member = Member();
  for (;;) {
    TUTTI_ASSIGN(const bool more, read_header(stream, at, member));
    if (!more) return false;
    if (member.type == '0' || member.type == '\0' || member.type == '7') break;
    if (member.type == 'L' || member.type == 'x') {
      TUTTI_TRY(read_long_name(stream, at, member));
    } else {
      member.long_name.clear();  // it belonged to a directory or a link
      member.long_size.reset();
    }
    at = member.end;
  }
  if (!member.long_name.empty()) member.path = member.long_name;
  return true;
}

// Moves behind a member without having all of it in the buffer.
Status TarReader::leave_out(ByteStream &stream, const Member &member) {
  const size_t contents_end = member.begin + static_cast<size_t>(member.size);
  for (size_t done = 0; done < member.end;) {
    TUTTI_ASSIGN(const std::string_view here, stream.peek(1));
    // The padding behind the last file may be missing.
    if (here.empty() && done >= contents_end) break;
    if (here.empty()) return ends_within(stream, 0, member.path, member.size);
    const size_t size = std::min(here.size(), member.end - done);
    stream.consume(size);
    done += size;
  }
  return Status();
}

Result<bool> TarReader::read(ByteStream &stream, TarSample &sample) {
  sample.parts.clear();
  size_t end = 0;
  most_ahead_ = SIZE_MAX;
  for (Member member;;) {
    const Result<bool> more = find_member(stream, end, member);
    // Damage behind a sample is for the next call, which begins there.
    if (!sample.parts.empty() && !more.ok() && !base::is_interrupt(more.status())) break;
    TUTTI_TRY(more);
    if (!*more) break;
    std::string key, part;
    const bool is_part = split_path(member.path, key, part);
    if (!is_part && sample.parts.empty()) {
      TUTTI_TRY(leave_out(stream, member));
      continue;
    }
    if (is_part && !sample.parts.empty() && key != sample.key) break;
    const Status has_room = stream.check_record(member.begin + static_cast<size_t>(member.size));
    // What is no part need not be in the buffer: the next call leaves it out.
    if (!is_part && !has_room.ok()) break;
    TUTTI_TRY(has_room);
    TUTTI_ASSIGN(const std::string_view all, stream.peek(member.end));
    if (all.size() < member.begin + static_cast<size_t>(member.size))
      return ends_within(stream, member.begin, member.path, member.size);
    end = std::min(member.end, all.size());
    if (!is_part) continue;
    sample.key = std::move(key);
    sample.parts.push_back({std::move(part), member.begin, static_cast<size_t>(member.size)});
  }
  if (sample.parts.empty()) return false;
  sample.bytes = stream.buffered();
  stream.consume(end);  // the buffer stays as it is until more is read
  return true;
}

Status TarReader::move_to(ByteStream &stream, int64_t offset, std::vector<std::string> &keys) {
  // From afar all before the place would have to be fetched.
  const bool reads_on_the_way = stream.leaves_out_freely() || stream.is_compressed();
  std::string key, part;
  most_ahead_ = stream.leaves_out_freely() ? 0 : SIZE_MAX;
  for (Member member; reads_on_the_way && stream.offset() < offset;) {
    TUTTI_ASSIGN(const bool more, find_member(stream, 0, member));
    if (!more) break;
    if (split_path(member.path, key, part)) keys.push_back(key);
    TUTTI_TRY(stream.move_to(std::min(offset, stream.offset() + static_cast<int64_t>(member.end))));
  }
  return stream.move_to(offset);
}

}  // namespace tutti::impl::data
