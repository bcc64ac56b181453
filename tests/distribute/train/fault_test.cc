// SPDX-License-Identifier: Apache-2.0
//
// Training under a group that delays, reorders, spoils and aborts: the same bits as under the local group, with many
// buckets under way; after an abort or a cancel at any operation every rank stands at the last complete step and goes
// on from there. Devices without host memory have copies combined on the host, and once more, on emulated GPUs,
// operations that are ordered on their streams.
#include <chrono>
#include <cstring>
#include <thread>

#include "backend/gpu/emulated_streams.h"
#include "base/cancel.h"
#include "collective/fake_group.h"
#include "collective/local/local_group.h"
#include "collective/staged/staged_group.h"
#include "distribute/fault_case.h"
#include "distribute/training_case.h"
#include "distribute/workers/plan_agreement.h"
#include "testing.h"

namespace tutti::testing::fault_test {

namespace base = impl::base;
namespace collective = impl::collective;
using collective::fake::FakeGroup;
using collective::fake::FakeGroupOptions;
using impl::distribute::DeviceChoice;
using impl::distribute::ReplicaGroups;
using impl::distribute::RunReport;
using impl::distribute::Strategy;

/// How operations come to the streams of devices.
struct OnStreams {
  IssueWork issue = nullptr;  // null: they do not, but are of memory of the host
  bool signals_end = true;    // so that nobody waits for devices between reduction and update
};

/// Mirrored over all devices; the first group has these options, later ones run quietly.
class FaultyStrategy : public Strategy {
 public:
  FaultyStrategy(std::vector<DeviceChoice> devices, const FakeGroupOptions &first, OnStreams on_streams)
      : Strategy("faulty", std::move(devices)), first_(first), on_streams_(std::move(on_streams)) {}

  Result<ReplicaGroups> make_groups(std::span<const impl::backend::DeviceRef> devices,
                                    const impl::distribute::GroupOptions &asked) const override {
    FakeGroupOptions options = first_;
    if (made_++ > 0) {
      options.abort_at = -1;
      options.max_delay_us = 20;
    }
    options.issue = on_streams_.issue;
    if (options.issue != nullptr && on_streams_.signals_end) options.alive = asked.alive;
    ReplicaGroups groups;
    TUTTI_ASSIGN(groups.ranks, FakeGroup::create(replica_count(), asked.parts, options));
    if (backend()->has_host_memory() || options.issue != nullptr) return groups;
    TUTTI_ASSIGN(groups.ranks, collective::staged::stage(std::move(groups.ranks), devices));
    return groups;
  }

 private:
  const FakeGroupOptions first_;
  const OnStreams on_streams_;
  mutable int made_ = 0;
};

static StrategyRef faulty(int32_t replicas, const FakeGroupOptions &options, const OnStreams &on_streams) {
  const auto backend = assert_ok_value(open_test_backend(replicas));
  std::vector<DeviceChoice> devices;
  for (int32_t i = 0; i < replicas; ++i)
    devices.push_back({backend, i});
  return std::make_shared<FaultyStrategy>(std::move(devices), options, on_streams);
}

static void check_buckets_under_way(const OnStreams &on_streams) {
  NetworkCase network = clipped_network();
  network.clip = 0;  // the norm is a sum over slices, which depend on the buckets
  for (const int32_t replicas : {2, 3}) {
    for (const int32_t accumulation : {1, 2}) {
      NetworkCase plain = network;
      plain.batch_norm = accumulation == 1;  // global statistics need the whole batch
      const Model used = assert_ok_value(build_network(plain));
      TrainerOptions options;
      options.accumulation = accumulation;
      options.bucket_bytes = 64;
      const auto expected = clean_states(used, replicas, plain, options, 6);
      FakeGroupOptions fault;
      fault.seed = static_cast<uint64_t>(replicas * 10 + accumulation);
      auto trainer = open_trainer(used, faulty(replicas, fault, on_streams), plain, options);
      assert_true(trainer->describe().find("buckets")->integer() >= 4);
      assert_ok(trainer->run(6, nullptr));
      assert_true(state_of(*trainer) == expected[6]);
      // The size of the buckets changes nothing.
      TrainerOptions whole;
      whole.accumulation = accumulation;
      assert_true(clean_states(used, replicas, plain, whole, 6)[6] == expected[6]);
    }
  }
}

static void check_abort_at_any_operation(const OnStreams &on_streams) {
  const NetworkCase network = clipped_network();
  const Model model = assert_ok_value(build_network(network));
  TrainerOptions options;
  options.bucket_bytes = 64;
  const auto expected = clean_states(model, 3, network, options, 4);
  int64_t last_step = 0;
  for (int64_t at = 0; at < 30; ++at) {
    FakeGroupOptions fault;
    fault.abort_at = at;
    fault.max_delay_us = 20;
    auto trainer = open_trainer(model, faulty(3, fault, on_streams), network, options);
    const Result<RunReport> ran = trainer->run(4, nullptr);
    const int64_t step = trainer->step();
    if (ran.ok()) {
      assert_int_equal(step, 4);
    } else {
      assert_contains(ran.status().to_string().c_str(), "injected failure");
      assert_true(step < 4 && step >= last_step);
      last_step = step;
      assert_true(assert_ok_value(trainer->replicas_are_identical()));
      assert_true(state_of(*trainer) == expected[static_cast<size_t>(step)]);
      assert_ok(trainer->run(4 - step, nullptr));
    }
    assert_true(state_of(*trainer) == expected[4]);
  }
  assert_true(last_step >= 1);  // some came in the middle
}

static void check_cancel_of_a_wait(const OnStreams &on_streams) {
  const NetworkCase network = clipped_network();
  const Model model = assert_ok_value(build_network(network));
  TrainerOptions options;
  options.bucket_bytes = 64;
  options.cancel_grace_ms = 20;
  const auto expected = clean_states(model, 2, network, options, 2);
  FakeGroupOptions fault;
  fault.max_delay_us = 60'000'000;  // about a minute for each operation: as good as a peer that hangs
  fault.timeout_ms = 600'000;
  check_cancel_of_a_step(*open_trainer(model, faulty(2, fault, on_streams), network, options), expected);
}

static void test_buckets_under_way(void **) { check_buckets_under_way({}); }
static void test_abort_at_any_operation(void **) { check_abort_at_any_operation({}); }
static void test_cancel_of_a_wait_within_a_step(void **) { check_cancel_of_a_wait({}); }

// ---- on streams -----------------------------------------------------------------------------------------------------

/// Devices are told of an end themselves, or threads wait for them before each update.
static void on_streams(void (*check)(const OnStreams &)) {
  const IssueWork issue = issue_on_emulated_streams();
  if (issue == nullptr) test_skip();
  for (const bool signals_end : {true, false})
    check({issue, signals_end});
}

static void test_buckets_under_way_on_streams(void **) { on_streams(check_buckets_under_way); }
static void test_abort_at_any_operation_on_streams(void **) { on_streams(check_abort_at_any_operation); }
static void test_cancel_of_a_wait_on_streams(void **) { on_streams(check_cancel_of_a_wait); }

// ---- plans --------------------------------------------------------------------------------------------------------

static std::vector<Status> compare_plans(std::vector<std::unique_ptr<collective::Group>> ranks,
                                         const std::vector<uint64_t> &hashes) {
  std::vector<Status> statuses(ranks.size());
  std::vector<std::thread> threads;
  for (size_t r = 0; r < ranks.size(); ++r) {
    threads.emplace_back([&, r] { statuses[r] = impl::distribute::check_same_plan(*ranks[r], hashes[r]); });
  }
  for (std::thread &thread : threads)
    thread.join();
  return statuses;
}

static void test_plans_are_compared(void **) {
  const uint64_t a = 0x8000000000000001u, b = 77;
  for (const bool fake : {false, true}) {
    const auto groups = [&] {
      return fake ? assert_ok_value(FakeGroup::create(3, 2, {}))
                  : assert_ok_value(collective::local::LocalGroup::create(3, 2));
    };
    for (const Status &status : compare_plans(groups(), {a, a, a}))
      assert_ok(status);
    const auto different = compare_plans(groups(), {a, b, a});
    for (size_t r = 0; r < 3; ++r) {
      const std::string text = different[r].to_string();
      assert_int_equal(static_cast<int>(different[r].code()), static_cast<int>(base::Code::failed_precondition));
      assert_contains(text.c_str(), ("rank " + std::to_string(r)).c_str());
      assert_contains(text.c_str(), std::to_string(a).c_str());
      assert_contains(text.c_str(), " 77");
    }
  }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_buckets_under_way),
    cmocka_unit_test(test_abort_at_any_operation),
    cmocka_unit_test(test_cancel_of_a_wait_within_a_step),
    cmocka_unit_test(test_buckets_under_way_on_streams),
    cmocka_unit_test(test_abort_at_any_operation_on_streams),
    cmocka_unit_test(test_cancel_of_a_wait_on_streams),
    cmocka_unit_test(test_plans_are_compared),
};
TEST_MAIN(tests)

}  // namespace tutti::testing::fault_test
