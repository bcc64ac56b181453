// SPDX-License-Identifier: Apache-2.0
#include "data/format/record.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "base/hash/checksum.h"

namespace tutti::impl::data {

using base::Ref;
using base::Result;
using base::Status;
using tensor::Tensor;

namespace {

constexpr size_t kHeaderBytes = 12, kFooterBytes = 4;
// Smaller records are copied from the stream's buffer: that costs no more than sharing it.
constexpr size_t kViewedFrom = 2048;
// Those that do not pass through the stream's buffer come in pieces, whose checksum is made while they are in the
// cache; and with the header behind one, no more than this is read.
constexpr size_t kPieceBytes = ByteStream::kBufferBytes;
constexpr size_t kAheadOfLarge = 64;
// A scalar of dtype bytes is two offsets and the data (bytes_tensor.h).
constexpr size_t kOffsetBytes = 16;

template <typename Number>
Number load(const char *from) {
  Number value = 0;
  std::memcpy(&value, from, sizeof(Number));
  if constexpr (std::endian::native == std::endian::big) {
    auto *const bytes = reinterpret_cast<char *>(&value);
    std::reverse(bytes, bytes + sizeof(Number));
  }
  return value;
}

template <typename Number>
void store_number(Number value, char *to) {
  for (size_t i = 0; i < sizeof(Number); ++i)
    to[i] = static_cast<char>(value >> (8 * i));
}

// Of a record with data of this size.
size_t whole(size_t size) { return kHeaderBytes + size + kFooterBytes; }

uint32_t masked_crc(const char *data, size_t size) { return base::mask_crc(base::crc32c(data, size)); }

bool is_header(std::string_view bytes) {
  return bytes.size() >= kHeaderBytes && load<uint32_t>(bytes.data() + 8) == masked_crc(bytes.data(), 8);
}

// Of the record with this header; 0 where it is none, or of one that is too long for any file.
size_t record_bytes(std::string_view header) {
  if (!is_header(header)) return 0;
  const auto length = load<uint64_t>(header.data());
  return length < SIZE_MAX / 2 ? whole(static_cast<size_t>(length)) : 0;
}

template <typename... Pieces>
Status corrupt(const ByteStream &stream, int64_t offset, const Pieces &...pieces) {
  return base::data_loss("corrupt record file ", base::quoted(stream.path(), 400), " at offset ", offset, ": ",
                         base::concat(pieces...));
}

}  // namespace

Result<ByteStream> open_record_stream(Ref<const ReadableFile> file, Compression compression) {
  if (compression != Compression::automatic) return ByteStream::open(std::move(file), compression);
  TUTTI_ASSIGN(ByteStream plain, ByteStream::open(file, Compression::none));
  TUTTI_ASSIGN(const std::string_view start, plain.peek(kHeaderBytes));
  if (is_header(start)) return plain;
  for (const Compression one : {Compression::gzip, Compression::zlib}) {
    Result<ByteStream> stream = ByteStream::open(file, one);
    if (stream.ok() || base::is_interrupt(stream.status())) return stream;
  }
  return plain;
}

Result<bool> RecordReader::find(ByteStream &stream, Record &record) {
  can_go_on_ = false;
  record.start = stream.offset();
  TUTTI_ASSIGN(const std::string_view header, stream.peek(kHeaderBytes, most_ahead_));
  if (header.empty()) return false;
  if (header.size() < kHeaderBytes) {
    return corrupt(stream, record.start, "expected the 12 bytes before a record, the file ends after ", header.size());
  }
  if (!is_header(header)) {
    return corrupt(stream, record.start, "the checksum of the record's length is wrong");
  }
  const auto length = load<uint64_t>(header.data());
  const auto most = static_cast<uint64_t>(stream.most_left());
  if (length > most || most - length < kHeaderBytes + kFooterBytes) {
    return corrupt(stream, record.start, "expected a record of ", length, " bytes, the file ends within it");
  }
  record.size = static_cast<size_t>(length);
  TUTTI_TRY(stream.check_record(record.size));
  // In a compressed stream nothing but reading on tells whether the data are there.
  record.is_large = !stream.is_through_buffer(whole(record.size), {kHeaderBytes, record_bytes});
  most_ahead_ = record.is_large ? kAheadOfLarge : SIZE_MAX;
  return true;
}

Result<bool> RecordReader::read(ByteStream &stream, Tensor &tensor) {
  // A view must go before its buffer is asked for more; memory of the last record may stay where it is.
  if (!is_last(tensor)) tensor = Tensor();
  Record record;
  TUTTI_ASSIGN(const bool more, find(stream, record));
  if (!more) return false;
  if (record.is_large) {
    TUTTI_ASSIGN(char *const target, make_room(record.size, tensor));
    TUTTI_TRY(read_large(stream, record, target));
    return true;
  }
  TUTTI_ASSIGN(const char *const data, find_data(stream, record));
  if (record.size < kViewedFrom || !stream.view(kHeaderBytes, record.size, tensor)) {
    TUTTI_ASSIGN(char *const target, make_room(record.size, tensor));
    if (record.size > 0) std::memcpy(target, data, record.size);
  }
  stream.consume(whole(record.size));
  return true;
}

Result<bool> RecordReader::read(ByteStream &stream, BytesRows &rows) {
  Record record;
  TUTTI_ASSIGN(const bool more, find(stream, record));
  if (!more) return false;
  if (record.is_large) {
    TUTTI_ASSIGN(char *const target, rows.add(record.size));
    const Status status = read_large(stream, record, target);
    if (!status.ok()) rows.drop_last();
    TUTTI_TRY(status);
    return true;
  }
  TUTTI_ASSIGN(const char *const data, find_data(stream, record));
  TUTTI_ASSIGN(char *const target, rows.add(record.size));
  if (record.size > 0) std::memcpy(target, data, record.size);
  stream.consume(whole(record.size));
  return true;
}

Result<const char *> RecordReader::find_data(ByteStream &stream, const Record &record) {
  TUTTI_ASSIGN(const std::string_view all, stream.peek(whole(record.size)));
  if (all.size() < whole(record.size)) return ends_early(stream, record);
  const char *const data = all.data() + kHeaderBytes;
  Status status = check_data(stream, record, base::crc32c(data, record.size), data + record.size);
  if (status.ok()) return data;
  stream.consume(whole(record.size));
  return status;
}

Status RecordReader::read_large(ByteStream &stream, const Record &record, char *target) {
  stream.consume(kHeaderBytes);
  uint32_t crc = 0;
  for (size_t done = 0; done < record.size;) {
    const size_t piece = std::min(kPieceBytes, record.size - done);
    TUTTI_ASSIGN(const size_t got, stream.read(target + done, piece));
    if (got < piece) return ends_early(stream, record);
    crc = base::crc32c(target + done, piece, crc);
    done += piece;
  }
  TUTTI_ASSIGN(const std::string_view footer, stream.peek(kFooterBytes, most_ahead_));
  if (footer.size() < kFooterBytes) return ends_early(stream, record);
  char stored[kFooterBytes];
  std::memcpy(stored, footer.data(), kFooterBytes);
  stream.consume(kFooterBytes);
  return check_data(stream, record, crc, stored);
}

bool RecordReader::is_last(const Tensor &record) const {
  return record && record.buffer() == last_.buffer() && record.rank() == 0 && record.offset_bytes() == 0;
}

// A record of this size with memory of its own, which is last_ too; gives where its data go.
Result<char *> RecordReader::make_room(size_t size, Tensor &record) {
  const auto needed = static_cast<int64_t>(size + kOffsetBytes);
  const bool is_shared = is_last(record);
  const int64_t capacity = last_ ? last_.buffer()->size_bytes() : 0;
  const bool fits =
      capacity >= needed && capacity / 4 <= needed && last_.buffer()->reference_count() == (is_shared ? 2 : 1);
  if (!fits) {
    record = last_ = Tensor();
    TUTTI_ASSIGN(Ref<tensor::Buffer> buffer, tensor::Buffer::allocate(needed));
    auto *const first = static_cast<int64_t *>(buffer->data());
    first[0] = first[1] = kOffsetBytes;
    TUTTI_ASSIGN(last_, Tensor::from_buffer(tensor::DType::bytes, {}, std::move(buffer)));
  }
  if (!fits || !is_shared) record = last_;
  auto *const offsets = static_cast<int64_t *>(last_.buffer()->data());
  offsets[0] = kOffsetBytes;
  offsets[1] = needed;
  return reinterpret_cast<char *>(offsets) + kOffsetBytes;
}

Status RecordReader::check_data(const ByteStream &stream, const Record &record, uint32_t crc, const char *stored) {
  can_go_on_ = true;
  if (load<uint32_t>(stored) == base::mask_crc(crc)) return Status();
  return corrupt(stream, record.start, "the checksum of the record's data (", record.size, " bytes) is wrong");
}

Status RecordReader::ends_early(const ByteStream &stream, const Record &record) {
  return corrupt(stream, record.start, "the file ends within the record of ", record.size, " bytes");
}

namespace {

struct Frame {
  explicit Frame(std::string_view record) {
    store_number<uint64_t>(record.size(), header);
    store_number<uint32_t>(masked_crc(header, 8), header + 8);
    store_number<uint32_t>(masked_crc(record.data(), record.size()), footer);
  }
  char header[kHeaderBytes], footer[kFooterBytes];
};

}  // namespace

void append_record(std::string_view record, std::string &file) {
  const Frame frame(record);
  file.append(frame.header, kHeaderBytes).append(record).append(frame.footer, kFooterBytes);
}

Result<RecordWriter> RecordWriter::create(const std::string &path, Compression compression) {
  if (path.empty()) return base::invalid_argument("expected the path of a file to write, got an empty text");
  TUTTI_ASSIGN(base::AtomicFile file, base::AtomicFile::create(path));
  RecordWriter writer(std::move(file));
  if (compression == Compression::automatic) {
    return base::invalid_argument("compression: expected none, gzip or zlib for a file to write");
  }
  if (compression != Compression::none) {
    // TensorFlow's memory level.
    TUTTI_ASSIGN(
        base::Deflater deflater,
        base::Deflater::create(
            compression == Compression::gzip ? base::Deflater::Format::gzip : base::Deflater::Format::zlib, 6, 9));
    writer.deflater_.emplace(std::move(deflater));
  }
  return writer;
}

Status RecordWriter::append(std::string_view bytes) {
  if (deflater_) return deflater_->append(bytes, waiting_);
  waiting_.append(bytes);
  return Status();
}

Status RecordWriter::flush(size_t most) {
  if (waiting_.size() <= most) return Status();
  TUTTI_TRY(file_.append(waiting_));
  waiting_.clear();
  return Status();
}

Status RecordWriter::write(std::string_view record) {
  TUTTI_TRY(failure_);
  if (closed_) return base::failed_precondition("the record writer is already closed");
  const Frame frame(record);
  for (const std::string_view part :
       {std::string_view(frame.header, kHeaderBytes), record, std::string_view(frame.footer, kFooterBytes)}) {
    failure_ = append(part);
    TUTTI_TRY(failure_);
  }
  failure_ = flush(ByteStream::kBufferBytes);
  TUTTI_TRY(failure_);
  ++records_;
  return Status();
}

Status RecordWriter::close() {
  TUTTI_TRY(failure_);
  if (closed_) return base::failed_precondition("the record writer is already closed");
  closed_ = true;
  if (deflater_) failure_ = deflater_->finish(waiting_);
  TUTTI_TRY(failure_);
  failure_ = flush(0);
  TUTTI_TRY(failure_);
  return failure_ = file_.commit();
}

}  // namespace tutti::impl::data
