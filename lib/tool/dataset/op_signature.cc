// SPDX-License-Identifier: Apache-2.0
#include "tool/dataset/op_signature.h"

#include <algorithm>
#include <tutti/tutti.hpp>

#include "tool/console/name_suggestions.h"
#include "tool/console/tensor_values.h"

namespace tutti::tool {

namespace {

const char *example(AttributeKind kind) {
  switch (kind) {
    case AttributeKind::ints_:
    case AttributeKind::doubles_:
    case AttributeKind::dims_:
      return "=[...]";
    default:
      return "=...";
  }
}

}  // namespace

size_t OpSignature::required_inputs() const {
  return static_cast<size_t>(
      std::count_if(inputs.begin(), inputs.end(), [](const OpInput &input) { return !input.is_optional; }));
}

const OpAttribute *OpSignature::find(const std::string &attribute) const {
  const auto found = std::find_if(attributes.begin(), attributes.end(),
                                  [&](const OpAttribute &candidate) { return candidate.name == attribute; });
  return found == attributes.end() ? nullptr : &*found;
}

std::string OpSignature::text() const {
  std::vector<std::string> parts;
  for (const OpInput &input : inputs) {
    const std::string shown = input.is_variadic ? input.name + "..." : input.name;
    parts.push_back(input.is_optional ? "[" + shown + "]" : shown);
  }
  for (const OpAttribute &attribute : attributes) {
    const std::string shown = attribute.name + example(attribute.kind);
    parts.push_back(attribute.is_required ? shown : "[" + shown + "]");
  }
  return name + "(" + listed(parts) + ")";
}

const OpSignature *find_op(const std::string &name) {
  for (const OpSignature &signature : op_signatures()) {
    if (signature.name == name) return &signature;
  }
  return nullptr;
}

std::string expected(const OpAttribute &attribute) {
  switch (attribute.kind) {
    case AttributeKind::bool_:
      return "true or false";
    case AttributeKind::i64_:
      return "an integer";
    case AttributeKind::f64_:
      return "a number";
    case AttributeKind::string_:
      return "a text in quotes";
    case AttributeKind::enum_:
      return "one of " + listed(attribute.values);
    case AttributeKind::ints_:
      return "a list of integers";
    case AttributeKind::dims_:
      return "a list of integers, with the word batch for the rows of a batch";
    case AttributeKind::doubles_:
      return "a list of numbers";
    case AttributeKind::dtype_:
      return "a type such as \"f32\"";
  }
  return "";
}

int32_t find_dtype(const std::string &name) {
  for (int32_t dtype = TUTTI_DTYPE_F32; dtype <= TUTTI_DTYPE_BYTES; ++dtype) {
    if (name == dtype_name(dtype)) return dtype;
  }
  return 0;
}

}  // namespace tutti::tool
