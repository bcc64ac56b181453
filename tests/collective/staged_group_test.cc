// SPDX-License-Identifier: Apache-2.0
//
// What every group must do, with buffers in memory of devices (lazy_backend.h: streams do their work as late as can
// be), and operations on the host's memory among them.
#include "collective/staged/staged_group.h"

#include "backend/backend.h"
#include "backend/lazy_backend.h"
#include "collective/fake_group.h"
#include "collective/local/local_group.h"
#include "collective/on_device.h"
#include "conformance/group_conformance.h"
#include "testing.h"

namespace tutti::testing::staged_group_test {

namespace backend = impl::backend;
namespace collective = impl::collective;
using collective::Kind;

static Result<std::vector<backend::DeviceRef>> lazy_devices(int32_t count, bool has_transfers = true) {
  LazySettings settings;
  settings.has_host_memory = false;
  settings.late = Late::everything;
  settings.has_transfers = has_transfers;
  return open_lazy_devices(count, std::move(settings));
}

static Result<Groups> make_groups(int32_t size, int32_t parts) {
  TUTTI_ASSIGN(const auto devices, lazy_devices(size));
  TUTTI_ASSIGN(Groups inner, collective::local::LocalGroup::create(size, parts));
  TUTTI_ASSIGN(Groups groups, collective::staged::stage(std::move(inner), devices));
  for (size_t r = 0; r < groups.size(); ++r)
    groups[r] = std::make_unique<OnDevice>(std::move(groups[r]), devices[r]);
  return groups;
}

/// Sums of buckets in memory of a device while words are combined in that of the host, all under way together; the
/// group below carries them out out of order and spoils what may not be read.
static void test_memory_of_hosts_and_devices(void **) {
  constexpr int64_t kCount = 300;
  const auto devices = assert_ok_value(lazy_devices(3));
  Groups groups = assert_ok_value(collective::fake::FakeGroup::create(3, 2, {}));
  groups = assert_ok_value(collective::staged::stage(std::move(groups), devices));
  assert_all_ok(run_ranks(groups, [&](Group &group) {
    const backend::DeviceRef &device = devices[static_cast<size_t>(group.rank())];
    TUTTI_ASSIGN(backend::Stream stream, device->create_stream());
    for (int64_t round = 0; round < 10; ++round) {
      RankBuffers from(group, kCount), to(group, kCount);
      std::vector<int64_t> words(2, group.rank() * 2 + round);
      std::vector<void *> word_pointers = {&words[0], &words[1]}, pointers;
      std::vector<backend::Buffer> buffers;
      for (void *part : from.pointers) {
        TUTTI_ASSIGN(backend::Buffer buffer, device->allocate(kCount * 4));
        TUTTI_TRY(buffer.write(0, part, kCount * 4, &stream));
        pointers.push_back(buffer.device_pointer());
        buffers.push_back(std::move(buffer));
      }
      Operation sums, largest;
      sums.kind = largest.kind = Kind::all_reduce;
      sums.buffers = pointers.data();
      sums.count = kCount;
      sums.stream = &stream;
      largest.reduction = Reduction::max;
      largest.dtype = DType::i64;
      largest.buffers = word_pointers.data();
      largest.count = 1;
      TUTTI_TRY(group.begin(sums));
      TUTTI_ASSIGN(const Ticket words_ticket, group.begin(largest));
      TUTTI_TRY(group.wait(words_ticket));
      if (words[0] != 4 + round || words[1] != 4 + round) return impl::base::internal_error("wrong words");
      for (size_t p = 0; p < buffers.size(); ++p) {
        TUTTI_TRY(buffers[p].read(0, to.pointers[p], kCount * 4, &stream));
      }
      TUTTI_TRY(stream.synchronize());
      for (const auto &part : to.values) {
        for (int64_t i = 0; i < kCount; ++i)
          TUTTI_TRY(differs("sum", i, part[static_cast<size_t>(i)], ordered_sum(6, i)));
      }
    }
    return Status();
  }));
}

static void test_what_cannot_be_staged(void **) {
  const auto two = assert_ok_value(lazy_devices(2));
  assert_error_contains(collective::staged::stage(assert_ok_value(collective::local::LocalGroup::create(3)), two),
                        "3 ranks on 2");
  const auto bare = assert_ok_value(lazy_devices(2, false));
  assert_error_contains(collective::staged::stage(assert_ok_value(collective::local::LocalGroup::create(2)), bare),
                        "copies by address");
}

/// Groups over memory of the host refuse that of devices.
static void test_groups_on_the_host_refuse_devices(void **) {
  const auto devices = assert_ok_value(lazy_devices(1));
  backend::Stream stream = assert_ok_value(devices[0]->create_stream());
  float value = 1;
  void *const buffers[] = {&value};
  Operation operation;
  operation.kind = Kind::all_reduce;
  operation.buffers = buffers;
  operation.count = 1;
  operation.label = "one";
  operation.stream = &stream;
  assert_error_contains(assert_ok_value(collective::local::LocalGroup::create(1))[0]->run(operation), "'one'");
  assert_error_contains(assert_ok_value(collective::fake::FakeGroup::create(1, 1, {}))[0]->run(operation), "'one'");
}

static const struct CMUnitTest tests[] = {
    TUTTI_GROUP_CONFORMANCE_TESTS,
    cmocka_unit_test(test_memory_of_hosts_and_devices),
    cmocka_unit_test(test_what_cannot_be_staged),
    cmocka_unit_test(test_groups_on_the_host_refuse_devices),
};
static int run_all(int, char **) {
  group_factory = make_groups;
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
TEST_SOURCE(run_all)

}  // namespace tutti::testing::staged_group_test
