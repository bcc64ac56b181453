// SPDX-License-Identifier: Apache-2.0
//
// tests lib/data/transform/shuffle.cc and shuffle_elements.cc: what a shuffle promises, on all three ways it is done.
#include <algorithm>
#include <numeric>

#include "data/pipeline/pipeline.h"
#include "sample_data.h"
#include "testing.h"

namespace shuffle_test {

using namespace tutti::impl;
using namespace tutti::testing;
using data::DatasetRef;
using data::Element;
using data::Pipeline;

namespace {

std::vector<int64_t> order(Pipeline pipeline, int64_t seed = 0, int64_t epoch = 0, int32_t threads = 1) {
  data::IteratorContext context;
  context.seed = seed;
  context.epoch = epoch;
  context.threads = threads;
  return values_of<int64_t>(pipeline.build().value(), "value", context);
}

bool is_permutation_of_range(std::vector<int64_t> values, int64_t count) {
  std::sort(values.begin(), values.end());
  std::vector<int64_t> all(static_cast<size_t>(count));
  std::iota(all.begin(), all.end(), 0);
  return values == all;
}

void every_element_comes_once_and_not_too_early(void **) {
  for (const int64_t count : {1, 2, 17, 200}) {
    for (const int64_t buffer : {1, 2, 5, 16, 17, 150, 1000}) {
      for (const bool forward : {false, true}) {
        for (int64_t seed = 0; seed < 3; ++seed) {
          Pipeline source = range(count);
          if (forward) source = forward_only(std::move(source));
          const std::vector<int64_t> values = order(std::move(source.shuffle(buffer)), seed);
          assert_true(is_permutation_of_range(values, count));
          for (size_t position = 0; position < values.size(); ++position) {
            // Element i comes at position i - buffer + 1 at the earliest.
            assert_true(static_cast<int64_t>(position) >= values[position] - buffer + 1);
          }
          if (buffer == 1) assert_true(std::is_sorted(values.begin(), values.end()));
        }
      }
    }
  }
}

void positions_and_elements_shuffle_alike(void **) {
  assert_true(order(std::move(range(100).shuffle(9)), 5) == order(std::move(forward_only(range(100)).shuffle(9)), 5));
}

// Whether what is behind a shuffle asks for positions or for one element after the other.
void transforms_behind_see_the_same_order(void **) {
  using Behind = Pipeline (*)(Pipeline);
  const Behind transforms[] = {
      [](Pipeline p) {
        return std::move(p.apply("skip", {{"count", int64_t{13}}}));
      },
      [](Pipeline p) {
        return std::move(p.apply("take", {{"count", int64_t{41}}}));
      },
      [](Pipeline p) {
        return std::move(p.apply("shard", {{"num_shards", int64_t{3}}, {"index", int64_t{1}}}));
      },
      [](Pipeline p) { return std::move(p.batch(7)); },
      [](Pipeline p) { return std::move(p.shuffle(5).shuffle(30)); },
  };
  for (const Behind behind : transforms) {
    for (const int64_t buffer : {4, 60}) {
      const auto by_position = order(behind(std::move(range(100).shuffle(buffer))), 5);
      assert_true(by_position == order(behind(std::move(forward_only(range(100)).shuffle(buffer))), 5));
    }
  }
}

void orders_differ_by_epoch_and_seed_and_nothing_else(void **) {
  const auto shuffled = [](int64_t buffer) { return std::move(range(100).shuffle(buffer)); };
  for (const int64_t buffer : {20, 1000}) {
    const std::vector<int64_t> first = order(shuffled(buffer), 1, 0);
    assert_true(first == order(shuffled(buffer), 1, 0, 8));
    assert_true(first != order(shuffled(buffer), 1, 1));
    assert_true(first != order(shuffled(buffer), 2, 0));
    // Neither batches nor what lies around it change an order.
    assert_true(first == order(std::move(shuffled(buffer).batch(7).prefetch(2)), 1, 0));
  }
  const std::vector<int64_t> twice = order(std::move(shuffled(1000).repeat(2)), 1);
  const std::vector<int64_t> one(twice.begin(), twice.begin() + 100), two(twice.begin() + 100, twice.end());
  assert_true(one != two);
  assert_true(one == order(shuffled(1000), 1, 0));
  assert_true(two == order(shuffled(1000), 1, 1));
}

void parameters_fix_seed_and_order(void **) {
  const auto seeded = [] {
    return std::move(range(50).apply("shuffle", {{"buffer_size", int64_t{50}}, {"seed", int64_t{4}}}));
  };
  assert_true(order(seeded(), 1) == order(seeded(), 2));
  const auto fixed = [] {
    return std::move(range(50).apply("shuffle", {{"buffer_size", int64_t{50}}, {"reshuffle_each_epoch", false}}));
  };
  assert_true(order(fixed(), 1, 0) == order(fixed(), 1, 5));
  assert_true(order(fixed(), 1, 0) != order(fixed(), 2, 0));
}

void shuffles_of_one_pipeline_are_independent(void **) {
  const std::vector<int64_t> once = order(std::move(range(50).shuffle(50)));
  const std::vector<int64_t> twice = order(std::move(range(50).shuffle(50).shuffle(50)));
  std::vector<int64_t> same_again(50);
  for (size_t i = 0; i < 50; ++i)
    same_again[i] = once[static_cast<size_t>(once[i])];
  assert_true(twice != same_again);
}

// Each element is about equally often at each place.
void permutations_are_uniform(void **) {
  int counts[4][4] = {};
  for (int64_t epoch = 0; epoch < 2400; ++epoch) {
    const std::vector<int64_t> values = order(std::move(range(4).shuffle(4)), 9, epoch);
    for (size_t place = 0; place < 4; ++place)
      ++counts[place][values[place]];
  }
  for (const auto &row : counts) {
    for (const int count : row)
      assert_in_range(count, 500, 700);
  }
}

void large_datasets_need_no_stored_order(void **) {
  const int64_t count = (int64_t{1} << 20) + 5;
  const DatasetRef dataset = assert_ok_value(range(count).shuffle(count).batch(1 << 18).build());
  assert_true(is_permutation_of_range(values_of<int64_t>(dataset, "value"), count));
}

// Small buffers draw as they go; a walk that is restored goes on where it was.
void large_datasets_are_drawn_from_small_buffers(void **) {
  const int64_t count = (int64_t{1} << 20) + 5;
  const auto shuffled = [=] { return std::move(range(count).shuffle(100).batch(1 << 18)); };
  const std::vector<int64_t> values = order(shuffled(), 3);
  assert_true(values == order(std::move(forward_only(range(count)).shuffle(100).batch(1 << 18)), 3));
  data::IteratorContext context;
  context.seed = 3;
  const DatasetRef dataset = assert_ok_value(shuffled().build());
  auto iterator = assert_ok_value(dataset->make_iterator(context));
  auto restored = assert_ok_value(dataset->make_iterator(context));
  Element element;
  for (int i = 0; i < 3; ++i)
    assert_true(assert_ok_value(iterator->next(element)));
  assert_ok(restored->restore(iterator->save()));
  assert_true(assert_ok_value(restored->next(element)));
  assert_int_equal(element.components[0].data_as<int64_t>()[17], values[3 * (1 << 18) + 17]);
}

void restored_buffer_size_must_agree(void **) {
  const auto shuffled = [](int64_t buffer) { return forward_only(range(30)).shuffle(buffer).build().value(); };
  auto iterator = assert_ok_value(shuffled(5)->make_iterator({}));
  Element element;
  assert_true(assert_ok_value(iterator->next(element)));
  auto other = assert_ok_value(shuffled(6)->make_iterator({}));
  assert_error_contains(other->restore(iterator->save()), "the saved shuffle has buffer_size 5, the pipeline has 6");
}

// What the next `count` calls give; -1 for an error, -2 behind the end.
std::vector<int64_t> answers(data::Iterator &iterator, int64_t count) {
  std::vector<int64_t> answers;
  for (Element element; static_cast<int64_t>(answers.size()) < count;) {
    const base::Result<bool> more = iterator.next(element);
    answers.push_back(!more.ok() ? -1 : *more ? element.components[0].scalar_value<int64_t>().value() : -2);
  }
  return answers;
}

// Nine of ten elements fail: a state stays small all the same, and the walk goes on from any of them.
void states_do_not_grow_with_failures(void **) {
  constexpr int64_t kCount = 1500, kAhead = 40;
  data::TransformArguments arguments;
  arguments.map = [](const Element &input, Element &output) {
    TUTTI_ASSIGN(const int64_t value, input.components[0].scalar_value<int64_t>());
    if (value % 10 != 3) return base::data_loss("a bad element");
    output = input;
    return base::Status();
  };
  const DatasetRef dataset =
      assert_ok_value(range(kCount).apply("map_callback", {}, std::move(arguments)).shuffle(7).build());
  const std::vector<int64_t> expected = answers(*assert_ok_value(dataset->make_iterator({})), kCount + kAhead);
  assert_int_equal(std::count(expected.begin(), expected.end(), -1), kCount - kCount / 10);
  assert_int_equal(std::count(expected.begin(), expected.end(), -2), kAhead);

  const auto iterator = assert_ok_value(dataset->make_iterator({}));
  for (int64_t place = 0; place < kCount; ++place) {
    const base::Json state = iterator->save();
    assert_true(state.dump().size() < 3000);
    if (place % 3 == 0) {
      const auto restored = assert_ok_value(dataset->make_iterator({}));
      assert_ok(restored->restore(state));
      assert_true(restored->save() == state);
      const auto from = expected.begin() + place;
      assert_true(answers(*restored, kAhead) == std::vector<int64_t>(from, from + kAhead));
    }
    assert_int_equal(answers(*iterator, 1)[0], expected[static_cast<size_t>(place)]);
  }
}

// A buffer that no walk can have had is refused.
void restored_buffers_are_checked(void **) {
  const DatasetRef dataset = assert_ok_value(forward_only(range(50)).shuffle(4).build());
  for (const char *const buffer : {"[0,0]", "[-1]", "[10]", "[1,2,3,4,5]", "[\"a\"]"}) {
    const std::string text = base::concat(
        R"({"kind":"element_shuffle","draws":3,"pulled":10,"ended":0,"buffer_size":4,"random":3,"buffer":)", buffer,
        R"(,"input_position":0,"input":{"kind":"filter","input":{"kind":"indexed","position":0}}})");
    const auto iterator = assert_ok_value(dataset->make_iterator({}));
    assert_error_contains(iterator->restore(assert_ok_value(base::Json::parse(text))), "buffer");
  }
}

}  // namespace

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_element_comes_once_and_not_too_early),
    cmocka_unit_test(positions_and_elements_shuffle_alike),
    cmocka_unit_test(transforms_behind_see_the_same_order),
    cmocka_unit_test(orders_differ_by_epoch_and_seed_and_nothing_else),
    cmocka_unit_test(parameters_fix_seed_and_order),
    cmocka_unit_test(shuffles_of_one_pipeline_are_independent),
    cmocka_unit_test(permutations_are_uniform),
    cmocka_unit_test(large_datasets_need_no_stored_order),
    cmocka_unit_test(large_datasets_are_drawn_from_small_buffers),
    cmocka_unit_test(restored_buffer_size_must_agree),
    cmocka_unit_test(states_do_not_grow_with_failures),
    cmocka_unit_test(restored_buffers_are_checked),
};
TEST_MAIN(tests)

}  // namespace shuffle_test
