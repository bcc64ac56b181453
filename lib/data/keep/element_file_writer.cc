// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "base/hash/checksum.h"
#include "base/json.h"
#include "data/keep/element_file.h"
#include "data/keep/element_file_layout.h"
#include "graph/attribute_json.h"
#include "tensor/bytes_tensor.h"

namespace tutti::impl::data {

using base::Json;
using base::JsonArray;
using base::JsonObject;
using base::Result;
using base::Status;
using tensor::Tensor;

namespace {

static_assert(std::endian::native == std::endian::little, "element files are written as numbers lie in memory");

// Bytes of a block, about.
constexpr int64_t kFileBlockBytes = int64_t{4} << 20;
// Rows of a block when they are small: batches of such sizes are views.
constexpr int64_t kFileRowGranule = 64;
constexpr int64_t kMostElements = int64_t{1} << 16;
constexpr char kZeros[64] = {};

int64_t rows_per_block(std::span<const int64_t> row_bytes) {
  int64_t bytes = 8;
  for (const int64_t one : row_bytes)
    bytes += one;
  const int64_t rows = std::clamp<int64_t>(kFileBlockBytes / bytes, 1, kMostElements);
  return rows < kFileRowGranule ? rows : rows / kFileRowGranule * kFileRowGranule;
}

Json describe(const ElementSpec &spec) {
  JsonArray components;
  for (const ComponentSpec &component : spec.components) {
    components.push_back(JsonObject{{"name", component.name},
                                    {"role", static_cast<int32_t>(component.role)},
                                    {"dtype", std::string(name(component.dtype))},
                                    {"dims", graph::dims_to_json(component.dims)}});
  }
  return JsonObject{
      {"components", std::move(components)}, {"batch_size", spec.batch_size}, {"exact_batches", spec.exact_batches}};
}

void append_number(std::string &to, uint64_t number) {
  to.append(reinterpret_cast<const char *>(&number), sizeof(number));
}

void append_padding(std::string &to, size_t multiple) { to.append((multiple - to.size() % multiple) % multiple, '\0'); }

// Offsets from where they begin, then the texts.
void append_texts(std::string &to, const Tensor &tensor) {
  const int64_t count = tensor.elements();
  const int64_t *const offsets = tensor.data_as<int64_t>();
  const int64_t start = (count + 1) * 8 - offsets[0];
  for (int64_t i = 0; i <= count; ++i)
    append_number(to, static_cast<uint64_t>(start + offsets[i]));
  const char *const texts = static_cast<const char *>(tensor.buffer()->data());
  to.append(texts + offsets[0], static_cast<size_t>(tensor::bytes_total(tensor)));
}

}  // namespace

ElementFileWriter::ElementFileWriter(base::AtomicFile file, ElementSpec spec)
    : file_(std::move(file)), spec_(std::move(spec)), is_static_(spec_.is_static()) {}

Result<ElementFileWriter> ElementFileWriter::create(const std::string &path, const ElementSpec &spec,
                                                    std::string_view fingerprint) {
  TUTTI_ASSIGN(base::AtomicFile file, base::AtomicFile::create(path));
  ElementFileWriter writer(std::move(file), spec);
  TUTTI_TRY(writer.begin(fingerprint));
  return writer;
}

Status ElementFileWriter::begin(std::string_view fingerprint) {
  if (is_static_) {
    row_bytes_ = row_bytes(spec_);
    rows_per_block_ = rows_per_block(row_bytes_);
    rows_.resize(row_bytes_.size());
  }
  const Json text =
      JsonObject{{"spec", describe(spec_)}, {"fingerprint", fingerprint}, {"rows_per_block", rows_per_block_}};
  const std::string written = text.dump();
  std::string header(kElementFileMagic);
  const uint32_t numbers[2] = {kElementFileVersion, static_cast<uint32_t>(written.size())};
  header.append(reinterpret_cast<const char *>(numbers), sizeof(numbers));
  header += written;
  append_padding(header, 64);
  header_checksum_ = base::crc32c(header);
  return file_.append(header);
}

Status ElementFileWriter::add(const Element &element) {
  TUTTI_TRY(check_element(element, spec_, "element file"));
  lineages_.push_back(element.lineage.index);
  ++elements_;
  if (is_static_) {
    add_row(element);
  } else {
    add_varying(element);
  }
  const auto count = static_cast<int64_t>(lineages_.size());
  const bool is_full =
      is_static_ ? count == rows_per_block_
                 : count == kMostElements || static_cast<int64_t>(values_.size()) + 16 * count >= kFileBlockBytes;
  return is_full ? flush() : Status();
}

void ElementFileWriter::add_row(const Element &element) {
  for (size_t i = 0; i < rows_.size(); ++i)
    rows_[i].append(static_cast<const char *>(element.components[i].data()), static_cast<size_t>(row_bytes_[i]));
}

void ElementFileWriter::add_varying(const Element &element) {
  append_padding(values_, value_alignment(0));
  offsets_.push_back(values_.size());
  for (const Tensor &component : element.components) {
    for (const int64_t extent : component.shape())
      append_number(values_, static_cast<uint64_t>(extent));
    const bool is_text = component.dtype() == tensor::DType::bytes;
    const int64_t bytes =
        is_text ? (component.elements() + 1) * 8 + tensor::bytes_total(component) : component.size_bytes();
    append_number(values_, static_cast<uint64_t>(bytes));
    append_padding(values_, value_alignment(static_cast<uint64_t>(bytes)));
    if (is_text) {
      append_texts(values_, component);
    } else {
      values_.append(static_cast<const char *>(component.data()), static_cast<size_t>(bytes));
    }
    append_padding(values_, 8);
  }
}

Status ElementFileWriter::append(const void *data, size_t size, uint32_t &checksum) {
  checksum = base::crc32c(data, size, checksum);
  TUTTI_TRY(file_.append(data, size));
  const size_t rest = (64 - size % 64) % 64;
  checksum = base::crc32c(kZeros, rest, checksum);
  return file_.append(kZeros, rest);
}

// Each part of a block begins at a multiple of 64, and so does what follows it.
Status ElementFileWriter::flush() {
  if (lineages_.empty()) return Status();
  const size_t count = lineages_.size();
  ElementBlock block{static_cast<uint64_t>(file_.written_bytes()), 0, static_cast<uint64_t>(elements_) - count,
                     static_cast<uint32_t>(count), 0};
  TUTTI_TRY(append(lineages_.data(), count * 8, block.checksum));
  if (is_static_) {
    for (std::string &rows : rows_) {
      TUTTI_TRY(append(rows.data(), rows.size(), block.checksum));
      rows.clear();
    }
  } else {
    TUTTI_TRY(append(offsets_.data(), count * 8, block.checksum));
    TUTTI_TRY(append(values_.data(), values_.size(), block.checksum));
    offsets_.clear();
    values_.clear();
  }
  lineages_.clear();
  block.bytes = static_cast<uint64_t>(file_.written_bytes()) - block.offset;
  blocks_.push_back(block);
  return Status();
}

Status ElementFileWriter::commit() {
  TUTTI_TRY(flush());
  ElementFileTrailer trailer;
  trailer.index_offset = static_cast<uint64_t>(file_.written_bytes());
  trailer.blocks = blocks_.size();
  trailer.elements = static_cast<uint64_t>(elements_);
  trailer.header_checksum = header_checksum_;
  trailer.index_checksum = base::crc32c(blocks_.data(), blocks_.size() * sizeof(ElementBlock));
  trailer.checksum = base::crc32c(&trailer, offsetof(ElementFileTrailer, checksum));
  TUTTI_TRY(file_.append(blocks_.data(), blocks_.size() * sizeof(ElementBlock)));
  TUTTI_TRY(file_.append(&trailer, sizeof(trailer)));
  return file_.commit();
}

}  // namespace tutti::impl::data
