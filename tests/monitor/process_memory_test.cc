// SPDX-License-Identifier: Apache-2.0
#include "monitor/process_memory.h"

#include <string>

#include "testing.h"

namespace tutti::testing::process_memory_test {

using impl::monitor::most_resident_bytes;
using impl::monitor::resident_bytes;

static void test_memory_that_is_used_counts(void **) {
  constexpr int64_t size = int64_t{64} << 20;
  const int64_t before = resident_bytes();
  assert_true(before > int64_t{1} << 20);
  const std::string block(size, 'x');
  const int64_t with = resident_bytes();
  assert_true(most_resident_bytes() >= with / 10 * 9);
  assert_true(block.back() == 'x' && with - before > size / 10 * 9 && with - before < size * 2);
}

static const CMUnitTest tests[] = {cmocka_unit_test(test_memory_that_is_used_counts)};
TEST_MAIN(tests)

}  // namespace tutti::testing::process_memory_test
