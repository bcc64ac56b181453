// SPDX-License-Identifier: Apache-2.0
//
// Filters by graph and by function.
#include <utility>

#include "data/call/function_input.h"
#include "data/dataset/stage.h"
#include "data/pipeline/predicate.h"
#include "data/transform_parameters.h"

namespace tutti::impl::data {

using base::JsonReader;
using base::Result;
using base::Status;

namespace {

// Gives the elements for which the predicate holds.
class FilterStage : public Stage {
 public:
  FilterStage(std::unique_ptr<Stage> input, Predicate keep, const IteratorContext &context)
      : input_(std::move(input), context), keep_(std::move(keep)), cancel_(context.cancel) {}

  Result<bool> next(Element &element) override {
    for (;;) {
      TUTTI_ASSIGN(const bool more, input_.next());
      if (!more) return false;
      TUTTI_ASSIGN(const bool keep, input_.call([&](const Element &source) { return keep_.holds(source); }));
      if (keep) {
        input_.give_out(element);
        return true;
      }
      TUTTI_TRY(base::check(cancel_.get()));
    }
  }
  void save(State &state) const override {
    state.open("filter");
    state.key("input");
    input_.save(state);
    state.close();
  }
  Status restore(const JsonReader &state) override {
    TUTTI_TRY(expect_kind(state, "filter"));
    TUTTI_ASSIGN(const JsonReader input, state.get("input"));
    return input_.restore(input);
  }

 private:
  FunctionInput input_;
  const Predicate keep_;
  const base::Ref<base::CancelToken> cancel_;
};

class FilterDataset : public Dataset {
 public:
  FilterDataset(const DatasetRef &input, GraphPlan plan)
      : Dataset("filter", input->spec(), input->cardinality().of_kept(), {input}), plan_(std::move(plan)) {}

  Result<std::unique_ptr<Stage>> open(const IteratorContext &context) const override {
    TUTTI_ASSIGN(Predicate keep, Predicate::by_graph(plan_, context, "filter"));
    TUTTI_ASSIGN(std::unique_ptr<Stage> input, inputs()[0]->walk(context));
    return std::unique_ptr<Stage>(std::make_unique<FilterStage>(std::move(input), std::move(keep), context));
  }

 private:
  GraphPlan plan_;
};

class FilterCallbackDataset : public Dataset {
 public:
  FilterCallbackDataset(const DatasetRef &input, FilterFunction function)
      : Dataset("filter_callback", input->spec(), input->cardinality().of_kept(), {input}),
        function_(std::move(function)) {}

  Result<std::unique_ptr<Stage>> open(const IteratorContext &context) const override {
    TUTTI_ASSIGN(std::unique_ptr<Stage> input, inputs()[0]->walk(context));
    return std::unique_ptr<Stage>(
        std::make_unique<FilterStage>(std::move(input), Predicate(function_, "filter", "the function"), context));
  }

 private:
  FilterFunction function_;
};

}  // namespace

Result<DatasetRef> apply_filter(const DatasetRef &input, const FilterParameters &, TransformArguments &arguments) {
  TUTTI_ASSIGN(GraphPlan plan, plan_predicate(std::move(arguments.graph), input->spec()));
  return DatasetRef(base::make_ref<FilterDataset>(input, std::move(plan)));
}

Result<DatasetRef> apply_filter_callback(const DatasetRef &input, const FilterCallbackParameters &,
                                         TransformArguments &arguments) {
  return DatasetRef(base::make_ref<FilterCallbackDataset>(input, std::move(arguments.filter)));
}

}  // namespace tutti::impl::data
