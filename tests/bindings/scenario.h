/* SPDX-License-Identifier: Apache-2.0
 *
 * What the lines of a scenario have set up so far, in the program of C that does them (scenario_runner.c). */
#ifndef TUTTI_TESTS_BINDINGS_SCENARIO_H_
#define TUTTI_TESTS_BINDINGS_SCENARIO_H_

#include <stdbool.h>
#include <tutti/tutti.h>

enum { MAXIMUM_WORDS = 32, MAXIMUM_LINE = 4096, MAXIMUM_NAMES = 64 };

/* What happens to one worker at a step of its training. */
struct fault {
  char kind[8]; /* "kill", "hang", "fail"; empty: nothing */
  int64_t worker, step;
};

struct scenario {
  tutti_context *context;
  tutti_strategy *strategy;
  tutti_options *run;
  tutti_tensor *x, *y;
  tutti_model_fn model;
  char pipeline[MAXIMUM_LINE];
  tutti_dataset *training;
  tutti_estimator *estimator;
  char folder[64]; /* a temporary one that ends with the scenario; empty before it is needed */
  bool has_own_input;
  char plateau[MAXIMUM_LINE]; /* the line of that word; empty = none */
  struct fault fault;
};

/* A new context with so many devices, in place of the former and its strategy. */
int32_t scenario_use_context(struct scenario *s, int64_t devices, tutti_error **err);
/* The data with some transforms behind their first word, as a line "pipeline" has them. */
int32_t scenario_dataset(struct scenario *s, const char *transforms, tutti_dataset **out, tutti_error **err);
/* Makes the training data and the estimator where they are not made yet. */
int32_t scenario_need_estimator(struct scenario *s, tutti_error **err);
/* Of a training of so many steps (0 = until the end of the data), with what the line "plateau" says. */
int32_t scenario_train_options(struct scenario *s, int64_t steps, tutti_options **out, tutti_error **err);
/* Prints loss and metrics over the data in batches of this size. */
int32_t scenario_evaluate(struct scenario *s, int64_t batch, tutti_error **err);
/* Prints the outputs of the first rows of the data. */
int32_t scenario_predict(struct scenario *s, int64_t rows, tutti_error **err);
/* The estimator into the folder that the next one restores from. */
int32_t scenario_save(struct scenario *s, tutti_error **err);
/* Names of outputs in order; at most MAXIMUM_NAMES. */
int64_t scenario_output_names(tutti_batch *batch, const char **names);
/* The numbers of a row, and the end of the line. */
void scenario_print_row(const tutti_tensor *tensor, int64_t row);

#endif /* TUTTI_TESTS_BINDINGS_SCENARIO_H_ */
