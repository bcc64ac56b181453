// SPDX-License-Identifier: Apache-2.0
#include <optional>
#include <utility>
#include <variant>

#include "nn/expansion.h"

namespace tutti::impl::nn {
namespace {

/// The number that a scalar is, where it is a constant.
std::optional<double> constant_number(const graph::Graph &graph, ValueId value) {
  const graph::NodeId producer = graph.value(value).producer;
  if (producer == graph::kNoNode || graph.node(producer).op != "constant") return std::nullopt;
  const auto *const tensor = std::get_if<tensor::Tensor>(&graph.node(producer).attributes.at("value"));
  if (tensor == nullptr || tensor->dtype() != tensor::DType::f32) return std::nullopt;
  return static_cast<double>(tensor->data_as<float>()[0]);
}

/// Makes the update op the model's rule of training; a clip norm and gradients that were set before stay.
ValueId set_optimizer(Expansion &e, graph::OptimizerSpec optimizer) {
  GraphBuilder &b = e.builder();
  optimizer.learning_rate = e.input(0);
  if (optimizer.learning_rate == kNoValue) return kNoValue;
  if (b.rank(optimizer.learning_rate) != 0) return e.fail("expected a scalar learning rate");
  const std::optional<double> rate = constant_number(b.graph(), optimizer.learning_rate);
  if (rate && !(*rate >= 0)) return e.fail(base::concat("the learning rate is ", *rate, ", expected 0 or more"));
  const std::optional<graph::TrainSpec> &present = b.model().train;
  if (present && !present->optimizer.op.empty()) return e.fail("the model already has an optimizer");
  graph::TrainSpec train;
  train.optimizer = std::move(optimizer);
  train.clip = {e.f64("clip_value"), e.f64("clip_norm")};
  train.average = {e.f64("average_decay"), e.flag("average_ramp"), e.i64("average_start")};
  b.set_train(std::move(train));
  return kNoValue;
}

ValueId set_adam(Expansion &e, double weight_decay) {
  return set_optimizer(e, {.op = "adam_update",
                           .attributes = {{"beta1", e.f64("beta1")},
                                          {"beta2", e.f64("beta2")},
                                          {"epsilon", e.f64("epsilon")},
                                          {"weight_decay", weight_decay}},
                           .slots = {{.name = "m"}, {.name = "v"}}});
}

}  // namespace

ValueId expand_optimizer_sgd(Expansion &e) {
  const double momentum = e.f64("momentum"), weight_decay = e.f64("weight_decay");
  if (momentum == 0) {
    if (e.flag("nesterov")) return e.fail("attribute 'nesterov' needs a momentum above 0");
    return set_optimizer(e, {.op = "sgd_update", .attributes = {{"weight_decay", weight_decay}}, .slots = {}});
  }
  return set_optimizer(
      e, {.op = "momentum_update",
          .attributes = {{"momentum", momentum}, {"nesterov", e.flag("nesterov")}, {"weight_decay", weight_decay}},
          .slots = {{.name = "velocity"}}});
}

ValueId expand_optimizer_adam(Expansion &e) { return set_adam(e, 0); }

ValueId expand_optimizer_adamw(Expansion &e) { return set_adam(e, e.f64("weight_decay")); }

}  // namespace tutti::impl::nn
