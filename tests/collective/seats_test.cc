// SPDX-License-Identifier: Apache-2.0
//
// That waiting by placement is right; that it is fast is for the benchmarks.
#include "collective/local/rank_placement.h"

#include <sched.h>

#include <thread>

#include "collective/local/local_group.h"
#include "conformance/group_conformance.h"
#include "testing.h"

namespace tutti::testing::seats_test {

using impl::collective::local::LocalGroup;
using impl::collective::local::RankPlacement;

static constexpr int64_t kRounds = 3000;

/// Two ranks that meet `kRounds` times, by placement alone.
static void meet(RankPlacement &placement) {
  std::atomic<int64_t> progress[2] = {0, 0};
  const auto run = [&](int32_t rank) {
    for (int64_t round = 1; round <= kRounds; ++round) {
      placement.arrive(rank);
      progress[rank].store(round);
      const auto over = [&] { return progress[1 - rank].load() >= round; };
      const auto missing = [&](int32_t r) { return progress[r].load() < round; };
      while (!placement.wait(rank, over, missing)) {
      }
      assert_true(over());
    }
  };
  std::thread other(run, 1);
  run(0);
  other.join();
}

static void test_ranks_meet(void **) {
  RankPlacement placement(2, 20);
  meet(placement);
}

static void test_ranks_meet_without_spinning(void **) {
  RankPlacement placement(2, 0);
  meet(placement);
}

/// Keeps the core that it was made on busy.
class Hog {
 public:
  Hog() : thread_([this] { work(); }) {}
  ~Hog() {
    closing_.store(true);
    thread_.join();
  }

 private:
  void work() {
    const int core = sched_getcpu();
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<size_t>(core), &one);
    (void)sched_setaffinity(0, sizeof one, &one);
    while (!closing_.load()) {
    }
  }

  std::atomic<bool> closing_{false};
  std::thread thread_;
};

static void test_ranks_meet_beside_a_busy_core(void **) {
  const Hog hog;
  RankPlacement placement(2, 20);
  meet(placement);
}

/// Ranks whose threads change are the ranks that they were.
static void test_threads_may_change(void **) {
  RankPlacement placement(2, 20);
  meet(placement);
  meet(placement);
}

static void test_sums_beside_a_busy_core(void **) {
  const Hog hog;
  Groups groups = assert_ok_value(LocalGroup::create(2, 1));
  const std::vector<Status> statuses = run_ranks(groups, [](Group &group) {
    for (int32_t round = 0; round < 2000; ++round) {
      std::vector<float> values(300, static_cast<float>(round + group.rank()));
      void *buffer = values.data();
      const Status status =
          group.all_reduce({&buffer, 1}, 300, impl::tensor::DType::f32, impl::collective::Reduction::sum, "values");
      if (!status.ok()) return status;
      if (values[299] != static_cast<float>(2 * round + 1)) return impl::base::invalid_argument("round ", round);
    }
    return Status();
  });
  for (const Status &status : statuses)
    assert_ok(status);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_ranks_meet),
    cmocka_unit_test(test_ranks_meet_without_spinning),
    cmocka_unit_test(test_ranks_meet_beside_a_busy_core),
    cmocka_unit_test(test_threads_may_change),
    cmocka_unit_test(test_sums_beside_a_busy_core),
};
TEST_MAIN(tests)

}  // namespace tutti::testing::seats_test
