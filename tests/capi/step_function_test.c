/* SPDX-License-Identifier: Apache-2.0
 * Several step functions over one set of variables, on any number of replicas: what they train is worked out here, and
 * what they compute comes back for each replica, gathered and reduced.
 *
 * usage: step_function_test [PLUG-IN] */
#include <math.h>
#include <stdlib.h>

#include "estimator_fixtures.h"

enum { WIDTH = 3, MOST_ROWS = 24 };
static const char *plugin;

/* Two vectors, a and b, of which the model function trains a to make x a = y, and "second" trains b to make
 * x a + x b = y. Rates go down with the steps of each alone. */
static const double rate_a = 0.1, decay_a = 0.95, rate_b = 0.05, decay_b = 0.9, momentum_b = 0.8;

static tutti_value vector_of(tutti_graph *g, const char *name, double value) {
  const int64_t width = WIDTH;
  return tutti_graph_variable(g, name, TUTTI_DTYPE_F32, &width, 1, "constant", value, 1);
}

static tutti_value product(tutti_graph *g, tutti_value vector) {
  const int64_t axis = 1;
  const tutti_reduce_sum_attrs attrs = {.axes = &axis, .axes_count = 1};
  return tutti_reduce_sum(g, tutti_mul(g, tutti_graph_get_feature(g, "x"), vector), &attrs);
}

static void set_squared_error(tutti_graph *g, tutti_value prediction) {
  const tutti_value error = tutti_sub(g, prediction, tutti_graph_get_label(g, "y"));
  tutti_graph_set_loss(g, tutti_reduce_mean(g, tutti_square(g, error), NULL));
}

static int32_t model(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  (void)user;
  const tutti_value prediction = product(g, vector_of(g, "a", 0.5));
  tutti_graph_set_output(g, "p", prediction);
  if (mode == TUTTI_MODE_PREDICT) return tutti_graph_check(g, err);
  if (mode == TUTTI_MODE_TRAIN) vector_of(g, "b", -0.25);
  set_squared_error(g, prediction);
  tutti_optimizer_sgd(g, tutti_schedule_exponential(g, rate_a, decay_a, 1, NULL), NULL);
  return tutti_graph_check(g, err);
}

static int32_t second(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  (void)mode, (void)user;
  const tutti_value a = vector_of(g, "a", 0.5), b = vector_of(g, "b", -0.25);
  const tutti_value prediction = tutti_add(g, product(g, a), product(g, b));
  const tutti_value error = tutti_sub(g, prediction, tutti_graph_get_label(g, "y"));
  const tutti_value loss = tutti_reduce_mean(g, tutti_square(g, error), NULL);
  tutti_value gradient;
  tutti_gradients(g, loss, &b, 1, &gradient);
  tutti_apply_gradients(g, &b, &gradient, 1);
  tutti_graph_set_loss(g, loss);
  tutti_graph_set_output(g, "error", error);
  const tutti_optimizer_sgd_attrs attrs = {.momentum = momentum_b};
  tutti_optimizer_sgd(g, tutti_schedule_exponential(g, rate_b, decay_b, 1, NULL), &attrs);
  return tutti_graph_check(g, err);
}

/* Only computes: both products of each row, a whole number of each row, and a metric. */
static int32_t probe(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  (void)user;
  const int64_t column[] = {TUTTI_DIM_BATCH, 1};
  const tutti_value both[] = {tutti_reshape(g, product(g, vector_of(g, "a", 0.5)), column, 2),
                              tutti_reshape(g, product(g, vector_of(g, "b", -0.25)), column, 2)};
  const tutti_concat_attrs along = {.axis = 1};
  const tutti_value products = tutti_concat(g, both, 2, &along);
  tutti_graph_set_output(g, "products", products);
  tutti_graph_set_output(g, "larger", tutti_argmax(g, products, NULL));
  if (mode == TUTTI_MODE_EVAL) tutti_graph_add_metric(g, "mean", tutti_reduce_mean(g, products, NULL));
  return tutti_graph_check(g, err);
}

/* --- what is expected --------------------------------------------------------------------------------------------- */

static void row_of(int64_t row, float x[WIDTH], float *y) {
  for (int i = 0; i < WIDTH; i++)
    x[i] = (float)((row * 7 + i * 5) % 11) / 11 - 0.4f;
  *y = x[0] - 2 * x[1] + 0.5f * x[2];
}

struct expected {
  double a[WIDTH], b[WIDTH], velocity[WIDTH];
  int steps_a, steps_b;
};
static const struct expected at_first = {.a = {0.5, 0.5, 0.5}, .b = {-0.25, -0.25, -0.25}};

static double dot(const float x[WIDTH], const double w[WIDTH]) { return x[0] * w[0] + x[1] * w[1] + x[2] * w[2]; }

static void gradient_of(const struct expected *at, int with_b, int64_t first, int rows, double gradient[WIDTH]) {
  memset(gradient, 0, WIDTH * sizeof *gradient);
  for (int64_t r = first; r < first + rows; r++) {
    float x[WIDTH], y;
    row_of(r, x, &y);
    const double error = dot(x, at->a) + (with_b ? dot(x, at->b) : 0) - (double)y;
    for (int i = 0; i < WIDTH; i++)
      gradient[i] += 2 * error * (double)x[i] / rows;
  }
}

static void expect_first(struct expected *at, int64_t first, int rows) {
  double gradient[WIDTH];
  gradient_of(at, 0, first, rows, gradient);
  for (int i = 0; i < WIDTH; i++)
    at->a[i] -= rate_a * pow(decay_a, at->steps_a) * gradient[i];
  at->steps_a++;
}

static void expect_second(struct expected *at, int64_t first, int rows) {
  double gradient[WIDTH];
  gradient_of(at, 1, first, rows, gradient);
  for (int i = 0; i < WIDTH; i++) {
    at->velocity[i] = momentum_b * at->velocity[i] + gradient[i];
    at->b[i] -= rate_b * pow(decay_b, at->steps_b) * at->velocity[i];
  }
  at->steps_b++;
}

/* --- the loop ----------------------------------------------------------------------------------------------------- */

struct loop {
  tutti_context *context;
  tutti_estimator *estimator;
  tutti_feed *feed;
  tutti_dataset *dataset;
  tutti_session *session;
};

static void open_feed(struct loop *loop) {
  const int64_t width = WIDTH;
  assert_ok(tutti_feed_create(loop->context, 4, &loop->feed, &err));
  assert_ok(tutti_feed_declare(loop->feed, "x", TUTTI_ROLE_FEATURE, TUTTI_DTYPE_F32, &width, 1, &err));
  assert_ok(tutti_feed_declare(loop->feed, "y", TUTTI_ROLE_LABEL, TUTTI_DTYPE_F32, NULL, 0, &err));
  assert_ok(tutti_feed_set_batch_size(loop->feed, MOST_ROWS, &err));
  tutti_pipeline *pipeline = NULL;
  assert_ok(tutti_pipeline_create(loop->context, &pipeline, &err));
  tutti_pipeline_add_feed(pipeline, loop->feed);
  assert_ok(tutti_pipeline_build(pipeline, &loop->dataset, &err));
  tutti_pipeline_unref(pipeline);
}

static struct loop new_loop(int replicas, const char *run) {
  struct loop loop = {0};
  char json[4200];
  if (plugin != NULL)
    snprintf(json, sizeof json, "{\"plugin\": \"%s\", \"logical_devices\": %d}", plugin, replicas);
  else
    snprintf(json, sizeof json, "{\"logical_devices\": %d}", replicas);
  tutti_options *context_options = make_options("context", json), *options = make_options("run", run);
  tutti_strategy *strategy = NULL;
  assert_ok(tutti_context_create(context_options, &loop.context, &err));
  assert_ok(tutti_strategy_create_mirrored(loop.context, NULL, 0, &strategy, &err));
  assert_ok(tutti_estimator_create(loop.context, model, NULL, NULL, strategy, options, &loop.estimator, &err));
  tutti_options_unref(context_options), tutti_options_unref(options), tutti_strategy_unref(strategy);
  open_feed(&loop);
  return loop;
}

static void add_functions(struct loop loop) {
  assert_ok(tutti_estimator_add_step_function(loop.estimator, "second", TUTTI_MODE_TRAIN, second, NULL, NULL,
                                              loop.dataset, &err));
  assert_ok(tutti_estimator_add_step_function(loop.estimator, "probe", TUTTI_MODE_EVAL, probe, NULL, NULL, NULL, &err));
  assert_ok(
      tutti_estimator_add_step_function(loop.estimator, "predict", TUTTI_MODE_PREDICT, probe, NULL, NULL, NULL, &err));
}

static struct loop open_loop(int replicas, const char *run) {
  struct loop loop = new_loop(replicas, run);
  add_functions(loop);
  assert_ok(tutti_session_open(loop.estimator, loop.dataset, NULL, NULL, NULL, &loop.session, &err));
  return loop;
}

static void close_loop(struct loop loop) {
  tutti_session_unref(loop.session), tutti_dataset_unref(loop.dataset), tutti_feed_unref(loop.feed);
  tutti_estimator_unref(loop.estimator), tutti_context_unref(loop.context);
}

struct batch {
  tutti_tensor *tensors[2];
};

static struct batch rows_from(int64_t first, int rows) {
  float x[MOST_ROWS][WIDTH], y[MOST_ROWS];
  for (int r = 0; r < rows; r++)
    row_of(first + r, x[r], &y[r]);
  const int64_t dims[] = {rows, WIDTH};
  return (struct batch){{make_tensor(TUTTI_DTYPE_F32, 2, dims, x), make_vector(TUTTI_DTYPE_F32, rows, y)}};
}

static void drop(struct batch batch) { tutti_tensor_unref(batch.tensors[0]), tutti_tensor_unref(batch.tensors[1]); }

static void step_first(struct loop loop, struct expected *at, int64_t first, int rows) {
  const struct batch batch = rows_from(first, rows);
  assert_ok(tutti_feed_push(loop.feed, batch.tensors, 2, NULL, &err));
  assert_ok(tutti_session_run(loop.session, 1, NULL, &err));
  drop(batch);
  expect_first(at, first, rows);
}

static tutti_replica_values *step_of(struct loop loop, const char *name, int64_t first, int rows,
                                     tutti_result **result) {
  const struct batch batch = rows_from(first, rows);
  tutti_replica_values *values = NULL;
  assert_ok(tutti_session_run_step_function(loop.session, name, batch.tensors, 2, result, &values, &err));
  drop(batch);
  return values;
}

static void step_second(struct loop loop, struct expected *at, int64_t first, int rows) {
  tutti_result *result = NULL;
  double loss = 0;
  for (int64_t r = first; r < first + rows; r++) {
    float x[WIDTH], y;
    row_of(r, x, &y);
    const double error = dot(x, at->a) + dot(x, at->b) - (double)y;
    loss += error * error / rows;
  }
  tutti_replica_values_unref(step_of(loop, "second", first, rows, &result));
  expect_second(at, first, rows);
  assert_close(tutti_result_get_loss(result), loss);
  assert_int_equal(tutti_result_get_examples(result), rows);
  assert_int_equal(tutti_result_get_step(result), at->steps_a + at->steps_b);
  assert_int_equal(tutti_estimator_get_global_step(loop.estimator), at->steps_a + at->steps_b);
  tutti_result_unref(result);
}

static void assert_vector(struct loop loop, const char *name, const double expected[WIDTH]) {
  tutti_tensor *value = NULL;
  assert_ok(tutti_estimator_read_variable(loop.estimator, name, &value, &err));
  const float *got = tutti_tensor_get_data(value);
  for (int i = 0; i < WIDTH; i++) {
    if (fabs((double)got[i] - expected[i]) > 2e-5)
      fail_msg("%s[%d] is %g, expected %g", name, i, (double)got[i], expected[i]);
  }
  tutti_tensor_unref(value);
}

static void assert_at(struct loop loop, const struct expected *at) {
  assert_vector(loop, "a", at->a), assert_vector(loop, "b", at->b);
}

/* An f32 tensor of two dimensions that is let go of. */
static void take_f32(tutti_tensor *tensor, int64_t rows, int64_t columns, float *out) {
  assert_int_equal(tutti_tensor_get_rank(tensor), 2);
  assert_int_equal(tutti_tensor_get_dim(tensor, 0), rows);
  assert_int_equal(tutti_tensor_get_dim(tensor, 1), columns);
  memcpy(out, tutti_tensor_get_data(tensor), (size_t)(rows * columns) * sizeof *out);
  tutti_tensor_unref(tensor);
}

/* --- the tests ---------------------------------------------------------------------------------------------------- */

static const int sizes[] = {5, 1, 7, 2, 24, 3, 16, 1, 13, 5, 5, 24};
enum { STEPS = sizeof sizes / sizeof *sizes };

/* Both functions in turn, at odd sizes: each trains what it trains, with steps and slots of its own. */
static void run_in_turn(struct loop loop, struct expected *at, int begin, int end) {
  for (int i = begin; i < end; i++) {
    if (i % 3 == 1)
      step_first(loop, at, i * 31, sizes[i]);
    else
      step_second(loop, at, i * 17, sizes[i]);
    assert_at(loop, at);
  }
}

static void test_c8_functions_over_one_set_of_variables(void **state) {
  (void)state;
  for (int replicas = 1; replicas <= 3; replicas++) {
    struct loop loop = open_loop(replicas, "{}");
    struct expected at = at_first;
    run_in_turn(loop, &at, 0, STEPS);
    close_loop(loop);
  }
}

static void test_levels(void **state) {
  (void)state;
  if (plugin != NULL) return; /* not every device has all levels */
  for (int i = 0; i < 2; i++) {
    struct loop loop = open_loop(2, i == 0 ? "{\"determinism\": \"repeatable\"}" : "{\"determinism\": \"invariant\"}");
    struct expected at = at_first;
    run_in_turn(loop, &at, 0, STEPS);
    close_loop(loop);
  }
}

/* What is only computed changes nothing, and comes back piece by piece. */
static void check_values(struct loop loop, int replicas, const char *name, const struct expected *at, int rows) {
  tutti_result *result = NULL;
  tutti_replica_values *values = step_of(loop, name, 3, rows, &result);
  assert_int_equal(tutti_replica_values_get_replica_count(values), replicas);
  assert_int_equal(tutti_replica_values_get_output_count(values), 2);
  assert_string_equal(tutti_replica_values_get_output_name(values, 0), "larger");
  assert_string_equal(tutti_replica_values_get_output_name(values, 1), "products");
  assert_null(tutti_replica_values_get_output_name(values, 2));
  float expected[MOST_ROWS][2], got[MOST_ROWS * 2];
  double sums[2] = {0, 0};
  int64_t second_is_larger = 0;
  for (int r = 0; r < rows; r++) {
    float x[WIDTH], y;
    row_of(3 + r, x, &y);
    expected[r][0] = (float)dot(x, at->a), expected[r][1] = (float)dot(x, at->b);
    sums[0] += dot(x, at->a), sums[1] += dot(x, at->b);
    second_is_larger += dot(x, at->b) > dot(x, at->a);
  }
  tutti_tensor *whole = NULL;
  assert_ok(tutti_replica_values_gather(values, "products", 0, &whole, &err));
  take_f32(whole, rows, 2, got);
  int row = 0;
  for (int r = 0; r < rows; r++)
    assert_close((double)got[2 * r], (double)expected[r][0]),
        assert_close((double)got[2 * r + 1], (double)expected[r][1]);
  for (int r = 0; r < replicas; r++) {
    const tutti_tensor *piece = tutti_replica_values_get_local(values, "products", r);
    const int count = rows / replicas + (r < rows % replicas);
    if (count == 0) {
      assert_null(piece);
      continue;
    }
    assert_int_equal(tutti_tensor_get_dim(piece, 0), count);
    assert_memory_equal(tutti_tensor_get_data(piece), got + 2 * row, (size_t)count * 2 * sizeof *got);
    row += count;
  }
  assert_int_equal(row, rows);
  assert_null(tutti_replica_values_get_local(values, "products", replicas));
  assert_null(tutti_replica_values_get_local(values, "product", 0));
  tutti_tensor *mean = NULL, *sum = NULL, *larger = NULL;
  assert_ok(tutti_replica_values_reduce(values, "products", TUTTI_REDUCE_MEAN, 0, &mean, &err));
  assert_ok(tutti_replica_values_reduce(values, "products", TUTTI_REDUCE_SUM, 0, &sum, &err));
  assert_ok(tutti_replica_values_reduce(values, "larger", TUTTI_REDUCE_MEAN, 0, &larger, &err));
  assert_int_equal(tutti_tensor_get_rank(mean), 1);
  for (int i = 0; i < 2; i++) {
    assert_close((double)((const float *)tutti_tensor_get_data(mean))[i], sums[i] / rows);
    assert_close((double)((const float *)tutti_tensor_get_data(sum))[i], sums[i]);
  }
  assert_int_equal(tutti_tensor_get_dtype(larger), TUTTI_DTYPE_F64);
  assert_close(*(const double *)tutti_tensor_get_data(larger), (double)second_is_larger / rows);
  assert_true(isnan(tutti_result_get_loss(result)));
  assert_int_equal(tutti_result_get_metric_count(result), strcmp(name, "probe") == 0);
  const double metric = tutti_result_get_metric(result, "mean");
  if (strcmp(name, "probe") == 0)
    assert_close(metric, (sums[0] + sums[1]) / (2 * rows));
  else
    assert_true(isnan(metric));
  tutti_tensor_unref(mean), tutti_tensor_unref(sum), tutti_tensor_unref(larger);
  tutti_result_unref(result), tutti_replica_values_unref(values);
  assert_at(loop, at);
}

static void test_c8_values_of_the_replicas(void **state) {
  (void)state;
  for (int replicas = 1; replicas <= 3; replicas++) {
    struct loop loop = open_loop(replicas, "{}");
    struct expected at = at_first;
    const int rows[] = {1, 2, 7, MOST_ROWS};
    for (int i = 0; i < 4; i++) {
      check_values(loop, replicas, "probe", &at, rows[i]);
      step_second(loop, &at, i, 9);
      check_values(loop, replicas, "predict", &at, rows[i]);
    }
    assert_int_equal(tutti_estimator_get_global_step(loop.estimator), 4);
    close_loop(loop);
  }
}

/* Across replicas, element by element: only of pieces of one shape. */
static void test_reduce_across_replicas(void **state) {
  (void)state;
  struct loop loop = open_loop(2, "{}");
  tutti_tensor *out = NULL;
  tutti_replica_values *values = step_of(loop, "probe", 0, 6, NULL);
  assert_ok(tutti_replica_values_reduce(values, "products", TUTTI_REDUCE_SUM, TUTTI_ACROSS_REPLICAS, &out, &err));
  float got[6];
  take_f32(out, 3, 2, got);
  for (int r = 0; r < 3; r++) {
    float x[WIDTH], other[WIDTH], y;
    row_of(r, x, &y), row_of(r + 3, other, &y);
    assert_close((double)got[2 * r], dot(x, at_first.a) + dot(other, at_first.a));
  }
  assert_ok(tutti_replica_values_gather(values, "products", 1, &out, &err));
  float side_by_side[12];
  take_f32(out, 3, 4, side_by_side);
  for (int i = 0; i < 3; i++)
    assert_close((double)(side_by_side[4 * i] + side_by_side[4 * i + 2]), (double)got[2 * i]);
  assert_error(TUTTI_NOT_FOUND, "there is no output 'product', did you mean 'products'",
               tutti_replica_values_gather(values, "product", 0, &out, &err));
  assert_error(TUTTI_INVALID_ARGUMENT, "argument 'reduction' is 3",
               tutti_replica_values_reduce(values, "products", 3, 0, &out, &err));
  tutti_replica_values_unref(values);
  values = step_of(loop, "probe", 0, 5, NULL);
  assert_error(TUTTI_INVALID_ARGUMENT, "replica 1 has f32 [2, 2]",
               tutti_replica_values_reduce(values, "products", TUTTI_REDUCE_MEAN, TUTTI_ACROSS_REPLICAS, &out, &err));
  close_loop(loop);
  /* The values live on. */
  assert_ok(tutti_replica_values_reduce(values, "products", TUTTI_REDUCE_MEAN, 0, &out, &err));
  tutti_tensor_unref(out), tutti_replica_values_unref(values);
}

/* A loop that is closed in the middle, or ends with its process, goes on with slots and steps of each function. */
static void test_resume(void **state) {
  (void)state;
  char directory[64], run[128];
  make_directory(directory);
  snprintf(run, sizeof run, "{\"model_dir\": \"%s\"}", directory);
  struct expected at = at_first;
  for (int part = 0; part < 3; part++) {
    struct loop loop = open_loop(part + 1, run);
    run_in_turn(loop, &at, part * 4, part * 4 + 2);
    assert_ok(tutti_session_close(loop.session, NULL, &err));
    tutti_session_unref(loop.session), tutti_dataset_unref(loop.dataset), tutti_feed_unref(loop.feed);
    open_feed(&loop);
    assert_ok(tutti_session_open(loop.estimator, loop.dataset, NULL, NULL, NULL, &loop.session, &err));
    assert_at(loop, &at);
    run_in_turn(loop, &at, part * 4 + 2, part * 4 + 4);
    assert_ok(tutti_session_close(loop.session, NULL, &err));
    close_loop(loop);
  }
  remove_directory(directory);
}

/* Predictions and evaluations use what step functions have trained. */
static void test_live_weights(void **state) {
  (void)state;
  struct loop loop = open_loop(2, "{}");
  struct expected at = at_first;
  run_in_turn(loop, &at, 0, 5);
  tutti_predictor *predictor = NULL;
  assert_ok(tutti_predictor_from_estimator(loop.estimator, NULL, &predictor, &err));
  const struct batch batch = rows_from(0, 3);
  const char *const name = "x";
  tutti_batch *predicted = NULL;
  assert_ok(tutti_predictor_run(predictor, &name, batch.tensors, 1, NULL, &predicted, &err));
  const float *got = tutti_tensor_get_data(tutti_batch_get_output(predicted, "p"));
  for (int r = 0; r < 3; r++) {
    float x[WIDTH], y;
    row_of(r, x, &y);
    assert_close((double)got[r], dot(x, at.a));
  }
  tutti_batch_unref(predicted), tutti_predictor_unref(predictor), drop(batch);
  close_loop(loop);
}

/* Programs are built for shapes that are new, and only then. */
static int64_t programs_built(struct loop loop) {
  tutti_result *result = NULL;
  assert_ok(tutti_session_close(loop.session, &result, &err));
  const char *const text = strstr(tutti_result_get_step_report(result), "\"programs\":");
  assert_non_null(text);
  const int64_t programs = strtoll(text + strlen("\"programs\":"), NULL, 10);
  tutti_result_unref(result), tutti_session_unref(loop.session);
  return programs;
}

static void test_c34_programs_are_built_once(void **state) {
  (void)state;
  int64_t built[2];
  for (int i = 0; i < 2; i++) {
    struct loop loop = open_loop(2, "{}");
    struct expected at = at_first;
    step_first(loop, &at, 0, 6);
    for (int k = 0; k < (i == 0 ? 2 : 40); k++) {
      step_second(loop, &at, k, 6);
      tutti_replica_values_unref(step_of(loop, "probe", k, 6, NULL));
    }
    built[i] = programs_built(loop);
    loop.session = NULL;
    close_loop(loop);
  }
  assert_true(built[0] > 0);
  assert_int_equal(built[0], built[1]);
}

/* --- mistakes ----------------------------------------------------------------------------------------------------- */

static int32_t with_averages(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  (void)mode, (void)user;
  set_squared_error(g, product(g, vector_of(g, "b", 0)));
  const tutti_optimizer_sgd_attrs attrs = {.average_decay = 0.9};
  tutti_optimizer_sgd(g, tutti_schedule_constant(g, 0.1), &attrs);
  return tutti_graph_check(g, err);
}

static int32_t with_a_new_variable(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  (void)mode, (void)user;
  set_squared_error(g, product(g, vector_of(g, "c", 0)));
  tutti_optimizer_sgd(g, tutti_schedule_constant(g, 0.1), NULL);
  return tutti_graph_check(g, err);
}

static int32_t with_nothing(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  (void)mode, (void)user;
  product(g, vector_of(g, "a", 0));
  return tutti_graph_check(g, err);
}

static int32_t that_explodes(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  (void)mode, (void)user;
  const tutti_value huge = tutti_graph_constant(g, TUTTI_DTYPE_F32, 3e38);
  set_squared_error(g, tutti_mul(g, product(g, vector_of(g, "b", 0)), huge));
  tutti_optimizer_sgd(g, tutti_schedule_constant(g, 0.1), NULL);
  return tutti_graph_check(g, err);
}

static void assert_cannot_open(tutti_model_fn function, int32_t mode, int32_t code, const char *text) {
  struct loop loop = new_loop(2, "{}");
  assert_ok(tutti_estimator_add_step_function(loop.estimator, "bad", mode, function, NULL, NULL, NULL, &err));
  assert_error(code, text, tutti_session_open(loop.estimator, loop.dataset, NULL, NULL, NULL, &loop.session, &err));
  close_loop(loop);
}

static void test_functions_that_do_not_fit(void **state) {
  (void)state;
  assert_cannot_open(with_averages, TUTTI_MODE_TRAIN, TUTTI_INVALID_ARGUMENT, "step function 'bad' in mode TRAIN");
  assert_cannot_open(with_averages, TUTTI_MODE_TRAIN, TUTTI_INVALID_ARGUMENT, "average_decay");
  assert_cannot_open(with_a_new_variable, TUTTI_MODE_TRAIN, TUTTI_INVALID_ARGUMENT,
                     "variable 'c' of mode TRAIN is not a variable");
  assert_cannot_open(with_nothing, TUTTI_MODE_TRAIN, TUTTI_INVALID_ARGUMENT, "it set no loss");
  assert_cannot_open(with_nothing, TUTTI_MODE_PREDICT, TUTTI_INVALID_ARGUMENT,
                     "neither an output nor a loss nor a metric");
  assert_cannot_open(second, TUTTI_MODE_PREDICT, TUTTI_FAILED_PRECONDITION, "label");
}

static void test_when_functions_are_added(void **state) {
  (void)state;
  struct loop loop = new_loop(1, "{}");
  add_functions(loop);
  tutti_estimator *const e = loop.estimator;
  assert_error(TUTTI_ALREADY_EXISTS, "'probe' already",
               tutti_estimator_add_step_function(e, "probe", TUTTI_MODE_EVAL, probe, NULL, NULL, NULL, &err));
  assert_error(TUTTI_INVALID_ARGUMENT, "'a/b'",
               tutti_estimator_add_step_function(e, "a/b", TUTTI_MODE_EVAL, probe, NULL, NULL, NULL, &err));
  assert_error(TUTTI_INVALID_ARGUMENT, "argument 'mode' is 4",
               tutti_estimator_add_step_function(e, "x", 4, probe, NULL, NULL, NULL, &err));
  assert_ok(tutti_session_open(e, loop.dataset, NULL, NULL, NULL, &loop.session, &err));
  assert_error(TUTTI_FAILED_PRECONDITION, "already training",
               tutti_estimator_add_step_function(e, "x", TUTTI_MODE_EVAL, probe, NULL, NULL, NULL, &err));
  assert_ok(tutti_session_close(loop.session, NULL, &err));
  assert_error(TUTTI_FAILED_PRECONDITION, "before the first training",
               tutti_estimator_add_step_function(e, "x", TUTTI_MODE_EVAL, probe, NULL, NULL, NULL, &err));
  const struct batch batch = rows_from(0, 2);
  assert_error(TUTTI_FAILED_PRECONDITION, "the session is closed",
               tutti_session_run_step_function(loop.session, "probe", batch.tensors, 2, NULL, NULL, &err));
  drop(batch);
  close_loop(loop);
}

/* A batch that does not fit, and a step that fails, leave everything as it was. */
static void test_batches_that_do_not_fit(void **state) {
  (void)state;
  struct loop loop = new_loop(2, "{}");
  add_functions(loop);
  assert_ok(tutti_estimator_add_step_function(loop.estimator, "explodes", TUTTI_MODE_TRAIN, that_explodes, NULL, NULL,
                                              NULL, &err));
  assert_ok(tutti_session_open(loop.estimator, loop.dataset, NULL, NULL, NULL, &loop.session, &err));
  struct expected at = at_first;
  step_second(loop, &at, 0, 5);
  const struct batch batch = rows_from(0, 3);
  tutti_tensor *const swapped[] = {batch.tensors[1], batch.tensors[0]};
  const int64_t none[] = {0, WIDTH};
  tutti_tensor *const empty[] = {make_tensor(TUTTI_DTYPE_F32, 2, none, NULL), make_vector(TUTTI_DTYPE_F32, 0, NULL)};
  tutti_tensor *const uneven[] = {batch.tensors[0], make_vector(TUTTI_DTYPE_F32, 2, (const float[]){1, 2})};
  assert_error(TUTTI_NOT_FOUND, "there is no step function 'prob', did you mean 'probe'",
               tutti_session_run_step_function(loop.session, "prob", batch.tensors, 2, NULL, NULL, &err));
  assert_error(TUTTI_INVALID_ARGUMENT, "step function 'second'",
               tutti_session_run_step_function(loop.session, "second", batch.tensors, 1, NULL, NULL, &err));
  assert_error(TUTTI_INVALID_ARGUMENT, "component 'x'",
               tutti_session_run_step_function(loop.session, "second", swapped, 2, NULL, NULL, &err));
  assert_error(TUTTI_INVALID_ARGUMENT, "rows",
               tutti_session_run_step_function(loop.session, "second", uneven, 2, NULL, NULL, &err));
  assert_error(TUTTI_INVALID_ARGUMENT, "no rows",
               tutti_session_run_step_function(loop.session, "second", empty, 2, NULL, NULL, &err));
  assert_error(TUTTI_OUT_OF_RANGE, "step function 'explodes'",
               tutti_session_run_step_function(loop.session, "explodes", batch.tensors, 2, NULL, NULL, &err));
  assert_int_equal(tutti_estimator_get_global_step(loop.estimator), 1);
  tutti_tensor_unref(empty[0]), tutti_tensor_unref(empty[1]), tutti_tensor_unref(uneven[1]), drop(batch);
  assert_at(loop, &at);
  run_in_turn(loop, &at, 0, 4);
  close_loop(loop);
}

int main(int count, char **arguments) {
  if (count > 1) plugin = arguments[1];
  if (plugin != NULL && is_missing(plugin)) return TEST_IS_SKIPPED;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_c8_functions_over_one_set_of_variables),
      cmocka_unit_test(test_levels),
      cmocka_unit_test(test_c8_values_of_the_replicas),
      cmocka_unit_test(test_reduce_across_replicas),
      cmocka_unit_test(test_resume),
      cmocka_unit_test(test_live_weights),
      cmocka_unit_test(test_c34_programs_are_built_once),
      cmocka_unit_test(test_functions_that_do_not_fit),
      cmocka_unit_test(test_when_functions_are_added),
      cmocka_unit_test(test_batches_that_do_not_fit),
  };
  return cmocka_run_group_tests(tests, remember_live_objects, assert_nothing_left);
}
