// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "base/cancel.h"
#include "data/call/function_input.h"
#include "data/dataset/stage.h"
#include "data/pipeline/sources.h"

namespace tutti::impl::data {

using base::JsonReader;
using base::Result;
using base::Status;

namespace {

// The state is the number of the next element: the function is asked for it by number.
class GeneratorStage : public Stage {
 public:
  GeneratorStage(const GeneratorFunction &function, const ElementSpec &spec, const IteratorContext &context)
      : function_(function), spec_(spec), cancel_(context.cancel), functions_(context), epoch_(context.epoch) {}

  Result<bool> next(Element &element) override {
    if (ended_) return false;
    TUTTI_TRY(base::check(cancel_.get()));
    element.components.clear();
    const Result<bool> more = functions_.call([&] { return function_(epoch_, index_, element); });
    if (more.ok() && !*more) {
      ended_ = true;
      return false;
    }
    if (base::is_interrupt(more.status())) return more;  // the same element is asked for again
    const int64_t number = index_++;
    element.lineage = {epoch_, number};
    if (!more.ok()) {
      return in_element(
          more.status().wrap(base::concat("generator: the function failed for element ", number, " of epoch ", epoch_)),
          element.lineage);
    }
    TUTTI_TRY(in_element(check_element(element, spec_, "generator: the result of the function"), element.lineage));
    return true;
  }
  void save(State &state) const override {
    state.open("generator");
    state.number("index", index_);
    state.number("ended", ended_ ? 1 : 0);
    state.close();
  }
  Status restore(const JsonReader &state) override {
    TUTTI_TRY(expect_kind(state, "generator"));
    TUTTI_ASSIGN(index_, saved_count(state, "index"));
    TUTTI_ASSIGN(const int64_t ended, saved_count(state, "ended", 0, 1));
    ended_ = ended == 1;
    return Status();
  }

 private:
  const GeneratorFunction &function_;  // the dataset's, like spec_
  const ElementSpec &spec_;
  const base::Ref<base::CancelToken> cancel_;
  const WalkFunctions functions_;
  const int64_t epoch_;
  int64_t index_ = 0;
  bool ended_ = false;
};

class GeneratorDataset : public Dataset {
 public:
  GeneratorDataset(ElementSpec spec, GeneratorFunction function)
      : Dataset("generator", std::move(spec), Cardinality::unknown(), {}), function_(std::move(function)) {}

  Result<std::unique_ptr<Stage>> open(const IteratorContext &context) const override {
    return std::unique_ptr<Stage>(std::make_unique<GeneratorStage>(function_, spec(), context));
  }

 private:
  const GeneratorFunction function_;
};

}  // namespace

Result<DatasetRef> from_generator(ElementSpec spec, GeneratorFunction function) {
  TUTTI_TRY(check(spec));
  if (function == nullptr) return base::invalid_argument("generator: expected a function");
  return DatasetRef(base::make_ref<GeneratorDataset>(std::move(spec), std::move(function)));
}

}  // namespace tutti::impl::data
