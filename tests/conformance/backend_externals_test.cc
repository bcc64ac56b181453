// SPDX-License-Identifier: Apache-2.0
//
// What a backend owes to the host between the segments of a program (collectives, and marks from which on the host
// changes what was written), and between its runs.
//
// usage: backend_externals_test BACKEND
#include <string>
#include <vector>

#include "backend_under_test.h"
#include "bound_graph.h"
#include "float_values.h"
#include "testing.h"

namespace backend_externals_test {

using namespace tutti::impl;
using backend::StateTable;
using conformance::Arenas;
using conformance::assert_values;
using conformance::BackendUnderTest;
using conformance::BoundGraph;
using conformance::floats;
using graph::GraphBuilder;
using graph::ValueId;
using tensor::DType;
using tensor::Tensor;

namespace {

BackendUnderTest *tested = nullptr;

std::unique_ptr<BoundGraph> bind(GraphBuilder &builder, Arenas *arenas = nullptr, graph::SymbolBindings bindings = {}) {
  const graph::Graph graph = assert_ok_value(builder.finish_graph());
  return assert_ok_value(BoundGraph::make(tested->device, graph, std::move(bindings), arenas));
}

void externals_cut_programs(void **) {
  GraphBuilder b;
  const ValueId x = b.input("x", DType::f32, {3});
  const ValueId y = b.unary("square", x);
  const ValueId sum = b.op("all_reduce", {y}, {{"label", std::string("first")}});
  // y is still needed after it went into the collective.
  const ValueId largest = b.op("all_reduce", {b.add(sum, y)}, {{"kind", std::string("max")}});
  b.set_result("sum", sum);
  b.set_result("largest", largest);
  b.set_result("y", y);
  auto bound = bind(b);
  const auto &externals = bound->description().externals;
  assert_int_equal(externals.size(), 2);
  assert_string_equal(externals[0].kind.c_str(), "all_reduce_sum");
  assert_string_equal(externals[0].label.c_str(), "first");
  assert_string_equal(externals[1].kind.c_str(), "all_reduce_max");
  assert_int_equal(externals[0].elements, 3);
  for (int run = 0; run < 2; ++run) {
    const auto results =
        assert_ok_value(bound->run({floats({3}, {1, 2, 3})}, {}, [](int32_t index, const auto &, Tensor &values) {
          for (int i = 0; i < 3; ++i)
            values.mutable_data_as<float>()[i] += index == 0 ? 100.0f : 1000.0f;
        }));
    assert_values(results[0], {1102, 1108, 1118});
    assert_values(results[1], {101, 104, 109});
    assert_values(results[2], {1, 4, 9});
  }
}

void externals_may_be_empty(void **) {
  GraphBuilder b;
  const ValueId x = b.input("x", DType::f32, {b.batch(), 3});
  b.set_result("y", b.op("all_reduce", {x}));
  auto bound = bind(b, nullptr, {{"batch", 0}});
  assert_int_equal(bound->description().externals[0].elements, 0);
  assert_ok(bound->run({floats({0, 3}, {})}));
}

/// How the values behind a mark are made from `written`, which is in the entry.
struct ReadBehindMark {
  const char *name;
  ValueId (*read)(GraphBuilder &b, ValueId written);
  std::vector<float> expected;
};

const ReadBehindMark kReads[] = {
    {"a result", [](GraphBuilder &, ValueId written) { return written; }, {1, 4, 9, 16}},
    {"another name",
     [](GraphBuilder &b, ValueId written) {
       return b.reshape(written, {2, 2});
     },
     {1, 4, 9, 16}},
    {"an op", [](GraphBuilder &b, ValueId written) { return b.unary("neg", written); }, {-1, -4, -9, -16}},
    {"an op on another name",
     [](GraphBuilder &b, ValueId written) {
       return b.reduce_sum(b.reshape(written, {2, 2}));
     },
     {30}},
    {"the entry, as the host has left it",
     [](GraphBuilder &b, ValueId) { return b.scale(b.state_read("sum", DType::f32, {4}), 2); },
     {200, 200, 200, 200}},
};

/// At a mark of its bucket the host begins to add up a gradient; who has computed with the value goes on with it.
void what_was_written_may_change_behind_a_mark(void **) {
  for (const ReadBehindMark &read : kReads) {
    StateTable table;
    assert_ok(table.add({.name = "sum",
                         .arena = table.add_arena("sums"),
                         .offset = 0,
                         .dims = {4},
                         .storage_bytes = 4 * sizeof(float)}));
    Arenas arenas = assert_ok_value(Arenas::make(tested->device, std::move(table)));
    GraphBuilder b;
    const ValueId x = b.input("x", DType::f32, {4});
    const ValueId written = b.unary("square", x);
    b.state_write(written, "sum");
    b.set_result("mark", b.op("all_reduce", {b.input("nothing", DType::f32, {0})}, {{"label", std::string("bucket")}}));
    b.set_result("y", read.read(b, written));
    auto bound = bind(b, &arenas);
    const auto results = assert_ok_value(
        bound->run({floats({4}, {1, 2, 3, 4}), floats({0}, {})}, {}, [&](int32_t, const auto &external, Tensor &) {
          assert_int_equal(external.elements, 0);
          assert_values(assert_ok_value(arenas.read("sum")), {1, 4, 9, 16});
          assert_ok(arenas.write("sum", floats({4}, {100, 100, 100, 100})));
        }));
    print_message("%s\n", read.name);
    assert_values(results[1], read.expected);
    assert_values(assert_ok_value(arenas.read("sum")), {100, 100, 100, 100});
  }
}

/// Factors that are large enough for a backend to keep a rearranged copy of them change with each step.
void products_see_what_an_update_left(void **) {
  constexpr int64_t kRows = 64, kInputs = 784, kOutputs = 512;
  StateTable table;
  assert_ok(table.add({.name = "w",
                       .arena = table.add_arena("weights"),
                       .offset = 0,
                       .dims = {kInputs, kOutputs},
                       .storage_bytes = kInputs * kOutputs * 4}));
  Arenas arenas = assert_ok_value(Arenas::make(tested->device, table));
  GraphBuilder b;
  const ValueId w = b.state_read("w", DType::f32, {kInputs, kOutputs});
  const ValueId x = b.input("x", DType::f32, {kRows, kInputs});
  b.set_result("y", b.matmul(x, w));
  const ValueId ones =
      b.op("broadcast_to", {b.constant(1, DType::f32)}, {{"dims", graph::to_dims({kInputs, kOutputs})}});
  b.state_write(b.op("sgd_update", {w, ones, b.constant(-1, DType::f32), b.constant(1, DType::boolean)}), "w");
  auto bound = bind(b, &arenas);
  const Tensor rows = floats({kRows, kInputs}, std::vector<float>(kRows * kInputs, 1));
  for (int step = 0; step < 4; ++step) {
    const std::vector<Tensor> results = assert_ok_value(bound->run({rows}));
    for (int64_t i = 0; i < results[0].elements(); ++i)
      assert_float_equal(results[0].data_as<float>()[i], static_cast<float>(step * kInputs), 0);
  }
}

const CMUnitTest kTests[] = {
    cmocka_unit_test(externals_cut_programs),
    cmocka_unit_test(externals_may_be_empty),
    cmocka_unit_test(what_was_written_may_change_behind_a_mark),
    cmocka_unit_test(products_see_what_an_update_left),
};

}  // namespace

static int run_all(int argc, char **argv) {
  auto opened = conformance::open_backend_under_test(argc, argv);
  if (!opened.ok()) return conformance::exit_without_backend(opened.status());
  tested = &*opened;
  return cmocka_run_group_tests_name("externals", kTests, nullptr, nullptr);
}
TEST_SOURCE(run_all)

}  // namespace backend_externals_test
