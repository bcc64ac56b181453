// SPDX-License-Identifier: Apache-2.0
//
// GraphBuilder: the parts of a model.
#include <fnmatch.h>

#include <algorithm>
#include <iterator>

#include "base/name_suggestions.h"
#include "base/text.h"
#include "graph/batch.h"
#include "graph/builder.h"
#include "graph/dim_expression.h"
#include "graph/initializer.h"
#include "graph/rate_factor.h"

namespace tutti::impl::graph {

// A name that is not taken, or an error.
bool GraphBuilder::check_free(std::string_view what, std::string_view name, bool taken) {
  if (name.empty()) fail(base::invalid_argument("a ", what, " in scope '", scope(), "' has an empty name"));
  if (base::Status status = base::check_utf8(what, name); !status.ok()) fail(std::move(status));
  if (taken) fail(base::already_exists("there is already a ", what, " '", name, "'"));
  return ok();
}

// A value of the top region, or an error unless one has been reported.
bool GraphBuilder::check_top(std::string_view what, ValueId value) {
  if (!ok()) return false;
  if (!graph_.contains(value)) {
    fail(base::invalid_argument(what, " is value ", value, ", which does not exist"));
  } else if (frame_of_value_[static_cast<size_t>(value)] != 0) {
    fail(base::invalid_argument(what, " is a value of a region, expected one of the top level"));
  }
  return ok();
}

ValueId GraphBuilder::model_input(std::vector<InputSpec> &list, std::string_view role, std::string_view name,
                                  tensor::DType dtype, Dims dims) {
  if (!ok()) return kNoValue;
  const BatchAxis batch = batch_axis(dims);
  if (batch.kind != BatchAxis::Kind::carried || batch.axis != 0 || batch.factor != 1) {
    return fail(base::invalid_argument(role, " '", name, "' has shape ", to_string(dims),
                                       ", expected the batch on axis 0 alone"));
  }
  const ValueId value = input(name, dtype, dims);
  if (ok()) list.push_back({std::string(name), dtype, std::move(dims), value});
  return value;
}

ValueId GraphBuilder::feature(std::string_view name, tensor::DType dtype, Dims dims) {
  return model_input(model_.features, "feature", name, dtype, std::move(dims));
}

ValueId GraphBuilder::label(std::string_view name, tensor::DType dtype, Dims dims) {
  return model_input(model_.labels, "label", name, dtype, std::move(dims));
}

ValueId GraphBuilder::variable(std::string_view name, tensor::DType dtype, std::vector<int64_t> dims,
                               InitializerSpec initializer, VariableOptions options) {
  if (!ok()) return kNoValue;
  const std::string full = scope().empty() ? std::string(name) : base::concat(scope(), "/", name);
  if (!check_free("variable", full, find_variable(full) != kNoValue)) return kNoValue;
  if (!is_dim_symbol("v." + full)) {
    return fail(base::invalid_argument("variable ", base::quoted(full),
                                       ": a name has letters, digits, '_', '.', '-' and '/' only"));
  }
  if (options.trainable && !tensor::is_floating(dtype)) {
    return fail(base::invalid_argument("variable '", full, "' has dtype ", tensor::name(dtype),
                                       "; a trainable one is floating point"));
  }
  Node node;
  node.op = "variable";
  node.scope_name = names_.count(full) == 0 ? full : unique_name(name);
  node.attributes = {{"name", full}, {"dtype", dtype}, {"dims", to_dims(dims)}};
  const ValueId value = insert(std::move(node), 1, 0)[0];
  if (!ok()) return kNoValue;
  set_value_name(value, full);
  VariableSpec spec;
  spec.name = full;
  spec.dtype = dtype;
  spec.dims = std::move(dims);
  spec.initializer = std::move(initializer);
  spec.trainable = options.trainable && options.aggregation == Aggregation::trained;
  spec.aggregation = options.aggregation;
  spec.creator = scope();
  spec.automatic_name = options.automatic_name;
  spec.value = value;
  model_.variables.push_back(std::move(spec));
  return value;
}

ValueId GraphBuilder::find_variable(std::string_view full_name) const {
  const VariableSpec *variable = model_.find_variable(full_name);
  return variable == nullptr ? kNoValue : variable->value;
}

void GraphBuilder::set_trainable(std::string_view pattern, bool trainable) {
  const std::string text(pattern);
  for (VariableSpec &variable : model_.variables) {
    if (variable.aggregation == Aggregation::trained && fnmatch(text.c_str(), variable.name.c_str(), 0) == 0)
      variable.trainable = trainable;
  }
}

void GraphBuilder::set_loss(ValueId loss) {
  if (!check_top("the loss", loss)) return;
  if (!dims(loss).empty() || !tensor::is_floating(dtype(loss))) {
    fail(base::invalid_argument("the loss is ", tensor::name(dtype(loss)), " ", to_string(dims(loss)),
                                ", expected a floating point scalar: reduce it, for example with reduce_mean"));
  } else if (model_.loss != kNoValue) {
    fail(base::already_exists("the loss is set twice"));
  } else {
    model_.loss = loss;
  }
}

void GraphBuilder::set_output(std::string_view name, ValueId value) {
  const std::string what = base::concat("output '", name, "'");
  if (!check_top(what, value) || !check_free("output", name, model_.outputs.count(name) != 0)) return;
  const BatchAxis batch = batch_axis(dims(value));
  if (batch.kind != BatchAxis::Kind::carried || batch.axis != 0 || batch.factor != 1) {
    fail(base::invalid_argument(what, " has shape ", to_string(dims(value)),
                                ", expected one row for each row of the batch on axis 0"));
    return;
  }
  model_.outputs.emplace(std::string(name), value);
}

void GraphBuilder::add_metric(std::string_view name, ValueId value) {
  const std::string what = base::concat("metric '", name, "'");
  if (!check_top(what, value) || !check_free("metric", name, model_.metrics.count(name) != 0)) return;
  if (name == "loss" || name == "learning_rate") {
    fail(base::already_exists(what, ": results have a value of this name already; choose another"));
    return;
  }
  if (!constant_shape(dims(value))) {
    fail(base::invalid_argument(what, " has shape ", to_string(dims(value)),
                                ", expected a scalar, or a tensor whose shape does not depend on the batch"));
    return;
  }
  if (model_.find_summary(name) != nullptr) {
    fail(base::already_exists(what, ": there is a summary of this name; choose another"));
    return;
  }
  model_.metrics.emplace(std::string(name), value);
}

// Whether so many classes, each with a name of its own, fit the value; or an error.
bool GraphBuilder::check_classes(const std::string &what, ValueId value, const std::vector<std::string> &classes) {
  constexpr size_t kMostElements = 4096;
  const Dims &shape = dims(value);
  const auto count = static_cast<int64_t>(classes.size());
  const auto is_of_classes = [&](const Dim &dim) { return dim.is_constant() && dim.constant() == count; };
  if (shape.empty() || shape.size() > 2 || !std::ranges::all_of(shape, is_of_classes)) {
    fail(base::invalid_argument(what, " has shape ", to_string(shape), " and names of ", count, " classes, expected [",
                                count, "] or [", count, ", ", count, "]"));
  } else if (classes.size() * (shape.size() == 2 ? classes.size() : 1) > kMostElements) {
    fail(base::invalid_argument(what, " has shape ", to_string(shape), ", expected at most ", kMostElements,
                                " elements that have names"));
  }
  for (size_t i = 0; ok() && i < classes.size(); ++i)
    check_free(
        base::concat("class of ", what), classes[i],
        std::find(classes.begin(), classes.end(), classes[i]) - classes.begin() < static_cast<std::ptrdiff_t>(i));
  return ok();
}

void GraphBuilder::name_classes(std::string_view metric, const std::vector<std::string> &classes) {
  const auto found = model_.metrics.find(metric);
  if (!ok()) return;
  if (found == model_.metrics.end()) {
    std::vector<std::string> names;
    for (const auto &[name, value] : model_.metrics)
      names.push_back(name);
    fail(base::not_found("classes of metric '", metric, "': there is no such metric",
                         base::but_there_are(metric, names)));
    return;
  }
  const ValueId value = found->second;
  if (!check_classes(base::concat("metric '", metric, "'"), value, classes)) return;
  const size_t rank = dims(value).size(), columns = rank == 2 ? classes.size() : 1;
  const auto at = [](size_t index) { return Dim(static_cast<int64_t>(index)); };
  for (size_t i = 0; ok() && i < classes.size() * columns; ++i) {
    const size_t row = i / columns, column = i % columns;
    const ValueId element =
        rank == 2 ? slice(value, {at(row), at(column)}, {at(1), at(1)}) : slice(value, {at(row)}, {at(1)});
    const std::string of_row = base::concat(metric, "/", classes[row]);
    add_metric(rank == 2 ? base::concat(of_row, "/", classes[column]) : of_row, reshape(element, {}));
  }
}

// Curves that every run has.
static bool is_taken_by_runs(std::string_view name) {
  constexpr std::string_view names[] = {"loss",          "learning_rate",       "loss_scale",
                                        "skipped_steps", "gradient_norm",       "global_step/sec",
                                        "examples/sec",  "input_wait_fraction", "settings"};
  return std::ranges::find(names, name) != std::end(names);
}

// Whether the value is what its kind needs; or an error.
bool GraphBuilder::check_summary(const SummarySpec &summary) {
  const std::string what = base::concat("summary '", summary.name, "'");
  const Dims &shape = dims(summary.value);
  const tensor::DType type = dtype(summary.value);
  const std::string got = base::concat(what, " is ", tensor::name(type), " ", to_string(shape));
  const BatchAxis batch = batch_axis(shape);
  if (summary.kind == SummaryKind::scalar && !shape.empty()) {
    fail(base::invalid_argument(got, ", expected a scalar: reduce it, for example with reduce_mean"));
  } else if (type == tensor::DType::bytes) {
    fail(base::invalid_argument(got, ", expected numbers"));
  } else if (batch.kind == BatchAxis::Kind::mixed || (batch.kind == BatchAxis::Kind::none && !constant_shape(shape))) {
    fail(base::invalid_argument(got, ", expected the batch on one axis, or a shape that does not depend on the data"));
  }
  if (!ok() || summary.kind != SummaryKind::image) return ok();
  const bool has_images = shape.size() == 4 && (batch.axis <= 0 && batch.factor == 1);
  const int64_t channels = has_images && shape[3].is_constant() ? shape[3].constant() : 0;
  if (channels != 1 && channels != 3 && channels != 4) {
    fail(base::invalid_argument(got, ", expected images: [images, height, width, 1, 3 or 4 channels]"));
  } else if (type != tensor::DType::u8 && !tensor::is_floating(type)) {
    fail(base::invalid_argument(got, ", expected images of u8, or of floating point numbers from 0 to 1"));
  } else if (summary.most_images < 1) {
    fail(base::invalid_argument(what, ": max_images is ", summary.most_images, ", expected at least 1"));
  }
  return ok();
}

// Does a value of a graph, which may be under construction, follow from a feature or label?
static bool follows_from_data(const Graph &graph, ValueId value) {
  std::vector<ValueId> open{value};
  std::set<ValueId> seen{value};
  while (!open.empty()) {
    const NodeId producer = graph.value(open.back()).producer;
    open.pop_back();
    if (producer == kNoNode) continue;
    const Node &node = graph.node(producer);
    if (node.op == "input") return true;
    for (const ValueId input : node.inputs)
      if (input != kNoValue && seen.insert(input).second) open.push_back(input);
  }
  return false;
}

void GraphBuilder::add_summary(SummarySpec summary) {
  const std::string what = base::concat("summary '", summary.name, "'");
  const bool has_value = summary.kind != SummaryKind::text;
  if (has_value ? !check_top(what, summary.value) : !ok()) return;
  if (!check_free("summary", summary.name, model_.find_summary(summary.name) != nullptr)) return;
  if (model_.metrics.contains(summary.name) || is_taken_by_runs(summary.name)) {
    fail(base::already_exists(what, ": summaries have a value of this name already; choose another"));
    return;
  }
  if (has_value && !check_summary(summary)) return;
  summary.is_known = has_value && summary.kind != SummaryKind::scalar && tensor::is_floating(dtype(summary.value)) &&
                     !follows_from_data(graph_, summary.value);
  summary.has_rows = has_value && batch_axis(dims(summary.value)).kind == BatchAxis::Kind::carried;
  model_.summaries.push_back(std::move(summary));
}

// By its name, to do something with it; null with an error when there is none.
VariableSpec *GraphBuilder::require_variable(std::string_view purpose, std::string_view full_name) {
  std::vector<std::string> known;
  for (VariableSpec &one : model_.variables) {
    if (one.name == full_name) return &one;
    known.push_back(one.name);
  }
  fail(base::not_found("there is no variable '", full_name, "' to ", purpose, base::but_there_are(full_name, known)));
  return nullptr;
}

void GraphBuilder::set_initial_value(std::string_view variable_full_name, const tensor::Tensor &value) {
  if (!ok()) return;
  VariableSpec *const variable = require_variable("set the initial value of", variable_full_name);
  if (variable == nullptr) return;
  const std::span<const int64_t> extents = value.shape().extents();
  const std::vector<int64_t> shape(extents.begin(), extents.end());
  if (value.dtype() != variable->dtype || shape != variable->dims) {
    fail(base::invalid_argument("the initial value of variable '", variable->name, "' is ", tensor::name(value.dtype()),
                                " ", to_string(to_dims(shape)), ", the variable is ", tensor::name(variable->dtype),
                                " ", to_string(to_dims(variable->dims))));
  } else {
    variable->initializer = {std::string(kGivenValues), {{std::string(kGivenValues), value}}};
  }
}

void GraphBuilder::assign(std::string_view variable_full_name, ValueId new_value) {
  const std::string what = base::concat("the new value of variable '", variable_full_name, "'");
  if (!check_top(what, new_value) ||
      !check_free("assignment to", variable_full_name, model_.assignments.count(variable_full_name) != 0)) {
    return;
  }
  const VariableSpec *const variable = require_variable("assign", variable_full_name);
  if (variable == nullptr) {
    return;
  } else if (variable->aggregation == Aggregation::trained && variable->trainable) {
    fail(base::invalid_argument("variable '", variable_full_name,
                                "' is trained; only aggregated and per_replica ones are assigned"));
  } else if (dtype(new_value) != variable->dtype || dims(new_value) != to_dims(variable->dims)) {
    fail(base::invalid_argument(what, " is ", tensor::name(dtype(new_value)), " ", to_string(dims(new_value)),
                                ", the variable is ", tensor::name(variable->dtype), " ",
                                to_string(to_dims(variable->dims))));
  } else {
    model_.assignments.emplace(std::string(variable_full_name), new_value);
  }
}

ValueId GraphBuilder::host_scalar(std::string_view name, double initial) {
  bool taken = false;
  for (const HostScalarSpec &known : model_.host_scalars)
    taken = taken || known.name == name;
  if (!ok() || !check_free("host scalar", name, taken)) return kNoValue;
  if (name == kRateFactor) {
    fail(base::already_exists("the host scalar '", name, "' is the library's; choose another name"));
    return kNoValue;
  }
  const ValueId value = state_read(base::concat("host/", name), tensor::DType::f32, {});
  if (ok()) model_.host_scalars.push_back({std::string(name), initial});
  return value;
}

// Ops on bytes and on shapes that only data tells belong into pipelines.
void GraphBuilder::check_forms() {
  for (const Node &node : graph_.nodes()) {
    const OpDefinition *const definition = find_op(node.op, node.revision);
    if (definition == nullptr || definition->program) continue;
    fail(base::invalid_argument("node '", node.scope_name, "' (", node.op, "): op '", node.op,
                                "' runs per element on the host, in maps and filters of datasets, not in a model"));
    return;
  }
}

// What is said of an optimizer that is not there.
static std::string_view said_of(const TrainSpec &train) {
  if (!train.gradients.empty()) return "gradients are given";
  return train.groups.empty() ? "gradients are clipped" : "there are parameter groups";
}

base::Result<Model> GraphBuilder::finish() {
  if (ok()) check_forms();
  if (ok() && model_.train && model_.train->optimizer.op.empty())
    fail(base::failed_precondition(said_of(*model_.train), " but there is no optimizer"));
  if (ok()) settle_groups();
  if (ok()) settle_constraints();
  if (ok()) settle_penalties();
  if (ok() && model_.train && model_.loss == kNoValue && model_.train->gradients.empty()) {
    fail(base::failed_precondition("there is an optimizer but neither a loss nor gradients"));
  }
  Model model = std::move(model_);
  model_ = Model();
  TUTTI_ASSIGN(model.graph, finish_graph());
  return model;
}

}  // namespace tutti::impl::graph
