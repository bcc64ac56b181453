// SPDX-License-Identifier: Apache-2.0
//
// Transforms that put elements together or choose among them by value: rebatch, window, take_while, unique,
// padded_batch, bucket_by_length. Each against a plain loop over the same numbers, and through the dataset conformance
// suite.
#include <set>

#include "conformance/dataset_conformance.h"
#include "graph/builder.h"
#include "interpreting_runner.h"
#include "sample_data.h"
#include "tensor/bytes_tensor.h"

namespace grouping_test {

using namespace tutti::impl;
using namespace tutti::testing;
using base::Status;
using data::DatasetRef;
using data::Element;
using data::Pipeline;
using graph::Attributes;
using tensor::Tensor;

namespace {

using Numbers = std::vector<int64_t>;
using Rows = std::vector<Numbers>;

// The lengths of the elements of ragged(): 3, 0, 5, 2, 7, 4, 1, 6, 3, ...
int64_t length_of(int64_t number) { return (number * 5 + 3) % 8; }

Status make_ragged(const Element &input, Element &output) {
  TUTTI_ASSIGN(const int64_t number, input.components[0].scalar_value<int64_t>());
  const Numbers values(static_cast<size_t>(length_of(number)), number + 1);
  TUTTI_ASSIGN(Tensor tokens, Tensor::from_values<int64_t>({length_of(number)}, std::span<const int64_t>(values)));
  output.components = {std::move(tokens), input.components[0]};
  return Status();
}

// "tokens" i64[length_of(i)], all i + 1, and the label "y", which is i.
Pipeline ragged(int64_t count) {
  data::TransformArguments arguments;
  arguments.map = make_ragged;
  arguments.output_spec = data::ElementSpec{{{"tokens", data::Role::feature, tensor::DType::i64, {data::unknown_dim()}},
                                             {"y", data::Role::label, tensor::DType::i64, {}}}};
  return std::move(range(count).apply("map_callback", {}, std::move(arguments)));
}

Pipeline sequential(int64_t count) { return forward_only(range(count)); }

Pipeline apply(Pipeline pipeline, const char *transform, Attributes attributes) {
  return std::move(pipeline.apply(transform, std::move(attributes)));
}

data::TransformArguments below(int64_t bound) {
  data::TransformArguments arguments;
  arguments.filter = [bound](const Element &element, bool &holds) -> Status {
    TUTTI_ASSIGN(const int64_t value, element.components[0].scalar_value<int64_t>());
    holds = value < bound;
    return Status();
  };
  return arguments;
}

data::TransformArguments y_below(float bound) {
  graph::GraphBuilder b;
  const auto y = b.cast(b.input("y", tensor::DType::i32, {graph::GraphBuilder::batch()}), tensor::DType::f32);
  b.set_result("goes_on", b.op("less", {y, b.constant(bound, tensor::DType::f32)}));
  data::TransformArguments arguments;
  arguments.graph = std::make_shared<const graph::Graph>(b.finish_graph().take());
  return arguments;
}

// value modulo `divisor`, as a number or as a text.
data::TransformArguments modulo(int64_t divisor, bool as_text) {
  data::TransformArguments arguments;
  arguments.map = [=](const Element &input, Element &output) -> Status {
    TUTTI_ASSIGN(const int64_t value, input.components[0].scalar_value<int64_t>());
    const std::string text(static_cast<size_t>(value % divisor), 'a');
    const std::string_view view = text;
    TUTTI_ASSIGN(Tensor key, as_text ? tensor::make_bytes_tensor({}, {view}) : Tensor::scalar(value % divisor));
    output.components = {std::move(key), input.components[0]};
    return Status();
  };
  const tensor::DType dtype = as_text ? tensor::DType::bytes : tensor::DType::i64;
  arguments.output_spec = data::ElementSpec{
      {{"key", data::Role::feature, dtype, {}}, {"value", data::Role::feature, tensor::DType::i64, {}}}};
  return arguments;
}

Status fail_on_five(const Element &input, Element &output) {
  TUTTI_ASSIGN(const int64_t value, input.components.back().scalar_value<int64_t>());
  if (value == 5) return base::out_of_range("five is not allowed");
  output = input;
  return Status();
}

Pipeline failing(Pipeline pipeline) {
  data::TransformArguments arguments;
  arguments.map = fail_on_five;
  return std::move(pipeline.apply("map_callback", {}, std::move(arguments)));
}

DatasetCase of(std::string name, std::function<Pipeline()> make, bool fails = false) {
  return {std::move(name), [make] { return DatasetInstance{make().build()}; }, 64,
          std::make_shared<InterpretingRunner>(), fails};
}

const Attributes kOverlapping{{"size", int64_t{3}}, {"shift", int64_t{2}}};
const Attributes kDistant{{"size", int64_t{2}}, {"shift", int64_t{5}}, {"stride", int64_t{2}}};
const Attributes kBuckets{{"component", std::string("tokens")},
                          {"boundaries", Numbers{2, 4}},
                          {"batch_sizes", Numbers{2, 3, 2}},
                          {"padding", std::vector<double>{-1, 0}}};

std::vector<DatasetCase> cases() {
  return {
      of("rebatch",
         [] {
           return apply(sample(11).batch(4), "rebatch", {{"batch_size", int64_t{3}}});
         }),
      of("rebatch of views",
         [] {
           return apply(sample(64, 16).batch(32), "rebatch", {{"batch_size", int64_t{16}}});
         }),
      of("rebatch of ragged",
         [] {
           return apply(ragged(5).batch(1), "rebatch", {{"batch_size", int64_t{1}}});
         }),
      of("rebatch, larger, dropped",
         [] {
           return apply(sample(11).shuffle(11).batch(2), "rebatch",
                        {{"batch_size", int64_t{5}}, {"drop_remainder", true}});
         }),
      of(
          "rebatch failing",
          [] {
            return apply(failing(sequential(12)).batch(3), "rebatch", {{"batch_size", int64_t{2}}});
          },
          true),
      of("window", [] { return apply(sample(10), "window", kOverlapping); }),
      of("window, sequential", [] { return apply(sequential(10), "window", kOverlapping); }),
      of("window, distant", [] { return apply(sample(12).shuffle(12), "window", kDistant); }),
      of("window, distant, sequential", [] { return apply(sequential(12), "window", kDistant); }),
      of("window, full, shuffle, batch",
         [] {
           return std::move(apply(sample(12), "window", {{"size", int64_t{4}}, {"drop_remainder", true}})
                                .shuffle(3)
                                .batch(2)
                                .repeat(2));
         }),
      of("window, full, batch, sequential",
         [] {
           return std::move(
               apply(sequential(12), "window", {{"size", int64_t{4}}, {"shift", int64_t{1}}, {"drop_remainder", true}})
                   .batch(2)
                   .repeat(2));
         }),
      of("window, batch of views",
         [] {
           return std::move(apply(sample(64, 16), "window", {{"size", int64_t{16}}}).batch(2));
         }),
      of(
          "window failing", [] { return apply(failing(range(12)), "window", kOverlapping); }, true),
      of(
          "window failing, sequential", [] { return apply(failing(sequential(12)), "window", kDistant); }, true),
      of("take_while", [] { return std::move(sample(10).apply("take_while", {}, y_below(6)).batch(4)); }),
      of("take_while_callback",
         [] { return std::move(range(10).apply("take_while_callback", {}, below(6)).repeat(2)); }),
      of("take_while of all", [] { return std::move(range(5).apply("take_while_callback", {}, below(60))); }),
      of("unique",
         [] {
           return apply(std::move(range(20).shuffle(20).apply("map_callback", {}, modulo(7, false))), "unique",
                        {{"component", std::string("key")}});
         }),
      of("unique of texts, repeat",
         [] {
           return std::move(apply(std::move(range(20).apply("map_callback", {}, modulo(6, true))), "unique",
                                  {{"component", std::string("key")}})
                                .repeat(2)
                                .prefetch(2));
         }),
      of(
          "unique failing",
          [] {
            return apply(failing(std::move(range(20).apply("map_callback", {}, modulo(7, false)))), "unique",
                         {{"component", std::string("key")}});
          },
          true),
      of("padded_batch",
         [] {
           return apply(ragged(10), "padded_batch", {{"batch_size", int64_t{4}}});
         }),
      of("padded_batch, dropped, prefetch",
         [] {
           return std::move(apply(ragged(10), "padded_batch",
                                  {{"batch_size", int64_t{4}}, {"drop_remainder", true}, {"lengths", Numbers{9}}})
                                .repeat(2)
                                .prefetch(1));
         }),
      of("padded_batch of equal shapes",
         [] {
           return apply(sample(10), "padded_batch", {{"batch_size", int64_t{4}}});
         }),
      of(
          "padded_batch failing",
          [] {
            return apply(failing(ragged(10)), "padded_batch", {{"batch_size", int64_t{4}}});
          },
          true),
      of("bucket_by_length", [] { return apply(ragged(40), "bucket_by_length", kBuckets); }),
      of("bucket_by_length, shuffle, repeat, prefetch",
         [] { return std::move(apply(ragged(30).shuffle(9), "bucket_by_length", kBuckets).repeat(2).prefetch(2)); }),
      of("bucket_by_length, rare",
         [] {
           Attributes attributes = kBuckets;
           attributes["batch_sizes"] = Numbers{60};
           attributes["boundaries"] = Numbers{1};
           return std::move(apply(ragged(600), "bucket_by_length", attributes));
         }),
      of(
          "bucket_by_length failing", [] { return apply(failing(ragged(20)), "bucket_by_length", kBuckets); }, true),
  };
}

void all_conform(void **) {
  for (const DatasetCase &one : cases())
    check_dataset_case(one);
}

void walks_can_be_left_and_cancelled(void **) {
  for (const DatasetCase &one : cases())
    check_dataset_leaving(one);
}

// The elements of one component, each as a list of its numbers.
Rows rows_of(const DatasetRef &dataset, const std::string &component) {
  data::IteratorContext context;
  context.graphs = std::make_shared<InterpretingRunner>();
  auto iterator = assert_ok_value(dataset->make_iterator(context));
  Rows rows;
  for (Element element; assert_ok_value(iterator->next(element));) {
    const auto index = static_cast<size_t>(dataset->spec().find(component));
    const auto values = assert_ok_value(element.components[index].values<int64_t>());
    rows.emplace_back(values.begin(), values.end());
  }
  return rows;
}

Rows rows_of(Pipeline pipeline, const std::string &component = "value") {
  return rows_of(assert_ok_value(pipeline.build()), component);
}

Rows naive_windows(int64_t count, int64_t size, int64_t shift, int64_t stride, bool drop_remainder) {
  Rows windows;
  for (int64_t start = 0; start < count; start += shift) {
    Numbers window;
    for (int64_t i = 0; i < size && start + i * stride < count; ++i)
      window.push_back(start + i * stride);
    if (!drop_remainder || static_cast<int64_t>(window.size()) == size) windows.push_back(window);
  }
  return windows;
}

void windows_are_those_of_a_plain_loop(void **) {
  for (const int64_t count : {0, 1, 5, 12}) {
    for (const int64_t size : {1, 2, 4}) {
      for (const int64_t shift : {0, 1, 3, 7}) {
        for (const int64_t stride : {1, 3}) {
          for (const bool drop : {false, true}) {
            const Rows expected = naive_windows(count, size, shift > 0 ? shift : size, stride, drop);
            const Attributes attributes{{"size", size}, {"shift", shift}, {"stride", stride}, {"drop_remainder", drop}};
            const DatasetRef indexed = assert_ok_value(apply(range(count), "window", attributes).build());
            assert_int_equal(indexed->cardinality().value(), static_cast<int64_t>(expected.size()));
            assert_true(rows_of(indexed, "value") == expected);
            assert_true(rows_of(apply(sequential(count), "window", attributes)) == expected);
            assert_true(rows_of(apply(sequential(count).prefetch(2), "window", attributes)) == expected);
          }
        }
      }
    }
  }
}

void windows_are_examples(void **) {
  const auto spec_of = [](Pipeline pipeline) { return pipeline.build().value()->spec().to_string(); };
  assert_string_equal(spec_of(apply(sample(), "window", kOverlapping)).c_str(),
                      "(x: f32[unknown, 3], y: i32[unknown] label)");
  assert_string_equal(spec_of(apply(sample(9), "window", {{"size", int64_t{3}}})).c_str(),
                      "(x: f32[3, 3], y: i32[3] label)");
  assert_string_equal(
      spec_of(apply(sequential(9), "window", {{"size", int64_t{3}}, {"drop_remainder", true}}).batch(2)).c_str(),
      "(value: i64[batch, 3])");
  assert_error_contains(apply(sample().batch(2), "window", {{"size", int64_t{3}}}).build(), "put it before the batch");
}

void rebatch_keeps_rows_in_order(void **) {
  for (const int64_t before : {1, 2, 5, 30}) {
    for (const int64_t after : {1, 3, 4, 40}) {
      for (const bool drop : {false, true}) {
        const Attributes attributes{{"batch_size", after}, {"drop_remainder", drop}};
        const Rows expected = naive_windows(23, after, after, 1, drop);
        assert_true(rows_of(apply(range(23).batch(before), "rebatch", attributes)) == expected);
        assert_true(rows_of(apply(sequential(23).batch(before), "rebatch", attributes)) == expected);
      }
    }
  }
  assert_error_contains(apply(range(4), "rebatch", {{"batch_size", int64_t{3}}}).build(),
                        "elements are single examples");
}

void take_while_reads_nothing_more(void **) {
  int64_t calls = 0;
  data::TransformArguments counting;
  counting.map = [&calls](const Element &input, Element &output) {
    ++calls;
    output = input;
    return Status();
  };
  Pipeline pipeline = range(20);
  pipeline.apply("map_callback", {}, counting).apply("take_while_callback", {}, below(4));
  assert_true((rows_of(std::move(pipeline)) == Rows{{0}, {1}, {2}, {3}}));
  assert_int_equal(calls, 5);
  data::TransformArguments refusing;
  refusing.filter = [](const Element &, bool &) -> Status { return base::out_of_range("no opinion"); };
  auto iterator =
      assert_ok_value(assert_ok_value(range(3).apply("take_while_callback", {}, refusing).build())->make_iterator({}));
  Element element;
  assert_error_contains(iterator->next(element), "take_while: the function failed for element 0 of epoch 0");
  assert_error_contains(range(3).apply("take_while").build(), "expected the argument 'graph'");
}

void unique_keeps_the_first_of_each_value(void **) {
  for (const bool as_text : {false, true}) {
    Pipeline pipeline = range(40);
    pipeline.shuffle(40).apply("map_callback", {}, modulo(7, as_text));
    const Rows all = rows_of(Pipeline(pipeline.build()), "value");
    Rows expected;
    std::set<int64_t> seen;
    for (const Numbers &row : all) {
      if (seen.insert(row[0] % 7).second) expected.push_back(row);
    }
    assert_int_equal(expected.size(), 7);
    assert_true(rows_of(apply(std::move(pipeline), "unique", {{"component", std::string("key")}})) == expected);
  }
  assert_error_contains(apply(range(3), "unique", {{"component", std::string("key")}}).build(),
                        "there is no component 'key' in (value: i64[])");
}

// Rows of lengths as they are, filled up to `length`, or to the longest of them.
Numbers naive_padding(const Numbers &numbers, int64_t length, int64_t padding) {
  for (const int64_t number : numbers)
    length = std::max(length, length_of(number));
  Numbers padded;
  for (const int64_t number : numbers) {
    for (int64_t i = 0; i < length; ++i)
      padded.push_back(i < length_of(number) ? number + 1 : padding);
  }
  return padded;
}

void padded_batches_are_those_of_a_plain_loop(void **) {
  for (const int64_t length : {0, 7, 11}) {
    for (const double padding : {0.0, -3.0}) {
      const Attributes attributes{
          {"batch_size", int64_t{4}}, {"padding", std::vector<double>{padding, 0}}, {"lengths", Numbers{length}}};
      const DatasetRef dataset = assert_ok_value(apply(ragged(10), "padded_batch", attributes).build());
      Rows expected;
      for (const Numbers &batch : naive_windows(10, 4, 4, 1, false))
        expected.push_back(naive_padding(batch, length, static_cast<int64_t>(padding)));
      assert_true(rows_of(dataset, "tokens") == expected);
      assert_string_equal(dataset->spec().to_string().c_str(),
                          length == 0   ? "(tokens: i64[batch, unknown], y: i64[batch] label)"
                          : length == 7 ? "(tokens: i64[batch, 7], y: i64[batch] label)"
                                        : "(tokens: i64[batch, 11], y: i64[batch] label)");
    }
  }
}

// Two unknown dimensions, and texts.
void padding_works_along_all_axes(void **) {
  data::TransformArguments arguments;
  arguments.map = [](const Element &input, Element &output) -> Status {
    TUTTI_ASSIGN(const int64_t n, input.components[0].scalar_value<int64_t>());
    const std::vector<float> values(static_cast<size_t>((n + 1) * (3 - n)), static_cast<float>(n + 1));
    TUTTI_ASSIGN(Tensor grid, Tensor::from_values<float>({n + 1, 3 - n}, std::span<const float>(values)));
    const std::vector<std::string_view> words(static_cast<size_t>(n), "word");
    TUTTI_ASSIGN(Tensor text, tensor::make_bytes_tensor({n}, std::span<const std::string_view>(words)));
    output.components = {std::move(grid), std::move(text)};
    return Status();
  };
  const graph::Dims unknown{data::unknown_dim()};
  arguments.output_spec =
      data::ElementSpec{{{"grid", data::Role::feature, tensor::DType::f32, {data::unknown_dim(), data::unknown_dim()}},
                         {"text", data::Role::feature, tensor::DType::bytes, unknown}}};
  Pipeline pipeline = range(3);
  pipeline.apply("map_callback", {}, arguments);
  pipeline.apply("padded_batch", {{"batch_size", int64_t{3}}, {"padding", std::vector<double>{0.5, 0}}});
  auto iterator = assert_ok_value(assert_ok_value(pipeline.build())->make_iterator({}));
  Element element;
  assert_true(assert_ok_value(iterator->next(element)));
  assert_string_equal(element.components[0].describe().c_str(), "f32 [3, 3, 3]");
  const auto grid = assert_ok_value(element.components[0].values<float>());
  const std::vector<float> expected{1, 1,   1,   0.5, 0.5, 0.5, 0.5, 0.5, 0.5,   //
                                    2, 2,   0.5, 2,   2,   0.5, 0.5, 0.5, 0.5,   //
                                    3, 0.5, 0.5, 3,   0.5, 0.5, 3,   0.5, 0.5};  //
  assert_true(std::equal(grid.begin(), grid.end(), expected.begin(), expected.end()));
  const auto text = assert_ok_value(tensor::bytes_values(element.components[1]));
  assert_true((text == std::vector<std::string_view>{"", "", "word", "", "word", "word"}));
}

void impossible_paddings_are_refused(void **) {
  const auto build = [](Attributes attributes) {
    attributes.emplace("batch_size", int64_t{4});
    return apply(ragged(10), "padded_batch", std::move(attributes)).build();
  };
  assert_error_contains(build({{"padding", std::vector<double>{1}}}),
                        "expected one value for each of the 2 components");
  assert_error_contains(build({{"padding", std::vector<double>{0.5, 0}}}),
                        "component 'tokens' is i64, which cannot be 0.5");
  assert_error_contains(build({{"lengths", Numbers{1, 2}}}),
                        "expected one for each unknown dimension (axis 0 of 'tokens'), got 2");
  assert_error_contains(build({{"lengths", Numbers{-1}}}), "parameter 'lengths': expected each to be at least 0");
  auto iterator = assert_ok_value(assert_ok_value(build({{"lengths", Numbers{4}}}))->make_iterator({}));
  Element element;
  assert_error_contains(iterator->next(element), "padded_batch: component 'tokens' has 5 along axis 0 in row 2");
  assert_error_contains(apply(sample().batch(2), "padded_batch", {{"batch_size", int64_t{3}}}).build(),
                        "batches of 2 rows already");
  auto plain = assert_ok_value(assert_ok_value(ragged(10).batch(2).build())->make_iterator({}));
  assert_error_contains(plain->next(element), "expected equal shapes; use padded_batch for shapes that differ");
}

// Which numbers make up each batch.
Rows naive_buckets(int64_t count, const Numbers &boundaries, const Numbers &batch_sizes, bool drop_remainder) {
  Rows waiting(batch_sizes.size());
  Rows batches;
  for (int64_t number = 0; number < count; ++number) {
    size_t bucket = 0;
    while (bucket < boundaries.size() && length_of(number) > boundaries[bucket])
      ++bucket;
    waiting[bucket].push_back(number);
    if (static_cast<int64_t>(waiting[bucket].size()) < batch_sizes[bucket]) continue;
    batches.push_back(std::move(waiting[bucket]));
    waiting[bucket].clear();
  }
  for (const Numbers &rest : waiting) {
    if (!rest.empty() && !drop_remainder) batches.push_back(rest);
  }
  return batches;
}

void buckets_are_those_of_a_plain_loop(void **) {
  for (const int64_t count : {0, 1, 17, 100}) {
    for (const bool drop : {false, true}) {
      Attributes attributes = kBuckets;
      attributes["drop_remainder"] = drop;
      const Rows batches = naive_buckets(count, {2, 4}, {2, 3, 2}, drop);
      assert_true(rows_of(apply(ragged(count), "bucket_by_length", attributes), "y") == batches);
      Rows tokens;
      for (const Numbers &batch : batches)
        tokens.push_back(naive_padding(batch, 0, -1));
      assert_true(rows_of(apply(ragged(count), "bucket_by_length", attributes), "tokens") == tokens);
    }
  }
}

void buckets_may_be_as_long_as_their_boundary(void **) {
  Attributes attributes = kBuckets;
  attributes["pad_to_boundary"] = true;
  attributes["boundaries"] = Numbers{4, 7};
  const Numbers lengths{4, 7};
  Rows expected;
  for (const Numbers &batch : naive_buckets(30, {4, 7}, {2, 3, 2}, false))
    expected.push_back(naive_padding(batch, length_of(batch[0]) <= 4 ? 4 : 7, -1));
  assert_true(rows_of(apply(ragged(30), "bucket_by_length", attributes), "tokens") == expected);
  attributes["boundaries"] = Numbers{2, 4};
  auto iterator =
      assert_ok_value(assert_ok_value(apply(ragged(9), "bucket_by_length", attributes).build())->make_iterator({}));
  Element element;
  assert_error_contains(iterator->next(element),
                        "bucket_by_length: element 2 has length 5, longer than the last boundary 4");
}

void impossible_buckets_are_refused(void **) {
  const auto build = [](const char *key, graph::Attribute value) {
    Attributes attributes = kBuckets;
    attributes[key] = std::move(value);
    return apply(ragged(10), "bucket_by_length", std::move(attributes)).build();
  };
  assert_error_contains(build("component", std::string("words")), "there is no component 'words'");
  assert_error_contains(build("component", std::string("y")), "component 'y' is a scalar without a length");
  assert_error_contains(build("boundaries", Numbers{4, 4}), "expected increasing lengths above 0, got 4 at index 1");
  assert_error_contains(build("boundaries", Numbers{}), "boundaries: expected at least one");
  assert_error_contains(build("batch_sizes", Numbers{1, 2}), "batch_sizes: expected 1 or 3");
  assert_error_contains(build("batch_sizes", Numbers{1, 0, 2}), "expected numbers of at least 1, got 0");
  const DatasetRef dataset = assert_ok_value(apply(ragged(10), "bucket_by_length", kBuckets).build());
  auto iterator = assert_ok_value(dataset->make_iterator({}));
  const base::Json state = assert_ok_value(base::Json::parse(
      R"({"kind": "bucket_by_length", "position": 0, "read": 1, "ended": 0, "input_position": 0,
          "waiting": [{"kind": "bucket", "count": 1}, {"kind": "bucket", "count": 2}, {"kind": "bucket", "count": 0}],
          "input": {"kind": "map_callback", "input": {"kind": "indexed", "position": 0}}})"));
  assert_error_contains(iterator->restore(state), "count: expected from 0 to 1, got 2");
}

}  // namespace

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(all_conform),
    cmocka_unit_test(walks_can_be_left_and_cancelled),
    cmocka_unit_test(windows_are_those_of_a_plain_loop),
    cmocka_unit_test(windows_are_examples),
    cmocka_unit_test(rebatch_keeps_rows_in_order),
    cmocka_unit_test(take_while_reads_nothing_more),
    cmocka_unit_test(unique_keeps_the_first_of_each_value),
    cmocka_unit_test(padded_batches_are_those_of_a_plain_loop),
    cmocka_unit_test(padding_works_along_all_axes),
    cmocka_unit_test(impossible_paddings_are_refused),
    cmocka_unit_test(buckets_are_those_of_a_plain_loop),
    cmocka_unit_test(buckets_may_be_as_long_as_their_boundary),
    cmocka_unit_test(impossible_buckets_are_refused),
};
TEST_MAIN(tests)

}  // namespace grouping_test
