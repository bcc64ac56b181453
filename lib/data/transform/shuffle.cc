// SPDX-License-Identifier: Apache-2.0
//
// Three ways to the same promise: a permutation of positions where the source can be indexed and the buffer holds it
// all; a reservoir of positions where it can be indexed, with the order stored as it comes for moderate sizes,
// so that what is behind reads by position too; a reservoir of elements (shuffle_elements.cc) elsewhere.
#include <algorithm>
#include <optional>
#include <utility>

#include "base/random/philox.h"
#include "data/dataset/stage.h"
#include "data/keep/reservoir.h"
#include "data/keep/shuffle_elements.h"
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

// Positions 0 .. size-1 in the order in which a reservoir gives them.
template <typename Position>
class PositionDraws {
 public:
  PositionDraws(RandomKey key, int64_t capacity, int64_t size) : reservoir_(key, capacity), size_(size) {}

  // The next one. Not after `size` of them.
  int64_t next() {
    while (reservoir_.has_room() && added_ < size_)
      reservoir_.add(added_++);
    const size_t slot = reservoir_.pick();
    const int64_t position = reservoir_.position(slot);
    reservoir_.remove(slot);
    ++draws_;
    return position;
  }
  int64_t size() const { return size_; }
  int64_t draws() const { return draws_; }

 private:
  Reservoir<Position> reservoir_;
  const int64_t size_;
  int64_t added_ = 0;
  int64_t draws_ = 0;
};

// Of a source larger than the buffer and of at most kMostStored elements, read forward.
class DrawnAccess : public MappedAccess {
 public:
  DrawnAccess(std::unique_ptr<RandomAccess> input, RandomKey key, int64_t capacity)
      : MappedAccess(std::move(input)), draws_(key, capacity, size()) {
    drawn_.reserve(static_cast<size_t>(size()));
  }

  void locate_soon(int64_t end) override { draw(std::min(end, size())); }

 protected:
  void map(std::span<int64_t> positions) const override {
    for (int64_t &position : positions) {
      draw(position + 1);
      position = drawn_[static_cast<size_t>(position)];
    }
  }

 private:
  void draw(int64_t end) const {
    while (static_cast<int64_t>(drawn_.size()) < end)
      drawn_.push_back(static_cast<int32_t>(draws_.next()));
  }

  // As far as they were asked for.
  mutable PositionDraws<int32_t> draws_;
  mutable std::vector<int32_t> drawn_;
};

class PositionReservoirStage : public Stage {
 public:
  PositionReservoirStage(std::unique_ptr<RandomAccess> access, RandomKey key, int64_t capacity,
                         const IteratorContext &context)
      : access_(std::move(access)), draws_(key, capacity, access_->size()), epoch_(context.epoch), steps_(context) {}

  Result<bool> next(Element &element) override {
    if (draw(1) == 0) return false;
    element.lineage = access_->lineage_in(epoch_, drawn_[0]);
    Status status = access_->element(drawn_[0], element);
    if (status.ok()) {
      give(1);
      return true;
    }
    if (!is_final(status)) status = in_element(status, access_->lineage_in(epoch_, drawn_[0]));
    if (!base::is_interrupt(status)) give(1);
    return status;
  }
  Status next_rows(std::span<const RowTarget> targets, int64_t count, int64_t &done) override {
    const auto fill = [this](int64_t first, std::span<int64_t> positions) {
      std::copy_n(drawn_.begin() + first, positions.size(), positions.begin());
    };
    Status status = steps_.run(*access_, draw(count), targets, fill, done);
    give(done);
    return status;
  }
  Lineage last_row() const override { return last_ < 0 ? Lineage() : access_->lineage_in(epoch_, last_); }
  void save(State &state) const override {
    state.open("position_reservoir");
    state.number("draws", draws_.draws() - static_cast<int64_t>(drawn_.size()));
    state.close();
  }
  Status restore(const JsonReader &state) override {
    TUTTI_TRY(expect_kind(state, "position_reservoir"));
    TUTTI_ASSIGN(const int64_t draws, saved_count(state, "draws", 0, access_->size()));
    while (draws_.draws() < draws)
      draws_.next();
    return Status();
  }

 private:
  // Draws until there are `count` to give; how many there are.
  int64_t draw(int64_t count) {
    while (static_cast<int64_t>(drawn_.size()) < count && draws_.draws() < draws_.size())
      drawn_.push_back(draws_.next());
    return std::min(count, static_cast<int64_t>(drawn_.size()));
  }
  void give(int64_t count) {
    if (count > 0) last_ = drawn_[static_cast<size_t>(count - 1)];
    drawn_.erase(drawn_.begin(), drawn_.begin() + count);
  }

  std::unique_ptr<RandomAccess> access_;
  PositionDraws<int64_t> draws_;
  const int64_t epoch_;
  std::vector<int64_t> drawn_;  // and not yet given out: an interrupt came between
  int64_t last_ = -1;           // given out
  GatherSteps steps_;
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
    if (is_stored(*access)) {
      return std::unique_ptr<Stage>(std::make_unique<IndexedStage>(reordered(std::move(access), context), context));
    }
    return std::unique_ptr<Stage>(
        std::make_unique<PositionReservoirStage>(std::move(access), key(context), parameters_.buffer_size, context));
  }

  Result<std::unique_ptr<RandomAccess>> random_access(const IteratorContext &context, Access wanted) const override {
    TUTTI_ASSIGN(std::unique_ptr<RandomAccess> access, inputs()[0]->random_access(context, Access::anywhere));
    if (access == nullptr) return access;
    const bool has_order = is_permuted(*access) || (wanted == Access::in_order && is_stored(*access));
    return has_order ? reordered(std::move(access), context) : std::unique_ptr<RandomAccess>();
  }

 private:
  bool is_permuted(const RandomAccess &access) const { return access.size() <= parameters_.buffer_size; }
  bool is_stored(const RandomAccess &access) const { return is_permuted(access) || access.size() <= kMostStored; }
  std::unique_ptr<RandomAccess> reordered(std::unique_ptr<RandomAccess> access, const IteratorContext &context) const {
    if (is_permuted(*access)) return std::make_unique<PermutedAccess>(std::move(access), key(context));
    return std::make_unique<DrawnAccess>(std::move(access), key(context), parameters_.buffer_size);
  }
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
