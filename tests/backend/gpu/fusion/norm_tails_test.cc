// SPDX-License-Identifier: Apache-2.0
//
// Batch normalisations with what is computed while their results are stored, against the reference backend, which
// computes node by node; and that they are one kernel where nothing else reads what lies between, and only there.
//
// usage: norm_tails_test PLUG-IN
#include <string>
#include <vector>

#include "backend/gpu/norm_cases.h"

namespace norm_tails_test {

using namespace tutti::impl;
using namespace tutti::testing;
using conformance::BackendUnderTest;
using graph::Attributes;
using graph::GraphBuilder;
using graph::ValueId;
using tensor::DType;
using tensor::Tensor;
using Values = GraphBuilder::Values;
using Dims = std::vector<int64_t>;

namespace {

/// x, scale, offset, a residual, a variance.
std::vector<Tensor> operands(const Dims &x, DType dtype = DType::f32) {
  const Dims channels = {x.back()};
  const DType parameter = dtype == DType::f64 ? DType::f64 : DType::f32;
  return {operand(x, 1, dtype), operand(channels, 2, parameter), operand(channels, 3, parameter), operand(x, 4, dtype),
          operand(channels, 5, parameter, 0.5, 2)};
}

const Dims kShapes[] = {{3, 4, 5, 8}, {2, 3, 3, 5}, {40, 16}, {1, 1, 1, 1}, {7, 12}, {600, 3}};

void activations_and_residuals_need_no_kernel(void **) {
  for (const Dims &dims : kShapes) {
    assert_true(check(
        operands(dims),
        [](GraphBuilder &b, const Values &v) {
          const Values y = norm(b, v);
          return Values{b.unary("relu", y[0]), y[1], y[2]};
        },
        "batch_norm_training(2)"));
    assert_true(check(
        operands(dims),
        [](GraphBuilder &b, const Values &v) {
          const Values y = norm(b, v);
          return Values{b.unary("relu", b.add(v[3], y[0])), y[1], y[2]};
        },
        "batch_norm_training(3)"));
    assert_true(check(
        operands(dims),
        [](GraphBuilder &b, const Values &v) {
          const ValueId y = b.op("batch_norm_inference", {v[0], v[1], v[2], v[2], v[4]}, kEpsilon);
          return Values{b.unary("silu", b.mul(y, v[4]))};
        },
        "batch_norm_inference(3)"));
  }
}

/// In mixed precision what lies between products has 16 bits, and is computed in f32.
void sixteen_bits_are_rounded_on_the_way(void **) {
  for (const DType dtype : {DType::bf16, DType::f16}) {
    for (const Dims &dims : kShapes) {
      const auto build = [&](GraphBuilder &b, const Values &v) {
        const Values y = norm(b, v);
        const ValueId sum = b.add(b.cast(y[0], DType::f32), b.cast(v[3], DType::f32));
        return Values{b.cast(b.unary("relu", sum), dtype), y[1], y[2]};
      };
      const double limit = dtype == DType::bf16 ? 0x1p-6 : 0x1p-8;
      assert_true(check(operands(dims, dtype), build, "batch_norm_training(6)", limit));
      const auto widen = [&](GraphBuilder &b, const Values &v) { return Values{b.cast(norm(b, v)[0], DType::f32)}; };
      assert_true(check(operands(dims, dtype), widen, "batch_norm_training(2)", limit));
    }
  }
}

/// Running averages are made of the statistics before the activation's turn comes.
void statistics_may_be_read_before_the_tail(void **) {
  assert_true(check(
      operands(kShapes[0]),
      [](GraphBuilder &b, const Values &v) {
        const Values y = norm(b, v);
        const ValueId running = b.add(b.mul(v[4], y[1]), y[2]);
        return Values{running, b.unary("relu", b.add(y[0], v[3]))};
      },
      "batch_norm_training(3)"));
}

/// Two normalisations meet: the later one has the sum.
void of_two_the_later_one_has_the_tail(void **) {
  assert_true(check(
      operands(kShapes[0]),
      [](GraphBuilder &b, const Values &v) {
        const ValueId first = norm(b, v)[0], second = norm(b, {v[3], v[4], v[2]})[0];
        return Values{b.unary("relu", b.add(first, second))};
      },
      "batch_norm_training(3)"));
}

/// A chain of blocks, as networks have: memory is used again.
void blocks_follow_each_other(void **) {
  assert_true(check(
      operands({6, 16}),
      [](GraphBuilder &b, const Values &v) {
        ValueId x = v[0];
        Values results;
        for (int i = 0; i < 4; ++i) {
          const Values one = norm(b, {x, v[1], v[2]});
          const ValueId y = b.unary("relu", one[0]);
          const Values two = norm(b, {b.mul(y, v[3]), v[4], v[2]});
          results.push_back(b.add(one[1], two[2]));
          x = b.unary("relu", b.add(two[0], x));
        }
        results.push_back(x);
        return results;
      },
      "batch_norm_training(3)"));
}

void the_rest_stays_apart(void **) {
  // Read elsewhere, a result of the graph.
  assert_false(check(
      operands(kShapes[0]),
      [](GraphBuilder &b, const Values &v) {
        const ValueId y = norm(b, v)[0];
        return Values{b.unary("relu", y), y};
      },
      "batch_norm_training(2)"));
  // What is added is made later.
  assert_false(check(
      operands(kShapes[0]),
      [](GraphBuilder &b, const Values &v) {
        const Values y = norm(b, v);
        const ValueId late = b.op("softmax", {b.add(v[3], y[1])});
        return Values{b.unary("relu", b.add(y[0], late))};
      },
      "batch_norm_training(3)"));
  assert_false(check(
      operands(kShapes[0], DType::f64),
      [](GraphBuilder &b, const Values &v) { return Values{b.unary("relu", norm(b, v)[0])}; },
      "batch_norm_training(2)"));
}

void no_rows_are_legal(void **) {
  const auto relu = [](GraphBuilder &b, const Values &v) { return Values{b.unary("relu", norm(b, v)[0])}; };
  (void)check(operands({0, 4}), relu, "");
}

}  // namespace

static int run_all(int argc, char **argv) {
  auto opened = conformance::open_backend_under_test(argc, argv);
  if (!opened.ok()) return conformance::exit_without_backend(opened.status());
  BackendUnderTest backend = std::move(opened).value();
  tested = &backend;
  const CMUnitTest tests[] = {
      cmocka_unit_test(activations_and_residuals_need_no_kernel),
      cmocka_unit_test(sixteen_bits_are_rounded_on_the_way),
      cmocka_unit_test(statistics_may_be_read_before_the_tail),
      cmocka_unit_test(of_two_the_later_one_has_the_tail),
      cmocka_unit_test(blocks_follow_each_other),
      cmocka_unit_test(the_rest_stays_apart),
      cmocka_unit_test(no_rows_are_legal),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
TEST_SOURCE(run_all)

}  // namespace norm_tails_test
