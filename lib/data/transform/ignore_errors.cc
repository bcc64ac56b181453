// SPDX-License-Identifier: Apache-2.0
//
// Leaves out elements that fail, as long as there are not too many of them. The errors are counted, and the first of
// them are in the walk's report (walk_report.h).
#include <utility>

#include "data/stage.h"
#include "data/transform_parameters.h"
#include "data/walk_report.h"

namespace tutti::impl::data {

using base::JsonReader;
using base::Result;
using base::Status;

namespace {

class IgnoreErrorsStage : public Stage {
 public:
  IgnoreErrorsStage(std::unique_ptr<Stage> input, int64_t budget, StageCounters *counters,
                    base::Ref<base::CancelToken> cancel)
      : input_(std::move(input)), budget_(budget), counters_(counters), cancel_(std::move(cancel)) {}

  Result<bool> next(Element &element) override {
    for (;;) {
      TUTTI_TRY(overdrawn_);
      const Result<bool> more = input_->next(element);
      if (more.ok() || is_final(more.status())) return more;
      ++ignored_;
      if (counters_ != nullptr) counters_->add_ignored(more.status());
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
  StageCounters *const counters_;  // null when nobody counts
  const base::Ref<base::CancelToken> cancel_;
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
        std::make_unique<IgnoreErrorsStage>(std::move(input), budget_, counters, context.cancel));
  }

 private:
  // How many fail is not known before.
  static Cardinality kept_of(const Dataset &input) {
    const Cardinality all = input.cardinality();
    return all.is_exact() && all.value() > 0 ? Cardinality::unknown() : all;
  }

  const int64_t budget_;
};

}  // namespace

Result<DatasetRef> apply_ignore_errors(const DatasetRef &input, const IgnoreErrorsParameters &parameters,
                                       TransformArguments &) {
  return DatasetRef(base::make_ref<IgnoreErrorsDataset>(input, parameters.budget));
}

}  // namespace tutti::impl::data
