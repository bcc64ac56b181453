// SPDX-License-Identifier: Apache-2.0
#include "data/byte_stream.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace tutti::impl::data {

using base::Ref;
using base::Result;
using base::Status;

namespace {

// Deflate cannot do better than about 1032 to 1.
constexpr int64_t kMostRatio = 1100;
constexpr int64_t kRatioSlack = int64_t{1} << 20;

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
  ByteStream stream(std::move(file));
  // A small file needs no large buffer.
  const int64_t size = std::clamp<int64_t>(stream.file_->size_bytes() + 1, 64, int64_t{kBufferBytes});
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
                           compression == Compression::zlib ? "a zlib" : "a gzip", " stream, which it does not begin");
  }
  TUTTI_ASSIGN(base::Inflater inflater, base::Inflater::create({INT64_MAX, kMostRatio}));
  inflater_.emplace(std::move(inflater));
  // What was read is the compressed form; it is read again into a buffer of its own.
  packed_capacity_ = capacity_;
  packed_.reset(new char[packed_capacity_]);
  begin_ = end_ = 0;
  TUTTI_TRY(allocate(kBufferBytes));
  file_offset_ = 0;
  ended_ = false;
  return Status();
}

Status ByteStream::fail(const Status &status) {
  if (base::is_interrupt(status)) return status;
  ended_ = true;
  failure_ = status.wrap(base::concat("cannot read file ", base::quoted(path(), 400), " beyond offset ",
                                      offset_ + static_cast<int64_t>(end_ - begin_)));
  return failure_;
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
  TUTTI_TRY(failure_);
  TUTTI_TRY(make_room());
  char *const target = data() + end_;
  const size_t room = std::min(capacity_ - end_, most);
  Result<size_t> got = inflater_ ? inflate(target, room) : file_->read_at(file_offset_, {target, room});
  if (!got.ok()) return fail(got.status());
  if (!inflater_) file_offset_ += static_cast<int64_t>(*got);
  ended_ = *got == 0;
  end_ += *got;
  return Status();
}

Result<size_t> ByteStream::inflate(char *target, size_t size) {
  for (;;) {
    const std::string_view input(packed_.get() + packed_begin_, packed_end_ - packed_begin_);
    TUTTI_ASSIGN(const base::Inflater::Progress progress, inflater_->inflate(input, {target, size}));
    packed_begin_ += progress.consumed;
    if (progress.produced > 0) return progress.produced;
    if (packed_begin_ < packed_end_) continue;
    TUTTI_ASSIGN(const size_t got, file_->read_at(file_offset_, {packed_.get(), packed_capacity_}));
    if (got == 0) {
      TUTTI_TRY(inflater_->finish());
      return size_t{0};
    }
    file_offset_ += static_cast<int64_t>(got);
    packed_begin_ = 0;
    packed_end_ = got;
  }
}

Result<std::string_view> ByteStream::peek(size_t size, size_t most_ahead) {
  while (end_ - begin_ < size && !ended_)
    TUTTI_TRY(fill(std::max(most_ahead, size - (end_ - begin_))));
  if (end_ - begin_ < size) TUTTI_TRY(failure_);
  return buffered();
}

bool ByteStream::view(size_t skip, size_t size, tensor::Tensor &view) {
  if (without_views_ > 0 || views_ == kMostViews) return false;
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

Result<size_t> ByteStream::read(char *target, size_t size) {
  size_t done = std::min(size, end_ - begin_);
  if (done > 0) std::memcpy(target, data() + begin_, done);
  consume(done);
  while (done < size && !ended_) {
    TUTTI_TRY(failure_);
    Result<size_t> got =
        inflater_ ? inflate(target + done, size - done) : file_->read_at(file_offset_, {target + done, size - done});
    if (!got.ok()) return fail(got.status());
    if (!inflater_) file_offset_ += static_cast<int64_t>(*got);
    offset_ += static_cast<int64_t>(*got);
    ended_ = *got == 0;
    done += *got;
  }
  if (done < size) TUTTI_TRY(failure_);
  return done;
}

Result<bool> ByteStream::read_line(std::string_view &line) {
  for (size_t seen = 0;;) {
    const std::string_view here = buffered();
    const void *const found = here.size() > seen ? std::memchr(here.data() + seen, '\n', here.size() - seen) : nullptr;
    if (found != nullptr) {
      const auto length = static_cast<size_t>(static_cast<const char *>(found) - here.data());
      line = here.substr(0, length > 0 && here[length - 1] == '\r' ? length - 1 : length);
      consume(length + 1);
      return true;
    }
    seen = here.size();
    if (ended_) break;
    TUTTI_TRY(fill(SIZE_MAX));
  }
  TUTTI_TRY(failure_);
  line = buffered();
  const bool more = !line.empty();
  consume(line.size());
  return more;
}

Status ByteStream::move_to(int64_t offset) {
  const auto ends_early = [&] {
    return base::data_loss("file ", base::quoted(path(), 400), " ends before offset ", offset,
                           "; it was longer when the position in it was saved");
  };
  if (!inflater_ && offset > offset_ + static_cast<int64_t>(end_ - begin_)) {
    if (offset > file_->size_bytes()) return ends_early();
    begin_ = end_ = 0;
    file_offset_ = offset_ = offset;
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

int64_t ByteStream::most_left() const {
  const int64_t unread = std::max<int64_t>(file_->size_bytes() - file_offset_, 0);
  const auto here = static_cast<int64_t>(end_ - begin_);
  if (!inflater_) return here + unread;
  const int64_t packed = unread + static_cast<int64_t>(packed_end_ - packed_begin_);
  return here + (packed > INT64_MAX / kMostRatio / 2 ? INT64_MAX / 2 : packed * kMostRatio + kRatioSlack);
}

}  // namespace tutti::impl::data
