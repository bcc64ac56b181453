// SPDX-License-Identifier: Apache-2.0
#include "data/format/record.h"

#include <cstring>
#include <utility>

#include "base/checksum.h"
#include "tensor/bytes_tensor.h"

namespace tutti::impl::data {

using base::Ref;
using base::Result;
using base::Status;
using tensor::Tensor;

namespace {

constexpr size_t kHeaderBytes = 12;
constexpr size_t kFooterBytes = 4;
// Larger records do not pass through the stream's buffer.
constexpr uint64_t kThroughBuffer = ByteStream::kBufferBytes / 2;

template <typename Number>
Number load(const char *from) {
  Number value = 0;
  for (size_t i = sizeof(Number); i-- > 0;)
    value = static_cast<Number>(value << 8 | static_cast<unsigned char>(from[i]));
  return value;
}

template <typename Number>
void store(Number value, char *to) {
  for (size_t i = 0; i < sizeof(Number); ++i)
    to[i] = static_cast<char>(value >> (8 * i));
}

uint32_t masked_crc(const char *data, size_t size) { return base::mask_crc(base::crc32c(data, size)); }

bool is_header(std::string_view bytes) {
  return bytes.size() >= kHeaderBytes && load<uint32_t>(bytes.data() + 8) == masked_crc(bytes.data(), 8);
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
    if (stream.ok()) return stream;
  }
  return plain;
}

Result<std::optional<Tensor>> RecordReader::read(ByteStream &stream) {
  can_go_on_ = false;
  const int64_t start = stream.offset();
  TUTTI_ASSIGN(const std::string_view header, stream.peek(kHeaderBytes));
  if (header.empty()) return std::optional<Tensor>();
  if (header.size() < kHeaderBytes) {
    return corrupt(stream, start, "expected the 12 bytes before a record, the file ends after ", header.size());
  }
  if (!is_header(header)) {
    return corrupt(stream, start, "the length of the record does not have its checksum");
  }
  const auto length = load<uint64_t>(header.data());
  const auto most = static_cast<uint64_t>(stream.most_left());
  if (length > most || most - length < kHeaderBytes + kFooterBytes) {
    return corrupt(stream, start, "expected a record of ", length, " bytes, the file ends before it does");
  }
  TUTTI_ASSIGN(Tensor record, read_data(stream, start, length));
  return std::optional<Tensor>(std::move(record));
}

// A scalar of dtype bytes is two offsets and the data (bytes_tensor.h).
Result<Tensor> RecordReader::read_data(ByteStream &stream, int64_t start, uint64_t length) {
  const auto size = static_cast<size_t>(length);
  const auto ends_early = [&] { return corrupt(stream, start, "the file ends within the record of ", size, " bytes"); };
  const auto make = [&]() -> Result<Ref<tensor::Buffer>> {
    TUTTI_ASSIGN(Ref<tensor::Buffer> buffer, tensor::Buffer::allocate(static_cast<int64_t>(size + 16)));
    auto *const offsets = static_cast<int64_t *>(buffer->data());
    offsets[0] = 16;
    offsets[1] = static_cast<int64_t>(size + 16);
    return buffer;
  };
  // In a compressed stream nothing but reading on tells whether the data are there.
  if (length <= kThroughBuffer || stream.is_compressed()) {
    TUTTI_ASSIGN(const std::string_view all, stream.peek(kHeaderBytes + size + kFooterBytes));
    if (all.size() < kHeaderBytes + size + kFooterBytes) return ends_early();
    const std::string_view data = all.substr(kHeaderBytes, size);
    Status status = check_data(stream, start, data, data.data() + size);
    TUTTI_ASSIGN(Ref<tensor::Buffer> buffer, make());
    if (size > 0) std::memcpy(static_cast<char *>(buffer->data()) + 16, data.data(), size);
    stream.consume(kHeaderBytes + size + kFooterBytes);
    TUTTI_TRY(status);
    return Tensor::from_buffer(tensor::DType::bytes, {}, std::move(buffer));
  }
  TUTTI_ASSIGN(Ref<tensor::Buffer> buffer, make());
  char *const target = static_cast<char *>(buffer->data()) + 16;
  char stored[kFooterBytes];
  stream.consume(kHeaderBytes);
  TUTTI_ASSIGN(const size_t got, stream.read(target, size));
  TUTTI_ASSIGN(const size_t footer, stream.read(stored, kFooterBytes));
  if (got < size || footer < kFooterBytes) return ends_early();
  TUTTI_TRY(check_data(stream, start, {target, size}, stored));
  return Tensor::from_buffer(tensor::DType::bytes, {}, std::move(buffer));
}

Status RecordReader::check_data(const ByteStream &stream, int64_t start, std::string_view data, const char *stored) {
  can_go_on_ = true;
  if (load<uint32_t>(stored) == masked_crc(data.data(), data.size())) return Status();
  return corrupt(stream, start, "the data of the record, ", data.size(), " bytes, do not have their checksum");
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
  if (closed_) return base::failed_precondition("the record writer was closed before");
  char header[kHeaderBytes], footer[kFooterBytes];
  store<uint64_t>(record.size(), header);
  store<uint32_t>(masked_crc(header, 8), header + 8);
  store<uint32_t>(masked_crc(record.data(), record.size()), footer);
  for (const std::string_view part :
       {std::string_view(header, kHeaderBytes), record, std::string_view(footer, kFooterBytes)}) {
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
  if (closed_) return base::failed_precondition("the record writer was closed before");
  closed_ = true;
  if (deflater_) failure_ = deflater_->finish(waiting_);
  TUTTI_TRY(failure_);
  failure_ = flush(0);
  TUTTI_TRY(failure_);
  return failure_ = file_.commit();
}

}  // namespace tutti::impl::data
