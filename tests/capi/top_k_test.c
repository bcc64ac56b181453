/* SPDX-License-Identifier: Apache-2.0
 * The k largest of rows: in maps of pipelines, in a network that learns on one and on several replicas, and
 * mistakes. */
#include <math.h>

#include "dataset_fixtures.h"
#include "dense_fixtures.h"
#include "estimator_fixtures.h"

enum { ROWS = 3, LENGTH = 5, K = 3, STEPS = 40 };

static const float rows[ROWS][LENGTH] = {{3, 1, 3, 2, 3}, {-1, NAN, INFINITY, -2, NAN}, {-0.0f, 0, -1, -INFINITY, 0}};
static const int64_t expected[ROWS][K] = {{0, 2, 4}, {1, 4, 2}, {0, 1, 4}};

static int32_t take_largest(tutti_graph *g, void *user, tutti_error **err) {
  tutti_value indices, values = tutti_top_k(g, tutti_graph_get_feature(g, "x"), *(const int64_t *)user, &indices);
  tutti_graph_set_output(g, "values", values);
  tutti_graph_set_output(g, "indices", indices);
  return tutti_graph_check(g, err);
}

/* Batches of `batch` rows before the map, single rows with 0. */
static tutti_pipeline *rows_with(int64_t *k, int64_t batch) {
  int64_t dims[] = {ROWS, LENGTH};
  tutti_tensor *x = make_tensor(TUTTI_DTYPE_F32, 2, dims, rows);
  tutti_pipeline *pipeline = NULL;
  assert_ok(tutti_pipeline_create(NULL, &pipeline, &err));
  tutti_pipeline_add_slices(pipeline, "x", TUTTI_ROLE_FEATURE, x);
  tutti_tensor_unref(x);
  if (batch > 0) tutti_pipeline_batch(pipeline, batch, NULL);
  tutti_pipeline_map_graph(pipeline, take_largest, k, 1);
  return pipeline;
}

static const tutti_tensor *component(const tutti_dataset *dataset, tutti_iterator *iterator, const char *name) {
  int64_t index = 0;
  while (strcmp(tutti_dataset_get_component_name(dataset, index), name) != 0)
    index++;
  return tutti_iterator_get_component(iterator, index);
}

static void test_rows_of_pipelines(void **state) {
  (void)state;
  for (int64_t batch = 0; batch <= ROWS; batch++) {
    int64_t k = K;
    tutti_dataset *dataset = build(rows_with(&k, batch));
    tutti_iterator *iterator = NULL;
    assert_ok(tutti_iterator_create(dataset, 0, &iterator, &err));
    int64_t row = 0;
    for (uint8_t more = 1; row < ROWS;) {
      assert_ok(tutti_iterator_next(iterator, NULL, &more, &err));
      assert_true(more);
      const tutti_tensor *indices = component(dataset, iterator, "indices");
      const tutti_tensor *values = component(dataset, iterator, "values");
      assert_int_equal(tutti_tensor_get_dtype(indices), TUTTI_DTYPE_I64);
      const float *value = tutti_tensor_get_data(values);
      const int64_t *index = tutti_tensor_get_data(indices);
      int64_t count = batch == 0 ? 1 : batch < ROWS - row ? batch : ROWS - row;
      for (int64_t end = row + count; row < end; row++, value += K, index += K) {
        assert_memory_equal(index, expected[row], sizeof expected[row]);
        /* The bits, so that NaN and the sign of zero are looked at. */
        for (int i = 0; i < K; i++)
          assert_memory_equal(&value[i], &rows[row][index[i]], sizeof *value);
      }
    }
    tutti_iterator_unref(iterator);
    tutti_dataset_unref(dataset);
  }
}

static void test_a_k_that_is_no_number_of_elements(void **state) {
  (void)state;
  int64_t k = LENGTH + 1;
  assert_build_error(TUTTI_INVALID_ARGUMENT, "attribute 'k' is 6, the last axis of 'x' has 5 elements",
                     rows_with(&k, 2));
  k = 0;
  assert_build_error(TUTTI_INVALID_ARGUMENT, "attribute 'k' is 0, expected at least 1", rows_with(&k, 2));
}

/* The largest of each row's hidden numbers alone reach the logits, and learn. */
static int32_t model(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  (void)user;
  tutti_value hidden = tutti_layer_dense(g, tutti_graph_get_feature(g, "x"), 12, NULL), indices;
  tutti_value logits = tutti_layer_dense(g, tutti_top_k(g, hidden, 4, &indices), 2, NULL);
  tutti_graph_set_output(g, "logits", logits);
  tutti_graph_set_output(g, "indices", indices);
  if (mode == TUTTI_MODE_PREDICT) return tutti_graph_check(g, err);
  tutti_value y = tutti_graph_get_label(g, "y");
  tutti_graph_set_loss(g, tutti_loss_sparse_softmax_cross_entropy(g, logits, y, NULL));
  tutti_optimizer_sgd(g, tutti_schedule_constant(g, 0.1), NULL);
  return tutti_graph_check(g, err);
}

static double loss_after_training(int replicas, double *before) {
  tutti_context *context = NULL;
  tutti_estimator *estimator = dense_estimator(model, NULL, replicas, "{\"seed\": 5}", &context);
  tutti_dataset *endless = dense_dataset(context, 48, 13, 1), *once = dense_dataset(context, 48, 13, 0);
  train(estimator, endless, "{\"steps\": 1}");
  *before = evaluate(estimator, once, 0).loss;
  char steps[32];
  snprintf(steps, sizeof steps, "{\"steps\": %d}", STEPS);
  train(estimator, endless, steps);
  double loss = evaluate(estimator, once, 0).loss;
  tutti_dataset_unref(endless), tutti_dataset_unref(once);
  tutti_estimator_unref(estimator), tutti_context_unref(context);
  return loss;
}

static void test_replicas_train_the_model_of_one(void **state) {
  (void)state;
  double before, one = loss_after_training(1, &before);
  if (!(one < 0.85 * before)) fail_msg("it has learnt nothing: loss %g after %g", one, before);
  for (int replicas = 2; replicas <= 3; replicas++) {
    double loss = loss_after_training(replicas, &before);
    if (!(fabs(loss - one) < 1e-3)) fail_msg("%d replicas: loss %g, expected %g", replicas, loss, one);
  }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_rows_of_pipelines),
    cmocka_unit_test(test_a_k_that_is_no_number_of_elements),
    cmocka_unit_test(test_replicas_train_the_model_of_one),
};

CAPI_TEST_MAIN(tests)
