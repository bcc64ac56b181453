// SPDX-License-Identifier: Apache-2.0
#include "backend/memory_plan.h"

#include <vector>

#include "base/random/philox.h"
#include "testing.h"

using namespace tutti::impl;
using backend::MemoryBlock;
using backend::MemoryPlan;

namespace {

/// No two blocks alive together overlap; all lie inside; offsets are aligned.
void check_plan(const std::vector<MemoryBlock> &blocks, const MemoryPlan &plan) {
  assert_int_equal(plan.offsets.size(), blocks.size());
  assert_true(plan.bytes >= plan.lower_bound_bytes);
  for (size_t i = 0; i < blocks.size(); ++i) {
    assert_int_equal(plan.offsets[i] % 64, 0);
    assert_true(plan.offsets[i] + blocks[i].bytes <= plan.bytes || blocks[i].bytes == 0);
    for (size_t j = 0; j < i; ++j) {
      const bool is_together = blocks[i].first <= blocks[j].last && blocks[j].first <= blocks[i].last;
      const bool is_apart =
          plan.offsets[i] + blocks[i].bytes <= plan.offsets[j] || plan.offsets[j] + blocks[j].bytes <= plan.offsets[i];
      assert_true(!is_together || is_apart || blocks[i].bytes == 0 || blocks[j].bytes == 0);
    }
  }
}

void nothing_needs_nothing(void **) {
  const MemoryPlan plan = backend::plan_memory({});
  assert_int_equal(plan.bytes, 0);
  assert_int_equal(plan.lower_bound_bytes, 0);
}

void blocks_that_follow_share(void **) {
  const std::vector<MemoryBlock> blocks = {{1000, 0, 1}, {1000, 2, 3}, {1000, 4, 5}};
  const MemoryPlan plan = backend::plan_memory(blocks);
  check_plan(blocks, plan);
  assert_int_equal(plan.bytes, 1024);
}

void blocks_that_touch_do_not_share(void **) {
  const std::vector<MemoryBlock> blocks = {{64, 0, 2}, {64, 2, 3}};
  const MemoryPlan plan = backend::plan_memory(blocks);
  check_plan(blocks, plan);
  assert_int_equal(plan.bytes, 128);
}

void empty_blocks_cost_nothing(void **) {
  const std::vector<MemoryBlock> blocks = {{0, 0, 5}, {1, 0, 5}, {0, 2, 2}};
  const MemoryPlan plan = backend::plan_memory(blocks);
  check_plan(blocks, plan);
  assert_int_equal(plan.bytes, 64);
}

void a_chain_reaches_the_lower_bound(void **) {
  // Each value lives until the next one is made, as in a forward pass: two at a time.
  std::vector<MemoryBlock> blocks;
  for (int32_t i = 0; i < 50; ++i)
    blocks.push_back({4096, i, i + 1});
  const MemoryPlan plan = backend::plan_memory(blocks);
  check_plan(blocks, plan);
  assert_int_equal(plan.bytes, plan.lower_bound_bytes);
  assert_int_equal(plan.bytes, 8192);
}

void random_plans_are_valid_and_tight(void **) {
  base::RandomStream random(base::RandomKey::of(1, 2, 3));
  for (int trial = 0; trial < 50; ++trial) {
    std::vector<MemoryBlock> blocks;
    for (int i = 0; i < 60; ++i) {
      const int32_t first = static_cast<int32_t>(random.below(100));
      blocks.push_back({random.below(5000), first, first + static_cast<int32_t>(random.below(12))});
    }
    const MemoryPlan plan = backend::plan_memory(blocks);
    check_plan(blocks, plan);
    assert_true(plan.bytes <= plan.lower_bound_bytes * 3 / 2);
  }
}

const CMUnitTest kTests[] = {
    cmocka_unit_test(nothing_needs_nothing),           cmocka_unit_test(blocks_that_follow_share),
    cmocka_unit_test(blocks_that_touch_do_not_share),  cmocka_unit_test(empty_blocks_cost_nothing),
    cmocka_unit_test(a_chain_reaches_the_lower_bound), cmocka_unit_test(random_plans_are_valid_and_tight),
};

}  // namespace

TEST_MAIN(kTests)
