// SPDX-License-Identifier: Apache-2.0
//
// Optimizer rules, element by element, in f32, or in f64 where the weights are.
#include "backend/pjrt/emit/op_emitters.h"
#include "graph/ops/op_attributes.h"

namespace tutti::impl::backend::pjrt {

using base::Status;
using tensor::DType;

namespace {

/// Inputs: w, g, slots..., then scalars that end with ok.
class Update {
 public:
  explicit Update(NodeEmitter &node)
      : node_(node),
        dtype_(node.input(0).dtype == DType::f64 || node.input(1).dtype == DType::f64 ? DType::f64 : DType::f32) {}

  Value array(size_t input) { return node_.text().convert(node_.input(input), dtype_); }
  /// A scalar for every element.
  Value scalar(size_t input) { return spread(node_.input(input)); }
  Value spread(const Value &scalar) {
    return node_.text().broadcast(node_.text().convert(scalar, dtype_), node_.input(0).dims, {});
  }
  /// Result `index` takes the place of input `input`, unless the update is not ok.
  void finish(size_t index, size_t input, const Value &value) {
    ProgramText &text = node_.text();
    const Value &old = node_.input(input);
    const Value ok = text.broadcast(node_.input(node_.input_count() - 1), old.dims, {});
    node_.set_output(index, text.select(ok, text.convert(value, old.dtype), old));
  }

 private:
  NodeEmitter &node_;
  DType dtype_;
};

/// 1 − beta^iteration, in f64: it is small where beta is near 1.
Value correction(ProgramText &text, const Value &iteration, double beta) {
  const Value power = text.binary("power", text.scalar(DType::f64, beta), text.convert(iteration, DType::f64));
  return text.sub(text.scalar(DType::f64, 1), power);
}

}  // namespace

Status emit_sgd_update(NodeEmitter &node) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::SgdUpdateAttributes::from(node.node()));
  ProgramText &text = node.text();
  Update update(node);
  const Value w = update.array(0);
  Value step = update.array(1);
  if (attributes.weight_decay != 0) step = text.add(step, text.mul(w, attributes.weight_decay));
  update.finish(0, 0, text.sub(w, text.mul(update.scalar(2), step)));
  return Status();
}

Status emit_momentum_update(NodeEmitter &node) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::MomentumUpdateAttributes::from(node.node()));
  ProgramText &text = node.text();
  Update update(node);
  const Value w = update.array(0);
  Value step = update.array(1);
  if (attributes.weight_decay != 0) step = text.add(step, text.mul(w, attributes.weight_decay));
  const Value velocity = text.add(text.mul(update.array(2), attributes.momentum), step);
  const Value ahead = attributes.nesterov ? text.add(step, text.mul(velocity, attributes.momentum)) : velocity;
  update.finish(0, 0, text.sub(w, text.mul(update.scalar(3), ahead)));
  update.finish(1, 2, velocity);
  return Status();
}

Status emit_adam_update(NodeEmitter &node) {
  TUTTI_ASSIGN(const auto attributes, graph::ops::AdamUpdateAttributes::from(node.node()));
  ProgramText &text = node.text();
  Update update(node);
  const double beta1 = attributes.beta1, beta2 = attributes.beta2;
  const Value w = update.array(0), g = update.array(1);
  const Value m = text.add(text.mul(update.array(2), beta1), text.mul(g, 1 - beta1));
  const Value v = text.add(text.mul(update.array(3), beta2), text.mul(text.mul(g, g), 1 - beta2));
  const Value mean = text.div(m, update.spread(correction(text, node.input(5), beta1)));
  const Value square = text.div(v, update.spread(correction(text, node.input(5), beta2)));
  Value step = text.div(mean, text.add(text.unary("sqrt", square), attributes.epsilon));
  if (attributes.weight_decay != 0) step = text.add(step, text.mul(w, attributes.weight_decay));
  update.finish(0, 0, text.sub(w, text.mul(update.scalar(4), step)));
  update.finish(1, 2, m);
  update.finish(2, 3, v);
  return Status();
}

}  // namespace tutti::impl::backend::pjrt
