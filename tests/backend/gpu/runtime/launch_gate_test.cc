// SPDX-License-Identifier: Apache-2.0
//
// No section is within an operation that some ranks have begun and others have not launched, whoever comes when; and
// nobody waits in vain: ranks that are late, threads that owe, cliques that end.
#include "backend/gpu/runtime/launch_gate.h"

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "testing.h"

namespace launch_gate_test {

using tutti::impl::backend::gpu::BetweenLaunches;
using tutti::impl::backend::gpu::LaunchGate;
using Launches = LaunchGate::Launches;
using Kind = LaunchGate::Kind;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

namespace {

/// No test comes near these.
constexpr LaunchGate::Bounds kPatient = {
    .section_ms = 60000, .unknown_ms = 60000, .ending_ms = 60000, .begin_ms = 60000};
/// Long enough for what is about to happen to have happened.
constexpr milliseconds kWhile{30};

/// A thread that does one thing, and whether it has.
class Doing {
 public:
  explicit Doing(std::function<void()> work)
      : thread_([this, work = std::move(work)] {
          work();
          is_done_.store(true);
        }) {}
  ~Doing() { join(); }
  /// Not yet, after a while.
  bool waits() const {
    std::this_thread::sleep_for(kWhile);
    return !is_done_.load();
  }
  void join() {
    if (thread_.joinable()) thread_.join();
  }

 private:
  std::atomic<bool> is_done_{false};
  std::thread thread_;
};

void launch(Launches &launches, size_t rank) {
  if (!launches.begin(rank)) abort();
  launches.launched(rank);
}

void a_section_waits_until_all_have_launched(void **) {
  LaunchGate gate(kPatient);
  Launches launches(gate, 3);
  { const BetweenLaunches section(gate); }
  assert_true(launches.begin(0));
  Doing section([&] { const BetweenLaunches entered(gate); });
  assert_true(section.waits());
  launches.launched(0);
  assert_true(section.waits());
  launch(launches, 2);
  assert_true(section.waits());
  assert_true(launches.begin(1));  // late, and so at once
  assert_true(section.waits());
  launches.launched(1);
  section.join();
  assert_int_equal(gate.overdue_sections(), 0);
}

void the_first_rank_waits_for_sections(void **) {
  LaunchGate gate(kPatient);
  Launches launches(gate, 2);
  auto section = std::make_unique<BetweenLaunches>(gate);
  Doing first([&] { launch(launches, 0); });
  assert_true(first.waits());
  Doing second([&] { launch(launches, 1); });  // nobody has begun yet
  assert_true(second.waits());
  section.reset();
  first.join();
  second.join();
  { const BetweenLaunches again(gate); }
  assert_int_equal(gate.overdue_sections(), 0);
}

void ranks_that_are_ahead_wait_too(void **) {
  LaunchGate gate(kPatient);
  Launches launches(gate, 2);
  for (int i = 0; i < 5; ++i)
    launch(launches, 0);
  Doing section([&] { const BetweenLaunches entered(gate); });
  assert_true(section.waits());
  Doing sixth([&] { launch(launches, 0); });
  assert_true(sixth.waits());
  for (int i = 0; i < 5; ++i) {
    assert_true(section.waits());
    launch(launches, 1);
  }
  section.join();
  sixth.join();
  launch(launches, 1);
}

void sections_do_not_wait_for_each_other(void **) {
  LaunchGate gate(kPatient);
  const BetweenLaunches section(gate);
  Doing other([&] { const BetweenLaunches entered(gate); });
  other.join();
}

void a_section_within_another_does_not_wait(void **) {
  LaunchGate gate(kPatient), other(kPatient);
  Launches launches(gate, 2);
  auto section = std::make_unique<BetweenLaunches>(gate);
  Doing first([&] { launch(launches, 0); });
  assert_true(first.waits());
  {
    const BetweenLaunches of_another_gate(other);
    const BetweenLaunches nested(gate);  // behind the rank, it would wait for ever
    assert_true(first.waits());
  }
  assert_true(first.waits());  // the outer one is not over
  section.reset();
  first.join();
}

/// Sections one behind the other would keep ranks from going on, and so would ranks keep sections.
void they_take_turns(void **) {
  LaunchGate gate(kPatient);
  Launches launches(gate, 2);
  auto section = std::make_unique<BetweenLaunches>(gate);
  Doing first([&] { launch(launches, 0); });
  assert_true(first.waits());
  Doing later([&] { const BetweenLaunches entered(gate); });
  assert_true(later.waits());  // behind the rank
  section.reset();
  first.join();
  assert_true(later.waits());  // in an operation
  launch(launches, 1);
  later.join();
}

void a_thread_that_owes_goes_on(void **) {
  LaunchGate gate(kPatient);
  Launches launches(gate, 2), others(gate, 2), more(gate, 2);
  launch(launches, 0);
  launch(launches, 1);  // of this thread from here on
  launch(others, 0);
  Doing([&] { launch(launches, 0); }).join();
  { const BetweenLaunches entered(gate); }  // nobody else launches rank 1's
  assert_int_equal(gate.overdue_sections(), 0);
  Doing section([&] { const BetweenLaunches entered(gate); });
  assert_true(section.waits());
  launch(others, 0);  // as a first rank neither
  assert_true(section.waits());
  Doing first([&] { launch(more, 0); });
  assert_true(first.waits());
  { const BetweenLaunches entered(gate); }  // nor behind one that waits
  launches.end();
  others.end();
}

/// It began to wait before it owed.
void a_thread_that_comes_to_owe_goes_on(void **) {
  LaunchGate gate(kPatient);
  Launches launches(gate, 2);
  std::atomic<bool> is_known{false}, may_go{false};
  launch(launches, 0);
  Doing rank([&] {
    launch(launches, 1);
    is_known.store(true);
    while (!may_go.load())
      std::this_thread::yield();
    { const BetweenLaunches entered(gate); }
    launch(launches, 1);
  });
  while (!is_known.load())
    std::this_thread::yield();
  auto section = std::make_unique<BetweenLaunches>(gate);
  Doing first([&] { launch(launches, 0); });
  assert_true(first.waits());
  may_go.store(true);
  assert_true(rank.waits());  // behind the other rank
  section.reset();
  first.join();
  rank.join();
  assert_int_equal(gate.overdue_sections(), 0);
}

void a_clique_that_ends_does_not_count(void **) {
  LaunchGate gate(kPatient);
  Launches ended(gate, 2), other(gate, 2);
  launch(ended, 0);
  Doing section([&] { const BetweenLaunches entered(gate); });
  assert_true(section.waits());
  ended.close();
  assert_false(ended.begin(1));
  assert_true(section.waits());  // what is launched still waits for its ranks
  Doing([&] { const BetweenLaunches ending(gate, Kind::ending); }).join();
  ended.end();
  section.join();
  ended.end();
  ended.launched(0);
  launch(other, 0);
  launch(other, 1);
  { const BetweenLaunches entered(gate); }
  {
    Launches destroyed(gate, 2);
    launch(destroyed, 1);
  }
  { const BetweenLaunches entered(gate); }
  assert_int_equal(gate.overdue_sections(), 0);
}

void who_waits_to_begin_hears_of_the_end(void **) {
  LaunchGate gate(kPatient);
  Launches launches(gate, 2);
  const BetweenLaunches section(gate);
  bool has_begun = true;
  Doing first([&] { has_begun = launches.begin(0); });
  assert_true(first.waits());
  launches.close();
  first.join();
  assert_false(has_begun);
}

void waiting_has_bounds(void **) {
  LaunchGate gate({.section_ms = 50, .ending_ms = 10, .begin_ms = 100});
  Launches launches(gate, 2);
  Doing([&] { launch(launches, 0); }).join();
  const auto begin = Clock::now();
  { const BetweenLaunches ending(gate, Kind::ending); }
  assert_int_equal(gate.overdue_sections(), 0);
  { const BetweenLaunches section(gate); }
  assert_int_equal(gate.overdue_sections(), 1);
  assert_true(Clock::now() - begin >= milliseconds(60));
  // Once for an operation,
  for (int i = 0; i < 100; ++i)
    const BetweenLaunches section(gate);
  assert_int_equal(gate.overdue_sections(), 1);
  Doing([&] { launch(launches, 1); }).join();
  { const BetweenLaunches section(gate); }
  assert_int_equal(gate.overdue_sections(), 1);
  // not for the next.
  Doing([&] { launch(launches, 0); }).join();
  { const BetweenLaunches section(gate); }
  assert_int_equal(gate.overdue_sections(), 2);
  Doing([&] { launch(launches, 1); }).join();
  const BetweenLaunches endless(gate);
  const auto then = Clock::now();
  Doing([&] { launch(launches, 0); }).join();
  assert_true(Clock::now() - then >= milliseconds(100));
}

/// Any thread may be the next of such a rank.
void ranks_without_a_thread_are_waited_for_a_moment(void **) {
  LaunchGate gate({.section_ms = 60000, .unknown_ms = 80, .ending_ms = 60000, .begin_ms = 60000});
  Launches launches(gate, 2);
  std::atomic<bool> is_known{false}, may_go{false};
  for (int i = 0; i < 2; ++i) {
    Doing([&] { launch(launches, 0); }).join();
    Doing section([&] { const BetweenLaunches entered(gate); });
    assert_true(section.waits());
    section.join();
    assert_int_equal(gate.overdue_sections(), i + 1);
    if (i == 0) Doing([&] { launch(launches, 1); }).join();  // none before; over now
  }
  Doing rank([&] {
    launch(launches, 1);
    is_known.store(true);
    while (!may_go.load())
      std::this_thread::yield();
    launch(launches, 1);
  });
  while (!is_known.load())
    std::this_thread::yield();
  Doing([&] { launch(launches, 0); }).join();
  Doing section([&] { const BetweenLaunches entered(gate); });
  std::this_thread::sleep_for(milliseconds(100));
  assert_true(section.waits());
  may_go.store(true);
  section.join();
  assert_int_equal(gate.overdue_sections(), 2);
}

// ---- everybody at once ----

struct Watched {
  explicit Watched(LaunchGate &gate, size_t count) : launches(gate, count), ranks(count) {}
  Launches launches;
  struct Rank {
    std::atomic<int64_t> begun{0}, launched{0};
  };
  std::vector<Rank> ranks;

  bool is_even() const {
    for (const Rank &rank : ranks) {
      if (rank.begun.load() != ranks[0].begun.load() || rank.launched.load() != ranks[0].begun.load()) return false;
    }
    return true;
  }
};

void pause_sometimes(std::minstd_rand &random) {
  const auto number = random() % 32;
  if (number == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 200));
  if (number < 8) std::this_thread::yield();
}

void no_section_is_within_an_operation(void **) {
  constexpr int64_t kOperations = 4000;
  LaunchGate gate(kPatient);
  std::array<std::unique_ptr<Watched>, 2> cliques = {std::make_unique<Watched>(gate, 2),
                                                     std::make_unique<Watched>(gate, 3)};
  std::atomic<int64_t> ranks_at_work{5}, sections{0};
  std::vector<std::thread> threads;
  for (const auto &clique : cliques) {
    for (size_t r = 0; r < clique->ranks.size(); ++r) {
      threads.emplace_back([&, r] {
        std::minstd_rand random(static_cast<unsigned>(17 * r + clique->ranks.size()));
        for (int64_t n = 1; n <= kOperations; ++n) {
          if (!clique->launches.begin(r)) abort();
          clique->ranks[r].begun.store(n);
          pause_sometimes(random);
          clique->ranks[r].launched.store(n);
          clique->launches.launched(r);
          pause_sometimes(random);
        }
        --ranks_at_work;
      });
    }
  }
  for (unsigned t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      std::minstd_rand random(100 + t);
      while (ranks_at_work.load() > 0) {
        const BetweenLaunches section(gate);
        for (int look = 0; look < 3; ++look) {
          for (const auto &clique : cliques)
            if (!clique->is_even()) abort();
          pause_sometimes(random);
        }
        const BetweenLaunches nested(gate);
        ++sections;
      }
    });
  }
  for (std::thread &thread : threads)
    thread.join();
  assert_true(sections.load() > 100);
  assert_int_equal(gate.overdue_sections(), 0);
}

/// Cliques come and go, some with operations that no rank ends.
void cliques_end_among_sections(void **) {
  LaunchGate gate(kPatient);
  Watched lasting(gate, 2);
  std::atomic<bool> is_over{false};
  std::vector<std::thread> threads;
  for (size_t r = 0; r < 2; ++r) {
    threads.emplace_back([&, r] {
      for (int64_t n = 1; n <= 2000; ++n) {
        if (!lasting.launches.begin(r)) abort();
        lasting.ranks[r].begun.store(n);
        lasting.ranks[r].launched.store(n);
        lasting.launches.launched(r);
      }
    });
  }
  threads.emplace_back([&] {
    while (!is_over.load()) {
      const BetweenLaunches section(gate);
      if (!lasting.is_even()) abort();
    }
  });
  for (unsigned c = 0; c < 200; ++c) {
    Launches launches(gate, 2);
    std::array<std::thread, 2> ranks;
    for (size_t r = 0; r < 2; ++r) {
      ranks[r] = std::thread([&, r] {
        std::minstd_rand random(c + static_cast<unsigned>(r));
        while (launches.begin(r)) {
          pause_sometimes(random);
          launches.launched(r);
        }
      });
    }
    std::this_thread::sleep_for(std::chrono::microseconds(200));
    launches.close();
    { const BetweenLaunches ending(gate, Kind::ending); }
    launches.end();
    for (std::thread &rank : ranks)
      rank.join();
  }
  is_over.store(true);
  for (std::thread &thread : threads)
    thread.join();
  assert_int_equal(gate.overdue_sections(), 0);
}

}  // namespace

static int run_all(int, char **) {
  const CMUnitTest tests[] = {
      cmocka_unit_test(a_section_waits_until_all_have_launched),
      cmocka_unit_test(the_first_rank_waits_for_sections),
      cmocka_unit_test(ranks_that_are_ahead_wait_too),
      cmocka_unit_test(sections_do_not_wait_for_each_other),
      cmocka_unit_test(a_section_within_another_does_not_wait),
      cmocka_unit_test(they_take_turns),
      cmocka_unit_test(a_thread_that_owes_goes_on),
      cmocka_unit_test(a_thread_that_comes_to_owe_goes_on),
      cmocka_unit_test(a_clique_that_ends_does_not_count),
      cmocka_unit_test(who_waits_to_begin_hears_of_the_end),
      cmocka_unit_test(waiting_has_bounds),
      cmocka_unit_test(ranks_without_a_thread_are_waited_for_a_moment),
      cmocka_unit_test(no_section_is_within_an_operation),
      cmocka_unit_test(cliques_end_among_sections),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
TEST_SOURCE(run_all)

}  // namespace launch_gate_test
