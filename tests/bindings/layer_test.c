/* SPDX-License-Identifier: Apache-2.0
 * The C layer of all bindings, with a "language" in C: tokens of callbacks, lists of text, functions and files by a
 * queue, memory that is lent. */
#include <pthread.h>
#include <tutti/ops.h>

#include "../../bindings/swig/call_queue.h"
#include "../../bindings/swig/element_calls.h"
#include "../../bindings/swig/file_calls.h"
#include "../../bindings/swig/handle_layer.h"
#include "../../bindings/swig/lent_memory.h"
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

/* What the threads of a language do: `answer` each call of a function; element 50 fails with `code`. */
struct language {
  struct tutti_call_queue *queue;
  void (*answer)(struct tutti_call_queue *queue, struct tutti_call *call, int32_t code, tutti_error *taken);
  int32_t code;
  int64_t short_by;
};

static int64_t short_by; /* tensors fewer than there must be */

static int64_t value_of(const struct tutti_call *call, int64_t index) {
  return *(const int64_t *)tutti_tensor_get_data(tutti_swig_element_call_get_tensor(call, index));
}

static tutti_tensor *scalar(int64_t value) {
  tutti_tensor *tensor = NULL;
  assert_int_equal(tutti_tensor_from_data(TUTTI_DTYPE_I64, NULL, 0, &value, sizeof value, &tensor, NULL), TUTTI_OK);
  return tensor;
}

static void double_it(struct tutti_call_queue *queue, struct tutti_call *call, int32_t code, tutti_error *taken) {
  tutti_tensor *output = scalar(2 * value_of(call, 0));
  int64_t count = tutti_swig_element_call_get_count(call) - short_by;
  tutti_swig_element_call_finish(queue, call, &output, count, 0, NULL, code, taken);
  tutti_tensor_unref(output);
}

static void is_below_20(struct tutti_call_queue *queue, struct tutti_call *call, int32_t code, tutti_error *taken) {
  tutti_swig_element_call_finish(queue, call, NULL, 0, value_of(call, 0) < 20, NULL, code, taken);
}

/* The state is the sum, the output the sum before. */
static void add(struct tutti_call_queue *queue, struct tutti_call *call, int32_t code, tutti_error *taken) {
  assert_int_equal(tutti_swig_element_call_get_state_count(call), 1);
  assert_int_equal(tutti_swig_element_call_get_count(call), 2);
  assert_null(tutti_swig_element_call_get_tensor(call, 2));
  tutti_tensor *tensors[] = {scalar(value_of(call, 0) + value_of(call, 1)), scalar(value_of(call, 0))};
  tutti_swig_element_call_finish(queue, call, tensors, 2 - short_by, 0, NULL, code, taken);
  tutti_tensor_unref(tensors[0]), tutti_tensor_unref(tensors[1]);
}

/* As many zeros as the element says. */
static void zeros(struct tutti_call_queue *queue, struct tutti_call *call, int32_t code, tutti_error *taken) {
  int64_t rows = value_of(call, 0) % 3;
  tutti_tensor *tensor = NULL;
  tutti_pipeline *pipeline = NULL;
  tutti_dataset *dataset = NULL;
  assert_int_equal(tutti_tensor_create(TUTTI_DTYPE_I64, &rows, 1, &tensor, NULL), TUTTI_OK);
  assert_int_equal(tutti_pipeline_create(NULL, &pipeline, NULL), TUTTI_OK);
  tutti_pipeline_add_slices(pipeline, "n", TUTTI_ROLE_FEATURE, tensor);
  assert_int_equal(tutti_pipeline_build(pipeline, &dataset, NULL), TUTTI_OK);
  tutti_swig_element_call_finish(queue, call, NULL, 0, 0, dataset, code, taken);
  tutti_dataset_unref(dataset), tutti_pipeline_unref(pipeline), tutti_tensor_unref(tensor);
}

static void seven(struct tutti_call_queue *queue, struct tutti_call *call, int32_t code, tutti_error *taken) {
  (void)code;
  int64_t index = tutti_swig_element_call_get_index(call);
  tutti_tensor *output = scalar(100 * tutti_swig_element_call_get_pass(call) + index);
  tutti_swig_element_call_finish(queue, call, &output, 1 - short_by, index < 7, NULL, TUTTI_OK, taken);
  tutti_tensor_unref(output);
}

static void *serve(void *argument) {
  const struct language *language = argument;
  struct tutti_call *call = NULL;
  while ((call = tutti_swig_call_queue_take(language->queue)) != NULL) {
    tutti_error *err = NULL;
    int64_t last = tutti_swig_element_call_get_count(call) - 1;
    int32_t code = last >= 0 && value_of(call, last) == 50 ? language->code : TUTTI_OK;
    if (code != TUTTI_OK) tutti_error_set(&err, code, "element 50");
    language->answer(language->queue, call, code, err);
  }
  return NULL;
}

/* Reads the pipeline, which it takes, while two threads serve the queue of its function. */
static int32_t read_served(tutti_pipeline *pipeline, struct language language, int64_t *values, int64_t *count) {
  pthread_t threads[2];
  tutti_dataset *dataset = NULL;
  short_by = language.short_by;
  assert_non_null(language.queue);
  for (int i = 0; i < 2; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, serve, &language), 0);
  assert_int_equal(tutti_pipeline_build(pipeline, &dataset, NULL), TUTTI_OK);
  int32_t code = read_all(dataset, values, count);
  tutti_dataset_unref(dataset), tutti_pipeline_unref(pipeline);
  for (int i = 0; i < 2; i++)
    pthread_join(threads[i], NULL); /* the release of the function ends them */
  tutti_swig_call_queue_unref(language.queue);
  return code;
}

static int32_t read_mapped(int32_t code, int64_t missing, int64_t *values, int64_t *count) {
  tutti_pipeline *pipeline = numbers();
  tutti_pipeline_begin(pipeline, "map_callback", 1);
  tutti_pipeline_set_i64(pipeline, "parallelism", THREADS);
  struct language language = {tutti_swig_pipeline_set_map(pipeline), double_it, code, missing};
  tutti_pipeline_end(pipeline);
  return read_served(pipeline, language, values, count);
}

static void test_map_by_a_queue(void **state) {
  (void)state;
  int64_t values[ROWS], count = 0, before = tutti_debug_live_objects(NULL);
  assert_int_equal(read_mapped(TUTTI_OK, 0, values, &count), TUTTI_OK);
  assert_int_equal(count, ROWS);
  for (int i = 0; i < ROWS; i++)
    assert_int_equal(values[i], 2 * i);
  assert_int_equal(read_mapped(TUTTI_DATA_LOSS, 0, values, &count), TUTTI_DATA_LOSS);
  assert_int_equal(count, 50);
  assert_int_equal(read_mapped(TUTTI_OK, 1, values, &count), TUTTI_INVALID_ARGUMENT);
  assert_int_equal(tutti_debug_live_objects(NULL), before);
}

static int32_t read_filtered(const char *transform, int32_t code, int64_t *values, int64_t *count) {
  tutti_pipeline *pipeline = numbers();
  tutti_pipeline_begin(pipeline, transform, 1);
  struct language language = {tutti_swig_pipeline_set_predicate(pipeline), is_below_20, code, 0};
  tutti_pipeline_end(pipeline);
  return read_served(pipeline, language, values, count);
}

static void test_predicates_by_a_queue(void **state) {
  (void)state;
  int64_t values[ROWS], count = 0, before = tutti_debug_live_objects(NULL);
  assert_int_equal(read_filtered("filter_callback", TUTTI_OK, values, &count), TUTTI_OK);
  assert_int_equal(count, 20);
  assert_int_equal(values[19], 19);
  assert_int_equal(read_filtered("filter_callback", TUTTI_DATA_LOSS, values, &count), TUTTI_DATA_LOSS);
  assert_int_equal(read_filtered("take_while_callback", TUTTI_DATA_LOSS, values, &count), TUTTI_OK);
  assert_int_equal(count, 20);
  assert_int_equal(tutti_debug_live_objects(NULL), before);
}

static int32_t read_scanned(int32_t code, int64_t missing, int64_t *values, int64_t *count) {
  tutti_pipeline *pipeline = numbers();
  tutti_tensor *zero = scalar(0);
  tutti_pipeline_begin(pipeline, "scan_callback", 1);
  tutti_pipeline_set_state(pipeline, "sum", zero);
  struct language language = {tutti_swig_pipeline_set_scan(pipeline), add, code, missing};
  tutti_pipeline_end(pipeline);
  tutti_tensor_unref(zero);
  return read_served(pipeline, language, values, count);
}

static void test_scans_by_a_queue(void **state) {
  (void)state;
  int64_t values[ROWS], count = 0, before = tutti_debug_live_objects(NULL);
  assert_int_equal(read_scanned(TUTTI_OK, 0, values, &count), TUTTI_OK);
  assert_int_equal(count, ROWS);
  for (int i = 0; i < ROWS; i++)
    assert_int_equal(values[i], i * (i - 1) / 2);
  assert_int_equal(read_scanned(TUTTI_DATA_LOSS, 0, values, &count), TUTTI_DATA_LOSS);
  assert_int_equal(count, 50);
  assert_int_equal(read_scanned(TUTTI_OK, 1, values, &count), TUTTI_INVALID_ARGUMENT);
  assert_int_equal(tutti_debug_live_objects(NULL), before);
}

static void test_datasets_of_elements_by_a_queue(void **state) {
  (void)state;
  int64_t values[ROWS], count = 0, before = tutti_debug_live_objects(NULL);
  for (int fails = 0; fails < 2; fails++) {
    tutti_pipeline *pipeline = numbers();
    tutti_pipeline_begin(pipeline, "flat_map", 1);
    int32_t wanted = fails ? TUTTI_DATA_LOSS : TUTTI_OK;
    struct language language = {tutti_swig_pipeline_set_expand(pipeline), zeros, wanted, 0};
    tutti_pipeline_end(pipeline);
    assert_int_equal(read_served(pipeline, language, values, &count), wanted);
    assert_int_equal(count, fails ? 49 : 99); /* 0 + 1 + 2 for each three elements */
  }
  assert_int_equal(tutti_debug_live_objects(NULL), before);
}

static void test_generators_by_a_queue(void **state) {
  (void)state;
  int64_t values[ROWS], count = 0, before = tutti_debug_live_objects(NULL);
  for (int missing = 0; missing < 2; missing++) {
    tutti_pipeline *pipeline = NULL;
    assert_int_equal(tutti_pipeline_create(NULL, &pipeline, NULL), TUTTI_OK);
    tutti_pipeline_declare(pipeline, "n", TUTTI_ROLE_FEATURE, TUTTI_DTYPE_I64, NULL, 0);
    struct language language = {tutti_swig_pipeline_add_generator(pipeline), seven, TUTTI_OK, missing};
    tutti_pipeline_repeat(pipeline, &(tutti_pipeline_repeat_attrs){.has_count = 1, .count = 2});
    int32_t code = read_served(pipeline, language, values, &count);
    assert_int_equal(code, missing ? TUTTI_INVALID_ARGUMENT : TUTTI_OK);
    assert_int_equal(count, missing ? 0 : 14);
    for (int i = 0; i < count; i++)
      assert_int_equal(values[i], 100 * (i / 7) + i % 7);
  }
  assert_int_equal(tutti_debug_live_objects(NULL), before);
}

/* A file system with the files "a.txt" and "b.txt", whose bytes are 1 and 2 on a line, and a directory. */
struct letters {
  struct tutti_call_queue *queue;
  int64_t opened, closed;
  int32_t read_code;
  const char *version;
};

static void answer_file(struct letters *letters, struct tutti_call *call) {
  static const char *const names[] = {"a.txt", "b.txt", "more.txt/"};
  static const char *const contents[] = {"", "1\n", "2\n"};
  const char *path = tutti_swig_file_call_get_path(call);
  int64_t file = 0, number = 0;
  int32_t code = TUTTI_OK;
  tutti_error *err = NULL;
  switch (tutti_swig_file_call_get_kind(call)) {
    case TUTTI_FILE_OPEN:
      file = strcmp(path, "layer://a.txt") == 0 ? 1 : strcmp(path, "layer://b.txt") == 0 ? 2 : 0;
      if (file == 0) code = tutti_error_set(&err, TUTTI_NOT_FOUND, "no such letter");
      number = 2;
      letters->opened += file != 0;
      break;
    case TUTTI_FILE_READ:
      number = 1; /* one byte at a time */
      code = letters->read_code;
      if (code != TUTTI_OK) tutti_error_set(&err, code, "the letters are wet");
      memcpy((void *)(uintptr_t)tutti_swig_file_call_get_target(call),
             contents[tutti_swig_file_call_get_file(call)] + tutti_swig_file_call_get_offset(call), 1);
      break;
    case TUTTI_FILE_CLOSE:
      letters->closed++;
      break;
    default:
      for (int i = 0; i < 3; i++)
        tutti_swig_file_call_add_name(call, names[i]);
  }
  tutti_swig_file_call_finish(letters->queue, call, file, number, letters->version, code, err);
}

static void *serve_files(void *argument) {
  struct letters *letters = argument;
  struct tutti_call *call = NULL;
  while ((call = tutti_swig_call_queue_take(letters->queue)) != NULL)
    answer_file(letters, call);
  return NULL;
}

/* How many lines the files of the path have; -1 with the code. */
static int64_t count_lines(tutti_context *context, const char *path, int32_t *code) {
  tutti_pipeline *pipeline = NULL;
  tutti_dataset *dataset = NULL;
  tutti_iterator *iterator = NULL;
  uint8_t more = 1;
  int64_t count = -1;
  *code = tutti_pipeline_create(context, &pipeline, NULL);
  tutti_source_text_lines(pipeline, &path, 1, NULL);
  *code = tutti_pipeline_build(pipeline, &dataset, NULL);
  if (*code == TUTTI_OK) *code = tutti_iterator_create(dataset, 0, &iterator, NULL);
  for (; *code == TUTTI_OK && more; count++)
    *code = tutti_iterator_next(iterator, NULL, &more, NULL);
  tutti_iterator_unref(iterator), tutti_dataset_unref(dataset), tutti_pipeline_unref(pipeline);
  return *code == TUTTI_OK ? count : -1;
}

/* Building a cache in a file, which asks for the version of what it is filled from. */
static int32_t build_cache(tutti_context *context) {
  const char *path = "layer://a.txt";
  tutti_pipeline *pipeline = NULL;
  tutti_dataset *dataset = NULL;
  tutti_pipeline_create(context, &pipeline, NULL);
  tutti_source_text_lines(pipeline, &path, 1, NULL);
  tutti_pipeline_cache(pipeline, &(tutti_pipeline_cache_attrs){.path = "layer_test.cache"});
  int32_t code = tutti_pipeline_build(pipeline, &dataset, NULL);
  tutti_dataset_unref(dataset), tutti_pipeline_unref(pipeline);
  return code;
}

static void test_a_file_system_by_a_queue(void **state) {
  (void)state;
  int64_t before = tutti_debug_live_objects(NULL);
  int32_t code = TUTTI_OK;
  pthread_t thread;
  tutti_context *context = NULL;
  tutti_error *err = NULL;
  assert_int_equal(tutti_context_create(NULL, &context, NULL), TUTTI_OK);
  struct letters letters = {tutti_swig_context_add_file_system(context, "layer", 1, NULL), 0, 0, TUTTI_OK, NULL};
  assert_non_null(letters.queue);
  assert_int_equal(pthread_create(&thread, NULL, serve_files, &letters), 0);
  assert_null(tutti_swig_context_add_file_system(context, "layer", 1, &err));
  assert_int_equal(tutti_error_get_code(err), TUTTI_ALREADY_EXISTS);
  tutti_error_unref(err);
  assert_int_equal(count_lines(context, "layer://a.txt", &code), 1);
  assert_int_equal(count_lines(context, "layer://*.txt", &code), 2); /* a directory is no file */
  assert_int_equal(count_lines(context, "layer://none", &code), -1);
  assert_int_equal(code, TUTTI_NOT_FOUND);
  assert_int_equal(build_cache(context), TUTTI_INVALID_ARGUMENT);
  letters.version = "";
  assert_int_equal(build_cache(context), TUTTI_INVALID_ARGUMENT);
  letters.version = "first";
  assert_int_equal(build_cache(context), TUTTI_OK);
  assert_int_equal(count_lines(context, "layer://none", &code), -1); /* with a version all the same */
  letters.read_code = TUTTI_DATA_LOSS;
  assert_int_equal(count_lines(context, "layer://b.txt", &code), -1);
  assert_int_equal(code, TUTTI_DATA_LOSS);
  tutti_context_unref(context);
  pthread_join(thread, NULL); /* the end of the context ends it */
  tutti_swig_call_queue_unref(letters.queue);
  assert_true(letters.opened >= 4);
  assert_int_equal(letters.opened, letters.closed);
  assert_int_equal(tutti_debug_live_objects(NULL), before);
}

static void test_a_map_of_no_pipeline_ends(void **state) {
  (void)state;
  struct tutti_call_queue *queue = tutti_swig_pipeline_set_map(NULL);
  assert_non_null(queue);
  assert_null(tutti_swig_call_queue_take(queue));
  tutti_swig_call_queue_unref(queue);
}

static void *take_returned(void *argument) {
  for (int64_t i = 0; i < TOKENS; i++)
    ((int64_t *)argument)[i] = tutti_swig_memory_take_returned();
  return NULL;
}

static void *lend_many(void *argument) {
  static const int64_t memory[] = {1, 2};
  int64_t first = *(int64_t *)argument, dims = 2;
  for (int64_t i = 0; i < TOKENS / 2; i++) {
    tutti_tensor *tensor = NULL;
    tutti_swig_tensor_take_memory(first + i, TUTTI_DTYPE_I64, &dims, 1, memory, sizeof memory, &tensor, NULL);
    tutti_tensor_unref(tensor);
  }
  return NULL;
}

/* Two threads lend, two wait: each token comes back to one of those that wait, once. */
static void test_lent_memory_comes_back_once(void **state) {
  (void)state;
  static int64_t found[2 * TOKENS];
  pthread_t lenders[4], takers[2];
  int64_t first[4];
  for (int i = 0; i < 2; i++)
    assert_int_equal(pthread_create(&takers[i], NULL, take_returned, found + (size_t)i * TOKENS), 0);
  for (int i = 0; i < 4; i++) {
    first[i] = 1 + (int64_t)i * TOKENS / 2;
    assert_int_equal(pthread_create(&lenders[i], NULL, lend_many, &first[i]), 0);
  }
  for (int i = 0; i < 4; i++)
    pthread_join(lenders[i], NULL);
  for (int i = 0; i < 2; i++)
    pthread_join(takers[i], NULL);
  static uint8_t seen[2 * TOKENS + 1];
  for (int i = 0; i < 2 * TOKENS; i++)
    seen[found[i]]++;
  for (int i = 1; i <= 2 * TOKENS; i++)
    assert_int_equal(seen[i], 1);
}

/* The dataset holds the memory when the tensor is gone, and so does an element that is made of it, alone. */
static void test_lent_memory_stays_for_its_last_user(void **state) {
  (void)state;
  const int64_t memory[] = {5, 6, 7}, wrong = 4, dims = 3;
  tutti_tensor *tensor = NULL;
  tutti_pipeline *pipeline = NULL;
  tutti_dataset *dataset = NULL;
  tutti_iterator *iterator = NULL;
  uint8_t more = 0;
  assert_int_equal(tutti_swig_tensor_take_memory(8, TUTTI_DTYPE_I64, &wrong, 1, memory, sizeof memory, &tensor, NULL),
                   TUTTI_INVALID_ARGUMENT);
  assert_int_equal(tutti_swig_memory_take_returned(), 8); /* also on failure */
  assert_int_equal(tutti_swig_tensor_take_memory(9, TUTTI_DTYPE_I64, &dims, 1, memory, sizeof memory, &tensor, NULL),
                   TUTTI_OK);
  assert_int_equal(tutti_pipeline_create(NULL, &pipeline, NULL), TUTTI_OK);
  tutti_pipeline_add_slices(pipeline, "n", TUTTI_ROLE_FEATURE, tensor);
  assert_int_equal(tutti_pipeline_build(pipeline, &dataset, NULL), TUTTI_OK);
  assert_int_equal(tutti_iterator_create(dataset, 0, &iterator, NULL), TUTTI_OK);
  assert_int_equal(tutti_iterator_next(iterator, NULL, &more, NULL), TUTTI_OK);
  tutti_tensor *element = tutti_iterator_get_component(iterator, 0);
  tutti_tensor_ref(element);
  assert_ptr_equal(tutti_tensor_get_data(element), memory); /* not copied on the way */
  tutti_tensor_unref(tensor), tutti_pipeline_unref(pipeline), tutti_dataset_unref(dataset);
  tutti_iterator_unref(iterator);
  assert_null(tutti_lent_returned);
  assert_int_equal(*(const int64_t *)tutti_tensor_get_data(element), 5);
  tutti_tensor_unref(element);
  assert_int_equal(tutti_swig_memory_take_returned(), 9);
  assert_null(tutti_lent_returned);
}

static void *take_one(void *argument) {
  *(int64_t *)argument = tutti_swig_memory_take_returned();
  return NULL;
}

/* The last of the tests: nothing is given back after it. */
static void test_the_end_of_lending(void **state) {
  (void)state;
  int64_t token = -1;
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, take_one, &token), 0);
  tutti_swig_memory_close();
  pthread_join(thread, NULL);
  assert_int_equal(token, 0);
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
  tutti_error_unref(err), err = NULL;
  assert_int_equal(tutti_swig_strategy_create_central_storage(NULL, NULL, "cpu", 3, 1, &strategy, &err),
                   TUTTI_INVALID_ARGUMENT);
  assert_non_null(err);
  tutti_error_unref(err);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_tokens_are_released_once),
    cmocka_unit_test(test_releases_from_many_threads),
    cmocka_unit_test(test_map_by_graph),
    cmocka_unit_test(test_map_by_a_queue),
    cmocka_unit_test(test_predicates_by_a_queue),
    cmocka_unit_test(test_scans_by_a_queue),
    cmocka_unit_test(test_datasets_of_elements_by_a_queue),
    cmocka_unit_test(test_generators_by_a_queue),
    cmocka_unit_test(test_a_file_system_by_a_queue),
    cmocka_unit_test(test_a_map_of_no_pipeline_ends),
    cmocka_unit_test(test_lists_of_text),
    cmocka_unit_test(test_lent_memory_comes_back_once),
    cmocka_unit_test(test_lent_memory_stays_for_its_last_user),
    cmocka_unit_test(test_the_end_of_lending),
};

TEST_MAIN(tests)
