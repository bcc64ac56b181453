// SPDX-License-Identifier: Apache-2.0
#include "graph/serialize.h"

#include "base/hash/checksum.h"
#include "graph/attribute_json.h"

namespace tutti::impl::graph {
namespace {

using base::Json;
using base::JsonArray;
using base::JsonObject;

Json part_to_json(const Region &region) {
  JsonObject object;
  if (!region.parameters.empty()) object.emplace_back("parameters", region.parameters);
  object.emplace_back("results", region.results);
  object.emplace_back("nodes", region.nodes);
  return object;
}

Json part_to_json(const ValueInfo &info) {
  JsonObject object{{"dtype", tensor::name(info.dtype)}, {"dims", dims_to_json(info.dims)}};
  if (!info.name.empty()) object.emplace_back("name", info.name);
  return object;
}

Json part_to_json(const Node &node) {
  JsonObject object{{"op", node.op}};
  if (node.revision != 1) object.emplace_back("revision", node.revision);
  object.emplace_back("name", node.scope_name);
  object.emplace_back("id", node.stable_id);
  if (!node.inputs.empty()) object.emplace_back("inputs", node.inputs);
  if (!node.outputs.empty()) object.emplace_back("outputs", node.outputs);
  if (!node.attributes.empty()) object.emplace_back("attributes", to_json(node.attributes));
  if (!node.regions.empty()) {
    JsonArray regions;
    for (const Region &region : node.regions)
      regions.push_back(part_to_json(region));
    object.emplace_back("regions", std::move(regions));
  }
  return object;
}

}  // namespace

Json to_json(const Graph &graph) {
  JsonArray values, nodes;
  for (const ValueInfo &info : graph.values())
    values.push_back(part_to_json(info));
  for (const Node &node : graph.nodes())
    nodes.push_back(part_to_json(node));
  JsonObject results;
  for (const auto &[name, value] : graph.results())
    results.emplace_back(name, value);
  return JsonObject{{"format", "tutti-graph"},     {"version", 1},
                    {"values", std::move(values)}, {"nodes", std::move(nodes)},
                    {"body", graph.body().nodes},  {"results", std::move(results)}};
}

std::string to_json_text(const Graph &graph) { return to_json(graph).dump(); }

uint64_t fingerprint(const Graph &graph) { return base::fnv1a64(to_json_text(graph)); }

}  // namespace tutti::impl::graph
