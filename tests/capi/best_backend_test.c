/* SPDX-License-Identifier: Apache-2.0
 * Which devices a program has that names none: all GPUs, where a backend for them is installed and can be used, else
 * the processors.
 *
 * usage: best_backend_test PLUG-IN [PLUG-IN WITHOUT DEVICES] */
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capi_testing.h"

static const char *plugin, *unusable;
static char folder[64];

static const char *first_processor(void) { return tutti_has_feature("backend:cpu") ? "cpu:0" : "reference:0"; }

/* A plug-in folder in which tutti-cuda.so is a link to a file, or is not. Each has a name of its own, as what was
 * loaded by a name stays. */
static void install(const char *name, const char *path) {
  char directory[256], link[512];
  join_path(directory, sizeof directory, folder, name);
  join_path(link, sizeof link, directory, "tutti-cuda.so");
  if (mkdir(directory, 0700) == 0 && path != NULL) assert_int_equal(symlink(path, link), 0);
  setenv("TUTTI_PLUGIN_PATH", directory, 1);
}

/* Opens a context, and checks its first device and how many there are (0 = any number). */
static void assert_devices(const char *json, const char *first, int64_t count) {
  tutti_options *options = make_options("context", json);
  tutti_context *context = NULL;
  assert_ok(tutti_context_create(options, &context, &err));
  assert_string_equal(tutti_context_get_device_name(context, 0), first);
  if (count > 0) {
    tutti_strategy *strategy = NULL;
    assert_int_equal(tutti_context_get_device_count(context), count);
    assert_ok(tutti_strategy_create_mirrored(context, NULL, 0, &strategy, &err));
    assert_int_equal(tutti_strategy_get_replica_count(strategy), count);
    tutti_strategy_unref(strategy);
  }
  tutti_context_unref(context), tutti_options_unref(options);
}

static void test_without_a_plugin(void **state) {
  (void)state;
  install("none", NULL);
  assert_devices("{}", first_processor(), 0);
  assert_devices("{\"logical_devices\": 3}", first_processor(), 3);
}

static void test_gpus_come_first(void **state) {
  (void)state;
  install("usable", plugin);
  assert_devices("{}", "emulated:0", 3);
  assert_devices("{\"gpus\": \"2\"}", "emulated:0", 1);
  assert_devices("{\"logical_devices\": 6}", "emulated:0", 6);
}

static void test_who_names_a_backend_gets_it(void **state) {
  (void)state;
  install("usable", plugin);
  assert_devices("{\"backend\": \"reference\", \"logical_devices\": 2}", "reference:0", 2);
  assert_devices("{\"backend\": \"cuda\"}", "emulated:0", 3);
}

/* Nothing of a plug-in is loaded where no node says that there may be a GPU; who names it gets it all the same. */
static void test_without_a_device_node(void **state) {
  (void)state;
  install("nodeless", plugin);
  setenv("TUTTI_GPU_NODE", "/dev/no-such-node", 1);
  assert_devices("{}", first_processor(), 0);
  assert_devices("{\"backend\": \"cuda\"}", "emulated:0", 3);
  setenv("TUTTI_GPU_NODE", "/dev/null", 1);
  assert_devices("{}", "emulated:0", 3);
}

static void test_what_cannot_be_used_is_left_out(void **state) {
  (void)state;
  install("broken", "/dev/null");
  assert_devices("{}", first_processor(), 0);
  if (unusable == NULL) return;
  install("unusable", unusable);
  tutti_options *options = make_options("context", "{\"backend\": \"cuda\"}");
  tutti_context *context = NULL;
  const int32_t code = tutti_context_create(options, &context, NULL);
  tutti_context_unref(context), tutti_options_unref(options);
  /* On a machine that has GPUs it can be used. */
  if (code == TUTTI_UNAVAILABLE) assert_devices("{}", first_processor(), 0);
}

static void test_a_gpu_that_is_not_there_is_an_error(void **state) {
  (void)state;
  install("usable", plugin);
  tutti_options *options = make_options("context", "{\"gpus\": \"0,77\"}");
  tutti_context *context = NULL;
  assert_error(TUTTI_INVALID_ARGUMENT, "77", tutti_context_create(options, &context, &err));
  assert_null(context);
  tutti_options_unref(options);
}

/* The default context and its default strategies: a program that says nothing trains on all GPUs. */
static void test_the_default_context(void **state) {
  (void)state;
  install("usable", plugin);
  tutti_strategy *strategy = NULL;
  assert_string_equal(tutti_context_get_device_name(NULL, 0), "emulated:0");
  assert_ok(tutti_strategy_create_mirrored(NULL, NULL, 0, &strategy, &err));
  assert_int_equal(tutti_strategy_get_replica_count(strategy), 3);
  assert_string_equal(tutti_strategy_get_device(strategy, 2), "emulated:2");
  tutti_estimator *estimator = NULL;
  assert_ok(tutti_estimator_create(NULL, toy_model, NULL, NULL, strategy, NULL, &estimator, &err));
  tutti_dataset *dataset = toy_dataset(30, 10, 1);
  tutti_result *result = NULL;
  assert_ok(tutti_estimator_train(estimator, dataset, NULL, NULL, NULL, &result, &err));
  assert_int_equal(tutti_result_get_step(result), 3);
  tutti_result_unref(result), tutti_dataset_unref(dataset);
  tutti_estimator_unref(estimator), tutti_strategy_unref(strategy);
}

int main(int argc, char **argv) {
  if (argc < 2) return 2;
  plugin = argv[1];
  unusable = argc > 2 ? argv[2] : NULL;
  make_directory(folder);
  setenv("TUTTI_EMULATED_GPUS", "3", 1);
  setenv("TUTTI_GPU_NODE", "/dev/null", 1);
  install("usable", plugin); /* for the default context, which is made once */
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_without_a_plugin),
      cmocka_unit_test(test_gpus_come_first),
      cmocka_unit_test(test_who_names_a_backend_gets_it),
      cmocka_unit_test(test_without_a_device_node),
      cmocka_unit_test(test_what_cannot_be_used_is_left_out),
      cmocka_unit_test(test_a_gpu_that_is_not_there_is_an_error),
      cmocka_unit_test(test_the_default_context),
  };
  const int failures = cmocka_run_group_tests(tests, remember_live_objects, assert_nothing_left);
  remove_directory(folder);
  return failures;
}
