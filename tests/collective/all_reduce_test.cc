// SPDX-License-Identifier: Apache-2.0
//
// The ways in which a local group adds up: what every group must do, done by each, in the host's memory and behind
// copies of memory of devices; in which order they add, and that all ranks get the same bits.
#include <array>

#include "backend/lazy_backend.h"
#include "collective/local/local_group.h"
#include "collective/on_device.h"
#include "collective/staged/staged_group.h"
#include "conformance/group_conformance.h"
#include "testing.h"

namespace tutti::testing::all_reduce_test {

namespace backend = impl::backend;
namespace collective = impl::collective;
using collective::local::AllReduce;
using collective::local::LocalGroup;
using collective::local::LocalGroupOptions;

static AllReduce tested_algorithm = AllReduce::spread;
static bool is_staged = false;

/// Nodes of two ranks, the last one of what is left; not in the order of the ranks.
static LocalGroupOptions options_for(int32_t size) {
  LocalGroupOptions options;
  options.all_reduce = tested_algorithm;
  for (int32_t r = 0; r < size; ++r)
    options.nodes.push_back((r + 1) / 2 % 2);
  return options;
}

static Result<std::vector<backend::DeviceRef>> lazy_devices(int32_t count) {
  LazySettings settings;
  settings.has_host_memory = false;
  settings.late = Late::everything;
  return open_lazy_devices(count, std::move(settings));
}

static Result<Groups> make_groups(int32_t size, int32_t parts) {
  TUTTI_ASSIGN(Groups groups, LocalGroup::create(size, parts, options_for(size)));
  if (!is_staged) return groups;
  TUTTI_ASSIGN(const auto devices, lazy_devices(size));
  TUTTI_ASSIGN(groups, collective::staged::stage(std::move(groups), devices));
  for (size_t r = 0; r < groups.size(); ++r)
    groups[r] = std::make_unique<OnDevice>(std::move(groups[r]), devices[r]);
  return groups;
}

/// The sum of samples in the order of an algorithm, as the header says it.
static float sum_of(AllReduce algorithm, int32_t ranks, int32_t parts, int64_t chunk, int64_t i) {
  const auto of_rank = [&](int32_t rank) {
    float sum = sample(rank * parts, i);
    for (int32_t p = 1; p < parts; ++p)
      sum += sample(rank * parts + p, i);
    return sum;
  };
  if (algorithm == AllReduce::ring) {
    float sum = of_rank(static_cast<int32_t>(chunk));
    for (int32_t behind = 1; behind < ranks; ++behind)
      sum += of_rank(static_cast<int32_t>((chunk + behind) % ranks));
    return sum;
  }
  if (algorithm != AllReduce::hierarchical) return ordered_sum(ranks * parts, i);
  const std::vector<int32_t> nodes = options_for(ranks).nodes;
  std::array<float, 2> sums{};
  std::array<bool, 2> is_begun{};
  for (int32_t c = 0; c < ranks * parts; ++c) {
    const auto node = static_cast<size_t>(nodes[static_cast<size_t>(c / parts)]);
    sums[node] = is_begun[node] ? sums[node] + sample(c, i) : sample(c, i);
    is_begun[node] = true;
  }
  return is_begun[1] ? sums[0] + sums[1] : sums[0];
}

/// A number of elements that no number of ranks divides, and one of so few that ranks have nothing.
static void test_order_of_additions(void **) {
  for (const int64_t count : {int64_t{5003}, int64_t{16 * 60}, int64_t{300}}) {
    for (int32_t ranks = 1; ranks <= 5; ++ranks) {
      for (const int32_t parts : {1, 2}) {
        Groups groups = assert_ok_value(group_factory(ranks, parts));
        const int64_t blocks = (count + 15) / 16;
        assert_all_ok(run_ranks(groups, [&](Group &group) -> Status {
          for (int32_t round = 0; round < 3; ++round) {
            RankBuffers buffers(group, count);
            TUTTI_TRY(group.all_reduce(buffers.pointers, count, DType::f32, Reduction::sum, "sums"));
            for (const auto &part : buffers.values) {
              int64_t chunk = 0;
              for (int64_t i = 0; i < count; ++i) {
                while (i >= blocks * (chunk + 1) / ranks * 16)
                  ++chunk;
                const float expected = sum_of(tested_algorithm, ranks, parts, chunk, i);
                TUTTI_TRY(differs("sum", i, part[static_cast<size_t>(i)], expected));
              }
            }
          }
          return Status();
        }));
      }
    }
  }
}

static void test_the_rank_that_does_not_come_is_named(void **) {
  LocalGroupOptions options = options_for(4);
  options.timeout_ms = 50;
  Groups groups = assert_ok_value(LocalGroup::create(4, 1, options));
  const std::vector<Status> statuses = run_ranks(groups, [](Group &group) {
    if (group.rank() == 2) return Status();
    RankBuffers buffers(group, 1000);
    return group.all_reduce(buffers.pointers, 1000, DType::f32, Reduction::sum, "sums");
  });
  for (const size_t r : {size_t{0}, size_t{1}, size_t{3}})
    assert_error_contains(statuses[r], "for rank 2");
}

static void test_nodes_are_checked(void **) {
  LocalGroupOptions options;
  options.all_reduce = AllReduce::hierarchical;
  options.nodes = {0, 1};
  assert_error_contains(LocalGroup::create(3, 1, options), "3 ranks needs the node of each, got 2");
}

static int run_all(int, char **) {
  group_factory = make_groups;
  static const struct CMUnitTest tests[] = {
      TUTTI_GROUP_CONFORMANCE_TESTS,
      cmocka_unit_test(test_order_of_additions),
      cmocka_unit_test(test_the_rank_that_does_not_come_is_named),
      cmocka_unit_test(test_nodes_are_checked),
  };
  int failed = 0;
  for (const AllReduce algorithm : {AllReduce::spread, AllReduce::to_one, AllReduce::ring, AllReduce::hierarchical}) {
    for (const bool staged : {false, true}) {
      tested_algorithm = algorithm;
      is_staged = staged;
      group_traits.adds_in_order = algorithm == AllReduce::spread || algorithm == AllReduce::to_one;
      failed += cmocka_run_group_tests(tests, nullptr, nullptr);
    }
  }
  return failed;
}
TEST_SOURCE(run_all)

}  // namespace tutti::testing::all_reduce_test
