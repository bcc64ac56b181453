// SPDX-License-Identifier: Apache-2.0
//
// Questions about an element, answered by a graph or by a function of the user: filter and take_while.
//
// Threads: a Predicate belongs to one thread at a time, the plan behind it is shared.
#ifndef TUTTI_DATA_PIPELINE_PREDICATE_H_
#define TUTTI_DATA_PIPELINE_PREDICATE_H_

#include "base/status.h"
#include "data/dataset/dataset.h"
#include "data/graph/graph_plan.h"
#include "data/pipeline/pipeline.h"

namespace tutti::impl::data {

/// The plan of a graph with one boolean per element as its only result; INVALID_ARGUMENT for any other. Elements must
/// be single examples.
base::Result<GraphPlan> plan_predicate(graph::SealedGraph graph, const ElementSpec &input);

/// What a walk asks about its elements, and the names for its errors: "filter", "the graph".
class Predicate {
 public:
  Predicate(FilterFunction function, const char *transform, const char *what)
      : function_(std::move(function)), transform_(transform), what_(what) {}
  /// Runs a plan's graph; FAILED_PRECONDITION when the context has nothing that runs graphs. The plan must outlive it.
  static base::Result<Predicate> by_graph(const GraphPlan &plan, const IteratorContext &context, const char *transform);

  /// An error names the element.
  base::Result<bool> holds(const Element &element) const;

 private:
  FilterFunction function_;
  const char *transform_;
  const char *what_;
};

}  // namespace tutti::impl::data

#endif  // TUTTI_DATA_PIPELINE_PREDICATE_H_
