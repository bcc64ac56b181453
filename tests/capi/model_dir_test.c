/* SPDX-License-Identifier: Apache-2.0
 * Checkpoints of an estimator through the C interface: resumed, announced and limited. */
#include <sys/stat.h>

#include "estimator_fixtures.h"

static void test_goes_on_from_the_model_dir(void **state) {
  (void)state;
  char directory[64], run[160];
  make_directory(directory);
  snprintf(run, sizeof run, "{\"seed\": 5, \"model_dir\": \"%s\", \"determinism\": \"repeatable\"}", directory);
  tutti_dataset *dataset = toy_dataset(64, 16, 1);
  tutti_estimator *estimator = toy_estimator("{\"seed\": 5, \"determinism\": \"repeatable\"}");
  struct outcome whole = train(estimator, dataset, "{\"epochs\": 3}");
  tutti_tensor *expected = NULL, *got = NULL;
  assert_ok(tutti_estimator_read_variable(estimator, "dense/kernel", &expected, &err));
  tutti_estimator_unref(estimator);

  estimator =
      toy_estimator(run); /* the same in three pieces by three estimators, the second in the middle of an epoch */
  assert_int_equal(train(estimator, dataset, "{\"steps\": 3}").step, 3);
  tutti_estimator_unref(estimator);
  estimator = toy_estimator(run);
  assert_int_equal(tutti_estimator_get_global_step(estimator), 3);
  assert_int_equal(train(estimator, dataset, NULL).step, 4);
  assert_int_equal(train(estimator, dataset, NULL).step, 8);
  tutti_estimator_unref(estimator);
  estimator = toy_estimator(run);
  struct outcome pieces = train(estimator, dataset, "{\"max_steps\": 12}");
  assert_int_equal(pieces.step, whole.step);
  assert_true(pieces.loss == whole.loss);
  assert_ok(tutti_estimator_read_variable(estimator, "dense/kernel", &got, &err));
  assert_int_equal(tutti_tensor_get_size_bytes(got), 4 * 16 * 4);
  assert_memory_equal(tutti_tensor_get_data(got), tutti_tensor_get_data(expected), 4 * 16 * 4);
  tutti_tensor_unref(got), tutti_tensor_unref(expected);
  tutti_estimator_unref(estimator);
  tutti_dataset_unref(dataset);
  remove_directory(directory);
}

/* Momentum, position in the shuffled data and step all come from a checkpoint that was asked for. */
static void test_goes_on_from_a_save(void **state) {
  (void)state;
  char directory[64], run[160];
  make_directory(directory);
  snprintf(run, sizeof run, "{\"seed\": 5, \"model_dir\": \"%s\", \"determinism\": \"repeatable\"}", directory);
  tutti_dataset *dataset = toy_dataset(64, 16, 1);
  tutti_estimator *estimator = toy_estimator("{\"seed\": 5, \"determinism\": \"repeatable\"}");
  assert_int_equal(train(estimator, dataset, "{\"steps\": 3}").step, 3);
  assert_ok(tutti_estimator_save(estimator, directory, NULL, &err));
  struct outcome whole = train(estimator, dataset, NULL);
  tutti_estimator_unref(estimator);
  estimator = toy_estimator(run);
  assert_int_equal(tutti_estimator_get_global_step(estimator), 3);
  struct outcome rest = train(estimator, dataset, NULL);
  assert_int_equal(rest.step, whole.step);
  assert_true(rest.loss == whole.loss);
  tutti_estimator_unref(estimator);
  tutti_dataset_unref(dataset);
  remove_directory(directory);
}

static void test_unwritable_model_dir(void **state) {
  (void)state;
  char directory[64], file[128], run[256];
  make_directory(directory);
  join_path(file, sizeof file, directory, "occupied"); /* a file where a directory is wanted: holds for root too */
  FILE *out = fopen(file, "w");
  assert_non_null(out);
  fclose(out);
  snprintf(run, sizeof run, "{\"model_dir\": \"%s/models\"}", file);
  tutti_dataset *dataset = toy_dataset(16, 8, 1);
  tutti_estimator *estimator = toy_estimator(run);
  tutti_error *error = NULL;
  assert_int_not_equal(tutti_estimator_train(estimator, dataset, NULL, NULL, NULL, NULL, &error), TUTTI_OK);
  assert_contains(tutti_error_get_text(error), "occupied/models");
  tutti_error_unref(error);
  tutti_estimator_unref(estimator);
  tutti_dataset_unref(dataset);
  remove_directory(directory);
}

static int32_t model_without_predictions(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  if (mode == TUTTI_MODE_PREDICT) return tutti_error_set(err, TUTTI_INVALID_ARGUMENT, "labels are needed");
  return line_model(g, mode, user, err);
}

/* Told before the first step and before anything is written, unless no prediction is wanted. */
static void test_a_model_that_cannot_predict(void **state) {
  (void)state;
  static const char *const more[] = {"", ", \"without_predictions\": true"};
  for (int without = 0; without <= 1; without++) {
    char directory[64], path[128], run[200];
    make_directory(directory);
    snprintf(run, sizeof run, "{\"model_dir\": \"%s\"%s}", directory, more[without]);
    struct line line = {0};
    tutti_dataset *dataset = line_dataset(3);
    tutti_options *options = make_options("run", run);
    tutti_estimator *estimator = NULL;
    assert_ok(tutti_estimator_create(NULL, model_without_predictions, &line, NULL, NULL, options, &estimator, &err));
    tutti_options_unref(options);
    tutti_predictor *predictor = NULL;
    struct stat status;
    join_path(path, sizeof path, directory, "checkpoint-1");
    if (without) {
      assert_int_equal(train(estimator, dataset, NULL).step, 1);
      assert_int_equal(stat(path, &status), 0);
      assert_error(TUTTI_FAILED_PRECONDITION, "contains no graph for predictions",
                   tutti_predictor_open(NULL, directory, NULL, NULL, &predictor, &err));
    } else {
      assert_error(TUTTI_INVALID_ARGUMENT, "labels are needed",
                   tutti_estimator_train(estimator, dataset, NULL, NULL, NULL, NULL, &err));
      assert_error(TUTTI_INVALID_ARGUMENT, "without_predictions",
                   tutti_estimator_train(estimator, dataset, NULL, NULL, NULL, NULL, &err));
      tutti_session *session = NULL;
      assert_error(TUTTI_INVALID_ARGUMENT, "without_predictions",
                   tutti_session_open(estimator, dataset, NULL, NULL, NULL, &session, &err));
      assert_error(TUTTI_INVALID_ARGUMENT, "without_predictions",
                   tutti_estimator_train_and_evaluate(estimator, dataset, dataset, 1, NULL, NULL, NULL, NULL, &err));
      assert_error(TUTTI_INVALID_ARGUMENT, "without_predictions",
                   tutti_estimator_initialize(estimator, dataset, NULL, NULL, &err));
      assert_int_not_equal(stat(path, &status), 0);
      /* Nor is it saved later, where nothing was to be written. */
      tutti_estimator_unref(estimator);
      assert_ok(tutti_estimator_create(NULL, model_without_predictions, &line, NULL, NULL, NULL, &estimator, &err));
      assert_int_equal(train(estimator, dataset, NULL).step, 1);
      assert_error(TUTTI_INVALID_ARGUMENT, "without_predictions",
                   tutti_estimator_save(estimator, directory, NULL, &err));
      assert_int_not_equal(stat(path, &status), 0);
    }
    tutti_estimator_unref(estimator);
    tutti_dataset_unref(dataset);
    remove_directory(directory);
  }
}

/* Steps, each a bit: those at which checkpoints must be announced, in order and once, and those that must be kept. */
static void train_with_checkpoints(const char *options, int64_t steps, unsigned announced, unsigned kept) {
  char directory[64], run[200], name[32], path[128];
  make_directory(directory);
  snprintf(run, sizeof run, "{\"model_dir\": \"%s\"%s}", directory, options);
  struct hook_record record = new_record();
  tutti_hooks *hooks = hooks_of(&record, 0);
  tutti_dataset *dataset = toy_dataset(8 * steps, 8, 1);
  tutti_estimator *estimator = toy_estimator(run);
  assert_ok(tutti_estimator_train(estimator, dataset, NULL, hooks, NULL, NULL, &err));
  unsigned seen = 0;
  for (int i = 0; i < record.count; i++) {
    assert_int_not_equal(record.kinds[i], TUTTI_EVENT_STEP);
    if (record.kinds[i] != TUTTI_EVENT_CHECKPOINT_SAVED) continue;
    assert_in_range(record.steps[i], 0, steps);
    assert_int_equal(seen >> record.steps[i], 0);
    seen |= 1u << record.steps[i];
  }
  assert_int_equal(seen, announced);
  for (int64_t step = 0; step <= steps; step++) {
    struct stat status;
    snprintf(name, sizeof name, "checkpoint-%d", (int)step);
    join_path(path, sizeof path, directory, name);
    assert_int_equal(stat(path, &status) == 0, kept >> step & 1);
  }
  tutti_hooks_unref(hooks);
  tutti_estimator_unref(estimator);
  tutti_dataset_unref(dataset);
  remove_directory(directory);
}

static void test_a28_checkpoints_are_announced_and_limited(void **state) {
  (void)state;
  /* The one of the start, those that the cadence asks for, and the one of the end, which may be one of these. */
  const unsigned every_2 = 1u << 0 | 1u << 2 | 1u << 4 | 1u << 6 | 1u << 8;
  train_with_checkpoints(", \"save_checkpoints_steps\": 2, \"keep_checkpoint_max\": 2", 8, every_2, 1u << 6 | 1u << 8);
  train_with_checkpoints(", \"save_checkpoints_steps\": 2, \"keep_checkpoint_max\": 1", 8, every_2, 1u << 8);
  train_with_checkpoints(", \"save_checkpoints_steps\": 2, \"keep_checkpoint_max\": 0", 8, every_2, every_2);
  const unsigned every_3 = 1u << 0 | 1u << 3 | 1u << 6 | 1u << 8;
  train_with_checkpoints(", \"save_checkpoints_steps\": 3", 8, every_3, every_3);
  const unsigned every_1 =
      (1u << 10) - 1; /* of the start and of 9 steps, of which 5 are kept unless something else is said */
  train_with_checkpoints(", \"save_checkpoints_steps\": 1", 9, every_1, 31u << 5);
  /* Seconds that do not pass meanwhile: those of the start and of the end. */
  train_with_checkpoints(", \"save_checkpoints_secs\": 3600", 8, 1u << 0 | 1u << 8, 1u << 0 | 1u << 8);
  train_with_checkpoints("", 8, 1u << 0 | 1u << 8, 1u << 0 | 1u << 8);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_goes_on_from_the_model_dir),
    cmocka_unit_test(test_goes_on_from_a_save),
    cmocka_unit_test(test_unwritable_model_dir),
    cmocka_unit_test(test_a_model_that_cannot_predict),
    cmocka_unit_test(test_a28_checkpoints_are_announced_and_limited),
};
CAPI_TEST_MAIN(tests)
