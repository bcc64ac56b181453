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
#include "data/element/bytes_rows.h"
#include "data/file/byte_stream.h"
#include "tensor/tensor.h"

namespace tutti::impl::data {

/// Opens a file of records. Compression::automatic tells a plain file by the checksum of its first length, so that no
/// length is taken for the first bytes of a compressed stream.
base::Result<ByteStream> open_record_stream(base::Ref<const ReadableFile> file, Compression compression);

/// Reads record by record. Memory of records that nobody holds any more is used again: whoever drops a record before it
/// asks for the next one, or has it replaced, reads without allocations.
class RecordReader {
 public:
  /// The next record as a scalar of dtype bytes, in place of what `record` was; false at the end. DATA_LOSS names file
  /// and offset.
  base::Result<bool> read(ByteStream &stream, tensor::Tensor &record);
  /// The same as one more row.
  base::Result<bool> read(ByteStream &stream, BytesRows &rows);
  /// After an error: was only the data damaged, so that the stream stands at the next record?
  bool can_go_on() const { return can_go_on_; }

 private:
  struct Record {
    int64_t start = 0;  // offset of its header
    size_t size = 0;    // of its data
    bool is_large = false;
  };

  /// What comes next; false at the end. The stream stays at its header.
  base::Result<bool> find(ByteStream &stream, Record &record);
  /// Its data in the stream's buffer, which stands at the header still. A damaged record is left behind.
  base::Result<const char *> find_data(ByteStream &stream, const Record &record);
  /// Its data to `target`.
  base::Status read_large(ByteStream &stream, const Record &record, char *target);
  bool is_last(const tensor::Tensor &record) const;
  base::Result<char *> make_room(size_t size, tensor::Tensor &record);
  base::Status check_data(const ByteStream &stream, const Record &record, uint32_t crc, const char *stored);
  static base::Status ends_early(const ByteStream &stream, const Record &record);

  tensor::Tensor last_;           // the last record that has memory of its own
  size_t most_ahead_ = SIZE_MAX;  // what may be read with a header
  bool can_go_on_ = true;
};

/// A record with what stands around it in a file that is not compressed, behind what is in `file`.
void append_record(std::string_view record, std::string &file);

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
