/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tests of datasets share: pipelines that count, and walks over what they give. */
#ifndef TUTTI_TESTS_CAPI_DATASET_FIXTURES_H_
#define TUTTI_TESTS_CAPI_DATASET_FIXTURES_H_

#include "capi_testing.h"

/* All numbers of an f32 component, in order; the test fails when the walk does. Returns how many there are. */
int64_t walk(const tutti_dataset *dataset, int64_t seed, int64_t component, float *out, int64_t capacity);

/* The first component must be these numbers. */
void assert_walk(const tutti_dataset *dataset, const float *expected, int64_t count);

/* A pipeline that starts from 0, 1, ... `rows` - 1. */
tutti_pipeline *count_to(int64_t rows);

/* Builds the dataset; the pipeline is dropped. */
tutti_dataset *build(tutti_pipeline *pipeline);

/* Building must fail with this code and text; the pipeline is dropped. */
#define assert_build_error(code, needle, pipeline)                           \
  do {                                                                       \
    tutti_dataset *none = (tutti_dataset *)(uintptr_t)1;                     \
    assert_error(code, needle, tutti_pipeline_build(pipeline, &none, &err)); \
    assert_null(none);                                                       \
    tutti_pipeline_unref(pipeline);                                          \
  } while (0)

/* A map that replaces "x" by x + 100 and adds "double", 2 x. */
int32_t add_double(tutti_graph *g, void *user, tutti_error **err);

#endif /* TUTTI_TESTS_CAPI_DATASET_FIXTURES_H_ */
