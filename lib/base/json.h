// SPDX-License-Identifier: Apache-2.0
//
// JSON as a value: null, boolean, 64-bit integer, double, text, array, object with its keys in the order they were set.
// Integers and doubles come back exactly as they were written; a double without a fraction keeps its ".0".
//
//   Json manifest = JsonObject{{"step", 1200}, {"loss", 0.25}, {"files", JsonArray{"weights.safetensors"}}};
//   TUTTI_ASSIGN(Json read, Json::parse(text));
//   JsonReader root(read, "manifest");
//   TUTTI_ASSIGN(int64_t step, root.get_integer("step"));  // "manifest.step: expected integer, got string"
//
// JSON has no infinities or NaN: dump() writes them as the texts "Infinity", "-Infinity", "NaN", and get_double() takes
// these texts back.
//
// Threads: a value like any other; concurrent reading is fine.
#ifndef TUTTI_BASE_JSON_H_
#define TUTTI_BASE_JSON_H_

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/safe_variant.h"
#include "base/status.h"

namespace tutti::impl::base {

class Json;
using JsonArray = std::vector<Json>;
/// Keys in order of insertion; a key appears once.
using JsonObject = std::vector<std::pair<std::string, Json>>;

/// Bounds for text of unknown origin.
struct JsonLimits {
  size_t max_bytes = size_t{256} << 20;
  int32_t max_depth = 64;
};

class Json {
 public:
  enum class Kind { null, boolean, integer, number, string, array, object };

  // Compiled once, in json.cc.
  Json();
  Json(const Json &other);
  Json(Json &&other) noexcept;
  Json &operator=(const Json &other);
  Json &operator=(Json &&other) noexcept;
  ~Json();

  Json(std::nullptr_t) : Json() {}
  template <std::same_as<bool> T>
  Json(T value) : value_(value) {}
  /// From any integer type but 64-bit unsigned, which might not fit.
  template <std::integral T>
  requires(!std::same_as<T, bool> && (std::signed_integral<T> || sizeof(T) < 8)) Json(T value)
      : value_(static_cast<int64_t>(value)) {}
  template <std::floating_point T>
  Json(T value) : value_(static_cast<double>(value)) {}
  Json(std::string value);
  Json(std::string_view value);
  Json(const char *value);
  Json(JsonArray value);
  Json(JsonObject value);
  /// An array of anything that converts to Json, such as a vector of integers.
  template <typename T>
  requires(!std::same_as<T, Json> && std::convertible_to<const T &, Json>) Json(const std::vector<T> &values)
      : Json(JsonArray(values.begin(), values.end())) {}

  /// Parses a whole text. INVALID_ARGUMENT naming line and column; duplicate keys, trailing text, bad UTF-8 and
  /// integers beyond 64 bits are errors.
  static Result<Json> parse(std::string_view text, JsonLimits limits = {});
  /// As text; indent < 0 gives one line. Bad UTF-8 is replaced by U+FFFD.
  std::string dump(int indent = -1) const;

  Kind kind() const { return static_cast<Kind>(value_.index()); }
  bool is_null() const { return kind() == Kind::null; }
  bool is_boolean() const { return kind() == Kind::boolean; }
  bool is_integer() const { return kind() == Kind::integer; }
  /// A double; integers are not numbers in this sense.
  bool is_number() const { return kind() == Kind::number; }
  bool is_string() const { return kind() == Kind::string; }
  bool is_array() const { return kind() == Kind::array; }
  bool is_object() const { return kind() == Kind::object; }

  // Require the kind they name.
  bool boolean() const { return std::get<bool>(value_); }
  int64_t integer() const { return std::get<int64_t>(value_); }
  double number() const { return std::get<double>(value_); }
  const std::string &string() const { return std::get<std::string>(value_); }
  const JsonArray &array() const { return std::get<JsonArray>(value_); }
  JsonArray &array() { return std::get<JsonArray>(value_); }
  const JsonObject &object() const { return std::get<JsonObject>(value_); }
  JsonObject &object() { return std::get<JsonObject>(value_); }

  /// The value of a key, or null when there is none or this is no object.
  const Json *find(std::string_view key) const;
  /// The value of a key, made null if missing. Anything but an object is replaced by an empty object first.
  Json &operator[](std::string_view key);
  /// Sets a key, replacing its value in place or appending.
  void set(std::string_view key, Json value) { (*this)[key] = std::move(value); }
  /// Appends to an array. Anything but an array is replaced by an empty one first.
  void push_back(Json value);
  /// Elements of an array or object, else 0.
  size_t size() const;

  friend bool operator==(const Json &a, const Json &b);

 private:
  SafeVariant<std::monostate, bool, int64_t, double, std::string, JsonArray, JsonObject> value_;
};

/// Appends a text in quotes, escaped; bad UTF-8 is replaced by U+FFFD.
void append_json_string(std::string &out, std::string_view text);

/// "null", "boolean", "integer", "number", "string", "array", "object".
std::string_view name(Json::Kind kind);

/// Typed reading with the path in the error. Refers to a Json that must outlive it.
class JsonReader {
 public:
  JsonReader(const Json &json, std::string path) : json_(&json), path_(std::move(path)) {}

  const Json &json() const { return *json_; }
  const std::string &path() const { return path_; }

  // This value as a type.
  Result<bool> as_boolean() const;
  Result<int64_t> as_integer() const;
  /// A double or an integer that a double holds exactly.
  Result<double> as_double() const;
  Result<std::string> as_string() const;
  Result<std::vector<int64_t>> as_integers() const;
  Result<std::vector<double>> as_doubles() const;
  Result<std::vector<std::string>> as_strings() const;

  /// Is there such a key (with a value other than null)?
  bool has(std::string_view key) const;
  /// The value of a key; NOT_FOUND when there is none, INVALID_ARGUMENT when this is no object.
  Result<JsonReader> get(std::string_view key) const;
  /// The elements of an array, each with its path.
  Result<std::vector<JsonReader>> elements() const;
  /// Keys and values of an object, each with its path.
  Result<std::vector<std::pair<std::string, JsonReader>>> members() const;
  /// INVALID_ARGUMENT naming the first key that is not in `known`, with the nearest match.
  Status only_keys(std::vector<std::string> known) const;

  // The value of a key as a type.
  Result<bool> get_boolean(std::string_view key) const;
  Result<int64_t> get_integer(std::string_view key) const;
  Result<double> get_double(std::string_view key) const;
  Result<std::string> get_string(std::string_view key) const;
  Result<std::vector<int64_t>> get_integers(std::string_view key) const;
  Result<std::vector<double>> get_doubles(std::string_view key) const;
  Result<std::vector<std::string>> get_strings(std::string_view key) const;
  // The same, or `otherwise` when the key is missing or null.
  Result<bool> get_boolean(std::string_view key, bool otherwise) const;
  Result<int64_t> get_integer(std::string_view key, int64_t otherwise) const;
  Result<double> get_double(std::string_view key, double otherwise) const;
  Result<std::string> get_string(std::string_view key, std::string otherwise) const;

  /// INVALID_ARGUMENT "<path>: expected <what>, got <kind>".
  Status wrong(std::string_view expected) const;

 private:
  const Json *json_;
  std::string path_;
};

}  // namespace tutti::impl::base

#endif  // TUTTI_BASE_JSON_H_
