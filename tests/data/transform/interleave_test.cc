// SPDX-License-Identifier: Apache-2.0
//
// Several datasets as one: interleave, flat_map, sample_from; and resample. Each against a plain loop or against what
// chance must give, and through the dataset conformance suite.
#include <cmath>
#include <map>

#include "conformance/dataset_conformance.h"
#include "sample_data.h"

namespace interleave_test {

using namespace tutti::impl;
using namespace tutti::testing;
using base::Result;
using base::Status;
using data::DatasetRef;
using data::Element;
using data::Pipeline;
using graph::Attributes;
using tensor::Tensor;

namespace {

using Numbers = std::vector<int64_t>;

// 100 * part, 100 * part + 1, ...
Pipeline part(int64_t number, int64_t count) { return Pipeline(data::from_range(100 * number, 100 * number + count)); }

data::TransformArguments parts(const Numbers &counts, bool forward = false) {
  data::TransformArguments arguments;
  for (size_t i = 1; i < counts.size(); ++i) {
    Pipeline one = part(static_cast<int64_t>(i), counts[i]);
    arguments.others.push_back((forward ? forward_only(std::move(one)) : std::move(one)).build().value());
  }
  return arguments;
}

Pipeline interleaved(const Numbers &counts, int64_t cycle, int64_t block, int64_t parallelism = 1) {
  const Attributes attributes{{"cycle_length", cycle}, {"block_length", block}, {"parallelism", parallelism}};
  return std::move(part(0, counts[0]).apply("interleave", attributes, parts(counts)));
}

// Element n of the input becomes a dataset of n % 4 elements; 6 fails.
data::TransformArguments expanding(int64_t failing = -1) {
  data::TransformArguments arguments;
  arguments.expand = [failing](const Element &element) -> Result<DatasetRef> {
    TUTTI_ASSIGN(const int64_t number, element.components[0].scalar_value<int64_t>());
    if (number == failing) return base::not_found("no such file");
    return part(number, number % 4).shuffle(4).build();
  };
  return arguments;
}

Pipeline expanded(Pipeline input, const char *transform, Attributes attributes, int64_t failing = -1) {
  return std::move(input.apply(transform, std::move(attributes), expanding(failing)));
}

Pipeline sampled(const Numbers &counts, Attributes attributes) {
  return std::move(part(0, counts[0]).apply("sample_from", std::move(attributes), parts(counts)));
}

// "y" is 0 for nine of ten elements, 1 for the others.
Pipeline imbalanced(int64_t count) {
  data::TransformArguments arguments;
  arguments.map = [](const Element &input, Element &output) -> Status {
    TUTTI_ASSIGN(const int64_t value, input.components[0].scalar_value<int64_t>());
    TUTTI_ASSIGN(Tensor label, Tensor::scalar(static_cast<int32_t>(value % 10 == 7 ? 1 : 0)));
    output.components = {input.components[0], std::move(label)};
    return Status();
  };
  arguments.output_spec = data::ElementSpec{
      {{"value", data::Role::feature, tensor::DType::i64, {}}, {"y", data::Role::label, tensor::DType::i32, {}}}};
  return std::move(range(count).apply("map_callback", {}, std::move(arguments)));
}

Pipeline resampled(int64_t count, Attributes attributes) {
  attributes.emplace("component", std::string("y"));
  attributes.emplace("initial", std::vector<double>{9, 1});
  return std::move(imbalanced(count).apply("resample", std::move(attributes)));
}

DatasetCase of(std::string name, std::function<Pipeline()> make, bool fails = false) {
  return {std::move(name), [make] { return DatasetInstance{make().build()}; }, 64, nullptr, fails};
}

std::vector<DatasetCase> cases() {
  const Attributes turns{{"cycle_length", int64_t{3}}, {"block_length", int64_t{2}}};
  Attributes ahead = turns;
  ahead["parallelism"] = int64_t{2};
  return {
      of("interleave",
         [] {
           return interleaved({5, 0, 7, 1, 3}, 3, 2);
         }),
      of("interleave, batch",
         [] {
           return std::move(interleaved({5, 0, 7, 1, 3}, 2, 2).batch(3));
         }),
      of("interleave, read ahead",
         [] {
           return std::move(interleaved({5, 0, 7, 1, 3}, 3, 2, 0).batch(3));
         }),
      of("interleave, some read ahead",
         [] {
           return std::move(interleaved({5, 2, 7}, 0, 1, 2).shuffle(4).repeat(2));
         }),
      of("interleave of nothing",
         [] {
           return std::move(interleaved({0, 0}, 0, 1).repeat());
         }),
      of("interleave of shuffles for ever",
         [] {
           data::TransformArguments arguments;
           arguments.others = {part(1, 5).shuffle(5).repeat().build().value()};
           return std::move(part(0, 5).shuffle(5).repeat().apply("interleave", {}, std::move(arguments)));
         }),
      of("flat_map", [] { return expanded(range(12), "flat_map", {}); }),
      of("flat_map, read ahead, batch",
         [] {
           return std::move(expanded(range(12).shuffle(12), "flat_map", {{"read_ahead", true}}).batch(4));
         }),
      of("flat_map of what is known forward only", [] { return expanded(forward_only(range(12)), "flat_map", {}); }),
      of(
          "flat_map failing", [] { return expanded(range(12), "flat_map", {}, 6); }, true),
      of("interleave_callback",
         [turns] { return std::move(expanded(range(12).shuffle(5), "interleave_callback", turns).repeat(2)); }),
      of("interleave_callback, read ahead",
         [ahead] { return std::move(expanded(range(12), "interleave_callback", ahead).prefetch(2)); }),
      of(
          "interleave_callback failing",
          [turns] { return std::move(expanded(range(12), "interleave_callback", turns, 6).batch(3)); }, true),
      of("sample_from",
         [] {
           return std::move(sampled({9, 4, 6}, {}).repeat(2));
         }),
      of("sample_from, weights, stop",
         [] {
           return std::move(
               sampled({9, 4, 6}, {{"weights", std::vector<double>{1, 0, 3}}, {"stop_on_empty", true}}).batch(2));
         }),
      of("resample", [] { return std::move(resampled(90, {}).repeat(2)); }),
      of("resample, repetition, batch",
         [] {
           return std::move(resampled(40, {{"repetition", true}, {"seed", int64_t{3}}}).batch(4).prefetch(1));
         }),
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

// Turns written as they are described in turns.h.
Numbers naive_turns(const std::vector<Numbers> &lists, size_t cycle, int64_t block) {
  std::vector<std::vector<int64_t>> slots(cycle);
  std::vector<bool> used(cycle, false);
  size_t next = 0;
  Numbers all;
  const auto is_over = [&] {
    return next == lists.size() && std::none_of(used.begin(), used.end(), [](bool one) { return one; });
  };
  for (size_t slot = 0; !is_over(); slot = (slot + 1) % cycle) {
    if (!used[slot] && next < lists.size()) {
      slots[slot] = lists[next++];
      used[slot] = true;
    }
    for (int64_t i = 0; i < block && used[slot]; ++i) {
      if (slots[slot].empty()) {
        used[slot] = false;
      } else {
        all.push_back(slots[slot].front());
        slots[slot].erase(slots[slot].begin());
      }
    }
  }
  return all;
}

Numbers numbers_of(const Pipeline &pipeline, int64_t limit = 1 << 20) {
  return values_of<int64_t>(assert_ok_value(pipeline.build()), "value", {}, limit);
}

void turns_are_those_of_a_plain_loop(void **) {
  for (const Numbers &counts : {Numbers{5, 0, 7, 1, 3}, Numbers{4, 0}, Numbers{1, 1, 1, 1, 9}, Numbers{0, 0, 2}}) {
    std::vector<Numbers> lists;
    for (size_t i = 0; i < counts.size(); ++i)
      lists.push_back(numbers_of(part(static_cast<int64_t>(i), counts[i])));
    for (const int64_t cycle : {0, 1, 2, 3, 9}) {
      const size_t slots = cycle == 0 ? counts.size() : std::min<size_t>(static_cast<size_t>(cycle), counts.size());
      for (const int64_t block : {1, 2, 4}) {
        const Numbers expected = naive_turns(lists, slots, block);
        for (const int64_t parallelism : {1, 2, 0}) {
          assert_true(numbers_of(interleaved(counts, cycle, block, parallelism)) == expected);
          assert_true(numbers_of(std::move(interleaved(counts, cycle, block, parallelism).batch(3))) == expected);
        }
      }
    }
  }
  assert_int_equal(interleaved({5, 0, 7}, 2, 1).build().value()->cardinality().value(), 12);
}

// Each shuffle inside draws its own order, whatever order the elements come in.
void flat_map_walks_over_each_dataset(void **) {
  std::map<int64_t, Numbers> of_element;
  for (const int64_t value : numbers_of(expanded(range(12), "flat_map", {})))
    of_element[value / 100].push_back(value);
  assert_int_equal(of_element.size(), 9);
  Numbers expected;
  for (const int64_t number : numbers_of(range(12).shuffle(12))) {
    Numbers all = of_element[number];
    assert_int_equal(all.size(), number % 4);
    expected.insert(expected.end(), all.begin(), all.end());
  }
  assert_true(numbers_of(expanded(range(12).shuffle(12), "flat_map", {})) == expected);
  bool differ = false;
  for (auto &[number, all] : of_element)
    differ = differ || (all.size() == 3 && all[0] - 100 * number != of_element[3][0] - 300);
  assert_true(differ);
}

void datasets_that_do_not_fit_are_refused(void **) {
  data::TransformArguments wrong;
  wrong.others = {sample(3).build().value()};
  assert_error_contains(range(3).apply("interleave", {}, wrong).build(), "expected datasets of equal specs");
  assert_error_contains(range(3).apply("interleave").build(), "expected the argument 'others'");
  data::TransformArguments expand;
  expand.expand = [](const Element &) { return sample(3).build(); };
  auto iterator = assert_ok_value(assert_ok_value(range(3).apply("flat_map", {}, expand).build())->make_iterator({}));
  Element element;
  assert_error_contains(iterator->next(element), "flat_map: the function failed for element 0 of epoch 0");
  assert_error_contains(iterator->next(element), "expected datasets of equal specs");
  expand.expand = [](const Element &) -> Result<DatasetRef> { return DatasetRef(); };
  auto none = assert_ok_value(assert_ok_value(range(3).apply("flat_map", {}, expand).build())->make_iterator({}));
  assert_error_contains(none->next(element), "it returned no dataset");
  assert_error_contains(sampled({1, 2}, {{"weights", std::vector<double>{1}}}).build(),
                        "weights: expected one for each of the 2 datasets, got 1");
  assert_error_contains(sampled({1, 2}, {{"weights", std::vector<double>{0, 0}}}).build(),
                        "expected at least one above 0");
  assert_error_contains(sampled({1, 2}, {{"weights", std::vector<double>{1, -1}}}).build(), "parameter 'weights'");
}

// Within 4.5 standard deviations of what chance gives.
void assert_near(int64_t count, int64_t trials, double probability) {
  const double mean = static_cast<double>(trials) * probability;
  const double deviation = std::sqrt(mean * (1 - probability));
  if (std::fabs(static_cast<double>(count) - mean) <= 4.5 * deviation) return;
  print_error("%g expected of %g, got %g\n", mean, static_cast<double>(trials), static_cast<double>(count));
  _fail(__FILE__, __LINE__);
}

void samples_come_by_weight(void **) {
  const Attributes weights{{"weights", std::vector<double>{1, 5, 0, 4}}};
  data::TransformArguments arguments;
  for (int64_t i = 1; i < 4; ++i)
    arguments.others.push_back(part(i, 100).repeat().build().value());
  Pipeline pipeline = part(0, 100).repeat();
  pipeline.apply("sample_from", weights, arguments);
  assert_true(assert_ok_value(pipeline.build())->cardinality().is_infinite());
  std::map<int64_t, int64_t> counts;
  std::map<int64_t, int64_t> next;
  constexpr int64_t kDraws = 20000;
  for (const int64_t value : numbers_of(pipeline, kDraws)) {
    ++counts[value / 100];
    assert_int_equal(value % 100, next[value / 100]++ % 100);  // each dataset in its own order
  }
  assert_near(counts[0], kDraws, 0.1);
  assert_near(counts[1], kDraws, 0.5);
  assert_int_equal(counts[2], 0);
  assert_near(counts[3], kDraws, 0.4);
}

void samples_end_when_all_or_one_has(void **) {
  Numbers all = numbers_of(sampled({9, 4, 6}, {}));
  std::sort(all.begin(), all.end());
  Numbers expected;
  for (const Pipeline &one : {part(0, 9), part(1, 4), part(2, 6)}) {
    for (const int64_t value : numbers_of(one))
      expected.push_back(value);
  }
  assert_true(all == expected);
  assert_int_equal(sampled({9, 4, 6}, {}).build().value()->cardinality().value(), 19);
  const DatasetRef stopping = assert_ok_value(sampled({9, 4, 600}, {{"stop_on_empty", true}}).build());
  const Numbers some = values_of<int64_t>(stopping, "value");
  const auto first = std::count_if(some.begin(), some.end(), [](int64_t value) { return value < 100; });
  const auto second =
      std::count_if(some.begin(), some.end(), [](int64_t value) { return value >= 100 && value < 200; });
  assert_true(first == 9 || second == 4);
  assert_true(some.size() < 100);
}

void classes_come_as_often_as_wanted(void **) {
  constexpr int64_t kElements = 20000;
  const auto labels_of = [](Attributes attributes) {
    std::map<int32_t, int64_t> counts;
    for (const int32_t label :
         values_of<int32_t>(assert_ok_value(resampled(kElements, std::move(attributes)).build()), "y"))
      ++counts[label];
    return counts;
  };
  auto counts = labels_of({});
  assert_int_equal(counts[1], kElements / 10);  // the rarest keeps all
  assert_near(counts[0], kElements * 9 / 10, 1.0 / 9);
  counts = labels_of({{"target", std::vector<double>{3, 1}}});
  assert_int_equal(counts[1], kElements / 10);
  assert_near(counts[0], kElements * 9 / 10, 3.0 / 9);
  counts = labels_of({{"target", std::vector<double>{0, 1}}});
  assert_int_equal(counts[0], 0);
  counts = labels_of({{"repetition", true}});
  assert_int_equal(counts[1], kElements / 2);  // each of a tenth five times
  assert_near(counts[0], kElements * 9 / 10, 5.0 / 9);
  // A copy is an element of its own to random ops, and the next epoch draws again.
  const DatasetRef dataset = assert_ok_value(resampled(100, {{"repetition", true}}).build());
  auto iterator = assert_ok_value(dataset->make_iterator({}));
  Element element;
  for (int64_t i = 0; assert_ok_value(iterator->next(element)); ++i)
    assert_int_equal(element.lineage.index, i);
  data::IteratorContext later;
  later.epoch = 1;
  assert_true(values_of<int64_t>(dataset, "value") != values_of<int64_t>(dataset, "value", later));
}

void impossible_classes_are_refused(void **) {
  const auto build = [](Attributes attributes) {
    attributes.emplace("component", std::string("y"));
    attributes.emplace("initial", std::vector<double>{9, 1});
    return imbalanced(20).apply("resample", std::move(attributes)).build();
  };
  assert_error_contains(build({{"component", std::string("z")}}), "there is no component 'z'");
  assert_error_contains(build({{"target", std::vector<double>{1}}}),
                        "target: expected as many numbers as initial has, 2");
  assert_error_contains(build({{"initial", std::vector<double>{9, 0}}}), "class 1 never occurs");
  assert_error_contains(build({{"initial", std::vector<double>{0, 0}}}), "expected a number above 0");
  const DatasetRef dataset = assert_ok_value(build({{"initial", std::vector<double>{1}}}));
  auto iterator = assert_ok_value(dataset->make_iterator({}));
  Element element;
  for (int64_t i = 0; i < 7; ++i)
    assert_true(assert_ok_value(iterator->next(element)));
  assert_error_contains(iterator->next(element), "element 7 is of class 1; expected a class from 0 to 0");
  assert_error_contains(
      sample(4).apply("resample", {{"component", std::string("x")}, {"initial", std::vector<double>{1}}}).build(),
      "expected a single integer");
}

}  // namespace

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(all_conform),
    cmocka_unit_test(walks_can_be_left_and_cancelled),
    cmocka_unit_test(turns_are_those_of_a_plain_loop),
    cmocka_unit_test(flat_map_walks_over_each_dataset),
    cmocka_unit_test(datasets_that_do_not_fit_are_refused),
    cmocka_unit_test(samples_come_by_weight),
    cmocka_unit_test(samples_end_when_all_or_one_has),
    cmocka_unit_test(classes_come_as_often_as_wanted),
    cmocka_unit_test(impossible_classes_are_refused),
};
TEST_MAIN(tests)

}  // namespace interleave_test
