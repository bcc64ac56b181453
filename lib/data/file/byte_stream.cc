// SPDX-License-Identifier: Apache-2.0
#include "data/file/byte_stream.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace tutti::impl::data {

using base::Ref;
using base::Result;
using base::Status;

namespace {

constexpr int64_t kAheadFrom = int64_t{4} << 20, kAheadFromPacked = int64_t{512} << 10;

bool looks_like_zlib(std::string_view bytes) {
  if (bytes.size() < 2) return false;
  const auto first = static_cast<unsigned char>(bytes[0]), second = static_cast<unsigned char>(bytes[1]);
  return (first & 15) == 8 && (first * 256 + second) % 31 == 0;
}

}  // namespace

Result<Compression> parse_compression(std::string_view text) {
  if (text == "auto") return Compression::automatic;
  if (text == "none") return Compression::none;
  if (text == "gzip") return Compression::gzip;
  if (text == "zlib") return Compression::zlib;
  return base::invalid_argument("compression: expected auto, none, gzip or zlib, got ", base::quoted(text));
}

Result<ByteStream> ByteStream::open(Ref<const ReadableFile> file, Compression compression) {
  ByteStream stream(file);
  // A small file needs no large buffer.
  const int64_t size = std::clamp<int64_t>(file->size_bytes() + 1, 64, int64_t{kBufferBytes});
  TUTTI_TRY(stream.allocate(static_cast<size_t>(size)));
  TUTTI_TRY(stream.choose(compression));
  return stream;
}

Status ByteStream::choose(Compression compression) {
  if (compression == Compression::none) return Status();
  TUTTI_ASSIGN(const std::string_view start, peek(2));
  const bool is_gzip = base::looks_like_gzip(start);
  if (compression == Compression::automatic && !is_gzip) return Status();
  if (compression == Compression::zlib ? !looks_like_zlib(start) : !is_gzip) {
    return base::data_loss("corrupt file ", base::quoted(path(), 400), ": expected ",
                           compression == Compression::zlib ? "a zlib" : "a gzip", " stream");
  }
  // What was read is the compressed form; it is read again into a buffer of its own.
  TUTTI_TRY(source_->inflate(capacity_));
  is_compressed_ = true;
  most_behind_ = source_->most_left();
  begin_ = end_ = 0;
  ended_ = false;
  return allocate(kBufferBytes);
}

bool ByteStream::is_worth_reading_ahead() const {
  if (source_ == nullptr || ended_) return false;
  const int64_t left = source_->file()->size_bytes() - source_->file_offset();
  return left >= (is_compressed_ ? kAheadFromPacked : kAheadFrom);
}

Status ByteStream::read_ahead(Ref<base::CancelToken> token) {
  TUTTI_ASSIGN(ahead_, FilePrefetch::start(source_, kFrontBytes, std::move(token)));
  return Status();
}

Status ByteStream::told_failure() {
  has_told_failure_ = !failure_.ok();
  return failure_;
}

Status ByteStream::fail(const Status &status) {
  if (base::is_interrupt(status)) return status;
  ended_ = true;
  failure_ = status.wrap(base::concat("cannot read file ", base::quoted(path(), 400), " beyond offset ",
                                      offset_ + static_cast<int64_t>(end_ - begin_)));
  return told_failure();
}

Status ByteStream::too_large() {
  ended_ = true;
  failure_ =
      base::data_loss("file ", base::quoted(path(), 400), ": the record at offset ", offset_,
                      " of the decompressed data is larger than maximum_record_bytes = ", most_record_bytes_, " bytes");
  return told_failure();
}

// Moves what the old buffer holds to a new one.
Status ByteStream::allocate(size_t capacity) {
  TUTTI_ASSIGN(Ref<tensor::Buffer> larger, tensor::Buffer::allocate(static_cast<int64_t>(kFrontBytes + capacity)));
  if (end_ > begin_) std::memcpy(static_cast<char *>(larger->data()) + kFrontBytes, data() + begin_, end_ - begin_);
  end_ -= std::exchange(begin_, 0);
  buffer_ = std::move(larger);
  capacity_ = capacity;
  views_ = 0;
  return Status();
}

Status ByteStream::make_room() {
  if (without_views_ > 0) --without_views_;
  const bool is_held = buffer_->reference_count() > 1;
  if (is_held) without_views_ = kWithoutViews;
  if (end_ - begin_ == capacity_) return allocate(capacity_ * 2);
  if (is_held) return allocate(capacity_);
  if (begin_ > 0 && end_ > begin_) std::memmove(data(), data() + begin_, end_ - begin_);
  end_ -= std::exchange(begin_, 0);
  views_ = 0;
  return Status();
}

Status ByteStream::fill(size_t most) {
  TUTTI_TRY(told_failure());
  if (is_compressed_ && end_ - begin_ > most_record_bytes_ + kBesideRecord) return too_large();
  if (ahead_ != nullptr) return take_block();
  TUTTI_TRY(make_room());
  const Result<size_t> got = source_->read({data() + end_, std::min(capacity_ - end_, most)});
  if (!got.ok()) return fail(got.status());
  ended_ = *got == 0;
  end_ += *got;
  most_behind_ = source_->most_left();
  return Status();
}

Status ByteStream::take_block() {
  TUTTI_ASSIGN(FilePrefetch::Block block, ahead_->next());
  const size_t kept = end_ - begin_;
  const size_t begin = block.begin - kFrontBytes;
  if (without_views_ > 0) --without_views_;
  const bool is_held = buffer_->reference_count() > 1;
  if (is_held) without_views_ = kWithoutViews;
  most_behind_ = block.most_left;
  ended_ = block.is_last;
  if (block.size > 0 && kept > begin) {
    TUTTI_TRY(append(block));
    ahead_->give_back(std::move(block.buffer));
  } else if (block.size > 0) {
    if (kept > 0) std::memcpy(static_cast<char *>(block.buffer->data()) + block.begin - kept, data() + begin_, kept);
    std::swap(buffer_, block.buffer);
    begin_ = begin - kept;
    capacity_ = end_ = begin + block.size;
    views_ = 0;
    if (!is_held) ahead_->give_back(std::move(block.buffer));
  }
  // What came before is read first.
  if (!block.status.ok()) (void)fail(block.status);
  has_told_failure_ = false;
  return Status();
}

// There is more left of the blocks before than goes in front of this one.
Status ByteStream::append(const FilePrefetch::Block &block) {
  if (capacity_ - end_ < block.size) TUTTI_TRY(allocate(std::max(2 * (end_ - begin_), end_ - begin_ + block.size)));
  std::memcpy(data() + end_, static_cast<const char *>(block.buffer->data()) + block.begin, block.size);
  end_ += block.size;
  return Status();
}

Result<std::string_view> ByteStream::peek(size_t size, size_t most_ahead) {
  while (end_ - begin_ < size && !ended_)
    TUTTI_TRY(fill(std::max(most_ahead, size - (end_ - begin_))));
  if (end_ - begin_ < size) TUTTI_TRY(told_failure());
  return buffered();
}

bool ByteStream::view(size_t skip, size_t size, tensor::Tensor &view) {
  if ((without_views_ > 0 && size < capacity_ / 2) || views_ == kMostViews) return false;
  const size_t place = views_ * 2 * sizeof(int64_t);
  auto *const offsets = reinterpret_cast<int64_t *>(static_cast<char *>(buffer_->data()) + place);
  offsets[0] = static_cast<int64_t>(kFrontBytes + begin_ + skip);
  offsets[1] = offsets[0] + static_cast<int64_t>(size);
  Result<tensor::Tensor> made =
      tensor::Tensor::from_buffer(tensor::DType::bytes, {}, buffer_, static_cast<int64_t>(place));
  if (!made.ok()) return false;
  view = made.take();
  ++views_;
  return true;
}

bool ByteStream::is_through_buffer(size_t size, const Framing &framing) {
  if (is_compressed_) return true;
  if (ahead_ == nullptr) return size <= kBufferBytes / 4;
  if (size <= std::max(FilePrefetch::kRoomBytes, end_ - begin_)) return true;
  if (!ahead_->is_shared()) return false;
  if (size > FilePrefetch::kMostFramedBytes) {
    read_alone();
    return false;
  }
  if (offset_ < next_frame_) return false;
  next_frame_ = offset_ + kFrameOncePer;
  ahead_->frame(offset_, framing);
  begin_ = end_ = 0;
  most_behind_ = ahead_->file()->size_bytes() - offset_;
  return true;
}

void ByteStream::read_alone() {
  source_ = std::make_unique<ByteSource>(ahead_->file());
  source_->move_to(offset_ + static_cast<int64_t>(end_ - begin_));
  most_behind_ = source_->most_left();
  ahead_.reset();
}

Result<size_t> ByteStream::read(char *target, size_t size) {
  size_t done = 0;
  for (;;) {
    const size_t here = std::min(size - done, end_ - begin_);
    if (here > 0) std::memcpy(target + done, data() + begin_, here);
    consume(here);
    done += here;
    if (done == size || ended_) break;
    TUTTI_TRY(told_failure());
    if (ahead_ != nullptr) {
      TUTTI_TRY(fill(SIZE_MAX));
      continue;
    }
    const Result<size_t> got = source_->read({target + done, size - done});
    if (!got.ok()) return fail(got.status());
    most_behind_ = source_->most_left();
    offset_ += static_cast<int64_t>(*got);
    ended_ = *got == 0;
    done += *got;
  }
  if (done < size) TUTTI_TRY(told_failure());
  return done;
}

Result<bool> ByteStream::read_line(std::string_view &line) {
  for (size_t seen = 0;;) {
    const std::string_view here = buffered();
    const void *const found = here.size() > seen ? std::memchr(here.data() + seen, '\n', here.size() - seen) : nullptr;
    if (found != nullptr) {
      const auto length = static_cast<size_t>(static_cast<const char *>(found) - here.data());
      TUTTI_TRY(check_record(length));
      line = here.substr(0, length > 0 && here[length - 1] == '\r' ? length - 1 : length);
      consume(length + 1);
      return true;
    }
    seen = here.size();
    if (ended_) break;
    TUTTI_TRY(fill(SIZE_MAX));
  }
  TUTTI_TRY(told_failure());
  TUTTI_TRY(check_record(buffered().size()));
  line = buffered();
  const bool more = !line.empty();
  consume(line.size());
  return more;
}

Status ByteStream::skip_byte_order_mark() {
  TUTTI_ASSIGN(const std::string_view start, peek(kByteOrderMark.size()));
  if (start.starts_with(kByteOrderMark)) consume(kByteOrderMark.size());
  return Status();
}

Status ByteStream::move_to(int64_t offset) {
  const auto ends_early = [&] {
    return base::data_loss("file ", base::quoted(path(), 400), " ends before offset ", offset,
                           "; it was longer when the position in it was saved");
  };
  if (!is_compressed_ && ahead_ == nullptr && offset > offset_ + static_cast<int64_t>(end_ - begin_)) {
    if (offset > source_->file()->size_bytes()) return ends_early();
    begin_ = end_ = 0;
    source_->move_to(offset);
    most_behind_ = source_->most_left();
    offset_ = offset;
    ended_ = false;
    return Status();
  }
  while (offset_ < offset) {
    TUTTI_ASSIGN(const std::string_view here, peek(1));
    if (here.empty()) return ends_early();
    consume(std::min(here.size(), static_cast<size_t>(offset - offset_)));
  }
  return Status();
}

}  // namespace tutti::impl::data
