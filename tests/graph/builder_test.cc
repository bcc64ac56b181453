// SPDX-License-Identifier: Apache-2.0
#include "graph/builder.h"

#include <string>

#include "testing.h"

namespace builder_test {

namespace {

using tutti::impl::graph::Attributes;
using tutti::impl::graph::Dim;
using tutti::impl::graph::Dims;
using tutti::impl::graph::Graph;
using tutti::impl::graph::GraphBuilder;
using tutti::impl::graph::kNoValue;
using tutti::impl::graph::ValueId;
using tutti::impl::tensor::DType;
using Values = GraphBuilder::Values;

void expect_error(const GraphBuilder &b, std::initializer_list<const char *> parts) {
  const std::string message = b.status().to_string();
  for (const char *part : parts) {
    if (message.find(part) == std::string::npos) fail_msg("'%s' is not in: %s", part, message.c_str());
  }
}

void first_error_is_kept_and_named(void **) {
  GraphBuilder b;
  const ValueId x = b.feature("x", DType::f32, {b.batch(), 7});
  b.push_scope("dense");
  const ValueId w = b.variable("kernel", DType::f32, {8, 3});
  const ValueId y = b.matmul(x, w);
  assert_int_equal(y, kNoValue);
  assert_int_equal(b.unary("relu", y), kNoValue);
  assert_int_equal(b.unary("no_such_op", y), kNoValue);
  expect_error(b, {"dense/matmul", "[batch, 7]", "[8, 3]", "'a'", "'b'", "7 columns", "8 rows"});
  assert_false(b.finish().ok());
}

// Lengths that only the data tells stay their own until an op needs them to be equal.
void lengths_are_joined_where_an_op_needs_it(void **) {
  const Dim batch = GraphBuilder::batch(), n = Dim::symbol("n"), m = Dim::symbol("m");
  GraphBuilder b;
  const ValueId x = b.feature("x", DType::f32, {batch, n, 3}), pairs = b.feature("pairs", DType::f32, {batch, n, m});
  const ValueId sums = b.reduce_sum(pairs, {2}, true);
  assert_true(b.dims(b.reshape(pairs, {batch, n * m})) == Dims({batch, n * m}));
  assert_true(b.dims(sums) == Dims({batch, n, 1}));
  const ValueId y = b.matmul(pairs, x);
  assert_ok(b.status());
  assert_true(b.dims(y) == Dims({batch, n, 3}));
  assert_true(b.dims(pairs) == Dims({batch, n, n}));
  assert_true(b.model().find_feature("pairs")->dims == Dims({batch, n, n}));
  const auto reshape = b.graph().node(3).attributes.find("dims");
  assert_true(std::get<Dims>(reshape->second) == Dims({batch, n * n}));
}

void unknown_ops_and_attributes_are_named(void **) {
  GraphBuilder b;
  b.unary("rellu", b.input("x", DType::f32, {2}));
  expect_error(b, {"rellu", "did you mean 'relu'"});
  GraphBuilder c;
  c.op("softmax", {c.input("x", DType::f32, {2})}, {{"axes", int64_t{0}}});
  expect_error(c, {"axes", "did you mean 'axis'"});
  GraphBuilder d;
  d.op("softmax", {d.input("x", DType::f32, {2})}, {{"axis", 0.5}});
  expect_error(d, {"axis", "f64", "i64"});
  GraphBuilder e;
  e.op("dropout", {e.input("x", DType::f32, {2})}, {{"rate", 1.0}});
  expect_error(e, {"rate", "less than 1"});
  GraphBuilder f;
  f.op("dropout", {f.input("x", DType::f32, {2})});
  expect_error(f, {"rate", "required"});
}

void dtypes_are_checked(void **) {
  GraphBuilder b;
  b.add(b.input("x", DType::f32, {2}), b.input("y", DType::f64, {2}));
  expect_error(b, {"add", "f32", "f64"});
  GraphBuilder c;
  c.unary("exp", c.input("x", DType::i32, {2}));
  expect_error(c, {"exp", "i32", "floating point"});
}

void constants_fit_their_dtype(void **) {
  GraphBuilder b;
  b.constant(255, DType::u8);
  assert_true(b.ok());
  b.constant(256, DType::u8);
  expect_error(b, {"256", "u8"});
  GraphBuilder c;
  c.constant(1e300, DType::i64);
  expect_error(c, {"i64"});
}

void names_follow_scopes(void **) {
  GraphBuilder b;
  const ValueId x = b.input("x", DType::f32, {2});
  assert_string_equal(b.push_scope("block", true).c_str(), "block");
  const ValueId first = b.unary("relu", x), second = b.unary("relu", x);
  b.pop_scope();
  assert_string_equal(b.push_scope("block", true).c_str(), "block_1");
  const ValueId third = b.unary("relu", x);
  b.pop_scope();
  const auto name = [&](ValueId value) { return b.graph().node(b.info(value).producer).scope_name; };
  assert_string_equal(name(first).c_str(), "block/relu");
  assert_string_equal(name(second).c_str(), "block/relu_1");
  assert_string_equal(name(third).c_str(), "block_1/relu");
  assert_true(b.graph().node(b.info(first).producer).stable_id != b.graph().node(b.info(second).producer).stable_id);
}

void names_are_taken_once(void **) {
  GraphBuilder b;
  b.variable("w", DType::f32, {2});
  b.variable("w", DType::f32, {2});
  expect_error(b, {"variable", "'w'", "already"});
  GraphBuilder c;
  c.feature("x", DType::f32, {c.batch()});
  c.label("x", DType::i64, {c.batch()});
  expect_error(c, {"'x'", "already"});
  GraphBuilder d;
  d.variable("bad name", DType::f32, {2});
  expect_error(d, {"bad name"});
  GraphBuilder e;
  e.pop_scope();
  expect_error(e, {"scope"});
}

void models_are_checked(void **) {
  GraphBuilder b;
  const ValueId x = b.feature("x", DType::f32, {b.batch(), 3});
  b.set_loss(x);
  expect_error(b, {"loss", "[batch, 3]", "scalar"});
  GraphBuilder c;
  c.feature("x", DType::f32, {3, c.batch()});
  expect_error(c, {"feature 'x'", "axis 0"});
  GraphBuilder d;
  d.set_output("y", d.variable("w", DType::f32, {3}));
  expect_error(d, {"output 'y'", "[3]"});
  GraphBuilder e;
  e.variable("average", DType::f32, {3}, {}, {.aggregation = tutti::impl::graph::Aggregation::aggregated});
  e.assign("avrage", e.constant(1, DType::f32));
  expect_error(e, {"avrage", "did you mean 'average'"});
}

void models_refuse_ops_that_only_pipelines_run(void **) {
  GraphBuilder b;
  b.push_scope("augment");
  const ValueId image = b.feature("image", DType::u8, {b.batch(), 9, 9, 3});
  b.set_output("y", b.op("resize", {image}, {{"size", std::vector<int64_t>{4, 4}}}));
  assert_error_contains(b.finish(),
                        "node 'augment/resize' (resize): op 'resize' runs per element on the host, in maps "
                        "and filters of datasets, not in a model");
}

void means_over_the_batch_divide_by_the_rows_of_the_step(void **) {
  GraphBuilder b;
  const ValueId x = b.feature("x", DType::f32, {b.batch(), 3});
  const ValueId rows = b.reduce_mean(x, {1}), all = b.reduce_mean(x), kept = b.reduce_mean(x, {0, 1}, true);
  assert_true(b.ok());
  assert_true(b.graph().node(b.info(rows).producer).op == "reduce_mean");
  assert_true(b.dims(all).empty());
  assert_true(b.dims(kept) == (Dims{1, 1}));
  bool found = false;
  for (const auto &node : b.graph().nodes())
    found = found || node.op == "run_scalar";
  assert_true(found);
}

void regions_capture_outer_values(void **) {
  GraphBuilder b;
  const ValueId x = b.input("x", DType::f32, {4, 2}), w = b.input("w", DType::f32, {2}),
                start = b.input("s", DType::f32, {2});
  const Values made = b.scan({start}, {x}, [&](GraphBuilder &g, const Values &p) {
    const ValueId next = g.add(p[0], g.mul(p[1], w));
    return Values{next, g.unary("tanh", next)};
  });
  assert_true(b.ok());
  assert_int_equal(made.size(), 2);
  assert_true(b.dims(made[0]) == (Dims{2}));
  assert_true(b.dims(made[1]) == (Dims{4, 2}));
  const auto &node = b.graph().node(b.info(made[0]).producer);
  assert_int_equal(node.inputs.size(), 3);
  assert_int_equal(node.inputs[2], w);
  assert_int_equal(node.regions[0].parameters.size(), 3);
}

void branches_share_their_captures(void **) {
  GraphBuilder b;
  const ValueId p = b.input("p", DType::boolean, {}), x = b.input("x", DType::f32, {3}),
                y = b.input("y", DType::f32, {3});
  const Values made = b.cond(
      p, [&](GraphBuilder &g, const Values &) { return Values{g.neg(x)}; },
      [&](GraphBuilder &g, const Values &) { return Values{g.add(y, x)}; });
  assert_true(b.ok());
  const auto &node = b.graph().node(b.info(made[0]).producer);
  assert_true(node.inputs == (Values{p, x, y}));
  assert_int_equal(node.regions[1].parameters.size(), 2);

  GraphBuilder c;
  const ValueId q = c.input("p", DType::boolean, {}), z = c.input("x", DType::f32, {3});
  c.cond(
      q, [&](GraphBuilder &g, const Values &) { return Values{g.neg(z)}; },
      [&](GraphBuilder &g, const Values &) { return Values{g.reduce_sum(z)}; });
  expect_error(c, {"cond", "[3]", "[]"});
}

void values_stay_in_their_region(void **) {
  GraphBuilder b;
  const ValueId x = b.input("x", DType::f32, {3});
  ValueId inner = kNoValue;
  b.call({x}, [&](GraphBuilder &g, const Values &p) {
    inner = g.neg(p[0]);
    return Values{inner};
  });
  assert_true(b.ok());
  b.unary("exp", inner);
  expect_error(b, {"region"});

  GraphBuilder c;
  const ValueId y = c.input("y", DType::f32, {3}), outer = c.input("z", DType::f32, {3});
  c.custom_gradient(
      {y}, [&](GraphBuilder &g, const Values &p) { return Values{g.mul(p[0], outer)}; },
      [](GraphBuilder &, const Values &p) { return Values{p[2]}; });
  expect_error(c, {"custom_gradient", "pass it as an input"});
}

}  // namespace

static int run_all(int, char **) {
  const CMUnitTest tests[] = {
      cmocka_unit_test(first_error_is_kept_and_named),
      cmocka_unit_test(lengths_are_joined_where_an_op_needs_it),
      cmocka_unit_test(unknown_ops_and_attributes_are_named),
      cmocka_unit_test(dtypes_are_checked),
      cmocka_unit_test(constants_fit_their_dtype),
      cmocka_unit_test(names_follow_scopes),
      cmocka_unit_test(names_are_taken_once),
      cmocka_unit_test(models_are_checked),
      cmocka_unit_test(models_refuse_ops_that_only_pipelines_run),
      cmocka_unit_test(means_over_the_batch_divide_by_the_rows_of_the_step),
      cmocka_unit_test(regions_capture_outer_values),
      cmocka_unit_test(branches_share_their_captures),
      cmocka_unit_test(values_stay_in_their_region),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
TEST_SOURCE(run_all)

}  // namespace builder_test
