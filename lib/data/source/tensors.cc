// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "data/dataset/stage.h"
#include "data/pipeline/fingerprint.h"
#include "data/pipeline/sources.h"

namespace tutti::impl::data {

using base::Result;
using base::Status;
using tensor::Tensor;

namespace {

class TensorsAccess : public RandomAccess {
 public:
  explicit TensorsAccess(const Element &element) : element_(element) {}

  int64_t size() const override { return 1; }
  int64_t lineage(int64_t) const override { return 0; }

  Status gather(std::span<int64_t> positions, std::span<const RowTarget> targets) override {
    for (size_t row = 0; row < positions.size(); ++row) {
      TUTTI_TRY(copy_to_row(element_, targets, static_cast<int64_t>(row)));
    }
    return Status();
  }
  Status element(int64_t, Element &element) override {
    element.components = element_.components;
    return Status();
  }

 private:
  const Element &element_;  // the dataset's
};

class TensorsDataset : public Dataset {
 public:
  TensorsDataset(ElementSpec spec, Element element)
      : Dataset("tensors", std::move(spec), Cardinality::exactly(1), {}), element_(std::move(element)) {}

  Result<std::unique_ptr<Stage>> open(const IteratorContext &context) const override {
    return open_indexed(*this, context);
  }
  Result<std::unique_ptr<RandomAccess>> random_access(const IteratorContext &, Access) const override {
    return std::unique_ptr<RandomAccess>(std::make_unique<TensorsAccess>(element_));
  }
  bool describe(Fingerprint &fingerprint) const override {
    for (const Tensor &tensor : element_.components)
      fingerprint.add_tensor(tensor);
    return true;
  }

 private:
  Element element_;
};

}  // namespace

Result<DatasetRef> from_tensors(std::vector<NamedTensor> tensors) {
  ElementSpec spec;
  Element element;
  for (NamedTensor &named : tensors) {
    if (named.tensor.empty()) return base::invalid_argument("tensors: component '", named.name, "' has no tensor");
    const tensor::Shape &shape = named.tensor.shape();
    spec.components.push_back(
        {std::move(named.name), named.role, named.tensor.dtype(), graph::Dims(shape.begin(), shape.end())});
    element.components.push_back(std::move(named.tensor));
  }
  TUTTI_TRY(check(spec));
  return DatasetRef(base::make_ref<TensorsDataset>(std::move(spec), std::move(element)));
}

}  // namespace tutti::impl::data
