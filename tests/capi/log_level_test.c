/* SPDX-License-Identifier: Apache-2.0
 * Lines of the log on standard error: the option log_level and the environment variable TUTTI_LOG. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <unistd.h>

#include "estimator_fixtures.h"

enum { MOST = 16384 };

static void log_nothing(void *user, int32_t severity, const char *text) { (void)user, (void)severity, (void)text; }

/* What a training in a context with these options writes to standard error; with `own_sink` to a sink of its own. */
static const char *written(const char *json, int own_sink) {
  static char text[MOST];
  FILE *file = tmpfile();
  assert_non_null(file);
  fflush(stderr);
  const int kept = dup(STDERR_FILENO);
  assert_true(dup2(fileno(file), STDERR_FILENO) >= 0);
  tutti_options *options = make_options("context", json), *steps = make_options("train", "{\"steps\": 2}");
  tutti_context *context = NULL;
  assert_ok(tutti_context_create(options, &context, &err));
  if (own_sink) assert_ok(tutti_context_set_log(context, log_nothing, NULL, NULL, TUTTI_LOG_DEBUG, &err));
  tutti_pipeline *pipeline = toy_rows(context, 16);
  tutti_dataset *dataset = NULL;
  tutti_pipeline_repeat(pipeline, NULL);
  tutti_pipeline_batch(pipeline, 8, NULL);
  assert_ok(tutti_pipeline_build(pipeline, &dataset, &err));
  tutti_pipeline_unref(pipeline);
  tutti_estimator *estimator = NULL;
  assert_ok(tutti_estimator_create(context, toy_model, NULL, NULL, NULL, NULL, &estimator, &err));
  assert_ok(tutti_estimator_train(estimator, dataset, steps, NULL, NULL, NULL, &err));
  tutti_estimator_unref(estimator), tutti_dataset_unref(dataset), tutti_context_unref(context);
  tutti_options_unref(options), tutti_options_unref(steps);
  assert_true(dup2(kept, STDERR_FILENO) >= 0);
  close(kept);
  rewind(file);
  text[fread(text, 1, sizeof text - 1, file)] = 0;
  fclose(file);
  return text;
}

/* "2026-11-29 20:14:05 INFO training ended at step 2: ..." */
static void assert_has_info(const char *text) {
  assert_contains(text, " INFO training ended at step 2: loss ");
  int year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0;
  assert_int_equal(sscanf(text, "%d-%d-%d %d:%d:%d ", &year, &month, &day, &hour, &minute, &second), 6);
  assert_true(year > 2000 && month <= 12 && day <= 31 && hour < 24 && minute < 60 && second <= 60);
}

static void test_the_option(void **state) {
  (void)state;
  unsetenv("TUTTI_LOG");
  assert_string_equal(written("{\"backend\": \"reference\"}", 0), "");
  assert_string_equal(written("{\"backend\": \"reference\", \"log_level\": \"none\"}", 0), "");
  assert_string_equal(written("{\"backend\": \"reference\", \"log_level\": \"error\"}", 0), "");
  assert_has_info(written("{\"backend\": \"reference\", \"log_level\": \"info\"}", 0));
  assert_has_info(written("{\"backend\": \"reference\", \"log_level\": \"debug\"}", 0));
  assert_string_equal(written("{\"backend\": \"reference\", \"log_level\": \"info\"}", 1), "");
}

static void test_the_environment(void **state) {
  (void)state;
  setenv("TUTTI_LOG", "info", 1);
  assert_has_info(written("{\"backend\": \"reference\"}", 0));
  assert_string_equal(written("{\"backend\": \"reference\", \"log_level\": \"none\"}", 0), "");
  setenv("TUTTI_LOG", "", 1);
  assert_string_equal(written("{\"backend\": \"reference\"}", 0), "");
  setenv("TUTTI_LOG", "loud", 1);
  tutti_context *context = NULL;
  assert_error(TUTTI_INVALID_ARGUMENT, "TUTTI_LOG is 'loud', expected debug, info, warning, error or none",
               tutti_context_create(NULL, &context, &err));
  unsetenv("TUTTI_LOG");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_the_option),
    cmocka_unit_test(test_the_environment),
};
CAPI_TEST_MAIN(tests)
