// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "data/graph_calls.h"
#include "data/graph_plan.h"
#include "data/transform_parameters.h"

namespace tutti::impl::data {

using base::JsonReader;
using base::Result;
using base::Status;

namespace {

class FilterStage : public Stage {
 public:
  FilterStage(std::unique_ptr<Stage> input, const GraphTarget &target) : input_(std::move(input)), calls_(target) {}

  Result<bool> next(Element &element) override {
    for (;;) {
      TUTTI_ASSIGN(const bool more, input_->next(element));
      if (!more) return false;
      const Status status = calls_.run(element, results_);
      if (!status.ok()) {
        return status.wrap(base::concat("filter: the graph failed for element ", element.lineage.index, " of epoch ",
                                        element.lineage.epoch));
      }
      if (*results_[0].data_as<bool>()) return true;
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
  GraphCalls calls_;
  std::vector<tensor::Tensor> results_;
};

class FilterDataset : public Dataset {
 public:
  FilterDataset(const DatasetRef &input, Cardinality cardinality, GraphPlan plan)
      : Dataset("filter", input->spec(), cardinality, {input}), plan_(std::move(plan)) {}

  Result<std::unique_ptr<Stage>> open(const IteratorContext &context) const override {
    if (context.graphs == nullptr) {
      return base::failed_precondition("filter: this iterator's context has nothing that runs graphs");
    }
    TUTTI_ASSIGN(std::unique_ptr<Stage> input, inputs()[0]->open(context));
    return std::unique_ptr<Stage>(
        std::make_unique<FilterStage>(std::move(input), GraphTarget{&plan_, context.graphs, nullptr, context.seed}));
  }

 private:
  GraphPlan plan_;
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
  const Cardinality all = input->cardinality();
  const Cardinality kept = all == Cardinality::exactly(0) ? all : Cardinality::unknown();
  return DatasetRef(base::make_ref<FilterDataset>(input, kept, std::move(plan)));
}

}  // namespace tutti::impl::data
