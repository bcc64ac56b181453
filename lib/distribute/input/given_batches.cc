// SPDX-License-Identifier: Apache-2.0
#include "distribute/input/given_batches.h"

#include <memory>
#include <optional>
#include <utility>

#include "data/dataset/stage.h"

namespace tutti::impl::distribute {

using base::Result;
using base::Status;
using data::Element;

namespace {

/// Batches have any number of rows, whatever the dataset has that the spec is from.
data::ElementSpec of_any_size(data::ElementSpec spec) {
  for (data::ComponentSpec &component : spec.components) {
    if (!component.dims.empty()) component.dims.front() = data::unknown_dim();
  }
  return spec;
}

/// The batch that is there, once.
class GivenStage : public data::Stage {
 public:
  explicit GivenStage(std::shared_ptr<std::optional<Element>> batch) : batch_(std::move(batch)) {}

  Result<bool> next(Element &element) override {
    if (!batch_->has_value()) return false;
    element = std::move(**batch_);
    element.lineage = {0, given_++};
    batch_->reset();
    return true;
  }
  void save(data::State &state) const override {
    state.open("given batches");
    state.close();
  }
  Status restore(const base::JsonReader &) override { return Status(); }

 private:
  const std::shared_ptr<std::optional<Element>> batch_;
  int64_t given_ = 0;
};

class GivenDataset : public data::Dataset {
 public:
  GivenDataset(const data::ElementSpec &spec, std::shared_ptr<std::optional<Element>> batch)
      : Dataset("given batches", of_any_size(spec), data::Cardinality::unknown(), {}), batch_(std::move(batch)) {}

  Result<std::unique_ptr<data::Stage>> open(const data::IteratorContext &) const override {
    return std::unique_ptr<data::Stage>(std::make_unique<GivenStage>(batch_));
  }

 private:
  const std::shared_ptr<std::optional<Element>> batch_;
};

}  // namespace

GivenBatches::GivenBatches(const data::ElementSpec &spec)
    : batch_(std::make_shared<std::optional<Element>>()), source_(base::make_ref<GivenDataset>(spec, batch_)) {}

Result<std::unique_ptr<data::Iterator>> GivenBatches::walk() const { return source_->make_iterator({}); }

Status GivenBatches::give(std::vector<tensor::Tensor> components) {
  Element batch{std::move(components), {}};
  TUTTI_TRY(data::check_element(batch, source_->spec(), "batch"));
  *batch_ = std::move(batch);
  return Status();
}

void GivenBatches::clear() { batch_->reset(); }

}  // namespace tutti::impl::distribute
