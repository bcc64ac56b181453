/* SPDX-License-Identifier: Apache-2.0
 *
 * What tests of training on several replicas share: one dense layer with softmax cross entropy over the rows of
 * toy_row(), small enough for its gradient to be worked out here. */
#ifndef TUTTI_TESTS_CAPI_DENSE_FIXTURES_H_
#define TUTTI_TESTS_CAPI_DENSE_FIXTURES_H_

#include "capi_testing.h"

enum { DENSE_FEATURES = 4, DENSE_CLASSES = 2, DENSE_KERNEL = 8, DENSE_PARAMETERS = 10 };

/* Variables and loss of the layer; `logits` is output "logits". No optimizer. */
struct dense_model {
  tutti_value variables[2]; /* "kernel" [4, 2], "bias" [2] */
  tutti_value logits, loss; /* the loss: not for PREDICT */
};
struct dense_model build_dense(tutti_graph *g, int32_t mode);

/* The plug-in of the devices that estimators are on; NULL = processors. */
extern const char *dense_plugin;

/* An estimator on so many replicas. `run` = options as JSON. `context` receives its context, to be dropped. */
tutti_estimator *dense_estimator(tutti_model_fn model, void *user, int replicas, const char *run,
                                 tutti_context **context);

/* Rows 0, 1, ... of toy_row() for the context; for ever when `endless`. */
tutti_dataset *dense_dataset(tutti_context *context, int64_t rows, int64_t batch, int endless);

/* Kernel and bias in one array. */
void read_dense(tutti_estimator *estimator, float out[DENSE_PARAMETERS]);

/* The mean loss of rows first, first + 1, ... and its gradient, worked out in double. */
double dense_gradient(const float parameters[DENSE_PARAMETERS], int64_t first, int64_t rows,
                      double gradient[DENSE_PARAMETERS]);

/* |got - expected| <= tolerance for each. */
void check_near(const float *got, const float *expected, int64_t count, float tolerance, const char *what);

#endif /* TUTTI_TESTS_CAPI_DENSE_FIXTURES_H_ */
