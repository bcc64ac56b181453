// SPDX-License-Identifier: Apache-2.0
//
// ByteSource: the contents of a file piece by piece, inflated where the file is a gzip or zlib stream. What ByteStream
// fills its buffer from, on its own thread or on one that reads ahead (file_prefetch.h).
//
// Threads: one at a time.
#ifndef TUTTI_DATA_FILE_BYTE_SOURCE_H_
#define TUTTI_DATA_FILE_BYTE_SOURCE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "base/gzip.h"
#include "base/object.h"
#include "base/status.h"
#include "data/file/file_system.h"

namespace tutti::impl::data {

class ByteSource {
 public:
  explicit ByteSource(base::Ref<const ReadableFile> file) : file_(std::move(file)) {}

  const base::Ref<const ReadableFile> &file() const { return file_; }
  bool is_compressed() const { return inflater_.has_value(); }
  /// From now on the file is read as a compressed stream, from its beginning, so many bytes of it at once.
  base::Status inflate(size_t packed_bytes);
  /// What follows, up to the size of the target; 0 at the end. An interrupt or error has taken nothing.
  base::Result<size_t> read(std::span<char> target);
  /// In the file, of what is read next.
  int64_t file_offset() const { return file_offset_; }
  /// Of a plain file.
  void move_to(int64_t file_offset) { file_offset_ = file_offset; }
  /// Bytes that can follow at most, as far as the size of the file tells.
  int64_t most_left() const;

 private:
  base::Result<size_t> read_inflated(std::span<char> target);

  base::Ref<const ReadableFile> file_;
  int64_t file_offset_ = 0;
  std::optional<base::Inflater> inflater_;
  std::unique_ptr<char[]> packed_;
  size_t packed_capacity_ = 0, packed_begin_ = 0, packed_end_ = 0;
};

}  // namespace tutti::impl::data

#endif  // TUTTI_DATA_FILE_BYTE_SOURCE_H_
