/* SPDX-License-Identifier: Apache-2.0
 * Iterators through the C interface: saved and restored, and ended by a deadline. */
#include <stdlib.h>

#include <string.h>

#include "dataset_fixtures.h"

static void test_save_and_restore(void **state) {
  (void)state;
  tutti_pipeline *pipeline = count_to(20);
  tutti_pipeline_shuffle(pipeline, 8, NULL);
  tutti_pipeline_map_graph(pipeline, add_double, NULL, 2);
  tutti_pipeline_repeat_attrs twice = {.has_count = 1, .count = 2};
  tutti_pipeline_repeat(pipeline, &twice);
  tutti_pipeline_batch(pipeline, 3, NULL);
  tutti_pipeline_prefetch(pipeline, NULL);
  tutti_dataset *dataset = build(pipeline);
  float all[64];
  int64_t total = walk(dataset, 5, 0, all, 64);
  assert_int_equal(total, 40);
  for (int steps = 0; steps <= 13; steps += 4) {
    tutti_iterator *iterator = NULL, *resumed = NULL;
    uint8_t more = 0;
    assert_ok(tutti_iterator_create(dataset, 5, &iterator, &err));
    for (int i = 0; i < steps; i++)
      assert_ok(tutti_iterator_next(iterator, NULL, &more, &err));
    const char *saved = NULL;
    assert_ok(tutti_iterator_save(iterator, &saved, &err));
    char *copy = malloc(strlen(saved) + 1);
    strcpy(copy, saved);
    tutti_iterator_unref(iterator);
    assert_ok(tutti_iterator_create(dataset, 5, &resumed, &err));
    assert_ok(tutti_iterator_restore(resumed, copy, &err));
    free(copy);
    int64_t at = steps * 3;
    for (;;) {
      assert_ok(tutti_iterator_next(resumed, NULL, &more, &err));
      if (!more) break;
      tutti_tensor *tensor = tutti_iterator_get_component(resumed, 0);
      int64_t count = tutti_tensor_get_element_count(tensor);
      assert_memory_equal(tutti_tensor_get_data(tensor), all + at, (size_t)count * sizeof *all);
      at += count;
    }
    assert_int_equal(at, total);
    tutti_iterator_unref(resumed);
  }
  tutti_dataset_unref(dataset);
}

static void test_restore_of_nonsense(void **state) {
  (void)state;
  tutti_dataset *dataset = counting_dataset(3);
  tutti_iterator *iterator = NULL;
  assert_ok(tutti_iterator_create(dataset, 0, &iterator, &err));
  static const char *const bad[] = {"", "{", "[]", "7", "{\"position\": -5}", "{\"a\": {\"b\": []}}"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    if (tutti_iterator_restore(iterator, bad[i], NULL) == TUTTI_OK) {
      print_error("restored from %s\n", bad[i]);
      assert_true(0);
    }
  }
  assert_error(TUTTI_INVALID_ARGUMENT, "'state' is NULL", tutti_iterator_restore(iterator, NULL, &err));
  assert_error(TUTTI_INVALID_ARGUMENT, "'out' is NULL", tutti_iterator_save(iterator, NULL, &err));
  tutti_iterator_unref(iterator);
  tutti_dataset_unref(dataset);
}

static int32_t keep_none(tutti_graph *g, void *user, tutti_error **err) {
  (void)user;
  tutti_value x = tutti_graph_get_feature(g, "x");
  tutti_graph_set_output(g, "keep", tutti_not_equal(g, x, x));
  return tutti_graph_check(g, err);
}

/* Transforms that draw and draw without giving anything, from an input that never ends and never waits. */
static void test_an_endless_search_ends(void **state) {
  (void)state;
  for (int which = 0; which < 3; which++) {
    tutti_pipeline *pipeline = count_to(6);
    tutti_pipeline_repeat(pipeline, NULL);
    if (which == 0) tutti_pipeline_filter_graph(pipeline, keep_none, NULL);
    if (which == 1) tutti_pipeline_skip(pipeline, INT64_MAX / 4);
    if (which == 2) tutti_pipeline_shard(pipeline, INT64_MAX / 4, INT64_MAX / 8);
    tutti_dataset *dataset = build(pipeline);
    tutti_iterator *iterator = NULL;
    tutti_cancel *cancel = NULL;
    uint8_t more = 0;
    assert_ok(tutti_iterator_create(dataset, 0, &iterator, &err));
    assert_ok(tutti_cancel_create(&cancel, &err));
    assert_ok(tutti_cancel_set_deadline(cancel, 20, &err));
    assert_error(TUTTI_DEADLINE_EXCEEDED, "", tutti_iterator_next(iterator, cancel, &more, &err));
    assert_int_equal(more, 0);
    tutti_cancel_unref(cancel);
    tutti_iterator_unref(iterator);
    tutti_dataset_unref(dataset);
  }
}

static void test_report(void **state) {
  (void)state;
  tutti_pipeline *pipeline = count_to(10);
  tutti_pipeline_batch(pipeline, 4, NULL);
  tutti_pipeline_prefetch(pipeline, NULL);
  tutti_dataset *dataset = build(pipeline);
  tutti_iterator *iterator = NULL;
  assert_ok(tutti_iterator_create(dataset, 0, &iterator, &err));
  uint8_t more = 1;
  while (more)
    assert_ok(tutti_iterator_next(iterator, NULL, &more, &err));
  const char *report = NULL;
  assert_ok(tutti_iterator_get_report(iterator, &report, &err));
  assert_non_null(strstr(report, "\"stage\":\"prefetch\",\"level\":0,\"is_counted\":true"));
  assert_non_null(strstr(report, "\"elements\":3"));
  assert_non_null(strstr(report, "limit: "));
  assert_error(TUTTI_INVALID_ARGUMENT, "'out' is NULL", tutti_iterator_get_report(iterator, NULL, &err));
  tutti_iterator_unref(iterator);
  tutti_dataset_unref(dataset);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_report),
    cmocka_unit_test(test_an_endless_search_ends),
    cmocka_unit_test(test_save_and_restore),
    cmocka_unit_test(test_restore_of_nonsense),
};
CAPI_TEST_MAIN(tests)
