// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "data/dataset/stage.h"
#include "data/transform_parameters.h"

namespace tutti::impl::data {

using base::JsonReader;
using base::Result;
using base::Status;

namespace {

class ShardStage : public Stage {
 public:
  ShardStage(std::unique_ptr<Stage> input, const ShardParameters &parameters, base::Ref<base::CancelToken> cancel)
      : input_(std::move(input)), parameters_(parameters), until_own_(parameters.index), cancel_(std::move(cancel)) {}

  Result<bool> next(Element &element) override {
    while (until_own_ > 0) {
      const Result<bool> more = input_->next(element);
      if (more.ok() && !*more) return false;
      if (is_final(more.status())) return more.status();
      if (--until_own_ > 0) TUTTI_TRY(base::check(cancel_.get()));
    }
    Result<bool> more = input_->next(element);
    if (!base::is_interrupt(more.status())) until_own_ = parameters_.num_shards - 1;
    return more;
  }
  void save(State &state) const override {
    state.open("shard");
    state.number("until_own", until_own_);
    state.key("input");
    input_->save(state);
    state.close();
  }
  Status restore(const JsonReader &state) override {
    TUTTI_TRY(expect_kind(state, "shard"));
    TUTTI_ASSIGN(until_own_, saved_count(state, "until_own", 0, parameters_.num_shards - 1));
    TUTTI_ASSIGN(const JsonReader input, state.get("input"));
    return input_->restore(input);
  }

 private:
  std::unique_ptr<Stage> input_;
  ShardParameters parameters_;
  int64_t until_own_;  // elements of other shards before the next own one
  const base::Ref<base::CancelToken> cancel_;
};

int64_t shard_size(int64_t all, const ShardParameters &parameters) {
  return all <= parameters.index ? 0 : (all - parameters.index - 1) / parameters.num_shards + 1;
}

class ShardDataset : public Dataset {
 public:
  ShardDataset(const DatasetRef &input, Cardinality cardinality, const ShardParameters &parameters)
      : Dataset("shard", input->spec(), cardinality, {input}), parameters_(parameters) {}

  Result<std::unique_ptr<Stage>> open(const IteratorContext &context) const override {
    TUTTI_ASSIGN(std::unique_ptr<Stage> indexed, open_indexed(*this, context));
    if (indexed != nullptr) return indexed;
    TUTTI_ASSIGN(std::unique_ptr<Stage> input, inputs()[0]->walk(context));
    return std::unique_ptr<Stage>(std::make_unique<ShardStage>(std::move(input), parameters_, context.cancel));
  }

  Result<std::unique_ptr<RandomAccess>> random_access(const IteratorContext &context, Access access) const override {
    TUTTI_ASSIGN(std::unique_ptr<RandomAccess> input, inputs()[0]->random_access(context, access));
    if (input == nullptr) return input;
    const int64_t size = shard_size(input->size(), parameters_);
    return std::unique_ptr<RandomAccess>(
        std::make_unique<StridedAccess>(std::move(input), parameters_.index, parameters_.num_shards, size));
  }

 private:
  ShardParameters parameters_;
};

}  // namespace

Result<DatasetRef> apply_shard(const DatasetRef &input, const ShardParameters &parameters, TransformArguments &) {
  if (parameters.index >= parameters.num_shards) {
    return base::invalid_argument("parameter 'index': expected a number below num_shards = ", parameters.num_shards,
                                  ", got ", parameters.index);
  }
  Cardinality own = input->cardinality();
  if (own.is_exact()) own = Cardinality::exactly(shard_size(own.value(), parameters));
  return DatasetRef(base::make_ref<ShardDataset>(input, own, parameters));
}

}  // namespace tutti::impl::data
