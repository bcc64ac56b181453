// SPDX-License-Identifier: Apache-2.0
#include "distribute/training_case.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <numeric>

#include "backend/lazy_backend.h"
#include "data/pipeline/pipeline.h"
#include "data/pipeline/sources.h"
#include "distribute/lowering_backend.h"
#include "nn/registry.h"
#include "runtime/backend_list.h"

namespace tutti::testing {

namespace base = impl::base;
namespace data = impl::data;
namespace graph = impl::graph;
namespace distribute = impl::distribute;
namespace tensor = impl::tensor;

constexpr std::string_view kLowering = "lowering:";

static std::string_view chosen_backend() {
  const char *name = std::getenv("TUTTI_TEST_BACKEND");
  return name == nullptr ? "reference" : name;
}

bool has_test_backend_libraries() {
  return chosen_backend().ends_with("tutti-cuda.so") || chosen_backend().ends_with("tutti-hip.so");
}

bool is_test_backend_slow() { return chosen_backend().starts_with('/') || chosen_backend().starts_with(kLowering); }

bool is_invariant_refused() {
  const Result<impl::backend::BackendRef> backend = open_test_backend(1);
  return backend.ok() && (*backend)->name().starts_with("pjrt");
}

Result<impl::backend::BackendRef> open_test_backend(int32_t devices, const impl::backend::HostOptions &host) {
  const std::string options = "{\"logical_devices\": " + std::to_string(devices) + "}";
  const std::string_view chosen = chosen_backend();
  if (chosen == "deferred" || chosen == "separate") {
    LazySettings settings;
    settings.has_host_memory = false;
    settings.late = chosen == "deferred" ? Late::everything : Late::nothing;
    LazyBackend::begin(std::move(settings));
    return impl::backend::Backend::create(LazyBackend::entry, options, host);
  }
  if (chosen.starts_with(kLowering))
    return open_lowering_backend(std::string(chosen.substr(kLowering.size())), options, host);
  Result<impl::backend::BackendRef> opened = impl::runtime::open_backend(chosen, options, host);
  if (opened.code() == impl::base::Code::unavailable) {
    // No such device here: the program ends as skipped.
    std::printf("skipped: %s\n", opened.status().to_string().c_str());
    std::exit(77);
  }
  return opened;
}

Result<StrategyRef> make_test_strategy(int32_t count) {
  TUTTI_ASSIGN(const impl::backend::BackendRef backend, open_test_backend(count));
  if (count == 1) return distribute::Strategy::one_device({backend, 0});
  return distribute::Strategy::mirrored_all(backend);
}

double row_feature(int64_t row, int64_t feature) {
  return std::sin(static_cast<double>(row * 31 + feature * 17) * 0.37) + 0.1 * static_cast<double>(feature % 3);
}
int64_t row_label(int64_t row, int64_t classes) { return (row * 7 + row / 3) % classes; }
double row_weight(int64_t row) { return 0.25 + static_cast<double>(row % 5) * 0.5; }
double row_target(int64_t row) { return std::cos(static_cast<double>(row) * 0.61); }

namespace {

/// A tensor of `dtype` from a function of row and column.
Tensor fill(DType dtype, const tensor::Shape &shape, const std::function<double(int64_t, int64_t)> &value) {
  Tensor result = std::move(*Tensor::zeros(dtype, shape));
  const int64_t columns = shape.rank() > 1 ? shape[1] : 1;
  for (int64_t i = 0; i < result.elements(); ++i) {
    const double element = value(i / columns, i % columns);
    if (dtype == DType::f64) {
      result.mutable_data_as<double>()[i] = element;
    } else if (dtype == DType::f32) {
      result.mutable_data_as<float>()[i] = static_cast<float>(element);
    } else {
      result.mutable_data_as<int32_t>()[i] = static_cast<int32_t>(element);
    }
  }
  return result;
}

ValueId dense(GraphBuilder &b, const char *name, ValueId x, DType dtype, int64_t inputs, int64_t outputs) {
  b.push_scope(name);
  const ValueId kernel = b.variable("kernel", dtype, {inputs, outputs}, {"glorot_uniform", {}});
  const ValueId bias = b.variable("bias", dtype, {outputs}, {"zeros", {}});
  const ValueId y = b.add(b.matmul(x, kernel), bias);
  b.pop_scope();
  return y;
}

ValueId batch_norm(GraphBuilder &b, ValueId x, DType dtype, int64_t channels, bool own_statistics) {
  b.push_scope("norm");
  const ValueId scale = b.variable("scale", dtype, {channels}, {"ones", {}});
  const ValueId offset = b.variable("offset", dtype, {channels}, {"zeros", {}});
  graph::VariableOptions moving;
  moving.trainable = false;
  moving.aggregation = graph::Aggregation::aggregated;
  const ValueId mean = b.variable("moving_mean", dtype, {channels}, {"zeros", {}}, moving);
  const ValueId variance = b.variable("moving_variance", dtype, {channels}, {"ones", {}}, moving);
  const auto out = b.op_n("batch_norm_training", {x, scale, offset},
                          {{"statistics", std::string(own_statistics ? "per_replica" : "global")}}, 3);
  b.assign("norm/moving_mean", b.add(b.scale(mean, 0.9), b.scale(out[1], 0.1)));
  b.assign("norm/moving_variance", b.add(b.scale(variance, 0.9), b.scale(out[2], 0.1)));
  b.pop_scope();
  return out[0];
}

ValueId penalty(GraphBuilder &b) {
  ValueId total = graph::kNoValue;
  for (const char *name : {"first/kernel", "second/kernel"}) {
    const ValueId part = b.reduce_sum(b.unary("square", b.find_variable(name)));
    total = total == graph::kNoValue ? part : b.add(total, part);
  }
  return b.scale(total, 0.01);
}

ValueId total_loss(GraphBuilder &b, const NetworkCase &network, ValueId per_row, ValueId weights, ValueId classes) {
  switch (network.loss) {
    case Loss::mean:
      return b.reduce_mean(per_row);
    case Loss::sum:
      return b.scale(b.reduce_sum(per_row), 0.02);
    case Loss::weighted_mean:
      return b.div(b.reduce_sum(b.mul(per_row, weights)), b.reduce_sum(weights));
    case Loss::root_mean:
      return b.unary("sqrt", b.reduce_mean(per_row));
    case Loss::mean_with_penalty:
      return b.add(b.reduce_mean(per_row), penalty(b));
    case Loss::weighted_mean_with_penalty:
      return b.add(b.div(b.reduce_sum(b.mul(per_row, weights)), b.reduce_sum(weights)), penalty(b));
    case Loss::class_means:
      // The sums are a vector, and the loss is not linear in them.
      return b.reduce_sum(
          b.unary("square", b.reduce_mean(b.mul(classes, b.reshape(per_row, {GraphBuilder::batch(), 1})), {0})));
  }
  return graph::kNoValue;
}

/// An entry of the registry, with the limits as attributes.
void set_registered_optimizer(GraphBuilder &b, const NetworkCase &network) {
  graph::Attributes attributes = network.attributes;
  attributes.insert_or_assign("clip_value", network.limits.value);
  attributes.insert_or_assign("clip_norm", network.limits.norm);
  attributes.insert_or_assign("average_decay", network.average.decay);
  attributes.insert_or_assign("average_ramp", network.average.has_ramp);
  attributes.insert_or_assign("average_start", network.average.start);
  if (network.clip > 0) b.set_clip_global_norm(network.clip);
  impl::nn::expand(b, network.entry, 1, {b.constant(network.learning_rate, DType::f32)}, attributes,
                   {.training = true});
}

void set_optimizer(GraphBuilder &b, const NetworkCase &network) {
  if (!network.entry.empty()) return set_registered_optimizer(b, network);
  graph::TrainSpec train;
  train.optimizer.learning_rate = b.constant(network.learning_rate, DType::f32);
  if (network.optimizer == Optimizer::sgd) {
    train.optimizer.op = "sgd_update";
  } else if (network.optimizer == Optimizer::momentum) {
    train.optimizer.op = "momentum_update";
    train.optimizer.slots = {{"velocity", 0}};
  } else {
    train.optimizer.op = "adam_update";
    train.optimizer.slots = {{"m", 0}, {"v", 0}};
  }
  if (network.clip > 0) train.clip_global_norm = network.clip;
  train.clip = network.limits;
  train.average = network.average;
  b.set_train(std::move(train));
}

}  // namespace

std::vector<double> to_doubles(const Tensor &tensor) {
  std::vector<double> values;
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    values.push_back(tensor.dtype() == DType::f64 ? tensor.data_as<double>()[i]
                                                  : static_cast<double>(tensor.data_as<float>()[i]));
  }
  return values;
}

static std::vector<data::NamedTensor> row_tensors(const std::vector<int64_t> &rows, int64_t features, int64_t classes,
                                                  DType dtype) {
  using Value = std::function<double(int64_t, int64_t)>;
  const auto component = [&](const char *name, DType type, const tensor::Shape &shape, data::Role role,
                             const Value &value) {
    const auto of_listed = [&](int64_t r, int64_t column) { return value(rows[static_cast<size_t>(r)], column); };
    return data::NamedTensor{name, fill(type, shape, of_listed), role};
  };
  const auto count = static_cast<int64_t>(rows.size());
  std::vector<data::NamedTensor> tensors;
  tensors.push_back(component("x", dtype, {count, features}, data::Role::feature, row_feature));
  tensors.push_back(component("y", DType::i32, {count}, data::Role::label,
                              [&](int64_t r, int64_t) { return static_cast<double>(row_label(r, classes)); }));
  tensors.push_back(
      component("w", dtype, {count}, data::Role::label, [](int64_t r, int64_t) { return row_weight(r); }));
  tensors.push_back(
      component("t", dtype, {count}, data::Role::label, [](int64_t r, int64_t) { return row_target(r); }));
  return tensors;
}

static std::vector<int64_t> first_rows(int64_t count) {
  std::vector<int64_t> rows(static_cast<size_t>(count));
  std::iota(rows.begin(), rows.end(), int64_t{0});
  return rows;
}

data::DatasetRef make_listed_rows(const std::vector<int64_t> &rows, int64_t features, int64_t classes, DType dtype,
                                  int64_t batch_size) {
  data::Pipeline pipeline(data::from_slices(row_tensors(rows, features, classes, dtype)));
  return std::move(*pipeline.batch(batch_size).build());
}

data::DatasetRef make_rows(int64_t rows, int64_t features, int64_t classes, DType dtype, int64_t batch_size) {
  return make_listed_rows(first_rows(rows), features, classes, dtype, batch_size);
}

data::DatasetRef make_endless_batch(int64_t rows, int64_t features, int64_t classes, DType dtype) {
  data::Pipeline pipeline(data::from_tensors(row_tensors(first_rows(rows), features, classes, dtype)));
  return std::move(*pipeline.repeat().build());
}

Result<Model> build_network(const NetworkCase &network) {
  GraphBuilder b;
  const ValueId x = b.feature("x", network.dtype, {GraphBuilder::batch(), network.features});
  const ValueId y = b.label("y", DType::i32, {GraphBuilder::batch()});
  const ValueId w = b.label("w", network.dtype, {GraphBuilder::batch()});
  ValueId hidden = dense(b, "first", x, network.dtype, network.features, network.hidden);
  if (network.batch_norm) hidden = batch_norm(b, hidden, network.dtype, network.hidden, network.own_statistics);
  hidden = b.unary(network.relu ? "relu" : "tanh", hidden);
  if (network.dropout) hidden = b.op("dropout", {hidden}, {{"rate", 0.3}});
  const ValueId logits = dense(b, "second", hidden, network.dtype, network.hidden, network.classes);
  b.set_output("logits", logits);
  const ValueId per_row = b.op("sparse_softmax_cross_entropy", {logits, y});
  const ValueId classes = b.op("one_hot", {y}, {{"depth", network.classes}, {"dtype", network.dtype}});
  b.set_loss(total_loss(b, network, per_row, w, classes));
  const ValueId hit = b.cast(b.op("in_top_k", {logits, y}), network.dtype);
  b.add_metric("accuracy", b.reduce_mean(hit));
  set_optimizer(b, network);
  return b.finish();
}

Result<Trained> train(const Model &model, const RunCase &run, const NetworkCase &network) {
  TUTTI_ASSIGN(const StrategyRef strategy, make_test_strategy(run.replicas));
  return train(model, strategy, run, network);
}

Result<Trained> train(const Model &model, const StrategyRef &strategy, const RunCase &run, const NetworkCase &network) {
  TUTTI_ASSIGN(std::unique_ptr<Trainer> trainer, Trainer::open(model, strategy, run.options));
  TUTTI_TRY(trainer->initialize());
  Trained result;
  for (int32_t pass = 0; pass < run.passes; ++pass) {
    const data::DatasetRef rows = make_rows(run.rows, network.features, network.classes, network.dtype, run.batch);
    TUTTI_ASSIGN(std::unique_ptr<data::Iterator> iterator, rows->make_iterator({}));
    TUTTI_TRY(trainer->attach_input(std::move(iterator)));
    TUTTI_ASSIGN(const distribute::RunReport report, trainer->run(run.steps, nullptr));
    result.examples += report.examples;
    for (const double loss : trainer->loss_history())
      result.losses.push_back(loss);
  }
  for (const graph::VariableSpec &variable : model.variables) {
    TUTTI_ASSIGN(const Tensor value, trainer->get_variable(variable.name));
    result.variables[variable.name] = to_doubles(value);
    if (!network.average.is_on() || !variable.trainable) continue;
    TUTTI_ASSIGN(const Tensor average, trainer->get_slot(variable.name, "average"));
    result.variables[variable.name + "/average"] = to_doubles(average);
  }
  TUTTI_ASSIGN(result.replicas_identical, trainer->replicas_are_identical());
  return result;
}

double relative_difference(const std::vector<double> &a, const std::vector<double> &b) {
  if (a.size() != b.size()) return INFINITY;
  double difference = 0, scale = 1e-30;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!(std::isfinite(a[i]) && std::isfinite(b[i]))) return INFINITY;
    difference = std::max(difference, std::fabs(a[i] - b[i]));
    scale = std::max(scale, std::fabs(b[i]));
  }
  return difference / scale;
}

double relative_difference(const Trained &a, const Trained &b) {
  double largest = 0;
  // A bias that is still zero everywhere has no scale of its own.
  for (const auto &[name, values] : b.variables) {
    double scale = 0;
    for (const double value : values)
      scale = std::max(scale, std::fabs(value));
    if (scale > 1e-6) largest = std::max(largest, relative_difference(a.variables.at(name), values));
  }
  return largest;
}

}  // namespace tutti::testing
