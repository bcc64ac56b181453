// SPDX-License-Identifier: Apache-2.0
#include "tool/training/entry_writer.h"

namespace tutti::tool {

namespace {

EntryPlace nested_place(const EntryPlace &place) {
  return {place.nested, place.nested.front(), EntryPlace::Given::nothing, place.nested};
}

tutti_value no_input(const OpInput &, size_t) { return tutti_no_value(); }

std::string with_causes(const Error &error) {
  return error.has_cause() ? error.message() + ": " + with_causes(error.cause()) : error.message();
}

}  // namespace

void EntryWriter::check(const ConfigNode &node) const {
  try {
    detail::check([&](tutti_error **err) { return tutti_graph_check(graph_, err); });
  } catch (const Error &error) {
    refuse(node, with_causes(error));
  }
}

tutti_value EntryWriter::value_of(const ConfigNode &node, const EntryPlace &place, int32_t dtype) const {
  if (is_number(node)) return tutti_graph_constant(graph_, dtype != 0 ? dtype : TUTTI_DTYPE_F32, number_of(node));
  if (node.is_map()) return write(node, nested_place(place), no_input).front();
  const std::vector<tutti_value> values = named_(node);
  if (values.size() != 1)
    refuse(node, "'" + node.text + "' stands for " + std::to_string(values.size()) + " values, expected one");
  return values.front();
}

std::vector<tutti_value> EntryWriter::written_input(const OpInput &input, const EntryPlace &place,
                                                    const ConfigNode &value) const {
  std::vector<tutti_value> values;
  if (!input.is_variadic) return {value_of(value, place)};
  const std::vector<ConfigNode> one = {value};
  for (const ConfigNode &item : value.is_list() ? value.items : one) {
    const std::vector<tutti_value> more =
        item.is_scalar() && !is_number(item) ? named_(item) : std::vector<tutti_value>{value_of(item, place)};
    values.insert(values.end(), more.begin(), more.end());
  }
  return values;
}

/// The type of the first value that is there, for numbers beside it.
int32_t EntryWriter::dtype_beside(const std::vector<std::vector<tutti_value>> &all) const {
  for (const std::vector<tutti_value> &values : all) {
    if (!values.empty() && values.front().id > 0) return tutti_graph_get_dtype(graph_, values.front());
  }
  return TUTTI_DTYPE_F32;
}

std::vector<tutti_value> EntryWriter::inputs_of(const OpSignature &signature, const EntryPlace &place,
                                                const ConfigNode &arguments, const Unwritten &unwritten) const {
  std::vector<std::vector<tutti_value>> all(signature.inputs.size());
  for (size_t i = 0; i < all.size(); ++i) {
    const OpInput &input = signature.inputs[i];
    const ConfigNode *const value = arguments.find(input.name);
    if (value == nullptr) {
      all[i] = {unwritten(input, i)};
    } else if (!is_number(*value) || input.is_variadic) {
      all[i] = written_input(input, place, *value);
    }
  }
  const int32_t dtype = dtype_beside(all);
  std::vector<tutti_value> inputs;
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].empty() && !signature.inputs[i].is_variadic)
      all[i] = {value_of(*arguments.find(signature.inputs[i].name), place, dtype)};
    inputs.insert(inputs.end(), all[i].begin(), all[i].end());
  }
  return inputs;
}

std::vector<tutti_value> EntryWriter::write(const ConfigNode &node, const EntryPlace &place, const Unwritten &unwritten,
                                            const std::vector<std::string> &beside, size_t outputs) const {
  const ConfigMember &member = entry_member(node, beside);
  const OpSignature &signature = entry_of(member, place.kinds).signature;
  const std::vector<tutti_value> inputs = inputs_of(signature, place, member.value, unwritten);
  tutti_graph_begin(graph_, signature.name.c_str(), signature.revision);
  for (const tutti_value input : inputs)
    tutti_graph_add_input(graph_, input);
  for (const OpAttribute &attribute : signature.attributes)
    set_attribute(attribute, *member.value.find(attribute.name));
  std::vector<tutti_value> values(outputs, tutti_no_value());
  values[0] = tutti_graph_end(graph_, values.data() + 1, static_cast<int64_t>(outputs) - 1);
  check(member.value);
  return values;
}

void EntryWriter::set_attribute(const OpAttribute &attribute, const ConfigNode &value) const {
  // Where the registry has a default, that is used.
  if (value.is_default && !attribute.is_required) return;
  const char *const key = attribute.name.c_str();
  switch (attribute.kind) {
    case AttributeKind::bool_:
      return tutti_graph_set_bool(graph_, key, truth_of(value));
    case AttributeKind::i64_:
      return tutti_graph_set_i64(graph_, key, integer_of(value));
    case AttributeKind::f64_:
      return tutti_graph_set_f64(graph_, key, number_of(value));
    case AttributeKind::dtype_:
      return tutti_graph_set_i64(graph_, key, find_dtype(value.text));
    case AttributeKind::string_:
    case AttributeKind::enum_:
      return tutti_graph_set_string(graph_, key, text_of(value).c_str());
    default:
      return set_list(attribute, value);
  }
}

void EntryWriter::set_list(const OpAttribute &attribute, const ConfigNode &value) const {
  const char *const key = attribute.name.c_str();
  const auto count = static_cast<int64_t>(value.items.size());
  if (attribute.kind == AttributeKind::doubles_)
    return tutti_graph_set_f64s(graph_, key, numbers_of(value).data(), count);
  std::vector<int64_t> integers;
  for (const ConfigNode &item : value.items)
    integers.push_back(item.text == "batch" ? TUTTI_DIM_BATCH : integer_of(item));
  tutti_graph_set_i64s(graph_, key, integers.data(), count);
}

}  // namespace tutti::tool
