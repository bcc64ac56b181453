/* SPDX-License-Identifier: Apache-2.0
 * Gradients that the model function takes and changes: the same training as with the loss's own, clipped, masked, and
 * mistakes. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "dense_fixtures.h"

enum { FEATURES = DENSE_FEATURES, CLASSES = DENSE_CLASSES, PARAMETERS = DENSE_PARAMETERS };
enum change { NOTHING, PASS_ON, CLIP_VALUE, CLIP_TIGHT, MASK, TWICE, KERNEL_ONLY, NOISE };

struct recipe {
  enum change change;
  int optimizer_last, momentum;
};

static const float mask_values[FEATURES * CLASSES] = {1, 0, 1, 1, 0, 0, 1, 2};

static tutti_value changed(tutti_graph *g, enum change change, tutti_value gradient, int is_kernel) {
  const double limit = change == CLIP_TIGHT ? 0.01 : 1e6;
  if (change == CLIP_VALUE || change == CLIP_TIGHT) {
    gradient = tutti_minimum(g, gradient, tutti_graph_constant(g, TUTTI_DTYPE_F32, limit));
    gradient = tutti_maximum(g, gradient, tutti_graph_constant(g, TUTTI_DTYPE_F32, -limit));
  } else if (change == MASK && is_kernel) {
    int64_t dims[] = {FEATURES, CLASSES};
    tutti_tensor *mask = make_tensor(TUTTI_DTYPE_F32, 2, dims, mask_values);
    gradient = tutti_mul(g, gradient, tutti_graph_constant_tensor(g, mask));
    tutti_tensor_unref(mask);
  } else if (change == TWICE) {
    gradient = tutti_add(g, gradient, gradient);
  } else if (change == NOISE) {
    int64_t kernel[] = {FEATURES, CLASSES}, bias[] = {CLASSES};
    tutti_random_normal_attrs attrs = {.stddev = 0.01, .has_stddev = 1};
    tutti_value noise = tutti_random_normal(g, is_kernel ? kernel : bias, is_kernel ? 2 : 1, &attrs);
    gradient = tutti_add(g, gradient, noise);
  }
  return gradient;
}

static void set_optimizer(tutti_graph *g, int momentum) {
  tutti_optimizer_sgd_attrs attrs = {.momentum = momentum ? 0.9 : 0};
  tutti_optimizer_sgd(g, tutti_graph_constant(g, TUTTI_DTYPE_F32, 0.5), &attrs);
}

static int32_t model(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  const struct recipe *recipe = user;
  struct dense_model dense = build_dense(g, mode);
  if (mode != TUTTI_MODE_TRAIN) return tutti_graph_check(g, err);
  tutti_value gradients[2];
  if (!recipe->optimizer_last) set_optimizer(g, recipe->momentum);
  if (recipe->change != NOTHING) {
    tutti_gradients(g, dense.loss, dense.variables, 2, gradients);
    for (int i = 0; i < 2; i++)
      gradients[i] = changed(g, recipe->change, gradients[i], i == 0);
    tutti_apply_gradients(g, dense.variables, gradients, recipe->change == KERNEL_ONLY ? 1 : 2);
  }
  if (recipe->optimizer_last) set_optimizer(g, recipe->momentum);
  return tutti_graph_check(g, err);
}

struct run {
  int replicas, steps, batch, accumulation;
};

static tutti_estimator *create(struct recipe *recipe, struct run run, tutti_dataset **dataset) {
  char json[96];
  snprintf(json, sizeof json, "{\"accumulation_steps\": %d, \"seed\": 5}", run.accumulation > 0 ? run.accumulation : 1);
  tutti_context *context = NULL;
  tutti_estimator *estimator = dense_estimator(model, recipe, run.replicas, json, &context);
  *dataset = dense_dataset(context, 100, run.batch, 1);
  tutti_context_unref(context);
  return estimator;
}

static int32_t train(tutti_estimator *estimator, const tutti_dataset *dataset, int steps, tutti_error **err) {
  char json[64];
  snprintf(json, sizeof json, "{\"steps\": %d}", steps);
  tutti_options *options = make_options("train", json);
  int32_t code = tutti_estimator_train(estimator, dataset, options, NULL, NULL, NULL, err);
  tutti_options_unref(options);
  return code;
}

static void parameters_after(struct recipe recipe, struct run run, float out[PARAMETERS]) {
  tutti_dataset *dataset = NULL;
  tutti_estimator *estimator = create(&recipe, run, &dataset);
  assert_ok(train(estimator, dataset, run.steps, &err));
  read_dense(estimator, out);
  tutti_estimator_unref(estimator);
  tutti_dataset_unref(dataset);
}

static void test_given_gradients_train_as_those_of_the_loss(void **state) {
  (void)state;
  for (int momentum = 0; momentum < 2; momentum++) {
    for (int replicas = 1; replicas <= 3; replicas++) {
      const struct run run = {.replicas = replicas, .steps = 12, .batch = 17};
      float expected[PARAMETERS], got[PARAMETERS];
      parameters_after((struct recipe){NOTHING, 0, momentum}, run, expected);
      for (int last = 0; last < 2; last++) {
        parameters_after((struct recipe){PASS_ON, last, momentum}, run, got);
        assert_memory_equal(got, expected, sizeof got);
      }
      parameters_after((struct recipe){PASS_ON, 0, momentum}, (struct run){1, 12, 17, 1}, got);
      check_near(got, expected, PARAMETERS, 1e-5f, "replicas");
      /* A limit that is never reached changes nothing but where the replicas wait. */
      parameters_after((struct recipe){CLIP_VALUE, 0, momentum}, run, got);
      check_near(got, expected, PARAMETERS, 1e-5f, "wide clip");
    }
  }
}

static double by_hand(enum change change, double gradient, int parameter) {
  const int is_kernel = parameter < FEATURES * CLASSES;
  if (change == CLIP_TIGHT) return fmax(-0.01, fmin(0.01, gradient));
  if (change == MASK && is_kernel) return gradient * (double)mask_values[parameter];
  if (change == TWICE) return 2 * gradient;
  if (change == KERNEL_ONLY && !is_kernel) return 0;
  return gradient;
}

static void test_changed_gradients_by_hand(void **state) {
  (void)state;
  static const enum change changes[] = {PASS_ON, CLIP_TIGHT, MASK, TWICE, KERNEL_ONLY};
  for (int replicas = 1; replicas <= 3; replicas++) {
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
      struct recipe recipe = {changes[i], 0, 0};
      tutti_dataset *dataset = NULL;
      tutti_estimator *estimator = create(&recipe, (struct run){.replicas = replicas, .batch = 13}, &dataset);
      float before[PARAMETERS], expected[PARAMETERS], got[PARAMETERS];
      double gradient[PARAMETERS];
      tutti_session *session = NULL;
      assert_ok(tutti_session_open(estimator, dataset, NULL, NULL, NULL, &session, &err));
      for (int step = 0; step < 2; step++) {
        read_dense(estimator, before);
        dense_gradient(before, 13 * step, 13, gradient);
        assert_ok(tutti_session_run(session, 1, NULL, &err));
        read_dense(estimator, got);
        for (int p = 0; p < PARAMETERS; p++)
          expected[p] = before[p] - (float)(0.5 * by_hand(changes[i], gradient[p], p));
        check_near(got, expected, PARAMETERS, 1e-5f, "by hand");
      }
      tutti_session_unref(session);
      tutti_estimator_unref(estimator);
      tutti_dataset_unref(dataset);
    }
  }
}

static void test_noise_is_that_of_the_step(void **state) {
  (void)state;
  float one[PARAMETERS], plain[PARAMETERS], many[PARAMETERS];
  parameters_after((struct recipe){PASS_ON, 0, 0}, (struct run){1, 4, 25, 1}, plain);
  parameters_after((struct recipe){NOISE, 0, 0}, (struct run){1, 4, 25, 1}, one);
  int different = 0;
  for (int i = 0; i < PARAMETERS; i++)
    different += one[i] != plain[i];
  assert_int_equal(different, PARAMETERS);
  parameters_after((struct recipe){NOISE, 0, 0}, (struct run){3, 4, 25, 1}, many);
  check_near(many, one, PARAMETERS, 1e-5f, "noise on three replicas");
}

/* What is linear in the rows goes with accumulation; what is not is refused by name. */
static void test_accumulation(void **state) {
  (void)state;
  static const enum change linear[] = {PASS_ON, MASK, TWICE, KERNEL_ONLY};
  float whole[PARAMETERS], parts[PARAMETERS];
  for (size_t i = 0; i < sizeof linear / sizeof *linear; i++) {
    parameters_after((struct recipe){linear[i], 0, 1}, (struct run){1, 3, 20, 1}, whole);
    for (int replicas = 1; replicas <= 2; replicas++) {
      parameters_after((struct recipe){linear[i], 0, 1}, (struct run){replicas, 3, 5, 4}, parts);
      check_near(parts, whole, PARAMETERS, 1e-5f, "accumulation");
    }
  }
  struct recipe recipe = {CLIP_TIGHT, 0, 0};
  tutti_dataset *dataset = NULL;
  tutti_estimator *estimator = create(&recipe, (struct run){1, 1, 5, 4}, &dataset);
  assert_error(TUTTI_INVALID_ARGUMENT, "minimum", train(estimator, dataset, 1, &err));
  tutti_estimator_unref(estimator);
  tutti_dataset_unref(dataset);
}

/* --- mistakes ----------------------------------------------------------------------------------------------------- */

enum mistake {
  NOT_A_VARIABLE,
  WRONG_SHAPE,
  NOT_TRAINABLE,
  NO_PATH,
  GIVEN_TWICE,
  APPLIED_TWICE,
  NO_OPTIMIZER,
  EMPTY,
  NULL_LIST
};

static int32_t mistaken_model(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  const enum mistake mistake = *(const enum mistake *)user;
  (void)mode;
  int64_t dims[] = {FEATURES, CLASSES};
  tutti_value kernel =
      tutti_graph_variable(g, "kernel", TUTTI_DTYPE_F32, dims, 2, "zeros", 0, mistake != NOT_TRAINABLE);
  tutti_value other = tutti_graph_variable(g, "other", TUTTI_DTYPE_F32, dims, 2, "zeros", 0, 1);
  tutti_value logits = tutti_matmul(g, tutti_graph_get_feature(g, "x"), kernel, NULL);
  tutti_value loss = tutti_loss_sparse_softmax_cross_entropy(g, logits, tutti_graph_get_label(g, "y"), NULL);
  tutti_graph_set_loss(g, loss);
  if (mistake != NO_OPTIMIZER) set_optimizer(g, 0);
  tutti_value variables[2] = {kernel, kernel}, gradients[2];
  tutti_gradients(g, loss, variables, 2, gradients);
  if (mistake == NOT_A_VARIABLE) variables[0] = logits;
  if (mistake == WRONG_SHAPE) gradients[0] = tutti_transpose(g, gradients[0], NULL);
  if (mistake == NO_PATH) tutti_gradients(g, loss, &other, 1, gradients), variables[0] = other;
  if (mistake == NULL_LIST) {
    tutti_apply_gradients(g, variables, NULL, 1);
  } else {
    tutti_apply_gradients(g, variables, gradients, mistake == GIVEN_TWICE ? 2 : mistake == EMPTY ? 0 : 1);
  }
  if (mistake == APPLIED_TWICE) tutti_apply_gradients(g, variables, gradients, 1);
  return tutti_graph_check(g, err);
}

static void check_mistake(enum mistake mistake, int32_t code, const char *text) {
  tutti_estimator *estimator = NULL;
  assert_ok(tutti_estimator_create(NULL, mistaken_model, &mistake, NULL, NULL, NULL, &estimator, &err));
  tutti_dataset *dataset = dense_dataset(NULL, 10, 5, 0);
  assert_error(code, text, train(estimator, dataset, 1, &err));
  tutti_estimator_unref(estimator);
  tutti_dataset_unref(dataset);
}

static void test_mistakes(void **state) {
  (void)state;
  check_mistake(NOT_A_VARIABLE, TUTTI_INVALID_ARGUMENT, "variables[0]: expected the value of a variable");
  check_mistake(WRONG_SHAPE, TUTTI_INVALID_ARGUMENT,
                "the gradient given for variable 'kernel' is f32 [2, 4], the variable is f32 [4, 2]");
  check_mistake(NOT_TRAINABLE, TUTTI_INVALID_ARGUMENT, "variable 'kernel', which is not trainable");
  check_mistake(NO_PATH, TUTTI_INVALID_ARGUMENT, "variable 'other' is given no gradient");
  check_mistake(GIVEN_TWICE, TUTTI_ALREADY_EXISTS, "variable 'kernel' is given two gradients");
  check_mistake(APPLIED_TWICE, TUTTI_ALREADY_EXISTS, "the gradients are set twice");
  check_mistake(NO_OPTIMIZER, TUTTI_FAILED_PRECONDITION, "gradients are given but there is no optimizer");
  check_mistake(EMPTY, TUTTI_INVALID_ARGUMENT, "an empty list of gradients");
  check_mistake(NULL_LIST, TUTTI_INVALID_ARGUMENT, "'gradients': expected an array");
}

/* A variable that the host froze keeps its value, whatever the model function gives for it. */
static void test_frozen_by_the_host(void **state) {
  (void)state;
  struct recipe recipe = {TWICE, 0, 1};
  tutti_dataset *dataset = NULL;
  tutti_estimator *estimator = create(&recipe, (struct run){.replicas = 2, .batch = 25}, &dataset);
  assert_ok(tutti_estimator_set_trainable(estimator, "bias", 0, &err));
  float parameters[PARAMETERS];
  assert_ok(train(estimator, dataset, 3, &err));
  read_dense(estimator, parameters);
  assert_true(parameters[DENSE_KERNEL] == 0 && parameters[DENSE_KERNEL + 1] == 0);
  assert_int_equal(tutti_estimator_get_trainable_count(estimator), 1);
  assert_string_equal(tutti_estimator_get_trainable_name(estimator, 0), "kernel");
  tutti_estimator_unref(estimator);
  tutti_dataset_unref(dataset);
}

enum { ROUNDED_ROWS = 24, KERNEL = FEATURES * CLASSES };

/* The kernel's gradient of the first step, on all rows; `parameters` before it. */
static void gradient_of(int replicas, const char *options, float gradient[KERNEL], float parameters[PARAMETERS]) {
  char run[128];
  snprintf(run, sizeof run, "{\"seed\": 4, \"keep_gradients\": true%s}", options);
  struct recipe recipe = {.change = NOTHING};
  tutti_context *context = NULL;
  tutti_tensor *tensor = NULL;
  tutti_estimator *estimator = dense_estimator(model, &recipe, replicas, run, &context);
  tutti_dataset *dataset = dense_dataset(context, ROUNDED_ROWS, ROUNDED_ROWS, 0);
  assert_ok(tutti_estimator_initialize(estimator, dataset, NULL, NULL, &err));
  read_dense(estimator, parameters);
  assert_ok(tutti_estimator_train(estimator, dataset, NULL, NULL, NULL, NULL, &err));
  assert_ok(tutti_estimator_read_gradient(estimator, "kernel", &tensor, &err));
  assert_int_equal(tutti_tensor_get_size_bytes(tensor), KERNEL * sizeof(float));
  memcpy(gradient, tutti_tensor_get_data(tensor), KERNEL * sizeof(float));
  tutti_tensor_unref(tensor), tutti_dataset_unref(dataset), tutti_estimator_unref(estimator);
  tutti_context_unref(context);
}

/* Each of two devices rounds its gradient to bfloat16, and their sum is rounded: with u = 2^-8 the error is at most 2 u
 * times the sum of both sizes. Where devices share memory, and on one, the option changes nothing. */
static void test_gradients_of_bfloat16(void **state) {
  (void)state;
  float exact[KERNEL], rounded[KERNEL], same[KERNEL], parameters[PARAMETERS];
  double whole[PARAMETERS], halves[2][PARAMETERS];
  gradient_of(2, ", \"all_reduce\": \"ring\"", exact, parameters);
  gradient_of(2, ", \"all_reduce\": \"ring\", \"gradient_dtype\": \"bf16\"", rounded, parameters);
  dense_gradient(parameters, 0, ROUNDED_ROWS, whole);
  for (int i = 0; i < 2; i++)
    dense_gradient(parameters, i * ROUNDED_ROWS / 2, ROUNDED_ROWS / 2, halves[i]);
  int different = 0;
  for (int i = 0; i < KERNEL; i++) {
    assert_float_equal(exact[i], whole[i], 1e-6);
    const double sizes = (fabs(halves[0][i]) + fabs(halves[1][i])) / 2;
    assert_float_equal(rounded[i], whole[i], 2 * sizes / 256 + 1e-6);
    different += rounded[i] != exact[i];
  }
  assert_true(different > KERNEL / 2);
  gradient_of(2, "", exact, parameters);
  gradient_of(2, ", \"gradient_dtype\": \"bf16\"", same, parameters);
  assert_memory_equal(same, exact, sizeof exact);
  gradient_of(1, "", exact, parameters);
  gradient_of(1, ", \"all_reduce\": \"ring\", \"gradient_dtype\": \"bf16\"", same, parameters);
  assert_memory_equal(same, exact, sizeof exact);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_given_gradients_train_as_those_of_the_loss),
    cmocka_unit_test(test_changed_gradients_by_hand),
    cmocka_unit_test(test_noise_is_that_of_the_step),
    cmocka_unit_test(test_accumulation),
    cmocka_unit_test(test_mistakes),
    cmocka_unit_test(test_frozen_by_the_host),
    cmocka_unit_test(test_gradients_of_bfloat16),
};
CAPI_TEST_MAIN(tests)
