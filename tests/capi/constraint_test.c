/* SPDX-License-Identifier: Apache-2.0
 * Constraints through the C interface where training does more than update a variable: averages of weights, a step that
 * is not made, other dtypes, frozen variables; and constraints that cannot be. golden_blocks_test.cc
 * compares updates of all kinds with Keras. */
#include <math.h>

#include "estimator_fixtures.h"

/* The variable pair [2, 1] begins with 3 and 4; the gradient of each is the mean of the rows' slopes, the rate 1. */
struct constrained {
  int32_t dtype;
  const char *constraint, *pattern;
  tutti_optimizer_sgd_attrs attrs;
  uint8_t frozen, twice;
};

static const struct {
  int32_t dtype;
  double precision;
  const void *values; /* 3 and 4 */
} dtypes[] = {
    {TUTTI_DTYPE_F32, 1e-6, (const float[]){3, 4}},
    {TUTTI_DTYPE_F64, 1e-12, (const double[]){3, 4}},
    {TUTTI_DTYPE_F16, 1e-3, (const uint16_t[]){0x4200, 0x4400}},
    {TUTTI_DTYPE_BF16, 1e-2, (const uint16_t[]){0x4040, 0x4080}},
};
enum { DTYPES = sizeof dtypes / sizeof *dtypes };

static tutti_value make_pair(tutti_graph *g, const struct constrained *one) {
  const int64_t dims[] = {2, 1};
  const tutti_value pair = tutti_graph_variable(g, "pair", one->dtype, dims, 2, "zeros", 0, 1);
  for (int i = 0; i < DTYPES; i++) {
    if (dtypes[i].dtype != one->dtype) continue;
    tutti_tensor *const values = make_tensor(one->dtype, 2, dims, dtypes[i].values);
    tutti_graph_set_initial_value(g, "pair", values);
    tutti_tensor_unref(values);
  }
  return pair;
}

static int32_t pair_model(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  const struct constrained *one = user;
  const tutti_value slope = tutti_graph_get_feature(g, "slope");
  const tutti_value sum = tutti_reduce_sum(g, tutti_cast(g, make_pair(g, one), TUTTI_DTYPE_F32), NULL);
  tutti_graph_set_output(g, "y", tutti_mul(g, slope, sum));
  if (mode == TUTTI_MODE_PREDICT) return tutti_graph_check(g, err);
  tutti_graph_set_loss(g, tutti_reduce_mean(g, tutti_mul(g, slope, sum), NULL));
  if (one->constraint != NULL) tutti_parameter_constraint(g, one->pattern, one->constraint);
  if (one->twice) tutti_parameter_constraint(g, "pa*", "non_negative");
  const tutti_parameter_group_attrs frozen = {.frozen = 1};
  if (one->frozen) tutti_parameter_group(g, "pair", &frozen);
  tutti_optimizer_sgd(g, tutti_schedule_constant(g, 1), &one->attrs);
  return tutti_graph_check(g, err);
}

/* Steps of four rows with these slopes. */
static tutti_dataset *slopes_dataset(tutti_context *context, const float *slopes, int64_t steps) {
  float rows[16];
  for (int64_t i = 0; i < 4 * steps; i++)
    rows[i] = slopes[i / 4];
  tutti_tensor *const values = make_vector(TUTTI_DTYPE_F32, 4 * steps, rows);
  tutti_pipeline *pipeline = NULL;
  tutti_dataset *dataset = NULL;
  assert_ok(tutti_pipeline_create(context, &pipeline, &err));
  tutti_pipeline_add_slices(pipeline, "slope", TUTTI_ROLE_FEATURE, values);
  tutti_pipeline_batch(pipeline, 4, NULL);
  assert_ok(tutti_pipeline_build(pipeline, &dataset, &err));
  tutti_pipeline_unref(pipeline), tutti_tensor_unref(values);
  return dataset;
}

struct trained {
  tutti_context *context;
  tutti_estimator *estimator;
};

static struct trained begin(int devices, struct constrained *one) {
  struct trained made = {0};
  char json[64];
  snprintf(json, sizeof json, "{\"logical_devices\": %d}", devices);
  tutti_options *options = make_options("context", json);
  tutti_strategy *strategy = NULL;
  assert_ok(tutti_context_create(options, &made.context, &err));
  assert_ok(tutti_strategy_create_mirrored(made.context, NULL, 0, &strategy, &err));
  assert_ok(tutti_estimator_create(made.context, pair_model, one, NULL, strategy, NULL, &made.estimator, &err));
  tutti_options_unref(options), tutti_strategy_unref(strategy);
  return made;
}

static void end(struct trained made) { tutti_estimator_unref(made.estimator), tutti_context_unref(made.context); }

static void check_pair(tutti_estimator *estimator, const char *name, double first, double second, double precision) {
  tutti_tensor *tensor = NULL;
  assert_ok(tutti_estimator_read_variable(estimator, name, &tensor, &err));
  const int32_t dtype = tutti_tensor_get_dtype(tensor);
  const void *const data = tutti_tensor_get_data(tensor);
  double got[2];
  for (int i = 0; i < 2; i++) {
    const uint16_t bits = dtype == TUTTI_DTYPE_F32 || dtype == TUTTI_DTYPE_F64 ? 0 : ((const uint16_t *)data)[i];
    const double sign = bits >> 15 != 0 ? -1 : 1;
    const double half = sign * ldexp(1 + (bits & 0x3ff) / 1024.0, ((bits >> 10) & 31) - 15);
    const double brain = sign * ldexp(1 + (bits & 0x7f) / 128.0, ((bits >> 7) & 255) - 127);
    got[i] = dtype == TUTTI_DTYPE_F32   ? ((const float *)data)[i]
             : dtype == TUTTI_DTYPE_F64 ? ((const double *)data)[i]
             : bits == 0                ? 0
             : dtype == TUTTI_DTYPE_F16 ? half
                                        : brain;
  }
  if (!(fabs(got[0] - first) <= precision && fabs(got[1] - second) <= precision))
    fail_msg("%s is %.9g and %.9g, expected %.9g and %.9g", name, got[0], got[1], first, second);
  tutti_tensor_unref(tensor);
}

static void train_slopes(struct trained made, const float *slopes, int64_t steps) {
  tutti_dataset *const dataset = slopes_dataset(made.context, slopes, steps);
  train(made.estimator, dataset, NULL);
  tutti_dataset_unref(dataset);
}

/* --- what is trained ---------------------------------------------------------------------------------------------- */

/* As Keras has it. */
static void limit_norm(double pair[2], double limit) {
  const double norm = hypot(pair[0], pair[1]), factor = fmin(norm, limit) / (norm + 1e-7);
  pair[0] *= factor, pair[1] *= factor;
}

static void test_dtypes(void **state) {
  (void)state;
  for (int i = 0; i < DTYPES; i++) {
    for (int devices = 1; devices <= 3; devices++) {
      struct constrained one = {.dtype = dtypes[i].dtype, .constraint = "max_norm(2.5)", .pattern = "pair"};
      struct trained made = begin(devices, &one);
      double expected[] = {3, 4};
      for (int step = 0; step < 3; step++) {
        const float slope = 0.75f * (float)step;
        train_slopes(made, &slope, 1);
        expected[0] -= slope, expected[1] -= slope;
        limit_norm(expected, 2.5);
        check_pair(made.estimator, "pair", expected[0], expected[1], dtypes[i].precision);
      }
      end(made);
      one.constraint = "non_negative";
      made = begin(devices, &one);
      train_slopes(made, (const float[]){3.5}, 1);
      check_pair(made.estimator, "pair", 0, 0.5, dtypes[i].precision);
      end(made);
    }
  }
}

/* Averages follow the weights that have been kept to the constraint. */
static void test_averages(void **state) {
  (void)state;
  for (int devices = 1; devices <= 3; devices++) {
    struct constrained one = {
        .dtype = TUTTI_DTYPE_F32, .constraint = "unit_norm", .pattern = "*", .attrs = {.average_decay = 0.5}};
    struct trained made = begin(devices, &one);
    train_slopes(made, (const float[]){0}, 1);
    check_pair(made.estimator, "pair", 0.6, 0.8, 1e-6);
    check_pair(made.estimator, "pair/average", (3 + 0.6) / 2, (4 + 0.8) / 2, 1e-6);
    end(made);
  }
}

/* A step whose loss is not finite changes nothing: not even weights that are not within the limit. */
static void test_steps_that_are_not_made(void **state) {
  (void)state;
  for (int devices = 1; devices <= 3; devices++) {
    struct constrained one = {.dtype = TUTTI_DTYPE_F32, .constraint = "max_norm(1)", .pattern = "pair"};
    struct trained made = begin(devices, &one);
    tutti_dataset *const dataset = slopes_dataset(made.context, (const float[]){(float)NAN}, 1);
    tutti_result *result = NULL;
    assert_error(TUTTI_OUT_OF_RANGE, "not finite",
                 tutti_estimator_train(made.estimator, dataset, NULL, NULL, NULL, &result, &err));
    check_pair(made.estimator, "pair", 3, 4, 0);
    tutti_dataset_unref(dataset);
    train_slopes(made, (const float[]){0}, 1);
    check_pair(made.estimator, "pair", 0.6, 0.8, 1e-6);
    end(made);
  }
}

/* Weights that are not trained stay as they are. */
static void test_frozen(void **state) {
  (void)state;
  struct constrained one = {.dtype = TUTTI_DTYPE_F32, .constraint = "max_norm(1)", .pattern = "pair", .frozen = 1};
  struct trained made = begin(2, &one);
  tutti_dataset *const dataset = slopes_dataset(made.context, (const float[]){1}, 1);
  assert_ok(tutti_estimator_initialize(made.estimator, dataset, NULL, NULL, &err));
  tutti_dataset_unref(dataset);
  check_pair(made.estimator, "pair", 3, 4, 0);
  end(made);
}

/* --- what cannot be ----------------------------------------------------------------------------------------------- */

static void check_refused(struct constrained one, int32_t code, const char *needle) {
  struct trained made = begin(1, &one);
  tutti_dataset *const dataset = slopes_dataset(made.context, (const float[]){1}, 1);
  assert_error(code, needle, tutti_estimator_initialize(made.estimator, dataset, NULL, NULL, &err));
  tutti_dataset_unref(dataset);
  end(made);
}

static void test_mistakes(void **state) {
  (void)state;
  const struct {
    const char *constraint, *pattern, *needle;
    int32_t code;
  } wrong[] = {
      {"max_nrom", "pair", "max_norm", TUTTI_INVALID_ARGUMENT},
      {"max_norm(0)", "pair", "limit above 0", TUTTI_INVALID_ARGUMENT},
      {"max_norm(inf)", "pair", "limit above 0", TUTTI_INVALID_ARGUMENT},
      {"max_norm(1, 2)", "pair", "max_norm(limit, axes)", TUTTI_INVALID_ARGUMENT},
      {"max_norm(1,)", "pair", "max_norm(limit, axes)", TUTTI_INVALID_ARGUMENT},
      {"unit_norm(1)", "pair", "unit_norm(axes)", TUTTI_INVALID_ARGUMENT},
      {"unit_norm(axes=)", "pair", "unit_norm(axes)", TUTTI_INVALID_ARGUMENT},
      {"unit_norm(axes=2)", "pair", "axis 2 of a variable with 2 axes", TUTTI_INVALID_ARGUMENT},
      {"unit_norm(axes=0 -2)", "pair", "axis -2", TUTTI_INVALID_ARGUMENT},
      {"non_negative(1)", "pair", "non_negative without arguments", TUTTI_INVALID_ARGUMENT},
      {"non_negative", "pear", "pair", TUTTI_NOT_FOUND},
      {"non_negative", "", "empty", TUTTI_INVALID_ARGUMENT},
  };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    check_refused(
        (struct constrained){.dtype = TUTTI_DTYPE_F32, .constraint = wrong[i].constraint, .pattern = wrong[i].pattern},
        wrong[i].code, wrong[i].needle);
  }
  check_refused(
      (struct constrained){.dtype = TUTTI_DTYPE_F32, .constraint = "unit_norm", .pattern = "pair", .twice = 1},
      TUTTI_ALREADY_EXISTS, "'unit_norm' already");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_dtypes), cmocka_unit_test(test_averages), cmocka_unit_test(test_steps_that_are_not_made),
    cmocka_unit_test(test_frozen), cmocka_unit_test(test_mistakes),
};
CAPI_TEST_MAIN(tests)
