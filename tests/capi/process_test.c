/* SPDX-License-Identifier: Apache-2.0
 * What happens to a whole process: after fork the child is told that it cannot go on, and a program may exit while a
 * thread of its own is training.
 *
 *   process_test                          the tests
 *   process_test exit-while-training      a program that does just that */
#define _DEFAULT_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "capi_testing.h"

static const char *own_path;

/* The exit status of a child; -1 when a signal ended it. */
static int wait_for(pid_t child) {
  int status = 0;
  if (waitpid(child, &status, 0) != child) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* --- fork --------------------------------------------------------------------------------------------------------- */

/* Answers of the child by its exit status: 0 = as it should be. */
static int try_everything_after_fork(tutti_estimator *estimator, tutti_dataset *dataset, tutti_iterator *iterator) {
  alarm(60); /* a hang is a failure */
  tutti_error *err = NULL;
  tutti_context *context = NULL;
  tutti_tensor *tensor = NULL;
  uint8_t more = 0;
  int64_t one = 1;
  if (tutti_context_create(NULL, &context, &err) != TUTTI_FAILED_PRECONDITION) return 1;
  if (tutti_estimator_train(estimator, dataset, NULL, NULL, NULL, NULL, NULL) != TUTTI_FAILED_PRECONDITION) return 2;
  if (tutti_iterator_next(iterator, NULL, &more, NULL) != TUTTI_FAILED_PRECONDITION) return 3;
  if (tutti_tensor_create(TUTTI_DTYPE_F32, &one, 1, &tensor, NULL) != TUTTI_FAILED_PRECONDITION) return 4;
  if (context != NULL || tensor != NULL) return 5;
  if (strcmp(tutti_version(), "") == 0) return 6;
  return 0;
}

static void test_fork(void **state) {
  (void)state;
  tutti_dataset *dataset = toy_dataset(64, 8, 0);
  tutti_pipeline *pipeline = NULL;
  tutti_dataset *ahead = NULL;
  tutti_iterator *iterator = NULL;
  uint8_t more = 0;
  assert_ok(tutti_pipeline_create(NULL, &pipeline, &err));
  tutti_pipeline_add_dataset(pipeline, dataset);
  tutti_pipeline_prefetch(pipeline, NULL);
  assert_ok(tutti_pipeline_build(pipeline, &ahead, &err));
  assert_ok(tutti_iterator_create(ahead, 0, &iterator, &err));
  assert_ok(tutti_iterator_next(iterator, NULL, &more, &err)); /* its thread runs */
  tutti_estimator *estimator = toy_estimator(NULL);
  tutti_options *steps = make_options("train", "{\"steps\": 2}");
  assert_ok(tutti_estimator_train(estimator, dataset, steps, NULL, NULL, NULL, &err));
  fflush(NULL);
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) _exit(try_everything_after_fork(estimator, dataset, iterator));
  assert_int_equal(wait_for(child), 0);
  assert_ok(tutti_estimator_train(estimator, dataset, steps, NULL, NULL, NULL, &err)); /* the parent goes on */
  assert_ok(tutti_iterator_next(iterator, NULL, &more, &err));
  tutti_options_unref(steps), tutti_estimator_unref(estimator), tutti_iterator_unref(iterator);
  tutti_dataset_unref(ahead), tutti_dataset_unref(dataset), tutti_pipeline_unref(pipeline);
}

static void test_fork_and_exec(void **state) {
  (void)state;
  fflush(NULL);
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    execl("/bin/true", "true", (char *)NULL);
    _exit(9);
  }
  assert_int_equal(wait_for(child), 0);
}

/* --- exit --------------------------------------------------------------------------------------------------------- */

static atomic_int steps_seen;

static int32_t see_step(void *user, const tutti_hook_event *event, tutti_error **err) {
  (void)user, (void)err;
  if (tutti_hook_event_get_kind(event) == TUTTI_EVENT_STEP) atomic_fetch_add(&steps_seen, 1);
  return TUTTI_OK;
}

static void *train_for_ever(void *user) {
  tutti_hooks *hooks = NULL;
  tutti_estimator *estimator = user;
  if (tutti_hooks_create(&hooks, NULL) || tutti_hooks_add(hooks, see_step, NULL, NULL, 1, NULL)) return NULL;
  (void)tutti_estimator_train(estimator, toy_dataset(64, 8, 0), NULL, hooks, NULL, NULL, NULL);
  return NULL;
}

static int exit_while_training(void) {
  alarm(60);
  tutti_options *options = make_options("context", "{\"logical_devices\": 2}");
  tutti_estimator *estimator = toy_estimator(NULL);
  (void)options;
  pthread_t thread;
  if (pthread_create(&thread, NULL, train_for_ever, estimator) != 0) return 3;
  while (atomic_load(&steps_seen) < 3)
    sleep_microseconds(1000);
  return 0; /* runs what is registered to run at exit, with training under way */
}

static void test_exit_while_training(void **state) {
  (void)state;
  for (int i = 0; i < 3; i++) {
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
      setenv("ASAN_OPTIONS", "detect_leaks=0", 1); /* leaving things behind is the point */
      execl(own_path, own_path, "exit-while-training", (char *)NULL);
      _exit(9);
    }
    assert_int_equal(wait_for(child), 0);
  }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_exit_while_training), /* first: before this process has threads */
    cmocka_unit_test(test_fork_and_exec),
    cmocka_unit_test(test_fork),
};

int main(int argc, char **argv) {
  if (argc > 1 && strcmp(argv[1], "exit-while-training") == 0) return exit_while_training();
  own_path = argv[0];
  return cmocka_run_group_tests(tests, NULL, NULL);
}
