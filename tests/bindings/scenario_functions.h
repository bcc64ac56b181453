/* SPDX-License-Identifier: Apache-2.0
 *
 * The model "functions" of scenarios.txt, in the program of C. */
#ifndef TUTTI_TESTS_BINDINGS_SCENARIO_FUNCTIONS_H_
#define TUTTI_TESTS_BINDINGS_SCENARIO_FUNCTIONS_H_

#include <tutti/tutti.h>

/* Every function of ops as a metric; a model function of the estimator. */
int32_t scenario_functions(tutti_graph *g, int32_t mode, void *user, tutti_error **err);

#endif /* TUTTI_TESTS_BINDINGS_SCENARIO_FUNCTIONS_H_ */
