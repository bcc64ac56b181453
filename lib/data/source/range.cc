// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <utility>

#include "data/dataset/stage.h"
#include "data/pipeline/fingerprint.h"
#include "data/pipeline/sources.h"
#include "data/source_parameters.h"

namespace tutti::impl::data {

using base::Result;
using base::Status;
using tensor::Tensor;

namespace {

class RangeAccess : public RandomAccess {
 public:
  RangeAccess(int64_t start, int64_t step, int64_t size) : start_(start), step_(step), size_(size) {}

  int64_t size() const override { return size_; }
  int64_t lineage(int64_t position) const override { return position; }

  Status gather(std::span<int64_t> positions, std::span<const RowTarget> targets) override {
    for (int64_t &position : positions)
      position = at(position);
    std::memcpy(targets[0].data, positions.data(), positions.size_bytes());
    return Status();
  }
  Status element(int64_t position, Element &element) override {
    element.components.resize(1);
    TUTTI_ASSIGN(element.components[0], Tensor::scalar(at(position)));
    return Status();
  }

 private:
  // Unsigned, because the product alone may leave the range of signed numbers.
  int64_t at(int64_t position) const {
    return static_cast<int64_t>(static_cast<uint64_t>(start_) +
                                static_cast<uint64_t>(position) * static_cast<uint64_t>(step_));
  }

  int64_t start_;
  int64_t step_;
  int64_t size_;
};

class RangeDataset : public Dataset {
 public:
  RangeDataset(ElementSpec spec, int64_t start, int64_t step, int64_t size)
      : Dataset("range", std::move(spec), Cardinality::exactly(size), {}), start_(start), step_(step), size_(size) {}

  Result<std::unique_ptr<Stage>> open(const IteratorContext &context) const override {
    return open_indexed(*this, context);
  }
  Result<std::unique_ptr<RandomAccess>> random_access(const IteratorContext &, Access) const override {
    return std::unique_ptr<RandomAccess>(std::make_unique<RangeAccess>(start_, step_, size_));
  }
  bool describe(Fingerprint &fingerprint) const override {
    for (const int64_t number : {start_, step_, size_})
      fingerprint.add_number(number);
    return true;
  }

 private:
  int64_t start_;
  int64_t step_;
  int64_t size_;
};

}  // namespace

Result<DatasetRef> from_range(int64_t start, int64_t stop, int64_t step, const std::string &name) {
  if (step == 0) return base::invalid_argument("range: expected a step other than 0");
  // The distance is computed unsigned: it may not fit a signed number.
  uint64_t size = 0;
  if (step > 0 && start < stop) {
    size = (static_cast<uint64_t>(stop) - static_cast<uint64_t>(start) - 1) / static_cast<uint64_t>(step) + 1;
  } else if (step < 0 && start > stop) {
    size = (static_cast<uint64_t>(start) - static_cast<uint64_t>(stop) - 1) / (~static_cast<uint64_t>(step) + 1) + 1;
  }
  if (size > static_cast<uint64_t>(INT64_MAX)) {
    return base::invalid_argument("range: from ", start, " to ", stop, " by ", step, " has too many elements");
  }
  ElementSpec spec{{{name, Role::feature, tensor::DType::i64, {}}}};
  TUTTI_TRY(check(spec));
  return DatasetRef(base::make_ref<RangeDataset>(std::move(spec), start, step, static_cast<int64_t>(size)));
}

Result<DatasetRef> make_range(const RangeParameters &parameters) {
  return from_range(parameters.start, parameters.stop, parameters.step, parameters.name);
}

}  // namespace tutti::impl::data
