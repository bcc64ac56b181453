// SPDX-License-Identifier: Apache-2.0
//
// What the tests of golden entries share: an entry of a golden file by name in a graph, its tensors, and replicas.
#ifndef TUTTI_TESTS_CAPI_GOLDEN_ENTRIES_H_
#define TUTTI_TESTS_CAPI_GOLDEN_ENTRIES_H_

#include <tutti/tutti.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace golden {

/// Fails the test with the text of the error.
void must(int32_t code, tutti_error *const *error);

std::vector<int64_t> dims_of(const nlohmann::json &tensor);

/// A tensor of a golden file: f32 or i32; its rows from `begin` up to `end`, or all.
tutti_tensor *tensor_of(const nlohmann::json &text, int64_t begin = 0, int64_t end = -1);

void set_attribute(tutti_graph *graph, const std::string &key, const nlohmann::json &value);

/// An entry "op" with "attributes" and the inputs; `name` is the attribute of that name, where it is not empty.
tutti_value add_entry(tutti_graph *graph, const nlohmann::json &entry, const std::vector<tutti_value> &inputs,
                      const std::string &name = "");

struct Replicas {
  tutti_context *context = nullptr;
  tutti_strategy *strategy = nullptr;

  /// `plugin`: the path of the backend; empty: the default one.
  explicit Replicas(int count, const std::string &plugin = "");
  ~Replicas();
  Replicas(const Replicas &) = delete;
  Replicas &operator=(const Replicas &) = delete;
};

}  // namespace golden

#endif  // TUTTI_TESTS_CAPI_GOLDEN_ENTRIES_H_
