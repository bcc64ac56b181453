// SPDX-License-Identifier: Apache-2.0
//
// Leaves out elements that fail, as long as there are not too many of them. The errors are counted; the first of them
// are in the walk's report (walk_report.h) and in the log, which then tells their number now and then.
#include <atomic>
#include <utility>

#include "data/dataset/stage.h"
#include "data/dataset/walk_report.h"
#include "data/transform_parameters.h"

namespace tutti::impl::data {

using base::JsonReader;
using base::Result;
using base::Status;

namespace {

// What the log says of all walks over one dataset.
class LeftOutLog {
 public:
  void add(const base::Logger *logger, const Status &status) {
    const int64_t count = count_.fetch_add(1, std::memory_order_relaxed) + 1;
    if (logger == nullptr) return;
    if (count <= kWholeErrors) {
      logger->warning("ignore_errors: left out: ", status.to_string());
    } else if (is_told(count)) {
      logger->warning("ignore_errors: ", count, " elements were left out so far; the last: ", status.to_string());
    }
  }

 private:
  static constexpr int64_t kWholeErrors = 5;
  // 10, 100, 1000, ...
  static bool is_told(int64_t count) {
    while (count % 10 == 0)
      count /= 10;
    return count == 1;
  }

  std::atomic<int64_t> count_{0};
};

class IgnoreErrorsStage : public Stage {
 public:
  IgnoreErrorsStage(std::unique_ptr<Stage> input, int64_t budget, LeftOutLog &log, StageCounters *counters,
                    const IteratorContext &context)
      : input_(std::move(input)),
        budget_(budget),
        log_(log),
        counters_(counters),
        cancel_(context.cancel),
        logger_(context.logger) {}

  Result<bool> next(Element &element) override {
    for (;;) {
      TUTTI_TRY(overdrawn_);
      const Result<bool> more = input_->next(element);
      if (more.ok() || is_final(more.status())) return more;
      ++ignored_;
      if (counters_ != nullptr) counters_->add_ignored(more.status());
      log_.add(logger_.get(), more.status());
      if (ignored_ > budget_) overdrawn_ = overdrawn(more.status());
      TUTTI_TRY(base::check(cancel_.get()));
    }
  }
  void save(State &state) const override {
    state.open("ignore_errors");
    state.number("ignored", ignored_);
    state.key("input");
    input_->save(state);
    state.close();
  }
  Status restore(const JsonReader &state) override {
    TUTTI_TRY(expect_kind(state, "ignore_errors"));
    TUTTI_ASSIGN(ignored_, saved_count(state, "ignored"));
    if (ignored_ > budget_) overdrawn_ = overdrawn(base::aborted("that was before this walk was resumed"));
    TUTTI_ASSIGN(const JsonReader input, state.get("input"));
    return input_->restore(input);
  }

 private:
  // ABORTED: every further call says the same.
  Status overdrawn(const Status &last) const {
    return base::aborted("ignore_errors: ", ignored_, " elements failed; expected at most ", budget_,
                         "; the last error: ", last.to_string());
  }

  std::unique_ptr<Stage> input_;
  const int64_t budget_;
  LeftOutLog &log_;                // the dataset's
  StageCounters *const counters_;  // null when nobody counts
  const base::Ref<base::CancelToken> cancel_;
  const base::Ref<base::Logger> logger_;  // null = none
  int64_t ignored_ = 0;
  Status overdrawn_;
};

class IgnoreErrorsDataset : public Dataset {
 public:
  IgnoreErrorsDataset(const DatasetRef &input, int64_t budget)
      : Dataset("ignore_errors", input->spec(), kept_of(*input), {input}), budget_(budget) {}

  Result<std::unique_ptr<Stage>> open(const IteratorContext &context) const override {
    TUTTI_ASSIGN(std::unique_ptr<Stage> input, inputs()[0]->walk(context));
    StageCounters *const counters = counters_in(context, *this);
    return std::unique_ptr<Stage>(
        std::make_unique<IgnoreErrorsStage>(std::move(input), budget_, log_, counters, context));
  }

 private:
  // How many fail is not known before.
  static Cardinality kept_of(const Dataset &input) {
    const Cardinality all = input.cardinality();
    return all.is_exact() && all.value() > 0 ? Cardinality::unknown() : all;
  }

  const int64_t budget_;
  mutable LeftOutLog log_;
};

}  // namespace

Result<DatasetRef> apply_ignore_errors(const DatasetRef &input, const IgnoreErrorsParameters &parameters,
                                       TransformArguments &) {
  return DatasetRef(base::make_ref<IgnoreErrorsDataset>(input, parameters.budget));
}

}  // namespace tutti::impl::data
