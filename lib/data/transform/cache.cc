// SPDX-License-Identifier: Apache-2.0
//
// The kept elements belong to the dataset, so every later pass and every later iterator with the same seed reads them.
// They are always those of epoch 0, whoever fills the cache first: content is a function of (dataset, seed) alone.
#include <algorithm>
#include <mutex>
#include <utility>

#include "data/kept_elements.h"
#include "data/stage.h"
#include "data/transform_parameters.h"

namespace tutti::impl::data {

using base::JsonReader;
using base::Result;
using base::Status;

namespace {

// One complete pass per seed; the last seed wins.
class Cache {
 public:
  std::shared_ptr<const KeptElements> find(int64_t seed) const {
    std::lock_guard lock(mutex_);
    return seed_ == seed ? kept_ : nullptr;
  }
  // Elements that failed may succeed another time: such a pass is not kept.
  void put(int64_t seed, std::shared_ptr<const KeptElements> kept) {
    if (kept->has_failures()) return;
    std::lock_guard lock(mutex_);
    seed_ = seed;
    kept_ = std::move(kept);
  }

 private:
  mutable std::mutex mutex_;
  int64_t seed_ = 0;                          // guarded by mutex_
  std::shared_ptr<const KeptElements> kept_;  // guarded by mutex_
};

// Gives what is kept, or keeps what the input gives; the pass that reaches the end fills the cache.
class CacheStage : public Stage {
 public:
  CacheStage(Cache &cache, const Dataset &input, IteratorContext context)
      : cache_(cache), dataset_(input), context_(std::move(context)), epoch_(context_.epoch) {
    context_.epoch = 0;
  }

  Result<bool> next(Element &element) override {
    TUTTI_TRY(begin());
    if (kept_ != nullptr) {
      if (position_ >= kept_->size()) return false;
      element.lineage = {epoch_, kept_->lineage(position_)};
      TUTTI_TRY(kept_->element(position_++, element));
      return true;
    }
    const Result<bool> more = input_->next(element);
    if (base::is_interrupt(more.status())) return more;
    if (more.ok() && !*more) {
      finish();
      return false;
    }
    ++position_;
    if (!more.ok()) {
      filling_->add_failure(more.status());
      return more;
    }
    TUTTI_TRY(filling_->add(element));
    element.lineage.epoch = epoch_;
    return true;
  }
  Status next_rows(std::span<const RowTarget> targets, int64_t count, int64_t &done) override {
    done = 0;
    TUTTI_TRY(begin());
    if (kept_ == nullptr) return Stage::next_rows(targets, count, done);
    done = std::clamp<int64_t>(kept_->size() - position_, 0, count);
    kept_->copy_rows(position_, done, targets);
    position_ += done;
    return Status();
  }
  bool next_view(int64_t count, Element &batch) override {
    if (kept_ == nullptr) return false;
    count = std::min(count, kept_->size() - position_);
    if (count <= 0 || !kept_->view(position_, count, batch)) return false;
    position_ += count;
    return true;
  }
  void save(State &state) const override {
    state.open("cache");
    state.number("position", std::max(position_, resume_));
    state.close();
  }
  Status restore(const JsonReader &state) override {
    TUTTI_TRY(expect_kind(state, "cache"));
    TUTTI_ASSIGN(resume_, saved_count(state, "position"));
    return Status();
  }

 private:
  // Before the first element: opens the input if nothing is kept, and goes to the restored position.
  Status begin() {
    if (kept_ == nullptr && input_ == nullptr && position_ == 0) {
      kept_ = cache_.find(context_.seed);
      if (kept_ == nullptr) {
        TUTTI_ASSIGN(input_, dataset_.walk(context_));
        filling_ = std::make_shared<KeptElements>(dataset_.spec());
      }
    }
    if (resume_ == 0) return Status();
    const int64_t resume = std::exchange(resume_, 0);
    if (kept_ != nullptr) {
      position_ = std::min(resume, kept_->size());
      return Status();
    }
    Element element;
    while (position_ < resume) {
      const Result<bool> more = next(element);
      if (more.ok() && !*more) break;
      if (base::is_interrupt(more.status())) resume_ = resume;
      if (is_final(more.status())) return more.status();
    }
    return Status();
  }
  void finish() {
    if (filling_ == nullptr) return;
    cache_.put(context_.seed, filling_);
    filling_.reset();
  }

  Cache &cache_;
  const Dataset &dataset_;
  IteratorContext context_;
  int64_t epoch_;
  std::shared_ptr<const KeptElements> kept_;
  std::unique_ptr<Stage> input_;
  std::shared_ptr<KeptElements> filling_;
  int64_t position_ = 0;
  int64_t resume_ = 0;  // where a restored walk goes on
};

// Any element at any time: what is not kept yet is read completely first.
class CacheAccess : public RandomAccess {
 public:
  CacheAccess(Cache &cache, const Dataset &input, IteratorContext context)
      : cache_(cache), dataset_(input), context_(std::move(context)) {
    context_.epoch = 0;
  }

  int64_t size() const override { return dataset_.cardinality().value(); }
  int64_t lineage(int64_t position) const override { return kept_ == nullptr ? position : kept_->lineage(position); }
  Status gather(std::span<int64_t> positions, std::span<const RowTarget> targets) override {
    TUTTI_TRY(fill());
    return kept_->gather(positions, targets);
  }
  Status element(int64_t position, Element &element) override {
    TUTTI_TRY(fill());
    element.lineage.index = kept_->lineage(position);
    return kept_->element(position, element);
  }

 private:
  Status fill() {
    if (kept_ != nullptr) return Status();
    kept_ = cache_.find(context_.seed);
    if (kept_ != nullptr) return Status();
    if (input_ == nullptr) {
      TUTTI_ASSIGN(input_, dataset_.walk(context_));
      filling_ = std::make_shared<KeptElements>(dataset_.spec());
    }
    const Status status = filling_->add_all(*input_, context_.cancel.get());
    if (base::is_interrupt(status)) return status;
    input_.reset();
    const std::shared_ptr<KeptElements> filled = std::move(filling_);
    TUTTI_TRY(status);
    if (filled->size() != size()) {
      return base::internal_error("cache: expected ", size(), " elements, the input gave ", filled->size());
    }
    cache_.put(context_.seed, filled);
    kept_ = filled;
    return Status();
  }

  Cache &cache_;
  const Dataset &dataset_;
  IteratorContext context_;
  std::unique_ptr<Stage> input_;  // while reading, like filling_
  std::shared_ptr<KeptElements> filling_;
  std::shared_ptr<const KeptElements> kept_;
};

class CacheDataset : public Dataset {
 public:
  explicit CacheDataset(const DatasetRef &input) : Dataset("cache", input->spec(), input->cardinality(), {input}) {}

  Result<std::unique_ptr<Stage>> open(const IteratorContext &context) const override {
    return std::unique_ptr<Stage>(std::make_unique<CacheStage>(cache_, *inputs()[0], context));
  }
  Result<std::unique_ptr<RandomAccess>> random_access(const IteratorContext &context, Access access) const override {
    if (access == Access::in_order || !cardinality().is_exact()) return std::unique_ptr<RandomAccess>();
    return std::unique_ptr<RandomAccess>(std::make_unique<CacheAccess>(cache_, *inputs()[0], context));
  }

 private:
  mutable Cache cache_;
};

}  // namespace

Result<DatasetRef> apply_cache(const DatasetRef &input, const CacheParameters &, TransformArguments &) {
  if (input->cardinality().is_infinite()) {
    return base::invalid_argument("the input never ends, so a cache would never be filled; put repeat behind it");
  }
  return DatasetRef(base::make_ref<CacheDataset>(input));
}

}  // namespace tutti::impl::data
