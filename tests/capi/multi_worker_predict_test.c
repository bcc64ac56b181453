/* SPDX-License-Identifier: Apache-2.0
 * Prediction on several processes: merged, rows and order are those of one process, for any number of workers and any
 * batches; and what happens when one leaves early, dies, hangs, or predicts something else. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "estimator_fixtures.h"
#include "worker_fixtures.h"

enum { MOST_ROWS = 64, MOST_BATCHES = 64 };

/* ---- a worker: its scenario is NAME,ROWS,BATCH ---- */

struct scenario {
  char name[24];
  int rows, batch;
};

struct predicted {
  int32_t code;
  int64_t rows, batches, step;
  int64_t first_row[MOST_BATCHES], row_count[MOST_BATCHES];
  int64_t position[MOST_ROWS]; /* as the batches say */
  int64_t classes[MOST_ROWS];
  float logits[MOST_ROWS][2];
  double seconds;
  char error[500];
};

static struct scenario read_scenario(const char *text) {
  struct scenario scenario = {"", 0, 1};
  assert_int_equal(sscanf(text, "%23[^,],%d,%d", scenario.name, &scenario.rows, &scenario.batch), 3);
  return scenario;
}

static int is(const struct scenario *scenario, const char *name) { return strcmp(scenario->name, name) == 0; }

static void keep(struct predicted *predicted, tutti_batch *batch) {
  const int64_t first = tutti_batch_get_first_row(batch), rows = tutti_batch_get_row_count(batch);
  const tutti_tensor *const labels = tutti_batch_get_output(batch, "class");
  const int64_t *classes = tutti_tensor_get_data(labels);
  const float *logits = tutti_tensor_get_data(tutti_batch_get_output(batch, "logits"));
  assert_int_equal(tutti_tensor_get_dtype(labels), TUTTI_DTYPE_I64);
  predicted->first_row[predicted->batches] = first;
  predicted->row_count[predicted->batches++] = rows;
  for (int64_t i = 0; i < rows && predicted->rows < MOST_ROWS; i++, predicted->rows++) {
    predicted->position[predicted->rows] = first + i;
    predicted->classes[predicted->rows] = classes[i];
    memcpy(predicted->logits[predicted->rows], logits + 2 * i, sizeof predicted->logits[0]);
  }
}

/* In the pipeline of worker 1: what its scenario says happens at row 20. */
struct watch {
  struct scenario scenario;
  int rows;
};

static int32_t at_row(void *user, tutti_tensor *const *inputs, tutti_tensor **outputs, int64_t count,
                      tutti_error **err) {
  struct watch *watch = user;
  for (int64_t i = 0; i < count; i++) {
    tutti_tensor_ref(inputs[i]);
    outputs[i] = inputs[i];
  }
  if (worker_tested() != 1 || ++watch->rows != 20) return TUTTI_OK;
  if (is(&watch->scenario, "kill")) raise(SIGKILL);
  if (is(&watch->scenario, "hang")) sleep(8);
  if (!is(&watch->scenario, "data_error")) return TUTTI_OK;
  for (int64_t i = 0; i < count; i++)
    tutti_tensor_unref(outputs[i]);
  return tutti_error_set(err, TUTTI_DATA_LOSS, "row 20 cannot be read");
}

static tutti_dataset *rows_of(tutti_context *context, const struct scenario *scenario, tutti_strategy *strategy,
                              struct watch *watch) {
  const int64_t rows = scenario->rows - (is(scenario, "other_data") && worker_tested() == 1 ? 1 : 0);
  tutti_pipeline *pipeline = toy_rows(context, rows);
  if (strategy != NULL)
    tutti_pipeline_shard(pipeline, tutti_strategy_get_input_pipeline_count(strategy),
                         tutti_strategy_get_input_pipeline_id(strategy));
  if (watch != NULL) tutti_pipeline_map(pipeline, at_row, watch, NULL, 1);
  tutti_pipeline_batch(pipeline, scenario->batch, NULL);
  tutti_dataset *dataset = NULL;
  assert_ok(tutti_pipeline_build(pipeline, &dataset, &err));
  tutti_pipeline_unref(pipeline);
  return dataset;
}

/* Reads the stream; worker 1 of "early" after its second batch no more. Now and then with too little time. */
static int32_t read_stream(tutti_predictor *predictor, const tutti_dataset *dataset, const struct scenario *scenario,
                           struct predicted *predicted, tutti_error **err) {
  tutti_prediction_stream *stream = NULL;
  tutti_cancel *hasty = NULL;
  int32_t code = tutti_prediction_stream_open(predictor, dataset, &stream, err);
  for (int turn = 0; code == TUTTI_OK; turn++) {
    tutti_batch *batch = NULL;
    if (is(scenario, "early") && worker_tested() == 1 && turn == 2) break;
    if (is(scenario, "hasty")) {
      assert_ok(tutti_cancel_create(&hasty, &err));
      assert_ok(tutti_cancel_set_deadline(hasty, turn % 3, &err));
      code = tutti_prediction_stream_next(stream, hasty, &batch, NULL);
      tutti_cancel_unref(hasty);
      if (code == TUTTI_DEADLINE_EXCEEDED) {
        code = TUTTI_OK;
        continue;
      }
    } else {
      code = tutti_prediction_stream_next(stream, NULL, &batch, err);
    }
    if (code != TUTTI_OK || batch == NULL) break;
    keep(predicted, batch);
    tutti_batch_unref(batch);
  }
  tutti_prediction_stream_unref(stream);
  return code;
}

static int32_t predict_with(tutti_predictor *predictor, const tutti_dataset *dataset, const struct scenario *scenario,
                            struct predicted *predicted, tutti_error **err) {
  if (!is(scenario, "at_once") && !is(scenario, "shards"))
    return read_stream(predictor, dataset, scenario, predicted, err);
  tutti_batch *batch = NULL;
  const int32_t code = tutti_predictor_run_all(predictor, dataset, NULL, &batch, err);
  if (code == TUTTI_OK) keep(predicted, batch);
  tutti_batch_unref(batch);
  return code;
}

/* One row, as a server is asked: of this worker alone. */
static int32_t ask_alone(tutti_predictor *predictor, struct predicted *predicted, tutti_error **err) {
  float values[4];
  int32_t label;
  const int64_t dims[] = {1, 4};
  toy_row(worker_tested(), values, &label);
  tutti_tensor *x = make_tensor(TUTTI_DTYPE_F32, 2, dims, values);
  const char *name = "x";
  tutti_batch *batch = NULL;
  const int32_t code = tutti_predictor_run(predictor, &name, &x, 1, NULL, &batch, err);
  if (code == TUTTI_OK) keep(predicted, batch);
  tutti_batch_unref(batch);
  tutti_tensor_unref(x);
  return code;
}

static int32_t predict_on(tutti_strategy *strategy, const struct scenario *scenario, const char *model_dir,
                          struct predicted *predicted, tutti_error **err) {
  const int divides = is(scenario, "shards") || is(scenario, "own_shards"), watches = worker_tested() == 1;
  const int keeps_own = is(scenario, "own") || is(scenario, "own_shards");
  struct watch watch = {*scenario, 0};
  char path[300], json[160];
  snprintf(path, sizeof path, "%s%s", model_dir, is(scenario, "other_weights") && watches ? "-other" : "");
  snprintf(json, sizeof json, "{\"worker_rows\": \"%s\", \"collective_timeout_ms\": %d}", keeps_own ? "own" : "all",
           is(scenario, "hang") ? 3000 : 60000);
  tutti_context *context = tutti_strategy_get_context(strategy);
  tutti_dataset *dataset = rows_of(context, scenario, divides ? strategy : NULL, &watch);
  tutti_options *options = make_options("predictor", json);
  tutti_predictor *predictor = NULL;
  const time_t begin = time(NULL);
  int32_t code = tutti_predictor_open(context, path, strategy, options, &predictor, err);
  predicted->step = tutti_predictor_get_step(predictor);
  if (code == TUTTI_OK && is(scenario, "alone") && worker_tested() == 0)
    code = ask_alone(predictor, predicted, err);
  else if (code == TUTTI_OK && !is(scenario, "alone"))
    code = predict_with(predictor, dataset, scenario, predicted, err);
  predicted->seconds = difftime(time(NULL), begin);
  tutti_predictor_unref(predictor);
  tutti_options_unref(options);
  tutti_dataset_unref(dataset);
  return code;
}

static int worker_main(const char *text, const char *directory) {
  const struct scenario scenario = read_scenario(text);
  struct predicted predicted = {0};
  tutti_context *context = NULL;
  tutti_strategy *strategy = NULL;
  tutti_error *err = NULL;
  char model_dir[200];
  snprintf(model_dir, sizeof model_dir, "%s/model", directory);
  const int divides = is(&scenario, "shards") || is(&scenario, "own_shards");
  int32_t code = join_workers(divides ? "{\"worker_input\": \"own\"}" : "{}", &context, &strategy, &err);
  if (code == TUTTI_OK) code = predict_on(strategy, &scenario, model_dir, &predicted, &err);
  predicted.code = code;
  if (err != NULL) snprintf(predicted.error, sizeof predicted.error, "%s", tutti_error_get_text(err));
  tutti_error_unref(err);
  tutti_strategy_unref(strategy);
  tutti_context_unref(context);
  return leave_answer(directory, &predicted, sizeof predicted, code);
}

/* ---- the test ---- */

static struct predicted all[MOST_WORKERS], alone;

static void run(const char *name, int rows, int batch, const char *directory, int count, int devices, int *codes) {
  char text[60];
  snprintf(text, sizeof text, "%s,%d,%d", name, rows, batch);
  run_workers(text, directory, count, devices, codes, all, sizeof *all);
}

static void train_model(const char *directory, const char *name, int steps) {
  char json[300];
  snprintf(json, sizeof json, "{\"seed\": 5, \"model_dir\": \"%s/%s\"}", directory, name);
  tutti_estimator *estimator = toy_estimator(json);
  tutti_dataset *dataset = toy_dataset(61, 8, 0);
  snprintf(json, sizeof json, "{\"max_steps\": %d}", steps);
  train(estimator, dataset, json);
  tutti_dataset_unref(dataset);
  tutti_estimator_unref(estimator);
}

/* What one process on one device gives, into `alone`. */
static void predict_alone(const char *directory, int rows, int batch) {
  const struct scenario scenario = {"stream", rows, batch};
  char path[200];
  snprintf(path, sizeof path, "%s/model", directory);
  tutti_options *options = make_options("context", "{\"logical_devices\": 1, \"backend\": \"reference\"}");
  tutti_context *context = NULL;
  tutti_predictor *predictor = NULL;
  memset(&alone, 0, sizeof alone);
  assert_ok(tutti_context_create(options, &context, &err));
  assert_ok(tutti_predictor_open(context, path, NULL, NULL, &predictor, &err));
  tutti_dataset *dataset = rows_of(context, &scenario, NULL, NULL);
  assert_ok(predict_with(predictor, dataset, &scenario, &alone, &err));
  alone.step = tutti_predictor_get_step(predictor);
  tutti_dataset_unref(dataset);
  tutti_predictor_unref(predictor);
  tutti_context_unref(context);
  tutti_options_unref(options);
}

/* Other backends than the one process's round otherwise. */
static float tolerance = 1e-6f;

static void assert_row(const struct predicted *got, int64_t at, int64_t position) {
  assert_int_equal(got->classes[at], alone.classes[position]);
  for (int c = 0; c < 2; c++)
    assert_true(fabsf(got->logits[at][c] - alone.logits[position][c]) <= tolerance);
}

static void assert_all_rows(const struct predicted *got) {
  assert_string_equal(got->error, "");
  assert_int_equal(got->step, alone.step);
  assert_int_equal(got->rows, alone.rows);
  for (int64_t i = 0; i < alone.rows; i++) {
    assert_int_equal(got->position[i], i);
    assert_row(got, i, i);
  }
}

/* Whole and ragged batches, one row at a time, fewer batches and rows than workers, nothing at all. */
static const struct { int rows, batch; } sizes[] = {{61, 8}, {48, 8}, {7, 1}, {5, 8}, {1, 1}, {0, 4}};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

static void check_merged(const char *name, int keeps_batches) {
  char directory[64];
  make_directory(directory);
  train_model(directory, "model", 12);
  for (int s = 0; s < SIZES; s++) {
    predict_alone(directory, sizes[s].rows, sizes[s].batch);
    assert_int_equal(alone.rows, sizes[s].rows);
    for (int count = 2; count <= 3; count++) {
      int codes[MOST_WORKERS];
      run(name, sizes[s].rows, sizes[s].batch, directory, count, 1 + s % 2, codes);
      for (int w = 0; w < count; w++) {
        assert_all_rows(&all[w]);
        if (!keeps_batches) continue;
        assert_int_equal(all[w].batches, alone.batches);
        assert_memory_equal(all[w].row_count, alone.row_count, sizeof alone.row_count);
      }
    }
  }
  remove_directory(directory);
}

static void test_streams_give_every_worker_all_rows(void **state) {
  (void)state;
  check_merged("stream", 1);
}

static void test_everything_at_once(void **state) {
  (void)state;
  check_merged("at_once", 0);
}

static void test_shards_come_back_in_order(void **state) {
  (void)state;
  check_merged("shards", 0);
}

/* Each worker with devices of two backends. */
static void test_devices_of_several_backends(void **state) {
  (void)state;
  if (!tutti_has_feature("backend:cpu")) test_skip();
  use_backends("cpu,reference");
  tolerance = 1e-4f;
  check_merged("stream", 1);
  check_merged("shards", 0);
  use_backends(NULL);
  tolerance = 1e-6f;
}

static void test_interrupted_calls_lose_nothing(void **state) {
  (void)state;
  char directory[64];
  make_directory(directory);
  train_model(directory, "model", 12);
  predict_alone(directory, 61, 4);
  int codes[MOST_WORKERS];
  run("hasty", 61, 4, directory, 3, 2, codes);
  for (int w = 0; w < 3; w++)
    assert_all_rows(&all[w]);
  remove_directory(directory);
}

/* Each keeps what it computed; together it is everything, once. */
static void test_own_rows_tell_their_positions(void **state) {
  (void)state;
  char directory[64];
  make_directory(directory);
  train_model(directory, "model", 12);
  for (int s = 0; s < SIZES; s++) {
    predict_alone(directory, sizes[s].rows, sizes[s].batch);
    for (int divides = 0; divides <= 1; divides++) {
      int codes[MOST_WORKERS], seen[MOST_ROWS] = {0};
      run(divides ? "own_shards" : "own", sizes[s].rows, sizes[s].batch, directory, 3, 1, codes);
      for (int w = 0; w < 3; w++) {
        assert_string_equal(all[w].error, "");
        for (int64_t i = 0; i < all[w].rows; i++) {
          const int64_t position = divides ? all[w].position[i] * 3 + w : all[w].position[i];
          assert_in_range(position, 0, sizes[s].rows - 1);
          seen[position]++;
          assert_row(&all[w], i, position);
        }
      }
      for (int i = 0; i < sizes[s].rows; i++)
        assert_int_equal(seen[i], 1);
    }
  }
  remove_directory(directory);
}

static void test_a_request_is_answered_alone(void **state) {
  (void)state;
  char directory[64];
  make_directory(directory);
  train_model(directory, "model", 12);
  predict_alone(directory, 1, 1);
  int codes[MOST_WORKERS];
  run("alone", 1, 1, directory, 2, 1, codes);
  assert_all_rows(&all[0]);
  assert_string_equal(all[1].error, "");
  remove_directory(directory);
}

static void test_a_worker_in_trouble_is_named(void **state) {
  (void)state;
  const struct {
    const char *name, *expected[2];
  } cases[] = {{"kill", {"worker 1 (127.0.0.1:", "disconnected"}},
               {"hang", {"worker 0 waited 3000 ms for worker 1 (127.0.0.1:", "DEADLINE_EXCEEDED"}},
               {"data_error", {"worker 1 (127.0.0.1:", "row 20 cannot be read"}},
               {"early", {"worker 1 (127.0.0.1:", "has closed its predictions before their end"}}};
  char directory[64];
  make_directory(directory);
  train_model(directory, "model", 4);
  for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
    int codes[MOST_WORKERS];
    predict_alone(directory, 61, 2);
    run(cases[c].name, 61, 2, directory, 2, 2, codes);
    assert_int_equal(codes[0], 1);
    assert_contains(all[0].error, cases[c].expected[0]);
    assert_contains(all[0].error, cases[c].expected[1]);
    assert_true(all[0].seconds < 7);
    for (int64_t i = 0; i < all[0].rows; i++)
      assert_row(&all[0], i, i);
    if (strcmp(cases[c].name, "early") == 0) {
      assert_int_equal(codes[1], 0);
      assert_int_equal(all[1].rows, 4);
    }
  }
  remove_directory(directory);
}

static void test_what_differs_is_refused(void **state) {
  (void)state;
  const struct {
    const char *name, *expected;
  } cases[] = {{"other_weights", "worker 1 predicts with step 9, but worker 0 is at step 4"},
               {"other_data", "worker 1 has read 2 batches with 12 rows, but worker 0 has read 2 with 13"}};
  char directory[64];
  make_directory(directory);
  train_model(directory, "model", 4);
  train_model(directory, "model-other", 9);
  for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
    int codes[MOST_WORKERS];
    run(cases[c].name, 61, 8, directory, 2, 1, codes);
    for (int w = 0; w < 2; w++)
      assert_contains(all[w].error, cases[c].expected);
  }
  remove_directory(directory);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_streams_give_every_worker_all_rows), cmocka_unit_test(test_everything_at_once),
    cmocka_unit_test(test_shards_come_back_in_order),          cmocka_unit_test(test_interrupted_calls_lose_nothing),
    cmocka_unit_test(test_own_rows_tell_their_positions),      cmocka_unit_test(test_a_request_is_answered_alone),
    cmocka_unit_test(test_a_worker_in_trouble_is_named),       cmocka_unit_test(test_what_differs_is_refused),
    cmocka_unit_test(test_devices_of_several_backends),
};

int main(int count, char **arguments) {
  if (count == WORKER_ARGUMENTS) return worker_main(arguments[1], arguments[2]);
  return cmocka_run_group_tests(tests, remember_live_objects, assert_nothing_left);
}
