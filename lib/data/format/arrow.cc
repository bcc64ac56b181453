// SPDX-License-Identifier: Apache-2.0
//
// Arrow C data interface: https://arrow.apache.org/docs/format/CDataInterface.html; memory layout of arrays:
// https://arrow.apache.org/docs/format/Columnar.html.
#include "data/format/arrow.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/host_function.h"
#include "base/name_suggestions.h"
#include "data/element/name_index.h"
#include "data/format/arrow_column.h"

namespace tutti::impl::data {

using base::Result;
using base::Status;

namespace {

/// Calls the producer's release function of a stream, schema or array, if there is one.
template <typename Struct>
void release_given(Struct &given) {
  if (given.release != nullptr) (void)base::catch_thrown("the release function", [&] { given.release(&given); });
}

/// A batch of the producer, released with the last tensor over it.
struct OwnedArray {
  ArrowArray array = {};
  OwnedArray() = default;
  OwnedArray(const OwnedArray &) = delete;
  OwnedArray &operator=(const OwnedArray &) = delete;
  ~OwnedArray() { release_given(array); }
};

struct OwnedSchema {
  ArrowSchema schema = {};
  OwnedSchema() = default;
  OwnedSchema(const OwnedSchema &) = delete;
  OwnedSchema &operator=(const OwnedSchema &) = delete;
  ~OwnedSchema() { release_given(schema); }
};

/// Reads a whole stream.
class TableReader {
 public:
  TableReader(ArrowArrayStream *stream, const std::vector<ArrowColumn> &columns) : stream_(stream), columns_(columns) {}

  Result<ArrowTable> read() {
    TUTTI_TRY(read_schema());
    for (;;) {
      const auto batch = std::make_shared<OwnedArray>();
      TUTTI_TRY(call("get_next", [&] { return stream_->get_next(stream_, &batch->array); }));
      if (batch->array.release == nullptr) break;
      TUTTI_TRY(add(batch));
    }
    if (table_.batches.empty()) TUTTI_TRY(add_nothing());
    return std::move(table_);
  }

 private:
  template <typename Function>
  Status call(const char *name, Function &&function) {
    int code = 0;
    const char *text = nullptr;
    TUTTI_TRY(base::catch_thrown(base::concat("the function ", name, " of the Arrow stream"), [&] {
      code = function();
      if (code != 0 && stream_->get_last_error != nullptr) text = stream_->get_last_error(stream_);
    }));
    return code == 0 ? Status() : failed(name, code, text);
  }

  static Status failed(const char *function, int code, const char *text) {
    base::Code as = base::Code::unknown;
    if (code == EINVAL) as = base::Code::invalid_argument;
    if (code == EIO) as = base::Code::data_loss;
    if (code == ENOMEM) as = base::Code::resource_exhausted;
    if (code == ENOSYS) as = base::Code::unimplemented;
    if (code == ECANCELED) as = base::Code::cancelled;
    const Status cause = Status(as, text != nullptr ? text : std::strerror(code)).with_domain("arrow", code);
    return cause.wrap(base::concat("the function ", function, " of the Arrow stream failed"));
  }

  Status read_schema() {
    TUTTI_TRY(call("get_schema", [&] { return stream_->get_schema(stream_, &schema_.schema); }));
    const ArrowSchema &schema = schema_.schema;
    const std::string_view format = schema.format != nullptr ? schema.format : "";
    if (format != "+s" || (schema.n_children > 0 && schema.children == nullptr))
      return base::invalid_argument("Arrow stream: expected record batches, format \"+s\", got ", base::quoted(format));
    std::vector<std::string> names;
    for (int64_t i = 0; i < schema.n_children; ++i) {
      const ArrowSchema *const child = schema.children[i];
      names.emplace_back(child != nullptr && child->name != nullptr ? child->name : "");
    }
    if (columns_.empty()) {
      for (const std::string &name : names)
        columns_.push_back({name, std::nullopt});
    }
    const NameIndex index(names);
    for (const ArrowColumn &column : columns_) {
      const NameIndex::Place *const found = index.find(column.name);
      if (found == nullptr) {
        return base::invalid_argument("the Arrow stream has no column '", column.name, "'",
                                      base::but_there_are(column.name, names, base::KnownNames::quoted));
      }
      if (found->count > 1) return base::invalid_argument("the Arrow stream has several columns '", column.name, "'");
      where_.push_back(static_cast<int64_t>(found->first));
      TUTTI_ASSIGN(ArrowType type, arrow_type_of(*schema.children[where_.back()], column.name));
      table_.columns.push_back({column.name, Role::feature, type.dtype, type.dims()});
      types_.push_back(std::move(type));
    }
    return Status();
  }

  Status add(const std::shared_ptr<OwnedArray> &batch) {
    const ArrowArray &array = batch->array;
    const auto bad = [&](std::string_view what) {
      return base::invalid_argument("Arrow stream, batch at row ", rows_, ": ", what);
    };
    if (array.length < 0 || array.offset < 0) return bad("its length or offset is negative");
    if (array.n_children != schema_.schema.n_children || (array.n_children > 0 && array.children == nullptr))
      return bad("its number of columns differs from that of the schema");
    if (array.n_buffers > 0 && array.buffers != nullptr && array.buffers[0] != nullptr && array.null_count != 0) {
      for (int64_t i = 0; i < array.length; ++i) {
        if (!arrow_bit(array.buffers[0], array.offset + i)) return bad(base::concat("row ", rows_ + i, " is null"));
      }
    }
    std::vector<ArrowValues> columns;
    for (size_t i = 0; i < columns_.size(); ++i) {
      const ArrowArray *const column = array.children[where_[i]];
      if (column == nullptr) return bad("a column is NULL");
      TUTTI_ASSIGN(ArrowValues values,
                   read_arrow_column(columns_[i], types_[i], *column, {array.offset, array.length, rows_}, batch));
      columns.push_back(std::move(values));
    }
    rows_ += array.length;
    table_.batches.push_back(std::move(columns));
    return Status();
  }

  // A stream without batches is a table without rows.
  Status add_nothing() {
    std::vector<ArrowValues> columns;
    for (const ArrowType &type : types_) {
      TUTTI_ASSIGN(ArrowValues values, no_arrow_rows(type));
      columns.push_back(std::move(values));
    }
    table_.batches.push_back(std::move(columns));
    return Status();
  }

  ArrowArrayStream *const stream_;
  std::vector<ArrowColumn> columns_;
  OwnedSchema schema_;
  std::vector<int64_t> where_;  // each column in the schema
  std::vector<ArrowType> types_;
  int64_t rows_ = 0;
  ArrowTable table_;
};

}  // namespace

std::shared_ptr<ArrowStream> ArrowStream::take(ArrowArrayStream *stream) {
  if (stream == nullptr || stream->release == nullptr) return nullptr;
  std::shared_ptr<ArrowStream> taken(new ArrowStream);
  taken->stream_ = *stream;
  stream->release = nullptr;
  return taken;
}

Result<ArrowArrayStream *> ArrowStream::get() {
  if (stream_.release != nullptr) return &stream_;
  return base::failed_precondition("the Arrow stream was already read; a stream can be read only once");
}

void ArrowStream::release() {
  release_given(stream_);
  stream_.release = nullptr;
}

Result<ArrowColumn> ArrowColumn::parse(const std::string &text) {
  const auto trim = [](std::string_view part) {
    const size_t begin = part.find_first_not_of(' '), end = part.find_last_not_of(' ');
    return std::string(begin == std::string_view::npos ? std::string_view() : part.substr(begin, end + 1 - begin));
  };
  const size_t equals = text.find('=');
  ArrowColumn column;
  column.name = trim(std::string_view(text).substr(0, equals));
  if (equals != std::string::npos) column.fill = trim(std::string_view(text).substr(equals + 1));
  if (!column.name.empty()) return column;
  return base::invalid_argument("column ", base::quoted(text), ": expected NAME or NAME = VALUE, as in \"age = 0\"");
}

Result<ArrowTable> read_arrow(ArrowStream &stream, const std::vector<ArrowColumn> &columns) {
  TUTTI_ASSIGN(ArrowArrayStream *const source, stream.get());
  Result<ArrowTable> table = TableReader(source, columns).read();
  stream.release();
  return table;
}

}  // namespace tutti::impl::data
