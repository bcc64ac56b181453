// SPDX-License-Identifier: Apache-2.0
//
// Filters by graph and by function.
#include <utility>

#include "data/graph_calls.h"
#include "data/graph_plan.h"
#include "data/transform_parameters.h"

namespace tutti::impl::data {

using base::JsonReader;
using base::Result;
using base::Status;

namespace {

// Gives the elements that `keep` keeps. `what` it is called in errors: "the graph".
class FilterStage : public Stage {
 public:
  FilterStage(std::unique_ptr<Stage> input, FilterFunction keep, const char *what, base::Ref<base::CancelToken> cancel)
      : input_(std::move(input)), keep_(std::move(keep)), what_(what), cancel_(std::move(cancel)) {}

  Result<bool> next(Element &element) override {
    for (;;) {
      TUTTI_ASSIGN(const bool more, input_->next(element));
      if (!more) return false;
      bool keep = false;
      const Status status = keep_(element, keep);
      if (!status.ok()) {
        return status.wrap(base::concat("filter: ", what_, " failed for element ", element.lineage.index, " of epoch ",
                                        element.lineage.epoch));
      }
      if (keep) return true;
      TUTTI_TRY(base::check(cancel_.get()));
    }
  }
  void save(State &state) const override {
    state.open("filter");
    state.key("input");
    input_->save(state);
    state.close();
  }
  Status restore(const JsonReader &state) override {
    TUTTI_TRY(expect_kind(state, "filter"));
    TUTTI_ASSIGN(const JsonReader input, state.get("input"));
    return input_->restore(input);
  }

 private:
  std::unique_ptr<Stage> input_;
  const FilterFunction keep_;
  const char *const what_;
  const base::Ref<base::CancelToken> cancel_;
};

// How many are kept is known only for none.
Cardinality kept_of(const Dataset &input) {
  const Cardinality all = input.cardinality();
  return all == Cardinality::exactly(0) ? all : Cardinality::unknown();
}

class FilterDataset : public Dataset {
 public:
  FilterDataset(const DatasetRef &input, GraphPlan plan)
      : Dataset("filter", input->spec(), kept_of(*input), {input}), plan_(std::move(plan)) {}

  Result<std::unique_ptr<Stage>> open(const IteratorContext &context) const override {
    if (context.graphs == nullptr) {
      return base::failed_precondition("filter: this iterator's context has nothing that runs graphs");
    }
    TUTTI_ASSIGN(std::unique_ptr<Stage> input, inputs()[0]->open(context));
    const auto calls = std::make_shared<GraphCalls>(GraphTarget{&plan_, context.graphs, nullptr, context.seed});
    FilterFunction keep = [calls, results = std::vector<tensor::Tensor>()](const Element &element,
                                                                           bool &kept) mutable -> Status {
      TUTTI_TRY(calls->run(element, results));
      kept = *results[0].data_as<bool>();
      return Status();
    };
    return std::unique_ptr<Stage>(
        std::make_unique<FilterStage>(std::move(input), std::move(keep), "the graph", context.cancel));
  }

 private:
  GraphPlan plan_;
};

class FilterCallbackDataset : public Dataset {
 public:
  FilterCallbackDataset(const DatasetRef &input, FilterFunction function)
      : Dataset("filter_callback", input->spec(), kept_of(*input), {input}), function_(std::move(function)) {}

  Result<std::unique_ptr<Stage>> open(const IteratorContext &context) const override {
    TUTTI_ASSIGN(std::unique_ptr<Stage> input, inputs()[0]->open(context));
    return std::unique_ptr<Stage>(
        std::make_unique<FilterStage>(std::move(input), function_, "the function", context.cancel));
  }

 private:
  FilterFunction function_;
};

}  // namespace

Result<DatasetRef> apply_filter(const DatasetRef &input, const FilterParameters &, TransformArguments &arguments) {
  if (input->spec().is_batched()) {
    return base::invalid_argument("elements are batches of ", input->spec().batch_size,
                                  " rows; filter them before the batch");
  }
  TUTTI_ASSIGN(GraphPlan plan, plan_graph(std::move(arguments.graph), input->spec(), {}, {}));
  const graph::ValueInfo &result = plan.graph->value(plan.graph->result(plan.results[0]));
  const size_t rank = plan.has_rows_form ? 1 : 0;
  if (plan.results.size() != 1 || result.dtype != tensor::DType::boolean || result.dims.size() != rank) {
    return base::invalid_argument("expected a graph with one boolean per element as its only result, got ",
                                  plan.results.size(), " results, '", plan.results[0], "' being ", result.dtype,
                                  graph::to_string(result.dims));
  }
  return DatasetRef(base::make_ref<FilterDataset>(input, std::move(plan)));
}

Result<DatasetRef> apply_filter_callback(const DatasetRef &input, const FilterCallbackParameters &,
                                         TransformArguments &arguments) {
  return DatasetRef(base::make_ref<FilterCallbackDataset>(input, std::move(arguments.filter)));
}

}  // namespace tutti::impl::data
