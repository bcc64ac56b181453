// SPDX-License-Identifier: Apache-2.0
//
// tests lib/data/source/feed.cc. dataset_test.cc has it in the conformance suite.
#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "data/dataset/batch_stage.h"
#include "sample_data.h"
#include "testing.h"

namespace feed_test {

using namespace tutti::impl;
using namespace tutti::testing;
using base::Deadline;
using base::Ref;
using base::Status;
using data::DatasetRef;
using data::Element;
using data::Feed;
using data::Pipeline;
using tensor::Tensor;

namespace {

const data::ElementSpec kSpec{{{"value", data::Role::feature, tensor::DType::i64, {}}}};

Element element_of(int64_t value) {
  Element element;
  element.components.push_back(Tensor::scalar(value).value());
  return element;
}

Status push(Feed &feed, int64_t value, int64_t deadline_ms = 10000, const base::CancelToken *cancel = nullptr) {
  return feed.push(element_of(value), cancel, Deadline::after_ms(deadline_ms));
}

void elements_flow_from_another_thread(void **) {
  const Ref<Feed> feed = assert_ok_value(Feed::create(kSpec, 2));
  const DatasetRef dataset = assert_ok_value(Pipeline(feed->dataset()).batch(3).prefetch(2).build());
  std::atomic<int> failures{0};
  std::thread producer([&] {
    for (int64_t i = 0; i < 100; ++i)
      failures += push(*feed, i).ok() ? 0 : 1;
    failures += feed->end().ok() ? 0 : 1;
  });
  const std::vector<int64_t> values = values_of<int64_t>(dataset, "value");
  producer.join();
  assert_int_equal(failures.load(), 0);
  assert_int_equal(values.size(), 100);
  for (int64_t i = 0; i < 100; ++i)
    assert_int_equal(values[static_cast<size_t>(i)], i);
  assert_int_equal(feed->pushed(), 100);
  assert_int_equal(feed->waiting(), 0);
}

// An element comes out although no further one goes in.
void parallel_maps_wait_for_nothing_behind(void **) {
  const Ref<Feed> feed = assert_ok_value(Feed::create(kSpec, 2));
  data::TransformArguments arguments;
  arguments.map = [](const Element &input, Element &output) {
    output = input;
    return Status();
  };
  const DatasetRef dataset = assert_ok_value(
      Pipeline(feed->dataset()).apply("map_callback", {{"parallelism", int64_t{3}}}, std::move(arguments)).build());
  data::IteratorContext context;
  context.cancel = base::CancelToken::create(Deadline::after_ms(20000));
  auto iterator = assert_ok_value(dataset->make_iterator(context));
  Element element;
  for (int64_t i = 0; i < 20; ++i) {
    assert_ok(push(*feed, i));
    assert_true(assert_ok_value(iterator->next(element)));
    assert_int_equal(element.lineage.index, i);
  }
}

void what_does_not_fit_is_refused(void **) {
  const Ref<Feed> feed = assert_ok_value(Feed::create(kSpec, 2));
  assert_error_contains(feed->push(Element(), nullptr, Deadline::never()), "feed: expected 1 components");
  Element wrong;
  wrong.components.push_back(counted(2));
  assert_error_contains(feed->push(wrong, nullptr, Deadline::never()),
                        "component 'value': expected i64[], got i32 [2]");
  assert_error_contains(Feed::create(kSpec, 0), "expected a capacity of at least 1");
  assert_error_contains(Feed::create({}, 1), "at least one component");
  assert_error_contains(feed->fail(Status()), "expected an error");
}

void a_full_feed_waits_until_deadline_or_cancel(void **) {
  const Ref<Feed> feed = assert_ok_value(Feed::create(kSpec, 1));
  assert_ok(push(*feed, 0));
  assert_int_equal(static_cast<int>(push(*feed, 1, 5).code()), static_cast<int>(base::Code::deadline_exceeded));
  const auto cancel = base::CancelToken::create();
  std::thread canceller([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    cancel->cancel();
  });
  const Status status = push(*feed, 1, 10000, cancel.get());
  canceller.join();
  assert_int_equal(static_cast<int>(status.code()), static_cast<int>(base::Code::cancelled));
  assert_int_equal(feed->pushed(), 1);
}

// Who takes elements out may be another thread from one element to the next: whoever did so last waits like all others.
void the_thread_that_took_the_last_element_waits(void **) {
  const Ref<Feed> feed = assert_ok_value(Feed::create(kSpec, 1));
  auto iterator = assert_ok_value(feed->dataset()->make_iterator({}));
  assert_ok(push(*feed, 0));
  Element element;
  assert_true(assert_ok_value(iterator->next(element)));
  assert_ok(push(*feed, 1));
  int taken = 0;
  std::thread consumer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    Element other;
    for (int i = 0; i < 2; ++i)
      taken += iterator->next(other).value_or(false) ? 1 : 0;
  });
  assert_ok(push(*feed, 2));
  consumer.join();
  assert_int_equal(taken, 2);
  // Where nobody takes any out, the deadline ends it.
  assert_ok(push(*feed, 3));
  assert_true(push(*feed, 4, 20).code() == base::Code::deadline_exceeded);
  assert_int_equal(feed->pushed(), 4);
}

void a_failure_comes_behind_what_was_pushed(void **) {
  const Ref<Feed> feed = assert_ok_value(Feed::create(kSpec, 4));
  auto iterator = assert_ok_value(feed->dataset()->make_iterator({}));
  assert_ok(push(*feed, 0));
  assert_ok(feed->fail(base::not_found("camera 3 is gone")));
  Element element;
  assert_true(assert_ok_value(iterator->next(element)));
  for (int i = 0; i < 2; ++i) {
    assert_error_contains(iterator->next(element),
                          "feed: the host reported a failure [stage=feed]; caused by: NOT_FOUND: camera 3");
  }
  assert_error_contains(push(*feed, 1), "push after the end");
  assert_error_contains(feed->end(), "it has already ended");
}

void only_one_walk_is_possible(void **) {
  const Ref<Feed> feed = assert_ok_value(Feed::create(kSpec, 4));
  const DatasetRef repeated = assert_ok_value(Pipeline(feed->dataset()).repeat(2).build());
  assert_ok(push(*feed, 0));
  assert_ok(feed->end());
  auto iterator = assert_ok_value(repeated->make_iterator({}));
  Element element;
  assert_true(assert_ok_value(iterator->next(element)));
  assert_error_contains(iterator->next(element), "its elements can be read only once; put cache before repeat");
  assert_error_contains(feed->dataset()->make_iterator({}), "only once");
}

void the_position_to_resume_at_can_be_read(void **) {
  base::Json state;
  const auto pipeline = [](Feed &feed) { return Pipeline(feed.dataset()).batch(2).prefetch(3).build(); };
  {
    const Ref<Feed> feed = assert_ok_value(Feed::create(kSpec, 100));
    const DatasetRef dataset = assert_ok_value(pipeline(*feed));
    auto iterator = assert_ok_value(dataset->make_iterator({}));
    for (int64_t i = 0; i < 50; ++i)
      assert_ok(push(*feed, i));
    Element element;
    for (int i = 0; i < 3; ++i)
      assert_true(assert_ok_value(iterator->next(element)));
    state = iterator->save();
  }
  const Ref<Feed> feed = assert_ok_value(Feed::create(kSpec, 100));
  const DatasetRef dataset = assert_ok_value(pipeline(*feed));
  auto iterator = assert_ok_value(dataset->make_iterator({}));
  assert_ok(iterator->restore(state));
  assert_int_equal(feed->resume_position(), 6);
  for (int64_t i = 6; i < 10; ++i)
    assert_ok(push(*feed, i));
  assert_ok(feed->end());
  assert_true((values_of<int64_t>(*iterator, "value") == std::vector<int64_t>{6, 7, 8, 9}));
  assert_ok(feed->wait_started(nullptr, Deadline::after_ms(1000)));

  const Ref<Feed> early = assert_ok_value(Feed::create(kSpec, 100));
  assert_ok(push(*early, 0));
  const DatasetRef early_dataset = assert_ok_value(pipeline(*early));
  auto late = assert_ok_value(early_dataset->make_iterator({}));
  assert_error_contains(late->restore(state),
                        "the saved iterator resumes at element 6, but 1 elements were pushed before");
  // It has not begun: another one may, and nothing that was pushed is lost.
  Element element;
  assert_error_contains(late->next(element), "this iterator could not be resumed");
  auto anew = assert_ok_value(early_dataset->make_iterator({}));
  late.reset();
  assert_ok(push(*early, 1));
  assert_ok(early->end());
  assert_true((values_of<int64_t>(*anew, "value") == std::vector<int64_t>{0, 1}));

  // Where none follows, nobody waits for it.
  const Ref<Feed> left = assert_ok_value(Feed::create(kSpec, 100));
  assert_ok(push(*left, 0));
  const DatasetRef left_dataset = assert_ok_value(pipeline(*left));
  auto refused = assert_ok_value(left_dataset->make_iterator({}));
  assert_error_contains(refused->restore(state), "start pushing at the resume position");
  refused.reset();
  assert_error_contains(push(*left, 1), "its reader is gone");
}

// ---- elements that are batches ----

constexpr int64_t kMostRows = 5;

Ref<Feed> make_batch_feed() {
  return assert_ok_value(Feed::create(assert_ok_value(data::batch_spec(kSpec, kMostRows)), 100));
}

Status push_rows(Feed &feed, int64_t first, int64_t rows) {
  std::vector<int64_t> values;
  for (int64_t i = 0; i < rows; ++i)
    values.push_back(first + i);
  Element batch;
  batch.components.push_back(assert_ok_value(Tensor::from_values<int64_t>({rows}, values)));
  return feed.push(std::move(batch), nullptr, Deadline::after_ms(10000));
}

/// Batches of these sizes, of the rows first, first + 1, ..., and the end.
void push_batches(Feed &feed, int64_t first, const std::vector<int64_t> &sizes) {
  for (const int64_t rows : sizes) {
    assert_ok(push_rows(feed, first, rows));
    first += rows;
  }
  assert_ok(feed.end());
}

/// Where each element comes from, and its numbers.
std::vector<std::vector<int64_t>> walk(data::Iterator &iterator) {
  std::vector<std::vector<int64_t>> elements;
  Element element;
  while (assert_ok_value(iterator.next(element))) {
    const auto values = assert_ok_value(element.components[0].values<int64_t>());
    elements.push_back({element.lineage.index});
    elements.back().insert(elements.back().end(), values.begin(), values.end());
  }
  return elements;
}

void batches_are_numbered_by_their_rows(void **) {
  const Ref<Feed> feed = make_batch_feed();
  push_batches(*feed, 10, {3, 1, 5});
  const DatasetRef dataset = feed->dataset();
  assert_int_equal(dataset->spec().batch_size, kMostRows);
  assert_false(dataset->spec().exact_batches);
  assert_true(walk(*assert_ok_value(dataset->make_iterator({}))) ==
              (std::vector<std::vector<int64_t>>{{0, 10, 11, 12}, {3, 13}, {4, 14, 15, 16, 17, 18}}));
  assert_int_equal(feed->pushed(), 3);
}

void rows_of_batches_are_rows(void **) {
  const Ref<Feed> feed = make_batch_feed();
  push_batches(*feed, 10, {3, 1, 2});
  const DatasetRef rows = assert_ok_value(Pipeline(feed->dataset()).apply("unbatch", {}).build());
  assert_true(walk(*assert_ok_value(rows->make_iterator({}))) ==
              (std::vector<std::vector<int64_t>>{{0, 10}, {1, 11}, {2, 12}, {3, 13}, {4, 14}, {5, 15}}));
  const Ref<Feed> other = make_batch_feed();
  push_batches(*other, 10, {3, 1, 2});
  const DatasetRef rebatched = assert_ok_value(
      Pipeline(other->dataset()).apply("unbatch", {}).apply("batch", {{"batch_size", int64_t{4}}}).build());
  assert_true(walk(*assert_ok_value(rebatched->make_iterator({}))) ==
              (std::vector<std::vector<int64_t>>{{0, 10, 11, 12, 13}, {4, 14, 15}}));
}

void batches_that_do_not_fit_are_refused(void **) {
  const Ref<Feed> feed = make_batch_feed();
  assert_error_contains(push_rows(*feed, 0, 0), "feed: a batch of 0 rows, expected 1 to 5");
  assert_error_contains(push_rows(*feed, 0, kMostRows + 1), "feed: a batch of 6 rows, expected 1 to 5");
  assert_error_contains(push(*feed, 7), "component 'value'");
  assert_int_equal(feed->pushed(), 0);

  data::ElementSpec pair = kSpec;
  pair.components.push_back({"label", data::Role::label, tensor::DType::i32, {}});
  const Ref<Feed> other = assert_ok_value(Feed::create(assert_ok_value(data::batch_spec(pair, kMostRows)), 100));
  Element batch;
  batch.components.push_back(assert_ok_value(Tensor::zeros(tensor::DType::i64, {3})));
  batch.components.push_back(counted(2));
  assert_error_contains(other->push(std::move(batch), nullptr, Deadline::never()),
                        "feed: component 'label' has 2 rows, 'value' has 3");
}

/// What was saved behind `given` elements of a feed of batches.
base::Json saved_behind(int given, const std::function<Pipeline(Feed &)> &pipeline) {
  const Ref<Feed> feed = make_batch_feed();
  const DatasetRef dataset = assert_ok_value(pipeline(*feed).build());
  push_batches(*feed, 10, {3, 1, 5, 2, 4});
  auto iterator = assert_ok_value(dataset->make_iterator({}));
  Element element;
  for (int i = 0; i < given; ++i)
    assert_true(assert_ok_value(iterator->next(element)));
  return iterator->save();
}

// The position is one of batches, lineage goes on with rows.
void a_walk_over_batches_goes_on(void **) {
  const auto plain = [](Feed &feed) { return std::move(Pipeline(feed.dataset()).prefetch(3)); };
  const base::Json state = saved_behind(3, plain);
  const Ref<Feed> feed = make_batch_feed();
  const DatasetRef dataset = assert_ok_value(plain(*feed).build());
  auto iterator = assert_ok_value(dataset->make_iterator({}));
  assert_ok(iterator->restore(state));
  assert_int_equal(feed->resume_position(), 3);
  push_batches(*feed, 19, {2, 4});
  assert_true(walk(*iterator) == (std::vector<std::vector<int64_t>>{{9, 19, 20}, {11, 21, 22, 23, 24}}));
}

// In the middle of a batch: it must be pushed again.
void a_walk_over_their_rows_goes_on(void **) {
  const auto rows = [](Feed &feed) { return std::move(Pipeline(feed.dataset()).apply("unbatch", {})); };
  const base::Json state = saved_behind(6, rows);
  const Ref<Feed> feed = make_batch_feed();
  const DatasetRef dataset = assert_ok_value(rows(*feed).build());
  auto iterator = assert_ok_value(dataset->make_iterator({}));
  assert_ok(iterator->restore(state));
  assert_int_equal(feed->resume_position(), 2);
  push_batches(*feed, 14, {5, 2});
  assert_true(walk(*iterator) == (std::vector<std::vector<int64_t>>{{6, 16}, {7, 17}, {8, 18}, {9, 19}, {10, 20}}));
}

void nobody_waits_for_who_is_gone(void **) {
  Ref<Feed> feed = assert_ok_value(Feed::create(kSpec, 1));
  auto iterator = assert_ok_value(feed->dataset()->make_iterator({}));
  feed.reset();
  Element element;
  assert_error_contains(iterator->next(element), "the feed was released before its end");

  const Ref<Feed> other = assert_ok_value(Feed::create(kSpec, 1));
  auto left = assert_ok_value(other->dataset()->make_iterator({}));
  assert_ok(push(*other, 0));
  std::thread leaver([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    left.reset();
  });
  const Status status = push(*other, 1);
  leaver.join();
  assert_error_contains(status, "its reader is gone");
}

void a_walk_waits_until_cancelled(void **) {
  const Ref<Feed> feed = assert_ok_value(Feed::create(kSpec, 1));
  data::IteratorContext context;
  context.cancel = base::CancelToken::create(Deadline::after_ms(10));
  const DatasetRef dataset = assert_ok_value(Pipeline(feed->dataset()).batch(2).prefetch(2).build());
  auto iterator = assert_ok_value(dataset->make_iterator(context));
  Element element;
  assert_int_equal(static_cast<int>(iterator->next(element).code()), static_cast<int>(base::Code::deadline_exceeded));
}

}  // namespace

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(elements_flow_from_another_thread),
    cmocka_unit_test(parallel_maps_wait_for_nothing_behind),
    cmocka_unit_test(what_does_not_fit_is_refused),
    cmocka_unit_test(a_full_feed_waits_until_deadline_or_cancel),
    cmocka_unit_test(the_thread_that_took_the_last_element_waits),
    cmocka_unit_test(a_failure_comes_behind_what_was_pushed),
    cmocka_unit_test(only_one_walk_is_possible),
    cmocka_unit_test(the_position_to_resume_at_can_be_read),
    cmocka_unit_test(batches_are_numbered_by_their_rows),
    cmocka_unit_test(rows_of_batches_are_rows),
    cmocka_unit_test(batches_that_do_not_fit_are_refused),
    cmocka_unit_test(a_walk_over_batches_goes_on),
    cmocka_unit_test(a_walk_over_their_rows_goes_on),
    cmocka_unit_test(nobody_waits_for_who_is_gone),
    cmocka_unit_test(a_walk_waits_until_cancelled),
};
TEST_MAIN(tests)

}  // namespace feed_test
