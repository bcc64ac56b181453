// SPDX-License-Identifier: Apache-2.0
//
// The emulated GPU refuses under capture what a real one refuses, and shows where streams of a graph lack an event.
#include <tutti_gpu.h>

#include <array>
#include <chrono>
#include <thread>

#include "emulator/streams.h"
#include "testing.h"

namespace captures_test {

namespace {

/// Two streams, the first of which is captured, and events.
struct Streams {
  explicit Streams(gpuStreamCaptureMode mode = gpuStreamCaptureModeRelaxed) {
    for (gpuStream_t *stream : {&origin, &other})
      assert_int_equal(gpuStreamCreateWithFlags(stream, gpuStreamNonBlocking), gpuSuccess);
    for (gpuEvent_t *event : {&fork, &join})
      assert_int_equal(gpuEventCreateWithFlags(event, gpuEventDisableTiming), gpuSuccess);
    assert_int_equal(gpuStreamBeginCapture(origin, mode), gpuSuccess);
  }
  ~Streams() {
    for (gpuStream_t stream : {origin, other})
      (void)gpuStreamDestroy(stream);
    for (gpuEvent_t event : {fork, join})
      (void)gpuEventDestroy(event);
  }
  Streams(const Streams &) = delete;

  void fork_off() {
    assert_int_equal(gpuEventRecord(fork, origin), gpuSuccess);
    assert_int_equal(gpuStreamWaitEvent(other, fork, 0), gpuSuccess);
  }
  void join_in() {
    assert_int_equal(gpuEventRecord(join, other), gpuSuccess);
    assert_int_equal(gpuStreamWaitEvent(origin, join, 0), gpuSuccess);
  }
  gpuError_t end() {
    gpuGraph_t graph = nullptr;
    const gpuError_t ended = gpuStreamEndCapture(origin, &graph);
    assert_true((ended == gpuSuccess) == (graph != nullptr));
    if (graph != nullptr) assert_int_equal(gpuGraphInstantiate(&ready, graph, 0), gpuSuccess);
    if (graph != nullptr) (void)gpuGraphDestroy(graph);
    return ended;
  }
  void launch() {
    assert_int_equal(gpuGraphLaunch(ready, origin), gpuSuccess);
    assert_int_equal(gpuStreamSynchronize(origin), gpuSuccess);
  }

  gpuStream_t origin = nullptr, other = nullptr;
  gpuEvent_t fork = nullptr, join = nullptr;
  gpuGraphExec_t ready = nullptr;
};

/// One byte is set on the first stream and read on the second, which waits for the first before or after that.
uint8_t read_on_the_other(bool waits_for_it) {
  static uint8_t from, to;
  from = to = 1;
  Streams streams;
  if (!waits_for_it) streams.fork_off();
  (void)gpuMemsetAsync(&from, 2, 1, streams.origin);
  if (waits_for_it) streams.fork_off();
  (void)gpuMemcpyAsync(&to, &from, 1, gpuMemcpyDeviceToDevice, streams.other);
  streams.join_in();
  assert_int_equal(streams.end(), gpuSuccess);
  assert_int_equal(to, 1);
  streams.launch();
  assert_int_equal(from, 2);
  (void)gpuGraphExecDestroy(streams.ready);
  return to;
}

void a_missing_event_shows(void **) {
  assert_int_equal(read_on_the_other(true), 2);
  assert_int_equal(read_on_the_other(false), 1);
}

void a_graph_runs_again(void **) {
  static std::array<uint8_t, 4> bytes{};
  Streams streams;
  (void)gpuMemcpyAsync(&bytes[3], &bytes[2], 1, gpuMemcpyDeviceToDevice, streams.origin);
  (void)gpuMemcpyAsync(&bytes[2], &bytes[1], 1, gpuMemcpyDeviceToDevice, streams.origin);
  assert_int_equal(streams.end(), gpuSuccess);
  bytes = {0, 7, 0, 0};
  streams.launch();
  assert_int_equal(bytes[3], 0);
  streams.launch();
  assert_int_equal(bytes[3], 7);
  (void)gpuGraphExecDestroy(streams.ready);
}

void nobody_waits_for_what_is_captured(void **) {
  Streams streams;
  streams.fork_off();
  assert_int_equal(gpuEventQuery(streams.fork), gpuErrorCapturedEvent);
  assert_int_equal(gpuEventSynchronize(streams.fork), gpuErrorCapturedEvent);
  streams.join_in();
  assert_int_equal(streams.end(), gpuErrorStreamCaptureInvalidated);
  // Nor afterwards.
  assert_int_equal(gpuEventQuery(streams.fork), gpuErrorCapturedEvent);
  assert_int_equal(gpuStreamWaitEvent(streams.other, streams.fork, 0), gpuErrorCapturedEvent);
  assert_int_equal(gpuEventRecord(streams.fork, streams.origin), gpuSuccess);
  assert_int_equal(gpuEventSynchronize(streams.fork), gpuSuccess);
  for (const bool is_of_the_other : {false, true}) {
    Streams more;
    more.fork_off();
    gpuStream_t const stream = is_of_the_other ? more.other : more.origin;
    assert_int_equal(gpuStreamSynchronize(stream), gpuErrorStreamCaptureUnsupported);
    more.join_in();
    assert_int_equal(more.end(), gpuErrorStreamCaptureInvalidated);
  }
}

void streams_are_joined(void **) {
  Streams streams;
  streams.fork_off();
  static uint8_t byte;
  (void)gpuMemsetAsync(&byte, 2, 1, streams.other);
  assert_int_equal(streams.end(), gpuErrorStreamCaptureUnjoined);
  // That ends it for both.
  (void)gpuMemsetAsync(&byte, 3, 1, streams.other);
  assert_int_equal(gpuStreamSynchronize(streams.other), gpuSuccess);
  assert_int_equal(byte, 3);
  Streams late;
  late.fork_off();
  (void)gpuMemsetAsync(&byte, 2, 1, late.other);
  late.join_in();
  (void)gpuMemsetAsync(&byte, 2, 1, late.other);
  assert_int_equal(late.end(), gpuErrorStreamCaptureUnjoined);
}

void what_was_not_captured_is_not_waited_for(void **) {
  Streams streams;
  assert_int_equal(gpuEventRecord(streams.fork, streams.other), gpuSuccess);
  assert_int_equal(gpuStreamWaitEvent(streams.origin, streams.fork, 0), gpuErrorStreamCaptureIsolation);
  assert_int_equal(streams.end(), gpuErrorStreamCaptureInvalidated);
}

/// Milliseconds between events around what the origin's graph does; negative = there are none.
float between(gpuEvent_t begin, gpuEvent_t end) {
  float milliseconds = -1;
  return gpuEventElapsedTime(&milliseconds, begin, end) == gpuSuccess ? milliseconds : -1;
}

void external_events_have_the_times_of_launches(void **) {
  std::array<gpuEvent_t, 2> around{};
  for (gpuEvent_t &event : around)
    assert_int_equal(gpuEventCreateWithFlags(&event, 0), gpuSuccess);
  Streams streams;
  assert_int_equal(gpuEventRecordWithFlags(around[0], streams.other, gpuEventRecordExternal), gpuErrorInvalidValue);
  streams.fork_off();
  assert_int_equal(gpuEventRecordWithFlags(around[0], streams.origin, gpuEventRecordExternal), gpuSuccess);
  static std::chrono::steady_clock::time_point done;
  tutti_gpu_emulator::issue(streams.other, [] { return std::chrono::steady_clock::now() >= done; });
  streams.join_in();
  assert_int_equal(gpuEventRecordWithFlags(around[1], streams.origin, gpuEventRecordExternal), gpuSuccess);
  assert_int_equal(gpuEventQuery(around[1]), gpuSuccess);  // as one that was never recorded
  assert_int_equal(streams.end(), gpuSuccess);
  assert_true(between(around[0], around[1]) < 0);
  for (const int wait_ms : {20, 60}) {
    done = std::chrono::steady_clock::now() + std::chrono::milliseconds(wait_ms);
    assert_int_equal(gpuGraphLaunch(streams.ready, streams.origin), gpuSuccess);
    assert_true(between(around[0], around[1]) < 0);
    while (gpuEventQuery(around[1]) == gpuErrorNotReady)
      std::this_thread::yield();
    assert_true(between(around[0], around[1]) > static_cast<float>(wait_ms) / 2);
  }
  (void)gpuGraphExecDestroy(streams.ready);
  for (gpuEvent_t event : around)
    (void)gpuEventDestroy(event);
}

void other_captured_events_have_no_times(void **) {
  std::array<gpuEvent_t, 2> around{};
  for (gpuEvent_t &event : around)
    assert_int_equal(gpuEventCreateWithFlags(&event, 0), gpuSuccess);
  Streams streams;
  for (gpuEvent_t event : around)
    assert_int_equal(gpuEventRecordWithFlags(event, streams.origin, 0), gpuSuccess);
  assert_int_equal(streams.end(), gpuSuccess);
  streams.launch();
  float milliseconds = 0;
  assert_int_equal(gpuEventElapsedTime(&milliseconds, around[0], around[1]), gpuErrorCapturedEvent);
  (void)gpuGraphExecDestroy(streams.ready);
  for (gpuEvent_t event : around)
    (void)gpuEventDestroy(event);
}

void nothing_is_allocated_unless_relaxed(void **) {
  const auto allocate = [] {
    void *memory = nullptr;
    const gpuError_t error = gpuMalloc(&memory, 8);
    if (error == gpuSuccess) (void)gpuFree(memory);
    return error;
  };
  Streams relaxed;
  assert_int_equal(allocate(), gpuSuccess);
  assert_int_equal(relaxed.end(), gpuSuccess);
  (void)gpuGraphExecDestroy(relaxed.ready);
  for (const bool is_another_thread : {false, true}) {
    Streams guarded(gpuStreamCaptureMode{});
    gpuError_t error = gpuSuccess;
    if (is_another_thread) std::thread([&] { error = allocate(); }).join();
    if (!is_another_thread) error = allocate();
    assert_int_equal(error, gpuErrorStreamCaptureUnsupported);
    assert_int_equal(guarded.end(), gpuErrorStreamCaptureInvalidated);
  }
  Streams guarded(gpuStreamCaptureMode{});
  gpuStreamCaptureMode mode = gpuStreamCaptureModeRelaxed;
  (void)gpuThreadExchangeStreamCaptureMode(&mode);
  assert_int_equal(allocate(), gpuSuccess);
  (void)gpuThreadExchangeStreamCaptureMode(&mode);
  assert_int_equal(guarded.end(), gpuSuccess);
  (void)gpuGraphExecDestroy(guarded.ready);
}

}  // namespace

static int run_all(int, char **) {
  const CMUnitTest tests[] = {
      cmocka_unit_test(a_missing_event_shows),
      cmocka_unit_test(a_graph_runs_again),
      cmocka_unit_test(nobody_waits_for_what_is_captured),
      cmocka_unit_test(streams_are_joined),
      cmocka_unit_test(what_was_not_captured_is_not_waited_for),
      cmocka_unit_test(external_events_have_the_times_of_launches),
      cmocka_unit_test(other_captured_events_have_no_times),
      cmocka_unit_test(nothing_is_allocated_unless_relaxed),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
TEST_SOURCE(run_all)

}  // namespace captures_test
