// SPDX-License-Identifier: Apache-2.0
//
// Layers of convolution, pooling, shapes and embeddings with their gradients against those of Keras and PyTorch:
// golden/layers.json, written by golden/make_layer_golden.py. Variables are inputs of the graph here.
//
// usage: backend_layers_test BACKEND DIRECTORY
#include <span>
#include <string>
#include <utility>

#include "base/text.h"
#include "entry_cases.h"
#include "graph/clone.h"
#include "testing.h"

namespace backend_layers_test {

using namespace tutti::impl;
using conformance::GoldenCase;
using graph::GraphBuilder;
using graph::kNoValue;
using graph::ValueId;

namespace {

conformance::EntryCases entries;

/// The layer in a graph of its own, which has its variables.
struct Layer {
  GraphBuilder builder;
  GraphBuilder::Values inputs;
  ValueId result = kNoValue;

  explicit Layer(const GoldenCase &golden) {
    for (const int64_t port : golden.ports) {
      if (port < 0) {
        inputs.push_back(kNoValue);
        continue;
      }
      const tensor::Tensor &value = golden.inputs.at(static_cast<size_t>(port));
      const std::vector<int64_t> dims(value.shape().begin(), value.shape().end());
      inputs.push_back(builder.input("i" + std::to_string(port), value.dtype(), graph::to_dims(dims)));
    }
    result = nn::expand(builder, golden.op, 1, inputs, golden.attributes, {.training = true});
  }
};

/// Inputs and variables of the layer stand for these inputs.
base::Status map_all(const GoldenCase &golden, const Layer &layer, const GraphBuilder::Values &inputs,
                     const GraphBuilder &builder, graph::NodeCloner &cloner) {
  for (size_t i = 0; i < golden.ports.size(); ++i) {
    if (golden.ports[i] >= 0) cloner.map(layer.inputs[i], inputs.at(static_cast<size_t>(golden.ports[i])));
  }
  if (layer.builder.model().variables.size() != golden.variables.size())
    return base::internal_error("has ", layer.builder.model().variables.size(), " variables, expected ",
                                golden.variables.size());
  for (const graph::VariableSpec &variable : layer.builder.model().variables) {
    const auto found = golden.variables.find(variable.name);
    if (found == golden.variables.end()) return base::internal_error("has a variable '", variable.name, "'");
    const ValueId value = inputs.at(static_cast<size_t>(found->second));
    if (builder.dims(value) != graph::to_dims(variable.dims)) {
      return base::internal_error("variable '", variable.name, "' is ", graph::to_string(graph::to_dims(variable.dims)),
                                  ", expected ", graph::to_string(builder.dims(value)));
    }
    cloner.map(variable.value, value);
  }
  return base::Status();
}

GraphBuilder::Values build(GraphBuilder &builder, const GoldenCase &golden, const GraphBuilder::Values &inputs) {
  const Layer layer(golden);
  base::Status status = layer.builder.status();
  graph::NodeCloner cloner(layer.builder.graph(), builder);
  if (status.ok()) status = map_all(golden, layer, inputs, builder, cloner);
  if (!status.ok()) return {builder.fail(status.wrap(golden.op))};
  const auto result = cloner.clone_value(layer.result);
  if (!result.ok()) return {builder.fail(result.status())};
  return conformance::with_gradients(builder, golden, inputs, {*result});
}

int count_wrong(std::span<const GoldenCase> some, size_t line, backend::Level level, const char *instructions) {
  return conformance::count_wrong_results(entries, "layers.json", some, line, level, instructions, build);
}

void test_values_and_gradients(void **) {
  const int wrong = conformance::count_wrong_cases(entries, 16, count_wrong);
  assert_true(entries.cases.size() > 150);
  assert_int_equal(wrong, 0);
}

/// No such layer is left out, and no attribute.
void test_every_layer_has_numbers(void **) {
  const auto has_other_tests = [](std::string_view name) {
    for (const char *const other :
         {"layer_dense", "layer_dropout", "layer_flatten", "layer_multi_head_attention", "layer_rnn", "layer_lstm",
          "layer_gru", "layer_transformer_encoder", "layer_transformer_decoder", "layer_residual_block2d"}) {
      if (name == other) return true;
    }
    return name.ends_with("_norm") || name.ends_with("_positions");
  };
  conformance::assert_every_entry_has_cases(entries, [&](const nn::Definition &definition) {
    return definition.name.starts_with("layer_") && !has_other_tests(definition.name);
  });
}

}  // namespace

static int run_all(int argc, char **argv) {
  const CMUnitTest tests[] = {
      cmocka_unit_test(test_values_and_gradients),
      cmocka_unit_test(test_every_layer_has_numbers),
  };
  return conformance::run_entry_tests(argc, argv, "layers.json", entries, "layers", tests);
}
TEST_SOURCE(run_all)

}  // namespace backend_layers_test
