/* SPDX-License-Identifier: Apache-2.0
 * Options against their schemas. */
#include "capi_testing.h"

static tutti_options *create(const char *schema) {
  tutti_options *options = NULL;
  assert_ok(tutti_options_create(schema, &options, &err));
  return options;
}

static void test_schemas(void **state) {
  (void)state;
  static const char *const schemas[] = {"context", "run", "train", "predictor"};
  int known = 0;
  for (size_t i = 0; i < sizeof schemas / sizeof *schemas; i++) {
    tutti_options *options = NULL;
    int32_t code = tutti_options_create(schemas[i], &options, NULL);
    known += code == TUTTI_OK;
    tutti_options_unref(options);
  }
  assert_int_equal(known, (int)(sizeof schemas / sizeof *schemas));
  tutti_options *options = (tutti_options *)(uintptr_t)1;
  assert_error(TUTTI_NOT_FOUND, "no option schema 'trian'", tutti_options_create("trian", &options, &err));
  assert_null(options);
  assert_error(TUTTI_INVALID_ARGUMENT, "'schema' is NULL", tutti_options_create(NULL, &options, &err));
}

static void test_describe(void **state) {
  (void)state;
  int64_t count = tutti_options_count_keys("run");
  assert_true(count >= 8);
  int seeds = 0;
  for (int64_t i = 0; i < count; i++) {
    const char *text = tutti_options_describe_key("run", i);
    assert_contains(text, "\"key\"");
    assert_contains(text, "\"type\"");
    assert_contains(text, "\"default\"");
    assert_contains(text, "\"documentation\"");
    seeds += strstr(text, "\"seed\"") != NULL;
  }
  assert_int_equal(seeds, 1);
  assert_null(tutti_options_describe_key("run", count));
  assert_null(tutti_options_describe_key("run", -1));
  assert_null(tutti_options_describe_key("no_such", 0));
  assert_null(tutti_options_describe_key(NULL, 0));
  assert_true(tutti_options_count_keys("no_such") <= 0);
  assert_true(tutti_options_count_keys(NULL) <= 0);
}

static void test_values_and_origin(void **state) {
  (void)state;
  tutti_options *options = create("run");
  assert_contains(tutti_options_get_json(options), "\"seed\":{\"value\":0,\"origin\":\"default\"}");
  tutti_options_set_i64(options, "seed", INT64_C(5000000000));
  tutti_options_set_string(options, "determinism", "repeatable");
  assert_ok(tutti_options_check(options, &err));
  const char *json = tutti_options_get_json(options);
  assert_contains(json, "\"seed\":{\"value\":5000000000,\"origin\":\"set\"}");
  assert_contains(json, "\"determinism\":{\"value\":\"repeatable\",\"origin\":\"set\"}");
  assert_contains(json, "\"keep_checkpoint_max\":{\"value\":5,\"origin\":\"default\"}");
  tutti_options_unref(options);
}

static void test_json(void **state) {
  (void)state;
  tutti_options *options = make_options("run", "{\"seed\": 7, \"model_dir\": \"out\"}");
  assert_contains(tutti_options_get_json(options), "\"model_dir\":{\"value\":\"out\",\"origin\":\"set\"}");
  tutti_options_unref(options);
  static const struct {
    const char *text, *message;
  } bad[] = {
      {"[1]", "the text of tutti_options_set_json is valid JSON, but not an object"},
      {"{\"seed\": ", "the text of tutti_options_set_json is not valid JSON: line 1, column"},
      {"{\"seed\": [1]}", "option 'seed'"},
      {"{\"seed\": \"one\"}", "is of type i64, not string"},
      {"{\"seed\": 1.5}", "is of type i64, not f64"},
      {"", "the text of tutti_options_set_json is not valid JSON: "},
  };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    options = create("run");
    tutti_options_set_json(options, bad[i].text);
    assert_error(TUTTI_INVALID_ARGUMENT, bad[i].message, tutti_options_check(options, &err));
    tutti_options_unref(options);
  }
  options = create("run");
  tutti_options_set_json(options, NULL);
  assert_int_equal(tutti_options_check(options, NULL), TUTTI_INVALID_ARGUMENT);
  tutti_options_unref(options);
}

/* A secret is never told again: not as what is set, not in an error. */
static void test_secrets_are_hidden(void **state) {
  (void)state;
  tutti_options *options = create("cluster");
  assert_contains(tutti_options_get_json(options), "\"job_secret\":{\"value\":\"\",\"origin\":\"default\"}");
  tutti_options_set_string(options, "job_secret", "hunter2");
  const char *json = tutti_options_get_json(options);
  assert_contains(json, "\"job_secret\":{\"value\":\"(hidden)\",\"origin\":\"set\"}");
  assert_null(strstr(json, "hunter2"));
  tutti_options_unref(options);
  static const char *const bad[] = {"{\"job_secret\": \"hunter2", "{\"job_secret\": \"hunter2\\x\"}",
                                    "{\"job_secret\": hunter2}", "{\"job_secret\": [\"hunter2\"]}"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    options = create("cluster");
    tutti_options_set_json(options, bad[i]);
    tutti_error *error = NULL;
    assert_int_equal(tutti_options_check(options, &error), TUTTI_INVALID_ARGUMENT);
    assert_null(strstr(tutti_error_get_text(error), "hunter2"));
    tutti_error_unref(error);
    tutti_options_unref(options);
  }
}

static void test_mistakes_are_kept_until_used(void **state) {
  (void)state;
  tutti_options *options = create("train");
  tutti_options_set_i64(options, "step", 5);
  tutti_options_set_bool(options, "epochs", 1); /* only the first mistake is kept */
  assert_error(TUTTI_INVALID_ARGUMENT, "schema 'train' has no option 'step', did you mean 'steps'?",
               tutti_options_check(options, &err));
  assert_error(TUTTI_INVALID_ARGUMENT, "did you mean 'steps'?", tutti_options_check(options, &err));
  tutti_options_unref(options);

  options = create("train");
  tutti_options_set_i64(options, "steps", -1);
  assert_error(TUTTI_INVALID_ARGUMENT, "option 'steps': expected at least 0, got -1",
               tutti_options_check(options, &err));
  tutti_options_unref(options);

  options = create("run");
  tutti_options_set_string(options, "determinism", "exact");
  assert_error(TUTTI_INVALID_ARGUMENT, "must be one of fast, repeatable, invariant; got 'exact'",
               tutti_options_check(options, &err));
  tutti_options_unref(options);

  for (int64_t depth = 0; depth <= 17; depth += 17) {
    options = create("run");
    tutti_options_set_i64(options, "device_prefetch", depth);
    assert_error(TUTTI_INVALID_ARGUMENT, "option 'device_prefetch': expected from 1 to 16, got",
                 tutti_options_check(options, &err));
    tutti_options_unref(options);
  }

  for (int i = 0; i < 2; i++) {
    options = create(i == 0 ? "run" : "predictor");
    tutti_options_set_string(options, "precision", "bf16");
    assert_error(TUTTI_INVALID_ARGUMENT,
                 "must be one of f32, bf16_where_faster, tf32_where_faster, f16_where_faster; got 'bf16'",
                 tutti_options_check(options, &err));
    tutti_options_unref(options);
  }

  options = create("run");
  tutti_options_set_f64(options, "seed", 1.5);
  assert_error(TUTTI_INVALID_ARGUMENT, "option 'seed' of schema 'run' is of type i64, not f64",
               tutti_options_check(options, &err));
  tutti_options_unref(options);

  options = create("run");
  tutti_options_set_string(options, "model_dir", NULL);
  assert_error(TUTTI_INVALID_ARGUMENT, "option 'model_dir' is NULL", tutti_options_check(options, &err));
  tutti_options_unref(options);

  options = create("run");
  tutti_options_set_i64(options, NULL, 1);
  assert_error(TUTTI_INVALID_ARGUMENT, "'key' is NULL", tutti_options_check(options, &err));
  tutti_options_unref(options);
}

static void test_consumers_report(void **state) {
  (void)state;
  tutti_options *options = create("run");
  tutti_options_set_i64(options, "sed", 5);
  tutti_estimator *estimator = (tutti_estimator *)(uintptr_t)1;
  assert_error(TUTTI_INVALID_ARGUMENT, "has no option 'sed', did you mean 'seed'?",
               tutti_estimator_create(NULL, toy_model, NULL, NULL, NULL, options, &estimator, &err));
  assert_null(estimator);
  tutti_options_unref(options);
  options = create("train");
  assert_error(TUTTI_INVALID_ARGUMENT, "expected options of schema 'run', got 'train'",
               tutti_estimator_create(NULL, toy_model, NULL, NULL, NULL, options, &estimator, &err));
  tutti_options_unref(options);
}

static void test_plan_cache(void **state) {
  (void)state;
  tutti_context *context = NULL;
  tutti_options *options = make_options("context", "{\"plan_cache\": \"somewhere\"}");
  assert_error(TUTTI_INVALID_ARGUMENT, "expected an absolute path or 'off'",
               tutti_context_create(options, &context, &err));
  assert_null(context);
  tutti_options_unref(options);
  static const char *const good[] = {"off", "/some/where", ""};
  for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
    options = make_options("context", "{}");
    tutti_options_set_string(options, "plan_cache", good[i]);
    assert_ok(tutti_context_create(options, &context, &err));
    tutti_context_unref(context);
    tutti_options_unref(options);
  }
}

static void test_consumers_copy(void **state) {
  (void)state;
  tutti_options *options = make_options("context", "{\"backend\": \"reference\", \"logical_devices\": 2}");
  tutti_context *context = NULL;
  assert_ok(tutti_context_create(options, &context, &err));
  tutti_options_set_i64(options, "logical_devices", 3);
  assert_int_equal(tutti_context_get_device_count(context), 2);
  tutti_context *other = NULL;
  assert_ok(tutti_context_create(options, &other, &err));
  assert_int_equal(tutti_context_get_device_count(other), 3);
  tutti_context_unref(context);
  tutti_context_unref(other);
  tutti_options_unref(options);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_schemas),
    cmocka_unit_test(test_describe),
    cmocka_unit_test(test_values_and_origin),
    cmocka_unit_test(test_json),
    cmocka_unit_test(test_secrets_are_hidden),
    cmocka_unit_test(test_mistakes_are_kept_until_used),
    cmocka_unit_test(test_consumers_report),
    cmocka_unit_test(test_plan_cache),
    cmocka_unit_test(test_consumers_copy),
};
CAPI_TEST_MAIN(tests)
