/* SPDX-License-Identifier: Apache-2.0
 * The backend pjrt by the options of a context: what names no usable library is refused in a sentence, and on devices
 * of the library that TUTTI_PJRT_PLUGIN names, where it does, the model trains and predicts.
 *
 * usage: pjrt_test FAKE_PLUGIN LIBRARY_WITHOUT_PJRT */

#include <stdlib.h>

#include "capi_testing.h"

static const char *fake_plugin, *other_library;

static tutti_context *open_context(const char *backend, const char *library, int32_t code, const char *needle) {
  char json[4200];
  snprintf(json, sizeof json, "{\"backend\": \"%s\", \"pjrt_plugin\": \"%s\", \"logical_devices\": 2}", backend,
           library);
  tutti_options *options = make_options("context", json);
  tutti_context *context = NULL;
  if (code == TUTTI_OK) {
    assert_ok(tutti_context_create(options, &context, &err));
  } else {
    assert_error(code, needle, tutti_context_create(options, &context, &err));
    assert_null(context);
  }
  tutti_options_unref(options);
  return context;
}

static void test_a_library_is_named(void **state) {
  (void)state;
  tutti_options *options = make_options("context", "{\"backend\": \"pjrt\"}");
  tutti_context *context = NULL;
  assert_error(TUTTI_INVALID_ARGUMENT, "pjrt_plugin is missing, the path of a library with PJRT's C interface",
               tutti_context_create(options, &context, &err));
  tutti_options_unref(options);
  open_context("reference", fake_plugin, TUTTI_INVALID_ARGUMENT, "does not name pjrt");
  open_context("pjrt", "libtpu.so", TUTTI_INVALID_ARGUMENT, "expected an absolute path");
  open_context("pjrt", "/nonexistent/libtpu.so", TUTTI_UNAVAILABLE, "/nonexistent/libtpu.so");
  open_context("pjrt", other_library, TUTTI_UNAVAILABLE, "does not export GetPjrtApi");
}

static void test_why_a_library_is_not_used(void **state) {
  (void)state;
  setenv("TUTTI_FAKE_PJRT", "version=0.40", 1);
  open_context("pjrt", fake_plugin, TUTTI_UNAVAILABLE, "has version 0.40 of PJRT's C interface, expected 0.57");
  setenv("TUTTI_FAKE_PJRT", "version=1.0", 1);
  open_context("pjrt", fake_plugin, TUTTI_UNAVAILABLE, "has version 1.0 of PJRT's C interface, expected 0.57");
  setenv("TUTTI_FAKE_PJRT", "no_devices", 1);
  open_context("pjrt", fake_plugin, TUTTI_UNAVAILABLE, "finds no devices: no TPU in this machine");
  setenv("TUTTI_FAKE_PJRT", "without=20", 1);
  open_context("pjrt", fake_plugin, TUTTI_UNAVAILABLE, "lacks function 20 of PJRT's C interface");
  unsetenv("TUTTI_FAKE_PJRT");
}

/* Programs are compiled for devices that are not here; what would have to run says so. */
static void test_devices_that_are_not_here(void **state) {
  (void)state;
  char json[4200];
  snprintf(json, sizeof json, "{\"backend\": \"pjrt\", \"pjrt_plugin\": \"%s\", \"pjrt_topology\": \"fake:1x2\"}",
           fake_plugin);
  tutti_options *options = make_options("context", json), *train = make_options("train", "{\"steps\": 1}");
  tutti_context *context = NULL;
  tutti_estimator *estimator = NULL;
  tutti_dataset *dataset = NULL;
  assert_ok(tutti_context_create(options, &context, &err));
  assert_int_equal(tutti_context_get_device_count(context), 2);
  tutti_pipeline *pipeline = toy_rows(context, 8);
  tutti_pipeline_batch(pipeline, 4, NULL);
  assert_ok(tutti_pipeline_build(pipeline, &dataset, &err));
  assert_ok(tutti_estimator_create(context, toy_model, NULL, NULL, NULL, NULL, &estimator, &err));
  assert_error(TUTTI_FAILED_PRECONDITION, "devices of the topology 'fake:1x2' are not here",
               tutti_estimator_train(estimator, dataset, train, NULL, NULL, NULL, &err));
  tutti_estimator_unref(estimator), tutti_dataset_unref(dataset), tutti_pipeline_unref(pipeline);
  tutti_context_unref(context), tutti_options_unref(options), tutti_options_unref(train);
}

/* So are the programs of a training: what they need is in the estimate of its memory, of one device or of replicas. */
static void test_c16_a_training_is_compiled_for_a_topology(void **state) {
  (void)state;
  char json[4200];
  snprintf(json, sizeof json, "{\"backend\": \"pjrt\", \"pjrt_plugin\": \"%s\", \"pjrt_topology\": \"fake:1x2\"}",
           fake_plugin);
  tutti_options *options = make_options("context", json);
  tutti_context *context = NULL;
  assert_ok(tutti_context_create(options, &context, &err));
  tutti_pipeline *pipeline = toy_rows(context, 24);
  tutti_dataset *dataset = NULL;
  tutti_pipeline_batch(pipeline, 8, NULL);
  assert_ok(tutti_pipeline_build(pipeline, &dataset, &err));
  for (int replicas = 1; replicas <= 2; replicas++) {
    tutti_strategy *strategy = NULL;
    tutti_estimator *estimator = NULL;
    const char *devices[] = {"pjrt:0", "pjrt:1"}, *estimate = NULL;
    assert_ok(tutti_strategy_create_mirrored(context, devices, replicas, &strategy, &err));
    assert_ok(tutti_estimator_create(context, toy_model, NULL, NULL, strategy, NULL, &estimator, &err));
    assert_ok(tutti_estimator_estimate_memory(estimator, dataset, 0, &estimate, &err));
    assert_contains(estimate, "\"programs\":[{");
    assert_contains(estimate, "\"code_bytes\":2500");
    setenv("TUTTI_FAKE_PJRT", "too_large", 1);
    assert_error(TUTTI_RESOURCE_EXHAUSTED, "exceeds the memory of the device",
                 tutti_estimator_estimate_memory(estimator, dataset, 16, &estimate, &err));
    unsetenv("TUTTI_FAKE_PJRT");
    tutti_estimator_unref(estimator), tutti_strategy_unref(strategy);
  }
  tutti_dataset_unref(dataset), tutti_pipeline_unref(pipeline), tutti_context_unref(context);
  tutti_options_unref(options);
}

static void test_a_model_trains(void **state) {
  (void)state;
  const char *const library = getenv("TUTTI_PJRT_PLUGIN");
  if (library == NULL) {
    print_message("TUTTI_PJRT_PLUGIN names no library with PJRT's C interface\n");
    skip();
  }
  tutti_context *context = open_context("pjrt", library, TUTTI_OK, "");
  assert_int_equal(tutti_context_get_device_count(context), 2);
  assert_string_equal(tutti_context_get_device_name(context, 1), "pjrt:1");
  tutti_strategy *strategy = NULL;
  tutti_estimator *estimator = NULL;
  tutti_options *run = make_options("run", "{\"seed\": 3}"), *train = make_options("train", "{\"steps\": 60}");
  assert_ok(tutti_strategy_create_mirrored(context, NULL, 0, &strategy, &err));
  assert_int_equal(tutti_strategy_get_replica_count(strategy), 2);
  assert_ok(tutti_estimator_create(context, toy_model, NULL, NULL, strategy, run, &estimator, &err));
  tutti_pipeline *pipeline = toy_rows(context, 90);
  tutti_dataset *dataset = NULL;
  tutti_pipeline_batch(pipeline, 13, NULL); /* uneven shares */
  tutti_pipeline_repeat(pipeline, 0);
  assert_ok(tutti_pipeline_build(pipeline, &dataset, &err));
  tutti_result *result = NULL;
  assert_ok(tutti_estimator_train(estimator, dataset, train, NULL, NULL, &result, &err));
  const double loss = tutti_result_get_metric(result, "loss");
  if (!(loss < 0.6)) fail_msg("loss %g after 60 steps", loss);
  tutti_result_unref(result), tutti_dataset_unref(dataset), tutti_pipeline_unref(pipeline);
  tutti_options_unref(train), tutti_options_unref(run);
  tutti_estimator_unref(estimator), tutti_strategy_unref(strategy), tutti_context_unref(context);
}

int main(int argc, char **argv) {
  if (argc != 3) return 1;
  fake_plugin = argv[1], other_library = argv[2];
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_library_is_named),
      cmocka_unit_test(test_why_a_library_is_not_used),
      cmocka_unit_test(test_devices_that_are_not_here),
      cmocka_unit_test(test_c16_a_training_is_compiled_for_a_topology),
      cmocka_unit_test(test_a_model_trains),
  };
  return cmocka_run_group_tests(tests, remember_live_objects, assert_nothing_left);
}
