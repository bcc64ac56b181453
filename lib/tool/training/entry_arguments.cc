// SPDX-License-Identifier: Apache-2.0
#include "tool/training/entry_arguments.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "tool/config/config_text.h"
#include "tool/console/name_suggestions.h"
#include "tool/console/usage_error.h"

namespace tutti::tool {

namespace {

std::string expected_value(const OpAttribute &attribute) {
  return attribute.kind == AttributeKind::string_ ? "a text" : expected(attribute);
}

bool is_list_of(const ConfigNode &node, bool (*is_one)(const ConfigNode &)) {
  return node.is_list() && std::all_of(node.items.begin(), node.items.end(), is_one);
}

bool is_dimension(const ConfigNode &node) { return is_integer(node) || (node.is_scalar() && node.text == "batch"); }

bool has_type(const OpAttribute &attribute, const ConfigNode &value) {
  switch (attribute.kind) {
    case AttributeKind::bool_:
      return is_truth(value);
    case AttributeKind::i64_:
      return is_integer(value);
    case AttributeKind::f64_:
      return is_number(value);
    case AttributeKind::string_:
      return value.is_scalar();
    case AttributeKind::enum_:
      return value.is_scalar() && is_among(value.text, attribute.values);
    case AttributeKind::ints_:
      return is_list_of(value, is_integer);
    case AttributeKind::doubles_:
      return is_list_of(value, is_number);
    case AttributeKind::dims_:
      return is_list_of(value, is_dimension);
    case AttributeKind::dtype_:
      return value.is_scalar() && find_dtype(value.text) != 0;
  }
  return false;
}

/// The first item that a list of the attribute cannot have; null = there is none, or the attribute is no list.
const ConfigNode *wrong_item(const OpAttribute &attribute, const ConfigNode &list) {
  for (const ConfigNode &item : list.items) {
    const bool is_right = attribute.kind == AttributeKind::doubles_ ? is_number(item)
                          : attribute.kind == AttributeKind::dims_  ? is_dimension(item)
                          : attribute.kind == AttributeKind::ints_  ? is_integer(item)
                                                                    : true;
    if (!is_right) return &item;
  }
  return nullptr;
}

void check_attribute(const OpAttribute &attribute, const ConfigNode &value) {
  if (has_type(attribute, value)) return;
  if (const ConfigNode *const item = wrong_item(attribute, value)) {
    refuse(*item, std::string("expected ") + (attribute.kind == AttributeKind::doubles_ ? "a number" : "an integer") +
                      (attribute.kind == AttributeKind::dims_ ? " or the word batch" : "") + ", got " +
                      described(*item));
  }
  const bool is_choice = attribute.kind == AttributeKind::enum_ && value.is_scalar();
  refuse(value, "expected " + expected_value(attribute) + ", got " + described(value) +
                    (is_choice ? did_you_mean(value.text, attribute.values) : ""));
}

/// A name alone is an entry without arguments.
void make_map(ConfigNode &node) {
  if (!node.is_scalar()) return;
  ConfigNode arguments;
  arguments.kind = ConfigNode::Kind::map;
  arguments.at = node.at;
  ConfigNode map = map_node(node.text, std::move(arguments));
  map.at = node.at;
  set_paths(map, node.path);
  node = std::move(map);
}

/// Two keys where one names the entry: arguments on the level of the name, a second entry, or a typing error.
[[noreturn]] void refuse_second(const ConfigNode &node, const ConfigMember &first, const ConfigMember &second,
                                const EntryPlace &place, const std::vector<std::string> &beside) {
  const RegistryEntry *const entry = find_entry(place.kinds, first.key);
  if (entry != nullptr && entry->signature.find(second.key) != nullptr) {
    refuse_key(node, second,
               "'" + second.key + "' is an argument of " + first.key + ": write " + first.key + ": {" + second.key +
                   ": ...}, or indent it further");
  }
  if (!beside.empty() && find_entry(place.kinds, second.key) == nullptr)
    refuse_key(node, second, "unknown key '" + second.key + "'" + nearest_or_all(second.key, beside));
  refuse_key(node, second,
             "one " + place.what + " stands here, '" + first.key + "'; '" + second.key + "' is another one");
}

ConfigMember &the_member(ConfigNode &node, const EntryPlace &place, const std::vector<std::string> &beside) {
  const std::string form = "expected a " + place.what + " as NAME or NAME: {...}, got ";
  if (!node.is_map()) refuse(node, form + described(node));
  ConfigMember *found = nullptr;
  for (ConfigMember &member : node.members) {
    if (is_among(member.key, beside)) continue;
    if (found != nullptr) refuse_second(node, *found, member, place, beside);
    found = &member;
  }
  if (found == nullptr) refuse(node, form + "none");
  return *found;
}

[[noreturn]] void refuse_name(const ConfigNode &node, const ConfigMember &member, const EntryPlace &place) {
  const std::vector<std::string> names = entry_names(place.kinds);
  const std::string suggestion =
      names.size() <= 30 ? nearest_or_all(member.key, names) : did_you_mean(member.key, names);
  refuse_key(node, member, "unknown " + place.what + " '" + member.key + "'" + suggestion);
}

bool is_given(const OpInput &input, size_t index, EntryPlace::Given given) {
  if (input.is_optional || given == EntryPlace::Given::nothing) return input.is_optional;
  return index == 0 || (given == EntryPlace::Given::first_and_labels && is_label_input(input));
}

/// What the place does not stand for, and has to be written.
std::vector<std::string> required_names(const OpSignature &signature, EntryPlace::Given given) {
  std::vector<std::string> names;
  for (size_t i = 0; i < signature.inputs.size(); ++i) {
    if (!is_given(signature.inputs[i], i, given)) names.push_back(signature.inputs[i].name);
  }
  for (const OpAttribute &attribute : signature.attributes) {
    if (attribute.is_required && attribute.name != "name") names.push_back(attribute.name);
  }
  return names;
}

/// `dense: 128` is `dense: {units: 128}`, since nothing else is required.
void name_argument(const RegistryEntry &entry, const EntryPlace &place, ConfigNode &arguments) {
  if (arguments.is_map()) return;
  const ConfigPlace at = arguments.at;
  const std::string path = arguments.path;
  const std::vector<std::string> required = required_names(entry.signature, place.given);
  if (!arguments.is_null() && required.size() != 1) {
    refuse(arguments,
           "expected the arguments of " + entry.name + " by name, as in {" +
               (required.empty() ? entry.signature.attributes.empty() ? "" : entry.signature.attributes[0].name
                                 : required[0]) +
               ": " + (arguments.is_scalar() ? arguments.text : "...") + "}");
  }
  ConfigNode map;
  map.kind = ConfigNode::Kind::map;
  map.path = path;
  map.at = at;
  if (!arguments.is_null()) map.set(required[0], std::move(arguments));
  arguments = std::move(map);
}

void complete_input(const OpInput &input, const EntryPlace &place, ConfigNode &value, bool is_item = false) {
  if (value.is_list() && input.is_variadic && !is_item) {
    for (ConfigNode &item : value.items)
      complete_input(input, place, item, true);
    return;
  }
  if (value.is_scalar()) return;
  const std::string form = "a number, the name of a value, or what computes it as NAME: {...}";
  if (!value.is_map()) {
    refuse(value, "expected " + std::string(input.is_variadic && !is_item ? "a list of values" : form) + ", got " +
                      described(value));
  }
  complete_entry(value, {place.nested, place.nested.front(), EntryPlace::Given::nothing, place.nested});
}

void complete_arguments(const RegistryEntry &entry, const EntryPlace &place, ConfigNode &arguments) {
  const OpSignature &signature = entry.signature;
  std::vector<std::string> known;
  for (const OpInput &input : signature.inputs)
    known.push_back(input.name);
  for (const OpAttribute &attribute : signature.attributes)
    known.push_back(attribute.name);
  if (known.empty() && !arguments.members.empty())
    refuse_key(arguments, arguments.members.front(), entry.name + " takes no arguments");
  if (!known.empty()) check_keys(arguments, known);
  for (size_t i = 0; i < signature.inputs.size(); ++i) {
    const OpInput &input = signature.inputs[i];
    ConfigNode *const value = arguments.find(input.name);
    if (value != nullptr) complete_input(input, place, *value);
    if (value == nullptr && !is_given(input, i, place.given))
      refuse(arguments, "'" + input.name + "' of " + entry.name +
                            " is missing: a number, the name of a value, or what "
                            "computes it");
  }
  for (const OpAttribute &attribute : signature.attributes) {
    if (const ConfigNode *const value = arguments.find(attribute.name)) {
      check_attribute(attribute, *value);
      continue;
    }
    // What a metric is reported as.
    const bool is_name = attribute.is_required && attribute.name == "name";
    if (attribute.is_required && !is_name)
      refuse(arguments, "'" + attribute.name + "' of " + entry.name + " is missing: " + expected_value(attribute));
    ConfigNode value = is_name ? text_node(entry.name) : node_of(nlohmann::ordered_json::parse(attribute.default_json));
    set_default(value, arguments.at);
    arguments.set(attribute.name, std::move(value));
  }
}

}  // namespace

EntryPlace layer_place() {
  const std::vector<std::string> kinds = {"layer", "function", "op"};
  return {kinds, "layer", EntryPlace::Given::first, kinds};
}
EntryPlace loss_place() { return {{"loss"}, "loss", EntryPlace::Given::first_and_labels, {"layer", "function", "op"}}; }
EntryPlace metric_place() {
  return {{"metric"}, "metric", EntryPlace::Given::first_and_labels, {"layer", "function", "op"}};
}
EntryPlace optimizer_place() {
  return {{"optimizer"}, "optimizer", EntryPlace::Given::nothing, {"schedule", "function", "op"}};
}
EntryPlace parameter_place() {
  return {{"parameter"}, "parameter", EntryPlace::Given::nothing, {"schedule", "function", "op"}};
}

bool is_label_input(const OpInput &input) { return input.name == "labels" || input.name == "targets"; }

void complete_entry(ConfigNode &node, const EntryPlace &place, const std::vector<std::string> &beside) {
  make_map(node);
  ConfigMember &member = the_member(node, place, beside);
  const RegistryEntry *const entry = find_entry(place.kinds, member.key);
  if (entry == nullptr) refuse_name(node, member, place);
  name_argument(*entry, place, member.value);
  // Where the name is, people look for it.
  member.value.at = member.at;
  complete_arguments(*entry, place, member.value);
}

const ConfigMember &entry_member(const ConfigNode &node, const std::vector<std::string> &beside) {
  return *std::find_if(node.members.begin(), node.members.end(),
                       [&](const ConfigMember &member) { return !is_among(member.key, beside); });
}

const RegistryEntry &entry_of(const ConfigMember &member, const std::vector<std::string> &kinds) {
  return *find_entry(kinds, member.key);
}

}  // namespace tutti::tool
