/* SPDX-License-Identifier: Apache-2.0
 * Slots that have a value for each row or column of a matrix: those of Adafactor, and of rules of one's own against the
 * same rules worked out here in double; what they take of memory, and training that goes on from a checkpoint.
 *
 * usage: adafactor_test [PLUG-IN] */
#include <math.h>
#include <string.h>

#include "dense_fixtures.h"

enum { ROWS = 7, STEPS = 4, TABLE_ROWS = 1000, TABLE_COLUMNS = 500 };
static const double rate = 0.3;

static tutti_value number(tutti_graph *g, double value) { return tutti_graph_constant(g, TUTTI_DTYPE_F32, value); }

/* --- a rule of one's own ------------------------------------------------------------------------------------------ */

/* With one more axis there, of length 1. */
static tutti_value with_axis(tutti_graph *g, tutti_value x, int64_t axis) {
  return tutti_stack(g, &x, 1, &(tutti_stack_attrs){.axis = axis});
}

/* Half of what was and the new one. */
static tutti_value follow(tutti_graph *g, tutti_value old, tutti_value now) {
  return tutti_add(g, tutti_mul(g, number(g, 0.5), old), now);
}

/* v = v / 2 + g g; w = w - rate g / (0.1 + v) */
static void of_vectors(tutti_graph *g) {
  tutti_value p[6];
  const tutti_update_rule_attrs attrs = {.slots = "squares"};
  tutti_begin_update_rule(g, tutti_schedule_constant(g, rate), &attrs, p, 6);
  const tutti_value squares = follow(g, p[5], tutti_square(g, p[1]));
  const tutti_value step = tutti_div(g, p[1], tutti_add(g, number(g, 0.1), squares));
  const tutti_value results[] = {tutti_sub(g, p[0], tutti_mul(g, p[2], step)), squares};
  tutti_end_update_rule(g, results, 2);
}

/* r = r / 2 + mean of g g along a row, c = c / 2 + sum of g along a column; w = w - rate g r / (0.1 + c c) */
static void of_matrices(tutti_graph *g) {
  tutti_value p[7];
  const double initial[] = {0.25, 0.5};
  const tutti_update_rule_attrs attrs = {
      .slots = "rows, columns", .slots_per = "row, column", .initial = initial, .initial_count = 2, .stacks = 1};
  tutti_begin_update_rule(g, tutti_schedule_constant(g, rate), &attrs, p, 7);
  const int64_t row_axis = 1, column_axis = 2;
  const tutti_reduce_mean_attrs along_rows = {.axes = &column_axis, .axes_count = 1};
  const tutti_reduce_sum_attrs along_columns = {.axes = &row_axis, .axes_count = 1};
  const tutti_value rows = follow(g, p[5], tutti_reduce_mean(g, tutti_square(g, p[1]), &along_rows));
  const tutti_value columns = follow(g, p[6], tutti_reduce_sum(g, p[1], &along_columns));
  const tutti_value divisor = tutti_add(g, number(g, 0.1), tutti_square(g, with_axis(g, columns, 1)));
  const tutti_value step = tutti_div(g, tutti_mul(g, p[1], with_axis(g, rows, 2)), divisor);
  const tutti_value results[] = {tutti_sub(g, p[0], tutti_mul(g, p[2], step)), rows, columns};
  tutti_end_update_rule(g, results, 3);
}

static int32_t ruled_model(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  (void)user;
  build_dense(g, mode);
  if (mode == TUTTI_MODE_PREDICT) return tutti_graph_check(g, err);
  of_vectors(g);
  of_matrices(g);
  return tutti_graph_check(g, err);
}

struct kept {
  double rows[DENSE_FEATURES], columns[DENSE_CLASSES], squares[DENSE_CLASSES];
};

static void expect_kernel(double *w, const double *g, struct kept *kept) {
  for (int i = 0; i < DENSE_FEATURES; i++)
    kept->rows[i] /= 2;
  for (int j = 0; j < DENSE_CLASSES; j++)
    kept->columns[j] /= 2;
  for (int i = 0; i < DENSE_KERNEL; i++) {
    kept->rows[i / DENSE_CLASSES] += g[i] * g[i] / DENSE_CLASSES;
    kept->columns[i % DENSE_CLASSES] += g[i];
  }
  for (int i = 0; i < DENSE_KERNEL; i++) {
    const double of_column = kept->columns[i % DENSE_CLASSES];
    w[i] -= rate * g[i] * kept->rows[i / DENSE_CLASSES] / (0.1 + of_column * of_column);
  }
}

static void expect_training(double w[DENSE_PARAMETERS], struct kept *kept) {
  memset(kept, 0, sizeof *kept);
  for (int i = 0; i < DENSE_FEATURES; i++)
    kept->rows[i] = 0.25;
  for (int j = 0; j < DENSE_CLASSES; j++)
    kept->columns[j] = 0.5;
  for (int step = 0; step < STEPS; step++) {
    float now[DENSE_PARAMETERS];
    double gradient[DENSE_PARAMETERS];
    for (int i = 0; i < DENSE_PARAMETERS; i++)
      now[i] = (float)w[i];
    dense_gradient(now, step * ROWS, ROWS, gradient);
    expect_kernel(w, gradient, kept);
    for (int j = 0; j < DENSE_CLASSES; j++) {
      const double g = gradient[DENSE_KERNEL + j];
      kept->squares[j] = kept->squares[j] / 2 + g * g;
      w[DENSE_KERNEL + j] -= rate * g / (0.1 + kept->squares[j]);
    }
  }
}

static void check_slot(tutti_estimator *estimator, const char *name, const double *wanted, int64_t count) {
  tutti_tensor *value;
  float expected[DENSE_PARAMETERS];
  assert_ok(tutti_estimator_read_variable(estimator, name, &value, &err));
  assert_int_equal(tutti_tensor_get_rank(value), 1);
  assert_int_equal(tutti_tensor_get_dim(value, 0), count);
  for (int64_t i = 0; i < count; i++)
    expected[i] = (float)wanted[i];
  check_near(tutti_tensor_get_data(value), expected, count, 2e-6f, name);
  tutti_tensor_unref(value);
}

static void check_own_rule(int replicas, int micro_batches) {
  char run[64];
  float got[DENSE_PARAMETERS], wanted[DENSE_PARAMETERS];
  double expected[DENSE_PARAMETERS];
  tutti_context *context;
  snprintf(run, sizeof run, "{\"accumulation_steps\": %d}", micro_batches);
  tutti_estimator *estimator = dense_estimator(ruled_model, NULL, replicas, run, &context);
  tutti_dataset *rows = dense_dataset(context, ROWS * STEPS, ROWS / micro_batches, 0);
  assert_ok(tutti_estimator_initialize(estimator, rows, NULL, NULL, &err));
  read_dense(estimator, got);
  for (int i = 0; i < DENSE_PARAMETERS; i++)
    expected[i] = got[i];
  assert_ok(tutti_estimator_train(estimator, rows, NULL, NULL, NULL, NULL, &err));
  struct kept kept;
  expect_training(expected, &kept);
  for (int i = 0; i < DENSE_PARAMETERS; i++)
    wanted[i] = (float)expected[i];
  read_dense(estimator, got);
  check_near(got, wanted, DENSE_PARAMETERS, 2e-6f, "weights");
  check_slot(estimator, "kernel/rows", kept.rows, DENSE_FEATURES);
  check_slot(estimator, "kernel/columns", kept.columns, DENSE_CLASSES);
  check_slot(estimator, "bias/squares", kept.squares, DENSE_CLASSES);
  tutti_estimator_unref(estimator);
  tutti_dataset_unref(rows);
  tutti_context_unref(context);
}

static void test_own_rule_with_rows_and_columns(void **state) {
  (void)state;
  for (int replicas = 1; replicas <= 3; replicas++) {
    check_own_rule(replicas, 1);
    check_own_rule(replicas, ROWS);
  }
}

/* --- constraints -------------------------------------------------------------------------------------------------- */

static int32_t constrained_model(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  (void)user;
  build_dense(g, mode);
  if (mode == TUTTI_MODE_PREDICT) return tutti_graph_check(g, err);
  tutti_parameter_constraint(g, "kernel", "unit_norm");
  tutti_optimizer_adafactor(g, number(g, rate), NULL);
  return tutti_graph_check(g, err);
}

static void train_constrained(int replicas, float weights[DENSE_PARAMETERS]) {
  tutti_context *context;
  tutti_estimator *estimator = dense_estimator(constrained_model, NULL, replicas, "{\"seed\": 3}", &context);
  tutti_dataset *rows = dense_dataset(context, ROWS * STEPS, ROWS, 0);
  assert_ok(tutti_estimator_train(estimator, rows, NULL, NULL, NULL, NULL, &err));
  read_dense(estimator, weights);
  tutti_estimator_unref(estimator);
  tutti_dataset_unref(rows);
  tutti_context_unref(context);
}

/* Columns of a variable that one of several replicas has. */
static void test_constrained_variables(void **state) {
  (void)state;
  float alone[DENSE_PARAMETERS], got[DENSE_PARAMETERS];
  train_constrained(1, alone);
  for (int j = 0; j < DENSE_CLASSES; j++) {
    double sum = 0;
    for (int i = j; i < DENSE_KERNEL; i += DENSE_CLASSES)
      sum += (double)alone[i] * alone[i];
    if (fabs(sum - 1) > 1e-5) fail_msg("the square of the norm of column %d is %g, expected 1", j, sum);
  }
  for (int replicas = 2; replicas <= 3; replicas++) {
    train_constrained(replicas, got);
    check_near(got, alone, DENSE_PARAMETERS, 2e-6f, "constrained weights");
  }
}

/* --- memory ------------------------------------------------------------------------------------------------------- */

/* A kernel [4, 2], and a table [1000, 500] whose values are to be small. */
static int32_t large_model(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  const int64_t dims[] = {TABLE_ROWS, TABLE_COLUMNS}, kernel_dims[] = {DENSE_FEATURES, DENSE_CLASSES};
  const tutti_value table = tutti_graph_variable(g, "table", TUTTI_DTYPE_F32, dims, 2, "ones", 0, 1);
  const tutti_value kernel = tutti_graph_variable(g, "kernel", TUTTI_DTYPE_F32, kernel_dims, 2, "ones", 0, 1);
  const tutti_value z = tutti_matmul(g, tutti_graph_get_feature(g, "x"), kernel, NULL);
  tutti_graph_set_output(g, "z", z);
  if (mode == TUTTI_MODE_PREDICT) return tutti_graph_check(g, err);
  const tutti_value loss = tutti_reduce_mean(g, tutti_square(g, z), NULL);
  tutti_graph_set_loss(g, tutti_add(g, loss, tutti_reduce_mean(g, tutti_square(g, table), NULL)));
  if (*(const int *)user) tutti_parameter_group(g, "table", &(tutti_parameter_group_attrs){.as_vectors = 1});
  tutti_optimizer_adafactor(g, number(g, rate), NULL);
  return tutti_graph_check(g, err);
}

/* The bytes of the slots of the first device; elements of the table's slots, one of which may be missing. */
static int64_t slot_bytes(int as_vectors, int replicas, int64_t elements[3]) {
  static const char *const names[] = {"table/row_moment", "table/column_moment", "table/second_moment"};
  tutti_context *context;
  const char *text = NULL;
  long long bytes = -1;
  tutti_estimator *estimator = dense_estimator(large_model, &as_vectors, replicas, "{}", &context);
  tutti_dataset *rows = dense_dataset(context, ROWS, ROWS, 0);
  assert_ok(tutti_estimator_estimate_memory(estimator, rows, ROWS, &text, &err));
  assert_int_equal(sscanf(strstr(text, "\"slots\":"), "\"slots\":%lld", &bytes), 1);
  assert_ok(tutti_estimator_train(estimator, rows, NULL, NULL, NULL, NULL, &err));
  for (int i = 0; i < 3; i++) {
    tutti_tensor *value = NULL;
    tutti_error *err = NULL;
    elements[i] = 0;
    if (tutti_estimator_read_variable(estimator, names[i], &value, &err) == TUTTI_OK) {
      elements[i] = tutti_tensor_get_size_bytes(value) / (int64_t)sizeof(float);
      tutti_tensor_unref(value);
    } else {
      assert_int_equal(tutti_error_get_code(err), TUTTI_NOT_FOUND);
      tutti_error_unref(err);
    }
  }
  tutti_estimator_unref(estimator);
  tutti_dataset_unref(rows);
  tutti_context_unref(context);
  return bytes;
}

static void test_memory_of_a_matrix_is_its_rows_and_columns(void **state) {
  (void)state;
  enum { ROOM = 16384 }; /* the other variables, and gaps between all of them */
  const int64_t full = (int64_t)sizeof(float) * TABLE_ROWS * TABLE_COLUMNS,
                factored = (int64_t)sizeof(float) * (TABLE_ROWS + TABLE_COLUMNS);
  for (int replicas = 1; replicas <= 2; replicas++) {
    int64_t elements[3];
    int64_t bytes = slot_bytes(0, replicas, elements);
    assert_int_equal(elements[0], TABLE_ROWS);
    assert_int_equal(elements[1], TABLE_COLUMNS);
    assert_int_equal(elements[2], 0);
    assert_in_range(bytes, factored, factored + ROOM);
    bytes = slot_bytes(1, replicas, elements);
    assert_int_equal(elements[0], 0);
    assert_int_equal(elements[1], 0);
    assert_int_equal(elements[2], TABLE_ROWS * TABLE_COLUMNS);
    assert_in_range(bytes, full, full + ROOM);
  }
}

/* --- checkpoints -------------------------------------------------------------------------------------------------- */

enum optimizer { ADAFACTOR, OTHER_SHAPE };

/* Adafactor with averages; or a rule that has slots of the same names for each element. */
static int32_t saved_model(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  build_dense(g, mode);
  if (mode == TUTTI_MODE_PREDICT) return tutti_graph_check(g, err);
  if (*(const enum optimizer *)user == ADAFACTOR) {
    const tutti_optimizer_adafactor_attrs attrs = {.weight_decay = 0.1, .average_decay = 0.9};
    tutti_optimizer_adafactor(g, number(g, rate), &attrs);
    return tutti_graph_check(g, err);
  }
  tutti_value p[6];
  tutti_begin_update_rule(g, number(g, rate), &(tutti_update_rule_attrs){.slots = "row_moment"}, p, 6);
  const tutti_value results[] = {p[0], p[5]};
  tutti_end_update_rule(g, results, 2);
  return tutti_graph_check(g, err);
}

struct state {
  float weights[DENSE_PARAMETERS], rows[DENSE_FEATURES], columns[DENSE_CLASSES], moment[DENSE_CLASSES],
      average[DENSE_KERNEL];
};

static void read_values(tutti_estimator *estimator, const char *name, float *out, int64_t bytes) {
  tutti_tensor *value;
  assert_ok(tutti_estimator_read_variable(estimator, name, &value, &err));
  assert_int_equal(tutti_tensor_get_size_bytes(value), bytes);
  memcpy(out, tutti_tensor_get_data(value), (size_t)bytes);
  tutti_tensor_unref(value);
}

static int32_t train_to(int64_t step, enum optimizer optimizer, int replicas, const char *directory,
                        struct state *state, tutti_error **error) {
  char run[160];
  tutti_context *context;
  snprintf(run, sizeof run, "{\"model_dir\": \"%s\", \"seed\": 4, \"determinism\": \"repeatable\"}", directory);
  tutti_estimator *estimator = dense_estimator(saved_model, &optimizer, replicas, run, &context);
  tutti_dataset *rows = dense_dataset(context, 90, 11, 1);
  tutti_options *options = NULL;
  assert_ok(tutti_options_create("train", &options, &err));
  tutti_options_set_i64(options, "max_steps", step);
  const int32_t code = tutti_estimator_train(estimator, rows, options, NULL, NULL, NULL, error);
  if (code == TUTTI_OK) {
    memset(state, 0, sizeof *state);
    read_dense(estimator, state->weights);
    read_values(estimator, "kernel/row_moment", state->rows, sizeof state->rows);
    read_values(estimator, "kernel/column_moment", state->columns, sizeof state->columns);
    read_values(estimator, "bias/second_moment", state->moment, sizeof state->moment);
    read_values(estimator, "kernel/average", state->average, sizeof state->average);
  }
  tutti_options_unref(options);
  tutti_estimator_unref(estimator);
  tutti_dataset_unref(rows);
  tutti_context_unref(context);
  return code;
}

static void check_same(const struct state *got, const struct state *wanted, float tolerance) {
  check_near(got->weights, wanted->weights, DENSE_PARAMETERS, tolerance, "weights");
  check_near(got->rows, wanted->rows, DENSE_FEATURES, tolerance, "kernel/row_moment");
  check_near(got->columns, wanted->columns, DENSE_CLASSES, tolerance, "kernel/column_moment");
  check_near(got->moment, wanted->moment, DENSE_CLASSES, tolerance, "bias/second_moment");
  check_near(got->average, wanted->average, DENSE_KERNEL, tolerance, "kernel/average");
}

static void test_training_goes_on_from_a_checkpoint(void **state) {
  (void)state;
  static const int pieces[][3] = {{1, 1, 1}, {2, 2, 2}, {3, 3, 3}, {3, 1, 2}};
  struct state wanted, got;
  for (int i = 0; i < 4; i++) {
    char whole[64], directory[64];
    make_directory(whole), make_directory(directory);
    assert_ok(train_to(9, ADAFACTOR, pieces[i][0], whole, &wanted, &err));
    for (int j = 0; j < 3; j++)
      assert_ok(train_to(3 * (j + 1), ADAFACTOR, pieces[i][j], directory, &got, &err));
    check_same(&got, &wanted, pieces[i][0] == pieces[i][1] ? 0 : 1e-5f);
    /* Moments are of gradients that were not 0. */
    for (int j = 0; j < DENSE_CLASSES; j++)
      assert_true(got.columns[j] > 0 && got.moment[j] > 0);
    remove_directory(whole), remove_directory(directory);
  }
}

static void test_slots_of_another_shape_are_refused(void **state) {
  (void)state;
  char directory[64];
  struct state reached;
  make_directory(directory);
  assert_ok(train_to(2, ADAFACTOR, 1, directory, &reached, &err));
  assert_error(TUTTI_INVALID_ARGUMENT,
               "slot 'kernel/row_moment' is f32 [4, 2] in the optimizer and f32 [4] in the weights to restore",
               train_to(4, OTHER_SHAPE, 1, directory, &reached, &err));
  assert_ok(train_to(4, ADAFACTOR, 2, directory, &reached, &err));
  remove_directory(directory);
}

/* --- mistakes ----------------------------------------------------------------------------------------------------- */

struct mistake {
  const char *slots_per, *text;
  int matrices, stacks, results, second;
};

static const struct mistake mistakes[] = {
    {"row", "attribute 'slots_per' has 1 words for 2 slots, expected one for each or none", 0, 1, 3, 0},
    {"row, line", "attribute 'slots_per': 'line': expected element, row or column", 0, 1, 3, 0},
    {"row, column", "slot 'm' has a value for each row, expected attribute 'view' to be stack", 0, 0, 3, 0},
    {"element, column", "slot 'n' has a value for each column, expected attribute 'view' to be stack", 1, 0, 3, 0},
    {"row, column", "result #1 is f32 [matrices, rows, columns], expected f32 [matrices, rows]", 0, 1, 3, 0},
    {"element, element", "slot 'm' has a value for each element in one rule, and for each row in another", 0, 0, 3, 1},
};

static int32_t mistaken_model(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  const struct mistake *const mistake = user;
  build_dense(g, mode);
  if (mode == TUTTI_MODE_PREDICT) return tutti_graph_check(g, err);
  for (int rule = 0; rule <= mistake->second; rule++) {
    tutti_value p[7];
    const tutti_update_rule_attrs attrs = {.slots = "m, n",
                                           .slots_per = rule == 0 ? mistake->slots_per : "row, element",
                                           .matrices = (uint8_t)mistake->matrices,
                                           .stacks = (uint8_t)(rule == 0 ? mistake->stacks : 1)};
    tutti_begin_update_rule(g, number(g, rate), &attrs, p, 7);
    const tutti_value results[] = {p[0], rule == 0 ? p[0] : p[5], rule == 0 ? p[0] : p[6]};
    tutti_end_update_rule(g, results, mistake->results);
  }
  return tutti_graph_check(g, err);
}

static void test_mistakes(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
    tutti_context *context;
    tutti_estimator *estimator = dense_estimator(mistaken_model, (void *)&mistakes[i], 1, "{}", &context);
    tutti_dataset *rows = dense_dataset(context, ROWS, ROWS, 0);
    assert_error(TUTTI_INVALID_ARGUMENT, mistakes[i].text,
                 tutti_estimator_train(estimator, rows, NULL, NULL, NULL, NULL, &err));
    tutti_estimator_unref(estimator);
    tutti_dataset_unref(rows);
    tutti_context_unref(context);
  }
}

int main(int count, char **arguments) {
  if (count > 1) dense_plugin = arguments[1];
  if (dense_plugin != NULL && is_missing(dense_plugin)) return TEST_IS_SKIPPED;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_own_rule_with_rows_and_columns),
      cmocka_unit_test(test_constrained_variables),
      cmocka_unit_test(test_memory_of_a_matrix_is_its_rows_and_columns),
      cmocka_unit_test(test_training_goes_on_from_a_checkpoint),
      cmocka_unit_test(test_slots_of_another_shape_are_refused),
      cmocka_unit_test(test_mistakes),
  };
  return cmocka_run_group_tests(tests, remember_live_objects, assert_nothing_left);
}
