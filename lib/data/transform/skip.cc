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

class SkipStage : public Stage {
 public:
  SkipStage(std::unique_ptr<Stage> input, int64_t count, base::Ref<base::CancelToken> cancel)
      : input_(std::move(input)), left_(count), cancel_(std::move(cancel)) {}

  Result<bool> next(Element &element) override {
    TUTTI_ASSIGN(const bool more, skip(element));
    return more ? input_->next(element) : false;
  }
  Status next_rows(std::span<const RowTarget> targets, int64_t count, int64_t &done) override {
    done = 0;
    Element element;
    TUTTI_ASSIGN(const bool more, skip(element));
    return more ? input_->next_rows(targets, count, done) : Status();
  }
  Lineage last_row() const override { return input_->last_row(); }
  void save(State &state) const override {
    state.open("skip");
    state.number("left", left_);
    state.key("input");
    input_->save(state);
    state.close();
  }
  Status restore(const JsonReader &state) override {
    TUTTI_TRY(expect_kind(state, "skip"));
    TUTTI_ASSIGN(left_, saved_count(state, "left", 0, left_));
    TUTTI_ASSIGN(const JsonReader input, state.get("input"));
    return input_->restore(input);
  }

 private:
  // Leaves out what is left to leave out; a failing element among them is of no interest. False at the end.
  Result<bool> skip(Element &element) {
    while (left_ > 0) {
      const Result<bool> more = input_->next(element);
      if (more.ok() && !*more) return false;
      if (is_final(more.status())) return more.status();
      if (--left_ > 0) TUTTI_TRY(base::check(cancel_.get()));
    }
    return true;
  }

  std::unique_ptr<Stage> input_;
  int64_t left_;
  const base::Ref<base::CancelToken> cancel_;
};

class SkipDataset : public Dataset {
 public:
  SkipDataset(const DatasetRef &input, Cardinality cardinality, int64_t count)
      : Dataset("skip", input->spec(), cardinality, {input}), count_(count) {}

  Result<std::unique_ptr<Stage>> open(const IteratorContext &context) const override {
    TUTTI_ASSIGN(std::unique_ptr<Stage> indexed, open_indexed(*this, context));
    if (indexed != nullptr) return indexed;
    TUTTI_ASSIGN(std::unique_ptr<Stage> input, inputs()[0]->walk(context));
    return std::unique_ptr<Stage>(std::make_unique<SkipStage>(std::move(input), count_, context.cancel));
  }

  Result<std::unique_ptr<RandomAccess>> random_access(const IteratorContext &context, Access access) const override {
    TUTTI_ASSIGN(std::unique_ptr<RandomAccess> input, inputs()[0]->random_access(context, access));
    if (input == nullptr) return input;
    const int64_t first = std::min(count_, input->size());
    const int64_t size = input->size() - first;
    return std::unique_ptr<RandomAccess>(std::make_unique<StridedAccess>(std::move(input), first, 1, size));
  }

 private:
  int64_t count_;
};

}  // namespace

Result<DatasetRef> apply_skip(const DatasetRef &input, const SkipParameters &parameters, TransformArguments &) {
  if (parameters.count == 0) return input;
  Cardinality left = input->cardinality();
  if (left.is_exact()) left = Cardinality::exactly(std::max<int64_t>(0, left.value() - parameters.count));
  return DatasetRef(base::make_ref<SkipDataset>(input, left, parameters.count));
}

}  // namespace tutti::impl::data
