// SPDX-License-Identifier: Apache-2.0
//
// The registry of ops: what each op of ops/ops.yaml takes, gives and means, with its shape rule and gradient rule. The
// table itself is generated (ops/generate.py); the rules are hand-written, one file per op or family in graph/ops/.
//
//   const OpDefinition *matmul = find_op("matmul", 1);      // null when there is no such op or revision
//
// To add an op: an entry in ops/ops.yaml, infer_<op> (and gradient_<op>) in a file of graph/ops/ listed in its
// meson.build, and kernels in the backends.
//
// Threads: the registry is constant. InferContext and GradientContext belong to one call.
#ifndef TUTTI_GRAPH_OP_REGISTRY_H_
#define TUTTI_GRAPH_OP_REGISTRY_H_

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "graph/attribute.h"
#include "graph/graph.h"

namespace tutti::impl::graph {

class InferContext;
class GradientContext;
class GraphBuilder;

/// Checks inputs and attributes, sets the outputs' dtypes and shapes.
using InferFunction = base::Status (*)(InferContext &context);
/// Sets the gradients of the inputs from those of the outputs.
using GradientFunction = base::Status (*)(GradientContext &context);

enum class DTypeClass { any, floating, number, integer, index, boolean, exactly };
enum class BatchBehaviour { rowwise, reduces, mixes, none };
enum class BatchReduction { sum, maximum, minimum };
enum class Effect { pure, state, random, collective, region };
enum class Differentiability { differentiable, none, unimplemented };

struct InputDefinition {
  std::string_view name{};
  DTypeClass dtype_class = DTypeClass::any;
  tensor::DType dtype{};  // for DTypeClass::exactly
  char match = 0;         // inputs with the same letter have the same dtype; 0 = free
  bool optional = false;
  bool variadic = false;      // last input only
  int32_t minimum_count = 0;  // of a variadic input
  std::string_view doc{};
};

struct OutputDefinition {
  std::string_view name;
  bool variadic = false;
  std::string_view doc{};
};

struct AttributeDefinition {
  std::string_view name;
  AttributeType type = AttributeType::i64;
  bool required = false;
  Attribute default_value{};                // when not required
  std::vector<std::string_view> choices{};  // of an enumeration
  int64_t length = -1;                      // exact length of a list, -1 = any
  double minimum = -std::numeric_limits<double>::infinity();
  double maximum = std::numeric_limits<double>::infinity();
  bool exclusive_minimum = false;
  bool exclusive_maximum = false;
  std::string_view doc{};
};

/// "1 (same), 2 (valid)": the choices of an enumeration with the numbers that they have in the public headers.
std::string numbered_choices(const AttributeDefinition &definition);

struct OpDefinition {
  std::string_view name;
  int32_t revision = 1;
  std::vector<InputDefinition> inputs{};
  std::vector<OutputDefinition> outputs{};
  std::vector<AttributeDefinition> attributes{};
  std::vector<std::string_view> regions{};
  BatchBehaviour batch = BatchBehaviour::rowwise;
  BatchReduction reduction = BatchReduction::sum;
  Effect effect = Effect::pure;
  Differentiability differentiability = Differentiability::differentiable;
  bool program = true;  // compiled by backends; what is not runs in maps and filters of datasets alone
  bool routine = true;  // runs per element on the host
  bool is_public = true;
  InferFunction infer = nullptr;
  GradientFunction gradient = nullptr;  // null unless differentiable
  std::string_view doc{};

  const AttributeDefinition *find_attribute(std::string_view attribute_name) const;
  bool has_variadic_input() const { return !inputs.empty() && inputs.back().variadic; }
};

/// Null when there is no such op, or not in that revision.
const OpDefinition *find_op(std::string_view name, int32_t revision);
/// The newest revision, or null.
const OpDefinition *find_op(std::string_view name);
/// All definitions, in the order of ops.yaml.
std::span<const OpDefinition> all_ops();
/// find_op, or an error that names the op and its nearest match, or the revisions there are.
base::Result<const OpDefinition *> require_op(std::string_view name, int32_t revision);

/// Checks number, presence and dtypes of the inputs and names, types and bounds of the attributes. `node` is only named
/// in messages when it has a scope name.
base::Status check_node(const OpDefinition &definition, const Graph &graph, const Node &node);
/// Presence and dtypes of given inputs; the last definition may be of several. Messages begin with "input 'x'".
base::Status check_inputs(std::span<const InputDefinition> definitions, const Graph &graph,
                          const std::vector<ValueId> &inputs);
/// The part of check_node() about attributes.
base::Status check_attributes(const OpDefinition &definition, const Node &node);
/// The attribute as set on the node, else its default; null when it is required and missing, or unknown.
const Attribute *resolve_attribute(const OpDefinition &definition, const Node &node, std::string_view name);

/// What a shape rule sees. Inputs have passed check_node().
class InferContext {
 public:
  InferContext(const OpDefinition &definition, const Graph &graph, Node &node)
      : definition_(definition), graph_(graph), node_(node) {}

  const OpDefinition &definition() const { return definition_; }
  const Graph &graph() const { return graph_; }
  const Node &node() const { return node_; }
  size_t input_count() const { return node_.inputs.size(); }
  bool has_input(size_t index) const { return index < node_.inputs.size() && node_.inputs[index] != kNoValue; }
  const ValueInfo &input(size_t index) const { return graph_.value(node_.inputs[index]); }
  const Dims &dims(size_t index) const { return input(index).dims; }
  size_t rank(size_t index) const { return dims(index).size(); }

  /// Keeps the normal form of an attribute (positive axes, a resolved −1), so that kernels need not repeat it.
  void normalize(std::string_view attribute, Attribute value) {
    node_.attributes.insert_or_assign(std::string(attribute), std::move(value));
  }

  void add_output(tensor::DType dtype, Dims dims);
  const std::vector<ValueInfo> &outputs() const { return outputs_; }

  /// INVALID_ARGUMENT "node 'dense/matmul' (matmul): <text>".
  base::Status error(std::string_view text) const;
  /// The same about one input: "...: input 'b' [8, 3] <text>".
  base::Status input_error(size_t index, std::string_view text) const;
  /// The same about two inputs: "...: input 'a' [4, 5] and input 'b' [6, 3] <text>".
  base::Status inputs_error(size_t first, size_t second, std::string_view text) const;
  /// The same about an attribute: "...: attribute 'axis' <text>".
  base::Status attribute_error(std::string_view attribute, std::string_view text) const;

  /// input(index) has this rank, else an error that says so.
  base::Status require_rank(size_t index, size_t rank) const;
  /// An axis of a rank, negative counting from the end, as a non-negative number.
  base::Result<int64_t> normalize_axis(std::string_view attribute, int64_t axis, size_t rank) const;

 private:
  std::string name_of_input(size_t index) const;

  const OpDefinition &definition_;
  const Graph &graph_;
  Node &node_;
  std::vector<ValueInfo> outputs_;
};

/// Runs check_node and the op's shape rule for a node that is not in the graph yet: may normalise attributes of `node`,
/// gives the infos of its outputs.
base::Result<std::vector<ValueInfo>> infer_outputs(const Graph &graph, Node &node);

/// What a gradient rule sees: the forward node, the gradients of its outputs, and a builder to write into. A rule sets
/// a gradient only for inputs that need one.
class GradientContext {
 public:
  GradientContext(GraphBuilder &builder, const Node &node, std::vector<ValueId> output_gradients,
                  std::vector<bool> needed);

  GraphBuilder &builder() { return builder_; }
  const Node &node() const { return node_; }
  ValueId input(size_t index) const { return node_.inputs[index]; }
  ValueId output(size_t index) const { return node_.outputs[index]; }
  const ValueInfo &info(ValueId value) const;
  const Dims &dims(ValueId value) const { return info(value).dims; }

  /// Gradient of an output; kNoValue when nothing flows into it.
  ValueId output_gradient(size_t index) const { return output_gradients_[index]; }
  /// Whether the gradient of an input is wanted.
  bool needs(size_t index) const { return needed_[index]; }
  void set(size_t index, ValueId gradient);
  const std::vector<ValueId> &input_gradients() const { return input_gradients_; }

  base::Status error(std::string_view text) const;
  base::Status unimplemented(std::string_view text) const;

 private:
  GraphBuilder &builder_;
  const Node node_;  // a copy: the builder may move the graph's nodes
  std::vector<ValueId> output_gradients_;
  std::vector<bool> needed_;
  std::vector<ValueId> input_gradients_;
};

}  // namespace tutti::impl::graph

#endif  // TUTTI_GRAPH_OP_REGISTRY_H_
