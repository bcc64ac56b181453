// SPDX-License-Identifier: Apache-2.0
#include "graph/dim.h"

#include "graph/batch.h"
#include "testing.h"

namespace dim_test {

namespace {

using tutti::impl::graph::batch_axis;
using tutti::impl::graph::BatchAxis;
using tutti::impl::graph::ceil_divide;
using tutti::impl::graph::Dim;
using tutti::impl::graph::Dims;
using tutti::impl::graph::floor_divide;
using tutti::impl::graph::maximum;
using tutti::impl::graph::minimum;
using tutti::impl::graph::SymbolBindings;

const Dim batch = Dim::symbol("batch"), height = Dim::symbol("height");

void expect_text(const Dim &dim, const char *text) { assert_string_equal(dim.to_code().c_str(), text); }

void constants_fold(void **) {
  expect_text(Dim(3) + 4, "7");
  expect_text(floor_divide(-7, 2), "-4");
  expect_text(ceil_divide(7, 2), "4");
  expect_text(maximum(3, 5), "5");
  assert_true(batch - batch == 0);
  assert_true(batch * 0 == 0);
}

void equal_forms_are_equal(void **) {
  assert_true((batch * 28) * 28 == batch * 784);
  assert_true((batch + 1) * (batch - 1) == batch * batch - 1);
  assert_true(floor_divide(batch * 784, 784) == batch);
  assert_true(floor_divide(batch * 2 + 1, 2) == batch);
  assert_true(ceil_divide(height, 2) == floor_divide(height + 1, 2));
  assert_true(floor_divide(height + 2 - 3, 2) + 1 == ceil_divide(height, 2));
  assert_true(floor_divide(floor_divide(height, 2), 3) == floor_divide(height, 6));
  assert_true(floor_divide(height * 2 + 3, 4) == floor_divide(height + 1, 2));
  assert_true(maximum(batch + 1, batch) == batch + 1);
  assert_true(maximum(batch, 0) == batch);
  assert_true(maximum(batch, height) == maximum(height, batch));
  assert_true(minimum(batch, batch + height) == batch);
  assert_false(batch == height);
}

void exact_division(void **) {
  assert_true((batch * height * 6).divide_exactly(height * 3) == batch * 2);
  assert_true(((batch + 1) * (height + 2)).divide_exactly(batch + 1) == height + 2);
  assert_false((batch * 3).divide_exactly(2).has_value());
  assert_false((batch + 1).divide_exactly(batch).has_value());
  assert_false(batch.divide_exactly(0).has_value());
}

void text_comes_back(void **) {
  const Dim dims[] = {batch,
                      batch * 28,
                      batch * 2 + height + 3,
                      batch - 1,
                      Dim(0) - batch,
                      floor_divide(batch - 1, 3),
                      ceil_divide(batch, height),
                      maximum(batch, height * 2),
                      minimum(batch + 1, height) * batch,
                      batch * batch,
                      Dim(-4)};
  for (const Dim &dim : dims) {
    const auto read = Dim::parse(dim.to_code());
    assert_true(read.ok());
    assert_true(*read == dim);
  }
  assert_string_equal(Dim(28).to_string().c_str(), "28");
  assert_string_equal((batch * 28).to_string().c_str(), "28*batch");
  assert_string_equal((batch * 2 - 1).to_string().c_str(), "2*batch - 1");
  assert_string_equal((batch * Dim::symbol("unknown") + 3).to_string().c_str(), "batch*unknown + 3");
  assert_string_equal((ceil_divide(batch, 2) * 3).to_string().c_str(), "3*floor((batch + 1) / 2)");
  assert_string_equal(maximum(batch, 1).to_string().c_str(), "max(1, batch)");
  assert_string_equal((Dim(0) - batch).to_string().c_str(), "0 - batch");
  assert_string_equal(to_string(Dims{batch * 3, 1}).c_str(), "[3*batch, 1]");
  expect_text(batch * 28, "(mul 28 batch)");
  expect_text(batch - 1, "(sub batch 1)");
  expect_text(ceil_divide(batch, 2), "(floordiv (add batch 1) 2)");
  assert_true(*Dim::parse("(floordiv (sub batch 1) 2)") == floor_divide(batch - 1, 2));
}

void bad_text_is_refused(void **) {
  for (const char *text :
       {"", "(", ")", "(add)", "(add 1)", "(pow 2 3)", "(floordiv 1 0)", "(floordiv 1 2 3)", "a b", "-x", "1x",
        "(add 1 2", "99999999999999999999", "(mul 9223372036854775807 2)", "(unrepresentable)"}) {
    if (Dim::parse(text).ok()) fail_msg("accepted '%s'", text);
  }
  assert_false(Dim::parse(std::string(100, '(')).ok());
  assert_false(Dim::parse(std::string(100000, 'a')).ok());
}

void evaluation(void **) {
  const SymbolBindings bindings{{"batch", 5}, {"height", 7}};
  assert_int_equal((batch * height - 1).evaluate(bindings).value(), 34);
  assert_int_equal(floor_divide(batch - 8, 2).evaluate(bindings).value(), -2);
  assert_int_equal(ceil_divide(height, batch).evaluate(bindings).value(), 2);
  assert_int_equal(maximum(batch, height).evaluate(bindings).value(), 7);
  assert_false(Dim::symbol("width").evaluate(bindings).ok());
  assert_false(floor_divide(batch, height).evaluate({{"batch", 5}, {"height", 0}}).ok());
  assert_false((batch * batch).evaluate({{"batch", INT64_MAX}}).ok());
  assert_false(evaluate(Dims{batch - 8, 3}, bindings).ok());
}

void overflow_is_unrepresentable(void **) {
  const Dim huge = INT64_MAX;
  assert_false((huge + 1).is_representable());
  assert_false((batch * huge * 2).is_representable());
  assert_false(floor_divide(INT64_MIN, -1).is_representable());
  assert_true(Dim::unrepresentable() == Dim::unrepresentable() + 1);
  Dim deep = batch;
  for (int i = 0; i < 100; ++i)
    deep = maximum(deep * 3, height + deep * deep);
  assert_false(deep.is_representable());
}

void substitution(void **) {
  const Dim dim = floor_divide(batch + 3, 2) * height;
  assert_true(dim.substitute({{"batch", Dim(5)}}) == height * 4);
  assert_true(dim.substitute({{"batch", height}}) == floor_divide(height + 3, 2) * height);
}

void batch_is_found_in_shapes(void **) {
  assert_int_equal(batch_axis(Dims{3, batch * 28}).axis, 1);
  assert_true(batch_axis(Dims{3, batch * 28}).factor == 28);
  assert_true(batch_axis(Dims{height * batch, 3}).factor == height);
  assert_true(batch_axis(Dims{(height * 2 - 1) * batch}).factor == height * 2 - 1);
  assert_true(batch_axis(Dims{3, 4}).kind == BatchAxis::Kind::none);
  assert_true(batch_axis(Dims{batch, batch}).kind == BatchAxis::Kind::mixed);
  assert_true(batch_axis(Dims{batch + 1}).kind == BatchAxis::Kind::mixed);
  assert_true(batch_axis(Dims{height * batch + 1}).kind == BatchAxis::Kind::mixed);
  assert_true(batch_axis(Dims{batch * batch}).kind == BatchAxis::Kind::mixed);
  assert_true(batch_axis(Dims{batch * -1}).kind == BatchAxis::Kind::mixed);
}

}  // namespace

static int run_all(int, char **) {
  const CMUnitTest tests[] = {
      cmocka_unit_test(constants_fold),
      cmocka_unit_test(equal_forms_are_equal),
      cmocka_unit_test(exact_division),
      cmocka_unit_test(text_comes_back),
      cmocka_unit_test(bad_text_is_refused),
      cmocka_unit_test(evaluation),
      cmocka_unit_test(overflow_is_unrepresentable),
      cmocka_unit_test(substitution),
      cmocka_unit_test(batch_is_found_in_shapes),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
TEST_SOURCE(run_all)

}  // namespace dim_test
