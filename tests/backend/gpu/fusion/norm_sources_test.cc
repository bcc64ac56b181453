// SPDX-License-Identifier: Apache-2.0
//
// Convolutions that are computed with the normalisation of what they make, against the reference backend: which nodes
// the report says are one call, and that what lies between is stored. The emulated GPU has a library for that
// (emulated_library.h).
//
// usage: norm_sources_test PLUG-IN
#include <tutti/plugin/backend.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "backend_cases.h"
#include "backend_under_test.h"
#include "bound_graph.h"
#include "testing.h"

namespace norm_sources_test {

using namespace tutti::impl;
using conformance::BackendUnderTest;
using graph::Attributes;
using graph::GraphBuilder;
using graph::ValueId;
using tensor::DType;
using tensor::Tensor;
using Values = GraphBuilder::Values;
using Dims = std::vector<int64_t>;

namespace {

BackendUnderTest *tested = nullptr;

/// An image [2, 5, 4, 3], kernels, scale, offset, a residual.
std::vector<Tensor> operands(int64_t filters = 6) {
  std::vector<Tensor> made;
  for (const Dims &dims : {Dims{2, 5, 4, 3}, Dims{3, 3, 3, filters}, Dims{filters}, Dims{filters},
                           Dims{2, 5, 4, filters}, Dims{3, 3, filters, filters}}) {
    conformance::Operand operand;
    operand.dims = dims;
    made.push_back(assert_ok_value(conformance::make_operand(operand, 40 + made.size())));
  }
  return made;
}

/// How many nodes the report says that kernel computes.
size_t count_of(const conformance::BoundGraph &bound, const std::string &kernel) {
  const std::string &report = bound.description().report_json;
  size_t count = 0;
  for (size_t at = report.find("\"" + kernel + "\""); at != std::string::npos; ++count)
    at = report.find("\"" + kernel + "\"", at + 1);
  return count;
}

/// How many nodes the report says are computed by a call of so many; all results are right.
size_t check(const conformance::BuildFunction &build, const std::string &kernel) {
  const std::vector<Tensor> inputs = operands();
  const auto expected = assert_ok_value(conformance::run_graph(tested->oracle, inputs, build));
  const auto results = assert_ok_value(conformance::run_graph(tested->device, inputs, build));
  assert_int_equal(results.size(), expected.size());
  for (size_t i = 0; i < results.size(); ++i)
    assert_ok(tensor::compare_close(results[i], expected[i], 1e-3, 1e-3));
  const auto graph = assert_ok_value(conformance::build_graph(inputs, build));
  const auto bound = assert_ok_value(conformance::BoundGraph::make(tested->device, graph));
  return count_of(*bound, kernel);
}

ValueId convolve(GraphBuilder &b, ValueId x, ValueId kernel) { return b.op("conv2d", {x, kernel}); }
Values norm(GraphBuilder &b, ValueId x, const Values &v) {
  return b.op_n("batch_norm_training", {x, v[2], v[3]}, {{"epsilon", 0.01}}, 3);
}

void convolutions_give_their_sums(void **) {
  assert_int_equal(check(
                       [](GraphBuilder &b, const Values &v) {
                         const ValueId x = convolve(b, v[0], v[1]);
                         const Values y = norm(b, x, v);
                         return Values{y[0], y[1], y[2], x};
                       },
                       "emulated(2)"),
                   2);
}

/// Of what follows only the root is stored, but the convolution's result is, too.
void with_what_follows(void **) {
  assert_int_equal(check(
                       [](GraphBuilder &b, const Values &v) {
                         const ValueId x = convolve(b, v[0], v[1]);
                         const Values y = norm(b, x, v);
                         const ValueId running = b.add(y[1], y[2]);
                         const ValueId z = b.unary("relu", b.add(y[0], v[4]));
                         return Values{z, running, b.mul(x, z)};
                       },
                       "emulated(4)"),
                   3);
}

/// Two in a row and a residual from in front of them: memory is used again.
void blocks_follow_each_other(void **) {
  const auto build = [](GraphBuilder &b, const Values &v) {
    ValueId x = b.unary("relu", norm(b, convolve(b, v[0], v[1]), v)[0]);
    for (int i = 0; i < 3; ++i) {
      const ValueId y = b.unary("relu", norm(b, convolve(b, x, v[5]), v)[0]);
      x = b.unary("relu", b.add(norm(b, convolve(b, y, v[5]), v)[0], x));
    }
    return Values{x};
  };
  assert_int_equal(check(build, "emulated(3)"), 4 * 3);
  assert_int_equal(check(build, "emulated(4)"), 3 * 3);
}

void the_rest_stays_apart(void **) {
  // Read before the normalisation's turn.
  assert_int_equal(check(
                       [](GraphBuilder &b, const Values &v) {
                         const ValueId x = convolve(b, v[0], v[1]);
                         const ValueId mean = b.reduce_sum(x, {0, 1, 2});
                         return Values{norm(b, x, {v[0], v[1], mean, v[3]})[0], mean};
                       },
                       "emulated(2)"),
                   0);
  // A bias of its own; no convolution.
  assert_int_equal(check(
                       [](GraphBuilder &b, const Values &v) {
                         return Values{norm(b, b.op("conv2d", {v[0], v[1], v[2]}), v)[0], norm(b, v[4], v)[0]};
                       },
                       "emulated(2)"),
                   0);
}

/// In mixed precision a bias of the convolution's own is added to the mean; statistics, what is normalised and its
/// gradient are those of f32, whatever the bias.
size_t check_biased(double bias_size, bool is_read_elsewhere) {
  std::vector<Tensor> inputs = operands();
  conformance::Operand bias;
  bias.dims = {6};
  bias.low = bias_size - 1;
  bias.high = bias_size + 1;
  inputs.push_back(assert_ok_value(conformance::make_operand(bias, 90)));
  const auto build = [&](GraphBuilder &b, const Values &v) {
    const ValueId x = b.op("conv2d", {v[0], v[1], v[6]});
    const Values y = norm(b, x, v);
    const Values slopes = b.op_n("batch_norm_training_gradient", {v[4], x, v[2], y[1], y[2]}, {{"epsilon", 0.01}}, 3);
    Values results{convolve(b, b.unary("relu", b.add(y[0], v[4])), v[5]), y[1], y[2], slopes[0], slopes[1], slopes[2]};
    if (is_read_elsewhere) results.push_back(b.unary("tanh", x));
    return results;
  };
  const auto expected = assert_ok_value(conformance::run_graph(tested->oracle, inputs, build));
  const auto graph = assert_ok_value(conformance::build_graph(inputs, build));
  const auto bound = assert_ok_value(
      conformance::BoundGraph::make(tested->device, graph, {}, nullptr, TUTTI_COMPILE_BF16_WHERE_FASTER));
  const auto results = assert_ok_value(bound->run(inputs));
  assert_int_equal(results.size(), expected.size());
  // The first adds up 54 products, whose factors are rounded.
  for (size_t i = 0; i < results.size(); ++i)
    assert_ok(tensor::compare_close(results[i], expected[i], 5e-2, i == 0 ? 0.25 : 5e-2));
  const std::string &report = bound->description().report_json;
  return report.find("\"emulated(") != std::string::npos ? 1 : 0;
}

/// What several devices compute of sums, each of its own rows.
void biases_go_to_the_sums(void **) {
  for (const double size : {0.0, 300.0}) {
    std::vector<Tensor> inputs = operands();
    inputs.push_back(assert_ok_value(conformance::make_operand({DType::f32, {6}, size - 1, size + 1}, 90)));
    const auto build = [&](GraphBuilder &b, const Values &v) {
      const ValueId x = b.op("conv2d", {v[0], v[1], v[6]}), count = b.constant(40, DType::f64);
      const Values sums = b.op_n("batch_norm_moments", {x});
      const ValueId exact = b.div(sums[0], count);
      const ValueId mean = b.cast(exact, DType::f32);
      const ValueId variance = b.cast(b.sub(b.div(sums[1], count), b.mul(exact, exact)), DType::f32);
      const ValueId y = b.op("batch_norm_inference", {x, v[2], v[3], mean, variance}, {{"epsilon", 0.01}});
      const Values slopes = b.op_n("batch_norm_gradient_moments", {v[4], x, mean});
      const ValueId dx = b.op("batch_norm_gradient_apply", {v[4], x, v[2], mean, variance, slopes[0], slopes[1], count},
                              {{"epsilon", 0.01}});
      return Values{convolve(b, b.unary("relu", b.add(y, v[4])), v[5]), mean, variance, dx};
    };
    const auto expected = assert_ok_value(conformance::run_graph(tested->oracle, inputs, build));
    const auto graph = assert_ok_value(conformance::build_graph(inputs, build));
    const auto bound = assert_ok_value(
        conformance::BoundGraph::make(tested->device, graph, {}, nullptr, TUTTI_COMPILE_BF16_WHERE_FASTER));
    assert_int_equal(count_of(*bound, "emulated(2)"), 2);
    const auto results = assert_ok_value(bound->run(inputs));
    for (size_t i = 0; i < results.size(); ++i)
      assert_ok(tensor::compare_close(results[i], expected[i], 5e-2, i == 0 ? 0.25 : 5e-2));
  }
}

void biases_go_to_the_mean(void **) {
  for (const double size : {0.0, 1.0, 300.0})
    assert_int_equal(check_biased(size, false), 1);
  assert_int_equal(check_biased(0, true), 0);
}

/// A residual that is read at another normalisation's turn must be there by then.
void what_is_read_early_does_not_wait(void **) {
  (void)check(
      [](GraphBuilder &b, const Values &v) {
        const ValueId late = convolve(b, v[0], v[1]);
        const ValueId other = norm(b, v[4], v)[0];
        const Values y = norm(b, late, v);
        return Values{y[0], b.unary("relu", b.add(other, late))};
      },
      "");
}

}  // namespace

static int run_all(int argc, char **argv) {
  if (setenv("TUTTI_EMULATED_LIBRARY", "sums", 1) != 0) return 1;
  auto opened = conformance::open_backend_under_test(argc, argv);
  if (!opened.ok()) return conformance::exit_without_backend(opened.status());
  BackendUnderTest backend = std::move(opened).value();
  tested = &backend;
  const CMUnitTest tests[] = {
      cmocka_unit_test(convolutions_give_their_sums),
      cmocka_unit_test(with_what_follows),
      cmocka_unit_test(blocks_follow_each_other),
      cmocka_unit_test(the_rest_stays_apart),
      cmocka_unit_test(what_is_read_early_does_not_wait),
      cmocka_unit_test(biases_go_to_the_mean),
      cmocka_unit_test(biases_go_to_the_sums),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
TEST_SOURCE(run_all)

}  // namespace norm_sources_test
