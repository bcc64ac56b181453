// SPDX-License-Identifier: Apache-2.0
#include "collective/local/local_group.h"

#include <atomic>
#include <chrono>
#include <thread>

#include "conformance/group_conformance.h"
#include "tensor/half.h"
#include "testing.h"

namespace tutti::testing::local_group_test {

using impl::collective::local::LocalGroup;
using impl::collective::local::LocalGroupOptions;

static Result<Groups> make_groups(int32_t size, int32_t parts) { return LocalGroup::create(size, parts); }

static void test_missing_rank_is_named(void **) {
  LocalGroupOptions options;
  options.timeout_ms = 50;
  Groups groups = assert_ok_value(LocalGroup::create(3, 1, options));
  const std::vector<Status> statuses =
      run_ranks(groups, [](Group &group) { return group.rank() == 1 ? Status() : group.barrier("meeting"); });
  for (const size_t r : {size_t{0}, size_t{2}}) {
    assert_false(statuses[r].ok());
    assert_error_contains(statuses[r], "for rank 1");
    assert_error_contains(statuses[r], "meeting");
  }
}

static void test_sizes_are_checked(void **) {
  assert_error_contains(LocalGroup::create(0, 1), "1 to 1024 ranks");
  assert_error_contains(LocalGroup::create(1, 65), "1 to 64 parts");
}

static void test_too_many_pending(void **) {
  Groups groups = assert_ok_value(LocalGroup::create(1, 1));
  Operation barrier;
  for (int64_t i = 0; i < impl::collective::max_pending_operations; ++i)
    assert_ok(groups[0]->begin(barrier));
  assert_error_contains(groups[0]->begin(barrier), "in flight");
  assert_ok(groups[0]->wait(0));
  assert_ok(groups[0]->begin(barrier));
}

/// Who has waited for everything has nothing under way, however far behind another is with the same operations.
static void test_another_may_be_behind(void **) {
  LocalGroupOptions options;
  options.timeout_ms = 5000;
  Groups groups = assert_ok_value(LocalGroup::create(2, 1, options));
  constexpr impl::collective::Ticket kMost = impl::collective::max_pending_operations;
  for (Groups::value_type &group : groups) {
    for (int64_t i = 0; i < kMost; ++i)
      assert_ok(group->begin({}));
  }
  assert_ok(groups[0]->wait(kMost - 1));
  std::atomic<bool> has_begun{false};
  bool was_early = false;
  Status of_other;
  std::thread behind([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    was_early = has_begun;
    of_other = groups[1]->wait(0);
    if (of_other.ok()) of_other = groups[1]->begin({}).status();
    if (of_other.ok()) of_other = groups[1]->wait(kMost);
  });
  const auto ticket = groups[0]->begin({});
  has_begun = true;
  const Status of_first = ticket.ok() ? groups[0]->wait(*ticket) : ticket.status();
  behind.join();
  assert_ok(of_first);
  assert_ok(of_other);
  assert_false(was_early);
}

static void test_who_stays_behind_is_named(void **) {
  LocalGroupOptions options;
  options.timeout_ms = 50;
  Groups groups = assert_ok_value(LocalGroup::create(2, 1, options));
  constexpr impl::collective::Ticket kMost = impl::collective::max_pending_operations;
  for (Groups::value_type &group : groups) {
    for (int64_t i = 0; i < kMost; ++i)
      assert_ok(group->begin({.label = "meeting"}));
  }
  assert_ok(groups[0]->wait(kMost - 1));
  const auto refused = groups[0]->begin({});
  assert_int_equal(static_cast<int>(refused.status().code()), static_cast<int>(impl::base::Code::deadline_exceeded));
  assert_error_contains(refused, "'meeting' for rank 1");
  assert_ok(groups[1]->wait(0));  // all had begun it
  assert_error_contains(groups[1]->begin({}), "aborted");
}

/// In float, rounded once at the end: 1 + 2^-8 + 2^-8 rounds to 1 + 2^-7, where rounding each sum would give 1.
static void test_sums_of_bfloat16(void **) {
  using impl::tensor::BFloat16;
  constexpr int64_t kCount = 3000;
  Groups groups = assert_ok_value(LocalGroup::create(3, 1));
  std::vector<std::vector<BFloat16>> values;
  for (int r = 0; r < 3; ++r)
    values.emplace_back(kCount, BFloat16(r == 0 ? 1.0f : 0x1p-8f));
  assert_all_ok(run_ranks(groups, [&](Group &group) {
    void *const buffer = values[static_cast<size_t>(group.rank())].data();
    return group.all_reduce({&buffer, 1}, kCount, DType::bf16, Reduction::sum, "sums");
  }));
  for (const auto &result : values) {
    for (const BFloat16 &value : result)
      assert_true(static_cast<float>(value) == 1 + 0x1p-7f);
  }
}

static const struct CMUnitTest tests[] = {
    TUTTI_GROUP_CONFORMANCE_TESTS,
    cmocka_unit_test(test_missing_rank_is_named),
    cmocka_unit_test(test_sizes_are_checked),
    cmocka_unit_test(test_too_many_pending),
    cmocka_unit_test(test_another_may_be_behind),
    cmocka_unit_test(test_who_stays_behind_is_named),
    cmocka_unit_test(test_sums_of_bfloat16),
};
static int run_all(int, char **) {
  group_factory = make_groups;
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
TEST_SOURCE(run_all)

}  // namespace tutti::testing::local_group_test
