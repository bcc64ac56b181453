// SPDX-License-Identifier: Apache-2.0
//
// Tar archives as WebDataset uses them: consecutive files whose paths are the same up to the first dot of the name are
// one sample, and what follows the dot, in small letters, says which part of it a file is. Files whose name begins with
// a dot ("._0001.jpg" of macOS) or has none belong to no sample.
//
//   0001.jpg 0001.cls 0002.JPG 0002.cls       two samples with the parts "jpg" and "cls"
//
// Reads ustar headers (POSIX.1-1988), long names of GNU ("L") and of pax ("x": path, size); other members than files
// are left out. Names never become paths.
//
// Threads: an object belongs to one thread at a time.
#ifndef TUTTI_DATA_FORMAT_TAR_H_
#define TUTTI_DATA_FORMAT_TAR_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "data/file/byte_stream.h"

namespace tutti::impl::data {

/// A sample: its key and the places of its parts in the stream's buffer.
struct TarSample {
  struct Part {
    std::string name;
    size_t begin, size;
  };
  std::string key;
  std::vector<Part> parts;
  std::string_view bytes;  // what the places count in

  std::string_view contents(const Part &part) const { return bytes.substr(part.begin, part.size); }
};

class TarReader {
 public:
  /// The next sample; false at the end. It lies in the stream's buffer until the next call. DATA_LOSS naming file and
  /// offset; nothing can be read behind that.
  base::Result<bool> read(ByteStream &stream, TarSample &sample);
  /// Goes on to an offset at which read() has left the stream before, and adds the key of each file on the way to
  /// `keys`. Reads no contents where the stream can leave them out; from a server nothing on the way, so no keys.
  base::Status move_to(ByteStream &stream, int64_t offset, std::vector<std::string> &keys);

 private:
  struct Member;
  base::Status leave_out(ByteStream &stream, const Member &member);
  base::Result<bool> find_member(ByteStream &stream, size_t at, Member &member);
  base::Result<bool> read_header(ByteStream &stream, size_t at, Member &member);
  base::Status read_long_name(ByteStream &stream, size_t begin, Member &member);

  size_t most_ahead_ = SIZE_MAX;  // of a header
};

}  // namespace tutti::impl::data

#endif  // TUTTI_DATA_FORMAT_TAR_H_
