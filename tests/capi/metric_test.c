/* SPDX-License-Identifier: Apache-2.0
 * Metrics that are tensors, and what is added up over many batches. */
#include <math.h>

#include "dense_fixtures.h"
#include "estimator_fixtures.h"

static int32_t model(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  (void)user;
  struct dense_model dense = build_dense(g, mode);
  if (mode != TUTTI_MODE_PREDICT) {
    tutti_value y = tutti_graph_get_label(g, "y");
    tutti_metric_accuracy(g, "accuracy", dense.logits, y, NULL);
    tutti_metric_confusion_matrix(g, "confusion", dense.logits, y, NULL);
    tutti_metric_recall_attrs each = {.average = TUTTI_METRIC_RECALL_AVERAGE_NONE};
    tutti_metric_recall(g, "recalls", dense.logits, y, &each);
    tutti_graph_name_classes(g, "confusion", (const char *[]){"a cat", "\xc3\xa9/dog"}, 2);
    tutti_graph_name_classes(g, "recalls", (const char *[]){"a cat", "\xc3\xa9/dog"}, 2);
  }
  if (mode == TUTTI_MODE_TRAIN) tutti_optimizer_sgd(g, tutti_graph_constant(g, TUTTI_DTYPE_F32, 0.5), NULL);
  return tutti_graph_check(g, err);
}

/* The four numbers of a confusion matrix of so many rows, and that recalls and accuracy are those that follow. */
static void check_confusion(const tutti_result *result, int64_t rows) {
  tutti_tensor *confusion = NULL, *recalls = NULL;
  assert_ok(tutti_result_read_metric(result, "confusion", &confusion, &err));
  assert_ok(tutti_result_read_metric(result, "recalls", &recalls, &err));
  assert_int_equal(tutti_tensor_get_rank(confusion), 2);
  assert_int_equal(tutti_tensor_get_dim(confusion, 0), 2);
  assert_int_equal(tutti_tensor_get_dim(confusion, 1), 2);
  assert_int_equal(tutti_tensor_get_rank(recalls), 1);
  const double *counts = tutti_tensor_get_data(confusion), *shares = tutti_tensor_get_data(recalls);
  assert_true(counts[0] + counts[1] + counts[2] + counts[3] == (double)rows);
  assert_true(fabs(shares[0] - counts[0] / (counts[0] + counts[1])) < 1e-12);
  assert_true(fabs(shares[1] - counts[3] / (counts[2] + counts[3])) < 1e-12);
  assert_true(fabs(tutti_result_get_metric(result, "accuracy") - (counts[0] + counts[3]) / (double)rows) < 1e-6);
  assert_true(isnan(tutti_result_get_metric(result, "confusion")));
  static const char *const cells[] = {"confusion/a cat/a cat", "confusion/a cat/\xc3\xa9/dog",
                                      "confusion/\xc3\xa9/dog/a cat", "confusion/\xc3\xa9/dog/\xc3\xa9/dog"};
  for (int i = 0; i < 4; i++)
    assert_true(tutti_result_get_metric(result, cells[i]) == counts[i]);
  assert_true(tutti_result_get_metric(result, "recalls/a cat") == shares[0]);
  assert_true(tutti_result_get_metric(result, "recalls/\xc3\xa9/dog") == shares[1]);
  tutti_tensor_unref(confusion), tutti_tensor_unref(recalls);
}

static void check_reading(const tutti_result *result) {
  tutti_tensor *value = NULL;
  assert_int_equal(tutti_result_get_metric_count(result), 10); /* the learning rate, too */
  assert_ok(tutti_result_read_metric(result, "accuracy", &value, &err));
  assert_int_equal(tutti_tensor_get_rank(value), 0);
  assert_true(*(const double *)tutti_tensor_get_data(value) == tutti_result_get_metric(result, "accuracy"));
  tutti_tensor_unref(value);
  assert_ok(tutti_result_read_metric(result, "loss", &value, &err));
  assert_true(*(const double *)tutti_tensor_get_data(value) == tutti_result_get_loss(result));
  tutti_tensor_unref(value);
  assert_error(TUTTI_NOT_FOUND, "the result has no metric 'confusio', did you mean 'confusion'?",
               tutti_result_read_metric(result, "confusio", &value, &err));
  assert_null(value);
  assert_error(TUTTI_INVALID_ARGUMENT, "'name' is NULL", tutti_result_read_metric(result, NULL, &value, &err));
}

/* A hook sees the numbers. */
static int32_t see(void *user, const tutti_hook_event *event, tutti_error **error) {
  (void)error;
  if (tutti_hook_event_get_kind(event) != TUTTI_EVENT_STEP) return 0;
  int *seen = user;
  *seen +=
      !isnan(tutti_hook_event_get_metric(event, "accuracy")) && isnan(tutti_hook_event_get_metric(event, "confusion"));
  return 0;
}

static void test_tensors(void **state) {
  (void)state;
  for (int replicas = 1; replicas <= 3; replicas++) {
    tutti_context *context = NULL;
    tutti_estimator *estimator = dense_estimator(model, NULL, replicas, "{}", &context);
    tutti_dataset *endless = dense_dataset(context, 50, 10, 1), *all = dense_dataset(context, 50, 7, 0);
    tutti_options *options = make_options("train", "{\"steps\": 5}");
    tutti_hooks *hooks = NULL;
    int seen = 0;
    assert_ok(tutti_hooks_create(&hooks, &err));
    assert_ok(tutti_hooks_add(hooks, see, &seen, NULL, 1, &err));
    tutti_result *result = NULL;
    assert_ok(tutti_estimator_train(estimator, endless, options, hooks, NULL, &result, &err));
    assert_int_equal(seen, 5);
    check_confusion(result, 10);
    check_reading(result);
    tutti_result_unref(result);
    assert_ok(tutti_estimator_evaluate(estimator, all, 0, NULL, &result, &err));
    check_confusion(result, 50);
    tutti_result_unref(result);
    tutti_hooks_unref(hooks), tutti_options_unref(options);
    tutti_dataset_unref(endless), tutti_dataset_unref(all);
    tutti_estimator_unref(estimator), tutti_context_unref(context);
  }
}

/* What watches numbers says so; checkpoints keep the numbers. */
static void test_tensors_beside_numbers(void **state) {
  (void)state;
  char directory[64], run[160];
  make_directory(directory);
  snprintf(run, sizeof run, "{\"model_dir\": \"%s\"}", directory);
  tutti_context *context = NULL;
  tutti_estimator *estimator = dense_estimator(model, NULL, 2, run, &context);
  tutti_dataset *endless = dense_dataset(context, 50, 10, 1);
  tutti_options *options = make_options("train", "{\"steps\": 3}");
  assert_ok(tutti_estimator_train(estimator, endless, options, NULL, NULL, NULL, &err));
  tutti_estimator_unref(estimator), tutti_dataset_unref(endless), tutti_context_unref(context);
  estimator = dense_estimator(model, NULL, 2, run, &context);
  endless = dense_dataset(context, 50, 10, 1);
  tutti_result *result = NULL;
  assert_ok(tutti_estimator_train(estimator, endless, options, NULL, NULL, &result, &err));
  assert_int_equal(tutti_result_get_step(result), 6);
  check_confusion(result, 10);
  tutti_result_unref(result), tutti_options_unref(options);
  options = make_options("train",
                         "{\"steps\": 3, \"early_stopping\": \"confusion\", \"early_stopping_every_steps\": 1, "
                         "\"early_stopping_patience_steps\": 1}");
  assert_error(TUTTI_INVALID_ARGUMENT, "'confusion', which a step does not have",
               tutti_estimator_train(estimator, endless, options, NULL, NULL, NULL, &err));
  tutti_options_unref(options);
  options =
      make_options("train", "{\"steps\": 3, \"early_stopping\": \"recalls\", \"early_stopping_patience_steps\": 1}");
  tutti_dataset *all = dense_dataset(context, 50, 10, 0);
  assert_error(TUTTI_INVALID_ARGUMENT, "'recalls' is a tensor of shape [2], early stopping needs a number",
               tutti_estimator_train_and_evaluate(estimator, endless, all, 1, options, NULL, NULL, NULL, &err));
  tutti_options_unref(options), tutti_dataset_unref(all);
  tutti_estimator_unref(estimator), tutti_dataset_unref(endless), tutti_context_unref(context);
  remove_directory(directory);
}

static int32_t mean_model(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  (void)user;
  tutti_value x = tutti_graph_get_feature(g, "x");
  tutti_value w = tutti_graph_variable(g, "w", TUTTI_DTYPE_F32, NULL, 0, "zeros", 0, 1);
  tutti_graph_set_output(g, "x", x);
  if (mode != TUTTI_MODE_PREDICT) {
    tutti_metric_mean(g, "mean", x, NULL);
    tutti_graph_set_loss(g, tutti_add(g, tutti_reduce_mean(g, x, NULL), tutti_square(g, w)));
    tutti_optimizer_sgd(g, tutti_schedule_constant(g, 0), NULL);
  }
  return tutti_graph_check(g, err);
}

/* A sum in which single precision keeps no one: 1e8, and a thousand batches of 1. */
static void test_sums_of_many_batches(void **state) {
  (void)state;
  enum { ROWS = 1001 };
  float values[ROWS];
  for (int i = 0; i < ROWS; i++)
    values[i] = i == 0 ? 1e8f : 1;
  tutti_tensor *tensor = make_vector(TUTTI_DTYPE_F32, ROWS, values);
  for (int replicas = 1; replicas <= 2; replicas++) {
    tutti_context *context = NULL;
    tutti_estimator *estimator = dense_estimator(mean_model, NULL, replicas, "{}", &context);
    tutti_pipeline *pipeline = NULL;
    tutti_dataset *dataset = NULL;
    tutti_result *result = NULL;
    assert_ok(tutti_pipeline_create(context, &pipeline, &err));
    tutti_pipeline_add_slices(pipeline, "x", TUTTI_ROLE_FEATURE, tensor);
    tutti_pipeline_batch(pipeline, 1, NULL);
    assert_ok(tutti_pipeline_build(pipeline, &dataset, &err));
    assert_ok(tutti_estimator_initialize(estimator, dataset, NULL, NULL, &err));
    assert_ok(tutti_estimator_evaluate(estimator, dataset, 0, NULL, &result, &err));
    const double expected = (1e8 + 1000) / ROWS;
    assert_true(fabs(tutti_result_get_metric(result, "mean") / expected - 1) < 1e-6);
    assert_true(fabs(tutti_result_get_loss(result) / expected - 1) < 1e-6);
    tutti_result_unref(result), tutti_pipeline_unref(pipeline), tutti_dataset_unref(dataset);
    tutti_estimator_unref(estimator), tutti_context_unref(context);
  }
  tutti_tensor_unref(tensor);
}

enum mistake { FEWER, NUMBER, UNKNOWN, TWICE, EMPTY, NOTHING, TAKEN, MISTAKES };

static int32_t mistaken_model(tutti_graph *g, int32_t mode, void *user, tutti_error **error) {
  struct dense_model dense = build_dense(g, mode);
  const char *const two[] = {"cat", "dog"}, *const same[] = {"cat", "cat"}, *const nameless[] = {"cat", ""},
                    *const missing[] = {"cat", NULL};
  tutti_value y = tutti_graph_get_label(g, "y");
  if (mode == TUTTI_MODE_PREDICT) return tutti_graph_check(g, error);
  tutti_metric_accuracy(g, "accuracy", dense.logits, y, NULL);
  tutti_metric_confusion_matrix(g, "confusion", dense.logits, y, NULL);
  switch (*(const enum mistake *)user) {
    case FEWER:
      tutti_graph_name_classes(g, "confusion", two, 1);
      break;
    case NUMBER:
      tutti_graph_name_classes(g, "accuracy", two, 2);
      break;
    case UNKNOWN:
      tutti_graph_name_classes(g, "confusio", two, 2);
      break;
    case TWICE:
      tutti_graph_name_classes(g, "confusion", same, 2);
      break;
    case EMPTY:
      tutti_graph_name_classes(g, "confusion", nameless, 2);
      break;
    case NOTHING:
      tutti_graph_name_classes(g, "confusion", missing, 2);
      break;
    default:
      tutti_graph_name_classes(g, "confusion", two, 2), tutti_graph_name_classes(g, "confusion", two, 2);
  }
  return tutti_graph_check(g, error);
}

static void test_mistakes(void **state) {
  (void)state;
  static const struct {
    int32_t code;
    const char *text;
  } expected[MISTAKES] = {
      [FEWER] = {TUTTI_INVALID_ARGUMENT,
                 "metric 'confusion' has shape [2, 2] and names of 1 classes, expected [1] or [1, 1]"},
      [NUMBER] = {TUTTI_INVALID_ARGUMENT, "metric 'accuracy' has shape [] and names of 2 classes"},
      [UNKNOWN] = {TUTTI_NOT_FOUND, "there is no such metric, did you mean 'confusion'?"},
      [TWICE] = {TUTTI_ALREADY_EXISTS, "there is already a class of metric 'confusion' 'cat'"},
      [EMPTY] = {TUTTI_INVALID_ARGUMENT, "has an empty name"},
      [NOTHING] = {TUTTI_INVALID_ARGUMENT, "argument 'classes[1]' is NULL"},
      [TAKEN] = {TUTTI_ALREADY_EXISTS, "there is already a metric 'confusion/cat/cat'"},
  };
  for (enum mistake mistake = FEWER; mistake < MISTAKES; mistake++) {
    tutti_context *context = NULL;
    tutti_estimator *estimator = dense_estimator(mistaken_model, &mistake, 1, "{}", &context);
    tutti_dataset *dataset = dense_dataset(context, 50, 10, 0);
    assert_error(expected[mistake].code, expected[mistake].text,
                 tutti_estimator_initialize(estimator, dataset, NULL, NULL, &err));
    tutti_dataset_unref(dataset), tutti_estimator_unref(estimator), tutti_context_unref(context);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_tensors),
      cmocka_unit_test(test_tensors_beside_numbers),
      cmocka_unit_test(test_sums_of_many_batches),
      cmocka_unit_test(test_mistakes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
