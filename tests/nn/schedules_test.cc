// SPDX-License-Identifier: Apache-2.0
// Learning rates at given steps, against the formulas in double.
#include <cmath>

#include "nn_testing.h"
#include "testing.h"

namespace schedules_test {

using namespace tutti::impl;
using namespace tutti::impl::nn_testing;

namespace {

double rate_at(const std::string &schedule, const Attributes &attributes, int64_t step) {
  Bench bench;
  const ValueId rate = bench.expand(schedule, {}, attributes);
  assert_string_equal(bench.error().c_str(), "");
  assert_string_equal(bench.shape(rate).c_str(), "[]");
  return assert_ok_value(bench.evaluate(rate, {}, step)).at(0);
}

std::string error_of(const std::string &schedule, const Attributes &attributes) {
  Bench bench;
  bench.builder.push_scope("rate");
  bench.expand(schedule, {}, attributes);
  return bench.error();
}

void assert_close(double actual, double expected) {
  if (!(std::abs(actual - expected) <= 2e-6 * std::abs(expected) + 1e-7))
    fail_msg("got %.9g, expected %.9g", actual, expected);
}

void test_constant(void **) {
  for (const int64_t step : {0, 1, 1000000})
    assert_close(rate_at("schedule_constant", {{"value", 0.025}}, step), 0.025);
}

void test_exponential(void **) {
  const Attributes smooth = {{"value", 0.1}, {"decay_rate", 0.5}, {"decay_steps", int64_t{10}}};
  for (const int64_t step : {0, 1, 7, 10, 25, 100})
    assert_close(rate_at("schedule_exponential", smooth, step), 0.1 * std::pow(0.5, double(step) / 10));
  Attributes staircase = smooth;
  staircase["staircase"] = true;
  for (const int64_t step : {0, 9, 10, 11, 19, 20, 30, 99})
    assert_close(rate_at("schedule_exponential", staircase, step), 0.1 * std::pow(0.5, double(step / 10)));
}

void test_exponential_staircase_is_exact_at_multiples(void **) {
  // 1 / 3 is no binary fraction: a product with its reciprocal could fall below the integer.
  const Attributes attributes = {
      {"value", 1.0}, {"decay_rate", 0.25}, {"decay_steps", int64_t{3}}, {"staircase", true}};
  for (const int64_t step : {2, 3, 6, 9, 12, 15})
    assert_close(rate_at("schedule_exponential", attributes, step), std::pow(0.25, double(step / 3)));
}

double cosine(double value, int64_t steps, int64_t warmup, double fraction, int64_t step) {
  const double progress = std::clamp(double(step - warmup) / double(steps - warmup), 0.0, 1.0);
  const double share = fraction + (1 - fraction) * 0.5 * (1 + std::cos(progress * 3.14159265358979323846));
  const double growth = warmup > 0 ? std::min(1.0, double(step + 1) / double(warmup)) : 1;
  return value * share * growth;
}

void test_cosine(void **) {
  for (const int64_t step : {0, 1, 25, 50, 75, 99, 100, 1000}) {
    assert_close(rate_at("schedule_cosine", {{"value", 0.2}, {"steps", int64_t{100}}}, step),
                 cosine(0.2, 100, 0, 0, step));
    assert_close(rate_at("schedule_cosine", {{"value", 0.2}, {"steps", int64_t{100}}, {"final_fraction", 0.1}}, step),
                 cosine(0.2, 100, 0, 0.1, step));
  }
}

void test_cosine_warm_up(void **) {
  const Attributes attributes = {
      {"value", 0.4}, {"steps", int64_t{100}}, {"warmup_steps", int64_t{10}}, {"final_fraction", 0.25}};
  for (const int64_t step : {0, 1, 4, 9, 10, 11, 55, 100, 500})
    assert_close(rate_at("schedule_cosine", attributes, step), cosine(0.4, 100, 10, 0.25, step));
  assert_close(rate_at("schedule_cosine", attributes, 4), 0.4 * 5 / 10);
  assert_close(rate_at("schedule_cosine", attributes, 500), 0.1);
}

void test_piecewise(void **) {
  const Attributes attributes = {{"boundaries", std::vector<int64_t>{10, 20, 40}},
                                 {"values", std::vector<double>{1, 0.5, 0.25, 0.125}}};
  const std::vector<std::pair<int64_t, double>> expected = {{0, 1},     {9, 1},     {10, 0.5},   {19, 0.5},
                                                            {20, 0.25}, {39, 0.25}, {40, 0.125}, {1000, 0.125}};
  for (const auto &[step, value] : expected)
    assert_close(rate_at("schedule_piecewise", attributes, step), value);
  assert_close(
      rate_at("schedule_piecewise", {{"boundaries", std::vector<int64_t>{}}, {"values", std::vector<double>{3}}}, 7),
      3);
}

void test_errors(void **) {
  assert_contains(
      error_of("schedule_cosine", {{"value", 1.0}, {"steps", int64_t{10}}, {"warmup_steps", int64_t{10}}}).c_str(),
      "rate: schedule_cosine: warmup_steps 10 must be below steps 10");
  assert_contains(
      error_of("schedule_piecewise", {{"boundaries", std::vector<int64_t>{5}}, {"values", std::vector<double>{1}}})
          .c_str(),
      "1 boundaries need 2 values, got 1");
  assert_contains(error_of("schedule_piecewise",
                           {{"boundaries", std::vector<int64_t>{5, 5}}, {"values", std::vector<double>{1, 2, 3}}})
                      .c_str(),
                  "boundaries must increase");
  assert_contains(
      error_of("schedule_exponential", {{"value", 1.0}, {"decay_rate", 0.5}, {"decay_steps", int64_t{0}}}).c_str(),
      "attribute 'decay_steps': expected at least 1");
  assert_contains(error_of("schedule_cosine", {{"value", -0.1}, {"steps", int64_t{10}}}).c_str(),
                  "attribute 'value': expected at least 0, got -0.1");
  assert_contains(error_of("schedule_piecewise",
                           {{"boundaries", std::vector<int64_t>{5}}, {"values", std::vector<double>{1, -0.5}}})
                      .c_str(),
                  "the learning rate is -0.5, expected 0 or more");
}

void test_errors_of_cycles(void **) {
  assert_contains(
      error_of("schedule_cosine_restarts", {{"value", 1.0}, {"steps", int64_t{10}}, {"period_factor", 1.001}}).c_str(),
      "rate: schedule_cosine_restarts: attribute 'period_factor': expected 1, or at least 1.01, got 1.001");
  assert_contains(error_of("schedule_one_cycle",
                           {{"value", 1.0}, {"steps", int64_t{10}}, {"three_phases", true}, {"warmup_fraction", 0.6}})
                      .c_str(),
                  "attribute 'warmup_fraction' must be at most 0.5, got 0.6");
}

void test_errors_of_rates(void **) {
  Bench rows;
  rows.expand("schedule_warmup", {rows.input("x", {1, 2}, {})}, {{"steps", int64_t{5}}});
  assert_contains(rows.error().c_str(), "input 'rate' is f32 [batch], expected a floating point scalar");
  Bench whole;
  const ValueId count = whole.builder.constant(1, DType::i64);
  const ValueId rate = whole.expand("schedule_constant", {}, {{"value", 1.0}});
  whole.expand("schedule_switch", {rate, count}, {{"step_of_switch", int64_t{5}}});
  assert_contains(whole.error().c_str(), "input 'after' is i64 [], expected a floating point scalar");
}

/// What does not depend on the number of steps is not computed again; what is read inside a region cannot be shifted.
void test_shifted_rates(void **) {
  Bench bench;
  const ValueId host = bench.builder.constant(0.5, DType::f32);
  const ValueId steps = bench.builder.run_scalar("step", DType::f32);
  const ValueId rate = bench.builder.mul(bench.builder.add(steps, steps), bench.builder.neg(host));
  const size_t nodes = bench.builder.graph().nodes().size();
  const ValueId shifted =
      bench.expand("schedule_switch", {host, rate}, {{"step_of_switch", int64_t{3}}, {"shifted", true}});
  for (const auto &[step, expected] : {std::pair(2, 0.5), std::pair(3, 0.0), std::pair(10, -7.0)})
    assert_close(assert_ok_value(bench.evaluate(shifted, {}, step)).at(0), expected);
  size_t negations = 0;
  for (size_t i = nodes; i < bench.builder.graph().nodes().size(); ++i)
    negations += bench.builder.graph().nodes()[i].op == "neg";
  assert_int_equal(negations, 0);

  Bench inside;
  const ValueId always = inside.builder.constant(1, DType::boolean);
  const auto read = [](GraphBuilder &b) { return GraphBuilder::Values{b.run_scalar("step", DType::f32)}; };
  const ValueId chosen = inside.builder.cond(
      always, [&](GraphBuilder &b, const auto &) { return read(b); },
      [&](GraphBuilder &b, const auto &) { return read(b); })[0];
  inside.expand("schedule_warmup", {chosen}, {{"steps", int64_t{3}}, {"shifted", true}});
  assert_contains(inside.error().c_str(), "inside a region of node 'cond' (cond), where it cannot be shifted");
}

const CMUnitTest tests[] = {
    cmocka_unit_test(test_constant),
    cmocka_unit_test(test_exponential),
    cmocka_unit_test(test_exponential_staircase_is_exact_at_multiples),
    cmocka_unit_test(test_cosine),
    cmocka_unit_test(test_cosine_warm_up),
    cmocka_unit_test(test_piecewise),
    cmocka_unit_test(test_errors),
    cmocka_unit_test(test_errors_of_cycles),
    cmocka_unit_test(test_errors_of_rates),
    cmocka_unit_test(test_shifted_rates),
};

}  // namespace

TEST_MAIN(tests)

}  // namespace schedules_test
