// SPDX-License-Identifier: Apache-2.0
//
// Layers of nn.yaml, with what they keep from step to step and what they draw.
#include "entries/entry_case.h"

namespace tutti::testing::entries {

namespace {

using impl::graph::Attributes;

/// Of tables, which are f32.
constexpr double kSingle = 1e-6;

Cases convolution_layers() {
  const Port line = rows({6, 2}), image = rows({5, 4, 2}), space = rows({3, 4, 2, 2});
  const Attributes attributes = {{"filters", whole(3)}, {"size", whole(2)}, {"kernel_l2", 0.01}};
  Cases cases;
  for (const char *layer : {"layer_conv1d", "layer_conv1d_transpose", "layer_separable_conv1d"})
    cases.push_back({.entry = layer, .inputs = {line}, .attributes = attributes});
  for (const char *layer : {"layer_conv2d", "layer_conv2d_transpose", "layer_separable_conv2d"})
    cases.push_back({.entry = layer, .inputs = {image}, .attributes = attributes});
  for (const char *layer : {"layer_conv3d", "layer_conv3d_transpose"})
    cases.push_back({.entry = layer, .inputs = {space}, .attributes = attributes});
  append(
      cases,
      {{.entry = "layer_conv1d",
        .inputs = {line},
        .attributes = {{"filters", whole(4)}, {"size", whole(3)}, {"padding", text("causal")}, {"groups", whole(2)}}},
       {.entry = "layer_conv2d",
        .inputs = {image},
        .attributes = {{"filters", whole(3)}, {"size", whole(3)}, {"kernel_normalization", text("spectral_norm")}}},
       {.entry = "layer_depthwise_conv1d", .inputs = {line}, .attributes = {{"size", whole(3)}}},
       {.entry = "layer_depthwise_conv2d",
        .inputs = {image},
        .attributes = {{"size", whole(3)}, {"multiplier", whole(2)}, {"stride", whole(2)}}}});
  return cases;
}

Cases pool_layers() {
  Cases cases;
  const std::pair<const char *, Port> inputs[] = {
      {"1d", rows({5, 2})}, {"2d", rows({5, 4, 2})}, {"3d", rows({3, 4, 2, 2})}};
  for (const auto &[rank, x] : inputs) {
    const auto layer = [&, dims = rank](const char *name) { return std::string("layer_") + name + dims; };
    append(
        cases,
        {{.entry = layer("max_pool"), .inputs = {x}, .attributes = {{"size", whole(2)}}},
         {.entry = layer("average_pool"), .inputs = {x}, .attributes = {{"size", whole(2)}, {"padding", text("same")}}},
         {.entry = layer("global_average_pool"), .inputs = {x}},
         {.entry = layer("global_max_pool"), .inputs = {x}},
         {.entry = layer("up_sampling"), .inputs = {x}, .attributes = {{"factor", whole(2)}}}});
  }
  append(cases, {{.entry = "layer_up_sampling2d",
                  .inputs = {rows({3, 2, 2})},
                  .attributes = {{"factor", whole(2)}, {"method", text("bilinear")}}}});
  const std::pair<const char *, Ints> pads[] = {{"1d", {1, 2}}, {"2d", {1, 0, 0, 2}}, {"3d", {1, 0, 0, 1, 0, 1}}};
  for (size_t i = 0; i < std::size(pads); ++i) {
    const std::string rank = pads[i].first;
    append(
        cases,
        {{.entry = "layer_zero_padding" + rank, .inputs = {inputs[i].second}, .attributes = {{"pads", pads[i].second}}},
         {.entry = "layer_cropping" + rank, .inputs = {inputs[i].second}, .attributes = {{"crops", pads[i].second}}}});
  }
  return cases;
}

Cases normalization_layers() {
  Cases cases;
  for (const char *layer : {"layer_layer_norm", "layer_rms_norm", "layer_instance_norm"})
    cases.push_back({.entry = layer, .inputs = {rows({3, 4})}});
  append(cases, {{.entry = "layer_batch_norm", .inputs = {rows({3, 4})}, .is_by_micro_batch = true},
                 {.entry = "layer_batch_norm",
                  .inputs = {rows({4})},
                  .attributes = {{"momentum", 0.5}},
                  .is_by_micro_batch = true},
                 {.entry = "layer_group_norm", .inputs = {rows({3, 4})}, .attributes = {{"groups", whole(2)}}}});
  return cases;
}

Cases attention_layers() {
  const Port x = rows({3, 4});
  const std::pair<std::string, Port> memory = {"memory", rows({5, 2})};
  return {
      {.entry = "layer_multi_head_attention",
       .inputs = {x},
       .named = {{"lengths", lengths(3)}},
       .attributes = {{"heads", whole(2)}, {"causal", true}, {"rotary_base", 100.0}}},
      {.entry = "layer_multi_head_attention",
       .inputs = {x},
       .named = {memory},
       .attributes = {{"heads", whole(2)}, {"dropout", 0.25}},
       .is_by_micro_batch = true},
      {.entry = "layer_sinusoidal_positions", .inputs = {x}},
      {.entry = "layer_learned_positions", .inputs = {x}, .attributes = {{"count", whole(4)}}},
      {.entry = "layer_learned_positions",
       .inputs = {x},
       .named = {{"positions", numbers(4, {3})}},
       .attributes = {{"count", whole(4)}}},
      {.entry = "layer_rotary_positions", .inputs = {x}},
      {.entry = "layer_transformer_encoder",
       .inputs = {x},
       .named = {{"lengths", lengths(3)}},
       .attributes = {{"heads", whole(2)}, {"hidden", whole(5)}, {"dropout", 0.25}},
       .is_by_micro_batch = true},
      {.entry = "layer_transformer_decoder",
       .inputs = {x},
       .named = {memory, {"memory_lengths", lengths(5)}},
       .attributes = {{"heads", whole(2)}, {"hidden", whole(5)}, {"pre_norm", true}}},
  };
}

Cases recurrent_layers() {
  Cases cases;
  for (const char *layer : {"layer_rnn", "layer_lstm", "layer_gru"}) {
    append(cases,
           {{.entry = layer,
             .inputs = {rows({3, 2})},
             .named = {{"initial_state", carried({1, 3})}},
             .attributes = {{"units", whole(3)}}},
            {.entry = layer, .inputs = {rows({3, 2})}, .attributes = {{"units", whole(3)}}},
            {.entry = layer,
             .inputs = {rows({3, 2})},
             .named = {{"lengths", lengths(3)}},
             .attributes = {{"units", whole(2)}, {"layers", whole(2)}, {"bidirectional", true}, {"dropout", 0.25}},
             .is_by_micro_batch = true}});
  }
  return cases;
}

Cases other_layers() {
  const Attributes table = {{"count", whole(6)}, {"width", whole(3)}};
  return {
      {.entry = "layer_dense",
       .inputs = {rows({4})},
       .attributes = {{"units", whole(3)}, {"activation", text("tanh")}, {"kernel_l1", 0.01}}},
      {.entry = "layer_dense",
       .inputs = {rows({2, 4})},
       .attributes = {{"units", whole(3)}, {"kernel_constraint", text("max_norm(0.5)")}}},
      {.entry = "layer_residual_block2d",
       .inputs = {rows({4, 3, 2})},
       .attributes = {{"filters", whole(3)}, {"stride", whole(2)}},
       .is_by_micro_batch = true},
      {.entry = "layer_dropout", .inputs = {rows({4})}, .attributes = {{"rate", 0.25}}, .is_by_micro_batch = true},
      {.entry = "layer_flatten", .inputs = {rows({2, 3})}},
      {.entry = "layer_embedding", .inputs = {numbers(6, {2})}, .attributes = table, .limit = kSingle},
      {.entry = "layer_embedding_bag",
       .inputs = {numbers(6, {4})},
       .named = {{"weights", rows({4})}, {"lengths", lengths(4)}},
       .attributes = table,
       .limit = kSingle},
      {.entry = "layer_embedding_bag",
       .inputs = {numbers(6, {4})},
       .attributes = {{"count", whole(6)}, {"width", whole(3)}, {"combiner", text("max")}},
       .limit = kSingle},
  };
}

}  // namespace

Cases layer_cases() {
  Cases cases;
  for (const auto &list :
       {convolution_layers, pool_layers, normalization_layers, attention_layers, recurrent_layers, other_layers})
    append(cases, list());
  return cases;
}

}  // namespace tutti::testing::entries
