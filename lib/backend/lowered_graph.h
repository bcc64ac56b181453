// SPDX-License-Identifier: Apache-2.0
//
// The plug-in's side of compiling, shared by the backends of this tree: a compile request decoded into a graph whose
// shapes are numbers.
//
//   TUTTI_ASSIGN(LoweredGraph lowered, LoweredGraph::decode(*request));
//   for (NodeId id : lowered.steps()) { const Node &node = lowered.graph().node(id); ... }
//   const LoweredValue &y = lowered.value(node.outputs[0]);          // dtype, dims, elements, bytes
//
// Every value has its dims, those inside regions included. Immutable after decode, but for replace_graph().
#ifndef TUTTI_BACKEND_LOWERED_GRAPH_H_
#define TUTTI_BACKEND_LOWERED_GRAPH_H_

#include <tutti/plugin/backend.h>

#include <cstdint>
#include <functional>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "backend/state_table.h"
#include "base/status.h"
#include "graph/dim.h"
#include "graph/graph.h"
#include "tensor/dtype.h"

namespace tutti::impl::backend {

/// A value with numbers for dims.
struct LoweredValue {
  tensor::DType dtype = tensor::DType::f32;
  std::vector<int64_t> dims;
  int64_t elements = 0;
  int64_t bytes = 0;  ///< row-major and dense

  /// Of a slice along the first axis.
  int64_t row_elements() const {
    return std::accumulate(dims.begin() + 1, dims.end(), int64_t{1}, std::multiplies<>());
  }
};

/// A named input or output of the graph.
struct LoweredPort {
  std::string name;
  graph::ValueId value = graph::kNoValue;
};

/// What a state_read or state_write node touches: `bytes` at `offset` of arena `arena`.
struct StateAccess {
  int32_t entry = -1;  ///< index into state().entries(), -1 for other nodes
  int32_t arena = -1;
  int64_t offset = 0;
  int64_t bytes = 0;
  bool flat = false;  ///< a slice of the storage seen as a 1-D array, whatever the layout
};

/// A graph with the same inputs, results and state, computed in a type of 16 bits where that serves.
using GraphChange = base::Result<graph::Graph> (*)(graph::Graph graph, tensor::DType half);

/// The type of 16 bits in which a request permits to compute, if it does.
std::optional<tensor::DType> permitted_half(const tutti_compile_request &request);

class LoweredGraph {
 public:
  /// Parses graph, bindings and state; evaluates all shapes; resolves state accesses. Errors name what does not fit.
  /// `narrow`, unless null, changes the graph first where it may be computed in 16 bits.
  static base::Result<LoweredGraph> decode(const tutti_compile_request &request, GraphChange narrow = nullptr);

  /// A part of a graph, compiled like the whole: with its bindings, but without state.
  static base::Result<LoweredGraph> of_part(const LoweredGraph &whole, graph::Graph part);

  /// An equal graph instead, with the same inputs, results and state. Node and value ids are then its own.
  base::Status replace_graph(graph::Graph graph);

  const graph::Graph &graph() const { return graph_; }
  const graph::SymbolBindings &bindings() const { return bindings_; }
  const StateTable &state() const { return state_; }

  /// Nodes of the top region in execution order; step i is steps()[i].
  const std::vector<graph::NodeId> &steps() const { return graph_.body().nodes; }
  const graph::Node &step(int32_t index) const { return graph_.node(steps()[static_cast<size_t>(index)]); }
  int32_t step_count() const { return static_cast<int32_t>(steps().size()); }

  const LoweredValue &value(graph::ValueId id) const { return values_[static_cast<size_t>(id)]; }
  const std::vector<LoweredValue> &values() const { return values_; }
  /// `input` nodes in node order; named results in name order.
  const std::vector<LoweredPort> &inputs() const { return inputs_; }
  const std::vector<LoweredPort> &outputs() const { return outputs_; }
  /// The access of the node at a step; entry is -1 unless it reads or writes state.
  const StateAccess &access(int32_t step) const { return accesses_[static_cast<size_t>(step)]; }
  /// An attribute's dims as numbers.
  base::Result<std::vector<int64_t>> evaluate(const graph::Dims &dims) const {
    return graph::evaluate(dims, bindings_);
  }
  /// Axis of a value that carries the batch, -1 when none does: the row axis of random ops.
  int32_t batch_axis(graph::ValueId id) const;

  int32_t level() const { return level_; }
  int32_t threads() const { return threads_; }
  /// May factors of convolutions and products be rounded to bfloat16? Only at level fast.
  bool allows_bf16() const { return allows_bf16_; }
  /// May factors of f32 be rounded to TF32? Wherever more may be.
  bool allows_tf32() const { return allows_tf32_; }
  /// Must the bits of a row be the same among any number of rows (TUTTI_COMPILE_ROW_INVARIANT)?
  bool is_row_invariant() const { return is_row_invariant_; }

 private:
  base::Status lower_values();
  base::Status check_bound_dims() const;
  base::Status resolve_accesses();

  graph::Graph graph_;
  graph::SymbolBindings bindings_;
  StateTable state_;
  std::vector<LoweredValue> values_;
  std::vector<LoweredPort> inputs_, outputs_;
  std::vector<StateAccess> accesses_;
  int32_t level_ = TUTTI_LEVEL_FAST;
  int32_t threads_ = 1;
  bool allows_bf16_ = false, allows_tf32_ = false, is_row_invariant_ = false;
};

/// "node 'dense/matmul' (matmul)": how errors name a node.
std::string describe(const graph::Node &node);

}  // namespace tutti::impl::backend

#endif  // TUTTI_BACKEND_LOWERED_GRAPH_H_
