// SPDX-License-Identifier: Apache-2.0
//
// TFRecord, the file format of TensorFlow's records: one after the other
//
//   u64 length | u32 masked CRC-32C of the length | data | u32 masked CRC-32C of the data
//
// in little-endian order, the whole file perhaps one gzip or zlib stream. Both checksums are checked. Source of the
// format: TensorFlow, core/lib/io/record_writer.h.
//
// Threads: an object belongs to one thread at a time.
#ifndef TUTTI_DATA_FORMAT_RECORD_H_
#define TUTTI_DATA_FORMAT_RECORD_H_

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/file.h"
#include "base/gzip.h"
#include "base/status.h"
#include "data/byte_stream.h"
#include "tensor/tensor.h"

namespace tutti::impl::data {

/// Opens a file of records. Compression::automatic tells a plain file by the checksum of its first length, so that no
/// length is taken for the first bytes of a compressed stream.
base::Result<ByteStream> open_record_stream(base::Ref<const ReadableFile> file, Compression compression);

/// Reads record by record.
class RecordReader {
 public:
  /// The next record as a scalar of dtype bytes; nothing at the end. DATA_LOSS names file and offset.
  base::Result<std::optional<tensor::Tensor>> read(ByteStream &stream);
  /// After an error: was only the data damaged, so that the stream stands at the next record?
  bool can_go_on() const { return can_go_on_; }

 private:
  base::Result<tensor::Tensor> read_data(ByteStream &stream, int64_t start, uint64_t length);
  base::Status check_data(const ByteStream &stream, int64_t start, std::string_view data, const char *stored);

  bool can_go_on_ = true;
};

/// Writes a file of records, byte by byte what TensorFlow writes. The file is there once close() has succeeded,
/// complete; before, and without close(), there is none.
class RecordWriter {
 public:
  /// `compression` is not automatic.
  static base::Result<RecordWriter> create(const std::string &path, Compression compression);

  base::Status write(std::string_view record);
  /// Once, and last.
  base::Status close();
  int64_t records() const { return records_; }

 private:
  explicit RecordWriter(base::AtomicFile file) : file_(std::move(file)) {}
  base::Status append(std::string_view bytes);
  base::Status flush(size_t most);

  base::AtomicFile file_;
  std::optional<base::Deflater> deflater_;
  std::string waiting_;  // for the file
  int64_t records_ = 0;
  bool closed_ = false;
  base::Status failure_;
};

}  // namespace tutti::impl::data

#endif  // TUTTI_DATA_FORMAT_RECORD_H_
