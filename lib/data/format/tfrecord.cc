// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "data/format/record.h"
#include "data/pipeline/file_stage.h"
#include "data/source_parameters.h"

namespace tutti::impl::data {

using base::Result;

namespace {

class RecordFileReader : public FileReader {
 public:
  Result<bool> read(ByteStream &stream, Element &element) override {
    element.components.resize(1);
    return reader_.read(stream, element.components[0]);
  }
  bool has_texts() const override { return true; }
  Result<bool> read_text(ByteStream &stream, BytesRows &rows) override { return reader_.read(stream, rows); }
  bool can_go_on() const override { return reader_.can_go_on(); }

 private:
  RecordReader reader_;
};

}  // namespace

Result<DatasetRef> make_tfrecord(const TfrecordParameters &parameters) {
  TUTTI_ASSIGN(FileList files, FileList::make(parameters.paths, parameters.compression, parameters));
  files.maximum_record_bytes = parameters.maximum_record_bytes;
  files.open = open_record_stream;
  ElementSpec spec{{{parameters.name, Role::feature, tensor::DType::bytes, {}}}};
  return make_file_dataset("tfrecord", std::move(spec), std::move(files),
                           [] { return std::make_unique<RecordFileReader>(); });
}

}  // namespace tutti::impl::data
