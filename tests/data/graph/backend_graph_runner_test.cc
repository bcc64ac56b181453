// SPDX-License-Identifier: Apache-2.0
//
// Maps on a real backend: the reference gives what the interpreting runner of the other tests gives, random ops
// included.
#include "data/graph/backend_graph_runner.h"

#include <cmath>

#include "backend/reference/reference_backend.h"
#include "conformance/dataset_conformance.h"
#include "graph/builder.h"
#include "interpreting_runner.h"
#include "sample_data.h"

namespace backend_graph_runner_test {

using namespace tutti::impl;
using namespace tutti::testing;
using data::DatasetRef;
using data::Pipeline;
using graph::Dims;
using graph::GraphBuilder;
using tensor::DType;

namespace {

std::shared_ptr<data::GraphRunner> reference_runner() {
  auto backend = backend::Backend::create(backend::reference::entry, "{}", {});
  if (!backend.ok()) return nullptr;
  auto device = (*backend)->open_device(0);
  return device.ok() ? data::BackendGraphRunner::create(device.take()) : nullptr;
}

Pipeline mapped(Pipeline pipeline, GraphBuilder &builder, int64_t parallelism = 1) {
  data::TransformArguments arguments;
  arguments.graph = std::make_shared<const graph::Graph>(builder.finish_graph().value());
  return std::move(pipeline.apply("map", {{"parallelism", parallelism}}, std::move(arguments)));
}

// x ↦ (x + noise) / 3, keyed by row.
Pipeline noisy(Pipeline pipeline, int64_t parallelism = 1) {
  GraphBuilder b;
  const Dims rows{GraphBuilder::batch(), 3};
  const auto noise =
      b.op("random_uniform", std::initializer_list<graph::ValueId>{}, {{"dims", rows}, {"low", 0.0}, {"high", 1.0}});
  b.set_result("x", b.div(b.add(b.input("x", DType::f32, rows), noise), b.constant(3, DType::f32)));
  return mapped(std::move(pipeline), b, parallelism);
}

Pipeline row_sum(Pipeline pipeline, int64_t parallelism = 1) {
  GraphBuilder b;
  b.set_result("sum", b.reduce_sum(b.input("x", DType::f32, {GraphBuilder::batch(), 3}), {1}));
  return mapped(std::move(pipeline), b, parallelism);
}

Pipeline normalised_bytes(int64_t rows) {
  std::vector<uint8_t> values(static_cast<size_t>(rows * 4));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<uint8_t>(i * 5);
  GraphBuilder b;
  const auto x = b.cast(b.input("x", DType::u8, {GraphBuilder::batch(), 4}), DType::f32);
  b.set_result("x", b.div(x, b.constant(255, DType::f32)));
  return mapped(Pipeline(data::from_slices({{"x", tensor::Tensor::from_values<uint8_t>({rows, 4}, values).value()}})),
                b);
}

void maps_conform_on_the_reference(void **) {
  const std::shared_ptr<data::GraphRunner> runner = reference_runner();
  assert_non_null(runner.get());
  const auto of = [&](std::string name, std::function<Pipeline()> make) {
    return DatasetCase{std::move(name), [make] { return DatasetInstance{make().build()}; }, 64, runner};
  };
  const DatasetCase cases[] = {
      of("row sums", [] { return std::move(row_sum(sample(), 4).shuffle(10).batch(4)); }),
      of("row sums of many", [] { return std::move(row_sum(sample(40000), 4).batch(30000)); }),
      of("noise", [] { return std::move(noisy(sample()).shuffle(10).batch(4).repeat(2).prefetch(2)); }),
      of("noise on batches", [] { return noisy(sample().batch(4)); }),
      of("bytes", [] { return std::move(normalised_bytes(10).shuffle(10).batch(3)); }),
  };
  for (const DatasetCase &one : cases)
    check_dataset_case(one);
}

void two_runners_give_the_same_bytes(void **) {
  data::IteratorContext reference;
  reference.seed = 11;
  reference.graphs = reference_runner();
  data::IteratorContext interpreted = reference;
  interpreted.graphs = std::make_shared<InterpretingRunner>();
  const DatasetRef datasets[] = {
      assert_ok_value(noisy(sample()).batch(3).build()),
      assert_ok_value(normalised_bytes(100).batch(7).build()),
  };
  for (const DatasetRef &dataset : datasets) {
    const std::vector<float> expected = values_of<float>(dataset, "x", interpreted);
    assert_true(expected.size() > 10);
    assert_true(expected == values_of<float>(dataset, "x", reference));
  }
}

// Each row's number.
Pipeline numbered(Pipeline pipeline) {
  GraphBuilder b;
  const auto zeros = b.scale(b.reduce_sum(b.input("x", DType::f32, {GraphBuilder::batch(), 3}), {1}), 0);
  const auto rows = b.op("iota", std::initializer_list<graph::ValueId>{}, {{"dims", Dims{GraphBuilder::batch()}}});
  b.set_result("row", b.add(b.cast(zeros, DType::i64), rows));
  return mapped(std::move(pipeline), b, 4);
}

// An element alone is row 0; a batch is numbered as a whole, however many threads run it.
void rows_are_numbered_by_the_element(void **) {
  data::IteratorContext context;
  context.graphs = reference_runner();
  const DatasetRef alone = assert_ok_value(numbered(sample(1000)).batch(100).build());
  assert_true(values_of<int64_t>(alone, "row", context) == std::vector<int64_t>(1000, 0));
  const DatasetRef batched = assert_ok_value(numbered(sample(80000).batch(40000)).build());
  const std::vector<int64_t> rows = values_of<int64_t>(batched, "row", context);
  assert_int_equal(rows.size(), 80000);
  for (size_t i = 0; i < rows.size(); ++i)
    assert_int_equal(rows[i], i % 40000);
}

// What looks at all rows of a batch sees those of the whole one: softmax over them, the place of the largest, a row.
Pipeline compared(Pipeline pipeline) {
  GraphBuilder b;
  const auto x = b.input("x", DType::f32, {GraphBuilder::batch(), 3});
  const auto largest = b.cast(b.op("argmax", {x}, {{"axis", int64_t{0}}}), DType::f32);
  const auto first = b.op("gather", {x, b.constant(0, DType::i64)}, {{"axis", int64_t{0}}});
  b.set_result("share", b.op("softmax", {b.scale(x, 1.0 / 128)}, {{"axis", int64_t{0}}}));
  b.set_result("largest", b.add(b.scale(x, 0), largest));
  b.set_result("first", b.add(b.scale(x, 0), first));
  return mapped(std::move(pipeline), b, 4);
}

void rows_are_compared_within_the_batch(void **) {
  data::IteratorContext context;
  context.graphs = reference_runner();
  constexpr int64_t kRows = 40000;
  constexpr double kStep = 100.0 / 128;
  const DatasetRef dataset = assert_ok_value(compared(sample(2 * kRows).batch(kRows)).build());
  const std::vector<float> share = values_of<float>(dataset, "share", context),
                           largest = values_of<float>(dataset, "largest", context),
                           first = values_of<float>(dataset, "first", context);
  assert_int_equal(share.size(), 3 * 2 * kRows);
  assert_int_equal(largest.size(), share.size());
  assert_int_equal(first.size(), share.size());
  for (int64_t row = 0; row < 2 * kRows; ++row) {
    const int64_t batch = row / kRows, behind = kRows - 1 - row % kRows;
    for (int64_t column = 0; column < 3; ++column) {
      const auto i = static_cast<size_t>(3 * row + column);
      // What is added from row to row is the same, so the shares are a geometric series.
      assert_float_equal(share[i], (1 - std::exp(-kStep)) * std::exp(-kStep * static_cast<double>(behind)), 1e-6);
      assert_true(largest[i] == kRows - 1);
      assert_true(first[i] == static_cast<float>(100 * batch * kRows + column));
    }
  }
}

}  // namespace

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(maps_conform_on_the_reference),
    cmocka_unit_test(two_runners_give_the_same_bytes),
    cmocka_unit_test(rows_are_numbered_by_the_element),
    cmocka_unit_test(rows_are_compared_within_the_batch),
};
TEST_MAIN(tests)

}  // namespace backend_graph_runner_test
