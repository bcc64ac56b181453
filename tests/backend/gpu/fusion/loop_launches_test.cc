// SPDX-License-Identifier: Apache-2.0
//
// How many launches an iteration of a loop is: what lies between products is one, and one with a product where kernels
// are compiled at run time, as the report says; and the values are those of the reference backend.
//
// usage: loop_launches_test PLUG-IN
#include <string>
#include <vector>

#include "backend_cases.h"
#include "backend_under_test.h"
#include "bound_graph.h"
#include "graph/autodiff.h"
#include "graph/rewrite/rewrites.h"
#include "testing.h"

namespace loop_launches_test {

using namespace tutti::impl;
using conformance::BackendUnderTest;
using graph::Dim;
using graph::GraphBuilder;
using graph::ValueId;
using tensor::DType;
using tensor::Tensor;
using Values = GraphBuilder::Values;

namespace {

BackendUnderTest *tested = nullptr;

constexpr int64_t kRows = 5, kLength = 7, kUnits = 12;

/// By loop, in the order of the graph as trainers compile it.
struct Launches {
  std::vector<int64_t> of_iteration;
  int64_t workspace_bytes = 0;
  bool is_generated = false;  ///< are kernels compiled at run time: with products in them?
};

Launches launches(const std::vector<Tensor> &inputs, const conformance::BuildFunction &build, int32_t flags = 0) {
  const auto graph = graph::rewrite::optimize(
      graph::rewrite::inline_regions(assert_ok_value(conformance::build_graph(inputs, build))));
  const auto bound = assert_ok_value(conformance::BoundGraph::make(tested->device, graph, {}, nullptr, flags));
  const auto oracle = assert_ok_value(conformance::BoundGraph::make(tested->oracle, graph));
  const auto expected = assert_ok_value(oracle->run(inputs)), results = assert_ok_value(bound->run(inputs));
  assert_int_equal(results.size(), expected.size());
  for (size_t i = 0; i < results.size(); ++i)
    assert_ok(tensor::compare_close(results[i], expected[i], 1e-4, 1e-4));
  const std::string &report = bound->description().report_json;
  const std::string word = "\"scan of ";
  Launches found;
  found.workspace_bytes = bound->description().workspace_bytes;
  found.is_generated = report.find("\"compiler\"") != std::string::npos;
  for (size_t at = report.find(word); at != std::string::npos; at = report.find(word, at + 1))
    found.of_iteration.push_back(std::stoll(report.substr(at + word.size())));
  return found;
}

std::vector<Tensor> operands(const std::vector<std::vector<int64_t>> &shapes) {
  return assert_ok_value(conformance::make_operands(shapes, DType::f32, 800));
}

ValueId part(GraphBuilder &b, ValueId gates, int64_t index) {
  return b.slice(gates, {Dim(0), Dim(index * kUnits)}, {Dim(kRows), Dim(kUnits)});
}

/// The sums of all that the loop gives, with the gradients of those.
Values with_gradients(GraphBuilder &b, const Values &made, const Values &inputs) {
  ValueId loss = b.reduce_mean(b.unary("square", made[0]));
  for (size_t i = 1; i < made.size(); ++i)
    loss = b.add(loss, b.reduce_mean(b.unary("square", made[i])));
  const Values targets{loss}, seeds{b.constant(1, DType::f32)};
  Values results = made;
  const Values gradients = assert_ok_value(graph::gradients(b, targets, seeds, inputs));
  results.insert(results.end(), gradients.begin(), gradients.end());
  return results;
}

/// Long short-term memory: all gates are one product; what the backward pass wants is stacked.
Values lstm(GraphBuilder &b, const Values &v, int64_t axis) {
  const ValueId zeros = b.broadcast_to(b.constant(0, DType::f32), {Dim(kRows), Dim(kUnits)});
  const auto body = [&](GraphBuilder &in, const Values &at) {
    const ValueId gates = in.add(at[2], in.matmul(at[0], v[1]));
    const ValueId i = in.unary("sigmoid", part(in, gates, 0)), f = in.unary("sigmoid", part(in, gates, 1));
    const ValueId g = in.unary("tanh", part(in, gates, 2)), o = in.unary("sigmoid", part(in, gates, 3));
    const ValueId c = in.add(in.mul(f, at[1]), in.mul(i, g));
    const ValueId h = in.mul(o, in.unary("tanh", c));
    return Values{h, c, h, at[1], i, f, g, o};
  };
  return with_gradients(b, {b.scan({zeros, zeros}, {v[0]}, body, axis)[2]}, v);
}

void gates_are_one_launch(void **) {
  const auto along = [](int64_t axis) { return [axis](GraphBuilder &b, const Values &v) { return lstm(b, v, axis); }; };
  const auto inner = launches(operands({{kRows, kLength, 4 * kUnits}, {kUnits, 4 * kUnits}}), along(1));
  const auto outer = launches(operands({{kLength, kRows, 4 * kUnits}, {kUnits, 4 * kUnits}}), along(0));
  const std::vector<int64_t> expected(2, inner.is_generated ? 1 : 2);
  assert_true(inner.of_iteration == expected);
  assert_true(outer.of_iteration == expected);
}

/// Whether a product is part of a launch depends on how many rows there are.
void rows_by_themselves_stay_with_calls(void **) {
  const auto build = [](GraphBuilder &b, const Values &v) { return lstm(b, v, 1); };
  const auto found =
      launches(operands({{kRows, kLength, 4 * kUnits}, {kUnits, 4 * kUnits}}), build, TUTTI_COMPILE_ROW_INVARIANT);
  assert_true(found.of_iteration == std::vector<int64_t>(2, 2));
}

/// What ends early keeps its state: which rows go on is a launch of its own, since lengths are integers.
void rows_that_end_early(void **) {
  const auto build = [](GraphBuilder &b, const Values &v) {
    const ValueId zeros = b.broadcast_to(b.constant(0, DType::f32), {Dim(kRows), Dim(kUnits)});
    const ValueId lengths = b.constant(assert_ok_value(Tensor::from_values<int32_t>({kRows, 1}, {3, 7, 0, 1, 5})));
    const ValueId positions = b.reshape(b.op("iota", Values{}, {{"dims", graph::Dims{kLength}}, {"dtype", DType::i32}}),
                                        {Dim(1), Dim(kLength)});
    return b.scan(
        {zeros}, {v[0], positions},
        [&](GraphBuilder &in, const Values &at) {
          const ValueId next = in.unary("tanh", in.add(at[1], in.matmul(at[0], v[1])));
          const ValueId is_inside = in.op("less", {at[2], lengths});
          return Values{in.select(is_inside, next, at[0]), in.select(is_inside, next, in.constant(0, DType::f32))};
        },
        1);
  };
  const auto found = launches(operands({{kRows, kLength, kUnits}, {kUnits, kUnits}}), build);
  assert_int_equal(found.of_iteration.size(), 1);
  assert_int_equal(found.of_iteration[0], found.is_generated ? 2 : 3);
}

/// Each node reads the one before it twice: there are 2^40 ways to the last one.
void chains_are_walked_once(void **) {
  const auto build = [](GraphBuilder &b, const Values &v) {
    return b.scan(
        {}, {v[0]},
        [](GraphBuilder &in, const Values &at) {
          ValueId gates = at[0];
          for (int32_t i = 0; i < 40; ++i)
            gates = in.op("maximum", {gates, gates});
          return Values{in.add(part(in, gates, 0), part(in, gates, 1))};
        },
        1);
  };
  const auto found = launches(operands({{kRows, kLength, 2 * kUnits}}), build);
  assert_int_equal(found.of_iteration.size(), 1);
  assert_true(found.of_iteration[0] < 6);
}

/// A chain of more nodes than a stack holds frames.
void chains_of_many_nodes(void **) {
  const auto build = [](GraphBuilder &b, const Values &v) {
    return b.scan(
        {}, {v[0]},
        [](GraphBuilder &in, const Values &at) {
          ValueId x = at[0];
          for (int32_t i = 0; i < 3000; ++i)
            x = in.op("maximum", {x, at[0]});
          return Values{x};
        },
        1);
  };
  const auto found = launches(operands({{kRows, 2, kUnits}}), build);
  assert_int_equal(found.of_iteration.size(), 1);
  assert_in_range(found.of_iteration[0], 3000 / 48, 3000 / 20);
}

/// More states than one launch stores beside its own result: those before each iteration are stacked.
void many_states_before_each_iteration(void **) {
  constexpr size_t kStates = 14;
  const auto build = [](GraphBuilder &b, const Values &v) {
    return b.scan(
        Values(v.begin() + 1, v.end()), {v[0]},
        [](GraphBuilder &in, const Values &at) {
          Values results;
          for (size_t i = 0; i < kStates; ++i)
            results.push_back(in.unary("tanh", in.add(at[i], at[kStates])));
          results.insert(results.end(), at.begin(), at.begin() + kStates);
          return results;
        },
        1);
  };
  std::vector<std::vector<int64_t>> shapes(1 + kStates, {kRows, kUnits});
  shapes[0] = {kRows, kLength, kUnits};
  const auto found = launches(operands(shapes), build);
  assert_int_equal(found.of_iteration.size(), 1);
  assert_true(found.of_iteration[0] <= 5);
}

/// Which a block would add up alone.
void long_sums_stay_with_calls(void **) {
  const auto build = [](GraphBuilder &b, const Values &v) {
    return b.scan(
        {}, {v[0]},
        [&](GraphBuilder &in, const Values &at) { return Values{in.unary("tanh", in.matmul(at[0], v[1]))}; }, 0);
  };
  const auto found = launches(operands({{2, 4, 5000}, {5000, 4}}), build);
  assert_true(found.of_iteration == std::vector<int64_t>(1, 2));
}

/// What a call makes takes memory from when it is read: one after the other.
void calls_wait_for_their_readers(void **) {
  constexpr int64_t kCalls = 16, kWide = 4096;
  const auto build = [](GraphBuilder &b, const Values &v) {
    return b.scan(
        {v[0]}, {v[1]},
        [](GraphBuilder &in, const Values &at) {
          ValueId state = in.add(at[0], at[1]);
          for (int64_t i = 0; i < kCalls; ++i) {
            const ValueId noise = in.op("random_uniform", Values{}, {{"dims", graph::Dims{kRows, kWide}}, {"key", i}});
            state = in.op("reverse_axes", {in.mul(state, noise)}, {{"axes", std::vector<int64_t>{1}}});
          }
          return Values{state};
        },
        0);
  };
  const auto found = launches(operands({{kRows, kWide}, {2, kRows, kWide}}), build);
  assert_true(found.workspace_bytes < 14 * kRows * kWide * 4);
}

/// Nothing but copies, which whoever issues the loop makes.
void a_body_without_work(void **) {
  const auto build = [](GraphBuilder &b, const Values &v) {
    return b.scan(
        {v[1], v[2]}, {v[0]},
        [](GraphBuilder &, const Values &at) {
          return Values{at[1], at[2], at[0], at[2]};
        },
        1);
  };
  const auto found = launches(operands({{kRows, kLength, kUnits}, {kRows, kUnits}, {kRows, kUnits}}), build);
  assert_int_equal(found.of_iteration.size(), 1);
  assert_int_equal(found.of_iteration[0], 0);
}

const CMUnitTest kTests[] = {
    cmocka_unit_test(gates_are_one_launch),      cmocka_unit_test(rows_by_themselves_stay_with_calls),
    cmocka_unit_test(rows_that_end_early),       cmocka_unit_test(chains_are_walked_once),
    cmocka_unit_test(chains_of_many_nodes),      cmocka_unit_test(many_states_before_each_iteration),
    cmocka_unit_test(long_sums_stay_with_calls), cmocka_unit_test(calls_wait_for_their_readers),
    cmocka_unit_test(a_body_without_work),
};

}  // namespace

static int run_all(int argc, char **argv) {
  auto opened = conformance::open_backend_under_test(argc, argv);
  if (!opened.ok()) return conformance::exit_without_backend(opened.status());
  BackendUnderTest backend = std::move(opened).value();
  tested = &backend;
  return cmocka_run_group_tests(kTests, nullptr, nullptr);
}
TEST_SOURCE(run_all)

}  // namespace loop_launches_test
