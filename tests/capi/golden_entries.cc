// SPDX-License-Identifier: Apache-2.0
#include "golden_entries.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cstring>
// Behind the others: it has macros of common names.
extern "C" {
#include <cmocka.h>
}

using nlohmann::json;

namespace golden {

void must(int32_t code, tutti_error *const *error) {
  if (code != TUTTI_OK) fail_msg("%s", *error != nullptr ? tutti_error_get_text(*error) : "no text");
}

std::vector<int64_t> dims_of(const json &tensor) { return tensor["dims"].get<std::vector<int64_t>>(); }

tutti_tensor *tensor_of(const json &text, int64_t begin, int64_t end) {
  std::vector<int64_t> dims = dims_of(text);
  auto values = text["values"].get<std::vector<double>>();
  if (end >= 0) {
    const auto size = static_cast<int64_t>(values.size()) / dims[0];
    values = std::vector<double>(values.begin() + begin * size, values.begin() + end * size);
    dims[0] = end - begin;
  }
  const bool is_f32 = text["dtype"] == "f32";
  std::vector<char> bytes(4 * values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const auto number = static_cast<float>(values[i]);
    const auto label = static_cast<int32_t>(values[i]);
    std::memcpy(&bytes[4 * i], is_f32 ? static_cast<const void *>(&number) : static_cast<const void *>(&label), 4);
  }
  tutti_tensor *tensor = nullptr;
  tutti_error *error = nullptr;
  must(
      tutti_tensor_from_data(is_f32 ? TUTTI_DTYPE_F32 : TUTTI_DTYPE_I32, dims.data(), static_cast<int64_t>(dims.size()),
                             bytes.data(), static_cast<int64_t>(bytes.size()), &tensor, &error),
      &error);
  return tensor;
}

void set_attribute(tutti_graph *graph, const std::string &key, const json &value) {
  const char *const name = key.c_str();
  if (value.contains("bool")) tutti_graph_set_bool(graph, name, value["bool"].get<bool>());
  if (value.contains("i64")) tutti_graph_set_i64(graph, name, value["i64"].get<int64_t>());
  if (value.contains("f64")) tutti_graph_set_f64(graph, name, value["f64"].get<double>());
  if (value.contains("string")) tutti_graph_set_string(graph, name, value["string"].get<std::string>().c_str());
  if (value.contains("ints")) {
    const auto list = value["ints"].get<std::vector<int64_t>>();
    tutti_graph_set_i64s(graph, name, list.data(), static_cast<int64_t>(list.size()));
  }
  if (value.contains("doubles")) {
    const auto list = value["doubles"].get<std::vector<double>>();
    tutti_graph_set_f64s(graph, name, list.data(), static_cast<int64_t>(list.size()));
  }
}

tutti_value add_entry(tutti_graph *graph, const json &entry, const std::vector<tutti_value> &inputs,
                      const std::string &name) {
  tutti_graph_begin(graph, entry["op"].get<std::string>().c_str(), 1);
  for (const tutti_value input : inputs)
    tutti_graph_add_input(graph, input);
  for (const auto &[key, value] : entry["attributes"].items())
    set_attribute(graph, key, value);
  if (!name.empty()) tutti_graph_set_string(graph, "name", name.c_str());
  return tutti_graph_end(graph, nullptr, 0);
}

Replicas::Replicas(int count, const std::string &plugin) {
  tutti_options *options = nullptr;
  tutti_error *error = nullptr;
  must(tutti_options_create("context", &options, &error), &error);
  tutti_options_set_i64(options, "logical_devices", count);
  if (!plugin.empty()) tutti_options_set_string(options, "plugin", plugin.c_str());
  must(tutti_context_create(options, &context, &error), &error);
  must(tutti_strategy_create_mirrored(context, nullptr, 0, &strategy, &error), &error);
  tutti_options_unref(options);
}

Replicas::~Replicas() { tutti_strategy_unref(strategy), tutti_context_unref(context); }

}  // namespace golden
