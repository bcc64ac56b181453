// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "data/dataset/stage.h"
#include "data/transform_parameters.h"

namespace tutti::impl::data {

using base::JsonReader;
using base::Result;
using base::Status;

namespace {

class TakeStage : public Stage {
 public:
  TakeStage(std::unique_ptr<Stage> input, int64_t count) : input_(std::move(input)), left_(count) {}

  Result<bool> next(Element &element) override {
    if (left_ == 0) return false;
    Result<bool> more = input_->next(element);
    if (!base::is_interrupt(more.status())) --left_;
    return more;
  }
  Status next_rows(std::span<const RowTarget> targets, int64_t count, int64_t &done) override {
    const Status status = input_->next_rows(targets, std::min(count, left_), done);
    left_ -= done;
    return status;
  }
  Lineage last_row() const override { return input_->last_row(); }
  void save(State &state) const override {
    state.open("take");
    state.number("left", left_);
    state.key("input");
    input_->save(state);
    state.close();
  }
  Status restore(const JsonReader &state) override {
    TUTTI_TRY(expect_kind(state, "take"));
    TUTTI_ASSIGN(left_, saved_count(state, "left", 0, left_));
    TUTTI_ASSIGN(const JsonReader input, state.get("input"));
    return input_->restore(input);
  }

 private:
  std::unique_ptr<Stage> input_;
  int64_t left_;
};

class TakeDataset : public Dataset {
 public:
  TakeDataset(const DatasetRef &input, Cardinality cardinality, int64_t count)
      : Dataset("take", input->spec(), cardinality, {input}), count_(count) {}

  Result<std::unique_ptr<Stage>> open(const IteratorContext &context) const override {
    TUTTI_ASSIGN(std::unique_ptr<Stage> indexed, open_indexed(*this, context));
    if (indexed != nullptr) return indexed;
    TUTTI_ASSIGN(std::unique_ptr<Stage> input, inputs()[0]->walk(context));
    return std::unique_ptr<Stage>(std::make_unique<TakeStage>(std::move(input), count_));
  }

  Result<std::unique_ptr<RandomAccess>> random_access(const IteratorContext &context, Access access) const override {
    // What lies behind the taken part must not be read, not even to fill a cache.
    const Cardinality all = inputs()[0]->cardinality();
    if (!all.is_exact() || all.value() > count_) access = Access::in_order;
    TUTTI_ASSIGN(std::unique_ptr<RandomAccess> input, inputs()[0]->random_access(context, access));
    if (input == nullptr) return input;
    const int64_t size = std::min(count_, input->size());
    return std::unique_ptr<RandomAccess>(std::make_unique<StridedAccess>(std::move(input), 0, 1, size));
  }

 private:
  int64_t count_;
};

}  // namespace

Result<DatasetRef> apply_take(const DatasetRef &input, const TakeParameters &parameters, TransformArguments &) {
  if (parameters.count < 0) return input;
  const Cardinality all = input->cardinality();
  Cardinality taken = all;
  if (all == Cardinality::presumed_infinite()) taken = Cardinality::unknown();
  if (all == Cardinality::infinite() || parameters.count == 0) taken = Cardinality::exactly(parameters.count);
  if (all.is_exact()) taken = Cardinality::exactly(std::min(all.value(), parameters.count));
  return DatasetRef(base::make_ref<TakeDataset>(input, taken, parameters.count));
}

}  // namespace tutti::impl::data
