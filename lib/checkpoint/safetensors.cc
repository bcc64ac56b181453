// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>
#include <span>

#include "base/file.h"
#include "base/hash/checksum.h"
#include "base/json.h"

namespace tutti::impl::checkpoint {

using base::data_loss;
using base::invalid_argument;
using base::Json;
using base::JsonArray;
using base::JsonObject;
using base::JsonReader;
using base::Result;
using base::Status;
using tensor::DType;
using tensor::Tensor;

static_assert(std::endian::native == std::endian::little, "safetensors data is little-endian");

namespace {

constexpr std::string_view kMetadataKey = "__metadata__";
constexpr int64_t kLengthBytes = 8;

struct DTypeName {
  DType dtype;
  std::string_view name;
};
constexpr DTypeName kDTypeNames[] = {
    {DType::f32, "F32"}, {DType::f64, "F64"},      {DType::i32, "I32"}, {DType::i64, "I64"},   {DType::u8, "U8"},
    {DType::i8, "I8"},   {DType::boolean, "BOOL"}, {DType::f16, "F16"}, {DType::bf16, "BF16"}, {DType::i16, "I16"},
    {DType::u16, "U16"}, {DType::u32, "U32"},      {DType::u64, "U64"},
};

// Reading

Result<SafetensorsEntry> parse_entry(const std::string &name, const JsonReader &reader, int64_t data_bytes) {
  TUTTI_TRY(reader.only_keys({"dtype", "shape", "data_offsets"}));
  TUTTI_ASSIGN(const std::string dtype_name, reader.get_string("dtype"));
  TUTTI_ASSIGN(const std::vector<int64_t> dims, reader.get_integers("shape"));
  TUTTI_ASSIGN(const std::vector<int64_t> offsets, reader.get_integers("data_offsets"));
  SafetensorsEntry entry;
  entry.name = name;
  const std::optional<DType> dtype = dtype_from_safetensors(dtype_name);
  if (!dtype) return invalid_argument("dtype ", base::quoted(dtype_name), " is not known");
  entry.dtype = *dtype;
  TUTTI_ASSIGN(entry.shape, tensor::Shape::make(dims));
  if (offsets.size() != 2) return invalid_argument("expected two data_offsets, got ", offsets.size());
  entry.begin_byte = offsets[0];
  entry.end_byte = offsets[1];
  if (entry.begin_byte < 0 || entry.end_byte < entry.begin_byte || entry.end_byte > data_bytes) {
    return invalid_argument("data_offsets ", offsets, " are not inside the ", data_bytes, " bytes of data");
  }
  const int64_t needed = entry.shape.elements() * static_cast<int64_t>(tensor::size_bytes(entry.dtype));
  if (entry.end_byte - entry.begin_byte != needed) {
    return invalid_argument("shape ", entry.shape, " of ", dtype_name, " needs ", needed, " bytes, data_offsets ",
                            offsets, " give ", entry.end_byte - entry.begin_byte);
  }
  return entry;
}

Result<SafetensorsMetadata> parse_metadata(const JsonReader &reader) {
  SafetensorsMetadata metadata;
  TUTTI_ASSIGN(const auto members, reader.members());
  for (const auto &[key, value] : members) {
    TUTTI_ASSIGN(metadata[key], value.as_string());
  }
  return metadata;
}

Status check_contiguous(const std::vector<SafetensorsEntry> &entries, int64_t data_bytes) {
  int64_t position = 0;
  for (const SafetensorsEntry &entry : entries) {
    if (entry.begin_byte != position) {
      return data_loss("tensor ", base::quoted(entry.name), " begins at byte ", entry.begin_byte,
                       " of the data, expected ", position, ": tensors must follow each other without ",
                       entry.begin_byte < position ? "overlap" : "a hole");
    }
    position = entry.end_byte;
  }
  if (position == data_bytes) return Status();
  return data_loss("the tensors end at byte ", position, " of the data, which has ", data_bytes);
}

Status read_exactly(const base::RandomAccessFile &file, int64_t offset, void *data, int64_t size) {
  TUTTI_ASSIGN(const size_t got, file.read_at(offset, data, static_cast<size_t>(size)));
  if (static_cast<int64_t>(got) == size) return Status();
  return data_loss("expected ", size, " bytes at offset ", offset, ", got ", got, ": the file has been truncated");
}

// The JSON text of the header, with everything before the data added to `crc`.
Result<std::string> read_header_text(const base::RandomAccessFile &file, uint32_t *crc) {
  if (file.size_bytes() < kLengthBytes) return data_loss("a file of ", file.size_bytes(), " bytes has no header");
  uint64_t length = 0;
  TUTTI_TRY(read_exactly(file, 0, &length, kLengthBytes));
  *crc = base::crc32c(&length, kLengthBytes, *crc);
  const auto room = static_cast<uint64_t>(std::min(file.size_bytes() - kLengthBytes, kMaxSafetensorsHeaderBytes));
  if (length > room) return data_loss("the header has ", length, " bytes, expected at most ", room);
  std::string text(length, '\0');
  TUTTI_TRY(read_exactly(file, kLengthBytes, text.data(), static_cast<int64_t>(length)));
  *crc = base::crc32c(text.data(), text.size(), *crc);
  return text;
}

Result<SafetensorsContent> read_content(const std::string &path, const std::optional<FileSummary> &expected) {
  TUTTI_ASSIGN(const auto file, base::RandomAccessFile::open(path));
  if (expected && file.size_bytes() != expected->size_bytes) {
    return data_loss("expected ", expected->size_bytes, " bytes, the file has ", file.size_bytes());
  }
  SafetensorsContent content;
  content.summary.size_bytes = file.size_bytes();
  TUTTI_ASSIGN(const std::string text, read_header_text(file, &content.summary.crc32c));
  const int64_t data_begin = kLengthBytes + static_cast<int64_t>(text.size());
  TUTTI_ASSIGN(content.header, parse_safetensors_header(text, file.size_bytes() - data_begin));
  for (const SafetensorsEntry &entry : content.header.entries) {
    TUTTI_ASSIGN(Tensor tensor, Tensor::allocate(entry.dtype, entry.shape));
    TUTTI_TRY(read_exactly(file, data_begin + entry.begin_byte, tensor.mutable_data(), tensor.size_bytes()));
    content.summary.crc32c =
        base::crc32c(tensor.data(), static_cast<size_t>(tensor.size_bytes()), content.summary.crc32c);
    content.tensors.push_back(std::move(tensor));
  }
  if (expected && content.summary.crc32c != expected->crc32c)
    return data_loss("the checksum differs from the manifest's");
  return content;
}

// Writing

Status check_items(const std::vector<SafetensorsItem> &items) {
  for (const SafetensorsItem &item : items) {
    if (item.name.empty() || item.name == kMetadataKey || !base::is_utf8(item.name)) {
      return invalid_argument("tensor name ", base::quoted(item.name), " cannot be stored");
    }
    if (!safetensors_name(item.dtype)) {
      return invalid_argument("tensor ", base::quoted(item.name), " has dtype ", item.dtype,
                              ", which cannot be stored");
    }
  }
  return Status();
}

// The order of the data: falling element size, then name.
Result<std::vector<size_t>> order_of(const std::vector<SafetensorsItem> &items) {
  std::vector<size_t> order(items.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    const size_t size_a = tensor::size_bytes(items[a].dtype), size_b = tensor::size_bytes(items[b].dtype);
    return size_a != size_b ? size_a > size_b : items[a].name < items[b].name;
  });
  std::vector<std::string_view> names;
  for (const SafetensorsItem &item : items)
    names.push_back(item.name);
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end()) return invalid_argument("two tensors are called ", base::quoted(*twice));
  return order;
}

std::string header_text(const std::vector<SafetensorsItem> &items, const std::vector<size_t> &order,
                        const SafetensorsMetadata &metadata) {
  JsonObject header;
  if (!metadata.empty()) {
    JsonObject pairs;
    for (const auto &[key, value] : metadata)
      pairs.emplace_back(key, value);
    header.emplace_back(std::string(kMetadataKey), std::move(pairs));
  }
  int64_t position = 0;
  for (const size_t index : order) {
    const SafetensorsItem &item = items[index];
    const int64_t end = position + item.shape.elements() * static_cast<int64_t>(tensor::size_bytes(item.dtype));
    JsonArray dims(item.shape.begin(), item.shape.end());
    header.emplace_back(item.name, JsonObject{{"dtype", std::string(*safetensors_name(item.dtype))},
                                              {"shape", std::move(dims)},
                                              {"data_offsets", JsonArray{position, end}}});
    position = end;
  }
  std::string text = Json(std::move(header)).dump();
  text.append((kLengthBytes - text.size() % kLengthBytes) % kLengthBytes, ' ');
  return text;
}

class ChecksummedFile {
 public:
  explicit ChecksummedFile(base::AtomicFile file) : file_(std::move(file)) {}
  Status append(const void *data, size_t size) {
    summary_.crc32c = base::crc32c(data, size, summary_.crc32c);
    summary_.size_bytes += static_cast<int64_t>(size);
    return file_.append(data, size);
  }
  Result<FileSummary> commit() {
    TUTTI_TRY(file_.commit());
    return summary_;
  }

 private:
  base::AtomicFile file_;
  FileSummary summary_;
};

}  // namespace

std::optional<std::string_view> safetensors_name(DType dtype) {
  for (const DTypeName &pair : kDTypeNames) {
    if (pair.dtype == dtype) return pair.name;
  }
  return std::nullopt;
}

std::optional<DType> dtype_from_safetensors(std::string_view name) {
  for (const DTypeName &pair : kDTypeNames) {
    if (pair.name == name) return pair.dtype;
  }
  return std::nullopt;
}

Result<SafetensorsHeader> parse_safetensors_header(std::string_view json, int64_t data_bytes) {
  if (json.empty() || json.front() != '{') return data_loss("the header does not begin with '{'");
  base::JsonLimits limits;
  limits.max_bytes = static_cast<size_t>(kMaxSafetensorsHeaderBytes);
  limits.max_depth = 4;
  const Result<Json> root = Json::parse(json, limits);
  if (!root.ok()) return data_loss("the header is not JSON").with_cause(root.status());
  SafetensorsHeader header;
  for (const auto &[name, value] : root->object()) {
    const JsonReader reader(value, base::concat("tensor ", base::quoted(name)));
    if (name == kMetadataKey) {
      Result<SafetensorsMetadata> metadata = parse_metadata(reader);
      if (!metadata.ok()) return data_loss("bad ", kMetadataKey).with_cause(metadata.status());
      header.metadata = metadata.take();
      continue;
    }
    Result<SafetensorsEntry> entry = parse_entry(name, reader, data_bytes);
    if (!entry.ok())
      return data_loss("tensor ", base::quoted(name), " has a bad description").with_cause(entry.status());
    header.entries.push_back(entry.take());
  }
  std::stable_sort(header.entries.begin(), header.entries.end(),
                   [](const SafetensorsEntry &a, const SafetensorsEntry &b) {
                     return a.begin_byte != b.begin_byte ? a.begin_byte < b.begin_byte : a.end_byte < b.end_byte;
                   });
  TUTTI_TRY(check_contiguous(header.entries, data_bytes));
  return header;
}

Result<FileSummary> write_safetensors(const std::string &path, const std::vector<SafetensorsItem> &items,
                                      const TensorSource &source, const SafetensorsMetadata &metadata,
                                      const base::CancelToken *cancel) {
  TUTTI_TRY(check_items(items));
  TUTTI_ASSIGN(const std::vector<size_t> order, order_of(items));
  const std::string text = header_text(items, order, metadata);
  if (static_cast<int64_t>(text.size()) > kMaxSafetensorsHeaderBytes) {
    return invalid_argument(items.size(), " tensors need a header of ", text.size(), " bytes, the limit is ",
                            kMaxSafetensorsHeaderBytes);
  }
  TUTTI_ASSIGN(base::AtomicFile atomic_file, base::AtomicFile::create(path));
  ChecksummedFile file(std::move(atomic_file));
  const uint64_t length = text.size();
  TUTTI_TRY(file.append(&length, sizeof length));
  TUTTI_TRY(file.append(text.data(), text.size()));
  for (const size_t index : order) {
    TUTTI_TRY(base::check(cancel));
    TUTTI_ASSIGN(const Tensor tensor, source(index));
    if (tensor.dtype() != items[index].dtype || !(tensor.shape() == items[index].shape)) {
      return invalid_argument("tensor ", base::quoted(items[index].name), " is ", tensor.describe(), ", expected ",
                              items[index].dtype, " ", items[index].shape);
    }
    TUTTI_TRY(file.append(tensor.data(), static_cast<size_t>(tensor.size_bytes())));
  }
  return file.commit();
}

Result<SafetensorsContent> read_safetensors(const std::string &path, const std::optional<FileSummary> &expected) {
  Result<SafetensorsContent> content = read_content(path, expected);
  if (content.ok()) return content;
  return content.status().wrap(base::concat("cannot read '", path, "'"));
}

}  // namespace tutti::impl::checkpoint
