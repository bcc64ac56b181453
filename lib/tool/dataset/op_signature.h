// SPDX-License-Identifier: Apache-2.0
//
// What each op of the registry takes (lib/graph/ops/ops.yaml): enough to tell what is wrong with a call before it is
// written into a graph, and of which type a number without one is. The table is generated.
#ifndef TUTTI_TOOL_DATASET_OP_SIGNATURE_H_
#define TUTTI_TOOL_DATASET_OP_SIGNATURE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tutti::tool {

/// The types of ops.yaml.
enum class AttributeKind { bool_, i64_, f64_, string_, enum_, ints_, doubles_, dims_, dtype_ };

struct OpInput {
  std::string name;
  std::string dtype;  // as in ops.yaml: "any", "float", "number", "integer", "index", "boolean", or one type
  std::string match;  // inputs with the same letter have the same type; "" = free
  bool is_optional;
  bool is_variadic;  // any number of them; the last input only
};

struct OpAttribute {
  std::string name;
  AttributeKind kind;
  bool is_required;
  std::vector<std::string> values;  // of an enumeration
  std::string default_json{};       // "" = it has none
};

struct OpSignature {
  std::string name;
  int32_t revision;
  std::vector<OpInput> inputs;
  std::vector<OpAttribute> attributes;

  size_t required_inputs() const;
  bool is_variadic() const { return !inputs.empty() && inputs.back().is_variadic; }
  /// The input that positional argument `index` is for.
  const OpInput &input(size_t index) const { return inputs[index < inputs.size() ? index : inputs.size() - 1]; }
  /// Null when there is none.
  const OpAttribute *find(const std::string &attribute) const;
  /// "resize(x, size=[...], [method=...], ...)": what need not be given stands in square brackets.
  std::string text() const;
};

/// All that a map may be made of, by name.
const std::vector<OpSignature> &op_signatures();
/// Null when there is none.
const OpSignature *find_op(const std::string &name);

/// What a value of the attribute looks like: "a list of integers", "one of bilinear, nearest, area".
std::string expected(const OpAttribute &attribute);

/// TUTTI_DTYPE_... by its name, "f32"; 0 when there is no type of this name.
int32_t find_dtype(const std::string &name);

}  // namespace tutti::tool

#endif  // TUTTI_TOOL_DATASET_OP_SIGNATURE_H_
