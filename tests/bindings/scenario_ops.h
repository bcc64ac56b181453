/* SPDX-License-Identifier: Apache-2.0
 *
 * The model "ops" of scenarios.txt, in the program of C. */
#ifndef TUTTI_TESTS_BINDINGS_SCENARIO_OPS_H_
#define TUTTI_TESTS_BINDINGS_SCENARIO_OPS_H_

#include <tutti/tutti.h>

/* Each op that no other model of the scenarios uses as a metric; a model function of the estimator. */
int32_t scenario_ops(tutti_graph *g, int32_t mode, void *user, tutti_error **err);

#endif /* TUTTI_TESTS_BINDINGS_SCENARIO_OPS_H_ */
