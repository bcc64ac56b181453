// SPDX-License-Identifier: Apache-2.0
//
// Gradients of batch normalisations with what makes their dy, against the reference backend, which computes node by
// node; and that they are one kernel where steps are usual, and only there.
//
// usage: norm_fronts_test PLUG-IN
#include <string>
#include <vector>

#include "backend/gpu/norm_cases.h"

namespace norm_fronts_test {

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

/// x, scale, offset, two slopes, a shortcut.
std::vector<Tensor> operands(const Dims &x, DType dtype = DType::f32) {
  const Dims channels = {x.back()};
  return {operand(x, 1, dtype), operand(channels, 2), operand(channels, 3),
          operand(x, 4, dtype), operand(x, 5, dtype), operand(x, 6, dtype)};
}

Values gradient(GraphBuilder &b, ValueId dy, const Values &v, const Values &y) {
  return b.op_n("batch_norm_training_gradient", {dy, v[0], v[1], y[1], y[2]}, kEpsilon, 3);
}

/// In mixed precision what lies in memory has 16 bits, and is computed in f32.
ValueId wide(GraphBuilder &b, ValueId value) { return b.cast(value, DType::f32); }

/// Rows and channels of packs and of single elements, more and fewer than a block has threads.
const Dims kShapes[] = {{3, 4, 5, 8}, {2, 3, 3, 5}, {40, 16}, {1, 1, 1, 1}, {7, 12}, {600, 3}, {1100, 8}, {9, 300}};
const DType kHalves[] = {DType::bf16, DType::f16};

double limit_of(DType dtype) { return dtype == DType::bf16 ? 0x1p-5 : dtype == DType::f16 ? 0x1p-8 : 1e-4; }

// ---- relu of its own results ----

void the_gradient_of_relu_is_not_stored(void **) {
  for (const Dims &dims : kShapes) {
    const auto build = [](GraphBuilder &b, const Values &v) {
      const Values y = norm(b, v);
      const ValueId z = b.unary("relu", y[0]);
      Values results = gradient(b, b.op("relu_gradient", {v[3], z}), v, y);
      results.push_back(z);
      return results;
    };
    assert_true(check(operands(dims), build, "batch_norm_training_gradient(2)"));
  }
}

void nor_is_that_of_sixteen_bits(void **) {
  for (const DType dtype : kHalves) {
    for (const Dims &dims : kShapes) {
      const auto build = [&](GraphBuilder &b, const Values &v) {
        const Values y = norm(b, v);
        const ValueId z = b.cast(b.unary("relu", wide(b, y[0])), dtype);
        const ValueId slopes = b.op("relu_gradient", {wide(b, v[3]), wide(b, z)});
        Values results = gradient(b, b.cast(slopes, dtype), v, y);
        results.push_back(z);
        return results;
      };
      assert_true(check(operands(dims, dtype), build, "batch_norm_training_gradient(5)", limit_of(dtype)));
    }
  }
}

/// Channels whose x are alike have results of 0 where the offset is 0, and of nearly 0 elsewhere: the same results as
/// those that were stored decide, whatever they are.
void what_is_zero_stays_zero(void **) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    std::vector<Tensor> inputs = operands({64, 8}, dtype);
    inputs[0] = operand({64, 8}, 1, dtype, 1, 1);
    inputs[2] = operand({8}, 2, DType::f32, 0, 0);
    const auto build = [&](GraphBuilder &b, const Values &v) {
      const Values y = norm(b, v);
      const ValueId z = b.unary("relu", y[0]);
      Values results = gradient(b, b.op("relu_gradient", {v[3], z}), v, y);
      results.push_back(z);
      return results;
    };
    assert_true(check(inputs, build, "batch_norm_training_gradient(2)", limit_of(dtype)));
  }
}

/// Of another normalisation's results nothing can be computed again: the slopes are stored.
void others_results_are_read(void **) {
  for (const Dims &dims : kShapes) {
    const auto build = [](GraphBuilder &b, const Values &v) {
      const Values y = norm(b, v), other = norm(b, {v[5], v[1], v[2]});
      const ValueId z = b.unary("relu", other[0]);
      Values results = gradient(b, b.op("relu_gradient", {v[3], z}), v, y);
      results.push_back(z);
      return results;
    };
    assert_true(check(operands(dims), build, "batch_norm_training_gradient(2)"));
  }
}

// ---- slopes that are stored ----

void slopes_of_residual_blocks_are_stored_and_summed(void **) {
  for (const Dims &dims : kShapes) {
    const auto build = [](GraphBuilder &b, const Values &v) {
      const Values y = norm(b, v);
      const ValueId z = b.unary("relu", b.add(y[0], v[5]));
      const ValueId slopes = b.op("relu_gradient", {b.add(v[3], v[4]), z});
      Values results = gradient(b, slopes, v, y);
      results.push_back(slopes);
      results.push_back(b.mul(slopes, v[5]));
      results.push_back(z);
      return results;
    };
    assert_true(check(operands(dims), build, "batch_norm_training_gradient(3)"));
  }
}

void slopes_of_sixteen_bits_are_rounded_first(void **) {
  for (const DType dtype : kHalves) {
    for (const Dims &dims : kShapes) {
      const auto build = [&](GraphBuilder &b, const Values &v) {
        const Values y = norm(b, v);
        const ValueId z = b.cast(b.unary("relu", b.add(wide(b, y[0]), wide(b, v[5]))), dtype);
        const ValueId sum = b.add(wide(b, v[3]), wide(b, v[4]));
        const ValueId slopes = b.cast(b.op("relu_gradient", {sum, wide(b, z)}), dtype);
        Values results = gradient(b, slopes, v, y);
        results.push_back(slopes);
        results.push_back(z);
        return results;
      };
      assert_true(check(operands(dims, dtype), build, "batch_norm_training_gradient(7)", limit_of(dtype)));
    }
  }
}

/// Where several devices share a batch, the sums alone are computed with the front.
void moments_have_fronts_too(void **) {
  for (const Dims &dims : kShapes) {
    const auto build = [](GraphBuilder &b, const Values &v) {
      const Values y = norm(b, v);
      const ValueId z = b.unary("relu", y[0]);
      const ValueId slopes = b.op("relu_gradient", {b.add(v[3], v[4]), z});
      Values results = b.op_n("batch_norm_gradient_moments", {slopes, v[0], y[1]}, {}, 2);
      results.push_back(slopes);
      results.push_back(z);
      return results;
    };
    assert_true(check(operands(dims), build, "batch_norm_gradient_moments(3)", 1e-3));
  }
}

/// Two gradients read the same slopes: one of them makes these.
void of_two_gradients_one_has_the_front(void **) {
  assert_true(check(
      operands(kShapes[0]),
      [](GraphBuilder &b, const Values &v) {
        const Values y = norm(b, v), other = norm(b, {v[5], v[2], v[1]});
        const ValueId z = b.unary("relu", b.add(y[0], other[0]));
        const ValueId slopes = b.op("relu_gradient", {v[3], z});
        Values results = gradient(b, slopes, v, y);
        for (const ValueId value : gradient(b, slopes, {v[5], v[2]}, other))
          results.push_back(value);
        results.push_back(z);
        return results;
      },
      "batch_norm_training_gradient(2)"));
}

/// As networks have them: memory is used again.
void blocks_follow_each_other(void **) {
  assert_true(check(
      operands({24, 8}),
      [](GraphBuilder &b, const Values &v) {
        Values results, norms[3];
        ValueId x[4] = {v[0]};
        for (int i = 0; i < 3; ++i) {
          norms[i] = norm(b, {x[i], v[1], v[2]});
          x[i + 1] = b.unary("relu", b.add(norms[i][0], x[i]));
          results.push_back(x[i + 1]);
        }
        ValueId slopes = v[3];
        for (int i = 2; i >= 0; --i) {
          slopes = b.op("relu_gradient", {slopes, x[i + 1]});
          const Values made = gradient(b, slopes, {x[i], v[1]}, norms[i]);
          results.insert(results.end(), made.begin() + 1, made.end());
          slopes = b.add(made[0], slopes);
        }
        results.push_back(slopes);
        return results;
      },
      "batch_norm_training_gradient(2)"));
}

// ---- what stays apart ----

void the_rest_stays_apart(void **) {
  // Not among the usual steps.
  assert_false(check(
      operands(kShapes[0]),
      [](GraphBuilder &b, const Values &v) {
        const Values y = norm(b, v);
        return gradient(b, b.op("tanh_gradient", {v[3], b.unary("tanh", y[0])}), v, y);
      },
      "batch_norm_training_gradient(2)"));
  // What else it reads is made later.
  assert_false(check(
      operands(kShapes[0]),
      [](GraphBuilder &b, const Values &v) {
        const ValueId slopes = b.op("relu_gradient", {v[3], v[4]});
        const Values y = norm(b, v);
        Values results = gradient(b, slopes, v, y);
        results.push_back(slopes);
        return results;
      },
      "batch_norm_training_gradient(2)"));
}

void no_rows_are_legal(void **) {
  const auto build = [](GraphBuilder &b, const Values &v) {
    const Values y = norm(b, v);
    return gradient(b, b.op("relu_gradient", {v[3], b.unary("relu", y[0])}), v, y);
  };
  (void)check(operands({0, 4}), build, "");
}

}  // namespace

static int run_all(int argc, char **argv) {
  auto opened = conformance::open_backend_under_test(argc, argv);
  if (!opened.ok()) return conformance::exit_without_backend(opened.status());
  BackendUnderTest backend = std::move(opened).value();
  tested = &backend;
  const CMUnitTest tests[] = {
      cmocka_unit_test(the_gradient_of_relu_is_not_stored),
      cmocka_unit_test(nor_is_that_of_sixteen_bits),
      cmocka_unit_test(what_is_zero_stays_zero),
      cmocka_unit_test(others_results_are_read),
      cmocka_unit_test(slopes_of_residual_blocks_are_stored_and_summed),
      cmocka_unit_test(slopes_of_sixteen_bits_are_rounded_first),
      cmocka_unit_test(moments_have_fronts_too),
      cmocka_unit_test(of_two_gradients_one_has_the_front),
      cmocka_unit_test(blocks_follow_each_other),
      cmocka_unit_test(the_rest_stays_apart),
      cmocka_unit_test(no_rows_are_legal),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
TEST_SOURCE(run_all)

}  // namespace norm_fronts_test
