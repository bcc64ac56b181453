// SPDX-License-Identifier: Apache-2.0
//
// The group that tests of others rely on. With the plug-in of the emulated GPU as TUTTI_TEST_BACKEND its operations are
// ordered on streams.
#include "collective/fake_group.h"

#include <atomic>
#include <chrono>
#include <cmath>
#include <thread>

#include "backend/backend.h"
#include "backend/gpu/emulated_streams.h"
#include "collective/on_device.h"
#include "collective/test_devices.h"
#include "conformance/group_conformance.h"
#include "runtime/backend_list.h"
#include "testing.h"

namespace tutti::testing::fake_group_test {

namespace backend = impl::backend;
namespace collective = impl::collective;
using collective::Kind;
using collective::fake::FakeGroup;
using collective::fake::FakeGroupOptions;

static Result<Groups> make_groups(int32_t size, int32_t parts) {
  FakeGroupOptions options;
  options.max_delay_us = 50;
  options.issue = issue_on_emulated_streams();
  TUTTI_ASSIGN(Groups groups, FakeGroup::create(size, parts, options));
  if (options.issue == nullptr) return groups;
  TUTTI_ASSIGN(const auto devices, open_devices(size));
  for (size_t r = 0; r < groups.size(); ++r)
    groups[r] = std::make_unique<OnDevice>(std::move(groups[r]), devices[r]);
  return groups;
}

static void test_injected_abort(void **) {
  FakeGroupOptions options;
  options.abort_at = 2;
  Groups groups = assert_ok_value(FakeGroup::create(2, 1, options));
  const std::vector<Status> statuses = run_ranks(groups, [](Group &group) {
    for (int i = 0; i < 5; ++i)
      TUTTI_TRY(group.barrier("round"));
    return Status();
  });
  for (const Status &status : statuses)
    assert_error_contains(status, "injected failure");
}

static void test_buffers_are_spoiled_between_begin_and_wait(void **) {
  Groups groups = assert_ok_value(group_factory(2, 1));
  RankBuffers buffers(*groups[0], 4);
  Operation operation;
  operation.kind = Kind::all_reduce;
  operation.buffers = buffers.pointers.data();
  operation.count = 4;
  assert_ok(groups[0]->begin(operation));
  assert_true(std::isnan(buffers.values[0][0]));
  groups[0]->abort(impl::base::cancelled("enough"));
}

static void test_streams_are_refused(void **) {
  Groups groups = assert_ok_value(FakeGroup::create(1, 1, {}));
  RankBuffers buffers(*groups[0], 4);
  backend::Stream stream;
  const Operation operation = {
      .kind = Kind::all_reduce, .buffers = buffers.pointers.data(), .count = 4, .stream = &stream};
  assert_error_contains(groups[0]->begin(operation), "lie on a device");
}

// ---- streams --------------------------------------------------------------------------------------------------------

constexpr int64_t kCount = 100;

/// A rank with a stream of its device, a buffer of samples there, and its group. The group goes first.
struct Member {
  backend::DeviceRef device;
  backend::Stream stream;
  backend::Buffer buffer;
  std::vector<float> samples;
  void *pointer = nullptr;
  std::unique_ptr<Group> group;

  Operation operation(Kind kind = Kind::all_reduce) {
    return {.kind = kind, .buffers = &pointer, .count = kCount, .label = "bucket 7", .stream = &stream};
  }
  /// The samples come to the buffer when the stream does.
  Status write() { return buffer.write(0, samples.data(), kCount * 4, &stream); }
  Status issue_read(std::vector<float> &values) {
    values.assign(kCount, 0);
    return buffer.read(0, values.data(), kCount * 4, &stream);
  }
  std::vector<float> read() {
    std::vector<float> values;
    assert_ok(issue_read(values));
    assert_ok(stream.synchronize());
    return values;
  }
};

static std::vector<Member> make_members(int32_t size, FakeGroupOptions options = {}) {
  const auto devices = assert_ok_value(open_devices(size));
  options.issue = issue_on_emulated_streams();
  Groups groups = assert_ok_value(FakeGroup::create(size, 1, options));
  std::vector<Member> members(static_cast<size_t>(size));
  for (size_t r = 0; r < members.size(); ++r) {
    Member &member = members[r];
    member.device = devices[r];
    member.stream = assert_ok_value(devices[r]->create_stream());
    member.buffer = assert_ok_value(devices[r]->allocate(kCount * 4));
    member.pointer = member.buffer.device_pointer();
    member.samples = RankBuffers(*groups[r], kCount).values[0];
    member.group = std::move(groups[r]);
  }
  return members;
}

static std::vector<float> sums(int32_t contributors) {
  std::vector<float> values;
  for (int64_t i = 0; i < kCount; ++i)
    values.push_back(ordered_sum(contributors, i));
  return values;
}

static bool are_spoiled(const std::vector<float> &values) {
  return std::ranges::all_of(values, [](float value) { return std::isnan(value); });
}

/// Keeps a stream from going on until it is opened.
struct Gate {
  const std::shared_ptr<std::atomic<bool>> is_open = std::make_shared<std::atomic<bool>>(false);

  explicit Gate(backend::Stream &stream) {
    issue_on_emulated_streams()(stream, [open = is_open] { return open->load(); });
  }
  ~Gate() { open(); }
  void open() const { is_open->store(true); }
};

static void test_an_operation_takes_what_the_stream_leaves(void **) {
  std::vector<Member> members = make_members(2);
  std::vector<Ticket> tickets;
  {
    const Gate gate(members[1].stream);
    for (Member &member : members) {
      assert_ok(member.write());
      tickets.push_back(assert_ok_value(member.group->begin(member.operation())));
      assert_ok(member.group->wait(tickets.back()));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    assert_ok(members[0].group->error());
  }
  for (Member &member : members)
    assert_true(member.read() == sums(2));
}

/// All of it is issued before the other rank has begun: nothing but the stream waits.
static void test_what_comes_behind_a_wait_finds_the_result(void **) {
  std::vector<Member> members = make_members(2);
  Member &first = members[0], &second = members[1];
  assert_ok(first.write());
  std::vector<float> before, between, behind;
  assert_ok(first.issue_read(before));
  const Ticket ticket = assert_ok_value(first.group->begin(first.operation()));
  assert_ok(first.issue_read(between));
  auto passed = assert_ok_value(first.device->create_event());
  assert_ok(passed.record(first.stream));
  assert_ok(first.group->wait(ticket));
  assert_ok(first.issue_read(behind));
  auto through = assert_ok_value(first.device->create_event());
  assert_ok(through.record(first.stream));

  assert_ok(passed.synchronize());
  assert_true(before == first.samples);
  assert_true(are_spoiled(between));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  assert_false(through.is_done());

  assert_ok(second.write());
  assert_ok(second.group->run(second.operation()));
  assert_ok(first.group->await_done(ticket));
  assert_ok(first.stream.synchronize());
  assert_true(behind == sums(2));
  assert_true(second.read() == sums(2));
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

/// The host sees a sum when it has been awaited, without a word of the stream.
static void test_the_host_waits_for_what_is_done(void **) {
  FakeGroupOptions options;
  options.max_delay_us = 5000;
  std::vector<Member> members = make_members(3, options);
  assert_all_ok(run_members(members, [](Member &member) -> Status {
    for (int round = 0; round < 20; ++round) {
      TUTTI_TRY(member.write());
      TUTTI_ASSIGN(const Ticket ticket, member.group->begin(member.operation()));
      TUTTI_TRY(member.group->wait(ticket));
      TUTTI_TRY(round % 2 == 0 ? member.group->await_done(ticket) : member.group->settle());
      std::vector<float> found(kCount);
      TUTTI_TRY(member.buffer.read(0, found.data(), kCount * 4));
      if (found != sums(3)) return impl::base::internal_error("round ", round, ": not done");
    }
    return Status();
  }));
}

/// Far ahead of the engine, out of order, with words of the host among them, and slices that are gone after wait().
static Status sum_many(Member &member) {
  std::vector<std::vector<float>> found;
  found.reserve(150);
  for (int round = 0; round < 150; ++round) {
    TUTTI_TRY(member.write());
    {
      const std::vector<Slice> slices = even_slices(kCount, member.group->size());
      Operation scattered = member.operation(Kind::reduce_scatter), gathered = member.operation(Kind::all_gather);
      scattered.slices = gathered.slices = slices.data();
      scattered.slice_count = gathered.slice_count = static_cast<int32_t>(slices.size());
      TUTTI_TRY(member.group->run(scattered));
      TUTTI_TRY(member.group->run(gathered));
    }
    found.emplace_back();
    TUTTI_TRY(member.issue_read(found.back()));
    if (round % 40 != 0) continue;
    int64_t word = member.group->rank();
    void *const pointer = &word;
    TUTTI_TRY(member.group->all_reduce({&pointer, 1}, 1, DType::i64, Reduction::max, "word"));
    if (word + 1 != member.group->size()) return impl::base::internal_error("word ", word);
  }
  TUTTI_TRY(member.group->settle());
  TUTTI_TRY(member.stream.synchronize());
  for (const std::vector<float> &values : found)
    if (values != sums(member.group->size())) return impl::base::internal_error("a sum is another one");
  return Status();
}

static void test_threads_go_ahead(void **) {
  std::vector<Member> members = make_members(3);
  assert_all_ok(run_members(members, sum_many));
}

static void test_an_abort_ends_streams(void **) {
  std::atomic<uint8_t> alive{1};
  FakeGroupOptions options;
  options.alive = &alive;
  std::vector<Member> members = make_members(2, options);
  Member &member = members[0];
  assert_true(member.group->signals_end());
  assert_ok(member.write());
  const Ticket ticket = assert_ok_value(member.group->begin(member.operation()));
  assert_ok(member.group->wait(ticket));
  uint8_t seen = 2;
  issue_on_emulated_streams()(member.stream, [&] { return seen = alive.load(), true; });
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  members[1].group->abort(impl::base::data_loss("the disk is gone"));
  assert_true(are_spoiled(member.read()));
  assert_int_equal(seen, 0);
  assert_error_contains(member.group->await_done(ticket), "the disk is gone");
  assert_error_contains(member.group->settle(), "the disk is gone");
  assert_error_contains(member.group->begin(member.operation()), "the disk is gone");
}

static void test_an_operation_that_fails_ends_streams(void **) {
  std::atomic<uint8_t> alive{1};
  FakeGroupOptions options;
  options.alive = &alive;
  options.abort_at = 1;
  options.reorder = false;
  std::vector<Member> members = make_members(2, options);
  std::vector<std::vector<float>> first(2), second(2);
  for (size_t r = 0; r < members.size(); ++r) {
    Member &member = members[r];
    assert_ok(member.write());
    assert_ok(member.group->run(member.operation()));
    assert_ok(member.issue_read(first[r]));
    assert_ok(member.group->run(member.operation()));
    assert_ok(member.issue_read(second[r]));
  }
  for (size_t r = 0; r < members.size(); ++r) {
    assert_ok(members[r].stream.synchronize());
    assert_true(first[r] == sums(2));
    assert_true(are_spoiled(second[r]));
    assert_ok(members[r].group->await_done(0));
    assert_error_contains(members[r].group->await_done(1), "injected failure");
  }
  assert_int_equal(alive.load(), 0);
}

static void test_a_rank_that_does_not_come_is_named(void **) {
  FakeGroupOptions options;
  options.timeout_ms = 50;
  std::vector<Member> members = make_members(2, options);
  const Ticket ticket = assert_ok_value(members[0].group->begin(members[0].operation()));
  assert_ok(members[0].group->wait(ticket));
  const Gate gate(members[1].stream);  // it begins, but its device does not come
  const Ticket late = assert_ok_value(members[1].group->begin(members[1].operation()));
  assert_ok(members[1].group->wait(late));
  assert_error_contains(members[0].group->await_done(ticket), "rank 0 waited 50 ms for rank 1");
  assert_ok(members[0].stream.synchronize());
}

/// Who comes later finds the group dead: nothing is done any more in memory of who has gone.
static void test_a_rank_that_goes_is_missed(void **) {
  FakeGroupOptions options;
  options.timeout_ms = 50;
  std::vector<Member> members = make_members(2, options);
  assert_ok(members[0].group->begin(members[0].operation()));
  members[0].group.reset();
  assert_error_contains(members[1].group->begin(members[1].operation()), "rank 0 waited 50 ms for rank 1");
}

static void test_memory_is_left_alone_afterwards(void **) {
  std::vector<Member> members = make_members(2);
  Member &member = members[0];
  assert_ok(member.write());
  const Gate gate(member.stream);
  assert_ok(member.group->begin(member.operation()));
  members[1].group->abort(impl::base::cancelled("enough"));
  for (Member &each : members)
    each.group.reset();
  gate.open();
  assert_true(member.read() == member.samples);
}

static const struct CMUnitTest tests[] = {
    TUTTI_GROUP_CONFORMANCE_TESTS,
    cmocka_unit_test(test_injected_abort),
    cmocka_unit_test(test_buffers_are_spoiled_between_begin_and_wait),
    cmocka_unit_test(test_streams_are_refused),
};
static const struct CMUnitTest stream_tests[] = {
    TUTTI_GROUP_CONFORMANCE_TESTS,
    cmocka_unit_test(test_an_operation_takes_what_the_stream_leaves),
    cmocka_unit_test(test_what_comes_behind_a_wait_finds_the_result),
    cmocka_unit_test(test_the_host_waits_for_what_is_done),
    cmocka_unit_test(test_threads_go_ahead),
    cmocka_unit_test(test_an_abort_ends_streams),
    cmocka_unit_test(test_an_operation_that_fails_ends_streams),
    cmocka_unit_test(test_a_rank_that_does_not_come_is_named),
    cmocka_unit_test(test_a_rank_that_goes_is_missed),
    cmocka_unit_test(test_memory_is_left_alone_afterwards),
};
static int run_all(int, char **) {
  group_factory = make_groups;
  if (issue_on_emulated_streams() != nullptr) return cmocka_run_group_tests(stream_tests, nullptr, nullptr);
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
TEST_SOURCE(run_all)

}  // namespace tutti::testing::fake_group_test
