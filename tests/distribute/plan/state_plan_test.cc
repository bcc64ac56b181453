// SPDX-License-Identifier: Apache-2.0
#include "distribute/plan/state_plan.h"

#include <algorithm>

#include "testing.h"

namespace tutti::testing::state_plan_test {

using namespace impl::distribute;
using impl::backend::LayoutProposal;
using impl::tensor::DType;

static std::vector<StateSpec> specs() {
  return {
      {"weight/b", Arena::weights, DType::f32, {300, 10}, "b"},
      {"weight/a", Arena::weights, DType::f32, {10}, "a"},
      {"weight/moving", Arena::weights, DType::f32, {7}, "moving"},
      {"slot/b/m", Arena::slots, DType::f32, {300, 10}, "b"},
      {"gradient/0/b", Arena::partials, DType::f32, {300, 10}, "b"},
      {"gradient/1/b", Arena::partials, DType::f32, {300, 10}, "b"},
      {"gradient/0/a", Arena::partials, DType::f32, {10}, "a"},
      {"aggregate/moving", Arena::partials, DType::f32, {7}, "moving"},
      {"sum/0", Arena::partials, DType::f32, {}, ""},
      {"report/loss", Arena::report, DType::f32, {}, ""},
  };
}

static void test_entries_lie_apart_and_aligned(void **) {
  const StatePlan plan = assert_ok_value(StatePlan::make(specs(), {}, {}));
  for (const auto &entry : plan.entries()) {
    assert_int_equal(entry.offset % 64, 0);
    assert_true(entry.offset + entry.storage_bytes <= plan.arena_bytes(static_cast<Arena>(entry.arena)));
    for (const auto &other : plan.entries()) {
      if (other.arena != entry.arena || &other == &entry) continue;
      assert_true(other.offset >= entry.offset + entry.storage_bytes ||
                  other.offset + other.storage_bytes <= entry.offset);
    }
  }
  assert_non_null(plan.find("slot/b/m"));
  assert_null(plan.find("slot/b/v"));
  auto twice = specs();
  twice.push_back(twice.front());
  assert_error_contains(StatePlan::make(twice, {}, {}), "weight/b");
}

static void test_slices_cover_everything_once(void **) {
  for (int32_t count = 1; count <= 5; ++count) {
    PlanOptions options;
    options.slices = count;
    options.first_bucket_bytes = 1;  // a bucket per entry
    for (const bool small : {false, true}) {
      if (!small) options.first_bucket_bytes = 1 << 20;
      const StatePlan plan = assert_ok_value(StatePlan::make(specs(), {}, options));
      if (count == 1) continue;
      for (const char *variable : {"a", "b", "moving"}) {
        int64_t position = 0;
        for (int32_t s = 0; s < count; ++s) {
          const auto [begin, end] = plan.slice_of(variable, s);
          assert_int_equal(begin, position);
          assert_true(end >= begin && begin % 16 == 0);
          position = end;
        }
        assert_int_equal(position, plan.find(std::string("weight/") + variable)->storage_elements());
      }
      // Every gradient set of a variable has the variable's slices, at its own place in its bucket.
      for (size_t b = 0; b < plan.buckets().size(); ++b) {
        int64_t end = 0;
        for (const Slice &slice : plan.slices(b)) {
          assert_true(slice.begin >= end && slice.end > slice.begin && slice.end <= plan.buckets()[b].elements);
          end = slice.end;
        }
        assert_true(plan.buckets()[b].sliced == !plan.slices(b).empty());
      }
      const auto table = plan.table(count - 1);
      const auto [begin, end] = plan.slice_of("b", count - 1);
      for (const char *entry : {"weight/b", "slot/b/m", "gradient/0/b", "gradient/1/b"}) {
        assert_int_equal(table.find(entry)->slice_offset, begin);
        assert_int_equal(table.find(entry)->flat_length(), end - begin);
      }
      const auto seeing = plan.table(count - 1, count);
      assert_int_equal(seeing.arenas().size(), impl::distribute::arena_count + count);
      for (int32_t c = 0; c < count; ++c) {
        const auto *other = seeing.find(impl::distribute::of_contributor(c, "gradient/0/b"));
        assert_int_equal(other->arena, impl::distribute::arena_count + c);
        assert_int_equal(other->offset, plan.find("gradient/0/b")->offset);
        assert_int_equal(other->slice_offset, begin);
      }
    }
  }
}

static void test_slots_with_dims_of_their_own_are_of_one_slice(void **) {
  std::vector<StateSpec> all = specs();
  for (StateSpec &spec : all)
    spec.is_whole = spec.name == "weight/b";
  StateSpec rows{"slot/b/rows", Arena::slots, DType::f32, {300}, "b"};
  rows.has_own_dims = true;
  all.insert(all.begin() + 4, rows);
  const std::vector<LayoutProposal> layouts = {{"weight/b", "blocked", 16384, 64}};
  const StatePlan alone = assert_ok_value(StatePlan::make(all, layouts, {}));
  assert_string_equal(alone.find("slot/b/rows")->layout.c_str(), "");
  assert_int_equal(alone.find("slot/b/rows")->storage_bytes, 1200);
  assert_int_equal(alone.table().find("slot/b/rows")->flat_length(), 300);
  for (int32_t count = 2; count <= 4; ++count) {
    PlanOptions options;
    options.slices = count;
    const StatePlan plan = assert_ok_value(StatePlan::make(all, {}, options));
    int owners = 0;
    for (int32_t s = 0; s < count; ++s) {
      const auto table = plan.table(s);
      const bool has_all = table.find("weight/b")->flat_length() == 3000;
      assert_int_equal(table.find("weight/b")->flat_length(), has_all ? 3000 : 0);
      assert_int_equal(table.find("slot/b/rows")->slice_offset, 0);
      assert_int_equal(table.find("slot/b/rows")->flat_length(), has_all ? 300 : 0);
      owners += has_all ? 1 : 0;
    }
    assert_int_equal(owners, 1);
  }
}

static void test_layouts_and_buckets(void **) {
  const std::vector<LayoutProposal> layouts = {{"weight/b", "blocked", 16384, 64}};
  const StatePlan plan = assert_ok_value(StatePlan::make(specs(), layouts, {}));
  for (const char *entry : {"weight/b", "slot/b/m", "gradient/0/b", "gradient/1/b"}) {
    assert_string_equal(plan.find(entry)->layout.c_str(), "blocked");
    assert_int_equal(plan.find(entry)->storage_bytes, 16384);
  }
  std::vector<StateSpec> many;
  for (int i = 0; i < 40; ++i) {
    many.push_back(
        {"gradient/0/v" + std::to_string(i), Arena::partials, DType::f32, {1 << 18}, "v" + std::to_string(i)});
  }
  PlanOptions options;
  options.slices = 2;
  const StatePlan large = assert_ok_value(StatePlan::make(many, {}, options));
  assert_true(large.buckets().size() >= 3);
  assert_int_equal(large.buckets().front().elements, 1 << 18);
  assert_true(large.buckets().back().elements * 4 <= options.last_bucket_bytes);
  int64_t elements = 0;
  for (const Bucket &bucket : large.buckets()) {
    assert_true(bucket.elements * 4 <= options.bucket_bytes);
    elements += bucket.elements;
  }
  assert_int_equal(elements, 40 << 18);
}

static void test_hash(void **) {
  const StatePlan plan = assert_ok_value(StatePlan::make(specs(), {}, {}));
  const StatePlan same = assert_ok_value(StatePlan::make(specs(), {}, {}));
  PlanOptions sliced;
  sliced.slices = 2;
  const StatePlan other = assert_ok_value(StatePlan::make(specs(), {}, sliced));
  assert_true(plan.hash() == same.hash());
  assert_true(plan.hash() != other.hash());
  assert_true(plan.to_json().dump().find("gradient/1/b") != std::string::npos);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_entries_lie_apart_and_aligned),
    cmocka_unit_test(test_slices_cover_everything_once),
    cmocka_unit_test(test_slots_with_dims_of_their_own_are_of_one_slice),
    cmocka_unit_test(test_layouts_and_buckets),
    cmocka_unit_test(test_hash),
};
TEST_MAIN(tests)

}  // namespace tutti::testing::state_plan_test
