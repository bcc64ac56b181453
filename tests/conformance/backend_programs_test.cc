// SPDX-License-Identifier: Apache-2.0
//
// What a backend owes to programs beside single ops: state in arenas, results that alias, run scalars,
// random rows, regions, zero rows, errors in the data, no allocation while running.
//
// usage: backend_programs_test BACKEND
#include <atomic>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "backend/graph_executor.h"
#include "backend_under_test.h"
#include "base/allocation_probe.h"
#include "bound_graph.h"
#include "float_values.h"
#include "graph/autodiff.h"
#include "testing.h"

using namespace tutti::impl;
using backend::RunScalar;
using backend::RunScalars;
using backend::StateEntry;
using backend::StateTable;
using conformance::Arenas;
using conformance::assert_values;
using conformance::BackendUnderTest;
using conformance::BoundGraph;
using conformance::floats;
using graph::Dim;
using graph::GraphBuilder;
using graph::ValueId;
using tensor::DType;
using tensor::Tensor;
using Values = GraphBuilder::Values;

namespace {

BackendUnderTest *tested = nullptr;

Tensor ints(std::vector<int64_t> values) {
  return tensor::Tensor::from_values<int64_t>({static_cast<int64_t>(values.size())}, std::span<const int64_t>(values))
      .take();
}

Tensor flag(bool value) { return Tensor::scalar<bool>(value).take(); }

/// One arena per entry unless named otherwise; offsets follow each other.
StateTable state_of(std::vector<std::pair<std::string, std::vector<int64_t>>> entries) {
  StateTable table;
  const int32_t arena = table.add_arena("weights");
  int64_t offset = 0;
  for (auto &[name, dims] : entries) {
    int64_t bytes = 4;
    for (const int64_t dim : dims)
      bytes *= dim;
    StateEntry entry{.name = name, .arena = arena, .offset = offset, .dims = dims, .storage_bytes = bytes};
    assert_ok(table.add(entry));
    offset += (bytes + 63) / 64 * 64;
  }
  return table;
}

std::unique_ptr<BoundGraph> bind(GraphBuilder &builder, Arenas *arenas = nullptr, graph::SymbolBindings bindings = {}) {
  const graph::Graph graph = assert_ok_value(builder.finish_graph());
  return assert_ok_value(BoundGraph::make(tested->device, graph, std::move(bindings), arenas));
}

void state_is_read_written_and_added(void **) {
  Arenas arenas =
      assert_ok_value(Arenas::make(tested->device, state_of({{"a", {2, 3}}, {"b", {2, 3}}, {"c", {2, 3}}})));
  assert_ok(arenas.write("a", floats({2, 3}, {1, 2, 3, 4, 5, 6})));
  assert_ok(arenas.write("c", floats({2, 3}, {10, 10, 10, 10, 10, 10})));
  GraphBuilder b;
  const ValueId twice = b.scale(b.state_read("a", DType::f32, {2, 3}), 2);
  b.state_write(twice, "b");
  b.state_write(twice, "c", "add");
  b.set_result("y", b.unary("neg", twice));
  auto bound = bind(b, &arenas);
  for (int run = 0; run < 2; ++run) {
    const auto results = assert_ok_value(bound->run({}));
    assert_values(results[0], {-2, -4, -6, -8, -10, -12});
    assert_values(assert_ok_value(arenas.read("b")), {2, 4, 6, 8, 10, 12});
  }
  assert_values(assert_ok_value(arenas.read("a")), {1, 2, 3, 4, 5, 6});
  assert_values(assert_ok_value(arenas.read("c")), {14, 18, 22, 26, 30, 34});
}

void a_written_value_survives_later_work(void **) {
  // y is written, then used by work that might overwrite it in place, and is a result too.
  Arenas arenas = assert_ok_value(Arenas::make(tested->device, state_of({{"a", {4}}, {"b", {4}}})));
  GraphBuilder b;
  const ValueId x = b.input("x", DType::f32, {4});
  const ValueId y = b.unary("square", x);
  b.state_write(y, "a");
  b.state_write(y, "b");
  const ValueId z = b.unary("neg", b.unary("relu", y));
  b.set_result("y", y);
  b.set_result("z", z);
  auto bound = bind(b, &arenas);
  const auto results = assert_ok_value(bound->run({floats({4}, {1, 2, 3, 4})}));
  assert_values(results[0], {1, 4, 9, 16});
  assert_values(results[1], {-1, -4, -9, -16});
  assert_values(assert_ok_value(arenas.read("a")), {1, 4, 9, 16});
  assert_values(assert_ok_value(arenas.read("b")), {1, 4, 9, 16});
}

void an_old_value_survives_its_entry(void **) {
  // The value before the write is a result, and the new one depends on it.
  Arenas arenas = assert_ok_value(Arenas::make(tested->device, state_of({{"w", {3}}})));
  assert_ok(arenas.write("w", floats({3}, {1, 2, 3})));
  GraphBuilder b;
  const ValueId w = b.state_read("w", DType::f32, {3});
  b.set_result("old", w);
  const ValueId next = b.add_scalar(w, 10);
  b.set_result("new", next);
  b.state_write(next, "w");
  auto bound = bind(b, &arenas);
  const auto results = assert_ok_value(bound->run({}));
  assert_values(results[0], {11, 12, 13});
  assert_values(results[1], {1, 2, 3});
  assert_values(assert_ok_value(arenas.read("w")), {11, 12, 13});
}

void a_sum_is_of_what_was_read(void **) {
  // The entry is written between what reads it and the sum.
  Arenas arenas = assert_ok_value(Arenas::make(tested->device, state_of({{"w", {3}}})));
  for (const double factor : {1.0, 3.0}) {
    assert_ok(arenas.write("w", floats({3}, {1, 2, 3})));
    GraphBuilder b;
    const ValueId w = b.state_read("w", DType::f32, {3});
    const ValueId squares = b.unary("square", factor == 1 ? w : b.scale(w, factor));
    b.state_write(b.input("x", DType::f32, {3}), "w");
    b.set_result("y", b.reduce_sum(squares));
    auto bound = bind(b, &arenas);
    const auto results = assert_ok_value(bound->run({floats({3}, {7, 8, 9})}));
    assert_values(results[0], {static_cast<float>(14 * factor * factor)});
    assert_values(assert_ok_value(arenas.read("w")), {7, 8, 9});
  }
}

void results_may_alias(void **) {
  GraphBuilder b;
  const ValueId x = b.input("x", DType::f32, {2, 2});
  b.set_result("flat", b.reshape(x, {4}));
  b.set_result("same", x);
  const ValueId y = b.unary("neg", x);
  b.set_result("y1", y);
  b.set_result("y2", y);
  b.set_result("five", b.constant(5, DType::f32));
  auto bound = bind(b);
  const auto results = assert_ok_value(bound->run({floats({2, 2}, {1, 2, 3, 4})}));
  assert_values(results[0], {5});
  assert_values(results[1], {1, 2, 3, 4});
  assert_values(results[2], {1, 2, 3, 4});
  assert_values(results[3], {-1, -2, -3, -4});
  assert_values(results[4], {-1, -2, -3, -4});
}

/// w -= lr · g on a slice of the storage, in place.
void an_update_works_on_its_slice(void **) {
  StateTable table;
  const int32_t arena = table.add_arena("weights");
  assert_ok(table.add({.name = "weight/w",
                       .arena = arena,
                       .offset = 64,
                       .dims = {2, 5},
                       .storage_bytes = 40,
                       .slice_offset = 3,
                       .slice_length = 4}));
  assert_ok(table.add({.name = "gradient",
                       .arena = arena,
                       .offset = 128,
                       .dims = {2, 5},
                       .storage_bytes = 40,
                       .slice_offset = 3,
                       .slice_length = 4}));
  Arenas arenas = assert_ok_value(Arenas::make(tested->device, table));
  assert_ok(arenas.write("weight/w", floats({2, 5}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9})));
  assert_ok(arenas.write("gradient", floats({2, 5}, std::vector<float>(10, 10))));
  GraphBuilder b;
  const Dim length = Dim::symbol("slice.w");
  const ValueId w = b.state_read("weight/w", DType::f32, {length}), g = b.state_read("gradient", DType::f32, {length});
  const ValueId ok = b.input("ok", DType::boolean, {});
  b.state_write(b.op("sgd_update", {w, g, b.constant(0.1, DType::f32), ok}), "weight/w");
  auto bound = bind(b, &arenas, {{"slice.w", 4}});
  assert_ok(bound->run({flag(false)}));
  assert_values(assert_ok_value(arenas.read("weight/w")), {0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  assert_ok(bound->run({flag(true)}));
  assert_values(assert_ok_value(arenas.read("weight/w")), {0, 1, 2, 2, 3, 4, 5, 7, 8, 9});
}

void updates_need_no_workspace(void **) {
  Arenas arenas = assert_ok_value(
      Arenas::make(tested->device, state_of({{"w", {10000}}, {"m", {10000}}, {"v", {10000}}, {"g", {10000}}})));
  GraphBuilder b;
  const auto read = [&](const char *name) { return b.state_read(name, DType::f32, {10000}); };
  const Values updated = b.op_n("adam_update", {read("w"), read("g"), read("m"), read("v"), b.constant(0.1, DType::f32),
                                                b.run_scalar("iteration", DType::i64), b.constant(1, DType::boolean)});
  b.state_write(updated[0], "w");
  b.state_write(updated[1], "m");
  b.state_write(updated[2], "v");
  auto bound = bind(b, &arenas);
  assert_true(bound->description().workspace_bytes < 10000 * 4);
  assert_ok(arenas.write("g", floats({10000}, std::vector<float>(10000, 2))));
  assert_ok(bound->run({}));
  assert_values(assert_ok_value(assert_ok_value(arenas.read("w")).slice_rows(9998, 10000)), {-0.1f, -0.1f});
}

void run_scalars_reach_the_graph(void **) {
  const char *kinds[] = {"step",       "batch_counter", "row_offset", "local_rows", "step_rows",
                         "first_flag", "seed",          "iteration",  "data_faults"};
  GraphBuilder b;
  RunScalars scalars;
  for (int i = 0; i < TUTTI_RUN_SCALAR_COUNT; ++i) {
    scalars.set(static_cast<RunScalar>(i), 10 + i);
    for (const DType dtype : {DType::i64, DType::f32, DType::f64})
      b.set_result(std::string("a") + std::to_string(i) + "." + std::string(name(dtype)),
                   b.run_scalar(kinds[i], dtype));
  }
  auto bound = bind(b);
  const auto results = assert_ok_value(bound->run({}, scalars));
  for (size_t i = 0; i < TUTTI_RUN_SCALAR_COUNT; ++i) {
    assert_true(assert_ok_value(results[3 * i].scalar_value<float>()) == 10.0f + static_cast<float>(i));
    assert_true(assert_ok_value(results[3 * i + 1].scalar_value<double>()) == 10.0 + static_cast<double>(i));
    assert_int_equal(assert_ok_value(results[3 * i + 2].scalar_value<int64_t>()), 10 + i);
  }
}

/// Rows of the global batch draw the same numbers wherever they run.
void check_random_rows(int64_t batch_axis) {
  GraphBuilder b;
  const graph::Dims dims = batch_axis == 0 ? graph::Dims{b.batch(), 3, 5} : graph::Dims{3, b.batch(), 5};
  b.set_result("d", b.op("dropout", {b.input("x", DType::f32, dims)}, {{"rate", 0.5}}));
  b.set_result("u", b.op("random_uniform", Values{}, {{"dims", dims}}));
  const graph::Graph graph = assert_ok_value(b.finish_graph());
  auto executor = assert_ok_value(backend::GraphExecutor::create(tested->device, graph));
  const auto run = [&](int64_t first, int64_t rows, int64_t counter) {
    const std::vector<int64_t> shape =
        batch_axis == 0 ? std::vector<int64_t>{rows, 3, 5} : std::vector<int64_t>{3, rows, 5};
    RunScalars scalars;
    scalars.set(RunScalar::seed, 7).set(RunScalar::row_offset, first).set(RunScalar::batch_counter, counter);
    return assert_ok_value(
        executor->run(std::vector<Tensor>{floats(shape, std::vector<float>(static_cast<size_t>(rows * 15), 1))},
                      scalars, {{"batch", rows}}));
  };
  const auto all = run(0, 8, 0), head = run(0, 5, 0), tail = run(5, 3, 0), other = run(0, 8, 1);
  for (size_t result = 0; result < 2; ++result) {
    for (int64_t row = 0; row < 8; ++row) {
      const auto &[part, first, rows] = row < 5 ? std::tuple(head, int64_t{0}, 5) : std::tuple(tail, int64_t{5}, 3);
      for (int64_t i = 0; i < 15; ++i) {
        const auto at = [&](int64_t r, int64_t count) {
          return batch_axis == 0 ? r * 15 + i : (i / 5 * count + r) * 5 + i % 5;
        };
        assert_true(all[result].data_as<float>()[at(row, 8)] == part[result].data_as<float>()[at(row - first, rows)]);
      }
    }
    assert_false(tensor::identical(all[result], other[result]));
  }
}

void random_rows_do_not_move(void **) {
  check_random_rows(0);
  check_random_rows(1);
}

/// dropout_attention of rows [first, first + rows): what it forgets, as all scores are 0 and values tell keys apart,
/// and the gradient of the values. Two rows of its operands make a row of the batch.
std::vector<Tensor> forgotten_on(const backend::DeviceRef &device, int64_t first, int64_t rows, int64_t counter) {
  constexpr int64_t kLength = 6;
  GraphBuilder b;
  const graph::Dims wide{GraphBuilder::batch() * 2, kLength, 1, kLength};
  const ValueId q = b.input("q", DType::f32, {GraphBuilder::batch(), 2, kLength, 1, kLength});
  const ValueId v = b.input("v", DType::f32, {GraphBuilder::batch(), 2, kLength, 1, kLength});
  const ValueId values = b.reshape(v, wide), zeros = b.reshape(q, wide);
  const ValueId y = b.op_n("dropout_attention", {zeros, zeros, values}, {{"rate", 0.4}}, 2)[0];
  b.set_result("forgotten", y);
  const std::vector<ValueId> targets{b.reduce_sum(b.mul(y, y))}, seeds{b.constant(1, DType::f32)}, wrt{values};
  b.set_result("gradient", assert_ok_value(graph::gradients(b, targets, seeds, wrt))[0]);
  const graph::Graph graph = assert_ok_value(b.finish_graph());
  const auto executor = assert_ok_value(backend::GraphExecutor::create(device, graph));
  const std::vector<int64_t> shape{rows, 2, kLength, 1, kLength};
  const auto count = static_cast<size_t>(rows * 2 * kLength * kLength);
  std::vector<float> identity(count, 0);
  for (size_t i = 0; i < count; i += kLength)
    identity[i + i / kLength % kLength] = 1;
  RunScalars scalars;
  scalars.set(RunScalar::seed, 7).set(RunScalar::row_offset, first).set(RunScalar::batch_counter, counter);
  const std::vector<Tensor> inputs{floats(shape, std::vector<float>(count, 0)), floats(shape, identity)};
  return assert_ok_value(executor->run(inputs, scalars, {{"batch", rows}}));
}

void what_attention_forgets_does_not_move(void **) {
  const auto all = forgotten_on(tested->device, 0, 9, 0), other = forgotten_on(tested->device, 0, 9, 1);
  const auto head = forgotten_on(tested->device, 0, 5, 0), tail = forgotten_on(tested->device, 5, 4, 0);
  const auto expected = forgotten_on(tested->oracle, 0, 9, 0);
  int64_t forgotten = 0;
  for (size_t result = 0; result < 2; ++result) {
    assert_false(tensor::identical(all[result], other[result]));
    assert_ok(tensor::compare_close(all[result], expected[result], 1e-5, 1e-6));
    const float *const values = all[result].data_as<float>(), *const first = head[result].data_as<float>();
    for (int64_t i = 0; i < all[result].elements(); ++i) {
      const int64_t behind = i - head[result].elements();
      assert_true(values[i] == (behind < 0 ? first[i] : tail[result].data_as<float>()[behind]));
      forgotten += result == 0 && values[i] == 0 ? 1 : 0;
      assert_true((values[i] == 0) == (expected[result].data_as<float>()[i] == 0));
    }
  }
  // 648 draws of 0.4: this is five deviations.
  assert_in_range(forgotten, 197, 322);
}

void zero_rows_are_legal(void **) {
  GraphBuilder b;
  const ValueId x = b.input("x", DType::f32, {b.batch(), 4}), labels = b.input("labels", DType::i64, {b.batch()});
  const ValueId w = b.constant(floats({4, 3}, std::vector<float>(12, 0.5f)));
  const ValueId logits = b.matmul(b.unary("relu", x), w);
  const ValueId loss = b.reduce_sum(b.op("sparse_softmax_cross_entropy", {logits, labels}));
  const std::vector<ValueId> targets{loss}, seeds{b.constant(1, DType::f32)}, wrt{w};
  b.set_result("dw", assert_ok_value(graph::gradients(b, targets, seeds, wrt))[0]);
  b.set_result("loss", loss);
  auto bound = bind(b, nullptr, {{"batch", 0}});
  const auto results = assert_ok_value(bound->run({floats({0, 4}, {}), ints({})}));
  assert_values(results[0], std::vector<float>(12, 0));
  assert_values(results[1], {0});
}

void errors_in_the_data_name_the_row(void **) {
  GraphBuilder b;
  const ValueId logits = b.input("logits", DType::f32, {3, 4}), labels = b.input("labels", DType::i64, {3});
  b.push_scope("head");
  b.set_result("loss", b.op("sparse_softmax_cross_entropy", {logits, labels}));
  auto bound = bind(b);
  const Tensor x = floats({3, 4}, std::vector<float>(12, 0));
  assert_ok(bound->run({x, ints({0, 3, 1})}));
  const auto failed = bound->run({x, ints({0, 3, 4})});
  assert_int_equal(static_cast<int>(failed.code()), static_cast<int>(base::Code::invalid_argument));
  assert_error_contains(failed, "head/sparse_softmax_cross_entropy");
  assert_error_contains(failed, "row 2");
  assert_error_contains(failed, "4");
  assert_error_contains(bound->run({x, ints({-1, 0, 0})}), "row 0");
  assert_ok(bound->run({x, ints({0, 0, 0})}));

  GraphBuilder g;
  g.set_result("y", g.op("gather", {g.input("params", DType::f32, {3, 4}), g.input("indices", DType::i64, {3})}));
  auto gather = bind(g);
  assert_error_contains(gather->run({x, ints({0, 3, 1})}), "index 3");
  assert_ok(gather->run({x, ints({0, 2, 1})}));

  // Of a batch the rows of the run are those from row_offset on.
  GraphBuilder r;
  const ValueId rows = r.input("logits", DType::f32, {r.batch(), 4});
  const ValueId table = r.input("table", DType::f32, {3, 4}), indices = r.input("indices", DType::i64, {r.batch()});
  r.set_result("loss", r.op("sparse_softmax_cross_entropy", {rows, r.input("labels", DType::i64, {r.batch()})}));
  r.set_result("y", r.op("gather", {table, indices}));
  auto of_rows = bind(r, nullptr, {{"batch", 3}});
  backend::RunScalars scalars;
  scalars.set(backend::RunScalar::row_offset, 40).set(backend::RunScalar::local_rows, 3);
  const Tensor good = ints({0, 1, 2}), bad = ints({0, 1, 9});
  const auto run = [&](const Tensor &at, const Tensor &labels) {
    const std::map<std::string, Tensor> named{{"logits", x}, {"table", x}, {"indices", at}, {"labels", labels}};
    std::vector<Tensor> inputs;
    for (const auto &port : of_rows->description().inputs)
      inputs.push_back(named.at(port.name));
    return of_rows->run(inputs, scalars).status();
  };
  assert_ok(run(good, good));
  assert_error_contains(run(good, bad), "label 9 in row 42 is outside [0, 4)");
  assert_error_contains(run(bad, good), "index 9 in row 42 is outside [0, 3)");
}

void compile_errors_say_what_is_missing(void **) {
  const auto compile = [](GraphBuilder &b, graph::SymbolBindings bindings, Arenas *arenas) {
    return BoundGraph::make(tested->device, assert_ok_value(b.finish_graph()), std::move(bindings), arenas).status();
  };
  GraphBuilder unbound;
  unbound.set_result("y", unbound.unary("neg", unbound.input("x", DType::f32, {unbound.batch()})));
  assert_error_contains(compile(unbound, {}, nullptr), "batch");

  Arenas arenas = assert_ok_value(Arenas::make(tested->device, state_of({{"w", {3}}})));
  GraphBuilder unknown;
  unknown.set_result("y", unknown.state_read("no/such", DType::f32, {3}));
  assert_error_contains(compile(unknown, {}, &arenas), "no/such");
  GraphBuilder misfit;
  misfit.set_result("y", misfit.state_read("w", DType::f32, {4}));
  assert_error_contains(compile(misfit, {}, &arenas), "w");
}

void regions_run(void **) {
  if (!tested->device->backend().runs_regions()) test_skip();
  GraphBuilder b;
  const ValueId x = b.input("x", DType::f32, {3, 2}), p = b.input("p", DType::boolean, {});
  const Values called = b.call({x}, [&](GraphBuilder &in, const Values &v) {
    return Values{in.scale(v[0], 3), in.add(v[0], v[0])};
  });
  b.set_result("call0", called[0]);
  b.set_result("call1", called[1]);
  const Values custom = b.custom_gradient(
      {x}, [](GraphBuilder &in, const Values &v) { return Values{in.unary("square", v[0])}; },
      [](GraphBuilder &in, const Values &v) { return Values{in.scale(v[2], 100)}; });
  b.set_result("custom", custom[0]);
  b.set_result("cond", b.cond(
                           p, [&](GraphBuilder &in, const Values &) { return Values{in.scale(x, 2)}; },
                           [&](GraphBuilder &in, const Values &) { return Values{in.unary("neg", x)}; })[0]);
  const ValueId start = b.constant(floats({2}, {1, 1})), factor = b.constant(2, DType::f32);
  for (const bool reverse : {false, true}) {
    // state = factor · state + element; stacked: the state before.
    const Values scanned = b.scan(
        {start}, {x},
        [&](GraphBuilder &in, const Values &v) {
          return Values{in.add(in.mul(v[0], factor), v[1]), v[0]};
        },
        0, reverse);
    b.set_result(reverse ? "last_reversed" : "last", scanned[0]);
    b.set_result(reverse ? "before_reversed" : "before", scanned[1]);
  }
  const Values columns = b.scan(
      {b.constant(floats({3}, {0, 0, 0}))}, {x},
      [](GraphBuilder &in, const Values &v) {
        const ValueId sum = in.add(v[0], v[1]);
        return Values{sum, sum};
      },
      1);
  b.set_result("sums", columns[1]);
  auto bound = bind(b);
  const auto &names = bound->description();
  for (const bool yes : {true, false}) {
    const auto results = assert_ok_value(bound->run({floats({3, 2}, {1, 2, 3, 4, 5, 6}), flag(yes)}));
    const auto result = [&](const char *name) { return results[static_cast<size_t>(names.output_index(name))]; };
    assert_values(result("call0"), {3, 6, 9, 12, 15, 18});
    assert_values(result("call1"), {2, 4, 6, 8, 10, 12});
    assert_values(result("custom"), {1, 4, 9, 16, 25, 36});
    assert_values(result("cond"),
                  yes ? std::vector<float>{2, 4, 6, 8, 10, 12} : std::vector<float>{-1, -2, -3, -4, -5, -6});
    assert_values(result("last"), {23, 30});
    assert_values(result("before"), {1, 1, 3, 4, 9, 12});
    assert_values(result("last_reversed"), {35, 42});
    assert_values(result("before_reversed"), {17, 20, 7, 8, 1, 1});
    assert_values(result("sums"), {1, 3, 3, 7, 5, 11});
  }
}

/// Each iteration of a scan draws numbers of its own, the same ones in whichever direction it runs.
void iterations_of_a_scan_are_random(void **) {
  if (!tested->device->backend().runs_regions()) test_skip();
  GraphBuilder b;
  const ValueId x = b.input("x", DType::f32, {4, 3});
  const auto noise = [](GraphBuilder &in) {
    return in.op("random_uniform", Values{}, {{"dims", graph::Dims{3}}, {"key", int64_t{5}}});
  };
  const auto drawn = [&](GraphBuilder &in, const Values &) { return Values{noise(in)}; };
  b.set_result("forward", b.scan({}, {x}, drawn)[0]);
  b.set_result("reverse", b.scan({}, {x}, drawn, 0, true)[0]);
  b.set_result("nested", b.scan({}, {x}, [&](GraphBuilder &in, const Values &v) {
    return Values{in.scan({}, {v[0]}, drawn)[0]};
  })[0]);
  b.set_result("outside", noise(b));
  auto bound = bind(b);
  const auto &names = bound->description();
  const auto results = assert_ok_value(bound->run({floats({4, 3}, std::vector<float>(12, 0))}));
  const auto result = [&](const char *name) { return results[static_cast<size_t>(names.output_index(name))]; };
  assert_true(tensor::identical(result("forward"), result("reverse")));
  std::set<float> all;
  for (const char *name : {"forward", "nested", "outside"}) {
    const auto values = assert_ok_value(result(name).values<float>());
    all.insert(values.begin(), values.end());
  }
  assert_int_equal(all.size(), 12 + 36 + 3);
}

/// Two layers, trained by plain steps in state; also the test of run() without allocation.
void a_small_network_learns(void **) {
  const int64_t rows = 32;
  Arenas arenas = assert_ok_value(Arenas::make(
      tested->device, state_of({{"w1", {2, 16}}, {"b1", {16}}, {"w2", {16, 2}}, {"b2", {2}}, {"loss", {}}})));
  std::vector<float> w1, w2, xs;
  std::vector<int64_t> ys;
  for (int i = 0; i < 32; ++i)
    w1.push_back(static_cast<float>((i * 37 % 17) - 8) / 8);
  for (int i = 0; i < 32; ++i)
    w2.push_back(static_cast<float>((i * 53 % 19) - 9) / 9);
  for (int i = 0; i < rows; ++i) {
    const float a = static_cast<float>(i % 8) / 4 - 1, c = static_cast<float>(i / 8) / 2 - 1;
    xs.insert(xs.end(), {a, c});
    ys.push_back(a * c > 0 ? 1 : 0);
  }
  assert_ok(arenas.write("w1", floats({2, 16}, w1)));
  assert_ok(arenas.write("w2", floats({16, 2}, w2)));

  GraphBuilder b;
  const ValueId x = b.input("x", DType::f32, {b.batch(), 2}), y = b.input("y", DType::i64, {b.batch()});
  const std::vector<std::pair<const char *, graph::Dims>> shapes = {
      {"w1", {2, 16}}, {"b1", {16}}, {"w2", {16, 2}}, {"b2", {2}}};
  std::vector<ValueId> weights;
  for (const auto &[entry, dims] : shapes)
    weights.push_back(b.state_read(entry, DType::f32, dims));
  const ValueId hidden = b.unary("relu", b.add(b.matmul(x, weights[0]), weights[1]));
  const ValueId logits = b.add(b.matmul(hidden, weights[2]), weights[3]);
  const ValueId loss = b.reduce_mean(b.op("sparse_softmax_cross_entropy", {logits, y}));
  const std::vector<ValueId> targets{loss}, seeds{b.constant(1, DType::f32)};
  const std::vector<ValueId> gradients = assert_ok_value(graph::gradients(b, targets, seeds, weights));
  const ValueId ok = b.op("all_finite", {loss}), rate = b.constant(0.5, DType::f32);
  for (size_t i = 0; i < weights.size(); ++i)
    b.state_write(b.op("sgd_update", {weights[i], gradients[i], rate, ok}), shapes[i].first);
  b.state_write(loss, "loss");
  auto bound = bind(b, &arenas, {{"batch", rows}});
  RunScalars scalars;
  scalars.set(RunScalar::local_rows, rows).set(RunScalar::step_rows, rows);
  assert_ok(bound->run({floats({rows, 2}, xs), ints(ys)}, scalars));
  const float first = assert_ok_value(assert_ok_value(arenas.read("loss")).scalar_value<float>());
  assert_ok(bound->run_again(scalars));
  const tutti::testing::AllocationProbe probe;
  for (int step = 0; step < 200; ++step)
    assert_ok(bound->run_again(scalars));
  // What a runtime of devices allocates is not ours.
  if (tested->device->backend().has_host_memory()) assert_int_equal(probe.count(), 0);
  const float last = assert_ok_value(assert_ok_value(arenas.read("loss")).scalar_value<float>());
  assert_true(last < 0.1f * first);
}

void programs_run_side_by_side(void **) {
  GraphBuilder b;
  const ValueId x = b.input("x", DType::f32, {b.batch(), 8});
  b.set_result("y", b.matmul(x, b.constant(floats({8, 8}, std::vector<float>(64, 1)))));
  const graph::Graph graph = assert_ok_value(b.finish_graph());
  auto executor = assert_ok_value(backend::GraphExecutor::create(tested->device, graph, {.cache_limit = 2}));
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      for (int run = 0; run < 20; ++run) {
        const int64_t rows = 1 + (thread + run) % 4;
        const std::vector<Tensor> input{
            floats({rows, 8}, std::vector<float>(static_cast<size_t>(rows * 8), static_cast<float>(thread)))};
        auto results = executor->run(input);
        if (!results.ok() || results->at(0).rows() != rows ||
            results->at(0).data_as<float>()[0] != 8.0f * static_cast<float>(thread))
          ++wrong;
      }
    });
  }
  for (std::thread &thread : threads)
    thread.join();
  assert_int_equal(wrong.load(), 0);
  const backend::GraphExecutorCounters counters = executor->counters();
  assert_int_equal(counters.runs, 80);
  assert_true(counters.compiled >= 4 && counters.evicted == counters.compiled - 2);
}

void executors_name_the_input_that_does_not_fit(void **) {
  GraphBuilder b;
  const ValueId x = b.input("left", DType::f32, {b.batch(), 2}), y = b.input("right", DType::f32, {b.batch(), 2});
  b.set_result("sum", b.add(x, y));
  auto executor = assert_ok_value(backend::GraphExecutor::create(tested->device, assert_ok_value(b.finish_graph())));
  const Tensor two = floats({2, 2}, {1, 2, 3, 4}), three = floats({3, 2}, std::vector<float>(6, 0));
  assert_error_contains(executor->run(std::vector<Tensor>{two, three}), "right");
  assert_error_contains(executor->run(std::vector<Tensor>{two, ints({1})}), "right");
  assert_error_contains(executor->run(std::vector<Tensor>{two}), "2 inputs");
  // A view whose memory is not aligned.
  const Tensor view = assert_ok_value(three.slice_rows(1, 3));
  assert_values(assert_ok_value(executor->run(std::vector<Tensor>{two, view}))[0], {1, 2, 3, 4});
}

const CMUnitTest kTests[] = {
    cmocka_unit_test(state_is_read_written_and_added),
    cmocka_unit_test(a_written_value_survives_later_work),
    cmocka_unit_test(an_old_value_survives_its_entry),
    cmocka_unit_test(a_sum_is_of_what_was_read),
    cmocka_unit_test(results_may_alias),
    cmocka_unit_test(an_update_works_on_its_slice),
    cmocka_unit_test(updates_need_no_workspace),
    cmocka_unit_test(run_scalars_reach_the_graph),
    cmocka_unit_test(random_rows_do_not_move),
    cmocka_unit_test(what_attention_forgets_does_not_move),
    cmocka_unit_test(zero_rows_are_legal),
    cmocka_unit_test(errors_in_the_data_name_the_row),
    cmocka_unit_test(compile_errors_say_what_is_missing),
    cmocka_unit_test(regions_run),
    cmocka_unit_test(iterations_of_a_scan_are_random),
    cmocka_unit_test(a_small_network_learns),
    cmocka_unit_test(programs_run_side_by_side),
    cmocka_unit_test(executors_name_the_input_that_does_not_fit),
};

}  // namespace

int main(int argc, char **argv) {
  auto opened = conformance::open_backend_under_test(argc, argv);
  if (!opened.ok()) return conformance::exit_without_backend(opened.status());
  tested = &*opened;
  return cmocka_run_group_tests_name("programs", kTests, nullptr, nullptr);
}
