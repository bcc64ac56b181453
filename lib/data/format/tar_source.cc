// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <utility>

#include "data/file_stage.h"
#include "data/format/field.h"
#include "data/format/tar.h"
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

  Result<bool> read(ByteStream &stream, Element &element) override {
    can_go_on_ = false;
    TUTTI_ASSIGN(const bool more, reader_.read(stream, sample_));
    if (!more) return false;
    can_go_on_ = true;
    element.components.resize(fields_->size());
    for (size_t i = 0; i < fields_->size(); ++i) {
      TUTTI_ASSIGN(element.components[i], make_component(stream, (*fields_)[i]));
    }
    return true;
  }
  bool can_go_on() const override { return can_go_on_; }

 private:
  Result<Tensor> make_component(const ByteStream &stream, const Field &field) const {
    const ComponentSpec &component = field.component;
    if (component.name == kKey) return tensor::make_bytes_tensor({}, {sample_.key});
    const TarSample::Part *const part = sample_.find(component.name);
    if (part == nullptr) {
      if (field.default_value) return field.default_value;
      return base::invalid_argument("tar file ", base::quoted(stream.path(), 400), ": sample ",
                                    base::quoted(sample_.key), " has no part '", component.name, "', and no default");
    }
    const std::string_view contents = sample_.contents(*part);
    if (component.dtype == DType::bytes) return tensor::make_bytes_tensor({}, {contents});
    TUTTI_ASSIGN(Tensor number, Tensor::allocate(component.dtype, {}));
    if (write_number(contents, component.dtype, number.mutable_data())) return number;
    return base::invalid_argument("tar file ", base::quoted(stream.path(), 400), ": sample ", base::quoted(sample_.key),
                                  ", part '", component.name, "': expected ", component.dtype, ", got ",
                                  base::quoted(contents));
  }

  const std::shared_ptr<const std::vector<Field>> fields_;
  TarReader reader_;
  TarSample sample_;
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
  return make_file_dataset("tar", std::move(spec), std::move(files),
                           [fields] { return std::make_unique<TarFileReader>(fields); });
}

}  // namespace tutti::impl::data
