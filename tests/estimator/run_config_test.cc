// SPDX-License-Identifier: Apache-2.0
#include "estimator/run_config.h"

#include <limits>

#include "testing.h"

namespace run_config_test {

using namespace tutti::impl;
using namespace tutti::impl::estimator;

namespace {

void test_defaults(void **) {
  RunConfig config;
  assert_ok(config.check());
  assert_false(config.saves_checkpoints());
  config.model_dir = "run";
  assert_true(config.saves_checkpoints());
  assert_int_equal(config.resolved_checkpoint_steps(), 0);
  assert_true(config.resolved_checkpoint_secs() == 600);
}

void test_one_cadence_of_checkpoints(void **) {
  RunConfig config;
  config.model_dir = "run";
  config.save_checkpoints_steps = 10;
  assert_ok(config.check());
  assert_int_equal(config.resolved_checkpoint_steps(), 10);
  assert_true(config.resolved_checkpoint_secs() == 0);
  config.save_checkpoints_secs = 5;
  assert_error_contains(config.check(), "save_checkpoints_steps is 10 and save_checkpoints_secs is 5");
  config.save_checkpoints_steps = 0;
  assert_ok(config.check());
  assert_true(config.resolved_checkpoint_secs() == 5);
  config.save_checkpoints_secs = 0;
  assert_ok(config.check());
  assert_false(config.saves_checkpoints());
}

void test_bad_values_are_named(void **) {
  RunConfig config;
  config.keep_checkpoint_max = -1;
  assert_error_contains(config.check(), "keep_checkpoint_max is -1, expected at least 0");
  config = RunConfig();
  config.accumulation = 0;
  assert_error_contains(config.check(), "accumulation is 0, expected 1 to");
  config = RunConfig();
  for (const int64_t depth : {0, 17}) {
    config.device_prefetch = depth;
    assert_error_contains(config.check(),
                          ("device_prefetch is " + std::to_string(depth) + ", expected 1 to 16").c_str());
  }
  config.device_prefetch = 16;
  assert_ok(config.check());
  assert_int_equal(config.trainer_options().device_prefetch, 16);
  assert_null(strstr(config.to_json().dump().c_str(), "device_prefetch"));  // it decides nothing
  config = RunConfig();
  config.save_checkpoints_secs = std::numeric_limits<double>::quiet_NaN();
  assert_error_contains(config.check(), "save_checkpoints_secs");
  config = RunConfig();
  config.clip_norm = -1;
  assert_error_contains(config.check(), "clip_norm");
  config = RunConfig();
  config.model_dir = std::string("a\0b", 3);
  assert_error_contains(config.check(), "model_dir");
  config = RunConfig();
  for (const char *const precision : {"bf16_where_faster", "tf32_where_faster", "f16_where_faster"}) {
    config = RunConfig();
    config.precision = backend::precision_of(precision);
    assert_ok(config.check());
    assert_contains(config.to_json().dump().c_str(), base::concat("\"precision\":\"", precision, "\"").c_str());
    config.level = backend::Level::repeatable;
    assert_error_contains(config.check(),
                          base::concat("precision is ", precision, ", which needs determinism fast").c_str());
  }
  config = RunConfig();
  config.gradient_dtype = tensor::DType::bf16;
  assert_ok(config.check());
  config.accumulation = 3;
  assert_ok(config.check());
  config.level = backend::Level::repeatable;
  assert_error_contains(config.check(), "gradient_dtype is bf16, which needs determinism fast");
}

void test_manifest_options_name_no_place(void **) {
  RunConfig config;
  config.model_dir = "/somewhere";
  config.level = backend::Level::repeatable;
  const std::string text = config.to_json().dump();
  assert_contains(text.c_str(), "\"level\":\"repeatable\"");
  assert_null(strstr(text.c_str(), "somewhere"));
  assert_null(strstr(text.c_str(), "precision"));
  config.level = backend::Level::fast;
  config.precision = backend::Precision::bf16_where_faster;
  assert_contains(config.to_json().dump().c_str(), "\"precision\":\"bf16_where_faster\"");
  assert_null(strstr(config.to_json().dump().c_str(), "gradient_dtype"));
  config.gradient_dtype = tensor::DType::bf16;
  assert_contains(config.to_json().dump().c_str(), "\"gradient_dtype\":\"bf16\"");
}

}  // namespace

static int run_all(int, char **) {
  const CMUnitTest tests[] = {
      cmocka_unit_test(test_defaults),
      cmocka_unit_test(test_one_cadence_of_checkpoints),
      cmocka_unit_test(test_bad_values_are_named),
      cmocka_unit_test(test_manifest_options_name_no_place),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
TEST_SOURCE(run_all)

}  // namespace run_config_test
