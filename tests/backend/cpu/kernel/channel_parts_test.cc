// SPDX-License-Identifier: Apache-2.0
//
// An image walked in groups of channels gives what it gives as a whole.
#include "backend/cpu/kernel/channel_parts.h"

#include <cmath>
#include <vector>

#include "backend/cpu/simd/simd_testing.h"
#include "testing.h"

namespace channel_parts_test {

namespace {

using namespace tutti::impl::backend::cpu;  // NOLINT
using namespace tutti::testing;             // NOLINT

struct Walked {
  std::vector<float> y;
  std::vector<double> sum, squares;
  int64_t groups = 0;
};

/// Sums of each group, then y = relu(x * a + b) of the group.
Walked walk(const ChannelShape &shape, const std::vector<float> &x, const std::vector<float> &a,
            const std::vector<float> &b, int32_t threads) {
  const auto channels = static_cast<size_t>(shape.channels());
  Walked walked{std::vector<float>(x.size()), std::vector<double>(channels), std::vector<double>(channels)};
  const ChannelGroups groups = ChannelGroups::make(shape, threads);
  std::vector<double> scratch(static_cast<size_t>(groups.parts().scratch_bytes()) / sizeof(double) + 1);
  void *buffers[] = {scratch.data()};
  RunContext context;
  context.buffers = buffers;
  context.threads = threads;
  groups.for_each([&](int64_t channel, int64_t at) {
    groups.parts().moments(context, 0, x.data() + at, walked.sum.data() + channel, walked.squares.data() + channel);
    groups.parts().apply(context, x.data() + at, a.data() + channel, b.data() + channel, nullptr, true,
                         walked.y.data() + at);
    ++walked.groups;
  });
  return walked;
}

void groups_are_the_whole(void **) {
  struct Case {
    ChannelShape shape;
    int64_t groups;
  };
  const Case cases[] = {
      {ChannelShape::blocked(7, 45 * 45, 64), 4},   // a block is more than a group
      {ChannelShape::blocked(5, 20 * 20, 192), 4},  // three blocks make one
      {ChannelShape::blocked(5, 20 * 20, 80), 5},   // the number of blocks has no divisor
      {ChannelShape::blocked(3, 5 * 5, 96), 1},     // all of it is small
      {ChannelShape::blocked(1, 100 * 100, 32), 1}, {ChannelShape::plain(9000, 24), 1},
  };
  for (const Case &one : cases) {
    const int64_t elements = one.shape.count() * one.shape.channels();
    const auto x = noise(elements, 1), a = noise(one.shape.channels(), 2), b = noise(one.shape.channels(), 3);
    const Walked alone = walk(one.shape, x, a, b, 1);
    assert_int_equal(alone.groups, one.groups);
    std::vector<double> sum(alone.sum.size()), squares(alone.sum.size());
    std::vector<float> y(x.size());
    channel_moments(one.shape, x.data(), sum.data(), squares.data());
    channel_apply(one.shape, x.data(), a.data(), b.data(), nullptr, true, y.data());
    assert_true(y == alone.y);
    for (size_t i = 0; i < sum.size(); ++i) {
      assert_true(std::fabs(sum[i] - alone.sum[i]) < 1e-3);
      assert_true(std::fabs(squares[i] - alone.squares[i]) < 1e-6 * squares[i]);
    }
    const Walked shared = walk(one.shape, x, a, b, 3);
    assert_true(shared.y == alone.y);
  }
}

}  // namespace

static int run_all(int, char **) {
  const CMUnitTest tests[] = {cmocka_unit_test(groups_are_the_whole)};
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
TEST_SOURCE(run_all)

}  // namespace channel_parts_test
