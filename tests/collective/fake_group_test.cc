// SPDX-License-Identifier: Apache-2.0
#include "collective/fake/fake_group.h"

#include "conformance/group_conformance.h"
#include "testing.h"

namespace tutti::testing {

using impl::collective::fake::FakeGroup;
using impl::collective::fake::FakeGroupOptions;

const GroupFactory &group_factory() {
  static const GroupFactory factory = [](int32_t size, int32_t parts) {
    FakeGroupOptions options;
    options.max_delay_us = 50;
    return FakeGroup::create(size, parts, options);
  };
  return factory;
}

static void test_injected_abort(void **) {
  FakeGroupOptions options;
  options.abort_at = 2;
  Groups groups = assert_ok_value(FakeGroup::create(2, 1, options));
  const std::vector<Status> statuses = run_ranks(groups, [](Group &group) {
    for (int i = 0; i < 5; ++i)
      TUTTI_TRY(group.barrier("round"));
    return Status();
  });
  for (const Status &status : statuses)
    assert_error_contains(status, "injected failure");
}

static void test_buffers_are_spoiled_between_begin_and_wait(void **) {
  Groups groups = assert_ok_value(group_factory()(2, 1));
  RankBuffers buffers(*groups[0], 4);
  Operation operation;
  operation.kind = impl::collective::Kind::all_reduce;
  operation.buffers = buffers.pointers.data();
  operation.count = 4;
  assert_ok(groups[0]->begin(operation));
  assert_true(std::isnan(buffers.values[0][0]));
  groups[0]->abort(impl::base::cancelled("enough"));
}

}  // namespace tutti::testing

static const struct CMUnitTest tests[] = {
    TUTTI_GROUP_CONFORMANCE_TESTS,
    cmocka_unit_test(tutti::testing::test_injected_abort),
    cmocka_unit_test(tutti::testing::test_buffers_are_spoiled_between_begin_and_wait),
};
TEST_MAIN(tests)
