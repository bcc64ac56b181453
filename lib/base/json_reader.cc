// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "base/json.h"

namespace tutti::impl::base {

namespace {

// Integers up to here are doubles without loss.
constexpr int64_t kExactInDouble = int64_t{1} << 53;

// Each element of an array through `read`.
template <typename T>
Result<std::vector<T>> read_all(const JsonReader &reader, Result<T> (JsonReader::*read)() const) {
  TUTTI_ASSIGN(const std::vector<JsonReader> elements, reader.elements());
  std::vector<T> values;
  values.reserve(elements.size());
  for (const JsonReader &element : elements) {
    TUTTI_ASSIGN(T value, (element.*read)());
    values.push_back(std::move(value));
  }
  return values;
}

template <typename T>
Result<T> read_key(const JsonReader &reader, std::string_view key, Result<T> (JsonReader::*read)() const) {
  TUTTI_ASSIGN(const JsonReader value, reader.get(key));
  return (value.*read)();
}

template <typename T>
Result<T> read_key_or(const JsonReader &reader, std::string_view key, Result<T> (JsonReader::*read)() const,
                      T otherwise) {
  if (!reader.json().is_null() && !reader.json().is_object()) return reader.wrong("object");
  if (!reader.has(key)) return otherwise;
  return read_key(reader, key, read);
}

}  // namespace

Status JsonReader::wrong(std::string_view expected) const {
  return invalid_argument(path_, ": expected ", expected, ", got ", name(json_->kind()));
}

Result<bool> JsonReader::as_boolean() const {
  if (!json_->is_boolean()) return wrong("boolean");
  return json_->boolean();
}

Result<int64_t> JsonReader::as_integer() const {
  if (!json_->is_integer()) return wrong("integer");
  return json_->integer();
}

Result<double> JsonReader::as_double() const {
  if (json_->is_number()) return json_->number();
  if (json_->is_integer()) {
    const int64_t integer = json_->integer();
    if (integer > kExactInDouble || integer < -kExactInDouble) {
      return invalid_argument(path_, ": integer ", integer, " cannot be represented exactly as a double");
    }
    return static_cast<double>(integer);
  }
  if (json_->is_string()) {
    if (json_->string() == "NaN") return std::numeric_limits<double>::quiet_NaN();
    if (json_->string() == "Infinity") return std::numeric_limits<double>::infinity();
    if (json_->string() == "-Infinity") return -std::numeric_limits<double>::infinity();
  }
  return wrong("number");
}

Result<std::string> JsonReader::as_string() const {
  if (!json_->is_string()) return wrong("string");
  return json_->string();
}

Result<std::vector<int64_t>> JsonReader::as_integers() const { return read_all(*this, &JsonReader::as_integer); }
Result<std::vector<double>> JsonReader::as_doubles() const { return read_all(*this, &JsonReader::as_double); }
Result<std::vector<std::string>> JsonReader::as_strings() const { return read_all(*this, &JsonReader::as_string); }

bool JsonReader::has(std::string_view key) const {
  const Json *found = json_->find(key);
  return found != nullptr && !found->is_null();
}

Result<JsonReader> JsonReader::get(std::string_view key) const {
  if (!json_->is_object()) return wrong("object");
  const Json *found = json_->find(key);
  if (found == nullptr) return not_found(path_, ": key ", base::quoted(key), " is missing");
  return JsonReader(*found, concat(path_, ".", key));
}

Result<std::vector<JsonReader>> JsonReader::elements() const {
  if (!json_->is_array()) return wrong("array");
  std::vector<JsonReader> readers;
  readers.reserve(json_->size());
  for (const Json &element : json_->array())
    readers.emplace_back(element, concat(path_, "[", readers.size(), "]"));
  return readers;
}

Result<std::vector<std::pair<std::string, JsonReader>>> JsonReader::members() const {
  if (!json_->is_object()) return wrong("object");
  std::vector<std::pair<std::string, JsonReader>> readers;
  readers.reserve(json_->size());
  for (const auto &[key, value] : json_->object())
    readers.emplace_back(key, JsonReader(value, concat(path_, ".", key)));
  return readers;
}

Status JsonReader::only_keys(std::vector<std::string> known) const {
  if (!json_->is_object()) return wrong("object");
  for (const auto &member : json_->object()) {
    bool found = false;
    for (const std::string &key : known)
      found = found || key == member.first;
    if (!found)
      return invalid_argument(path_, ": unknown key ", base::quoted(member.first), did_you_mean(member.first, known));
  }
  return Status();
}

Result<bool> JsonReader::get_boolean(std::string_view key) const {
  return read_key(*this, key, &JsonReader::as_boolean);
}
Result<int64_t> JsonReader::get_integer(std::string_view key) const {
  return read_key(*this, key, &JsonReader::as_integer);
}
Result<double> JsonReader::get_double(std::string_view key) const {
  return read_key(*this, key, &JsonReader::as_double);
}
Result<std::string> JsonReader::get_string(std::string_view key) const {
  return read_key(*this, key, &JsonReader::as_string);
}
Result<std::vector<int64_t>> JsonReader::get_integers(std::string_view key) const {
  return read_key(*this, key, &JsonReader::as_integers);
}
Result<std::vector<double>> JsonReader::get_doubles(std::string_view key) const {
  return read_key(*this, key, &JsonReader::as_doubles);
}
Result<std::vector<std::string>> JsonReader::get_strings(std::string_view key) const {
  return read_key(*this, key, &JsonReader::as_strings);
}
Result<bool> JsonReader::get_boolean(std::string_view key, bool otherwise) const {
  return read_key_or(*this, key, &JsonReader::as_boolean, otherwise);
}
Result<int64_t> JsonReader::get_integer(std::string_view key, int64_t otherwise) const {
  return read_key_or(*this, key, &JsonReader::as_integer, otherwise);
}
Result<double> JsonReader::get_double(std::string_view key, double otherwise) const {
  return read_key_or(*this, key, &JsonReader::as_double, otherwise);
}
Result<std::string> JsonReader::get_string(std::string_view key, std::string otherwise) const {
  return read_key_or(*this, key, &JsonReader::as_string, std::move(otherwise));
}

}  // namespace tutti::impl::base
