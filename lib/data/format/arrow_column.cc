// SPDX-License-Identifier: Apache-2.0
//
// Memory layout of arrays: https://arrow.apache.org/docs/format/Columnar.html.
#include "data/format/arrow_column.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string_view>
#include <utility>

#include "data/format/field.h"
#include "tensor/bytes_tensor.h"

namespace tutti::impl::data {

using base::Result;
using base::Status;
using tensor::Buffer;
using tensor::DType;
using tensor::Shape;
using tensor::Tensor;

namespace {

using Layout = ArrowLayout;

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
    {"vu", DType::bytes, Layout::views},    {"vz", DType::bytes, Layout::views},
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

/// Lists by their names, each with how it is told which items a list has.
constexpr std::pair<std::string_view, ArrowLists> kLists[] = {
    {"+l", ArrowLists::offsets32},
    {"+L", ArrowLists::offsets64},
    {"+vl", ArrowLists::views32},
    {"+vL", ArrowLists::views64},
};

template <typename Integer>
int64_t integer_at(const void *buffer, int64_t index) {
  Integer value;
  std::memcpy(&value, static_cast<const char *>(buffer) + index * int64_t{sizeof(value)}, sizeof(value));
  return int64_t{value};
}

Result<Tensor> empty_tensor(DType dtype, const Shape &shape) {
  if (dtype == DType::bytes) return tensor::make_bytes_tensor(shape, {});
  return Tensor::allocate(dtype, shape);
}

// Which rows the items belong to that one reads of an array. Lists by views may leave items out, and nulls among these
// are no affair of anybody.
class ItemRows {
 public:
  explicit ItemRows(const RowRanges &lists) : lists_(lists) {}

  /// The first row that has the item.
  std::optional<int64_t> row_of(int64_t item) {
    if (used_.empty()) join_lists();
    const auto behind = std::upper_bound(used_.begin(), used_.end(), item,
                                         [](int64_t value, const RowRange &range) { return value < range.begin; });
    if (behind == used_.begin() || !has(behind[-1], item)) return std::nullopt;
    const auto row = std::find_if(lists_.begin(), lists_.end(), [&](const RowRange &list) { return has(list, item); });
    return row - lists_.begin();
  }

 private:
  static bool has(const RowRange &range, int64_t item) {
    return item >= range.begin && item < range.begin + range.count;
  }

  void join_lists() {
    RowRanges sorted = lists_;
    std::sort(sorted.begin(), sorted.end(), [](const auto &a, const auto &b) { return a.begin < b.begin; });
    for (const RowRange &list : sorted) {
      if (used_.empty() || used_.back().begin + used_.back().count < list.begin) used_.push_back(list);
      RowRange &last = used_.back();
      last.count = std::max(last.count, list.begin + list.count - last.begin);
    }
  }

  const RowRanges &lists_;
  RowRanges used_;  // items of any list, in order, apart from each other
};

// One column of one batch on its way into a tensor.
class ColumnReader {
 public:
  // `items`: what is read are items of lists; then rows are items.
  ColumnReader(const ArrowColumn &column, const ArrowType &type, std::shared_ptr<const void> owner, int64_t first_row,
               ItemRows *items = nullptr)
      : column_(column), type_(type), owner_(std::move(owner)), first_row_(first_row), items_(items) {}

  // Lists alone: the items that each row has.
  Result<RowRanges> read_lists(const ArrowArray &array, int64_t offset, int64_t rows) {
    const bool by_views = *type_.lists == ArrowLists::views32 || *type_.lists == ArrowLists::views64;
    TUTTI_TRY(check(array, by_views ? 3 : 2, offset, rows, 16));
    if (by_views && rows > 0 && array.buffers[2] == nullptr)
      return bad("the buffer of the lengths of its lists is NULL");
    if (array.n_children != 1 || array.children == nullptr || array.children[0] == nullptr)
      return bad("the list has no child");
    TUTTI_ASSIGN(shape_, Shape::make({&rows, 1}));
    rows_ = rows;
    TUTTI_TRY(note_nulls(array, offset, rows));
    const std::vector<bool> are_null = which_are_null();
    RowRanges lists(static_cast<size_t>(rows));
    for (int64_t i = 0; i < rows; ++i) {
      // Under a null may stand anything.
      if (are_null[static_cast<size_t>(i)]) continue;
      const auto [begin, count] = list_at(array, array.offset + offset + i);
      const int64_t length = array.children[0]->length;
      if (begin < 0 || count < 0 || begin > length || count > length - begin)
        return bad("list ", i, " has ", count, " items from item ", begin, " on, of ", length);
      if (count > 0) lists[static_cast<size_t>(i)] = {begin, count};
    }
    return lists;
  }

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
        return bad("the list has no child");
      values = values->children[0];
    }
    TUTTI_TRY(check_values(*values, begin, count));
    TUTTI_TRY(note_nulls(*values, begin, count));
    begin += values->offset;
    if (count == 0) return empty_tensor(type_.dtype, shape_);
    if (type_.index) return from_dictionary(*values, begin, count);
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
      case Layout::views:
        return viewed_texts(*values, begin, count);
    }
    return bad("no type");
  }

 private:
  template <typename... What>
  Status bad(const What &...what) const {
    return base::invalid_argument("Arrow column '", column_.name, "', batch at row ", first_row_, ": ", what...);
  }

  // As the producer says it; of offsets that decrease the count is -1.
  RowRange list_at(const ArrowArray &array, int64_t index) const {
    const void *const starts = array.buffers[1];
    const auto between = [](int64_t begin, int64_t end) {
      return RowRange{begin, begin < 0 || end < begin ? -1 : end - begin};
    };
    switch (*type_.lists) {
      case ArrowLists::offsets32:
        return between(integer_at<int32_t>(starts, index), integer_at<int32_t>(starts, index + 1));
      case ArrowLists::offsets64:
        return between(integer_at<int64_t>(starts, index), integer_at<int64_t>(starts, index + 1));
      case ArrowLists::views32:
        return {integer_at<int32_t>(starts, index), integer_at<int32_t>(array.buffers[2], index)};
      case ArrowLists::views64:
        return {integer_at<int64_t>(starts, index), integer_at<int64_t>(array.buffers[2], index)};
    }
    return {-1, -1};
  }

  // `factor`: what an offset here is multiplied by.
  Status check(const ArrowArray &array, int64_t buffers, int64_t begin, int64_t count, int64_t factor) const {
    if (array.length < count || array.offset < 0 || array.length - count < begin)
      return bad("expected ", count, " values after ", begin, ", got ", array.length, " from offset ", array.offset);
    const int64_t most = std::numeric_limits<int64_t>::max() / 2 / std::max<int64_t>(1, factor);
    if (begin > most || array.offset > most - begin) return bad("the offset is too large");
    if (array.n_buffers != buffers || array.buffers == nullptr)
      return bad("expected ", buffers, " buffers, got ", array.n_buffers);
    const bool has_values = buffers == 1 || count == 0 || array.buffers[1] != nullptr;
    return has_values ? Status() : bad("the buffer of its values is NULL");
  }

  Status check_values(const ArrowArray &values, int64_t begin, int64_t count) const {
    const bool has_offsets = type_.layout == Layout::offsets32 || type_.layout == Layout::offsets64;
    int64_t buffers = has_offsets && !type_.index ? 3 : 2;
    if (type_.layout == Layout::views && !type_.index) {
      // Buffers of texts, as many as the producer likes, and one with their sizes.
      buffers = std::max<int64_t>(3, values.n_buffers);
      const bool has_sizes = values.n_buffers == 3 || (values.buffers != nullptr && values.n_buffers > 3 &&
                                                       values.buffers[values.n_buffers - 1] != nullptr);
      if (values.n_buffers >= 3 && !has_sizes) return bad("the buffer of the sizes of its buffers is NULL");
    }
    return check(values, buffers, begin, count, std::max<int64_t>(16, type_.value_bytes));
  }

  // The null that comes first is an error, unless there is something to fill it with. `count` values from `begin` on
  // belong to the batch, equally many to each row.
  Status note_nulls(const ArrowArray &array, int64_t begin, int64_t count) {
    const void *const validity = array.buffers[0];
    if (validity == nullptr || array.null_count == 0 || count == 0) return Status();
    const int64_t per_row = count / rows_;
    const int64_t elements_each = shape_.elements() / count;
    for (int64_t i = 0; i < count; ++i) {
      if (arrow_bit(validity, array.offset + begin + i)) continue;
      TUTTI_TRY(note_null(i * elements_each, elements_each, i / per_row));
    }
    return Status();
  }

  Status note_null(int64_t first, int64_t count, int64_t row) {
    const std::optional<int64_t> of = items_ != nullptr && !column_.fill ? items_->row_of(row) : row;
    if (!column_.fill && of) {
      return base::invalid_argument("Arrow column '", column_.name, "', row ", first_row_ + *of,
                                    ": the value is null; give a value that replaces nulls, as in \"", column_.name,
                                    " = 0\"");
    }
    nulls_.emplace_back(first, count);
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
      target[i] = arrow_bit(values.buffers[1], begin + i) ? 1 : 0;
    return fill(std::move(tensor));
  }

  Result<Tensor> fill(Tensor tensor) const {
    if (nulls_.empty()) return tensor;
    const size_t size = tensor::size_bytes(type_.dtype);
    char value[8];
    if (!write_number(column_.fill.value_or("0"), type_.dtype, value))
      return bad("expected ", type_.dtype, " to fill nulls with, got ", base::quoted(column_.fill.value_or("0")));
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
    const auto *const data = static_cast<const char *>(values.buffers[2]);
    std::vector<std::string_view> all(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) {
      const int64_t from = integer_at<Offset>(offsets, i), to = integer_at<Offset>(offsets, i + 1);
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

  // Of 16 bytes each: the length, and the text itself up to 12 bytes, or where it lies in one of the buffers.
  Result<Tensor> viewed_texts(const ArrowArray &values, int64_t begin, int64_t count) const {
    const auto *const views = static_cast<const char *>(values.buffers[1]) + begin * 16;
    const auto *const sizes = static_cast<const char *>(values.buffers[values.n_buffers - 1]);
    const std::vector<bool> are_null = which_are_null();
    std::vector<std::string_view> all(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) {
      if (are_null[static_cast<size_t>(i)]) continue;
      int32_t parts[4];  // length, prefix, buffer, offset
      std::memcpy(parts, views + i * 16, sizeof(parts));
      if (parts[0] < 0) return bad("a text has ", parts[0], " bytes");
      if (parts[0] <= 12) {
        all[static_cast<size_t>(i)] = {views + i * 16 + 4, static_cast<size_t>(parts[0])};
        continue;
      }
      if (parts[2] < 0 || parts[2] >= values.n_buffers - 3)
        return bad("a text is in buffer ", parts[2], " of ", values.n_buffers - 3);
      int64_t size = 0;
      std::memcpy(&size, sizes + int64_t{parts[2]} * 8, sizeof(size));
      const auto *const data = static_cast<const char *>(values.buffers[2 + parts[2]]);
      if (data == nullptr || parts[3] < 0 || size - parts[3] < parts[0])
        return bad("a text extends beyond the end of its buffer of ", size, " bytes");
      all[static_cast<size_t>(i)] = {data + parts[3], static_cast<size_t>(parts[0])};
    }
    return texts_tensor(std::move(all));
  }

  Result<Tensor> from_dictionary(const ArrowArray &values, int64_t begin, int64_t count) {
    const ArrowArray *const dictionary = values.dictionary;
    if (dictionary == nullptr || dictionary->length < 0) return bad("the batch has no dictionary");
    TUTTI_ASSIGN(const std::vector<int64_t> indices, indices_in(values, begin, count, dictionary->length));
    // What stands for nulls of the dictionary itself is not seen: the values that have such an index are nulls.
    const ArrowColumn column{column_.name, type_.dtype == DType::bytes ? "" : "0"};
    ArrowType type = type_;
    type.index.reset();
    type.extents.clear();
    TUTTI_ASSIGN(const Tensor entries,
                 ColumnReader(column, type, owner_, first_row_).read(*dictionary, 0, dictionary->length));
    TUTTI_TRY(note_null_entries(*dictionary, indices));
    if (type_.dtype == DType::bytes) {
      std::vector<std::string_view> all(indices.size());
      for (size_t i = 0; i < indices.size(); ++i) {
        if (indices[i] >= 0) all[i] = tensor::bytes_at(entries, indices[i]);
      }
      return texts_tensor(std::move(all));
    }
    TUTTI_ASSIGN(Tensor tensor, Tensor::zeros(type_.dtype, shape_));
    const size_t size = tensor::size_bytes(type_.dtype);
    for (size_t i = 0; i < indices.size(); ++i) {
      if (indices[i] < 0) continue;
      std::memcpy(static_cast<char *>(tensor.mutable_data()) + i * size,
                  static_cast<const char *>(entries.data()) + static_cast<size_t>(indices[i]) * size, size);
    }
    return fill(std::move(tensor));
  }

  // -1 for nulls, where anything may stand.
  Result<std::vector<int64_t>> indices_in(const ArrowArray &values, int64_t begin, int64_t count,
                                          int64_t length) const {
    std::vector<int64_t> indices(static_cast<size_t>(count), -1);
    const auto size = static_cast<int64_t>(tensor::size_bytes(*type_.index));
    const auto *const data = static_cast<const char *>(values.buffers[1]) + begin * size;
    const std::vector<bool> are_null = which_are_null();
    for (int64_t i = 0; i < count; ++i) {
      if (are_null[static_cast<size_t>(i)]) continue;
      int64_t index = -1;
      tensor::visit_dtype(*type_.index, [&]<typename T>(T) {
        if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
          T value;
          std::memcpy(&value, data + i * size, sizeof(value));
          if (std::in_range<int64_t>(value)) index = static_cast<int64_t>(value);
        }
      });
      if (index < 0 || index >= length)
        return bad("value ", i, " is number ", index, " of a dictionary of ", length, " values");
      indices[static_cast<size_t>(i)] = index;
    }
    return indices;
  }

  // Values whose entry of the dictionary is null.
  Status note_null_entries(const ArrowArray &dictionary, const std::vector<int64_t> &indices) {
    if (dictionary.n_buffers < 1 || dictionary.buffers == nullptr || dictionary.buffers[0] == nullptr) return Status();
    const auto per_row = static_cast<int64_t>(indices.size()) / rows_;
    for (size_t i = 0; i < indices.size(); ++i) {
      if (indices[i] < 0 || arrow_bit(dictionary.buffers[0], dictionary.offset + indices[i])) continue;
      TUTTI_TRY(note_null(static_cast<int64_t>(i), 1, static_cast<int64_t>(i) / per_row));
    }
    return Status();
  }

  std::vector<bool> which_are_null() const {
    std::vector<bool> are_null(static_cast<size_t>(shape_.elements()));
    for (const auto &[first, count] : nulls_)
      std::fill_n(are_null.begin() + first, count, true);
    return are_null;
  }

  Result<Tensor> texts_tensor(std::vector<std::string_view> all) const {
    for (const auto &[first, count] : nulls_)
      std::fill_n(all.begin() + first, count, column_.fill ? std::string_view(*column_.fill) : std::string_view());
    return tensor::make_bytes_tensor(shape_, std::span<const std::string_view>(all));
  }

  const ArrowColumn &column_;
  const ArrowType &type_;
  const std::shared_ptr<const void> owner_;
  const int64_t first_row_;
  ItemRows *const items_;
  int64_t rows_ = 0;
  Shape shape_;
  std::vector<std::pair<int64_t, int64_t>> nulls_;  // elements of the tensor to fill: first, count
};

// The items that lie from the first to the last that a list has.
Result<ArrowValues> read_list_column(const ArrowColumn &column, const ArrowType &type, const ArrowArray &array,
                                     const ArrowRows &rows, const std::shared_ptr<const void> &owner) {
  TUTTI_ASSIGN(RowRanges lists,
               ColumnReader(column, type, owner, rows.number).read_lists(array, rows.offset, rows.count));
  int64_t first = std::numeric_limits<int64_t>::max(), end = 0;
  for (const RowRange &list : lists) {
    if (list.count == 0) continue;
    first = std::min(first, list.begin);
    end = std::max(end, list.begin + list.count);
  }
  first = std::min(first, end);
  for (RowRange &list : lists)
    list.begin = list.count == 0 ? 0 : list.begin - first;
  ArrowType item = type;
  item.lists.reset();
  ItemRows items(lists);
  ColumnReader reader(column, item, owner, rows.number, &items);
  TUTTI_ASSIGN(Tensor values, reader.read(*array.children[0], first, end - first));
  return ArrowValues{std::move(values), std::make_shared<const RowRanges>(std::move(lists))};
}

}  // namespace

graph::Dims ArrowType::dims() const {
  graph::Dims dims(extents.begin(), extents.end());
  if (lists) dims.insert(dims.begin(), unknown_dim());
  return dims;
}

Result<ArrowType> arrow_type_of(const ArrowSchema &schema, const std::string &column) {
  const std::string_view format = schema.format != nullptr ? schema.format : "";
  const auto refuse = [&](std::string_view what) {
    return base::unimplemented("Arrow column '", column, "': ", what, ", format ", base::quoted(format));
  };
  if (schema.dictionary != nullptr) {
    TUTTI_ASSIGN(ArrowType values, arrow_type_of(*schema.dictionary, column));
    if (values.index || values.lists || !values.extents.empty())
      return refuse("expected a dictionary of numbers or texts");
    const auto *const known =
        std::find_if(std::begin(kFormats), std::end(kFormats), [&](const auto &one) { return one.format == format; });
    const bool is_index = known != std::end(kFormats) && format.size() == 1 && tensor::is_integer(known->dtype);
    if (!is_index) return refuse("expected integers as indices of a dictionary");
    values.index = known->dtype;
    return values;
  }
  for (const FormatName &known : kFormats) {
    if (format == known.format) return ArrowType{known.dtype, known.layout, 0, {}};
  }
  // Timestamps and durations, with a unit and a time zone behind.
  if (format.starts_with("ts") || format.starts_with("tD")) return ArrowType{DType::i64, Layout::numbers, 0, {}};
  if (const auto size = size_behind(format, "w:")) return ArrowType{DType::bytes, Layout::fixed_bytes, *size, {}};
  const auto *const lists =
      std::find_if(std::begin(kLists), std::end(kLists), [&](const auto &one) { return one.first == format; });
  const bool is_list = lists != std::end(kLists);
  const std::optional<int64_t> extent = size_behind(format, "+w:");
  if (!is_list && !extent) return refuse("expected numbers, texts or lists of them");
  if (schema.n_children != 1 || schema.children == nullptr || schema.children[0] == nullptr)
    return base::invalid_argument("Arrow column '", column, "': the list has no child");
  TUTTI_ASSIGN(ArrowType inner, arrow_type_of(*schema.children[0], column));
  if (inner.lists) return refuse("lists of differing length in lists; expected fixed-size lists as items");
  if (is_list) {
    inner.lists = lists->second;
  } else {
    inner.extents.insert(inner.extents.begin(), *extent);
  }
  if (inner.extents.size() >= static_cast<size_t>(Shape::kMaxRank)) return refuse("too many lists in lists");
  return inner;
}

Result<ArrowValues> read_arrow_column(const ArrowColumn &column, const ArrowType &type, const ArrowArray &array,
                                      const ArrowRows &rows, std::shared_ptr<const void> owner) {
  if (type.lists) return read_list_column(column, type, array, rows, owner);
  ColumnReader reader(column, type, std::move(owner), rows.number);
  TUTTI_ASSIGN(Tensor values, reader.read(array, rows.offset, rows.count));
  return ArrowValues{std::move(values)};
}

Result<ArrowValues> no_arrow_rows(const ArrowType &type) {
  std::vector<int64_t> extents{0};
  extents.insert(extents.end(), type.extents.begin(), type.extents.end());
  TUTTI_ASSIGN(const Shape shape, Shape::make(extents));
  TUTTI_ASSIGN(Tensor values, empty_tensor(type.dtype, shape));
  return ArrowValues{std::move(values), type.lists ? std::make_shared<const RowRanges>() : nullptr};
}

}  // namespace tutti::impl::data
