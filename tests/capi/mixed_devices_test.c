/* SPDX-License-Identifier: Apache-2.0
 * A context with the devices of two backends: they predict and evaluate together, every row once and in order, and each
 * trains on its own.
 *
 * usage: mixed_devices_test PLUG-IN (of a backend beside the processors) */
#include <math.h>
#include <stdlib.h>

#include "estimator_fixtures.h"

enum { ROWS = 203 };

static const char *plugin;

static const char *processors(void) { return tutti_has_feature("backend:cpu") ? "cpu" : "reference"; }

/* `backends` with %s where the plug-in stands. */
static int32_t open_context(const char *backends, tutti_context **context, tutti_error **err) {
  char text[4400];
  snprintf(text, sizeof text, backends, plugin);
  tutti_options *options = make_options("context", "{\"logical_devices\": 2, \"memory_bytes\": 400000000}");
  tutti_options_set_string(options, "backend", text);
  const int32_t code = tutti_context_create(options, context, err);
  tutti_options_unref(options);
  return code;
}

static tutti_context *both(void) {
  tutti_context *context = NULL;
  assert_ok(open_context(tutti_has_feature("backend:cpu") ? "cpu, %s" : "reference, %s", &context, &err));
  return context;
}

static tutti_strategy *on_all(tutti_context *context) {
  tutti_strategy *strategy = NULL;
  assert_ok(tutti_strategy_create_mirrored(context, NULL, 0, &strategy, &err));
  return strategy;
}

static tutti_dataset *rows_of(tutti_context *context, int64_t rows, int64_t batch) {
  tutti_pipeline *pipeline = toy_rows(context, rows);
  tutti_dataset *dataset = NULL;
  tutti_pipeline_batch(pipeline, batch, NULL);
  assert_ok(tutti_pipeline_build(pipeline, &dataset, &err));
  tutti_pipeline_unref(pipeline);
  return dataset;
}

/* Trains some steps on one device and leaves a checkpoint. */
static void train_on(tutti_context *context, const char *device, const char *directory) {
  tutti_options *options = make_options("run", "{\"seed\": 3}");
  tutti_options_set_string(options, "model_dir", directory);
  tutti_strategy *strategy = NULL;
  tutti_estimator *estimator = NULL;
  assert_ok(tutti_strategy_create_one_device(context, device, &strategy, &err));
  assert_ok(tutti_estimator_create(context, toy_model, NULL, NULL, strategy, options, &estimator, &err));
  tutti_dataset *dataset = rows_of(context, 64, 16);
  assert_ok(tutti_estimator_train(estimator, dataset, NULL, NULL, NULL, NULL, &err));
  tutti_dataset_unref(dataset), tutti_estimator_unref(estimator), tutti_strategy_unref(strategy);
  tutti_options_unref(options);
}

/* The logits of rows 0, 1, ... by one call. */
static void predict(tutti_predictor *predictor, int64_t rows, float *logits) {
  float *values = calloc((size_t)rows * 4 + 1, sizeof *values);
  int32_t label = 0;
  for (int64_t row = 0; row < rows; row++)
    toy_row(row, values + 4 * row, &label);
  const int64_t dims[2] = {rows, 4};
  tutti_tensor *x = make_tensor(TUTTI_DTYPE_F32, 2, dims, values);
  tutti_batch *batch = NULL;
  const char *name = "x";
  assert_ok(tutti_predictor_run(predictor, &name, &x, 1, NULL, &batch, &err));
  assert_int_equal(tutti_batch_get_row_count(batch), rows);
  if (rows > 0)
    memcpy(logits, tutti_tensor_get_data(tutti_batch_get_output(batch, "logits")), (size_t)rows * 2 * sizeof *logits);
  tutti_batch_unref(batch), tutti_tensor_unref(x);
  free(values);
}

static void check_logits(const float *got, const float *expected, int64_t rows) {
  for (int64_t i = 0; i < 2 * rows; i++) {
    if (fabsf(got[i] - expected[i]) > 1e-4f)
      fail_msg("row %d: %g, expected %g", (int)(i / 2), (double)got[i], (double)expected[i]);
  }
}

static tutti_predictor *open_predictor(tutti_context *context, const char *directory, const tutti_strategy *strategy,
                                       const char *json) {
  tutti_options *options = make_options("predictor", json);
  tutti_predictor *predictor = NULL;
  assert_ok(tutti_predictor_open(context, directory, strategy, options, &predictor, &err));
  tutti_options_unref(options);
  return predictor;
}

static void test_contexts(void **state) {
  (void)state;
  tutti_context *context = both();
  assert_int_equal(tutti_context_get_device_count(context), 4);
  char name[32];
  for (int i = 0; i < 2; i++) {
    snprintf(name, sizeof name, "%s:%d", processors(), i);
    assert_string_equal(tutti_context_get_device_name(context, i), name);
    assert_contains(tutti_context_describe_device(context, i + 2), tutti_context_get_device_name(context, i + 2));
    assert_null(strstr(tutti_context_get_device_name(context, i + 2), processors()));
    assert_contains(tutti_context_describe_device(context, i + 2), "\"memory_bytes\":400000000");
  }
  tutti_strategy *strategy = on_all(context);
  assert_int_equal(tutti_strategy_get_replica_count(strategy), 4);
  for (int64_t i = 0; i < 4; i++)
    assert_string_equal(tutti_strategy_get_device(strategy, i), tutti_context_get_device_name(context, i));
  tutti_strategy_unref(strategy);
  const char *some[] = {tutti_context_get_device_name(context, 3), tutti_context_get_device_name(context, 0)};
  assert_ok(tutti_strategy_create_mirrored(context, some, 2, &strategy, &err));
  assert_string_equal(tutti_strategy_get_device(strategy, 0), some[0]);
  assert_string_equal(tutti_strategy_get_device(strategy, 1), some[1]);
  tutti_strategy_unref(strategy), tutti_context_unref(context);
  assert_error(TUTTI_INVALID_ARGUMENT, "reference:0", open_context("reference,reference", &context, &err));
  assert_error(TUTTI_NOT_FOUND, "'refrence'", open_context("%s,refrence", &context, &err));
  assert_error(TUTTI_NOT_FOUND, "''", open_context("reference,", &context, &err));
  assert_null(context);
}

static void test_c32_predictions(void **state) {
  (void)state;
  char directory[64];
  make_directory(directory);
  tutti_context *context = both();
  train_on(context, tutti_context_get_device_name(context, 2), directory);
  tutti_strategy *one = NULL;
  assert_ok(tutti_strategy_create_one_device(context, NULL, &one, &err));
  tutti_predictor *alone = open_predictor(context, directory, one, "{}");
  float expected[2 * ROWS], logits[2 * ROWS];
  predict(alone, ROWS, expected);
  /* Without a strategy: all devices of the context. */
  tutti_predictor *all = open_predictor(context, directory, NULL, "{}");
  static const int64_t counts[] = {0, 1, 2, 3, 5, 64, ROWS};
  for (int i = 0; i < 21; i++) {
    predict(all, counts[i % 7], logits);
    check_logits(logits, expected, counts[i % 7]);
  }
  tutti_dataset *dataset = rows_of(context, ROWS, 10);
  for (int turn = 0; turn < 3; turn++) {
    tutti_prediction_stream *stream = NULL;
    assert_ok(tutti_prediction_stream_open(all, dataset, &stream, &err));
    int64_t seen = 0;
    for (tutti_batch *batch = NULL;; tutti_batch_unref(batch)) {
      assert_ok(tutti_prediction_stream_next(stream, NULL, &batch, &err));
      if (batch == NULL) break;
      assert_int_equal(tutti_batch_get_first_row(batch), seen);
      const int64_t rows = tutti_batch_get_row_count(batch);
      check_logits(tutti_tensor_get_data(tutti_batch_get_output(batch, "logits")), expected + 2 * seen, rows);
      seen += rows;
    }
    assert_int_equal(seen, ROWS);
    tutti_prediction_stream_unref(stream);
  }
  /* Newer weights are on all devices. */
  train_on(context, tutti_context_get_device_name(context, 0), directory);
  assert_ok(tutti_predictor_reload(all, NULL, NULL, &err));
  assert_ok(tutti_predictor_reload(alone, NULL, NULL, &err));
  assert_int_equal(tutti_predictor_get_step(all), 8);
  predict(alone, ROWS, logits);
  assert_true(fabsf(logits[0] - expected[0]) > 1e-4f);
  predict(alone, ROWS, expected), predict(all, ROWS, logits);
  check_logits(logits, expected, ROWS);
  tutti_dataset_unref(dataset), tutti_predictor_unref(all), tutti_predictor_unref(alone);
  tutti_strategy_unref(one), tutti_context_unref(context);
  remove_directory(directory);
}

static void test_an_estimator_on_both(void **state) {
  (void)state;
  char directory[64];
  make_directory(directory);
  tutti_context *context = both();
  train_on(context, NULL, directory);
  tutti_strategy *strategy = on_all(context);
  tutti_options *options = make_options("run", "{\"seed\": 3}");
  tutti_options_set_string(options, "model_dir", directory);
  tutti_estimator *mixed = NULL, *alone = NULL;
  assert_ok(tutti_estimator_create(context, toy_model, NULL, NULL, strategy, options, &mixed, &err));
  assert_ok(tutti_estimator_create(context, toy_model, NULL, NULL, NULL, options, &alone, &err));
  tutti_dataset *dataset = rows_of(context, ROWS, 20);
  char words[96];
  snprintf(words, sizeof words, "devices %s:0 and ", processors());
  assert_error(TUTTI_FAILED_PRECONDITION, words, tutti_estimator_train(mixed, dataset, NULL, NULL, NULL, NULL, &err));
  assert_error(TUTTI_FAILED_PRECONDITION, "such a strategy predicts and evaluates",
               tutti_estimator_train(mixed, dataset, NULL, NULL, NULL, NULL, &err));
  const char *text = NULL;
  assert_error(TUTTI_FAILED_PRECONDITION, "cannot train together",
               tutti_estimator_estimate_memory(mixed, dataset, 0, &text, &err));
  const struct outcome expected = evaluate(alone, dataset, 0);
  for (int turn = 0; turn < 3; turn++) {
    const struct outcome got = evaluate(mixed, dataset, 0);
    assert_int_equal(got.examples, ROWS);
    assert_close(got.loss, expected.loss);
    assert_close(got.accuracy, expected.accuracy);
  }
  tutti_predictor *predictor = NULL;
  const char *report = NULL;
  tutti_batch *batch = NULL;
  assert_ok(tutti_predictor_from_estimator(mixed, NULL, &predictor, &err));
  for (int turn = 0; turn < 2; turn++) {
    assert_ok(tutti_context_start_profile(context, NULL, &err));
    assert_ok(tutti_predictor_run_all(predictor, dataset, NULL, &batch, &err));
    assert_int_equal(tutti_batch_get_row_count(batch), ROWS);
    tutti_batch_unref(batch);
    assert_ok(tutti_context_stop_profile(context, &report, &err));
  }
  assert_contains(report, "predictions ");
  assert_ok(tutti_predictor_describe_plan(predictor, 8, 0, NULL, &text, &err));
  assert_contains(text, "\"others\":[{\"device\":");
  tutti_predictor_unref(predictor), tutti_dataset_unref(dataset);
  tutti_estimator_unref(mixed), tutti_estimator_unref(alone), tutti_options_unref(options);
  tutti_strategy_unref(strategy), tutti_context_unref(context);
  remove_directory(directory);
}

static void test_determinism(void **state) {
  (void)state;
  char directory[64];
  make_directory(directory);
  tutti_context *context = both();
  train_on(context, NULL, directory);
  tutti_options *options = make_options("predictor", "{\"determinism\": \"invariant\"}");
  tutti_predictor *predictor = NULL;
  assert_error(TUTTI_INVALID_ARGUMENT, "round differently",
               tutti_predictor_open(context, directory, NULL, options, &predictor, &err));
  tutti_options_unref(options);
  float first[2 * ROWS], again[2 * ROWS];
  predictor = open_predictor(context, directory, NULL, "{\"determinism\": \"repeatable\"}");
  predict(predictor, ROWS, first);
  for (int turn = 0; turn < 5; turn++) {
    predict(predictor, ROWS, again);
    assert_memory_equal(again, first, sizeof first);
  }
  tutti_predictor_unref(predictor), tutti_context_unref(context);
  remove_directory(directory);
}

/* The weights after some steps on two replicas, and where these were. */
static void train_two(tutti_context *context, const tutti_strategy *strategy, const char *run, float kernel[64],
                      char *report, size_t size) {
  tutti_options *options = make_options("run", run);
  tutti_estimator *estimator = NULL;
  tutti_result *result = NULL;
  tutti_tensor *tensor = NULL;
  assert_ok(tutti_estimator_create(context, toy_model, NULL, NULL, strategy, options, &estimator, &err));
  tutti_dataset *dataset = rows_of(context, 75, 15);
  assert_ok(tutti_estimator_train(estimator, dataset, NULL, NULL, NULL, &result, &err));
  assert_ok(tutti_estimator_read_variable(estimator, "dense/kernel", &tensor, &err));
  assert_int_equal(tutti_tensor_get_size_bytes(tensor), 64 * sizeof(float));
  memcpy(kernel, tutti_tensor_get_data(tensor), 64 * sizeof(float));
  snprintf(report, size, "%s", tutti_result_get_step_report(result));
  tutti_tensor_unref(tensor), tutti_result_unref(result), tutti_dataset_unref(dataset);
  tutti_estimator_unref(estimator), tutti_options_unref(options);
}

static void test_a18_a26_num_gpus(void **state) {
  (void)state;
  tutti_context *context = both(), *scope = NULL;
  tutti_strategy *strategy = NULL;
  tutti_estimator *estimator = NULL;
  const char *gpus[2] = {tutti_context_get_device_name(context, 2), tutti_context_get_device_name(context, 3)};
  assert_ok(tutti_strategy_create_mirrored(context, gpus, 2, &strategy, &err));
  float named[64], counted[64];
  char report[4000];
  train_two(context, strategy, "{\"seed\": 3, \"determinism\": \"repeatable\"}", named, report, sizeof report);
  train_two(context, NULL, "{\"seed\": 3, \"determinism\": \"repeatable\", \"num_gpus\": 2}", counted, report,
            sizeof report);
  assert_memory_equal(counted, named, sizeof named);
  assert_contains(report, gpus[0]);
  assert_contains(report, gpus[1]);
  tutti_options *options = make_options("run", "{\"num_gpus\": 3}");
  assert_error(TUTTI_INVALID_ARGUMENT, "num_gpus is 3, but the context has 2 GPUs; its devices are ",
               tutti_estimator_create(context, toy_model, NULL, NULL, NULL, options, &estimator, &err));
  assert_error(TUTTI_INVALID_ARGUMENT, "num_gpus is 3, but the estimator has a strategy",
               tutti_estimator_create(context, toy_model, NULL, NULL, strategy, options, &estimator, &err));
  scope = tutti_strategy_get_context(strategy);
  assert_error(TUTTI_INVALID_ARGUMENT, "num_gpus is 3, but the context is the scope of a strategy",
               tutti_estimator_create(scope, toy_model, NULL, NULL, NULL, options, &estimator, &err));
  tutti_options_unref(options), tutti_strategy_unref(strategy), tutti_context_unref(context);
}

int main(int argc, char **argv) {
  if (argc < 2) return 2;
  plugin = argv[1];
  if (is_missing(plugin)) return TEST_IS_SKIPPED;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_contexts),
      cmocka_unit_test(test_c32_predictions),
      cmocka_unit_test(test_an_estimator_on_both),
      cmocka_unit_test(test_determinism),
      cmocka_unit_test(test_a18_a26_num_gpus),
  };
  return cmocka_run_group_tests(tests, remember_live_objects, assert_nothing_left);
}
