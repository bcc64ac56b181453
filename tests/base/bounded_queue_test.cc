// SPDX-License-Identifier: Apache-2.0
#include "base/bounded_queue.h"

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "testing.h"

namespace bounded_queue_test {

using namespace tutti::impl::base;

namespace {

void first_in_first_out(void **) {
  BoundedQueue<std::unique_ptr<int>> queue(2);
  assert_int_equal(queue.capacity(), 2);
  for (int round = 0; round < 5; ++round) {
    assert_ok(queue.push(std::make_unique<int>(2 * round)));
    assert_ok(queue.push(std::make_unique<int>(2 * round + 1)));
    assert_int_equal(queue.size(), 2);
    assert_int_equal(**assert_ok_value(queue.pop()), 2 * round);
    assert_int_equal(**queue.try_pop(), 2 * round + 1);
    assert_false(queue.try_pop().has_value());
  }
}

void full_and_empty_wait_for_their_deadline(void **) {
  BoundedQueue<int> queue(1);
  assert_true(queue.pop(nullptr, Deadline::after_ms(1)).code() == Code::deadline_exceeded);
  assert_ok(queue.push(1));
  assert_true(queue.push(2, nullptr, Deadline::after_ms(1)).code() == Code::deadline_exceeded);
  int item = 3;
  assert_false(queue.try_push(item));
  const Ref<CancelToken> token = CancelToken::create();
  token->cancel();
  assert_true(queue.push(2, token.get()).code() == Code::cancelled);
  assert_int_equal(*assert_ok_value(queue.pop(token.get())), 1);
  assert_true(queue.try_push(item));
  assert_int_equal(queue.size(), 1);
}

void closing_drains(void **) {
  BoundedQueue<int> queue(4);
  assert_ok(queue.push(1));
  queue.close();
  assert_true(queue.closed());
  assert_error_contains(queue.push(2), "ABORTED: queue is closed");
  assert_int_equal(*assert_ok_value(queue.pop()), 1);
  assert_false(assert_ok_value(queue.pop()).has_value());
}

void failing_drops_and_tells_everybody(void **) {
  BoundedQueue<std::shared_ptr<int>> queue(4);
  const auto item = std::make_shared<int>(1);
  assert_ok(queue.push(item));
  queue.fail(data_loss("bad record"));
  queue.fail(aborted("second"));
  assert_int_equal(item.use_count(), 1);
  assert_error_contains(queue.pop(), "bad record");
  assert_error_contains(queue.push(item), "bad record");
  assert_false(queue.try_pop().has_value());
  auto other = item;
  assert_false(queue.try_push(other));
}

void an_end_wakes_the_waiters(void **) {
  for (const bool fail : {false, true}) {
    BoundedQueue<int> empty(1), full(1);
    assert_ok(full.push(1));
    std::atomic<int> ended{0};
    std::thread consumer([&] {
      const Result<std::optional<int>> item = empty.pop();
      if (fail ? item.code() == Code::internal : item.ok() && !item->has_value()) ++ended;
    });
    std::thread producer([&] {
      if (full.push(2).code() == (fail ? Code::internal : Code::aborted)) ++ended;
    });
    if (fail) {
      empty.fail(internal_error("x"));
      full.fail(internal_error("x"));
    } else {
      empty.close();
      full.close();
    }
    consumer.join();
    producer.join();
    assert_int_equal(ended.load(), 2);
  }
}

void nothing_is_lost_between_many_threads(void **) {
  constexpr int kProducers = 3, kConsumers = 3, kItems = 5000;
  BoundedQueue<int> queue(7);
  const Ref<CancelToken> token = CancelToken::create();
  std::vector<std::atomic<int>> seen(kProducers * kItems);
  std::atomic<int> errors{0};
  std::vector<std::thread> producers, consumers;
  for (int p = 0; p < kProducers; ++p) {
    producers.emplace_back([&, p] {
      for (int i = 0; i < kItems; ++i) {
        if (!queue.push(p * kItems + i, p == 0 ? token.get() : nullptr).ok()) ++errors;
      }
    });
  }
  for (int c = 0; c < kConsumers; ++c) {
    consumers.emplace_back([&, c] {
      for (;;) {
        Result<std::optional<int>> item = queue.pop(c == 0 ? token.get() : nullptr);
        if (!item.ok()) ++errors;
        if (!item.ok() || !item->has_value()) return;
        ++seen[static_cast<size_t>(**item)];
      }
    });
  }
  for (std::thread &thread : producers)
    thread.join();
  queue.close();
  for (std::thread &thread : consumers)
    thread.join();
  assert_int_equal(errors.load(), 0);
  for (const auto &count : seen)
    assert_int_equal(count.load(), 1);
}

const CMUnitTest tests[] = {
    cmocka_unit_test(first_in_first_out),       cmocka_unit_test(full_and_empty_wait_for_their_deadline),
    cmocka_unit_test(closing_drains),           cmocka_unit_test(failing_drops_and_tells_everybody),
    cmocka_unit_test(an_end_wakes_the_waiters), cmocka_unit_test(nothing_is_lost_between_many_threads),
};

}  // namespace

TEST_MAIN(tests)

}  // namespace bounded_queue_test
