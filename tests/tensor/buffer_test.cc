// SPDX-License-Identifier: Apache-2.0
#include "tensor/buffer.h"

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "base/memory.h"
#include "testing.h"

namespace buffer_test {

using namespace tutti::impl;
using namespace tutti::impl::tensor;

namespace {

void owned_memory(void **) {
  const int64_t live = base::allocation_count().live_bytes;
  for (const int64_t size : {int64_t{0}, int64_t{1}, int64_t{1000}, int64_t{5} << 20}) {
    const Ref<Buffer> buffer = assert_ok_value(Buffer::allocate(size));
    assert_int_equal(buffer->size_bytes(), size);
    assert_non_null(buffer->data());
    assert_int_equal(reinterpret_cast<uintptr_t>(buffer->data()) % 64, 0);
    assert_false(buffer->read_only());
    std::memset(buffer->data(), 1, static_cast<size_t>(size));
    const Ref<Buffer> zeros = assert_ok_value(Buffer::allocate_zeroed(size));
    for (int64_t i = 0; i < size; i += 97)
      assert_int_equal(static_cast<char *>(zeros->data())[i], 0);
  }
  assert_int_equal(base::allocation_count().live_bytes, live);
  assert_error_contains(Buffer::allocate(-1), "expected 0 or more bytes, got -1");
  assert_true(Buffer::allocate(INT64_MAX).code() == base::Code::resource_exhausted);
}

void borrowed_memory_is_given_back_once(void **) {
  int released = 0;
  char memory[16] = {};
  {
    Ref<Buffer> buffer = Buffer::borrow(
        memory, 16, [&] { ++released; }, Buffer::Access::read_only);
    assert_ptr_equal(buffer->data(), memory);
    assert_true(buffer->read_only());
    const Ref<Buffer> part = assert_ok_value(Buffer::slice(buffer, 4, 8));
    const Ref<Buffer> smaller = assert_ok_value(Buffer::slice(part, 2, 6));
    buffer.reset();
    assert_int_equal(released, 0);
    assert_ptr_equal(smaller->data(), memory + 6);
    assert_true(smaller->read_only());
  }
  assert_int_equal(released, 1);
  Buffer::borrow(nullptr, 0, nullptr).reset();
}

void slices_stay_inside(void **) {
  const Ref<Buffer> buffer = assert_ok_value(Buffer::allocate(10));
  assert_ok(Buffer::slice(buffer, 10, 0));
  assert_error_contains(Buffer::slice(buffer, 5, 6), "slice of 6 bytes at 5 does not lie in a buffer of 10");
  for (const auto &[offset, size] :
       {std::pair<int64_t, int64_t>{-1, 2}, {0, -1}, {11, 0}, {2, INT64_MAX}, {INT64_MAX, 1}}) {
    assert_true(Buffer::slice(buffer, offset, size).code() == base::Code::out_of_range);
  }
  assert_true(Buffer::slice(nullptr, 0, 0).code() == base::Code::invalid_argument);
}

void a_pool_recycles_without_allocating(void **) {
  Ref<BufferPool> pool = assert_ok_value(BufferPool::create(1000));
  void *first = assert_ok_value(pool->acquire())->data();
  const int64_t calls = base::allocation_count().calls;
  for (int i = 0; i < 100; ++i) {
    const Ref<Buffer> block = assert_ok_value(pool->acquire());
    assert_ptr_equal(block->data(), first);
    assert_int_equal(block->size_bytes(), 1000);
    assert_int_equal(block->reference_count(), 1);
    assert_int_equal(pool->used_count(), 1);
  }
  assert_int_equal(base::allocation_count().calls, calls);
  assert_int_equal(pool->block_count(), 1);
  pool->trim();
  assert_int_equal(pool->block_count(), 0);
}

void a_block_outlives_its_pool(void **) {
  const int64_t live = base::allocation_count().live_bytes;
  {
    Ref<BufferPool> pool = assert_ok_value(BufferPool::create(64));
    const Ref<Buffer> block = assert_ok_value(pool->acquire());
    const Ref<Buffer> part = assert_ok_value(Buffer::slice(block, 8, 8));
    { const Ref<Buffer> free_one = assert_ok_value(pool->acquire()); }
    pool.reset();
    std::memset(part->data(), 1, 8);
  }
  assert_int_equal(base::allocation_count().live_bytes, live);
}

void a_bounded_pool_makes_one_wait(void **) {
  const Ref<BufferPool> pool = assert_ok_value(BufferPool::create(64, 2));
  const Ref<Buffer> first = assert_ok_value(pool->acquire());
  Ref<Buffer> second = assert_ok_value(pool->acquire());
  assert_true(assert_ok_value(pool->try_acquire()) == nullptr);
  const base::Status status = pool->acquire(nullptr, base::Deadline::after_ms(1)).status();
  assert_true(status.code() == base::Code::deadline_exceeded);
  assert_contains(status.message().c_str(), "all 2 blocks");
  const Ref<base::CancelToken> token = base::CancelToken::create();
  token->cancel();
  assert_true(pool->acquire(token.get()).code() == base::Code::cancelled);
  bool got = false;
  std::thread waiter([&] { got = pool->acquire().ok(); });
  second.reset();
  waiter.join();
  assert_true(got);
  assert_error_contains(BufferPool::create(-1), "negative");
}

void threads_share_a_pool(void **) {
  const Ref<BufferPool> pool = assert_ok_value(BufferPool::create(128, 3));
  std::atomic<int> broken{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 2000; ++i) {
        const base::Result<Ref<Buffer>> block = pool->acquire();
        if (!block.ok()) {
          ++broken;
          return;
        }
        std::memset((*block)->data(), t, 128);
        for (int k = 0; k < 128; ++k)
          broken += static_cast<char *>((*block)->data())[k] != t;
      }
    });
  }
  for (std::thread &thread : threads)
    thread.join();
  assert_int_equal(broken.load(), 0);
  assert_true(pool->block_count() <= 3);
  assert_int_equal(pool->used_count(), 0);
}

const CMUnitTest tests[] = {
    cmocka_unit_test(owned_memory),
    cmocka_unit_test(borrowed_memory_is_given_back_once),
    cmocka_unit_test(slices_stay_inside),
    cmocka_unit_test(a_pool_recycles_without_allocating),
    cmocka_unit_test(a_block_outlives_its_pool),
    cmocka_unit_test(a_bounded_pool_makes_one_wait),
    cmocka_unit_test(threads_share_a_pool),
};

}  // namespace

TEST_MAIN(tests)

}  // namespace buffer_test
