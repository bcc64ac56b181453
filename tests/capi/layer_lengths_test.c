/* SPDX-License-Identifier: Apache-2.0
 * Layers on sequences whose length only the data tells: ids, padded to the longest of each batch, looked up, convolved,
 * made longer and shorter, and pooled. Against what is worked out here, on 1 to 3 replicas. */
#include <math.h>

#include "capi_testing.h"

enum { ROWS = 4, BATCHES = 3, COUNT = 5, WIDTH = 2, MOST = 8 };

/* Lengths of the rows of each batch: the second is shorter, the third longer than the first. */
static const int64_t lengths[BATCHES][ROWS] = {{3, 5, 1, 2}, {2, 1, 3, 3}, {7, 4, 1, 6}};

static int32_t id_of(int64_t row, int64_t position) { return (int32_t)((row * 3 + position * 2 + 1) % COUNT); }

static int32_t make_element(void *user, int64_t pass, int64_t index, tutti_tensor **outputs, int64_t count,
                            uint8_t *has_element, tutti_error **error) {
  (void)pass, (void)count;
  if (index >= ROWS) return TUTTI_OK;
  const int64_t *length = (const int64_t *)user + index;
  int32_t ids[MOST];
  for (int64_t i = 0; i < *length; i++)
    ids[i] = id_of(index, i);
  int32_t code = tutti_tensor_from_data(TUTTI_DTYPE_I32, length, 1, ids, *length * 4, &outputs[0], error);
  if (code == TUTTI_OK) code = tutti_tensor_from_data(TUTTI_DTYPE_I64, NULL, 0, length, 8, &outputs[1], error);
  *has_element = 1;
  return code;
}

static int32_t model(tutti_graph *g, int32_t mode, void *user, tutti_error **error) {
  (void)user;
  tutti_value ids = tutti_graph_get_feature(g, "ids");
  tutti_layer_embedding_bag_attrs own = {.lengths = tutti_graph_get_feature(g, "length"),
                                         .combiner = TUTTI_LAYER_EMBEDDING_BAG_COMBINER_SUM};
  tutti_value bag = tutti_layer_embedding_bag(g, ids, COUNT, WIDTH, &own);
  tutti_graph_set_output(g, "bag", bag);
  tutti_value rows = tutti_layer_embedding(g, ids, COUNT, WIDTH, NULL);
  tutti_layer_conv1d_attrs causal = {
      .padding = TUTTI_LAYER_CONV1D_PADDING_CAUSAL, .without_bias = 1, .kernel_initializer = "ones"};
  tutti_value y = tutti_layer_conv1d(g, rows, 1, 2, &causal);
  y = tutti_layer_zero_padding1d(g, tutti_layer_up_sampling1d(g, y, 2), (int64_t[]){1, 2});
  y = tutti_layer_cropping1d(g, y, (int64_t[]){0, 1});
  tutti_layer_max_pool1d_attrs by_one = {.stride = 1};
  tutti_layer_average_pool1d_attrs same = {.stride = 1, .padding = TUTTI_LAYER_AVERAGE_POOL1D_PADDING_SAME};
  tutti_graph_set_output(g, "largest", tutti_layer_global_average_pool1d(g, tutti_layer_max_pool1d(g, y, 2, &by_one)));
  tutti_graph_set_output(g, "mean", tutti_layer_global_max_pool1d(g, tutti_layer_average_pool1d(g, y, 2, &same)));
  if (mode != TUTTI_MODE_PREDICT) {
    tutti_graph_set_loss(g, tutti_add(g, tutti_reduce_mean(g, y, NULL), tutti_reduce_mean(g, bag, NULL)));
    tutti_optimizer_sgd(g, tutti_graph_constant(g, TUTTI_DTYPE_F32, 0), NULL);
  }
  return tutti_graph_check(g, error);
}

static float table_value(int64_t row, int64_t column) { return (float)sin((double)(row * WIDTH + column) + 1); }

static double row_sum(int64_t row, int64_t position, int64_t length) {
  const int32_t id = position < 0 ? -1 : position < length ? id_of(row, position) : 0; /* batches are padded with 0 */
  return id < 0 ? 0 : (double)table_value(id, 0) + (double)table_value(id, 1);
}

/* "largest" and "mean" of one row: a zero, each position of the convolution twice, and a zero. */
static void expect(int64_t row, int64_t length, int64_t longest, double *largest, double *mean) {
  double y[2 * MOST + 2] = {0};
  const int64_t size = 2 * longest + 2;
  for (int64_t i = 0; i < 2 * longest; i++)
    y[1 + i] = row_sum(row, i / 2, length) + row_sum(row, i / 2 - 1, length);
  *largest = 0, *mean = y[size - 1];
  for (int64_t i = 0; i + 1 < size; i++) {
    *largest += fmax(y[i], y[i + 1]) / (double)(size - 1);
    *mean = fmax(*mean, (y[i] + y[i + 1]) / 2);
  }
}

static void check(tutti_estimator *estimator, const char *name, int64_t row, int64_t column, double expected) {
  tutti_tensor *got = NULL;
  assert_ok(tutti_estimator_read_output(estimator, name, &got, &err));
  const int64_t columns = tutti_tensor_get_element_count(got) / ROWS;
  const double value = ((const float *)tutti_tensor_get_data(got))[row * columns + column];
  if (!(fabs(value - expected) <= 1e-5 * (1 + fabs(expected))))
    fail_msg("%s of row %d is %.9g, expected %.9g", name, (int)row, value, expected);
  tutti_tensor_unref(got);
}

static void check_batch(tutti_estimator *estimator, const int64_t *own) {
  int64_t longest = 0;
  for (int64_t row = 0; row < ROWS; row++)
    longest = own[row] > longest ? own[row] : longest;
  for (int64_t row = 0; row < ROWS; row++) {
    double largest = 0, mean = 0;
    expect(row, own[row], longest, &largest, &mean);
    check(estimator, "largest", row, 0, largest);
    check(estimator, "mean", row, 0, mean);
    for (int64_t column = 0; column < WIDTH; column++) {
      double sum = 0;
      for (int64_t i = 0; i < own[row]; i++)
        sum += table_value(id_of(row, i), column);
      check(estimator, "bag", row, column, sum);
    }
  }
}

static tutti_dataset *make_dataset(tutti_context *context, int64_t batch) {
  const int64_t any = -1;
  tutti_pipeline *pipeline = NULL;
  tutti_dataset *dataset = NULL;
  assert_ok(tutti_pipeline_create(context, &pipeline, &err));
  tutti_pipeline_declare(pipeline, "ids", TUTTI_ROLE_FEATURE, TUTTI_DTYPE_I32, &any, 1);
  tutti_pipeline_declare(pipeline, "length", TUTTI_ROLE_FEATURE, TUTTI_DTYPE_I64, NULL, 0);
  tutti_pipeline_add_generator(pipeline, make_element, (void *)lengths[batch], NULL);
  tutti_pipeline_padded_batch(pipeline, ROWS, NULL);
  assert_ok(tutti_pipeline_build(pipeline, &dataset, &err));
  tutti_pipeline_unref(pipeline);
  return dataset;
}

static void write_tables(tutti_estimator *estimator) {
  float values[COUNT * WIDTH];
  for (int64_t i = 0; i < COUNT * WIDTH; i++)
    values[i] = table_value(i / WIDTH, i % WIDTH);
  tutti_tensor *table = make_tensor(TUTTI_DTYPE_F32, 2, (int64_t[]){COUNT, WIDTH}, values);
  assert_ok(tutti_estimator_write_variable(estimator, "embedding/table", table, &err));
  assert_ok(tutti_estimator_write_variable(estimator, "embedding_bag/table", table, &err));
  tutti_tensor_unref(table);
}

static void test_lengths_of_the_data(void **state) {
  (void)state;
  for (int replicas = 1; replicas <= 3; replicas++) {
    tutti_options *devices = NULL, *run = NULL;
    tutti_context *context = NULL;
    tutti_strategy *strategy = NULL;
    tutti_estimator *estimator = NULL;
    assert_ok(tutti_options_create("context", &devices, &err));
    assert_ok(tutti_options_create("run", &run, &err));
    tutti_options_set_i64(devices, "logical_devices", replicas);
    tutti_options_set_bool(run, "keep_outputs", 1);
    assert_ok(tutti_context_create(devices, &context, &err));
    assert_ok(tutti_strategy_create_mirrored(context, NULL, 0, &strategy, &err));
    assert_ok(tutti_estimator_create(context, model, NULL, NULL, strategy, run, &estimator, &err));
    for (int64_t batch = 0; batch < BATCHES; batch++) {
      tutti_dataset *dataset = make_dataset(context, batch);
      if (batch == 0) {
        assert_ok(tutti_estimator_initialize(estimator, dataset, NULL, NULL, &err));
        write_tables(estimator);
      }
      assert_ok(tutti_estimator_train(estimator, dataset, NULL, NULL, NULL, NULL, &err));
      check_batch(estimator, lengths[batch]);
      tutti_dataset_unref(dataset);
    }
    tutti_estimator_unref(estimator), tutti_strategy_unref(strategy), tutti_context_unref(context);
    tutti_options_unref(devices), tutti_options_unref(run);
  }
}

static const struct CMUnitTest tests[] = {cmocka_unit_test(test_lengths_of_the_data)};

TEST_MAIN(tests)
