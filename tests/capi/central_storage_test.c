/* SPDX-License-Identifier: Apache-2.0
 * Central storage through the C interface: the model of mirrored replicas, with one of them, with a device of its own
 * and with a processor; where its memory is; checkpoints to and from other strategies; evaluation and prediction.
 *
 * usage: central_storage_test [PLUG-IN] (of devices with memory of their own; else processors) */
#include <stdlib.h>

#include "estimator_fixtures.h"

enum { HIDDEN = 64, ROWS = 100 };

static const char *plugin;

static const char *processors(void) { return tutti_has_feature("backend:cpu") ? "cpu" : "reference"; }

/* Four devices of the plug-in, behind two processors; or four processors. */
static tutti_context *open_context(void) {
  char backends[4200];
  snprintf(backends, sizeof backends, plugin != NULL ? "%s, %s" : "%s", processors(), plugin);
  tutti_options *options = make_options("context", "{\"logical_devices\": 4}");
  tutti_options_set_string(options, "backend", backends);
  tutti_context *context = NULL;
  assert_ok(tutti_context_create(options, &context, &err));
  tutti_options_unref(options);
  return context;
}

/* Of those that compute; 3 is one more than these. */
static const char *device_of(tutti_context *context, int index) {
  return tutti_context_get_device_name(context, index + (plugin != NULL ? 4 : 0));
}

enum place { MIRRORED, DEFAULT, SECOND, APART, PROCESSOR };

static tutti_strategy *strategy_of(tutti_context *context, enum place place) {
  const char *const devices[] = {device_of(context, 0), device_of(context, 1), device_of(context, 2)};
  const char *storage = NULL;
  if (place == SECOND) storage = devices[1];
  if (place == APART) storage = device_of(context, 3);
  if (place == PROCESSOR) storage = tutti_context_get_device_name(context, 0);
  tutti_strategy *strategy = NULL;
  if (place == MIRRORED)
    assert_ok(tutti_strategy_create_mirrored(context, devices, 3, &strategy, &err));
  else
    assert_ok(tutti_strategy_create_central_storage(context, storage, devices, 3, &strategy, &err));
  return strategy;
}

enum optimizer { MOMENTUM, ADAM, AVERAGED_ADAMW, OPTIMIZERS };

static int32_t model(tutti_graph *graph, int32_t mode, void *user, tutti_error **err) {
  tutti_layer_dense_attrs tanh = {.activation = TUTTI_LAYER_DENSE_ACTIVATION_TANH};
  tutti_value hidden = tutti_layer_dense(graph, tutti_graph_get_feature(graph, "x"), HIDDEN, &tanh);
  tutti_value logits = tutti_layer_dense(graph, hidden, 2, NULL);
  tutti_graph_set_output(graph, "logits", logits);
  if (mode == TUTTI_MODE_PREDICT) return tutti_graph_check(graph, err);
  tutti_value label = tutti_graph_get_label(graph, "y");
  tutti_metric_accuracy(graph, "accuracy", logits, label, NULL);
  tutti_graph_set_loss(graph, tutti_loss_sparse_softmax_cross_entropy(graph, logits, label, NULL));
  tutti_graph_set_gradient_clip_norm(graph, 0.5);
  tutti_value rate = tutti_schedule_constant(graph, 1e-2);
  const tutti_optimizer_sgd_attrs momentum = {.momentum = 0.9};
  const tutti_optimizer_adamw_attrs averaged = {.average_decay = 0.9};
  switch (*(const enum optimizer *)user) {
    case MOMENTUM:
      tutti_optimizer_sgd(graph, rate, &momentum);
      break;
    case ADAM:
      tutti_optimizer_adam(graph, rate, NULL);
      break;
    default:
      tutti_optimizer_adamw(graph, rate, &averaged);
  }
  return tutti_graph_check(graph, err);
}

static tutti_dataset *rows_of(tutti_context *context, int64_t rows, int64_t batch) {
  tutti_pipeline *pipeline = toy_rows(context, rows);
  tutti_dataset *dataset = NULL;
  tutti_pipeline_batch(pipeline, batch, NULL);
  assert_ok(tutti_pipeline_build(pipeline, &dataset, &err));
  tutti_pipeline_unref(pipeline);
  return dataset;
}

static tutti_estimator *estimator_of(tutti_context *context, enum place place, enum optimizer *optimizer,
                                     const char *run, const char *directory) {
  tutti_strategy *strategy = strategy_of(context, place);
  tutti_options *options = make_options("run", run);
  if (directory != NULL) tutti_options_set_string(options, "model_dir", directory);
  tutti_estimator *estimator = NULL;
  assert_ok(tutti_estimator_create(context, model, optimizer, NULL, strategy, options, &estimator, &err));
  tutti_options_unref(options), tutti_strategy_unref(strategy);
  return estimator;
}

/* Copies for each device also of processors; sums in one order. */
#define COPIES "\"seed\": 3, \"all_reduce\": \"host\", \"determinism\": \"repeatable\""

struct weights {
  float kernel[4 * HIDDEN], slot[4 * HIDDEN], bias[2];
};

static void read_into(tutti_estimator *estimator, const char *name, void *values, size_t size) {
  tutti_tensor *tensor = NULL;
  assert_ok(tutti_estimator_read_variable(estimator, name, &tensor, &err));
  assert_int_equal(tutti_tensor_get_size_bytes(tensor), size);
  memcpy(values, tutti_tensor_get_data(tensor), size);
  tutti_tensor_unref(tensor);
}

static struct weights read_weights(tutti_estimator *estimator, enum optimizer optimizer) {
  static const char *const slots[] = {"dense/kernel/velocity", "dense/kernel/v", "dense/kernel/average"};
  struct weights weights;
  read_into(estimator, "dense/kernel", weights.kernel, sizeof weights.kernel);
  read_into(estimator, slots[optimizer], weights.slot, sizeof weights.slot);
  read_into(estimator, "dense_1/bias", weights.bias, sizeof weights.bias);
  return weights;
}

/* By another backend with other rounding. */
static void assert_near(const struct weights *got, const struct weights *expected) {
  for (int i = 0; i < 4 * HIDDEN; i++)
    assert_true(got->kernel[i] - expected->kernel[i] < 2e-3f && expected->kernel[i] - got->kernel[i] < 2e-3f);
}

/* 100 rows in batches of 23: shares of 8, 8 and 7 rows, and of 3, 3 and 2. */
static struct weights trained(tutti_context *context, enum place place, enum optimizer optimizer, const char *run) {
  tutti_estimator *estimator = estimator_of(context, place, &optimizer, run, NULL);
  tutti_dataset *dataset = rows_of(context, ROWS, 23);
  for (int pass = 0; pass < 3; pass++)
    assert_int_equal(train(estimator, dataset, NULL).examples, ROWS);
  const struct weights weights = read_weights(estimator, optimizer);
  tutti_dataset_unref(dataset), tutti_estimator_unref(estimator);
  return weights;
}

static void test_c20_central_storage_equals_mirrored(void **state) {
  (void)state;
  tutti_context *context = open_context();
  const char *const runs[] = {"{" COPIES "}", "{" COPIES ", \"accumulation_steps\": 2}"};
  for (enum optimizer optimizer = MOMENTUM; optimizer < OPTIMIZERS; optimizer++) {
    for (int r = 0; r < 2; r++) {
      const struct weights expected = trained(context, MIRRORED, optimizer, runs[r]);
      for (enum place place = DEFAULT; place <= PROCESSOR; place++) {
        const struct weights got = trained(context, place, optimizer, runs[r]);
        if (place == PROCESSOR && plugin != NULL)
          assert_near(&got, &expected);
        else
          assert_memory_equal(&got, &expected, sizeof got);
      }
    }
  }
  /* However devices add up otherwise. */
  const struct weights expected = trained(context, MIRRORED, MOMENTUM, "{\"seed\": 3}");
  for (enum place place = DEFAULT; place <= PROCESSOR; place++) {
    const struct weights got = trained(context, place, MOMENTUM, "{\"seed\": 3}");
    assert_near(&got, &expected);
  }
  tutti_context_unref(context);
}

/* The bytes of slots that an estimate gives for a device; -1: it does not list the device. */
static int64_t slots_of(const char *estimate, const char *device) {
  char text[128];
  snprintf(text, sizeof text, "\"device\":\"%s\"", device);
  const char *at = strstr(estimate, text);
  at = at != NULL ? strstr(at, "\"slots\":") : NULL;
  return at != NULL ? strtoll(at + strlen("\"slots\":"), NULL, 10) : -1;
}

static void test_c20_central_storage_has_slots_in_one_place(void **state) {
  (void)state;
  tutti_context *context = open_context();
  enum optimizer adam = ADAM;
  for (enum place place = DEFAULT; place <= PROCESSOR; place++) {
    tutti_estimator *estimator = estimator_of(context, place, &adam, "{" COPIES "}", NULL);
    tutti_dataset *dataset = rows_of(context, ROWS, 23);
    const char *text = NULL;
    assert_ok(tutti_estimator_estimate_memory(estimator, dataset, 0, &text, &err));
    const int storage = place == SECOND ? 1 : place == APART ? 3 : 0;
    for (int d = 0; d < 3; d++) {
      const int is_storage = d == storage && (place != PROCESSOR || plugin == NULL);
      const int64_t bytes = slots_of(text, device_of(context, d));
      assert_true(is_storage ? bytes >= 2 * 4 * 4 * HIDDEN : bytes == 0);
    }
    const char *apart = place == PROCESSOR ? tutti_context_get_device_name(context, 0) : device_of(context, storage);
    assert_true(slots_of(text, apart) >= 2 * 4 * 4 * HIDDEN);
    tutti_dataset_unref(dataset), tutti_estimator_unref(estimator);
  }
  tutti_context_unref(context);
}

static void find_line(void *user, int32_t severity, const char *text) {
  (void)severity;
  if (strncmp(text, "variables are ", 14) == 0) snprintf(user, 128, "%s", text);
}

static void test_c20_central_storage_says_where(void **state) {
  (void)state;
  tutti_context *context = open_context();
  char line[128] = "", expected[128];
  assert_ok(tutti_context_set_log(context, find_line, line, NULL, TUTTI_LOG_INFO, &err));
  trained(context, SECOND, ADAM, "{" COPIES "}");
  snprintf(expected, sizeof expected,
           "variables are on %s, which updates them and gives 2 other devices the new weights in each step",
           device_of(context, 1));
  assert_string_equal(line, expected);
  if (plugin == NULL) {
    trained(context, SECOND, ADAM, "{\"seed\": 3}");
    assert_string_equal(line, "variables are one copy in the host's memory");
  }
  tutti_context_unref(context);
}

/* Half of a training with one strategy, and half with another one. */
static struct weights resumed(tutti_context *context, enum place first, enum place second) {
  enum optimizer optimizer = AVERAGED_ADAMW;
  char directory[64];
  make_directory(directory);
  const enum place places[] = {first, second};
  struct weights weights;
  tutti_dataset *dataset = rows_of(context, ROWS, 23);
  for (int half = 0; half < 2; half++) {
    tutti_estimator *estimator = estimator_of(context, places[half], &optimizer, "{" COPIES "}", directory);
    assert_int_equal(train(estimator, dataset, "{\"steps\": 2}").step, 2 * (half + 1));
    weights = read_weights(estimator, optimizer);
    tutti_estimator_unref(estimator);
  }
  tutti_dataset_unref(dataset);
  remove_directory(directory);
  return weights;
}

static void test_c20_central_storage_resumes_other_strategies(void **state) {
  (void)state;
  tutti_context *context = open_context();
  const struct weights expected = resumed(context, MIRRORED, MIRRORED);
  const enum place both[][2] = {{MIRRORED, DEFAULT}, {SECOND, MIRRORED}, {APART, SECOND}};
  for (int i = 0; i < 3; i++) {
    const struct weights got = resumed(context, both[i][0], both[i][1]);
    assert_memory_equal(&got, &expected, sizeof got);
  }
  tutti_context_unref(context);
}

static void predict_rows(tutti_estimator *estimator, tutti_tensor *x, float logits[2 * ROWS]) {
  tutti_predictor *predictor = NULL;
  tutti_batch *batch = NULL;
  const char *name = "x";
  assert_ok(tutti_predictor_from_estimator(estimator, NULL, &predictor, &err));
  assert_ok(tutti_predictor_run(predictor, &name, &x, 1, NULL, &batch, &err));
  memcpy(logits, tutti_tensor_get_data(tutti_batch_get_output(batch, "logits")), 2 * ROWS * sizeof(float));
  tutti_batch_unref(batch), tutti_predictor_unref(predictor);
}

static void test_c20_central_storage_evaluates_and_predicts(void **state) {
  (void)state;
  tutti_context *context = open_context();
  float rows[4 * ROWS], expected[2 * ROWS], got[2 * ROWS];
  int32_t label;
  for (int64_t row = 0; row < ROWS; row++)
    toy_row(row, rows + 4 * row, &label);
  const int64_t dims[] = {ROWS, 4};
  tutti_tensor *x = make_tensor(TUTTI_DTYPE_F32, 2, dims, rows);
  double loss = 0, accuracy = 0;
  for (enum place place = MIRRORED; place <= PROCESSOR; place++) {
    enum optimizer optimizer = MOMENTUM;
    tutti_estimator *estimator = estimator_of(context, place, &optimizer, "{" COPIES "}", NULL);
    tutti_dataset *dataset = rows_of(context, ROWS, 23);
    train(estimator, dataset, NULL);
    const struct outcome outcome = evaluate(estimator, dataset, 0);
    if (place == MIRRORED) loss = outcome.loss, accuracy = outcome.accuracy;
    assert_int_equal(outcome.examples, ROWS);
    assert_close(outcome.loss, loss);
    assert_close(outcome.accuracy, accuracy);
    predict_rows(estimator, x, place == MIRRORED ? expected : got);
    for (int i = 0; place != MIRRORED && i < 2 * ROWS; i++)
      assert_true(got[i] - expected[i] < 1e-4f && expected[i] - got[i] < 1e-4f);
    tutti_dataset_unref(dataset), tutti_estimator_unref(estimator);
  }
  tutti_tensor_unref(x), tutti_context_unref(context);
}

static void test_c20_central_storage_devices(void **state) {
  (void)state;
  tutti_context *context = open_context();
  tutti_strategy *strategy = strategy_of(context, SECOND);
  assert_int_equal(tutti_strategy_get_replica_count(strategy), 3);
  assert_string_equal(tutti_strategy_get_device(strategy, 0), device_of(context, 1));
  assert_string_equal(tutti_strategy_get_device(strategy, 1), device_of(context, 0));
  assert_string_equal(tutti_strategy_get_device(strategy, 2), device_of(context, 2));
  tutti_strategy_unref(strategy);
  /* The processors of a context with GPUs do not compute unless they are named. */
  const char *const storage = tutti_context_get_device_name(context, 0);
  assert_ok(tutti_strategy_create_central_storage(context, storage, NULL, 0, &strategy, &err));
  assert_int_equal(tutti_strategy_get_replica_count(strategy), 4);
  assert_string_equal(tutti_strategy_get_device(strategy, 3), device_of(context, 3));
  tutti_strategy_unref(strategy);
  const char *const twice[] = {storage, storage}, *const nobody[] = {storage, NULL};
  assert_error(TUTTI_INVALID_ARGUMENT, "is listed twice",
               tutti_strategy_create_central_storage(context, NULL, twice, 2, &strategy, &err));
  assert_error(TUTTI_INVALID_ARGUMENT, "a device name is NULL",
               tutti_strategy_create_central_storage(context, NULL, nobody, 2, &strategy, &err));
  assert_error(TUTTI_INVALID_ARGUMENT, "'devices'",
               tutti_strategy_create_central_storage(context, NULL, NULL, 2, &strategy, &err));
  assert_error(TUTTI_INVALID_ARGUMENT, "'count' must be 0 or more, got -1",
               tutti_strategy_create_central_storage(context, NULL, twice, -1, &strategy, &err));
  assert_error(TUTTI_NOT_FOUND, "no device 'gpu:9'; the context has ",
               tutti_strategy_create_central_storage(context, "gpu:9", NULL, 0, &strategy, &err));
  assert_null(strategy);
  assert_error(TUTTI_INVALID_ARGUMENT, "'out'",
               tutti_strategy_create_central_storage(context, NULL, NULL, 0, NULL, &err));
  /* A default context computes where it can. */
  assert_ok(tutti_strategy_create_central_storage(NULL, NULL, NULL, 0, &strategy, &err));
  assert_true(tutti_strategy_get_replica_count(strategy) >= 1);
  tutti_strategy_unref(strategy), tutti_context_unref(context);
}

static void test_c20_central_storage_refuses_other_sums(void **state) {
  (void)state;
  tutti_context *context = open_context();
  enum optimizer optimizer = ADAM;
  tutti_estimator *estimator = estimator_of(context, DEFAULT, &optimizer, "{\"all_reduce\": \"ring\"}", NULL);
  tutti_dataset *dataset = rows_of(context, ROWS, 23);
  assert_error(TUTTI_INVALID_ARGUMENT,
               "all_reduce is ring, but with central storage gradients are added up in one place",
               tutti_estimator_train(estimator, dataset, NULL, NULL, NULL, NULL, &err));
  tutti_dataset_unref(dataset), tutti_estimator_unref(estimator), tutti_context_unref(context);
}

int main(int argc, char **argv) {
  plugin = argc > 1 ? argv[1] : NULL;
  if (plugin != NULL && is_missing(plugin)) return TEST_IS_SKIPPED;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_c20_central_storage_devices),
      cmocka_unit_test(test_c20_central_storage_equals_mirrored),
      cmocka_unit_test(test_c20_central_storage_has_slots_in_one_place),
      cmocka_unit_test(test_c20_central_storage_says_where),
      cmocka_unit_test(test_c20_central_storage_resumes_other_strategies),
      cmocka_unit_test(test_c20_central_storage_evaluates_and_predicts),
      cmocka_unit_test(test_c20_central_storage_refuses_other_sums),
  };
  return cmocka_run_group_tests(tests, remember_live_objects, assert_nothing_left);
}
