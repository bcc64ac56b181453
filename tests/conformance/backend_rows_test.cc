// SPDX-License-Identifier: Apache-2.0
//
// Reductions, losses and normalisations where backend_ops_test does not reach: rows and columns that take several
// blocks, packs or passes, values that are not finite, and labels outside their range. Compared with the reference
// backend.
//
// usage: backend_rows_test BACKEND
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "backend_cases.h"
#include "backend_under_test.h"
#include "base/text.h"
#include "bound_graph.h"
#include "testing.h"

namespace backend_rows_test {

using namespace tutti::impl;
using conformance::BackendUnderTest;
using conformance::DType;
using conformance::OpCase;
using conformance::Operand;
using conformance::positive;
using conformance::ShapeDims;
using conformance::whole;
using tensor::Tensor;

namespace {

BackendUnderTest *tested = nullptr;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// A case whose first input has these elements.
struct Check {
  OpCase one;
  std::vector<std::pair<int64_t, double>> elements = {};
};

base::Result<std::vector<Tensor>> inputs_of(const Check &check) {
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < check.one.inputs.size(); ++i) {
    TUTTI_ASSIGN(Tensor input, conformance::make_operand(check.one.inputs[i], 300 + i));
    inputs.push_back(std::move(input));
  }
  for (const auto &[index, value] : check.elements) {
    tensor::visit_dtype(inputs[0].dtype(), [&, at = index, number = value]<typename T>(T) {
      inputs[0].mutable_data_as<T>()[at] = static_cast<T>(static_cast<float>(number));
    });
  }
  return inputs;
}

base::Result<std::vector<Tensor>> run(const backend::DeviceRef &device, const OpCase &one,
                                      const std::vector<Tensor> &inputs) {
  return conformance::run_graph(device, inputs,
                                [&](graph::GraphBuilder &builder, const graph::GraphBuilder::Values &values) {
                                  return builder.op_n(one.op, values, one.attributes);
                                });
}

double tolerance_of(DType dtype) {
  if (dtype == DType::f16) return 2e-3;
  if (dtype == DType::bf16) return 1.6e-2;
  return dtype == DType::f64 ? 1e-9 : 5e-5;
}

base::Status check_one(const Check &check) {
  TUTTI_ASSIGN(const std::vector<Tensor> inputs, inputs_of(check));
  TUTTI_ASSIGN(const std::vector<Tensor> expected, run(tested->oracle, check.one, inputs));
  const auto results = run(tested->device, check.one, inputs);
  if (results.code() == base::Code::unimplemented && conformance::is_optional(inputs, check.one.attributes)) return {};
  TUTTI_TRY(results);
  for (size_t i = 0; i < expected.size(); ++i) {
    const double tolerance = tolerance_of(expected[i].dtype());
    // A result in bf16 may be rounded either way.
    const double least = expected[i].dtype() == DType::bf16 ? 0x1p-7 : 0;
    const double relative = std::max(least, check.one.relative == 0 ? tolerance : check.one.relative);
    const double absolute = check.one.absolute == 0 ? tolerance : check.one.absolute;
    const base::Status status = tensor::compare_close((*results)[i], expected[i], relative, absolute);
    if (!status.ok()) return status.wrap(base::concat("result ", i));
  }
  return {};
}

void check_all(const std::vector<Check> &checks) {
  int failures = 0;
  for (const Check &check : checks) {
    const base::Status status = check_one(check);
    if (status.ok()) continue;
    if (++failures <= 20) print_error("%s: %s\n", check.one.describe().c_str(), status.to_string().c_str());
  }
  print_message("%zu checks\n", checks.size());
  assert_int_equal(failures, 0);
}

void reductions(void **) {
  const std::pair<ShapeDims, std::vector<int64_t>> kShapes[] = {{{20000}, {}},
                                                                {{20001}, {}},
                                                                {{2, 5000}, {1}},
                                                                {{300, 33}, {1}},
                                                                {{4099, 3}, {0}},
                                                                {{4100, 40}, {0}},
                                                                {{2, 1500}, {0}},
                                                                {{3, 700, 5}, {1}},
                                                                {{7, 6, 5, 4, 3, 2}, {0, 2, 4}},
                                                                {{7, 6, 5, 4, 3, 2}, {1, 3, 5}},
                                                                {{2, 3, 1, 2, 3, 2, 1, 3}, {0, 3, 5, 7}},
                                                                {{20, 30, 40}, {0, 2}},
                                                                {{5, 0, 3}, {1}},
                                                                {{5, 0, 3}, {0}}};
  std::vector<Check> checks;
  for (const auto &[shape, axes] : kShapes) {
    const graph::Attributes attributes{{"axes", axes}};
    for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
      for (const char *op : {"reduce_sum", "reduce_mean", "reduce_max", "reduce_min"}) {
        // A half has no sum of so many.
        const double high = dtype == DType::f16 ? 0.5 : 2;
        checks.push_back({{op, {{dtype, shape, 0, high}}, attributes}});
      }
      checks.push_back({{"reduce_prod", {{dtype, shape, 0.9999, 1.0001}}, attributes}});
    }
    for (const DType dtype : {DType::i32, DType::i64, DType::u8, DType::i16, DType::u64}) {
      for (const char *op : {"reduce_sum", "reduce_prod", "reduce_max", "reduce_min"})
        checks.push_back({{op, {whole(dtype, shape, 0, 100)}, attributes}});
    }
  }
  check_all(checks);
}

void choices(void **) {
  std::vector<Check> checks;
  const std::pair<ShapeDims, int64_t> kShapes[] = {{{1, 5000}, 1}, {{700, 33}, 0}, {{3, 2000, 5}, 1}, {{4000, 2}, 0}};
  for (const auto &[shape, axis] : kShapes) {
    for (const char *op : {"argmax", "argmin"}) {
      for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::i32, DType::u64})
        checks.push_back({{op, {whole(dtype, shape, 0, 50)}, {{"axis", axis}}}});
      checks.push_back({{op, {{DType::f32, shape}}, {{"axis", axis}}}, {{1700, kNan}, {1900, kNan}, {60, kInfinity}}});
    }
  }
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
    const OpCase one{"all_finite", {{dtype, {20001}}}};
    for (const double value : {1.0, kNan, kInfinity, -kInfinity})
      checks.push_back({one, {{20000, value}}});
  }
  check_all(checks);
}

/// Rows of every length that kernels tell apart, results that must be equal: which of equal elements, NaN, zeros with
/// either sign.
void largest_of_rows(void **) {
  struct Rows {
    ShapeDims shape;
    std::vector<int64_t> k;
  };
  const Rows kChosen[] = {{{300, 64}, {2, 16, 17, 64}}, {{70, 128}, {1, 100}},       {{3, 129}, {5, 128, 129}},
                          {{40, 512}, {3, 20, 512}},    {{3, 513}, {3, 200, 513}},   {{2, 5000}, {1, 500, 5000}},
                          {{270, 600}, {130}},          {{2, 100001}, {1, 50, 3000}}};
  std::vector<Check> checks;
  for (const Rows &rows : kChosen) {
    for (const int64_t k : rows.k) {
      const graph::Attributes attributes{{"k", k}};
      for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::i32, DType::u64}) {
        const bool has_nan = dtype == DType::f32 || dtype == DType::f64 || dtype == DType::bf16;
        const double high = dtype == DType::bf16 ? 200 : 2000;
        Check check{{"top_k", {whole(dtype, rows.shape, 0, high)}, attributes}};
        if (has_nan) check.elements = {{3, kNan}, {60, kNan}, {61, kInfinity}, {9, -kInfinity}, {10, -0.0}, {11, 0.0}};
        checks.push_back(check);
      }
      // All alike: the first k, in order.
      checks.push_back({{"top_k", {{DType::f32, rows.shape, 0.5, 0.5}}, attributes}});
      checks.push_back({{"top_k", {{DType::f32, rows.shape}}, attributes}});
    }
  }
  // Nothing else than NaN; a full sort that takes several merges.
  Check nothing{{"top_k", {{DType::f32, {1, 40}}}, {{"k", int64_t{5}}}}};
  for (int64_t i = 0; i < 40; ++i)
    nothing.elements.emplace_back(i, kNan);
  checks.push_back(nothing);
  checks.push_back({{"top_k", {whole(DType::f32, {1, 20000}, -500, 500)}, {{"k", int64_t{20000}}}}});
  check_all(checks);
}

/// A length that is a symbol is looked at when it is bound.
void too_short_a_row_is_named(void **) {
  graph::GraphBuilder b;
  const graph::ValueId x = b.input("x", DType::f32, {3, graph::Dim::symbol("length")});
  b.set_result("y", b.op_n("top_k", {x}, {{"k", int64_t{5}}}, 2)[0]);
  const graph::Graph graph = assert_ok_value(b.finish_graph());
  assert_ok(conformance::BoundGraph::make(tested->device, graph, {{"length", 5}}).status());
  assert_error_contains(conformance::BoundGraph::make(tested->device, graph, {{"length", 4}}).status(),
                        "(top_k): attribute 'k' is 5, the last axis of 'x' has 4 elements");
}

const ShapeDims kRows[] = {{3, 5000}, {3, 5001}, {2, 20000}, {200, 64}, {65, 7}, {1, 300}, {9, 257}};

void softmaxes(void **) {
  std::vector<Check> checks;
  for (const ShapeDims &shape : kRows) {
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16}) {
      const Operand x{dtype, shape, -5, 5};
      const double loose = dtype == DType::bf16 ? 2e-2 : 1e-3;
      for (const int64_t axis : {int64_t{0}, int64_t{1}}) {
        for (const char *op : {"softmax", "log_softmax"})
          checks.push_back({{op, {x}, {{"axis", axis}}}});
        for (const char *op : {"softmax_gradient", "log_softmax_gradient"})
          checks.push_back({{op, {{dtype, shape, 0, 1}, {dtype, shape, -1, 0.5}}, {{"axis", axis}}, {}, loose, loose}});
      }
    }
  }
  using Elements = std::vector<std::pair<int64_t, double>>;
  for (const Elements &elements : {Elements{{0, -kInfinity}, {40, -kInfinity}}, Elements{{17, kInfinity}},
                                   Elements{{17, kNan}}, Elements{{0, 3e38}, {1, -3e38}}}) {
    for (const ShapeDims &shape : {ShapeDims{2, 60}, ShapeDims{2, 1500}, ShapeDims{60, 2}}) {
      for (const char *op : {"softmax", "log_softmax"})
        checks.push_back({{op, {{DType::f32, shape}}, {{"axis", int64_t{shape[0] == 60 ? 0 : 1}}}}, elements});
    }
  }
  check_all(checks);
}

void losses(void **) {
  std::vector<Check> checks;
  for (const ShapeDims &shape : kRows) {
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16}) {
      const Operand x{dtype, shape, -5, 5}, t{dtype, shape, 0, 2.0 / static_cast<double>(shape[1])};
      const Operand rows{dtype, {shape[0]}}, label = whole(DType::i32, {shape[0]}, 0, static_cast<double>(shape[1]));
      for (const double smoothing : {0.0, 0.1}) {
        const graph::Attributes attributes{{"label_smoothing", smoothing}};
        checks.push_back({{"sparse_softmax_cross_entropy", {x, label}, attributes}});
        checks.push_back({{"sparse_softmax_cross_entropy_gradient", {rows, x, label}, attributes}});
        checks.push_back({{"softmax_cross_entropy", {x, t}, attributes}});
        checks.push_back({{"softmax_cross_entropy_gradient", {rows, x, t}, attributes}});
      }
      checks.push_back({{"in_top_k", {x, label}, {{"k", int64_t{shape[1] / 2}}}}});
    }
  }
  const Operand label = whole(DType::i64, {2}, 0, 60);
  for (const double value : {-kInfinity, kInfinity, kNan}) {
    const OpCase one{"sparse_softmax_cross_entropy", {{DType::f32, {2, 60}}, label}};
    checks.push_back({one, {{3, value}}});
    checks.push_back({{"in_top_k", {{DType::f32, {2, 60}}, label}, {{"k", int64_t{30}}}}, {{3, value}, {61, value}}});
  }
  checks.push_back({{"in_top_k", {{DType::f32, {9, 60}}, whole(DType::i64, {9}, -30, 90)}, {{"k", int64_t{60}}}}});
  check_all(checks);
}

/// The status of a run whose labels lie outside [0, 10) in row 5.
base::Status status_with_label(const backend::DeviceRef &device, const char *op, int64_t label) {
  const Operand x{DType::f32, {7, 10}}, labels = whole(DType::i64, {7}, 0, 10);
  const bool is_gradient = std::string(op).ends_with("gradient");
  OpCase one{op, {x, labels}};
  if (is_gradient) one.inputs.insert(one.inputs.begin(), Operand{DType::f32, {7}});
  TUTTI_ASSIGN(std::vector<Tensor> inputs, inputs_of({one}));
  inputs.back().mutable_data_as<int64_t>()[5] = label;
  return run(device, one, inputs).status();
}

void labels_out_of_range(void **) {
  for (const char *op : {"sparse_softmax_cross_entropy", "sparse_softmax_cross_entropy_gradient"}) {
    for (const int64_t label : {int64_t{-1}, int64_t{10}, std::numeric_limits<int64_t>::min()}) {
      const base::Status expected = status_with_label(tested->oracle, op, label);
      const base::Status status = status_with_label(tested->device, op, label);
      assert_int_equal(status.code(), expected.code());
      const std::string text =
          base::concat("node '", op, "' (", op, "): label ", label, " in row 5 is outside [0, 10)");
      assert_contains(expected.to_string().c_str(), text.c_str());
      assert_contains(status.to_string().c_str(), text.c_str());
    }
    assert_ok(status_with_label(tested->device, op, 9));
  }
}

void layer_norms(void **) {
  std::vector<Check> checks;
  for (const ShapeDims &shape : {ShapeDims{5, 129}, ShapeDims{3, 1024}, ShapeDims{300, 64}, ShapeDims{2, 5000},
                                 ShapeDims{40, 1500}, ShapeDims{7, 3}, ShapeDims{700, 200}, ShapeDims{3, 1030}}) {
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16}) {
      const DType wide = dtype == DType::f64 ? DType::f64 : DType::f32;
      const Operand x{dtype, shape, 2, 4}, dy{dtype, shape};
      const Operand channel{wide, {shape[1]}}, mean{wide, {shape[0]}, 2.9, 3.1}, rstd = positive(wide, {shape[0]});
      const double loose = dtype == DType::bf16 ? 0.5 : 2e-3;
      checks.push_back({{"layer_norm", {x, channel, channel}, {{"epsilon", 1e-3}}}});
      checks.push_back({{"layer_norm_gradient", {dy, x, channel, mean, rstd}, {}, {}, 2e-2, loose}});
      checks.push_back({{"rms_norm", {x, channel}, {{"epsilon", 1e-3}}}});
      checks.push_back({{"rms_norm_gradient", {dy, x, channel, rstd}, {}, {}, 2e-2, loose}});
    }
  }
  check_all(checks);
}

void batch_norms(void **) {
  std::vector<Check> checks;
  for (const ShapeDims &shape : {ShapeDims{4000, 12}, ShapeDims{3000, 1}, ShapeDims{17, 300}, ShapeDims{5, 9, 11, 64},
                                 ShapeDims{2, 3, 4, 7}, ShapeDims{1, 40}, ShapeDims{0, 3}}) {
    const ShapeDims channels{shape.back()};
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16}) {
      const DType wide = dtype == DType::f64 ? DType::f64 : DType::f32;
      // A mean that is large beside the deviation.
      const Operand x{dtype, shape, dtype == DType::bf16 ? -2.0 : 1000, dtype == DType::bf16 ? 2.0 : 1001};
      const Operand dy{dtype, shape}, channel{wide, channels}, mean{wide, channels, x.low, x.high};
      const Operand variance = positive(wide, channels), sums{DType::f64, channels}, count = positive(DType::f64, {});
      const graph::Attributes epsilon{{"epsilon", 1e-3}};
      const double loose = dtype == DType::f64 ? 1e-9 : 1e-3;
      checks.push_back({{"batch_norm_training", {x, channel, channel}, epsilon, {}, loose, loose * 5}});
      checks.push_back({{"batch_norm_inference", {x, channel, channel, mean, variance}, epsilon, {}, 0, loose * 5}});
      checks.push_back({{"batch_norm_moments", {x}, {}, {}, loose / 100, 1e-2}});
      checks.push_back({{"batch_norm_gradient_moments", {dy, x, mean}, {}, {}, loose, 1e-2}});
      checks.push_back(
          {{"batch_norm_training_gradient", {dy, x, channel, mean, variance}, epsilon, {}, 1e-2, loose * 20}});
      checks.push_back({{"batch_norm_gradient_apply",
                         {dy, x, channel, mean, variance, sums, sums, count},
                         epsilon,
                         {},
                         1e-2,
                         loose * 20}});
    }
  }
  check_all(checks);
}

/// E[x²] - E[x]² of the sums that replicas add up: nothing may have been lost.
void moments_keep_small_variances(void **) {
  const OpCase one{"batch_norm_moments", {{DType::f32, {3000, 2}, 1000, 1001}}};
  const std::vector<Tensor> inputs = assert_ok_value(inputs_of({one}));
  const std::vector<Tensor> sums = assert_ok_value(run(tested->device, one, inputs));
  for (int channel = 0; channel < 2; ++channel) {
    const double mean = sums[0].data_as<double>()[channel] / 3000;
    const double variance = sums[1].data_as<double>()[channel] / 3000 - mean * mean;
    assert_true(std::fabs(mean - 1000.5) < 0.05);
    assert_true(std::fabs(variance - 1.0 / 12) < 0.005);
  }
}

}  // namespace

static int run_all(int argc, char **argv) {
  auto opened = conformance::open_backend_under_test(argc, argv);
  if (!opened.ok()) return conformance::exit_without_backend(opened.status());
  tested = &*opened;
  const CMUnitTest tests[] = {
      cmocka_unit_test(reductions),          cmocka_unit_test(choices),
      cmocka_unit_test(largest_of_rows),     cmocka_unit_test(too_short_a_row_is_named),
      cmocka_unit_test(softmaxes),           cmocka_unit_test(losses),
      cmocka_unit_test(labels_out_of_range), cmocka_unit_test(layer_norms),
      cmocka_unit_test(batch_norms),         cmocka_unit_test(moments_keep_small_variances),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
TEST_SOURCE(run_all)

}  // namespace backend_rows_test
