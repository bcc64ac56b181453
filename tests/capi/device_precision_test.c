/* SPDX-License-Identifier: Apache-2.0
 * Training and predictions in f16 on devices that multiply it: what a checkpoint keeps of the scale of the loss, and
 * how far results are from f32's.
 *
 * usage: device_precision_test PLUG-IN */
#include <math.h>

#include "estimator_fixtures.h"

enum { ROWS = 64, BATCH = 16, STEPS = 14, FIRST_STEPS = 5, FEATURES = 4 };

static const char *plugin;

/* The loss is so large that its gradients are beyond f16's range until its scale has been halved some times. */
static const double largeness = 1 << 14;

static int32_t large_loss_model(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  (void)user;
  tutti_layer_dense_attrs relu = {.activation = TUTTI_LAYER_DENSE_ACTIVATION_RELU};
  tutti_value x = tutti_layer_dense(g, tutti_graph_get_feature(g, "x"), 32, &relu);
  tutti_value logits = tutti_layer_dense(g, tutti_layer_dense(g, x, 32, &relu), 2, NULL);
  tutti_graph_set_output(g, "logits", logits);
  if (mode == TUTTI_MODE_PREDICT) return tutti_graph_check(g, err);
  tutti_value losses = tutti_sparse_softmax_cross_entropy(g, logits, tutti_graph_get_label(g, "y"), NULL);
  tutti_value factor = tutti_graph_constant(g, TUTTI_DTYPE_F32, largeness);
  tutti_graph_set_loss(g, tutti_mul(g, tutti_reduce_mean(g, losses, NULL), factor));
  tutti_optimizer_sgd(g, tutti_schedule_constant(g, 0.1 / largeness), NULL);
  return tutti_graph_check(g, err);
}

struct program {
  tutti_context *context;
  tutti_estimator *estimator;
  tutti_dataset *dataset;
};

static struct program open_program(const char *precision, const char *model_dir) {
  struct program program = {NULL, NULL, NULL};
  char json[256];
  tutti_options *on = make_options("context", "{}");
  tutti_options_set_string(on, "plugin", plugin);
  assert_ok(tutti_context_create(on, &program.context, &err));
  snprintf(json, sizeof json, "{\"seed\": 5, \"precision\": \"%s\"}", precision);
  tutti_options *run = make_options("run", json);
  if (model_dir != NULL) tutti_options_set_string(run, "model_dir", model_dir);
  assert_ok(tutti_estimator_create(program.context, large_loss_model, NULL, NULL, NULL, run, &program.estimator, &err));
  tutti_pipeline *pipeline = toy_rows(program.context, ROWS);
  tutti_pipeline_repeat(pipeline, NULL);
  tutti_pipeline_batch(pipeline, BATCH, NULL);
  assert_ok(tutti_pipeline_build(pipeline, &program.dataset, &err));
  tutti_pipeline_unref(pipeline), tutti_options_unref(on), tutti_options_unref(run);
  return program;
}

static void close_program(struct program *program) {
  tutti_dataset_unref(program->dataset), tutti_estimator_unref(program->estimator);
  tutti_context_unref(program->context);
}

/* What a training says at its end. */
struct ending {
  int64_t step;
  double loss, scale, skipped;
};

static struct ending train_until(struct program *program, int64_t max_steps) {
  char json[64];
  snprintf(json, sizeof json, "{\"max_steps\": %lld}", (long long)max_steps);
  tutti_options *options = make_options("train", json);
  tutti_result *result = NULL;
  assert_ok(tutti_estimator_train(program->estimator, program->dataset, options, NULL, NULL, &result, &err));
  const struct ending ending = {tutti_result_get_step(result), tutti_result_get_loss(result),
                                tutti_result_get_metric(result, "loss_scale"),
                                tutti_result_get_metric(result, "skipped_steps")};
  tutti_result_unref(result), tutti_options_unref(options);
  return ending;
}

static void predict(struct program *program, const char *precision, float logits[ROWS * 2]) {
  float values[ROWS][FEATURES];
  int32_t label = 0;
  for (int i = 0; i < ROWS; i++)
    toy_row(i, values[i], &label);
  char json[64];
  int64_t dims[] = {ROWS, FEATURES};
  snprintf(json, sizeof json, "{\"precision\": \"%s\"}", precision);
  tutti_options *options = make_options("predictor", json);
  tutti_tensor *rows = make_tensor(TUTTI_DTYPE_F32, 2, dims, values);
  tutti_predictor *predictor = NULL;
  tutti_batch *batch = NULL;
  const char *name = "x";
  assert_ok(tutti_predictor_from_estimator(program->estimator, options, &predictor, &err));
  assert_ok(tutti_predictor_run(predictor, &name, &rows, 1, NULL, &batch, &err));
  const tutti_tensor *output = tutti_batch_get_output(batch, "logits");
  assert_int_equal(tutti_tensor_get_dtype(output), TUTTI_DTYPE_F32);
  memcpy(logits, tutti_tensor_get_data(output), sizeof(float) * ROWS * 2);
  tutti_batch_unref(batch), tutti_predictor_unref(predictor), tutti_tensor_unref(rows), tutti_options_unref(options);
}

/* The largest difference, over the largest number of the second. */
static double distance(const float *a, const float *b) {
  double largest = 0, size = 0;
  for (int i = 0; i < ROWS * 2; i++) {
    largest = fmax(largest, fabs((double)a[i] - (double)b[i]));
    size = fmax(size, fabs((double)b[i]));
  }
  return largest / size;
}

static void test_the_scale_of_the_loss_is_resumed(void **state) {
  (void)state;
  char directory[64];
  float whole_logits[ROWS * 2], resumed_logits[ROWS * 2];
  struct program whole = open_program("f16_where_faster", NULL);
  const struct ending expected = train_until(&whole, STEPS);
  assert_true(expected.skipped >= 2 && expected.scale <= 65536 / 4.0); /* or nothing is resumed below */
  predict(&whole, "f32", whole_logits);
  close_program(&whole);
  make_directory(directory);
  struct program first = open_program("f16_where_faster", directory);
  const struct ending half = train_until(&first, FIRST_STEPS);
  assert_int_equal(half.step, FIRST_STEPS);
  assert_true(half.skipped > 0);
  close_program(&first);
  struct program second = open_program("f16_where_faster", directory);
  const struct ending got = train_until(&second, STEPS);
  assert_int_equal(got.step, STEPS);
  assert_true(got.scale == expected.scale && got.skipped == expected.skipped);
  if (!(fabs(got.loss - expected.loss) <= 1e-3 * expected.loss)) fail_msg("%g, expected %g", got.loss, expected.loss);
  predict(&second, "f32", resumed_logits);
  const double apart = distance(resumed_logits, whole_logits);
  if (!(apart < 2e-3)) fail_msg("logits are %g apart", apart);
  close_program(&second);
  remove_directory(directory);
}

static void test_training_goes_as_in_f32(void **state) {
  (void)state;
  float narrow[ROWS * 2], wide[ROWS * 2];
  struct program half = open_program("f16_where_faster", NULL), full = open_program("f32", NULL);
  const struct ending last = train_until(&half, STEPS);
  const struct ending exact = train_until(&full, STEPS - (int64_t)last.skipped);
  assert_true(last.loss < largeness && exact.skipped != exact.skipped); /* f32 has no scale */
  predict(&half, "f32", narrow), predict(&full, "f32", wide);
  assert_true(distance(narrow, wide) > 0);
  close_program(&half), close_program(&full);
}

/* Each of three products rounds its factors and its results to 11 bits. */
static void test_predictions_are_off_by_some_roundings(void **state) {
  (void)state;
  float exact[ROWS * 2], narrow[ROWS * 2];
  struct program program = open_program("f32", NULL);
  train_until(&program, STEPS);
  predict(&program, "f32", exact);
  predict(&program, "f16_where_faster", narrow);
  const double apart = distance(narrow, exact);
  if (!(apart > 0 && apart < 16 * 0x1p-11)) fail_msg("logits are %g apart", apart);
  close_program(&program);
}

int main(int argc, char **argv) {
  if (argc < 2) return 2;
  plugin = argv[1];
  if (is_missing(plugin)) return TEST_IS_SKIPPED;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_the_scale_of_the_loss_is_resumed),
      cmocka_unit_test(test_training_goes_as_in_f32),
      cmocka_unit_test(test_predictions_are_off_by_some_roundings),
  };
  return cmocka_run_group_tests(tests, remember_live_objects, assert_nothing_left);
}
