/* SPDX-License-Identifier: Apache-2.0
 * Option "precision" of runs and predictors: who gets products of bfloat16, and who does not. */
#include <stdlib.h>

#include "capi_testing.h"

#define PRECISIONS 3
static const char *const precisions[PRECISIONS] = {"bf16_where_faster", "tf32_where_faster", "f16_where_faster"};

/* The four numbers of toy_row() as an image of 2 x 2 with one channel. */
static int32_t convolution_model(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  (void)user;
  int64_t image[] = {-1, 2, 2, 1}, flat[] = {-1, 64};
  tutti_value x = tutti_reshape(g, tutti_graph_get_feature(g, "x"), image, 4);
  x = tutti_layer_conv2d(g, x, 16, 3, &(tutti_layer_conv2d_attrs){.activation = TUTTI_LAYER_CONV2D_ACTIVATION_RELU});
  tutti_value logits = tutti_layer_dense(g, tutti_reshape(g, x, flat, 2), 2, NULL);
  tutti_graph_set_output(g, "logits", logits);
  if (mode == TUTTI_MODE_PREDICT) return tutti_graph_check(g, err);
  tutti_value losses = tutti_sparse_softmax_cross_entropy(g, logits, tutti_graph_get_label(g, "y"), NULL);
  tutti_graph_set_loss(g, tutti_reduce_mean(g, losses, NULL));
  tutti_optimizer_adam(g, tutti_schedule_constant(g, 0.02), NULL);
  return tutti_graph_check(g, err);
}

static tutti_estimator *estimator_with(const char *run) {
  tutti_options *options = make_options("run", run);
  tutti_estimator *estimator = NULL;
  assert_ok(tutti_estimator_create(NULL, convolution_model, NULL, NULL, NULL, options, &estimator, &err));
  tutti_options_unref(options);
  return estimator;
}

/* Does the plan of a predictor over the estimator name bfloat16? */
static int names_bf16(tutti_estimator *estimator, const char *json) {
  tutti_options *options = json != NULL ? make_options("predictor", json) : NULL;
  tutti_predictor *predictor = NULL;
  const char *plan = NULL;
  assert_ok(tutti_predictor_from_estimator(estimator, options, &predictor, &err));
  assert_ok(tutti_predictor_describe_plan(predictor, 8, 0, NULL, &plan, &err));
  const int names = strstr(plan, "bf16") != NULL;
  tutti_predictor_unref(predictor);
  tutti_options_unref(options);
  return names;
}

/* Must agree with has_bf16() of the CPU backend. */
static int multiplies_bf16(void) {
  if (getenv("DNNL_MAX_CPU_ISA") != NULL || getenv("ONEDNN_MAX_CPU_ISA") != NULL) return 0;
  FILE *file = fopen("/proc/cpuinfo", "r");
  char line[8192];
  int found = 0;
  while (file != NULL && !found && fgets(line, sizeof line, file) != NULL)
    found = strncmp(line, "flags", 5) == 0 && strstr(line, " avx512_bf16") != NULL;
  if (file != NULL) fclose(file);
  return found;
}

/* The loss after `epochs` passes. */
static double train_passes(tutti_estimator *estimator, int64_t epochs) {
  tutti_dataset *dataset = toy_dataset(64, 16, epochs);
  tutti_result *result = NULL;
  assert_ok(tutti_estimator_train(estimator, dataset, NULL, NULL, NULL, &result, &err));
  const double loss = tutti_result_get_metric(result, "loss");
  tutti_result_unref(result);
  tutti_dataset_unref(dataset);
  return loss;
}

static void test_only_who_permits_gets_it(void **state) {
  (void)state;
  assert_int_equal(setenv("TUTTI_CPU_CONVOLUTION", "dnnl_bf16", 1), 0);
  tutti_estimator *exact = estimator_with("{\"seed\": 3}"), *same = estimator_with("{\"seed\": 3}");
  tutti_estimator *rounded = estimator_with("{\"seed\": 3, \"precision\": \"bf16_where_faster\"}");
  const double first = train_passes(exact, 1), first_rounded = train_passes(rounded, 1);
  assert_true(first == train_passes(same, 1));
  /* One layer of this kind, forward and backward: 2^-7 each. */
  assert_true(first_rounded >= first * (1 - 0.016 * 2) && first_rounded <= first * (1 + 0.016 * 2));
  const double last = train_passes(exact, 20), last_rounded = train_passes(rounded, 20);
  assert_true(last < 0.5 * first);
  assert_true(last_rounded < 0.5 * first);
  assert_int_equal(last_rounded != last, multiplies_bf16());
  assert_int_equal(names_bf16(exact, "{\"precision\": \"bf16_where_faster\"}"), multiplies_bf16());
  assert_int_equal(names_bf16(rounded, "{\"precision\": \"f32\"}"), 0);
  assert_int_equal(names_bf16(rounded, NULL), 0);
  assert_int_equal(unsetenv("TUTTI_CPU_CONVOLUTION"), 0);
  tutti_estimator_unref(exact), tutti_estimator_unref(same), tutti_estimator_unref(rounded);
}

static void test_levels_that_repeat_refuse_it(void **state) {
  (void)state;
  static const char *const levels[] = {"repeatable", "invariant"};
  tutti_estimator *trained = estimator_with("{}");
  train_passes(trained, 1);
  for (size_t i = 0; i < 2 * PRECISIONS; i++) {
    const char *precision = precisions[i / 2];
    char json[128], message[128];
    snprintf(json, sizeof json, "{\"precision\": \"%s\", \"determinism\": \"%s\"}", precision, levels[i % 2]);
    snprintf(message, sizeof message, "precision is %s, which needs determinism fast", precision);
    tutti_options *run = make_options("run", json), *prediction = make_options("predictor", json);
    tutti_estimator *estimator = NULL;
    tutti_predictor *predictor = NULL;
    assert_error(TUTTI_INVALID_ARGUMENT, message,
                 tutti_estimator_create(NULL, convolution_model, NULL, NULL, NULL, run, &estimator, &err));
    assert_error(TUTTI_INVALID_ARGUMENT, message,
                 tutti_predictor_from_estimator(trained, prediction, &predictor, &err));
    tutti_options_unref(run), tutti_options_unref(prediction);
  }
  tutti_estimator_unref(trained);
}

/* Loss of a short training on a backend. */
static double loss_on(const char *backend, const char *precision) {
  char context_json[64], run_json[64];
  snprintf(context_json, sizeof context_json, "{\"backend\": \"%s\"}", backend);
  snprintf(run_json, sizeof run_json, "{\"seed\": 3, \"precision\": \"%s\"}", precision);
  tutti_options *on = make_options("context", context_json), *run = make_options("run", run_json);
  tutti_context *context = NULL;
  tutti_estimator *estimator = NULL;
  assert_ok(tutti_context_create(on, &context, &err));
  tutti_pipeline *pipeline = toy_rows(context, 32);
  tutti_dataset *dataset = NULL;
  tutti_pipeline_batch(pipeline, 16, NULL);
  assert_ok(tutti_pipeline_build(pipeline, &dataset, &err));
  assert_ok(tutti_estimator_create(context, convolution_model, NULL, NULL, NULL, run, &estimator, &err));
  tutti_result *result = NULL;
  assert_ok(tutti_estimator_train(estimator, dataset, NULL, NULL, NULL, &result, &err));
  const double loss = tutti_result_get_metric(result, "loss");
  tutti_result_unref(result), tutti_estimator_unref(estimator), tutti_dataset_unref(dataset);
  tutti_pipeline_unref(pipeline), tutti_context_unref(context), tutti_options_unref(run), tutti_options_unref(on);
  return loss;
}

static void test_backends_without_it_compute_as_ever(void **state) {
  (void)state;
  for (size_t i = 0; i < PRECISIONS; i++) {
    assert_true(loss_on("reference", precisions[i]) == loss_on("reference", "f32"));
    if (strcmp(precisions[i], "bf16_where_faster") == 0) continue;
    assert_true(loss_on("cpu", precisions[i]) == loss_on("cpu", "f32"));
    char json[64];
    snprintf(json, sizeof json, "{\"precision\": \"%s\"}", precisions[i]);
    tutti_estimator *estimator = estimator_with(json);
    train_passes(estimator, 1);
    assert_int_equal(names_bf16(estimator, json), 0);
    tutti_estimator_unref(estimator);
  }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_only_who_permits_gets_it),
    cmocka_unit_test(test_levels_that_repeat_refuse_it),
    cmocka_unit_test(test_backends_without_it_compute_as_ever),
};

CAPI_TEST_MAIN(tests)
