/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tests of estimators share: short forms of train and evaluate, a model whose steps can be worked out by hand,
 * and a hook that records what it sees. */
#ifndef TUTTI_TESTS_CAPI_ESTIMATOR_FIXTURES_H_
#define TUTTI_TESTS_CAPI_ESTIMATOR_FIXTURES_H_

#include <pthread.h>

#include "capi_testing.h"

/* What a result says. */
struct outcome {
  int32_t reason;
  int64_t step, examples;
  double loss, accuracy;
};

/* Reads a result and drops it. */
struct outcome take(tutti_result *result);

/* Must work. `options` = JSON of schema "train", or NULL. */
struct outcome train(tutti_estimator *estimator, const tutti_dataset *dataset, const char *options);
struct outcome evaluate(tutti_estimator *estimator, const tutti_dataset *dataset, int64_t steps);

/* y = w x with w = 2 at first, SGD: the step can be worked out by hand. */
struct line {
  int reduction; /* 0: TUTTI_LOSS_..._MEAN by default */
  int use_weights, apply_twice_the_gradient, clip;
};

int32_t line_model(tutti_graph *g, int32_t mode, void *user, tutti_error **err);
tutti_estimator *line_estimator(struct line *line);

/* Rows (x, y, weight) = (1, 1, 1), (2, 2, 0), (3, 0, 2). */
tutti_dataset *line_dataset(int64_t batch);

/* The first number of an f32 variable. */
double read_scalar(tutti_estimator *estimator, const char *name);

/* Equal but for rounding, 1e-5. */
void assert_close(double got, double expected);

/* What a hook saw, and what it shall do at which step (-1 = never). */
struct hook_record {
  int count;
  int32_t kinds[128];
  int64_t steps[128];
  double loss, accuracy;
  int destroyed, wrong_thread;
  pthread_t thread;
  int64_t stop_at, fail_at, cancel_at;
  tutti_cancel *cancel;
  int32_t strength;
  tutti_estimator *train_again;
  const tutti_dataset *dataset;
  int32_t again_code;
};

/* A hook over a record; never asserts. */
int32_t record_event(void *user, const tutti_hook_event *event, tutti_error **err);
void count_destroy(void *user);
struct hook_record new_record(void);
tutti_hooks *hooks_of(struct hook_record *record, int64_t every);

#endif /* TUTTI_TESTS_CAPI_ESTIMATOR_FIXTURES_H_ */
