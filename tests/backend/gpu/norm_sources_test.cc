// SPDX-License-Identifier: Apache-2.0
//
// Convolutions that are computed with the normalisation of what they make, against the reference backend: which nodes
// the report says are one call, and that what lies between is stored. The emulated GPU has a library for that
// (emulated_library.h).
//
// usage: norm_sources_test PLUG-IN
#include <cstdlib>
#include <string>
#include <vector>

#include "backend_cases.h"
#include "backend_under_test.h"
#include "bound_graph.h"
#include "testing.h"

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
  const std::string &report = bound->description().report_json;
  size_t count = 0;
  for (size_t at = report.find("\"" + kernel + "\""); at != std::string::npos; ++count)
    at = report.find("\"" + kernel + "\"", at + 1);
  return count;
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

int main(int argc, char **argv) {
  if (setenv("TUTTI_EMULATED_LIBRARY", "sums", 1) != 0) return 1;
  auto opened = conformance::open_backend_under_test(argc, argv);
  if (!opened.ok()) return conformance::exit_without_backend(opened.status());
  BackendUnderTest backend = std::move(opened).value();
  tested = &backend;
  const CMUnitTest tests[] = {
      cmocka_unit_test(convolutions_give_their_sums),     cmocka_unit_test(with_what_follows),
      cmocka_unit_test(blocks_follow_each_other),         cmocka_unit_test(the_rest_stays_apart),
      cmocka_unit_test(what_is_read_early_does_not_wait),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
