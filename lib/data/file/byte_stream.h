// SPDX-License-Identifier: Apache-2.0
//
// ByteStream: the contents of a file from front to back through a buffer, inflated where the file is a gzip or zlib
// stream. Offsets count the bytes of the contents (after inflating).
//
//   TUTTI_ASSIGN(ByteStream stream, ByteStream::open(file, Compression::automatic));
//   for (std::string_view line;;) {
//     TUTTI_ASSIGN(const bool more, stream.read_line(line));      // the line lies in the stream's buffer
//     if (!more) break;
//   }
//
// The buffer grows with what is really read, never with what a file promises. Tensors of dtype bytes may be views of it
// (view()); as long as one lives, what it shows stays where it is. An error is final for the stream, and comes when all
// that could be read before it has been given out. An interrupt of the file (file_system.h) is not: after peek() and
// read_line() nothing has changed, after the others offset() tells.
//
// A stream may have a thread that reads ahead (file_prefetch.h): its blocks become the stream's buffer then, one after
// the other, and what it gives is the same.
//
// Threads: one at a time.
#ifndef TUTTI_DATA_FILE_BYTE_STREAM_H_
#define TUTTI_DATA_FILE_BYTE_STREAM_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/cancel.h"
#include "base/object.h"
#include "base/status.h"
#include "data/file/byte_source.h"
#include "data/file/file_prefetch.h"
#include "data/file/file_system.h"
#include "tensor/buffer.h"
#include "tensor/tensor.h"

namespace tutti::impl::data {

enum class Compression {
  automatic,  ///< gzip where the file begins like it, else none
  none,
  gzip,
  zlib,
};

/// "auto", "none", "gzip", "zlib". INVALID_ARGUMENT otherwise.
base::Result<Compression> parse_compression(std::string_view text);

/// That of UTF-8, with which some programs begin a file of text.
inline constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

class ByteStream {
 public:
  /// Larger buffers leave the cache before they are used, smaller ones call the system more often.
  static constexpr size_t kBufferBytes = size_t{256} << 10;

  static base::Result<ByteStream> open(base::Ref<const ReadableFile> file, Compression compression);
  /// Is so much of the file left that a thread to read it pays: 4 MB, 512 KB of a compressed one?
  bool is_worth_reading_ahead() const;
  /// From now on a thread reads ahead. The token is one with which the file was opened, for this stream alone: the
  /// stream cancels it at its end. An error of starting the thread changes nothing.
  base::Status read_ahead(base::Ref<base::CancelToken> token);

  /// From now on a record of a compressed file has so many bytes at most: a small file may say a lot. A plain one holds
  /// no more than it is large.
  void limit_records(int64_t most_bytes) { most_record_bytes_ = static_cast<size_t>(most_bytes); }
  /// For the record that comes next: DATA_LOSS naming file and offset, by which the stream ends, where it has more.
  base::Status check_record(size_t bytes) {
    return !is_compressed_ || bytes <= most_record_bytes_ ? base::Status() : too_large();
  }

  const std::string &path() const { return path_; }
  bool is_compressed() const { return is_compressed_; }
  /// Of the byte that comes next.
  int64_t offset() const { return offset_; }
  /// Has a read met the error by which the stream ends? What lies before that error can be read until then.
  bool has_failed() const { return has_told_failure_; }

  /// At least `size` bytes of what comes next, fewer only at the end. They stay next, and lie there until the next
  /// call. Where less lies in the buffer, so many bytes are read ahead at most.
  base::Result<std::string_view> peek(size_t size, size_t most_ahead = SIZE_MAX);
  /// What lies in the buffer; nothing is read.
  std::string_view buffered() const { return {data() + begin_, end_ - begin_}; }
  /// Whether the record of so many bytes that comes next should be had by peek() and view() rather than by read().
  /// Where a thread reads ahead, blocks are framed for it; very large ones, and those of a stream that is read alone,
  /// should not: to read them straight to where they stay saves a copy.
  bool is_through_buffer(size_t size, const Framing &framing);
  /// Moves behind `size` bytes that peek() showed.
  void consume(size_t size) {
    begin_ += size;
    offset_ += static_cast<int64_t>(size);
  }
  /// Bytes that peek() showed, `size` of them after the first `skip`, as a scalar of dtype bytes that shares the
  /// buffer. False where a copy is better: when there are too many, and, of less than half of the buffer, for a while
  /// after views were still held when their buffer was used up, since each keeps all of it from being used again.
  bool view(size_t skip, size_t size, tensor::Tensor &view);
  /// Up to `size` bytes straight to `target`; fewer only at the end.
  base::Result<size_t> read(char *target, size_t size);
  /// The next line without its "\n" or "\r\n"; false at the end. A last line may lack its end.
  base::Result<bool> read_line(std::string_view &line);
  /// Before anything else is read of a text: moves behind the byte order mark of UTF-8, if there is one.
  base::Status skip_byte_order_mark();
  /// Goes to an offset from the one reached so far: at once in a plain file, by inflating in a compressed one.
  /// DATA_LOSS when the contents end before it.
  base::Status move_to(int64_t offset);
  /// Does move_to() leave out what lies between at no cost?
  bool leaves_out_freely() const { return source_ != nullptr && !is_compressed_ && source_->file()->is_local(); }
  /// Bytes that can follow at most, as far as the size of the file tells.
  int64_t most_left() const { return static_cast<int64_t>(end_ - begin_) + most_behind_; }

 private:
  explicit ByteStream(const base::Ref<const ReadableFile> &file)
      : path_(file->path()), source_(std::make_unique<ByteSource>(file)), most_behind_(source_->most_left()) {}

  base::Status choose(Compression compression);
  /// Reads more into the buffer, which must not have ended; up to `most` bytes where nobody reads ahead.
  base::Status fill(size_t most);
  base::Status make_room();
  base::Status allocate(size_t capacity);
  /// Makes the block that comes next the buffer.
  base::Status take_block();
  base::Status append(const FilePrefetch::Block &block);
  /// Ends the thread that reads a plain file.
  void read_alone();
  char *data() const { return static_cast<char *>(buffer_->data()) + kFrontBytes; }
  base::Status fail(const base::Status &status);
  base::Status too_large();
  /// The error by which the stream ends, as something that was met.
  base::Status told_failure();

  // The offsets of views stand before the contents.
  static constexpr size_t kMostViews = 128;
  static constexpr size_t kFrontBytes = kMostViews * 2 * sizeof(int64_t);
  // Buffers without small views after one whose views were held: what is held in vain is a small part of what is held.
  static constexpr int kWithoutViews = 64;
  // What may lie in the buffer beside a record.
  static constexpr size_t kBesideRecord = size_t{1} << 20;
  // Blocks are framed once in so many bytes: what is read in vain then is a small part of what is read.
  static constexpr int64_t kFrameOncePer = int64_t{16} << 20;

  std::string path_;
  base::Ref<tensor::Buffer> buffer_;           // kFrontBytes and the contents
  size_t views_ = 0;                           // given of this buffer
  int without_views_ = 0;                      // buffers
  size_t capacity_ = 0, begin_ = 0, end_ = 0;  // of the contents
  int64_t offset_ = 0;
  size_t most_record_bytes_ = SIZE_MAX / 2;
  bool ended_ = false, is_compressed_ = false;
  base::Status failure_;
  bool has_told_failure_ = false;
  std::unique_ptr<ByteSource> source_;  // null where a thread reads ahead
  std::unique_ptr<FilePrefetch> ahead_;
  int64_t next_frame_ = 0;  // blocks are not framed again before this offset
  int64_t most_behind_;     // the buffer, as ByteSource::most_left()
};

}  // namespace tutti::impl::data

#endif  // TUTTI_DATA_FILE_BYTE_STREAM_H_
