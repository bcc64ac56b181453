// SPDX-License-Identifier: Apache-2.0
#include "graph/builder.h"
#include "sample_data.h"
#include "tensor/bytes_tensor.h"
#include "testing.h"

namespace lint_test {

using namespace tutti::impl;
using namespace tutti::testing;
using data::Pipeline;
using graph::GraphBuilder;
using tensor::DType;

namespace {

const graph::Attributes kOnlyX{{"features", std::vector<std::string>{"x"}}};
const graph::Attributes kByY{{"component", std::string("y")}, {"counts", std::vector<int64_t>(10, 1)}};

data::TransformArguments identity() {
  data::TransformArguments arguments;
  arguments.map = [](const data::Element &input, data::Element &output) {
    output = input;
    return base::Status();
  };
  return arguments;
}

// Ten images f32[4, 5, 3], or f32[4, 5] without an axis for the channels.
Pipeline images(bool has_channels = true) {
  const std::vector<float> pixels(10 * 4 * 5 * 3, 1);
  const tensor::Shape shape = has_channels ? tensor::Shape({10, 4, 5, 3}) : tensor::Shape({30, 4, 5});
  return Pipeline(
      data::from_slices({{"x", tensor::Tensor::from_values<float>(shape, std::span<const float>(pixels)).value()}}));
}

using Dims = graph::Dims;
const Dims kImages{GraphBuilder::batch(), 4, 5, 3};

data::TransformArguments by(GraphBuilder &builder) {
  data::TransformArguments arguments;
  arguments.graph = std::make_shared<const graph::Graph>(builder.finish_graph().take());
  return arguments;
}

// x by an op.
data::TransformArguments op(const char *name, const Dims &dims = kImages, graph::Attributes attributes = {}) {
  GraphBuilder b;
  b.set_result("x", b.op(name, {b.input("x", DType::f32, dims)}, std::move(attributes)));
  return by(b);
}

// x and one image of noise.
data::TransformArguments noise(const Dims &dims) {
  GraphBuilder b;
  b.set_result("x", b.add(b.input("x", DType::f32, kImages), b.op("random_uniform", {}, {{"dims", dims}})));
  return by(b);
}

data::TransformArguments two_by_two() { return op("resize", kImages, {{"size", std::vector<int64_t>{2, 2}}}); }

std::string warnings(Pipeline pipeline) { return base::join(data::lint(*pipeline.build().value()).value(), "\n"); }

void good_orders_are_left_alone(void **) {
  assert_string_equal(
      warnings(sample().apply("map_callback", {}, identity()).apply("cache").shuffle(10).batch(2).prefetch()).c_str(),
      "");
  const graph::Attributes program{{"command", std::vector<std::string>{"true"}}};
  assert_string_equal(warnings(sample().batch(2).apply("map_process", program).prefetch()).c_str(), "");
  assert_string_equal(
      warnings(sample().shuffle(10).repeat(2).batch(2).prefetch().apply("take", {{"count", int64_t{3}}})).c_str(), "");
  assert_string_equal(warnings(sample().shuffle(10).batch(2).prefetch().apply("select", kOnlyX)).c_str(), "");
  assert_string_equal(warnings(sample().apply("class_weights", kByY).shuffle(10).batch(2).prefetch()).c_str(), "");
  assert_string_equal(warnings(images().apply("cache").apply("map", {}, op("random_flip")).batch(2).prefetch()).c_str(),
                      "");
  assert_string_equal(warnings(images().batch(2).apply("map", {}, op("random_flip")).prefetch()).c_str(), "");
  assert_string_equal(warnings(images().batch(2).apply("map", {}, noise(kImages)).prefetch()).c_str(), "");
  assert_string_equal(warnings(images().apply("map", {}, two_by_two()).batch(2).prefetch()).c_str(), "");
  assert_string_equal(
      warnings(images().batch(2).apply("map", {{"parallelism", int64_t{2}}}, two_by_two()).prefetch()).c_str(), "");
  assert_string_equal(
      warnings(images().apply("shard", {{"num_shards", int64_t{2}}, {"index", int64_t{0}}}).shuffle(3).prefetch())
          .c_str(),
      "");
}

void draws_for_whole_batches_are_named(void **) {
  assert_contains(warnings(images().batch(2).apply("map", {}, noise({4, 5, 3})).prefetch()).c_str(),
                  "batch before map with random_uniform");
  // Before the batch it is a draw for each element.
  assert_string_equal(warnings(images().apply("map", {}, noise({4, 5, 3})).batch(2).prefetch()).c_str(), "");
  const Dims no_channels{GraphBuilder::batch(), 4, 5};
  for (const bool is_batched : {false, true}) {
    Pipeline pipeline = images(false);
    if (is_batched) pipeline.batch(2);
    assert_contains(warnings(pipeline.apply("map", {}, op("random_flip", no_channels)).prefetch()).c_str(),
                    "map with random_flip: it takes [batch, ...] with three axes");
  }
}

void bad_orders_are_named(void **) {
  assert_contains(warnings(sample().shuffle(10).apply("cache").prefetch()).c_str(), "cache after shuffle");
  assert_contains(warnings(sample().repeat(2).apply("cache").prefetch()).c_str(), "cache after repeat");
  assert_contains(
      warnings(sample()
                   .apply("resample", {{"component", std::string("y")}, {"initial", std::vector<double>(10, 1.0)}})
                   .apply("cache")
                   .prefetch())
          .c_str(),
      "cache after resample");
  assert_contains(warnings(sample().batch(2).shuffle(3).prefetch()).c_str(), "shuffle after batch");
  assert_contains(
      warnings(sample().batch(2).apply("map_callback", {}, identity()).prefetch().shuffle(3).prefetch()).c_str(),
      "shuffle after batch");
  assert_contains(warnings(sample().repeat(2).shuffle(3).prefetch()).c_str(), "shuffle after repeat");
  assert_contains(
      warnings(sample().shuffle(3).apply("shard", {{"num_shards", int64_t{2}}, {"index", int64_t{0}}}).prefetch())
          .c_str(),
      "shard after shuffle");
  const auto taken = [](int64_t count) {
    return warnings(sample().apply("cache").apply("take", {{"count", count}}).shuffle(3).prefetch());
  };
  assert_contains(taken(3).c_str(), "cache before take");
  assert_string_equal(taken(1000000).c_str(), "");
  assert_contains(warnings(images().apply("map", {}, op("random_flip")).apply("cache").prefetch()).c_str(),
                  "cache after map with random_flip");
  assert_contains(warnings(images().batch(2).apply("map", {}, two_by_two()).prefetch()).c_str(),
                  "batch before map with resize");
  const graph::Attributes program{{"command", std::vector<std::string>{"true"}}};
  assert_contains(warnings(sample().batch(2).apply("map_process", program).shuffle(2).prefetch()).c_str(),
                  "shuffle after batch");
  assert_contains(warnings(sample().batch(2)).c_str(), "no prefetch at the end");
  assert_contains(warnings(sample().prefetch().batch(2)).c_str(), "no prefetch at the end");
  assert_contains(warnings(sample().batch(2).apply("map_callback", {}, identity()).prefetch()).c_str(),
                  "batch before map_callback");
  assert_contains(
      warnings(sample().batch(2).apply("select", kOnlyX).apply("map_callback", {}, identity()).prefetch()).c_str(),
      "batch before map_callback");
}

}  // namespace

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(good_orders_are_left_alone),
    cmocka_unit_test(draws_for_whole_batches_are_named),
    cmocka_unit_test(bad_orders_are_named),
};
TEST_MAIN(tests)

}  // namespace lint_test
