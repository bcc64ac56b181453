// SPDX-License-Identifier: Apache-2.0
//
// What the emission of one op sees: its node, the values of its inputs, and where its results go; and what all nodes of
// a program share (EmittedRun). Each family of ops has a file with functions of this form:
//
//   Status emit_relu(NodeEmitter &node) {
//     ProgramText &text = node.text();
//     ...
//     node.set_output(0, y);
//     return Status();
//   }
//
// A new op: such a function, declared in op_emitters.h, and a line in op_list.cc. Its results have the shapes and types
// that the lowered graph says.
#ifndef TUTTI_BACKEND_PJRT_EMIT_NODE_EMITTER_H_
#define TUTTI_BACKEND_PJRT_EMIT_NODE_EMITTER_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "backend/bounded_integers.h"
#include "backend/lowered_graph.h"
#include "backend/pjrt/emit/program_text.h"
#include "base/status.h"
#include "graph/graph.h"

namespace tutti::impl::backend::pjrt {

/// What the nodes of a program share while it is written.
struct EmittedRun {
  const LoweredGraph &lowered;
  ProgramText &text;
  /// The run scalars: i64[TUTTI_RUN_SCALAR_COUNT].
  Value scalars;
  /// By ValueId of the graph; absent where not computed yet.
  std::vector<Value> values;
  /// Which iteration of the scans around runs: u64, as scan_iteration() makes it; absent outside of any.
  Value iteration;
  /// The first bad datum so far: i64[3] = 1 + number of its check or 0, position, value. Absent before any check.
  Value fault;
  std::vector<BoundedIntegers> checks;
};

class NodeEmitter {
 public:
  NodeEmitter(EmittedRun &run, const graph::Node &node) : run_(run), node_(node) {}

  ProgramText &text() { return run_.text; }
  EmittedRun &run() { return run_; }
  const graph::Node &node() const { return node_; }
  const LoweredGraph &lowered() const { return run_.lowered; }

  size_t input_count() const { return node_.inputs.size(); }
  bool has_input(size_t index) const { return index < node_.inputs.size() && node_.inputs[index] != graph::kNoValue; }
  const Value &input(size_t index) const { return run_.values[static_cast<size_t>(node_.inputs[index])]; }
  /// Of f16 and bf16 as f32.
  Value wide_input(size_t index) { return text().widen(input(index)); }

  size_t output_count() const { return node_.outputs.size(); }
  /// Type and shape that a result has to have.
  const LoweredValue &output(size_t index) const { return run_.lowered.value(node_.outputs[index]); }
  /// Converted to the result's type.
  void set_output(size_t index, const Value &value) {
    run_.values[static_cast<size_t>(node_.outputs[index])] = text().convert(value, output(index).dtype);
  }

  /// A run scalar by its TUTTI_RUN_ index: i64.
  Value run_scalar(int32_t index);
  /// Integers have to lie in [0, limit): where they do not, the run's fault says so. Which of them are good.
  Value check_bounds(size_t input, int64_t limit, std::string_view noun);

 private:
  EmittedRun &run_;
  const graph::Node &node_;
};

using OpEmitter = base::Status (*)(NodeEmitter &node);

/// Null for ops that none knows; input, state and collective ops stand for themselves (program_emitter.h).
OpEmitter find_op_emitter(std::string_view op);
/// Names of all ops that can be emitted, sorted.
std::vector<std::string_view> emitted_ops();

/// Writes a node with its op's function. Errors name the node.
base::Status emit_node(EmittedRun &run, const graph::Node &node);
/// Writes the nodes of a region whose parameters are set; the values of its results.
base::Result<std::vector<Value>> emit_region(EmittedRun &run, const graph::Region &region,
                                             const std::vector<Value> &parameters);

/// An axis that may count from the end.
inline size_t axis_of(int64_t axis, size_t rank) {
  return static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(rank) : axis);
}
/// 0, 1, ... rank - 1.
Dims all_axes(size_t rank);
/// i64[3] of zeros: nothing was wrong so far.
Value no_fault(ProgramText &text);

}  // namespace tutti::impl::backend::pjrt

#endif  // TUTTI_BACKEND_PJRT_EMIT_NODE_EMITTER_H_
