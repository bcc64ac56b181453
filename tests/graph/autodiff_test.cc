// SPDX-License-Identifier: Apache-2.0
#include "graph/autodiff.h"

#include <string>

#include "testing.h"

namespace autodiff_test {

namespace {

using tutti::impl::graph::Dim;
using tutti::impl::graph::Dims;
using tutti::impl::graph::gradients;
using tutti::impl::graph::gradients_or_zeros;
using tutti::impl::graph::GraphBuilder;
using tutti::impl::graph::kNoValue;
using tutti::impl::graph::Node;
using tutti::impl::graph::ValueId;
using tutti::impl::tensor::DType;
using Values = GraphBuilder::Values;

// Gradients of one target, which must be there.
Values differentiate(GraphBuilder &b, ValueId target, const Values &wrt) {
  const auto made = gradients(b, std::span(&target, 1), {}, wrt);
  if (!made.ok()) fail_msg("%s", made.status().to_string().c_str());
  return *made;
}

size_t count_ops(const GraphBuilder &b, std::string_view op) {
  size_t count = 0;
  for (const Node &node : b.graph().nodes())
    count += node.op == op ? 1 : 0;
  return count;
}

void gradients_have_the_shape_of_their_variable(void **) {
  GraphBuilder b;
  const ValueId x = b.feature("image", DType::f32, {b.batch(), 28, 28, 1}),
                y = b.label("digit", DType::i64, {b.batch()});
  const ValueId k = b.variable("kernel", DType::f32, {3, 3, 1, 8}), bias = b.variable("bias", DType::f32, {8});
  const ValueId scale = b.variable("scale", DType::f32, {8}), offset = b.variable("offset", DType::f32, {8});
  ValueId h = b.op("conv2d", {x, k, bias}, {{"stride", std::vector<int64_t>{2, 2}}});
  h = b.op_n("batch_norm_training", {h, scale, offset})[0];
  h = b.op("max_pool2d", {b.unary("relu", h)}, {{"window", std::vector<int64_t>{2, 2}}});
  h = b.reshape(h, {b.batch(), -1});
  assert_true(b.dims(h) == (Dims{b.batch(), 7 * 7 * 8}));
  const ValueId w = b.variable("w", DType::f32, {7 * 7 * 8, 10});
  const ValueId logits = b.matmul(b.op("dropout", {h}, {{"rate", 0.5}}), w);
  const ValueId loss = b.reduce_mean(b.op("sparse_softmax_cross_entropy", {logits, y}));
  const Values wrt{k, bias, scale, offset, w};
  const Values made = differentiate(b, loss, wrt);
  for (size_t i = 0; i < wrt.size(); ++i) {
    assert_int_not_equal(made[i], kNoValue);
    assert_true(b.dims(made[i]) == b.dims(wrt[i]));
  }
  // Last layers first.
  assert_true(made[4] < made[2] && made[2] < made[0]);
  assert_int_equal(count_ops(b, "conv2d_input_gradient"), 0);  // nobody asked for the gradient of the image
}

void broadcasting_is_undone(void **) {
  GraphBuilder b;
  const ValueId x = b.input("x", DType::f32, {b.batch(), 1, 3}), y = b.input("y", DType::f32, {4, 1}),
                s = b.input("s", DType::f32, {});
  const ValueId z = b.mul(b.add(x, y), s);
  assert_true(b.dims(z) == (Dims{b.batch(), 4, 3}));
  const Values wrt{x, y, s};
  const Values made = differentiate(b, b.reduce_sum(z), wrt);
  for (size_t i = 0; i < wrt.size(); ++i)
    assert_true(b.dims(made[i]) == b.dims(wrt[i]));
}

void only_what_is_needed_is_built(void **) {
  GraphBuilder b;
  const ValueId x = b.input("x", DType::f32, {2, 3}), frozen = b.input("f", DType::f32, {3, 4}),
                w = b.input("w", DType::f32, {4, 5});
  const ValueId loss = b.reduce_sum(b.matmul(b.matmul(x, frozen), w));
  const size_t before = count_ops(b, "matmul");
  const Values made = differentiate(b, loss, {w});
  assert_int_equal(count_ops(b, "matmul"), before + 1);
  assert_int_not_equal(made[0], kNoValue);
}

void stop_gradient_and_integers_stop(void **) {
  GraphBuilder b;
  const ValueId x = b.input("x", DType::f32, {3}), unused = b.input("u", DType::f32, {3});
  const ValueId stopped = b.unary("stop_gradient", x);
  const ValueId rounded = b.cast(b.cast(x, DType::i32), DType::f32);
  const ValueId loss = b.reduce_sum(b.mul(stopped, rounded));
  const Values made = differentiate(b, loss, {x, unused});
  assert_int_equal(made[0], kNoValue);
  assert_int_equal(made[1], kNoValue);
  const Values wrt{x, unused};
  const auto zeros = gradients_or_zeros(b, std::span(&loss, 1), {}, wrt);
  assert_true(zeros.ok());
  assert_true(b.dims((*zeros)[1]) == (Dims{3}));
}

void contributions_are_added(void **) {
  GraphBuilder b;
  const ValueId x = b.input("x", DType::f32, {3});
  const ValueId y = b.add(b.mul(x, x), x);
  differentiate(b, b.reduce_sum(y), {x});
  assert_true(count_ops(b, "add") >= 3);  // one forward, two accumulations
}

void seeds_are_used(void **) {
  GraphBuilder b;
  const ValueId x = b.input("x", DType::f32, {3}), seed = b.input("seed", DType::f32, {3}),
                wrong = b.input("wrong", DType::f32, {4});
  const ValueId y = b.unary("identity", x);
  auto made = gradients(b, std::span(&y, 1), std::span(&seed, 1), std::span(&x, 1));
  assert_true(made.ok());
  assert_int_equal((*made)[0], seed);
  made = gradients(b, std::span(&y, 1), std::span(&wrong, 1), std::span(&x, 1));
  assert_false(made.ok());
}

void dropout_drops_the_same_elements_backwards(void **) {
  GraphBuilder b;
  const ValueId x = b.input("x", DType::f32, {b.batch(), 3});
  const ValueId y = b.op("dropout", {x}, {{"rate", 0.25}});
  const Values made = differentiate(b, b.reduce_sum(y), {x});
  const Node &backward = b.graph().node(b.info(made[0]).producer), &forward = b.graph().node(b.info(y).producer);
  assert_true(backward.op == "dropout");
  assert_true(std::get<int64_t>(backward.attributes.at("key")) == forward.stable_id);
}

void calls_are_computed_again(void **) {
  GraphBuilder b;
  const ValueId x = b.input("x", DType::f32, {3});
  const ValueId both = b.unary("exp", x);
  const Values made =
      b.call({x, both}, [](GraphBuilder &g, const Values &p) { return Values{g.mul(g.unary("tanh", p[0]), p[1])}; });
  const size_t before = count_ops(b, "tanh");
  const Values gradient = differentiate(b, b.reduce_sum(made[0]), {x});
  assert_int_not_equal(gradient[0], kNoValue);
  assert_int_equal(count_ops(b, "tanh"), before + 1);
  assert_int_equal(count_ops(b, "tanh_gradient"), 1);
}

void custom_gradients_are_used(void **) {
  GraphBuilder b;
  const ValueId x = b.input("x", DType::f32, {3});
  const Values y = b.custom_gradient(
      {x}, [](GraphBuilder &g, const Values &p) { return Values{g.unary("exp", p[0])}; },
      [](GraphBuilder &g, const Values &p) { return Values{g.scale(p[2], 7)}; });
  const Values made = differentiate(b, b.reduce_sum(y[0]), {x});
  assert_true(b.graph().node(b.info(made[0]).producer).op == "mul");
  assert_int_equal(count_ops(b, "exp"), 1);
}

void missing_gradients_name_the_node(void **) {
  GraphBuilder b;
  const ValueId x = b.input("x", DType::f32, {3});
  b.push_scope("block");
  const ValueId y = b.reduce_sum(b.unary("gelu", x));
  b.pop_scope();
  const Values first = differentiate(b, y, {x});
  const ValueId loss = b.reduce_sum(first[0]);
  const auto result = gradients(b, std::span(&loss, 1), {}, std::span(&x, 1));
  assert_false(result.ok());
  assert_true(result.status().code() == tutti::impl::base::Code::unimplemented);
  assert_non_null(strstr(result.status().to_string().c_str(), "block/gelu"));
  assert_non_null(strstr(result.status().to_string().c_str(), "(gelu_gradient)"));
}

void statistics_of_attention_have_no_gradient(void **) {
  GraphBuilder b;
  const ValueId x = b.input("x", DType::f32, {b.batch(), 3, 2, 4});
  const Values made = b.op_n("attention", {x, x, x}, {}, 2);
  assert_int_not_equal(differentiate(b, b.reduce_sum(made[0]), {x})[0], kNoValue);
  assert_int_equal(count_ops(b, "attention_gradient"), 1);
  const ValueId loss = b.reduce_sum(b.add(b.reduce_sum(made[0]), b.reduce_sum(made[1])));
  const auto result = gradients(b, std::span(&loss, 1), {}, std::span(&x, 1));
  assert_false(result.ok());
  assert_non_null(strstr(result.status().to_string().c_str(), "a gradient flows into its statistics"));
}

void gradients_of_gradients(void **) {
  GraphBuilder b;
  const ValueId x = b.input("x", DType::f64, {2, 6, 6, 2}), k = b.input("k", DType::f64, {3, 3, 2, 4});
  const ValueId y = b.reduce_sum(b.unary("square", b.op("conv2d", {x, k})));
  const Values first = differentiate(b, y, {x, k});
  const Values second = differentiate(b, b.reduce_sum(b.unary("square", first[0])), {x, k});
  assert_true(b.dims(second[0]) == b.dims(x));
  assert_true(b.dims(second[1]) == b.dims(k));
}

}  // namespace

static int run_all(int, char **) {
  const CMUnitTest tests[] = {
      cmocka_unit_test(gradients_have_the_shape_of_their_variable),
      cmocka_unit_test(broadcasting_is_undone),
      cmocka_unit_test(only_what_is_needed_is_built),
      cmocka_unit_test(stop_gradient_and_integers_stop),
      cmocka_unit_test(contributions_are_added),
      cmocka_unit_test(seeds_are_used),
      cmocka_unit_test(dropout_drops_the_same_elements_backwards),
      cmocka_unit_test(calls_are_computed_again),
      cmocka_unit_test(custom_gradients_are_used),
      cmocka_unit_test(missing_gradients_name_the_node),
      cmocka_unit_test(statistics_of_attention_have_no_gradient),
      cmocka_unit_test(gradients_of_gradients),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
TEST_SOURCE(run_all)

}  // namespace autodiff_test
