// SPDX-License-Identifier: Apache-2.0
//
// CSV as RFC 4180 has it: records of fields between delimiters; a field in quotes may hold delimiters, ends of lines
// and doubled quotes. Beyond the RFC: lines may end in LF alone, empty lines are left out, a byte order mark at the
// beginning is skipped, and a quote inside a field that does not begin with one is an ordinary character.
//
// Threads: an object belongs to one thread at a time.
#ifndef TUTTI_DATA_FORMAT_CSV_H_
#define TUTTI_DATA_FORMAT_CSV_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "data/file/byte_stream.h"

namespace tutti::impl::data {

/// Reads record by record.
class CsvReader {
 public:
  explicit CsvReader(char delimiter) : delimiter_(delimiter) {}

  struct Value {
    std::string_view text;  // without quotes
    bool quoted = false;
  };

  /// Before the first record of a file.
  base::Status begin(ByteStream &stream);
  /// The next record; false at the end. The values lie in the stream's buffer or in the reader until the next call.
  /// DATA_LOSS naming file and line: a quote that does not end, text behind one, and on the first line a line that ends
  /// in CR alone. The record is consumed then too.
  base::Result<bool> read(ByteStream &stream);

  const std::vector<Value> &values() const { return values_; }
  /// The line that the record read last begins on, counted from 1.
  int64_t line() const { return record_line_; }
  /// The line that comes next.
  int64_t next_line() const { return next_line_; }
  void set_next_line(int64_t line) { next_line_ = line; }

 private:
  struct Place {
    size_t begin, end;  // of the text, without quotes, from the record's first byte
    bool quoted, doubled;
  };
  base::Result<bool> find_fields(ByteStream &stream);
  base::Result<bool> find_field(ByteStream &stream, bool &record_ends);
  base::Status check_line_ends(const ByteStream &stream) const;
  base::Status find_quote_end(ByteStream &stream);
  base::Status text_behind_quote(ByteStream &stream);
  bool more_at(ByteStream &stream, size_t position, base::Status &status);

  const char delimiter_;
  std::string_view here_;  // the stream's buffer, from the record's first byte
  size_t at_ = 0;          // in here_
  std::vector<Place> places_;
  std::vector<Value> values_;
  std::string unquoted_;
  int64_t next_line_ = 1, record_line_ = 1;
};

}  // namespace tutti::impl::data

#endif  // TUTTI_DATA_FORMAT_CSV_H_
