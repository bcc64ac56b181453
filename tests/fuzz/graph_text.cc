// SPDX-License-Identifier: Apache-2.0
// Any text is a graph or an error; a graph that was read writes itself so that it reads back the same. So do models.
#include <cstdlib>

#include "base/json.h"
#include "graph/serialize.h"

using namespace tutti::impl;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const std::string_view text(reinterpret_cast<const char *>(data), size);
  if (const auto graph = graph::graph_from_text(text); graph.ok()) {
    const std::string written = graph::to_json_text(*graph);
    const auto again = graph::graph_from_text(written);
    if (!again.ok() || graph::to_json_text(*again) != written) std::abort();
  }
  const auto json = base::Json::parse(text);
  if (!json.ok()) return 0;
  if (const auto model = graph::model_from_json(*json); model.ok()) {
    const std::string written = graph::to_json(*model).dump();
    const auto again = graph::model_from_json(graph::to_json(*model));
    if (!again.ok() || graph::to_json(*again).dump() != written) std::abort();
  }
  return 0;
}
