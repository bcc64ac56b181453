// SPDX-License-Identifier: Apache-2.0
//
// The emulated GPU ends a process whose kernels a real one would refuse, and shows what lacks a barrier.
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "strict_kernels.h"
#include "testing.h"

using namespace tutti::testing;

namespace {

gpuStream_t new_stream() {
  gpuStream_t stream = nullptr;
  assert_int_equal(gpuStreamCreateWithFlags(&stream, gpuStreamNonBlocking), gpuSuccess);
  return stream;
}

/// How a process ended that did this: 0, or the signal.
int signal_of(const std::function<void(gpuStream_t stream)> &work) {
  const pid_t child = fork();
  if (child == 0) {
    // The test's own frame catches these.
    for (const int caught : {SIGILL, SIGTRAP, SIGSEGV, SIGBUS, SIGFPE, SIGABRT})
      (void)signal(caught, SIG_DFL);
    const rlimit none{0, 0};
    (void)setrlimit(RLIMIT_CORE, &none);
    (void)close(STDERR_FILENO);
    gpuStream_t stream = nullptr;
    (void)gpuStreamCreateWithFlags(&stream, gpuStreamNonBlocking);
    work(stream);
    (void)gpuStreamSynchronize(stream);
    _exit(0);
  }
  assert_true(child > 0);
  int status = 0;
  assert_int_equal(waitpid(child, &status, 0), child);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

/// Whether the compiler has the checks.
constexpr bool kIsStrict = TUTTI_HAS_STRICT_KERNELS != 0;

void unaligned_packs_end_the_process(void **) {
  alignas(16) static float from[8] = {1, 2, 3, 4, 5, 6, 7, 8}, to[8];
  assert_int_equal(signal_of([](gpuStream_t stream) { (void)launch_copy_pack(to, from, stream); }), 0);
  assert_int_equal(signal_of([](gpuStream_t stream) { (void)launch_copy_pack(to + 4, from + 4, stream); }), 0);
  if (!kIsStrict) return;
  for (const int offset : {1, 2, 3}) {
    assert_int_not_equal(signal_of([=](gpuStream_t stream) { (void)launch_copy_pack(to, from + offset, stream); }), 0);
    assert_int_not_equal(signal_of([=](gpuStream_t stream) { (void)launch_copy_pack(to + offset, from, stream); }), 0);
  }
}

void numbers_beyond_an_integer_end_the_process(void **) {
  static int32_t to;
  static float numbers[] = {2e9f, 3e9f};
  assert_int_equal(signal_of([](gpuStream_t stream) { (void)launch_as_integer(&to, numbers, stream); }), 0);
  if (kIsStrict)
    assert_int_not_equal(signal_of([](gpuStream_t stream) { (void)launch_as_integer(&to, numbers + 1, stream); }), 0);
}

void launches_beyond_limits_end_the_process(void **) {
  const auto ends = [](dim3 grid, dim3 block, size_t shared_bytes) {
    return signal_of([=](gpuStream_t stream) { (void)launch_nothing(grid, block, shared_bytes, stream); }) != 0;
  };
  assert_false(ends({2, 3, 4}, {8, 4, 2}, 48 << 10));
  assert_true(ends({0, 1, 1}, 1, 0));
  assert_true(ends({1u << 31, 1, 1}, 1, 0));
  assert_true(ends({1, 65536, 1}, 1, 0));
  assert_true(ends({1, 1, 65536}, 1, 0));
  assert_true(ends(1, {1025, 1, 1}, 0));
  assert_true(ends(1, {1, 1, 65}, 0));
  assert_true(ends(1, 1, (48 << 10) + 1));
}

/// Whether launch after launch gave numbers that rise by one, or fall.
bool always_gives_neighbours(const std::function<void(int32_t *to, gpuStream_t stream)> &launch) {
  gpuStream_t stream = new_stream();
  bool always = true;
  for (int round = 0; round < 4; ++round) {
    std::vector<int32_t> to(kBlockThreads, -1);
    launch(to.data(), stream);
    assert_int_equal(gpuStreamSynchronize(stream), gpuSuccess);
    const int32_t step = to[1] - to[0];
    for (size_t i = 1; i < to.size(); ++i)
      always = always && (step == 1 || step == -1) && to[i] - to[i - 1] == step;
  }
  assert_int_equal(gpuStreamDestroy(stream), gpuSuccess);
  return always;
}

void a_missing_barrier_shows(void **) {
  assert_true(always_gives_neighbours([](int32_t *to, gpuStream_t stream) { (void)launch_pass_on(to, true, stream); }));
  assert_false(
      always_gives_neighbours([](int32_t *to, gpuStream_t stream) { (void)launch_pass_on(to, false, stream); }));
}

void blocks_that_need_each_other_show(void **) {
  assert_false(always_gives_neighbours(
      [](int32_t *to, gpuStream_t stream) { (void)launch_add_up_blocks(to, kBlockThreads, stream); }));
}

}  // namespace

int main() {
  const CMUnitTest tests[] = {
      cmocka_unit_test(unaligned_packs_end_the_process),
      cmocka_unit_test(numbers_beyond_an_integer_end_the_process),
      cmocka_unit_test(launches_beyond_limits_end_the_process),
      cmocka_unit_test(a_missing_barrier_shows),
      cmocka_unit_test(blocks_that_need_each_other_show),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
