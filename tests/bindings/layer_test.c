/* SPDX-License-Identifier: Apache-2.0
 * The C layer of all bindings, with a "language" in C: tokens of callbacks, lists of text, maps by a queue. */
#include <pthread.h>
#include <tutti/ops.h>

#include "../../bindings/swig/handle_layer.h"
#include "../../bindings/swig/map_queue.h"
#include "testing.h"

enum { TOKENS = 400, THREADS = 4, ROWS = 100 };

static int64_t upcalls[8]; /* by token */

static int32_t on_model(int64_t token, tutti_graph *graph, int32_t mode, tutti_error **err) {
  (void)mode, (void)graph;
  upcalls[token]++;
  return tutti_error_set(err, TUTTI_ABORTED, "the model of the language");
}

static int32_t on_map(int64_t token, tutti_graph *graph, tutti_error **err) {
  upcalls[token]++;
  tutti_graph_set_output(graph, "n", tutti_neg(graph, tutti_graph_get_feature(graph, "n")));
  return tutti_graph_check(graph, err);
}

static int32_t on_hook(int64_t token, const tutti_hook_event *event, tutti_error **err) {
  (void)event, (void)err;
  upcalls[token]++;
  return TUTTI_OK;
}

static void on_log(int64_t token, int32_t severity, const char *text) {
  (void)severity, (void)text;
  upcalls[token]++;
}

static const struct tutti_upcalls language_upcalls = {on_model, on_map, on_hook, on_log};

static tutti_pipeline *numbers(void) {
  int64_t values[ROWS], rows = ROWS;
  for (int64_t i = 0; i < ROWS; i++)
    values[i] = i;
  tutti_tensor *tensor = NULL;
  tutti_pipeline *pipeline = NULL;
  assert_int_equal(tutti_tensor_from_data(TUTTI_DTYPE_I64, &rows, 1, values, sizeof values, &tensor, NULL), TUTTI_OK);
  assert_int_equal(tutti_pipeline_create(NULL, &pipeline, NULL), TUTTI_OK);
  tutti_pipeline_add_slices(pipeline, "n", TUTTI_ROLE_FEATURE, tensor);
  tutti_tensor_unref(tensor);
  return pipeline;
}

/* Every element of the dataset, until an error or the end; gives the code. */
static int32_t read_all(const tutti_dataset *dataset, int64_t *values, int64_t *count) {
  tutti_iterator *iterator = NULL;
  int32_t code = tutti_iterator_create(dataset, 0, &iterator, NULL);
  uint8_t more = 1;
  for (*count = 0; code == TUTTI_OK;) {
    code = tutti_iterator_next(iterator, NULL, &more, NULL);
    if (code != TUTTI_OK || !more) break;
    values[(*count)++] = *(const int64_t *)tutti_tensor_get_data(tutti_iterator_get_component(iterator, 0));
  }
  tutti_iterator_unref(iterator);
  return code;
}

static void test_tokens_are_released_once(void **state) {
  (void)state;
  int64_t tokens[4] = {0};
  tutti_estimator *estimator = NULL;
  tutti_hooks *hooks = NULL;
  tutti_error *err = NULL;
  assert_int_equal(tutti_swig_estimator_create(NULL, 1, NULL, NULL, &estimator, NULL), TUTTI_OK);
  assert_int_equal(tutti_hooks_create(&hooks, NULL), TUTTI_OK);
  assert_int_equal(tutti_swig_hooks_add(hooks, 2, 1, NULL), TUTTI_OK);
  assert_int_equal(tutti_swig_hooks_add(hooks, 3, -1, NULL), TUTTI_INVALID_ARGUMENT); /* released at once */
  assert_int_equal(tutti_swig_callback_take_released(tokens, 4), 1);
  assert_int_equal(tokens[0], 3);
  tutti_pipeline *pipeline = numbers();
  tutti_dataset *dataset = NULL;
  tutti_pipeline_batch(pipeline, 10, NULL);
  assert_int_equal(tutti_pipeline_build(pipeline, &dataset, NULL), TUTTI_OK);
  assert_int_equal(tutti_estimator_train(estimator, dataset, NULL, hooks, NULL, NULL, &err), TUTTI_ABORTED);
  assert_non_null(strstr(tutti_error_get_text(err), "the model of the language"));
  assert_int_equal(upcalls[1], 1);
  tutti_error_unref(err), tutti_dataset_unref(dataset), tutti_pipeline_unref(pipeline);
  tutti_estimator_unref(estimator), tutti_hooks_unref(hooks);
  assert_int_equal(tutti_swig_callback_take_released(tokens, 1), 1); /* the other stays on the list */
  assert_int_equal(tutti_swig_callback_take_released(tokens + 1, 3), 1);
  assert_int_equal(tokens[0] + tokens[1], 3);
  assert_int_equal(tutti_swig_callback_take_released(tokens, 4), 0);
}

static void *release_many(void *argument) {
  int64_t first = *(int64_t *)argument;
  for (int64_t i = 0; i < TOKENS; i++)
    tutti_callback_release(tutti_callback_create(first + i, NULL));
  return NULL;
}

static void test_releases_from_many_threads(void **state) {
  (void)state;
  static uint8_t seen[THREADS * TOKENS];
  pthread_t threads[THREADS];
  int64_t first[THREADS], taken = 0, tokens[7];
  for (int i = 0; i < THREADS; i++) {
    first[i] = (int64_t)i * TOKENS;
    assert_int_equal(pthread_create(&threads[i], NULL, release_many, &first[i]), 0);
  }
  while (taken < THREADS * TOKENS) {
    int64_t count = tutti_swig_callback_take_released(tokens, 7);
    for (int64_t i = 0; i < count; i++)
      seen[tokens[i]]++;
    taken += count;
  }
  for (int i = 0; i < THREADS; i++)
    pthread_join(threads[i], NULL);
  assert_int_equal(tutti_swig_callback_take_released(tokens, 7), 0);
  for (int i = 0; i < THREADS * TOKENS; i++)
    assert_int_equal(seen[i], 1);
}

static void test_map_by_graph(void **state) {
  (void)state;
  int64_t values[ROWS], count = 0;
  tutti_pipeline *pipeline = numbers();
  tutti_dataset *dataset = NULL;
  tutti_swig_pipeline_map_graph(pipeline, 5, 1);
  assert_int_equal(tutti_pipeline_build(pipeline, &dataset, NULL), TUTTI_OK);
  assert_int_equal(read_all(dataset, values, &count), TUTTI_OK);
  assert_int_equal(count, ROWS);
  assert_int_equal(values[7], -7);
  assert_int_equal(upcalls[5], 1);
  tutti_dataset_unref(dataset), tutti_pipeline_unref(pipeline);
}

/* What the threads of a language do: doubles each element; element 50 is answered by `code`. */
struct language {
  struct tutti_map_queue *queue;
  int32_t code;
  int64_t short_by;
};

static void *serve(void *argument) {
  const struct language *language = argument;
  struct tutti_map_work *work = NULL;
  while ((work = tutti_swig_map_queue_take(language->queue)) != NULL) {
    tutti_tensor *input = tutti_swig_map_work_get_input(work, 0), *output = NULL;
    int64_t value = *(const int64_t *)tutti_tensor_get_data(input) * 2;
    int64_t count = tutti_swig_map_work_get_count(work) - language->short_by;
    tutti_error *err = NULL;
    int32_t code = value == 100 ? language->code : TUTTI_OK;
    if (code != TUTTI_OK) tutti_error_set(&err, code, "element 50");
    tutti_tensor_from_data(TUTTI_DTYPE_I64, NULL, 0, &value, sizeof value, &output, NULL);
    tutti_swig_map_queue_finish(language->queue, work, &output, count, code, err);
    tutti_tensor_unref(output);
  }
  return NULL;
}

static int32_t read_mapped(struct language language, int64_t *values, int64_t *count) {
  pthread_t threads[2];
  tutti_pipeline *pipeline = numbers();
  tutti_dataset *dataset = NULL;
  language.queue = tutti_swig_pipeline_map(pipeline, THREADS);
  assert_non_null(language.queue);
  for (int i = 0; i < 2; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, serve, &language), 0);
  assert_int_equal(tutti_pipeline_build(pipeline, &dataset, NULL), TUTTI_OK);
  int32_t code = read_all(dataset, values, count);
  tutti_dataset_unref(dataset), tutti_pipeline_unref(pipeline);
  for (int i = 0; i < 2; i++)
    pthread_join(threads[i], NULL); /* the release of the map ends them */
  tutti_swig_map_queue_unref(language.queue);
  return code;
}

static void test_map_by_a_queue(void **state) {
  (void)state;
  int64_t values[ROWS], count = 0, before = tutti_debug_live_objects(NULL);
  assert_int_equal(read_mapped((struct language){NULL, TUTTI_OK, 0}, values, &count), TUTTI_OK);
  assert_int_equal(count, ROWS);
  for (int i = 0; i < ROWS; i++)
    assert_int_equal(values[i], 2 * i);
  assert_int_equal(read_mapped((struct language){NULL, TUTTI_DATA_LOSS, 0}, values, &count), TUTTI_DATA_LOSS);
  assert_int_equal(count, 50);
  assert_int_equal(read_mapped((struct language){NULL, TUTTI_OK, 1}, values, &count), TUTTI_INVALID_ARGUMENT);
  assert_int_equal(tutti_debug_live_objects(NULL), before);
}

static void test_a_map_of_no_pipeline_ends(void **state) {
  (void)state;
  struct tutti_map_queue *queue = tutti_swig_pipeline_map(NULL, 1);
  assert_non_null(queue);
  assert_null(tutti_swig_map_queue_take(queue));
  tutti_swig_map_queue_unref(queue);
}

static void test_lists_of_text(void **state) {
  (void)state;
  const char **list = tutti_swig_split("a\0\0bc\0", 6, 3);
  assert_non_null(list);
  assert_string_equal(list[0], "a");
  assert_string_equal(list[1], "");
  assert_string_equal(list[2], "bc");
  free(list);
  assert_null(tutti_swig_split("a\0b", 3, 2)); /* the second does not end */
  assert_null(tutti_swig_split(NULL, 0, 1));
  list = tutti_swig_split(NULL, 0, 0);
  assert_non_null(list);
  free(list);
  tutti_strategy *strategy = NULL;
  tutti_error *err = NULL;
  assert_int_equal(tutti_swig_strategy_create_mirrored(NULL, "cpu", 3, 1, &strategy, &err), TUTTI_INVALID_ARGUMENT);
  assert_non_null(err);
  tutti_error_unref(err);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_tokens_are_released_once),
    cmocka_unit_test(test_releases_from_many_threads),
    cmocka_unit_test(test_map_by_graph),
    cmocka_unit_test(test_map_by_a_queue),
    cmocka_unit_test(test_a_map_of_no_pipeline_ends),
    cmocka_unit_test(test_lists_of_text),
};

TEST_MAIN(tests)
