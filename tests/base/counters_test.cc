// SPDX-License-Identifier: Apache-2.0
#include "base/counters.h"

#include <thread>
#include <vector>

#include "testing.h"

namespace counters_test {

using namespace tutti::impl::base;

namespace {

void names_keep_their_counter(void **) {
  const Ref<Counters> counters = make_ref<Counters>();
  Counter &hits = counters->get("cache.hits");
  hits.add(2);
  counters->get("a.first").set(-1);
  for (int i = 0; i < 100; ++i)
    counters->get(std::to_string(i));
  assert_ptr_equal(&counters->get("cache.hits"), &hits);
  hits.raise_to(9);
  hits.raise_to(4);
  const auto values = counters->snapshot();
  assert_int_equal(values.size(), 102);
  assert_string_equal(values[100].first.c_str(), "a.first");
  assert_int_equal(values[101].second, 9);
  counters->reset();
  assert_int_equal(hits.value(), 0);
}

void threads_add_up(void **) {
  const Ref<Counters> counters = make_ref<Counters>();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 10000; ++i) {
        counters->get("sum").add(1);
        counters->get("most").raise_to(t * 10000 + i);
      }
    });
  }
  for (std::thread &thread : threads)
    thread.join();
  assert_int_equal(counters->get("sum").value(), 40000);
  assert_int_equal(counters->get("most").value(), 39999);
}

const CMUnitTest tests[] = {cmocka_unit_test(names_keep_their_counter), cmocka_unit_test(threads_add_up)};

}  // namespace

TEST_MAIN(tests)

}  // namespace counters_test
