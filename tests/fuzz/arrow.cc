// SPDX-License-Identifier: Apache-2.0
// Any record batches of a producer whose buffers are long enough are a table, or an error: formats, names, lengths,
// offsets, nulls and children as they come. Every struct is released once; rows lie where they can be looked at, and
// what is read of a batch comes back from a stream of it. The input is the text of a column, too.
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "data/format/arrow.h"
#include "data/pipeline/sources.h"
#include "tensor/bytes_tensor.h"

using namespace tutti::impl;

namespace {

// Takes numbers from the input; 0 at its end.
class Input {
 public:
  Input(const uint8_t *data, size_t size) : data_(data), size_(size) {}
  uint8_t byte() { return at_ < size_ ? data_[at_++] : 0; }
  // Small, now and then an odd one.
  int64_t count(int64_t bound) {
    const uint8_t value = byte();
    if (value == 255) return -1;
    if (value == 254) return INT64_MAX;
    return value % bound;
  }

 private:
  const uint8_t *data_;
  size_t size_, at_ = 0;
};

int64_t alive = 0;

constexpr size_t kBufferBytes = size_t{1} << 16;
constexpr int64_t kMostRows = 20, kMostOffset = 9;
constexpr size_t kListEntries = 64;
constexpr int kDeepest = 3;

struct Column {
  std::string format, name;
  std::vector<std::unique_ptr<Column>> children;
  std::unique_ptr<Column> dictionary = nullptr;
};

// A struct of the interface and all that it points to.
template <typename Struct>
struct Owner {
  std::vector<Struct> children;
  std::vector<Struct *> pointers;
  Struct dictionary;
  std::vector<std::unique_ptr<char[]>> memory;
  std::vector<const void *> buffers;
};

template <typename Struct>
void release(Struct *item) {
  for (int64_t i = 0; i < item->n_children && item->children != nullptr; ++i) {
    if (item->children[i] != nullptr && item->children[i]->release != nullptr)
      item->children[i]->release(item->children[i]);
  }
  if (item->dictionary != nullptr) item->dictionary->release(item->dictionary);
  delete static_cast<Owner<Struct> *>(item->private_data);
  item->release = nullptr;
  --alive;
}

std::unique_ptr<Column> make_column(Input &input, int depth) {
  static constexpr const char *formats[] = {
      "c",     "C",  "s",    "S",   "i",   "I",  "l",    "L",    "e",    "f",
      "g",     "b",  "u",    "z",   "U",   "Z",  "vu",   "vz",   "tdD",  "w:3",
      "w:0",   "w:", "tsn:", "tDs", "n",   "+s", "+w:2", "+w:0", "+w:1", "+w:99999999999999999",
      "+w:-1", "+l", "+L",   "+vl", "+vL", "+m", ""};
  auto column = std::make_unique<Column>();
  column->format = formats[input.byte() % (sizeof formats / sizeof *formats)];
  column->name = std::string(1, static_cast<char>('a' + input.byte() % 3));
  const bool is_list = column->format.size() > 1 && column->format != "+s" && input.byte() != 255;
  if (is_list && depth < kDeepest) column->children.push_back(make_column(input, depth + 1));
  if (depth < kDeepest && input.byte() % 8 == 7) column->dictionary = make_column(input, depth + 1);
  return column;
}

void make_schema(const Column &column, ArrowSchema &schema) {
  auto *const owner = new Owner<ArrowSchema>;
  owner->children.resize(column.children.size());
  for (size_t i = 0; i < column.children.size(); ++i) {
    make_schema(*column.children[i], owner->children[i]);
    owner->pointers.push_back(&owner->children[i]);
  }
  schema = {};
  schema.format = column.format.c_str();
  schema.name = column.name.c_str();
  schema.n_children = static_cast<int64_t>(column.children.size());
  schema.children = owner->pointers.data();
  if (column.dictionary != nullptr) {
    make_schema(*column.dictionary, owner->dictionary);
    schema.dictionary = &owner->dictionary;
  }
  schema.private_data = owner;
  schema.release = release<ArrowSchema>;
  ++alive;
}

// Texts' offsets that grow, mostly, and never leave the buffer.
template <typename Offset>
void make_offsets(Input &input, void *buffer) {
  Offset at = 0;
  for (int64_t i = 0; i < 1024; ++i) {
    const uint8_t step = i < 32 ? input.byte() : 1;
    std::memcpy(static_cast<char *>(buffer) + static_cast<size_t>(i) * sizeof at, &at, sizeof at);
    at = step == 255 ? -5 : static_cast<Offset>(at + step % 9);
  }
}

// Views of texts that lie within their buffers, whatever size these are said to have.
void make_views(Input &input, void *buffer) {
  for (int i = 0; i < 32; ++i) {
    const uint8_t length = input.byte();
    const int32_t parts[] = {length == 255 ? -5 : length % 24, 0, input.byte() % 4 - 1, input.byte() * 150 - 1};
    std::memcpy(static_cast<char *>(buffer) + i * 16, parts, sizeof parts);
  }
}

// Where lists begin and end, or how long they are: anywhere, mostly among the first items.
template <typename Offset>
void make_list_buffer(Input &input, bool grows, void *buffer) {
  Offset at = 0;
  for (size_t i = 0; i < kListEntries; ++i) {
    const uint8_t step = input.byte();
    at = static_cast<Offset>(grows && at >= 0 && at < 1024 ? at + step % 9 : step % 50);
    if (step == 255) at = -5;
    if (step == 254) at = std::numeric_limits<Offset>::max();
    if (step == 253) at = std::numeric_limits<Offset>::min();
    std::memcpy(static_cast<char *>(buffer) + i * sizeof at, &at, sizeof at);
  }
}

void make_lists(Input &input, const std::string &format, Owner<ArrowArray> &owner) {
  const bool is_large = format.back() == 'L', by_views = format.size() == 3;
  for (size_t i = 1; i < owner.memory.size() && i < 3; ++i) {
    if (is_large) {
      make_list_buffer<int64_t>(input, !by_views, owner.memory[i].get());
    } else {
      make_list_buffer<int32_t>(input, !by_views, owner.memory[i].get());
    }
  }
}

int buffers_of(Input &input, const std::string &format) {
  if (format[0] == 'v') return 3 + input.byte() % 3;
  if (format.starts_with("+w")) return 1;
  if (format.starts_with("+v")) return 3;
  return format.find_first_of("uzUZ") == 0 ? 3 : 2;
}

void make_array(Input &input, const Column &column, int64_t rows, ArrowArray &array) {
  auto *const owner = new Owner<ArrowArray>;
  const bool is_text = column.format.find_first_of("uzUZ") == 0;
  const bool is_views = column.format[0] == 'v';
  const uint8_t odd = input.byte();
  for (int i = buffers_of(input, column.format); i > 0; --i) {
    owner->memory.push_back(std::make_unique<char[]>(kBufferBytes));
    std::memset(owner->memory.back().get(), odd, kBufferBytes);
    owner->buffers.push_back(owner->memory.back().get());
  }
  if (is_text && (column.format == "u" || column.format == "z")) make_offsets<int32_t>(input, owner->memory[1].get());
  if (is_text && (column.format == "U" || column.format == "Z")) make_offsets<int64_t>(input, owner->memory[1].get());
  if (column.format == "+l" || column.format == "+L" || column.format.starts_with("+v"))
    make_lists(input, column.format, *owner);
  if (is_views) {
    make_views(input, owner->memory[1].get());
    const int64_t sizes[] = {input.byte() * 150, kBufferBytes, 7};
    std::memcpy(owner->memory.back().get(), sizes, sizeof sizes);
  }
  const uint8_t missing = input.byte();
  if (missing < 128) owner->buffers[0] = nullptr;
  if (missing == 200) owner->buffers.back() = nullptr;
  array = {};
  array.length = rows;
  array.null_count = input.count(3);
  array.offset = input.count(kMostOffset);
  if (array.offset == INT64_MAX) array.offset = 0;
  array.n_buffers = static_cast<int64_t>(owner->buffers.size()) - (missing == 201 ? 1 : 0);
  array.buffers = missing == 202 ? nullptr : owner->buffers.data();
  owner->children.resize(column.children.size());
  for (size_t i = 0; i < column.children.size(); ++i) {
    make_array(input, *column.children[i], input.byte() == 255 ? 1 : 16 * (kMostRows + kMostOffset) * (rows > 0),
               owner->children[i]);
    owner->pointers.push_back(missing == 203 ? nullptr : &owner->children[i]);
    if (missing == 203) owner->children[i].release(&owner->children[i]);
  }
  array.n_children = static_cast<int64_t>(column.children.size());
  array.children = owner->pointers.data();
  if (column.dictionary != nullptr && missing != 204) {
    make_array(input, *column.dictionary, input.byte() % 40, owner->dictionary);
    array.dictionary = &owner->dictionary;
  }
  array.private_data = owner;
  array.release = release<ArrowArray>;
  ++alive;
}

struct Producer {
  Input input;
  Column table;
  int batches;
};

int get_schema(ArrowArrayStream *stream, ArrowSchema *out) {
  make_schema(static_cast<Producer *>(stream->private_data)->table, *out);
  return 0;
}

int get_next(ArrowArrayStream *stream, ArrowArray *out) {
  auto *const producer = static_cast<Producer *>(stream->private_data);
  *out = {};
  if (producer->batches-- == 0) return 0;
  Input &input = producer->input;
  const int64_t rows = input.count(kMostRows);
  auto *const owner = new Owner<ArrowArray>;
  owner->children.resize(producer->table.children.size());
  for (size_t i = 0; i < producer->table.children.size(); ++i) {
    const int64_t more = rows < kMostRows && input.byte() != 255 ? kMostOffset : 0;
    make_array(input, *producer->table.children[i], rows + more, owner->children[i]);
    owner->pointers.push_back(&owner->children[i]);
  }
  owner->buffers.push_back(nullptr);
  out->length = rows == INT64_MAX ? 0 : rows;
  out->offset = input.count(kMostOffset);
  out->n_buffers = 1;
  out->buffers = owner->buffers.data();
  out->n_children = static_cast<int64_t>(producer->table.children.size());
  out->children = owner->pointers.data();
  out->private_data = owner;
  out->release = release<ArrowArray>;
  ++alive;
  return 0;
}

const char *last_error(ArrowArrayStream *) { return nullptr; }
void release_stream(ArrowArrayStream *stream) {
  stream->release = nullptr;
  --alive;
}

tensor::Tensor row_of(const data::ArrowValues &values, int64_t row) {
  if (values.ranges == nullptr) return values.values.slice_rows(row, row + 1).value();
  const data::RowRange range = (*values.ranges)[static_cast<size_t>(row)];
  return values.values.slice_rows(range.begin, range.begin + range.count).value();
}

// Texts by themselves: what lies between them may differ.
bool are_equal(const tensor::Tensor &a, const tensor::Tensor &b) {
  if (a.dtype() != tensor::DType::bytes) return tensor::identical(a, b);
  if (!(a.shape() == b.shape())) return false;
  for (int64_t i = 0; i < a.elements(); ++i) {
    if (tensor::bytes_at(a, i) != tensor::bytes_at(b, i)) return false;
  }
  return true;
}

// Rows of one batch through a stream.
void check_again(const std::vector<data::ArrowValues> &batch, const std::vector<data::ComponentSpec> &specs) {
  std::vector<data::NamedTensor> named;
  for (size_t i = 0; i < batch.size(); ++i)
    named.push_back({specs[i].name, batch[i].values, data::Role::feature, batch[i].ranges});
  const auto dataset = data::from_slices(std::move(named));
  if (!dataset.ok()) return;  // columns of one name
  ArrowArrayStream stream;
  const base::Status written = data::write_arrow(*dataset, {}, kMostRows * 2, &stream);
  if (written.code() == base::Code::resource_exhausted || written.code() == base::Code::invalid_argument)
    return;  // rows too large for a batch
  if (!written.ok()) std::abort();
  const auto again = data::read_arrow(*data::ArrowStream::take(&stream), {});
  if (again.status().code() == base::Code::resource_exhausted) return;
  if (!again.ok() || again->batches.size() != 1) std::abort();
  for (size_t i = 0; i < batch.size(); ++i) {
    const data::ArrowValues &values = again->batches[0][i];
    if (values.rows() != batch[i].rows() || !(again->columns[i].dims == specs[i].dims)) std::abort();
    for (int64_t row = 0; row < values.rows(); ++row) {
      if (!are_equal(row_of(values, row), row_of(batch[i], row))) std::abort();
    }
  }
}

void check_table(const data::ArrowTable &table) {
  for (const std::vector<data::ArrowValues> &batch : table.batches) {
    if (batch.size() != table.columns.size()) std::abort();
    for (const data::ArrowValues &values : batch) {
      if (values.rows() != batch[0].rows()) std::abort();
    }
    if (!batch.empty()) check_again(batch, table.columns);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const auto column = data::ArrowColumn::parse(std::string(reinterpret_cast<const char *>(data), size));
  if (column.ok() && column->name.empty()) std::abort();
  Input input(data, size);
  std::vector<data::ArrowColumn> columns;
  Column table;
  table.format = input.byte() == 255 ? "i" : "+s";
  for (int i = input.byte() % 4; i > 0; --i)
    table.children.push_back(make_column(input, 0));
  if (input.byte() < 128) columns = {{"a", "0"}};
  Producer producer{input, std::move(table), input.byte() % 4};
  ArrowArrayStream stream = {get_schema, get_next, last_error, release_stream, &producer};
  ++alive;
  {
    const auto taken = data::ArrowStream::take(&stream);
    const auto read = data::read_arrow(*taken, columns);
    if (read.ok()) check_table(*read);
  }
  if (alive != 0) std::abort();
  return 0;
}
