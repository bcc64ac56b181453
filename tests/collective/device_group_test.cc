// SPDX-License-Identifier: Apache-2.0
//
// Groups of connected devices: what every group must do, that all ranks or none pass a settled point, and that whatever
// keeps a device from its end becomes an error that names it. On emulated GPUs, whose NCCL is ordered to fail; with
// TUTTI_TEST_REAL_GPUS on those of this machine, two to four of them, without what an NCCL must be ordered to do.
#include "collective/device/device_group.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "backend/backend.h"
#include "base/text.h"
#include "collective/local/local_group.h"
#include "collective/on_device.h"
#include "collective/test_devices.h"
#include "conformance/group_conformance.h"
#include "gpus_needed.h"
#include "runtime/backend_list.h"
#include "testing.h"

namespace tutti::testing::device_group_test {

namespace backend = impl::backend;
namespace base = impl::base;
namespace collective = impl::collective;
using collective::Kind;
using collective::device::DeviceGroupOptions;
using collective::local::LocalGroup;

static bool has_real_gpus() { return std::getenv("TUTTI_TEST_REAL_GPUS") != nullptr; }

/// What a real NCCL begins with takes longer than the whole of an operation of the emulated one.
static int64_t short_ms() { return has_real_gpus() ? 5000 : 300; }

/// So many ranks, or as many as there are GPUs.
static int32_t ranks(int32_t wanted) { return std::min(wanted, group_traits.most_ranks); }

/// While it lives, connected devices have this fault.
class Fault {
 public:
  explicit Fault(const char *text) { setenv("TUTTI_EMULATED_NCCL", text, 1); }
  ~Fault() { unsetenv("TUTTI_EMULATED_NCCL"); }
};

/// A rank with a stream of its device, a buffer there, and its group. The group goes first.
struct Member {
  backend::DeviceRef device;
  backend::Stream stream;
  backend::Buffer buffer;
  std::unique_ptr<Group> group;
  void *pointer = nullptr;

  /// An all_reduce of `count` samples that lie on the device.
  Operation sum(int64_t count) {
    pointer = buffer.device_pointer();
    Operation operation;
    operation.kind = Kind::all_reduce;
    operation.buffers = &pointer;
    operation.count = count;
    operation.label = "bucket 7";
    operation.stream = &stream;
    return operation;
  }
  Status write(int64_t count) {
    const RankBuffers samples(*group, count);
    TUTTI_TRY(buffer.write(0, samples.pointers[0], count * 4, &stream));
    return stream.synchronize();
  }
  Result<std::vector<float>> read(int64_t count) {
    std::vector<float> values(static_cast<size_t>(count));
    TUTTI_TRY(buffer.read(0, values.data(), count * 4, &stream));
    TUTTI_TRY(stream.synchronize());
    return values;
  }
};

constexpr int64_t kCount = 300;

static Result<std::vector<Member>> connect(int32_t size, int64_t timeout_ms = 60000) {
  TUTTI_ASSIGN(const auto devices, open_devices(size));
  collective::local::LocalGroupOptions on_host;
  on_host.timeout_ms = timeout_ms;
  DeviceGroupOptions options;
  options.timeout_ms = timeout_ms;
  TUTTI_ASSIGN(Groups groups, LocalGroup::create(size, 1, on_host));
  TUTTI_ASSIGN(groups, collective::device::connect(std::move(groups), devices, options));
  std::vector<Member> members(static_cast<size_t>(size));
  for (size_t r = 0; r < members.size(); ++r) {
    members[r].device = devices[r];
    TUTTI_ASSIGN(members[r].stream, devices[r]->create_stream());
    TUTTI_ASSIGN(members[r].buffer, devices[r]->allocate(kCount * 4));
    members[r].group = std::move(groups[r]);
  }
  return members;
}

static std::vector<Status> run_members(std::vector<Member> &members, const std::function<Status(Member &)> &body) {
  std::vector<Status> statuses(members.size());
  std::vector<std::thread> threads;
  for (size_t r = 0; r < members.size(); ++r)
    threads.emplace_back([&, r] { statuses[r] = body(members[r]); });
  for (std::thread &thread : threads)
    thread.join();
  return statuses;
}

static Status sum_and_settle(Member &member) {
  TUTTI_TRY(member.write(kCount));
  TUTTI_TRY(member.group->run(member.sum(kCount)));
  return member.group->settle();
}

static Result<Groups> make_groups(int32_t size, int32_t) {
  TUTTI_ASSIGN(const auto devices, open_devices(size));
  TUTTI_ASSIGN(Groups groups, LocalGroup::create(size, 1));
  TUTTI_ASSIGN(groups, collective::device::connect(std::move(groups), devices, {}));
  for (size_t r = 0; r < groups.size(); ++r)
    groups[r] = std::make_unique<OnDevice>(std::move(groups[r]), devices[r]);
  return groups;
}

static void test_all_ranks_get_the_same_bits(void **) {
  auto members = assert_ok_value(connect(ranks(3)));
  assert_all_ok(run_members(members, sum_and_settle));
  const auto first = assert_ok_value(members[0].read(kCount));
  bool is_ordered = true;
  for (int64_t i = 0; i < kCount; ++i) {
    const float expected = ordered_sum(ranks(3), i);
    assert_ok(differs_from_sum("sum", i, first[static_cast<size_t>(i)], expected));
    is_ordered = is_ordered && first[static_cast<size_t>(i)] == expected;
  }
  assert_true(has_real_gpus() || !is_ordered);  // else the emulated NCCL proves less than it should
  for (Member &member : members)
    assert_true(assert_ok_value(member.read(kCount)) == first);
}

/// What is issued after wait() finds the sums, and the thread does not wait: hundreds of operations in a row, and words
/// in memory of the host among them.
static void test_streams_wait(void **) {
  const int32_t size = ranks(4);
  auto members = assert_ok_value(connect(size));
  assert_all_ok(run_members(members, [size](Member &member) -> Status {
    for (int round = 0; round < 300; ++round) {
      const std::vector<float> ones(kCount, static_cast<float>(round));
      TUTTI_TRY(member.buffer.write(0, ones.data(), kCount * 4, &member.stream));
      const Operation sums = member.sum(kCount);
      TUTTI_ASSIGN(const Ticket first, member.group->begin(sums));
      TUTTI_TRY(member.group->wait(first));
      TUTTI_TRY(member.group->run(sums));
      int64_t word = member.group->rank() + round;
      void *const pointer = &word;
      if (round % 50 == 0) {
        TUTTI_TRY(member.group->all_reduce({&pointer, 1}, 1, DType::i64, Reduction::max, "word"));
        if (word != size - 1 + round) return base::internal_error("word ", word, " in round ", round);
      }
      if (round % 100 != 99) {
        TUTTI_TRY(member.stream.synchronize());  // the source of the copy goes
        continue;
      }
      TUTTI_TRY(member.group->settle());
      TUTTI_ASSIGN(const std::vector<float> values, member.read(kCount));
      TUTTI_TRY(differs("sum", round, values[17], static_cast<float>(size * size * round)));
    }
    return Status();
  }));
}

static void test_run_ahead(void **) {
  auto members = assert_ok_value(connect(2));
  assert_all_ok(run_members(members, [](Member &member) -> Status {
    TUTTI_TRY(member.write(kCount));
    for (int64_t i = 0; i < 6 * collective::max_pending_operations; ++i) {
      Operation largest = member.sum(kCount);
      largest.reduction = Reduction::max;
      TUTTI_TRY(member.group->run(largest));
    }
    return member.group->settle();
  }));
  const auto values = assert_ok_value(members[1].read(kCount));
  for (int64_t i = 0; i < kCount; ++i)
    assert_true(values[static_cast<size_t>(i)] == std::max(sample(0, i), sample(1, i)));
}

/// Has begun `count` operations more, on memory of devices or none.
static Status begin_more(Member &member, int64_t count, bool on_device, Ticket &last) {
  for (int64_t i = 0; i < count; ++i) {
    TUTTI_ASSIGN(last, member.group->begin(on_device ? member.sum(kCount) : Operation{.label = "word"}));
  }
  return Status();
}

constexpr int64_t kMost = collective::max_pending_operations;

/// An operation whose place in the ring another has taken is waited for all the same.
static void test_one_that_is_not_done_keeps_its_place(void **) {
  auto members = assert_ok_value(connect(2));
  assert_all_ok(run_members(members, sum_and_settle));
  std::atomic<bool> has_come{false};
  assert_all_ok(run_members(members, [&](Member &member) -> Status {
    const bool is_late = member.group->rank() == 1;
    if (is_late) std::this_thread::sleep_for(std::chrono::milliseconds(200));
    if (is_late) has_come = true;
    TUTTI_ASSIGN(const Ticket first, member.group->begin(member.sum(kCount)));
    Ticket last = first;
    TUTTI_TRY(begin_more(member, kMost - 1, false, last));
    TUTTI_TRY(member.group->wait(first));
    TUTTI_TRY(begin_more(member, 1, false, last));
    TUTTI_TRY(member.group->await_done(first));
    if (!has_come) return base::internal_error("the device has done what rank 1 had not begun");
    TUTTI_TRY(member.group->wait(last));
    return member.group->settle();
  }));
}

/// Nobody waits for a later operation than it says, whoever has its place.
static void test_a_wait_is_for_no_later_operation(void **) {
  auto members = assert_ok_value(connect(2, 3000));
  assert_all_ok(run_members(members, sum_and_settle));
  std::atomic<bool> has_passed{false};
  assert_all_ok(run_members(members, [&](Member &member) -> Status {
    TUTTI_ASSIGN(const Ticket first, member.group->begin(member.sum(kCount)));
    Ticket last = first;
    TUTTI_TRY(begin_more(member, kMost - 1, true, last));
    if (member.group->rank() == 1) {
      while (!has_passed && member.group->error().ok())
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    TUTTI_TRY(member.group->wait(first + kMost / 2 - 1));
    TUTTI_TRY(begin_more(member, kMost / 2, true, last));
    TUTTI_TRY(member.group->wait(first + kMost / 2));
    if (member.group->rank() == 0) has_passed = true;
    TUTTI_TRY(member.group->wait(last));
    return member.group->settle();
  }));
}

static void test_slices_of_any_length(void **) {
  const int32_t size = ranks(3);
  auto members = assert_ok_value(connect(size));
  const std::vector<Slice> uneven = {{3, 10, size - 1}, {10, 10, 0}, {11, 200, 0}, {201, 300, 1}};
  for (const bool even : {false, true}) {
    const std::vector<Slice> slices = even ? even_slices(kCount, size) : uneven;
    assert_all_ok(run_members(members, [&](Member &member) -> Status {
      TUTTI_TRY(member.write(kCount));
      Operation operation = member.sum(kCount);
      operation.slices = slices.data();
      operation.slice_count = static_cast<int32_t>(slices.size());
      operation.kind = Kind::reduce_scatter;
      TUTTI_TRY(member.group->run(operation));
      operation.kind = Kind::all_gather;
      TUTTI_TRY(member.group->run(operation));
      TUTTI_TRY(member.group->settle());
      TUTTI_ASSIGN(const std::vector<float> values, member.read(kCount));
      for (const Slice &slice : slices) {
        for (int64_t i = slice.begin; i < slice.end; ++i)
          TUTTI_TRY(differs_from_sum("slice", i, values[static_cast<size_t>(i)], ordered_sum(size, i)));
      }
      return Status();
    }));
  }
}

// ---- faults -------------------------------------------------------------------------------------------------------

static void assert_code(const Status &status, base::Code code) {
  assert_int_equal(static_cast<int>(status.code()), static_cast<int>(code));
}

/// After one rank has found out, all others know, and streams that waited end.
static void assert_all_fail(std::vector<Member> &members, const std::vector<Status> &statuses, const char *text) {
  for (size_t r = 0; r < members.size(); ++r) {
    assert_false(statuses[r].ok());
    assert_error_contains(statuses[r], text);
    assert_false(members[r].group->begin(members[r].sum(kCount)).ok());
    assert_ok(members[r].stream.synchronize());
  }
}

static void test_a_rank_that_does_not_come_is_named(void **) {
  // In its first operation NCCL still connects, later a device waits.
  for (const int before : {0, 2}) {
    auto members = assert_ok_value(connect(ranks(3), short_ms()));
    const auto statuses = run_members(members, [&](Member &member) -> Status {
      for (int i = 0; i < before; ++i)
        TUTTI_TRY(sum_and_settle(member));
      if (member.group->rank() == 1) {
        std::this_thread::sleep_for(std::chrono::milliseconds(short_ms() * 3 / 2));
        return member.group->error();
      }
      return sum_and_settle(member);
    });
    const std::string expected = base::concat(short_ms(), " ms in all_reduce 'bucket 7' for rank 1");
    assert_all_fail(members, statuses, expected.c_str());
    bool is_deadline = false;
    for (const Status &status : statuses)
      is_deadline = is_deadline || status.code() == base::Code::deadline_exceeded;
    assert_true(is_deadline);
  }
}

static void test_a_device_that_hangs(void **) {
  const Fault fault("stall 1 3");
  auto members = assert_ok_value(connect(2, 300));
  const auto statuses = run_members(members, [](Member &member) -> Status {
    for (;;)
      TUTTI_TRY(sum_and_settle(member));
  });
  assert_all_fail(members, statuses, "for the devices: all ranks have begun it");
}

static void test_an_error_of_the_library(void **) {
  const Fault fault("error 1 2");
  auto members = assert_ok_value(connect(3));
  const auto statuses = run_members(members, [](Member &member) -> Status {
    for (;;)
      TUTTI_TRY(sum_and_settle(member));
  });
  assert_all_fail(members, statuses, "NCCL says remote process exited");
}

static void test_cancel_ends_a_wait_for_devices(void **) {
  auto members = assert_ok_value(connect(2));
  const auto token = base::CancelToken::create();
  members[0].group->set_cancel(token.get());
  std::thread canceller([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    token->cancel();
  });
  const Status status = sum_and_settle(members[0]);
  canceller.join();
  assert_code(status, base::Code::cancelled);
  assert_code(members[1].group->error(), base::Code::aborted);
  assert_ok(members[0].stream.synchronize());
}

static void test_a_group_that_is_dropped(void **) {
  auto members = assert_ok_value(connect(2, has_real_gpus() ? short_ms() : 100));
  assert_ok(members[0].write(kCount));
  assert_ok(members[0].group->begin(members[0].sum(kCount)).status());
  members[0].group.reset();
  assert_error_contains(members[1].group->error(), "for rank 1");
}

static void test_disagreement_is_found_before_taking_part(void **) {
  auto members = assert_ok_value(connect(2));
  const auto statuses = run_members(members, [](Member &member) -> Status {
    TUTTI_TRY(member.group->run(member.sum(10 + member.group->rank())));
    return member.group->settle();
  });
  assert_all_fail(members, statuses, "elements where rank");
}

static void test_what_cannot_be_connected(void **) {
  const auto devices = assert_ok_value(open_devices(2));
  assert_ok(collective::device::check(devices, 1, {}));
  assert_error_contains(collective::device::check(devices, 2, {}), "2 logical replicas");
  assert_error_contains(collective::device::connect(assert_ok_value(LocalGroup::create(3)), devices, {}),
                        "3 ranks on 2");
  {
    const Fault fault("missing");
    assert_error_contains(collective::device::check(devices, 1, {}), "there is no emulated NCCL");
  }
  {
    const Fault fault("refuse");
    assert_error_contains(collective::device::connect(assert_ok_value(LocalGroup::create(2)), devices, {}),
                          "connecting devices: NCCL says an emulated error: as ordered");
  }
  {
    const Fault fault("busy");
    DeviceGroupOptions options;
    options.timeout_ms = 50;
    const auto status = collective::device::connect(assert_ok_value(LocalGroup::create(2)), devices, options).status();
    assert_code(status, base::Code::deadline_exceeded);
    assert_error_contains(status, "rank 0 (GPU 0) was not ready in time");
  }
  const auto five = assert_ok_value(open_devices(5));  // on four GPUs
  const Status twice = collective::device::check(five, 1, {});
  assert_code(twice, base::Code::unimplemented);
  assert_error_contains(twice, "emulated:0 and emulated:4 are both on GPU 0");
  const auto reference = assert_ok_value(impl::runtime::open_backend("reference", "{}", {}));
  const std::vector<backend::DeviceRef> none = {assert_ok_value(reference->open_device(0))};
  assert_error_contains(collective::device::check(none, 1, {}), "'reference' cannot connect its devices");
}

/// Whatever their number.
static void test_devices_on_one_gpu_are_not_connected(void **) {
  const auto devices = assert_ok_value(open_devices(gpus_of(std::getenv("TUTTI_TEST_BACKEND")) + 1));
  const Status twice = collective::device::check(devices, 1, {});
  assert_code(twice, base::Code::unimplemented);
  assert_error_contains(twice, "are both on GPU 0");
}

/// Logical device 4 is on the GPU of device 0; GPUs 0 and 1 are connected, and 2 and 3.
static void test_devices_say_whom_they_reach(void **) {
  const auto devices = assert_ok_value(open_devices(5));
  const std::vector<std::vector<std::string>> expected = {{"emulated:1", "emulated:4"},
                                                          {"emulated:0", "emulated:4"},
                                                          {"emulated:3"},
                                                          {"emulated:2"},
                                                          {"emulated:0", "emulated:1"}};
  const std::vector<std::vector<std::string>> linked_to = {
      {"emulated:1"}, {"emulated:0", "emulated:4"}, {"emulated:3"}, {"emulated:2"}, {"emulated:1"}};
  for (size_t d = 0; d < devices.size(); ++d) {
    const auto description = assert_ok_value(devices[d]->backend().describe_device(static_cast<int32_t>(d)));
    assert_true(description.reaches == expected[d]);
    std::vector<std::string> linked;
    for (const backend::DeviceLink &link : description.links) {
      linked.push_back(link.device);
      assert_true(link.rank == 0 && link.has_atomics);
    }
    assert_true(linked == linked_to[d]);
    assert_string_equal(description.pci.c_str(), base::concat(getpid(), ":", d % 4).c_str());
    assert_int_equal(description.numa_node, -1);
  }
}

/// Those for which it is enough that a library does what it does.
#define TESTS_OF_ANY_LIBRARY                                                                                 \
  TUTTI_GROUP_CONFORMANCE_TESTS, cmocka_unit_test(test_all_ranks_get_the_same_bits),                         \
      cmocka_unit_test(test_streams_wait), cmocka_unit_test(test_run_ahead),                                 \
      cmocka_unit_test(test_one_that_is_not_done_keeps_its_place),                                           \
      cmocka_unit_test(test_a_wait_is_for_no_later_operation), cmocka_unit_test(test_slices_of_any_length),  \
      cmocka_unit_test(test_a_rank_that_does_not_come_is_named),                                             \
      cmocka_unit_test(test_cancel_ends_a_wait_for_devices), cmocka_unit_test(test_a_group_that_is_dropped), \
      cmocka_unit_test(test_disagreement_is_found_before_taking_part),                                       \
      cmocka_unit_test(test_devices_on_one_gpu_are_not_connected)

static const CMUnitTest tests[] = {
    TESTS_OF_ANY_LIBRARY,
    cmocka_unit_test(test_a_device_that_hangs),
    cmocka_unit_test(test_an_error_of_the_library),
    cmocka_unit_test(test_what_cannot_be_connected),
    cmocka_unit_test(test_devices_say_whom_they_reach),
};

static const CMUnitTest tests_of_real_gpus[] = {TESTS_OF_ANY_LIBRARY};

static int run_all(int, char **) {
  group_factory = make_groups;
  group_traits = {.most_parts = 1, .adds_in_order = false, .gathers = false};
  if (!has_real_gpus()) return cmocka_run_group_tests(tests, nullptr, nullptr);
  if (!has_enough_gpus(std::getenv("TUTTI_TEST_BACKEND"), 2)) return 77;
  group_traits.most_ranks = std::min(4, gpus_of(std::getenv("TUTTI_TEST_BACKEND")));
  return cmocka_run_group_tests(tests_of_real_gpus, nullptr, nullptr);
}
TEST_SOURCE(run_all)

}  // namespace tutti::testing::device_group_test
