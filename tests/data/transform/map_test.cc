// SPDX-License-Identifier: Apache-2.0
//
// Maps and filters by graph.
#include <cstdint>

#include "conformance/dataset_conformance.h"
#include "data/graph/byte_table.h"
#include "data/graph/graph_plan.h"
#include "graph/builder.h"
#include "interpreting_runner.h"
#include "sample_data.h"

namespace map_test {

using namespace tutti::impl;
using namespace tutti::testing;
using data::DatasetRef;
using data::Element;
using data::Pipeline;
using graph::Dims;
using graph::GraphBuilder;
using graph::SealedGraph;
using tensor::DType;
using tensor::Tensor;

namespace {

SealedGraph seal(GraphBuilder &builder) {
  auto graph = builder.finish_graph();
  if (!graph.ok()) print_error("%s\n", graph.status().to_string().c_str());
  return std::make_shared<const graph::Graph>(graph.take());
}

// x ↦ x / 2 + 1.
SealedGraph halve(Dims dims, DType dtype = DType::f32) {
  GraphBuilder b;
  const auto x = b.cast(b.input("x", dtype, std::move(dims)), DType::f32);
  b.set_result("x", b.add(b.div(x, b.constant(2, DType::f32)), b.constant(1, DType::f32)));
  return seal(b);
}

// A new component: the sum of a row.
SealedGraph row_sum() {
  GraphBuilder b;
  b.set_result("sum", b.reduce_sum(b.input("x", DType::f32, {GraphBuilder::batch(), 3}), {1}));
  return seal(b);
}

// x plus noise keyed by where the row came from.
SealedGraph noisy() {
  GraphBuilder b;
  const auto x = b.input("x", DType::f32, {GraphBuilder::batch(), 3});
  const auto noise = b.op("random_uniform", std::initializer_list<graph::ValueId>{},
                          {{"dims", Dims{GraphBuilder::batch(), 3}}, {"low", 0.0}, {"high", 1.0}});
  b.set_result("x", b.add(x, noise));
  return seal(b);
}

SealedGraph small(Dims dims) {
  GraphBuilder b;
  const auto y = b.cast(b.input("y", DType::i32, std::move(dims)), DType::f32);
  b.set_result("keep", b.op("less", {y, b.constant(6, DType::f32)}));
  return seal(b);
}

Pipeline bytes(int64_t rows, int64_t columns) {
  std::vector<uint8_t> values;
  for (int64_t i = 0; i < rows * columns; ++i)
    values.push_back(static_cast<uint8_t>(i * 7));
  return Pipeline(data::from_slices(
      {{"x", Tensor::from_values<uint8_t>({rows, columns}, values).value()}, {"y", counted(rows), data::Role::label}}));
}

Pipeline mapped(Pipeline pipeline, SealedGraph graph, int64_t parallelism = 1) {
  data::TransformArguments arguments;
  arguments.graph = std::move(graph);
  return std::move(pipeline.apply("map", {{"parallelism", parallelism}}, std::move(arguments)));
}

Pipeline filtered(Pipeline pipeline, SealedGraph graph) {
  data::TransformArguments arguments;
  arguments.graph = std::move(graph);
  return std::move(pipeline.apply("filter", {}, std::move(arguments)));
}

const Dims kRow{3};
const Dims kRows{GraphBuilder::batch(), 3};

DatasetCase of(std::string name, std::function<Pipeline()> make) {
  return {std::move(name), [make] { return DatasetInstance{make().build()}; }, 64,
          std::make_shared<InterpretingRunner>()};
}

void maps_conform(void **) {
  const DatasetCase cases[] = {
      of("map of elements", [] { return mapped(sample(), halve(kRow)); }),
      of("map of rows", [] { return mapped(sample(), halve(kRows)); }),
      of("map, batch", [] { return std::move(mapped(sample(), halve(kRows)).batch(4)); }),
      of("map of elements, batch", [] { return std::move(mapped(sample(), halve(kRow)).shuffle(10).batch(4)); }),
      of("map, shuffle, batch", [] { return std::move(mapped(sample(), row_sum(), 0).shuffle(10).batch(4)); }),
      of("map, forward only", [] { return std::move(mapped(forward_only(sample()), row_sum()).batch(4)); }),
      of("map of many rows in parallel",
         [] { return std::move(mapped(sample(70000, 3), row_sum(), 4).shuffle(70000).batch(35000).repeat(2)); }),
      of("map of many rows in parallel, forward only",
         [] { return std::move(mapped(forward_only(sample(40000, 3)), row_sum(), 4).batch(30000)); }),
      of("batch, map", [] { return std::move(mapped(sample().shuffle(4).batch(4), halve(kRows)).prefetch(2)); }),
      of("batch, map in parallel", [] { return mapped(sample(40000, 3).batch(30000), row_sum(), 4); }),
      of("batch of views, map", [] { return mapped(sample(64, 3).batch(16), row_sum()); }),
      of("random map", [] { return std::move(mapped(sample(), noisy()).batch(3).repeat(2)); }),
      of("random map behind shuffle",
         [] { return std::move(mapped(sample().shuffle(10), noisy(), 4).batch(3).repeat(2)); }),
      of("random map of batches", [] { return std::move(mapped(sample().batch(3), noisy()).repeat(2)); }),
      of("random map, forward only", [] { return mapped(forward_only(sample()), noisy()); }),
      of("map of bytes", [] { return std::move(mapped(bytes(10, 3), halve(kRow, DType::u8)).shuffle(10).batch(3)); }),
      of("map of batches of bytes", [] { return mapped(bytes(10, 3).batch(3), halve(kRows, DType::u8)); }),
      of("map, cache",
         [] { return std::move(mapped(sample(), row_sum()).apply("cache").shuffle(10).batch(4).repeat(2)); }),
      of("filter", [] { return std::move(filtered(sample(), small({})).batch(4)); }),
      of("filter by rows", [] { return filtered(sample().shuffle(10), small({GraphBuilder::batch()})); }),
  };
  for (const DatasetCase &one : cases) {
    check_dataset_case(one);
    check_dataset_leaving(one);
  }
}

void map_gives_the_values_of_the_graph(void **) {
  data::IteratorContext context;
  context.graphs = std::make_shared<InterpretingRunner>();
  for (const Dims &dims : {kRow, kRows}) {
    const DatasetRef dataset = assert_ok_value(mapped(sample(3), halve(dims)).batch(2).build());
    const std::vector<float> x = values_of<float>(dataset, "x", context);
    assert_int_equal(x.size(), 9);
    for (int64_t i = 0; i < 9; ++i) {
      assert_true(x[static_cast<size_t>(i)] == static_cast<float>(100 * (i / 3) + i % 3) / 2 + 1);
    }
    const std::vector<int32_t> y = values_of<int32_t>(dataset, "y", context);
    assert_true((y == std::vector<int32_t>{0, 1, 2}));
    assert_true(dataset->spec().components[1].role == data::Role::label);
  }
}

void rowwise_maps_run_on_whole_batches(void **) {
  const auto runner = std::make_shared<InterpretingRunner>();
  data::IteratorContext context;
  context.graphs = runner;
  const DatasetRef dataset = assert_ok_value(mapped(sample(1000), row_sum()).shuffle(1000).batch(500).build());
  assert_int_equal(values_of<float>(dataset, "sum", context).size(), 1000);
  assert_int_equal(runner->runs.load(), 2);
}

void elementwise_maps_of_bytes_are_tables(void **) {
  const auto runner = std::make_shared<InterpretingRunner>();
  data::IteratorContext context;
  context.graphs = runner;
  for (const bool batch_first : {true, false}) {
    runner->runs = 0;
    const SealedGraph graph = halve(kRows, DType::u8);
    const DatasetRef dataset = assert_ok_value(batch_first ? mapped(bytes(100, 3).batch(50), graph).build()
                                                           : mapped(bytes(100, 3), graph).batch(50).build());
    const std::vector<float> x = values_of<float>(dataset, "x", context);
    assert_int_equal(x.size(), 300);
    for (size_t i = 0; i < x.size(); ++i)
      assert_true(x[i] == static_cast<float>(static_cast<uint8_t>(i * 7)) / 2 + 1);
    assert_int_equal(runner->runs.load(), 1);
  }
  // A sum over the row is no function of single bytes.
  GraphBuilder b;
  b.set_result("x", b.reduce_sum(b.cast(b.input("x", DType::u8, kRows), DType::f32), {1}));
  const DatasetRef source = assert_ok_value(bytes(4, 3).build());
  const data::GraphPlan plan = assert_ok_value(data::plan_graph(seal(b), source->spec(), {}, {}));
  assert_int_equal(assert_ok_value(data::make_byte_tables(plan, *runner)).size(), 0);
}

void random_maps_do_not_depend_on_order_or_grouping(void **) {
  data::IteratorContext context;
  context.graphs = std::make_shared<InterpretingRunner>();
  context.seed = 3;
  const auto by_label = [&](Pipeline pipeline, int64_t epoch) {
    context.epoch = epoch;
    const DatasetRef dataset = pipeline.build().value();
    const std::vector<float> x = values_of<float>(dataset, "x", context);
    const std::vector<int32_t> y = values_of<int32_t>(dataset, "y", context);
    std::map<int32_t, float> values;
    for (size_t i = 0; i < y.size(); ++i)
      values[y[i]] = x[3 * i];
    return values;
  };
  const auto plain = by_label(mapped(sample(), noisy()), 0);
  assert_int_equal(plain.size(), 10);
  assert_true(plain == by_label(std::move(mapped(sample().shuffle(10), noisy()).batch(3)), 0));
  assert_true(plain == by_label(std::move(mapped(sample().shuffle(4), noisy(), 8).prefetch(2)), 0));
  assert_true(plain == by_label(mapped(forward_only(sample()), noisy()), 0));
  assert_true(plain != by_label(mapped(sample(), noisy()), 1));
}

void a_failing_graph_fails_for_its_element(void **) {
  const auto runner = std::make_shared<InterpretingRunner>();
  runner->refused = 201;
  data::IteratorContext context;
  context.graphs = runner;
  const DatasetRef dataset = assert_ok_value(mapped(sample(4), row_sum()).build());
  auto iterator = assert_ok_value(dataset->make_iterator(context));
  Element element;
  assert_true(assert_ok_value(iterator->next(element)));
  assert_true(assert_ok_value(iterator->next(element)));
  const auto failed = iterator->next(element);
  assert_error_contains(failed, "map: the graph failed for element 2 of epoch 0 [element=2, epoch=0");
  assert_error_contains(failed, "]; caused by: INVALID_ARGUMENT: the value 201 is refused");
  assert_true(assert_ok_value(iterator->next(element)));
  assert_int_equal(assert_ok_value(element.components[0].scalar_value<int32_t>()), 3);
  assert_false(assert_ok_value(iterator->next(element)));
}

void bad_graphs_are_refused_by_name(void **) {
  const auto status_of_map = [](Pipeline source, GraphBuilder &b) {
    return mapped(std::move(source), seal(b)).build();
  };
  {
    GraphBuilder b;
    b.set_result("x", b.input("xx", DType::f32, kRow));
    assert_error_contains(status_of_map(sample(), b), "graph input 'xx' is not a component");
  }
  {
    GraphBuilder b;
    b.set_result("x", b.input("x", DType::i32, kRow));
    assert_error_contains(status_of_map(sample(), b),
                          "graph input 'x' is i32[3], the component of the elements is x: f32[3]");
  }
  {
    GraphBuilder b;
    b.set_result("x", b.input("x", DType::f32, {4}));
    assert_error_contains(status_of_map(sample(), b), "graph input 'x' is f32[4]");
  }
  {
    GraphBuilder b;
    b.set_result("total", b.reduce_sum(b.input("x", DType::f32, kRows)));
    assert_error_contains(status_of_map(sample(), b), "graph result 'total' [] does not carry the rows on axis 0");
  }
  {
    GraphBuilder b;
    b.set_result("x", b.input("x", DType::f32, {4, 3}));
    assert_error_contains(status_of_map(std::move(sample().batch(4)), b),
                          "expected graph inputs that begin with the batch");
  }
  {
    GraphBuilder b;
    b.input("x", DType::f32, kRow);
    assert_error_contains(status_of_map(sample(), b), "the graph has no results");
  }
  assert_error_contains(sample().apply("map").build(), "expected the argument 'graph'");
  assert_error_contains(filtered(sample(), row_sum()).build(), "expected a graph with one boolean per element");
  assert_error_contains(filtered(std::move(sample().batch(2)), small({GraphBuilder::batch()})).build(),
                        "put it before the batch");
  const DatasetRef dataset = assert_ok_value(mapped(sample(), row_sum()).build());
  assert_error_contains(dataset->make_iterator({}), "cannot run graphs");
}

void results_can_be_labels(void **) {
  data::TransformArguments arguments;
  arguments.graph = row_sum();
  arguments.labels = {"sum"};
  const DatasetRef dataset = assert_ok_value(sample().apply("map", {}, arguments).build());
  assert_string_equal(dataset->spec().to_string().c_str(), "(y: i32[] label, sum: f32[] label)");
  arguments.labels = {"sums"};
  assert_error_contains(sample().apply("map", {}, arguments).build(),
                        "graph has no result 'sums', did you mean 'sum'?");
}

void graphs_run_on_elements_of_varying_shape(void **) {
  data::TransformArguments stretch;
  stretch.map = [](const Element &input, Element &output) -> base::Status {
    TUTTI_ASSIGN(const int64_t value, input.components[0].scalar_value<int64_t>());
    output.components.push_back(Tensor::zeros(DType::f32, {value}).value());
    return base::Status();
  };
  stretch.output_spec = data::ElementSpec{{{"x", data::Role::feature, DType::f32, {data::unknown_dim()}}}};
  Pipeline source = std::move(range(5).apply("map_callback", {}, std::move(stretch)));
  const DatasetRef dataset = assert_ok_value(mapped(std::move(source), halve({graph::Dim::symbol("length")})).build());
  assert_string_equal(dataset->spec().to_string().c_str(), "(x: f32[unknown])");
  data::IteratorContext context;
  context.graphs = std::make_shared<InterpretingRunner>();
  const std::vector<float> x = values_of<float>(dataset, "x", context);
  assert_true(x == std::vector<float>(10, 1.0f));
}

}  // namespace

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(maps_conform),
    cmocka_unit_test(map_gives_the_values_of_the_graph),
    cmocka_unit_test(rowwise_maps_run_on_whole_batches),
    cmocka_unit_test(elementwise_maps_of_bytes_are_tables),
    cmocka_unit_test(random_maps_do_not_depend_on_order_or_grouping),
    cmocka_unit_test(a_failing_graph_fails_for_its_element),
    cmocka_unit_test(bad_graphs_are_refused_by_name),
    cmocka_unit_test(results_can_be_labels),
    cmocka_unit_test(graphs_run_on_elements_of_varying_shape),
};
TEST_MAIN(tests)

}  // namespace map_test
