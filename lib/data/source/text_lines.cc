// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <utility>

#include "data/pipeline/file_stage.h"
#include "data/source_parameters.h"
#include "tensor/bytes_tensor.h"

namespace tutti::impl::data {

using base::Result;
using base::Status;

namespace {

class TextReader : public FileReader {
 public:
  explicit TextReader(int64_t skip_lines) : skip_lines_(skip_lines) {}

  Status begin(ByteStream &stream) override {
    TUTTI_TRY(stream.skip_byte_order_mark());
    bool more = true;
    for (int64_t i = 0; i < skip_lines_ && more; ++i) {
      std::string_view line;
      TUTTI_ASSIGN(more, stream.read_line(line));
    }
    return Status();
  }
  bool has_texts() const override { return true; }
  Result<bool> read_text(ByteStream &stream, BytesRows &rows) override {
    std::string_view line;
    TUTTI_ASSIGN(const bool more, stream.read_line(line));
    if (!more) return false;
    TUTTI_ASSIGN(char *const target, rows.add(line.size()));
    if (!line.empty()) std::memcpy(target, line.data(), line.size());
    return true;
  }
  Result<bool> read(ByteStream &stream, Element &element) override {
    std::string_view line;
    TUTTI_ASSIGN(const bool more, stream.read_line(line));
    if (!more) return false;
    element.components.resize(1);
    TUTTI_ASSIGN(element.components[0], tensor::make_bytes_tensor({}, {line}));
    return true;
  }

 private:
  const int64_t skip_lines_;
};

}  // namespace

Result<DatasetRef> make_text_lines(const TextLinesParameters &parameters) {
  TUTTI_ASSIGN(FileList files, FileList::make(parameters.paths, parameters.compression, parameters));
  files.maximum_record_bytes = parameters.maximum_record_bytes;
  ElementSpec spec{{{parameters.name, Role::feature, tensor::DType::bytes, {}}}};
  return make_file_dataset("text_lines", std::move(spec), std::move(files),
                           [skip = parameters.skip_lines] { return std::make_unique<TextReader>(skip); });
}

}  // namespace tutti::impl::data
