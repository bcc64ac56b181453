// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "nn/expansion.h"
#include "tensor/tensor.h"

namespace tutti::impl::nn {
namespace {

/// The trained per-channel vector, or a constant one where the layer does without.
ValueId channel_vector(Expansion &e, std::string_view name, ValueId x, int64_t channels, bool trained,
                       double otherwise) {
  if (trained) return e.weight(name, x, {channels}, otherwise == 0 ? "zeros" : "ones");
  return e.builder().broadcast_to(e.builder().constant(otherwise, e.builder().dtype(x)), {channels});
}

/// running = momentum * running + (1 - momentum) * batch, stored when the step is complete.
void update_running(Expansion &e, const std::string &name, ValueId running, ValueId batch) {
  GraphBuilder &b = e.builder();
  const double momentum = e.f64("momentum");
  b.assign(name, b.add(b.scale(running, momentum), b.scale(batch, 1 - momentum)));
}

}  // namespace

ValueId expand_layer_batch_norm(Expansion &e) {
  GraphBuilder &b = e.builder();
  const LayerScope scope(b, "batch_norm");
  const ValueId x = e.input(0);
  const int64_t channels = e.last_dimension(x);
  if (channels == 0) return kNoValue;
  const ValueId scale = channel_vector(e, "scale", x, channels, e.flag("scale"), 1);
  const ValueId offset = channel_vector(e, "offset", x, channels, e.flag("center"), 0);
  const bool per_replica = e.text("statistics") == "per_replica";
  const graph::VariableOptions kept{
      .trainable = false,
      .aggregation = graph::Aggregation::aggregated,
      .automatic_name = true,
  };
  const ValueId mean = b.variable("running_mean", b.dtype(x), {channels}, {"zeros", {}}, kept);
  const ValueId variance = b.variable("running_variance", b.dtype(x), {channels}, {"ones", {}}, kept);
  const double epsilon = e.f64("epsilon");
  if (!e.training()) return b.op("batch_norm_inference", {x, scale, offset, mean, variance}, {{"epsilon", epsilon}});
  const std::string statistics = per_replica ? "per_replica" : "global";
  const auto outputs =
      b.op_n("batch_norm_training", {x, scale, offset}, {{"epsilon", epsilon}, {"statistics", statistics}}, 3);
  update_running(e, b.scope() + "/running_mean", mean, outputs[1]);
  update_running(e, b.scope() + "/running_variance", variance, outputs[2]);
  return outputs[0];
}

ValueId expand_layer_layer_norm(Expansion &e) {
  GraphBuilder &b = e.builder();
  const LayerScope scope(b, "layer_norm");
  const ValueId x = e.input(0);
  const int64_t channels = e.last_dimension(x);
  if (channels == 0) return kNoValue;
  const ValueId scale = channel_vector(e, "scale", x, channels, e.flag("scale"), 1);
  const ValueId offset = channel_vector(e, "offset", x, channels, e.flag("center"), 0);
  return b.op_n("layer_norm", {x, scale, offset}, {{"epsilon", e.f64("epsilon")}}, 3)[0];
}

ValueId expand_layer_rms_norm(Expansion &e) {
  GraphBuilder &b = e.builder();
  const LayerScope scope(b, "rms_norm");
  const ValueId x = e.input(0);
  const int64_t channels = e.last_dimension(x);
  if (channels == 0) return kNoValue;
  const ValueId scale = channel_vector(e, "scale", x, channels, e.flag("scale"), 1);
  return b.op_n("rms_norm", {x, scale}, {{"epsilon", e.f64("epsilon")}}, 2)[0];
}

namespace {

/// In so many groups of channels; each channel is one where there are 0.
ValueId normalize_groups(Expansion &e, int64_t given_groups) {
  GraphBuilder &b = e.builder();
  const ValueId x = e.input(0);
  const int64_t channels = e.last_dimension(x), groups = given_groups == 0 ? channels : given_groups;
  if (channels == 0) return kNoValue;
  const graph::Dims dims = b.dims(x);
  if (dims.size() < 2 || channels % groups != 0) {
    e.fail(base::concat(groups, " groups do not divide the channels of ", graph::to_string(dims)));
    return kNoValue;
  }
  const ValueId scale = channel_vector(e, "scale", x, channels, e.flag("scale"), 1);
  const ValueId offset = channel_vector(e, "offset", x, channels, e.flag("center"), 0);
  return b.op_n("group_norm", {x, scale, offset}, {{"groups", groups}, {"epsilon", e.f64("epsilon")}}, 3)[0];
}

}  // namespace

ValueId expand_layer_group_norm(Expansion &e) {
  const LayerScope scope(e.builder(), "group_norm");
  return normalize_groups(e, e.i64("groups"));
}

ValueId expand_layer_instance_norm(Expansion &e) {
  const LayerScope scope(e.builder(), "instance_norm");
  if (e.input(0) != kNoValue && e.builder().rank(e.input(0)) < 3) {
    return e.fail(base::concat("expected positions between rows and channels, got ",
                               graph::to_string(e.builder().dims(e.input(0)))));
  }
  return normalize_groups(e, 0);
}

}  // namespace tutti::impl::nn
