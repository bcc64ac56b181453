// SPDX-License-Identifier: Apache-2.0
//
// take_while by graph and by function. The element for which the answer is no is consumed, and nothing behind it is
// read.
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

class TakeWhileStage : public Stage {
 public:
  TakeWhileStage(std::unique_ptr<Stage> input, Predicate goes_on, const IteratorContext &context)
      : input_(std::move(input), context), goes_on_(std::move(goes_on)) {}

  Result<bool> next(Element &element) override {
    if (ended_) return false;
    TUTTI_ASSIGN(const bool more, input_.next());
    if (!more) return false;
    TUTTI_ASSIGN(const bool goes_on, input_.call([&](const Element &source) { return goes_on_.holds(source); }));
    ended_ = !goes_on;
    input_.give_out(element);
    return goes_on;
  }
  void save(State &state) const override {
    state.open("take_while");
    state.number("ended", ended_ ? 1 : 0);
    state.key("input");
    input_.save(state);
    state.close();
  }
  Status restore(const JsonReader &state) override {
    TUTTI_TRY(expect_kind(state, "take_while"));
    TUTTI_ASSIGN(const int64_t ended, saved_count(state, "ended", 0, 1));
    ended_ = ended == 1;
    TUTTI_ASSIGN(const JsonReader input, state.get("input"));
    return input_.restore(input);
  }

 private:
  FunctionInput input_;
  const Predicate goes_on_;
  bool ended_ = false;
};

// How many come is known only for none.
Cardinality taken_of(const Dataset &input) {
  const Cardinality all = input.cardinality();
  return all == Cardinality::exactly(0) ? all : Cardinality::unknown();
}

class TakeWhileDataset : public Dataset {
 public:
  TakeWhileDataset(const DatasetRef &input, GraphPlan plan)
      : Dataset("take_while", input->spec(), taken_of(*input), {input}), plan_(std::move(plan)) {}

  Result<std::unique_ptr<Stage>> open(const IteratorContext &context) const override {
    TUTTI_ASSIGN(Predicate goes_on, Predicate::by_graph(plan_, context, "take_while"));
    TUTTI_ASSIGN(std::unique_ptr<Stage> input, inputs()[0]->walk(context));
    return std::unique_ptr<Stage>(std::make_unique<TakeWhileStage>(std::move(input), std::move(goes_on), context));
  }

 private:
  GraphPlan plan_;
};

class TakeWhileCallbackDataset : public Dataset {
 public:
  TakeWhileCallbackDataset(const DatasetRef &input, FilterFunction function)
      : Dataset("take_while_callback", input->spec(), taken_of(*input), {input}), function_(std::move(function)) {}

  Result<std::unique_ptr<Stage>> open(const IteratorContext &context) const override {
    TUTTI_ASSIGN(std::unique_ptr<Stage> input, inputs()[0]->walk(context));
    return std::unique_ptr<Stage>(std::make_unique<TakeWhileStage>(
        std::move(input), Predicate(function_, "take_while", "the function"), context));
  }

 private:
  FilterFunction function_;
};

}  // namespace

Result<DatasetRef> apply_take_while(const DatasetRef &input, const TakeWhileParameters &,
                                    TransformArguments &arguments) {
  TUTTI_ASSIGN(GraphPlan plan, plan_predicate(std::move(arguments.graph), input->spec()));
  return DatasetRef(base::make_ref<TakeWhileDataset>(input, std::move(plan)));
}

Result<DatasetRef> apply_take_while_callback(const DatasetRef &input, const TakeWhileCallbackParameters &,
                                             TransformArguments &arguments) {
  return DatasetRef(base::make_ref<TakeWhileCallbackDataset>(input, std::move(arguments.filter)));
}

}  // namespace tutti::impl::data
