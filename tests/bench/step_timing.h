/* SPDX-License-Identifier: Apache-2.0
 * What benchmarks of single models share: one batch, again and again, and how long a step on it takes. Errors end the
 * program with their text. */
#ifndef TUTTI_TESTS_BENCH_STEP_TIMING_H_
#define TUTTI_TESTS_BENCH_STEP_TIMING_H_

#include <tutti/tutti.h>

void must(int32_t code, tutti_error *err);
/* A context of one device with one thread. */
tutti_context *one_thread(void);
/* Endless batches of all rows of a feature; takes the tensor. */
tutti_dataset *same_batch(tutti_context *context, const char *feature, tutti_tensor *rows);
/* Processor time of a step in ms: the least of `runs`, each the mean of `steps`. Takes the dataset.
 * With TUTTI_BENCH_PROFILE in the environment a profile of more steps is printed, as JSON. */
double step_ms(tutti_context *context, tutti_model_fn model, void *user, tutti_dataset *dataset, int runs, int steps);

#endif /* TUTTI_TESTS_BENCH_STEP_TIMING_H_ */
