/* SPDX-License-Identifier: Apache-2.0
 * Contexts and strategies: devices by name, logical devices, the log, the default strategy of a context. */
#include <stdlib.h>

#include "capi_testing.h"

/* The backend of the default context: the best that is linked in. */
static const char *best_backend(void) { return tutti_has_feature("backend:cpu") ? "cpu" : "reference"; }

static const char *first_device(void) { return tutti_has_feature("backend:cpu") ? "cpu:0" : "reference:0"; }

static tutti_context *create_context(const char *json) {
  tutti_options *options = make_options("context", json);
  tutti_context *context = NULL;
  assert_ok(tutti_context_create(options, &context, &err));
  tutti_options_unref(options);
  return context;
}

static void test_default_context(void **state) {
  (void)state;
  int64_t count = tutti_context_get_device_count(NULL);
  assert_true(count >= 1);
  assert_string_equal(tutti_context_get_device_name(NULL, 0), first_device());
  assert_null(tutti_context_get_device_name(NULL, count));
  assert_null(tutti_context_get_device_name(NULL, -1));
  assert_contains(tutti_context_describe_device(NULL, 0), first_device());
  assert_contains(tutti_context_describe_device(NULL, 0), best_backend());
  assert_contains(tutti_context_describe_device(NULL, 0), "\"reaches\":[]");
  assert_null(tutti_context_describe_device(NULL, count));
}

static void test_logical_devices(void **state) {
  (void)state;
  const char *const backends[] = {best_backend(), "reference"};
  for (int i = 0; i < 2; i++) {
    char json[96], name[32];
    snprintf(json, sizeof json, "{\"backend\": \"%s\", \"logical_devices\": 3}", backends[i]);
    tutti_context *context = create_context(json);
    assert_int_equal(tutti_context_get_device_count(context), 3);
    snprintf(name, sizeof name, "%s:2", backends[i]);
    assert_string_equal(tutti_context_get_device_name(context, 2), name);
    tutti_context_unref(context);
  }
}

static void test_context_mistakes(void **state) {
  (void)state;
  tutti_options *options = make_options("context", "{\"backend\": \"refrence\"}");
  tutti_context *context = (tutti_context *)(uintptr_t)1;
  assert_error(TUTTI_NOT_FOUND, "'refrence'", tutti_context_create(options, &context, &err));
  assert_null(context);
  tutti_options_unref(options);
  options = make_options("context", "{\"plugin\": \"libs/relative.so\"}");
  assert_int_equal(tutti_context_create(options, &context, NULL), TUTTI_INVALID_ARGUMENT);
  tutti_options_unref(options);
  options = make_options("context", "{\"plugin\": \"/no/such/plugin.so\"}");
  tutti_error *err = NULL;
  assert_int_not_equal(tutti_context_create(options, &context, &err), TUTTI_OK);
  assert_contains(tutti_error_get_text(err), "/no/such/plugin.so");
  tutti_error_unref(err);
  tutti_options_unref(options);
  assert_int_equal(tutti_context_get_device_count((tutti_context *)(uintptr_t)0x10), -1);
  assert_null(tutti_context_get_device_name((tutti_context *)(uintptr_t)0x10, 0));
}

/* Contexts take memory as it is needed: a program may ask for that, and not for anything else. */
static void test_f1_allow_growth(void **state) {
  (void)state;
  tutti_context *context = create_context("{\"allow_growth\": true}");
  tutti_context_unref(context);
  tutti_options *options = make_options("context", "{\"allow_growth\": false}");
  assert_error(TUTTI_UNIMPLEMENTED, "it is allocated on demand, and gpu_memory_fraction and memory_bytes limit it",
               tutti_context_create(options, &context, &err));
  assert_null(context);
  tutti_options_unref(options);
}

static void test_one_device(void **state) {
  (void)state;
  tutti_strategy *strategy = NULL;
  assert_ok(tutti_strategy_create_one_device(NULL, NULL, &strategy, &err));
  assert_int_equal(tutti_strategy_get_replica_count(strategy), 1);
  assert_string_equal(tutti_strategy_get_device(strategy, 0), first_device());
  assert_null(tutti_strategy_get_device(strategy, 1));
  assert_null(tutti_strategy_get_device(strategy, -1));
  tutti_strategy_unref(strategy);
  assert_error(TUTTI_NOT_FOUND, "no device 'gpu:9'; the context has ",
               tutti_strategy_create_one_device(NULL, "gpu:9", &strategy, &err));
  assert_null(strategy);
}

static void keep_choice(void *user, int32_t severity, const char *text) {
  (void)severity;
  if (strstr(text, "devices chosen") != NULL) snprintf(user, 200, "%s", text);
}

/* An estimator without a strategy: how many replicas it trains on, and what was logged of the choice. */
static void train_by_default(tutti_context *context, const char *run_json, int64_t replicas, const char *logged) {
  char said[200] = "", needle[40];
  tutti_options *run = make_options("run", run_json), *train = make_options("train", "{\"epochs\": 1}");
  tutti_estimator *estimator = NULL;
  tutti_dataset *dataset = NULL;
  tutti_result *result = NULL;
  assert_ok(tutti_context_set_log(context, keep_choice, said, NULL, TUTTI_LOG_INFO, &err));
  assert_ok(tutti_estimator_create(context, toy_model, NULL, NULL, NULL, run, &estimator, &err));
  assert_contains(said, logged);
  tutti_pipeline *pipeline = toy_rows(context, 37);
  tutti_pipeline_batch(pipeline, 8, NULL);
  assert_ok(tutti_pipeline_build(pipeline, &dataset, &err));
  assert_ok(tutti_estimator_train(estimator, dataset, train, NULL, NULL, &result, &err));
  snprintf(needle, sizeof needle, "\"replicas\":%d", (int)replicas);
  assert_contains(tutti_result_get_step_report(result), needle);
  assert_ok(tutti_context_set_log(context, NULL, NULL, NULL, TUTTI_LOG_INFO, &err));
  tutti_result_unref(result), tutti_estimator_unref(estimator), tutti_dataset_unref(dataset);
  tutti_pipeline_unref(pipeline), tutti_options_unref(run), tutti_options_unref(train);
}

static void test_c21_auto_chooses_and_says_so(void **state) {
  (void)state;
  tutti_context *context = create_context("{\"backend\": \"reference\", \"logical_devices\": 3, \"threads\": 6}");
  tutti_strategy *strategy = NULL;
  static const struct { int64_t batch_size, replicas; } cases[] = {{0, 3}, {96, 3}, {70, 2}, {1, 1}};
  for (int i = 0; i < 4; i++) {
    assert_ok(tutti_strategy_create_auto(context, cases[i].batch_size, &strategy, &err));
    assert_int_equal(tutti_strategy_get_replica_count(strategy), cases[i].replicas);
    tutti_strategy_unref(strategy);
  }
  assert_error(TUTTI_INVALID_ARGUMENT, "batch_size", tutti_strategy_create_auto(context, -1, &strategy, &err));
  assert_null(strategy);
  train_by_default(context, "{}", 3, "devices chosen: 3 replicas on processors, 6 threads in all");
  /* Three do not divide the logical replicas. */
  train_by_default(context, "{\"determinism\": \"invariant\", \"logical_replicas\": 4}", 2, "2 replicas");
  tutti_context_unref(context);
  /* Replicas of two backends do not train together: the default is those of the first. */
  if (!tutti_has_feature("backend:cpu")) return;
  context = create_context("{\"backend\": \"cpu,reference\", \"logical_devices\": 2}");
  assert_int_equal(tutti_context_get_device_count(context), 4);
  train_by_default(context, "{}", 2, "2 replicas");
  tutti_context_unref(context);
}

/* Each way of adding up gives the same weights; and what a device reaches is told. */
static void test_a27_c31_all_reduce_can_be_chosen(void **state) {
  (void)state;
  static const char *const choices[] = {"automatic", "host", "ring", "hierarchical", "reduce_to_one"};
  tutti_context *context = create_context("{\"backend\": \"reference\", \"logical_devices\": 3}");
  assert_contains(tutti_context_describe_device(context, 1), "\"reaches\":[]");
  assert_contains(tutti_context_describe_device(context, 1), "\"links\":{}");
  tutti_options *train = make_options("train", "{\"epochs\": 2}");
  float first[16];
  for (int c = 0; c < 5; c++) {
    tutti_pipeline *pipeline = toy_rows(context, 37);
    tutti_options *run = make_options("run", "{\"seed\": 2}");
    tutti_options_set_string(run, "all_reduce", choices[c]);
    tutti_dataset *dataset = NULL;
    tutti_estimator *estimator = NULL;
    tutti_tensor *bias = NULL;
    tutti_pipeline_batch(pipeline, 8, NULL);
    assert_ok(tutti_pipeline_build(pipeline, &dataset, &err));
    assert_ok(tutti_estimator_create(context, toy_model, NULL, NULL, NULL, run, &estimator, &err));
    assert_ok(tutti_estimator_train(estimator, dataset, train, NULL, NULL, NULL, &err));
    assert_ok(tutti_estimator_read_variable(estimator, "dense/bias", &bias, &err));
    const float *values = tutti_tensor_get_data(bias);
    for (int i = 0; i < 16; i++) {
      if (c == 0) first[i] = values[i];
      assert_float_equal(values[i], first[i], 1e-5f);
    }
    tutti_tensor_unref(bias), tutti_estimator_unref(estimator), tutti_dataset_unref(dataset);
    tutti_pipeline_unref(pipeline), tutti_options_unref(run);
  }
  tutti_options_unref(train), tutti_context_unref(context);
}

static int64_t programs_of(const tutti_result *result) {
  const char *at = strstr(tutti_result_get_step_report(result), "\"programs\":");
  assert_non_null(at);
  return atoll(at + strlen("\"programs\":"));
}

/* 37 rows in batches of 8 have two shapes; further passes bring no new one, and so no program is built. */
static void test_c34_known_shapes_are_not_built_again(void **state) {
  (void)state;
  tutti_context *context = create_context("{\"backend\": \"reference\", \"logical_devices\": 3}");
  tutti_pipeline *pipeline = toy_rows(context, 37);
  tutti_dataset *dataset = NULL;
  tutti_estimator *estimator = NULL;
  tutti_pipeline_batch(pipeline, 8, NULL);
  assert_ok(tutti_pipeline_build(pipeline, &dataset, &err));
  assert_ok(tutti_estimator_create(context, toy_model, NULL, NULL, NULL, NULL, &estimator, &err));
  int64_t programs[3];
  for (int pass = 0; pass < 3; pass++) {
    tutti_options *further = make_options("train", pass == 0 ? "{\"epochs\": 1}" : "{\"steps\": 5}");
    tutti_result *result = NULL;
    assert_ok(tutti_estimator_train(estimator, dataset, further, NULL, NULL, &result, &err));
    programs[pass] = programs_of(result);
    tutti_result_unref(result), tutti_options_unref(further);
  }
  assert_true(programs[0] > 0);
  assert_int_equal(programs[1], programs[0]);
  assert_int_equal(programs[2], programs[0]);
  tutti_estimator_unref(estimator), tutti_dataset_unref(dataset), tutti_pipeline_unref(pipeline);
  tutti_context_unref(context);
}

static void test_mirrored(void **state) {
  (void)state;
  tutti_context *context = create_context("{\"backend\": \"reference\", \"logical_devices\": 3}");
  tutti_strategy *strategy = NULL;
  assert_ok(tutti_strategy_create_mirrored(context, NULL, 0, &strategy, &err));
  assert_int_equal(tutti_strategy_get_replica_count(strategy), 3);
  assert_string_equal(tutti_strategy_get_device(strategy, 2), "reference:2");
  tutti_strategy_unref(strategy);
  static const char *const some[] = {"reference:2", "reference:0"};
  assert_ok(tutti_strategy_create_mirrored(context, some, 2, &strategy, &err));
  assert_int_equal(tutti_strategy_get_replica_count(strategy), 2);
  assert_string_equal(tutti_strategy_get_device(strategy, 0), "reference:2");
  tutti_strategy_unref(strategy);
  static const char *const twice[] = {"reference:1", "reference:1"}, *const nobody[] = {"reference:1", NULL};
  assert_error(TUTTI_INVALID_ARGUMENT, "reference:1",
               tutti_strategy_create_mirrored(context, twice, 2, &strategy, &err));
  assert_error(TUTTI_INVALID_ARGUMENT, "NULL", tutti_strategy_create_mirrored(context, nobody, 2, &strategy, &err));
  assert_error(TUTTI_INVALID_ARGUMENT, "NULL", tutti_strategy_create_mirrored(context, NULL, 2, &strategy, &err));
  assert_error(TUTTI_INVALID_ARGUMENT, "count", tutti_strategy_create_mirrored(context, some, -1, &strategy, &err));
  assert_null(strategy);
  assert_int_equal(tutti_strategy_get_replica_count(NULL), -1);
  assert_int_equal(tutti_strategy_get_input_pipeline_count(NULL), -1);
  assert_int_equal(tutti_strategy_get_input_pipeline_id(NULL), -1);
  assert_null(tutti_strategy_get_device(NULL, 0));
  tutti_context_unref(context);
}

static void test_context_of_a_strategy(void **state) {
  (void)state;
  tutti_context *context = create_context("{\"backend\": \"reference\", \"logical_devices\": 2}");
  tutti_strategy *strategy = NULL;
  assert_ok(tutti_strategy_create_mirrored(context, NULL, 0, &strategy, &err));
  tutti_context_unref(context); /* the strategy keeps it */
  tutti_context *scope = tutti_strategy_get_context(strategy);
  assert_non_null(scope);
  assert_ptr_equal(scope, tutti_strategy_get_context(strategy));
  assert_int_equal(tutti_context_get_device_count(scope), 2);
  /* The same context but for the strategy: what is made from either belongs together. */
  tutti_pipeline *pipeline = NULL;
  assert_ok(tutti_pipeline_create(scope, &pipeline, &err));
  tutti_pipeline_unref(pipeline);
  assert_null(tutti_strategy_get_context(NULL));
  tutti_strategy_unref(strategy);
}

static void test_contexts_do_not_mix(void **state) {
  (void)state;
  tutti_context *context = create_context("{\"backend\": \"reference\"}");
  tutti_strategy *strategy = NULL;
  tutti_estimator *estimator = NULL;
  assert_ok(tutti_strategy_create_one_device(context, NULL, &strategy, &err));
  assert_error(TUTTI_INVALID_ARGUMENT, "'strategy' belongs to another context",
               tutti_estimator_create(NULL, toy_model, NULL, NULL, strategy, NULL, &estimator, &err));
  assert_ok(tutti_estimator_create(context, toy_model, NULL, NULL, strategy, NULL, &estimator, &err));
  tutti_dataset *dataset = toy_dataset(8, 4, 1); /* of the default context */
  tutti_result *result = NULL;
  assert_error(TUTTI_INVALID_ARGUMENT, "'dataset' belongs to another context",
               tutti_estimator_train(estimator, dataset, NULL, NULL, NULL, &result, &err));
  tutti_dataset_unref(dataset);
  tutti_estimator_unref(estimator);
  tutti_strategy_unref(strategy);
  tutti_context_unref(context);
}

struct log_record {
  int lines, destroyed;
  char last[256];
};

static void take_line(void *user, int32_t severity, const char *text) {
  struct log_record *record = user;
  (void)severity;
  record->lines++;
  snprintf(record->last, sizeof record->last, "%s", text);
}

static void destroy_log(void *user) { ((struct log_record *)user)->destroyed++; }

static void test_log(void **state) {
  (void)state;
  tutti_context *context = create_context("{\"backend\": \"reference\"}");
  struct log_record first = {0}, second = {0};
  assert_ok(tutti_context_set_log(context, take_line, &first, destroy_log, TUTTI_LOG_INFO, &err));
  assert_ok(tutti_context_set_log(context, take_line, &second, destroy_log, TUTTI_LOG_INFO, &err));
  assert_int_equal(first.destroyed, 1); /* replaced */
  assert_error(TUTTI_INVALID_ARGUMENT, "'minimum_severity'",
               tutti_context_set_log(context, take_line, &first, destroy_log, 9, &err));
  assert_int_equal(first.destroyed, 2); /* also when the registration fails */
  assert_int_equal(second.destroyed, 0);
  assert_ok(tutti_context_set_log(context, NULL, NULL, NULL, TUTTI_LOG_INFO, &err));
  assert_int_equal(second.destroyed, 1);
  assert_int_equal(second.lines, 0);
  tutti_context_unref(context);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_default_context),
    cmocka_unit_test(test_logical_devices),
    cmocka_unit_test(test_context_mistakes),
    cmocka_unit_test(test_f1_allow_growth),
    cmocka_unit_test(test_one_device),
    cmocka_unit_test(test_c21_auto_chooses_and_says_so),
    cmocka_unit_test(test_a27_c31_all_reduce_can_be_chosen),
    cmocka_unit_test(test_c34_known_shapes_are_not_built_again),
    cmocka_unit_test(test_mirrored),
    cmocka_unit_test(test_context_of_a_strategy),
    cmocka_unit_test(test_contexts_do_not_mix),
    cmocka_unit_test(test_log),
};
CAPI_TEST_MAIN(tests)
