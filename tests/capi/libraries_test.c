/* SPDX-License-Identifier: Apache-2.0
 * What is said of the libraries that a backend makes use of: their versions in descriptions of devices, and where one
 * is missing a warning and a word in plans.
 *
 * usage: libraries_test PLUG-IN, of emulated GPUs whose library is missing */

#include "dense_fixtures.h"
#include "estimator_fixtures.h"

static const char *plugin;

static int32_t dense_with_sgd(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  (void)user;
  build_dense(g, mode);
  if (mode == TUTTI_MODE_PREDICT) return tutti_graph_check(g, err);
  tutti_optimizer_sgd(g, tutti_schedule_constant(g, 0.2), NULL);
  return tutti_graph_check(g, err);
}

static void count_warnings(void *user, int32_t severity, const char *message) {
  if (severity == TUTTI_LOG_WARNING && strstr(message, ": the emulated library is missing: it was ordered so"))
    ++*(int *)user;
}

static tutti_context *open_context(int *warnings) {
  char json[4200];
  snprintf(json, sizeof json, "{\"plugin\": \"%s\", \"logical_devices\": 2}", plugin);
  tutti_options *options = make_options("context", json);
  tutti_context *context = NULL;
  assert_ok(tutti_context_create(options, &context, &err));
  tutti_options_unref(options);
  assert_ok(tutti_context_set_log(context, count_warnings, warnings, NULL, TUTTI_LOG_WARNING, &err));
  return context;
}

/* Trains on all devices and says how rows are predicted then. */
static void check_plan(tutti_context *context) {
  tutti_strategy *strategy = NULL;
  tutti_estimator *estimator = NULL;
  tutti_predictor *predictor = NULL;
  const char *plan = NULL;
  assert_ok(tutti_strategy_create_mirrored(context, NULL, 0, &strategy, &err));
  assert_ok(tutti_estimator_create(context, dense_with_sgd, NULL, NULL, strategy, NULL, &estimator, &err));
  tutti_dataset *rows = dense_dataset(context, 16, 8, 0);
  assert_int_equal(train(estimator, rows, NULL).step, 2);
  assert_ok(tutti_predictor_from_estimator(estimator, NULL, &predictor, &err));
  assert_ok(tutti_predictor_describe_plan(predictor, 4, 0, NULL, &plan, &err));
  assert_contains(plan, "\"library\":\"the emulated library is missing: it was ordered so\"");
  tutti_predictor_unref(predictor), tutti_estimator_unref(estimator), tutti_strategy_unref(strategy);
  tutti_dataset_unref(rows);
}

static void test_a_missing_library_is_told_once(void **state) {
  (void)state;
  int warnings = 0;
  tutti_context *context = open_context(&warnings);
  assert_int_equal(warnings, 0); /* nobody has asked it for kernels */
  check_plan(context);
  assert_int_equal(warnings, 1);
  tutti_context_unref(context);
  context = open_context(&warnings);
  check_plan(context);
  assert_int_equal(warnings, 1);
  tutti_context_unref(context);
}

static void test_devices_tell_versions(void **state) {
  (void)state;
  int warnings = 0;
  tutti_context *context = open_context(&warnings);
  for (int64_t i = 0; i < 2; i++) {
    const char *text = tutti_context_describe_device(context, i);
    assert_contains(text, "\"libraries\":{\"emulator\":\"1.2.3\",\"emulated NCCL\":\"2.21.5\",\"NVTX\":\"emulated\"}");
    assert_ptr_equal(tutti_context_describe_device(context, i), text);
  }
  tutti_context_unref(context);
  assert_contains(tutti_context_describe_device(NULL, 0), "\"libraries\":{");
}

int main(int argc, char **argv) {
  plugin = argc > 1 ? argv[1] : "";
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_missing_library_is_told_once),
      cmocka_unit_test(test_devices_tell_versions),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
