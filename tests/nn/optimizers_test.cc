// SPDX-License-Identifier: Apache-2.0
// Which update rule, attributes and slots each optimizer puts into the model. The rules' numbers are checked by the
// trajectories of tests/conformance.
#include "nn_testing.h"
#include "testing.h"

namespace optimizers_test {

using namespace tutti::impl;
using namespace tutti::impl::nn_testing;

namespace {

struct Made {
  Bench bench;
  ValueId rate = graph::kNoValue;

  explicit Made(const std::string &optimizer, const Attributes &attributes = {}) {
    rate = bench.builder.constant(0.5, DType::f32);
    bench.expand(optimizer, {rate}, attributes);
  }
  const graph::OptimizerSpec &spec() const { return bench.builder.model().train->optimizer; }
  double number(const std::string &name) const { return std::get<double>(spec().attributes.at(name)); }
};

void test_sgd(void **) {
  const Made plain("optimizer_sgd");
  assert_string_equal(plain.bench.error().c_str(), "");
  assert_string_equal(plain.spec().op.c_str(), "sgd_update");
  assert_int_equal(plain.spec().slots.size(), 0);
  assert_int_equal(plain.spec().learning_rate, plain.rate);
  assert_float_equal(plain.number("weight_decay"), 0, 0);
  const Made decayed("optimizer_sgd", {{"weight_decay", 0.25}});
  assert_float_equal(decayed.number("weight_decay"), 0.25, 0);
}

void test_momentum(void **) {
  const Made made("optimizer_sgd", {{"momentum", 0.9}, {"nesterov", true}, {"weight_decay", 0.5}});
  assert_string_equal(made.spec().op.c_str(), "momentum_update");
  assert_int_equal(made.spec().slots.size(), 1);
  assert_string_equal(made.spec().slots[0].name.c_str(), "velocity");
  assert_float_equal(made.number("momentum"), 0.9, 0);
  assert_float_equal(made.number("weight_decay"), 0.5, 0);
  assert_true(std::get<bool>(made.spec().attributes.at("nesterov")));
}

void test_adam(void **) {
  const Made made("optimizer_adam");
  assert_string_equal(made.spec().op.c_str(), "adam_update");
  assert_int_equal(made.spec().slots.size(), 2);
  assert_string_equal(made.spec().slots[0].name.c_str(), "m");
  assert_string_equal(made.spec().slots[1].name.c_str(), "v");
  assert_float_equal(made.number("beta1"), 0.9, 0);
  assert_float_equal(made.number("beta2"), 0.999, 0);
  assert_float_equal(made.number("epsilon"), 1e-8, 0);
  assert_float_equal(made.number("weight_decay"), 0, 0);
}

void test_adamw(void **) {
  const Made made("optimizer_adamw");
  assert_string_equal(made.spec().op.c_str(), "adam_update");
  assert_float_equal(made.number("weight_decay"), 0.01, 0);
  const Made given("optimizer_adamw", {{"weight_decay", 0.0}, {"beta1", 0.5}});
  assert_float_equal(given.number("weight_decay"), 0, 0);
  assert_float_equal(given.number("beta1"), 0.5, 0);
}

void test_clip_norm_before_and_after(void **) {
  Bench before;
  before.builder.set_clip_global_norm(1.5);
  before.expand("optimizer_adam", {before.builder.constant(1e-3, DType::f32)});
  assert_string_equal(before.error().c_str(), "");
  assert_float_equal(*before.builder.model().train->clip_global_norm, 1.5, 0);
  assert_string_equal(before.builder.model().train->optimizer.op.c_str(), "adam_update");
  Bench after;
  after.expand("optimizer_adam", {after.builder.constant(1e-3, DType::f32)});
  after.builder.set_clip_global_norm(2);
  assert_string_equal(after.error().c_str(), "");
  assert_float_equal(*after.builder.model().train->clip_global_norm, 2, 0);
}

void test_limits_and_averages(void **) {
  for (const char *const optimizer : {"optimizer_sgd", "optimizer_adam", "optimizer_adamw"}) {
    const Made made(optimizer, {{"clip_value", 0.5},
                                {"clip_norm", 2.0},
                                {"average_decay", 0.99},
                                {"average_ramp", true},
                                {"average_start", int64_t{7}}});
    const auto &train = *made.bench.builder.model().train;
    assert_true(train.clip.value == 0.5 && train.clip.norm == 2);
    assert_true(train.average.decay == 0.99 && train.average.has_ramp && train.average.start == 7);
    const Made plain(optimizer);
    assert_false(plain.bench.builder.model().train->average.is_on());
    assert_true(plain.bench.builder.model().train->clip.value == 0 &&
                plain.bench.builder.model().train->clip.norm == 0);
  }
  const Made infinite("optimizer_adam", {{"clip_norm", INFINITY}});
  assert_contains(infinite.bench.error().c_str(), "clip_norm is inf, expected a finite number of at least 0");
  const Made still("optimizer_adam", {{"average_decay", 1.0}});
  assert_contains(still.bench.error().c_str(), "average_decay is 1, expected at least 0 and less than 1");
  const Made unused("optimizer_adam", {{"average_ramp", true}});
  assert_contains(unused.bench.error().c_str(), "average_ramp is set without average_decay");
}

void test_errors(void **) {
  const Made nesterov("optimizer_sgd", {{"nesterov", true}});
  assert_contains(nesterov.bench.error().c_str(), "optimizer_sgd: attribute 'nesterov' needs a momentum above 0");
  const Made beta("optimizer_adam", {{"beta1", 1.5}});
  assert_contains(beta.bench.error().c_str(), "attribute 'beta1': expected from 0 to 1, got 1.5");
  Made twice("optimizer_adam");
  twice.bench.expand("optimizer_sgd", {twice.rate});
  assert_contains(twice.bench.error().c_str(), "optimizer_sgd: the model already has an optimizer");
  Bench vector;
  vector.expand("optimizer_adam", {vector.input("x", {}, {})});
  assert_contains(vector.error().c_str(), "optimizer_adam: expected a scalar learning rate");
  Bench backward;
  backward.expand("optimizer_sgd", {backward.expand("schedule_constant", {}, {{"value", -0.25}})});
  assert_contains(backward.error().c_str(), "optimizer_sgd: the learning rate is -0.25, expected 0 or more");
}

const CMUnitTest tests[] = {
    cmocka_unit_test(test_sgd),
    cmocka_unit_test(test_momentum),
    cmocka_unit_test(test_adam),
    cmocka_unit_test(test_adamw),
    cmocka_unit_test(test_clip_norm_before_and_after),
    cmocka_unit_test(test_limits_and_averages),
    cmocka_unit_test(test_errors),
};

}  // namespace

TEST_MAIN(tests)

}  // namespace optimizers_test
