// SPDX-License-Identifier: Apache-2.0
//
// At level invariant the bits of a row of a prediction do not depend on how many rows are computed, whatever kernels
// they are made by: families of ops over axes that are long enough for backends to share sums where rows are few.
#include <cstring>
#include <string>

#include "backend/reference/reference_backend.h"
#include "distribute/predict_case.h"
#include "testing.h"

namespace tutti::testing::row_bits_test {

namespace graph = impl::graph;
using impl::distribute::Evaluator;
using impl::distribute::PredictOptions;
using Engine = std::shared_ptr<impl::distribute::PredictEngine>;
using Values = GraphBuilder::Values;

/// Elements of a row: 8 x 513, 72 x 57, 27 x 8 x 19.
constexpr int64_t kFeatures = 4104;
constexpr int64_t kMostRows = 64;

static ValueId weight(GraphBuilder &b, const char *name, std::vector<int64_t> dims) {
  return b.variable(name, DType::f32, std::move(dims), {"zeros", {}});
}

/// x as [rows, dims...].
static ValueId shaped(GraphBuilder &b, ValueId x, std::vector<int64_t> dims) {
  graph::Dims all{GraphBuilder::batch()};
  for (const int64_t dim : dims)
    all.push_back(dim);
  return b.reshape(x, all);
}

static void products(GraphBuilder &b, ValueId x) {
  b.set_output("product", b.matmul(x, weight(b, "kernel", {kFeatures, 6})));
  b.set_output("turned", b.transpose(b.matmul(weight(b, "left", {3, kFeatures}), x, false, true), {1, 0}));
  const ValueId matrices = shaped(b, x, {8, 513});
  b.set_output("by_itself", b.matmul(matrices, matrices, false, true));
  b.set_output("with_tail",
               b.unary("relu", b.add(b.matmul(matrices, weight(b, "inner", {513, 5})), weight(b, "bias", {5}))));
}

static void convolutions(GraphBuilder &b, ValueId x) {
  const std::vector<int64_t> stride = {9, 13};
  const ValueId image = shaped(b, x, {19, 27, 8});
  b.set_output("patches", b.op("conv2d", {image, weight(b, "kernel", {7, 5, 8, 6})}, {{"stride", stride}}));
  b.set_output("pixels", b.op("conv2d", {shaped(b, x, {1, 2, 2052}), weight(b, "point", {1, 1, 2052, 4})}));
  b.set_output("groups",
               b.op("conv2d", {image, weight(b, "few", {3, 3, 4, 6})}, {{"stride", stride}, {"groups", int64_t{2}}}));
  const graph::Dims larger{GraphBuilder::batch(), 2, 2, 3};
  b.set_output("transposed",
               b.op("conv2d_input_gradient", {shaped(b, x, {1, 1, kFeatures}), weight(b, "up", {2, 2, 3, kFeatures})},
                    {{"stride", std::vector<int64_t>{2, 2}}, {"input_dims", larger}}));
  b.set_output("average", b.op("avg_pool2d", {image}, {{"window", std::vector<int64_t>{5, 5}}}));
}

static void reductions(GraphBuilder &b, ValueId x) {
  const ValueId lines = shaped(b, x, {8, 513}), columns = shaped(b, x, {2052, 2});
  b.set_output("line_means", b.reduce_mean(lines, {2}));
  b.set_output("column_means", b.reduce_mean(columns, {1}));
  b.set_output("all", b.reduce_sum(lines, {1, 2}));
  b.set_output("products", b.reduce("reduce_prod", b.add_scalar(b.scale(columns, 0.01), 1), {1}));
  b.set_output("largest", b.reduce("reduce_max", lines, {2}));
  b.set_output("where", b.op("argmax", {lines}, {{"axis", int64_t{2}}}));
  // Of one row there is one column less than of several.
  const ValueId turned = b.transpose(x, {1, 0});
  b.set_output("turned", b.reduce_sum(turned, {0}));
  b.set_output("squares", b.reduce_mean(b.unary("square", turned), {0}));
}

static void rows(GraphBuilder &b, ValueId x) {
  const ValueId lines = shaped(b, x, {72, 57});
  const ValueId likely = b.op("softmax", {lines});
  b.set_output("softmax", likely);
  b.set_output("log_softmax", b.op("log_softmax", {shaped(b, x, {54, 76})}));
  b.set_output("other_axis", b.op("softmax", {lines}, {{"axis", int64_t{1}}}));
  b.set_output("turned", b.transpose(b.op("softmax", {b.transpose(x, {1, 0})}, {{"axis", int64_t{0}}}), {1, 0}));
  b.set_output("cross_entropy", b.op("softmax_cross_entropy", {lines, likely}));
  b.set_output("top", b.op_n("top_k", {lines}, {{"k", int64_t{5}}}, 2)[0]);
  const ValueId scale = weight(b, "scale", {57}), offset = weight(b, "offset", {57});
  b.set_output("layer_norm", b.op_n("layer_norm", {lines, scale, offset}, {}, 3)[0]);
  b.set_output("rms_norm", b.op_n("rms_norm", {lines, scale}, {}, 2)[0]);
  const ValueId of_groups = weight(b, "of_groups", {2});
  const Values groups =
      b.op_n("group_norm", {shaped(b, x, {54, 38, 2}), of_groups, of_groups}, {{"groups", int64_t{1}}}, 3);
  b.set_output("group_norm", groups[0]);
}

static void attentions(GraphBuilder &b, ValueId x) {
  const ValueId heads = shaped(b, x, {27, 8, 19});
  b.set_output("attention", b.op_n("attention", {heads, heads, heads}, {}, 2)[0]);
  b.set_output("causal", b.op_n("attention", {heads, heads, heads}, {{"causal", true}}, 2)[0]);
  const ValueId kernel = weight(b, "kernel", {513, 24});
  const ValueId begin = b.scale(b.slice(x, {0, 0}, {GraphBuilder::batch(), 24}), 0);
  const Values states = b.scan(
      {begin}, {shaped(b, x, {8, 513})},
      [kernel](GraphBuilder &body, const Values &in) {
        return Values{body.unary("tanh", body.add(in[0], body.matmul(in[1], kernel)))};
      },
      1);
  b.set_output("scan", states[0]);
}

using Family = void (*)(GraphBuilder &b, ValueId x);

static Model model_of(Family family) {
  GraphBuilder b;
  // No sum of these is exact.
  family(b, b.unary("exp", b.scale(b.feature("x", DType::f32, {GraphBuilder::batch(), kFeatures}), 0.7)));
  return assert_ok_value(b.finish());
}

static std::vector<Tensor> run(const Engine &engine, int64_t rows) {
  return assert_ok_value(engine->run(std::vector<Tensor>{row_features(rows, kFeatures)}, nullptr));
}

static Engine open_oracle(const Model &model) {
  const auto plain = assert_ok_value(impl::backend::Backend::create(impl::backend::reference::entry, "{}", {}));
  return open_engine(model, assert_ok_value(impl::distribute::Strategy::one_device({plain, 0})));
}

static void check(Family family) {
  const Model model = model_of(family);
  PredictOptions options;
  options.level = impl::backend::Level::invariant;
  const Engine engine = open_engine(model, assert_ok_value(make_test_strategy(1)), options);
  const std::vector<Tensor> all = run(engine, kMostRows), known = run(open_oracle(model), kMostRows);
  for (size_t output = 0; output < all.size(); ++output)
    assert_ok(impl::tensor::compare_close(all[output], known[output], 1e-4, 1e-5));
  std::string differ;
  for (const int64_t rows : {1, 5, 23}) {
    const std::vector<Tensor> some = run(engine, rows);
    auto name = model.outputs.begin();
    for (size_t output = 0; output < all.size(); ++output, ++name) {
      assert_int_equal(some[output].rows(), rows);
      if (std::memcmp(some[output].data(), all[output].data(), static_cast<size_t>(some[output].size_bytes())) != 0)
        differ += impl::base::concat(" ", name->first, " of ", rows);
    }
  }
  assert_string_equal(differ.c_str(), "");
}

/// The last bits of what is computed of rows, as whole numbers, whose sums are exact in any order.
static Model last_bits() {
  GraphBuilder b;
  const ValueId x = b.feature("x", DType::f32, {GraphBuilder::batch(), kFeatures});
  const ValueId y = b.matmul(b.unary("exp", x), weight(b, "kernel", {kFeatures, 3}));
  const ValueId bits = b.unary("floor", b.scale(y, 32768));
  b.add_metric("bits", b.reduce_sum(b.op("mod", {bits, b.constant(256, DType::f32)})));
  return assert_ok_value(b.finish());
}

/// How many rows a device computes depends on how many devices there are.
static void test_evaluations(void **) {
  const Model model = last_bits();
  PredictOptions options;
  options.level = impl::backend::Level::invariant;
  std::vector<double> values;
  for (const int32_t devices : {1, 2, 3, 8}) {
    const auto evaluator =
        assert_ok_value(Evaluator::open(model, assert_ok_value(make_test_strategy(devices)), options));
    const auto rows = assert_ok_value(make_rows(90, kFeatures, 3, DType::f32, 64)->make_iterator({}));
    values.push_back(assert_ok_value(evaluator->run(*numbered_version(model), *rows, -1, nullptr)).values[0]);
  }
  assert_true(values[0] > 0);
  for (const double value : values)
    assert_true(value == values[0]);
}

static void test_products(void **) { check(products); }
static void test_convolutions(void **) { check(convolutions); }
static void test_reductions(void **) { check(reductions); }
static void test_rows(void **) { check(rows); }
static void test_attentions(void **) { check(attentions); }

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_products), cmocka_unit_test(test_convolutions), cmocka_unit_test(test_reductions),
    cmocka_unit_test(test_rows),     cmocka_unit_test(test_attentions),   cmocka_unit_test(test_evaluations),
};
TEST_MAIN(tests)

}  // namespace tutti::testing::row_bits_test
