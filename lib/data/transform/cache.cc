// SPDX-License-Identifier: Apache-2.0
//
// What is kept belongs to the dataset, or to a file, so every later pass and every later iterator with the same seed
// reads it. Kept elements are always those of epoch 0, whoever fills the cache first: content is a function of
// (dataset, seed) alone.
#include "data/transform/cache.h"

#include <algorithm>
#include <utility>

#include "data/dataset/stage.h"
#include "data/dataset/walk_report.h"
#include "data/transform_parameters.h"

namespace tutti::impl::data {

using base::JsonReader;
using base::Result;
using base::Status;

namespace {

// Gives what is kept, or keeps what the input gives; the pass that reaches the end fills the cache.
class CacheStage : public Stage {
 public:
  CacheStage(const char *kind, CacheContents &contents, const Dataset &input, IteratorContext context)
      : kind_(kind), contents_(contents), dataset_(input), context_(std::move(context)), epoch_(context_.epoch) {
    context_.epoch = 0;
  }

  Result<bool> next(Element &element) override {
    TUTTI_TRY(begin());
    if (ended_) return false;
    if (kept_ == nullptr) return fill(element);
    if (position_ >= kept_->size()) return false;
    const int64_t position = position_++;
    element.lineage = {epoch_, kept_->lineage(position), kept_->file(position)};
    const Status status = kept_->element(position, element);
    if (!status.ok()) return in_element(status, element.lineage);
    return true;
  }
  Status next_rows(std::span<const RowTarget> targets, int64_t count, int64_t &done) override {
    done = 0;
    TUTTI_TRY(begin());
    if (ended_) return Status();
    if (kept_ == nullptr) return Stage::next_rows(targets, count, done);
    const int64_t first = position_;
    done = std::clamp<int64_t>(kept_->size() - first, 0, count);
    position_ += done;
    return done == 0 ? Status() : kept_->copy_rows(first, done, targets);
  }
  Lineage last_row() const override {
    if (kept_ == nullptr || position_ == 0) return Stage::last_row();
    return {epoch_, kept_->lineage(position_ - 1), kept_->file(position_ - 1)};
  }
  bool next_view(int64_t count, Element &batch) override {
    if (!has_kept()) return false;
    count = std::min(count, kept_->size() - position_);
    if (count <= 0 || !kept_->view(position_, count, batch)) return false;
    position_ += count;
    return true;
  }
  void save(State &state) const override {
    state.open(kind_);
    state.number("position", std::max(position_, resume_));
    state.close();
  }
  Status restore(const JsonReader &state) override {
    TUTTI_TRY(expect_kind(state, kind_));
    TUTTI_ASSIGN(resume_, saved_count(state, "position"));
    return Status();
  }

 private:
  // Before the first element: opens the input if nothing is kept, and goes to the restored position. What prevents that
  // is told once; then the walk is at its end.
  Status begin() {
    if (ended_) return Status();
    Status status = open();
    if (status.ok()) status = go_to_restored();
    ended_ = !status.ok() && !base::is_interrupt(status);
    return status;
  }
  // Is there a complete pass to read? What prevents looking is told by next().
  bool has_kept() {
    if (kept_ == nullptr && input_ == nullptr && position_ == 0 && !ended_)
      kept_ = contents_.find(context_.seed).value_or(nullptr);
    return kept_ != nullptr && go_to_restored().ok();
  }
  Status open() {
    if (kept_ != nullptr || input_ != nullptr || position_ != 0) return Status();
    TUTTI_ASSIGN(kept_, contents_.find(context_.seed));
    if (kept_ != nullptr) return Status();
    TUTTI_ASSIGN(std::unique_ptr<Stage> input, dataset_.walk(context_));
    TUTTI_ASSIGN(filling_, contents_.fill(context_.seed, context_.cancel));
    input_ = std::move(input);
    return Status();
  }
  // What is filled is read from its beginning, so that it becomes complete.
  Status go_to_restored() {
    if (resume_ == 0) return Status();
    if (kept_ != nullptr) {
      position_ = std::min(std::exchange(resume_, 0), kept_->size());
      return Status();
    }
    Element element;
    while (position_ < resume_ && !ended_) {
      const Result<bool> more = fill(element);
      if (is_final(more.status())) return more.status();
    }
    resume_ = 0;
    return Status();
  }
  Result<bool> fill(Element &element) {
    const Result<bool> more = input_->next(element);
    if (base::is_interrupt(more.status())) return more;
    if (more.ok() && !*more) {
      const Status kept = filling_->finish().status();
      ended_ = !base::is_interrupt(kept);
      return kept.ok() ? Result<bool>(false) : kept;
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

  const char *const kind_;
  CacheContents &contents_;
  const Dataset &dataset_;
  IteratorContext context_;
  const int64_t epoch_;
  std::shared_ptr<const ElementStore> kept_;
  std::unique_ptr<Stage> input_;
  std::unique_ptr<ElementStoreWriter> filling_;  // beside the input
  int64_t position_ = 0;
  int64_t resume_ = 0;  // where a restored walk goes on
  bool ended_ = false;
};

// Any element at any time: what is not kept yet is read completely first.
class CacheAccess : public RandomAccess {
 public:
  CacheAccess(CacheContents &contents, const Dataset &input, IteratorContext context)
      : contents_(contents), dataset_(input), context_(std::move(context)) {
    context_.epoch = 0;
  }

  int64_t size() const override { return dataset_.cardinality().value(); }
  int64_t lineage(int64_t position) const override { return kept_ == nullptr ? position : kept_->lineage(position); }
  FileName file(int64_t position) const override { return kept_ == nullptr ? nullptr : kept_->file(position); }
  Status gather(std::span<int64_t> positions, std::span<const RowTarget> targets) override {
    TUTTI_TRY(fill());
    return kept_->gather(positions, targets);
  }
  Status element(int64_t position, Element &element) override {
    TUTTI_TRY(fill());
    element.lineage.index = kept_->lineage(position);
    element.lineage.file = kept_->file(position);
    return kept_->element(position, element);
  }

 private:
  Status fill() {
    if (kept_ != nullptr) return Status();
    TUTTI_TRY(failure_);
    TUTTI_ASSIGN(kept_, contents_.find(context_.seed));
    if (kept_ != nullptr) return Status();
    if (filling_ == nullptr) {
      TUTTI_ASSIGN(input_, dataset_.walk(context_));
      TUTTI_ASSIGN(filling_, contents_.fill(context_.seed, context_.cancel));
    }
    const Status status = read_all();
    if (base::is_interrupt(status)) return status;
    input_.reset();
    filling_.reset();
    // ABORTED, so that nobody goes on reading.
    if (!status.ok()) failure_ = status.wrap(base::Code::aborted, "the cache could not be filled");
    return failure_;
  }
  Status read_all() {
    for (Element element;;) {
      const Result<bool> more = input_->next(element);
      if (more.ok() && !*more) break;
      if (is_final(more.status())) return more.status();
      ++read_;
      if (more.ok()) {
        TUTTI_TRY(filling_->add(element));
      } else {
        if (first_failure_.ok()) first_failure_ = more.status();
        filling_->add_failure(more.status());
      }
      TUTTI_TRY(base::check(context_.cancel.get()));
    }
    if (read_ != size()) return base::internal_error("expected ", size(), " elements, the input gave ", read_);
    TUTTI_ASSIGN(kept_, filling_->finish());
    if (kept_ != nullptr) return Status();
    TUTTI_TRY(first_failure_.wrap("an element failed; put ignore_errors before a cache in a file"));
    return base::unavailable("another pipeline is writing the same file");
  }

  CacheContents &contents_;
  const Dataset &dataset_;
  IteratorContext context_;
  std::unique_ptr<Stage> input_;  // while reading, like filling_
  std::unique_ptr<ElementStoreWriter> filling_;
  int64_t read_ = 0;
  Status first_failure_;
  std::shared_ptr<const ElementStore> kept_;
  Status failure_;
};

class CacheDataset : public Dataset {
 public:
  CacheDataset(const char *kind, const DatasetRef &input, std::unique_ptr<CacheContents> contents)
      : Dataset(kind, input->spec(), input->cardinality(), {input}), kind_(kind), contents_(std::move(contents)) {}

  Result<std::unique_ptr<Stage>> open(const IteratorContext &context) const override {
    return std::unique_ptr<Stage>(std::make_unique<CacheStage>(kind_, *contents_, *inputs()[0], context));
  }
  Result<std::unique_ptr<RandomAccess>> random_access(const IteratorContext &context, Access access) const override {
    if (access == Access::in_order || !cardinality().is_exact()) return std::unique_ptr<RandomAccess>();
    return named(context, *this, std::make_unique<CacheAccess>(*contents_, *inputs()[0], context));
  }

 private:
  const char *const kind_;
  const std::unique_ptr<CacheContents> contents_;
};

}  // namespace

Result<DatasetRef> make_cache(const char *kind, const DatasetRef &input, std::unique_ptr<CacheContents> contents) {
  if (input->cardinality().is_infinite()) {
    return base::invalid_argument("the input never ends, so a cache would never be filled; put repeat after the cache");
  }
  return DatasetRef(base::make_ref<CacheDataset>(kind, input, std::move(contents)));
}

Result<DatasetRef> apply_cache(const DatasetRef &input, const CacheParameters &parameters,
                               TransformArguments &arguments) {
  if (parameters.path.empty()) {
    if (!parameters.key.empty())
      return base::invalid_argument("parameter 'key' is for a cache in a file: expected the parameter 'path'");
    return make_cache("cache", input, make_memory_contents(input->spec()));
  }
  TUTTI_ASSIGN(std::unique_ptr<CacheContents> contents,
               make_file_contents(input, {parameters.path, false, parameters.key}, arguments.cancel));
  return make_cache("file_cache", input, std::move(contents));
}

}  // namespace tutti::impl::data
