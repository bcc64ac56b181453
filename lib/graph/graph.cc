// SPDX-License-Identifier: Apache-2.0
#include "graph/graph.h"

#include <algorithm>
#include <set>

#include "base/text.h"

namespace tutti::impl::graph {
namespace {

std::string text_of_value(const Graph &graph, ValueId id) {
  if (id == kNoValue) return "-";
  const ValueInfo &info = graph.value(id);
  return base::concat("%", id, ":", tensor::name(info.dtype), to_string(info.dims));
}

std::string text_of_uses(const std::vector<ValueId> &ids) {
  std::string text;
  for (size_t i = 0; i < ids.size(); ++i) {
    text += i == 0 ? "" : ", ";
    text += ids[i] == kNoValue ? "-" : base::concat("%", ids[i]);
  }
  return text;
}

std::string text_of_definitions(const Graph &graph, const std::vector<ValueId> &ids) {
  std::string text;
  for (size_t i = 0; i < ids.size(); ++i)
    text += (i == 0 ? "" : ", ") + text_of_value(graph, ids[i]);
  return text;
}

void append_region(const Graph &graph, const Region &region, const std::string &indent, std::string &text);

void append_node(const Graph &graph, const Node &node, const std::string &indent, std::string &text) {
  text += indent;
  if (!node.outputs.empty()) text += text_of_definitions(graph, node.outputs) + " = ";
  text += node.op + "(" + text_of_uses(node.inputs) + ")";
  if (!node.attributes.empty()) {
    text += " {";
    for (auto it = node.attributes.begin(); it != node.attributes.end(); ++it) {
      text += base::concat(it == node.attributes.begin() ? "" : ", ", it->first, ": ", to_string(it->second));
    }
    text += "}";
  }
  text += "  # " + node.scope_name + "\n";
  for (const Region &region : node.regions)
    append_region(graph, region, indent + "  ", text);
}

void append_region(const Graph &graph, const Region &region, const std::string &indent, std::string &text) {
  text += indent + "region(" + text_of_definitions(graph, region.parameters) + ") -> (" + text_of_uses(region.results) +
          ")\n";
  for (const NodeId id : region.nodes)
    append_node(graph, graph.node(id), indent + "  ", text);
}

}  // namespace

Graph::Graph() = default;
Graph::Graph(const Graph &other) = default;
Graph::Graph(Graph &&other) noexcept = default;
Graph &Graph::operator=(const Graph &other) = default;
Graph &Graph::operator=(Graph &&other) noexcept = default;
Graph::~Graph() = default;

std::vector<std::pair<std::string, ValueId>> Graph::inputs() const {
  std::vector<std::pair<std::string, ValueId>> found;
  for (const NodeId id : body_.nodes) {
    const Node &candidate = node(id);
    if (candidate.op != "input" || candidate.outputs.empty()) continue;
    const auto name = candidate.attributes.find("name");
    if (name == candidate.attributes.end()) continue;
    if (const std::string *text = std::get_if<std::string>(&name->second))
      found.emplace_back(*text, candidate.outputs[0]);
  }
  return found;
}

ValueId Graph::input(std::string_view name) const {
  for (const auto &[candidate, value] : inputs()) {
    if (candidate == name) return value;
  }
  return kNoValue;
}

ValueId Graph::result(std::string_view name) const {
  const auto found = results_.find(name);
  return found == results_.end() ? kNoValue : found->second;
}

ValueId Graph::add_value(ValueInfo info) {
  values_.push_back(std::move(info));
  return static_cast<ValueId>(values_.size() - 1);
}

NodeId Graph::add_node(Node node) {
  const NodeId id = static_cast<NodeId>(nodes_.size());
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    ValueInfo &info = mutable_value(node.outputs[i]);
    info.producer = id;
    info.output_index = static_cast<int32_t>(i);
  }
  nodes_.push_back(std::move(node));
  return id;
}

std::vector<std::string> symbols_of(const Graph &graph) {
  std::set<std::string> names;
  for (const ValueInfo &info : graph.values()) {
    for (const Dim &dim : info.dims) {
      for (std::string &name : dim.symbols())
        names.insert(std::move(name));
    }
  }
  return {names.begin(), names.end()};
}

std::string to_text(const Graph &graph) {
  std::string text;
  for (const NodeId id : graph.body().nodes)
    append_node(graph, graph.node(id), "", text);
  for (const auto &[name, value] : graph.results())
    text += base::concat(name, " = %", value, "\n");
  return text;
}

std::vector<NodeId> nodes_needed_for(const Graph &graph, const std::vector<ValueId> &values) {
  std::vector<bool> needed(graph.values().size(), false);
  for (const ValueId value : values) {
    if (graph.contains(value)) needed[static_cast<size_t>(value)] = true;
  }
  std::vector<NodeId> found;
  const std::vector<NodeId> &order = graph.body().nodes;
  for (auto id = order.rbegin(); id != order.rend(); ++id) {
    const Node &node = graph.node(*id);
    const bool used = std::any_of(node.outputs.begin(), node.outputs.end(),
                                  [&](ValueId v) { return needed[static_cast<size_t>(v)]; });
    if (!used) continue;
    found.push_back(*id);
    for (const ValueId input : node.inputs) {
      if (input != kNoValue) needed[static_cast<size_t>(input)] = true;
    }
  }
  std::reverse(found.begin(), found.end());
  return found;
}

}  // namespace tutti::impl::graph
