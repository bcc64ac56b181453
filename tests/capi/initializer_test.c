/* SPDX-License-Identifier: Apache-2.0
 * First values of variables by each initializer: exact ones as they are, random ones by their mean, variance and
 * bounds, against the formulas of Glorot and Bengio (2010), He et al. (2015), LeCun et al. (1998) and Saxe et al.
 * (2014). */
#include <math.h>
#include <string.h>

#include "capi_testing.h"

enum { IN = 96, OUT = 160, ELEMENTS = IN * OUT };

struct random {
  const char *text;
  double parameter, mean, variance, bound; /* bound: of |x - mean|; 0 = none */
};

static const double cut = 2 / 0.87962566103423978; /* of a truncated normal distribution, in its own deviations */

static double glorot(void) { return 2.0 / (IN + OUT); }

static void expect_all(struct random *r, int *count) {
  const struct random all[] = {
      {"random_normal", 0.25, 0, 0.0625, 0},
      {"random_normal(0.5, 3)", 0, 3, 0.25, 0},
      {"random_normal(mean=-2)", 0, -2, 0.0025, 0},
      {"truncated_normal(2)", 0, 0, 4 * 0.87962566103423978 * 0.87962566103423978, 4},
      {"random_uniform", 0.5, 0, 1.0 / 12, 0.5},
      {"random_uniform(0.5)", 0, 0, 1.0 / 12, 0.5},
      {"random_uniform(high=3, low=1)", 0, 2, 1.0 / 3, 1},
      {"glorot_uniform", 0, 0, glorot(), sqrt(3 * glorot())},
      {"glorot_normal", 0, 0, glorot(), cut * sqrt(glorot())},
      {"he_uniform", 0, 0, 2.0 / IN, sqrt(6.0 / IN)},
      {"he_normal", 0, 0, 2.0 / IN, cut * sqrt(2.0 / IN)},
      {"lecun_uniform", 0, 0, 1.0 / IN, sqrt(3.0 / IN)},
      {"lecun_normal", 0, 0, 1.0 / IN, cut * sqrt(1.0 / IN)},
      {"variance_scaling", 0, 0, 1.0 / IN, cut * sqrt(1.0 / IN)},
      {"variance_scaling(2, fan_out)", 0, 0, 2.0 / OUT, cut * sqrt(2.0 / OUT)},
      {"variance_scaling(scale=3, mode=fan_avg, distribution=uniform)", 0, 0, 6.0 / (IN + OUT),
       sqrt(18.0 / (IN + OUT))},
      {"variance_scaling(distribution = normal)", 0, 0, 1.0 / IN, 0},
  };
  *count = sizeof all / sizeof *all;
  memcpy(r, all, sizeof all);
}

static tutti_value variable(tutti_graph *g, const char *name, const int64_t *dims, int64_t rank, const char *text,
                            double parameter) {
  return tutti_graph_variable(g, name, TUTTI_DTYPE_F32, dims, rank, text, parameter, 1);
}

static const float given[] = {1.5f, -2, 0.25f, 7, 0, -0.125f};

/* Of a variable of one's own, and of one of a layer. */
static void set_given(tutti_graph *g) {
  const int64_t dims[] = {2, 3}, of_kernel[] = {4, 1};
  tutti_tensor *const values = make_tensor(TUTTI_DTYPE_F32, 2, dims, given);
  tutti_tensor *const kernel = make_tensor(TUTTI_DTYPE_F32, 2, of_kernel, given + 2);
  variable(g, "given", dims, 2, "glorot_uniform", 0);
  tutti_graph_set_initial_value(g, "given", values);
  tutti_graph_push_scope(g, "head");
  tutti_layer_dense(g, tutti_graph_get_feature(g, "x"), 1, NULL);
  tutti_graph_pop_scope(g);
  tutti_graph_set_initial_value(g, "head/dense/kernel", kernel);
  tutti_tensor_unref(values), tutti_tensor_unref(kernel);
}

static int32_t model(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  (void)user;
  const int64_t dims[] = {IN, OUT}, wide[] = {5, 12}, tall[] = {3, 2, 2, 4}, square[] = {3, 3};
  struct random randoms[32];
  int count;
  expect_all(randoms, &count);
  for (int i = 0; i < count; i++) {
    char name[16];
    snprintf(name, sizeof name, "random%d", i);
    variable(g, name, dims, 2, randoms[i].text, randoms[i].parameter);
  }
  variable(g, "wide", wide, 2, "orthogonal", 0);
  variable(g, "tall", tall, 4, "orthogonal(0.5)", 0);
  variable(g, "twice", square, 2, "orthogonal", 2);
  variable(g, "identity", wide, 2, "identity", 0);
  variable(g, "identity3", square, 2, "identity(3)", 0);
  variable(g, "seven", square, 2, "constant( 7 )", 0);
  set_given(g);
  const tutti_layer_dense_attrs weight = {.kernel_normalization = TUTTI_LAYER_DENSE_KERNEL_NORMALIZATION_WEIGHT_NORM};
  const tutti_layer_conv2d_attrs spectral = {
      .kernel_normalization = TUTTI_LAYER_CONV2D_KERNEL_NORMALIZATION_SPECTRAL_NORM, .groups = 2};
  tutti_graph_push_scope(g, "normalized");
  const tutti_value image = tutti_reshape(g, tutti_graph_get_feature(g, "x"), (int64_t[]){-1, 1, 1, 4}, 4);
  tutti_layer_dense(g, tutti_graph_get_feature(g, "x"), 3, &weight);
  tutti_layer_conv2d(g, image, 6, 3, &spectral);
  tutti_graph_pop_scope(g);
  tutti_graph_variable(g, "half", TUTTI_DTYPE_F16, square, 2, "ones", 0, 0);
  const tutti_layer_dense_attrs attrs = {.kernel_initializer = "identity(2)", .bias_initializer = "constant(0.5)"};
  const tutti_value y = tutti_layer_dense(g, tutti_graph_get_feature(g, "x"), 4, &attrs);
  tutti_graph_set_output(g, "y", y);
  if (mode == TUTTI_MODE_PREDICT) return tutti_graph_check(g, err);
  tutti_graph_set_loss(g, tutti_reduce_mean(g, y, NULL));
  tutti_optimizer_sgd(g, tutti_schedule_constant(g, 0), NULL);
  return tutti_graph_check(g, err);
}

static tutti_tensor *read(tutti_estimator *estimator, const char *name) {
  tutti_tensor *tensor;
  assert_ok(tutti_estimator_read_variable(estimator, name, &tensor, &err));
  return tensor;
}

static void check_random(const float *x, const struct random *r) {
  double sum = 0, squares = 0, largest = 0;
  for (int i = 0; i < ELEMENTS; i++) {
    sum += x[i];
    squares += (x[i] - r->mean) * (x[i] - r->mean);
    largest = fmax(largest, fabs(x[i] - r->mean));
  }
  const double mean = sum / ELEMENTS, variance = squares / ELEMENTS;
  /* Five standard errors; those of a variance are largest for the normal distribution. */
  if (!(fabs(mean - r->mean) <= 5 * sqrt(r->variance / ELEMENTS) &&
        fabs(variance / r->variance - 1) <= 5 * sqrt(2.0 / ELEMENTS)))
    fail_msg("%s: mean %g, variance %g, expected %g and %g", r->text, mean, variance, r->mean, r->variance);
  if (r->bound > 0 && !(largest <= r->bound * (1 + 1e-6) && largest > 0.99 * r->bound))
    fail_msg("%s: an element is %g from the mean, expected nearly %g", r->text, largest, r->bound);
}

/* Rows, or columns where there are fewer of them, are orthogonal and as long as the gain. */
static void check_orthogonal(tutti_estimator *estimator, const char *name, int rows, int columns, double gain) {
  tutti_tensor *const tensor = read(estimator, name);
  const float *const x = tutti_tensor_get_data(tensor);
  const int count = rows < columns ? rows : columns, length = rows < columns ? columns : rows;
  for (int a = 0; a < count; a++) {
    for (int b = 0; b < count; b++) {
      double product = 0;
      for (int i = 0; i < length; i++)
        product += rows < columns ? x[a * columns + i] * x[b * columns + i] : x[i * columns + a] * x[i * columns + b];
      assert_true(fabs(product - (a == b ? gain * gain : 0)) < 2e-6 * gain * gain);
    }
  }
  tutti_tensor_unref(tensor);
}

static void check_values(tutti_estimator *estimator, const char *name, int columns, double diagonal, double other) {
  tutti_tensor *const tensor = read(estimator, name);
  const float *const x = tutti_tensor_get_data(tensor);
  for (int i = 0; i < tutti_tensor_get_element_count(tensor); i++)
    assert_true(x[i] == (float)(i / columns == i % columns ? diagonal : other));
  tutti_tensor_unref(tensor);
}

static void check_given(tutti_estimator *estimator, const char *name, const float *expected, int count) {
  tutti_tensor *const tensor = read(estimator, name);
  assert_int_equal(tutti_tensor_get_element_count(tensor), count);
  assert_memory_equal(tutti_tensor_get_data(tensor), expected, sizeof(float) * (size_t)count);
  tutti_tensor_unref(tensor);
}

/* The scale of each unit is the norm of what it is multiplied with, so that the kernel is used as it is. */
static void check_scale(tutti_estimator *estimator) {
  tutti_tensor *const kernel = read(estimator, "normalized/dense/kernel");
  tutti_tensor *const scale = read(estimator, "normalized/dense/kernel_scale");
  const float *const v = tutti_tensor_get_data(kernel), *const g = tutti_tensor_get_data(scale);
  for (int unit = 0; unit < 3; unit++) {
    double sum = 0;
    for (int i = 0; i < 4; i++)
      sum += (double)v[i * 3 + unit] * v[i * 3 + unit];
    assert_true(sum > 0 && fabs(g[unit] - sqrt(sum)) < 1e-6);
  }
  tutti_tensor_unref(kernel), tutti_tensor_unref(scale);
}

/* Unit vectors of which the kernel, as a matrix, makes each other times one number, which is no smaller than the length
 * of what it makes of any other. */
static void check_singular(tutti_estimator *estimator) {
  enum { INPUTS = 9 * 2, UNITS = 6 };
  tutti_tensor *tensors[] = {read(estimator, "normalized/conv2d/kernel"),
                             read(estimator, "normalized/conv2d/kernel_left"),
                             read(estimator, "normalized/conv2d/kernel_right")};
  const float *const w = tutti_tensor_get_data(tensors[0]), *const left = tutti_tensor_get_data(tensors[1]);
  const float *const right = tutti_tensor_get_data(tensors[2]);
  assert_int_equal(tutti_tensor_get_element_count(tensors[1]), UNITS);
  assert_int_equal(tutti_tensor_get_element_count(tensors[2]), INPUTS);
  double largest = 0, length = 0;
  for (int i = 0; i < INPUTS * UNITS; i++)
    largest += (double)right[i / UNITS] * w[i] * left[i % UNITS];
  for (int unit = 0; unit < UNITS; unit++) {
    double made = 0, squares = 0;
    for (int i = 0; i < INPUTS; i++)
      made += (double)right[i] * w[i * UNITS + unit], squares += (double)w[i * UNITS + unit] * w[i * UNITS + unit];
    assert_true(fabs(made - largest * left[unit]) < 1e-3 * largest && largest > sqrt(squares));
    length += (double)left[unit] * left[unit];
  }
  assert_true(fabs(length - 1) < 1e-6);
  for (int i = 0; i < 3; i++)
    tutti_tensor_unref(tensors[i]);
}

static tutti_dataset *rows_of_four(void) {
  const float values[] = {1, 2, 3, 4};
  const int64_t dims[] = {1, 4};
  tutti_tensor *x = make_tensor(TUTTI_DTYPE_F32, 2, dims, values);
  tutti_pipeline *pipeline = NULL;
  tutti_dataset *dataset = NULL;
  assert_ok(tutti_pipeline_create(NULL, &pipeline, &err));
  tutti_pipeline_add_slices(pipeline, "x", TUTTI_ROLE_FEATURE, x);
  tutti_pipeline_batch(pipeline, 1, NULL);
  assert_ok(tutti_pipeline_build(pipeline, &dataset, &err));
  tutti_pipeline_unref(pipeline), tutti_tensor_unref(x);
  return dataset;
}

static void test_values(void **state) {
  (void)state;
  tutti_dataset *dataset = rows_of_four();
  tutti_estimator *estimator = NULL;
  assert_ok(tutti_estimator_create(NULL, model, NULL, NULL, NULL, NULL, &estimator, &err));
  assert_ok(tutti_estimator_initialize(estimator, dataset, NULL, NULL, &err));
  struct random randoms[32];
  int count;
  expect_all(randoms, &count);
  for (int i = 0; i < count; i++) {
    char name[16];
    snprintf(name, sizeof name, "random%d", i);
    tutti_tensor *const tensor = read(estimator, name);
    check_random(tutti_tensor_get_data(tensor), &randoms[i]);
    tutti_tensor_unref(tensor);
  }
  check_orthogonal(estimator, "wide", 5, 12, 1);
  check_orthogonal(estimator, "tall", 12, 4, 0.5);
  check_orthogonal(estimator, "twice", 3, 3, 2);
  check_values(estimator, "identity", 12, 1, 0);
  check_values(estimator, "identity3", 3, 3, 0);
  check_values(estimator, "seven", 3, 7, 7);
  check_values(estimator, "dense/kernel", 4, 2, 0);
  check_values(estimator, "dense/bias", 4, 0.5, 0.5);
  check_given(estimator, "given", given, 6);
  check_given(estimator, "head/dense/kernel", given + 2, 4);
  check_scale(estimator);
  check_singular(estimator);
  tutti_tensor *const half = read(estimator, "half");
  assert_int_equal(((const uint16_t *)tutti_tensor_get_data(half))[8], 0x3c00); /* 1 */
  tutti_tensor_unref(half);
  tutti_estimator_unref(estimator);
  tutti_dataset_unref(dataset);
}

struct mistake {
  const char *text, *error;
};

static const struct mistake mistakes[] = {
    {"orthogonl", "unknown initializer 'orthogonl', did you mean 'orthogonal'?"},
    {"zeros(1)", "initializer 'zeros(1)': expected zeros without arguments"},
    {"orthogonal(1, 2)", "initializer 'orthogonal(1, 2)': expected orthogonal(gain)"},
    {"orthogonal(gain=x)", "expected orthogonal(gain)"},
    {"orthogonal(1", "expected orthogonal(gain)"},
    {"random_normal(1, stddev=2)", "expected random_normal(stddev, mean)"},
    {"variance_scaling(1, fan_on)",
     "expected variance_scaling(scale, mode=fan_in|fan_out|fan_avg, "
     "distribution=truncated_normal|normal|uniform)"},
    {"constant(inf)", "expected constant(value)"},
    {"constant(1,)", "expected constant(value)"},
    {"", "unknown initializer ''"},
};

static int32_t mistaken(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  (void)mode;
  const tutti_layer_dense_attrs attrs = {.bias_initializer = ((const struct mistake *)user)->text};
  const int64_t length = 4;
  if (attrs.bias_initializer[0] == '\0')
    variable(g, "w", &length, 1, "", 0);
  else
    tutti_layer_dense(g, tutti_graph_get_feature(g, "x"), 4, &attrs);
  return tutti_graph_check(g, err);
}

static int32_t vector_model(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  const int64_t length = 4;
  const tutti_value w = variable(g, "w", &length, 1, user, 0);
  tutti_graph_set_output(g, "y", tutti_graph_get_feature(g, "x"));
  if (mode == TUTTI_MODE_PREDICT) return tutti_graph_check(g, err);
  tutti_graph_set_loss(g, tutti_reduce_mean(g, tutti_mul(g, tutti_graph_get_feature(g, "x"), w), NULL));
  tutti_optimizer_sgd(g, tutti_schedule_constant(g, 0), NULL);
  return tutti_graph_check(g, err);
}

static void check_mistake(tutti_model_fn function, void *user, const char *error) {
  tutti_dataset *dataset = rows_of_four();
  tutti_estimator *estimator = NULL;
  assert_ok(tutti_estimator_create(NULL, function, user, NULL, NULL, NULL, &estimator, &err));
  assert_error(TUTTI_INVALID_ARGUMENT, error, tutti_estimator_initialize(estimator, dataset, NULL, NULL, &err));
  tutti_estimator_unref(estimator);
  tutti_dataset_unref(dataset);
}

struct wrong_value {
  const char *variable;
  int32_t dtype;
  int64_t count;
};

static int32_t wrong_value(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  (void)mode;
  const struct wrong_value *const wrong = user;
  const int64_t dims = 3;
  variable(g, "three", &dims, 1, "zeros", 0);
  tutti_tensor *const value = make_vector(wrong->dtype, wrong->count, given);
  tutti_graph_set_initial_value(g, wrong->variable, value);
  tutti_tensor_unref(value);
  return tutti_graph_check(g, err);
}

static void check_wrong_value(struct wrong_value wrong, int32_t code, const char *error) {
  tutti_dataset *dataset = rows_of_four();
  tutti_estimator *estimator = NULL;
  assert_ok(tutti_estimator_create(NULL, wrong_value, &wrong, NULL, NULL, NULL, &estimator, &err));
  assert_error(code, error, tutti_estimator_initialize(estimator, dataset, NULL, NULL, &err));
  tutti_estimator_unref(estimator);
  tutti_dataset_unref(dataset);
}

static void test_mistakes(void **state) {
  (void)state;
  check_wrong_value((struct wrong_value){"thre", TUTTI_DTYPE_F32, 3}, TUTTI_NOT_FOUND, "did you mean 'three'");
  check_wrong_value((struct wrong_value){"three", TUTTI_DTYPE_F32, 2}, TUTTI_INVALID_ARGUMENT,
                    "'three' is f32 [2], the variable is f32 [3]");
  check_wrong_value((struct wrong_value){"three", TUTTI_DTYPE_I32, 3}, TUTTI_INVALID_ARGUMENT, "is i32 [3]");
  for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
    struct mistake mistake = mistakes[i];
    check_mistake(mistaken, &mistake, mistake.error);
  }
  check_mistake(vector_model, "identity", "initializer 'identity' and shape [4], expected two axes");
  check_mistake(vector_model, "orthogonal", "initializer 'orthogonal' and shape [4], expected two axes or more");
}

static const struct CMUnitTest tests[] = {cmocka_unit_test(test_values), cmocka_unit_test(test_mistakes)};
CAPI_TEST_MAIN(tests)
