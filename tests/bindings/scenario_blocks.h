/* SPDX-License-Identifier: Apache-2.0
 *
 * The model "blocks" of the scenarios, in C: the run option params names the layer. */
#ifndef TUTTI_TESTS_BINDINGS_SCENARIO_BLOCKS_H_
#define TUTTI_TESTS_BINDINGS_SCENARIO_BLOCKS_H_

#include <tutti/tutti.h>

/* A tutti_model_fn; its user pointer is not used. */
int32_t scenario_blocks(tutti_graph *g, int32_t mode, void *user, tutti_error **err);

#endif /* TUTTI_TESTS_BINDINGS_SCENARIO_BLOCKS_H_ */
