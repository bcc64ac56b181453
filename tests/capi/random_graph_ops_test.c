/* SPDX-License-Identifier: Apache-2.0
 *
 * Random ops of models through the C interface: dropout, attention that forgets and truncated normals, by what every
 * draw of them is, and by their shares over many. One device and two give the same.
 */
#include <math.h>

#include "capi_testing.h"

enum { ROWS = 16, LENGTH = 6, HEADS = 2, WIDTH = 500 };

/* A variable that the loss does not move. */
static void set_idle_loss(tutti_graph *g, tutti_value x) {
  tutti_value weight = tutti_graph_variable(g, "w", TUTTI_DTYPE_F32, NULL, 0, "ones", 0, 1);
  tutti_graph_set_loss(g, tutti_mul(g, weight, tutti_reduce_mean(g, x, NULL)));
  tutti_optimizer_sgd(g, tutti_schedule_constant(g, 0), NULL);
}

static int32_t dropout_model(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  (void)mode, (void)user;
  tutti_value x = tutti_graph_get_feature(g, "x");
  tutti_value ones = tutti_add(g, tutti_mul(g, x, tutti_graph_constant(g, TUTTI_DTYPE_F32, 0)),
                               tutti_graph_constant(g, TUTTI_DTYPE_F32, 1));
  tutti_graph_set_output(g, "y", tutti_dropout(g, ones, 0.25, NULL));
  set_idle_loss(g, x);
  return tutti_graph_check(g, err);
}

/* Queries and keys of zeros see all values alike; value j is one in channel j, so that y tells each probability. */
static int32_t attention_model(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  (void)mode, (void)user;
  tutti_value x = tutti_graph_get_feature(g, "x");
  float unit[LENGTH][HEADS][LENGTH] = {{{0}}};
  for (int i = 0; i < LENGTH; i++) {
    for (int h = 0; h < HEADS; h++)
      unit[i][h][i] = 1;
  }
  tutti_tensor *units = make_tensor(TUTTI_DTYPE_F32, 3, (int64_t[]){LENGTH, HEADS, LENGTH}, unit);
  tutti_value zero =
      tutti_mul(g, tutti_reduce_mean(g, x, &(tutti_reduce_mean_attrs){.axes = (int64_t[]){1}, .axes_count = 1}),
                tutti_graph_constant(g, TUTTI_DTYPE_F32, 0));
  tutti_value zeros =
      tutti_add(g, tutti_reshape(g, zero, (int64_t[]){TUTTI_DIM_BATCH, 1, 1, 1}, 4),
                tutti_mul(g, tutti_graph_constant_tensor(g, units), tutti_graph_constant(g, TUTTI_DTYPE_F32, 0)));
  tutti_value values = tutti_add(g, zeros, tutti_graph_constant_tensor(g, units));
  tutti_graph_set_output(g, "y", tutti_dropout_attention(g, zeros, zeros, values, 0.25, NULL, NULL));
  tutti_tensor_unref(units);
  set_idle_loss(g, x);
  return tutti_graph_check(g, err);
}

static int32_t normal_model(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  (void)mode, (void)user;
  tutti_value x = tutti_graph_get_feature(g, "x");
  const tutti_random_truncated_normal_attrs attrs = {.mean = 3, .has_stddev = 1, .stddev = 0.5};
  tutti_graph_set_output(g, "y", tutti_random_truncated_normal(g, (int64_t[]){TUTTI_DIM_BATCH, WIDTH}, 2, &attrs));
  set_idle_loss(g, x);
  return tutti_graph_check(g, err);
}

/* Output "y" of a step on all rows; owned. */
static tutti_tensor *output_of(tutti_model_fn model, int64_t devices, int64_t seed) {
  static float x[ROWS][WIDTH];
  tutti_options *options = make_options("context", "{}"), *run = make_options("run", "{\"keep_outputs\": true}");
  tutti_context *context = NULL;
  tutti_strategy *strategy = NULL;
  tutti_pipeline *pipeline = NULL;
  tutti_dataset *dataset = NULL;
  tutti_estimator *estimator = NULL;
  tutti_tensor *rows = make_tensor(TUTTI_DTYPE_F32, 2, (int64_t[]){ROWS, WIDTH}, x), *y = NULL;
  tutti_options_set_i64(options, "logical_devices", devices), tutti_options_set_i64(run, "seed", seed);
  assert_ok(tutti_context_create(options, &context, &err));
  assert_ok(tutti_strategy_create_mirrored(context, NULL, 0, &strategy, &err));
  assert_ok(tutti_pipeline_create(context, &pipeline, &err));
  tutti_pipeline_add_slices(pipeline, "x", TUTTI_ROLE_FEATURE, rows);
  tutti_pipeline_batch(pipeline, ROWS, NULL);
  assert_ok(tutti_pipeline_build(pipeline, &dataset, &err));
  assert_ok(tutti_estimator_create(context, model, NULL, NULL, strategy, run, &estimator, &err));
  assert_ok(tutti_estimator_train(estimator, dataset, NULL, NULL, NULL, NULL, &err));
  assert_ok(tutti_estimator_read_output(estimator, "y", &y, &err));
  assert_int_equal(tutti_tensor_get_dtype(y), TUTTI_DTYPE_F32);
  tutti_estimator_unref(estimator), tutti_dataset_unref(dataset), tutti_pipeline_unref(pipeline);
  tutti_strategy_unref(strategy), tutti_context_unref(context), tutti_tensor_unref(rows);
  tutti_options_unref(options), tutti_options_unref(run);
  return y;
}

static int is_equal(const tutti_tensor *a, const tutti_tensor *b) {
  const int64_t size = tutti_tensor_get_size_bytes(a);
  assert_int_equal(tutti_tensor_get_size_bytes(b), size);
  return memcmp(tutti_tensor_get_data(a), tutti_tensor_get_data(b), (size_t)size) == 0;
}

/* The output on one device, which is that on two, and another one under another seed. */
static tutti_tensor *checked_output(tutti_model_fn model, int64_t elements) {
  tutti_tensor *y = output_of(model, 1, 5), *of_two = output_of(model, 2, 5), *other = output_of(model, 1, 6);
  assert_int_equal(tutti_tensor_get_element_count(y), elements);
  assert_true(is_equal(y, of_two));
  assert_false(is_equal(y, other));
  tutti_tensor_unref(of_two), tutti_tensor_unref(other);
  return y;
}

/* How many numbers are 0; the others must be this. */
static int64_t count_zeros(const tutti_tensor *y, double otherwise) {
  const float *numbers = tutti_tensor_get_data(y);
  int64_t zeros = 0;
  for (int64_t i = 0; i < tutti_tensor_get_element_count(y); i++) {
    zeros += numbers[i] == 0;
    if (numbers[i] != 0) assert_float_equal(numbers[i], otherwise, 1e-6);
  }
  return zeros;
}

static void test_dropout(void **state) {
  (void)state;
  tutti_tensor *y = checked_output(dropout_model, ROWS * WIDTH);
  /* 2,000 of 8,000, within five deviations of 39. */
  assert_in_range(count_zeros(y, 1 / 0.75), 1800, 2200);
  tutti_tensor_unref(y);
}

static void test_dropout_attention(void **state) {
  (void)state;
  tutti_tensor *y = checked_output(attention_model, ROWS * LENGTH * HEADS * LENGTH);
  /* 288 of 1,152, within five deviations of 15. */
  assert_in_range(count_zeros(y, 1 / 0.75 / LENGTH), 213, 363);
  tutti_tensor_unref(y);
}

/* Within two deviations; the mean and the deviation of what is left, 0.8796 of the whole one's. */
static void test_truncated_normal(void **state) {
  (void)state;
  tutti_tensor *y = checked_output(normal_model, ROWS * WIDTH);
  const float *numbers = tutti_tensor_get_data(y);
  double sum = 0, squares = 0;
  for (int i = 0; i < ROWS * WIDTH; i++) {
    assert_true(fabs(numbers[i] - 3) <= 1 + 1e-6);
    sum += numbers[i] - 3, squares += (numbers[i] - 3) * (numbers[i] - 3);
  }
  assert_float_equal(sum / (ROWS * WIDTH), 0, 0.025);
  assert_float_equal(sqrt(squares / (ROWS * WIDTH)), 0.5 * 0.87962566, 0.012);
  tutti_tensor_unref(y);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_dropout),
    cmocka_unit_test(test_dropout_attention),
    cmocka_unit_test(test_truncated_normal),
};
CAPI_TEST_MAIN(tests)
