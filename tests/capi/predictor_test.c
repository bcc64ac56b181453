/* SPDX-License-Identifier: Apache-2.0
 * Predictors through the C interface: every row once and in order, from estimators and checkpoints, by many threads. */
#include <dirent.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "capi_testing.h"

/* Output "double" = w x with w = 2; trains nothing that matters. */
static int32_t double_model(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  (void)user;
  int64_t one = 1;
  tutti_value x = tutti_graph_get_feature(g, "x");
  tutti_value w = tutti_graph_variable(g, "w", TUTTI_DTYPE_F32, &one, 1, "constant", 2.0, 1);
  tutti_value y = tutti_mul(g, x, w);
  tutti_graph_set_output(g, "double", y);
  tutti_graph_set_output(g, "negative", tutti_neg(g, x));
  if (mode != TUTTI_MODE_PREDICT) {
    /* The gradient is 0 for the first rows and 1 when asked for: see train_one. */
    tutti_graph_set_loss(g, tutti_reduce_mean(g, tutti_mul(g, y, tutti_graph_get_label(g, "slope")), NULL));
    tutti_optimizer_sgd(g, tutti_schedule_constant(g, 1.0), NULL);
  }
  return tutti_graph_check(g, err);
}

/* One step on one row x = 1: w becomes w - slope. */
static void train_one(tutti_estimator *estimator, float slope) {
  float x = 1;
  tutti_tensor *xs = make_vector(TUTTI_DTYPE_F32, 1, &x), *ys = make_vector(TUTTI_DTYPE_F32, 1, &slope);
  tutti_pipeline *pipeline = NULL;
  tutti_dataset *dataset = NULL;
  assert_ok(tutti_pipeline_create(NULL, &pipeline, &err));
  tutti_pipeline_add_slices(pipeline, "x", TUTTI_ROLE_FEATURE, xs);
  tutti_pipeline_add_slices(pipeline, "slope", TUTTI_ROLE_LABEL, ys);
  tutti_pipeline_batch(pipeline, 1, NULL);
  assert_ok(tutti_pipeline_build(pipeline, &dataset, &err));
  assert_ok(tutti_estimator_train(estimator, dataset, NULL, NULL, NULL, NULL, &err));
  tutti_pipeline_unref(pipeline), tutti_dataset_unref(dataset), tutti_tensor_unref(xs), tutti_tensor_unref(ys);
}

static tutti_estimator *trained(const char *run) {
  tutti_options *options = run != NULL ? make_options("run", run) : NULL;
  tutti_estimator *estimator = NULL;
  assert_ok(tutti_estimator_create(NULL, double_model, NULL, NULL, NULL, options, &estimator, &err));
  tutti_options_unref(options);
  train_one(estimator, 0);
  return estimator;
}

static tutti_predictor *predictor_of(tutti_estimator *estimator) {
  tutti_predictor *predictor = NULL;
  assert_ok(tutti_predictor_from_estimator(estimator, NULL, &predictor, &err));
  return predictor;
}

static tutti_dataset *rows_in_batches(int64_t rows, int64_t batch) {
  tutti_dataset *source = counting_dataset(rows), *dataset = NULL;
  tutti_pipeline *pipeline = NULL;
  assert_ok(tutti_pipeline_create(NULL, &pipeline, &err));
  tutti_pipeline_add_dataset(pipeline, source);
  tutti_pipeline_batch(pipeline, batch, NULL);
  assert_ok(tutti_pipeline_build(pipeline, &dataset, &err));
  tutti_pipeline_unref(pipeline);
  tutti_dataset_unref(source);
  return dataset;
}

/* Whether a batch holds factor * first, factor * (first + 1), ... */
static int holds(const tutti_batch *batch, int64_t first, int64_t rows, float factor) {
  const tutti_tensor *tensor = tutti_batch_get_output(batch, "double");
  if (tutti_batch_get_row_count(batch) != rows || tutti_tensor_get_dim(tensor, 0) != rows) return 0;
  const float *values = tutti_tensor_get_data(tensor);
  for (int64_t i = 0; i < rows; i++)
    if (values[i] != factor * (float)(first + i)) return 0;
  return 1;
}

static int32_t run_rows(tutti_predictor *predictor, int64_t rows, tutti_batch **batch, tutti_error **err) {
  float *values = malloc((size_t)rows * sizeof *values + 1);
  for (int64_t i = 0; i < rows; i++)
    values[i] = (float)i;
  tutti_tensor *tensor = NULL;
  int32_t code = tutti_tensor_from_data(TUTTI_DTYPE_F32, &rows, 1, values, rows * 4, &tensor, err);
  free(values);
  const char *name = "x";
  if (code == TUTTI_OK) code = tutti_predictor_run(predictor, &name, &tensor, 1, NULL, batch, err);
  tutti_tensor_unref(tensor);
  return code;
}

/* --- forms -------------------------------------------------------------------------------------------------------- */

static void test_run(void **state) {
  (void)state;
  tutti_estimator *estimator = trained(NULL);
  tutti_predictor *predictor = predictor_of(estimator);
  tutti_estimator_unref(estimator); /* the predictor needs no estimator */
  assert_int_equal(tutti_predictor_get_step(predictor), 1);
  assert_contains(tutti_predictor_get_signature(predictor), "\"x\"");
  assert_contains(tutti_predictor_get_signature(predictor),
                  "{\"name\":\"double\",\"dtype\":\"f32\",\"dims\":[\"batch\"");
  assert_null(strstr(tutti_predictor_get_signature(predictor), "slope")); /* labels are not asked for */
  static const int64_t rows[] = {1, 2, 7, 64, 0, 65};
  for (int i = 0; i < 6; i++) {
    tutti_batch *batch = NULL;
    assert_ok(run_rows(predictor, rows[i], &batch, &err));
    assert_true(holds(batch, 0, rows[i], 2));
    assert_int_equal(tutti_batch_get_first_row(batch), 0);
    assert_int_equal(tutti_batch_get_output_count(batch), 2);
    assert_string_equal(tutti_batch_get_output_name(batch, 0), "double");
    assert_string_equal(tutti_batch_get_output_name(batch, 1), "negative");
    assert_null(tutti_batch_get_output_name(batch, 2));
    assert_null(tutti_batch_get_output(batch, "no_such"));
    assert_null(tutti_batch_get_output(batch, NULL));
    tutti_batch_unref(batch);
  }
  tutti_predictor_unref(predictor);
}

static void test_plan(void **state) {
  (void)state;
  tutti_estimator *estimator = trained(NULL);
  tutti_predictor *predictor = predictor_of(estimator);
  tutti_estimator_unref(estimator);
  const char *plan = NULL;
  assert_ok(tutti_predictor_describe_plan(predictor, 5, 0, NULL, &plan, &err));
  static const char *const parts[] = {"{\"step\":1,\"rows\":5,\"device\":\"cpu:0\"",
                                      "\"workspace_bytes\":", "\"kernels\":[{\"node\":", "\"layout\":\"row-major\"",
                                      "\"bytes\":"};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
    assert_contains(plan, parts[i]);
  assert_null(strstr(plan, "seconds"));
  assert_ok(tutti_predictor_describe_plan(predictor, 5, 2, NULL, &plan, &err));
  assert_contains(plan, "\"seconds\":");
  assert_error(TUTTI_INVALID_ARGUMENT, "1 row or more, got 0",
               tutti_predictor_describe_plan(predictor, 0, 0, NULL, &plan, &err));
  assert_null(plan);
  assert_error(TUTTI_INVALID_ARGUMENT, "0 timed runs or more, got -1",
               tutti_predictor_describe_plan(predictor, 1, -1, NULL, &plan, &err));
  assert_error(TUTTI_INVALID_ARGUMENT, "'out' is NULL",
               tutti_predictor_describe_plan(predictor, 1, 0, NULL, NULL, &err));
  /* It leaves the predictor as it was. */
  tutti_batch *batch = NULL;
  assert_ok(run_rows(predictor, 5, &batch, &err));
  assert_true(holds(batch, 0, 5, 2));
  tutti_batch_unref(batch);
  tutti_predictor_unref(predictor);
}

static void test_outputs_live_as_long_as_they_are_held(void **state) {
  (void)state;
  tutti_estimator *estimator = trained(NULL);
  tutti_predictor *predictor = predictor_of(estimator);
  tutti_batch *batch = NULL;
  DLManagedTensorVersioned *managed = NULL;
  assert_ok(run_rows(predictor, 3, &batch, &err));
  tutti_tensor *output = tutti_batch_get_output(batch, "double");
  tutti_tensor_ref(output);
  assert_ok(tutti_tensor_to_dlpack(output, &managed, &err));
  tutti_batch_unref(batch);
  tutti_predictor_unref(predictor);
  tutti_estimator_unref(estimator);
  assert_true(((const float *)tutti_tensor_get_data(output))[2] == 4);
  tutti_tensor_unref(output);
  assert_true(((const float *)managed->dl_tensor.data)[1] == 2);
  managed->deleter(managed);
}

static void test_run_mistakes(void **state) {
  (void)state;
  tutti_estimator *estimator = trained(NULL);
  tutti_predictor *predictor = predictor_of(estimator);
  tutti_batch *batch = NULL;
  int64_t dims[] = {2, 2};
  float four[] = {1, 2, 3, 4};
  int32_t ints[] = {1, 2};
  tutti_tensor *good = make_vector(TUTTI_DTYPE_F32, 2, four), *matrix = make_tensor(TUTTI_DTYPE_F32, 2, dims, four),
               *integers = make_vector(TUTTI_DTYPE_I32, 2, ints);
  const char *x = "x", *y = "xx", *none = NULL, *twice[] = {"x", "x"};
  tutti_tensor *both[] = {good, good}, *nothing = NULL;
  assert_error(TUTTI_INVALID_ARGUMENT, "no feature 'xx'",
               tutti_predictor_run(predictor, &y, &good, 1, NULL, &batch, &err));
  assert_error(TUTTI_INVALID_ARGUMENT, "feature 'x' is missing",
               tutti_predictor_run(predictor, NULL, NULL, 0, NULL, &batch, &err));
  assert_error(TUTTI_INVALID_ARGUMENT, "given twice",
               tutti_predictor_run(predictor, twice, both, 2, NULL, &batch, &err));
  assert_error(TUTTI_INVALID_ARGUMENT, "expected f32 [batch]",
               tutti_predictor_run(predictor, &x, &matrix, 1, NULL, &batch, &err));
  assert_error(TUTTI_INVALID_ARGUMENT, "expected f32 [batch]",
               tutti_predictor_run(predictor, &x, &integers, 1, NULL, &batch, &err));
  assert_error(TUTTI_INVALID_ARGUMENT, "names[0]", tutti_predictor_run(predictor, &none, &good, 1, NULL, &batch, &err));
  assert_error(TUTTI_INVALID_ARGUMENT, "feature 'x'",
               tutti_predictor_run(predictor, &x, &nothing, 1, NULL, &batch, &err));
  assert_error(TUTTI_INVALID_ARGUMENT, "inputs[0]",
               tutti_predictor_run(predictor, &x, &nothing, 1, NULL, &batch, &err));
  assert_error(TUTTI_INVALID_ARGUMENT, "'names' is NULL",
               tutti_predictor_run(predictor, NULL, &good, 1, NULL, &batch, &err));
  assert_error(TUTTI_INVALID_ARGUMENT, "'count'", tutti_predictor_run(predictor, &x, &good, -1, NULL, &batch, &err));
  assert_error(TUTTI_INVALID_ARGUMENT, "'out' is NULL", tutti_predictor_run(predictor, &x, &good, 1, NULL, NULL, &err));
  assert_null(batch);
  tutti_tensor_unref(good), tutti_tensor_unref(matrix), tutti_tensor_unref(integers);
  tutti_predictor_unref(predictor);
  tutti_estimator_unref(estimator);
}

static void test_stream(void **state) {
  (void)state;
  tutti_estimator *estimator = trained(NULL);
  tutti_predictor *predictor = predictor_of(estimator);
  static const struct { int64_t rows, batch; } cases[] = {{20, 5}, {22, 5}, {3, 5}, {1, 1}, {0, 4}};
  for (int i = 0; i < 5; i++) {
    tutti_dataset *dataset = rows_in_batches(cases[i].rows, cases[i].batch);
    tutti_prediction_stream *stream = NULL;
    assert_ok(tutti_prediction_stream_open(predictor, dataset, &stream, &err));
    tutti_dataset_unref(dataset);
    int64_t row = 0;
    for (;;) {
      tutti_batch *batch = NULL;
      assert_ok(tutti_prediction_stream_next(stream, NULL, &batch, &err));
      if (batch == NULL) break;
      int64_t rows = cases[i].rows - row < cases[i].batch ? cases[i].rows - row : cases[i].batch;
      assert_int_equal(tutti_batch_get_first_row(batch), row);
      assert_true(holds(batch, row, rows, 2));
      row += rows;
      tutti_batch_unref(batch);
    }
    assert_int_equal(row, cases[i].rows);
    tutti_prediction_stream_unref(stream);

    tutti_batch *all = NULL;
    dataset = rows_in_batches(cases[i].rows, cases[i].batch);
    assert_ok(tutti_predictor_run_all(predictor, dataset, NULL, &all, &err));
    assert_true(holds(all, 0, cases[i].rows, 2));
    tutti_batch_unref(all);
    tutti_dataset_unref(dataset);
  }
  tutti_predictor_unref(predictor);
  tutti_estimator_unref(estimator);
}

static void test_stream_closed_early(void **state) {
  (void)state;
  tutti_estimator *estimator = trained(NULL);
  tutti_predictor *predictor = predictor_of(estimator);
  for (int way = 0; way < 3; way++) {
    tutti_dataset *dataset = rows_in_batches(1000, 2);
    tutti_prediction_stream *stream = NULL;
    tutti_batch *batch = NULL, *kept = NULL;
    assert_ok(tutti_prediction_stream_open(predictor, dataset, &stream, &err));
    assert_ok(tutti_prediction_stream_next(stream, NULL, &kept, &err));
    if (way == 0) {
      assert_ok(tutti_prediction_stream_close(stream, NULL, &err));
      assert_error(TUTTI_FAILED_PRECONDITION, "closed", tutti_prediction_stream_next(stream, NULL, &batch, &err));
      assert_ok(tutti_prediction_stream_close(stream, NULL, &err)); /* legal at any time */
    } else if (way == 1) {
      tutti_cancel *cancel = NULL;
      assert_ok(tutti_cancel_create(&cancel, &err));
      assert_ok(tutti_cancel_request(cancel, TUTTI_CANCEL_CANCEL, &err));
      assert_error(TUTTI_CANCELLED, "", tutti_prediction_stream_next(stream, cancel, &batch, &err));
      tutti_cancel_unref(cancel);
    }
    tutti_prediction_stream_unref(stream);
    assert_true(holds(kept, 0, 2, 2));
    tutti_batch_unref(kept);
    tutti_dataset_unref(dataset);
  }
  tutti_predictor_unref(predictor);
  tutti_estimator_unref(estimator);
}

static void test_dataset_mistakes(void **state) {
  (void)state;
  tutti_estimator *estimator = trained(NULL);
  tutti_predictor *predictor = predictor_of(estimator);
  tutti_dataset *rows = counting_dataset(4), *toy = toy_dataset(8, 4, 1), *endless = toy_dataset(8, 4, 0);
  tutti_batch *batch = NULL;
  tutti_prediction_stream *stream = NULL;
  assert_error(TUTTI_INVALID_ARGUMENT, "single examples", tutti_predictor_run_all(predictor, rows, NULL, &batch, &err));
  assert_error(TUTTI_INVALID_ARGUMENT, "single examples", tutti_prediction_stream_open(predictor, rows, &stream, &err));
  assert_error(TUTTI_INVALID_ARGUMENT, "never ends", tutti_predictor_run_all(predictor, endless, NULL, &batch, &err));
  assert_int_not_equal(tutti_predictor_run_all(predictor, toy, NULL, &batch, NULL), TUTTI_OK); /* x of another shape */
  assert_null(batch);
  assert_null(stream);
  tutti_dataset_unref(rows), tutti_dataset_unref(toy), tutti_dataset_unref(endless);
  tutti_predictor_unref(predictor);
  tutti_estimator_unref(estimator);
}

/* --- many callers ------------------------------------------------------------------------------------------------- */

enum { CALLERS = 4, CALLS = 30 };

struct caller {
  tutti_predictor *predictor;
  int64_t rows;
  int failures, mixed;
};

static void *call_often(void *user) {
  struct caller *caller = user;
  for (int i = 0; i < CALLS; i++) {
    tutti_batch *batch = NULL;
    if (run_rows(caller->predictor, caller->rows, &batch, NULL) != TUTTI_OK) {
      caller->failures++;
    } else if (!holds(batch, 0, caller->rows, 2) && !holds(batch, 0, caller->rows, 1)) {
      caller->mixed++; /* rows lost, or from two versions of the weights */
    }
    tutti_batch_unref(batch);
  }
  return NULL;
}

static void test_concurrent_callers_while_reloading(void **state) {
  (void)state;
  char directory[64], run[160], first[128], second[128];
  make_directory(directory);
  snprintf(run, sizeof run, "{\"model_dir\": \"%s\", \"keep_checkpoint_max\": 0}", directory);
  tutti_estimator *estimator = trained(run);
  train_one(estimator, 1); /* w = 1 at step 2 */
  join_path(first, sizeof first, directory, "checkpoint-1");
  join_path(second, sizeof second, directory, "checkpoint-2");
  tutti_predictor *predictor = NULL;
  assert_ok(tutti_predictor_open(NULL, first, NULL, NULL, &predictor, &err));
  struct caller callers[CALLERS];
  pthread_t threads[CALLERS];
  for (int i = 0; i < CALLERS; i++) {
    callers[i] = (struct caller){predictor, 1 + 3 * i, 0, 0};
    assert_int_equal(pthread_create(&threads[i], NULL, call_often, &callers[i]), 0);
  }
  int32_t code = TUTTI_OK;
  for (int i = 0; i < 10 && code == TUTTI_OK; i++)
    code = tutti_predictor_reload(predictor, i % 2 == 0 ? second : first, NULL, NULL);
  for (int i = 0; i < CALLERS; i++)
    assert_int_equal(pthread_join(threads[i], NULL), 0);
  assert_int_equal(code, TUTTI_OK);
  for (int i = 0; i < CALLERS; i++) {
    assert_int_equal(callers[i].failures, 0);
    assert_int_equal(callers[i].mixed, 0);
  }
  tutti_predictor_unref(predictor);
  tutti_estimator_unref(estimator);
  remove_directory(directory);
}

/* --- checkpoints -------------------------------------------------------------------------------------------------- */

static void test_from_a_checkpoint(void **state) {
  (void)state;
  char directory[64], path[128];
  make_directory(directory);
  tutti_estimator *estimator = trained(NULL);
  train_one(estimator, -1); /* w = 3 */
  assert_ok(tutti_estimator_save(estimator, directory, NULL, &err));
  tutti_estimator_unref(estimator);
  join_path(path, sizeof path, directory, "checkpoint-2");
  const char *const places[] = {directory, path};
  for (int i = 0; i < 2; i++) {
    tutti_predictor *predictor = NULL;
    tutti_batch *batch = NULL;
    assert_ok(tutti_predictor_open(NULL, places[i], NULL, NULL, &predictor, &err)); /* no model function */
    assert_int_equal(tutti_predictor_get_step(predictor), 2);
    assert_contains(tutti_predictor_get_signature(predictor), "\"x\"");
    assert_ok(run_rows(predictor, 9, &batch, &err));
    assert_true(holds(batch, 0, 9, 3));
    tutti_batch_unref(batch);
    tutti_predictor_unref(predictor);
  }
  remove_directory(directory);
}

/* Nobody ever opens the other end: an error at once instead of waiting for it. */
static void test_pipes_in_a_checkpoint(void **state) {
  (void)state;
  char directory[64], checkpoint[128];
  make_directory(directory);
  tutti_estimator *estimator = trained(NULL);
  assert_ok(tutti_estimator_save(estimator, directory, NULL, &err));
  tutti_estimator_unref(estimator);
  join_path(checkpoint, sizeof checkpoint, directory, "checkpoint-1");
  DIR *files = opendir(checkpoint);
  assert_non_null(files);
  int count = 0;
  for (struct dirent *entry = readdir(files); entry != NULL; entry = readdir(files)) {
    if (entry->d_name[0] == '.') continue;
    char path[400], kept[400];
    tutti_predictor *predictor = NULL;
    join_path(path, sizeof path, checkpoint, entry->d_name);
    join_path(kept, sizeof kept, directory, "kept");
    assert_int_equal(rename(path, kept), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    tutti_error *error = NULL;
    const int32_t code = tutti_predictor_open(NULL, checkpoint, NULL, NULL, &predictor, &error);
    if (code != TUTTI_DATA_LOSS) print_error("%s: %d %s\n", entry->d_name, code, tutti_error_get_text(error));
    assert_int_equal(code, TUTTI_DATA_LOSS);
    assert_contains(tutti_error_get_text(error), path);
    tutti_error_unref(error);
    assert_int_equal(rename(kept, path), 0);
    count++;
  }
  closedir(files);
  assert_true(count >= 3);
  tutti_predictor *predictor = NULL;
  assert_ok(tutti_predictor_open(NULL, checkpoint, NULL, NULL, &predictor, &err)); /* all files are back */
  tutti_predictor_unref(predictor);
  remove_directory(directory);
}

static void test_reload(void **state) {
  (void)state;
  char directory[64];
  make_directory(directory);
  tutti_estimator *estimator = trained(NULL);
  tutti_predictor *live = predictor_of(estimator), *stored = NULL;
  assert_ok(tutti_estimator_save(estimator, directory, NULL, &err));
  assert_ok(tutti_predictor_open(NULL, directory, NULL, NULL, &stored, &err));
  train_one(estimator, 1); /* w = 1 */
  tutti_batch *batch = NULL;
  assert_ok(run_rows(live, 4, &batch, &err));
  assert_true(holds(batch, 0, 4, 2)); /* the weights never change under a predictor */
  tutti_batch_unref(batch);
  assert_ok(tutti_predictor_reload(live, NULL, NULL, &err)); /* NULL: the newest of where it came from */
  assert_int_equal(tutti_predictor_get_step(live), 2);
  assert_ok(run_rows(live, 4, &batch, &err));
  assert_true(holds(batch, 0, 4, 1));
  tutti_batch_unref(batch);
  assert_ok(tutti_estimator_save(estimator, directory, NULL, &err));
  assert_int_equal(tutti_predictor_get_step(stored), 1);
  assert_ok(tutti_predictor_reload(stored, NULL, NULL, &err));
  assert_int_equal(tutti_predictor_get_step(stored), 2);
  train_one(estimator, 1);
  assert_ok(tutti_predictor_reload(live, "", NULL, &err)); /* as NULL, for languages without */
  assert_int_equal(tutti_predictor_get_step(live), 3);
  assert_int_not_equal(tutti_predictor_reload(stored, "/no/such/checkpoint", NULL, NULL), TUTTI_OK);
  assert_int_equal(tutti_predictor_get_step(stored), 2); /* a failed reload changes nothing */
  assert_ok(run_rows(stored, 4, &batch, &err));
  assert_true(holds(batch, 0, 4, 1));
  tutti_batch_unref(batch);
  tutti_predictor_unref(live), tutti_predictor_unref(stored);
  tutti_estimator_unref(estimator);
  remove_directory(directory);
}

static void test_no_checkpoint(void **state) {
  (void)state;
  char directory[64];
  make_directory(directory);
  tutti_predictor *predictor = (tutti_predictor *)(uintptr_t)1;
  tutti_error *error = NULL;
  assert_int_equal(tutti_predictor_open(NULL, directory, NULL, NULL, &predictor, &error), TUTTI_NOT_FOUND);
  assert_contains(tutti_error_get_text(error), directory);
  tutti_error_unref(error);
  assert_null(predictor);
  assert_int_equal(tutti_predictor_open(NULL, "/no/such/place", NULL, NULL, &predictor, NULL), TUTTI_NOT_FOUND);
  assert_error(TUTTI_INVALID_ARGUMENT, "'path' is NULL",
               tutti_predictor_open(NULL, NULL, NULL, NULL, &predictor, &err));
  remove_directory(directory);
}

static void test_sharded_over_devices(void **state) {
  (void)state;
  char directory[64];
  make_directory(directory);
  tutti_estimator *estimator = trained(NULL);
  assert_ok(tutti_estimator_save(estimator, directory, NULL, &err));
  tutti_estimator_unref(estimator);
  for (int devices = 1; devices <= 3; devices++) {
    char json[64];
    snprintf(json, sizeof json, "{\"logical_devices\": %d}", devices);
    tutti_options *options = make_options("context", json);
    tutti_context *context = NULL;
    tutti_predictor *predictor = NULL;
    assert_ok(tutti_context_create(options, &context, &err));
    assert_ok(tutti_predictor_open(context, directory, NULL, NULL, &predictor, &err)); /* all devices */
    for (int64_t rows = 0; rows <= 7; rows++) {
      tutti_batch *batch = NULL;
      assert_ok(run_rows(predictor, rows, &batch, &err));
      assert_true(holds(batch, 0, rows, 2));
      tutti_batch_unref(batch);
    }
    tutti_predictor_unref(predictor);
    tutti_context_unref(context);
    tutti_options_unref(options);
  }
  remove_directory(directory);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_run),
    cmocka_unit_test(test_plan),
    cmocka_unit_test(test_outputs_live_as_long_as_they_are_held),
    cmocka_unit_test(test_run_mistakes),
    cmocka_unit_test(test_stream),
    cmocka_unit_test(test_stream_closed_early),
    cmocka_unit_test(test_dataset_mistakes),
    cmocka_unit_test(test_concurrent_callers_while_reloading),
    cmocka_unit_test(test_from_a_checkpoint),
    cmocka_unit_test(test_pipes_in_a_checkpoint),
    cmocka_unit_test(test_reload),
    cmocka_unit_test(test_no_checkpoint),
    cmocka_unit_test(test_sharded_over_devices),
};
CAPI_TEST_MAIN(tests)
