/* SPDX-License-Identifier: Apache-2.0
 *
 * The model "layers" of scenarios.txt, in the program of C. */
#ifndef TUTTI_TESTS_BINDINGS_SCENARIO_LAYERS_H_
#define TUTTI_TESTS_BINDINGS_SCENARIO_LAYERS_H_

#include <tutti/tutti.h>

/* Layers of convolution, pooling, shapes and embeddings as metrics; a model function of the estimator. */
int32_t scenario_layers(tutti_graph *g, int32_t mode, void *user, tutti_error **err);

#endif /* TUTTI_TESTS_BINDINGS_SCENARIO_LAYERS_H_ */
