// SPDX-License-Identifier: Apache-2.0
#include "nn/definition_table.h"

#include <charconv>
#include <string>
#include <string_view>
#include <utility>

namespace tutti::impl::nn {

using graph::Attribute;
using graph::AttributeDefinition;
using graph::AttributeType;

namespace {

/// Parts of a text between commas; views of it.
std::vector<std::string_view> parts_of(std::string_view text) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const size_t comma = text.find(',');
    parts.push_back(text.substr(0, comma));
    text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
  }
  return parts;
}

template <typename T>
std::vector<T> numbers_of(std::string_view text) {
  std::vector<T> numbers;
  for (const std::string_view part : parts_of(text))
    std::from_chars(part.data(), part.data() + part.size(), numbers.emplace_back());
  return numbers;
}

}  // namespace

void DefinitionTable::entry(const char *name, int32_t revision, const char *doc, bool is_function,
                            ExpandFunction expand) {
  Definition &entry = entries_.emplace_back();
  entry.name = name;
  entry.revision = revision;
  entry.doc = doc;
  entry.is_function = is_function;
  entry.expand = expand;
}

void DefinitionTable::input(const char *name, graph::DTypeClass dtype_class, char match, bool optional, bool variadic,
                            int32_t minimum_count) {
  graph::InputDefinition &input = entries_.back().inputs.emplace_back();
  input.name = name;
  input.dtype_class = dtype_class;
  input.match = match;
  input.optional = optional;
  input.variadic = variadic;
  input.minimum_count = minimum_count;
}

AttributeDefinition &DefinitionTable::add(const char *name, AttributeType type, const char *doc,
                                          const AttributeBounds &bounds) {
  AttributeDefinition &attribute = entries_.back().attributes.emplace_back();
  attribute.name = name;
  attribute.type = type;
  attribute.doc = doc;
  attribute.length = bounds.length;
  attribute.minimum = bounds.minimum;
  attribute.maximum = bounds.maximum;
  attribute.exclusive_minimum = bounds.excludes_minimum;
  attribute.exclusive_maximum = bounds.excludes_maximum;
  return attribute;
}

void DefinitionTable::required(const char *name, AttributeType type, const char *doc, const AttributeBounds &bounds) {
  add(name, type, doc, bounds).required = true;
}

void DefinitionTable::boolean(const char *name, bool value, const char *doc) {
  add(name, AttributeType::boolean, doc, {}).default_value = value;
}

void DefinitionTable::integer(const char *name, int64_t value, const char *doc, const AttributeBounds &bounds) {
  add(name, AttributeType::i64, doc, bounds).default_value = value;
}

void DefinitionTable::number(const char *name, double value, const char *doc, const AttributeBounds &bounds) {
  add(name, AttributeType::f64, doc, bounds).default_value = value;
}

void DefinitionTable::text(const char *name, const char *value, const char *doc) {
  add(name, AttributeType::string, doc, {}).default_value = std::string(value);
}

void DefinitionTable::choice(const char *name, const char *choices, const char *value, const char *doc) {
  AttributeDefinition &attribute = add(name, AttributeType::enumeration, doc, {});
  attribute.choices = parts_of(choices);
  attribute.required = value == nullptr;
  if (value != nullptr) attribute.default_value = std::string(value);
}

void DefinitionTable::integers(const char *name, const char *values, const char *doc, const AttributeBounds &bounds) {
  add(name, AttributeType::ints, doc, bounds).default_value = numbers_of<int64_t>(values);
}

void DefinitionTable::numbers(const char *name, const char *values, const char *doc, const AttributeBounds &bounds) {
  add(name, AttributeType::doubles, doc, bounds).default_value = numbers_of<double>(values);
}

}  // namespace tutti::impl::nn
