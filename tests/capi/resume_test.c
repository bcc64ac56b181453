/* SPDX-License-Identifier: Apache-2.0
 * Going on from a checkpoint with another number of replicas, another optimizer or another model. */
#include <math.h>
#include <pthread.h>

#include "dense_fixtures.h"

enum variant { SAME, NO_BIAS, WIDE_KERNEL, MORE, OTHER_TYPE, ADAM };

static int32_t model(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  const enum variant variant = *(const enum variant *)user;
  int64_t kernel_dims[] = {DENSE_FEATURES, variant == WIDE_KERNEL ? 3 : 2}, bias_dims[] = {2};
  int32_t dtype = variant == OTHER_TYPE ? TUTTI_DTYPE_F64 : TUTTI_DTYPE_F32;
  tutti_value x = tutti_graph_get_feature(g, "x");
  if (variant == OTHER_TYPE) x = tutti_cast(g, x, dtype);
  tutti_value kernel = tutti_graph_variable(g, "kernel", dtype, kernel_dims, 2, "glorot_uniform", 0, 1);
  tutti_value logits = tutti_matmul(g, x, kernel, NULL);
  if (variant == SAME || variant == ADAM || variant == MORE)
    logits = tutti_add(g, logits, tutti_graph_variable(g, "bias", dtype, bias_dims, 1, "zeros", 0, 1));
  if (variant == MORE)
    logits = tutti_mul(g, logits, tutti_graph_variable(g, "scale", dtype, bias_dims, 1, "ones", 0, 1));
  tutti_graph_set_output(g, "logits", logits);
  if (mode == TUTTI_MODE_PREDICT) return tutti_graph_check(g, err);
  tutti_graph_set_loss(g, tutti_loss_sparse_softmax_cross_entropy(g, logits, tutti_graph_get_label(g, "y"), NULL));
  tutti_value rate = tutti_graph_constant(g, TUTTI_DTYPE_F32, 0.1);
  tutti_optimizer_sgd_attrs attrs = {.momentum = 0.9};
  if (variant == ADAM)
    tutti_optimizer_adam(g, rate, NULL);
  else
    tutti_optimizer_sgd(g, rate, &attrs);
  return tutti_graph_check(g, err);
}

struct lines {
  pthread_mutex_t mutex;
  char text[8192];
};

static void keep_line(void *user, int32_t severity, const char *text) {
  struct lines *lines = user;
  (void)severity;
  pthread_mutex_lock(&lines->mutex);
  size_t used = strlen(lines->text);
  if (used + strlen(text) + 2 < sizeof lines->text) strcat(strcat(lines->text, text), "\n");
  pthread_mutex_unlock(&lines->mutex);
}

/* `more`: options of the run, each behind a comma. */
static int32_t train_with(const char *more, enum variant variant, int replicas, const char *directory, int max_steps,
                          struct lines *lines, float *parameters, tutti_error **err) {
  char json[240];
  snprintf(json, sizeof json, "{\"model_dir\": \"%s\", \"seed\": 4%s}", directory, more);
  tutti_context *context = NULL;
  tutti_estimator *estimator = dense_estimator(model, &variant, replicas, json, &context);
  tutti_dataset *dataset = dense_dataset(context, 90, 11, 1);
  if (lines != NULL) tutti_context_set_log(context, keep_line, lines, NULL, TUTTI_LOG_INFO, NULL);
  snprintf(json, sizeof json, "{\"max_steps\": %d}", max_steps);
  tutti_options *options = make_options("train", json);
  int32_t code = tutti_estimator_train(estimator, dataset, options, NULL, NULL, NULL, err);
  if (code == TUTTI_OK && parameters != NULL) read_dense(estimator, parameters);
  tutti_context_set_log(context, NULL, NULL, NULL, TUTTI_LOG_INFO, NULL);
  tutti_options_unref(options);
  tutti_estimator_unref(estimator);
  tutti_dataset_unref(dataset);
  tutti_context_unref(context);
  return code;
}

static int32_t train(enum variant variant, int replicas, const char *directory, int max_steps, struct lines *lines,
                     float *parameters, tutti_error **err) {
  return train_with("", variant, replicas, directory, max_steps, lines, parameters, err);
}

static void test_another_number_of_replicas(void **state) {
  (void)state;
  char whole[64], pieces[64];
  make_directory(whole), make_directory(pieces);
  float expected[DENSE_PARAMETERS], got[DENSE_PARAMETERS];
  assert_ok(train(SAME, 1, whole, 9, NULL, expected, &err));
  struct lines lines = {.mutex = PTHREAD_MUTEX_INITIALIZER};
  static const int replicas[] = {3, 1, 2};
  for (int i = 0; i < 3; i++) {
    lines.text[0] = '\0';
    assert_ok(train(SAME, replicas[i], pieces, 3 * (i + 1), &lines, got, &err));
    if (i > 0)
      assert_contains(lines.text, "training continues from the same state on ");
    else
      assert_null(strstr(lines.text, "training continues"));
  }
  check_near(got, expected, DENSE_PARAMETERS, 1e-5f, "the same curve");
  /* The same again: nothing to say. */
  lines.text[0] = '\0';
  assert_ok(train(SAME, 2, pieces, 10, &lines, got, &err));
  assert_contains(lines.text, "continuing from checkpoint");
  assert_null(strstr(lines.text, "training continues"));
  remove_directory(whole), remove_directory(pieces);
}

/* What is read ahead of the steps is in no checkpoint. */
static void test_another_number_of_steps_ahead(void **state) {
  (void)state;
  for (int accumulation = 1; accumulation <= 2; accumulation++) {
    char whole[64], pieces[64], more[96];
    make_directory(whole), make_directory(pieces);
    float expected[DENSE_PARAMETERS], got[DENSE_PARAMETERS];
    const int steps = 8 / accumulation;
    static const int depths[] = {16, 1, 3, 2};
    for (int i = -1; i < 4; i++) {
      snprintf(more, sizeof more,
               ", \"determinism\": \"repeatable\", \"accumulation_steps\": %d, \"device_prefetch\": %d", accumulation,
               i < 0 ? 1 : depths[i]);
      if (i < 0)
        assert_ok(train_with(more, SAME, 2, whole, steps, NULL, expected, &err));
      else
        assert_ok(train_with(more, SAME, 2, pieces, steps * (i + 1) / 4, NULL, got, &err));
    }
    assert_memory_equal(got, expected, sizeof got);
    remove_directory(whole), remove_directory(pieces);
  }
}

static void test_another_model(void **state) {
  (void)state;
  char directory[64];
  make_directory(directory);
  assert_ok(train(SAME, 1, directory, 2, NULL, NULL, &err));
  assert_error(TUTTI_FAILED_PRECONDITION, "variable 'bias' is f32 [2] in the checkpoint and missing in the model",
               train(NO_BIAS, 1, directory, 4, NULL, NULL, &err));
  assert_error(TUTTI_FAILED_PRECONDITION,
               "variable 'kernel' is f32 [4, 3] in the model and f32 [4, 2] in the checkpoint",
               train(WIDE_KERNEL, 2, directory, 4, NULL, NULL, &err));
  assert_error(TUTTI_FAILED_PRECONDITION, "(and 1 more)", train(WIDE_KERNEL, 1, directory, 4, NULL, NULL, &err));
  assert_error(TUTTI_FAILED_PRECONDITION, "variable 'scale' is f32 [2] in the model and missing in the checkpoint",
               train(MORE, 1, directory, 4, NULL, NULL, &err));
  assert_error(TUTTI_FAILED_PRECONDITION, "variable 'kernel' is f64 [4, 2] in the model and f32 [4, 2]",
               train(OTHER_TYPE, 1, directory, 4, NULL, NULL, &err));
  /* Nothing was spoiled. */
  assert_ok(train(SAME, 1, directory, 4, NULL, NULL, &err));
  remove_directory(directory);
}

static void test_another_optimizer(void **state) {
  (void)state;
  char directory[64];
  make_directory(directory);
  assert_ok(train(SAME, 1, directory, 2, NULL, NULL, &err));
  struct lines lines = {.mutex = PTHREAD_MUTEX_INITIALIZER};
  assert_ok(train(ADAM, 1, directory, 4, &lines, NULL, &err));
  assert_contains(lines.text, "of the optimizer is not in the checkpoint and starts with its initial value");
  remove_directory(directory);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_another_number_of_replicas),
    cmocka_unit_test(test_another_number_of_steps_ahead),
    cmocka_unit_test(test_another_model),
    cmocka_unit_test(test_another_optimizer),
};
CAPI_TEST_MAIN(tests)
