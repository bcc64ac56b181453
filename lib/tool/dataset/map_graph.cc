// SPDX-License-Identifier: Apache-2.0
#include "tool/dataset/map_graph.h"

#include <algorithm>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "tool/console/name_suggestions.h"
#include "tool/console/tensor_values.h"
#include "tool/console/usage_error.h"
#include "tool/dataset/op_signature.h"

namespace tutti::tool {

namespace {

constexpr int64_t kAutomatic = 0;

using Kind = Expression::Kind;

/// Can a value of the type be this number?
bool holds(int32_t dtype, const Expression &literal) {
  const auto within = [&](double least, double most) {
    return literal.is_integer && literal.number >= least && literal.number <= most;
  };
  switch (dtype) {
    case TUTTI_DTYPE_U8:
      return within(0, 255);
    case TUTTI_DTYPE_U16:
      return within(0, 65535);
    case TUTTI_DTYPE_U32:
      return within(0, 4294967295.0);
    case TUTTI_DTYPE_U64:
      return within(0, 9007199254740992.0);
    case TUTTI_DTYPE_I8:
      return within(-128, 127);
    case TUTTI_DTYPE_I16:
      return within(-32768, 32767);
    case TUTTI_DTYPE_I32:
      return within(-2147483648.0, 2147483647.0);
    case TUTTI_DTYPE_I64:
      return literal.is_integer;
    default:
      return is_floating(dtype);
  }
}

/// The literals in a literal: itself, or those of a list.
std::vector<const Expression *> elements_of(const Expression &literal) {
  std::vector<const Expression *> elements;
  if (literal.kind != Kind::list) elements.push_back(&literal);
  for (const Expression &element : literal.arguments)
    elements.push_back(&element);
  return elements;
}

/// Writes statements into a graph.
class MapWriter {
 public:
  MapWriter(const Graph &graph, const Dataset &dataset) : graph_(graph) {
    for (int64_t i = 0; i < dataset.component_count(); ++i)
      names_.push_back(dataset.component_name(i));
  }

  void write(const MapStatement &statement) {
    source_ = &statement.source;
    const Expression &value = statement.value;
    if (value.is_literal()) fail(value, "expected an op or a component; a constant alone is not a map");
    // A component under another name is a value of its own.
    const tutti_value written = value.kind == Kind::call ? call(value) : unary(value, "identity", name(value));
    values_[statement.target] = written;
    if (std::find(names_.begin(), names_.end(), statement.target) == names_.end()) names_.push_back(statement.target);
  }
  /// What the statements gave becomes what the map gives.
  void set_outputs() const {
    for (const std::string &name : names_) {
      const auto given = values_.find(name);
      if (given != values_.end()) graph_.output(name.c_str(), given->second);
    }
  }

 private:
  [[noreturn]] void fail(const Expression &place, const std::string &what) const { fail_at(*source_, place.at, what); }

  tutti_value name(const Expression &place) const {
    const auto given = values_.find(place.text);
    if (given != values_.end()) return given->second;
    if (std::find(names_.begin(), names_.end(), place.text) == names_.end()) {
      const std::string what = find_op(place.text) != nullptr ? "; the op needs arguments in parentheses" : "";
      fail(place, "there is no component '" + place.text + "'" + did_you_mean(place.text, names_) + what +
                      "; known: " + listed(names_));
    }
    return graph_.feature(place.text.c_str());
  }

  tutti_value call(const Expression &place) {
    const OpSignature *const op = find_op(place.text);
    if (op == nullptr) fail_unknown_op(place);
    check_arguments(place, *op);
    std::vector<tutti_value> inputs(place.arguments.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Expression &argument = place.arguments[i];
      if (!argument.is_literal()) inputs[i] = argument.kind == Kind::call ? call(argument) : name(argument);
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (place.arguments[i].is_literal()) inputs[i] = constant(place, *op, i, inputs);
    }
    tutti_graph_begin(graph_, op->name.c_str(), op->revision);
    for (const tutti_value input : inputs)
      tutti_graph_add_input(graph_, input);
    for (const Keyword &keyword : place.keywords)
      set_attribute(*op, keyword);
    return checked(place, tutti_graph_end(graph_, nullptr, 0));
  }

  /// An op of one input.
  tutti_value unary(const Expression &place, const char *op, tutti_value input, int32_t dtype = 0) const {
    tutti_graph_begin(graph_, op, find_op(op)->revision);
    tutti_graph_add_input(graph_, input);
    if (dtype != 0) tutti_graph_set_i64(graph_, "dtype", dtype);
    return checked(place, tutti_graph_end(graph_, nullptr, 0));
  }

  /// The value, if the graph is still good.
  tutti_value checked(const Expression &place, tutti_value value) const {
    try {
      detail::check([&](tutti_error **err) { return tutti_graph_check(graph_, err); });
    } catch (const Error &error) {
      fail(place, error.what());
    }
    return value;
  }

  [[noreturn]] void fail_unknown_op(const Expression &place) const {
    std::vector<std::string> ops;
    for (const OpSignature &signature : op_signatures())
      ops.push_back(signature.name);
    const std::string near = did_you_mean(place.text, ops);
    fail(place, "there is no op '" + place.text + "'" + (near.empty() ? "; known: " + listed(ops) : near));
  }

  void check_arguments(const Expression &place, const OpSignature &op) const {
    const size_t count = place.arguments.size();
    if (count < op.required_inputs() || (count > op.inputs.size() && !op.is_variadic())) {
      const size_t most = op.inputs.size(), least = op.required_inputs();
      const std::string range = op.is_variadic() ? std::to_string(least) + " or more"
                                : least == most  ? std::to_string(most)
                                                 : std::to_string(least) + " to " + std::to_string(most);
      fail(place, op.name + " has " + range + " inputs, got " + std::to_string(count) + ": " + op.text());
    }
    std::vector<std::string> attributes, given;
    for (const OpAttribute &attribute : op.attributes)
      attributes.push_back(attribute.name);
    for (const Keyword &keyword : place.keywords) {
      if (op.find(keyword.name) == nullptr) {
        fail_at(*source_, keyword.at,
                op.name + " has no attribute '" + keyword.name + "'" + did_you_mean(keyword.name, attributes) +
                    "; it is " + op.text());
      }
      if (std::find(given.begin(), given.end(), keyword.name) != given.end())
        fail_at(*source_, keyword.at, "'" + keyword.name + "' is given twice");
      given.push_back(keyword.name);
    }
    for (const OpAttribute &attribute : op.attributes) {
      if (attribute.is_required && std::find(given.begin(), given.end(), attribute.name) == given.end())
        fail(place, op.name + " needs the attribute '" + attribute.name + "': " + op.text());
    }
  }

  // ---- constants ----

  /// The type of a constant: what its input takes, or what the inputs have that must be like it.
  int32_t type_of(const Expression &place, const OpSignature &op, size_t index,
                  const std::vector<tutti_value> &inputs) {
    const OpInput &input = op.input(index);
    const std::vector<const Expression *> elements = elements_of(place.arguments[index]);
    for (size_t i = 0; !input.match.empty() && i < inputs.size(); ++i) {
      if (op.input(i).match == input.match && !place.arguments[i].is_literal())
        return tutti_graph_get_dtype(graph_, inputs[i]);
    }
    if (const int32_t one = find_dtype(input.dtype); one != 0) return one;
    if (input.dtype == "boolean") return TUTTI_DTYPE_BOOL;
    if (input.dtype == "integer" || input.dtype == "index") return TUTTI_DTYPE_I64;
    if (input.dtype == "any" && elements[0]->kind == Kind::text) return TUTTI_DTYPE_BYTES;
    if (input.dtype == "any" && elements[0]->kind == Kind::boolean) return TUTTI_DTYPE_BOOL;
    // There is no input to be like: integers, unless one of the constants is not.
    bool are_integers = input.dtype != "float";
    for (const Expression &argument : place.arguments) {
      for (const Expression *element : elements_of(argument))
        are_integers = are_integers && (element->is_integer || !element->is_literal());
    }
    return are_integers ? TUTTI_DTYPE_I64 : TUTTI_DTYPE_F32;
  }

  tutti_value constant(const Expression &place, const OpSignature &op, size_t index,
                       const std::vector<tutti_value> &inputs) {
    const Expression &literal = place.arguments[index];
    const std::vector<const Expression *> elements = elements_of(literal);
    if (elements.empty()) fail(literal, "an empty list is not a constant");
    const int32_t dtype = type_of(place, op, index, inputs);
    for (const Expression *element : elements) {
      const bool fits = dtype == TUTTI_DTYPE_BYTES  ? element->kind == Kind::text
                        : dtype == TUTTI_DTYPE_BOOL ? element->kind == Kind::boolean
                                                    : element->kind == Kind::number && holds(dtype, *element);
      if (!fits) {
        fail(*element, "expected a constant of type " + std::string(dtype_name(dtype)) + " for '" +
                           op.input(index).name + "' of " + op.name + "; use cast for values of other types");
      }
    }
    return dtype == TUTTI_DTYPE_BYTES ? texts(literal, elements) : numbers(literal, elements, dtype);
  }

  tutti_value texts(const Expression &literal, const std::vector<const Expression *> &elements) {
    std::vector<std::string_view> views;
    for (const Expression *element : elements)
      views.push_back(element->text);
    const Tensor tensor = make_texts(dims_of(literal), views);
    return checked(literal, tutti_graph_constant_tensor(graph_, tensor));
  }

  tutti_value numbers(const Expression &literal, const std::vector<const Expression *> &elements, int32_t dtype) {
    std::vector<double> values;
    for (const Expression *element : elements)
      values.push_back(element->kind == Kind::boolean ? element->is_true : element->number);
    if (literal.kind != Kind::list) return checked(literal, tutti_graph_constant(graph_, dtype, values[0]));
    const Tensor tensor(TUTTI_DTYPE_F64, dims_of(literal), values.data(),
                        static_cast<int64_t>(values.size() * sizeof(double)));
    const tutti_value wide = checked(literal, tutti_graph_constant_tensor(graph_, tensor));
    return dtype == TUTTI_DTYPE_F64 ? wide : unary(literal, "cast", wide, dtype);
  }

  static std::vector<int64_t> dims_of(const Expression &literal) {
    if (literal.kind != Kind::list) return {};
    return {static_cast<int64_t>(literal.arguments.size())};
  }

  // ---- attributes ----

  void set_attribute(const OpSignature &op, const Keyword &keyword) const {
    const OpAttribute &attribute = *op.find(keyword.name);
    const Expression &value = keyword.value;
    const bool is_list = attribute.kind == AttributeKind::ints_ || attribute.kind == AttributeKind::dims_ ||
                         attribute.kind == AttributeKind::doubles_;
    const bool is_set = is_list ? set_list(attribute, value) : set_one(attribute, value);
    if (!is_set) {
      fail(value, "the attribute '" + attribute.name + "' of " + op.name + " is " + expected(attribute));
    }
  }

  /// False when the value is of another type.
  bool set_one(const OpAttribute &attribute, const Expression &value) const {
    const char *const key = attribute.name.c_str();
    // Names of types and choices may stand without quotes.
    const bool is_word = value.kind == Kind::text || value.kind == Kind::name;
    switch (attribute.kind) {
      case AttributeKind::bool_:
        return value.kind == Kind::boolean && (tutti_graph_set_bool(graph_, key, value.is_true), true);
      case AttributeKind::i64_:
        if (value.kind != Kind::number || !value.is_integer) return false;
        return tutti_graph_set_i64(graph_, key, static_cast<int64_t>(value.number)), true;
      case AttributeKind::f64_:
        return value.kind == Kind::number && (tutti_graph_set_f64(graph_, key, value.number), true);
      case AttributeKind::string_:
        return value.kind == Kind::text && (tutti_graph_set_string(graph_, key, value.text.c_str()), true);
      case AttributeKind::dtype_:
        if (!is_word || find_dtype(value.text) == 0) return false;
        return tutti_graph_set_i64(graph_, key, find_dtype(value.text)), true;
      default:
        if (!is_word || !contains(attribute.values, value.text)) return false;
        return tutti_graph_set_string(graph_, key, value.text.c_str()), true;
    }
  }

  static bool contains(const std::vector<std::string> &values, const std::string &value) {
    return std::find(values.begin(), values.end(), value) != values.end();
  }

  bool set_list(const OpAttribute &attribute, const Expression &value) const {
    if (value.kind != Kind::list) return false;
    std::vector<int64_t> integers;
    std::vector<double> doubles;
    for (const Expression &element : value.arguments) {
      if (attribute.kind == AttributeKind::dims_ && element.kind == Kind::name && element.text == "batch") {
        integers.push_back(TUTTI_DIM_BATCH);
        continue;
      }
      if (element.kind != Kind::number) return false;
      if (attribute.kind != AttributeKind::doubles_ && !element.is_integer) return false;
      doubles.push_back(element.number);
      if (element.is_integer) integers.push_back(static_cast<int64_t>(element.number));
    }
    const auto count = static_cast<int64_t>(value.arguments.size());
    if (attribute.kind == AttributeKind::doubles_) {
      tutti_graph_set_f64s(graph_, attribute.name.c_str(), doubles.data(), count);
    } else {
      tutti_graph_set_i64s(graph_, attribute.name.c_str(), integers.data(), count);
    }
    return true;
  }

  const Graph graph_;
  const std::string *source_ = nullptr;
  std::vector<std::string> names_;             // the components that there are by now
  std::map<std::string, tutti_value> values_;  // those that a statement gave
};

}  // namespace

Dataset apply_maps(const Dataset &dataset, const std::vector<MapStatement> &statements, const Context &context) {
  if (statements.empty()) return dataset;
  std::optional<UsageError> wrong;
  Pipeline pipeline(context);
  pipeline.dataset(dataset);
  const auto build = [&](const Graph &graph) {
    try {
      MapWriter writer(graph, dataset);
      for (const MapStatement &statement : statements)
        writer.write(statement);
      writer.set_outputs();
    } catch (const UsageError &error) {
      // It cannot pass the library, which carries errors of its own.
      wrong = error;
      throw std::runtime_error(error.text);
    }
  };
  pipeline.map(build, kAutomatic);
  if (wrong) throw UsageError(*wrong);
  return pipeline.build();
}

}  // namespace tutti::tool
