/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset_fixtures.h"

int64_t walk(const tutti_dataset *dataset, int64_t seed, int64_t component, float *out, int64_t capacity) {
  tutti_iterator *iterator = NULL;
  int64_t count = 0;
  assert_ok(tutti_iterator_create(dataset, seed, &iterator, &err));
  for (;;) {
    uint8_t more = 0;
    assert_ok(tutti_iterator_next(iterator, NULL, &more, &err));
    if (!more) break;
    tutti_tensor *tensor = tutti_iterator_get_component(iterator, component);
    int64_t elements = tutti_tensor_get_element_count(tensor);
    assert_int_equal(tutti_tensor_get_dtype(tensor), TUTTI_DTYPE_F32);
    assert_true(count + elements <= capacity);
    memcpy(out + count, tutti_tensor_get_data(tensor), (size_t)elements * sizeof *out);
    count += elements;
  }
  assert_null(tutti_iterator_get_component(iterator, 0)); /* after the last */
  tutti_iterator_unref(iterator);
  return count;
}

void assert_walk(const tutti_dataset *dataset, const float *expected, int64_t count) {
  float got[256];
  int64_t walked = walk(dataset, 0, 0, got, 256);
  for (int64_t i = 0; i < count && i < walked; i++) {
    if (got[i] != expected[i]) {
      print_error("number %d: got %g, expected %g\n", (int)i, (double)got[i], (double)expected[i]);
      assert_true(0);
    }
  }
  assert_int_equal(walked, count);
}

tutti_pipeline *count_to(int64_t rows) {
  tutti_dataset *source = counting_dataset(rows);
  tutti_pipeline *pipeline = NULL;
  assert_ok(tutti_pipeline_create(NULL, &pipeline, &err));
  tutti_pipeline_add_dataset(pipeline, source);
  tutti_dataset_unref(source);
  return pipeline;
}

tutti_dataset *build(tutti_pipeline *pipeline) {
  tutti_dataset *dataset = NULL;
  assert_ok(tutti_pipeline_build(pipeline, &dataset, &err));
  tutti_pipeline_unref(pipeline);
  return dataset;
}

int32_t add_double(tutti_graph *g, void *user, tutti_error **err) {
  (void)user;
  tutti_value x = tutti_graph_get_feature(g, "x");
  tutti_graph_set_output(g, "x", tutti_add(g, x, tutti_graph_constant(g, TUTTI_DTYPE_F32, 100)));
  tutti_graph_set_output(g, "double", tutti_mul(g, x, tutti_graph_constant(g, TUTTI_DTYPE_F32, 2)));
  return tutti_graph_check(g, err);
}
