// SPDX-License-Identifier: Apache-2.0
//
// Training on connected devices of which one hangs or fails at any operation: the error names it, every replica stands
// at the last complete step, and the next run goes on from there. On emulated GPUs.
#include <array>
#include <cstdlib>
#include <numeric>
#include <optional>
#include <vector>

#include "distribute/fault_case.h"
#include "distribute/training_case.h"
#include "testing.h"

namespace tutti::testing::device_fault_test {

namespace base = impl::base;
using impl::backend::Level;
using impl::distribute::RunReport;

/// A trainer whose first groups have this fault; later ones have none.
static std::unique_ptr<Trainer> open_faulty(const std::string &fault, const Model &model, int32_t replicas,
                                            const NetworkCase &network, const TrainerOptions &options) {
  setenv("TUTTI_EMULATED_NCCL", fault.c_str(), 1);
  auto trainer = open_trainer(model, assert_ok_value(make_test_strategy(replicas)), network, options);
  unsetenv("TUTTI_EMULATED_NCCL");
  return trainer;
}

static std::string group_of(Trainer &trainer) { return trainer.describe().find("group")->string(); }

/// Runs over many small buckets of which one operation fails.
struct FaultRuns {
  explicit FaultRuns(int64_t timeout_ms) : timeout_ms(timeout_ms) {
    TrainerOptions patient = options();
    patient.collective_timeout_ms = 60000;
    expected = clean_states(model, 3, network, patient, 3);
  }

  TrainerOptions options() const {
    TrainerOptions options;
    options.bucket_bytes = 64;
    options.collective_timeout_ms = timeout_ms;
    return options;
  }

  /// The last complete step of a run of three whose operation number `at` fails; nullopt if it has fewer operations.
  /// `text` is in the error.
  std::optional<int64_t> last_step(const std::string &kind, int64_t at, const char *text) const {
    const auto trainer = open_faulty(kind + " 1 " + std::to_string(at), model, 3, network, options());
    assert_string_equal(group_of(*trainer).c_str(), "connected devices");
    const Result<RunReport> ran = trainer->run(3, nullptr);
    const int64_t step = trainer->step();
    assert_true(step >= 0 && step <= 3);
    assert_int_equal(trainer->loss_history().size(), step);
    assert_int_equal(trainer->counters().steps, step);
    assert_true(assert_ok_value(trainer->replicas_are_identical()));
    assert_true(state_of(*trainer) == expected[static_cast<size_t>(step)]);
    if (ran.ok()) {
      assert_int_equal(step, 3);
      return std::nullopt;
    }
    assert_contains(ran.status().to_string().c_str(), text);
    if (step < 3) assert_ok(trainer->run(3 - step, nullptr));
    assert_true(state_of(*trainer) == expected[3]);
    return step;
  }

  /// How many runs ended at each step, of those in which every `every`-th operation fails.
  std::array<int64_t, 4> ends(const std::string &kind, int64_t every, const char *text) const {
    std::array<int64_t, 4> ends{};
    for (int64_t at = 0;; at += every) {
      const std::optional<int64_t> step = last_step(kind, at, text);
      if (!step) return ends;
      ++ends[static_cast<size_t>(*step)];
    }
  }

  int64_t timeout_ms;
  NetworkCase network = clipped_network();
  Model model = assert_ok_value(build_network(network));
  std::vector<State> expected;  ///< After each step of a run without faults.
};

constexpr const char *kRemoteError = "NCCL says remote process exited";
constexpr const char *kTimeout = "ms in all_reduce '";

/// Where the runs of three steps end of which one operation fails, each of them once.
static const std::array<int64_t, 4> &ends_of_errors() {
  static std::optional<std::array<int64_t, 4>> ends;
  if (!ends) ends = FaultRuns(60000).ends("error", 1, kRemoteError);
  return *ends;
}

static void test_an_error_at_any_operation(void **) {
  const auto &ends = ends_of_errors();
  assert_true(ends[0] > 0 && ends[1] > 0);
  assert_int_equal(ends[3], 0);
}

static void test_a_device_that_hangs_at_any_operation(void **) {
  const auto ends = FaultRuns(1000).ends("stall", 7, kTimeout);
  assert_true(ends[0] > 0 && ends[1] > 0 && ends[2] > 0);
  assert_int_equal(ends[3], 0);
}

/// Behind the last operation of a step, which is done on all devices but one, the others make their update; that one
/// gets it, too. The timeout is long enough that no other work takes it on a busy machine.
static void test_a_device_that_is_late_where_a_step_ends(void **) {
  const auto &ends = ends_of_errors();
  const int64_t all = std::accumulate(ends.begin(), ends.end(), int64_t{0});
  const int64_t operations = all / 3;  // of one step
  assert_true(operations > 3 && all % 3 == 0);
  const FaultRuns runs(4000);
  for (const int64_t at : {int64_t{1}, operations - 2, operations - 1, operations, all - 2}) {
    const int64_t whole_steps = (at + 1) / operations;
    assert_true(runs.last_step("late", at, kTimeout) == whole_steps);
  }
  assert_true(runs.last_step("late", all - 1, kTimeout) == 3);
  assert_true(!runs.last_step("late", all, kTimeout));
}

static void test_cancel_while_a_device_hangs(void **) {
  const NetworkCase network = clipped_network();
  const Model model = assert_ok_value(build_network(network));
  TrainerOptions options;
  options.bucket_bytes = 64;
  options.cancel_grace_ms = 20;
  const auto expected = clean_states(model, 2, network, options, 2);
  check_cancel_of_a_step(*open_faulty("stall 0 2", model, 2, network, options), expected);
}

/// Buckets, micro-batches and odd batches of changing size over connected devices, against the host's group.
static void test_shapes_change(void **) {
  NetworkCase network;
  network.optimizer = Optimizer::adam;
  const Model model = assert_ok_value(build_network(network));
  RunCase run;
  run.replicas = 3;
  run.rows = 23;
  run.batch = 5;
  run.passes = 2;
  run.options.accumulation = 2;
  run.options.bucket_bytes = 64;
  const Trained connected = assert_ok_value(train(model, run, network));
  setenv("TUTTI_GROUP", "staged", 1);
  const Trained staged = assert_ok_value(train(model, run, network));
  unsetenv("TUTTI_GROUP");
  assert_true(connected.replicas_identical && staged.replicas_identical);
  assert_true(relative_difference(connected, staged) <= 1e-5);
}

static void test_which_group_is_taken(void **) {
  const NetworkCase network;
  const Model model = assert_ok_value(build_network(network));
  const auto open = [&](Level level, int32_t replicas) {
    TrainerOptions options;
    options.level = level;
    return group_of(*open_trainer(model, assert_ok_value(make_test_strategy(replicas)), network, options));
  };
  assert_string_equal(open(Level::fast, 2).c_str(), "connected devices");
  assert_string_equal(open(Level::repeatable, 2).c_str(), "connected devices");
  assert_contains(open(Level::invariant, 2).c_str(), "copies on the host: level invariant");
  assert_contains(open(Level::fast, 5).c_str(), "are both on GPU 0");  // five devices on four GPUs
  assert_string_equal(open(Level::fast, 1).c_str(), "host memory");
  assert_contains(group_of(*open_faulty("missing", model, 2, network, {})).c_str(), "there is no emulated NCCL");
  setenv("TUTTI_GROUP", "staged", 1);
  assert_contains(open(Level::fast, 2).c_str(), "TUTTI_GROUP");
  const auto fails = [&](int32_t replicas, const char *text) {
    assert_error_contains(Trainer::open(model, assert_ok_value(make_test_strategy(replicas)), {}), text);
  };
  setenv("TUTTI_GROUP", "device", 1);
  fails(5, "are both on GPU 0");
  setenv("TUTTI_GROUP", "gossip", 1);
  fails(2, "expected \"staged\" or \"device\"");
  unsetenv("TUTTI_GROUP");
  TrainerOptions options;
  const auto with = [&](impl::distribute::AllReduceChoice choice, int32_t replicas) {
    options.all_reduce = choice;
    return group_of(*open_trainer(model, assert_ok_value(make_test_strategy(replicas)), network, options));
  };
  using impl::distribute::AllReduceChoice;
  assert_string_equal(with(AllReduceChoice::device, 2).c_str(), "connected devices, as all_reduce asks");
  assert_string_equal(with(AllReduceChoice::ring, 2).c_str(), "copies on the host: ring, as all_reduce asks");
  // GPUs 0 and 1 are connected, and 2 and 3.
  assert_contains(with(AllReduceChoice::hierarchical, 4).c_str(),
                  "nodes emulated:0 emulated:1 | emulated:2 emulated:3");
  options.all_reduce = AllReduceChoice::device;
  assert_error_contains(Trainer::open(model, assert_ok_value(make_test_strategy(5)), options), "are both on GPU 0");
  assert_error_contains(Trainer::open(model, assert_ok_value(make_test_strategy(5)), options),
                        "automatic, host, ring, hierarchical and reduce_to_one do not need them");
  setenv("TUTTI_EMULATED_NCCL", "refuse", 1);
  fails(2, "connecting devices: NCCL says");
  unsetenv("TUTTI_EMULATED_NCCL");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_which_group_is_taken),
    cmocka_unit_test(test_shapes_change),
    cmocka_unit_test(test_an_error_at_any_operation),
    cmocka_unit_test(test_a_device_that_hangs_at_any_operation),
    cmocka_unit_test(test_a_device_that_is_late_where_a_step_ends),
    cmocka_unit_test(test_cancel_while_a_device_hangs),
};
TEST_MAIN(tests)

}  // namespace tutti::testing::device_fault_test
