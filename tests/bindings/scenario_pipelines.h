/* SPDX-License-Identifier: Apache-2.0
 *
 * The pipelines that scenarios read (scenarios.txt says what they are), in C. */
#ifndef TUTTI_TESTS_BINDINGS_SCENARIO_PIPELINES_H_
#define TUTTI_TESTS_BINDINGS_SCENARIO_PIPELINES_H_

#include <tutti/tutti.h>

/* Builds the dataset of a name; its files are in `folder`. */
int32_t scenario_pipeline(tutti_context *context, const char *name, const char *folder, tutti_dataset **out,
                          tutti_error **err);

/* Walks over the dataset with a seed and prints each element. */
int32_t scenario_read(const tutti_dataset *dataset, int64_t seed, tutti_error **err);

#endif /* TUTTI_TESTS_BINDINGS_SCENARIO_PIPELINES_H_ */
