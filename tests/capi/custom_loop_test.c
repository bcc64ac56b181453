/* SPDX-License-Identifier: Apache-2.0
 * A loop of one's own: batches of any size, made by the program, are steps on any number of replicas; what these
 * compute comes back reduced (loss, metrics) and gathered (outputs), as worked out here.
 *
 * usage: custom_loop_test [PLUG-IN] */
#include <math.h>

#include "dense_fixtures.h"
#include "estimator_fixtures.h"

enum { MOST_ROWS = 24, CLASSES = DENSE_CLASSES };
static const int sizes[] = {1, 7, 5, 5, 2, MOST_ROWS, 3, 16, 1, 1, 13, 13};
enum { BATCHES = sizeof sizes / sizeof *sizes };

static const double rate = 0.5;
static const char *plugin;

/* Outputs "logits" and, where `user` says so, "centred": logits less their mean over all rows of the batch. */
static int32_t model(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  const int *is_centred = user;
  const struct dense_model dense = build_dense(g, mode);
  if (*is_centred) {
    const int64_t rows = 0;
    tutti_reduce_mean_attrs attrs = {.axes = &rows, .axes_count = 1};
    tutti_graph_set_output(g, "centred", tutti_sub(g, dense.logits, tutti_reduce_mean(g, dense.logits, &attrs)));
  }
  if (mode == TUTTI_MODE_PREDICT) return tutti_graph_check(g, err);
  tutti_metric_accuracy(g, "accuracy", dense.logits, tutti_graph_get_label(g, "y"), NULL);
  tutti_optimizer_sgd(g, tutti_graph_constant(g, TUTTI_DTYPE_F32, rate), NULL);
  return tutti_graph_check(g, err);
}

/* A step function that learns nothing: what it computes of a batch, and a number of its own. */
static int32_t model_without_weights(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  (void)user;
  tutti_value x = tutti_graph_get_feature(g, "x");
  tutti_value twice = tutti_add(g, x, x);
  tutti_graph_set_output(g, "twice", twice);
  if (mode == TUTTI_MODE_PREDICT) return tutti_graph_check(g, err);
  (void)tutti_graph_get_label(g, "y");
  tutti_graph_set_loss(g, tutti_reduce_mean(g, twice, NULL));
  tutti_optimizer_sgd(g, tutti_graph_constant(g, TUTTI_DTYPE_F32, 0), NULL);
  return tutti_graph_check(g, err);
}

/* An estimator with a session over a feed of batches. */
struct loop {
  tutti_context *context;
  tutti_estimator *estimator;
  tutti_feed *feed;
  tutti_session *session;
};

static tutti_feed *open_feed(tutti_context *context) {
  const int64_t features = DENSE_FEATURES;
  tutti_feed *feed = NULL;
  assert_ok(tutti_feed_create(context, 4, &feed, &err));
  assert_ok(tutti_feed_declare(feed, "x", TUTTI_ROLE_FEATURE, TUTTI_DTYPE_F32, &features, 1, &err));
  assert_ok(tutti_feed_declare(feed, "y", TUTTI_ROLE_LABEL, TUTTI_DTYPE_I32, NULL, 0, &err));
  assert_ok(tutti_feed_set_batch_size(feed, MOST_ROWS, &err));
  return feed;
}

static struct loop open_loop_of(tutti_model_fn function, int replicas, const char *run, int *is_centred) {
  struct loop loop = {0};
  char json[4200];
  if (plugin != NULL)
    snprintf(json, sizeof json, "{\"plugin\": \"%s\", \"logical_devices\": %d}", plugin, replicas);
  else
    snprintf(json, sizeof json, "{\"logical_devices\": %d}", replicas);
  tutti_options *context_options = make_options("context", json), *options = make_options("run", run);
  tutti_strategy *strategy = NULL;
  assert_ok(tutti_context_create(context_options, &loop.context, &err));
  assert_ok(tutti_strategy_create_mirrored(loop.context, NULL, 0, &strategy, &err));
  assert_ok(tutti_estimator_create(loop.context, function, is_centred, NULL, strategy, options, &loop.estimator, &err));
  tutti_options_unref(context_options), tutti_options_unref(options), tutti_strategy_unref(strategy);
  loop.feed = open_feed(loop.context);
  tutti_pipeline *pipeline = NULL;
  tutti_dataset *dataset = NULL;
  assert_ok(tutti_pipeline_create(loop.context, &pipeline, &err));
  tutti_pipeline_add_feed(pipeline, loop.feed);
  assert_ok(tutti_pipeline_build(pipeline, &dataset, &err));
  assert_ok(tutti_session_open(loop.estimator, dataset, NULL, NULL, NULL, &loop.session, &err));
  tutti_pipeline_unref(pipeline), tutti_dataset_unref(dataset);
  return loop;
}

static struct loop open_loop(int replicas, const char *run, int *is_centred) {
  return open_loop_of(model, replicas, run, is_centred);
}

static void close_loop(struct loop loop) {
  tutti_session_unref(loop.session), tutti_feed_unref(loop.feed);
  tutti_estimator_unref(loop.estimator), tutti_context_unref(loop.context);
}

/* Rows first, first + 1, ... of toy_row() as one batch. */
static int32_t push(tutti_feed *feed, int64_t first, int rows, tutti_error **err) {
  float values[MOST_ROWS + 1][DENSE_FEATURES];
  int32_t labels[MOST_ROWS + 1];
  for (int i = 0; i < rows; i++)
    toy_row(first + i, values[i], &labels[i]);
  const int64_t dims[] = {rows, DENSE_FEATURES};
  tutti_tensor *batch[] = {make_tensor(TUTTI_DTYPE_F32, 2, dims, values), make_vector(TUTTI_DTYPE_I32, rows, labels)};
  const int32_t code = tutti_feed_push(feed, batch, 2, NULL, err);
  tutti_tensor_unref(batch[0]), tutti_tensor_unref(batch[1]);
  return code;
}

/* What the layer gives for these rows. */
static void work_out(const float *parameters, int64_t first, int rows, float *logits, double *accuracy) {
  int right = 0;
  for (int i = 0; i < rows; i++) {
    float x[DENSE_FEATURES];
    int32_t label;
    toy_row(first + i, x, &label);
    for (int c = 0; c < CLASSES; c++) {
      double sum = (double)parameters[DENSE_KERNEL + c];
      for (int f = 0; f < DENSE_FEATURES; f++)
        sum += (double)x[f] * (double)parameters[f * CLASSES + c];
      logits[i * CLASSES + c] = (float)sum;
    }
    right += (logits[i * CLASSES + 1] > logits[i * CLASSES]) == label;
  }
  *accuracy = (double)right / rows;
}

static void assert_output(tutti_estimator *estimator, const char *name, const float *expected, int rows) {
  tutti_tensor *got = NULL;
  assert_ok(tutti_estimator_read_output(estimator, name, &got, &err));
  assert_int_equal(tutti_tensor_get_rank(got), 2);
  assert_int_equal(tutti_tensor_get_dim(got, 0), rows);
  assert_int_equal(tutti_tensor_get_dim(got, 1), CLASSES);
  check_near(tutti_tensor_get_data(got), expected, (int64_t)rows * CLASSES, 2e-5f, name);
  tutti_tensor_unref(got);
}

static void center(float *logits, int rows) {
  for (int c = 0; c < CLASSES; c++) {
    double mean = 0;
    for (int i = 0; i < rows; i++)
      mean += (double)logits[i * CLASSES + c] / rows;
    for (int i = 0; i < rows; i++)
      logits[i * CLASSES + c] -= (float)mean;
  }
}

/* A step on batches b, b + 1, ... of `sizes`, of the rows from `first` on, against what is worked out here. Gives how
 * many rows they have. */
static int check_step(struct loop loop, int64_t first, int b, int batches, int is_centred) {
  int rows = 0;
  for (int m = 0; m < batches; m++) {
    assert_ok(push(loop.feed, first + rows, sizes[b + m], &err));
    rows += sizes[b + m];
  }
  float before[DENSE_PARAMETERS], after[DENSE_PARAMETERS], logits[2 * MOST_ROWS * CLASSES];
  double gradient[DENSE_PARAMETERS], accuracy;
  read_dense(loop.estimator, before);
  const double loss = dense_gradient(before, first, rows, gradient);
  work_out(before, first, rows, logits, &accuracy);
  tutti_result *result = NULL;
  assert_ok(tutti_session_run(loop.session, 1, &result, &err));
  assert_int_equal(tutti_result_get_examples(result), rows);
  const struct outcome outcome = take(result);
  assert_int_equal(outcome.step, b / batches + 1);
  assert_true(fabs(outcome.loss - loss) < 2e-5);
  assert_true(fabs(outcome.accuracy - accuracy) < 1e-6);
  assert_output(loop.estimator, "logits", logits, rows);
  if (is_centred) center(logits, rows), assert_output(loop.estimator, "centred", logits, rows);
  for (int p = 0; p < DENSE_PARAMETERS; p++)
    before[p] -= (float)(rate * gradient[p]);
  read_dense(loop.estimator, after);
  check_near(after, before, DENSE_PARAMETERS, 2e-5f, "weights");
  return rows;
}

static void run_steps(int replicas, const char *run, int batches_of_step, int is_centred) {
  struct loop loop = open_loop(replicas, run, &is_centred);
  int64_t first = 0;
  for (int b = 0; b < BATCHES; b += batches_of_step)
    first += check_step(loop, first, b, batches_of_step, is_centred);
  assert_ok(tutti_feed_finish(loop.feed, &err));
  tutti_result *result = NULL;
  assert_ok(tutti_session_run(loop.session, 1, &result, &err));
  assert_int_equal(take(result).reason, TUTTI_REASON_END_OF_INPUT);
  assert_ok(tutti_session_close(loop.session, NULL, &err));
  close_loop(loop);
}

static void test_c8_every_batch_is_a_step(void **state) {
  (void)state;
  for (int replicas = 1; replicas <= 5; replicas++)
    run_steps(replicas, "{\"keep_outputs\": true}", 1, 1);
}

static void test_replicas_with_weights_of_their_own(void **state) {
  (void)state;
  run_steps(3, "{\"keep_outputs\": true, \"all_reduce\": \"host\"}", 1, 1);
  run_steps(2, "{\"keep_outputs\": true, \"keep_gradients\": true}", 1, 0);
}

static void test_several_batches_to_a_step(void **state) {
  (void)state;
  for (int replicas = 1; replicas <= 3; replicas++)
    run_steps(replicas, "{\"keep_outputs\": true, \"accumulation_steps\": 2}", 2, 0);
}

static void test_logical_replicas(void **state) {
  (void)state;
  for (int replicas = 1; replicas <= 3; replicas++)
    run_steps(replicas, "{\"keep_outputs\": true, \"determinism\": \"invariant\", \"logical_replicas\": 6}", 1, 0);
}

/* Several steps of one run: what is kept is of the last. */
static void test_outputs_are_of_the_last_step(void **state) {
  (void)state;
  int is_centred = 0;
  struct loop loop = open_loop(2, "{\"keep_outputs\": true}", &is_centred);
  tutti_tensor *none = NULL;
  assert_error(TUTTI_FAILED_PRECONDITION, "no step",
               tutti_estimator_read_output(loop.estimator, "logits", &none, &err));
  assert_null(none);
  assert_ok(push(loop.feed, 0, 5, &err));
  assert_ok(push(loop.feed, 5, 6, &err));
  assert_ok(tutti_session_run(loop.session, 1, NULL, &err));
  float parameters[DENSE_PARAMETERS], logits[MOST_ROWS * CLASSES];
  double accuracy;
  read_dense(loop.estimator, parameters);
  work_out(parameters, 5, 6, logits, &accuracy);
  assert_ok(tutti_session_run(loop.session, 1, NULL, &err));
  assert_output(loop.estimator, "logits", logits, 6);
  assert_error(TUTTI_NOT_FOUND, "'logit' in mode TRAIN, did you mean 'logits'?; known: ",
               tutti_estimator_read_output(loop.estimator, "logit", &none, &err));
  assert_error(TUTTI_INVALID_ARGUMENT, "'name' is NULL",
               tutti_estimator_read_output(loop.estimator, NULL, &none, &err));
  /* A step that fails leaves none; the next one that does not, again. */
  const int64_t one_row[] = {1, DENSE_FEATURES};
  const float values[DENSE_FEATURES] = {0};
  const int32_t label = CLASSES + 7;
  tutti_tensor *bad[] = {make_tensor(TUTTI_DTYPE_F32, 2, one_row, values), make_vector(TUTTI_DTYPE_I32, 1, &label)};
  assert_ok(tutti_feed_push(loop.feed, bad, 2, NULL, &err));
  assert_error(TUTTI_INVALID_ARGUMENT, "label 9", tutti_session_run(loop.session, 1, NULL, &err));
  assert_error(TUTTI_FAILED_PRECONDITION, "failed", tutti_estimator_read_output(loop.estimator, "logits", &none, &err));
  tutti_tensor_unref(bad[0]), tutti_tensor_unref(bad[1]);
  close_loop(loop);
}

/* The position of a resumed training is the number of batches, whatever their rows; the rows go on where they were. */
static void test_a_training_goes_on(void **state) {
  (void)state;
  char directory[64], run[160];
  make_directory(directory);
  snprintf(run, sizeof run, "{\"keep_outputs\": true, \"model_dir\": \"%s\"}", directory);
  float saved[DENSE_PARAMETERS], restored[DENSE_PARAMETERS];
  int64_t first = 0;
  int is_centred = 0, b = 0;
  for (int piece = 0; piece < 3; piece++) {
    struct loop loop = open_loop(3 - piece, run, &is_centred);
    assert_int_equal(tutti_feed_get_position(loop.feed), b);
    read_dense(loop.estimator, restored);
    if (piece > 0) assert_memory_equal(restored, saved, sizeof saved);
    for (const int end = b + BATCHES / 3; b < end; b++)
      first += check_step(loop, first, b, 1, 0);
    read_dense(loop.estimator, saved);
    tutti_result *result = NULL;
    assert_ok(tutti_session_close(loop.session, &result, &err));
    assert_int_equal(tutti_result_get_step(result), b);
    tutti_result_unref(result);
    close_loop(loop);
  }
  remove_directory(directory);
}

static void test_without_the_option(void **state) {
  (void)state;
  int is_centred = 0;
  struct loop loop = open_loop(2, "{}", &is_centred);
  assert_ok(push(loop.feed, 0, 5, &err));
  assert_ok(tutti_session_run(loop.session, 1, NULL, &err));
  tutti_tensor *none = NULL;
  assert_error(TUTTI_FAILED_PRECONDITION, "keep_outputs",
               tutti_estimator_read_output(loop.estimator, "logits", &none, &err));
  close_loop(loop);
}

static void test_steps_that_learn_nothing(void **state) {
  (void)state;
  for (int replicas = 1; replicas <= 3; replicas++) {
    struct loop loop = open_loop_of(model_without_weights, replicas, "{\"keep_outputs\": true}", NULL);
    int64_t first = 0;
    for (int b = 0; b < 4; b++) {
      const int rows = sizes[b];
      assert_ok(push(loop.feed, first, rows, &err));
      float expected[MOST_ROWS][DENSE_FEATURES];
      double mean = 0;
      for (int i = 0; i < rows; i++) {
        int32_t label = 0;
        toy_row(first + i, expected[i], &label);
        for (int f = 0; f < DENSE_FEATURES; f++)
          expected[i][f] *= 2, mean += (double)expected[i][f] / (rows * DENSE_FEATURES);
      }
      tutti_result *result = NULL;
      assert_ok(tutti_session_run(loop.session, 1, &result, &err));
      assert_true(fabs(tutti_result_get_loss(result) - mean) < 1e-5);
      tutti_tensor *twice = NULL;
      assert_ok(tutti_estimator_read_output(loop.estimator, "twice", &twice, &err));
      assert_int_equal(tutti_tensor_get_dim(twice, 0), rows);
      check_near(tutti_tensor_get_data(twice), expected[0], (int64_t)rows * DENSE_FEATURES, 1e-6f, "twice");
      tutti_tensor_unref(twice), tutti_result_unref(result);
      first += rows;
    }
    close_loop(loop);
  }
}

static void test_wrong_batches(void **state) {
  (void)state;
  tutti_feed *feed = open_feed(NULL);
  assert_error(TUTTI_INVALID_ARGUMENT, "0 rows, expected 1 to 24", push(feed, 0, 0, &err));
  assert_error(TUTTI_INVALID_ARGUMENT, "25 rows, expected 1 to 24", push(feed, 0, MOST_ROWS + 1, &err));
  float values[3][DENSE_FEATURES] = {{0}};
  const int32_t labels[3] = {0};
  const int64_t dims[] = {3, DENSE_FEATURES};
  tutti_tensor *batch[] = {make_tensor(TUTTI_DTYPE_F32, 2, dims, values), make_vector(TUTTI_DTYPE_I32, 2, labels)};
  assert_error(TUTTI_INVALID_ARGUMENT, "'y' has 2 rows, 'x' has 3", tutti_feed_push(feed, batch, 2, NULL, &err));
  tutti_tensor *swapped[] = {batch[1], batch[0]};
  assert_error(TUTTI_INVALID_ARGUMENT, "'x'", tutti_feed_push(feed, swapped, 2, NULL, &err));
  assert_error(TUTTI_FAILED_PRECONDITION, "after the feed was used", tutti_feed_set_batch_size(feed, 3, &err));
  tutti_tensor_unref(batch[0]), tutti_tensor_unref(batch[1]), tutti_feed_unref(feed);
  assert_ok(tutti_feed_create(NULL, 1, &feed, &err));
  assert_error(TUTTI_INVALID_ARGUMENT, "'most_rows' must be 1 or more", tutti_feed_set_batch_size(feed, 0, &err));
  tutti_feed_unref(feed);
}

int main(int argc, char **argv) {
  plugin = argc > 1 ? argv[1] : NULL;
  if (plugin != NULL && is_missing(plugin)) return TEST_IS_SKIPPED;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_c8_every_batch_is_a_step),     cmocka_unit_test(test_replicas_with_weights_of_their_own),
      cmocka_unit_test(test_several_batches_to_a_step),    cmocka_unit_test(test_logical_replicas),
      cmocka_unit_test(test_outputs_are_of_the_last_step), cmocka_unit_test(test_a_training_goes_on),
      cmocka_unit_test(test_without_the_option),           cmocka_unit_test(test_wrong_batches),
      cmocka_unit_test(test_steps_that_learn_nothing),
  };
  return cmocka_run_group_tests(tests, remember_live_objects, assert_nothing_left);
}
