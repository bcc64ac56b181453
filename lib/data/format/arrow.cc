// SPDX-License-Identifier: Apache-2.0
//
// Arrow C data interface: https://arrow.apache.org/docs/format/CDataInterface.html; memory layout of arrays:
// https://arrow.apache.org/docs/format/Columnar.html.
#include "data/format/arrow.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <string_view>
#include <utility>

#include "data/format/field.h"
#include "tensor/bytes_tensor.h"

namespace tutti::impl::data {

using base::Ref;
using base::Result;
using base::Status;
using tensor::Buffer;
using tensor::DType;
using tensor::Shape;
using tensor::Tensor;

namespace {

/// How a column's innermost values lie in memory.
enum class Layout { numbers, bits, offsets32, offsets64, fixed_bytes };

struct ColumnType {
  DType dtype;
  Layout layout;
  int64_t value_bytes = 0;  ///< of fixed_bytes
  std::vector<int64_t> extents;
};

struct FormatName {
  std::string_view format;
  DType dtype;
  Layout layout;
};
constexpr FormatName kFormats[] = {
    {"c", DType::i8, Layout::numbers},      {"C", DType::u8, Layout::numbers},
    {"s", DType::i16, Layout::numbers},     {"S", DType::u16, Layout::numbers},
    {"i", DType::i32, Layout::numbers},     {"I", DType::u32, Layout::numbers},
    {"l", DType::i64, Layout::numbers},     {"L", DType::u64, Layout::numbers},
    {"e", DType::f16, Layout::numbers},     {"f", DType::f32, Layout::numbers},
    {"g", DType::f64, Layout::numbers},     {"b", DType::boolean, Layout::bits},
    {"u", DType::bytes, Layout::offsets32}, {"z", DType::bytes, Layout::offsets32},
    {"U", DType::bytes, Layout::offsets64}, {"Z", DType::bytes, Layout::offsets64},
    {"tdD", DType::i32, Layout::numbers},   {"tdm", DType::i64, Layout::numbers},
    {"tts", DType::i32, Layout::numbers},   {"ttm", DType::i32, Layout::numbers},
    {"ttu", DType::i64, Layout::numbers},   {"ttn", DType::i64, Layout::numbers},
};

std::optional<int64_t> size_behind(std::string_view format, std::string_view prefix) {
  int64_t size = 0;
  if (!format.starts_with(prefix)) return std::nullopt;
  if (!write_number(format.substr(prefix.size()), DType::i64, &size) || size < 0) return std::nullopt;
  return size;
}

Result<ColumnType> type_of(const ArrowSchema &schema, const std::string &column) {
  const std::string_view format = schema.format != nullptr ? schema.format : "";
  const auto refuse = [&](std::string_view what) {
    return base::unimplemented("Arrow column '", column, "': ", what, ", format ", base::quoted(format));
  };
  if (schema.dictionary != nullptr) return refuse("dictionaries are not supported");
  for (const FormatName &known : kFormats) {
    if (format == known.format) return ColumnType{known.dtype, known.layout, 0, {}};
  }
  // Timestamps and durations, with a unit and a time zone behind.
  if (format.starts_with("ts") || format.starts_with("tD")) return ColumnType{DType::i64, Layout::numbers, 0, {}};
  if (const auto size = size_behind(format, "w:")) return ColumnType{DType::bytes, Layout::fixed_bytes, *size, {}};
  const std::optional<int64_t> extent = size_behind(format, "+w:");
  if (!extent) return refuse("expected numbers, texts or fixed-size lists of them");
  if (schema.n_children != 1 || schema.children == nullptr || schema.children[0] == nullptr)
    return base::invalid_argument("Arrow column '", column, "': a list without a child");
  TUTTI_ASSIGN(ColumnType inner, type_of(*schema.children[0], column));
  inner.extents.insert(inner.extents.begin(), *extent);
  if (inner.extents.size() >= static_cast<size_t>(Shape::kMaxRank)) return refuse("too many lists in lists");
  return inner;
}

bool bit_at(const void *bits, int64_t index) {
  return ((static_cast<const unsigned char *>(bits)[index >> 3] >> (index & 7)) & 1) != 0;
}

/// A batch of the producer, released with the last tensor over it.
struct OwnedArray {
  ArrowArray array = {};
  OwnedArray() = default;
  OwnedArray(const OwnedArray &) = delete;
  OwnedArray &operator=(const OwnedArray &) = delete;
  ~OwnedArray() {
    if (array.release != nullptr) array.release(&array);
  }
};

struct OwnedSchema {
  ArrowSchema schema = {};
  OwnedSchema() = default;
  OwnedSchema(const OwnedSchema &) = delete;
  OwnedSchema &operator=(const OwnedSchema &) = delete;
  ~OwnedSchema() {
    if (schema.release != nullptr) schema.release(&schema);
  }
};

/// One column of one batch on its way into a tensor.
class ColumnReader {
 public:
  ColumnReader(const ArrowColumn &column, const ColumnType &type, std::shared_ptr<OwnedArray> owner, int64_t first_row)
      : column_(column), type_(type), owner_(std::move(owner)), first_row_(first_row) {}

  Result<Tensor> read(const ArrowArray &array, int64_t offset, int64_t rows) {
    std::vector<int64_t> extents{rows};
    extents.insert(extents.end(), type_.extents.begin(), type_.extents.end());
    TUTTI_ASSIGN(shape_, Shape::make(extents));
    rows_ = rows;
    // Down through the lists to the values: what was an offset in rows is one in elements of the list.
    const ArrowArray *values = &array;
    int64_t begin = offset, count = rows;
    for (const int64_t extent : type_.extents) {
      TUTTI_TRY(check(*values, 1, begin, count, extent));
      TUTTI_TRY(note_nulls(*values, begin, count));
      begin = (begin + values->offset) * extent;
      count *= extent;
      if (values->n_children != 1 || values->children == nullptr || values->children[0] == nullptr)
        return bad("a list without a child");
      values = values->children[0];
    }
    const bool has_texts = type_.layout == Layout::offsets32 || type_.layout == Layout::offsets64;
    TUTTI_TRY(check(*values, has_texts ? 3 : 2, begin, count, std::max<int64_t>(8, type_.value_bytes)));
    TUTTI_TRY(note_nulls(*values, begin, count));
    begin += values->offset;
    if (count == 0) return empty_tensor();
    switch (type_.layout) {
      case Layout::numbers:
        return numbers(*values, begin);
      case Layout::bits:
        return bits(*values, begin);
      case Layout::offsets32:
        return texts<int32_t>(*values, begin, count);
      case Layout::offsets64:
        return texts<int64_t>(*values, begin, count);
      case Layout::fixed_bytes:
        return fixed_texts(*values, begin, count);
    }
    return bad("no type");
  }

 private:
  template <typename... What>
  Status bad(const What &...what) const {
    return base::invalid_argument("Arrow column '", column_.name, "', batch at row ", first_row_, ": ", what...);
  }

  Result<Tensor> empty_tensor() const {
    if (type_.dtype == DType::bytes) return tensor::make_bytes_tensor(shape_, {});
    return Tensor::allocate(type_.dtype, shape_);
  }

  // `factor`: what an offset here is multiplied by.
  Status check(const ArrowArray &array, int64_t buffers, int64_t begin, int64_t count, int64_t factor) const {
    if (array.length < count || array.offset < 0 || array.length - count < begin)
      return bad("expected ", count, " values behind ", begin, ", got ", array.length, " from offset ", array.offset);
    const int64_t most = std::numeric_limits<int64_t>::max() / 2 / std::max<int64_t>(1, factor);
    if (begin > most || array.offset > most - begin) return bad("the offset is too large");
    if (array.n_buffers != buffers || array.buffers == nullptr)
      return bad("expected ", buffers, " buffers, got ", array.n_buffers);
    const bool has_values = buffers == 1 || count == 0 || array.buffers[1] != nullptr;
    return has_values ? Status() : bad("the buffer of its values is NULL");
  }

  // The null that comes first is an error, unless there is something to fill it with. `count` values from `begin` on
  // belong to the batch, equally many to each row.
  Status note_nulls(const ArrowArray &array, int64_t begin, int64_t count) {
    const void *const validity = array.buffers[0];
    if (validity == nullptr || array.null_count == 0 || count == 0) return Status();
    const int64_t per_row = count / rows_;
    const int64_t elements_each = shape_.elements() / count;
    for (int64_t i = 0; i < count; ++i) {
      if (bit_at(validity, array.offset + begin + i)) continue;
      if (!column_.fill) {
        return base::invalid_argument("Arrow column '", column_.name, "', row ", first_row_ + i / per_row,
                                      ": the value is null, and no other is given for it, as in \"", column_.name,
                                      " = 0\"");
      }
      nulls_.emplace_back(i * elements_each, elements_each);
    }
    return Status();
  }

  Result<Tensor> numbers(const ArrowArray &values, int64_t begin) const {
    const auto size = static_cast<int64_t>(tensor::size_bytes(type_.dtype));
    char *const data = const_cast<char *>(static_cast<const char *>(values.buffers[1])) + begin * size;
    const int64_t bytes = shape_.elements() * size;
    const bool is_aligned = reinterpret_cast<uintptr_t>(data) % static_cast<uintptr_t>(size) == 0;
    if (is_aligned && nulls_.empty()) {
      const auto give_back = [owner = owner_] {};
      return Tensor::from_buffer(type_.dtype, shape_,
                                 Buffer::borrow(data, bytes, give_back, Buffer::Access::read_only));
    }
    TUTTI_ASSIGN(Tensor tensor, Tensor::copy_of(type_.dtype, shape_, data, bytes));
    return fill(std::move(tensor));
  }

  Result<Tensor> bits(const ArrowArray &values, int64_t begin) const {
    TUTTI_ASSIGN(Tensor tensor, Tensor::allocate(DType::boolean, shape_));
    auto *const target = tensor.mutable_data_as<uint8_t>();
    for (int64_t i = 0; i < shape_.elements(); ++i)
      target[i] = bit_at(values.buffers[1], begin + i) ? 1 : 0;
    return fill(std::move(tensor));
  }

  Result<Tensor> fill(Tensor tensor) const {
    if (nulls_.empty()) return tensor;
    const size_t size = tensor::size_bytes(type_.dtype);
    char value[8];
    if (!write_number(*column_.fill, type_.dtype, value))
      return bad("expected ", type_.dtype, " to fill nulls with, got ", base::quoted(*column_.fill));
    auto *const target = static_cast<char *>(tensor.mutable_data());
    for (const auto &[first, count] : nulls_) {
      for (int64_t i = first; i < first + count; ++i)
        std::memcpy(target + static_cast<size_t>(i) * size, value, size);
    }
    return tensor;
  }

  template <typename Offset>
  Result<Tensor> texts(const ArrowArray &values, int64_t begin, int64_t count) const {
    const auto *const offsets = static_cast<const char *>(values.buffers[1]) + begin * int64_t{sizeof(Offset)};
    const auto offset_at = [&](int64_t index) {
      Offset offset;
      std::memcpy(&offset, offsets + index * int64_t{sizeof(Offset)}, sizeof(offset));
      return static_cast<int64_t>(offset);
    };
    const auto *const data = static_cast<const char *>(values.buffers[2]);
    std::vector<std::string_view> all(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) {
      const int64_t from = offset_at(i), to = offset_at(i + 1);
      if (from < 0 || to < from) return bad("the offsets of its texts decrease");
      if (to > from && data == nullptr) return bad("the buffer of its texts is NULL");
      if (to > from) all[static_cast<size_t>(i)] = {data + from, static_cast<size_t>(to - from)};
    }
    return texts_tensor(std::move(all));
  }

  Result<Tensor> fixed_texts(const ArrowArray &values, int64_t begin, int64_t count) const {
    const auto size = static_cast<size_t>(type_.value_bytes);
    const auto *const data = static_cast<const char *>(values.buffers[1]) + begin * type_.value_bytes;
    std::vector<std::string_view> all;
    for (int64_t i = 0; i < count; ++i)
      all.emplace_back(data + static_cast<size_t>(i) * size, size);
    return texts_tensor(std::move(all));
  }

  Result<Tensor> texts_tensor(std::vector<std::string_view> all) const {
    for (const auto &[first, count] : nulls_)
      std::fill_n(all.begin() + first, count, std::string_view(*column_.fill));
    return tensor::make_bytes_tensor(shape_, std::span<const std::string_view>(all));
  }

  const ArrowColumn &column_;
  const ColumnType &type_;
  const std::shared_ptr<OwnedArray> owner_;
  const int64_t first_row_;
  int64_t rows_ = 0;
  Shape shape_;
  std::vector<std::pair<int64_t, int64_t>> nulls_;  // elements of the tensor to fill: first, count
};

/// Reads a whole stream.
class TableReader {
 public:
  TableReader(ArrowArrayStream *stream, const std::vector<ArrowColumn> &columns) : stream_(stream), columns_(columns) {}

  Result<ArrowTable> read() {
    TUTTI_TRY(read_schema());
    for (;;) {
      const auto batch = std::make_shared<OwnedArray>();
      TUTTI_TRY(call("get_next", stream_->get_next(stream_, &batch->array)));
      if (batch->array.release == nullptr) break;
      TUTTI_TRY(add(batch));
    }
    if (table_.batches.empty()) TUTTI_TRY(add_nothing());
    return std::move(table_);
  }

 private:
  Status call(const char *function, int code) {
    if (code == 0) return Status();
    const char *const text = stream_->get_last_error != nullptr ? stream_->get_last_error(stream_) : nullptr;
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
    TUTTI_TRY(call("get_schema", stream_->get_schema(stream_, &schema_.schema)));
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
    for (const ArrowColumn &column : columns_) {
      const auto found = std::find(names.begin(), names.end(), column.name);
      if (found == names.end()) {
        return base::invalid_argument("the Arrow stream has no column '", column.name, "'",
                                      base::did_you_mean(column.name, names));
      }
      where_.push_back(found - names.begin());
      TUTTI_ASSIGN(ColumnType type, type_of(*schema.children[where_.back()], column.name));
      graph::Dims dims(type.extents.begin(), type.extents.end());
      table_.columns.push_back({column.name, Role::feature, type.dtype, std::move(dims)});
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
      return bad("it has not as many columns as the schema");
    if (array.n_buffers > 0 && array.buffers != nullptr && array.buffers[0] != nullptr && array.null_count != 0) {
      for (int64_t i = 0; i < array.length; ++i) {
        if (!bit_at(array.buffers[0], array.offset + i))
          return bad(base::concat("row ", rows_ + i, " is null as a whole"));
      }
    }
    std::vector<Tensor> tensors;
    for (size_t i = 0; i < columns_.size(); ++i) {
      const ArrowArray *const column = array.children[where_[i]];
      if (column == nullptr) return bad("a column is NULL");
      TUTTI_ASSIGN(Tensor tensor,
                   ColumnReader(columns_[i], types_[i], batch, rows_).read(*column, array.offset, array.length));
      tensors.push_back(std::move(tensor));
    }
    rows_ += array.length;
    table_.batches.push_back(std::move(tensors));
    return Status();
  }

  // A stream without batches is a table without rows.
  Status add_nothing() {
    std::vector<Tensor> tensors;
    for (const ColumnType &type : types_) {
      std::vector<int64_t> extents{0};
      extents.insert(extents.end(), type.extents.begin(), type.extents.end());
      TUTTI_ASSIGN(const Shape shape, Shape::make(extents));
      TUTTI_ASSIGN(Tensor tensor, type.dtype == DType::bytes ? tensor::make_bytes_tensor(shape, {})
                                                             : Tensor::allocate(type.dtype, shape));
      tensors.push_back(std::move(tensor));
    }
    table_.batches.push_back(std::move(tensors));
    return Status();
  }

  ArrowArrayStream *const stream_;
  std::vector<ArrowColumn> columns_;
  OwnedSchema schema_;
  std::vector<int64_t> where_;  // each column in the schema
  std::vector<ColumnType> types_;
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
  return base::failed_precondition("the Arrow stream was read already; a stream can be read once");
}

void ArrowStream::release() {
  if (stream_.release != nullptr) stream_.release(&stream_);
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
