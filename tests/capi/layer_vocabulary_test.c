/* SPDX-License-Identifier: Apache-2.0
 * Layers and losses that no other test reaches through the C interface, each against numbers worked out here: what is
 * predicted with variables that are all one, and the loss that evaluate gives. */
#include <math.h>

#include "capi_testing.h"

enum { ROWS = 3, SIDE = 4, CHANNELS = 4, PIXELS = SIDE * SIDE, INNER = SIDE - 2 };

static float image[ROWS][SIDE][SIDE][CHANNELS], target[ROWS][CHANNELS];

static void fill(void) {
  for (int r = 0; r < ROWS; r++) {
    for (int i = 0; i < PIXELS * CHANNELS; i++)
      (&image[r][0][0][0])[i] = (float)((r * 29 + i * 7) % 13) / 4 - 1;
    for (int c = 0; c < CHANNELS; c++)
      target[r][c] = c == r ? 0.7f : 0.1f;
  }
}

static int32_t model(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  const int *const loss = user;
  const tutti_value x = tutti_graph_get_feature(g, "x");
  const tutti_layer_depthwise_conv2d_attrs each = {.padding = TUTTI_LAYER_DEPTHWISE_CONV2D_PADDING_VALID,
                                                   .kernel_initializer = "ones"};
  const tutti_layer_separable_conv2d_attrs both = {.padding = TUTTI_LAYER_SEPARABLE_CONV2D_PADDING_VALID,
                                                   .kernel_initializer = "ones"};
  tutti_graph_set_output(g, "depthwise", tutti_layer_depthwise_conv2d(g, x, 3, &each));
  tutti_graph_set_output(g, "separable", tutti_layer_separable_conv2d(g, x, 2, 3, &both));
  tutti_graph_set_output(g, "average", tutti_layer_average_pool2d(g, x, 2, NULL));
  tutti_graph_set_output(g, "global_average", tutti_layer_global_average_pool2d(g, x));
  tutti_graph_set_output(g, "global_max", tutti_layer_global_max_pool2d(g, x));
  tutti_graph_set_output(g, "group_norm", tutti_layer_group_norm(g, x, 2, NULL));
  tutti_graph_set_output(g, "instance_norm", tutti_layer_instance_norm(g, x, NULL));
  tutti_graph_set_output(g, "rms_norm", tutti_layer_rms_norm(g, x, NULL));
  if (mode != TUTTI_MODE_PREDICT) {
    const int64_t dims[] = {CHANNELS};
    const tutti_value w = tutti_graph_variable(g, "w", TUTTI_DTYPE_F32, dims, 1, "ones", 0, 1);
    const tutti_value logits = tutti_mul(g, tutti_layer_global_average_pool2d(g, x), w);
    const tutti_value y = tutti_graph_get_label(g, "y");
    tutti_graph_set_loss(g, *loss == 0   ? tutti_loss_softmax_cross_entropy(g, logits, y, NULL)
                            : *loss == 1 ? tutti_loss_sigmoid_cross_entropy(g, logits, y, NULL)
                                         : tutti_add(g, tutti_loss_l2_penalty(g, w, 0.25),
                                                     tutti_loss_mean_squared_error(g, logits, y, NULL)));
    tutti_optimizer_sgd(g, tutti_graph_constant(g, TUTTI_DTYPE_F32, 0), NULL);
  }
  return tutti_graph_check(g, err);
}

static tutti_dataset *make_dataset(void) {
  const int64_t image_dims[] = {ROWS, SIDE, SIDE, CHANNELS}, target_dims[] = {ROWS, CHANNELS};
  tutti_tensor *x = make_tensor(TUTTI_DTYPE_F32, 4, image_dims, image),
               *y = make_tensor(TUTTI_DTYPE_F32, 2, target_dims, target);
  tutti_pipeline *pipeline = NULL;
  tutti_dataset *dataset = NULL;
  assert_ok(tutti_pipeline_create(NULL, &pipeline, &err));
  tutti_pipeline_add_slices(pipeline, "x", TUTTI_ROLE_FEATURE, x);
  tutti_pipeline_add_slices(pipeline, "y", TUTTI_ROLE_LABEL, y);
  tutti_pipeline_batch(pipeline, 2, NULL);
  assert_ok(tutti_pipeline_build(pipeline, &dataset, &err));
  tutti_pipeline_unref(pipeline), tutti_tensor_unref(x), tutti_tensor_unref(y);
  return dataset;
}

static tutti_estimator *initialized(const tutti_dataset *dataset, int *loss) {
  tutti_estimator *estimator = NULL;
  assert_ok(tutti_estimator_create(NULL, model, loss, NULL, NULL, NULL, &estimator, &err));
  assert_ok(tutti_estimator_initialize(estimator, dataset, NULL, NULL, &err));
  return estimator;
}

/* expected(row, index) for each element of an output. */
static void check_output(const tutti_batch *batch, const char *name, int64_t elements, double (*expected)(int, int)) {
  const tutti_tensor *const tensor = tutti_batch_get_output(batch, name);
  assert_non_null(tensor);
  assert_int_equal(tutti_tensor_get_element_count(tensor), ROWS * elements);
  const float *const values = tutti_tensor_get_data(tensor);
  for (int i = 0; i < ROWS * elements; i++) {
    const double wanted = expected(i / (int)elements, i % (int)elements);
    if (!(fabs(values[i] - wanted) <= 2e-5 * (1 + fabs(wanted))))
      fail_msg("%s: element %d is %.9g, expected %.9g", name, i, (double)values[i], wanted);
  }
}

static double window_sum(int r, int y, int x, int size, int c) {
  double sum = 0;
  for (int dy = 0; dy < size; dy++)
    for (int dx = 0; dx < size; dx++)
      sum += image[r][y + dy][x + dx][c];
  return sum;
}

static double depthwise(int r, int i) {
  return window_sum(r, i / CHANNELS / INNER, i / CHANNELS % INNER, 3, i % CHANNELS);
}

static double separable(int r, int i) {
  double sum = 0;
  for (int c = 0; c < CHANNELS; c++)
    sum += window_sum(r, i / 2 / INNER, i / 2 % INNER, 3, c);
  return sum;
}

static double average(int r, int i) {
  return window_sum(r, 2 * (i / CHANNELS / 2), 2 * (i / CHANNELS % 2), 2, i % CHANNELS) / 4;
}

static double global_average(int r, int c) { return window_sum(r, 0, 0, SIDE, c) / PIXELS; }

static double global_max(int r, int c) {
  double most = -1e9;
  for (int i = 0; i < PIXELS; i++)
    most = fmax(most, image[r][i / SIDE][i % SIDE][c]);
  return most;
}

/* Groups of so many channels; the default epsilon. */
static double normalized(int r, int i, int width) {
  const int first = i % CHANNELS / width * width, count = width * PIXELS;
  double sum = 0, squares = 0;
  for (int k = 0; k < count; k++) {
    const double value = image[r][k / width / SIDE][k / width % SIDE][first + k % width];
    sum += value, squares += value * value;
  }
  const double mean = sum / count, variance = squares / count - mean * mean;
  return ((&image[r][0][0][0])[i] - mean) / sqrt(variance + 1e-5);
}

static double group_norm(int r, int i) { return normalized(r, i, 2); }

static double instance_norm(int r, int i) { return normalized(r, i, 1); }

static double rms_norm(int r, int i) {
  const float *const pixel = &(&image[r][0][0][0])[i / CHANNELS * CHANNELS];
  double squares = 0;
  for (int c = 0; c < CHANNELS; c++)
    squares += pixel[c] * (double)pixel[c];
  return pixel[i % CHANNELS] / sqrt(squares / CHANNELS + 1e-6);
}

static void test_layers(void **state) {
  (void)state;
  int loss = 0;
  tutti_dataset *dataset = make_dataset();
  tutti_estimator *estimator = initialized(dataset, &loss);
  tutti_predictor *predictor = NULL;
  tutti_batch *batch = NULL;
  assert_ok(tutti_predictor_from_estimator(estimator, NULL, &predictor, &err));
  assert_ok(tutti_predictor_run_all(predictor, dataset, NULL, &batch, &err));
  check_output(batch, "depthwise", INNER * INNER * CHANNELS, depthwise);
  check_output(batch, "separable", INNER * INNER * 2, separable);
  check_output(batch, "average", PIXELS / 4 * CHANNELS, average);
  check_output(batch, "global_average", CHANNELS, global_average);
  check_output(batch, "global_max", CHANNELS, global_max);
  check_output(batch, "group_norm", PIXELS * CHANNELS, group_norm);
  check_output(batch, "instance_norm", PIXELS * CHANNELS, instance_norm);
  check_output(batch, "rms_norm", PIXELS * CHANNELS, rms_norm);
  tutti_batch_unref(batch), tutti_predictor_unref(predictor), tutti_estimator_unref(estimator);
  tutti_dataset_unref(dataset);
}

static double expected_loss(int kind) {
  double total = 0;
  for (int r = 0; r < ROWS; r++) {
    double sum = 0, loss = 0;
    for (int c = 0; c < CHANNELS; c++)
      sum += exp(global_average(r, c));
    for (int c = 0; c < CHANNELS; c++) {
      const double x = global_average(r, c), y = target[r][c];
      loss += kind == 0   ? -y * (x - log(sum))
              : kind == 1 ? (fmax(x, 0) - x * y + log1p(exp(-fabs(x)))) / CHANNELS
                          : (x - y) * (x - y) / CHANNELS;
    }
    total += loss / ROWS;
  }
  return kind == 2 ? total + 0.25 * CHANNELS : total;
}

static void test_losses(void **state) {
  (void)state;
  for (int kind = 0; kind < 3; kind++) {
    tutti_dataset *dataset = make_dataset();
    tutti_estimator *estimator = initialized(dataset, &kind);
    tutti_result *result = NULL;
    assert_ok(tutti_estimator_evaluate(estimator, dataset, 0, NULL, &result, &err));
    assert_float_equal(tutti_result_get_loss(result), expected_loss(kind), 1e-5);
    tutti_result_unref(result), tutti_estimator_unref(estimator), tutti_dataset_unref(dataset);
  }
}

static int fill_once(void **state) {
  (void)state;
  fill();
  return 0;
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup(test_layers, fill_once),
    cmocka_unit_test_setup(test_losses, fill_once),
};
CAPI_TEST_MAIN(tests)
