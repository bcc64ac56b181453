/* SPDX-License-Identifier: Apache-2.0
 * Saved models as parts of others: they predict as their checkpoint does, and are trained like the same model written
 * out by its layers, on 1 to 3 replicas. */
#include <math.h>
#include <stdlib.h>

#include "capi_testing.h"

enum { ROWS = 13, WIDTH = 3, HIDDEN = 5, CLASSES = 2 };

/* How the second model comes by the first one. */
enum how { WRITTEN_OUT, ADDED, TWICE_THE_INPUT, TWO_OF_THEM };

struct plan {
  enum how how;
  char folder[64];
  tutti_tensor *weights[8]; /* WRITTEN_OUT: initial values, by the names below */
};

static const char *const names[] = {"dense/kernel",
                                    "dense/bias",
                                    "batch_norm/scale",
                                    "batch_norm/offset",
                                    "batch_norm/running_mean",
                                    "batch_norm/running_variance",
                                    "dense_1/kernel",
                                    "dense_1/bias"};
enum { NAMES = 8 };

/* What batch normalization does in predictions, by ops. */
static tutti_value normalized(tutti_graph *g, tutti_value x) {
  const int64_t size = HIDDEN;
  tutti_graph_push_scope(g, "batch_norm");
  const tutti_value gamma = tutti_graph_variable(g, "scale", TUTTI_DTYPE_F32, &size, 1, "ones", 0, 1),
                    beta = tutti_graph_variable(g, "offset", TUTTI_DTYPE_F32, &size, 1, "zeros", 0, 1),
                    mean = tutti_graph_variable(g, "running_mean", TUTTI_DTYPE_F32, &size, 1, "zeros", 0, 0),
                    variance = tutti_graph_variable(g, "running_variance", TUTTI_DTYPE_F32, &size, 1, "ones", 0, 0);
  tutti_graph_pop_scope(g);
  const tutti_value epsilon = tutti_graph_constant(g, TUTTI_DTYPE_F32, 0.001),
                    factor = tutti_mul(g, gamma, tutti_rsqrt(g, tutti_add(g, variance, epsilon)));
  return tutti_add(g, tutti_mul(g, tutti_sub(g, x, mean), factor), beta);
}

/* dense, batch normalization, relu, dropout, dense; or what predictions do of them. */
static tutti_value first_layers(tutti_graph *g, tutti_value x, int is_whole) {
  tutti_value y = tutti_layer_dense(g, x, HIDDEN, NULL);
  y = tutti_relu(g, is_whole ? tutti_layer_batch_norm(g, y, NULL) : normalized(g, y));
  if (is_whole) y = tutti_layer_dropout(g, y, 0.3);
  return tutti_layer_dense(g, y, CLASSES, NULL);
}

static int32_t finish(tutti_graph *g, int32_t mode, tutti_value logits, tutti_error **error) {
  tutti_graph_set_output(g, "logits", logits);
  tutti_graph_set_output(
      g, "largest", tutti_reduce_max(g, logits, &(tutti_reduce_max_attrs){.axes = (int64_t[]){1}, .axes_count = 1}));
  if (mode != TUTTI_MODE_PREDICT) {
    tutti_graph_set_loss(
        g,
        tutti_reduce_mean(g, tutti_sparse_softmax_cross_entropy(g, logits, tutti_graph_get_label(g, "y"), NULL), NULL));
    tutti_optimizer_sgd(g, tutti_graph_constant(g, TUTTI_DTYPE_F32, 0.1), NULL);
  }
  return tutti_graph_check(g, error);
}

static int32_t first_model(tutti_graph *g, int32_t mode, void *user, tutti_error **error) {
  (void)user;
  return finish(g, mode, first_layers(g, tutti_graph_get_feature(g, "x"), 1), error);
}

static int32_t second_model(tutti_graph *g, int32_t mode, void *user, tutti_error **error) {
  const struct plan *plan = user;
  const tutti_value x = tutti_graph_get_feature(g, "x"), none = tutti_no_value();
  tutti_value y = none;
  switch (plan->how) {
    case WRITTEN_OUT:
      tutti_graph_push_scope(g, "model");
      y = first_layers(g, x, 0);
      tutti_graph_pop_scope(g);
      for (int i = 0; i < NAMES; i++) {
        char name[64];
        snprintf(name, sizeof name, "model/%s", names[i]);
        tutti_graph_set_initial_value(g, name, plan->weights[i]);
      }
      break;
    case ADDED:
      y = tutti_graph_add_saved_model(g, plan->folder, NULL, none, "logits");
      break;
    case TWICE_THE_INPUT:
      y = tutti_graph_add_saved_model(g, plan->folder, NULL, tutti_add(g, x, x), "logits");
      break;
    case TWO_OF_THEM:
      y = tutti_add(g, tutti_graph_add_saved_model(g, plan->folder, NULL, none, "logits"),
                    tutti_graph_add_saved_model(g, plan->folder, NULL, none, "logits"));
      break;
  }
  /* New layers behind it, called as some of it are. */
  const tutti_layer_dense_attrs ones = {.kernel_initializer = "constant(0.5)"};
  return finish(g, mode, tutti_add(g, y, tutti_layer_dense(g, y, CLASSES, &ones)), error);
}

static tutti_dataset *make_dataset(tutti_context *context, float scale, const char *feature) {
  float x[ROWS * WIDTH];
  int64_t y[ROWS];
  for (int i = 0; i < ROWS * WIDTH; i++)
    x[i] = scale * (float)sin(i * 1.7);
  for (int i = 0; i < ROWS; i++)
    y[i] = i % 3 == 0;
  tutti_tensor *xs = NULL, *ys = NULL;
  tutti_pipeline *pipeline = NULL;
  tutti_dataset *dataset = NULL;
  assert_ok(tutti_tensor_from_data(TUTTI_DTYPE_F32, (int64_t[]){ROWS, WIDTH}, 2, x, sizeof x, &xs, &err));
  assert_ok(tutti_tensor_from_data(TUTTI_DTYPE_I64, (int64_t[]){ROWS}, 1, y, sizeof y, &ys, &err));
  assert_ok(tutti_pipeline_create(context, &pipeline, &err));
  tutti_pipeline_add_slices(pipeline, feature, TUTTI_ROLE_FEATURE, xs);
  tutti_pipeline_add_slices(pipeline, "y", TUTTI_ROLE_LABEL, ys);
  tutti_pipeline_batch(pipeline, ROWS, NULL);
  assert_ok(tutti_pipeline_build(pipeline, &dataset, &err));
  tutti_pipeline_unref(pipeline), tutti_tensor_unref(xs), tutti_tensor_unref(ys);
  return dataset;
}

static tutti_estimator *make_estimator(tutti_context *context, tutti_model_fn model, void *user, const char *folder) {
  tutti_options *run = NULL;
  tutti_strategy *strategy = NULL;
  tutti_estimator *estimator = NULL;
  assert_ok(tutti_options_create("run", &run, &err));
  if (folder != NULL) tutti_options_set_string(run, "model_dir", folder);
  assert_ok(tutti_strategy_create_mirrored(context, NULL, 0, &strategy, &err));
  assert_ok(tutti_estimator_create(context, model, user, NULL, strategy, run, &estimator, &err));
  tutti_options_unref(run), tutti_strategy_unref(strategy);
  return estimator;
}

static tutti_context *make_context(int devices) {
  tutti_options *options = NULL;
  tutti_context *context = NULL;
  assert_ok(tutti_options_create("context", &options, &err));
  tutti_options_set_i64(options, "logical_devices", devices);
  assert_ok(tutti_context_create(options, &context, &err));
  tutti_options_unref(options);
  return context;
}

static void train_steps(tutti_estimator *estimator, const tutti_dataset *dataset, int64_t steps) {
  for (int64_t i = 0; i < steps; i++) /* a pass is one step */
    assert_ok(tutti_estimator_train(estimator, dataset, NULL, NULL, NULL, NULL, &err));
}

/* Trains the first model into plan->folder; its weights go to plan->weights. */
static void save_first(struct plan *plan) {
  make_directory(plan->folder);
  tutti_context *context = make_context(1);
  tutti_dataset *dataset = make_dataset(context, 1, "x");
  tutti_estimator *estimator = make_estimator(context, first_model, NULL, plan->folder);
  train_steps(estimator, dataset, 3);
  for (int i = 0; i < NAMES; i++)
    assert_ok(tutti_estimator_read_variable(estimator, names[i], &plan->weights[i], &err));
  tutti_estimator_unref(estimator), tutti_dataset_unref(dataset), tutti_context_unref(context);
}

static void drop_first(struct plan *plan) {
  for (int i = 0; i < NAMES; i++)
    tutti_tensor_unref(plan->weights[i]);
  remove_directory(plan->folder);
}

/* All values of an output of a dataset's rows. */
static void predict(tutti_predictor *predictor, const tutti_dataset *dataset, const char *output, float *values,
                    int64_t count) {
  tutti_batch *batch = NULL;
  assert_ok(tutti_predictor_run_all(predictor, dataset, NULL, &batch, &err));
  tutti_tensor *tensor = tutti_batch_get_output(batch, output);
  assert_non_null(tensor);
  assert_int_equal(tutti_tensor_get_element_count(tensor), count);
  memcpy(values, tutti_tensor_get_data(tensor), (size_t)count * sizeof *values);
  tutti_batch_unref(batch);
}

static void check_close(const char *what, const float *got, const float *expected, int64_t count) {
  for (int64_t i = 0; i < count; i++)
    if (!(fabsf(got[i] - expected[i]) <= 1e-5f * (1 + fabsf(expected[i]))))
      fail_msg("%s: element %d is %.9g, expected %.9g", what, (int)i, (double)got[i], (double)expected[i]);
}

/* Logits of the second model from those of the first one: y + 0.5 * (sum of y). */
static void behind(float *logits) {
  for (int i = 0; i < ROWS; i++) {
    float *const y = logits + (ptrdiff_t)i * CLASSES, sum = y[0] + y[1];
    y[0] += 0.5f * sum, y[1] += 0.5f * sum;
  }
}

static void test_it_predicts_what_it_did(void **state) {
  (void)state;
  struct plan plan = {.how = ADDED};
  save_first(&plan);
  tutti_context *context = make_context(2);
  tutti_dataset *dataset = make_dataset(context, 1, "x"), *twice = make_dataset(context, 2, "x");
  tutti_predictor *saved = NULL;
  float of_one[ROWS * CLASSES], of_twice[ROWS * CLASSES], got[ROWS * CLASSES];
  assert_ok(tutti_predictor_open(context, plan.folder, NULL, NULL, &saved, &err));
  predict(saved, dataset, "logits", of_one, ROWS * CLASSES), predict(saved, twice, "logits", of_twice, ROWS * CLASSES);
  for (plan.how = ADDED; plan.how <= TWO_OF_THEM; plan.how++) {
    float expected[ROWS * CLASSES];
    for (int i = 0; i < ROWS * CLASSES; i++)
      expected[i] = plan.how == ADDED ? of_one[i] : plan.how == TWO_OF_THEM ? 2 * of_one[i] : of_twice[i];
    behind(expected);
    tutti_estimator *estimator = make_estimator(context, second_model, &plan, NULL);
    tutti_predictor *predictor = NULL;
    assert_ok(tutti_estimator_initialize(estimator, dataset, NULL, NULL, &err));
    assert_int_equal(tutti_estimator_get_variable_count(estimator),
                     plan.how == TWO_OF_THEM ? 2 * NAMES + 2 : NAMES + 2);
    assert_ok(tutti_predictor_from_estimator(estimator, NULL, &predictor, &err));
    predict(predictor, dataset, "logits", got, ROWS * CLASSES);
    check_close("logits", got, expected, ROWS * CLASSES);
    tutti_predictor_unref(predictor), tutti_estimator_unref(estimator);
  }
  tutti_predictor_unref(saved), tutti_dataset_unref(dataset), tutti_dataset_unref(twice), tutti_context_unref(context);
  drop_first(&plan);
}

static void read_values(tutti_estimator *estimator, const char *name, float *values, int64_t *count) {
  tutti_tensor *tensor = NULL;
  assert_ok(tutti_estimator_read_variable(estimator, name, &tensor, &err));
  *count = tutti_tensor_get_element_count(tensor);
  memcpy(values, tutti_tensor_get_data(tensor), (size_t)*count * sizeof *values);
  tutti_tensor_unref(tensor);
}

static void test_it_is_trained_like_its_layers(void **state) {
  (void)state;
  struct plan plan = {.how = WRITTEN_OUT};
  save_first(&plan);
  for (int replicas = 1; replicas <= 3; replicas++) {
    struct plan added = plan;
    added.how = ADDED;
    tutti_context *context = make_context(replicas);
    tutti_dataset *dataset = make_dataset(context, 1, "x");
    tutti_estimator *by_layers = make_estimator(context, second_model, &plan, NULL),
                    *by_file = make_estimator(context, second_model, &added, NULL);
    train_steps(by_layers, dataset, 4), train_steps(by_file, dataset, 4);
    for (int i = 0; i < NAMES + 1; i++) {
      char name[64];
      snprintf(name, sizeof name, i < NAMES ? "model/%s" : "dense/kernel", i < NAMES ? names[i] : "");
      float expected[WIDTH * HIDDEN], got[WIDTH * HIDDEN];
      int64_t count = 0;
      read_values(by_layers, name, expected, &count), read_values(by_file, name, got, &count);
      check_close(name, got, expected, count);
      const float *const before = i < NAMES ? tutti_tensor_get_data(plan.weights[i]) : NULL;
      const int is_statistic = i == 4 || i == 5;
      if (before != NULL) assert_int_equal(memcmp(before, got, (size_t)count * sizeof *got) == 0, is_statistic);
    }
    tutti_estimator_unref(by_layers), tutti_estimator_unref(by_file);
    tutti_dataset_unref(dataset), tutti_context_unref(context);
  }
  drop_first(&plan);
}

/* What has been trained on is a model of its own: saved, it needs the first one's files no more. */
static void test_it_is_saved_again(void **state) {
  (void)state;
  struct plan plan = {.how = ADDED};
  save_first(&plan);
  char folder[64];
  make_directory(folder);
  tutti_context *context = make_context(1);
  tutti_dataset *dataset = make_dataset(context, 1, "x");
  tutti_estimator *estimator = make_estimator(context, second_model, &plan, folder);
  tutti_predictor *here = NULL, *opened = NULL;
  float expected[ROWS], got[ROWS];
  train_steps(estimator, dataset, 2);
  assert_ok(tutti_predictor_from_estimator(estimator, NULL, &here, &err));
  predict(here, dataset, "largest", expected, ROWS);
  drop_first(&plan);
  assert_ok(tutti_predictor_open(context, folder, NULL, NULL, &opened, &err));
  predict(opened, dataset, "largest", got, ROWS);
  assert_memory_equal(got, expected, sizeof got);
  tutti_predictor_unref(here), tutti_predictor_unref(opened), tutti_estimator_unref(estimator);
  tutti_dataset_unref(dataset), tutti_context_unref(context);
  remove_directory(folder);
}

struct mistake {
  const char *own_feature, *folder, *feature, *output;
  int has_input, is_wide; /* the value for the feature */
  int32_t code;
  const char *text;
};

static int32_t wrong_model(tutti_graph *g, int32_t mode, void *user, tutti_error **error) {
  const struct mistake *wrong = user;
  const tutti_value x = tutti_graph_get_feature(g, wrong->own_feature),
                    input = wrong->is_wide ? tutti_concat(g, (tutti_value[]){x, x}, 2, &(tutti_concat_attrs){.axis = 1})
                                           : x;
  const tutti_value y = tutti_graph_add_saved_model(g, wrong->folder, wrong->feature,
                                                    wrong->has_input ? input : tutti_no_value(), wrong->output);
  return finish(g, mode, y, error);
}

static void test_mistakes(void **state) {
  (void)state;
  struct plan plan = {.how = ADDED};
  save_first(&plan);
  tutti_context *context = make_context(1);
  const struct mistake mistakes[] = {
      {"x", NULL, NULL, "logits", 0, 0, TUTTI_INVALID_ARGUMENT, "argument 'path' is NULL"},
      {"x", "/nowhere", NULL, "logits", 0, 0, TUTTI_NOT_FOUND, "cannot use saved model '/nowhere'"},
      {"x", plan.folder, NULL, NULL, 0, 0, TUTTI_INVALID_ARGUMENT,
       "it has several outputs, largest, logits: name one of them"},
      {"x", plan.folder, NULL, "logit", 0, 0, TUTTI_NOT_FOUND, "it has no output 'logit'; it has largest, logits"},
      {"x", plan.folder, "z", "logits", 1, 0, TUTTI_NOT_FOUND, "it has no feature 'z'; it has x"},
      {"x", plan.folder, "x", "logits", 1, 1, TUTTI_INVALID_ARGUMENT,
       "its feature 'x' is f32 [batch, 3], got f32 [batch, 6]"},
      {"x", plan.folder, "x", "logits", 0, 0, TUTTI_INVALID_ARGUMENT, "there is no value for its feature 'x'"},
      {"w", plan.folder, NULL, "logits", 0, 0, TUTTI_NOT_FOUND,
       "its feature 'x' is f32 [batch, 3]: the dataset has no such feature, give a value for it"},
  };
  for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
    tutti_dataset *dataset = make_dataset(context, 1, mistakes[i].own_feature);
    tutti_estimator *estimator = make_estimator(context, wrong_model, (void *)&mistakes[i], NULL);
    assert_error(mistakes[i].code, mistakes[i].text,
                 tutti_estimator_train(estimator, dataset, NULL, NULL, NULL, NULL, &err));
    tutti_estimator_unref(estimator), tutti_dataset_unref(dataset);
  }
  tutti_context_unref(context);
  drop_first(&plan);
}

static const struct CMUnitTest tests[] = {cmocka_unit_test(test_it_predicts_what_it_did),
                                          cmocka_unit_test(test_it_is_trained_like_its_layers),
                                          cmocka_unit_test(test_it_is_saved_again), cmocka_unit_test(test_mistakes)};

CAPI_TEST_MAIN(tests)
