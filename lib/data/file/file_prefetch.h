// SPDX-License-Identifier: Apache-2.0
//
// A thread that reads a file, and inflates it where it is compressed, while somebody else works on what has been read.
// Blocks go through a ring in the order of the file:
//
//   thread     reads block 4, 5, ...    at most kBlocks ahead
//   consumer   next() = block 3         and gives its memory back when it is done with it
//
// A plain file of the machine itself may be read from both threads at once: who would have to wait for a block that the
// thread has begun reads the one behind it meanwhile. So the consumer sleeps only where files or inflating are slower
// than it is.
//
// Large records need no copy where blocks end with them: frame() tells how long a record is by the bytes that it begins
// with. From then on a block is one record, or as many as make one worth the hand-over.
//
// In each block there is room before the contents, for what the consumer has not used up of the block before.
//
// Errors and interrupts: those of a block come with it, behind the bytes that were read before. After an interrupt the
// next call reads the block again.
//
// Threads: one consumer.
#ifndef TUTTI_DATA_FILE_FILE_PREFETCH_H_
#define TUTTI_DATA_FILE_FILE_PREFETCH_H_

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "base/cancel.h"
#include "base/object.h"
#include "base/status.h"
#include "base/thread.h"
#include "data/file/byte_source.h"
#include "tensor/buffer.h"

namespace tutti::impl::data {

/// How the length of a record is known from its first bytes.
struct Framing {
  static constexpr size_t kMostHeaderBytes = 16;

  size_t header_bytes;
  /// Of the whole record, its header included; 0 where these are not the first bytes of one.
  size_t (*record_bytes)(std::string_view header);
};

class FilePrefetch {
 public:
  /// Contents of a block, and the room before them.
  static constexpr size_t kBlockBytes = size_t{256} << 10, kRoomBytes = kBlockBytes / 4 + 64;
  /// Blocks that wait for the consumer or are being read; it holds two more at most.
  static constexpr int64_t kBlocks = 4;
  /// Of a framed record.
  static constexpr size_t kMostFramedBytes = size_t{4} << 20;

  struct Block {
    base::Ref<tensor::Buffer> buffer;
    size_t begin = 0, size = 0;  ///< of the contents
    int64_t most_left = 0;       ///< as ByteSource::most_left() behind it
    base::Status status;         ///< what ended it; it may hold bytes all the same
    bool is_last = false;
  };

  /// Begins where the source stands, and takes it unless the thread cannot be started. Every buffer has `front_bytes`
  /// at its beginning that are not touched. The token is one with which the file was opened; it ends waits of the
  /// consumer, and is cancelled by the destructor.
  static base::Result<std::unique_ptr<FilePrefetch>> start(std::unique_ptr<ByteSource> &source, size_t front_bytes,
                                                           base::Ref<base::CancelToken> token);
  ~FilePrefetch();
  FilePrefetch(const FilePrefetch &) = delete;
  FilePrefetch &operator=(const FilePrefetch &) = delete;

  /// The block that follows. After one that is the last, or whose status is an error, none. An interrupt has taken
  /// nothing.
  base::Result<Block> next();
  const base::Ref<const ReadableFile> &file() const { return file_; }
  /// Does the consumer read, too?
  bool is_shared() const { return is_shared_; }
  /// Forgets what was read and goes on with the record at an offset of the file, in blocks of whole records until
  /// small ones follow. Where the consumer reads too.
  void frame(int64_t offset, const Framing &framing);
  /// Memory of a block that nobody needs any more.
  void give_back(base::Ref<tensor::Buffer> buffer);

 private:
  struct Slot {
    Block block;
    bool is_done = false;
  };

  FilePrefetch(const ByteSource &source, size_t front_bytes, base::Ref<base::CancelToken> token);
  void work();
  bool has_room() const { return !ended_ && claimed_ < taken_ + kBlocks; }
  Slot &slot_of(int64_t number) { return slots_[static_cast<size_t>(number % kBlocks)]; }
  // Reads the next block that nobody reads yet; false when there is none. Called and left with the lock held.
  bool read_one(std::unique_lock<std::mutex> &lock);
  void give_up(const base::Status &reason);
  // How many bytes the block at next_offset_ has.
  size_t next_size();
  base::Ref<tensor::Buffer> take_spare(size_t bytes);
  void keep_spare(base::Ref<tensor::Buffer> buffer);
  base::Status fill(Block &block, int64_t offset, size_t size);
  base::Result<size_t> read(int64_t offset, std::span<char> target);

  const base::Ref<const ReadableFile> file_;
  const size_t front_bytes_;
  const base::Ref<base::CancelToken> token_;
  const bool is_shared_;                // the consumer reads too
  std::unique_ptr<ByteSource> source_;  // of the thread, where it alone reads
  std::mutex mutex_;
  std::condition_variable done_, room_;
  // Guarded by mutex_:
  std::array<Slot, kBlocks> slots_;
  std::vector<base::Ref<tensor::Buffer>> spare_;
  int64_t claimed_ = 0, taken_ = 0;  // blocks that somebody reads or has read; that the consumer took
  int64_t next_offset_ = 0;          // in the file, of the block after the claimed ones; where the consumer reads too
  int64_t epoch_ = 0;                // frame() begins one; what a block of one before holds is not wanted any more
  std::optional<Framing> framing_;   // of the blocks that follow
  bool ended_ = false;               // nothing is read behind the claimed ones
  bool stopping_ = false;

  std::atomic<bool> consumer_waits_{false};  // changed under mutex_

  base::Thread thread_;  // last
};

}  // namespace tutti::impl::data

#endif  // TUTTI_DATA_FILE_FILE_PREFETCH_H_
