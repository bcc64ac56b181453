// SPDX-License-Identifier: Apache-2.0
#include "base/handle_table.h"

#include <atomic>
#include <thread>
#include <vector>

#include "testing.h"

namespace handle_table_test {

using namespace tutti::impl::base;

namespace {

std::atomic<int> living{0};

struct Apple : Object {
  explicit Apple(int weight) : weight(weight) { ++living; }
  ~Apple() override { --living; }
  int weight;
};
struct Pear : Object {};

HandleType<Apple> apples{"apple"};
HandleType<Pear> pears{"pear"};

void a_handle_finds_its_object(void **) {
  HandleTable table;
  void *handle = assert_ok_value(table.insert(make_ref<Apple>(120), apples));
  assert_non_null(handle);
  {
    const Ref<Apple> apple = assert_ok_value(table.find(handle, apples, "fruit"));
    assert_int_equal(apple->weight, 120);
    assert_int_equal(apple->reference_count(), 2);
  }
  assert_int_equal(apples.live_count(), 1);
  assert_ok(table.unref(handle, apples));
  assert_int_equal(apples.live_count(), 0);
  assert_int_equal(living.load(), 0);
}

void every_wrong_handle_is_named(void **) {
  HandleTable table;
  void *pear = assert_ok_value(table.insert(make_ref<Pear>(), pears));
  void *gone = assert_ok_value(table.insert(make_ref<Apple>(1), apples));
  assert_ok(table.unref(gone, apples));
  int local = 0;
  const auto find = [&](const void *handle) { return table.find(handle, apples, "fruit"); };
  assert_error_contains(find(nullptr), "argument 'fruit': expected an apple handle, got NULL");
  assert_error_contains(find(pear), "got a pear handle");
  assert_error_contains(find(gone), "already released");
  assert_error_contains(find(&local), "not a handle of this library");
  assert_error_contains(find(reinterpret_cast<void *>(8)), "not a handle of this library");
  assert_error_contains(find(reinterpret_cast<void *>(UINTPTR_MAX)), "not a handle of this library");
  assert_true(find(gone).code() == Code::invalid_argument);
  assert_true(table.unref(gone, apples).code() == Code::invalid_argument);
  assert_true(table.ref(gone, apples).code() == Code::invalid_argument);
  assert_true(table.unref(pear, apples).code() == Code::invalid_argument);
  assert_ok(table.unref(nullptr, apples));
  assert_true(table.try_find(pear, apples) == nullptr);
  assert_non_null(table.try_find(pear, pears).get());
}

void a_slot_used_again_gives_another_handle(void **) {
  HandleTable table;
  std::vector<void *> handles;
  for (int i = 0; i < 100; ++i) {
    void *handle = assert_ok_value(table.insert(make_ref<Apple>(i), apples));
    for (void *old : handles)
      assert_ptr_not_equal(old, handle);
    handles.push_back(handle);
    assert_ok(table.unref(handle, apples));
  }
  for (void *old : handles)
    assert_error_contains(table.find(old, apples, "x"), "already released");
}

void counted_handles(void **) {
  HandleTable table;
  void *handle = assert_ok_value(table.insert(make_ref<Apple>(1), apples));
  assert_ok(table.ref(handle, apples));
  assert_ok(table.unref(handle, apples));
  assert_true(table.find(handle, apples, "x").ok());
  assert_ok(table.unref(handle, apples));
  assert_error_contains(table.find(handle, apples, "x"), "already released");
}

void the_object_outlives_its_handle_while_held(void **) {
  HandleTable table;
  void *handle = assert_ok_value(table.insert(make_ref<Apple>(5), apples));
  Ref<Apple> held = assert_ok_value(table.find(handle, apples, "x"));
  assert_ok(table.unref(handle, apples));
  assert_int_equal(held->weight, 5);
  assert_int_equal(living.load(), 1);
  held.reset();
  assert_int_equal(living.load(), 0);
}

void a_table_releases_what_is_left(void **) {
  {
    HandleTable table;
    for (int i = 0; i < 5000; ++i)
      assert_ok(table.insert(make_ref<Apple>(i), apples));
    assert_int_equal(table.live_count(), 5000);
    assert_int_equal(living.load(), 5000);
  }
  assert_int_equal(living.load(), 0);
  assert_int_equal(apples.live_count(), 0);
}

// One thread makes and releases handles in shared places while others use whatever they find there.
void lookups_survive_concurrent_release(void **) {
  HandleTable table;
  constexpr int kPlaces = 4, kRounds = 20000;
  std::atomic<void *> places[kPlaces] = {};
  std::atomic<bool> done{false};
  std::atomic<int64_t> found{0}, broken{0};
  std::vector<std::thread> readers;
  for (int t = 0; t < 3; ++t) {
    readers.emplace_back([&, t] {
      for (int i = t; !done.load(); ++i) {
        void *handle = places[i % kPlaces].load();
        if (i % 5 == 0 && table.ref(handle, apples).ok() && !table.unref(handle, apples).ok()) ++broken;
        const Result<Ref<Apple>> apple = table.find(handle, apples, "x");
        if (apple.ok()) {
          ++found;
          if ((*apple)->weight != 77) ++broken;
        } else if (apple.code() != Code::invalid_argument) {
          ++broken;
        }
      }
    });
  }
  Status status;
  for (int i = 0; i < kRounds && status.ok(); ++i) {
    Result<void *> handle = table.insert(make_ref<Apple>(77), apples);
    if (!handle.ok()) break;
    void *old = places[i % kPlaces].exchange(*handle);
    if (old != nullptr) status = table.unref(old, apples);
  }
  while (found.load() == 0)
    std::this_thread::yield();
  done = true;
  for (std::thread &reader : readers)
    reader.join();
  assert_ok(status);
  assert_int_equal(broken.load(), 0);
  for (auto &place : places)
    assert_ok(table.unref(place.load(), apples));
  assert_int_equal(living.load(), 0);
  assert_int_equal(apples.live_count(), 0);
}

// Of many threads that release the same reference exactly one succeeds.
void double_release_is_refused(void **) {
  HandleTable table;
  constexpr int kRounds = 500;
  for (int round = 0; round < kRounds; ++round) {
    void *handle = assert_ok_value(table.insert(make_ref<Apple>(1), apples));
    std::atomic<int> successes{0};
    const auto release = [&] {
      if (table.unref(handle, apples).ok()) ++successes;
    };
    std::thread other(release);
    release();
    other.join();
    assert_int_equal(successes.load(), 1);
  }
  assert_int_equal(living.load(), 0);
}

void the_process_table_is_one(void **) {
  assert_ptr_equal(&HandleTable::process(), &HandleTable::process());
  void *handle = assert_ok_value(HandleTable::process().insert(make_ref<Pear>(), pears));
  assert_ok(HandleTable::process().unref(handle, pears));
  assert_error_contains(HandleTable::process().insert(Ref<Pear>(), pears), "needs an object");
}

const CMUnitTest tests[] = {
    cmocka_unit_test(a_handle_finds_its_object),
    cmocka_unit_test(every_wrong_handle_is_named),
    cmocka_unit_test(a_slot_used_again_gives_another_handle),
    cmocka_unit_test(counted_handles),
    cmocka_unit_test(the_object_outlives_its_handle_while_held),
    cmocka_unit_test(a_table_releases_what_is_left),
    cmocka_unit_test(lookups_survive_concurrent_release),
    cmocka_unit_test(double_release_is_refused),
    cmocka_unit_test(the_process_table_is_one),
};

}  // namespace

TEST_MAIN(tests)

}  // namespace handle_table_test
