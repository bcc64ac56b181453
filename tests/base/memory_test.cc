// SPDX-License-Identifier: Apache-2.0
#include "base/memory.h"

#include <cstring>

#include "testing.h"

using namespace tutti::impl::base;

namespace {

void memory_is_aligned_and_counted(void **) {
  const AllocationCount before = allocation_count();
  {
    for (const size_t size : {size_t{0}, size_t{1}, size_t{63}, size_t{1000}, kHugeFrom - 1}) {
      const AlignedMemory memory = assert_ok_value(allocate_aligned(size));
      assert_non_null(memory.get());
      assert_int_equal(reinterpret_cast<uintptr_t>(memory.get()) % kAlignment, 0);
      std::memset(memory.get(), 0xab, size);
      assert_int_equal(allocation_count().live_bytes - before.live_bytes, size);
    }
    const AlignedMemory huge = assert_ok_value(allocate_zeroed(kHugeFrom + 5));
    assert_int_equal(reinterpret_cast<uintptr_t>(huge.get()) % kHugePage, 0);
    const char *bytes = static_cast<const char *>(huge.get());
    for (size_t i = 0; i < kHugeFrom + 5; i += 511)
      assert_int_equal(bytes[i], 0);
    assert_int_equal(bytes[kHugeFrom + 4], 0);
  }
  const AllocationCount after = allocation_count();
  assert_int_equal(after.calls - before.calls, 6);
  assert_int_equal(after.live_bytes, before.live_bytes);
  assert_true(after.peak_bytes >= before.live_bytes + static_cast<int64_t>(kHugeFrom) + 5);
}

void too_much_is_an_error(void **) {
  assert_error_contains(allocate_aligned(SIZE_MAX), "RESOURCE_EXHAUSTED");
  assert_error_contains(allocate_aligned(SIZE_MAX - 100), "cannot allocate 18446744073709551515 bytes");
  assert_int_equal(round_up(65, 64), 128);
  assert_int_equal(round_up(64, 64), 64);
}

const CMUnitTest tests[] = {cmocka_unit_test(memory_is_aligned_and_counted), cmocka_unit_test(too_much_is_an_error)};

}  // namespace

TEST_MAIN(tests)
