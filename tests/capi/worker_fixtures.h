/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tests of several processes share: a test program starts itself as workers, "<program> SCENARIO DIRECTORY",
 * with the environment that a launcher gives, and reads what each of them left in the directory. */
#ifndef TUTTI_TESTS_CAPI_WORKER_FIXTURES_H_
#define TUTTI_TESTS_CAPI_WORKER_FIXTURES_H_

#include "capi_testing.h"
#include "free_port.h"

enum { MOST_WORKERS = 3, WORKER_ARGUMENTS = 3, WORKER_LIMIT_SECONDS = 90 };

/* --- in a worker --- */

/* The number of this worker, and how many devices it is told to have. */
int worker_tested(void);
int devices_tested(void);
/* A context with so many devices of the reference backend, or of each of those that use_backends() named, and the
 * strategy of the environment on all of them.
 * `cluster`: options of that schema as JSON. */
int32_t join_workers(const char *cluster, tutti_context **context, tutti_strategy **strategy, tutti_error **err);
/* Leaves the answer for the test; the exit status of the worker. */
int leave_answer(const char *directory, const void *answer, size_t size, int32_t code);

/* Copies the first numbers of an f32 variable, `most` of them at most. */
int32_t read_numbers(tutti_estimator *estimator, const char *variable, float *numbers, size_t most, tutti_error **err);

/* --- in the test --- */

/* Makes a new folder with the plug-ins pjrt and gloo, in which the library then looks for them; 0 = done. */
int link_plugins(char folder[64], const char *pjrt, const char *gloo);
/* What the workers to come compute on: a list as the option `backend` of contexts takes it; NULL: the reference. */
void use_backends(const char *backends);
/* Runs the scenario on `count` workers with `devices` devices each; whoever is not through at the limit is killed.
 * `codes`: exit statuses, 128 + the signal for the killed. `answers`: of each worker `size` bytes, 0 where it left
 * none. */
void run_workers(const char *scenario, const char *directory, int count, int devices, int *codes, void *answers,
                 size_t size);

#endif /* TUTTI_TESTS_CAPI_WORKER_FIXTURES_H_ */
