// SPDX-License-Identifier: Apache-2.0
//
// Every source and transform through the dataset conformance suite. tests/data/transform/map_test.cc does the same for
// graphs.
#include "data/dataset/dataset.h"

#include <cctype>

#include "conformance/dataset_conformance.h"
#include "sample_data.h"

namespace dataset_test {

using namespace tutti::impl;
using namespace tutti::testing;
using base::Result;
using base::Status;
using data::DatasetRef;
using data::Element;
using data::Pipeline;
using tensor::Tensor;

namespace {

data::TransformArguments with_map(data::MapFunction function) {
  data::TransformArguments arguments;
  arguments.map = std::move(function);
  return arguments;
}

data::TransformArguments with_filter(data::FilterFunction function) {
  data::TransformArguments arguments;
  arguments.filter = std::move(function);
  return arguments;
}

data::TransformArguments with_others(std::vector<DatasetRef> others) {
  data::TransformArguments arguments;
  arguments.others = std::move(others);
  return arguments;
}

// x becomes x + 1 in memory of its own.
Status add_one(const Element &input, Element &output) {
  output = input;
  TUTTI_ASSIGN(output.components[0], input.components[0].clone());
  TUTTI_ASSIGN(const std::span<float> values, output.components[0].mutable_values<float>());
  for (float &value : values)
    value += 1;
  return Status();
}

Status fail_on_five(const Element &input, Element &output) {
  TUTTI_ASSIGN(const int64_t value, input.components[0].scalar_value<int64_t>());
  if (value == 5) return base::out_of_range("five is not allowed");
  output = input;
  return Status();
}

Status keep_even(const Element &input, bool &keep) {
  TUTTI_ASSIGN(const int64_t value, input.components[0].scalar_value<int64_t>());
  keep = value % 2 == 0;
  return Status();
}

// Elements of growing length.
Status stretch(const Element &input, Element &output) {
  TUTTI_ASSIGN(const int64_t value, input.components[0].scalar_value<int64_t>());
  TUTTI_ASSIGN(Tensor stretched, Tensor::zeros(tensor::DType::i64, {value}));
  output.components.push_back(std::move(stretched));
  return Status();
}

Pipeline stretched(int64_t count) {
  data::TransformArguments arguments = with_map(stretch);
  arguments.output_spec =
      data::ElementSpec{{{"value", data::Role::feature, tensor::DType::i64, {data::unknown_dim()}}}};
  return std::move(range(count).apply("map_callback", {}, std::move(arguments)));
}

graph::Attributes chosen(std::vector<std::string> components) { return {{"features", std::move(components)}}; }

// Weights by a component whose numbers are 0 to 9.
graph::Attributes weighing(const char *component) {
  return {{"component", std::string(component)}, {"counts", std::vector<int64_t>{5, 1, 2, 3, 4, 5, 6, 7, 8, 9}}};
}

// A source that can only be read forward.
Pipeline sequential(int64_t count) { return forward_only(range(count)); }

DatasetInstance fed(int64_t count, const std::function<void(Pipeline &)> &continue_with) {
  const data::ElementSpec spec{{{"value", data::Role::feature, tensor::DType::i64, {}}}};
  const base::Ref<data::Feed> feed = data::Feed::create(spec, count + 1).value();
  Pipeline pipeline(feed->dataset());
  continue_with(pipeline);
  return {pipeline.build(), [feed, count] {
            for (int64_t i = feed->resume_position(); i < count; ++i) {
              Element element;
              element.components.push_back(Tensor::scalar(i).value());
              (void)feed->push(std::move(element), nullptr, base::Deadline::after_ms(10000));
            }
            (void)feed->end();
          }};
}

DatasetCase of(std::string name, std::function<Pipeline()> make) {
  return {std::move(name), [make] { return DatasetInstance{make().build()}; }};
}

std::vector<DatasetCase> source_cases() {
  const std::vector<std::string_view> texts{"a", "", "ccc", "dd", "e"};
  const Tensor bytes = tensor::make_bytes_tensor({5}, std::span<const std::string_view>(texts)).value();
  return {
      of("slices", [] { return sample(); }),
      of("slices of nothing", [] { return sample(0); }),
      of("slices of bytes",
         [bytes] {
           return Pipeline(data::from_slices({{"text", bytes}}));
         }),
      of("tensors",
         [] {
           return Pipeline(data::from_tensors({{"x", numbered(4, 2)}}));
         }),
      of("range", [] { return range(10); }),
      of("range downwards", [] { return Pipeline(data::from_range(9, -1, -3)); }),
      {"feed", [] { return fed(10, [](Pipeline &) {}); }},
      {"feed, batch, prefetch", [] { return fed(20, [](Pipeline &p) { p.batch(3).prefetch(2); }); }},
      {"feed, cache, repeat", [] { return fed(6, [](Pipeline &p) { p.apply("cache").repeat(3); }); }},
      {"feed, shuffle", [] { return fed(200, [](Pipeline &p) { p.shuffle(16); }); }, 300},
  };
}

std::vector<DatasetCase> transform_cases() {
  return {
      of("take",
         [] {
           return std::move(sample().apply("take", {{"count", int64_t{4}}}));
         }),
      of("take, sequential",
         [] {
           return std::move(sequential(10).apply("take", {{"count", int64_t{4}}}));
         }),
      of("skip",
         [] {
           return std::move(sample().apply("skip", {{"count", int64_t{4}}}));
         }),
      of("skip, sequential",
         [] {
           return std::move(sequential(10).apply("skip", {{"count", int64_t{4}}}));
         }),
      of("shard",
         [] {
           return std::move(sample().apply("shard", {{"num_shards", int64_t{3}}, {"index", int64_t{1}}}));
         }),
      of("shard, sequential",
         [] {
           return std::move(sequential(10).apply("shard", {{"num_shards", int64_t{3}}, {"index", int64_t{1}}}));
         }),
      of("split",
         [] {
           return std::move(sample().apply("split", {{"part", std::string("second")}, {"fraction", 0.75}}));
         }),
      of("enumerate", [] { return std::move(sample().shuffle(10).apply("enumerate").batch(4)); }),
      of("enumerate, sequential", [] { return std::move(sequential(10).apply("enumerate").batch(4)); }),
      of("select",
         [] {
           return std::move(sample(10).shuffle(10).apply("select", chosen({"y", "x2 = x"})).batch(4));
         }),
      of("select, sequential",
         [] {
           return std::move(sequential(10).apply("select", chosen({"a = value", "b = value"})).batch(4));
         }),
      of("class_weights",
         [] { return std::move(sample().shuffle(10).apply("class_weights", weighing("y")).batch(4)); }),
      of("class_weights of views",
         [] { return std::move(sample(10, 16).apply("class_weights", weighing("y")).batch(4)); }),
      of("class_weights, sequential",
         [] { return std::move(sequential(10).apply("class_weights", weighing("value")).batch(4)); }),
      of("class_weights of batches",
         [] { return std::move(sequential(10).batch(4).apply("class_weights", weighing("value"))); }),
      of("zip",
         [] {
           return std::move(sample(10).shuffle(10).apply("zip", {}, with_others({range(8).build().value()})).batch(3));
         }),
      of("zip, sequential",
         [] { return std::move(sample(9).apply("zip", {}, with_others({sequential(7).build().value()})).batch(3)); }),
      of("concatenate",
         [] {
           return std::move(
               range(5)
                   .apply("concatenate", {}, with_others({range(0).build().value(), range(4).build().value()}))
                   .shuffle(9));
         }),
      of("concatenate, sequential",
         [] {
           return std::move(sequential(5).apply("concatenate", {}, with_others({range(4).build().value()})).batch(2));
         }),
      of("repeat", [] { return std::move(sample(4).repeat(3)); }),
      of("repeat for ever", [] { return std::move(sample(4).shuffle(4).repeat()); }),
      of("repeat of nothing", [] { return std::move(sample(0).repeat()); }),
      of("repeat of repeat", [] { return std::move(sample(3).shuffle(3).repeat(2).repeat(2)); }),
      of("repeat, batch", [] { return std::move(sample(5).shuffle(5).repeat(3).batch(4)); }),
      of("filter_callback", [] { return std::move(range(10).apply("filter_callback", {}, with_filter(keep_even))); }),
      of("shuffle, permutation", [] { return std::move(sample(30).shuffle(1000).repeat(2)); }),
      of("shuffle, positions", [] { return std::move(sample(30).shuffle(7).repeat(2)); }),
      of("shuffle, elements", [] { return std::move(sequential(30).shuffle(7).repeat(2)); }),
      of("shuffle, large buffer of elements", [] { return std::move(sequential(30).shuffle(100).repeat(2)); }),
      of("shuffle of shuffle", [] { return std::move(sample(30).shuffle(30).shuffle(5)); }),
      of("shuffle after repeat", [] { return std::move(sample(5).repeat(4).shuffle(6)); }),
      of("shuffle, one order",
         [] {
           return std::move(
               sample(9).apply("shuffle", {{"buffer_size", int64_t{9}}, {"reshuffle_each_epoch", false}}).repeat(2));
         }),
  };
}

std::vector<DatasetCase> buffering_cases() {
  DatasetCase failing = of("map_callback failing", [] {
    return std::move(range(10).apply("map_callback", {{"parallelism", int64_t{3}}}, with_map(fail_on_five)));
  });
  failing.fails = true;
  DatasetCase failing_batch = of("map_callback failing, batch, prefetch", [] {
    return std::move(range(10).apply("map_callback", {}, with_map(fail_on_five)).batch(3).prefetch(2));
  });
  failing_batch.fails = true;
  DatasetCase failing_shuffle = of("map_callback failing, shuffle", [] {
    return std::move(range(40).apply("map_callback", {}, with_map(fail_on_five)).shuffle(4));
  });
  failing_shuffle.fails = true;
  DatasetCase failing_cache = of("map_callback failing, cache, shuffle", [] {
    return std::move(
        range(10).apply("map_callback", {}, with_map(fail_on_five)).apply("cache").shuffle(10).batch(3).repeat(2));
  });
  failing_cache.fails = true;
  DatasetCase failing_weights = of(
      "class_weights failing", [] { return std::move(sample(15).apply("class_weights", weighing("y")).shuffle(4)); });
  failing_weights.fails = true;
  DatasetCase failing_rows = of("class_weights failing, sequential", [] {
    return std::move(sequential(15).apply("class_weights", weighing("value")).batch(3));
  });
  failing_rows.fails = true;
  return {
      of("batch", [] { return std::move(sample().batch(4)); }),
      of("batch of views", [] { return std::move(sample(64, 16).batch(16)); }),
      of("batch, remainder dropped", [] { return std::move(sample().shuffle(10).batch(4, true)); }),
      of("batch larger than all", [] { return std::move(sample().shuffle(10).batch(1000)); }),
      of("batch of nothing", [] { return std::move(sample(0).batch(4)); }),
      of("batch of batches", [] { return std::move(sample(12).batch(3).batch(2)); }),
      of("batch of uneven size 1", [] { return std::move(stretched(5).batch(1)); }),
      of("unbatch", [] { return std::move(sample().batch(4).apply("unbatch").shuffle(6)); }),
      of("cache", [] { return std::move(sample().shuffle(10).apply("cache").repeat(3)); }),
      of("cache, shuffle", [] { return std::move(sequential(20).apply("cache").shuffle(6).repeat(2)); }),
      of("cache, permutation",
         [] {
           return std::move(
               sample().apply("map_callback", {}, with_map(add_one)).apply("cache").shuffle(10).batch(3).repeat(3));
         }),
      of("cache of batches", [] { return std::move(sample().batch(3).apply("cache").repeat(2)); }),
      of("cache, take",
         [] {
           return std::move(sample().apply("cache").apply("take", {{"count", int64_t{4}}}).repeat(2));
         }),
      of("map_callback", [] { return std::move(sample().apply("map_callback", {}, with_map(add_one))); }),
      of("map_callback, parallel",
         [] {
           return std::move(
               sample(40).shuffle(9).apply("map_callback", {{"parallelism", int64_t{4}}}, with_map(add_one)).batch(3));
         }),
      of("map_callback, automatic, repeat",
         [] {
           return std::move(sample(20)
                                .apply("map_callback", {{"parallelism", int64_t{0}}}, with_map(add_one))
                                .repeat(2)
                                .prefetch(3));
         }),
      of("prefetch", [] { return std::move(sample().prefetch(1)); }),
      of("prefetch, automatic", [] { return std::move(sample(100).shuffle(100).batch(3).repeat().prefetch()); }),
      of("prefetch of prefetch", [] { return std::move(sample().prefetch(2).shuffle(4).prefetch(2)); }),
      of("prefetch before repeat", [] { return std::move(sample(7).shuffle(3).prefetch(2).repeat(3)); }),
      std::move(failing),
      std::move(failing_batch),
      std::move(failing_shuffle),
      std::move(failing_cache),
      std::move(failing_weights),
      std::move(failing_rows),
  };
}

void sources_conform(void **) {
  for (const DatasetCase &one : source_cases())
    check_dataset_case(one);
}

void transforms_conform(void **) {
  for (const DatasetCase &one : transform_cases())
    check_dataset_case(one);
}

void buffering_transforms_conform(void **) {
  for (const DatasetCase &one : buffering_cases())
    check_dataset_case(one);
}

void walks_can_be_left_and_cancelled(void **) {
  for (const auto &cases : {source_cases(), transform_cases(), buffering_cases()}) {
    for (const DatasetCase &one : cases)
      check_dataset_leaving(one);
  }
}

void restore_names_what_does_not_fit(void **) {
  const DatasetRef shuffled = assert_ok_value(sequential(10).shuffle(4).build());
  const DatasetRef batched = assert_ok_value(sample().batch(2).build());
  auto iterator = assert_ok_value(shuffled->make_iterator({}));
  auto other = assert_ok_value(batched->make_iterator({}));
  const Status status = other->restore(iterator->save());
  assert_error_contains(status, "the saved state is of 'element_shuffle', the pipeline has 'batch'");
  auto third = assert_ok_value(batched->make_iterator({}));
  assert_error_contains(third->restore(base::Json("nonsense")), "iterator");
  auto fourth = assert_ok_value(batched->make_iterator({}));
  const base::Json beyond = assert_ok_value(
      base::Json::parse(R"({"kind": "batch", "position": 0, "input": {"kind": "indexed", "position": 11}})"));
  assert_error_contains(fourth->restore(beyond), "iterator.input.position: expected from 0 to 10, got 11");
  Element element;
  auto fifth = assert_ok_value(batched->make_iterator({}));
  assert_true(assert_ok_value(fifth->next(element)));
  assert_error_contains(fifth->restore(fifth->save()), "before its first element");
}

void peek_looks_without_taking(void **) {
  const DatasetRef dataset = assert_ok_value(range(5).build());
  const std::vector<Element> elements = assert_ok_value(data::peek(*dataset, 2, {}));
  assert_int_equal(elements.size(), 2);
  auto iterator = assert_ok_value(dataset->make_iterator({}));
  Element element;
  assert_true(assert_ok_value(iterator->peek(element)));
  assert_true(assert_ok_value(iterator->peek(element)));
  assert_int_equal(assert_ok_value(element.components[0].scalar_value<int64_t>()), 0);
  assert_string_equal(iterator->save().dump().c_str(), R"({"kind":"indexed","position":0})");
  assert_true(assert_ok_value(iterator->next(element)));
  assert_int_equal(assert_ok_value(element.components[0].scalar_value<int64_t>()), 0);
  assert_true(assert_ok_value(iterator->next(element)));
  assert_int_equal(assert_ok_value(element.components[0].scalar_value<int64_t>()), 1);
}

// Answers of a walk, its end or a final error last, and the state before each.
struct Answers {
  std::vector<std::string> answers, states;
};

std::string answer_of(const Result<bool> &more, const Element &element) {
  if (!more.ok()) return more.status().to_string();
  return *more ? std::to_string(element.components[0].data_as<int64_t>()[0]) : "end";
}

Answers answers_of(const data::Dataset &dataset) {
  Answers answers;
  auto iterator = assert_ok_value(dataset.make_iterator({}));
  Element element;
  do {
    answers.states.push_back(iterator->save().dump());
    answers.answers.push_back(answer_of(iterator->next(element), element));
  } while (answers.answers.back() != "end");
  return answers;
}

// However far it is looked ahead, the same answers come and the same states are saved; nothing is looked at behind an
// error or the end.
void peek_looks_further(void **) {
  const auto failing = with_map([](const Element &input, Element &output) {
    const int64_t number = assert_ok_value(input.components[0].scalar_value<int64_t>());
    if (number == 5 || number == 6) return base::data_loss("number ", number);
    output = input;
    return Status();
  });
  for (const Result<DatasetRef> &built :
       {range(13).batch(3).build(), range(9).batch(2).prefetch(2).build(), range(0).build(),
        range(11).prefetch(2).shuffle(4).build(), range(12).apply("map_callback", {}, failing).build(),
        range(12).apply("map_callback", {}, failing).batch(2).build()}) {
    const DatasetRef dataset = assert_ok_value(built);
    const Answers wanted = answers_of(*dataset);
    for (size_t depth = 1; depth <= 5; ++depth) {
      auto iterator = assert_ok_value(dataset->make_iterator({}));
      Element ahead, element;
      for (size_t n = 0; n < wanted.answers.size(); ++n) {
        for (size_t i = 0, at = n; i < depth; ++i) {
          assert_string_equal(answer_of(iterator->peek(ahead, i), ahead).c_str(), wanted.answers[at].c_str());
          if (std::isdigit(wanted.answers[at][0]) != 0) ++at;
        }
        assert_string_equal(iterator->save().dump().c_str(), wanted.states[n].c_str());
        assert_string_equal(answer_of(iterator->next(element), element).c_str(), wanted.answers[n].c_str());
      }
    }
  }
}

// What is passed over does not come, and counts for the state with what comes behind it.
void peeked_elements_can_be_passed_over(void **) {
  const DatasetRef dataset = assert_ok_value(range(8).build());
  auto iterator = assert_ok_value(dataset->make_iterator({}));
  const auto is_next = [&](int64_t number, const char *state) {
    assert_string_equal(iterator->save().dump().c_str(), state);
    Element element;
    assert_true(assert_ok_value(iterator->next(element)));
    assert_int_equal(assert_ok_value(element.components[0].scalar_value<int64_t>()), number);
  };
  Element ahead;
  assert_true(assert_ok_value(iterator->peek(ahead, 1)));
  iterator->pass_over_peeked();
  assert_true(assert_ok_value(iterator->peek(ahead, 1)));
  assert_int_equal(assert_ok_value(ahead.components[0].scalar_value<int64_t>()), 2);
  is_next(0, R"({"kind":"indexed","position":0})");
  is_next(2, R"({"kind":"indexed","position":1})");
  assert_true(assert_ok_value(iterator->peek(ahead)));
  iterator->pass_over_peeked();
  is_next(4, R"({"kind":"indexed","position":3})");
  is_next(5, R"({"kind":"indexed","position":5})");
}

// Without waiting, the same elements; where one would have to wait, an interrupt that costs nothing.
void peek_without_waiting(void **) {
  const DatasetRef dataset = assert_ok_value(range(40).batch(3).build());
  auto iterator = assert_ok_value(dataset->make_iterator({}));
  iterator->token().set_deadline(base::Deadline::after_ms(0));
  Element ahead, element;
  for (int64_t i = 0; i < 13; ++i) {
    assert_true(assert_ok_value(iterator->peek_if_ready(ahead)));
    assert_int_equal(ahead.components[0].data_as<int64_t>()[0], 3 * i);
    assert_true(assert_ok_value(iterator->next(element)));
    assert_int_equal(element.components[0].data_as<int64_t>()[0], 3 * i);
  }
  assert_true(assert_ok_value(iterator->peek_if_ready(ahead)));
  assert_int_equal(ahead.rows(), 1);
  assert_true(assert_ok_value(iterator->next(element)));
  assert_false(assert_ok_value(iterator->peek_if_ready(ahead)));
}

void own_code_only(void **) {
  const auto own = [](Pipeline pipeline) { return data::runs_own_code_only(*assert_ok_value(pipeline.build())); };
  const auto with_callback = [] {
    data::TransformArguments arguments;
    arguments.map = [](const Element &input, Element &output) {
      output = input;
      return Status();
    };
    return sample(10).apply("map_callback", {}, std::move(arguments));
  };
  assert_true(own(sample(10)));
  assert_true(own(range(10).shuffle(4).batch(3).repeat().prefetch(2)));
  assert_true(own(sample(10).apply("cache").apply("take", {{"count", int64_t{3}}})));
  assert_true(own(sample(10).apply("unique", {{"component", std::string("y")}}).apply("ignore_errors")));
  assert_true(own(range(10).apply("split", {{"part", std::string("first")}, {"fraction", 0.5}})));
  assert_false(own(sample(10).apply("cache", {{"path", std::string("/nonexistent/cache")}})));
  assert_false(own(with_callback()));
  assert_false(own(with_callback().batch(2).repeat()));
  assert_true(own(with_callback().prefetch(2).batch(2)));
}

void cardinality_is_passed_on(void **) {
  const auto of_pipeline = [](Pipeline pipeline) { return pipeline.build().value()->cardinality().to_string(); };
  assert_string_equal(of_pipeline(sample(10).batch(4)).c_str(), "3");
  assert_string_equal(of_pipeline(sample(10).batch(4, true)).c_str(), "2");
  assert_string_equal(of_pipeline(sample(10).batch(5).apply("unbatch")).c_str(), "10");
  assert_string_equal(of_pipeline(sample(10).batch(4).apply("unbatch")).c_str(), "unknown");
  assert_string_equal(of_pipeline(sample(10).repeat()).c_str(), "infinite");
  assert_string_equal(of_pipeline(sample(0).repeat()).c_str(), "0");
  assert_string_equal(of_pipeline(sample(10).repeat().apply("take", {{"count", int64_t{3}}})).c_str(), "3");
  assert_string_equal(of_pipeline(sequential(10)).c_str(), "unknown");
  assert_string_equal(of_pipeline(sequential(10).repeat(2)).c_str(), "unknown");
}

// Of what is repeated without end, only its emptiness could end it.
void endless_repeat_of_unknown_size_is_infinite(void **) {
  const auto of_pipeline = [](Pipeline pipeline) { return pipeline.build().value()->cardinality().to_string(); };
  const auto with_other = [&](Pipeline pipeline, const char *transform, Pipeline other) {
    data::TransformArguments arguments;
    arguments.others.push_back(other.build().value());
    return of_pipeline(pipeline.apply(transform, {}, std::move(arguments)));
  };
  assert_string_equal(of_pipeline(sequential(10).repeat()).c_str(), "infinite");
  for (const char *transform : {"prefetch", "enumerate", "skip", "shuffle", "ignore_errors"}) {
    graph::Attributes attributes;
    if (transform == std::string_view("skip")) attributes = {{"count", int64_t{3}}};
    if (transform == std::string_view("shuffle")) attributes = {{"buffer_size", int64_t{3}}};
    print_message("%s\n", transform);
    assert_string_equal(of_pipeline(sequential(10).repeat().apply(transform, attributes)).c_str(), "infinite");
  }
  assert_string_equal(of_pipeline(sequential(10).repeat().batch(4)).c_str(), "infinite");
  assert_string_equal(of_pipeline(sequential(10).repeat().batch(4).apply("unbatch")).c_str(), "infinite");
  assert_string_equal(of_pipeline(sequential(10).repeat().repeat(3)).c_str(), "infinite");
  assert_string_equal(of_pipeline(sample(10).repeat().apply("unique", {{"component", "x"}})).c_str(), "infinite");
  assert_string_equal(with_other(sequential(10).repeat(), "concatenate", sequential(10)).c_str(), "infinite");
  assert_string_equal(with_other(sequential(10), "interleave", sequential(10).repeat()).c_str(), "infinite");
  assert_string_equal(with_other(sequential(10).repeat(), "sample_from", sequential(10).repeat()).c_str(), "infinite");
  // Nothing is promised of a part: an empty input ends at once.
  const graph::Attributes three{{"count", int64_t{3}}};
  assert_string_equal(of_pipeline(sequential(10).repeat().apply("take", three)).c_str(), "unknown");
  const auto keep_none = [](const Element &, bool &keep) {
    keep = false;
    return Status();
  };
  Pipeline empty = range(10).apply("filter_callback", {}, with_filter(keep_none)).repeat();
  const DatasetRef none = assert_ok_value(empty.apply("take", three).build());
  assert_true(none->cardinality().is_unknown());
  assert_int_equal(values_of<int64_t>(none, "value").size(), 0);
}

}  // namespace

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(sources_conform),
    cmocka_unit_test(transforms_conform),
    cmocka_unit_test(buffering_transforms_conform),
    cmocka_unit_test(walks_can_be_left_and_cancelled),
    cmocka_unit_test(restore_names_what_does_not_fit),
    cmocka_unit_test(peek_looks_without_taking),
    cmocka_unit_test(peek_looks_further),
    cmocka_unit_test(peeked_elements_can_be_passed_over),
    cmocka_unit_test(peek_without_waiting),
    cmocka_unit_test(own_code_only),
    cmocka_unit_test(cardinality_is_passed_on),
    cmocka_unit_test(endless_repeat_of_unknown_size_is_infinite),
};
TEST_MAIN(tests)

}  // namespace dataset_test
