// SPDX-License-Identifier: Apache-2.0
#include "data/pipeline/predicate.h"

#include <utility>
#include <vector>

#include "base/cancel.h"
#include "data/call/graph_calls.h"

namespace tutti::impl::data {

using base::Result;
using base::Status;

Result<GraphPlan> plan_predicate(graph::SealedGraph graph, const ElementSpec &input) {
  if (input.is_batched()) {
    return base::invalid_argument("elements are batches of ", input.batch_size, " rows; put it before the batch");
  }
  TUTTI_ASSIGN(GraphPlan plan, plan_graph(std::move(graph), input, {}, {}));
  const graph::ValueInfo &result = plan.graph->value(plan.graph->result(plan.results[0]));
  const size_t rank = plan.has_rows_form ? 1 : 0;
  if (plan.results.size() != 1 || result.dtype != tensor::DType::boolean || result.dims.size() != rank) {
    return base::invalid_argument("expected a graph with one boolean per element as its only result, got ",
                                  plan.results.size(), " results, '", plan.results[0], "' being ", result.dtype,
                                  graph::to_string(result.dims));
  }
  return plan;
}

Result<Predicate> Predicate::by_graph(const GraphPlan &plan, const IteratorContext &context, const char *transform) {
  if (context.graphs == nullptr) {
    return base::failed_precondition(transform, ": the iterator's context cannot run graphs");
  }
  const auto calls = std::make_shared<GraphCalls>(GraphTarget{&plan, context.graphs, nullptr, context.seed});
  FilterFunction function = [calls, results = std::vector<tensor::Tensor>()](const Element &element,
                                                                             bool &holds) mutable -> Status {
    TUTTI_TRY(calls->run(element, results));
    holds = *results[0].data_as<bool>();
    return Status();
  };
  return Predicate(std::move(function), transform, "the graph");
}

Result<bool> Predicate::holds(const Element &element) const {
  bool holds = false;
  const Status status = function_(element, holds);
  if (status.ok()) return holds;
  if (base::is_interrupt(status)) return status;
  return in_element(status.wrap(base::concat(transform_, ": ", what_, " failed for element ", element.lineage.index,
                                             " of epoch ", element.lineage.epoch)),
                    element.lineage);
}

}  // namespace tutti::impl::data
