// SPDX-License-Identifier: Apache-2.0
//
// What streams have to wait for, where they wait for each other: everything once, and each tells of what failed.
#include "backend/pjrt/memory/pjrt_stream.h"

#include "testing.h"

namespace {

using namespace tutti::impl;
using backend::pjrt::Completion;
using backend::pjrt::EventState;
using backend::pjrt::StreamState;

/// `waiting` goes on behind what `other` has begun.
void wait_for(StreamState &waiting, const StreamState &other) {
  EventState event;
  event.record(other);
  waiting.add(event.pending());
}

/// As replicas do whose sums and weights go by way of the host, in many pieces.
void test_streams_that_wait_in_turn(void **) {
  StreamState work, copies;
  work.add(Completion());
  for (int round = 0; round < 20; ++round) {
    wait_for(copies, work);
    wait_for(work, copies);
  }
  assert_int_equal(work.pending().size(), 1);
  assert_int_equal(copies.pending().size(), 1);
  copies.add(Completion());
  wait_for(work, copies);
  wait_for(copies, work);
  assert_int_equal(work.pending().size(), 2);
  assert_int_equal(copies.pending().size(), 2);
  assert_true(work.synchronize().ok());
  assert_int_equal(work.pending().size(), 0);
}

void test_both_tell_of_an_error(void **) {
  StreamState work, copies;
  work.add(Completion(), [] { return base::out_of_range("an index"); });
  for (int round = 0; round < 3; ++round) {
    wait_for(copies, work);
    wait_for(work, copies);
  }
  assert_true(copies.has_failed());
  assert_int_equal(static_cast<int>(copies.synchronize().code()), static_cast<int>(base::Code::out_of_range));
  assert_int_equal(static_cast<int>(work.synchronize().code()), static_cast<int>(base::Code::out_of_range));
  assert_true(work.synchronize().ok());
}

}  // namespace

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_streams_that_wait_in_turn),
    cmocka_unit_test(test_both_tell_of_an_error),
};
TEST_MAIN(tests)
