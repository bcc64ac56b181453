// SPDX-License-Identifier: Apache-2.0
//
// The vector kernels against plain loops, for every instruction set they are compiled for that this machine has, over
// sizes around the vector lengths. Arrays end at the end of their allocation, so a sanitizer sees a step too far.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <tuple>
#include <vector>

#include "backend/cpu/kernel/pool.h"
#include "backend/cpu/simd/simd_elementwise.h"
#include "backend/cpu/simd/simd_gemm.h"
#include "backend/cpu/simd/simd_loss.h"
#include "backend/cpu/simd/simd_random.h"
#include "backend/cpu/simd/simd_reduce.h"
#include "backend/cpu/simd/simd_testing.h"
#include "backend/cpu/simd/simd_update.h"
#include "base/random/philox.h"
#include "testing.h"

namespace simd_test {

namespace {

using namespace tutti::impl::backend::cpu;  // NOLINT
using namespace tutti::testing;             // NOLINT
namespace base = tutti::impl::base;

enum class After { nothing, accumulate, epilogue };

/// On every instruction set.
void check_gemm(int64_t m, int64_t n, int64_t k, bool a_turned, bool b_turned, After mode) {
  const bool epilogue = mode == After::epilogue;
  const std::vector<float> a = noise(m * k, 1), b = noise(k * n, 2), bias = noise(n, 3), mask = noise(m * n, 4);
  GemmShape shape{
      m, n, k, a_turned ? 1 : k, a_turned ? m : 1, b_turned ? 1 : n, b_turned ? k : 1, n, mode == After::accumulate};
  const std::vector<float> before = noise(m * n, 5);
  std::vector<double> expected(static_cast<size_t>(m * n));
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      double sum = mode != After::accumulate ? 0 : static_cast<double>(before[static_cast<size_t>(i * n + j)]);
      for (int64_t p = 0; p < k; ++p) {
        sum += static_cast<double>(a[static_cast<size_t>(i * shape.a_row + p * shape.a_column)]) *
               static_cast<double>(b[static_cast<size_t>(p * shape.b_row + j * shape.b_column)]);
      }
      if (epilogue) {
        sum = std::max(0.0, sum + static_cast<double>(bias[static_cast<size_t>(j)]));
        if (!(mask[static_cast<size_t>(i * n + j)] > 0)) sum = 0;
      }
      expected[static_cast<size_t>(i * n + j)] = sum;
    }
  }
  GemmEpilogue after;
  if (epilogue) after = {bias.data(), true, mask.data()};
  on_all_targets([&] {
    std::vector<float> c = before;
    const Scratch scratch(gemm_scratch_floats(shape));
    gemm(shape, a.data(), b.data(), c.data(), after, scratch.memory.get());
    scratch.expect_kept();
    expect_close(c, expected, k > 500 ? 3e-5 : 1e-5, "gemm");
  });
}

void products_agree(void **) {
  for (int64_t m : {1, 2, 3, 5, 7, 10, 13, 30, 101}) {
    for (int64_t n : {1, 3, 16, 17, 32, 33, 70, 130, 530}) {
      for (int64_t k : {1, 2, 19, 300}) {
        check_gemm(m, n, k, false, false, After::epilogue);
        check_gemm(m, n, k, false, false, After::nothing);
        check_gemm(m, n, k, true, false, After::accumulate);
        check_gemm(m, n, k, true, true, After::nothing);
        check_gemm(m, n, k, false, true, After::epilogue);
      }
    }
  }
  // Rows of A whose distance is a multiple of a block's depth are copied.
  check_gemm(26, 140, 512, false, false, After::epilogue);
  for (int64_t m : {4, 26, 130})
    check_gemm(m, 140, 512, false, true, After::epilogue);
  check_gemm(26, 70, 256, false, true, After::accumulate);
  check_gemm(26, 70, 1030, false, true, After::epilogue);
  // Rows that are done in halves.
  for (const int64_t m : {129, 199, 256}) {
    for (const int64_t k : {512, 520}) {
      for (const After mode : {After::nothing, After::accumulate, After::epilogue})
        check_gemm(m, 530, k, false, false, mode);
    }
  }
  // Deep: several blocks of each axis, with something left.
  for (const int64_t m : {7, 64, 259}) {
    for (const int64_t n : {9, 40, 530}) {
      for (const After mode : {After::nothing, After::accumulate, After::epilogue})
        check_gemm(m, n, 601, true, false, mode);
    }
  }
  // Whole panels of rows: the turned product.
  for (int64_t m : {16, 32, 64, 96, 128}) {
    for (int64_t n : {70, 96, 130, 300}) {
      for (int64_t k : {100, 256, 300}) {
        for (const After mode : {After::nothing, After::accumulate, After::epilogue})
          check_gemm(m, n, k, false, true, mode);
      }
    }
  }
}

/// The same bits whatever m is, and with it the way that the product is computed.
void rows_do_not_depend_on_their_number(void **) {
  on_all_targets([] {
    const int64_t m = 300, n = 900, k = 300;
    const std::vector<float> a = noise(m * k, 1), b = noise(k * n, 2), bias = noise(n, 3), mask = noise(m * n, 4);
    for (const bool b_turned : {false, true}) {
      GemmShape shape{m, n, k, k, 1, b_turned ? 1 : n, b_turned ? k : 1, n, false};
      const GemmEpilogue after{bias.data(), true, mask.data()};
      const Scratch scratch(gemm_scratch_floats(shape));
      std::vector<float> all(static_cast<size_t>(m * n));
      gemm(shape, a.data(), b.data(), all.data(), after, scratch.memory.get());
      for (const int64_t rows : {1, 2, 5, 11, 16, 32, 63, 128, 129, 255}) {
        shape.m = rows;
        const Scratch own(gemm_scratch_floats(shape));
        std::vector<float> some(static_cast<size_t>(rows * n));
        gemm(shape, a.data(), b.data(), some.data(), after, own.memory.get());
        assert_memory_equal(some.data(), all.data(), some.size() * sizeof(float));
      }
    }
  });
}

void an_empty_sum_is_zero(void **) {
  on_all_targets([] {
    GemmShape shape{2, 3, 0, 0, 1, 3, 1, 3, false};
    std::vector<float> c(6, 7.0f);
    const Scratch scratch(gemm_scratch_floats(shape));
    gemm(shape, nullptr, nullptr, c.data(), {}, scratch.memory.get());
    expect_close(c, std::vector<double>(6, 0.0), 0, "gemm of nothing");
  });
}

void chains_agree(void **) {
  on_all_targets([] {
    for (int64_t rows : {1, 3, 50}) {
      for (int64_t columns : {1, 7, 16, 65, 1500}) {
        const std::vector<float> x = noise(rows * columns, 1), by_column = noise(columns, 2), by_row = noise(rows, 3);
        const float factor = 1.5f;
        ElementProgram program;
        program.rows = rows;
        program.columns = columns;
        program.inputs = {
            {ElementAccess::dense}, {ElementAccess::column}, {ElementAccess::row}, {ElementAccess::scalar}};
        program.instructions = {
            {ElementOp::add, 0, 1}, {ElementOp::mul, 4, 2}, {ElementOp::tanh, 5}, {ElementOp::mul, 6, 3}};
        program.finish();
        const Scratch scratch(program.scratch_floats());
        std::vector<float> y(x.size());
        const void *inputs[] = {x.data(), by_column.data(), by_row.data(), &factor};
        run_elementwise(program, 0, program.steps(), inputs, y.data(), scratch.memory.get());
        std::vector<double> expected;
        for (int64_t i = 0; i < rows * columns; ++i) {
          const double sum =
              static_cast<double>(x[static_cast<size_t>(i)] + by_column[static_cast<size_t>(i % columns)]);
          expected.push_back(1.5 * std::tanh(sum * static_cast<double>(by_row[static_cast<size_t>(i / columns)])));
        }
        expect_close(y, expected, 1e-6, "chain");
      }
    }
  });
}

std::vector<float> elements_of(ElementOp op, const std::vector<float> &x) {
  ElementProgram program;
  program.columns = static_cast<int64_t>(x.size());
  program.inputs = {{ElementAccess::dense}, {ElementAccess::scalar}};
  const bool is_gradient = op == ElementOp::gelu_gradient;
  program.instructions = {{op, is_gradient ? 1 : 0, 0}};
  program.finish();
  const Scratch scratch(program.scratch_floats());
  std::vector<float> y(x.size());
  const float factor = 1;
  const void *inputs[] = {x.data(), &factor};
  run_elementwise(program, 0, program.steps(), inputs, y.data(), scratch.memory.get());
  return y;
}

/// Of the normal distribution: what lies below x, and its density.
double below(double x) { return 0.5 * std::erfc(-x * M_SQRT1_2); }
double density(double x) { return std::exp(-0.5 * x * x) * 0.3989422804014327; }

/// Also where little is left of the distribution: each number is exact by itself.
void tails_of_the_normal_distribution_are_exact(void **) {
  on_all_targets([] {
    std::vector<float> x;
    for (float at = -12.5f; at < 12.5f; at += 0.0137f)
      x.push_back(at);
    for (const float tiny : {1e-3f, -1e-3f, 1e-20f, -1e-20f, 0.0f})
      x.push_back(tiny);
    const std::vector<float> erfs = elements_of(ElementOp::erf, x), gelus = elements_of(ElementOp::gelu, x),
                             slopes = elements_of(ElementOp::gelu_gradient, x);
    const auto expect = [&](float got, double expected, double size, const char *what, size_t i) {
      if (std::fabs(static_cast<double>(got) - expected) <= 1e-6 * size) return;
      fail_msg("%s(%.9g) = %.9g, expected %.9g", what, static_cast<double>(x[i]), static_cast<double>(got), expected);
    };
    for (size_t i = 0; i < x.size(); ++i) {
      const double at = x[i], slope = below(at) + at * density(at);
      expect(erfs[i], std::erf(at), std::fabs(std::erf(at)), "erf", i);
      expect(gelus[i], at * below(at), std::fabs(at * below(at)), "gelu", i);
      // A sum of terms that cancel.
      expect(slopes[i], slope, below(at) + std::fabs(at * density(at)), "gelu_gradient", i);
    }
  });
}

void ends_of_the_normal_distribution(void **) {
  on_all_targets([] {
    const std::vector<float> x = {INFINITY, -INFINITY, NAN, 40, -40};
    const std::vector<float> erfs = elements_of(ElementOp::erf, x), gelus = elements_of(ElementOp::gelu, x),
                             slopes = elements_of(ElementOp::gelu_gradient, x);
    for (const auto &[got, above, under] : {std::tuple(erfs, 1.0f, -1.0f), {slopes, 1.0f, 0.0f}}) {
      assert_true(got[0] == above && got[1] == under && std::isnan(got[2]) && got[3] == above && got[4] == under);
    }
    assert_true(gelus[0] == INFINITY && gelus[1] == 0 && std::isnan(gelus[2]) && gelus[3] == 40 && gelus[4] == 0);
  });
}

void reductions_agree(void **) {
  on_all_targets([] {
    for (const ReduceShape shape : {ReduceShape{3, 5, 1}, ReduceShape{2, 1000, 1}, ReduceShape{1, 300, 37},
                                    ReduceShape{3, 9, 100}, ReduceShape{2, 0, 4}}) {
      const std::vector<float> x = noise(shape.outer * shape.middle * shape.inner, 1);
      std::vector<float> sums(static_cast<size_t>(shape.outer * shape.inner)), tops(sums.size());
      reduce(ReduceKind::sum, shape, x.data(), sums.data(), 0.5f);
      reduce(ReduceKind::maximum, shape, x.data(), tops.data());
      for (int64_t o = 0; o < shape.outer; ++o) {
        for (int64_t i = 0; i < shape.inner; ++i) {
          double sum = 0;
          float top = -INFINITY;
          for (int64_t m = 0; m < shape.middle; ++m) {
            const float value = x[static_cast<size_t>((o * shape.middle + m) * shape.inner + i)];
            sum += static_cast<double>(value);
            top = std::max(top, value);
          }
          const auto at = static_cast<size_t>(o * shape.inner + i);
          assert_true(std::fabs(static_cast<double>(sums[at]) - sum / 2) < 1e-4);
          assert_true(tops[at] == top);
        }
      }
    }
  });
}

void check_pool(const PoolShape &s) {
  const std::vector<float> x = noise(s.images * s.in_height * s.in_width * s.channels, 1);
  const int64_t results = s.images * s.out_height * s.out_width * s.channels;
  const std::vector<float> dy = noise(results, 2);
  std::vector<float> y(static_cast<size_t>(results)), dx(x.size());
  max_pool(s, x.data(), y.data());
  max_pool_gradient(s, dy.data(), x.data(), y.data(), true, dx.data());
  std::vector<double> largest, gradient(x.size(), 0.0);
  for (int64_t i = 0; i < results; ++i) {
    const int64_t c = i % s.channels, column = i / s.channels % s.out_width;
    const int64_t row = i / s.channels / s.out_width % s.out_height;
    const int64_t image = i / s.channels / s.out_width / s.out_height;
    int64_t best = -1;
    for (int64_t u = 0; u < s.window[0]; ++u) {
      for (int64_t v = 0; v < s.window[1]; ++v) {
        const int64_t in_row = row * s.stride[0] - s.pad_low[0] + u,
                      in_column = column * s.stride[1] - s.pad_low[1] + v;
        if (in_row < 0 || in_row >= s.in_height || in_column < 0 || in_column >= s.in_width) continue;
        const int64_t at = ((image * s.in_height + in_row) * s.in_width + in_column) * s.channels + c;
        if (best < 0 || x[static_cast<size_t>(at)] > x[static_cast<size_t>(best)]) best = at;
      }
    }
    largest.push_back(static_cast<double>(x[static_cast<size_t>(best)]));
    if (largest.back() > 0) gradient[static_cast<size_t>(best)] += static_cast<double>(dy[static_cast<size_t>(i)]);
  }
  expect_close(y, largest, 0, "max_pool");
  expect_close(dx, gradient, 1e-6, "max_pool_gradient");
}

void pools_agree(void **) {
  on_all_targets([] {
    for (int64_t channels : {1, 16, 19, 32}) {
      check_pool({2, channels, 6, 8, 3, 4, {2, 2}, {2, 2}, {0, 0}, false});
      check_pool({2, channels, 7, 5, 3, 2, {2, 2}, {2, 2}, {0, 0}, false});
      check_pool({1, channels, 7, 7, 4, 4, {3, 3}, {2, 2}, {1, 1}, false});
    }
  });
}

void losses_agree(void **) {
  on_all_targets([] {
    for (int64_t classes : {1, 2, 10, 16, 17, 100}) {
      for (float smoothing : {0.0f, 0.1f}) {
        const int64_t rows = 5;
        const std::vector<float> logits = noise(rows * classes, 1), dloss = noise(rows, 2);
        std::vector<int64_t> labels;
        for (int64_t row = 0; row < rows; ++row)
          labels.push_back(row % classes);
        std::vector<float> loss(5), dlogits(logits.size());
        const Labels read{labels.data(), true};
        assert_int_equal(sparse_cross_entropy({rows, classes}, logits.data(), read, smoothing, loss.data()), -1);
        assert_int_equal(sparse_cross_entropy_gradient({rows, classes}, dloss.data(), logits.data(), read, smoothing,
                                                       nullptr, dlogits.data()),
                         -1);
        std::vector<double> losses, gradients;
        for (int64_t row = 0; row < rows; ++row) {
          double sum = 0, expected = 0;
          for (int64_t c = 0; c < classes; ++c)
            sum += std::exp(static_cast<double>(logits[static_cast<size_t>(row * classes + c)]));
          for (int64_t c = 0; c < classes; ++c) {
            const double x = static_cast<double>(logits[static_cast<size_t>(row * classes + c)]);
            const double s = static_cast<double>(smoothing);
            const double target = s / static_cast<double>(classes) + (c == row % classes ? 1 - s : 0);
            expected -= target * (x - std::log(sum));
            gradients.push_back((std::exp(x) / sum - target) * static_cast<double>(dloss[static_cast<size_t>(row)]));
          }
          losses.push_back(expected);
        }
        expect_close(loss, losses, 1e-5, "loss");
        expect_close(dlogits, gradients, 1e-6, "gradient of the loss");
        // Both in one pass, the factors afterwards.
        std::vector<float> again(5);
        assert_int_equal(sparse_cross_entropy_gradient({rows, classes}, nullptr, logits.data(), read, smoothing,
                                                       again.data(), dlogits.data()),
                         -1);
        scale_rows({rows, classes}, dloss.data(), dlogits.data());
        expect_close(again, losses, 1e-5, "loss with its gradient");
        expect_close(dlogits, gradients, 1e-6, "gradient with its loss");
      }
    }
    const int64_t wrong[] = {0, 3};
    const std::vector<float> logits = noise(6, 1);
    std::vector<float> loss(2);
    assert_int_equal(sparse_cross_entropy({2, 3}, logits.data(), {wrong, true}, 0, loss.data()), 1);
  });
}

void updates_agree(void **) {
  on_all_targets([] {
    for (int64_t n : {0, 1, 15, 16, 33}) {
      const std::vector<float> g = noise(n, 2);
      std::vector<float> w = noise(n, 1), m(w.size(), 0.25f), v(w.size(), 0.5f);
      std::vector<double> expected;
      for (int64_t i = 0; i < n; ++i) {
        const double gradient = static_cast<double>(g[static_cast<size_t>(i)]);
        const double first = (0.9 * 0.25 + 0.1 * gradient) / (1 - std::pow(0.9, 3));
        const double second = (0.999 * 0.5 + 0.001 * gradient * gradient) / (1 - std::pow(0.999, 3));
        const double weight = static_cast<double>(w[static_cast<size_t>(i)]);
        expected.push_back(weight - 0.01 * (first / (std::sqrt(second) + 1e-8) + 0.1 * weight));
      }
      const AdamRule rule = AdamRule::at(0.01, 0.9, 0.999, 1e-8, 0.1, 3);
      update(rule, n, g.data(), {w.data(), {m.data(), v.data()}, w.data(), {m.data(), v.data()}});
      expect_close(w, expected, 1e-6, "adam");
    }
  });
}

/// Gradients that an update adds up are those that were added up before.
void updates_add_up(void **) {
  const UpdateRule rules[] = {SgdRule{0.1f, 0.01f}, MomentumRule{0.1f, 0.9f, 0.01f, true},
                              AdamRule::at(0.01, 0.9, 0.999, 1e-8, 0.1, 3)};
  on_all_targets([&] {
    for (const UpdateRule &rule : rules) {
      for (int64_t n : {0, 1, 15, 16, 33}) {
        std::vector<float> gradients[5], total = noise(n, 10);
        std::vector<const float *> at;
        for (int k = 0; k < 5; ++k) {
          gradients[k] = noise(n, 10 + k);
          at.push_back(gradients[k].data());
          for (size_t i = 0; k > 0 && i < total.size(); ++i)
            total[i] += gradients[k][i];
          std::vector<float> together[3], apart[3];
          for (size_t i = 0; i < 3; ++i)
            together[i] = apart[i] = std::vector<float>(static_cast<size_t>(n), 0.25f);
          const auto arrays = [](std::vector<float>(&v)[3]) {
            return UpdateArrays{v[0].data(), {v[1].data(), v[2].data()}, v[0].data(), {v[1].data(), v[2].data()}};
          };
          update(rule, n, at, arrays(together));
          update(rule, n, total.data(), arrays(apart));
          for (size_t i = 0; i < 3; ++i)
            assert_true(together[i] == apart[i]);
        }
      }
    }
  });
}

void adam_steps_are_quotients_of_any_size(void **) {
  on_all_targets([] {
    // The first step is g / (|g| + epsilon), from gradients whose squares are zero to those whose squares are infinite.
    std::vector<float> g;
    for (int exponent = -40; exponent <= 38; ++exponent)
      g.push_back(std::ldexp(exponent % 2 == 0 ? 1.1f : -1.1f, 3 * exponent));
    std::vector<float> w(g.size()), m(g.size()), v(g.size());
    const AdamRule rule = AdamRule::at(1, 0.9, 0.999, 1e-8, 0, 1);
    update(rule, static_cast<int64_t>(g.size()), g.data(),
           {w.data(), {m.data(), v.data()}, w.data(), {m.data(), v.data()}});
    for (size_t i = 0; i < g.size(); ++i) {
      const double first = static_cast<double>(rule.first_correction) * static_cast<double>(m[i]);
      const double second = static_cast<double>(v[i] * rule.second_correction);  // may be infinite
      const double expected = -first / (std::sqrt(second) + 1e-8);
      const double error = std::fabs(static_cast<double>(w[i]) - expected);
      if (!(error <= 4e-7 * std::fabs(expected))) fail_msg("gradient %g: %g, not %g", g[i], w[i], expected);
    }
  });
}

/// A weight and two slots, positive, with values that nothing may touch behind them.
struct Variable {
  std::vector<float> arrays[3];

  explicit Variable(int64_t n) {
    for (size_t i = 0; i < 3; ++i) {
      arrays[i] = noise(n + kBehind, 3 + i);
      for (float &value : arrays[i])
        value = std::fabs(value);
    }
  }
  static constexpr int64_t kBehind = 5;

  UpdateArrays in_place() { return to(*this); }
  UpdateArrays to(Variable &out) {
    return {arrays[0].data(),
            {arrays[1].data(), arrays[2].data()},
            out.arrays[0].data(),
            {out.arrays[1].data(), out.arrays[2].data()}};
  }
  void expect_same(const Variable &other) const {
    for (size_t i = 0; i < 3; ++i)
      assert_memory_equal(arrays[i].data(), other.arrays[i].data(), arrays[i].size() * sizeof(float));
  }
};

struct GradientCase {
  int64_t rows, inputs, outputs;
  int64_t gap = 0;  // elements between rows of the variable that are none of it
  bool in_place = true;
  bool x_turned = false;  // columns of x' run along memory, not rows
  bool dy_turned = false;
};

/// The gradient of a dense layer's kernel, x'·dy, and the update with it: in one, and one after the other.
void gradient_and_update_agree(const UpdateRule &rule, const GradientCase &q) {
  GemmShape shape;
  shape.m = q.inputs, shape.n = q.outputs, shape.k = q.rows;
  shape.a_row = q.x_turned ? q.rows : 1, shape.a_column = q.x_turned ? 1 : q.inputs;
  shape.b_row = q.dy_turned ? 1 : q.outputs, shape.b_column = q.dy_turned ? q.rows : 1;
  shape.c_row = q.outputs + q.gap;
  const std::vector<float> x = noise(q.rows * q.inputs, 1), dy = noise(q.rows * q.outputs, 2);
  const Scratch scratch(gemm_scratch_floats(shape)), update_scratch(gemm_update_scratch_floats(shape));
  const int64_t n = q.inputs * shape.c_row;
  std::vector<float> gradient(static_cast<size_t>(n));
  gemm(shape, x.data(), dy.data(), gradient.data(), {}, scratch.memory.get());
  Variable together(n), apart(n);
  for (int64_t row = 0; row < q.inputs; ++row) {
    UpdateArrays at = apart.in_place();
    const int64_t first = row * shape.c_row;
    at = {at.weight + first,
          {at.slots[0] + first, at.slots[1] + first},
          at.weight_out + first,
          {at.slots_out[0] + first, at.slots_out[1] + first}};
    update(rule, q.outputs, gradient.data() + first, at);
  }
  if (q.in_place) {
    gemm_update(shape, x.data(), dy.data(), rule, together.in_place(), update_scratch.memory.get());
    together.expect_same(apart);
  } else {
    Variable out(n);
    gemm_update(shape, x.data(), dy.data(), rule, together.to(out), update_scratch.memory.get());
    out.expect_same(apart);
    together.expect_same(Variable(n));
  }
  scratch.expect_kept();
  update_scratch.expect_kept();
}

const UpdateRule kRules[] = {SgdRule{0.1f, 0.01f}, MomentumRule{0.1f, 0.9f, 0.01f, true},
                             MomentumRule{0.1f, 0.9f, 0, false}, AdamRule::at(0.01, 0.9, 0.999, 1e-8, 0.1, 3),
                             AdamRule::at(0, 0.9, 0.999, 1e-8, 0, 3)};

void gradients_update_at_once(void **) {
  on_all_targets([] {
    for (const UpdateRule &rule : kRules) {
      for (const int64_t rows : {1, 3, 7, 39, 40, 43, 64, 256}) {
        for (const auto &[inputs, outputs] : {std::pair<int64_t, int64_t>{1, 1}, {5, 3}, {25, 33}, {100, 600}})
          gradient_and_update_agree(rule, {rows, inputs, outputs});
      }
    }
  });
}

/// Factors in any order of memory, in shapes whose products alone are computed in other ways, with less scratch.
void any_factors_update_at_once(void **) {
  on_all_targets([] {
    for (const auto &[rows, inputs, outputs] : {std::array<int64_t, 3>{64, 16, 512}, {64, 32, 600}, {200, 130, 70}}) {
      for (const bool x_turned : {false, true}) {
        for (const bool dy_turned : {false, true})
          gradient_and_update_agree(kRules[3], {rows, inputs, outputs, 0, true, x_turned, dy_turned});
      }
    }
  });
}

/// Tiles that wait for their update: one, two, several; with smaller ones before, between and behind.
void waiting_tiles_are_updated_once(void **) {
  on_all_targets([] {
    for (const UpdateRule &rule : kRules) {
      for (const int64_t inputs : {12, 13, 24, 36, 59}) {
        for (const int64_t outputs : {32, 40, 64, 70, 96, 97})
          gradient_and_update_agree(rule, {48, inputs, outputs});
      }
      for (int64_t rows = 1; rows <= 96; ++rows)
        gradient_and_update_agree(rule, {rows, 25, 72});
      gradient_and_update_agree(rule, {64, 24, 1100});
      gradient_and_update_agree(rule, {64, 26, 96, 7});
      gradient_and_update_agree(rule, {64, 26, 96, 0, false});
      gradient_and_update_agree(rule, {64, 26, 96, 3, true, true});
    }
  });
}

/// Of a rate of 0 the weight stays what it is; a NaN in a gradient or a slot reaches it; an infinite root moves
/// nothing.
void adam_keeps_what_is_not_finite(void **) {
  const float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  on_all_targets([&] {
    const int64_t n = 40;
    const std::vector<float> g(n, 0.5f);
    for (const float rate : {0.0f, 0.01f}) {
      const AdamRule rule = AdamRule::at(static_cast<double>(rate), 0.9, 0.999, 1e-8, 0, 3);
      std::vector<float> w(n, 2.0f), m(n, 0.25f), v(n, 1.0f);
      std::vector<float> gradient = g;
      gradient[1] = nan, m[2] = nan, v[3] = nan;
      gradient[4] = 1e30f;  // whose square is infinite
      gradient[5] = m[5] = v[5] = 0;
      update(rule, n, gradient.data(), {w.data(), {m.data(), v.data()}, w.data(), {m.data(), v.data()}});
      for (const size_t i : {1, 2, 3})
        assert_true(std::isnan(w[i]));
      assert_true(v[4] == infinity && w[4] == 2.0f && w[5] == 2.0f);
      assert_true((w[0] == 2.0f) == (rate == 0));
    }
  });
}

void random_bits_agree(void **) {
  on_all_targets([] {
    for (int64_t width : {1, 4, 63, 64, 200}) {
      RandomArray array{base::RandomKey::of(1, 2, 3).value, 77, 1, 3, width};
      std::vector<float> values(static_cast<size_t>(3 * width)), kept(values.size());
      random_uniform(array, values.data());
      const std::vector<float> ones(values.size(), 1.0f);
      random_dropout(array, 0.3, ones.data(), kept.data());
      for (int64_t i = 0; i < 3 * width; ++i) {
        const int64_t row = i / width, element = i % width;
        const auto words =
            base::RandomKey{array.key}.words(static_cast<uint64_t>(77 + row), static_cast<uint64_t>(element / 4));
        const float uniform = base::uniform_float(words[static_cast<size_t>(element % 4)]);
        assert_true(values[static_cast<size_t>(i)] == uniform);
        assert_true((kept[static_cast<size_t>(i)] != 0) == (static_cast<double>(uniform) >= 0.3));
      }
    }
  });
}

}  // namespace

static int run_all(int, char **) {
  const CMUnitTest tests[] = {
      cmocka_unit_test(products_agree),
      cmocka_unit_test(rows_do_not_depend_on_their_number),
      cmocka_unit_test(an_empty_sum_is_zero),
      cmocka_unit_test(chains_agree),
      cmocka_unit_test(tails_of_the_normal_distribution_are_exact),
      cmocka_unit_test(ends_of_the_normal_distribution),
      cmocka_unit_test(reductions_agree),
      cmocka_unit_test(pools_agree),
      cmocka_unit_test(adam_steps_are_quotients_of_any_size),
      cmocka_unit_test(gradients_update_at_once),
      cmocka_unit_test(any_factors_update_at_once),
      cmocka_unit_test(waiting_tiles_are_updated_once),
      cmocka_unit_test(adam_keeps_what_is_not_finite),
      cmocka_unit_test(losses_agree),
      cmocka_unit_test(updates_agree),
      cmocka_unit_test(updates_add_up),
      cmocka_unit_test(random_bits_agree),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
TEST_SOURCE(run_all)

}  // namespace simd_test
