// SPDX-License-Identifier: Apache-2.0
//
// tests lib/data/transform/prefetch.cc, map_callback.cc and cache.cc: what runs ahead, beside, or not at all.
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "sample_data.h"
#include "testing.h"

namespace buffering_test {

using namespace tutti::impl;
using namespace tutti::testing;
using base::Status;
using data::DatasetRef;
using data::Element;
using data::Pipeline;

namespace {

data::TransformArguments with_map(data::MapFunction function) {
  data::TransformArguments arguments;
  arguments.map = std::move(function);
  return arguments;
}

// Counts calls; an element goes through as it is.
struct Counter {
  std::atomic<int64_t> calls{0};
  std::atomic<int64_t> now{0};
  std::atomic<int64_t> most{0};

  data::MapFunction function(int64_t sleep_us = 0) {
    return [this, sleep_us](const Element &input, Element &output) {
      ++calls;
      const int64_t together = ++now;
      for (int64_t seen = most; seen < together && !most.compare_exchange_weak(seen, together);) {
      }
      if (sleep_us > 0) std::this_thread::sleep_for(std::chrono::microseconds(sleep_us));
      output = input;
      --now;
      return Status();
    };
  }
};

bool eventually(const std::function<bool()> &condition) {
  for (int i = 0; i < 2000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return condition();
}

void prefetch_runs_ahead_but_not_further_than_asked(void **) {
  Counter counter;
  const DatasetRef dataset =
      assert_ok_value(range(100).apply("map_callback", {}, with_map(counter.function())).prefetch(3).build());
  auto iterator = assert_ok_value(dataset->make_iterator({}));
  assert_int_equal(counter.calls.load(), 0);
  Element element;
  assert_true(assert_ok_value(iterator->next(element)));
  assert_true(eventually([&] { return counter.calls.load() >= 3; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  assert_in_range(counter.calls.load(), 3, 4);
  for (int i = 0; i < 50; ++i)
    assert_true(assert_ok_value(iterator->next(element)));
  assert_true(eventually([&] { return counter.calls.load() >= 52; }));
  assert_in_range(counter.calls.load(), 52, 54);
}

void saved_states_do_not_count_what_runs_ahead(void **) {
  const DatasetRef dataset = assert_ok_value(range(100).batch(5).prefetch(8).build());
  auto iterator = assert_ok_value(dataset->make_iterator({}));
  Element element;
  assert_true(assert_ok_value(iterator->next(element)));
  assert_true(assert_ok_value(iterator->next(element)));
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  assert_string_equal(iterator->save().dump().c_str(),
                      R"({"kind":"prefetch","input":{"kind":"batch","position":10,"input":{"kind":"indexed",)"
                      R"("position":10}}})");
}

void parallel_calls_overlap_and_keep_the_order(void **) {
  Counter counter;
  const DatasetRef dataset = assert_ok_value(
      range(200).apply("map_callback", {{"parallelism", int64_t{8}}}, with_map(counter.function(300))).build());
  const std::vector<int64_t> values = values_of<int64_t>(dataset, "value");
  assert_int_equal(values.size(), 200);
  for (int64_t i = 0; i < 200; ++i)
    assert_int_equal(values[static_cast<size_t>(i)], i);
  assert_int_equal(counter.calls.load(), 200);
  assert_in_range(counter.most.load(), 2, 8);
}

// Functions that wait: automatic parallelism goes beyond the threads of the budget, in order all the same.
void automatic_parallelism_grows_where_functions_wait(void **) {
  Counter counter;
  const DatasetRef dataset = assert_ok_value(
      range(20000).apply("map_callback", {{"parallelism", int64_t{0}}}, with_map(counter.function(1000))).build());
  data::IteratorContext context;
  context.threads = 2;
  auto iterator = assert_ok_value(dataset->make_iterator(context));
  Element element;
  int64_t i = 0;
  for (; i < 20000 && counter.most < 16; ++i) {
    assert_true(assert_ok_value(iterator->next(element)));
    assert_int_equal(assert_ok_value(element.components[0].scalar_value<int64_t>()), i);
  }
  assert_true(counter.most >= 16);
  auto rest = assert_ok_value(dataset->make_iterator(context));
  assert_ok(rest->restore(iterator->save()));
  assert_true(assert_ok_value(rest->next(element)));
  assert_int_equal(assert_ok_value(element.components[0].scalar_value<int64_t>()), i);
}

void an_error_of_a_callback_comes_with_its_cause(void **) {
  for (const int64_t parallelism : {1, 4}) {
    const DatasetRef dataset = assert_ok_value(
        range(6)
            .apply("map_callback", {{"parallelism", parallelism}}, with_map([](const Element &input, Element &output) {
                     output = input;
                     return input.lineage.index == 2 ? base::data_loss("broken picture") : Status();
                   }))
            .prefetch(2)
            .build());
    auto iterator = assert_ok_value(dataset->make_iterator({}));
    Element element;
    assert_true(assert_ok_value(iterator->next(element)));
    assert_true(assert_ok_value(iterator->next(element)));
    const auto failed = iterator->next(element);
    assert_error_contains(failed, "map: the function failed for element 2 of epoch 0 [element=2, epoch=0");
    assert_error_contains(failed, "]; caused by: DATA_LOSS: broken picture");
    assert_int_equal(values_of<int64_t>(*iterator, "value").size(), 3);
  }
}

void what_a_callback_yields_is_checked(void **) {
  const DatasetRef dataset =
      assert_ok_value(range(3)
                          .apply("map_callback", {}, with_map([](const Element &, Element &output) {
                                   output.components.push_back(counted(4));
                                   return Status();
                                 }))
                          .build());
  auto iterator = assert_ok_value(dataset->make_iterator({}));
  Element element;
  assert_error_contains(iterator->next(element),
                        "map: the result of the function: component 'value': expected i64[], got i32 [4]");
}

void a_callback_is_released_with_its_dataset(void **) {
  auto owner = std::make_shared<int>(1);
  const std::weak_ptr<int> watched = owner;
  DatasetRef dataset = assert_ok_value(
      range(3)
          .apply("map_callback", {}, with_map([owner = std::move(owner)](const Element &input, Element &output) {
                   output = input;
                   return Status();
                 }))
          .build());
  auto iterator = assert_ok_value(dataset->make_iterator({}));
  dataset.reset();
  assert_false(watched.expired());
  iterator.reset();
  assert_true(watched.expired());
}

void a_cache_spares_later_passes(void **) {
  Counter counter;
  const DatasetRef dataset = assert_ok_value(
      range(10).apply("map_callback", {}, with_map(counter.function())).apply("cache").shuffle(10).batch(3).build());
  data::IteratorContext context;
  for (context.epoch = 0; context.epoch < 3; ++context.epoch) {
    assert_int_equal(values_of<int64_t>(dataset, "value", context).size(), 10);
    assert_int_equal(counter.calls.load(), 10);
  }
  context.seed = 1;
  assert_int_equal(values_of<int64_t>(dataset, "value", context).size(), 10);
  assert_int_equal(counter.calls.load(), 20);
}

void an_incomplete_pass_fills_no_cache(void **) {
  Counter counter;
  const DatasetRef dataset = assert_ok_value(range(10)
                                                 .apply("map_callback", {}, with_map(counter.function()))
                                                 .apply("cache")
                                                 .apply("take", {{"count", int64_t{4}}})
                                                 .repeat(3)
                                                 .build());
  assert_int_equal(values_of<int64_t>(dataset, "value").size(), 12);
  assert_int_equal(counter.calls.load(), 12);
  assert_error_contains(range(3).repeat().apply("cache").build(), "the input never ends");
}

void a_cache_freezes_what_lies_before(void **) {
  const DatasetRef dataset = assert_ok_value(range(20).shuffle(20).apply("cache").build());
  data::IteratorContext context;
  context.epoch = 2;
  const std::vector<int64_t> late = values_of<int64_t>(dataset, "value", context);
  context.epoch = 0;
  assert_true(late == values_of<int64_t>(dataset, "value", context));
  assert_true(late == values_of<int64_t>(range(20).shuffle(20).build().value(), "value", context));
}

void threads_share_a_dataset(void **) {
  Counter counter;
  const DatasetRef dataset =
      assert_ok_value(range(500)
                          .apply("map_callback", {{"parallelism", int64_t{2}}}, with_map(counter.function()))
                          .apply("cache")
                          .shuffle(100)
                          .batch(16)
                          .prefetch(2)
                          .build());
  std::vector<std::vector<int64_t>> results(4);
  std::vector<std::thread> threads;
  for (auto &result : results) {
    threads.emplace_back([&result, &dataset] {
      for (int i = 0; i < 3; ++i)
        result = values_of<int64_t>(dataset, "value");
    });
  }
  for (std::thread &thread : threads)
    thread.join();
  for (const auto &result : results) {
    assert_int_equal(result.size(), 500);
    assert_true(result == results[0]);
  }
}

// ABORTED, which ends a walk where a stage says it, is an error like any other where a function says it of an element.
void a_function_that_aborts_costs_one_element(void **) {
  const data::MapFunction aborting = [](const Element &input, Element &output) -> base::Status {
    TUTTI_ASSIGN(const int64_t value, input.components[0].scalar_value<int64_t>());
    output = input;
    return value == 2 ? base::aborted("not two") : base::Status();
  };
  for (const int64_t parallelism : {1, 3}) {
    const auto mapped = [&] {
      return std::move(range(6).apply("map_callback", {{"parallelism", parallelism}}, with_map(aborting)));
    };
    auto iterator = assert_ok_value(assert_ok_value(mapped().build())->make_iterator({}));
    Element element;
    for (int i = 0; i < 6; ++i)
      assert_true(iterator->next(element).ok() == (i != 2));
    assert_false(assert_ok_value(iterator->next(element)));
    const DatasetRef without = assert_ok_value(mapped().apply("ignore_errors").build());
    assert_true(values_of<int64_t>(without, "value") == (std::vector<int64_t>{0, 1, 3, 4, 5}));
  }
}

}  // namespace

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(prefetch_runs_ahead_but_not_further_than_asked),
    cmocka_unit_test(saved_states_do_not_count_what_runs_ahead),
    cmocka_unit_test(parallel_calls_overlap_and_keep_the_order),
    cmocka_unit_test(automatic_parallelism_grows_where_functions_wait),
    cmocka_unit_test(an_error_of_a_callback_comes_with_its_cause),
    cmocka_unit_test(what_a_callback_yields_is_checked),
    cmocka_unit_test(a_callback_is_released_with_its_dataset),
    cmocka_unit_test(a_cache_spares_later_passes),
    cmocka_unit_test(an_incomplete_pass_fills_no_cache),
    cmocka_unit_test(a_cache_freezes_what_lies_before),
    cmocka_unit_test(threads_share_a_dataset),
    cmocka_unit_test(a_function_that_aborts_costs_one_element),
};
TEST_MAIN(tests)

}  // namespace buffering_test
