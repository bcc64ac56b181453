/* SPDX-License-Identifier: Apache-2.0
 * Variables, optimizer slots and gradients of training under way: at step boundaries, from the session's thread, a hook
 * and another thread; changed by the host; gradients worked out here. */
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>

#include "dense_fixtures.h"

static int32_t momentum_model(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  struct dense_model dense = build_dense(g, mode);
  (void)dense, (void)user;
  tutti_optimizer_sgd_attrs attrs = {.momentum = 0.5};
  if (mode == TUTTI_MODE_TRAIN) tutti_optimizer_sgd(g, tutti_graph_constant(g, TUTTI_DTYPE_F32, 0.25), &attrs);
  return tutti_graph_check(g, err);
}

static int has_variable(tutti_estimator *estimator, const char *name) {
  for (int64_t i = 0; i < tutti_estimator_get_variable_count(estimator); i++)
    if (strcmp(tutti_estimator_get_variable_name(estimator, i), name) == 0) return 1;
  return 0;
}

typedef int32_t (*reader)(tutti_estimator *, const char *, tutti_tensor **, tutti_error **);

/* Two tensors, kernel-shaped and bias-shaped, in one array. */
static void read_pair(reader read, tutti_estimator *estimator, const char *kernel, const char *bias, float *out) {
  const char *names[] = {kernel, bias};
  for (int i = 0; i < 2; i++) {
    tutti_tensor *tensor = NULL;
    assert_ok(read(estimator, names[i], &tensor, &err));
    assert_int_equal(tutti_tensor_get_element_count(tensor), i == 0 ? DENSE_KERNEL : DENSE_CLASSES);
    memcpy(out, tutti_tensor_get_data(tensor), (size_t)tutti_tensor_get_element_count(tensor) * sizeof *out);
    out += DENSE_KERNEL;
    tutti_tensor_unref(tensor);
  }
}

static void read_slots(tutti_estimator *estimator, float *out) {
  read_pair(tutti_estimator_read_variable, estimator, "kernel/velocity", "bias/velocity", out);
}

static void read_gradients(tutti_estimator *estimator, float *out) {
  read_pair(tutti_estimator_read_gradient, estimator, "kernel", "bias", out);
}

/* Three steps, each worked out from what the one before left. */
static void check_steps(int replicas, int accumulation) {
  char run[96];
  snprintf(run, sizeof run, "{\"keep_gradients\": true, \"accumulation_steps\": %d}", accumulation);
  tutti_context *context = NULL;
  tutti_estimator *estimator = dense_estimator(momentum_model, NULL, replicas, run, &context);
  tutti_dataset *dataset = dense_dataset(context, 200, 7, 1);
  tutti_session *session = NULL;
  tutti_tensor *none = NULL;
  assert_int_equal(tutti_estimator_get_variable_count(estimator), 0);
  assert_ok(tutti_session_open(estimator, dataset, NULL, NULL, NULL, &session, &err));
  assert_true(has_variable(estimator, "kernel") && has_variable(estimator, "kernel/velocity"));
  assert_int_equal(tutti_estimator_get_variable_count(estimator), 4);
  assert_error(TUTTI_FAILED_PRECONDITION, "before the first step",
               tutti_estimator_read_gradient(estimator, "kernel", &none, &err));
  const int rows = 7 * accumulation;
  float before[DENSE_PARAMETERS], after[DENSE_PARAMETERS], slots[DENSE_PARAMETERS], gradients[DENSE_PARAMETERS];
  float expected[DENSE_PARAMETERS], velocity[DENSE_PARAMETERS] = {0};
  for (int step = 0; step < 3; step++) {
    double gradient[DENSE_PARAMETERS];
    read_dense(estimator, before);
    read_slots(estimator, slots);
    check_near(slots, velocity, DENSE_PARAMETERS, step == 0 ? 0 : 1e-5f, "velocity before");
    dense_gradient(before, step * rows, rows, gradient);
    assert_ok(tutti_session_run(session, 1, NULL, &err));
    for (int p = 0; p < DENSE_PARAMETERS; p++)
      expected[p] = (float)gradient[p];
    read_gradients(estimator, gradients);
    check_near(gradients, expected, DENSE_PARAMETERS, 1e-5f, "gradient");
    read_slots(estimator, velocity);
    read_dense(estimator, after);
    for (int p = 0; p < DENSE_PARAMETERS; p++) {
      expected[p] = 0.5f * slots[p] + gradients[p];
      before[p] -= 0.25f * expected[p];
    }
    check_near(velocity, expected, DENSE_PARAMETERS, 1e-5f, "velocity");
    check_near(after, before, DENSE_PARAMETERS, 1e-5f, "weights");
  }
  assert_error(TUTTI_NOT_FOUND, "'kernl', did you mean 'kernel'?; known: ",
               tutti_estimator_read_gradient(estimator, "kernl", &none, &err));
  assert_ok(tutti_session_close(session, NULL, &err));
  tutti_session_unref(session);
  /* After the session they are still there. */
  read_slots(estimator, slots);
  assert_memory_equal(slots, velocity, sizeof slots);
  tutti_estimator_unref(estimator);
  tutti_dataset_unref(dataset);
  tutti_context_unref(context);
}

static void test_steps_by_hand(void **state) {
  (void)state;
  for (int replicas = 1; replicas <= 3; replicas++)
    for (int accumulation = 1; accumulation <= 3; accumulation += 2)
      check_steps(replicas, accumulation);
}

static void test_written_while_a_session_is_open(void **state) {
  (void)state;
  for (int replicas = 1; replicas <= 3; replicas += 2) {
    tutti_context *context = NULL;
    tutti_estimator *estimator = dense_estimator(momentum_model, NULL, replicas, "{}", &context);
    tutti_dataset *dataset = dense_dataset(context, 200, 9, 1);
    tutti_session *session = NULL;
    assert_ok(tutti_session_open(estimator, dataset, NULL, NULL, NULL, &session, &err));
    assert_ok(tutti_session_run(session, 2, NULL, &err));
    float values[DENSE_KERNEL] = {1, -1, 0.5f, 2, 0, 3, -2, 0.25f}, velocity[DENSE_KERNEL] = {4, 0, 0, 0, 0, 0, 0, -4};
    int64_t dims[] = {DENSE_FEATURES, DENSE_CLASSES}, turned[] = {DENSE_CLASSES, DENSE_FEATURES};
    tutti_tensor *kernel = make_tensor(TUTTI_DTYPE_F32, 2, dims, values),
                 *slot = make_tensor(TUTTI_DTYPE_F32, 2, dims, velocity),
                 *wrong = make_tensor(TUTTI_DTYPE_F32, 2, turned, values), *none = NULL;
    assert_ok(tutti_estimator_write_variable(estimator, "kernel", kernel, &err));
    assert_ok(tutti_estimator_write_variable(estimator, "kernel/velocity", slot, &err));
    assert_error(TUTTI_INVALID_ARGUMENT, "variable 'kernel' is f32 [4, 2], got f32 [2, 4]",
                 tutti_estimator_write_variable(estimator, "kernel", wrong, &err));
    assert_error(TUTTI_INVALID_ARGUMENT, "[2, 4]",
                 tutti_estimator_write_variable(estimator, "kernel/velocity", wrong, &err));
    assert_error(TUTTI_NOT_FOUND, "'kernel/m'", tutti_estimator_write_variable(estimator, "kernel/m", slot, &err));
    assert_error(TUTTI_FAILED_PRECONDITION, "keep_gradients",
                 tutti_estimator_read_gradient(estimator, "kernel", &none, &err));
    float before[DENSE_PARAMETERS], after[DENSE_PARAMETERS], bias[DENSE_PARAMETERS];
    double gradient[DENSE_PARAMETERS];
    read_dense(estimator, before);
    assert_memory_equal(before, values, sizeof values);
    read_slots(estimator, bias);
    dense_gradient(before, 18, 9, gradient);
    assert_ok(tutti_session_run(session, 1, NULL, &err));
    read_dense(estimator, after);
    for (int p = 0; p < DENSE_KERNEL; p++)
      before[p] -= 0.25f * (0.5f * velocity[p] + (float)gradient[p]);
    check_near(after, before, DENSE_KERNEL, 1e-5f, "after writing");
    tutti_tensor_unref(kernel), tutti_tensor_unref(slot), tutti_tensor_unref(wrong);
    tutti_session_unref(session);
    tutti_estimator_unref(estimator);
    tutti_dataset_unref(dataset);
    tutti_context_unref(context);
  }
}

/* Another thread looks while steps run. */
struct looking {
  tutti_estimator *estimator;
  atomic_int stop;
  int looks, failures;
};

static void *look_again_and_again(void *user) {
  struct looking *looking = user;
  while (!atomic_load(&looking->stop)) {
    tutti_tensor *tensor = NULL;
    if (tutti_estimator_read_variable(looking->estimator, "kernel/velocity", &tensor, NULL) == TUTTI_OK) {
      looking->looks++;
    } else {
      looking->failures++;
    }
    tutti_tensor_unref(tensor);
  }
  return NULL;
}

static void test_another_thread_looks(void **state) {
  (void)state;
  tutti_context *context = NULL;
  tutti_estimator *estimator = dense_estimator(momentum_model, NULL, 2, "{}", &context);
  tutti_dataset *dataset = dense_dataset(context, 200, 20, 1);
  tutti_session *session = NULL;
  assert_ok(tutti_session_open(estimator, dataset, NULL, NULL, NULL, &session, &err));
  struct looking looking = {.estimator = estimator};
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, look_again_and_again, &looking), 0);
  int32_t code = TUTTI_OK;
  for (int i = 0; i < 20 && code == TUTTI_OK; i++)
    code = tutti_session_run(session, 50, NULL, NULL);
  atomic_store(&looking.stop, 1);
  pthread_join(thread, NULL);
  assert_int_equal(code, TUTTI_OK);
  assert_int_equal(looking.failures, 0);
  assert_true(looking.looks > 0);
  assert_int_equal(tutti_estimator_get_global_step(estimator) >= 0, 1);
  tutti_session_unref(session);
  tutti_estimator_unref(estimator);
  tutti_dataset_unref(dataset);
  tutti_context_unref(context);
}

/* A hook reads the gradient of the step it is told of. */
struct seen {
  tutti_estimator *estimator;
  float gradients[4][DENSE_KERNEL];
  int count, failures;
};

static int32_t read_in_hook(void *user, const tutti_hook_event *event, tutti_error **err) {
  struct seen *seen = user;
  if (tutti_hook_event_get_kind(event) != TUTTI_EVENT_STEP || seen->count == 4) return TUTTI_OK;
  tutti_tensor *tensor = NULL;
  if (tutti_estimator_read_gradient(seen->estimator, "kernel", &tensor, err) != TUTTI_OK) {
    seen->failures++;
    return TUTTI_INTERNAL;
  }
  memcpy(seen->gradients[seen->count++], tutti_tensor_get_data(tensor), sizeof seen->gradients[0]);
  tutti_tensor_unref(tensor);
  return TUTTI_OK;
}

static void test_a_hook_looks(void **state) {
  (void)state;
  tutti_context *context = NULL;
  tutti_estimator *estimator = dense_estimator(momentum_model, NULL, 2, "{\"keep_gradients\": true}", &context);
  tutti_dataset *dataset = dense_dataset(context, 200, 20, 1);
  struct seen seen = {.estimator = estimator};
  tutti_hooks *hooks = NULL;
  assert_ok(tutti_hooks_create(&hooks, &err));
  assert_ok(tutti_hooks_add(hooks, read_in_hook, &seen, NULL, 1, &err));
  tutti_options *options = make_options("train", "{\"steps\": 4}");
  assert_ok(tutti_estimator_train(estimator, dataset, options, hooks, NULL, NULL, &err));
  assert_int_equal(seen.failures, 0);
  assert_int_equal(seen.count, 4);
  for (int i = 1; i < 4; i++)
    assert_memory_not_equal(seen.gradients[i], seen.gradients[i - 1], sizeof seen.gradients[0]);
  tutti_options_unref(options);
  tutti_hooks_unref(hooks);
  tutti_estimator_unref(estimator);
  tutti_dataset_unref(dataset);
  tutti_context_unref(context);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_steps_by_hand),
    cmocka_unit_test(test_written_while_a_session_is_open),
    cmocka_unit_test(test_another_thread_looks),
    cmocka_unit_test(test_a_hook_looks),
};
CAPI_TEST_MAIN(tests)
