// SPDX-License-Identifier: Apache-2.0
#include "base/json.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

namespace tutti::impl::base {

namespace {

// quoted() is called by its full name here: nlohmann brings in the one of the standard library.

// Builds a Json from nlohmann's events. Returning false ends the parse.
class Builder {
 public:
  using Number = nlohmann::json::number_float_t;

  Builder(std::string_view text, int32_t max_depth) : text_(text), max_depth_(max_depth) {}

  bool null() { return add(Json()); }
  bool boolean(bool value) { return add(Json(value)); }
  bool number_integer(int64_t value) { return add(Json(value)); }
  bool number_unsigned(uint64_t value) {
    if (value <= INT64_MAX) return add(Json(static_cast<int64_t>(value)));
    return fail(concat("integer ", value, " does not fit 64 bits"));
  }
  bool number_float(Number value, const std::string &written) {
    if (written.find_first_of(".eE") != std::string::npos) return add(Json(value));
    return fail(concat("integer ", base::quoted(written, 40), " does not fit 64 bits"));
  }
  bool string(std::string &value) { return add(Json(std::move(value))); }
  bool binary(nlohmann::json::binary_t &) { return fail("binary data"); }
  bool start_object(size_t) { return open(JsonObject()); }
  bool start_array(size_t) { return open(JsonArray()); }
  bool key(std::string &key) {
    stack_.back()->object().emplace_back(std::move(key), Json());
    return true;
  }
  bool end_object() {
    const std::string *twice = duplicate_key(stack_.back()->object());
    if (twice != nullptr) return fail(concat("key ", base::quoted(*twice), " appears twice in one object"));
    stack_.pop_back();
    return true;
  }
  bool end_array() {
    stack_.pop_back();
    return true;
  }
  bool parse_error(size_t position, const std::string &, const nlohmann::json::exception &problem) {
    // "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error while ..."
    std::string_view reason = problem.what();
    const size_t skip = std::min(reason.find("syntax error"), reason.find("number overflow"));
    if (skip != std::string_view::npos) reason.remove_prefix(skip);
    return fail_at(position, concat(base::quoted(reason, 200)));
  }

  Result<Json> take(bool complete) {
    TUTTI_TRY(failure_);
    if (!complete) return invalid_argument("JSON text ends early");
    return std::move(root_);
  }

 private:
  // Where a value goes: the root, the end of an array, or the value of the last key.
  Json *place() {
    if (stack_.empty()) return &root_;
    Json &top = *stack_.back();
    if (!top.is_array()) return &top.object().back().second;
    top.array().emplace_back();
    return &top.array().back();
  }
  bool add(Json value) {
    *place() = std::move(value);
    return true;
  }
  // Containers are filled where they stand; their place does not move until they are closed.
  bool open(Json container) {
    if (stack_.size() >= static_cast<size_t>(max_depth_))
      return fail(concat("nested deeper than ", max_depth_, " levels"));
    Json *at = place();
    *at = std::move(container);
    stack_.push_back(at);
    return true;
  }
  bool fail(std::string_view reason) {
    failure_ = invalid_argument("JSON: ", reason);
    return false;
  }
  bool fail_at(size_t position, std::string_view reason) {
    const std::string_view before = text_.substr(0, std::min(position > 0 ? position - 1 : 0, text_.size()));
    const auto line = std::count(before.begin(), before.end(), '\n') + 1;
    const size_t column = before.size() - (before.rfind('\n') + 1) + 1;
    return fail(concat("line ", line, ", column ", column, ": ", reason));
  }
  static const std::string *duplicate_key(const JsonObject &object) {
    std::vector<const std::string *> keys;
    keys.reserve(object.size());
    for (const auto &member : object)
      keys.push_back(&member.first);
    std::sort(keys.begin(), keys.end(), [](auto a, auto b) { return *a < *b; });
    const auto twice = std::adjacent_find(keys.begin(), keys.end(), [](auto a, auto b) { return *a == *b; });
    return twice == keys.end() ? nullptr : *twice;
  }

  std::string_view text_;
  int32_t max_depth_;
  Json root_;
  std::vector<Json *> stack_;
  Status failure_;
};

void append_number(std::string &out, double value) {
  if (std::isnan(value)) {
    out.append("\"NaN\"");
  } else if (std::isinf(value)) {
    out.append(value > 0 ? "\"Infinity\"" : "\"-Infinity\"");
  } else {
    const size_t before = out.size();
    append_double(out, value);
    if (out.find_first_of(".e", before) == std::string::npos) out.append(".0");
  }
}

void append_line(std::string &out, int indent, int depth) {
  if (indent < 0) return;
  out.push_back('\n');
  out.append(static_cast<size_t>(indent) * static_cast<size_t>(depth), ' ');
}

void append_json(std::string &out, const Json &json, int indent, int depth);

void append_array(std::string &out, const JsonArray &array, int indent, int depth) {
  out.push_back('[');
  for (const Json &element : array) {
    if (&element != &array.front()) out.push_back(',');
    append_line(out, indent, depth + 1);
    append_json(out, element, indent, depth + 1);
  }
  if (!array.empty()) append_line(out, indent, depth);
  out.push_back(']');
}

void append_object(std::string &out, const JsonObject &object, int indent, int depth) {
  out.push_back('{');
  for (const auto &member : object) {
    if (&member != &object.front()) out.push_back(',');
    append_line(out, indent, depth + 1);
    append_json_string(out, member.first);
    out.append(indent < 0 ? ":" : ": ");
    append_json(out, member.second, indent, depth + 1);
  }
  if (!object.empty()) append_line(out, indent, depth);
  out.push_back('}');
}

void append_json(std::string &out, const Json &json, int indent, int depth) {
  switch (json.kind()) {
    case Json::Kind::null:
      out.append("null");
      break;
    case Json::Kind::boolean:
      out.append(json.boolean() ? "true" : "false");
      break;
    case Json::Kind::integer:
      append_integer(out, json.integer());
      break;
    case Json::Kind::number:
      append_number(out, json.number());
      break;
    case Json::Kind::string:
      append_json_string(out, json.string());
      break;
    case Json::Kind::array:
      append_array(out, json.array(), indent, depth);
      break;
    case Json::Kind::object:
      append_object(out, json.object(), indent, depth);
      break;
  }
}

void append_control_character(std::string &out, char c) {
  constexpr char kHexDigits[] = "0123456789abcdef";
  switch (c) {
    case '\n':
      out.append("\\n");
      break;
    case '\r':
      out.append("\\r");
      break;
    case '\t':
      out.append("\\t");
      break;
    default:
      out.append("\\u00");
      out.push_back(kHexDigits[static_cast<unsigned char>(c) >> 4]);
      out.push_back(kHexDigits[c & 15]);
  }
}

}  // namespace

Json::Json() = default;
Json::Json(const Json &other) = default;
Json::Json(Json &&other) noexcept = default;
Json &Json::operator=(const Json &other) = default;
Json &Json::operator=(Json &&other) noexcept = default;
Json::~Json() = default;

Json::Json(std::string value) : value_(std::move(value)) {}
Json::Json(std::string_view value) : value_(std::string(value)) {}
Json::Json(const char *value) : value_(std::string(value)) {}
Json::Json(JsonArray value) : value_(std::move(value)) {}
Json::Json(JsonObject value) : value_(std::move(value)) {}

void append_json_string(std::string &out, std::string_view text) {
  out.push_back('"');
  while (!text.empty()) {
    const size_t good = well_formed_prefix(text);
    for (const char c : text.substr(0, good)) {
      if (c == '"' || c == '\\') {
        out.push_back('\\');
        out.push_back(c);
      } else if (static_cast<unsigned char>(c) < 0x20) {
        append_control_character(out, c);
      } else {
        out.push_back(c);
      }
    }
    text.remove_prefix(good);
    if (text.empty()) break;
    out.append("\xef\xbf\xbd");
    text.remove_prefix(1);
  }
  out.push_back('"');
}

Result<Json> Json::parse(std::string_view text, JsonLimits limits) {
  if (text.size() > limits.max_bytes) {
    return resource_exhausted("JSON text of ", text.size(), " bytes is larger than the limit of ", limits.max_bytes);
  }
  Builder builder(text, limits.max_depth);
  try {
    const bool complete = nlohmann::json::sax_parse(text.begin(), text.end(), &builder);
    return builder.take(complete);
  } catch (const nlohmann::json::exception &problem) {
    return invalid_argument("JSON: ", problem.what());
  }
}

std::string Json::dump(int indent) const {
  std::string out;
  append_json(out, *this, indent, 0);
  return out;
}

const Json *Json::find(std::string_view key) const {
  if (!is_object()) return nullptr;
  for (const auto &member : object()) {
    if (member.first == key) return &member.second;
  }
  return nullptr;
}

Json &Json::operator[](std::string_view key) {
  if (!is_object()) value_ = JsonObject();
  for (auto &member : object()) {
    if (member.first == key) return member.second;
  }
  return object().emplace_back(std::string(key), Json()).second;
}

void Json::push_back(Json value) {
  if (!is_array()) value_ = JsonArray();
  array().push_back(std::move(value));
}

size_t Json::size() const {
  if (is_array()) return array().size();
  return is_object() ? object().size() : 0;
}

bool operator==(const Json &a, const Json &b) { return a.value_ == b.value_; }

std::string_view name(Json::Kind kind) {
  constexpr std::array<std::string_view, 7> kNames = {"null",   "boolean", "integer", "number",
                                                      "string", "array",   "object"};
  return kNames[static_cast<size_t>(kind)];
}

}  // namespace tutti::impl::base
