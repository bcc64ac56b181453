// SPDX-License-Identifier: Apache-2.0
#include "base/cancel.h"

#include <memory>
#include <thread>
#include <vector>

#include "testing.h"

namespace cancel_test {

using namespace tutti::impl::base;

namespace {

void deadlines(void **) {
  assert_true(Deadline::never().is_never());
  assert_true(Deadline::after_ms(-1).is_never());
  assert_true(Deadline::after_ms(INT64_MAX).is_never());
  assert_false(Deadline::after_ms(60000).passed());
  assert_true(Deadline::after_ms(0).passed());
  assert_true(Deadline::never().remaining_ms() == INT64_MAX);
  assert_int_equal(Deadline::after_ms(0).remaining_ms(), 0);
  const Deadline soon = Deadline::after_ms(1000);
  assert_true(earlier(soon, Deadline::never()) == soon);
}

void levels_only_rise(void **) {
  const Ref<CancelToken> token = CancelToken::create();
  assert_ok(token->check());
  token->stop();
  assert_ok(token->check());
  assert_true(token->stop_requested());
  token->cancel(data_loss("disk gone"));
  token->cancel(aborted("too late"));
  token->stop();
  assert_true(token->level() == CancelLevel::cancel);
  assert_true(token->check().code() == Code::cancelled);
  assert_string_equal(token->check().root_cause()->message().c_str(), "disk gone");
  assert_ok(check(nullptr));
}

void a_deadline_ends_the_token(void **) {
  const Ref<CancelToken> token = CancelToken::create(Deadline::after_ms(0));
  assert_true(token->check().code() == Code::deadline_exceeded);
  token->cancel();
  assert_true(token->check().code() == Code::cancelled);
}

void children_follow_and_not_back(void **) {
  const Ref<CancelToken> parent = CancelToken::create(Deadline::after_ms(60000));
  const Ref<CancelToken> child = CancelToken::create_child(parent);
  const Ref<CancelToken> grandchild = CancelToken::create_child(child, Deadline::after_ms(0));
  assert_true(child->deadline() == parent->deadline());
  assert_true(grandchild->check().code() == Code::deadline_exceeded);
  child->stop();
  assert_true(parent->level() == CancelLevel::none);
  parent->cancel(aborted("why"));
  assert_true(child->check().code() == Code::cancelled);
  assert_true(grandchild->level() == CancelLevel::cancel);
  assert_string_equal(grandchild->check().root_cause()->message().c_str(), "why");
  const Ref<CancelToken> late = CancelToken::create_child(parent);
  assert_true(late->level() == CancelLevel::cancel);
  assert_true(CancelToken::create_child(nullptr)->level() == CancelLevel::none);
}

void listeners_hear_each_rise_once(void **) {
  const Ref<CancelToken> token = CancelToken::create();
  int calls = 0, late_calls = 0, gone_calls = 0;
  CancelToken::Listener listener(token.get(), [&] { ++calls; });
  {
    CancelToken::Listener gone(token.get(), [&] { ++gone_calls; });
  }
  token->stop();
  token->stop();
  assert_int_equal(calls, 1);
  CancelToken::Listener late(token.get(), [&] { ++late_calls; });
  assert_int_equal(late_calls, 1);
  token->cancel();
  assert_int_equal(calls, 2);
  assert_int_equal(late_calls, 2);
  assert_int_equal(gone_calls, 0);
  CancelToken::Listener nothing(nullptr, [&] { ++gone_calls; });
  assert_true(nothing.try_remove());
}

void a_listener_may_remove_itself_and_raise_again(void **) {
  const Ref<CancelToken> token = CancelToken::create();
  int calls = 0;
  std::unique_ptr<CancelToken::Listener> self;
  CancelToken::Listener raises(token.get(), [&] {
    if (token->level() == CancelLevel::stop) token->cancel();
  });
  self = std::make_unique<CancelToken::Listener>(token.get(), [&] {
    ++calls;
    self->remove();
  });
  token->stop();
  assert_int_equal(calls, 1);
  assert_true(token->level() == CancelLevel::cancel);
}

void waits_end_for_each_reason(void **) {
  std::mutex mutex;
  std::condition_variable condition;
  std::unique_lock lock(mutex);
  const auto never = [] { return false; };
  assert_ok(wait_until(condition, lock, nullptr, Deadline::never(), [] { return true; }));
  assert_true(wait_until(condition, lock, nullptr, Deadline::after_ms(1), never).code() == Code::deadline_exceeded);
  const Ref<CancelToken> token = CancelToken::create();
  assert_true(wait_until(condition, lock, token.get(), Deadline::after_ms(1), never).code() == Code::deadline_exceeded);
  const Ref<CancelToken> short_token = CancelToken::create(Deadline::after_ms(1));
  assert_error_contains(wait_until(condition, lock, short_token.get(), Deadline::never(), never),
                        "deadline of the operation");
  token->cancel();
  assert_true(wait_until(condition, lock, token.get(), Deadline::never(), never).code() == Code::cancelled);
  // What is ready is ready, cancelled or not.
  assert_ok(wait_until(condition, lock, token.get(), Deadline::never(), [] { return true; }));
  assert_true(lock.owns_lock());
}

void cancel_wakes_all_sleepers(void **) {
  constexpr int kSleepers = 4;
  for (int round = 0; round < 200; ++round) {
    const Ref<CancelToken> parent = CancelToken::create();
    const Ref<CancelToken> token = CancelToken::create_child(parent);
    std::mutex mutex;
    std::condition_variable condition;
    std::atomic<int> cancelled_count{0};
    std::vector<std::thread> sleepers;
    for (int i = 0; i < kSleepers; ++i) {
      sleepers.emplace_back([&] {
        std::unique_lock lock(mutex);
        const Status status = wait_until(condition, lock, token.get(), Deadline::never(), [] { return false; });
        if (status.code() == Code::cancelled) ++cancelled_count;
      });
    }
    if (round % 2 == 0) std::this_thread::yield();
    parent->cancel();
    for (std::thread &sleeper : sleepers)
      sleeper.join();
    assert_int_equal(cancelled_count.load(), kSleepers);
  }
}

void a_stop_lets_the_waiter_look(void **) {
  const Ref<CancelToken> token = CancelToken::create();
  std::mutex mutex;
  std::condition_variable condition;
  std::thread stopper([&] { token->stop(); });
  std::unique_lock lock(mutex);
  assert_ok(wait_until(condition, lock, token.get(), Deadline::never(), [&] { return token->stop_requested(); }));
  stopper.join();
}

void a_deadline_moves(void **) {
  const Ref<CancelToken> token = CancelToken::create(Deadline::after_ms(0));
  const Ref<CancelToken> child = CancelToken::create_child(token);
  const Ref<CancelToken> worker = CancelToken::create_worker(token);
  assert_true(is_interrupt(token->check()));
  assert_true(is_interrupt(child->check()));
  assert_ok(worker->check());
  token->set_deadline(Deadline::never());
  assert_ok(token->check());
  assert_ok(child->check());
  child->set_deadline(Deadline::after_ms(0));
  assert_ok(token->check());
  assert_true(child->check().code() == Code::deadline_exceeded);
  // The earlier one holds, whichever moved.
  child->set_deadline(Deadline::never());
  const Deadline later = Deadline::after_ms(60000);
  token->set_deadline(later);
  assert_true(child->deadline() == later);
  assert_true(worker->deadline().is_never());
  token->cancel();
  assert_true(worker->check().code() == Code::cancelled);
  assert_true(is_interrupt(worker->check()));
}

void only_a_token_interrupts(void **) {
  assert_false(is_interrupt(Status()));
  assert_false(is_interrupt(deadline_exceeded("elsewhere")));
  assert_false(is_interrupt(wait_timed_out()));
  assert_false(is_interrupt(data_loss("gone").with_domain("tutti", 1)));
  const Ref<CancelToken> token = CancelToken::create();
  token->cancel(data_loss("gone"));
  assert_true(is_interrupt(token->check()));
  assert_false(is_interrupt(token->check().wrap("a map failed")));
}

void a_closer_deadline_wakes_sleepers(void **) {
  for (int round = 0; round < 200; ++round) {
    const Ref<CancelToken> parent = CancelToken::create(Deadline::after_ms(600000));
    const Ref<CancelToken> token = CancelToken::create_child(parent);
    std::mutex mutex;
    std::condition_variable condition;
    Status status;
    std::thread sleeper([&] {
      std::unique_lock lock(mutex);
      status = wait_until(condition, lock, token.get(), Deadline::never(), [] { return false; });
    });
    if (round % 2 == 0) std::this_thread::yield();
    (round % 4 < 2 ? parent : token)->set_deadline(Deadline::after_ms(0));
    sleeper.join();
    assert_true(status.code() == Code::deadline_exceeded);
    assert_true(is_interrupt(status));
  }
}

void listeners_hear_of_deadlines_when_they_ask(void **) {
  using Listener = CancelToken::Listener;
  const Ref<CancelToken> token = CancelToken::create();
  int levels = 0, all = 0;
  Listener hears_levels(token.get(), [&] { ++levels; });
  Listener hears_all(
      token.get(), [&] { ++all; }, Listener::Start::later_only, Listener::Hears::levels_and_deadlines);
  token->set_deadline(Deadline::after_ms(60000));
  token->set_deadline(Deadline::never());
  assert_int_equal(levels, 0);
  assert_int_equal(all, 1);
  token->stop();
  assert_int_equal(levels, 1);
  assert_int_equal(all, 2);
}

// Tokens, children and listeners come and go on several threads.
void storm(void **) {
  for (int round = 0; round < 300; ++round) {
    Ref<CancelToken> parent = CancelToken::create();
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t) {
      threads.emplace_back([parent, t] {
        for (int i = 0; i < 20; ++i) {
          Ref<CancelToken> child = CancelToken::create_child(parent);
          int calls = 0;
          CancelToken::Listener listener(child.get(), [&calls] { ++calls; });
          if (t == 0 && i == 10) parent->stop();
          if (t == 1 && i == 12) parent->cancel();
          if (t == 2) parent->set_deadline(i % 2 == 0 ? Deadline::after_ms(0) : Deadline::never());
          (void)listener.try_remove();
          listener.remove();
          if (i % 2 == 0) child.reset();
        }
      });
    }
    parent.reset();
    for (std::thread &thread : threads)
      thread.join();
  }
}

const CMUnitTest tests[] = {
    cmocka_unit_test(deadlines),
    cmocka_unit_test(levels_only_rise),
    cmocka_unit_test(a_deadline_ends_the_token),
    cmocka_unit_test(children_follow_and_not_back),
    cmocka_unit_test(listeners_hear_each_rise_once),
    cmocka_unit_test(a_listener_may_remove_itself_and_raise_again),
    cmocka_unit_test(waits_end_for_each_reason),
    cmocka_unit_test(cancel_wakes_all_sleepers),
    cmocka_unit_test(a_stop_lets_the_waiter_look),
    cmocka_unit_test(a_deadline_moves),
    cmocka_unit_test(only_a_token_interrupts),
    cmocka_unit_test(a_closer_deadline_wakes_sleepers),
    cmocka_unit_test(listeners_hear_of_deadlines_when_they_ask),
    cmocka_unit_test(storm),
};

}  // namespace

TEST_MAIN(tests)

}  // namespace cancel_test
