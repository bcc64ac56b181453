// SPDX-License-Identifier: Apache-2.0
//
// What every group must do, in memory of devices of a plug-in that are not connected: sums go by way of the host. They
// are logical devices, so that one GPU is enough.
#include <cstdio>
#include <cstdlib>

#include "backend/backend.h"
#include "collective/local/local_group.h"
#include "collective/on_device.h"
#include "collective/staged/staged_group.h"
#include "collective/test_devices.h"
#include "conformance/group_conformance.h"
#include "runtime/backend_list.h"
#include "testing.h"

namespace tutti::testing::staged_devices_test {

static Result<Groups> make_groups(int32_t size, int32_t parts) {
  TUTTI_ASSIGN(const auto devices, open_devices(size));
  TUTTI_ASSIGN(Groups inner, impl::collective::local::LocalGroup::create(size, parts));
  TUTTI_ASSIGN(Groups groups, impl::collective::staged::stage(std::move(inner), devices));
  for (size_t r = 0; r < groups.size(); ++r)
    groups[r] = std::make_unique<OnDevice>(std::move(groups[r]), devices[r]);
  return groups;
}

static const struct CMUnitTest tests[] = {TUTTI_GROUP_CONFORMANCE_TESTS};

static int run_all(int, char **) {
  group_factory = make_groups;
  const auto opened = open_devices(1);
  if (opened.ok()) return cmocka_run_group_tests(tests, nullptr, nullptr);
  const bool is_missing = opened.code() == tutti::impl::base::Code::unavailable;
  std::printf("%s%s\n", is_missing ? "skipped: " : "", opened.status().to_string().c_str());
  return is_missing ? 77 : 1;
}
TEST_SOURCE(run_all)

}  // namespace tutti::testing::staged_devices_test
