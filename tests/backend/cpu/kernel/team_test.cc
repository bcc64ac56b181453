// SPDX-License-Identifier: Apache-2.0
//
// The team of threads: every part is done once, by whom it may be done; nothing is lost with many tiny jobs, with more
// threads than cores, with several callers; nobody spins for long; threads come and go with the team.
#include "backend/cpu/kernel/team.h"

#include <omp.h>

#include <atomic>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <iterator>
#include <thread>
#include <vector>

#include "backend/cpu/kernel/kernel.h"
#include "testing.h"
#if defined(__SSE__)
#include <xmmintrin.h>
#endif

namespace team_test {

namespace {

using tutti::impl::backend::cpu::FirstWrong;
using tutti::impl::backend::cpu::Parts;
using tutti::impl::backend::cpu::Range;
using tutti::impl::backend::cpu::RunContext;
using tutti::impl::backend::cpu::Team;

int32_t process_threads() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return static_cast<int32_t>(std::distance(begin(tasks), end(tasks)));
}

std::shared_ptr<Team> make_team(int32_t threads) {
  auto team = std::make_shared<Team>();
  assert_ok(team->grow(threads));
  assert_int_equal(team->size(), threads);
  return team;
}

/// Runs one job and checks what cmocka cannot check on other threads.
void check_job(Team &team, int32_t parts, int32_t threads) {
  std::vector<std::atomic<int32_t>> times(static_cast<size_t>(parts));
  std::vector<std::atomic<int32_t>> at_work(static_cast<size_t>(threads));
  std::atomic<int32_t> mistakes{0};
  const auto caller = std::this_thread::get_id();
  team.run(parts, threads, [&](int32_t part, int32_t thread) {
    if (part < 0 || part >= parts || thread < 0 || thread >= threads) {
      ++mistakes;
      return;
    }
    if (at_work[static_cast<size_t>(thread)].fetch_add(1) != 0) ++mistakes;
    if ((thread == 0) != (std::this_thread::get_id() == caller)) ++mistakes;
    ++times[static_cast<size_t>(part)];
    at_work[static_cast<size_t>(thread)].fetch_sub(1);
  });
  for (const auto &count : times)
    mistakes += count == 1 ? 0 : 1;
  assert_int_equal(mistakes, 0);
}

void every_part_is_done_once(void **) {
  for (int32_t size : {1, 2, 3, 4, 9}) {
    const auto team = make_team(size);
    for (int32_t parts : {0, 1, 2, 3, 7, 64, 4095}) {
      for (int32_t threads : {1, 2, 3, 8})
        check_job(*team, parts, threads);
    }
  }
}

void threads_work_at_the_same_time(void **) {
  const auto team = make_team(3);
  std::atomic<int32_t> here{0}, wrong{0};
  team->run(3, 3, [&](int32_t, int32_t thread) {
    ++here;
    // Nobody goes on before all three are here.
    while (here != 3)
      std::this_thread::yield();
    if (thread == 0) return;
    if (omp_get_max_threads() != 1) ++wrong;
#if defined(__SSE__)
    if ((_mm_getcsr() & 0x8040) != 0x8040) ++wrong;
#endif
  });
  assert_int_equal(here, 3);
  assert_int_equal(wrong, 0);
}

/// Sums a million numbers in tiny jobs; a lost or doubled part shows.
int64_t sum_in_jobs(Team &team, int32_t threads, int32_t jobs) {
  int64_t sum = 0;
  std::vector<int64_t> partial(5);
  for (int32_t job = 0; job < jobs; ++job) {
    team.run(5, threads, [&](int32_t part, int32_t) { partial[static_cast<size_t>(part)] = job * 5 + part; });
    for (int64_t number : partial)
      sum += number;
  }
  return sum;
}

constexpr int32_t kJobs = 100'000;
constexpr int64_t kSum = int64_t{5} * kJobs * (int64_t{5} * kJobs - 1) / 2;

void tiny_jobs(void **) {
  for (int32_t size : {2, 4}) {
    const auto team = make_team(size);
    assert_int_equal(sum_in_jobs(*team, size, kJobs), kSum);
  }
}

void more_threads_than_cores(void **) {
  std::vector<std::shared_ptr<Team>> teams;
  std::vector<std::thread> callers;
  std::vector<int64_t> sums(4);
  for (size_t i = 0; i < sums.size(); ++i)
    teams.push_back(make_team(4));
  for (size_t i = 0; i < sums.size(); ++i)
    callers.emplace_back([&, i] { sums[i] = sum_in_jobs(*teams[i], 4, kJobs / 10); });
  for (std::thread &caller : callers)
    caller.join();
  for (int64_t sum : sums)
    assert_int_equal(sum, int64_t{5} * (kJobs / 10) * (int64_t{5} * (kJobs / 10) - 1) / 2);
}

void several_callers_of_one_team(void **) {
  const auto team = make_team(3);
  std::vector<std::thread> callers;
  std::vector<int64_t> sums(3);
  for (size_t i = 0; i < sums.size(); ++i)
    callers.emplace_back([&, i] { sums[i] = sum_in_jobs(*team, 3, kJobs / 4); });
  // It may grow meanwhile.
  assert_ok(team->grow(5));
  for (std::thread &caller : callers)
    caller.join();
  for (int64_t sum : sums)
    assert_int_equal(sum, int64_t{5} * (kJobs / 4) * (int64_t{5} * (kJobs / 4) - 1) / 2);
  check_job(*team, 20, 5);
}

void parts_may_call_it_again(void **) {
  const auto team = make_team(2);
  std::atomic<int32_t> done{0};
  team->run(4, 2, [&](int32_t, int32_t) { team->run(3, 2, [&](int32_t, int32_t) { ++done; }); });
  assert_int_equal(done, 12);
}

double process_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

/// Jobs far apart cost next to nothing: who waits sleeps.
void waiting_threads_sleep(void **) {
  const auto team = make_team(2);
  const double before = process_seconds();
  for (int i = 0; i < 20; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    check_job(*team, 8, 2);
  }
  // 0.4 s on the wall; one spinning thread would have taken as much.
  assert_true(process_seconds() - before < 0.2);
}

void threads_end_with_the_team(void **) {
  const int32_t before = process_threads();
  const int first = 0, second = 0;
  auto team = assert_ok_value(Team::of_device(&first, 0, 3));
  assert_int_equal(process_threads(), before + 2);
  // The same device: the same team, larger where more is wanted.
  auto again = assert_ok_value(Team::of_device(&first, 0, 2));
  assert_ptr_equal(team.get(), again.get());
  assert_int_equal(process_threads(), before + 2);
  again = assert_ok_value(Team::of_device(&first, 0, 4));
  assert_int_equal(process_threads(), before + 3);
  // Other devices have their own.
  auto other = assert_ok_value(Team::of_device(&first, 1, 2));
  auto foreign = assert_ok_value(Team::of_device(&second, 0, 2));
  assert_ptr_not_equal(other.get(), foreign.get());
  assert_int_equal(process_threads(), before + 5);
  team.reset(), again.reset(), other.reset(), foreign.reset();
  // The system may show a thread for a moment after it was joined.
  for (int i = 0; i < 1000 && process_threads() > before; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  assert_int_equal(process_threads(), before);
  assert_ok(Team::of_device(&first, 0, 1));
  assert_int_equal(process_threads(), before);
}

void parts_cover_all_items(void **) {
  for (int64_t items : {int64_t{0}, int64_t{1}, int64_t{7}, int64_t{100}, int64_t{1} << 40}) {
    for (int64_t grain : {int64_t{0}, int64_t{1}, int64_t{3}, int64_t{1000}}) {
      for (int32_t threads : {1, 2, 3, 300}) {
        const Parts parts(items, grain, threads);
        assert_in_range(parts.count(), 1, std::max(1, threads * Parts::kPartsPerThread));
        assert_true(parts.count() <= Team::kMostParts && parts.threads() <= threads);
        assert_true(parts.count() == 1 || items / parts.count() >= grain);
        int64_t at = 0;
        for (int32_t part = 0; part < parts.count(); ++part) {
          assert_int_equal(parts[part].begin, at);
          at = parts[part].end;
        }
        assert_int_equal(at, items);
      }
    }
  }
  assert_int_equal(Parts(1'000'000, 1000, 1).count(), 1);
}

void the_first_wrong_item_is_kept(void **) {
  FirstWrong wrong;
  assert_int_equal(wrong.get(), -1);
  for (int64_t item : {-1, 7, 9, -1, 3, 5})
    wrong.note(item);
  assert_int_equal(wrong.get(), 3);
}

void contexts_without_a_team_do_parts_in_order(void **) {
  RunContext context;
  std::vector<int64_t> begins;
  const Parts parts(10, 1, 2, 2);
  context.for_parts(parts, [&](Range range) { begins.push_back(range.begin); });
  assert_true(begins == (std::vector<int64_t>{0, 2, 5, 7}));
}

}  // namespace

static int run_all(int, char **) {
  const CMUnitTest tests[] = {
      cmocka_unit_test(every_part_is_done_once),
      cmocka_unit_test(threads_work_at_the_same_time),
      cmocka_unit_test(tiny_jobs),
      cmocka_unit_test(more_threads_than_cores),
      cmocka_unit_test(several_callers_of_one_team),
      cmocka_unit_test(parts_may_call_it_again),
      cmocka_unit_test(waiting_threads_sleep),
      cmocka_unit_test(threads_end_with_the_team),
      cmocka_unit_test(parts_cover_all_items),
      cmocka_unit_test(the_first_wrong_item_is_kept),
      cmocka_unit_test(contexts_without_a_team_do_parts_in_order),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
TEST_SOURCE(run_all)

}  // namespace team_test
