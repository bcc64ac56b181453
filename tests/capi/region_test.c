/* SPDX-License-Identifier: Apache-2.0
 * Regions through the C interface: loops over sequences of any length, choices, parts that are computed again,
 * gradients of one's own, and a rate made of the completed steps. Training on 1 to 3 replicas goes where the gradients
 * lead that are worked out here, by differences of the loss in double.
 *
 * usage: region_test [PLUG-IN] */
#include <math.h>

#include "estimator_fixtures.h"

enum { MOST_TIME = 5, WIDTH = 2, ROWS = 7, STEPS = 4, WEIGHTS = 2 * WIDTH };
static const int lengths[STEPS] = {5, 2, 1, 3};
static const double rate = 0.1;
static const char *plugin;

/* What a model does with its rows, sequences x [time, WIDTH]. */
enum kind { FORWARD, REVERSE, AGAIN, HALVED, CHOSEN, SCHEDULED, KINDS };

/* --- the model ---------------------------------------------------------------------------------------------------- */

static tutti_value weight(tutti_graph *g, const char *name, double value) {
  const int64_t width = WIDTH;
  return tutti_graph_variable(g, name, TUTTI_DTYPE_F32, &width, 1, "constant", value, 1);
}

static tutti_value sum_over(tutti_graph *g, tutti_value x, int64_t axis) {
  const tutti_reduce_sum_attrs attrs = {.axes = &axis, .axes_count = 1};
  return tutti_reduce_sum(g, x, &attrs);
}

static tutti_value product(tutti_graph *g, tutti_value x, tutti_value w) { return sum_over(g, tutti_mul(g, x, w), -1); }

static tutti_value number(tutti_graph *g, double value) { return tutti_graph_constant(g, TUTTI_DTYPE_F32, value); }

/* h' = tanh(x w + h sum(u)); the last h, and the sum of all h^2. */
static tutti_value loop(tutti_graph *g, tutti_value x, tutti_value w, tutti_value u, int reverse) {
  const tutti_value first = tutti_mul(g, product(g, sum_over(g, x, 1), w), number(g, 0));
  const tutti_scan_attrs attrs = {.axis = 1, .reverse = (uint8_t)reverse};
  tutti_value now[2], squares;
  tutti_begin_scan(g, &first, 1, &x, 1, &attrs, now);
  const tutti_value h = tutti_tanh(g, tutti_add(g, product(g, now[1], w), tutti_mul(g, now[0], sum_over(g, u, 0))));
  const tutti_value results[] = {h, tutti_square(g, h)};
  const tutti_value last = tutti_end_scan(g, results, 2, &squares, 1);
  return tutti_add(g, last, sum_over(g, squares, 1));
}

/* A part within which a loop, and the variables, are made. */
static tutti_value again(tutti_graph *g, tutti_value x) {
  tutti_value inside;
  tutti_begin_call(g, &x, 1, &inside);
  const tutti_value result = loop(g, inside, weight(g, "w", 0.4), weight(g, "u", 0.35), 0);
  return tutti_end_call(g, &result, 1, NULL, 0);
}

/* Half the gradient passes. */
static tutti_value halved(tutti_graph *g, tutti_value x) {
  tutti_value inside, all[3]; /* the input, the output, and its gradient */
  tutti_begin_custom_gradient(g, &x, 1, &inside);
  const tutti_value same = tutti_mul(g, inside, number(g, 1));
  tutti_backward_custom_gradient(g, &same, 1, all, 3);
  const tutti_value half = tutti_mul(g, all[2], number(g, 0.5));
  return tutti_end_custom_gradient(g, &half, 1, NULL, 0);
}

/* From the third step on another function. */
static tutti_value chosen(tutti_graph *g, tutti_value z) {
  tutti_begin_cond(g, tutti_less(g, tutti_graph_get_completed_steps(g), number(g, 1.5)));
  const tutti_value early = tutti_tanh(g, z);
  tutti_else_cond(g, &early, 1);
  const tutti_value late = tutti_square(g, z);
  return tutti_end_cond(g, &late, 1, NULL, 0);
}

static tutti_value predict(tutti_graph *g, enum kind kind) {
  const tutti_value x = tutti_graph_get_feature(g, "x");
  if (kind == AGAIN) return again(g, x);
  const tutti_value w = weight(g, "w", 0.4), u = weight(g, "u", 0.35);
  if (kind == FORWARD || kind == REVERSE || kind == SCHEDULED) return loop(g, x, w, u, kind == REVERSE);
  const tutti_value z = product(g, sum_over(g, x, 1), tutti_add(g, w, tutti_square(g, u)));
  return kind == HALVED ? halved(g, z) : chosen(g, z);
}

static int32_t model(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  const enum kind kind = *(const enum kind *)user;
  const tutti_value prediction = predict(g, kind);
  tutti_graph_set_output(g, "p", prediction);
  if (mode == TUTTI_MODE_PREDICT) return tutti_graph_check(g, err);
  const tutti_value error = tutti_sub(g, prediction, tutti_graph_get_label(g, "y"));
  tutti_graph_set_loss(g, tutti_reduce_mean(g, tutti_square(g, error), NULL));
  tutti_value speed = number(g, rate);
  if (kind == SCHEDULED) speed = tutti_div(g, speed, tutti_add(g, tutti_graph_get_completed_steps(g), number(g, 1)));
  tutti_optimizer_sgd(g, speed, NULL);
  return tutti_graph_check(g, err);
}

/* --- what is expected --------------------------------------------------------------------------------------------- */

static double x_at(int step, int row, int t, int i) { return (float)((step + row * 5 + t * 3 + i * 7) % 9 - 4) / 6; }
static double y_at(int step, int row) { return (float)((step + row * 4) % 5 - 2) / 3; }

static double expect_loop(const double p[WEIGHTS], int step, int row, int reverse) {
  double h = 0, squares = 0;
  for (int k = 0; k < lengths[step]; k++) {
    const int t = reverse ? lengths[step] - 1 - k : k;
    h = tanh(x_at(step, row, t, 0) * p[0] + x_at(step, row, t, 1) * p[1] + h * (p[2] + p[3]));
    squares += h * h;
  }
  return h + squares;
}

static double expect_row(enum kind kind, const double p[WEIGHTS], int step, int row) {
  if (kind == AGAIN) return expect_loop(p, step, row, 0);
  if (kind != HALVED && kind != CHOSEN) return expect_loop(p, step, row, kind == REVERSE);
  double z = 0;
  for (int t = 0; t < lengths[step]; t++) {
    for (int i = 0; i < WIDTH; i++)
      z += x_at(step, row, t, i) * (p[i] + p[WIDTH + i] * p[WIDTH + i]);
  }
  if (kind == HALVED) return z;
  return step < 2 ? tanh(z) : z * z;
}

static double expect_loss(enum kind kind, const double p[WEIGHTS], int step) {
  double loss = 0;
  for (int row = 0; row < ROWS; row++)
    loss += pow(expect_row(kind, p, step, row) - y_at(step, row), 2) / ROWS;
  return loss;
}

static void expect_step(enum kind kind, double p[WEIGHTS], int step) {
  double gradient[WEIGHTS];
  for (int i = 0; i < WEIGHTS; i++) {
    double at[WEIGHTS];
    memcpy(at, p, sizeof at);
    at[i] = p[i] + 1e-5;
    const double above = expect_loss(kind, at, step);
    at[i] = p[i] - 1e-5;
    gradient[i] = (above - expect_loss(kind, at, step)) / 2e-5;
  }
  for (int i = 0; i < WEIGHTS; i++)
    p[i] -= rate * gradient[i] * (kind == HALVED ? 0.5 : kind == SCHEDULED ? 1.0 / (step + 1) : 1);
}

/* --- training ----------------------------------------------------------------------------------------------------- */

static tutti_feed *make_feed(tutti_context *context, tutti_dataset **dataset) {
  const int64_t dims[] = {-1, WIDTH};
  tutti_feed *feed = NULL;
  tutti_pipeline *pipeline = NULL;
  assert_ok(tutti_feed_create(context, STEPS, &feed, &err));
  assert_ok(tutti_feed_declare(feed, "x", TUTTI_ROLE_FEATURE, TUTTI_DTYPE_F32, dims, 2, &err));
  assert_ok(tutti_feed_declare(feed, "y", TUTTI_ROLE_LABEL, TUTTI_DTYPE_F32, NULL, 0, &err));
  assert_ok(tutti_feed_set_batch_size(feed, ROWS, &err));
  assert_ok(tutti_pipeline_create(context, &pipeline, &err));
  tutti_pipeline_add_feed(pipeline, feed);
  assert_ok(tutti_pipeline_build(pipeline, dataset, &err));
  tutti_pipeline_unref(pipeline);
  return feed;
}

static void push_step(tutti_feed *feed, int step) {
  float x[ROWS * MOST_TIME * WIDTH], y[ROWS];
  int n = 0;
  for (int row = 0; row < ROWS; row++) {
    y[row] = (float)y_at(step, row);
    for (int t = 0; t < lengths[step]; t++) {
      for (int i = 0; i < WIDTH; i++)
        x[n++] = (float)x_at(step, row, t, i);
    }
  }
  const int64_t dims[] = {ROWS, lengths[step], WIDTH};
  tutti_tensor *batch[] = {make_tensor(TUTTI_DTYPE_F32, 3, dims, x), make_vector(TUTTI_DTYPE_F32, ROWS, y)};
  assert_ok(tutti_feed_push(feed, batch, 2, NULL, &err));
  tutti_tensor_unref(batch[0]), tutti_tensor_unref(batch[1]);
}

static tutti_context *make_context(int replicas) {
  char json[4200];
  if (plugin != NULL)
    snprintf(json, sizeof json, "{\"plugin\": \"%s\", \"logical_devices\": %d}", plugin, replicas);
  else
    snprintf(json, sizeof json, "{\"logical_devices\": %d}", replicas);
  tutti_options *options = make_options("context", json);
  tutti_context *context = NULL;
  assert_ok(tutti_context_create(options, &context, &err));
  tutti_options_unref(options);
  return context;
}

static tutti_estimator *make_estimator(tutti_context *context, tutti_model_fn function, void *user) {
  tutti_strategy *strategy = NULL;
  tutti_estimator *estimator = NULL;
  assert_ok(tutti_strategy_create_mirrored(context, NULL, 0, &strategy, &err));
  assert_ok(tutti_estimator_create(context, function, user, NULL, strategy, NULL, &estimator, &err));
  tutti_strategy_unref(strategy);
  return estimator;
}

static void assert_weights(tutti_estimator *estimator, const double p[WEIGHTS], enum kind kind, int step) {
  for (int v = 0; v < 2; v++) {
    tutti_tensor *value = NULL;
    assert_ok(tutti_estimator_read_variable(estimator, v == 0 ? "w" : "u", &value, &err));
    for (int i = 0; i < WIDTH; i++) {
      const double got = (double)((const float *)tutti_tensor_get_data(value))[i], expected = p[v * WIDTH + i];
      if (fabs(got - expected) > 2e-5)
        fail_msg("kind %d, step %d: weight %d is %g, expected %g", kind, step, v * WIDTH + i, got, expected);
    }
    tutti_tensor_unref(value);
  }
}

static void train_kind(enum kind kind, int replicas) {
  tutti_context *context = make_context(replicas);
  tutti_estimator *estimator = make_estimator(context, model, &kind);
  tutti_dataset *dataset = NULL;
  tutti_feed *feed = make_feed(context, &dataset);
  tutti_session *session = NULL;
  assert_ok(tutti_session_open(estimator, dataset, NULL, NULL, NULL, &session, &err));
  double p[WEIGHTS] = {0.4, 0.4, 0.35, 0.35};
  for (int step = 0; step < STEPS; step++) {
    const double loss = expect_loss(kind, p, step);
    tutti_result *result = NULL;
    push_step(feed, step);
    assert_ok(tutti_session_run(session, 1, &result, &err));
    assert_close(tutti_result_get_loss(result), loss);
    tutti_result_unref(result);
    expect_step(kind, p, step);
    assert_weights(estimator, p, kind, step);
  }
  tutti_session_unref(session), tutti_feed_unref(feed), tutti_dataset_unref(dataset);
  tutti_estimator_unref(estimator), tutti_context_unref(context);
}

static void test_training_through_regions(void **state) {
  (void)state;
  for (int kind = 0; kind < KINDS; kind++) {
    for (int replicas = 1; replicas <= 3; replicas++)
      train_kind((enum kind)kind, replicas);
  }
}

/* --- mistakes ----------------------------------------------------------------------------------------------------- */

static tutti_value x_of(tutti_graph *g) { return tutti_graph_get_feature(g, "x"); }

static void no_region(tutti_graph *g) {
  tutti_value p;
  tutti_graph_begin(g, "tanh", 1);
  tutti_graph_add_input(g, x_of(g));
  tutti_graph_begin_region(g, &p, 1);
}

static void too_many_parameters(tutti_graph *g) {
  tutti_value p[2];
  const tutti_value x = x_of(g);
  tutti_begin_call(g, &x, 1, p);
  tutti_end_call(g, p, 1, NULL, 0);
  tutti_graph_begin(g, "call", 1);
  tutti_graph_add_input(g, x);
  tutti_graph_begin_region(g, p, 2);
}

static void never_ended(tutti_graph *g) {
  const tutti_value x = x_of(g);
  tutti_value p;
  tutti_begin_call(g, &x, 1, &p);
}

static void ended_within(tutti_graph *g) {
  never_ended(g);
  tutti_graph_end(g, NULL, 0);
}

static void ended_twice(tutti_graph *g) {
  const tutti_value x = x_of(g);
  tutti_value p;
  tutti_begin_call(g, &x, 1, &p);
  tutti_graph_end_region(g, &p, 1);
  tutti_graph_end_region(g, &p, 1);
}

static void without_an_op(tutti_graph *g) { tutti_graph_begin_region(g, NULL, 0); }

static void of_one_branch(tutti_graph *g) {
  tutti_begin_cond(g, tutti_less(g, tutti_graph_get_completed_steps(g), number(g, 1)));
  const tutti_value one = number(g, 1);
  tutti_graph_end_region(g, &one, 1);
  tutti_graph_end(g, NULL, 0);
}

static void of_two_shapes(tutti_graph *g) {
  tutti_begin_cond(g, tutti_less(g, tutti_graph_get_completed_steps(g), number(g, 1)));
  const tutti_value one = number(g, 1);
  tutti_else_cond(g, &one, 1);
  const tutti_value other = x_of(g);
  tutti_end_cond(g, &other, 1, NULL, 0);
}

static void from_outside(tutti_graph *g) {
  const tutti_value x = x_of(g), twice = tutti_add(g, x, x);
  tutti_value p;
  tutti_begin_custom_gradient(g, &x, 1, &p);
  const tutti_value sum = tutti_add(g, p, twice);
  tutti_value all[3];
  tutti_backward_custom_gradient(g, &sum, 1, all, 3);
  tutti_end_custom_gradient(g, &all[2], 1, NULL, 0);
}

static void used_outside(tutti_graph *g) {
  const tutti_value x = x_of(g);
  tutti_value p;
  tutti_begin_call(g, &x, 1, &p);
  const tutti_value inner = tutti_tanh(g, p);
  tutti_end_call(g, &inner, 1, NULL, 0);
  tutti_tanh(g, inner);
}

static void without_the_axis(tutti_graph *g) {
  const tutti_value x = x_of(g);
  tutti_value p;
  tutti_begin_scan(g, NULL, 0, &x, 1, &(tutti_scan_attrs){.axis = 3}, &p);
  tutti_end_scan(g, &p, 1, NULL, 0);
}

static void without_a_sequence(tutti_graph *g) {
  const tutti_value x = x_of(g);
  tutti_value p;
  tutti_begin_scan(g, &x, 1, NULL, 0, NULL, &p);
  tutti_end_scan(g, &p, 1, NULL, 0);
}

static const struct mistake {
  void (*make)(tutti_graph *g);
  int32_t code;
  const char *text;
} mistakes[] = {
    {no_region, TUTTI_FAILED_PRECONDITION, "op 'tanh' has 0 regions, and one more was begun"},
    {too_many_parameters, TUTTI_INVALID_ARGUMENT, "a region of call has 1 parameters, got room for 2"},
    {never_ended, TUTTI_FAILED_PRECONDITION, "op 'call' was begun but not ended"},
    {ended_within, TUTTI_FAILED_PRECONDITION, "op 'call' was ended within its region"},
    {ended_twice, TUTTI_FAILED_PRECONDITION, "a region was ended, but none was begun"},
    {without_an_op, TUTTI_FAILED_PRECONDITION, "a region was begun, but no op was"},
    {of_one_branch, TUTTI_INVALID_ARGUMENT, "cond in scope '' has 1 regions, expected 2"},
    {of_two_shapes, TUTTI_INVALID_ARGUMENT, "result of the second region #0 is"},
    {from_outside, TUTTI_INVALID_ARGUMENT, "a region of custom_gradient in scope '' uses a value from outside"},
    {used_outside, TUTTI_INVALID_ARGUMENT, "a value of a region is used outside of it"},
    {without_the_axis, TUTTI_INVALID_ARGUMENT, "has no axis 3"},
    {without_a_sequence, TUTTI_INVALID_ARGUMENT, "1 states and 0 sequences, of which there must be one"},
};
enum { MISTAKES = sizeof mistakes / sizeof *mistakes };

static int32_t mistaken(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  (void)mode;
  ((const struct mistake *)user)->make(g);
  return tutti_graph_check(g, err);
}

static void test_mistakes(void **state) {
  (void)state;
  tutti_context *context = make_context(1);
  tutti_dataset *dataset = NULL;
  tutti_feed *feed = make_feed(context, &dataset);
  for (int i = 0; i < MISTAKES; i++) {
    tutti_estimator *estimator = make_estimator(context, mistaken, (void *)(size_t)&mistakes[i]);
    tutti_session *session = NULL;
    assert_error(mistakes[i].code, mistakes[i].text,
                 tutti_session_open(estimator, dataset, NULL, NULL, NULL, &session, &err));
    tutti_estimator_unref(estimator);
  }
  tutti_feed_unref(feed), tutti_dataset_unref(dataset), tutti_context_unref(context);
}

/* Rows less their mean: of a batch in pieces that is another number, so replicas refuse it, one device does not. */
static int32_t mixing(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  (void)user;
  const tutti_value x = x_of(g), w = weight(g, "w", 0.4);
  tutti_value inside;
  tutti_begin_call(g, &x, 1, &inside);
  const tutti_value z = product(g, sum_over(g, inside, 1), w);
  const int64_t rows = 0;
  const tutti_reduce_mean_attrs attrs = {.axes = &rows, .axes_count = 1};
  const tutti_value centred = tutti_sub(g, z, tutti_reduce_mean(g, z, &attrs));
  const tutti_value p = tutti_end_call(g, &centred, 1, NULL, 0);
  tutti_graph_set_output(g, "p", p);
  if (mode == TUTTI_MODE_PREDICT) return tutti_graph_check(g, err);
  tutti_graph_set_loss(g, tutti_reduce_mean(g, tutti_square(g, tutti_sub(g, p, tutti_graph_get_label(g, "y"))), NULL));
  tutti_optimizer_sgd(g, number(g, rate), NULL);
  return tutti_graph_check(g, err);
}

static void test_rows_that_a_region_mixes(void **state) {
  (void)state;
  for (int replicas = 1; replicas <= 2; replicas++) {
    tutti_context *context = make_context(replicas);
    tutti_estimator *estimator = make_estimator(context, mixing, NULL);
    tutti_dataset *dataset = NULL;
    tutti_feed *feed = make_feed(context, &dataset);
    tutti_session *session = NULL;
    if (replicas == 1)
      assert_ok(tutti_session_open(estimator, dataset, NULL, NULL, NULL, &session, &err));
    else
      assert_error(TUTTI_INVALID_ARGUMENT, "within a region, so it cannot be computed on parts of a batch",
                   tutti_session_open(estimator, dataset, NULL, NULL, NULL, &session, &err));
    tutti_session_unref(session), tutti_feed_unref(feed), tutti_dataset_unref(dataset);
    tutti_estimator_unref(estimator), tutti_context_unref(context);
  }
}

int main(int count, char **arguments) {
  if (count > 1) plugin = arguments[1];
  if (plugin != NULL && is_missing(plugin)) return TEST_IS_SKIPPED;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_training_through_regions),
      cmocka_unit_test(test_mistakes),
      cmocka_unit_test(test_rows_that_a_region_mixes),
  };
  return cmocka_run_group_tests(tests, remember_live_objects, assert_nothing_left);
}
