/* SPDX-License-Identifier: Apache-2.0
 * Models that are wrong, and what the errors say about them. */
#include <stdlib.h>

#include "estimator_fixtures.h"

enum wrong_model {
  LOSS_IS_NO_SCALAR,
  NO_LOSS,
  NO_OPTIMIZER,
  TWO_OPTIMIZERS,
  NAN_LOSS,
  NO_OUTPUTS,
  UNKNOWN_FEATURE,
  LABEL_WHILE_PREDICTING,
  OUTPUT_WITHOUT_ROWS,
  VARIABLE_TWICE,
  USER_ERROR,
  OTHER_VARIABLES_IN_EVAL,
  WRONG_INITIALIZER,
  CLIP_OF_ZERO
};

static int32_t wrong_model(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  enum wrong_model wrong = *(enum wrong_model *)user;
  int64_t one = 1;
  tutti_value x = tutti_graph_get_feature(g, wrong == UNKNOWN_FEATURE ? "X" : "x");
  tutti_layer_dense_attrs attrs = {.kernel_initializer = wrong == WRONG_INITIALIZER ? "glorot_unifrm" : NULL};
  tutti_value logits =
      tutti_layer_dense(g, x, wrong == OTHER_VARIABLES_IN_EVAL && mode != TUTTI_MODE_TRAIN ? 3 : 2, &attrs);
  if (wrong != NO_OUTPUTS) tutti_graph_set_output(g, "logits", logits);
  if (wrong == OUTPUT_WITHOUT_ROWS) tutti_graph_set_output(g, "sum", tutti_reduce_sum(g, logits, NULL));
  if (wrong == VARIABLE_TWICE)
    for (int i = 0; i < 2; i++)
      tutti_graph_variable(g, "scale", TUTTI_DTYPE_F32, &one, 1, "ones", 0, 1);
  if (wrong == USER_ERROR) return tutti_error_set(err, TUTTI_NOT_FOUND, "no recipe for this model");
  if (mode == TUTTI_MODE_PREDICT && wrong != LABEL_WHILE_PREDICTING) return tutti_graph_check(g, err);
  tutti_value losses = tutti_sparse_softmax_cross_entropy(g, logits, tutti_graph_get_label(g, "y"), NULL);
  tutti_value loss = wrong == LOSS_IS_NO_SCALAR ? losses : tutti_reduce_mean(g, losses, NULL);
  if (wrong == NAN_LOSS) /* 0 / 0 once three steps have been done */
    loss = tutti_mul(
        g, loss,
        tutti_log(g, tutti_sub(g, tutti_graph_constant(g, TUTTI_DTYPE_F32, 2.5),
                               tutti_div(g, tutti_graph_constant(g, TUTTI_DTYPE_F32, 1),
                                         tutti_schedule_piecewise(g, (int64_t[]){3}, 1, (double[]){1, 0.25}, 2)))));
  if (wrong != NO_LOSS) tutti_graph_set_loss(g, loss);
  tutti_value rate = tutti_schedule_constant(g, 1e-3);
  if (wrong != NO_OPTIMIZER) tutti_optimizer_adam(g, rate, NULL);
  if (wrong == TWO_OPTIMIZERS) tutti_optimizer_sgd(g, rate, NULL);
  if (wrong == CLIP_OF_ZERO) tutti_graph_set_gradient_clip_norm(g, 0);
  return tutti_graph_check(g, err);
}

static tutti_estimator *wrong_estimator(enum wrong_model *wrong) {
  tutti_estimator *estimator = NULL;
  assert_ok(tutti_estimator_create(NULL, wrong_model, wrong, NULL, NULL, NULL, &estimator, &err));
  return estimator;
}

static void test_wrong_models(void **state) {
  (void)state;
  static const struct {
    enum wrong_model wrong;
    int32_t code;
    const char *messages[2];
  } cases[] = {
      {LOSS_IS_NO_SCALAR, TUTTI_INVALID_ARGUMENT, {"[batch]", "expected a floating point scalar"}},
      {NO_LOSS, TUTTI_FAILED_PRECONDITION, {"optimizer", "loss"}},
      {NO_OPTIMIZER, TUTTI_INVALID_ARGUMENT, {"no optimizer", "TRAIN"}},
      {TWO_OPTIMIZERS, TUTTI_INVALID_ARGUMENT, {"already has an optimizer", "optimizer_sgd"}},
      {NAN_LOSS, TUTTI_OUT_OF_RANGE, {"step 4", "not finite"}},
      {UNKNOWN_FEATURE, TUTTI_NOT_FOUND, {"no feature 'X'", "it has x"}},
      {OUTPUT_WITHOUT_ROWS, TUTTI_INVALID_ARGUMENT, {"output 'sum'", "one row for each row"}},
      {VARIABLE_TWICE, TUTTI_ALREADY_EXISTS, {"variable 'scale'", ""}},
      {USER_ERROR,
       TUTTI_NOT_FOUND,
       {"the model function failed in mode TRAIN; caused by: NOT_FOUND: no recipe for this model", ""}},
      {WRONG_INITIALIZER,
       TUTTI_INVALID_ARGUMENT,
       {"dense: layer_dense: unknown initializer 'glorot_unifrm'",
        "did you mean 'glorot_uniform'?; known: zeros, ones, constant, random_normal, random_uniform, "
        "truncated_normal, glorot_uniform, glorot_normal, he_uniform, he_normal"}},
      {CLIP_OF_ZERO, TUTTI_INVALID_ARGUMENT, {"clip norm", "0"}},
  };
  tutti_dataset *dataset = toy_dataset(32, 8, 0);
  int failures = 0;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    enum wrong_model wrong = cases[i].wrong;
    tutti_estimator *estimator = wrong_estimator(&wrong);
    tutti_options *options = make_options("train", "{\"steps\": 6}");
    tutti_error *error = NULL;
    int32_t code = tutti_estimator_train(estimator, dataset, options, NULL, NULL, NULL, &error);
    const char *text = tutti_error_get_text(error);
    if (code != cases[i].code || strstr(text, cases[i].messages[0]) == NULL ||
        strstr(text, cases[i].messages[1]) == NULL) {
      print_error("model %d: code %d: %s\n", (int)wrong, (int)code, text);
      failures++;
    }
    tutti_error_unref(error);
    tutti_options_unref(options);
    tutti_estimator_unref(estimator);
  }
  tutti_dataset_unref(dataset);
  assert_int_equal(failures, 0);
}

static void test_wrong_models_for_prediction_and_evaluation(void **state) {
  (void)state;
  static const struct {
    enum wrong_model wrong;
    int32_t code;
    const char *message;
  } cases[] = {{NO_OUTPUTS, TUTTI_INVALID_ARGUMENT, "predictions are the outputs"},
               {LABEL_WHILE_PREDICTING, TUTTI_FAILED_PRECONDITION, "label 'y' was requested in mode PREDICT"},
               {OTHER_VARIABLES_IN_EVAL, TUTTI_INVALID_ARGUMENT, "variable 'dense/kernel'"}};
  tutti_dataset *dataset = toy_dataset(32, 8, 0);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    enum wrong_model wrong = cases[i].wrong;
    tutti_estimator *estimator = wrong_estimator(&wrong);
    tutti_predictor *predictor = NULL;
    train(estimator, dataset, "{\"steps\": 1}");
    assert_error(cases[i].code, cases[i].message, tutti_predictor_from_estimator(estimator, NULL, &predictor, &err));
    assert_null(predictor);
    if (wrong == OTHER_VARIABLES_IN_EVAL)
      assert_error(cases[i].code, cases[i].message, tutti_estimator_evaluate(estimator, dataset, 1, NULL, NULL, &err));
    tutti_estimator_unref(estimator);
  }
  tutti_dataset_unref(dataset);
}

static void test_no_weights(void **state) {
  (void)state;
  tutti_dataset *dataset = toy_dataset(8, 8, 1);
  tutti_estimator *estimator = toy_estimator(NULL);
  tutti_result *result = (tutti_result *)(uintptr_t)1;
  tutti_predictor *predictor = NULL;
  tutti_tensor *tensor = NULL;
  assert_error(TUTTI_FAILED_PRECONDITION, "no weights: train first, set model_dir or call tutti_estimator_initialize",
               tutti_estimator_evaluate(estimator, dataset, 0, NULL, &result, &err));
  assert_null(result);
  assert_error(TUTTI_FAILED_PRECONDITION, "no weights",
               tutti_predictor_from_estimator(estimator, NULL, &predictor, &err));
  assert_error(TUTTI_FAILED_PRECONDITION, "no weights", tutti_estimator_read_variable(estimator, "w", &tensor, &err));
  assert_error(TUTTI_FAILED_PRECONDITION, "no weights", tutti_estimator_save(estimator, "/tmp", NULL, &err));
  assert_int_equal(tutti_estimator_get_variable_count(estimator), 0);
  assert_int_equal(tutti_estimator_get_global_step(estimator), 0);
  tutti_estimator_unref(estimator);
  tutti_dataset_unref(dataset);
}

/* Eight rows of `width` numbers in two batches. */
static tutti_dataset *wide_dataset(int64_t width) {
  const int64_t dims[] = {8, width};
  const float values[8 * 8] = {0};
  const int32_t labels[8] = {0};
  tutti_tensor *x = make_tensor(TUTTI_DTYPE_F32, 2, dims, values), *y = make_vector(TUTTI_DTYPE_I32, 8, labels);
  tutti_pipeline *pipeline = NULL;
  tutti_dataset *dataset = NULL;
  assert_ok(tutti_pipeline_create(NULL, &pipeline, &err));
  tutti_pipeline_add_slices(pipeline, "x", TUTTI_ROLE_FEATURE, x);
  tutti_pipeline_add_slices(pipeline, "y", TUTTI_ROLE_LABEL, y);
  tutti_pipeline_batch(pipeline, 4, NULL);
  assert_ok(tutti_pipeline_build(pipeline, &dataset, &err));
  tutti_pipeline_unref(pipeline), tutti_tensor_unref(x), tutti_tensor_unref(y);
  return dataset;
}

/* Trained with rows of four numbers and given five: the feature is named, or what takes it. */
static void test_features_of_another_width(void **state) {
  (void)state;
  char directory[64], run[128];
  make_directory(directory);
  snprintf(run, sizeof run, "{\"model_dir\": \"%s\"}", directory);
  tutti_dataset *narrow = wide_dataset(4), *wide = wide_dataset(5);
  tutti_estimator *estimator = toy_estimator(run);
  train(estimator, narrow, "{\"steps\": 1}");
  assert_error(TUTTI_INVALID_ARGUMENT, "feature 'x' is f32 [batch, 5] in mode EVAL but f32 [batch, 4] in mode TRAIN",
               tutti_estimator_evaluate(estimator, wide, 0, NULL, NULL, &err));
  tutti_estimator_unref(estimator);
  const char *takes_it = "node 'dense/matmul' takes it with feature 'x', f32 [batch, 5]";
  estimator = toy_estimator(run);
  assert_error(TUTTI_INVALID_ARGUMENT, takes_it, tutti_estimator_evaluate(estimator, wide, 0, NULL, NULL, &err));
  assert_error(TUTTI_FAILED_PRECONDITION, takes_it,
               tutti_estimator_train(estimator, wide, NULL, NULL, NULL, NULL, &err));
  tutti_estimator_unref(estimator);
  tutti_dataset_unref(narrow), tutti_dataset_unref(wide);
  remove_directory(directory);
}

enum name_of { OUTPUT, METRIC, SCOPE, HOST_SCALAR, FEATURE };

struct named {
  enum name_of what;
  const char *name;
};

static int32_t named_model(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  const struct named *named = user;
  (void)mode;
  tutti_value x = tutti_graph_get_feature(g, named->what == FEATURE ? named->name : "x");
  if (named->what == SCOPE) tutti_graph_push_scope(g, named->name);
  if (named->what == OUTPUT) tutti_graph_set_output(g, named->name, x);
  if (named->what == METRIC) tutti_graph_add_metric(g, named->name, tutti_reduce_mean(g, x, NULL));
  if (named->what == HOST_SCALAR) tutti_graph_host_scalar(g, named->name, 1);
  return tutti_graph_check(g, err);
}

/* The error of a model that gives something this name; to be dropped. */
static tutti_error *error_of_name(enum name_of what, const char *name, const tutti_dataset *dataset) {
  struct named named = {what, name};
  tutti_estimator *estimator = NULL;
  tutti_error *error = NULL;
  assert_ok(tutti_estimator_create(NULL, named_model, &named, NULL, NULL, NULL, &estimator, &err));
  assert_int_not_equal(tutti_estimator_train(estimator, dataset, NULL, NULL, NULL, NULL, &error), TUTTI_OK);
  tutti_estimator_unref(estimator);
  return error;
}

/* Nobody could read a file or a report again that has such a name in it. */
static void test_names_that_are_not_utf8(void **state) {
  (void)state;
  const char *bad = "na\xffme", *shown = "'na\\xffme' is not UTF-8";
  tutti_dataset *dataset = wide_dataset(4);
  for (enum name_of what = OUTPUT; what < FEATURE; what++) {
    tutti_error *error = error_of_name(what, bad, dataset);
    check_error(TUTTI_INVALID_ARGUMENT, shown, tutti_error_get_code(error), error, "a name", __FILE__, __LINE__);
  }
  tutti_dataset_unref(dataset);
  const float values[2] = {0};
  tutti_tensor *x = make_vector(TUTTI_DTYPE_F32, 2, values);
  tutti_pipeline *pipeline = NULL;
  assert_ok(tutti_pipeline_create(NULL, &pipeline, &err));
  tutti_pipeline_add_slices(pipeline, bad, TUTTI_ROLE_FEATURE, x);
  assert_error(TUTTI_INVALID_ARGUMENT, shown, tutti_pipeline_build(pipeline, &dataset, &err));
  tutti_pipeline_unref(pipeline), tutti_tensor_unref(x);
}

/* What is quoted of a text that may have any length stays short. */
static void check_short(const char *call, tutti_error *error) {
  const char *text = tutti_error_get_text(error);
  if (error == NULL || strlen(text) > 6000 || strstr(text, "...") == NULL) {
    print_error("%s: %zu bytes: %.300s\n", call, text == NULL ? 0 : strlen(text), text == NULL ? "" : text);
    fail();
  }
  tutti_error_unref(error);
}

#define assert_short(call)   \
  do {                       \
    tutti_error *err = NULL; \
    (void)(call);            \
    check_short(#call, err); \
  } while (0)

static void test_long_texts(void **state) {
  (void)state;
  const size_t size = (size_t)20 << 20;
  char *text = malloc(size + 1);
  memset(text, 'a', size);
  text[0] = '/', text[size] = '\0';
  const char *path = text;
  tutti_dataset *dataset = wide_dataset(4);
  tutti_predictor *predictor = NULL;
  tutti_options *options = NULL;
  tutti_estimator *estimator = NULL;
  assert_short(tutti_predictor_open(NULL, text, NULL, NULL, &predictor, &err));
  assert_short(tutti_options_create(text, &options, &err));
  for (int i = 0; i < 3; i++) {
    assert_ok(tutti_options_create("run", &options, &err));
    if (i == 0) tutti_options_set_string(options, "determinism", text);
    if (i == 1) tutti_options_set_string(options, text, "x");
    if (i == 2) tutti_options_set_string(options, "model_dir", text);
    if (i < 2) assert_short(tutti_options_check(options, &err));
    if (i == 2) {
      assert_ok(tutti_estimator_create(NULL, toy_model, NULL, NULL, NULL, options, &estimator, &err));
      assert_short(tutti_estimator_train(estimator, dataset, NULL, NULL, NULL, NULL, &err));
      tutti_estimator_unref(estimator);
    }
    tutti_options_unref(options);
  }
  for (int i = 0; i < 3; i++) {
    tutti_pipeline *pipeline = NULL;
    tutti_dataset *lines = NULL;
    tutti_iterator *iterator = NULL;
    tutti_error *error = NULL;
    assert_ok(tutti_pipeline_create(NULL, &pipeline, &err));
    if (i == 0) tutti_source_text_lines(pipeline, &path, 1, NULL);
    if (i == 1) tutti_source_csv(pipeline, &path, 1, NULL);
    if (i == 2) tutti_source_tfrecord(pipeline, &path, 1, NULL);
    if (tutti_pipeline_build(pipeline, &lines, &error) == TUTTI_OK &&
        tutti_iterator_create(lines, 0, &iterator, &error) == TUTTI_OK) {
      uint8_t has_element = 0;
      (void)tutti_iterator_next(iterator, NULL, &has_element, &error);
    }
    check_short("a source", error);
    tutti_iterator_unref(iterator), tutti_dataset_unref(lines), tutti_pipeline_unref(pipeline);
  }
  check_short("a feature", error_of_name(FEATURE, text, dataset));
  tutti_dataset_unref(dataset);
  free(text);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_wrong_models),
    cmocka_unit_test(test_wrong_models_for_prediction_and_evaluation),
    cmocka_unit_test(test_no_weights),
    cmocka_unit_test(test_features_of_another_width),
    cmocka_unit_test(test_names_that_are_not_utf8),
    cmocka_unit_test(test_long_texts),
};
CAPI_TEST_MAIN(tests)
