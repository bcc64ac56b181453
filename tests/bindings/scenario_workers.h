/* SPDX-License-Identifier: Apache-2.0
 *
 * What scenarios of several workers do (workers.txt says what the lines mean), in C. */
#ifndef TUTTI_TESTS_BINDINGS_SCENARIO_WORKERS_H_
#define TUTTI_TESTS_BINDINGS_SCENARIO_WORKERS_H_

#include "scenario.h"

/* The strategy of the cluster that the environment describes, this process with so many devices; one process alone has
 * those of all workers. */
int32_t scenario_use_workers(struct scenario *s, int64_t workers, int64_t devices, bool own_input, tutti_error **err);
/* Prints who this process is. */
int32_t scenario_print_cluster(const struct scenario *s);
/* Prints the outputs of the first rows, as many as this worker computes, with their positions. */
int32_t scenario_predict_own(struct scenario *s, int64_t rows, tutti_error **err);
/* Predicts the first rows in batches of 3; the worker stops behind so many batches. Prints how many rows came. */
int32_t scenario_leave(struct scenario *s, int64_t worker, int64_t batches, int64_t rows, tutti_error **err);
/* Prints a number that is another one where any bit of a variable is. */
int32_t scenario_print_checksum(struct scenario *s, const char *name, tutti_error **err);
/* The hook that makes the scenario's fault happen; its user pointer is the scenario. */
int32_t scenario_fault(void *user, const tutti_hook_event *event, tutti_error **err);

#endif /* TUTTI_TESTS_BINDINGS_SCENARIO_WORKERS_H_ */
