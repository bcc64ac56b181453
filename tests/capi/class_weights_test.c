/* SPDX-License-Identifier: Apache-2.0
 * Imbalanced classes through the C interface: counting them, weights by class, and what these do to a training, which
 * is worked out here as well. */
#include <math.h>
#include <string.h>

#include "dataset_fixtures.h"
#include "estimator_fixtures.h"

enum { ROWS = 50, FEATURES = 2, CLASSES = 3 };
static const int64_t class_counts[CLASSES] = {40, 8, 2};

static int32_t class_of(int64_t row) { return row % 25 == 0 ? 2 : row % 6 == 1 ? 1 : 0; }

/* Classes lie apart, but not so far that a line could tell them. */
static void features_of(int64_t row, float x[FEATURES]) {
  x[0] = (float)class_of(row) + (float)(row * 7 % 11) / 11 - 0.5f;
  x[1] = (float)(row * 5 % 13) / 13 - 0.5f * (float)class_of(row);
}

static tutti_pipeline *examples(tutti_context *context) {
  float x[ROWS][FEATURES];
  uint8_t y[ROWS];
  for (int64_t row = 0; row < ROWS; row++)
    features_of(row, x[row]), y[row] = (uint8_t)class_of(row);
  int64_t dims[] = {ROWS, FEATURES};
  tutti_tensor *images = make_tensor(TUTTI_DTYPE_F32, 2, dims, x), *labels = make_vector(TUTTI_DTYPE_U8, ROWS, y);
  tutti_pipeline *pipeline = NULL;
  assert_ok(tutti_pipeline_create(context, &pipeline, &err));
  tutti_pipeline_add_slices(pipeline, "x", TUTTI_ROLE_FEATURE, images);
  tutti_pipeline_add_slices(pipeline, "y", TUTTI_ROLE_LABEL, labels);
  tutti_tensor_unref(images), tutti_tensor_unref(labels);
  return pipeline;
}

/* --- counting ----------------------------------------------------------------------------------------------------- */

static void test_counts(void **state) {
  (void)state;
  for (int64_t batch = 0; batch <= 8; batch += 8) {
    tutti_pipeline *pipeline = examples(NULL);
    if (batch > 0) tutti_pipeline_batch(pipeline, batch, NULL);
    tutti_dataset *dataset = build(pipeline);
    int64_t needed = -1, counts[CLASSES + 1] = {-1, -1, -1, -1};
    assert_ok(tutti_dataset_count_classes(dataset, "y", 0, NULL, NULL, &needed, &err));
    assert_int_equal(needed, CLASSES);
    assert_ok(tutti_dataset_count_classes(dataset, "y", CLASSES, NULL, counts, NULL, &err));
    assert_memory_equal(counts, class_counts, sizeof class_counts);
    assert_int_equal(counts[CLASSES], -1);
    needed = -1;
    assert_ok(tutti_dataset_count_classes(dataset, "y", CLASSES + 1, NULL, counts, &needed, &err));
    assert_int_equal(needed, CLASSES);
    assert_int_equal(counts[CLASSES], 0);
    assert_error(TUTTI_OUT_OF_RANGE, "is of class 2; expected a class from 0 to 1",
                 tutti_dataset_count_classes(dataset, "y", 2, NULL, counts, NULL, &err));
    tutti_dataset_unref(dataset);
  }
}

static void test_mistakes_of_counting(void **state) {
  (void)state;
  tutti_dataset *dataset = build(examples(NULL));
  int64_t needed, counts[CLASSES];
  assert_error(TUTTI_INVALID_ARGUMENT, "one-hot",
               tutti_dataset_count_classes(dataset, "x", CLASSES, NULL, counts, NULL, &err));
  assert_error(TUTTI_INVALID_ARGUMENT, "no component 'z'",
               tutti_dataset_count_classes(dataset, "z", CLASSES, NULL, counts, NULL, &err));
  assert_error(TUTTI_INVALID_ARGUMENT, "'component' is NULL",
               tutti_dataset_count_classes(dataset, NULL, CLASSES, NULL, counts, NULL, &err));
  assert_error(TUTTI_INVALID_ARGUMENT, "'class_count' must be 1 or more, got 0",
               tutti_dataset_count_classes(dataset, "y", 0, NULL, counts, &needed, &err));
  assert_error(TUTTI_INVALID_ARGUMENT, "'class_count' must be 1 or more, got -1",
               tutti_dataset_count_classes(dataset, "y", -1, NULL, counts, &needed, &err));
  assert_error(TUTTI_INVALID_ARGUMENT, "'counts' is NULL, so 'class_count' must be 0, got 3",
               tutti_dataset_count_classes(dataset, "y", CLASSES, NULL, NULL, &needed, &err));
  assert_error(TUTTI_INVALID_ARGUMENT, "'needed' is NULL",
               tutti_dataset_count_classes(dataset, "y", 0, NULL, NULL, NULL, &err));
  tutti_cancel *cancel = NULL;
  assert_ok(tutti_cancel_create(&cancel, &err));
  assert_ok(tutti_cancel_set_deadline(cancel, 0, &err));
  assert_error(TUTTI_DEADLINE_EXCEEDED, "deadline",
               tutti_dataset_count_classes(dataset, "y", CLASSES, cancel, counts, NULL, &err));
  assert_ok(tutti_cancel_request(cancel, TUTTI_CANCEL_STOP, &err));
  assert_error(TUTTI_CANCELLED, "", tutti_dataset_count_classes(dataset, "y", CLASSES, cancel, counts, NULL, &err));
  tutti_cancel_unref(cancel);
  tutti_dataset_unref(dataset);
  tutti_pipeline *pipeline = examples(NULL);
  tutti_pipeline_repeat(pipeline, NULL);
  dataset = build(pipeline);
  assert_error(TUTTI_INVALID_ARGUMENT, "no end",
               tutti_dataset_count_classes(dataset, "y", CLASSES, NULL, counts, NULL, &err));
  tutti_dataset_unref(dataset);
}

static void test_weights(void **state) {
  (void)state;
  static const int64_t never[] = {40, 0, 2}, none[] = {0, 0};
  for (int batched = 0; batched <= 1; batched++) {
    tutti_pipeline *pipeline = examples(NULL);
    tutti_pipeline_class_weights_attrs attrs = {.name = "importance"};
    if (batched) tutti_pipeline_batch(pipeline, 8, NULL);
    tutti_pipeline_class_weights(pipeline, "y", class_counts, CLASSES, &attrs);
    tutti_dataset *dataset = build(pipeline);
    assert_int_equal(tutti_dataset_get_component_count(dataset), 3);
    assert_string_equal(tutti_dataset_get_component_name(dataset, 2), "importance");
    assert_int_equal(tutti_dataset_get_component_role(dataset, 2), TUTTI_ROLE_WEIGHT);
    float weights[ROWS];
    assert_int_equal(walk(dataset, 0, 2, weights, ROWS), ROWS);
    for (int64_t row = 0; row < ROWS; row++)
      assert_close(weights[row], (double)ROWS / (CLASSES * (double)class_counts[class_of(row)]));
    tutti_dataset_unref(dataset);
  }
  tutti_pipeline *pipeline = examples(NULL);
  tutti_pipeline_class_weights(pipeline, "y", none, 2, NULL);
  assert_build_error(TUTTI_INVALID_ARGUMENT, "counts: expected a number above 0", pipeline);
  pipeline = examples(NULL);
  tutti_pipeline_class_weights(pipeline, "x", class_counts, CLASSES, NULL);
  assert_build_error(TUTTI_INVALID_ARGUMENT, "one-hot", pipeline);
  pipeline = examples(NULL);
  tutti_pipeline_class_weights(pipeline, "y", never, CLASSES, NULL);
  tutti_dataset *dataset = build(pipeline);
  tutti_iterator *iterator = NULL;
  uint8_t more = 0;
  assert_ok(tutti_iterator_create(dataset, 0, &iterator, &err));
  assert_ok(tutti_iterator_next(iterator, NULL, &more, &err)); /* of class 2 */
  assert_error(TUTTI_OUT_OF_RANGE, "component 'y': element 1 is of class 1, whose count is 0",
               tutti_iterator_next(iterator, NULL, &more, &err));
  tutti_iterator_unref(iterator);
  tutti_dataset_unref(dataset);
}

/* --- a training --------------------------------------------------------------------------------------------------- */

enum { STEPS = 12, PARAMETERS = FEATURES * CLASSES + CLASSES };
static const double rate = 0.5;

enum weighing { BY_DATASET, BY_BATCHES, BY_LOSS, NOT_AT_ALL };

static double weight_of(int32_t class, enum weighing how) {
  return how == NOT_AT_ALL ? 1 : (double)ROWS / (CLASSES * (double)class_counts[class]);
}

/* Softmax regression from zeros. */
static int32_t model(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  const enum weighing how = *(const enum weighing *)user;
  int64_t kernel_dims[] = {FEATURES, CLASSES}, bias_dims[] = {CLASSES};
  tutti_value kernel = tutti_graph_variable(g, "kernel", TUTTI_DTYPE_F32, kernel_dims, 2, "zeros", 0, 1);
  tutti_value bias = tutti_graph_variable(g, "bias", TUTTI_DTYPE_F32, bias_dims, 1, "zeros", 0, 1);
  tutti_value logits = tutti_add(g, tutti_matmul(g, tutti_graph_get_feature(g, "x"), kernel, NULL), bias);
  tutti_graph_set_output(g, "logits", logits);
  if (mode != TUTTI_MODE_PREDICT) {
    double by_class[CLASSES];
    for (int32_t class = 0; class < CLASSES; class ++)
      by_class[class] = weight_of(class, how);
    tutti_loss_sparse_softmax_cross_entropy_attrs attrs = {0};
    if (how == BY_LOSS) attrs.class_weights = by_class, attrs.class_weights_count = CLASSES;
    if (how == BY_DATASET || how == BY_BATCHES) attrs.weights = tutti_graph_get_sample_weight(g, "weight");
    tutti_graph_set_loss(g, tutti_loss_sparse_softmax_cross_entropy(g, logits, tutti_graph_get_label(g, "y"), &attrs));
    tutti_optimizer_sgd(g, tutti_graph_constant(g, TUTTI_DTYPE_F32, rate), NULL);
  }
  return tutti_graph_check(g, err);
}

/* Batches of `batch` examples; labels are counted first, as a program would. */
static tutti_dataset *weighed(tutti_context *context, enum weighing how, int64_t batch) {
  tutti_pipeline *pipeline = examples(context);
  tutti_dataset *all = build(pipeline);
  int64_t counts[CLASSES];
  assert_ok(tutti_dataset_count_classes(all, "y", CLASSES, NULL, counts, NULL, &err));
  assert_ok(tutti_pipeline_create(context, &pipeline, &err));
  tutti_pipeline_add_dataset(pipeline, all);
  tutti_dataset_unref(all);
  if (how == BY_DATASET) tutti_pipeline_class_weights(pipeline, "y", counts, CLASSES, NULL);
  tutti_pipeline_batch(pipeline, batch, NULL);
  if (how == BY_BATCHES) tutti_pipeline_class_weights(pipeline, "y", counts, CLASSES, NULL);
  return build(pipeline);
}

/* The mean loss over all rows, each with its weight, and its gradient, in double. */
static double loss_of(const double parameters[PARAMETERS], enum weighing how, double gradient[PARAMETERS]) {
  double loss = 0;
  memset(gradient, 0, PARAMETERS * sizeof *gradient);
  for (int64_t row = 0; row < ROWS; row++) {
    float x[FEATURES];
    features_of(row, x);
    double logits[CLASSES], sum = 0;
    for (int c = 0; c < CLASSES; c++) {
      logits[c] = parameters[FEATURES * CLASSES + c];
      for (int f = 0; f < FEATURES; f++)
        logits[c] += (double)x[f] * parameters[f * CLASSES + c];
      sum += exp(logits[c]);
    }
    const double weight = weight_of(class_of(row), how) / ROWS;
    loss += weight * (log(sum) - logits[class_of(row)]);
    for (int c = 0; c < CLASSES; c++) {
      const double slope = weight * (exp(logits[c]) / sum - (c == class_of(row) ? 1 : 0));
      for (int f = 0; f < FEATURES; f++)
        gradient[f * CLASSES + c] += slope * (double)x[f];
      gradient[FEATURES * CLASSES + c] += slope;
    }
  }
  return loss;
}

/* The loss after so many steps over all rows. */
static double trained_loss(enum weighing how) {
  double parameters[PARAMETERS] = {0}, gradient[PARAMETERS];
  for (int step = 0; step < STEPS; step++) {
    loss_of(parameters, how, gradient);
    for (int i = 0; i < PARAMETERS; i++)
      parameters[i] -= rate * gradient[i];
  }
  return loss_of(parameters, how, gradient);
}

static double measured_loss(enum weighing how, int replicas) {
  char json[64];
  snprintf(json, sizeof json, "{\"logical_devices\": %d}", replicas);
  tutti_options *options = make_options("context", json);
  tutti_context *context = NULL;
  tutti_strategy *strategy = NULL;
  tutti_estimator *estimator = NULL;
  assert_ok(tutti_context_create(options, &context, &err));
  assert_ok(tutti_strategy_create_mirrored(context, NULL, 0, &strategy, &err));
  assert_ok(tutti_estimator_create(context, model, &how, NULL, strategy, NULL, &estimator, &err));
  tutti_dataset *data = weighed(context, how, ROWS), *few = weighed(context, how, 7);
  snprintf(json, sizeof json, "{\"epochs\": %d}", STEPS);
  assert_int_equal(train(estimator, data, json).step, STEPS);
  const double loss = evaluate(estimator, data, 0).loss;
  assert_close(evaluate(estimator, few, 0).loss, loss);
  tutti_dataset_unref(data), tutti_dataset_unref(few);
  tutti_estimator_unref(estimator);
  tutti_strategy_unref(strategy);
  tutti_context_unref(context);
  tutti_options_unref(options);
  return loss;
}

static void test_a_weighted_training(void **state) {
  (void)state;
  for (int replicas = 1; replicas <= 3; replicas += 2) {
    for (enum weighing how = BY_DATASET; how <= NOT_AT_ALL; how++)
      assert_close(measured_loss(how, replicas), trained_loss(how));
  }
  /* The weights do something. */
  assert_true(fabs(trained_loss(BY_DATASET) - trained_loss(NOT_AT_ALL)) > 0.1);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_counts),
    cmocka_unit_test(test_mistakes_of_counting),
    cmocka_unit_test(test_weights),
    cmocka_unit_test(test_a_weighted_training),
};
CAPI_TEST_MAIN(tests)
