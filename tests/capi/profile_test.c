/* SPDX-License-Identifier: Apache-2.0
 * Profiles of training: the same report from every backend, a trace on disk, one profile at a time. And the report of
 * where the time of steps went, which needs no profile.
 *
 * usage: profile_test BACKEND (a name, or the path of a plug-in) */

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "estimator_fixtures.h"

static const char *backend;

static tutti_context *make_context(void) {
  char json[4200];
  snprintf(json, sizeof json, "{\"%s\": \"%s\", \"logical_devices\": 2}", backend[0] == '/' ? "plugin" : "backend",
           backend);
  tutti_options *options = make_options("context", json);
  tutti_context *context = NULL;
  assert_ok(tutti_context_create(options, &context, &err));
  tutti_options_unref(options);
  return context;
}

/* An estimator on `replicas` devices, and data for ever. */
static tutti_estimator *make_estimator(tutti_context *context, int replicas, tutti_dataset **dataset) {
  tutti_strategy *strategy = NULL;
  tutti_estimator *estimator = NULL;
  const char *first = tutti_context_get_device_name(context, 0);
  assert_ok(tutti_strategy_create_mirrored(context, &first, replicas == 1 ? 1 : 0, &strategy, &err));
  assert_ok(tutti_estimator_create(context, toy_model, NULL, NULL, strategy, NULL, &estimator, &err));
  tutti_pipeline *pipeline = toy_rows(context, 32);
  tutti_pipeline_repeat(pipeline, NULL);
  tutti_pipeline_batch(pipeline, 8, NULL);
  assert_ok(tutti_pipeline_build(pipeline, dataset, &err));
  tutti_pipeline_unref(pipeline), tutti_strategy_unref(strategy);
  return estimator;
}

static void train_steps(tutti_estimator *estimator, tutti_dataset *dataset, const char *json, tutti_result **result) {
  tutti_options *options = make_options("train", json);
  assert_ok(tutti_estimator_train(estimator, dataset, options, NULL, NULL, result, &err));
  tutti_options_unref(options);
}

static char *read_text(const char *path) {
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  fseek(file, 0, SEEK_END);
  const size_t size = (size_t)ftell(file);
  rewind(file);
  char *text = calloc(1, size + 1);
  assert_int_equal(fread(text, 1, size, file), size);
  fclose(file);
  return text;
}

static void test_a_profile_reports_devices_steps_and_layers(void **state) {
  (void)state;
  char directory[64], path[128];
  make_directory(directory);
  join_path(path, sizeof path, directory, "trace.json");
  tutti_context *context = make_context();
  tutti_dataset *dataset = NULL;
  tutti_estimator *estimator = make_estimator(context, 2, &dataset);
  const char *report = NULL;
  assert_error(TUTTI_FAILED_PRECONDITION, "no profile", tutti_context_stop_profile(context, &report, &err));
  assert_error(TUTTI_NOT_FOUND, "/nowhere", tutti_context_start_profile(context, "/nowhere/trace.json", &err));
  assert_ok(tutti_context_start_profile(context, path, &err));
  assert_error(TUTTI_FAILED_PRECONDITION, "running already", tutti_context_start_profile(context, path, &err));
  train_steps(estimator, dataset, "{\"steps\": 6}", NULL);
  assert_ok(tutti_context_stop_profile(context, &report, &err));
  for (int64_t i = 0; i < 2; i++) {
    char device[80];
    snprintf(device, sizeof device, "{\"device\":\"%s\",\"utilisation\":", tutti_context_get_device_name(context, i));
    assert_contains(report, device);
  }
  assert_contains(report, "\"steps\":5"); /* the first built the programs */
  assert_contains(report, "\"input_ms\":");
  assert_contains(report, "\"communication_ms\":");
  assert_contains(report, "\"layer\":\"dense\"");
  assert_contains(report, "\"forgotten\":0");
  char *trace = read_text(path);
  assert_contains(trace, "\"traceEvents\"");
  assert_contains(trace, "\"cat\":\"kernel\"");
  assert_contains(trace, "\"cat\":\"step\"");
  free(trace);

  assert_ok(tutti_context_start_profile(context, NULL, &err));
  assert_ok(tutti_context_stop_profile(context, &report, &err));
  assert_contains(report, "\"devices\":[]");
  tutti_estimator_unref(estimator), tutti_dataset_unref(dataset), tutti_context_unref(context);
  remove_directory(directory);
}

/* The only file that is below a directory, which has one entry at each level. */
static void find_file(const char *directory, char *path, size_t size) {
  snprintf(path, size, "%s", directory);
  for (DIR *entries; (entries = opendir(path)) != NULL; closedir(entries)) {
    const struct dirent *entry = NULL;
    while ((entry = readdir(entries)) != NULL && entry->d_name[0] == '.')
      continue;
    assert_non_null(entry);
    const size_t length = strlen(path);
    snprintf(path + length, size - length, "/%s", entry->d_name);
  }
}

static int64_t file_size(const char *path) {
  struct stat status;
  assert_int_equal(stat(path, &status), 0);
  return (int64_t)status.st_size;
}

/* What TensorBoard finds; decoded by tests/monitor/profile_planes_test.cc, and by its own reader in
 * tests/tool/profile_peer.py. */
static void test_a_directory_gets_a_profile_for_tensorboard(void **state) {
  (void)state;
  char directory[64], path[400];
  make_directory(directory);
  tutti_context *context = make_context();
  tutti_dataset *dataset = NULL;
  tutti_estimator *estimator = make_estimator(context, 2, &dataset);
  const char *report = NULL;
  assert_ok(tutti_context_start_profile(context, directory, &err));
  train_steps(estimator, dataset, "{\"steps\": 6}", NULL);
  assert_ok(tutti_context_stop_profile(context, &report, &err));
  find_file(directory, path, sizeof path);
  assert_contains(path, "/plugins/profile/");
  assert_string_equal(path + strlen(path) - strlen(".xplane.pb"), ".xplane.pb");
  assert_true(file_size(path) > 1000);
  assert_ok(tutti_context_start_profile(context, path, &err)); /* as a file */
  assert_ok(tutti_context_stop_profile(context, &report, &err));
  assert_true(file_size(path) < 1000);
  assert_error(TUTTI_NOT_FOUND, "/nowhere", tutti_context_start_profile(context, "/nowhere/a.xplane.pb", &err));
  assert_error(TUTTI_NOT_FOUND, "/proc/nowhere", tutti_context_start_profile(context, "/proc/nowhere/", &err));
  tutti_estimator_unref(estimator), tutti_dataset_unref(dataset), tutti_context_unref(context);
  remove_directory(directory);
}

/* Evaluations and predictions are steps, too. */
static void test_a_profile_of_evaluation_and_predictions(void **state) {
  (void)state;
  tutti_context *context = make_context();
  tutti_dataset *dataset = NULL;
  tutti_estimator *estimator = make_estimator(context, 2, &dataset);
  train_steps(estimator, dataset, "{\"steps\": 1}", NULL);
  const char *report = NULL;
  for (int repetition = 0; repetition < 2; repetition++) {
    assert_ok(tutti_context_start_profile(context, NULL, &err));
    assert_ok(tutti_estimator_evaluate(estimator, dataset, 4, NULL, NULL, &err));
    assert_ok(tutti_context_stop_profile(context, &report, &err));
    assert_contains(report, "evaluation 0 on ");
    assert_contains(report, "evaluation 1 on ");
    assert_contains(report, "\"steps\":4"); /* of each replica; programs were built before */
    assert_contains(report, "\"layer\":\"dense\"");
  }
  tutti_dataset *few = NULL;
  tutti_pipeline *pipeline = toy_rows(context, 12);
  tutti_pipeline_batch(pipeline, 4, NULL);
  assert_ok(tutti_pipeline_build(pipeline, &few, &err));
  tutti_predictor *predictor = NULL;
  assert_ok(tutti_predictor_from_estimator(estimator, NULL, &predictor, &err));
  for (int repetition = 0; repetition < 4; repetition++) {
    const int is_profiled = repetition % 2;
    tutti_batch *batch = NULL;
    if (is_profiled) assert_ok(tutti_context_start_profile(context, NULL, &err));
    assert_ok(tutti_predictor_run_all(predictor, few, NULL, &batch, &err));
    assert_int_equal(tutti_batch_get_row_count(batch), 12);
    tutti_batch_unref(batch);
    if (!is_profiled) continue;
    assert_ok(tutti_context_stop_profile(context, &report, &err));
    assert_contains(report, "predictions ");
    assert_contains(report, "\"layer\":\"dense\"");
  }
  tutti_predictor_unref(predictor), tutti_pipeline_unref(pipeline), tutti_dataset_unref(few);
  tutti_estimator_unref(estimator), tutti_dataset_unref(dataset), tutti_context_unref(context);
}

static void test_results_tell_where_the_time_went(void **state) {
  (void)state;
  tutti_context *context = make_context();
  for (int replicas = 1; replicas <= 2; replicas++) {
    tutti_dataset *dataset = NULL;
    tutti_result *result = NULL;
    tutti_estimator *estimator = make_estimator(context, replicas, &dataset);
    train_steps(estimator, dataset, "{\"steps\": 20}", &result);
    const char *report = tutti_result_get_step_report(result);
    assert_contains(report, "\"steps\":19");
    assert_contains(report, "\"compute\":0.");
    assert_contains(report, replicas == 1 ? "\"replicas\":1" : "\"replicas\":2");
    assert_true((strstr(report, "\"efficiency\":0.") != NULL) == (replicas == 2));
    char second[80];
    snprintf(second, sizeof second, "},{\"device\":\"%s\",\"utilisation\":", tutti_context_get_device_name(context, 1));
    assert_contains(report, "\"devices\":[{\"device\":\"");
    assert_contains(report, "\"idle\":");
    assert_true((strstr(report, second) != NULL) == (replicas == 2));
    tutti_result_unref(result);
    assert_ok(tutti_estimator_evaluate(estimator, dataset, 1, NULL, &result, &err));
    assert_string_equal(tutti_result_get_step_report(result), "");
    tutti_result_unref(result);
    tutti_estimator_unref(estimator), tutti_dataset_unref(dataset);
  }
  tutti_context_unref(context);
  assert_null(tutti_result_get_step_report(NULL));
}

int main(int argc, char **argv) {
  if (argc < 2) return 2;
  backend = argv[1];
  if (is_missing(backend)) return TEST_IS_SKIPPED;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_profile_reports_devices_steps_and_layers),
      cmocka_unit_test(test_a_directory_gets_a_profile_for_tensorboard),
      cmocka_unit_test(test_a_profile_of_evaluation_and_predictions),
      cmocka_unit_test(test_results_tell_where_the_time_went),
  };
  return cmocka_run_group_tests(tests, remember_live_objects, assert_nothing_left);
}
