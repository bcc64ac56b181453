// SPDX-License-Identifier: Apache-2.0
//
// Graph: the intermediate representation: nodes in execution order over one table of values, in SSA form.
//
// * A value is defined once: by one output of one node, or as a parameter of a region. It is used only by later nodes
// of
//   the same region. Regions are closed: what a region uses from outside comes in through its parameters, so the inputs
//   of a node are all it depends on.
// * A node names its op and the op's revision (graph/op_registry.h says what they mean) and may own regions.
// * Named inputs are `input` nodes of the top region; named results are listed in the graph.
// * Shapes may contain symbols; "batch" counts the rows of the batch (graph/dim.h, graph/batch.h).
//
// Build through GraphBuilder (graph/builder.h), which infers shapes and reports errors; the mutators here keep indices
// consistent and check nothing. Threads: a sealed graph, shared_ptr<const Graph>, may be read from any thread.
#ifndef TUTTI_GRAPH_GRAPH_H_
#define TUTTI_GRAPH_GRAPH_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "graph/attribute.h"
#include "graph/dim.h"
#include "tensor/dtype.h"

namespace tutti::impl::graph {

using ValueId = int32_t;  // index into Graph::values(); kNoValue = absent or invalid
using NodeId = int32_t;   // index into Graph::nodes()

inline constexpr ValueId kNoValue = -1;
inline constexpr NodeId kNoNode = -1;

struct ValueInfo {
  tensor::DType dtype{};
  Dims dims;
  NodeId producer = kNoNode;  // kNoNode for a parameter of a region
  int32_t output_index = 0;   // which output of the producer, or which parameter
  std::string name;           // may be empty
};

/// A nested block of nodes. Values live in the owning graph's one table.
struct Region {
  std::vector<ValueId> parameters;
  std::vector<ValueId> results;
  std::vector<NodeId> nodes;  // execution order
};

struct Node {
  std::string op;
  int32_t revision = 1;
  std::string scope_name;       // unique in the graph: "conv1/conv2d", "conv1/conv2d_1"
  int64_t stable_id = 0;        // survives serialisation, cloning and rewrites; random ops key on it
  std::vector<ValueId> inputs;  // kNoValue = absent optional input
  std::vector<ValueId> outputs;
  Attributes attributes;
  std::vector<Region> regions;
};

class Graph {
 public:
  // Compiled once, in graph.cc; so are a model's.
  Graph();
  Graph(const Graph &other);
  Graph(Graph &&other) noexcept;
  Graph &operator=(const Graph &other);
  Graph &operator=(Graph &&other) noexcept;
  ~Graph();

  const std::vector<ValueInfo> &values() const { return values_; }
  const std::vector<Node> &nodes() const { return nodes_; }
  const ValueInfo &value(ValueId id) const { return values_[static_cast<size_t>(id)]; }
  const Node &node(NodeId id) const { return nodes_[static_cast<size_t>(id)]; }
  bool contains(ValueId id) const { return id >= 0 && static_cast<size_t>(id) < values_.size(); }

  /// The top region. It has no parameters: inputs are `input` nodes.
  const Region &body() const { return body_; }

  /// Output of the `input` node called `name`, or kNoValue.
  ValueId input(std::string_view name) const;
  /// (name, value) of every `input` node of the top region, in node order.
  std::vector<std::pair<std::string, ValueId>> inputs() const;
  /// Named results, ordered by name.
  const std::map<std::string, ValueId, std::less<>> &results() const { return results_; }
  ValueId result(std::string_view name) const;

  /// A deep copy. Graph is copyable; the name says that it is meant.
  Graph clone() const { return *this; }

  /// For builders and rewrites: indices are kept consistent, meaning is not checked.
  ValueId add_value(ValueInfo info);
  /// Appends `node` to the node table (not to a region). Its outputs must already be in the value table; their producer
  /// is set here.
  NodeId add_node(Node node);
  ValueInfo &mutable_value(ValueId id) { return values_[static_cast<size_t>(id)]; }
  Node &mutable_node(NodeId id) { return nodes_[static_cast<size_t>(id)]; }
  Region &mutable_body() { return body_; }
  void set_result(std::string name, ValueId value) { results_[std::move(name)] = value; }
  void clear_results() { results_.clear(); }

 private:
  std::vector<ValueInfo> values_;
  std::vector<Node> nodes_;
  Region body_;
  std::map<std::string, ValueId, std::less<>> results_;
};

using SealedGraph = std::shared_ptr<const Graph>;

/// All symbols that shapes of the graph mention, sorted.
std::vector<std::string> symbols_of(const Graph &graph);
/// A readable listing, one node a line:  %4:f32[batch, 10] = matmul(%2, %3) {transpose_b: true}  # dense/matmul
std::string to_text(const Graph &graph);

/// Which nodes of the top region a set of values depends on, in execution order.
std::vector<NodeId> nodes_needed_for(const Graph &graph, const std::vector<ValueId> &values);

}  // namespace tutti::impl::graph

#endif  // TUTTI_GRAPH_GRAPH_H_
