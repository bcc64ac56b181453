// SPDX-License-Identifier: Apache-2.0
#include "sample_data.h"
#include "testing.h"

using namespace tutti::impl;
using namespace tutti::testing;
using data::Pipeline;

namespace {

data::TransformArguments identity() {
  data::TransformArguments arguments;
  arguments.map = [](const data::Element &input, data::Element &output) {
    output = input;
    return base::Status();
  };
  return arguments;
}

std::string warnings(Pipeline pipeline) { return base::join(data::lint(*pipeline.build().value()).value(), "\n"); }

void good_orders_are_left_alone(void **) {
  assert_string_equal(
      warnings(sample().apply("map_callback", {}, identity()).apply("cache").shuffle(10).batch(2).prefetch()).c_str(),
      "");
  assert_string_equal(
      warnings(sample().shuffle(10).repeat(2).batch(2).prefetch().apply("take", {{"count", int64_t{3}}})).c_str(), "");
}

void bad_orders_are_named(void **) {
  assert_contains(warnings(sample().shuffle(10).apply("cache").prefetch()).c_str(), "cache after shuffle");
  assert_contains(warnings(sample().repeat(2).apply("cache").prefetch()).c_str(), "cache after repeat");
  assert_contains(
      warnings(sample()
                   .apply("resample", {{"component", std::string("y")}, {"initial", std::vector<double>(10, 1.0)}})
                   .apply("cache")
                   .prefetch())
          .c_str(),
      "cache after resample");
  assert_contains(warnings(sample().batch(2).shuffle(3).prefetch()).c_str(), "shuffle after batch");
  assert_contains(warnings(sample().batch(2)).c_str(), "no prefetch at the end");
  assert_contains(warnings(sample().batch(2).apply("map_callback", {}, identity()).prefetch()).c_str(),
                  "batch before map_callback");
}

}  // namespace

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(good_orders_are_left_alone),
    cmocka_unit_test(bad_orders_are_named),
};
TEST_MAIN(tests)
