// SPDX-License-Identifier: Apache-2.0
//
// Graphs from JSON of unknown origin. The tables are read first, every id checked against their sizes; then the nodes
// are walked in execution order, and each value must be defined once, before its use and in the same region.
#include "base/text.h"
#include "graph/attribute_json.h"
#include "graph/op_registry.h"
#include "graph/serialize.h"

namespace tutti::impl::graph {

using base::Json;
using base::JsonReader;

base::Result<tensor::DType> get_dtype(const JsonReader &reader, std::string_view key) {
  TUTTI_ASSIGN(const std::string text, reader.get_string(key));
  base::Result<tensor::DType> dtype = tensor::parse_dtype(text);
  if (!dtype.ok()) return dtype.status().wrap(reader.path());
  return dtype;
}

base::Result<int64_t> get_bounded(const JsonReader &reader, std::string_view key, int64_t minimum, int64_t maximum) {
  TUTTI_ASSIGN(const int64_t value, reader.get_integer(key));
  if (value >= minimum && value <= maximum) return value;
  return base::invalid_argument(reader.path(), ".", key, ": is ", value, ", expected ", minimum, " to ", maximum);
}

namespace {

class GraphReader {
 public:
  GraphReader(const Json &json, const SerializeLimits &limits) : root_(json, "graph"), limits_(limits) {}

  base::Result<Graph> read() {
    TUTTI_TRY(read_head());
    TUTTI_TRY(read_values());
    TUTTI_TRY(read_nodes());
    TUTTI_ASSIGN(graph_.mutable_body().nodes, ids(root_, "body", nodes_.size()));
    owner_.assign(graph_.values().size(), kUndefined);
    placed_.assign(nodes_.size(), false);
    TUTTI_TRY(walk(graph_.body(), 0));
    TUTTI_TRY(check_complete());
    TUTTI_TRY(read_results());
    return std::move(graph_);
  }

 private:
  static constexpr int32_t kUndefined = -1;

  base::Status read_head() const {
    TUTTI_ASSIGN(const std::string format, root_.get_string("format"));
    if (format != "tutti-graph")
      return base::invalid_argument("graph.format: is ", base::quoted(format), ", expected 'tutti-graph'");
    TUTTI_ASSIGN(const int64_t version, root_.get_integer("version"));
    // Before its keys: a newer version may have others.
    if (version != 1) return base::unimplemented("graph.version: is ", version, "; this library reads version 1");
    return root_.only_keys({"format", "version", "values", "nodes", "body", "results"});
  }

  // The elements of an array, bounded.
  base::Result<std::vector<JsonReader>> list(std::string_view key, size_t limit) const {
    TUTTI_ASSIGN(const JsonReader array, root_.get(key));
    if (array.json().size() > limit) {
      return base::resource_exhausted(array.path(), ": has ", array.json().size(), " elements, the limit is ", limit);
    }
    return array.elements();
  }

  // Ids below `count`; with `absent` also -1. Nothing when the key is missing.
  static base::Result<std::vector<int32_t>> ids(const JsonReader &reader, std::string_view key, size_t count,
                                                bool absent = false) {
    std::vector<int32_t> result;
    if (!reader.has(key)) return result;
    TUTTI_ASSIGN(const std::vector<int64_t> numbers, reader.get_integers(key));
    for (const int64_t number : numbers) {
      if (number >= static_cast<int64_t>(count) || number < (absent ? -1 : 0)) {
        return base::invalid_argument(reader.path(), ".", key, ": has id ", number, ", expected 0 to ",
                                      static_cast<int64_t>(count) - 1);
      }
      result.push_back(static_cast<int32_t>(number));
    }
    return result;
  }

  base::Status read_values() {
    TUTTI_ASSIGN(const std::vector<JsonReader> values, list("values", limits_.values));
    for (const JsonReader &value : values) {
      TUTTI_TRY(value.only_keys({"dtype", "dims", "name"}));
      ValueInfo info;
      TUTTI_ASSIGN(info.dtype, get_dtype(value, "dtype"));
      TUTTI_ASSIGN(const JsonReader dims, value.get("dims"));
      TUTTI_ASSIGN(info.dims, dims_from_json(dims));
      if (info.dims.size() > limits_.rank) {
        return base::invalid_argument(dims.path(), ": has rank ", info.dims.size(), ", the limit is ", limits_.rank);
      }
      TUTTI_ASSIGN(info.name, value.get_string("name", ""));
      graph_.add_value(std::move(info));
    }
    return {};
  }

  base::Status read_nodes() {
    TUTTI_ASSIGN(nodes_, list("nodes", limits_.nodes));
    for (const JsonReader &reader : nodes_) {
      TUTTI_TRY(reader.only_keys({"op", "revision", "name", "id", "inputs", "outputs", "attributes", "regions"}));
      TUTTI_ASSIGN(Node node, read_node(reader));
      // The producer is set when the node is walked; until then ids are only known to exist.
      const std::vector<ValueId> outputs = std::move(node.outputs);
      node.outputs.clear();
      const NodeId id = graph_.add_node(std::move(node));
      graph_.mutable_node(id).outputs = outputs;
    }
    return {};
  }

  base::Result<Node> read_node(const JsonReader &reader) const {
    const size_t values = graph_.values().size();
    Node node;
    TUTTI_ASSIGN(node.op, reader.get_string("op"));
    if (reader.has("revision")) {
      TUTTI_ASSIGN(const int64_t revision, get_bounded(reader, "revision", 1, INT32_MAX));
      node.revision = static_cast<int32_t>(revision);
    }
    TUTTI_ASSIGN(node.scope_name, reader.get_string("name"));
    if (const auto known = require_op(node.op, node.revision); !known.ok()) {
      return known.status().wrap(base::concat(reader.path(), " (node ", base::quoted(node.scope_name), ")"));
    }
    TUTTI_ASSIGN(node.stable_id, reader.get_integer("id"));
    TUTTI_ASSIGN(node.inputs, ids(reader, "inputs", values, true));
    TUTTI_ASSIGN(node.outputs, ids(reader, "outputs", values));
    if (reader.has("attributes")) {
      TUTTI_ASSIGN(const JsonReader attributes, reader.get("attributes"));
      TUTTI_ASSIGN(node.attributes, attributes_from_reader(attributes));
    }
    if (!reader.has("regions")) return node;
    TUTTI_ASSIGN(const JsonReader array, reader.get("regions"));
    TUTTI_ASSIGN(const std::vector<JsonReader> regions, array.elements());
    for (const JsonReader &region : regions) {
      TUTTI_TRY(region.only_keys({"parameters", "results", "nodes"}));
      Region read;
      TUTTI_ASSIGN(read.parameters, ids(region, "parameters", values));
      TUTTI_ASSIGN(read.results, ids(region, "results", values, true));
      TUTTI_ASSIGN(read.nodes, ids(region, "nodes", nodes_.size()));
      node.regions.push_back(std::move(read));
    }
    return node;
  }

  base::Status define(ValueId value, int32_t region, const std::string &path) {
    int32_t &owner = owner_[static_cast<size_t>(value)];
    if (owner != kUndefined) return base::invalid_argument(path, ": value ", value, " is defined twice");
    owner = region;
    return {};
  }

  base::Status require_defined(ValueId value, int32_t region, const std::string &path) const {
    if (owner_[static_cast<size_t>(value)] == region) return {};
    return base::invalid_argument(path, ": value ", value, " is used before it is defined in its region");
  }

  base::Status walk(const Region &region, size_t depth) {
    if (depth > limits_.region_depth)
      return base::resource_exhausted("graph: regions nest deeper than ", limits_.region_depth);
    const int32_t serial = region_count_++;
    for (size_t i = 0; i < region.parameters.size(); ++i) {
      TUTTI_TRY(define(region.parameters[i], serial, "a region's parameters"));
      graph_.mutable_value(region.parameters[i]).output_index = static_cast<int32_t>(i);
    }
    for (const NodeId id : region.nodes)
      TUTTI_TRY(walk_node(id, serial, depth));
    for (const ValueId result : region.results) {
      if (result != kNoValue) TUTTI_TRY(require_defined(result, serial, "a region's results"));
    }
    return {};
  }

  base::Status walk_node(NodeId id, int32_t region, size_t depth) {
    const std::string &path = nodes_[static_cast<size_t>(id)].path();
    if (placed_[static_cast<size_t>(id)])
      return base::invalid_argument(path, ": occurs twice in the order of execution");
    placed_[static_cast<size_t>(id)] = true;
    for (const ValueId input : graph_.node(id).inputs) {
      if (input != kNoValue) TUTTI_TRY(require_defined(input, region, path));
    }
    for (size_t i = 0; i < graph_.node(id).regions.size(); ++i)
      TUTTI_TRY(walk(graph_.node(id).regions[i], depth + 1));
    Node &node = graph_.mutable_node(id);
    const base::Result<std::vector<ValueInfo>> inferred = infer_outputs(graph_, node);
    if (!inferred.ok()) return inferred.status().wrap(path);
    if (inferred->size() != node.outputs.size()) {
      return base::invalid_argument(path, ": has ", node.outputs.size(), " outputs, expected ", inferred->size());
    }
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      TUTTI_TRY(define(node.outputs[i], region, path));
      ValueInfo &info = graph_.mutable_value(node.outputs[i]);
      const ValueInfo &expected = (*inferred)[i];
      if (info.dtype != expected.dtype || info.dims != expected.dims) {
        return base::invalid_argument(path, ": value ", node.outputs[i], " is ", tensor::name(info.dtype), " ",
                                      to_string(info.dims), ", expected ", tensor::name(expected.dtype), " ",
                                      to_string(expected.dims));
      }
      info.producer = id;
      info.output_index = static_cast<int32_t>(i);
    }
    return {};
  }

  base::Status check_complete() const {
    for (size_t id = 0; id < placed_.size(); ++id) {
      if (!placed_[id]) return base::invalid_argument(nodes_[id].path(), ": is in no region");
    }
    for (size_t id = 0; id < owner_.size(); ++id) {
      if (owner_[id] == kUndefined) return base::invalid_argument("graph.values: value ", id, " is never defined");
    }
    return {};
  }

  base::Status read_results() {
    TUTTI_ASSIGN(const JsonReader results, root_.get("results"));
    TUTTI_ASSIGN(const auto members, results.members());
    for (const auto &[name, reader] : members) {
      TUTTI_ASSIGN(const int64_t value,
                   get_bounded(results, name, 0, static_cast<int64_t>(graph_.values().size()) - 1));
      if (owner_[static_cast<size_t>(value)] != 0)
        return base::invalid_argument(reader.path(), ": value ", value, " is inside a region");
      graph_.set_result(name, static_cast<ValueId>(value));
    }
    return {};
  }

  JsonReader root_;
  const SerializeLimits &limits_;
  Graph graph_;
  std::vector<JsonReader> nodes_;
  std::vector<int32_t> owner_;  // serial number of the region that defines a value
  std::vector<bool> placed_;
  int32_t region_count_ = 0;
};

}  // namespace

base::Result<Graph> graph_from_json(const Json &json, const SerializeLimits &limits) {
  return GraphReader(json, limits).read();
}

base::Result<Graph> graph_from_text(std::string_view text, const SerializeLimits &limits) {
  TUTTI_ASSIGN(const Json json, Json::parse(text, {.max_bytes = limits.text_bytes}));
  return graph_from_json(json, limits);
}

}  // namespace tutti::impl::graph
