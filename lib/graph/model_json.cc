// SPDX-License-Identifier: Apache-2.0
//
// Models as JSON: the graph and what its values mean.
#include <set>

#include "base/text.h"
#include "graph/attribute_json.h"
#include "graph/constraint.h"
#include "graph/op_registry.h"
#include "graph/serialize.h"
#include "graph/update_rule.h"

namespace tutti::impl::graph {
namespace {

using base::Json;
using base::JsonArray;
using base::JsonObject;
using base::JsonReader;
using NamedValues = std::map<std::string, ValueId, std::less<>>;

Json field_to_json(const std::vector<InputSpec> &inputs) {
  JsonArray array;
  for (const InputSpec &input : inputs)
    array.push_back(JsonObject{{"name", input.name}, {"value", input.value}});
  return array;
}

Json field_to_json(const NamedValues &values) {
  JsonObject object;
  for (const auto &[name, value] : values)
    object.emplace_back(name, value);
  return object;
}

Json field_to_json(const VariableSpec &variable) {
  JsonObject object{{"name", variable.name},
                    {"value", variable.value},
                    {"initializer", variable.initializer.name},
                    {"initializer_attributes", to_json(variable.initializer.attributes)},
                    {"trainable", variable.trainable},
                    {"aggregation", name(variable.aggregation)},
                    {"creator", variable.creator},
                    {"automatic_name", variable.automatic_name}};
  if (variable.constraint.is_on()) {
    JsonArray axes;
    for (const int64_t axis : variable.constraint.axes)
      axes.push_back(axis);
    object.emplace_back("constraint", JsonObject{{"kind", variable.constraint.kind},
                                                 {"limit", variable.constraint.limit},
                                                 {"axes", std::move(axes)}});
  }
  return object;
}

Json field_to_json(const ParameterGroup &group) {
  return JsonObject{
      {"pattern", group.pattern},           {"rate_factor", group.rate_factor}, {"learning_rate", group.learning_rate},
      {"weight_decay", group.weight_decay}, {"frozen", group.frozen},           {"as_vectors", group.as_vectors}};
}

Json field_to_json(const TrainSpec &train) {
  JsonArray slots;
  for (const SlotSpec &slot : train.optimizer.slots) {
    JsonObject written{{"name", slot.name}, {"initial", slot.initial}};
    if (slot.per != SlotPer::element) written.emplace_back("per", std::string(name(slot.per)));
    slots.push_back(std::move(written));
  }
  JsonObject object{{"op", train.optimizer.op},
                    {"revision", train.optimizer.revision},
                    {"attributes", to_json(train.optimizer.attributes)},
                    {"learning_rate", train.optimizer.learning_rate},
                    {"slots", std::move(slots)},
                    {"gradients", field_to_json(train.gradients)}};
  JsonArray rules;
  for (const NodeId rule : train.optimizer.rules)
    rules.push_back(rule);
  if (!rules.empty()) object.emplace_back("rules", std::move(rules));
  if (train.optimizer.lazy) object.emplace_back("lazy", true);
  if (train.optimizer.keeps_unreached) object.emplace_back("keeps_unreached", true);
  JsonArray groups;
  for (const ParameterGroup &group : train.groups)
    groups.push_back(field_to_json(group));
  if (!groups.empty()) object.emplace_back("groups", std::move(groups));
  if (train.clip_global_norm) object.emplace_back("clip_global_norm", *train.clip_global_norm);
  if (train.clip.value > 0) object.emplace_back("clip_value", train.clip.value);
  if (train.clip.norm > 0) object.emplace_back("clip_norm", train.clip.norm);
  if (train.average.is_on()) {
    object.emplace_back(
        "average",
        JsonObject{{"decay", train.average.decay}, {"ramp", train.average.has_ramp}, {"start", train.average.start}});
  }
  return object;
}

class ModelReader {
 public:
  ModelReader(const Json &json, const SerializeLimits &limits) : root_(json, "model"), limits_(limits) {}

  base::Result<Model> read() {
    TUTTI_TRY(read_head());
    TUTTI_ASSIGN(const JsonReader graph, root_.get("graph"));
    TUTTI_ASSIGN(model_.graph, graph_from_json(graph.json(), limits_));
    TUTTI_TRY(read_inputs("features", model_.features));
    TUTTI_TRY(read_inputs("labels", model_.labels));
    TUTTI_TRY(read_variables());
    TUTTI_TRY(check_leaves());
    TUTTI_ASSIGN(model_.outputs, values(root_, "outputs"));
    TUTTI_ASSIGN(model_.metrics, values(root_, "metrics"));
    TUTTI_ASSIGN(model_.assignments, values(root_, "assignments"));
    TUTTI_TRY(check_assignments());
    if (root_.has("loss")) {
      TUTTI_ASSIGN(model_.loss, value(root_, "loss"));
    }
    if (root_.has("train")) TUTTI_TRY(read_train());
    TUTTI_TRY(read_host_scalars());
    return std::move(model_);
  }

 private:
  base::Status read_head() const {
    TUTTI_ASSIGN(const std::string format, root_.get_string("format"));
    if (format != "tutti-model")
      return base::invalid_argument("model.format: is ", base::quoted(format), ", expected 'tutti-model'");
    TUTTI_ASSIGN(const int64_t version, root_.get_integer("version"));
    // Before its keys: a newer version may have others.
    if (version != 1) return base::unimplemented("model.version: is ", version, "; this library reads version 1");
    return root_.only_keys({"format", "version", "graph", "features", "labels", "variables", "outputs", "metrics",
                            "assignments", "loss", "train", "host_scalars"});
  }

  // A value of the top region.
  base::Result<ValueId> value(const JsonReader &reader, std::string_view key) {
    TUTTI_ASSIGN(const int64_t id, get_bounded(reader, key, 0, static_cast<int64_t>(model_.graph.values().size()) - 1));
    if (top_.empty()) find_top();
    if (top_[static_cast<size_t>(id)]) return static_cast<ValueId>(id);
    return base::invalid_argument(reader.path(), ".", key, ": value ", id, " is inside a region");
  }

  void find_top() {
    top_.assign(model_.graph.values().size(), false);
    for (const NodeId id : model_.graph.body().nodes) {
      for (const ValueId output : model_.graph.node(id).outputs)
        top_[static_cast<size_t>(output)] = true;
    }
  }

  // Inputs and variables are what the lists say, each once.
  base::Status check_leaves() const {
    std::set<ValueId> listed;
    for (const auto *const list : {&model_.features, &model_.labels}) {
      for (const InputSpec &input : *list) {
        if (!listed.insert(input.value).second)
          return base::invalid_argument("model: input ", base::quoted(input.name), " is listed twice");
      }
    }
    for (const VariableSpec &variable : model_.variables)
      listed.insert(variable.value);
    for (const Node &node : model_.graph.nodes()) {
      if ((node.op != "input" && node.op != "variable") || listed.contains(node.outputs.front())) continue;
      return base::invalid_argument("model: the ", node.op, " of node ", base::quoted(node.scope_name),
                                    " is in no list of the model's");
    }
    return {};
  }

  base::Result<NamedValues> values(const JsonReader &reader, std::string_view key) {
    TUTTI_ASSIGN(const JsonReader object, reader.get(key));
    TUTTI_ASSIGN(const auto members, object.members());
    NamedValues result;
    for (const auto &[name, unused] : members) {
      TUTTI_ASSIGN(result[name], value(object, name));
    }
    return result;
  }

  // The value under "value" is the output of a node of `op` whose attribute "name" is `name`.
  base::Result<ValueId> leaf(const JsonReader &reader, std::string_view op, const std::string &name) {
    TUTTI_ASSIGN(const ValueId id, value(reader, "value"));
    const Node &node = model_.graph.node(model_.graph.value(id).producer);
    const auto known = node.attributes.find("name");
    if (node.op == op && known != node.attributes.end() && std::get<std::string>(known->second) == name) return id;
    return base::invalid_argument(reader.path(), ": value ", id, " is not the ", op, " ", base::quoted(name));
  }

  base::Result<std::vector<JsonReader>> list(std::string_view key) const {
    TUTTI_ASSIGN(const JsonReader array, root_.get(key));
    return array.elements();
  }

  base::Status read_inputs(std::string_view key, std::vector<InputSpec> &inputs) {
    TUTTI_ASSIGN(const std::vector<JsonReader> elements, list(key));
    for (const JsonReader &reader : elements) {
      InputSpec input;
      TUTTI_ASSIGN(input.name, reader.get_string("name"));
      TUTTI_ASSIGN(input.value, leaf(reader, "input", input.name));
      input.dtype = model_.graph.value(input.value).dtype;
      input.dims = model_.graph.value(input.value).dims;
      inputs.push_back(std::move(input));
    }
    return {};
  }

  base::Status read_variables() {
    TUTTI_ASSIGN(const std::vector<JsonReader> elements, list("variables"));
    for (const JsonReader &reader : elements) {
      VariableSpec variable;
      TUTTI_ASSIGN(variable.name, reader.get_string("name"));
      if (model_.find_variable(variable.name) != nullptr) {
        return base::invalid_argument(reader.path(), ": variable ", base::quoted(variable.name), " is listed twice");
      }
      TUTTI_ASSIGN(variable.value, leaf(reader, "variable", variable.name));
      const ValueInfo &info = model_.graph.value(variable.value);
      variable.dtype = info.dtype;
      variable.dims = constant_shape(info.dims).value_or(std::vector<int64_t>{});
      TUTTI_ASSIGN(variable.initializer.name, reader.get_string("initializer"));
      TUTTI_ASSIGN(const JsonReader attributes, reader.get("initializer_attributes"));
      TUTTI_ASSIGN(variable.initializer.attributes, attributes_from_reader(attributes));
      TUTTI_ASSIGN(variable.trainable, reader.get_boolean("trainable"));
      TUTTI_ASSIGN(variable.aggregation, aggregation(reader));
      TUTTI_ASSIGN(variable.creator, reader.get_string("creator"));
      TUTTI_ASSIGN(variable.automatic_name, reader.get_boolean("automatic_name"));
      if (reader.has("constraint")) TUTTI_TRY(read_constraint(reader, variable));
      model_.variables.push_back(std::move(variable));
    }
    return {};
  }

  static base::Status read_constraint(const JsonReader &reader, VariableSpec &variable) {
    TUTTI_ASSIGN(const JsonReader object, reader.get("constraint"));
    TUTTI_ASSIGN(const std::string kind, object.get_string("kind"));
    TUTTI_ASSIGN(ConstraintSpec constraint, parse_constraint(kind));
    TUTTI_ASSIGN(constraint.limit, object.get_double("limit"));
    TUTTI_ASSIGN(const JsonReader list, object.get("axes"));
    TUTTI_ASSIGN(const std::vector<JsonReader> elements, list.elements());
    for (const JsonReader &element : elements) {
      TUTTI_ASSIGN(const int64_t axis, element.as_integer());
      constraint.axes.push_back(axis);
    }
    base::Result<ConstraintSpec> settled = settle_axes(std::move(constraint), variable.dims.size());
    if (!settled.ok()) return settled.status().wrap(object.path());
    variable.constraint = settled.take();
    return {};
  }

  static base::Result<Aggregation> aggregation(const JsonReader &reader) {
    TUTTI_ASSIGN(const std::string text, reader.get_string("aggregation"));
    for (const Aggregation one : {Aggregation::trained, Aggregation::aggregated, Aggregation::per_replica}) {
      if (name(one) == text) return one;
    }
    return base::invalid_argument(reader.path(), ".aggregation: unknown ", base::quoted(text));
  }

  base::Status check_assignments() const {
    for (const auto &[name, value] : model_.assignments) {
      const VariableSpec *variable = model_.find_variable(name);
      if (variable == nullptr)
        return base::invalid_argument("model.assignments: there is no variable ", base::quoted(name));
      TUTTI_TRY(check_like(*variable, value, "model.assignments"));
    }
    return {};
  }

  base::Status check_like(const VariableSpec &variable, ValueId value, std::string_view path) const {
    const ValueInfo &info = model_.graph.value(value);
    if (info.dtype == variable.dtype && info.dims == to_dims(variable.dims)) return {};
    return base::invalid_argument(path, ".", variable.name, ": value ", value, " is ", tensor::name(info.dtype), " ",
                                  to_string(info.dims), ", the variable is ", tensor::name(variable.dtype), " ",
                                  to_string(to_dims(variable.dims)));
  }

  base::Status read_train() {
    TUTTI_ASSIGN(const JsonReader reader, root_.get("train"));
    TrainSpec train;
    OptimizerSpec &optimizer = train.optimizer;
    TUTTI_ASSIGN(optimizer.op, reader.get_string("op"));
    TUTTI_ASSIGN(const int64_t revision, get_bounded(reader, "revision", 1, INT32_MAX));
    optimizer.revision = static_cast<int32_t>(revision);
    TUTTI_ASSIGN(const OpDefinition *const definition, require_op(optimizer.op, optimizer.revision));
    TUTTI_ASSIGN(const JsonReader attributes, reader.get("attributes"));
    TUTTI_ASSIGN(optimizer.attributes, attributes_from_reader(attributes));
    Node probe;
    probe.op = optimizer.op;
    probe.attributes = optimizer.attributes;
    TUTTI_TRY(check_attributes(*definition, probe));
    TUTTI_ASSIGN(optimizer.learning_rate, value(reader, "learning_rate"));
    TUTTI_ASSIGN(const JsonReader slots, reader.get("slots"));
    TUTTI_ASSIGN(const std::vector<JsonReader> elements, slots.elements());
    for (const JsonReader &element : elements) {
      TUTTI_ASSIGN(SlotSpec slot, read_slot(element));
      optimizer.slots.push_back(std::move(slot));
    }
    TUTTI_TRY(read_rules(reader, optimizer));
    TUTTI_TRY(read_flag(reader, "lazy", optimizer.lazy));
    TUTTI_TRY(read_flag(reader, "keeps_unreached", optimizer.keeps_unreached));
    TUTTI_TRY(read_groups(reader, train));
    if (reader.has("clip_global_norm")) {
      TUTTI_ASSIGN(train.clip_global_norm, reader.get_double("clip_global_norm"));
    }
    TUTTI_TRY(read_limits_and_average(reader, train));
    TUTTI_ASSIGN(train.gradients, values(reader, "gradients"));
    for (const auto &[name, gradient] : train.gradients) {
      const VariableSpec *variable = model_.find_variable(name);
      if (variable == nullptr)
        return base::invalid_argument(reader.path(), ".gradients: there is no variable ", base::quoted(name));
      TUTTI_TRY(check_like(*variable, gradient, reader.path()));
    }
    model_.train = std::move(train);
    return {};
  }

  static base::Result<SlotSpec> read_slot(const JsonReader &reader) {
    SlotSpec slot;
    TUTTI_ASSIGN(slot.name, reader.get_string("name"));
    TUTTI_ASSIGN(slot.initial, reader.get_double("initial"));
    if (!reader.has("per")) return slot;
    TUTTI_ASSIGN(const std::string text, reader.get_string("per"));
    const std::optional<SlotPer> per = slot_per(text);
    if (!per)
      return base::invalid_argument(reader.path(), ".per: ", base::quoted(text), ": expected element, row or column");
    slot.per = *per;
    return slot;
  }

  static base::Status read_flag(const JsonReader &reader, std::string_view name, bool &flag) {
    if (!reader.has(name)) return {};
    TUTTI_ASSIGN(flag, reader.get_boolean(name));
    return {};
  }

  base::Status read_rules(const JsonReader &reader, OptimizerSpec &optimizer) {
    if (!reader.has("rules")) return {};
    TUTTI_ASSIGN(const JsonReader list, reader.get("rules"));
    TUTTI_ASSIGN(const std::vector<JsonReader> elements, list.elements());
    for (const JsonReader &element : elements) {
      TUTTI_ASSIGN(const int64_t id, element.as_integer());
      if (id < 0 || id >= static_cast<int64_t>(model_.graph.nodes().size()) ||
          model_.graph.node(static_cast<NodeId>(id)).op != kUpdateRule)
        return base::invalid_argument(element.path(), ": node ", id, " is no update_rule");
      optimizer.rules.push_back(static_cast<NodeId>(id));
    }
    return {};
  }

  base::Status read_groups(const JsonReader &reader, TrainSpec &train) {
    if (!reader.has("groups")) return {};
    TUTTI_ASSIGN(const JsonReader list, reader.get("groups"));
    TUTTI_ASSIGN(const std::vector<JsonReader> elements, list.elements());
    for (const JsonReader &element : elements) {
      ParameterGroup group;
      TUTTI_ASSIGN(group.pattern, element.get_string("pattern"));
      TUTTI_ASSIGN(group.rate_factor, element.get_double("rate_factor"));
      TUTTI_ASSIGN(const int64_t rate, element.get_integer("learning_rate"));
      if (rate != kNoValue) {
        TUTTI_ASSIGN(group.learning_rate, value(element, "learning_rate"));
      }
      TUTTI_ASSIGN(group.weight_decay, element.get_double("weight_decay"));
      TUTTI_ASSIGN(group.frozen, element.get_boolean("frozen"));
      TUTTI_ASSIGN(group.as_vectors, element.get_boolean("as_vectors"));
      train.groups.push_back(std::move(group));
    }
    return {};
  }

  base::Status read_limits_and_average(const JsonReader &reader, TrainSpec &train) {
    if (reader.has("clip_value")) {
      TUTTI_ASSIGN(train.clip.value, reader.get_double("clip_value"));
    }
    if (reader.has("clip_norm")) {
      TUTTI_ASSIGN(train.clip.norm, reader.get_double("clip_norm"));
    }
    if (reader.has("average")) {
      TUTTI_ASSIGN(const JsonReader average, reader.get("average"));
      TUTTI_ASSIGN(train.average.decay, average.get_double("decay"));
      TUTTI_ASSIGN(train.average.has_ramp, average.get_boolean("ramp"));
      TUTTI_ASSIGN(train.average.start, average.get_integer("start"));
    }
    TUTTI_TRY(train.clip.check());
    return train.average.check();
  }

  base::Status read_host_scalars() {
    TUTTI_ASSIGN(const std::vector<JsonReader> elements, list("host_scalars"));
    for (const JsonReader &reader : elements) {
      HostScalarSpec scalar;
      TUTTI_ASSIGN(scalar.name, reader.get_string("name"));
      TUTTI_ASSIGN(scalar.initial, reader.get_double("initial"));
      model_.host_scalars.push_back(std::move(scalar));
    }
    return {};
  }

  JsonReader root_;
  const SerializeLimits &limits_;
  Model model_;
  std::vector<bool> top_;  // which values are of the top region
};

}  // namespace

Json to_json(const Model &model) {
  JsonArray variables, host_scalars;
  for (const VariableSpec &variable : model.variables)
    variables.push_back(field_to_json(variable));
  for (const HostScalarSpec &scalar : model.host_scalars) {
    host_scalars.push_back(JsonObject{{"name", scalar.name}, {"initial", scalar.initial}});
  }
  JsonObject object{{"format", "tutti-model"},
                    {"version", 1},
                    {"graph", to_json(model.graph)},
                    {"features", field_to_json(model.features)},
                    {"labels", field_to_json(model.labels)},
                    {"variables", std::move(variables)},
                    {"outputs", field_to_json(model.outputs)},
                    {"metrics", field_to_json(model.metrics)},
                    {"assignments", field_to_json(model.assignments)},
                    {"host_scalars", std::move(host_scalars)}};
  if (model.loss != kNoValue) object.emplace_back("loss", model.loss);
  if (model.train) object.emplace_back("train", field_to_json(*model.train));
  return object;
}

base::Result<Model> model_from_json(const Json &json, const SerializeLimits &limits) {
  return ModelReader(json, limits).read();
}

}  // namespace tutti::impl::graph
