// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <optional>
#include <unordered_set>
#include <utility>

#include "base/hash/keyed_hash.h"
#include "data/element/name_index.h"
#include "data/file/file_system.h"
#include "data/format/field.h"
#include "data/format/tar.h"
#include "data/pipeline/file_stage.h"
#include "data/source_parameters.h"
#include "tensor/bytes_tensor.h"

namespace tutti::impl::data {

using base::Result;
using base::Status;
using tensor::DType;
using tensor::Tensor;

namespace {

constexpr std::string_view kKey = "__key__";  // as WebDataset calls it

class TarFileReader : public FileReader {
 public:
  explicit TarFileReader(std::shared_ptr<const std::vector<Field>> fields) : fields_(std::move(fields)) {}

  Status begin(ByteStream &) override {
    keys_.clear();
    return Status();
  }
  // What is told of a sample must not depend on where the walk began.
  Status move_to(ByteStream &stream, int64_t offset) override {
    std::vector<std::string> keys;
    TUTTI_TRY(reader_.move_to(stream, offset, keys));
    for (const std::string &key : keys)
      keys_.insert(hash_(key));
    return Status();
  }
  Result<bool> read(ByteStream &stream, Element &element) override {
    can_go_on_ = false;
    TUTTI_ASSIGN(const bool more, reader_.read(stream, sample_));
    if (!more) return false;
    can_go_on_ = true;
    TUTTI_TRY(check_sample(stream));
    element.components.resize(fields_->size());
    for (size_t i = 0; i < fields_->size(); ++i) {
      TUTTI_ASSIGN(element.components[i], make_component(stream, (*fields_)[i]));
    }
    return true;
  }
  bool can_go_on() const override { return can_go_on_; }

 private:
  template <typename... Pieces>
  Status bad_sample(const ByteStream &stream, const Pieces &...pieces) const {
    return base::invalid_argument("tar file ", base::quoted(stream.path(), 400), ": sample ",
                                  base::quoted(sample_.key, 400), base::concat(pieces...));
  }

  Status check_sample(const ByteStream &stream) {
    if (!keys_.insert(hash_(sample_.key)).second)
      return bad_sample(stream, " occurs in several places; expected its files one after the other");
    parts_.emplace(sample_.parts, [](const TarSample::Part &part) -> std::string_view { return part.name; });
    for (const TarSample::Part &part : sample_.parts) {
      if (parts_->find(part.name)->count > 1)
        return bad_sample(stream, " has the part ", base::quoted(part.name, 400), " more than once");
    }
    return Status();
  }

  Result<Tensor> make_component(const ByteStream &stream, const Field &field) const {
    const ComponentSpec &component = field.component;
    if (component.name == kKey) return tensor::make_bytes_tensor({}, {sample_.key});
    const NameIndex::Place *const found = parts_->find(small_letters(component.name));
    if (found == nullptr) {
      if (field.default_value) return field.default_value;
      return bad_sample(stream, " has no part '", component.name, "' and no default");
    }
    const std::string_view contents = sample_.contents(sample_.parts[found->first]);
    if (component.dtype == DType::bytes) return tensor::make_bytes_tensor({}, {contents});
    TUTTI_ASSIGN(Tensor number, Tensor::allocate(component.dtype, {}));
    if (write_number(contents, component.dtype, number.mutable_data())) return number;
    return bad_sample(stream, ", part '", component.name, "': expected ", component.dtype, ", got ",
                      base::quoted(contents));
  }

  const std::shared_ptr<const std::vector<Field>> fields_;
  TarReader reader_;
  TarSample sample_;
  const base::KeyedHash hash_{0, 0};
  std::unordered_set<uint64_t> keys_;  // hashed, of the samples of this file so far
  std::optional<NameIndex> parts_;     // of the sample
  bool can_go_on_ = true;
};

}  // namespace

Result<DatasetRef> make_tar(const TarParameters &parameters) {
  auto fields = std::make_shared<std::vector<Field>>();
  ElementSpec spec;
  for (const std::string &text : parameters.parts) {
    TUTTI_ASSIGN(Field field, parse_field(text));
    if (!field.component.dims.empty())
      return base::invalid_argument("part ", base::quoted(text), ": expected a text or one number");
    if (field.component.name == kKey && field.component.dtype != DType::bytes)
      return base::invalid_argument("part ", base::quoted(text), ": a key is of dtype bytes");
    spec.components.push_back(field.component);
    fields->push_back(std::move(field));
  }
  TUTTI_TRY(check(spec));
  TUTTI_TRY(set_roles(spec, parameters.labels, parameters.weights));
  TUTTI_ASSIGN(FileList files, FileList::make(parameters.paths, parameters.compression, parameters));
  files.maximum_record_bytes = parameters.maximum_record_bytes;
  return make_file_dataset("tar", std::move(spec), std::move(files),
                           [fields] { return std::make_unique<TarFileReader>(fields); });
}

}  // namespace tutti::impl::data
