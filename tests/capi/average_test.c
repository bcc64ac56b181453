/* SPDX-License-Identifier: Apache-2.0
 * Limits of gradients, averages of weights and how gradients are added up, through the C interface: a model whose steps
 * can be worked out by hand. */
#include <math.h>

#include "estimator_fixtures.h"

/* y = w x with w = 2 at first; the gradient is the row's slope, the rate 1. */
struct trained_line {
  tutti_optimizer_sgd_attrs attrs;
  double global_norm;
};

static int32_t slope_model(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  const struct trained_line *line = user;
  int64_t one = 1;
  tutti_value x = tutti_graph_get_feature(g, "x");
  tutti_value w = tutti_graph_variable(g, "w", TUTTI_DTYPE_F32, &one, 1, "constant", 2.0, 1);
  tutti_value y = tutti_mul(g, x, w);
  tutti_graph_set_output(g, "y", y);
  if (mode != TUTTI_MODE_PREDICT) {
    tutti_graph_set_loss(g, tutti_reduce_mean(g, tutti_mul(g, y, tutti_graph_get_label(g, "slope")), NULL));
    if (line->global_norm > 0) tutti_graph_set_gradient_clip_norm(g, line->global_norm);
    tutti_optimizer_sgd(g, tutti_schedule_constant(g, 1.0), &line->attrs);
  }
  return tutti_graph_check(g, err);
}

/* `rows` rows x = 1 of one slope, in one batch. */
static tutti_dataset *slope_dataset(tutti_context *context, float slope, int64_t rows) {
  float x[4] = {1, 1, 1, 1}, slopes[4] = {slope, slope, slope, slope};
  tutti_tensor *xs = make_vector(TUTTI_DTYPE_F32, rows, x), *ys = make_vector(TUTTI_DTYPE_F32, rows, slopes);
  tutti_pipeline *pipeline = NULL;
  tutti_dataset *dataset = NULL;
  assert_ok(tutti_pipeline_create(context, &pipeline, &err));
  tutti_pipeline_add_slices(pipeline, "x", TUTTI_ROLE_FEATURE, xs);
  tutti_pipeline_add_slices(pipeline, "slope", TUTTI_ROLE_LABEL, ys);
  tutti_pipeline_batch(pipeline, rows, NULL);
  assert_ok(tutti_pipeline_build(pipeline, &dataset, &err));
  tutti_pipeline_unref(pipeline), tutti_tensor_unref(xs), tutti_tensor_unref(ys);
  return dataset;
}

static void step(tutti_estimator *estimator, tutti_context *context, float slope) {
  tutti_dataset *dataset = slope_dataset(context, slope, 4);
  train(estimator, dataset, "{\"steps\": 1}");
  tutti_dataset_unref(dataset);
}

static tutti_estimator *slope_estimator(tutti_context *context, struct trained_line *line, const char *run) {
  tutti_options *options = run != NULL ? make_options("run", run) : NULL;
  tutti_strategy *strategy = NULL;
  tutti_estimator *estimator = NULL;
  assert_ok(tutti_strategy_create_mirrored(context, NULL, 0, &strategy, &err));
  assert_ok(tutti_estimator_create(context, slope_model, line, NULL, strategy, options, &estimator, &err));
  tutti_options_unref(options), tutti_strategy_unref(strategy);
  return estimator;
}

static tutti_context *context_of(int devices) {
  char json[64];
  snprintf(json, sizeof json, "{\"logical_devices\": %d}", devices);
  tutti_options *options = make_options("context", json);
  tutti_context *context = NULL;
  assert_ok(tutti_context_create(options, &context, &err));
  tutti_options_unref(options);
  return context;
}

/* y of x = 1: the weight that is predicted with. */
static double predicted(tutti_predictor *predictor) {
  const float one = 1;
  const char *name = "x";
  tutti_tensor *x = make_vector(TUTTI_DTYPE_F32, 1, &one);
  tutti_batch *batch = NULL;
  assert_ok(tutti_predictor_run(predictor, &name, &x, 1, NULL, &batch, &err));
  const double y = ((const float *)tutti_tensor_get_data(tutti_batch_get_output(batch, "y")))[0];
  tutti_batch_unref(batch), tutti_tensor_unref(x), tutti_predictor_unref(predictor);
  return y;
}

static double predicted_by(tutti_estimator *estimator, const char *json) {
  tutti_options *options = json != NULL ? make_options("predictor", json) : NULL;
  tutti_predictor *predictor = NULL;
  assert_ok(tutti_predictor_from_estimator(estimator, options, &predictor, &err));
  tutti_options_unref(options);
  return predicted(predictor);
}

static double predicted_from(tutti_context *context, const char *path, const char *json) {
  tutti_options *options = json != NULL ? make_options("predictor", json) : NULL;
  tutti_predictor *predictor = NULL;
  assert_ok(tutti_predictor_open(context, path, NULL, options, &predictor, &err));
  tutti_options_unref(options);
  return predicted(predictor);
}

/* Its loss is the weight. */
static double evaluated(tutti_estimator *estimator, tutti_context *context) {
  tutti_dataset *dataset = slope_dataset(context, 1, 4);
  const double loss = evaluate(estimator, dataset, 0).loss;
  tutti_dataset_unref(dataset);
  return loss;
}

/* --- averages ----------------------------------------------------------------------------------------------------- */

static void test_averages_are_used(void **state) {
  (void)state;
  struct trained_line line = {.attrs = {.average_decay = 0.5}};
  for (int devices = 1; devices <= 3; devices++) {
    tutti_context *context = context_of(devices);
    tutti_estimator *averaged = slope_estimator(context, &line, NULL),
                    *raw = slope_estimator(context, &line, "{\"raw_weights\": true}");
    for (int i = 0; i < 3; i++)
      step(averaged, context, -1), step(raw, context, -1);
    /* 2, 2.5, 3.25, 4.125 behind 2, 3, 4, 5 */
    assert_close(read_scalar(averaged, "w"), 5);
    assert_close(read_scalar(averaged, "w/average"), 4.125);
    assert_close(evaluated(averaged, context), 4.125);
    assert_close(evaluated(raw, context), 5);
    assert_close(predicted_by(averaged, NULL), 4.125);
    assert_close(predicted_by(averaged, "{\"raw_weights\": true}"), 5);
    assert_close(predicted_by(raw, NULL), 5);
    tutti_dataset *training = slope_dataset(context, -1, 4), *test = slope_dataset(context, 1, 4);
    tutti_options *one = make_options("train", "{\"steps\": 1}");
    tutti_result *result = NULL;
    assert_ok(tutti_estimator_train_and_evaluate(averaged, training, test, 1, one, NULL, NULL, &result, &err));
    assert_close(take(result).loss, 5.0625);
    const float nine = 9;
    tutti_tensor *written = make_vector(TUTTI_DTYPE_F32, 1, &nine);
    assert_ok(tutti_estimator_write_variable(averaged, "w/average", written, &err));
    assert_close(evaluated(averaged, context), 9);
    assert_close(read_scalar(averaged, "w"), 6);
    tutti_tensor_unref(written);
    tutti_options_unref(one), tutti_dataset_unref(training), tutti_dataset_unref(test);
    tutti_estimator_unref(averaged), tutti_estimator_unref(raw), tutti_context_unref(context);
  }
}

static void test_start_and_ramp(void **state) {
  (void)state;
  tutti_context *context = context_of(2);
  struct trained_line late = {.attrs = {.average_decay = 0.5, .average_start = 2}};
  tutti_estimator *estimator = slope_estimator(context, &late, NULL);
  for (int i = 0; i < 3; i++)
    step(estimator, context, -1);
  assert_close(read_scalar(estimator, "w/average"), 4.5); /* 4 and 5 */
  tutti_estimator_unref(estimator);
  struct trained_line ramp = {.attrs = {.average_decay = 0.2, .average_ramp = 1}};
  estimator = slope_estimator(context, &ramp, NULL);
  step(estimator, context, -1);
  assert_close(read_scalar(estimator, "w/average"), 2 * 2 / 11.0 + 3 * 9 / 11.0); /* 2 / 11 is less than 0.2 */
  const double first = read_scalar(estimator, "w/average");
  step(estimator, context, -1);
  assert_close(read_scalar(estimator, "w/average"), 0.2 * first + 0.8 * 4); /* and 3 / 12 is more */
  tutti_estimator_unref(estimator), tutti_context_unref(context);
}

/* In checkpoints, resumed on another number of replicas, and read without the slots that only training needs. */
static void test_checkpoints_have_averages(void **state) {
  (void)state;
  struct trained_line line = {.attrs = {.average_decay = 0.5, .momentum = 0}};
  char directory[64], run[128], export[64];
  make_directory(directory), make_directory(export);
  snprintf(run, sizeof run, "{\"model_dir\": \"%s\"}", directory);
  static const double averages[] = {2.5, 3.25, 4.125, 5.0625};
  for (int i = 0; i < 4; i++) {
    tutti_context *context = context_of(1 + i % 3);
    tutti_estimator *estimator = slope_estimator(context, &line, run);
    step(estimator, context, -1);
    assert_close(read_scalar(estimator, "w"), 3 + i);
    assert_close(read_scalar(estimator, "w/average"), averages[i]);
    assert_ok(tutti_estimator_save(estimator, export, NULL, &err));
    tutti_estimator_unref(estimator);
    estimator = slope_estimator(context, &line, run);
    assert_close(evaluated(estimator, context), averages[i]); /* of the checkpoint */
    tutti_estimator_unref(estimator);
    for (int e = 0; e < 2; e++) {
      assert_close(predicted_from(context, e == 0 ? directory : export, NULL), averages[i]);
      assert_close(predicted_from(context, e == 0 ? directory : export, "{\"raw_weights\": true}"), 3 + i);
    }
    tutti_context_unref(context);
  }
  /* Without them training goes on from the weights; and with them again they begin there. */
  struct trained_line plain = {.attrs = {.average_decay = 0}};
  tutti_context *context = context_of(1);
  tutti_estimator *estimator = slope_estimator(context, &plain, run);
  step(estimator, context, -1);
  assert_close(evaluated(estimator, context), 7);
  tutti_estimator_unref(estimator);
  estimator = slope_estimator(context, &line, run);
  step(estimator, context, -1);
  assert_close(read_scalar(estimator, "w/average"), 7.5);
  tutti_estimator_unref(estimator), tutti_context_unref(context);
  remove_directory(directory), remove_directory(export);
}

/* --- limits ------------------------------------------------------------------------------------------------------- */

static void test_limits_of_gradients(void **state) {
  (void)state;
  static const struct {
    double value, norm, global, step;
  } cases[] = {{0, 0, 0, 5},     {0.25, 0, 0, 0.25}, {0, 0.5, 0, 0.5}, {0, 0, 0.75, 0.75},
               {3, 0.5, 0, 0.5}, {0.5, 3, 0, 0.5},   {3, 2, 0.5, 0.5}, {8, 8, 8, 5}};
  for (int devices = 1; devices <= 3; devices++) {
    tutti_context *context = context_of(devices);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
      struct trained_line line = {.attrs = {.clip_value = cases[i].value, .clip_norm = cases[i].norm},
                                  .global_norm = cases[i].global};
      tutti_estimator *estimator = slope_estimator(context, &line, NULL);
      step(estimator, context, 5);
      assert_close(read_scalar(estimator, "w"), 2 - cases[i].step);
      step(estimator, context, -5);
      assert_close(read_scalar(estimator, "w"), 2);
      tutti_estimator_unref(estimator);
    }
    tutti_context_unref(context);
  }
}

static void check_refused(tutti_optimizer_sgd_attrs attrs, const char *needle) {
  struct trained_line line = {.attrs = attrs};
  tutti_context *context = context_of(1);
  tutti_estimator *estimator = slope_estimator(context, &line, NULL);
  tutti_dataset *dataset = slope_dataset(context, 1, 1);
  assert_error(TUTTI_INVALID_ARGUMENT, needle, tutti_estimator_train(estimator, dataset, NULL, NULL, NULL, NULL, &err));
  tutti_dataset_unref(dataset), tutti_estimator_unref(estimator), tutti_context_unref(context);
}

static void test_nonsense_is_refused(void **state) {
  (void)state;
  check_refused((tutti_optimizer_sgd_attrs){.clip_value = -1}, "clip_value");
  check_refused((tutti_optimizer_sgd_attrs){.clip_value = NAN}, "clip_value");
  check_refused((tutti_optimizer_sgd_attrs){.clip_value = INFINITY}, "clip_value");
  check_refused((tutti_optimizer_sgd_attrs){.clip_norm = -0.5}, "clip_norm");
  check_refused((tutti_optimizer_sgd_attrs){.clip_norm = NAN}, "clip_norm");
  check_refused((tutti_optimizer_sgd_attrs){.average_decay = 1}, "average_decay is 1, expected at least 0 and less");
  check_refused((tutti_optimizer_sgd_attrs){.average_decay = 1.5}, "average_decay");
  check_refused((tutti_optimizer_sgd_attrs){.average_decay = NAN}, "average_decay");
  check_refused((tutti_optimizer_sgd_attrs){.average_decay = 0.5, .average_start = -1}, "average_start");
  check_refused((tutti_optimizer_sgd_attrs){.average_start = 3}, "average_start is set without average_decay");
  check_refused((tutti_optimizer_sgd_attrs){.average_ramp = 1}, "average_ramp is set without average_decay");
}

/* --- how gradients are added up ----------------------------------------------------------------------------------- */

struct kept_text {
  char text[4096];
};

static void keep_line(void *user, int32_t severity, const char *line) {
  struct kept_text *kept = user;
  (void)severity;
  const size_t used = strlen(kept->text);
  snprintf(kept->text + used, sizeof kept->text - used, "%s\n", line);
}

static void check_all_reduce(const char *choice, const char *said) {
  char run[64];
  snprintf(run, sizeof run, "{\"all_reduce\": \"%s\"}", choice);
  struct kept_text kept = {.text = ""};
  struct trained_line line = {.attrs = {.momentum = 0.9}};
  tutti_context *context = context_of(4);
  assert_ok(tutti_context_set_log(context, keep_line, &kept, NULL, TUTTI_LOG_INFO, &err));
  tutti_estimator *estimator = slope_estimator(context, &line, run);
  for (int i = 0; i < 2; i++)
    step(estimator, context, -1);
  assert_close(read_scalar(estimator, "w"), 2 + 1 + 1.9);
  assert_contains(kept.text, "gradients of 4 replicas are summed: ");
  assert_contains(kept.text, said);
  assert_ok(tutti_context_set_log(context, NULL, NULL, NULL, TUTTI_LOG_INFO, &err));
  tutti_estimator_unref(estimator), tutti_context_unref(context);
}

static void test_ways_to_add_up(void **state) {
  (void)state;
  check_all_reduce("automatic", "in the updates, which read those of all replicas in one memory");
  check_all_reduce("host", "host memory: host, as all_reduce asks");
  check_all_reduce("ring", "host memory: ring, as all_reduce asks");
  check_all_reduce("hierarchical", "host memory: hierarchical, nodes cpu:0 cpu:1 | cpu:2 cpu:3, as all_reduce asks");
  check_all_reduce("reduce_to_one", "host memory: reduce_to_one, as all_reduce asks");
}

static void test_what_cannot_be_had(void **state) {
  (void)state;
  struct trained_line line = {.attrs = {.momentum = 0}};
  tutti_options *options = NULL;
  tutti_estimator *estimator = NULL;
  assert_ok(tutti_options_create("run", &options, &err));
  tutti_options_set_string(options, "all_reduce", "butterfly");
  assert_error(TUTTI_INVALID_ARGUMENT, "reduce_to_one",
               tutti_estimator_create(NULL, slope_model, &line, NULL, NULL, options, &estimator, &err));
  tutti_options_unref(options);
  tutti_context *context = context_of(2);
  estimator = slope_estimator(context, &line, "{\"all_reduce\": \"device\"}");
  tutti_dataset *dataset = slope_dataset(context, 1, 4);
  assert_error(TUTTI_UNIMPLEMENTED, "automatic, host, ring, hierarchical and reduce_to_one do not need them",
               tutti_estimator_train(estimator, dataset, NULL, NULL, NULL, NULL, &err));
  tutti_estimator_unref(estimator), tutti_dataset_unref(dataset), tutti_context_unref(context);
  options = make_options("run", "{\"all_reduce\": \"ring\", \"determinism\": \"invariant\"}");
  assert_error(TUTTI_INVALID_ARGUMENT, "expected automatic, host or reduce_to_one",
               tutti_estimator_create(NULL, slope_model, &line, NULL, NULL, options, &estimator, &err));
  tutti_options_unref(options);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_averages_are_used),         cmocka_unit_test(test_start_and_ramp),
    cmocka_unit_test(test_checkpoints_have_averages), cmocka_unit_test(test_limits_of_gradients),
    cmocka_unit_test(test_nonsense_is_refused),       cmocka_unit_test(test_ways_to_add_up),
    cmocka_unit_test(test_what_cannot_be_had),
};
CAPI_TEST_MAIN(tests)
