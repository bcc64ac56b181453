// SPDX-License-Identifier: Apache-2.0
//
// What every stage counts (walk_report.h): one row of a table for each transform of the registry, so that a new one
// without counters fails here.
#include <functional>
#include <set>
#include <thread>

#include "../base/temporary_directory.h"
#include "conformance/dataset_conformance.h"
#include "graph/builder.h"
#include "interpreting_runner.h"
#include "sample_data.h"

namespace stage_counters_test {

using namespace tutti::impl;
using namespace tutti::testing;
using base::Result;
using base::Status;
using data::DatasetRef;
using data::Element;
using data::Pipeline;
using graph::GraphBuilder;
using tensor::DType;
using tensor::Tensor;

namespace {

const graph::Dims kBatched{GraphBuilder::batch(), 3};

data::TransformArguments others() {
  data::TransformArguments arguments;
  arguments.others = {sample(5).build().value()};
  return arguments;
}

data::TransformArguments other_range() {
  data::TransformArguments arguments;
  arguments.others = {range(9).build().value()};
  return arguments;
}

data::TransformArguments mapping() {
  data::TransformArguments arguments;
  arguments.map = [](const Element &input, Element &output) {
    output = input;
    return Status();
  };
  return arguments;
}

data::TransformArguments keeping() {
  data::TransformArguments arguments;
  arguments.filter = [](const Element &, bool &keep) {
    keep = true;
    return Status();
  };
  return arguments;
}

data::TransformArguments expanding() {
  data::TransformArguments arguments;
  arguments.expand = [](const Element &) { return sample(100).build(); };  // more than buffers hold
  return arguments;
}

data::TransformArguments by(GraphBuilder &builder) {
  data::TransformArguments arguments;
  arguments.graph = std::make_shared<const graph::Graph>(builder.finish_graph().take());
  return arguments;
}

// x ↦ x / 2, for rows or for single elements.
data::TransformArguments halving(graph::Dims dims) {
  GraphBuilder b;
  b.set_result("x", b.div(b.input("x", DType::f32, std::move(dims)), b.constant(2, DType::f32)));
  return by(b);
}

// y < 100
data::TransformArguments asking() {
  GraphBuilder b;
  const auto y = b.cast(b.input("y", DType::i32, {GraphBuilder::batch()}), DType::f32);
  b.set_result("holds", b.op("less", {y, b.constant(100, DType::f32)}));
  return by(b);
}

// x becomes the sum of all x so far.
data::TransformArguments summing(bool by_graph) {
  GraphBuilder b;
  const auto sum = b.add(b.input("x", DType::f32, {3}), b.input("sum", DType::f32, {3}));
  b.set_result("x", sum);
  b.set_result("sum", sum);
  data::TransformArguments arguments = by_graph ? by(b) : data::TransformArguments();
  arguments.state = {{"sum", Tensor::zeros(DType::f32, {3}).take()}};
  if (by_graph) return arguments;
  arguments.scan = [](const Element &state, const Element &input, Element &next, Element &output) {
    next.components = state.components;
    output.components = input.components;
    return Status();
  };
  return arguments;
}

// Records that a parser finds the number 7 in, under the name "a".
Pipeline records(std::string_view record) {
  const std::vector<std::string_view> all(6, record);
  return Pipeline(
      data::from_slices({{"record", tensor::make_bytes_tensor({6}, std::span<const std::string_view>(all)).value()}}));
}
constexpr std::string_view kExample{"\x0a\x0c\x0a\x0a\x0a\x01\x61\x12\x05\x1a\x03\x0a\x01\x07", 14};
constexpr std::string_view kSequence{"\x12\x0e\x0a\x0c\x0a\x01\x61\x12\x07\x0a\x05\x1a\x03\x0a\x01\x07", 16};

std::string fresh_path() {
  static const TemporaryDirectory directory;
  static int64_t number = 0;
  return directory / base::concat("kept", ++number);
}

struct Row {
  const char *transform;
  graph::Attributes attributes = {};
  std::function<data::TransformArguments()> arguments = [] { return data::TransformArguments(); };
  std::function<Pipeline()> source = [] { return forward_only(sample(12)); };
  bool has_queue = false;  // does it hand over what threads have made ready?
  const char *kind = nullptr;
};

// x of a length that is not known before.
Pipeline unstatic() {
  data::TransformArguments arguments = mapping();
  arguments.output_spec = data::ElementSpec{
      {{"x", data::Role::feature, DType::f32, {data::unknown_dim()}}, {"y", data::Role::label, DType::i32, {}}}};
  return std::move(forward_only(sample(12)).apply("map_callback", {}, std::move(arguments)));
}

Pipeline batches() { return std::move(forward_only(sample(12)).batch(3)); }

std::vector<Row> callback_rows() {
  const int64_t two = 2;
  return {
      {.transform = "filter", .arguments = asking},
      {.transform = "filter_callback", .arguments = keeping},
      {.transform = "flat_map", .arguments = expanding},
      {.transform = "flat_map", .attributes = {{"read_ahead", true}}, .arguments = expanding, .has_queue = true},
      {.transform = "interleave_callback", .arguments = expanding},
      {.transform = "interleave_callback",
       .attributes = {{"parallelism", two}},
       .arguments = expanding,
       .has_queue = true},
      {.transform = "map", .arguments = [] { return halving(kBatched); }},
      {.transform = "map", .arguments = [] { return halving(kBatched); }, .source = [] { return sample(12); }},
      {.transform = "map", .arguments = [] { return halving(kBatched); }, .source = batches},
      {.transform = "map",
       .attributes = {{"parallelism", two}},
       .arguments = [] { return halving({data::unknown_dim()}); },
       .source = unstatic,
       .has_queue = true},
      {.transform = "map_callback", .arguments = mapping},
      {.transform = "map_callback", .attributes = {{"parallelism", two}}, .arguments = mapping, .has_queue = true},
      {.transform = "map_process",
       .attributes = {{"command", std::vector<std::string>{MAP_WORKER, "copy"}}, {"processes", two}},
       .has_queue = true},
      {.transform = "scan", .arguments = [] { return summing(true); }},
      {.transform = "scan_callback", .arguments = [] { return summing(false); }},
      {.transform = "take_while", .arguments = asking},
      {.transform = "take_while_callback", .arguments = keeping},
  };
}

std::vector<Row> keeping_rows() {
  const auto one = [](const char *name, int64_t value) { return graph::Attributes{{name, value}}; };
  return {
      {.transform = "batch", .attributes = one("batch_size", 4)},
      {.transform = "batch", .attributes = one("batch_size", 4), .source = [] { return sample(12); }},
      {.transform = "bucket_by_length",
       .attributes = {{"component", std::string("x")},
                      {"boundaries", std::vector<int64_t>{2, 4}},
                      {"batch_sizes", std::vector<int64_t>{2}}}},
      {.transform = "cache"},
      {.transform = "cache",
       .attributes = {{"path", fresh_path()}, {"key", std::string("kept")}},
       .kind = "file_cache"},
      {.transform = "padded_batch", .attributes = one("batch_size", 4), .source = unstatic},
      {.transform = "prefetch", .has_queue = true},
      {.transform = "rebatch", .attributes = one("batch_size", 5), .source = batches, .kind = "batch"},
      {.transform = "shuffle", .attributes = one("buffer_size", 4)},
      {.transform = "shuffle", .attributes = one("buffer_size", 4), .source = [] { return sample(12); }},
      {.transform = "snapshot", .attributes = {{"path", fresh_path()}, {"key", std::string("kept")}}},
      {.transform = "unbatch", .source = batches},
      {.transform = "unique", .attributes = {{"component", std::string("y")}}},
      {.transform = "window", .attributes = one("size", 3)},
  };
}

std::vector<Row> other_rows() {
  const auto one = [](const char *name, int64_t value) { return graph::Attributes{{name, value}}; };
  return {
      {.transform = "class_weights",
       .attributes = {{"component", std::string("y")}, {"counts", std::vector<int64_t>(12, 1)}}},
      {.transform = "concatenate", .arguments = others},
      {.transform = "enumerate"},
      {.transform = "ignore_errors"},
      {.transform = "interleave", .arguments = others},
      {.transform = "interleave", .attributes = one("parallelism", 2), .arguments = others, .has_queue = true},
      {.transform = "parse_example",
       .attributes = {{"features", std::vector<std::string>{"a: i64"}}},
       .source = [] { return records(kExample); }},
      {.transform = "parse_sequence_example",
       .attributes = {{"sequences", std::vector<std::string>{"a: i64"}}},
       .source = [] { return records(kSequence); }},
      {.transform = "options"},
      {.transform = "repeat", .attributes = one("count", 2)},
      {.transform = "resample",
       .attributes = {{"component", std::string("y")}, {"initial", std::vector<double>(12, 1.0)}}},
      {.transform = "sample_from", .arguments = others},
      {.transform = "select", .attributes = {{"features", std::vector<std::string>{"y"}}}},
      {.transform = "shard", .attributes = {{"num_shards", int64_t{2}}, {"index", int64_t{1}}}},
      {.transform = "skip", .attributes = one("count", 4)},
      {.transform = "split",
       .attributes = {{"part", std::string("second")}, {"fraction", 0.25}},
       .source = [] { return sample(12); },
       .kind = "skip"},
      {.transform = "take", .attributes = one("count", 4)},
      {.transform = "zip", .arguments = other_range},
  };
}

std::vector<Row> rows() {
  std::vector<Row> all = callback_rows();
  for (const auto &more : {keeping_rows(), other_rows()})
    all.insert(all.end(), more.begin(), more.end());
  return all;
}

data::IteratorContext context() {
  data::IteratorContext context;
  context.threads = 2;
  context.graphs = std::make_shared<InterpretingRunner>();
  return context;
}

base::JsonReader stage_at(const base::Json &report, size_t number) {
  const base::JsonReader reader(report, "report");
  return assert_ok_value(assert_ok_value(reader.get("stages")).elements()).at(number);
}

double number(const base::JsonReader &stage, const char *key) { return assert_ok_value(stage.get_double(key)); }

void check_row(const Row &row) {
  print_message("%s\n", row.transform);
  const DatasetRef dataset =
      assert_ok_value(row.source().apply(row.transform, row.attributes, row.arguments()).build());
  auto iterator = assert_ok_value(dataset->make_iterator(context()));
  int64_t elements = 0, bytes = 0;
  for (Element element; assert_ok_value(iterator->next(element)); ++elements) {
    for (const Tensor &component : element.components)
      bytes += component.size_bytes();
  }
  assert_true(elements > 0);
  const base::Json report = iterator->report();
  const base::JsonReader stage = stage_at(report, 0);
  // A source may have stages of the same kind.
  const std::string name = assert_ok_value(stage.get_string("stage"));
  assert_string_equal(name.substr(0, name.find(" #")).c_str(), row.kind != nullptr ? row.kind : row.transform);
  assert_true(assert_ok_value(stage.get_boolean("is_counted")));
  assert_int_equal(assert_ok_value(stage.get_integer("elements")), elements);
  assert_int_equal(assert_ok_value(stage.get_integer("bytes")), bytes);
  assert_true(number(stage, "time_ms") > 0);
  assert_true(number(stage, "busy_ms") >= 0);
  assert_true(number(stage, "wait_in_ms") >= 0);
  assert_true(number(stage, "wait_out_ms") >= 0);
  assert_true(row.has_queue == (assert_ok_value(stage.get_integer("threads")) > 0));
  // Its input had something to do, unless it is part of the stage.
  const base::JsonReader input = stage_at(report, 1);
  if (assert_ok_value(input.get_boolean("is_counted"))) assert_true(number(stage, "wait_in_ms") > 0);
  assert_true(row.has_queue == stage.has("mean_depth"));
}

void every_transform_counts(void **) {
  std::set<std::string> seen;
  for (const Row &row : rows()) {
    seen.insert(row.transform);
    check_row(row);
  }
  for (const data::TransformDefinition &definition : data::transform_definitions()) {
    if (!seen.contains(definition.name)) print_error("no row for %s\n", definition.name);
    assert_true(seen.contains(definition.name));
  }
}

// The counters of the last stage once `condition` holds, while an endless walk goes on slowly.
void eventually(const DatasetRef &dataset, const std::function<bool(const base::JsonReader &)> &condition) {
  auto iterator = assert_ok_value(dataset->make_iterator(context()));
  for (int64_t i = 0; i < 10000; ++i) {
    Element element;
    assert_true(assert_ok_value(iterator->next(element)));
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const base::Json report = iterator->report();
    if (condition(stage_at(report, 0))) return;
  }
  fail_msg("%s: it never came to that", dataset->kind().c_str());
}

// What is made faster than it is taken: buffers fill up, and who fills them waits for room.
void full_buffers_are_seen(void **) {
  const auto is_full = [](const base::JsonReader &stage) {
    return number(stage, "wait_out_ms") > 5 && number(stage, "mean_depth") > 0.5;
  };
  for (const Row &row : rows()) {
    if (!row.has_queue) continue;
    Pipeline pipeline = row.source().repeat();
    eventually(assert_ok_value(pipeline.apply(row.transform, row.attributes, row.arguments()).build()), is_full);
  }
  // A stage without a buffer waits for being asked.
  eventually(assert_ok_value(sample(3).repeat().build()),
             [](const base::JsonReader &stage) { return number(stage, "wait_out_ms") > 5; });
}

void a_feed_tells_what_was_missing(void **) {
  const auto feed = assert_ok_value(data::Feed::create({{{"y", data::Role::feature, DType::i32, {}}}}, 8));
  for (int32_t i = 0; i < 3; ++i) {
    Element element;
    element.components.push_back(assert_ok_value(Tensor::scalar(i)));
    assert_ok(feed->push(std::move(element), nullptr, base::Deadline::never()));
  }
  data::IteratorContext own = context();
  own.cancel = base::CancelToken::create();
  auto iterator = assert_ok_value(feed->dataset()->make_iterator(own));
  Element element;
  for (int i = 0; i < 3; ++i)
    assert_true(assert_ok_value(iterator->next(element)));
  base::Json report = iterator->report();
  assert_true(number(stage_at(report, 0), "mean_depth") == 2);  // 3, 2, 1
  assert_true(number(stage_at(report, 0), "wait_in_ms") == 0);
  own.cancel->set_deadline(base::Deadline::after_ms(20));
  assert_true(iterator->next(element).code() == base::Code::deadline_exceeded);
  report = iterator->report();
  assert_true(number(stage_at(report, 0), "mean_depth") == 1.5);
  assert_true(number(stage_at(report, 0), "wait_in_ms") >= 15);
  const base::JsonReader limit = assert_ok_value(base::JsonReader(report, "report").get("limit"));
  assert_string_equal(assert_ok_value(limit.get_string("stage")).c_str(), "feed");
  assert_contains(assert_ok_value(limit.get_string("reason")).c_str(), "nothing was pushed for ");
}

}  // namespace

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_transform_counts),
    cmocka_unit_test(full_buffers_are_seen),
    cmocka_unit_test(a_feed_tells_what_was_missing),
};
TEST_MAIN(tests)

}  // namespace stage_counters_test
