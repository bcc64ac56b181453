// SPDX-License-Identifier: Apache-2.0
#include "data/keep/element_file.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/hash/checksum.h"
#include "base/json.h"
#include "base/memory.h"
#include "data/keep/element_file_layout.h"
#include "graph/attribute_json.h"
#include "tensor/bytes_tensor.h"

namespace tutti::impl::data {

using base::JsonReader;
using base::Ref;
using base::Result;
using base::Status;
using tensor::Buffer;
using tensor::Shape;
using tensor::Tensor;

namespace {

template <typename T>
T read_number(const std::byte *from) {
  T number;
  std::memcpy(&number, from, sizeof(number));
  return number;
}

Result<ElementSpec> parse_spec(const JsonReader &json) {
  ElementSpec spec;
  TUTTI_ASSIGN(spec.batch_size, graph::get_bounded(json, "batch_size", 0, INT64_MAX));
  TUTTI_ASSIGN(spec.exact_batches, json.get_boolean("exact_batches"));
  TUTTI_ASSIGN(const JsonReader components, json.get("components"));
  TUTTI_ASSIGN(const std::vector<JsonReader> all, components.elements());
  for (const JsonReader &one : all) {
    ComponentSpec component;
    TUTTI_ASSIGN(component.name, one.get_string("name"));
    TUTTI_ASSIGN(const int64_t role, graph::get_bounded(one, "role", 0, 2));
    component.role = static_cast<Role>(role);
    TUTTI_ASSIGN(component.dtype, graph::get_dtype(one, "dtype"));
    TUTTI_ASSIGN(const JsonReader dims, one.get("dims"));
    TUTTI_ASSIGN(component.dims, graph::dims_from_json(dims));
    spec.components.push_back(std::move(component));
  }
  TUTTI_TRY(check(spec));
  return spec;
}

}  // namespace

Status ElementFile::corrupt(uint64_t offset, std::string_view what) const {
  return base::data_loss("damaged element file ", base::quoted(path_, 400), " at offset ", offset, ": ", what,
                         "; delete the file so that it is written again");
}

Result<std::shared_ptr<const ElementFile>> ElementFile::open(const std::string &path) {
  TUTTI_ASSIGN(base::MappedFile mapped, base::MappedFile::open(path));
  const auto owner = std::make_shared<base::MappedFile>(std::move(mapped));
  return decode(Buffer::borrow(
                    const_cast<char *>(owner->data()), static_cast<int64_t>(owner->size()), [owner] {},
                    Buffer::Access::read_only),
                path);
}

Result<std::shared_ptr<const ElementFile>> ElementFile::decode(Ref<Buffer> contents, std::string path) {
  std::shared_ptr<ElementFile> file(new ElementFile);
  file->path_ = std::move(path);
  file->contents_ = std::move(contents);
  TUTTI_TRY(file->read_structure());
  return std::shared_ptr<const ElementFile>(std::move(file));
}

Status ElementFile::read_structure() {
  const auto total = static_cast<uint64_t>(contents_->size_bytes());
  if (total < kElementFileMagic.size() || std::memcmp(data(), kElementFileMagic.data(), kElementFileMagic.size()) != 0)
    return base::failed_precondition("file ", base::quoted(path_, 400), " is not an element file");
  if (total < kElementFileHeaderBytes + sizeof(ElementFileTrailer)) return corrupt(total, "the file ends here");
  const auto version = read_number<uint32_t>(data() + 8);
  if (version != kElementFileVersion) {
    return base::unimplemented("element file ", base::quoted(path_, 400), " is of version ", version,
                               "; this library reads version ", kElementFileVersion);
  }
  const uint64_t trailer_offset = total - sizeof(ElementFileTrailer);
  const auto trailer = read_number<ElementFileTrailer>(data() + trailer_offset);
  if (std::memcmp(trailer.magic, ElementFileTrailer().magic, sizeof(trailer.magic)) != 0 ||
      trailer.checksum != base::crc32c(&trailer, offsetof(ElementFileTrailer, checksum))) {
    return corrupt(trailer_offset, "expected the end of an element file");
  }
  uint64_t header_end = 0;
  TUTTI_TRY(read_header(trailer.header_checksum, header_end));
  if (trailer.index_offset > trailer_offset ||
      (trailer_offset - trailer.index_offset) / sizeof(ElementBlock) != trailer.blocks ||
      (trailer_offset - trailer.index_offset) % sizeof(ElementBlock) != 0 || trailer.elements > total) {
    return corrupt(trailer_offset, "the index is not at the expected offset");
  }
  size_ = static_cast<int64_t>(trailer.elements);
  return read_index(trailer.index_offset, trailer.blocks, header_end, trailer.index_checksum);
}

Status ElementFile::read_header(uint32_t expected_checksum, uint64_t &end) {
  const uint64_t limit = static_cast<uint64_t>(contents_->size_bytes()) - sizeof(ElementFileTrailer);
  const auto text_bytes = read_number<uint32_t>(data() + 12);
  end = round_up(kElementFileHeaderBytes + text_bytes, 64);
  if (end > limit || base::crc32c(data(), end) != expected_checksum) return corrupt(0, "the header is damaged");
  const std::string_view text(reinterpret_cast<const char *>(data()) + kElementFileHeaderBytes, text_bytes);
  TUTTI_ASSIGN(const base::Json json, base::Json::parse(text));
  const JsonReader reader(json, base::concat("element file ", base::quoted(path_, 400)));
  TUTTI_ASSIGN(fingerprint_, reader.get_string("fingerprint"));
  TUTTI_ASSIGN(const JsonReader spec, reader.get("spec"));
  TUTTI_ASSIGN(spec_, parse_spec(spec));
  is_static_ = spec_.is_static();
  TUTTI_ASSIGN(rows_per_block_, graph::get_bounded(reader, "rows_per_block", is_static_ ? 1 : 0, UINT32_MAX));
  if (!is_static_) return Status();
  const std::vector<int64_t> bytes = row_bytes(spec_);
  for (size_t i = 0; i < bytes.size(); ++i) {
    TUTTI_ASSIGN(const Shape shape, Shape::make(*graph::constant_shape(spec_.components[i].dims)));
    columns_.push_back({spec_.components[i].dtype, shape, bytes[i]});
  }
  return Status();
}

Status ElementFile::read_index(uint64_t offset, uint64_t blocks, uint64_t begin, uint32_t expected_checksum) {
  const size_t bytes = blocks * sizeof(ElementBlock);
  if (base::crc32c(data() + offset, bytes) != expected_checksum) return corrupt(offset, "the index is damaged");
  blocks_.resize(blocks);
  if (bytes > 0) std::memcpy(blocks_.data(), data() + offset, bytes);
  verified_ = std::make_unique<std::atomic<bool>[]>(blocks);
  uint64_t elements = 0;
  for (size_t i = 0; i < blocks; ++i) {
    const ElementBlock &block = blocks_[i];
    if (block.offset != begin || block.bytes > offset - begin || block.bytes % 64 != 0 || block.first != elements ||
        block.count == 0) {
      return corrupt(offset + i * sizeof(ElementBlock), "expected blocks one after the other");
    }
    TUTTI_TRY(check_block(block, i + 1 == blocks));
    begin += block.bytes;
    elements += block.count;
  }
  if (begin != offset || elements != static_cast<uint64_t>(size_)) {
    return corrupt(offset, "the index does not match the blocks of the file");
  }
  return Status();
}

// A block must be large enough for its elements, so no further bounds need be looked at where shapes are static.
Status ElementFile::check_block(const ElementBlock &block, bool is_last) const {
  uint64_t least = round_up(uint64_t{block.count} * 8, 64);
  if (!is_static_) least *= 2;
  bool fits = least <= block.bytes;
  for (const Column &column : columns_) {
    const auto row_bytes = static_cast<uint64_t>(column.row_bytes);
    fits = fits && (row_bytes == 0 || block.count <= (block.bytes - least) / row_bytes);
    if (fits) least += round_up(row_bytes * block.count, 64);
    fits = fits && least <= block.bytes;
  }
  if (is_static_) {
    const auto full = static_cast<uint64_t>(rows_per_block_);
    fits = fits && least == block.bytes && (is_last ? block.count <= full : block.count == full);
  }
  return fits ? Status()
              : corrupt(block.offset,
                        base::concat("a block of ", block.bytes, " bytes cannot be ", block.count, " elements"));
}

const ElementBlock &ElementFile::block_of(int64_t position) const {
  if (is_static_) return blocks_[static_cast<size_t>(position / rows_per_block_)];
  const auto behind = std::upper_bound(blocks_.begin(), blocks_.end(), static_cast<uint64_t>(position),
                                       [](uint64_t value, const ElementBlock &block) { return value < block.first; });
  return *std::prev(behind);
}

Status ElementFile::verify(const ElementBlock &block) const {
  std::atomic<bool> &verified = verified_[static_cast<size_t>(&block - blocks_.data())];
  if (verified.load(std::memory_order_relaxed)) return Status();
  if (base::crc32c(data() + block.offset, block.bytes) != block.checksum) {
    return corrupt(block.offset, base::concat("the ", block.bytes, " bytes of elements ", block.first, " to ",
                                              block.first + block.count - 1, " do not match their checksum"));
  }
  verified.store(true, std::memory_order_relaxed);
  return Status();
}

int64_t ElementFile::lineage(int64_t position) const {
  const ElementBlock &block = block_of(position);
  if (!verify(block).ok()) return position;
  return read_number<int64_t>(data() + block.offset + (static_cast<uint64_t>(position) - block.first) * 8);
}

uint64_t ElementFile::row_offset(const ElementBlock &block, size_t column, uint64_t row) const {
  uint64_t offset = block.offset + round_up(uint64_t{block.count} * 8, 64);
  for (size_t i = 0; i < column; ++i)
    offset += round_up(static_cast<uint64_t>(columns_[i].row_bytes) * block.count, 64);
  return offset + static_cast<uint64_t>(columns_[column].row_bytes) * row;
}

Status ElementFile::element(int64_t position, Element &element) const {
  const ElementBlock &block = block_of(position);
  TUTTI_TRY(verify(block));
  const uint64_t row = static_cast<uint64_t>(position) - block.first;
  element.components.resize(spec_.components.size());
  if (!is_static_) return varying_element(block, row, element);
  for (size_t i = 0; i < columns_.size(); ++i) {
    const auto offset = static_cast<int64_t>(row_offset(block, i, row));
    TUTTI_ASSIGN(element.components[i], Tensor::from_buffer(columns_[i].dtype, columns_[i].shape, contents_, offset));
  }
  return Status();
}

// The checksum may be right and the contents made up, so nothing is believed.
Status ElementFile::varying_element(const ElementBlock &block, uint64_t row, Element &element) const {
  const uint64_t table = round_up(uint64_t{block.count} * 8, 64);
  const std::byte *const start = data() + block.offset;
  const uint64_t begin = read_number<uint64_t>(start + table + row * 8);
  uint64_t at = 2 * table;
  if (begin > block.bytes - at) return corrupt(block.offset + table + row * 8, "an element lies outside its block");
  at += begin;
  for (size_t i = 0; i < spec_.components.size(); ++i) {
    const ComponentSpec &component = spec_.components[i];
    const size_t rank = component.dims.size();
    const auto cut = [&] { return corrupt(block.offset + at, "an element reaches beyond its block"); };
    at = round_up(at, 8);
    if (at > block.bytes || block.bytes - at < (rank + 1) * 8) return cut();
    int64_t extents[Shape::kMaxRank] = {};
    if (rank > 0) std::memcpy(extents, start + at, rank * 8);
    const auto bytes = read_number<uint64_t>(start + at + rank * 8);
    at = round_up(at + (rank + 1) * 8, value_alignment(bytes));
    if (at > block.bytes || bytes > block.bytes - at) return cut();
    const Result<Shape> shape = Shape::make({extents, rank});
    if (!shape.ok()) return corrupt(block.offset + at, shape.status().message());
    const bool is_text = component.dtype == tensor::DType::bytes;
    const int64_t values = shape->elements() * static_cast<int64_t>(tensor::size_bytes(component.dtype));
    if (is_text ? static_cast<int64_t>(bytes) < values + 8 : static_cast<int64_t>(bytes) != values) return cut();
    // Texts are found from where their buffer begins.
    const auto offset = static_cast<int64_t>(block.offset + at);
    TUTTI_ASSIGN(Ref<Buffer> buffer, Buffer::slice(contents_, offset, static_cast<int64_t>(bytes)));
    Result<Tensor> tensor = Tensor::from_buffer(component.dtype, *shape, std::move(buffer));
    if (!tensor.ok()) return corrupt(block.offset + at, tensor.status().message());
    element.components[i] = tensor.take();
    at += bytes;
  }
  const Status status = check_element(element, spec_, "it");
  return status.ok() ? status : corrupt(block.offset, status.message());
}

Status ElementFile::gather(std::span<const int64_t> positions, std::span<const RowTarget> targets) const {
  Status worst;
  for (size_t i = 0; i < positions.size(); ++i) {
    const ElementBlock &block = block_of(positions[i]);
    Status status = verify(block);
    const uint64_t row = static_cast<uint64_t>(positions[i]) - block.first;
    for (size_t c = 0; status.ok() && c < columns_.size(); ++c) {
      const auto bytes = static_cast<size_t>(columns_[c].row_bytes);
      if (bytes > 0) std::memcpy(targets[c].data + i * bytes, data() + row_offset(block, c, row), bytes);
    }
    keep_worst(worst, std::move(status));
  }
  return worst;
}

Status ElementFile::copy_rows(int64_t position, int64_t count, std::span<const RowTarget> targets) const {
  Status worst;
  for (int64_t done = 0; done < count;) {
    const ElementBlock &block = block_of(position + done);
    const uint64_t row = static_cast<uint64_t>(position + done) - block.first;
    const int64_t together = std::min(count - done, static_cast<int64_t>(block.count - row));
    Status status = verify(block);
    for (size_t c = 0; status.ok() && c < columns_.size(); ++c) {
      const auto bytes = static_cast<size_t>(columns_[c].row_bytes * together);
      if (bytes > 0) std::memcpy(targets[c].from_row(done).data, data() + row_offset(block, c, row), bytes);
    }
    keep_worst(worst, std::move(status));
    done += together;
  }
  return worst;
}

bool ElementFile::view(int64_t position, int64_t count, Element &batch) const {
  if (!is_static_) return false;
  const ElementBlock &block = block_of(position);
  const uint64_t row = static_cast<uint64_t>(position) - block.first;
  if (static_cast<uint64_t>(count) > block.count - row || !verify(block).ok()) return false;
  for (size_t i = 0; i < columns_.size(); ++i) {
    if (row_offset(block, i, row) % base::kAlignment != 0) return false;
  }
  batch.components.resize(columns_.size());
  for (size_t i = 0; i < columns_.size(); ++i) {
    const Result<Shape> shape = columns_[i].shape.prepend(count);
    if (!shape.ok()) return false;
    Result<Tensor> rows =
        Tensor::from_buffer(columns_[i].dtype, *shape, contents_, static_cast<int64_t>(row_offset(block, i, row)));
    if (!rows.ok()) return false;
    batch.components[i] = rows.take();
  }
  return true;
}

}  // namespace tutti::impl::data
