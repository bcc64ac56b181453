// SPDX-License-Identifier: Apache-2.0
//
// What running a graph on the elements of a dataset means: which component is which input, what comes out, and whether
// many elements may go through it at once.
//
// Two forms of graph:
//   rows      every input begins with the symbol "batch": [batch, 28, 28]. Runs on any number of rows: on one single
//             example, on the rows of a batch, and, where all ops work row by row, on many examples at once.
//   elements  no input mentions it: [28, 28]. Runs on one single example at a time.
//
// Components that the graph neither takes nor gives pass through; those it takes are replaced by its results.
//
// Threads: plans are immutable.
#ifndef TUTTI_DATA_GRAPH_GRAPH_PLAN_H_
#define TUTTI_DATA_GRAPH_GRAPH_PLAN_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "data/element/element.h"
#include "data/graph/routine_plan.h"
#include "graph/graph.h"
#include "graph/op_registry.h"

namespace tutti::impl::data {

struct GraphPlan {
  graph::SealedGraph graph;
  /// The graph's inputs in node order: position of the component. Dims are as the graph declares them.
  struct Input {
    std::string name;
    int32_t component = -1;
    graph::Dims dims;
  };
  std::vector<Input> inputs;
  /// Symbols other than the rows that the spec of the elements already fixes.
  graph::SymbolBindings bindings;
  /// The graph's results, ordered by name.
  std::vector<std::string> results;

  /// What comes out, and for each component where from: a component of the input, or a result.
  ElementSpec spec;
  struct Source {
    int32_t component = -1;
    int32_t result = -1;
  };
  std::vector<Source> sources;

  /// The graph is of the form "rows", the dataset's elements are batches.
  bool has_rows_form = false;
  bool is_batched = false;
  /// No row depends on another, on its number or on anything random: any rows may share a run.
  bool is_rowwise = false;
  /// As is_rowwise, but what is random may be drawn for each row by its number: rows may be cut from a batch before the
  /// graph or behind it.
  bool may_cut_rows = false;
  bool is_random = false;
  /// How the Routine runs the graph, where no Program can: ops in routine form alone, dtype bytes; else null.
  std::shared_ptr<const RoutinePlan> routine;

  /// Position of the output component that passes component `index` through; -1 when none does.
  int32_t passed_to(int32_t index) const;
};

/// Checks the graph against the spec; errors name the input or result. `labels` and `weights` name results by role.
base::Result<GraphPlan> plan_graph(graph::SealedGraph graph, const ElementSpec &input,
                                   const std::vector<std::string> &labels, const std::vector<std::string> &weights);

/// Does what the node gives for a row depend on which rows run together? Ops that work along the batch axis itself, or
/// pick some of the rows, do, whatever they do on others.
bool depends_on_rows(const graph::Graph &graph, const graph::Node &node, const graph::OpDefinition &definition);

}  // namespace tutti::impl::data

#endif  // TUTTI_DATA_GRAPH_GRAPH_PLAN_H_
