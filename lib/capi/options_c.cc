// SPDX-License-Identifier: Apache-2.0
#include "capi/options_c.h"

#include <stdlib.h>

#include <algorithm>
#include <cmath>

#include "base/bounds_text.h"
#include "base/name_suggestions.h"
#include "base/text.h"
#include "capi/guard.h"

namespace tutti::impl::capi {

constinit HandleType<OptionsObject> options_handles{"options"};

namespace {

constexpr std::string_view kTypeNames[] = {"?", "bool", "i64", "f64", "string"};

int32_t type_of(const OptionValue &value) { return static_cast<int32_t>(value.index()) + 1; }

/// In place of a secret that was set.
constexpr std::string_view kHidden = "(hidden)";

base::Json to_json(const OptionValue &value) {
  return std::visit([](const auto &v) { return base::Json(v); }, value);
}

std::vector<std::string> schema_names(std::span<const OptionSchema> schemas) {
  std::vector<std::string> names;
  for (const OptionSchema &schema : schemas)
    names.push_back(schema.name);
  return names;
}

bool has_secrets(const OptionSchema &schema) {
  return std::any_of(schema.keys.begin(), schema.keys.end(), [](const OptionKey &key) { return key.is_secret; });
}

/// A JSON scalar as an option value; integers stay integers.
Result<OptionValue> from_json(const base::Json &json) {
  switch (json.kind()) {
    case base::Json::Kind::boolean:
      return OptionValue(json.boolean());
    case base::Json::Kind::integer:
      return OptionValue(json.integer());
    case base::Json::Kind::number:
      return OptionValue(json.number());
    case base::Json::Kind::string:
      return OptionValue(json.string());
    default:
      return base::invalid_argument("expected a boolean, a number or a text, got ", json.kind());
  }
}

}  // namespace

const OptionKey *OptionSchema::find(std::string_view key) const {
  const auto found = std::find_if(keys.begin(), keys.end(), [key](const OptionKey &k) { return k.name == key; });
  return found != keys.end() ? &*found : nullptr;
}

const OptionSchema *find_schema(std::string_view name) {
  for (const OptionSchema &schema : option_schemas()) {
    if (schema.name == name) return &schema;
  }
  return nullptr;
}

void OptionsObject::fail(Status status) {
  if (status_.ok()) status_ = std::move(status);
}

Status OptionsObject::check(const OptionKey &key, OptionValue &value) const {
  if (key.type == TUTTI_OPTION_F64 && std::holds_alternative<int64_t>(value))
    value = static_cast<double>(std::get<int64_t>(value));
  if (type_of(value) != key.type) {
    return base::invalid_argument("option '", key.name, "' of schema '", schema_.name, "' is of type ",
                                  kTypeNames[key.type], ", not ", kTypeNames[type_of(value)]);
  }
  if (const std::string *text = std::get_if<std::string>(&value)) {
    if (key.choices.empty() || std::find(key.choices.begin(), key.choices.end(), *text) != key.choices.end())
      return Status();
    return base::invalid_argument("option '", key.name, "' must be one of ", base::join(key.choices, ", "), "; got '",
                                  *text, "'");
  }
  if (std::holds_alternative<bool>(value)) return Status();
  const double number =
      std::holds_alternative<double>(value) ? std::get<double>(value) : static_cast<double>(std::get<int64_t>(value));
  if (number >= key.minimum && number <= key.maximum) return Status();
  return base::invalid_argument("option '", key.name, "': expected ", base::bounds_text(key.minimum, key.maximum),
                                ", got ", number);
}

void OptionsObject::set(std::string_view key, OptionValue value) {
  const OptionKey *known = schema_.find(key);
  if (known == nullptr) {
    std::vector<std::string> names;
    for (const OptionKey &candidate : schema_.keys)
      names.push_back(candidate.name);
    return fail(base::invalid_argument("schema '", schema_.name, "' has no option ", base::quoted(key),
                                       base::but_there_are(key, names)));
  }
  if (Status status = check(*known, value); !status.ok()) return fail(std::move(status));
  values_.insert_or_assign(std::string(key), std::move(value));
  if (const auto found = from_environment_.find(key); found != from_environment_.end()) from_environment_.erase(found);
}

void OptionsObject::set_from_environment() {
  for (const OptionKey &key : schema_.keys) {
    const char *const text = key.environment.empty() ? nullptr : secure_getenv(key.environment.c_str());
    if (text == nullptr || *text == '\0' || values_.contains(key.name)) continue;
    set(key.name, std::string(text));
    from_environment_.insert(key.name);
  }
}

const std::string &OptionsObject::json() {
  base::Json all = base::JsonObject{};
  for (const OptionKey &key : schema_.keys) {
    const auto found = values_.find(key.name);
    const bool was_set = found != values_.end();
    const base::Json value =
        was_set && key.is_secret ? base::Json(std::string(kHidden)) : to_json(was_set ? found->second : key.otherwise);
    const char *const origin = is_from_environment(key.name) ? "environment" : was_set ? "set" : "default";
    all.set(key.name, base::JsonObject{{"value", value}, {"origin", origin}});
  }
  json_ = all.dump();
  return json_;
}

ResolvedOptions::ResolvedOptions(const OptionSchema &schema, const OptionsObject *options) : schema_(&schema) {
  for (const OptionKey &key : schema.keys)
    values_.emplace(key.name, key.otherwise);
  if (options == nullptr) return;
  for (const auto &[name, value] : options->values()) {
    values_.insert_or_assign(name, value);
    origins_.emplace(name, options->is_from_environment(name) ? kFromEnvironment : "set");
  }
}

void ResolvedOptions::set(std::string_view key, OptionValue value) {
  values_.insert_or_assign(std::string(key), std::move(value));
  origins_.insert_or_assign(std::string(key), "set");
}

std::string_view ResolvedOptions::origin(std::string_view key) const {
  const auto found = origins_.find(key);
  return found != origins_.end() ? found->second : "default";
}

base::Json ResolvedOptions::to_json() const {
  base::Json all = base::JsonObject{};
  for (const OptionKey &key : schema_->keys) {
    if (key.is_secret) continue;
    all.set(key.name,
            base::JsonObject{{"value", capi::to_json(at(key.name))}, {"origin", std::string(origin(key.name))}});
  }
  return all;
}

std::string ResolvedOptions::to_text() const {
  std::vector<std::string> set, defaults;
  for (const OptionKey &key : schema_->keys) {
    if (key.is_secret) continue;
    (was_set(key.name) ? set : defaults).push_back(base::concat(key.name, " ", capi::to_json(at(key.name)).dump()));
  }
  return base::concat(set.empty() ? std::string("none set") : base::join(set, ", "),
                      "; defaults: ", base::join(defaults, ", "));
}

Result<ResolvedOptions> resolve(const tutti_options *options, std::string_view schema) {
  const OptionSchema *expected = find_schema(schema);
  if (expected == nullptr) return base::internal_error("no schema '", schema, "'");
  if (options == nullptr) return ResolvedOptions(*expected, nullptr);
  TUTTI_ASSIGN(const Ref<OptionsObject> object, find(options, options_handles, "options"));
  TUTTI_TRY(object->status());
  if (&object->schema() != expected)
    return base::invalid_argument("expected options of schema '", schema, "', got '", object->schema().name, "'");
  return ResolvedOptions(*expected, object.get());
}

}  // namespace tutti::impl::capi

using namespace tutti::impl;
using namespace tutti::impl::capi;

namespace {

/// Runs `body(object)` for a live handle; what it throws is the object's error.
template <typename Body>
void change_options(tutti_options *options, Body &&body) noexcept {
  const Ref<OptionsObject> object = peek(options, options_handles);
  if (!object) return;
  try {
    body(*object);
  } catch (...) {
    object->fail(base::status_of_exception());
  }
}

/// What the parser says, as an error of the call.
Status not_json(const Status &status) {
  constexpr std::string_view kParser = "JSON: ";
  std::string_view reason = status.message();
  if (reason.starts_with(kParser)) reason.remove_prefix(kParser.size());
  return Status(status.code(), base::concat("the text of tutti_options_set_json is not valid JSON: ", reason));
}

void set_option(tutti_options *options, const char *key, OptionValue value) {
  change_options(options, [&](OptionsObject &object) {
    if (key == nullptr) {
      object.fail(base::invalid_argument("argument 'key' is NULL"));
    } else {
      object.set(key, std::move(value));
    }
  });
}

}  // namespace

int32_t tutti_options_create(const char *schema, tutti_options **out, tutti_error **err) {
  return guard(err, [&]() -> Status {
    TUTTI_TRY(clear(out, "out"));
    TUTTI_TRY(require(schema, "schema"));
    const OptionSchema *found = find_schema(schema);
    if (found == nullptr)
      return base::not_found("no option schema ", base::quoted(schema),
                             "; known: ", base::join(schema_names(option_schemas()), ", "));
    return emit(base::make_ref<OptionsObject>(*found), options_handles, out);
  });
}

TUTTI_DEFINE_COUNTING(options, options_handles)

void tutti_options_set_bool(tutti_options *options, const char *key, uint8_t value) {
  set_option(options, key, value != 0);
}

void tutti_options_set_i64(tutti_options *options, const char *key, int64_t value) { set_option(options, key, value); }

void tutti_options_set_f64(tutti_options *options, const char *key, double value) { set_option(options, key, value); }

void tutti_options_set_string(tutti_options *options, const char *key, const char *value) {
  change_options(options, [&](OptionsObject &object) {
    if (value != nullptr) {
      set_option(options, key, std::string(value));
    } else {
      object.fail(base::invalid_argument("the value of option '", key != nullptr ? key : "NULL", "' is NULL"));
    }
  });
}

void tutti_options_set_json(tutti_options *options, const char *text) {
  change_options(options, [&](OptionsObject &object) {
    const Result<base::Json> json = base::Json::parse(text != nullptr ? text : "");
    if (!json.ok() && has_secrets(object.schema())) {
      // What is wrong is told with a piece of the text.
      return object.fail(
          base::invalid_argument("the text of tutti_options_set_json is not valid JSON (it is not shown, as it may "
                                 "contain a secret)"));
    }
    if (!json.ok()) return object.fail(not_json(json.status()));
    if (!json->is_object())
      return object.fail(base::invalid_argument("the text of tutti_options_set_json is valid JSON, but not an object"));
    for (const auto &[key, member] : json->object()) {
      Result<OptionValue> value = from_json(member);
      if (value.ok()) {
        object.set(key, value.take());
      } else {
        object.fail(value.status().wrap(base::concat("option '", key, "'")));
      }
    }
  });
}

void tutti_options_set_from_environment(tutti_options *options) {
  change_options(options, [](OptionsObject &object) { object.set_from_environment(); });
}

int32_t tutti_options_check(const tutti_options *options, tutti_error **err) {
  return guard(err, [&]() -> Status {
    TUTTI_ASSIGN(const Ref<OptionsObject> object, find(options, options_handles, "options"));
    return object->status();
  });
}

const char *tutti_options_get_json(tutti_options *options) {
  return guard_value<const char *>(nullptr, [&]() -> const char * {
    const Ref<OptionsObject> object = peek(options, options_handles);
    return object ? object->json().c_str() : nullptr;
  });
}

int64_t tutti_options_count_keys(const char *schema) {
  return guard_value<int64_t>(-1, [&]() -> int64_t {
    const OptionSchema *found = schema != nullptr ? find_schema(schema) : nullptr;
    return found != nullptr ? static_cast<int64_t>(found->keys.size()) : -1;
  });
}

const char *tutti_options_describe_key(const char *schema, int64_t index) {
  return guard_value<const char *>(nullptr, [&]() -> const char * {
    const OptionSchema *found = schema != nullptr ? find_schema(schema) : nullptr;
    if (found == nullptr || index < 0 || index >= static_cast<int64_t>(found->keys.size())) return nullptr;
    return found->keys[static_cast<size_t>(index)].description.c_str();
  });
}
