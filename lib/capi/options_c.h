// SPDX-License-Identifier: Apache-2.0
//
// Options: values checked against a schema of options.yaml (the table is generated). Consumers read resolved values:
//
//   TUTTI_ASSIGN(const ResolvedOptions options, resolve(handle, "run"));     // NULL = all defaults
//   const int64_t seed = options.i64("seed");
#ifndef TUTTI_CAPI_OPTIONS_C_H_
#define TUTTI_CAPI_OPTIONS_C_H_

#include <tutti/options.h>

#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/json.h"
#include "base/safe_variant.h"
#include "capi/handles.h"

namespace tutti::impl::capi {

using OptionValue = base::SafeVariant<bool, int64_t, double, std::string>;

struct OptionKey {
  std::string name;
  int32_t type;  ///< TUTTI_OPTION_*
  OptionValue otherwise;
  double minimum, maximum;
  std::vector<std::string> choices;  ///< of a string; empty = any
  bool is_secret;                    ///< nothing that the library writes has its value
  std::string environment;           ///< the variable that set_from_environment() takes a text from; empty = none
  std::string description;           ///< JSON, for tutti_options_describe_key
};

struct OptionSchema {
  std::string name;
  std::vector<OptionKey> keys;

  const OptionKey *find(std::string_view key) const;
};

/// All schemas, in the order of options.yaml.
std::span<const OptionSchema> option_schemas();
/// Null when there is no such schema.
const OptionSchema *find_schema(std::string_view name);

/// What was set, and the first mistake.
class OptionsObject : public base::Object {
 public:
  explicit OptionsObject(const OptionSchema &schema) : schema_(schema) {}
  const OptionSchema &schema() const { return schema_; }
  const Status &status() const { return status_; }
  const std::map<std::string, OptionValue, std::less<>> &values() const { return values_; }

  void set(std::string_view key, OptionValue value);
  /// Sets what has a variable in the environment and was not set before.
  void set_from_environment();
  bool is_from_environment(std::string_view key) const { return from_environment_.contains(key); }
  void fail(Status status);
  /// The text of tutti_options_get_json.
  const std::string &json();

 private:
  Status check(const OptionKey &key, OptionValue &value) const;

  const OptionSchema &schema_;
  Status status_;
  std::map<std::string, OptionValue, std::less<>> values_;
  std::set<std::string, std::less<>> from_environment_;
  std::string json_;
};

extern constinit HandleType<OptionsObject> options_handles;

/// A copy of the values in force.
class ResolvedOptions {
 public:
  ResolvedOptions(const OptionSchema &schema, const OptionsObject *options);

  bool flag(std::string_view key) const { return std::get<bool>(at(key)); }
  int64_t i64(std::string_view key) const { return std::get<int64_t>(at(key)); }
  double f64(std::string_view key) const { return std::get<double>(at(key)); }
  const std::string &text(std::string_view key) const { return std::get<std::string>(at(key)); }
  /// By the program or from the environment.
  bool was_set(std::string_view key) const { return origins_.find(key) != origins_.end(); }
  bool is_from_environment(std::string_view key) const { return origin(key) == kFromEnvironment; }
  /// As if the program had set it.
  void set(std::string_view key, OptionValue value);
  /// {"seed": {"value": 7, "origin": "set", "environment" or "default"}, ...}: what a checkpoint keeps; without
  /// secrets.
  base::Json to_json() const;
  /// "seed 7, determinism repeatable; defaults: ...": the same for a line of a log.
  std::string to_text() const;

 private:
  static constexpr std::string_view kFromEnvironment = "environment";

  const OptionValue &at(std::string_view key) const { return values_.find(key)->second; }
  std::string_view origin(std::string_view key) const;

  const OptionSchema *schema_;
  std::map<std::string, OptionValue, std::less<>> values_;
  std::map<std::string, std::string_view, std::less<>> origins_;  // of what was set
};

/// The options of an argument (NULL = defaults). Reports the first setter's error, or a schema other than expected.
Result<ResolvedOptions> resolve(const tutti_options *options, std::string_view schema);

}  // namespace tutti::impl::capi

#endif  // TUTTI_CAPI_OPTIONS_C_H_
