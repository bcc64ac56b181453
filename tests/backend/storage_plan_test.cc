// SPDX-License-Identifier: Apache-2.0
//
// Where values lie; that programs planned so compute the right thing is the conformance suite's.
#include "backend/storage_plan.h"

#include <set>
#include <string>

#include "graph/builder.h"
#include "graph/serialize.h"
#include "testing.h"

using namespace tutti::impl;
using backend::LoweredGraph;
using backend::Place;
using backend::StoragePlan;
using backend::StorageWishes;
using graph::GraphBuilder;
using graph::ValueId;
using tensor::DType;

namespace {

LoweredGraph lower(GraphBuilder &builder, const std::string &state = "{\"arenas\": [], \"entries\": []}",
                   const std::string &bindings = "{}") {
  const std::string text = graph::to_json_text(assert_ok_value(builder.finish_graph()));
  tutti_compile_request request{};
  request.struct_size = sizeof(request);
  request.graph_text = text.c_str();
  request.bindings_json = bindings.c_str();
  request.state_json = state.c_str();
  return assert_ok_value(LoweredGraph::decode(request));
}

const char kState[] =
    "{\"arenas\": [\"weights\"], \"entries\": ["
    "{\"name\": \"w\", \"arena\": 0, \"offset\": 0, \"storage_bytes\": 400, \"dtype\": \"f32\", \"dims\": [100]},"
    "{\"name\": \"g\", \"arena\": 0, \"offset\": 448, \"storage_bytes\": 400, \"dtype\": \"f32\", \"dims\": [100]}]}";

bool is_elementwise(const graph::Node &node, int32_t, int32_t) { return node.op == "neg" || node.op == "add"; }

void results_are_computed_in_place(void **) {
  GraphBuilder b;
  const ValueId x = b.input("x", DType::f32, {100}), y = b.unary("neg", x);
  b.set_result("y", y);
  b.set_result("again", b.reshape(y, {10, 10}));
  const LoweredGraph lowered = lower(b);
  const StoragePlan plan = plan_storage(lowered, StorageWishes::row_major(lowered));
  assert_true(plan.locations[static_cast<size_t>(x)].place == Place::input);
  assert_true(plan.locations[static_cast<size_t>(y)].place == Place::output);
  assert_int_equal(plan.workspace_bytes, 0);
  assert_int_equal(plan.copies.size(), 1);
}

void dying_values_are_overwritten_when_allowed(void **) {
  GraphBuilder b;
  ValueId x = b.unary("exp", b.input("x", DType::f32, {100}));
  for (int i = 0; i < 5; ++i)
    x = b.unary("neg", x);
  b.set_result("y", b.reduce_sum(x));
  const LoweredGraph lowered = lower(b);
  StorageWishes wishes = StorageWishes::row_major(lowered);
  assert_int_equal(plan_storage(lowered, wishes).workspace_bytes, 2 * 448);
  wishes.may_overwrite = is_elementwise;
  assert_int_equal(plan_storage(lowered, wishes).workspace_bytes, 448);
}

void living_values_are_not_overwritten(void **) {
  GraphBuilder b;
  const ValueId x = b.unary("exp", b.input("x", DType::f32, {100}));
  const ValueId y = b.unary("neg", x);
  b.set_result("y", b.reduce_sum(b.add(x, y)));
  const LoweredGraph lowered = lower(b);
  StorageWishes wishes = StorageWishes::row_major(lowered);
  wishes.may_overwrite = is_elementwise;
  const StoragePlan plan = plan_storage(lowered, wishes);
  assert_false(plan.locations[static_cast<size_t>(x)] == plan.locations[static_cast<size_t>(y)]);
  assert_int_equal(plan.workspace_bytes, 2 * 448);
}

/// What is computed with an earlier node has memory from then on.
void an_earlier_turn_needs_memory_earlier(void **) {
  GraphBuilder b;
  const ValueId x = b.input("x", DType::f32, {100}), first = b.unary("exp", x), second = b.unary("exp", first);
  b.set_result("sum", b.reduce_sum(second));
  const ValueId moved = b.unary("exp", x);
  b.set_result("other", b.reduce_sum(moved));
  const LoweredGraph lowered = lower(b);
  StorageWishes wishes = StorageWishes::row_major(lowered);
  assert_int_equal(plan_storage(lowered, wishes).workspace_bytes, 2 * 448);
  const auto step_of = [&](ValueId value) {
    int32_t step = 0;
    while (lowered.step(step).outputs.empty() || lowered.step(step).outputs[0] != value)
      ++step;
    return step;
  };
  for (int32_t step = 0; step < lowered.step_count(); ++step)
    wishes.turn.push_back(step);
  wishes.turn[static_cast<size_t>(step_of(moved))] = step_of(first);
  assert_int_equal(plan_storage(lowered, wishes).workspace_bytes, 3 * 448);
}

void a_written_value_is_not_overwritten(void **) {
  // In place work after the write must not reach the entry.
  GraphBuilder b;
  const ValueId x = b.unary("exp", b.input("x", DType::f32, {100}));
  b.state_write(x, "g");
  const ValueId y = b.unary("neg", x);
  b.set_result("y", b.reduce_sum(y));
  const LoweredGraph lowered = lower(b, kState);
  StorageWishes wishes = StorageWishes::row_major(lowered);
  wishes.may_overwrite = is_elementwise;
  const StoragePlan plan = plan_storage(lowered, wishes);
  assert_false(plan.locations[static_cast<size_t>(y)].place == Place::arena);
}

/// Behind a mark the host may be adding up what was written.
void a_value_that_is_read_behind_a_mark_is_not_the_entry(void **) {
  for (const bool has_mark : {false, true}) {
    for (const bool is_read_before : {false, true}) {
      GraphBuilder b;
      const ValueId x = b.unary("exp", b.input("x", DType::f32, {100}));
      b.state_write(b.reshape(x, {100}), "g");
      if (is_read_before) b.set_result("y", b.reduce_sum(x));
      if (has_mark) {
        const ValueId nothing = b.op("all_reduce", {b.input("nothing", DType::f32, {0})}, {{"label", "bucket/0"}});
        b.set_result("nothing", nothing);
      }
      if (!is_read_before) b.set_result("y", b.reduce_sum(x));
      const LoweredGraph lowered = lower(b, kState);
      const StoragePlan plan = plan_storage(lowered, StorageWishes::row_major(lowered));
      const bool is_entry = plan.locations[static_cast<size_t>(x)].place == Place::arena;
      assert_int_equal(is_entry, is_read_before || !has_mark);
    }
  }
}

void updates_lie_on_their_entries(void **) {
  GraphBuilder b;
  const ValueId w = b.state_read("w", DType::f32, {100}), g = b.state_read("g", DType::f32, {100});
  const ValueId next = b.op("sgd_update", {w, g, b.constant(0.1, DType::f32), b.constant(1, DType::boolean)});
  b.state_write(next, "w");
  const LoweredGraph lowered = lower(b, kState);
  const StoragePlan plan = plan_storage(lowered, StorageWishes::row_major(lowered));
  assert_true(plan.locations[static_cast<size_t>(next)] == plan.locations[static_cast<size_t>(w)]);
  assert_true(plan.write_is_done[static_cast<size_t>(lowered.step_count() - 1)] != 0);
  assert_int_equal(plan.workspace_bytes, 0);
}

void an_entry_read_later_is_not_written_early(void **) {
  GraphBuilder b;
  const ValueId w = b.state_read("w", DType::f32, {100}), g = b.state_read("g", DType::f32, {100});
  const ValueId next = b.op("sgd_update", {w, g, b.constant(0.1, DType::f32), b.constant(1, DType::boolean)});
  b.set_result("norm", b.reduce_sum(b.unary("square", w)));  // reads w after the update
  b.state_write(next, "w");
  const LoweredGraph lowered = lower(b, kState);
  const StoragePlan plan = plan_storage(lowered, StorageWishes::row_major(lowered));
  assert_true(plan.locations[static_cast<size_t>(next)].place == Place::workspace);
}

/// What is computed together with the first writer reads the entry, too: element by element, or anywhere.
void an_entry_is_not_written_while_it_is_read(void **) {
  for (const char *op : {"neg", "exp"}) {
    GraphBuilder b;
    const ValueId w = b.state_read("w", DType::f32, {100});
    const ValueId inner = b.unary(op, w), y = b.unary("neg", inner);
    b.set_result("sum", b.reduce_sum(y));
    b.state_write(b.unary("neg", y), "w");  // in the memory of y
    const LoweredGraph lowered = lower(b, kState);
    StorageWishes wishes = StorageWishes::row_major(lowered);
    wishes.may_overwrite = is_elementwise;
    wishes.bytes[static_cast<size_t>(inner)] = 0;
    for (int32_t step = 0; step < lowered.step_count(); ++step) {
      const graph::Node &node = lowered.step(step);
      wishes.turn.push_back(!node.outputs.empty() && node.outputs[0] == inner ? step + 1 : step);
    }
    const StoragePlan plan = plan_storage(lowered, wishes);
    assert_true(plan.locations[static_cast<size_t>(y)].place ==
                (std::string(op) == "neg" ? Place::arena : Place::workspace));
  }
}

void a_swap_goes_by_way_of_memory(void **) {
  GraphBuilder b;
  const ValueId w = b.state_read("w", DType::f32, {100}), g = b.state_read("g", DType::f32, {100});
  b.state_write(b.unary("neg", g), "w");
  b.state_write(b.unary("neg", w), "g");
  const LoweredGraph lowered = lower(b, kState);
  const StoragePlan plan = plan_storage(lowered, StorageWishes::row_major(lowered));
  // The first negation may not land on w, which is read after it.
  for (int32_t step = 0; step < lowered.step_count(); ++step) {
    if (lowered.step(step).op != "neg" || lowered.step(step).inputs[0] != g) continue;
    assert_true(plan.locations[static_cast<size_t>(lowered.step(step).outputs[0])].place == Place::workspace);
  }
}

void sums_stay_in_the_workspace(void **) {
  GraphBuilder b;
  const ValueId x = b.unary("neg", b.input("x", DType::f32, {100}));
  const ValueId y = b.op("all_reduce", {x});
  b.set_result("y", y);
  const LoweredGraph lowered = lower(b);
  const StoragePlan plan = plan_storage(lowered, StorageWishes::row_major(lowered));
  assert_true(plan.locations[static_cast<size_t>(y)].place == Place::workspace);
  assert_true(plan.locations[static_cast<size_t>(x)] == plan.locations[static_cast<size_t>(y)]);
  assert_int_equal(plan.externals.size(), 1);
  assert_int_equal(plan.externals[0].elements, 100);
  assert_int_equal(plan.copies.size(), 1);  // into the output
}

void shapes_follow_the_bindings(void **) {
  GraphBuilder b;
  const ValueId x = b.input("x", DType::f32, {b.batch(), 3});
  b.set_result("y", b.reshape(x, {-1}));
  const LoweredGraph lowered = lower(b, "{\"arenas\": [], \"entries\": []}", "{\"batch\": 7}");
  assert_int_equal(lowered.value(x).elements, 21);
  assert_int_equal(lowered.value(lowered.outputs()[0].value).dims[0], 21);
  assert_int_equal(lowered.batch_axis(x), 0);
}

const CMUnitTest kTests[] = {
    cmocka_unit_test(an_earlier_turn_needs_memory_earlier),
    cmocka_unit_test(results_are_computed_in_place),
    cmocka_unit_test(dying_values_are_overwritten_when_allowed),
    cmocka_unit_test(living_values_are_not_overwritten),
    cmocka_unit_test(a_written_value_is_not_overwritten),
    cmocka_unit_test(a_value_that_is_read_behind_a_mark_is_not_the_entry),
    cmocka_unit_test(updates_lie_on_their_entries),
    cmocka_unit_test(an_entry_read_later_is_not_written_early),
    cmocka_unit_test(an_entry_is_not_written_while_it_is_read),
    cmocka_unit_test(a_swap_goes_by_way_of_memory),
    cmocka_unit_test(sums_stay_in_the_workspace),
    cmocka_unit_test(shapes_follow_the_bindings),
};

}  // namespace

TEST_MAIN(kTests)
