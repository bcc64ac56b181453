// SPDX-License-Identifier: Apache-2.0
//
// The functions of <tutti/graph.h>. Each finds the graph, does its part on the builder, and leaves mistakes there.
#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "base/text.h"
#include "capi/graph_c.h"
#include "capi/guard.h"
#include "capi/tensor_c.h"
#include "data/routine/image_file.h"
#include "estimator/model/saved_model.h"
#include "graph/autodiff.h"
#include "graph/initializer.h"
#include "nn/registry.h"

using namespace tutti::impl;
using namespace tutti::impl::capi;

namespace {

using graph::kNoValue;
using graph::ValueId;

constexpr tutti_value kInvalid{-1};

/// Runs `body(object, builder)` when the graph is open and this is its thread; `otherwise` if not, and where it throws,
/// which is the graph's error.
template <typename T, typename Body>
T on_graph(const tutti_graph *graph, T otherwise, Body &&body) noexcept {
  const Ref<GraphObject> object = peek(graph, graph_handles);
  if (!object || object->builder() == nullptr) return otherwise;
  try {
    return body(*object, *object->builder());
  } catch (...) {
    object->builder()->fail(base::status_of_exception());
    return otherwise;
  }
}

/// The same for functions that give nothing.
template <typename Body>
void change_graph(const tutti_graph *graph, Body &&body) noexcept {
  on_graph(graph, 0, [&](GraphObject &object, graph::GraphBuilder &builder) {
    body(object, builder);
    return 0;
  });
}

bool check_text(graph::GraphBuilder &builder, const char *text, std::string_view argument) {
  if (text != nullptr) return true;
  builder.fail(base::invalid_argument("argument '", argument, "' is NULL"));
  return false;
}

bool check_list(graph::GraphBuilder &builder, const void *values, int64_t count, std::string_view what) {
  if (count >= 0 && (values != nullptr || count == 0)) return true;
  if (count < 0) {
    builder.fail(base::invalid_argument("'", what, "': expected a count of 0 or more, got ", count));
  } else {
    builder.fail(base::invalid_argument("'", what, "': expected an array, got NULL with a count of ", count));
  }
  return false;
}

/// Sets an attribute of the op being written.
void set_attribute(tutti_graph *graph, const char *key, graph::Attribute value) {
  change_graph(graph, [&](GraphObject &object, graph::GraphBuilder &builder) {
    if (!check_text(builder, key, "key")) return;
    GraphObject::Pending *const op = object.open_op();
    if (op == nullptr) {
      builder.fail(base::failed_precondition("attribute '", key, "' was set, but no op was begun"));
      return;
    }
    op->attributes.insert_or_assign(key, std::move(value));
  });
}

/// What the op's definition expects where the host can only say "integers" or "integer".
graph::Attribute convert(const graph::AttributeDefinition *definition, graph::Attribute value) {
  if (definition == nullptr) return value;
  if (definition->type == graph::AttributeType::dims && std::holds_alternative<std::vector<int64_t>>(value)) {
    graph::Dims dims;
    for (const int64_t size : std::get<std::vector<int64_t>>(value))
      dims.push_back(size == TUTTI_DIM_BATCH ? graph::GraphBuilder::batch() : graph::Dim(size));
    return dims;
  }
  if (definition->type == graph::AttributeType::dtype && std::holds_alternative<int64_t>(value)) {
    const auto dtype = to_dtype(static_cast<int32_t>(std::get<int64_t>(value)));
    if (dtype.ok()) return *dtype;
  }
  if (definition->type == graph::AttributeType::f64 && std::holds_alternative<int64_t>(value))
    return static_cast<double>(std::get<int64_t>(value));
  return value;
}

graph::Attributes convert_all(const graph::OpDefinition *definition, graph::Attributes attributes) {
  for (auto &[key, value] : attributes)
    value = convert(definition != nullptr ? definition->find_attribute(key) : nullptr, std::move(value));
  return attributes;
}

std::vector<ValueId> add_op(graph::GraphBuilder &builder, GraphObject::Pending pending) {
  graph::Node node;
  const graph::OpDefinition *definition = graph::find_op(pending.op, pending.revision);
  node.op = std::move(pending.op);
  node.revision = pending.revision;
  node.inputs = std::move(pending.inputs);
  while (!node.inputs.empty() && node.inputs.back() == kNoValue)
    node.inputs.pop_back();
  node.attributes = convert_all(definition, std::move(pending.attributes));
  if (definition != nullptr && !definition->is_public) {
    builder.fail(base::invalid_argument("op '", node.op, "' is internal to the library"));
    return {};
  }
  // The builder writes a mean over the batch so that it holds for a batch in pieces too.
  if (definition != nullptr && node.op == "reduce_mean")
    return {builder.op(node.op, node.inputs, std::move(node.attributes))};
  return builder.add_node(std::move(node));
}

std::vector<ValueId> end_op(GraphObject &object, graph::GraphBuilder &builder) {
  GraphObject::Pending pending = std::move(object.pending.back());
  object.pending.pop_back();
  if (pending.regions > 0) return builder.end_op();
  if (pending.invalid || !builder.ok()) return {};
  if (nn::find_definition(pending.op, pending.revision) == nullptr) return add_op(builder, std::move(pending));
  std::vector<ValueId> further;
  std::vector<ValueId> outputs = {nn::expand(builder, pending.op, pending.revision, pending.inputs,
                                             std::move(pending.attributes),
                                             {.training = object.mode() == TUTTI_MODE_TRAIN}, &further)};
  outputs.insert(outputs.end(), further.begin(), further.end());
  return outputs;
}

}  // namespace

tutti_value tutti_graph_get_feature(tutti_graph *graph, const char *name) {
  return on_graph(graph, kInvalid, [&](GraphObject &object, graph::GraphBuilder &) {
    return object.to_value(object.component(name, data::Role::feature));
  });
}

tutti_value tutti_graph_get_label(tutti_graph *graph, const char *name) {
  return on_graph(graph, kInvalid, [&](GraphObject &object, graph::GraphBuilder &) {
    return object.to_value(object.component(name, data::Role::label));
  });
}

tutti_value tutti_graph_get_sample_weight(tutti_graph *graph, const char *name) {
  return on_graph(graph, kInvalid, [&](GraphObject &object, graph::GraphBuilder &builder) {
    if (!check_text(builder, name, "name")) return kInvalid;
    const ValueId weight = object.find_component(name, data::Role::weight);
    return weight == kNoValue ? tutti_no_value() : object.to_value(weight);
  });
}

int32_t tutti_graph_get_mode(const tutti_graph *graph) {
  return on_graph(graph, 0, [&](GraphObject &object, graph::GraphBuilder &) { return object.mode(); });
}

const char *tutti_graph_get_params(const tutti_graph *graph) {
  return on_graph(graph, static_cast<const char *>(nullptr),
                  [&](GraphObject &object, graph::GraphBuilder &) { return object.params().c_str(); });
}

void tutti_graph_set_output(tutti_graph *graph, const char *name, tutti_value value) {
  change_graph(graph, [&](GraphObject &object, graph::GraphBuilder &builder) {
    if (check_text(builder, name, "name")) builder.set_output(name, object.from_value(value));
  });
}

void tutti_graph_set_loss(tutti_graph *graph, tutti_value loss) {
  change_graph(graph,
               [&](GraphObject &object, graph::GraphBuilder &builder) { builder.set_loss(object.from_value(loss)); });
}

void tutti_graph_add_metric(tutti_graph *graph, const char *name, tutti_value value) {
  change_graph(graph, [&](GraphObject &object, graph::GraphBuilder &builder) {
    if (check_text(builder, name, "name")) builder.add_metric(name, object.from_value(value));
  });
}

void tutti_graph_name_classes(tutti_graph *graph, const char *metric, const char *const *classes, int64_t count) {
  change_graph(graph, [&](GraphObject &, graph::GraphBuilder &builder) {
    if (!check_text(builder, metric, "metric") || !check_list(builder, classes, count, "classes")) return;
    std::vector<std::string> names;
    for (int64_t i = 0; i < count; ++i) {
      if (!check_text(builder, classes[i], base::concat("classes[", i, "]"))) return;
      names.emplace_back(classes[i]);
    }
    builder.name_classes(metric, names);
  });
}

namespace {

void add_summary(tutti_graph *graph, const char *name, graph::SummarySpec summary, tutti_value value) {
  change_graph(graph, [&](GraphObject &object, graph::GraphBuilder &builder) {
    if (!check_text(builder, name, "name") || object.mode() == TUTTI_MODE_PREDICT) return;
    summary.name = name;
    const bool is_image = summary.kind == graph::SummaryKind::image;
    if (summary.kind != graph::SummaryKind::text) summary.value = object.from_value(value);
    if (object.mode() == 0) {
      builder.fail(base::invalid_argument("summary '", name, "': models have summaries, maps of datasets have none"));
    } else if (is_image && !data::PngReader::is_built()) {
      builder.fail(base::unimplemented("summary '", name, "': this build of tutti has no libspng, which makes images"));
    } else {
      builder.add_summary(std::move(summary));
    }
  });
}

}  // namespace

void tutti_summary_scalar(tutti_graph *graph, const char *name, tutti_value value) {
  add_summary(graph, name, {.kind = graph::SummaryKind::scalar, .name = {}}, value);
}

void tutti_summary_histogram(tutti_graph *graph, const char *name, tutti_value value) {
  add_summary(graph, name, {.kind = graph::SummaryKind::histogram, .name = {}}, value);
}

void tutti_summary_image(tutti_graph *graph, const char *name, tutti_value images, int64_t max_images) {
  constexpr int64_t usual = 3;
  add_summary(graph, name,
              {.kind = graph::SummaryKind::image, .name = {}, .most_images = max_images == 0 ? usual : max_images},
              images);
}

void tutti_summary_text(tutti_graph *graph, const char *name, const char *text) {
  change_graph(graph, [&](GraphObject &, graph::GraphBuilder &builder) { check_text(builder, text, "text"); });
  if (text == nullptr) return;
  add_summary(graph, name, {.kind = graph::SummaryKind::text, .name = {}, .text = text}, kInvalid);
}

void tutti_graph_set_gradient_clip_norm(tutti_graph *graph, double norm) {
  change_graph(graph, [&](GraphObject &, graph::GraphBuilder &builder) {
    if (norm > 0 && std::isfinite(norm)) {
      builder.set_clip_global_norm(norm);
    } else {
      builder.fail(base::invalid_argument("the gradient clip norm must be above 0 and finite, got ", norm));
    }
  });
}

void tutti_graph_begin(tutti_graph *graph, const char *op, int32_t revision) {
  change_graph(graph, [&](GraphObject &object, graph::GraphBuilder &builder) {
    if (!check_text(builder, op, "op")) return;
    if (const GraphObject::Pending *const before = object.open_op()) {
      builder.fail(base::failed_precondition("op '", op, "' was begun before op '", before->op, "' was ended"));
      return;
    }
    object.pending.push_back({op, revision, {}, {}});
  });
}

void tutti_graph_add_input(tutti_graph *graph, tutti_value value) {
  change_graph(graph, [&](GraphObject &object, graph::GraphBuilder &builder) {
    GraphObject::Pending *const op = object.open_op();
    if (op == nullptr) {
      builder.fail(base::failed_precondition("an input was added, but no op was begun"));
      return;
    }
    if (value.id < 0) op->invalid = true;
    op->inputs.push_back(object.from_value(value));
  });
}

void tutti_graph_set_bool(tutti_graph *graph, const char *key, uint8_t value) { set_attribute(graph, key, value != 0); }

void tutti_graph_set_i64(tutti_graph *graph, const char *key, int64_t value) { set_attribute(graph, key, value); }

void tutti_graph_set_f64(tutti_graph *graph, const char *key, double value) { set_attribute(graph, key, value); }

void tutti_graph_set_string(tutti_graph *graph, const char *key, const char *value) {
  change_graph(graph, [&](GraphObject &, graph::GraphBuilder &builder) {
    if (value != nullptr) return set_attribute(graph, key, std::string(value));
    builder.fail(base::invalid_argument("attribute '", key != nullptr ? key : "", "': argument 'value' is NULL"));
  });
}

void tutti_graph_set_i64s(tutti_graph *graph, const char *key, const int64_t *values, int64_t count) {
  change_graph(graph, [&](GraphObject &, graph::GraphBuilder &builder) {
    if (check_text(builder, key, "key") && check_list(builder, values, count, key))
      set_attribute(graph, key, std::vector<int64_t>(values, values + count));
  });
}

void tutti_graph_set_f64s(tutti_graph *graph, const char *key, const double *values, int64_t count) {
  change_graph(graph, [&](GraphObject &, graph::GraphBuilder &builder) {
    if (check_text(builder, key, "key") && check_list(builder, values, count, key))
      set_attribute(graph, key, std::vector<double>(values, values + count));
  });
}

void tutti_graph_set_tensor(tutti_graph *graph, const char *key, const tutti_tensor *value) {
  change_graph(graph, [&](GraphObject &, graph::GraphBuilder &builder) {
    auto tensor = find_tensor(value, "value");
    if (tensor.ok()) {
      set_attribute(graph, key, tensor.take());
    } else {
      builder.fail(tensor.status().wrap(base::concat("attribute '", key != nullptr ? key : "", "'")));
    }
  });
}

tutti_value tutti_graph_end(tutti_graph *graph, tutti_value *more, int64_t more_count) {
  return on_graph(graph, kInvalid, [&](GraphObject &object, graph::GraphBuilder &builder) {
    if (object.pending.empty()) {
      builder.fail(base::failed_precondition("an op was ended, but none was begun"));
      return kInvalid;
    }
    if (object.pending.back().in_region) {
      builder.fail(base::failed_precondition("op '", object.pending.back().op, "' was ended within its region"));
      return kInvalid;
    }
    const std::vector<ValueId> outputs = end_op(object, builder);
    for (int64_t i = 0; more != nullptr && i < more_count; ++i)
      more[i] = size_t(i) + 1 < outputs.size() ? object.to_value(outputs[size_t(i) + 1]) : kInvalid;
    return outputs.empty() ? kInvalid : object.to_value(outputs[0]);
  });
}

namespace {

/// Why no region can begin here; ok where one can.
Status check_region(const GraphObject::Pending *op) {
  if (op == nullptr) return base::failed_precondition("a region was begun, but no op was");
  constexpr std::string_view written[] = {"call", "cond", "custom_gradient", "scan", "update_rule"};
  const graph::OpDefinition *const definition = graph::find_op(op->op, op->revision);
  const bool is_written = definition != nullptr && std::ranges::find(written, op->op) != std::end(written);
  const size_t regions = is_written ? definition->regions.size() : 0;
  if (static_cast<size_t>(op->regions) < regions) return Status();
  return base::failed_precondition("op '", op->op, "' has ", regions, " regions, and one more was begun");
}

}  // namespace

void tutti_graph_begin_region(tutti_graph *graph, tutti_value *parameters, int64_t count) {
  change_graph(graph, [&](GraphObject &object, graph::GraphBuilder &builder) {
    if (!check_list(builder, parameters, count, "parameters")) return;
    std::fill(parameters, parameters + count, kInvalid);
    GraphObject::Pending *const op = object.open_op();
    if (const Status status = check_region(op); !status.ok()) {
      builder.fail(status);
      if (op == nullptr) return;
    }
    if (op->regions++ == 0)
      builder.begin_op(op->op, op->inputs, convert_all(graph::find_op(op->op), std::move(op->attributes)));
    op->in_region = true;
    const std::vector<ValueId> made = builder.begin_region();
    if (builder.ok() && made.size() != static_cast<size_t>(count))
      builder.fail(
          base::invalid_argument("a region of ", op->op, " has ", made.size(), " parameters, got room for ", count));
    for (size_t i = 0; builder.ok() && i < made.size(); ++i)
      parameters[i] = object.to_value(made[i]);
  });
}

void tutti_graph_end_region(tutti_graph *graph, const tutti_value *results, int64_t count) {
  change_graph(graph, [&](GraphObject &object, graph::GraphBuilder &builder) {
    if (object.pending.empty() || !object.pending.back().in_region) {
      builder.fail(base::failed_precondition("a region was ended, but none was begun",
                                             object.pending.empty() ? "" : " by the last op"));
      return;
    }
    std::vector<ValueId> values;
    if (check_list(builder, results, count, "results")) {
      for (int64_t i = 0; i < count; ++i)
        values.push_back(object.from_value(results[i]));
    }
    builder.end_region(values);
    object.pending.back().in_region = false;
  });
}

tutti_value tutti_graph_get_completed_steps(tutti_graph *graph) {
  return on_graph(graph, kInvalid, [&](GraphObject &object, graph::GraphBuilder &builder) {
    return object.to_value(builder.run_scalar("step", tensor::DType::f32));
  });
}

void tutti_graph_push_scope(tutti_graph *graph, const char *name) {
  change_graph(graph, [&](GraphObject &, graph::GraphBuilder &builder) {
    if (check_text(builder, name, "name")) builder.push_scope(name);
  });
}

void tutti_graph_pop_scope(tutti_graph *graph) {
  change_graph(graph, [&](GraphObject &, graph::GraphBuilder &builder) {
    if (builder.scope().empty()) {
      builder.fail(base::failed_precondition("a scope was popped, but none was pushed"));
    } else {
      builder.pop_scope();
    }
  });
}

tutti_value tutti_graph_constant(tutti_graph *graph, int32_t dtype, double value) {
  return on_graph(graph, kInvalid, [&](GraphObject &object, graph::GraphBuilder &builder) {
    const auto type = to_dtype(dtype);
    return object.to_value(type.ok() ? builder.constant(value, *type) : builder.fail(type.status()));
  });
}

tutti_value tutti_graph_constant_tensor(tutti_graph *graph, const tutti_tensor *tensor) {
  return on_graph(graph, kInvalid, [&](GraphObject &object, graph::GraphBuilder &builder) {
    const auto value = find_tensor(tensor, "tensor");
    return object.to_value(value.ok() ? builder.constant(*value) : builder.fail(value.status()));
  });
}

tutti_value tutti_graph_host_scalar(tutti_graph *graph, const char *name, double initial_value) {
  return on_graph(graph, kInvalid, [&](GraphObject &object, graph::GraphBuilder &builder) {
    if (!check_text(builder, name, "name")) return kInvalid;
    return object.to_value(builder.host_scalar(name, initial_value));
  });
}

namespace {

/// The parameter of an initializer without arguments goes under the name that it has for it.
Result<graph::InitializerSpec> initializer_of(const std::string &text, double parameter) {
  TUTTI_ASSIGN(graph::InitializerSpec spec, graph::parse_initializer(text));
  if (text.find('(') != std::string::npos) return spec;
  if (spec.name == "constant") spec.attributes = {{"value", parameter}};
  if (spec.name == "normal" || spec.name == "truncated_normal") spec.attributes = {{"stddev", parameter}};
  if (spec.name == "uniform") spec.attributes = {{"low", -parameter}, {"high", parameter}};
  const bool has_gain = spec.name == "orthogonal" || spec.name == "identity";
  if (has_gain && parameter != 0) spec.attributes = {{"gain", parameter}};
  return spec;
}

}  // namespace

tutti_value tutti_graph_variable(tutti_graph *graph, const char *name, int32_t dtype, const int64_t *dims, int64_t rank,
                                 const char *initializer, double parameter, uint8_t trainable) {
  return on_graph(graph, kInvalid, [&](GraphObject &object, graph::GraphBuilder &builder) {
    if (!check_text(builder, name, "name") || !check_text(builder, initializer, "initializer")) return kInvalid;
    if (!check_list(builder, dims, rank, "dims")) return kInvalid;
    const auto type = to_dtype(dtype);
    auto spec = initializer_of(initializer, parameter);
    if (!type.ok() || !spec.ok()) {
      builder.fail(type.ok() ? spec.status() : type.status());
      return kInvalid;
    }
    const graph::VariableOptions options{
        .trainable = trainable != 0,
        .aggregation = trainable != 0 ? graph::Aggregation::trained : graph::Aggregation::aggregated};
    const ValueId value = builder.variable(name, *type, {dims, dims + rank}, spec.take(), options);
    return object.to_value(value);
  });
}

void tutti_graph_set_initial_value(tutti_graph *graph, const char *variable, const tutti_tensor *value) {
  change_graph(graph, [&](GraphObject &, graph::GraphBuilder &builder) {
    if (!check_text(builder, variable, "variable")) return;
    const auto tensor = find_tensor(value, "value");
    if (!tensor.ok()) builder.fail(tensor.status());
    if (tensor.ok()) builder.set_initial_value(variable, *tensor);
  });
}

tutti_value tutti_graph_add_saved_model(tutti_graph *graph, const char *path, const char *feature, tutti_value input,
                                        const char *output) {
  return on_graph(graph, kInvalid, [&](GraphObject &object, graph::GraphBuilder &builder) {
    if (!check_text(builder, path, "path")) return kInvalid;
    if (object.mode() == 0) {
      builder.fail(base::failed_precondition("a saved model is a part of models only, not of the maps of datasets"));
      return kInvalid;
    }
    estimator::model::SavedModel saved{.path = path, .output = output != nullptr ? output : ""};
    saved.has_weights = object.mode() == TUTTI_MODE_TRAIN;
    saved.feature = feature != nullptr ? feature : "";
    saved.input = object.from_value(input);
    return object.to_value(estimator::model::add_saved_model(builder, saved));
  });
}

namespace {

/// The name of a variable's value; empty with an error in the builder when it is none.
std::string variable_name(GraphObject &object, graph::GraphBuilder &builder, tutti_value value,
                          std::string_view argument) {
  const ValueId id = object.from_value(value);
  for (const graph::VariableSpec &variable : builder.model().variables) {
    if (id != kNoValue && variable.value == id) return variable.name;
  }
  builder.fail(base::invalid_argument(argument, ": expected the value of a variable"));
  return "";
}

}  // namespace

void tutti_graph_assign(tutti_graph *graph, tutti_value variable, tutti_value value) {
  change_graph(graph, [&](GraphObject &object, graph::GraphBuilder &builder) {
    const std::string name = variable_name(object, builder, variable, "variable");
    if (!name.empty()) builder.assign(name, object.from_value(value));
  });
}

int32_t tutti_graph_get_dtype(const tutti_graph *graph, tutti_value value) {
  return on_graph(graph, 0, [&](GraphObject &object, graph::GraphBuilder &builder) {
    const ValueId id = object.from_value(value);
    return id == kNoValue ? 0 : static_cast<int32_t>(builder.dtype(id));
  });
}

int64_t tutti_graph_get_rank(const tutti_graph *graph, tutti_value value) {
  return on_graph(graph, int64_t{-1}, [&](GraphObject &object, graph::GraphBuilder &builder) {
    const ValueId id = object.from_value(value);
    return id == kNoValue ? int64_t{-1} : static_cast<int64_t>(builder.rank(id));
  });
}

int64_t tutti_graph_get_dim(const tutti_graph *graph, tutti_value value, int64_t axis) {
  return on_graph(graph, int64_t{-1}, [&](GraphObject &object, graph::GraphBuilder &builder) -> int64_t {
    const ValueId id = object.from_value(value);
    if (id == kNoValue || axis < 0 || axis >= static_cast<int64_t>(builder.rank(id))) return -1;
    const graph::Dim &dim = builder.dims(id)[static_cast<size_t>(axis)];
    return dim.is_constant() ? dim.constant() : -1;
  });
}

int32_t tutti_graph_check(const tutti_graph *graph, tutti_error **err) {
  return guard(err, [&]() -> Status {
    TUTTI_ASSIGN(const Ref<GraphObject> object, find(graph, graph_handles, "graph"));
    if (!object->is_here()) return object->check_threads();
    if (object->builder() == nullptr)
      return base::invalid_argument("argument 'graph': the callback that the graph was lent to has returned");
    return object->builder()->status();
  });
}

void tutti_gradients(tutti_graph *graph, tutti_value target, const tutti_value *wrt, int64_t count, tutti_value *out) {
  change_graph(graph, [&](GraphObject &object, graph::GraphBuilder &builder) {
    if (!check_list(builder, wrt, count, "wrt") || !check_list(builder, out, count, "out")) return;
    for (int64_t i = 0; i < count; ++i)
      out[i] = kInvalid;
    std::vector<ValueId> values;
    for (int64_t i = 0; i < count; ++i)
      values.push_back(object.from_value(wrt[i]));
    const ValueId targets[] = {object.from_value(target)}, seeds[] = {kNoValue};
    if (!builder.ok() || targets[0] == kNoValue) return;
    const auto found = graph::gradients(builder, targets, seeds, values);
    if (!found.ok()) {
      builder.fail(found.status());
      return;
    }
    for (int64_t i = 0; i < count; ++i)
      out[i] = object.to_value((*found)[static_cast<size_t>(i)]);
  });
}

void tutti_apply_gradients(tutti_graph *graph, const tutti_value *variables, const tutti_value *gradients,
                           int64_t count) {
  change_graph(graph, [&](GraphObject &object, graph::GraphBuilder &builder) {
    if (!check_list(builder, variables, count, "variables") || !check_list(builder, gradients, count, "gradients"))
      return;
    std::vector<std::pair<std::string, ValueId>> list;
    for (int64_t i = 0; i < count; ++i)
      list.emplace_back(variable_name(object, builder, variables[i], base::concat("variables[", i, "]")),
                        object.from_value(gradients[i]));
    builder.set_gradients(list);
  });
}
