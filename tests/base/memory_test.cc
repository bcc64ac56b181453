// SPDX-License-Identifier: Apache-2.0
#include "base/memory.h"

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "testing.h"

namespace memory_test {

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

/// Where a block of this size lies that is freed at once.
void *place_of(size_t size) { return assert_ok_value(allocate_aligned(size)).get(); }

void freed_blocks_are_kept_for_their_size(void **) {
  constexpr size_t kSize = size_t{1} << 20;
  place_of(kSize);
  if (allocation_count().kept_bytes == 0) return print_message("nothing is kept: built for a sanitizer\n");
  void *const place = place_of(kSize);
  for (int i = 0; i < 3; ++i)
    assert_ptr_equal(place_of(kSize - 3), place);
  {
    const AlignedMemory held = assert_ok_value(allocate_aligned(kSize));
    assert_ptr_equal(held.get(), place);
    assert_ptr_not_equal(place_of(kSize), place);
  }
  const int64_t kept = allocation_count().kept_bytes;
  place_of(kKeptFrom - 1), place_of(kHugeFrom);
  assert_int_equal(allocation_count().kept_bytes, kept);
}

void what_is_kept_is_bounded(void **) {
  for (size_t size = kKeptFrom; size < kHugeFrom; size += kAlignment * 1001)
    place_of(size);
  assert_true(allocation_count().kept_bytes <= static_cast<int64_t>(kMostKeptBytes));
  assert_int_equal(allocation_count().live_bytes, 0);
  // Many that are freed at once.
  std::vector<AlignedMemory> blocks;
  for (int i = 0; i < 40; ++i)
    blocks.push_back(assert_ok_value(allocate_aligned(kKeptFrom)));
  blocks.clear();
  assert_true(allocation_count().kept_bytes <= static_cast<int64_t>(kMostKeptBytes));
}

void threads_share_what_is_kept(void **) {
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&wrong, t] {
      for (int i = 0; i < 2000; ++i) {
        auto memory = allocate_aligned(kKeptFrom + static_cast<size_t>(i % 3) * kAlignment);
        if (!memory.ok()) return void(++wrong);
        auto *bytes = static_cast<unsigned char *>(memory->get());
        bytes[0] = bytes[kKeptFrom - 1] = static_cast<unsigned char>(t);
        std::this_thread::yield();
        if (bytes[0] != t || bytes[kKeptFrom - 1] != t) ++wrong;
      }
    });
  }
  for (std::thread &thread : threads)
    thread.join();
  assert_int_equal(wrong.load(), 0);
}

const CMUnitTest tests[] = {cmocka_unit_test(memory_is_aligned_and_counted), cmocka_unit_test(too_much_is_an_error),
                            cmocka_unit_test(freed_blocks_are_kept_for_their_size),
                            cmocka_unit_test(what_is_kept_is_bounded), cmocka_unit_test(threads_share_what_is_kept)};

}  // namespace

TEST_MAIN(tests)

}  // namespace memory_test
