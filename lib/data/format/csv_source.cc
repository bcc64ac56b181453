// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "base/name_suggestions.h"
#include "data/element/name_index.h"
#include "data/format/csv.h"
#include "data/format/field.h"
#include "data/pipeline/file_stage.h"
#include "data/source_parameters.h"
#include "tensor/bytes_tensor.h"

namespace tutti::impl::data {

using base::Result;
using base::Status;
using tensor::DType;
using tensor::Tensor;

namespace {

struct CsvColumns {
  std::vector<Field> fields;
  std::vector<std::string> missing;  // texts that mean nothing
  char delimiter = ',';
  bool has_header = true;
  bool has_empty_files = false;  // which are no error
};

Status no_header(const std::string &path) {
  return base::data_loss("corrupt CSV file ", base::quoted(path, 400), ": it has no header");
}

// A header in one piece that has another usual separator was most likely cut at the wrong one.
std::string delimiter_hint(const std::vector<std::string> &names, char delimiter) {
  if (names.size() != 1) return "";
  for (const char usual : {',', ';', '\t', '|'}) {
    if (usual == delimiter || names[0].find(usual) == std::string::npos) continue;
    return base::concat("; the option delimiter is ", base::quoted(std::string_view(&delimiter, 1)),
                        ", and the header contains ", base::quoted(std::string_view(&usual, 1)));
  }
  return "";
}

class CsvFileReader : public FileReader {
 public:
  explicit CsvFileReader(std::shared_ptr<const CsvColumns> columns)
      : columns_(std::move(columns)), reader_(columns_->delimiter) {}

  Status begin(ByteStream &stream) override {
    TUTTI_TRY(reader_.begin(stream));
    where_.clear();
    if (!columns_->has_header) {
      width_ = columns_->fields.size();
      for (size_t i = 0; i < width_; ++i)
        where_.push_back(i);
      return Status();
    }
    TUTTI_ASSIGN(const bool more, reader_.read(stream));
    if (more) return find_columns(stream);
    return columns_->has_empty_files ? Status() : no_header(stream.path());
  }

  Result<bool> read(ByteStream &stream, Element &element) override {
    TUTTI_ASSIGN(const bool more, read_record(stream));
    if (!more) return false;
    element.components.resize(where_.size());
    for (size_t i = 0; i < where_.size(); ++i) {
      const Field &field = columns_->fields[i];
      const CsvReader::Value &value = reader_.values()[where_[i]];
      if (is_missing(field, value)) {
        TUTTI_ASSIGN(element.components[i], missing_value(stream, field));
      } else if (field.component.dtype == DType::bytes) {
        TUTTI_ASSIGN(element.components[i], tensor::make_bytes_tensor({}, {value.text}));
      } else {
        TUTTI_ASSIGN(element.components[i], Tensor::allocate(field.component.dtype, {}));
        TUTTI_TRY(write(stream, field, value, element.components[i].mutable_data()));
      }
    }
    return true;
  }

  bool has_rows() const override { return true; }
  Result<bool> read_row(ByteStream &stream, std::span<const RowTarget> targets, int64_t row) override {
    TUTTI_ASSIGN(const bool more, read_record(stream));
    if (!more) return false;
    for (size_t i = 0; i < where_.size(); ++i) {
      const Field &field = columns_->fields[i];
      const CsvReader::Value &value = reader_.values()[where_[i]];
      std::byte *const target = targets[i].from_row(row).data;
      if (is_missing(field, value)) {
        TUTTI_ASSIGN(const Tensor tensor, missing_value(stream, field));
        std::memcpy(target, tensor.data(), static_cast<size_t>(tensor.size_bytes()));
      } else {
        TUTTI_TRY(write(stream, field, value, target));
      }
    }
    return true;
  }

  int64_t place() const override { return reader_.next_line(); }
  void set_place(int64_t line) override { reader_.set_next_line(line); }

 private:
  // Where in the file's records our columns stand.
  Status find_columns(const ByteStream &stream) {
    width_ = reader_.values().size();
    const NameIndex index(reader_.values(), [](const CsvReader::Value &value) { return value.text; });
    for (const Field &field : columns_->fields) {
      const NameIndex::Place *const found = index.find(field.component.name);
      if (found == nullptr) {
        std::vector<std::string> names;
        for (const CsvReader::Value &value : reader_.values())
          names.emplace_back(value.text);
        return base::invalid_argument("CSV file ", base::quoted(stream.path(), 400), " has no column '",
                                      field.component.name, "'",
                                      base::but_there_are(field.component.name, names, base::KnownNames::quoted),
                                      delimiter_hint(names, columns_->delimiter));
      }
      if (found->count > 1)
        return base::invalid_argument("CSV file ", base::quoted(stream.path(), 400), " has several columns '",
                                      field.component.name, "'");
      where_.push_back(found->first);
    }
    return Status();
  }

  Result<bool> read_record(ByteStream &stream) {
    TUTTI_ASSIGN(const bool more, reader_.read(stream));
    if (!more || reader_.values().size() == width_) return more;
    return base::data_loss("corrupt CSV file ", base::quoted(stream.path(), 400), ":", reader_.line(), ": expected ",
                           width_, " fields, got ", reader_.values().size());
  }

  bool is_missing(const Field &field, const CsvReader::Value &value) const {
    if (value.text.empty())
      return field.component.dtype != DType::bytes || (field.default_text.has_value() && !value.quoted);
    return !value.quoted &&
           std::find(columns_->missing.begin(), columns_->missing.end(), value.text) != columns_->missing.end();
  }

  Result<Tensor> missing_value(const ByteStream &stream, const Field &field) const {
    if (field.default_value) return field.default_value;
    return base::invalid_argument("CSV file ", base::quoted(stream.path(), 400), ":", reader_.line(), ": column '",
                                  field.component.name, "' has no value and no default");
  }

  Status write(const ByteStream &stream, const Field &field, const CsvReader::Value &value, void *target) const {
    if (write_number(value.text, field.component.dtype, target)) return Status();
    return base::invalid_argument("CSV file ", base::quoted(stream.path(), 400), ":", reader_.line(), ": column '",
                                  field.component.name, "': expected ", field.component.dtype, ", got ",
                                  base::quoted(value.text));
  }

  const std::shared_ptr<const CsvColumns> columns_;
  CsvReader reader_;
  std::vector<size_t> where_;  // each field's value in a record
  size_t width_ = 0;           // of the records of this file
};

// Every column of the first header, as texts.
Result<std::vector<std::string>> columns_of(const FileList &files, const base::Ref<base::CancelToken> &cancel,
                                            char delimiter) {
  std::vector<std::string> columns;
  for (const std::string &path : files.paths) {
    TUTTI_ASSIGN(base::Ref<const ReadableFile> file, open_file(path, files.file_systems.get(), cancel));
    TUTTI_ASSIGN(ByteStream stream, ByteStream::open(std::move(file), files.compression));
    stream.limit_records(files.maximum_record_bytes);
    CsvReader reader(delimiter);
    TUTTI_TRY(reader.begin(stream));
    TUTTI_ASSIGN(const bool more, reader.read(stream));
    if (!more) continue;
    for (const CsvReader::Value &value : reader.values())
      columns.push_back(std::string(value.text));
    return columns;
  }
  return no_header(files.paths[0]);
}

}  // namespace

Result<DatasetRef> make_csv(const CsvParameters &parameters) {
  TUTTI_ASSIGN(FileList files, FileList::make(parameters.paths, parameters.compression, parameters));
  files.maximum_record_bytes = parameters.maximum_record_bytes;
  if (parameters.delimiter.size() != 1 || parameters.delimiter.find_first_of("\"\r\n") != std::string::npos)
    return base::invalid_argument("delimiter: expected one character, got ", base::quoted(parameters.delimiter));
  auto columns = std::make_shared<CsvColumns>();
  columns->delimiter = parameters.delimiter[0];
  columns->has_header = parameters.header;
  columns->missing = parameters.missing;
  // Programs that write in parallel leave parts without a byte.
  columns->has_empty_files = files.paths.size() > 1;
  for (const std::string &text : parameters.columns) {
    TUTTI_ASSIGN(Field field, parse_field(text));
    if (!field.component.dims.empty())
      return base::invalid_argument("column ", base::quoted(text), ": a column holds one value, not several");
    columns->fields.push_back(std::move(field));
  }
  if (parameters.columns.empty()) {
    if (!parameters.header) return base::invalid_argument("columns: without a header they must be listed");
    TUTTI_ASSIGN(const std::vector<std::string> names, columns_of(files, parameters.cancel, columns->delimiter));
    for (const std::string &name : names)
      columns->fields.push_back({{name, Role::feature, DType::bytes, {}}, std::nullopt, {}});
  }
  ElementSpec spec;
  for (const Field &field : columns->fields)
    spec.components.push_back(field.component);
  TUTTI_TRY(check(spec));
  TUTTI_TRY(set_roles(spec, parameters.labels, parameters.weights));
  return make_file_dataset("csv", std::move(spec), std::move(files),
                           [columns] { return std::make_unique<CsvFileReader>(columns); });
}

}  // namespace tutti::impl::data
