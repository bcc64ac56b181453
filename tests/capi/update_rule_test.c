/* SPDX-License-Identifier: Apache-2.0
 * Rules of update of one's own, and groups of variables that are trained otherwise: on 1 to 3 replicas and in
 * micro-batches, against the same rules worked out here in double.
 *
 * usage: update_rule_test [PLUG-IN] */
#include <math.h>
#include <string.h>

#include "dense_fixtures.h"

enum { ROWS = 7, STEPS = 4 };
static const double rate = 0.3;

enum rule { ELEMENTS, NORMS, POSITIONS, MATRICES, RULES };

/* --- the rules in the model --------------------------------------------------------------------------------------- */

static tutti_value number(tutti_graph *g, double value) { return tutti_graph_constant(g, TUTTI_DTYPE_F32, value); }

static tutti_value norm(tutti_graph *g, tutti_value x) {
  return tutti_sqrt(g, tutti_reduce_sum(g, tutti_square(g, x), NULL));
}

/* Momentum whose steps shrink with the number of the update, faster and faster by a schedule from outside. */
static tutti_value by_elements(tutti_graph *g, const tutti_value p[], tutti_value schedule, tutti_value *velocity) {
  *velocity = tutti_add(g, tutti_mul(g, p[5], number(g, 0.8)), p[1]);
  const tutti_value decayed = tutti_add(g, *velocity, tutti_mul(g, p[3], p[0]));
  const tutti_value count = tutti_cast(g, p[4], TUTTI_DTYPE_F32);
  const tutti_value step = tutti_mul(g, tutti_div(g, p[2], count), tutti_mul(g, schedule, decayed));
  return tutti_sub(g, p[0], step);
}

static tutti_value by_norms(tutti_graph *g, const tutti_value p[], tutti_value *velocity) {
  *velocity = p[5];
  const tutti_value ratio = tutti_div(g, norm(g, p[0]), tutti_add(g, norm(g, p[1]), number(g, 0.01)));
  return tutti_sub(g, p[0], tutti_mul(g, tutti_mul(g, p[2], ratio), p[1]));
}

/* Steps by the softmax over all elements of a variable. */
static tutti_value by_positions(tutti_graph *g, const tutti_value p[], tutti_value *velocity) {
  *velocity = tutti_softmax(g, p[0], NULL);
  return tutti_sub(g, p[0], tutti_mul(g, p[2], tutti_mul(g, *velocity, p[1])));
}

/* w - rate * g, and of a matrix w - rate * g (wt w). */
static void set_matrix_rules(tutti_graph *g, tutti_update_rule_attrs attrs) {
  for (int matrices = 0; matrices < 2; matrices++) {
    tutti_value p[6];
    attrs.matrices = (uint8_t)matrices;
    tutti_begin_update_rule(g, tutti_schedule_constant(g, rate), &attrs, p, 6);
    tutti_value step = p[1];
    if (matrices)
      step = tutti_matmul(g, p[1], tutti_matmul(g, p[0], p[0], &(tutti_matmul_attrs){.transpose_a = 1}), NULL);
    const tutti_value results[] = {tutti_sub(g, p[0], tutti_mul(g, p[2], step)), p[5]};
    tutti_end_update_rule(g, results, 2);
  }
}

static void set_rule(tutti_graph *g, enum rule rule) {
  const double initial = 0.125;
  const tutti_update_rule_attrs attrs = {
      .slots = "velocity", .initial = &initial, .initial_count = 1, .weight_decay = 0.25};
  if (rule == MATRICES) {
    set_matrix_rules(g, attrs);
    return;
  }
  const tutti_value schedule = tutti_schedule_exponential(g, 1, 0.5, 1, NULL);
  tutti_value p[6], results[2];
  tutti_begin_update_rule(g, tutti_schedule_constant(g, rate), &attrs, p, 6);
  if (rule == ELEMENTS) results[0] = by_elements(g, p, schedule, &results[1]);
  if (rule == NORMS) results[0] = by_norms(g, p, &results[1]);
  if (rule == POSITIONS) results[0] = by_positions(g, p, &results[1]);
  tutti_end_update_rule(g, results, 2);
}

static int32_t ruled_model(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  build_dense(g, mode);
  if (mode == TUTTI_MODE_PREDICT) return tutti_graph_check(g, err);
  set_rule(g, *(const enum rule *)user);
  return tutti_graph_check(g, err);
}

/* --- what is expected --------------------------------------------------------------------------------------------- */

static double norm_of(const double *x, int count) {
  double sum = 0;
  for (int i = 0; i < count; i++)
    sum += x[i] * x[i];
  return sqrt(sum);
}

/* g (wt w) for the kernel [features, classes]. */
static void expect_steps(const double *w, const double *g, double *steps) {
  double square[DENSE_CLASSES][DENSE_CLASSES] = {{0}};
  for (int i = 0; i < DENSE_KERNEL; i++) {
    for (int k = 0; k < DENSE_CLASSES; k++)
      square[i % DENSE_CLASSES][k] += w[i] * w[i / DENSE_CLASSES * DENSE_CLASSES + k];
  }
  for (int i = 0; i < DENSE_KERNEL; i++) {
    steps[i] = 0;
    for (int k = 0; k < DENSE_CLASSES; k++)
      steps[i] += g[i / DENSE_CLASSES * DENSE_CLASSES + k] * square[k][i % DENSE_CLASSES];
  }
}

/* One update of one variable. */
static void expect_update(enum rule rule, double *w, const double *g, double *v, int count, int step) {
  double powers = 0, steps[DENSE_KERNEL];
  if (rule == MATRICES && count == DENSE_KERNEL) expect_steps(w, g, steps);
  const double ratio = norm_of(w, count) / (norm_of(g, count) + 0.01);
  for (int i = 0; i < count; i++)
    powers += exp(w[i]);
  for (int i = 0; i < count; i++) {
    if (rule == ELEMENTS) {
      v[i] = 0.8 * v[i] + g[i];
      w[i] -= rate / (step + 1) * pow(0.5, step) * (v[i] + 0.25 * w[i]);
    } else if (rule == NORMS) {
      w[i] -= rate * ratio * g[i];
    } else if (rule == MATRICES) {
      w[i] -= rate * (count == DENSE_KERNEL ? steps[i] : g[i]);
    } else {
      v[i] = exp(w[i]) / powers;
      w[i] -= rate * v[i] * g[i];
    }
  }
}

static void expect_rule(enum rule rule, double w[DENSE_PARAMETERS], double v[DENSE_PARAMETERS]) {
  for (int i = 0; i < DENSE_PARAMETERS; i++)
    v[i] = 0.125;
  for (int step = 0; step < STEPS; step++) {
    float now[DENSE_PARAMETERS];
    double gradient[DENSE_PARAMETERS];
    for (int i = 0; i < DENSE_PARAMETERS; i++)
      now[i] = (float)w[i];
    dense_gradient(now, step * ROWS, ROWS, gradient);
    expect_update(rule, w, gradient, v, DENSE_KERNEL, step);
    expect_update(rule, w + DENSE_KERNEL, gradient + DENSE_KERNEL, v + DENSE_KERNEL, DENSE_CLASSES, step);
  }
}

/* --- training ----------------------------------------------------------------------------------------------------- */

static const char *const variables[] = {"kernel", "bias"};
static const int sizes[] = {DENSE_KERNEL, DENSE_CLASSES};

/* The slot of both variables in one array. */
static void read_slot(tutti_estimator *estimator, const char *slot, float out[DENSE_PARAMETERS]) {
  for (int i = 0, at = 0; i < 2; at += sizes[i++]) {
    char name[64];
    tutti_tensor *value;
    snprintf(name, sizeof name, "%s/%s", variables[i], slot);
    assert_ok(tutti_estimator_read_variable(estimator, name, &value, &err));
    memcpy(out + at, tutti_tensor_get_data(value), sizeof(float) * (size_t)sizes[i]);
    tutti_tensor_unref(value);
  }
}

struct training {
  tutti_estimator *estimator;
  tutti_context *context;
  tutti_dataset *rows;
  double first[DENSE_PARAMETERS]; /* before the first step */
};

static struct training begin(tutti_model_fn model, void *user, int replicas, int micro_batches) {
  struct training t;
  char run[64];
  float first[DENSE_PARAMETERS];
  snprintf(run, sizeof run, "{\"accumulation_steps\": %d}", micro_batches);
  t.estimator = dense_estimator(model, user, replicas, run, &t.context);
  t.rows = dense_dataset(t.context, ROWS * STEPS, ROWS / micro_batches, 0);
  assert_ok(tutti_estimator_initialize(t.estimator, t.rows, NULL, NULL, &err));
  read_dense(t.estimator, first);
  for (int i = 0; i < DENSE_PARAMETERS; i++)
    t.first[i] = first[i];
  return t;
}

static void train(const struct training *t) {
  tutti_result *result;
  assert_ok(tutti_estimator_train(t->estimator, t->rows, NULL, NULL, NULL, &result, &err));
  assert_int_equal(tutti_result_get_step(result), STEPS);
  tutti_result_unref(result);
}

static void end(struct training *t) {
  tutti_estimator_unref(t->estimator);
  tutti_dataset_unref(t->rows);
  tutti_context_unref(t->context);
}

static void check_all(const float got[DENSE_PARAMETERS], const double wanted[DENSE_PARAMETERS], const char *what) {
  float expected[DENSE_PARAMETERS];
  for (int i = 0; i < DENSE_PARAMETERS; i++)
    expected[i] = (float)wanted[i];
  check_near(got, expected, DENSE_PARAMETERS, 2e-6f, what);
}

static void test_own_rules(void **state) {
  (void)state;
  for (enum rule rule = ELEMENTS; rule < RULES; rule++) {
    for (int replicas = 1; replicas <= 3; replicas++) {
      for (int micro_batches = 1; micro_batches <= ROWS; micro_batches += ROWS - 1) {
        struct training t = begin(ruled_model, &rule, replicas, micro_batches);
        double slots[DENSE_PARAMETERS];
        float got[DENSE_PARAMETERS];
        train(&t);
        expect_rule(rule, t.first, slots);
        read_dense(t.estimator, got);
        check_all(got, t.first, "weights");
        read_slot(t.estimator, "velocity", got);
        check_all(got, slots, "slots");
        end(&t);
      }
    }
  }
}

/* --- groups ------------------------------------------------------------------------------------------------------- */

/* What groups there are, and the optimizer by an op or by a rule. */
struct grouping {
  const char *pattern, *second;
  tutti_parameter_group_attrs attrs;
  double schedule; /* above 0: a learning rate of the group's own */
  int by_rule;
};

static const struct grouping groupings[] = {
    {"bias", NULL, {.without_decay = 1}, 0, 0}, {"k*", NULL, {.weight_decay = 0.5, .rate_factor = 0.25}, 0, 0},
    {"kern?l", "*", {.frozen = 1}, 0, 0},       {"*", NULL, {.rate_factor = 2}, 0.05, 0},
    {"bias", NULL, {.without_decay = 1}, 0, 1}, {"k*", NULL, {.weight_decay = 0.5, .rate_factor = 0.25}, 0, 1},
    {"kern?l", "*", {.frozen = 1}, 0, 1},       {"*", NULL, {.rate_factor = 2}, 0.05, 1},
};

static void set_group(tutti_graph *g, const struct grouping *grouping) {
  tutti_parameter_group_attrs attrs = grouping->attrs;
  attrs.has_rate_factor = attrs.rate_factor != 0;
  if (grouping->schedule > 0) attrs.learning_rate = tutti_schedule_constant(g, grouping->schedule);
  tutti_parameter_group(g, grouping->pattern, &attrs);
  /* Of variables that the first matches too, nothing. */
  if (grouping->second != NULL) tutti_parameter_group(g, grouping->second, NULL);
}

static int32_t grouped_model(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  const struct grouping *const grouping = user;
  if (mode != TUTTI_MODE_PREDICT && grouping->by_rule) set_group(g, grouping);
  build_dense(g, mode);
  if (mode == TUTTI_MODE_PREDICT) return tutti_graph_check(g, err);
  if (grouping->by_rule) {
    tutti_optimizer_adagrad(g, number(g, rate), &(tutti_optimizer_adagrad_attrs){.weight_decay = 0.125});
  } else {
    tutti_optimizer_sgd(g, number(g, rate), &(tutti_optimizer_sgd_attrs){.weight_decay = 0.125});
    set_group(g, grouping);
  }
  return tutti_graph_check(g, err);
}

static void expect_groups(const struct grouping *grouping, double w[DENSE_PARAMETERS]) {
  double sums[DENSE_PARAMETERS] = {0};
  for (int step = 0; step < STEPS; step++) {
    float now[DENSE_PARAMETERS];
    double gradient[DENSE_PARAMETERS];
    for (int i = 0; i < DENSE_PARAMETERS; i++)
      now[i] = (float)w[i];
    dense_gradient(now, step * ROWS, ROWS, gradient);
    for (int i = 0; i < DENSE_PARAMETERS; i++) {
      const int is_kernel = i < DENSE_KERNEL;
      const int is_in = strcmp(grouping->pattern, "*") == 0 || is_kernel == (grouping->pattern[0] == 'k');
      double decay = 0.125, speed = rate;
      if (is_in && grouping->schedule > 0) speed = grouping->schedule;
      if (is_in && grouping->attrs.rate_factor != 0) speed *= grouping->attrs.rate_factor;
      if (is_in && grouping->attrs.without_decay) decay = 0;
      if (is_in && grouping->attrs.weight_decay > 0) decay = grouping->attrs.weight_decay;
      if (is_in && grouping->attrs.frozen) continue;
      const double g = gradient[i] + decay * w[i];
      sums[i] += g * g;
      w[i] -= speed * (grouping->by_rule ? g / (sqrt(sums[i]) + 1e-10) : g);
    }
  }
}

static void test_groups(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof groupings / sizeof *groupings; i++) {
    for (int replicas = 1; replicas <= 3; replicas++) {
      struct grouping grouping = groupings[i];
      struct training t = begin(grouped_model, &grouping, replicas, 1);
      float got[DENSE_PARAMETERS];
      train(&t);
      expect_groups(&grouping, t.first);
      read_dense(t.estimator, got);
      check_all(got, t.first, grouping.pattern);
      assert_int_equal(tutti_estimator_get_trainable_count(t.estimator), grouping.attrs.frozen ? 1 : 2);
      end(&t);
    }
  }
}

/* --- mistakes ----------------------------------------------------------------------------------------------------- */

enum mistake {
  FEW_RESULTS,
  OTHER_SHAPE,
  ROWS_IN_RULE,
  TWICE,
  SAME_SLOT,
  NO_VARIABLE,
  HIDDEN_GROUP,
  NO_OPTIMIZER,
  HALF
};

static const char *const texts[] = {
    "its region has 1 results, expected 2: the new weight and each slot's new value",
    "result #0 is f32 [], expected f32 [elements]",
    "the rule of update depends on node",
    "the optimizer is set twice",
    "attribute 'slots': 'm, m'",
    "parameter group 'kernal' matches no trained variable, did you mean 'kernel'?",
    "parameter group 'bias': the variables that it matches all belong to groups before it",
    "there are parameter groups but there is no optimizer",
    "attribute 'dtype' is f16, expected f32 or f64",
};

static void make_mistake(tutti_graph *g, enum mistake mistake, const struct dense_model *dense) {
  tutti_update_rule_attrs attrs = {.slots = mistake == SAME_SLOT ? "m, m" : "m"};
  if (mistake == HALF) attrs.dtype = TUTTI_DTYPE_F16;
  if (mistake == NO_VARIABLE) tutti_parameter_group(g, "kernal", NULL);
  if (mistake == HIDDEN_GROUP || mistake == NO_OPTIMIZER) tutti_parameter_group(g, "*", NULL);
  if (mistake == HIDDEN_GROUP) tutti_parameter_group(g, "bias", NULL);
  if (mistake == NO_OPTIMIZER) return;
  if (mistake == NO_VARIABLE || mistake == HIDDEN_GROUP || mistake == TWICE)
    tutti_optimizer_adagrad(g, number(g, 1), NULL);
  tutti_value p[6];
  if (mistake == NO_VARIABLE || mistake == HIDDEN_GROUP) return;
  tutti_begin_update_rule(g, number(g, 1), &attrs, p, 6);
  tutti_value results[] = {p[0], p[5]};
  if (mistake == OTHER_SHAPE) results[0] = tutti_reduce_sum(g, p[0], NULL);
  if (mistake == ROWS_IN_RULE) results[0] = tutti_mul(g, p[0], tutti_reduce_mean(g, dense->logits, NULL));
  tutti_end_update_rule(g, results, mistake == FEW_RESULTS ? 1 : 2);
}

static int32_t mistaken_model(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  const struct dense_model dense = build_dense(g, mode);
  if (mode == TUTTI_MODE_PREDICT) return tutti_graph_check(g, err);
  make_mistake(g, *(const enum mistake *)user, &dense);
  return tutti_graph_check(g, err);
}

static void test_mistakes(void **state) {
  (void)state;
  for (enum mistake mistake = FEW_RESULTS; mistake <= HALF; mistake++) {
    tutti_context *context;
    tutti_result *result = NULL;
    tutti_estimator *estimator = dense_estimator(mistaken_model, &mistake, 1, "{}", &context);
    tutti_dataset *rows = dense_dataset(context, ROWS, ROWS, 0);
    const int32_t code = mistake == TWICE          ? TUTTI_ALREADY_EXISTS
                         : mistake == NO_VARIABLE  ? TUTTI_NOT_FOUND
                         : mistake == NO_OPTIMIZER ? TUTTI_FAILED_PRECONDITION
                                                   : TUTTI_INVALID_ARGUMENT;
    assert_error(code, texts[mistake], tutti_estimator_train(estimator, rows, NULL, NULL, NULL, &result, &err));
    tutti_estimator_unref(estimator);
    tutti_dataset_unref(rows);
    tutti_context_unref(context);
  }
}

int main(int count, char **arguments) {
  if (count > 1) dense_plugin = arguments[1];
  if (dense_plugin != NULL && is_missing(dense_plugin)) return TEST_IS_SKIPPED;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_own_rules),
      cmocka_unit_test(test_groups),
      cmocka_unit_test(test_mistakes),
  };
  return cmocka_run_group_tests(tests, remember_live_objects, assert_nothing_left);
}
