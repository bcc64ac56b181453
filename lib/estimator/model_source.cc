// SPDX-License-Identifier: Apache-2.0
#include "estimator/model_source.h"

#include <utility>

#include "base/exceptions.h"
#include "graph/variable_use.h"

namespace tutti::impl::estimator {

using base::invalid_argument;
using base::Result;
using base::Status;

namespace {

// Results of evaluate() that are not metrics.
constexpr std::string_view kReservedNames[] = {"loss", "batch_mean_loss", "global_step", "examples"};

// Of a component with several dimensions that only the data tells each is one of its own; the first ones of all
// components are taken to be equal, as those of words and their labels are.
graph::Dims dims_of(const data::ComponentSpec &component) {
  graph::Dims dims = component.dims;
  int64_t unknown = 0;
  for (graph::Dim &dim : dims) {
    if (dim == data::unknown_dim() && ++unknown > 1)
      dim = graph::Dim::symbol(base::concat(data::kUnknownSymbol, ".", unknown));
  }
  return dims;
}

Status declare_inputs(graph::GraphBuilder &builder, Mode mode, const data::ElementSpec &spec) {
  if (!spec.is_batched()) {
    return invalid_argument("the dataset's elements ", spec,
                            " are single examples; a model takes batches: add batch()");
  }
  for (const data::ComponentSpec &component : spec.components) {
    if (component.role == data::Role::feature) {
      builder.feature(component.name, component.dtype, dims_of(component));
    } else if (mode != Mode::predict) {
      builder.label(component.name, component.dtype, dims_of(component));
    }
  }
  return builder.status();
}

Status check_parts(const graph::Model &model, Mode mode) {
  const bool has_loss = model.loss != graph::kNoValue;
  if (mode == Mode::predict && model.outputs.empty()) {
    return invalid_argument("it set no output; predictions are the outputs of the model");
  }
  if (mode == Mode::train && !has_loss) return invalid_argument("it set no loss");
  if (mode == Mode::train && !model.train) return invalid_argument("it set no optimizer");
  if (mode == Mode::evaluate && !has_loss && model.metrics.empty()) {
    return invalid_argument("it set neither a loss nor a metric");
  }
  for (const std::string_view reserved : kReservedNames) {
    if (model.metrics.contains(reserved)) return invalid_argument("the metric name '", reserved, "' is reserved");
  }
  return Status();
}

Result<graph::Model> build_unchecked(const ModelFunction &function, Mode mode, const data::ElementSpec &spec) {
  graph::GraphBuilder builder;
  TUTTI_TRY(declare_inputs(builder, mode, spec));
  TUTTI_TRY(function(builder, mode));
  TUTTI_ASSIGN(graph::Model model, builder.finish());
  TUTTI_TRY(check_parts(model, mode));
  if (mode != Mode::predict) return model;
  return graph::predict_model(model);
}

/// A loss and a rule of training where the function set none.
void complete_training(graph::GraphBuilder &builder) {
  const graph::Model &model = builder.model();
  if (model.loss == graph::kNoValue) builder.set_loss(builder.constant(0, tensor::DType::f32));
  if (model.train && !model.train->optimizer.op.empty()) return;
  graph::TrainSpec train;
  train.optimizer.op = "sgd_update";
  train.optimizer.attributes = {{"weight_decay", 0.0}};
  train.optimizer.learning_rate = builder.constant(0, tensor::DType::f32);
  builder.set_train(std::move(train));
}

void train_nothing(graph::Model &model) {
  for (graph::VariableSpec &variable : model.variables)
    variable.trainable = false;
  model.assignments.clear();
  model.train->gradients.clear();
  model.train->average = {};
}

Status check_gives_something(const graph::Model &model) {
  const bool gives = model.loss != graph::kNoValue || !model.metrics.empty() || !model.outputs.empty();
  return gives ? Status() : invalid_argument("it set neither an output nor a loss nor a metric");
}

Status check_trains(const graph::Model &model) {
  TUTTI_TRY(check_parts(model, Mode::train));
  if (!model.train->average.is_on()) return Status();
  return invalid_argument(
      "its optimizer has average_decay, but moving averages follow the model function of the estimator alone");
}

/// A feature that both modes have, but not alike: "feature 'x' is ..., ...; "; "" if there is none.
std::string describe_changed_feature(const graph::Model &train, const graph::Model &other, Mode mode) {
  for (const graph::InputSpec &feature : other.features) {
    const graph::InputSpec *const trained = train.find_feature(feature.name);
    if (trained == nullptr || (trained->dtype == feature.dtype && trained->dims == feature.dims)) continue;
    return base::concat("feature '", feature.name, "' is ", feature.dtype, " ", graph::to_string(feature.dims),
                        " in mode ", name(mode), " but ", trained->dtype, " ", graph::to_string(trained->dims),
                        " in mode TRAIN: give data as the model was trained with; ");
  }
  return "";
}

std::string describe_origin(const graph::VariableSpec &variable) {
  return base::concat(variable.dtype, " ", variable.dims, " made by '", variable.creator, "'");
}

}  // namespace

Result<graph::Model> build_model(const ModelFunction &function, Mode mode, const data::ElementSpec &spec) {
  Result<graph::Model> model = build_unchecked(function, mode, spec);
  if (model.ok()) return model;
  return model.status().wrap(base::concat("the model function failed in mode ", name(mode)));
}

Result<StepModel> build_step_model(const ModelFunction &function, Mode mode, const data::ElementSpec &spec) {
  graph::GraphBuilder builder;
  TUTTI_TRY(declare_inputs(builder, mode, spec));
  TUTTI_TRY(function(builder, mode));
  TUTTI_TRY(builder.status());
  const bool has_loss = builder.model().loss != graph::kNoValue;
  if (mode != Mode::train) {
    TUTTI_TRY(check_gives_something(builder.model()));
    complete_training(builder);
  }
  TUTTI_ASSIGN(graph::Model model, builder.finish());
  model.summaries.clear();  // nobody looks at those of a loop of the program
  if (mode == Mode::train) {
    TUTTI_TRY(check_trains(model));
  } else {
    train_nothing(model);
  }
  return StepModel{std::move(model), has_loss};
}

Status check_variables(const graph::Model &train, const graph::Model &other, Mode mode) {
  std::vector<std::string> known;
  for (const graph::VariableSpec &variable : train.variables)
    known.push_back(variable.name);
  for (const graph::VariableSpec &variable : other.variables) {
    const graph::VariableSpec *trained = train.find_variable(variable.name);
    if (trained == nullptr) {
      return invalid_argument(
          "variable '", variable.name, "' of mode ", name(mode), " is not a variable of mode TRAIN",
          base::did_you_mean(variable.name, known),
          variable.automatic_name ? "; its name is automatic: name it if layers differ between modes" : "");
    }
    if (trained->dims != variable.dims || trained->dtype != variable.dtype || trained->creator != variable.creator) {
      const std::string feature = describe_changed_feature(train, other, mode);
      return invalid_argument(feature, "variable '", variable.name, "' is ", describe_origin(variable), " in mode ",
                              name(mode), " but ", describe_origin(*trained), " in mode TRAIN",
                              feature.empty() ? graph::describe_use(other, variable) : std::string());
    }
  }
  return Status();
}

ModelRef ModelSource::built(Mode mode) {
  const std::lock_guard lock(mutex_);
  return slot(mode).model;
}

Result<ModelRef> ModelSource::get(Mode mode, const data::ElementSpec &spec) {
  std::unique_lock lock(mutex_);
  const std::thread::id self = std::this_thread::get_id();
  for (const Slot &each : slots_) {
    if (each.builder == self) {
      return base::failed_precondition("the model function may not use the estimator it is building for");
    }
  }
  Slot &wanted = slot(mode);
  changed_.wait(lock, [&] { return !wanted.builder.has_value(); });
  if (wanted.model) return wanted.model;
  wanted.builder = self;
  lock.unlock();
  Result<ModelRef> built = base::out_of_memory();
  const Status thrown = base::without_exceptions([&] {
    built = build(mode, spec);
    return Status();
  });
  if (!thrown.ok()) built = thrown;
  lock.lock();
  wanted.builder.reset();
  if (built.ok()) {
    const Status status = base::without_exceptions([&] { return check_against_others(mode, **built); });
    if (!status.ok()) built = status;
  }
  if (built.ok()) wanted.model = *built;
  changed_.notify_all();
  return built;
}

Result<ModelRef> ModelSource::build(Mode mode, const data::ElementSpec &spec) {
  TUTTI_ASSIGN(graph::Model model, build_model(function_, mode, spec));
  return std::make_shared<const graph::Model>(std::move(model));
}

Status ModelSource::check_against_others(Mode mode, const graph::Model &model) {
  if (mode != Mode::train) {
    const ModelRef &train = slot(Mode::train).model;
    return train ? check_variables(*train, model, mode) : Status();
  }
  for (const Mode other : {Mode::evaluate, Mode::predict}) {
    if (const ModelRef &built = slot(other).model) TUTTI_TRY(check_variables(model, *built, other));
  }
  return Status();
}

}  // namespace tutti::impl::estimator
