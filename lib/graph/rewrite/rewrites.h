// SPDX-License-Identifier: Apache-2.0
//
// Device-independent rewrites. Each takes a graph and gives an equal one: same inputs, same named results, same state
// entries in the same order, scope names and stable ids kept; value and node ids change.
//
//   Graph smaller = optimize(graph, {.evaluator = &evaluator});
//
// Order matters in one case: a `call` is computed again by its gradient to save memory. Inlining it and then merging
// equal nodes would undo that, so optimize() merges before it inlines.
//
// Threads: pure functions; the evaluator is called on the caller's thread.
#ifndef TUTTI_GRAPH_REWRITE_REWRITES_H_
#define TUTTI_GRAPH_REWRITE_REWRITES_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "graph/graph.h"
#include "tensor/tensor.h"

namespace tutti::impl::graph::rewrite {

/// Computes one node on constants. Given by the floor above (the reference backend is one).
class Evaluator {
 public:
  virtual ~Evaluator() = default;
  /// The outputs of a pure node with constant shapes; an error leaves the node as it is.
  virtual base::Result<std::vector<tensor::Tensor>> evaluate(const Graph &graph, const Node &node,
                                                             std::span<const tensor::Tensor> inputs) = 0;
};

/// Drops nodes that no result, state write or collective depends on. Inputs stay.
Graph eliminate_dead_code(Graph graph);

/// Keeps the first of pure nodes with equal op, inputs and attributes (of random ones also equal key) in a region.
Graph merge_equal_nodes(Graph graph);

/// Drops what changes nothing: identity, stop_gradient (after differentiation), reshapes, broadcasts, transposes and
/// casts that keep their input, a factor or divisor 1; joins chains of reshapes, transposes and negations. Gradients of
/// slices that make up a whole are joined side by side, not added up.
Graph simplify(Graph graph);

/// Replaces pure nodes whose inputs are constants, as far as their outputs have at most `limit_bytes`.
Graph fold_constants(Graph graph, Evaluator &evaluator, int64_t limit_bytes = 64 * 1024);

/// Replaces nodes of these ops by the nodes of their (first) region: call, fusion, custom_gradient.
Graph inline_regions(Graph graph, const std::vector<std::string> &ops = {"call", "fusion", "custom_gradient"});

/// For inference: a batch_norm_inference behind a conv2d or matmul (with or without a bias) whose result nothing else
/// uses becomes a scaled kernel and a bias, where kernel, bias, scale, offset and statistics follow from state alone.
/// Rounds differently.
base::Result<Graph> fold_batch_norm(const Graph &graph);

/// A forward graph whose values that follow from state alone are computed beforehand, once per version of that state.
struct PrecomputedGraph {
  struct Entry {
    std::string name;  ///< "derived/<number>"
    tensor::DType dtype{};
    std::vector<int64_t> dims;
  };
  std::vector<Entry> entries;  ///< none: `prepare` is empty and `forward` the given graph
  Graph prepare;               ///< reads state, writes the entries; no inputs, no results
  Graph forward;               ///< reads the entries
};

/// Moves pure nodes that depend on nothing but state entries named "weight/..." (and at least one of them) out of the
/// way of every call. Mere views of an entry stay.
base::Result<PrecomputedGraph> precompute_state(const Graph &graph);

/// Two programs that run one after the other as one. What `first` writes to state is handed over to `second` as a
/// value; entries whose names begin with one of `passing` are not stored any more. Nodes of `second` come as early as
/// they can: behind what they need, and behind the readers of the state that they overwrite; so a gradient lives no
/// longer than until its variable is updated. INVALID_ARGUMENT when `first` writes an entry twice, or `second` reads it
/// as another shape.
base::Result<Graph> join_programs(const Graph &first, const Graph &second, std::span<const std::string_view> passing);

/// For backends that multiply `half` (bf16 or f16) faster than f32: matrix products and convolutions of f32 read and
/// give that, and what lies between them is stored in it where neither what makes it nor what reads it needs more
/// digits, nor, of f16, a larger range than up to 65504; precision_rules.h says which op takes part how. Elementwise
/// nodes still compute in f32: they read casts of what is stored and are followed by a cast, both of which a backend
/// is expected to compute in passing. Inputs, results, state, statistics, losses and all they are summed up from keep
/// their dtype, and so do the insides of regions. Each value is cast once.
base::Result<Graph> mix_precision(const Graph &graph, tensor::DType half);

struct OptimizeOptions {
  Evaluator *evaluator = nullptr;  // null: constants are not folded
  bool inline_regions = false;
};

/// What changes no results of the above, in the order that serves best.
Graph optimize(Graph graph, const OptimizeOptions &options = {});

}  // namespace tutti::impl::graph::rewrite

#endif  // TUTTI_GRAPH_REWRITE_REWRITES_H_
