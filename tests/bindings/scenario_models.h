/* SPDX-License-Identifier: Apache-2.0
 *
 * The models and data of the scenarios (scenarios.txt says what they are), in C. */
#ifndef TUTTI_TESTS_BINDINGS_SCENARIO_MODELS_H_
#define TUTTI_TESTS_BINDINGS_SCENARIO_MODELS_H_

#include <tutti/tutti.h>

/* The model function of a name; NULL when there is none. Its user pointer is not used. */
tutti_model_fn scenario_model(const char *name);

/* x [rows, columns] and y [rows], numbers from `seed`. The caller drops both. */
int32_t scenario_data(int64_t rows, int64_t columns, int64_t classes, uint32_t seed, tutti_tensor **x, tutti_tensor **y,
                      tutti_error **err);

#endif /* TUTTI_TESTS_BINDINGS_SCENARIO_MODELS_H_ */
