// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <utility>

#include "data/dataset/stage.h"
#include "data/transform_parameters.h"

namespace tutti::impl::data {

using base::JsonReader;
using base::Result;
using base::Status;
using tensor::Tensor;

namespace {

class EnumerateAccess : public RandomAccess {
 public:
  EnumerateAccess(std::unique_ptr<RandomAccess> input, int64_t start) : input_(std::move(input)), start_(start) {}

  int64_t size() const override { return input_->size(); }
  int64_t rows_at_once() const override { return input_->rows_at_once(); }
  int64_t lineage(int64_t position) const override { return input_->lineage(position); }
  FileName file(int64_t position) const override { return input_->file(position); }
  Status gather(std::span<int64_t> positions, std::span<const RowTarget> targets) override {
    auto *numbers = reinterpret_cast<int64_t *>(targets.back().data);
    for (size_t i = 0; i < positions.size(); ++i)
      numbers[i] = start_ + positions[i];
    return input_->gather(positions, targets.first(targets.size() - 1));
  }
  Status element(int64_t position, Element &element) override {
    TUTTI_TRY(input_->element(position, element));
    TUTTI_ASSIGN(Tensor number, Tensor::scalar(start_ + position));
    element.components.push_back(std::move(number));
    return Status();
  }

 private:
  std::unique_ptr<RandomAccess> input_;
  int64_t start_;
};

class EnumerateStage : public Stage {
 public:
  EnumerateStage(std::unique_ptr<Stage> input, int64_t start) : input_(std::move(input)), start_(start) {}

  Result<bool> next(Element &element) override {
    Result<bool> more = input_->next(element);
    if ((more.ok() && !*more) || base::is_interrupt(more.status())) return more;
    const int64_t number = start_ + position_++;  // a failing element has a number too
    if (!more.ok()) return more;
    TUTTI_ASSIGN(Tensor component, Tensor::scalar(number));
    element.components.push_back(std::move(component));
    return true;
  }
  Status next_rows(std::span<const RowTarget> targets, int64_t count, int64_t &done) override {
    const Status status = input_->next_rows(targets.first(targets.size() - 1), count, done);
    auto *numbers = reinterpret_cast<int64_t *>(targets.back().data);
    for (int64_t row = 0; row < done; ++row)
      numbers[row] = start_ + position_++;
    return status;
  }
  Lineage last_row() const override { return input_->last_row(); }
  void save(State &state) const override {
    state.open("enumerate");
    state.number("position", position_);
    state.key("input");
    input_->save(state);
    state.close();
  }
  Status restore(const JsonReader &state) override {
    TUTTI_TRY(expect_kind(state, "enumerate"));
    TUTTI_ASSIGN(position_, saved_count(state, "position"));
    TUTTI_ASSIGN(const JsonReader input, state.get("input"));
    return input_->restore(input);
  }

 private:
  std::unique_ptr<Stage> input_;
  int64_t start_;
  int64_t position_ = 0;
};

class EnumerateDataset : public Dataset {
 public:
  EnumerateDataset(const DatasetRef &input, ElementSpec spec, int64_t start)
      : Dataset("enumerate", std::move(spec), input->cardinality(), {input}), start_(start) {}

  Result<std::unique_ptr<Stage>> open(const IteratorContext &context) const override {
    TUTTI_ASSIGN(std::unique_ptr<Stage> indexed, open_indexed(*this, context));
    if (indexed != nullptr) return indexed;
    TUTTI_ASSIGN(std::unique_ptr<Stage> input, inputs()[0]->walk(context));
    return std::unique_ptr<Stage>(std::make_unique<EnumerateStage>(std::move(input), start_));
  }

  Result<std::unique_ptr<RandomAccess>> random_access(const IteratorContext &context, Access access) const override {
    TUTTI_ASSIGN(std::unique_ptr<RandomAccess> input, inputs()[0]->random_access(context, access));
    if (input == nullptr) return input;
    return std::unique_ptr<RandomAccess>(std::make_unique<EnumerateAccess>(std::move(input), start_));
  }

 private:
  int64_t start_;
};

}  // namespace

Result<DatasetRef> apply_enumerate(const DatasetRef &input, const EnumerateParameters &parameters,
                                   TransformArguments &) {
  if (input->spec().is_batched()) {
    return base::invalid_argument("elements are batches of ", input->spec().batch_size,
                                  " rows; enumerate them before the batch");
  }
  ElementSpec spec = input->spec();
  spec.components.push_back({parameters.name, Role::feature, tensor::DType::i64, {}});
  TUTTI_TRY(check(spec));
  return DatasetRef(base::make_ref<EnumerateDataset>(input, std::move(spec), parameters.start));
}

}  // namespace tutti::impl::data
