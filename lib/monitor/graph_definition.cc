// SPDX-License-Identifier: Apache-2.0
#include "monitor/graph_definition.h"

#include <set>
#include <type_traits>
#include <variant>
#include <vector>

#include "base/text.h"
#include "monitor/event_messages.h"

namespace tutti::impl::monitor {

using graph::Attribute;
using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::Region;
using graph::ValueId;
using protozero::pbf_builder;
using tensor::DType;

namespace {

// Of TensorFlow's types; 0 where it has none such.
message::DataType type_of(DType dtype) {
  switch (dtype) {
    case DType::i8:
      return message::DataType::i8;
    case DType::i16:
      return message::DataType::i16;
    case DType::u16:
      return message::DataType::u16;
    case DType::f32:
      return message::DataType::f32;
    case DType::f64:
      return message::DataType::f64;
    case DType::i32:
      return message::DataType::i32;
    case DType::u8:
      return message::DataType::u8;
    case DType::i64:
      return message::DataType::i64;
    case DType::boolean:
      return message::DataType::boolean;
    case DType::bf16:
      return message::DataType::bf16;
    case DType::f16:
      return message::DataType::f16;
    case DType::bytes:
      return message::DataType::string;
    default:
      return message::DataType::invalid;
  }
}

// "-1" stands for what only a batch tells.
template <typename Message>
void add_shape(pbf_builder<Message> &to, Message field, const graph::Dims &dims) {
  pbf_builder<message::Shape> shape(to, field);
  for (const graph::Dim &dim : dims) {
    pbf_builder<message::Dim> builder(shape, message::Shape::dim);
    builder.add_int64(message::Dim::size, dim.is_constant() ? dim.constant() : -1);
  }
}

class Definition {
 public:
  explicit Definition(const Graph &graph)
      : graph_(graph), names_(graph.nodes().size()), outputs_(graph.values().size()) {
    name_nodes("", graph.body());
    add_nodes(graph.body());
    pbf_builder<message::GraphDef> definition(message_);
    pbf_builder<message::Versions> versions(definition, message::GraphDef::versions);
    versions.add_int32(message::Versions::producer, kGraphDefVersion);
  }
  std::string take() { return std::move(message_); }

 private:
  // The newest that TensorBoard knows by itself; without one it takes the graph for one of old times.
  static constexpr int32_t kGraphDefVersion = 22;

  static std::string region_name(const std::string &owner, size_t region) {
    return base::concat(owner, "/region_", region);
  }

  // Inputs and variables by their own names, where no other node has such a one.
  std::string name_of(const std::string &scope, NodeId id) {
    const Node &node = graph_.node(id);
    const std::string prefix = scope.empty() ? "" : scope + "/";
    const auto own = node.attributes.find("name");
    if (own != node.attributes.end() && node.inputs.empty()) {
      const auto *text = std::get_if<std::string>(&own->second);
      if (text != nullptr && !text->empty() && taken_.insert(prefix + *text).second) return prefix + *text;
    }
    std::string name = prefix + (node.scope_name.empty() ? node.op : node.scope_name);
    if (!taken_.insert(name).second) taken_.insert(name = base::concat(name, "_node_", id));
    return name;
  }

  void name_nodes(const std::string &scope, const Region &region) {
    for (size_t i = 0; i < region.parameters.size(); ++i)
      outputs_[static_cast<size_t>(region.parameters[i])] = base::concat(scope, "/parameter_", i);
    for (const NodeId id : region.nodes) {
      const Node &node = graph_.node(id);
      std::string name = name_of(scope, id);
      for (size_t i = 0; i < node.outputs.size(); ++i) {
        if (graph_.contains(node.outputs[i]))
          outputs_[static_cast<size_t>(node.outputs[i])] = i == 0 ? name : base::concat(name, ":", i);
      }
      for (size_t i = 0; i < node.regions.size(); ++i)
        name_nodes(region_name(name, i), node.regions[i]);
      names_[static_cast<size_t>(id)] = std::move(name);
    }
  }

  void add_nodes(const Region &region) {
    for (const ValueId parameter : region.parameters)
      add_parameter(parameter);
    for (const NodeId id : region.nodes) {
      const Node &node = graph_.node(id);
      const std::string &name = names_[static_cast<size_t>(id)];
      add_node(name, node);
      for (const Region &inner : node.regions)
        add_nodes(inner);
    }
  }

  void add_parameter(ValueId value) {
    pbf_builder<message::GraphDef> definition(message_);
    pbf_builder<message::NodeDef> builder(definition, message::GraphDef::node);
    message::add_text(builder, message::NodeDef::name, outputs_[static_cast<size_t>(value)]);
    message::add_text(builder, message::NodeDef::op, "parameter");
    add_output_shapes(builder, {value});
  }

  void add_node(const std::string &name, const Node &node) {
    pbf_builder<message::GraphDef> definition(message_);
    pbf_builder<message::NodeDef> builder(definition, message::GraphDef::node);
    message::add_text(builder, message::NodeDef::name, name);
    message::add_text(builder, message::NodeDef::op, node.op);
    for (const ValueId input : node.inputs)
      if (graph_.contains(input))
        message::add_text(builder, message::NodeDef::input, outputs_[static_cast<size_t>(input)]);
    add_output_shapes(builder, node.outputs);
    for (const auto &[key, attribute] : node.attributes)
      add_attribute(builder, key, attribute);
  }

  void add_output_shapes(pbf_builder<message::NodeDef> &node, const std::vector<ValueId> &outputs) {
    {
      pbf_builder<message::MapEntry> entry(node, message::NodeDef::attr);
      message::add_text(entry, message::MapEntry::key, "_output_shapes");
      pbf_builder<message::AttrValue> value(entry, message::MapEntry::value);
      pbf_builder<message::AttrList> list(value, message::AttrValue::list);
      for (const ValueId output : outputs)
        if (graph_.contains(output)) add_shape(list, message::AttrList::shape, graph_.value(output).dims);
    }
    if (outputs.empty() || !graph_.contains(outputs.front())) return;
    pbf_builder<message::MapEntry> entry(node, message::NodeDef::attr);
    message::add_text(entry, message::MapEntry::key, "dtype");
    pbf_builder<message::AttrValue> value(entry, message::MapEntry::value);
    value.add_enum(message::AttrValue::type, static_cast<int32_t>(type_of(graph_.value(outputs.front()).dtype)));
  }

  static void add_attribute(pbf_builder<message::NodeDef> &node, const std::string &key, const Attribute &attribute) {
    if (key == "dtype") return;  // of the output
    pbf_builder<message::MapEntry> entry(node, message::NodeDef::attr);
    message::add_text(entry, message::MapEntry::key, key);
    pbf_builder<message::AttrValue> value(entry, message::MapEntry::value);
    if (const auto *flag = std::get_if<bool>(&attribute)) {
      value.add_bool(message::AttrValue::b, *flag);
    } else if (const auto *integer = std::get_if<int64_t>(&attribute)) {
      value.add_int64(message::AttrValue::i, *integer);
    } else if (const auto *number = std::get_if<double>(&attribute)) {
      value.add_float(message::AttrValue::f, static_cast<float>(*number));
    } else if (const auto *text = std::get_if<std::string>(&attribute)) {
      value.add_bytes(message::AttrValue::s, message::as_utf8(*text));
    } else if (const auto *dtype = std::get_if<DType>(&attribute)) {
      value.add_enum(message::AttrValue::type, static_cast<int32_t>(type_of(*dtype)));
    } else if (const auto *dims = std::get_if<graph::Dims>(&attribute)) {
      add_shape(value, message::AttrValue::shape, *dims);
    } else if (const auto *integers = std::get_if<std::vector<int64_t>>(&attribute)) {
      pbf_builder<message::AttrList> list(value, message::AttrValue::list);
      list.add_packed_int64(message::AttrList::i, integers->begin(), integers->end());
    } else {
      value.add_bytes(message::AttrValue::s, message::as_utf8(graph::to_string(attribute)));
    }
  }

  const Graph &graph_;
  std::vector<std::string> names_;    // of nodes
  std::set<std::string> taken_;       // names
  std::vector<std::string> outputs_;  // of values, as inputs of nodes have them
  std::string message_;
};

}  // namespace

std::string graph_definition(const Graph &graph) { return Definition(graph).take(); }

}  // namespace tutti::impl::monitor
