/* SPDX-License-Identifier: Apache-2.0
 * The loss ctc of rows that are padded, frames to the longest of each batch and labels to a fixed number, against the
 * sum over all paths, worked out here, on 1 to 3 replicas and in one batch or two; and the error about a row, by its
 * number in the batch of all replicas. */
#include <math.h>

#include "capi_testing.h"

enum { ROWS = 5, CLASSES = 3, MOST = 4 };

typedef struct {
  int64_t frames, labels;
  int32_t label[MOST];
} row_text;

static const row_text good[ROWS] = {{4, 2, {1, 2}}, {1, 0, {0}}, {3, 2, {2, 2}}, {2, 1, {1}}, {4, 3, {2, 1, 2}}};
/* Equal labels in two frames. */
static const row_text bad[ROWS] = {{4, 2, {1, 2}}, {1, 0, {0}}, {3, 1, {2}}, {2, 2, {1, 1}}, {4, 1, {2}}};

static double logit(int64_t row, int64_t frame, int64_t class_number) {
  return sin((double)(row * 17 + frame * 5 + class_number * 3));
}

static int32_t make_element(void *user, int64_t pass, int64_t index, tutti_tensor **outputs, int64_t count,
                            uint8_t *has_element, tutti_error **error) {
  (void)pass, (void)count;
  if (index >= ROWS) return TUTTI_OK;
  const row_text *row = (const row_text *)user + index;
  float logits[MOST * CLASSES];
  for (int64_t i = 0; i < row->frames * CLASSES; i++)
    logits[i] = (float)logit(index, i / CLASSES, i % CLASSES);
  const int64_t dims[2] = {row->frames, CLASSES};
  int32_t code =
      tutti_tensor_from_data(TUTTI_DTYPE_F32, dims, 2, logits, row->frames * CLASSES * 4, &outputs[0], error);
  if (code == TUTTI_OK)
    code = tutti_tensor_from_data(TUTTI_DTYPE_I32, &row->labels, 1, row->label, row->labels * 4, &outputs[1], error);
  if (code == TUTTI_OK) code = tutti_tensor_from_data(TUTTI_DTYPE_I64, NULL, 0, &row->frames, 8, &outputs[2], error);
  if (code == TUTTI_OK) code = tutti_tensor_from_data(TUTTI_DTYPE_I64, NULL, 0, &row->labels, 8, &outputs[3], error);
  *has_element = 1;
  return code;
}

static int32_t model(tutti_graph *g, int32_t mode, void *user, tutti_error **error) {
  (void)user;
  tutti_value shift = tutti_graph_variable(g, "shift", TUTTI_DTYPE_F32, (int64_t[]){CLASSES}, 1, "zeros", 0, 1);
  tutti_value logits = tutti_add(g, tutti_graph_get_feature(g, "logits"), shift);
  tutti_loss_ctc_attrs own = {.input_lengths = tutti_graph_get_feature(g, "frames"),
                              .label_lengths = tutti_graph_get_feature(g, "count")};
  tutti_value loss = tutti_loss_ctc(g, logits, tutti_graph_get_feature(g, "labels"), &own);
  tutti_graph_set_output(g, "logits", logits);
  if (mode != TUTTI_MODE_PREDICT) {
    tutti_graph_set_loss(g, loss);
    tutti_optimizer_sgd(g, tutti_graph_constant(g, TUTTI_DTYPE_F32, 1), NULL);
  }
  return tutti_graph_check(g, error);
}

/* Are these classes the labels, once equal neighbours count once and blanks nothing? */
static int is_path(const row_text *row, const int64_t *path) {
  int64_t found = 0;
  for (int64_t t = 0; t < row->frames; t++) {
    if (path[t] == 0 || (t > 0 && path[t] == path[t - 1])) continue;
    if (found == row->labels || path[t] != row->label[found]) return 0;
    found++;
  }
  return found == row->labels;
}

/* With the variable as it is. */
static double expected_loss(const row_text *rows, const double *shift) {
  double sum = 0;
  for (int64_t r = 0; r < ROWS; r++) {
    double probability = 0;
    for (int64_t code = 0; code < (int64_t)pow(CLASSES, (double)rows[r].frames); code++) {
      int64_t path[MOST], rest = code;
      double product = 1;
      for (int64_t t = 0; t < rows[r].frames; t++, rest /= CLASSES) {
        double all = 0;
        path[t] = rest % CLASSES;
        for (int64_t c = 0; c < CLASSES; c++)
          all += exp(logit(r, t, c) + shift[c]);
        product *= exp(logit(r, t, path[t]) + shift[path[t]]) / all;
      }
      if (is_path(&rows[r], path)) probability += product;
    }
    sum -= log(probability);
  }
  return sum / ROWS;
}

static tutti_dataset *make_dataset(tutti_context *context, const row_text *rows, int64_t batch) {
  const int64_t any = -1, frames[2] = {-1, CLASSES};
  tutti_pipeline *pipeline = NULL;
  tutti_dataset *dataset = NULL;
  assert_ok(tutti_pipeline_create(context, &pipeline, &err));
  tutti_pipeline_declare(pipeline, "logits", TUTTI_ROLE_FEATURE, TUTTI_DTYPE_F32, frames, 2);
  tutti_pipeline_declare(pipeline, "labels", TUTTI_ROLE_FEATURE, TUTTI_DTYPE_I32, &any, 1);
  tutti_pipeline_declare(pipeline, "frames", TUTTI_ROLE_FEATURE, TUTTI_DTYPE_I64, NULL, 0);
  tutti_pipeline_declare(pipeline, "count", TUTTI_ROLE_FEATURE, TUTTI_DTYPE_I64, NULL, 0);
  tutti_pipeline_add_generator(pipeline, make_element, (void *)rows, NULL);
  /* As long as the longest row of the batch, and as many labels as there may be. */
  tutti_pipeline_padded_batch_attrs lengths = {.lengths = (int64_t[]){0, MOST}, .lengths_count = 2};
  tutti_pipeline_padded_batch(pipeline, batch, &lengths);
  assert_ok(tutti_pipeline_build(pipeline, &dataset, &err));
  tutti_pipeline_unref(pipeline);
  return dataset;
}

typedef struct {
  tutti_context *context;
  tutti_strategy *strategy;
  tutti_estimator *estimator;
} trained;

static trained make_estimator(int replicas, int64_t batches) {
  tutti_options *devices = NULL, *run = NULL;
  trained made = {0};
  assert_ok(tutti_options_create("context", &devices, &err));
  assert_ok(tutti_options_create("run", &run, &err));
  tutti_options_set_i64(devices, "logical_devices", replicas);
  tutti_options_set_i64(run, "accumulation_steps", batches);
  assert_ok(tutti_context_create(devices, &made.context, &err));
  assert_ok(tutti_strategy_create_mirrored(made.context, NULL, 0, &made.strategy, &err));
  assert_ok(tutti_estimator_create(made.context, model, NULL, NULL, made.strategy, run, &made.estimator, &err));
  tutti_options_unref(devices), tutti_options_unref(run);
  return made;
}

static void drop(trained *made) {
  tutti_estimator_unref(made->estimator), tutti_strategy_unref(made->strategy), tutti_context_unref(made->context);
}

static void check_close(const char *what, int replicas, double got, double expected) {
  if (!(fabs(got - expected) <= 1e-5 * (1 + fabs(expected))))
    fail_msg("%s on %d replicas is %.9g, expected %.9g", what, replicas, got, expected);
}

/* The variable after a step of rate 1 from 0 against differences of the loss. */
static void check_gradient(tutti_estimator *estimator, int replicas) {
  tutti_tensor *variable = NULL;
  assert_ok(tutti_estimator_read_variable(estimator, "shift", &variable, &err));
  for (int64_t c = 0; c < CLASSES; c++) {
    double above[CLASSES] = {0}, below[CLASSES] = {0};
    above[c] = 1e-5, below[c] = -1e-5;
    const double slope = (expected_loss(good, above) - expected_loss(good, below)) / 2e-5;
    check_close("the gradient", replicas, -((const float *)tutti_tensor_get_data(variable))[c], slope);
  }
  tutti_tensor_unref(variable);
}

static void test_padded_rows(void **state) {
  (void)state;
  const double zeros[CLASSES] = {0};
  for (int replicas = 1; replicas <= 3; replicas++) {
    for (int64_t batches = 1; batches <= 2; batches++) {
      trained made = make_estimator(replicas, batches);
      tutti_dataset *dataset = make_dataset(made.context, good, batches == 1 ? ROWS : 3);
      tutti_result *result = NULL;
      assert_ok(tutti_estimator_train(made.estimator, dataset, NULL, NULL, NULL, &result, &err));
      assert_int_equal(tutti_result_get_step(result), 1);
      check_close("the loss", replicas, tutti_result_get_loss(result), expected_loss(good, zeros));
      check_gradient(made.estimator, replicas);
      tutti_result_unref(result), tutti_dataset_unref(dataset);
      drop(&made);
    }
  }
}

static void test_rows_without_alignment(void **state) {
  (void)state;
  for (int replicas = 1; replicas <= 3; replicas++) {
    trained made = make_estimator(replicas, 1);
    tutti_dataset *dataset = make_dataset(made.context, bad, ROWS);
    assert_error(TUTTI_INVALID_ARGUMENT, "ctc/spare_frames/gather' (gather): index -1 in row 3 is outside [0, 5)",
                 tutti_estimator_train(made.estimator, dataset, NULL, NULL, NULL, NULL, &err));
    tutti_dataset_unref(dataset);
    drop(&made);
  }
}

static const struct CMUnitTest tests[] = {cmocka_unit_test(test_padded_rows),
                                          cmocka_unit_test(test_rows_without_alignment)};

CAPI_TEST_MAIN(tests)
