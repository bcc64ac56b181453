// SPDX-License-Identifier: Apache-2.0
//
// tests lib/data/transform/options.cc, buffer_budget.h, and what turns.cc and ordered_calls.cc do where order does not
// matter: nobody waits for an element whose turn it is while others are ready, and none is lost or given twice.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <numeric>
#include <set>
#include <thread>

#include "conformance/dataset_conformance.h"
#include "data/thread/buffer_budget.h"
#include "sample_data.h"
#include "testing.h"

namespace options_test {

using namespace tutti::impl;
using namespace tutti::testing;
using base::Status;
using data::BufferBudget;
using data::DatasetRef;
using data::Element;
using data::Pipeline;
using graph::Attributes;

namespace {

using Numbers = std::vector<int64_t>;

const Attributes kLoose{{"deterministic", false}};

int64_t number_of(const Element &element) { return element.components[0].scalar_value<int64_t>().value(); }

// Waits until it holds, 20 s at most.
template <typename Condition>
bool comes_true(Condition condition) {
  for (int i = 0; i < 20000 && !condition(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return condition();
}

data::TransformArguments with_map(data::MapFunction function) {
  data::TransformArguments arguments;
  arguments.map = std::move(function);
  return arguments;
}

// Holds elements up until it is opened.
struct Gate {
  std::set<int64_t> held;
  std::atomic<bool> is_open{false};

  data::TransformArguments map() {
    return with_map([this](const Element &input, Element &output) {
      if (held.contains(number_of(input)) && !comes_true([this] { return is_open.load(); })) {
        return base::deadline_exceeded("nobody went past element ", number_of(input));
      }
      output = input;
      return Status();
    });
  }
};

Pipeline mapped(Pipeline input, Gate &gate, int64_t parallelism) {
  return std::move(input.apply("map_callback", {{"parallelism", parallelism}}, gate.map()));
}

// 100 * part, 100 * part + 1, ... of three parts, the first of which goes through the gate.
Pipeline interleaved(Gate &gate, int64_t count) {
  data::TransformArguments arguments;
  for (int64_t part = 1; part < 3; ++part)
    arguments.others.push_back(
        forward_only(Pipeline(data::from_range(100 * part, 100 * part + count))).build().value());
  return std::move(
      mapped(range(count), gate, 1).apply("interleave", {{"parallelism", int64_t{0}}}, std::move(arguments)));
}

Numbers sorted(Numbers numbers) {
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

Numbers numbers_of(data::Iterator &iterator, int64_t limit = 1 << 20) {
  Numbers numbers;
  for (Element element; static_cast<int64_t>(numbers.size()) < limit;) {
    if (!assert_ok_value(iterator.next(element))) break;
    numbers.push_back(number_of(element));
  }
  return numbers;
}

Numbers all_of_three(int64_t count) {
  Numbers all;
  for (int64_t part = 0; part < 3; ++part) {
    for (int64_t i = 0; i < count; ++i)
      all.push_back(100 * part + i);
  }
  return all;
}

// The first part stands still until both others have been given out.
void test_interleave_does_not_wait(void **) {
  for (const bool in_batches : {false, true}) {
    Gate gate{{0}};
    Pipeline pipeline = std::move(interleaved(gate, 20).apply("options", kLoose));
    if (in_batches) pipeline.batch(1);
    const auto iterator = assert_ok_value(assert_ok_value(pipeline.build())->make_iterator({}));
    Numbers numbers;
    for (Element element; numbers.size() < 40;) {
      assert_true(assert_ok_value(iterator->next(element)));
      numbers.push_back(assert_ok_value(element.components[0].values<int64_t>())[0]);
    }
    assert_true(*std::min_element(numbers.begin(), numbers.end()) == 100);
    gate.is_open = true;
    Element element;
    while (assert_ok_value(iterator->next(element)))
      numbers.push_back(assert_ok_value(element.components[0].values<int64_t>())[0]);
    assert_true(sorted(numbers) == all_of_three(20));
  }
}

void test_map_does_not_wait(void **) {
  Gate gate{{0, 5}};
  const DatasetRef dataset = assert_ok_value(mapped(range(30), gate, 4).apply("options", kLoose).build());
  const auto iterator = assert_ok_value(dataset->make_iterator({}));
  const Numbers first = numbers_of(*iterator, 9);
  assert_true(std::none_of(first.begin(), first.end(), [&](int64_t number) { return gate.held.contains(number); }));
  gate.is_open = true;
  Numbers all = first;
  const Numbers rest = numbers_of(*iterator);
  all.insert(all.end(), rest.begin(), rest.end());
  Numbers expected(30);
  std::iota(expected.begin(), expected.end(), 0);
  assert_true(sorted(all) == expected);
}

// A walk that is saved at any place and restored, also one after the other, gives each element once.
void check_saved_walks(const std::function<Pipeline()> &make, const Numbers &all) {
  for (size_t place = 0; place <= all.size(); ++place) {
    const DatasetRef dataset = assert_ok_value(make().build());
    Numbers numbers;
    base::Json state;
    {
      const auto iterator = assert_ok_value(dataset->make_iterator({}));
      numbers = numbers_of(*iterator, static_cast<int64_t>(place));
      state = iterator->save();
    }
    for (const int64_t more : {int64_t{0}, int64_t{3}, int64_t{1} << 20}) {
      const auto iterator = assert_ok_value(dataset->make_iterator({}));
      assert_ok(iterator->restore(state));
      assert_true(iterator->save() == state);
      const Numbers next = numbers_of(*iterator, more);
      numbers.insert(numbers.end(), next.begin(), next.end());
      state = iterator->save();
    }
    assert_true(sorted(numbers) == all);
  }
}

void test_saved_walks_lose_nothing(void **) {
  Numbers all(24);
  std::iota(all.begin(), all.end(), 0);
  const auto uneven = [](const Element &input, Element &output) {
    output = input;
    if (number_of(input) % 5 == 1) std::this_thread::sleep_for(std::chrono::microseconds(700));
    return Status();
  };
  for (const int64_t parallelism : {1, 3}) {
    check_saved_walks(
        [&] {
          return std::move(range(24)
                               .apply("map_callback", {{"parallelism", parallelism}}, with_map(uneven))
                               .apply("options", kLoose));
        },
        all);
  }
  check_saved_walks(
      [] {
        static Gate open;
        return std::move(interleaved(open, 6).apply("options", kLoose));
      },
      all_of_three(6));
}

// A state with gaps goes into a walk that keeps the order, if it has threads; one without says why not.
void test_states_with_gaps_elsewhere(void **) {
  Gate gate{{0}};
  const DatasetRef loose = assert_ok_value(mapped(range(12), gate, 3).apply("options", kLoose).build());
  const auto walk = assert_ok_value(loose->make_iterator({}));
  Numbers numbers = numbers_of(*walk, 3);
  const base::Json state = walk->save();
  gate.is_open = true;
  Gate open;
  const auto ordered = assert_ok_value(assert_ok_value(mapped(range(12), open, 2).build())->make_iterator({}));
  assert_ok(ordered->restore(state));
  const Numbers rest = numbers_of(*ordered);
  assert_true(std::is_sorted(rest.begin(), rest.end()));
  numbers.insert(numbers.end(), rest.begin(), rest.end());
  assert_int_equal(sorted(numbers).size(), 12);
  assert_true(std::set<int64_t>(numbers.begin(), numbers.end()).size() == 12);
  const auto plain = assert_ok_value(assert_ok_value(mapped(range(12), open, 1).build())->make_iterator({}));
  const Status refused = plain->restore(state);
  assert_int_equal(refused.code(), base::Code::invalid_argument);
  assert_true(refused.to_string().find("did not keep the order") != std::string::npos);
}

void test_an_interrupted_wait_loses_nothing(void **) {
  Gate gate{{0, 1, 2}};
  const DatasetRef dataset = assert_ok_value(interleaved(gate, 4).apply("options", kLoose).build());
  data::IteratorContext context;
  context.cancel = base::CancelToken::create();
  const auto iterator = assert_ok_value(dataset->make_iterator(context));
  Numbers numbers = numbers_of(*iterator, 8);
  context.cancel->set_deadline(base::Deadline::after_ms(20));
  Element element;
  assert_int_equal(iterator->next(element).status().code(), base::Code::deadline_exceeded);
  context.cancel->set_deadline(base::Deadline::never());
  gate.is_open = true;
  const Numbers rest = numbers_of(*iterator);
  numbers.insert(numbers.end(), rest.begin(), rest.end());
  assert_true(sorted(numbers) == all_of_three(4));
}

// Elements that an automatic prefetch has asked for when the consumer has taken one and then stands still.
int64_t asked_for(const Attributes &options) {
  std::atomic<int64_t> calls{0};
  const auto count = [&](const Element &input, Element &output) {
    ++calls;
    output = input;
    return Status();
  };
  const DatasetRef dataset = assert_ok_value(
      range(1000).apply("map_callback", {}, with_map(count)).prefetch(0).apply("options", options).build());
  const auto iterator = assert_ok_value(dataset->make_iterator({}));
  (void)numbers_of(*iterator, 1);
  int64_t before = -1;
  for (int still = 0; still < 20; before = calls) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    still = calls == before ? still + 1 : 0;
  }
  return calls;
}

void test_memory_of_automatic_buffers(void **) {
  // A full buffer is filled up again, or not before it is half empty.
  assert_in_range(asked_for({}), 8, 8 + 1);
  assert_in_range(asked_for({{"memory_bytes", int64_t{1} << 20}}), 8, 8 + 1);
  // Elements have 8 bytes.
  assert_in_range(asked_for({{"memory_bytes", int64_t{16}}}), 2, 2 + 1);
  assert_in_range(asked_for({{"memory_bytes", int64_t{1}}}), 1, 1 + 1);
}

void test_a_budget_is_shared(void **) {
  const auto budget = std::make_shared<BufferBudget>(100);
  BufferBudget::Share one(budget);
  assert_true(one.resize(60));
  {
    BufferBudget::Share two(budget);
    assert_false(two.resize(41));
    assert_true(two.resize(40));
    assert_false(one.resize(61));
  }
  assert_true(one.resize(100));
  assert_false(one.resize(101));
  assert_true(one.resize(10));
  BufferBudget::Share without(nullptr);
  assert_true(without.resize(int64_t{1} << 60));
  // The default is part of what is free.
  BufferBudget::Share of_machine(std::make_shared<BufferBudget>(0));
  assert_true(of_machine.resize(1));
  assert_false(of_machine.resize(base::available_memory()));
}

int64_t threads_in_report(const Attributes &options) {
  const DatasetRef dataset = assert_ok_value(
      range(10)
          .apply("map_callback", {{"parallelism", int64_t{0}}}, with_map([](const Element &input, Element &output) {
                   output = input;
                   return Status();
                 }))
          .apply("options", options)
          .build());
  data::IteratorContext context;
  context.threads = 2;
  const auto iterator = assert_ok_value(dataset->make_iterator(context));
  (void)numbers_of(*iterator);
  const base::Json report = iterator->report();
  for (const base::Json &stage : report.find("stages")->array()) {
    if (stage.find("stage")->string() == "map_callback") return stage.find("threads")->integer();
  }
  return -1;
}

void test_threads(void **) {
  assert_int_equal(threads_in_report({}), 2);
  assert_int_equal(threads_in_report({{"threads", int64_t{3}}}), 3);
}

void test_what_it_leaves_as_it_is(void **) {
  const DatasetRef plain = assert_ok_value(range(10).shuffle(4).batch(3).build());
  const DatasetRef with =
      assert_ok_value(range(10).shuffle(4).apply("options", {{"threads", int64_t{2}}}).batch(3).build());
  assert_true(plain->spec() == with->spec());
  assert_true(plain->cardinality() == with->cardinality());
  assert_true(values_of<int64_t>(plain, "value") == values_of<int64_t>(with, "value"));
}

}  // namespace

static int run_all(int, char **) {
  const CMUnitTest tests[] = {
      cmocka_unit_test(test_interleave_does_not_wait),
      cmocka_unit_test(test_map_does_not_wait),
      cmocka_unit_test(test_saved_walks_lose_nothing),
      cmocka_unit_test(test_states_with_gaps_elsewhere),
      cmocka_unit_test(test_an_interrupted_wait_loses_nothing),
      cmocka_unit_test(test_memory_of_automatic_buffers),
      cmocka_unit_test(test_a_budget_is_shared),
      cmocka_unit_test(test_threads),
      cmocka_unit_test(test_what_it_leaves_as_it_is),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
TEST_SOURCE(run_all)

}  // namespace options_test
