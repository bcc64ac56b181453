/* SPDX-License-Identifier: Apache-2.0
 * The memory budget of a context: what does not fit is refused with the need and the budget, and costs nothing. With
 * the path of a plug-in: the same on its devices. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capi_testing.h"

static const char *plugin = "";

static int32_t wide_model(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  (void)user;
  tutti_layer_dense_attrs relu = {.activation = TUTTI_LAYER_DENSE_ACTIVATION_RELU};
  tutti_value x = tutti_layer_dense(g, tutti_graph_get_feature(g, "x"), 4096, &relu);
  tutti_value logits = tutti_layer_dense(g, tutti_layer_dense(g, x, 1024, &relu), 2, NULL);
  tutti_graph_set_output(g, "class", tutti_argmax(g, logits, NULL));
  if (mode != TUTTI_MODE_PREDICT) {
    tutti_graph_set_loss(g, tutti_loss_sparse_softmax_cross_entropy(g, logits, tutti_graph_get_label(g, "y"), NULL));
    tutti_optimizer_adam(g, tutti_schedule_constant(g, 1e-3), NULL);
  }
  return tutti_graph_check(g, err);
}

static tutti_dataset *dataset_in(tutti_context *context) {
  tutti_pipeline *pipeline = toy_rows(context, 32);
  tutti_dataset *dataset = NULL;
  tutti_pipeline_batch(pipeline, 8, NULL);
  assert_ok(tutti_pipeline_build(pipeline, &dataset, &err));
  tutti_pipeline_unref(pipeline);
  return dataset;
}

/* The weights of wide_model alone are 16 MiB, with Adam's slots and gradients 64. */
static void test_a_budget_is_kept(void **state) {
  (void)state;
  tutti_options *options = make_options("context", "{\"logical_devices\": 2, \"memory_bytes\": 60000000}");
  tutti_options_set_string(options, "plugin", plugin);
  tutti_context *context = NULL;
  tutti_strategy *strategy = NULL;
  tutti_estimator *wide = NULL, *small = NULL;
  assert_ok(tutti_context_create(options, &context, &err));
  assert_contains(tutti_context_describe_device(context, 0), "\"memory_bytes\":60000000");
  assert_ok(tutti_strategy_create_mirrored(context, NULL, 0, &strategy, &err));
  tutti_dataset *dataset = dataset_in(context);
  assert_ok(tutti_estimator_create(context, wide_model, NULL, NULL, strategy, NULL, &wide, &err));
  assert_ok(tutti_estimator_create(context, toy_model, NULL, NULL, strategy, NULL, &small, &err));
  for (int attempt = 0; attempt < 3; attempt++) {
    assert_error(TUTTI_RESOURCE_EXHAUSTED, "memory budget of 60000000 bytes",
                 tutti_estimator_train(wide, dataset, NULL, NULL, NULL, NULL, &err));
    /* What the failed attempt took is free again. */
    assert_ok(tutti_estimator_train(small, dataset, NULL, NULL, NULL, NULL, &err));
  }
  tutti_estimator_unref(wide);
  tutti_estimator_unref(small);
  tutti_strategy_unref(strategy);
  tutti_dataset_unref(dataset);
  tutti_context_unref(context);
  tutti_options_unref(options);
}

static void test_enough_is_enough(void **state) {
  (void)state;
  tutti_options *options = make_options("context", "{\"logical_devices\": 1, \"memory_bytes\": 300000000}");
  tutti_context *context = NULL;
  tutti_estimator *wide = NULL;
  assert_ok(tutti_context_create(options, &context, &err));
  tutti_dataset *dataset = dataset_in(context);
  assert_ok(tutti_estimator_create(context, wide_model, NULL, NULL, NULL, NULL, &wide, &err));
  assert_ok(tutti_estimator_train(wide, dataset, NULL, NULL, NULL, NULL, &err));
  tutti_estimator_unref(wide);
  tutti_dataset_unref(dataset);
  tutti_context_unref(context);
  tutti_options_unref(options);
}

/* What is found for the budget trains in it, and what the estimate says is about what that takes. */
static void test_c19_batches_are_found_for_a_budget(void **state) {
  (void)state;
  tutti_options *options = make_options("context", "{\"logical_devices\": 1, \"memory_bytes\": 150000000}");
  tutti_options_set_string(options, "plugin", plugin);
  tutti_context *context = NULL;
  tutti_estimator *wide = NULL;
  const char *text = NULL;
  int64_t rows = -1;
  assert_ok(tutti_context_create(options, &context, &err));
  tutti_pipeline *pipeline = toy_rows(context, 4000);
  tutti_dataset *dataset = NULL, *few = NULL;
  assert_ok(tutti_pipeline_build(pipeline, &few, &err));
  assert_ok(tutti_estimator_create(context, wide_model, NULL, NULL, NULL, NULL, &wide, &err));
  assert_error(TUTTI_INVALID_ARGUMENT, "a model takes batches: add batch()",
               tutti_estimator_estimate_memory(wide, few, 10, &text, &err));
  tutti_pipeline_unref(pipeline);
  pipeline = toy_rows(context, 4000);
  tutti_pipeline_batch(pipeline, 4000, NULL);
  assert_ok(tutti_pipeline_build(pipeline, &dataset, &err));
  tutti_pipeline_unref(pipeline);
  assert_ok(tutti_estimator_estimate_memory(wide, dataset, 0, &text, &err));
  assert_contains(text, "\"batch_size\":4000");
  assert_contains(text, "\"fits\":false");
  assert_ok(tutti_estimator_find_batch_size(wide, dataset, 4000, &rows, &err));
  assert_in_range(rows, 16, 3999);
  assert_ok(tutti_estimator_estimate_memory(wide, dataset, rows, &text, &err));
  assert_contains(text, "\"fits\":true");
  assert_contains(text, plugin[0] != '\0' ? "\"memory\":\"GPU 0\"" : "\"memory\":\"host\"");
  assert_error(TUTTI_INVALID_ARGUMENT, "'batch_size' must be 0 or more, got -1",
               tutti_estimator_estimate_memory(wide, dataset, -1, &text, &err));
  assert_error(TUTTI_INVALID_ARGUMENT, "'most' must be 1 or more, got 0",
               tutti_estimator_find_batch_size(wide, dataset, 0, &rows, &err));
  tutti_dataset_unref(dataset);
  tutti_dataset_unref(few);
  tutti_estimator_unref(wide);
  tutti_context_unref(context);
  tutti_options_unref(options);
}

static void count_lines(void *user, int32_t severity, const char *text) {
  if (severity == TUTTI_LOG_WARNING && strstr(text, "host memory is used instead") != NULL) ++*(int *)user;
}

/* The loss of wide_model's last step with context options; how many warnings were logged. */
static double wide_loss(const char *settings, int *warnings) {
  tutti_options *options = make_options("context", settings);
  tutti_options_set_string(options, "plugin", plugin);
  tutti_context *context = NULL;
  tutti_estimator *wide = NULL;
  tutti_result *result = NULL;
  *warnings = 0;
  assert_ok(tutti_context_create(options, &context, &err));
  assert_ok(tutti_context_set_log(context, count_lines, warnings, NULL, TUTTI_LOG_WARNING, &err));
  tutti_dataset *dataset = dataset_in(context);
  assert_ok(tutti_estimator_create(context, wide_model, NULL, NULL, NULL, NULL, &wide, &err));
  assert_ok(tutti_estimator_train(wide, dataset, NULL, NULL, NULL, &result, &err));
  const double loss = tutti_result_get_loss(result);
  tutti_result_unref(result);
  tutti_dataset_unref(dataset);
  tutti_estimator_unref(wide);
  tutti_context_unref(context);
  tutti_options_unref(options);
  return loss;
}

/* The integer of a JSON text behind the first such key. */
static int64_t number_of(const char *json, const char *key) {
  char quoted[64];
  snprintf(quoted, sizeof quoted, "\"%s\":", key);
  const char *found = strstr(json, quoted);
  assert_non_null(found);
  return strtoll(found + strlen(quoted), NULL, 10);
}

static int64_t gpu_bytes(void) {
  tutti_options *options = make_options("context", "{\"logical_devices\": 1}");
  tutti_options_set_string(options, "plugin", plugin);
  tutti_context *context = NULL;
  assert_ok(tutti_context_create(options, &context, &err));
  const int64_t bytes = number_of(tutti_context_describe_device(context, 0), "memory_bytes");
  tutti_context_unref(context);
  tutti_options_unref(options);
  return bytes;
}

/* A third of what wide_model needs, as a share of the GPU. */
static void test_a25_a_share_of_a_gpu_is_kept(void **state) {
  (void)state;
  char settings[160], allowed[80];
  const double fraction = 21500000.0 / (double)gpu_bytes();
  snprintf(settings, sizeof settings, "{\"logical_devices\": 2, \"gpu_memory_fraction\": %.15f}", fraction);
  tutti_options *options = make_options("context", settings);
  tutti_options_set_string(options, "plugin", plugin);
  tutti_context *context = NULL;
  tutti_estimator *wide = NULL;
  assert_ok(tutti_context_create(options, &context, &err));
  const int64_t limit = number_of(tutti_context_describe_device(context, 1), "memory_bytes");
  assert_in_range(limit, 21499000, 21501000);
  tutti_dataset *dataset = dataset_in(context);
  assert_ok(tutti_estimator_create(context, wide_model, NULL, NULL, NULL, NULL, &wide, &err));
  snprintf(allowed, sizeof allowed, "of the %lld bytes allowed on its GPU", (long long)limit);
  assert_error(TUTTI_RESOURCE_EXHAUSTED, allowed, tutti_estimator_train(wide, dataset, NULL, NULL, NULL, NULL, &err));
  int64_t rows = -1;
  assert_error(TUTTI_RESOURCE_EXHAUSTED, "more than memory 'GPU 0' has",
               tutti_estimator_find_batch_size(wide, dataset, 8, &rows, &err));
  tutti_dataset_unref(dataset);
  tutti_estimator_unref(wide);
  tutti_context_unref(context);
  tutti_options_unref(options);
  int warnings = 0;
  const double loss = wide_loss("{\"logical_devices\": 1}", &warnings);
  assert_int_equal(warnings, 0);
  snprintf(settings, sizeof settings,
           "{\"logical_devices\": 1, \"gpu_memory_fraction\": %.15f, \"gpu_uses_host_memory\": true}", fraction);
  /* Libraries of real GPUs may add up in another order. */
  const double tolerance = strstr(plugin, "emulated") != NULL ? 0 : 1e-3 * fabs(loss);
  assert_true(fabs(wide_loss(settings, &warnings) - loss) <= tolerance);
  assert_true(warnings > 0);
}

/* Bytes of the first device that a new estimator finds free. */
static int64_t available_in(tutti_context *context, const tutti_dataset *dataset) {
  tutti_estimator *small = NULL;
  const char *text = NULL;
  assert_ok(tutti_estimator_create(context, toy_model, NULL, NULL, NULL, NULL, &small, &err));
  assert_ok(tutti_estimator_estimate_memory(small, dataset, 0, &text, &err));
  const int64_t bytes = number_of(text, "available");
  tutti_estimator_unref(small);
  return bytes;
}

/* A context takes next to nothing of a GPU, and what was trained with is free again when the estimator goes. */
static void test_f1_memory_is_taken_and_given_back(void **state) {
  (void)state;
  tutti_options *options = make_options("context", "{\"logical_devices\": 1, \"gpu_memory_fraction\": 0.5}");
  tutti_options_set_string(options, "plugin", plugin);
  tutti_context *context = NULL;
  assert_ok(tutti_context_create(options, &context, &err));
  const int64_t limit = number_of(tutti_context_describe_device(context, 0), "memory_bytes");
  tutti_dataset *dataset = dataset_in(context);
  const int64_t before = available_in(context, dataset);
  assert_true(before >= limit - limit / 20);
  for (int training = 0; training < 2; training++) {
    tutti_estimator *wide = NULL;
    assert_ok(tutti_estimator_create(context, wide_model, NULL, NULL, NULL, NULL, &wide, &err));
    assert_ok(tutti_estimator_train(wide, dataset, NULL, NULL, NULL, NULL, &err));
    tutti_estimator_unref(wide);
    assert_int_equal(available_in(context, dataset), before);
  }
  tutti_dataset_unref(dataset);
  tutti_context_unref(context);
  tutti_options_unref(options);
}

static void test_gpus_are_listed(void **state) {
  (void)state;
  const char *bad[] = {"one", "0,", ",0", "0;1", "-1", "0 ,1"};
  tutti_context *context = NULL;
  tutti_options *options = make_options("context", "{}");
  tutti_options_set_string(options, "plugin", plugin);
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    tutti_options_set_string(options, "gpus", bad[i]);
    assert_error(TUTTI_INVALID_ARGUMENT, "expected numbers such as \"0,2\"",
                 tutti_context_create(options, &context, &err));
  }
  tutti_options_set_string(options, "gpus", "0,77");
  assert_error(TUTTI_INVALID_ARGUMENT, plugin[0] != '\0' ? "option gpus lists 77" : "gpus",
               tutti_context_create(options, &context, &err));
  if (plugin[0] != '\0') {
    tutti_options_set_string(options, "gpus", "0");
    assert_ok(tutti_context_create(options, &context, &err));
    assert_int_equal(tutti_context_get_device_count(context), 1);
    tutti_context_unref(context);
  }
  tutti_options_unref(options);
}

int main(int argc, char **argv) {
  const struct CMUnitTest on_processors[] = {
      cmocka_unit_test(test_a_budget_is_kept),
      cmocka_unit_test(test_enough_is_enough),
      cmocka_unit_test(test_c19_batches_are_found_for_a_budget),
      cmocka_unit_test(test_gpus_are_listed),
  };
  const struct CMUnitTest on_gpus[] = {
      cmocka_unit_test(test_a_budget_is_kept),
      cmocka_unit_test(test_a25_a_share_of_a_gpu_is_kept),
      cmocka_unit_test(test_f1_memory_is_taken_and_given_back),
      cmocka_unit_test(test_c19_batches_are_found_for_a_budget),
      cmocka_unit_test(test_gpus_are_listed),
  };
  if (argc > 1) {
    plugin = argv[1];
    if (is_missing(plugin)) return TEST_IS_SKIPPED;
    return cmocka_run_group_tests(on_gpus, remember_live_objects, assert_nothing_left);
  }
  return cmocka_run_group_tests(on_processors, remember_live_objects, assert_nothing_left);
}
