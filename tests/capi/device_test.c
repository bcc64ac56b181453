/* SPDX-License-Identifier: Apache-2.0
 * The same program on devices whose memory the host cannot read: a network trained, evaluated and used for prediction
 * on one and on several of them is the one that the reference backend trains, from a pipeline to the classes of rows.
 *
 * usage: device_test PLUG-IN */

#include "dense_fixtures.h"
#include "estimator_fixtures.h"

enum { ROWS = 50, BATCH = 16, STEPS = 30 };

static const char *plugin;

/* The four numbers of toy_row() as an image of 2 x 2: convolution, normalisation, dropout, dense. */
static int32_t image_model(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  (void)user;
  int64_t image[] = {-1, 2, 2, 1}, flat[] = {-1, 32};
  tutti_value x = tutti_reshape(g, tutti_graph_get_feature(g, "x"), image, 4);
  x = tutti_relu(g, tutti_layer_batch_norm(g, tutti_layer_conv2d(g, x, 8, 3, NULL), NULL));
  x = tutti_layer_dropout(g, tutti_reshape(g, x, flat, 2), 0.1);
  tutti_value logits = tutti_layer_dense(g, x, 2, NULL);
  tutti_graph_set_output(g, "logits", logits);
  tutti_graph_set_output(g, "class", tutti_argmax(g, logits, NULL));
  if (mode == TUTTI_MODE_PREDICT) return tutti_graph_check(g, err);
  tutti_value y = tutti_graph_get_label(g, "y");
  tutti_metric_accuracy(g, "accuracy", logits, y, NULL);
  tutti_graph_set_loss(g, tutti_loss_sparse_softmax_cross_entropy(g, logits, y, NULL));
  /* Not Adam: the gradient of a bias before a normalisation is rounding alone, of which Adam makes whole steps. */
  tutti_optimizer_sgd(g, tutti_schedule_constant(g, 0.2), NULL);
  return tutti_graph_check(g, err);
}

/* What a run of the program leaves. */
struct figures {
  double loss, accuracy, evaluated_loss;
  float logits[ROWS * 2];
};

static void predict(tutti_estimator *estimator, struct figures *figures) {
  float values[ROWS][DENSE_FEATURES];
  int32_t label = 0;
  for (int i = 0; i < ROWS; i++)
    toy_row(i, values[i], &label);
  int64_t dims[] = {ROWS, DENSE_FEATURES};
  tutti_tensor *rows = make_tensor(TUTTI_DTYPE_F32, 2, dims, values);
  tutti_predictor *predictor = NULL;
  tutti_batch *batch = NULL;
  const char *name = "x";
  assert_ok(tutti_predictor_from_estimator(estimator, NULL, &predictor, &err));
  assert_ok(tutti_predictor_run(predictor, &name, &rows, 1, NULL, &batch, &err));
  assert_int_equal(tutti_batch_get_row_count(batch), ROWS);
  memcpy(figures->logits, tutti_tensor_get_data(tutti_batch_get_output(batch, "logits")), sizeof figures->logits);
  const char *plan = NULL;
  assert_ok(tutti_predictor_describe_plan(predictor, ROWS, 2, NULL, &plan, &err));
  assert_contains(plan, "\"seconds\":"); /* of each kernel, by the device's clock */
  tutti_batch_unref(batch), tutti_predictor_unref(predictor), tutti_tensor_unref(rows);
}

/* The program on so many devices of a backend. */
static struct figures run_on(const char *backend, int replicas) {
  char json[4200];
  snprintf(json, sizeof json, "{\"%s\": \"%s\", \"logical_devices\": %d}", backend[0] == '/' ? "plugin" : "backend",
           backend, replicas);
  tutti_options *options = make_options("context", json), *run = make_options("run", "{\"seed\": 7}");
  tutti_context *context = NULL;
  tutti_strategy *strategy = NULL;
  tutti_estimator *estimator = NULL;
  assert_ok(tutti_context_create(options, &context, &err));
  assert_ok(tutti_strategy_create_mirrored(context, NULL, 0, &strategy, &err));
  assert_int_equal(tutti_strategy_get_replica_count(strategy), replicas);
  assert_ok(tutti_estimator_create(context, image_model, NULL, NULL, strategy, run, &estimator, &err));
  tutti_dataset *endless = dense_dataset(context, ROWS, BATCH, 1), *once = dense_dataset(context, ROWS, BATCH, 0);
  char steps[32];
  snprintf(steps, sizeof steps, "{\"steps\": %d}", STEPS);
  struct figures figures;
  const struct outcome trained = train(estimator, endless, steps), evaluated = evaluate(estimator, once, 0);
  assert_int_equal(trained.step, STEPS);
  figures.loss = trained.loss;
  figures.accuracy = evaluated.accuracy;
  figures.evaluated_loss = evaluated.loss;
  predict(estimator, &figures);
  tutti_dataset_unref(endless), tutti_dataset_unref(once);
  tutti_estimator_unref(estimator), tutti_strategy_unref(strategy), tutti_context_unref(context);
  tutti_options_unref(options), tutti_options_unref(run);
  return figures;
}

static void assert_near(double got, double expected, double tolerance) {
  if (!(got - expected < tolerance && expected - got < tolerance)) fail_msg("%g, expected %g", got, expected);
}

static void test_devices_train_the_model_of_the_reference(void **state) {
  (void)state;
  const struct figures expected = run_on("reference", 1);
  if (!(expected.evaluated_loss < 0.6)) fail_msg("it has learnt nothing: loss %g", expected.evaluated_loss);
  for (int replicas = 1; replicas <= 3; replicas++) {
    const struct figures got = run_on(plugin, replicas);
    assert_near(got.loss, expected.loss, 1e-3);
    assert_near(got.evaluated_loss, expected.evaluated_loss, 1e-3);
    assert_near(got.accuracy, expected.accuracy, 0.021); /* a row on the border */
    for (int i = 0; i < ROWS * 2; i++)
      assert_near(got.logits[i], expected.logits[i], 5e-3);
  }
}

/* The images of a batch as the model takes them, some of them mirrored. */
static int32_t mirror_and_scale(tutti_graph *g, void *user, tutti_error **err) {
  const int *rotates = user;
  int64_t flat[] = {-1, DENSE_FEATURES};
  const double mean[] = {0.4};
  tutti_value x = tutti_random_flip(g, tutti_graph_get_feature(g, "x"), NULL);
  if (*rotates) x = tutti_rotate(g, x, 10, NULL);
  tutti_normalize_image_attrs attrs = {.mean = mean, .mean_count = 1, .has_scale = 1, .scale = 1 / 255.0};
  tutti_graph_set_output(g, "x", tutti_reshape(g, tutti_normalize_image(g, x, &attrs), flat, 2));
  return tutti_graph_check(g, err);
}

static tutti_dataset *image_dataset(tutti_context *context, uint8_t on_device, int rotates) {
  uint8_t values[ROWS][4];
  int32_t labels[ROWS];
  for (int i = 0; i < ROWS; i++) {
    labels[i] = i * 7 % 2;
    for (int j = 0; j < 4; j++)
      values[i][j] = (uint8_t)(i * 31 + j * 57 + labels[i] * 90);
  }
  int64_t dims[] = {ROWS, 2, 2, 1};
  tutti_tensor *x = make_tensor(TUTTI_DTYPE_U8, 4, dims, values), *y = make_vector(TUTTI_DTYPE_I32, ROWS, labels);
  tutti_pipeline *pipeline = NULL;
  tutti_dataset *dataset = NULL;
  assert_ok(tutti_pipeline_create(context, &pipeline, &err));
  tutti_pipeline_add_slices(pipeline, "x", TUTTI_ROLE_FEATURE, x);
  tutti_pipeline_add_slices(pipeline, "y", TUTTI_ROLE_LABEL, y);
  tutti_pipeline_batch(pipeline, BATCH, NULL);
  tutti_pipeline_begin(pipeline, "map", 1);
  tutti_pipeline_set_bool(pipeline, "on_device", on_device);
  tutti_pipeline_set_graph(pipeline, mirror_and_scale, &rotates);
  tutti_pipeline_end(pipeline);
  tutti_pipeline_prefetch(pipeline, NULL);
  assert_ok(tutti_pipeline_build(pipeline, &dataset, &err));
  tutti_pipeline_unref(pipeline), tutti_tensor_unref(x), tutti_tensor_unref(y);
  return dataset;
}

/* Devices that may round otherwise than the host leave maps to it. */
static int rounds_freely;

static void count_refusals(void *user, int32_t severity, const char *text) {
  if (severity != TUTTI_LOG_WARNING || !strstr(text, "map with on_device")) return;
  if (strstr(text, "does not promise the host's rounding"))
    rounds_freely = 1;
  else
    ++*(int *)user;
}

static void count_words_on_steps(void *user, int32_t severity, const char *text) {
  const char *const expected = "steps: in pieces: there is only one process; memory of gradients: ";
  if (severity == TUTTI_LOG_INFO && strstr(text, expected)) ++*(int *)user;
}

/* Whoever reads the log knows how steps run and whether memory is registered, where there are several devices. */
static void test_the_log_says_how_steps_run(void **state) {
  (void)state;
  for (int replicas = 1; replicas <= 2; replicas++) {
    int lines = 0;
    char json[4200];
    snprintf(json, sizeof json, "{\"plugin\": \"%s\", \"logical_devices\": %d}", plugin, replicas);
    tutti_options *options = make_options("context", json);
    tutti_context *context = NULL;
    tutti_strategy *strategy = NULL;
    tutti_estimator *estimator = NULL;
    assert_ok(tutti_context_create(options, &context, &err));
    assert_ok(tutti_context_set_log(context, count_words_on_steps, &lines, NULL, TUTTI_LOG_INFO, &err));
    assert_ok(tutti_strategy_create_mirrored(context, NULL, 0, &strategy, &err));
    assert_ok(tutti_estimator_create(context, image_model, NULL, NULL, strategy, NULL, &estimator, &err));
    tutti_dataset *rows = dense_dataset(context, ROWS, BATCH, 1);
    assert_int_equal(train(estimator, rows, "{\"steps\": 2}").step, 2);
    assert_int_equal(lines, replicas - 1);
    tutti_dataset_unref(rows), tutti_estimator_unref(estimator), tutti_strategy_unref(strategy);
    tutti_context_unref(context), tutti_options_unref(options);
  }
}

/* Losses of a training and an evaluation, with a map that asks for the device or does not. */
static struct outcome train_on_images(int replicas, uint8_t on_device, int rotates, int *refusals) {
  char json[4200];
  snprintf(json, sizeof json, "{\"plugin\": \"%s\", \"logical_devices\": %d}", plugin, replicas);
  tutti_options *options = make_options("context", json);
  tutti_options *run = make_options("run", "{\"seed\": 7, \"determinism\": \"repeatable\"}");
  tutti_context *context = NULL;
  tutti_strategy *strategy = NULL;
  tutti_estimator *estimator = NULL;
  assert_ok(tutti_context_create(options, &context, &err));
  assert_ok(tutti_context_set_log(context, count_refusals, refusals, NULL, TUTTI_LOG_INFO, &err));
  assert_ok(tutti_strategy_create_mirrored(context, NULL, 0, &strategy, &err));
  assert_ok(tutti_estimator_create(context, image_model, NULL, NULL, strategy, run, &estimator, &err));
  tutti_dataset *dataset = image_dataset(context, on_device, rotates);
  struct outcome trained = train(estimator, dataset, "{\"epochs\": 3}");
  const struct outcome evaluated = evaluate(estimator, dataset, 0);
  trained.accuracy = evaluated.loss;
  tutti_dataset_unref(dataset), tutti_estimator_unref(estimator), tutti_strategy_unref(strategy);
  tutti_context_unref(context), tutti_options_unref(options), tutti_options_unref(run);
  return trained;
}

static void test_maps_on_devices(void **state) {
  (void)state;
  for (int replicas = 1; replicas <= 3; replicas++) {
    int refusals = 0;
    const struct outcome expected = train_on_images(replicas, 0, 0, &refusals);
    const struct outcome got = train_on_images(replicas, 1, 0, &refusals);
    assert_int_equal(refusals, 0);
    assert_int_equal(got.step, expected.step);
    assert_true(got.loss == expected.loss && got.accuracy == expected.accuracy);
  }
  /* An op that devices have not: the host does it, which is said once. */
  int refusals = 0;
  const struct outcome expected = train_on_images(1, 0, 1, &refusals);
  assert_int_equal(refusals, 0);
  assert_true(train_on_images(1, 1, 1, &refusals).loss == expected.loss);
  assert_true(refusals == 1 || rounds_freely);
}

static void test_bad_labels_are_named(void **state) {
  (void)state;
  char json[4200];
  snprintf(json, sizeof json, "{\"plugin\": \"%s\"}", plugin);
  tutti_options *options = make_options("context", json);
  tutti_context *context = NULL;
  tutti_estimator *estimator = NULL;
  assert_ok(tutti_context_create(options, &context, &err));
  assert_ok(tutti_estimator_create(context, image_model, NULL, NULL, NULL, NULL, &estimator, &err));
  float values[2][DENSE_FEATURES] = {{0}};
  int32_t labels[2] = {0, 9};
  int64_t dims[] = {2, DENSE_FEATURES};
  tutti_tensor *x = make_tensor(TUTTI_DTYPE_F32, 2, dims, values), *y = make_vector(TUTTI_DTYPE_I32, 2, labels);
  tutti_pipeline *pipeline = NULL;
  tutti_dataset *dataset = NULL;
  tutti_result *result = NULL;
  assert_ok(tutti_pipeline_create(context, &pipeline, &err));
  tutti_pipeline_add_slices(pipeline, "x", TUTTI_ROLE_FEATURE, x);
  tutti_pipeline_add_slices(pipeline, "y", TUTTI_ROLE_LABEL, y);
  tutti_pipeline_batch(pipeline, 2, NULL);
  assert_ok(tutti_pipeline_build(pipeline, &dataset, &err));
  assert_error(TUTTI_INVALID_ARGUMENT, "label 9",
               tutti_estimator_train(estimator, dataset, NULL, NULL, NULL, &result, &err));
  tutti_result_unref(result), tutti_dataset_unref(dataset), tutti_pipeline_unref(pipeline);
  tutti_tensor_unref(x), tutti_tensor_unref(y);
  tutti_estimator_unref(estimator), tutti_context_unref(context), tutti_options_unref(options);
}

int main(int argc, char **argv) {
  if (argc < 2) return 2;
  plugin = argv[1];
  if (is_missing(plugin)) return TEST_IS_SKIPPED;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_devices_train_the_model_of_the_reference),
      cmocka_unit_test(test_the_log_says_how_steps_run),
      cmocka_unit_test(test_maps_on_devices),
      cmocka_unit_test(test_bad_labels_are_named),
  };
  return cmocka_run_group_tests(tests, remember_live_objects, assert_nothing_left);
}
