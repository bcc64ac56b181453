// SPDX-License-Identifier: Apache-2.0
//
// Files of records of one size, as CIFAR-10 has them. Plain files are mapped and read by position, compressed ones in
// order.
#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "data/format/field.h"
#include "data/pipeline/file_stage.h"
#include "data/source_parameters.h"
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

// What a record is made of: typed parts one after the other, or one text.
struct RecordLayout {
  struct Part {
    DType dtype;
    Shape shape;
    int64_t offset, bytes;
  };
  std::vector<Part> parts;
  int64_t record_bytes = 0, header_bytes = 0, footer_bytes = 0;
  bool swaps = false;  // the numbers' bytes

  // A part of the record at `record` to `target`, in the machine's byte order.
  void copy(const Part &part, const char *record, void *target) const {
    auto *const to = static_cast<char *>(target);
    if (part.bytes > 0) std::memcpy(to, record + part.offset, static_cast<size_t>(part.bytes));
    const auto size = static_cast<int64_t>(tensor::size_bytes(part.dtype));
    for (int64_t i = 0; swaps && size > 1 && i < part.bytes; i += size)
      std::reverse(to + i, to + i + size);
  }

  Status make(const char *record, std::vector<Tensor> &components) const {
    components.resize(parts.size());
    for (size_t i = 0; i < parts.size(); ++i) {
      const Part &part = parts[i];
      if (part.dtype == DType::bytes) {
        TUTTI_ASSIGN(components[i],
                     tensor::make_bytes_tensor({}, {std::string_view(record, static_cast<size_t>(part.bytes))}));
        continue;
      }
      TUTTI_ASSIGN(components[i], Tensor::allocate(part.dtype, part.shape));
      copy(part, record, components[i].mutable_data());
    }
    return Status();
  }
};

// The records of files in memory, one file after the other.
class FixedRecordsAccess : public RandomAccess {
 public:
  struct File {
    Ref<Buffer> contents;
    int64_t first;  // number of its first record
    FileName name;
  };
  FixedRecordsAccess(const RecordLayout &layout, const std::vector<File> &files, int64_t size)
      : layout_(layout), files_(files), size_(size) {}

  int64_t size() const override { return size_; }
  int64_t lineage(int64_t position) const override { return position; }
  FileName file(int64_t position) const override { return file_of(position).name; }
  Status element(int64_t position, Element &element) override {
    return layout_.make(record(position), element.components);
  }
  Status gather(std::span<int64_t> positions, std::span<const RowTarget> targets) override {
    for (size_t row = 0; row < positions.size(); ++row) {
      const char *const from = record(positions[row]);
      for (size_t i = 0; i < targets.size(); ++i)
        layout_.copy(layout_.parts[i], from, targets[i].from_row(static_cast<int64_t>(row)).data);
    }
    return Status();
  }

 private:
  const File &file_of(int64_t position) const {
    const auto after = std::upper_bound(files_.begin(), files_.end(), position,
                                        [](int64_t wanted, const File &file) { return wanted < file.first; });
    return *std::prev(after);
  }
  const char *record(int64_t position) const {
    const File &file = file_of(position);
    return static_cast<const char *>(file.contents->data()) + layout_.header_bytes +
           (position - file.first) * layout_.record_bytes;
  }

  // The dataset's.
  const RecordLayout &layout_;
  const std::vector<File> &files_;
  const int64_t size_;
};

class FixedRecordsDataset : public Dataset {
 public:
  FixedRecordsDataset(ElementSpec spec, RecordLayout layout, std::vector<FixedRecordsAccess::File> files, int64_t size)
      : Dataset("fixed_records", std::move(spec), Cardinality::exactly(size), {}),
        layout_(std::move(layout)),
        files_(std::move(files)) {}

  Result<std::unique_ptr<Stage>> open(const IteratorContext &context) const override {
    return open_indexed(*this, context);
  }
  Result<std::unique_ptr<RandomAccess>> random_access(const IteratorContext &, Access) const override {
    return std::unique_ptr<RandomAccess>(std::make_unique<FixedRecordsAccess>(layout_, files_, cardinality().value()));
  }

 private:
  const RecordLayout layout_;
  const std::vector<FixedRecordsAccess::File> files_;
};

class FixedRecordsReader : public FileReader {
 public:
  explicit FixedRecordsReader(std::shared_ptr<const RecordLayout> layout) : layout_(std::move(layout)) {}

  Status begin(ByteStream &stream) override {
    const auto header = static_cast<size_t>(layout_->header_bytes);
    TUTTI_ASSIGN(const std::string_view here, stream.peek(header));
    if (here.size() < header) return cut(stream, "header", layout_->header_bytes, here.size());
    stream.consume(header);
    return Status();
  }
  Result<bool> read(ByteStream &stream, Element &element) override {
    const char *record = nullptr;
    TUTTI_ASSIGN(const bool more, find(stream, record));
    if (!more) return false;
    TUTTI_TRY(layout_->make(record, element.components));
    stream.consume(static_cast<size_t>(layout_->record_bytes));
    return true;
  }
  bool has_rows() const override { return true; }
  Result<bool> read_row(ByteStream &stream, std::span<const RowTarget> targets, int64_t row) override {
    const char *record = nullptr;
    TUTTI_ASSIGN(const bool more, find(stream, record));
    if (!more) return false;
    for (size_t i = 0; i < targets.size(); ++i)
      layout_->copy(layout_->parts[i], record, targets[i].from_row(row).data);
    stream.consume(static_cast<size_t>(layout_->record_bytes));
    return true;
  }
  bool can_go_on() const override { return false; }

 private:
  // The record that comes next, unless only the footer is left.
  Result<bool> find(ByteStream &stream, const char *&record) const {
    const auto size = static_cast<size_t>(layout_->record_bytes), footer = static_cast<size_t>(layout_->footer_bytes);
    TUTTI_ASSIGN(const std::string_view here, stream.peek(size + footer));
    if (here.size() == footer) return false;
    if (here.size() < size + footer) return cut(stream, "a record", layout_->record_bytes, here.size());
    record = here.data();
    return true;
  }
  static Status cut(const ByteStream &stream, std::string_view what, int64_t size, size_t got) {
    return base::data_loss("corrupt file ", base::quoted(stream.path(), 400), " at offset ", stream.offset(),
                           ": expected ", size, " bytes of ", what, ", the file ends after ", got);
  }

  const std::shared_ptr<const RecordLayout> layout_;
};

Result<RecordLayout> make_layout(const FixedRecordsParameters &parameters, ElementSpec &spec) {
  RecordLayout layout;
  for (const std::string &text : parameters.fields) {
    TUTTI_ASSIGN(const Field field, parse_field(text));
    const std::optional<std::vector<int64_t>> extents = graph::constant_shape(field.component.dims);
    if (!extents || field.component.dtype == DType::bytes || field.default_text)
      return base::invalid_argument("field ", base::quoted(text),
                                    ": expected numbers of a fixed shape, without default");
    TUTTI_ASSIGN(const Shape shape, Shape::make(*extents));
    const int64_t bytes = shape.elements() * static_cast<int64_t>(tensor::size_bytes(field.component.dtype));
    if (bytes > INT32_MAX - layout.record_bytes) return base::invalid_argument("a record of more than 2 GB");
    layout.parts.push_back({field.component.dtype, shape, layout.record_bytes, bytes});
    layout.record_bytes += bytes;
    spec.components.push_back(field.component);
  }
  if (layout.parts.empty()) {
    layout.record_bytes = parameters.record_bytes;
    layout.parts.push_back({DType::bytes, {}, 0, layout.record_bytes});
    spec.components.push_back({parameters.name, Role::feature, DType::bytes, {}});
  } else if (parameters.record_bytes != 0 && parameters.record_bytes != layout.record_bytes) {
    return base::invalid_argument("record_bytes is ", parameters.record_bytes, ", but the fields have ",
                                  layout.record_bytes, " bytes");
  }
  if (layout.record_bytes < 1)
    return base::invalid_argument("expected fields or record_bytes, got records of no bytes");
  layout.header_bytes = parameters.header_bytes;
  layout.footer_bytes = parameters.footer_bytes;
  layout.swaps = parameters.big_endian;
  return layout;
}

// Maps all files; false when one of them is compressed.
Result<bool> map_files(const FileList &list, const Ref<base::CancelToken> &cancel, const RecordLayout &layout,
                       std::vector<FixedRecordsAccess::File> &files, int64_t &records) {
  for (const std::string &path : list.paths) {
    TUTTI_ASSIGN(const Ref<const ReadableFile> file, open_file(path, list.file_systems.get(), cancel));
    TUTTI_ASSIGN(const ByteStream stream, ByteStream::open(file, list.compression));
    if (stream.is_compressed()) return false;
    const int64_t left = file->size_bytes() - layout.header_bytes - layout.footer_bytes;
    if (left < 0 || left % layout.record_bytes != 0) {
      return base::data_loss("corrupt file ", base::quoted(path, 400), ": its ", file->size_bytes(), " bytes without ",
                             layout.header_bytes, " bytes of header and ", layout.footer_bytes,
                             " of footer are not a multiple of the record size, ", layout.record_bytes, " bytes");
    }
    TUTTI_ASSIGN(Ref<Buffer> contents, file->contents());
    if (contents->size_bytes() < file->size_bytes())
      return base::data_loss("file ", path, " was truncated while it was opened");
    files.push_back({std::move(contents), records, std::make_shared<const std::string>(path)});
    records += left / layout.record_bytes;
  }
  return true;
}

}  // namespace

Result<DatasetRef> make_fixed_records(const FixedRecordsParameters &parameters) {
  ElementSpec spec;
  TUTTI_ASSIGN(RecordLayout layout, make_layout(parameters, spec));
  TUTTI_TRY(check(spec));
  TUTTI_TRY(set_roles(spec, parameters.labels, parameters.weights));
  TUTTI_ASSIGN(FileList list, FileList::make(parameters.paths, parameters.compression, parameters));
  std::vector<FixedRecordsAccess::File> files;
  int64_t records = 0;
  TUTTI_ASSIGN(const bool mapped, map_files(list, parameters.cancel, layout, files, records));
  if (mapped) {
    return DatasetRef(
        base::make_ref<FixedRecordsDataset>(std::move(spec), std::move(layout), std::move(files), records));
  }
  const auto shared = std::make_shared<const RecordLayout>(std::move(layout));
  return make_file_dataset("fixed_records", std::move(spec), std::move(list),
                           [shared] { return std::make_unique<FixedRecordsReader>(shared); });
}

}  // namespace tutti::impl::data
