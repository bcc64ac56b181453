// SPDX-License-Identifier: Apache-2.0
//
// A small training on the reference backend, or on the plug-in whose path TUTTI_TEST_BACKEND is: features
// x f32[batch, 4], label y f32[batch, 1], two layers with dropout, momentum. For tests that need the real thing.
#ifndef TUTTI_TESTS_ESTIMATOR_SMALL_TRAINING_H_
#define TUTTI_TESTS_ESTIMATOR_SMALL_TRAINING_H_

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "data/pipeline/pipeline.h"
#include "data/pipeline/sources.h"
#include "estimator/estimator.h"
#include "estimator/hooks/standing_hooks.h"
#include "runtime/backend_list.h"
#include "runtime/plugin_loader.h"

namespace tutti::impl::estimator {

inline base::Result<distribute::StrategyRef> replicas_under_test(int32_t count) {
  const std::string options = base::concat("{\"logical_devices\": ", count, "}");
  const char *const plugin = std::getenv("TUTTI_TEST_BACKEND");
  const base::Result<backend::BackendRef> opened = plugin == nullptr
                                                       ? runtime::open_backend("reference", options, {})
                                                       : runtime::load_plugin(plugin, options, {}, backend::build_id());
  if (opened.code() == base::Code::unavailable) {
    // No such device here: the program ends as skipped.
    std::printf("skipped: %s\n", opened.status().to_string().c_str());
    std::exit(77);
  }
  TUTTI_ASSIGN(const backend::BackendRef backend, opened);
  if (count == 1) return distribute::Strategy::one_device({backend, 0});
  return distribute::Strategy::mirrored_all(backend);
}

struct SmallModel {
  double learning_rate = 0.05;
  bool dropout = true;
};

inline ModelFunction small_model_function(SmallModel model = {}) {
  return [model](graph::GraphBuilder &b, Mode mode) -> base::Status {
    const auto dense = [&b](const char *name, graph::ValueId x, int64_t inputs, int64_t outputs) {
      b.push_scope(name);
      const graph::ValueId kernel = b.variable("kernel", tensor::DType::f32, {inputs, outputs}, {"glorot_uniform", {}});
      const graph::ValueId bias = b.variable("bias", tensor::DType::f32, {outputs}, {"zeros", {}});
      const graph::ValueId y = b.add(b.matmul(x, kernel), bias);
      b.pop_scope();
      return y;
    };
    graph::ValueId h = b.unary("tanh", dense("hidden", b.model().find_feature("x")->value, 4, 6));
    if (model.dropout && mode == Mode::train) h = b.op("dropout", {h}, {{"rate", 0.25}});
    const graph::ValueId y = dense("output", h, 6, 1);
    b.set_output("y", y);
    if (mode == Mode::predict) return base::Status();
    const graph::ValueId error = b.sub(y, b.model().labels[0].value);
    b.set_loss(b.reduce_mean(b.mul(error, error)));
    b.add_metric("absolute_error", b.reduce_mean(b.unary("abs", error)));
    if (mode == Mode::evaluate) return base::Status();
    graph::TrainSpec train;
    train.optimizer.op = "momentum_update";
    train.optimizer.attributes = {{"momentum", 0.9}};
    train.optimizer.learning_rate = b.constant(model.learning_rate, tensor::DType::f32);
    train.optimizer.slots = {{"velocity", 0}};
    b.set_train(train);
    return base::Status();
  };
}

/// Row r has x[r][i] = sin(0.7 r + i) and y[r] = x[r][0] - x[r][3].
inline data::DatasetRef small_dataset(int64_t rows, int64_t batch_size, bool shuffled = false) {
  std::vector<float> x, y;
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t i = 0; i < 4; ++i) {
      x.push_back(std::sin(0.7f * static_cast<float>(row) + static_cast<float>(i)));
    }
    y.push_back(x[x.size() - 4] - x[x.size() - 1]);
  }
  auto features = tensor::Tensor::from_values<float>(tensor::Shape{rows, 4}, std::span<const float>(x));
  auto labels = tensor::Tensor::from_values<float>(tensor::Shape{rows, 1}, std::span<const float>(y));
  data::Pipeline pipeline(
      data::from_slices({{"x", *features, data::Role::feature}, {"y", *labels, data::Role::label}}));
  if (shuffled) pipeline.shuffle(rows);
  pipeline.batch(batch_size);
  const auto dataset = pipeline.build();
  return dataset.ok() ? *dataset : nullptr;
}

inline base::Result<base::Ref<Estimator>> small_estimator(int32_t replicas, const RunConfig &config,
                                                          SmallModel model = {},
                                                          const base::Ref<base::Logger> &logger = nullptr) {
  TUTTI_ASSIGN(const distribute::StrategyRef strategy, replicas_under_test(replicas));
  Environment environment;
  environment.logger = logger;
  return Estimator::create(small_model_function(model), config, strategy, environment,
                           hooks::standing_hooks(config, logger));
}

}  // namespace tutti::impl::estimator

#endif  // TUTTI_TESTS_ESTIMATOR_SMALL_TRAINING_H_
