// SPDX-License-Identifier: Apache-2.0
//
// What runs for every element or step allocates nothing once it has been running for a while.
#include <thread>

#include "base/allocation_probe.h"
#include "base/bounded_queue.h"
#include "base/handle_table.h"
#include "base/random/philox.h"
#include "base/thread.h"
#include "base/trace.h"
#include "testing.h"

using namespace tutti::impl::base;
using tutti::testing::AllocationProbe;

namespace {

// Keeps the compiler from leaving out an allocation whose memory nobody looks at.
template <typename T>
T *seen(T *memory) {
  asm volatile("" ::"r"(memory) : "memory");
  return memory;
}

void the_probe_sees(void **) {
  struct alignas(128) Wide {
    int value;
  };
  const AllocationProbe probe;
  assert_int_equal(probe.count(), 0);
  delete seen(new int);
  delete[] seen(new int[3]);
  delete seen(new Wide);
  { const AlignedMemory memory = assert_ok_value(allocate_aligned(10)); }
  assert_int_equal(probe.count(), 4);
}

void queues(void **) {
  BoundedQueue<int> queue(3);
  const Ref<CancelToken> token = CancelToken::create();
  constexpr int kItems = 3000;
  // The queue is often empty and often full, so both sides sleep with a token.
  std::atomic<int64_t> counted{-1};
  std::thread consumer([&] {
    const AllocationProbe probe;
    for (int i = 0; i < kItems; ++i)
      (void)queue.pop(token.get());
    counted = probe.count();
  });
  for (int i = 0; i < kItems; ++i)
    assert_ok(queue.push(i, token.get()));
  consumer.join();
  assert_int_equal(counted.load(), 0);
}

void loops(void **) {
  auto pool = assert_ok_value(ThreadPool::create("pool", 2));
  std::atomic<int64_t> sum{0};
  const AllocationProbe probe;
  for (int i = 0; i < 200; ++i) {
    const Status status = pool->parallel_for(0, 64, 1, [&](int64_t begin, int64_t end) {
      sum += end - begin;
      return Status();
    });
    assert_true(status.ok());
  }
  assert_int_equal(probe.count(), 0);
  assert_int_equal(sum.load(), 200 * 64);
}

struct Thing : Object {};
HandleType<Thing> things{"thing"};

void handles_tokens_random_and_spans(void **) {
  HandleTable table;
  const Ref<Thing> thing = make_ref<Thing>();
  void *handle = assert_ok_value(table.insert(thing, things));
  const Ref<CancelToken> token = CancelToken::create(Deadline::after_ms(60000));
  const Ref<Tracer> tracer = make_ref<Tracer>();
  RandomStream stream(RandomKey::of(1, 2, 3));
  const AllocationProbe probe;
  for (int i = 0; i < 100; ++i) {
    TraceSpan span(tracer.get(), "test", "off");
    const Result<Ref<Thing>> found = table.find(handle, things, "thing");
    assert_true(found.ok() && token->check().ok() && stream.below(10) < 10);
    const Result<void *> other = table.insert(thing, things);
    assert_true(other.ok() && table.unref(*other, things).ok());
  }
  assert_int_equal(probe.count(), 0);
  assert_ok(table.unref(handle, things));
}

const CMUnitTest tests[] = {
    cmocka_unit_test(the_probe_sees),
    cmocka_unit_test(queues),
    cmocka_unit_test(loops),
    cmocka_unit_test(handles_tokens_random_and_spans),
};

}  // namespace

TEST_MAIN(tests)
