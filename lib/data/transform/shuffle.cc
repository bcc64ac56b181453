// SPDX-License-Identifier: Apache-2.0
//
// Three ways to the same promise: a permutation of positions where the source can be indexed and the buffer holds it
// all; a reservoir of positions where it can be indexed; a reservoir of elements (shuffle_elements.cc) elsewhere.
#include <algorithm>
#include <optional>
#include <utility>

#include "base/philox.h"
#include "data/reservoir.h"
#include "data/shuffle_elements.h"
#include "data/stage.h"
#include "data/transform_parameters.h"

namespace tutti::impl::data {

using base::JsonReader;
using base::RandomKey;
using base::Result;
using base::Status;

namespace {

// A stored permutation is exactly uniform; beyond this size one that is computed position by position.
constexpr int64_t kMostStored = int64_t{1} << 20;

class PermutedAccess : public MappedAccess {
 public:
  PermutedAccess(std::unique_ptr<RandomAccess> input, RandomKey key) : MappedAccess(std::move(input)), key_(key) {}

 protected:
  void map(std::span<int64_t> positions) const override {
    if (size() > kMostStored) {
      if (!computed_) computed_.emplace(key_, size());
      for (int64_t &position : positions)
        position = (*computed_)(position);
      return;
    }
    if (stored_.empty()) stored_ = base::random_permutation(key_, size());
    for (int64_t &position : positions)
      position = stored_[static_cast<size_t>(position)];
  }

 private:
  RandomKey key_;
  // Made when first needed.
  mutable std::vector<int64_t> stored_;
  mutable std::optional<base::KeyedPermutation> computed_;
};

class PositionReservoirStage : public Stage {
 public:
  PositionReservoirStage(std::unique_ptr<RandomAccess> access, RandomKey key, int64_t capacity, int64_t epoch)
      : access_(std::move(access)), reservoir_(key, capacity), epoch_(epoch) {}

  Result<bool> next(Element &element) override {
    if (draw(1) == 0) return false;
    element.lineage = {epoch_, access_->lineage(drawn_[0])};
    const Status status = access_->element(drawn_[0], element);
    if (!base::is_interrupt(status)) give(1);
    return status.ok() ? Result<bool>(true) : status;
  }
  Status next_rows(std::span<const RowTarget> targets, int64_t count, int64_t &done) override {
    done = draw(count);
    if (done == 0) return Status();
    positions_.assign(drawn_.begin(), drawn_.begin() + done);
    const Status status = access_->gather(positions_, targets);
    if (base::is_interrupt(status)) done = 0;
    give(done);
    return status;
  }
  void save(State &state) const override {
    state.open("position_reservoir");
    state.number("draws", draws_);
    state.close();
  }
  Status restore(const JsonReader &state) override {
    TUTTI_TRY(expect_kind(state, "position_reservoir"));
    TUTTI_ASSIGN(const int64_t draws, saved_count(state, "draws", 0, access_->size()));
    while (draws_ < draws) {
      draw(1);
      give(1);
    }
    return Status();
  }

 private:
  // Draws until there are `count` to give; how many there are.
  int64_t draw(int64_t count) {
    while (static_cast<int64_t>(drawn_.size()) < count) {
      while (reservoir_.has_room() && added_ < access_->size())
        reservoir_.add(added_++);
      if (reservoir_.empty()) break;
      const size_t slot = reservoir_.pick();
      drawn_.push_back(reservoir_.position(slot));
      reservoir_.remove(slot);
    }
    return std::min(count, static_cast<int64_t>(drawn_.size()));
  }
  void give(int64_t count) {
    drawn_.erase(drawn_.begin(), drawn_.begin() + count);
    draws_ += count;
  }

  std::unique_ptr<RandomAccess> access_;
  Reservoir reservoir_;
  int64_t epoch_;
  int64_t added_ = 0;
  int64_t draws_ = 0;           // given out
  std::vector<int64_t> drawn_;  // and not yet given out: an interrupt came between
  std::vector<int64_t> positions_;
};

class ShuffleDataset : public Dataset {
 public:
  ShuffleDataset(const DatasetRef &input, const ShuffleParameters &parameters)
      : Dataset("shuffle", input->spec(), input->cardinality(), {input}), parameters_(parameters) {
    ++shuffle_depth_;
  }

  Result<std::unique_ptr<Stage>> open(const IteratorContext &context) const override {
    TUTTI_ASSIGN(std::unique_ptr<RandomAccess> access, inputs()[0]->random_access(context, Access::anywhere));
    if (access == nullptr) {
      TUTTI_ASSIGN(std::unique_ptr<Stage> input, inputs()[0]->walk(context));
      return open_element_shuffle(std::move(input), key(context), parameters_.buffer_size, context.cancel);
    }
    if (access->size() <= parameters_.buffer_size) {
      access = std::make_unique<PermutedAccess>(std::move(access), key(context));
      return std::unique_ptr<Stage>(std::make_unique<IndexedStage>(std::move(access), context.epoch));
    }
    return std::unique_ptr<Stage>(std::make_unique<PositionReservoirStage>(std::move(access), key(context),
                                                                           parameters_.buffer_size, context.epoch));
  }

  Result<std::unique_ptr<RandomAccess>> random_access(const IteratorContext &context, Access) const override {
    TUTTI_ASSIGN(std::unique_ptr<RandomAccess> access, inputs()[0]->random_access(context, Access::anywhere));
    if (access == nullptr || access->size() > parameters_.buffer_size) return std::unique_ptr<RandomAccess>();
    return std::unique_ptr<RandomAccess>(std::make_unique<PermutedAccess>(std::move(access), key(context)));
  }

 private:
  RandomKey key(const IteratorContext &context) const {
    const int64_t seed = parameters_.seed.value_or(context.seed);
    const int64_t epoch = parameters_.reshuffle_each_epoch ? context.epoch : 0;
    return RandomKey::of(static_cast<uint64_t>(seed), static_cast<uint64_t>(shuffle_depth()),
                         static_cast<uint64_t>(epoch));
  }

  ShuffleParameters parameters_;
};

}  // namespace

Result<DatasetRef> apply_shuffle(const DatasetRef &input, const ShuffleParameters &parameters, TransformArguments &) {
  return DatasetRef(base::make_ref<ShuffleDataset>(input, parameters));
}

}  // namespace tutti::impl::data
