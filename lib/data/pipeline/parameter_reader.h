// SPDX-License-Identifier: Apache-2.0
//
// How the generated table reads parameters: check_parameters() has seen names, types and bounds before, so reading
// cannot fail. Pure functions.
#ifndef TUTTI_DATA_PIPELINE_PARAMETER_READER_H_
#define TUTTI_DATA_PIPELINE_PARAMETER_READER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "base/status.h"
#include "data/pipeline/pipeline.h"
#include "graph/attribute.h"

namespace tutti::impl::data {

/// Known names, right types, values within bounds, nothing required missing; the error names the parameter.
base::Status check_parameters(std::span<const ParameterDefinition> definitions, const graph::Attributes &attributes);

template <typename T>
inline constexpr bool is_optional = false;
template <typename T>
inline constexpr bool is_optional<std::optional<T>> = true;

/// Sets `value` if the attribute is there.
template <typename T>
void read_parameter(const graph::Attributes &attributes, std::string_view name, T &value) {
  const auto found = attributes.find(name);
  if (found == attributes.end()) return;
  if constexpr (std::is_same_v<T, double> || std::is_same_v<T, std::optional<double>>) {
    if (const int64_t *integer = std::get_if<int64_t>(&found->second)) {
      value = static_cast<double>(*integer);
      return;
    }
  }
  if constexpr (is_optional<T>) {
    value = std::get<typename T::value_type>(found->second);
  } else {
    value = std::get<T>(found->second);
  }
}

inline bool has_others(const TransformArguments &arguments) { return !arguments.others.empty(); }
inline bool has_graph(const TransformArguments &arguments) { return arguments.graph != nullptr; }
inline bool has_map(const TransformArguments &arguments) { return arguments.map != nullptr; }
inline bool has_expand(const TransformArguments &arguments) { return arguments.expand != nullptr; }
inline bool has_scan(const TransformArguments &arguments) { return arguments.scan != nullptr; }
inline bool has_state(const TransformArguments &arguments) { return !arguments.state.empty(); }
inline bool has_filter(const TransformArguments &arguments) { return arguments.filter != nullptr; }
inline bool has_like(const TransformArguments &arguments) { return arguments.output_spec.has_value(); }

inline base::Status require_argument(bool present, std::string_view what) {
  if (present) return base::Status();
  return base::invalid_argument("expected the argument '", what, "', which is missing");
}

inline base::Status refuse_argument(bool present, std::string_view what) {
  if (!present) return base::Status();
  return base::invalid_argument("it does not take ", what, ", which was given");
}

}  // namespace tutti::impl::data

#endif  // TUTTI_DATA_PIPELINE_PARAMETER_READER_H_
