/* SPDX-License-Identifier: Apache-2.0
 *
 * Vocabularies from data: a corpus is split into words, the words are counted, and the most frequent of them become the
 * constant by which a map looks up the numbers of words. */
#include <stdio.h>
#include <string.h>

#include "dataset_fixtures.h"

enum { LINES = 4 };
static char folder[64], path[100];
static const char corpus[] = "The cat sat.\nA dog sat\n\nthe cat, the dog!\n";

static tutti_pipeline *lines_of_corpus(void) {
  const char *paths[] = {path};
  tutti_pipeline *pipeline = NULL;
  assert_ok(tutti_pipeline_create(NULL, &pipeline, &err));
  tutti_source_text_lines(pipeline, paths, 1, NULL);
  return pipeline;
}

/* With a vocabulary the text becomes numbers, 0 for padding and 1 for what is not in it; without, words. */
static int32_t split_words(tutti_graph *g, void *vocabulary, tutti_error **err) {
  tutti_bytes_tokenize_attrs plain = {.punctuation = TUTTI_BYTES_TOKENIZE_PUNCTUATION_DROP};
  tutti_value text = tutti_bytes_tokenize(g, tutti_graph_get_feature(g, "text"), &plain);
  if (vocabulary != NULL) {
    tutti_lookup_attrs attrs = {.vocabulary = tutti_graph_constant_tensor(g, vocabulary)};
    text = tutti_add(g, tutti_lookup(g, text, &attrs), tutti_graph_constant(g, TUTTI_DTYPE_I64, 2));
  }
  tutti_graph_set_output(g, "text", text);
  return tutti_graph_check(g, err);
}

static tutti_dataset *words_of_corpus(void) {
  tutti_pipeline *pipeline = lines_of_corpus();
  tutti_pipeline_map_graph(pipeline, split_words, NULL, 0);
  return build(pipeline);
}

/* "cat 2, dog 2"; the tensors are dropped. */
static const char *described(tutti_tensor *texts, tutti_tensor *counts) {
  static char all[256];
  size_t used = 0;
  const int64_t *values = tutti_tensor_get_data(counts);
  assert_int_equal(tutti_tensor_get_dtype(texts), TUTTI_DTYPE_BYTES);
  assert_int_equal(tutti_tensor_get_dtype(counts), TUTTI_DTYPE_I64);
  assert_int_equal(tutti_tensor_get_rank(texts), 1);
  assert_int_equal(tutti_tensor_get_element_count(counts), tutti_tensor_get_element_count(texts));
  for (int64_t i = 0; i < tutti_tensor_get_element_count(texts); i++) {
    used += (size_t)snprintf(all + used, sizeof all - used, "%s%.*s %d", i > 0 ? ", " : "",
                             (int)tutti_tensor_get_element_size(texts, i),
                             (const char *)tutti_tensor_get_element_data(texts, i), (int)values[i]);
  }
  all[used] = 0;
  tutti_tensor_unref(texts), tutti_tensor_unref(counts);
  return all;
}

static const char *counted(int64_t most_texts, int64_t least_count, int64_t memory_bytes) {
  tutti_dataset *words = words_of_corpus();
  tutti_tensor *texts = NULL, *counts = NULL;
  assert_ok(
      tutti_dataset_count_texts(words, "text", most_texts, least_count, memory_bytes, NULL, &texts, &counts, &err));
  tutti_dataset_unref(words);
  return described(texts, counts);
}

static void test_texts_are_counted(void **state) {
  (void)state;
  assert_string_equal(counted(0, 0, 0), "the 3, cat 2, dog 2, sat 2, a 1");
  assert_string_equal(counted(2, 0, 0), "the 3, cat 2");
  assert_string_equal(counted(0, 2, 0), "the 3, cat 2, dog 2, sat 2");
  assert_string_equal(counted(3, 3, 0), "the 3");
  assert_string_equal(counted(0, 4, 0), "");
  assert_string_equal(counted(1, 1, 5 * 64 + 13), "the 3");
}

static void test_a_vocabulary_is_made_from_a_corpus(void **state) {
  (void)state;
  static const int64_t expected[LINES][4] = {{2, 3, 5, 0}, {1, 4, 5, 0}, {0, 0, 0, 0}, {2, 3, 2, 4}};
  tutti_dataset *words = words_of_corpus();
  tutti_tensor *vocabulary = NULL;
  assert_ok(tutti_dataset_count_texts(words, "text", 4, 0, 0, NULL, &vocabulary, NULL, &err));
  tutti_dataset_unref(words);
  tutti_pipeline *pipeline = lines_of_corpus();
  tutti_pipeline_map_graph(pipeline, split_words, vocabulary, 0);
  tutti_tensor_unref(vocabulary);
  tutti_pipeline_padded_batch(pipeline, LINES, NULL);
  tutti_dataset *numbers = build(pipeline);
  tutti_iterator *iterator = NULL;
  uint8_t more = 0;
  assert_ok(tutti_iterator_create(numbers, 0, &iterator, &err));
  assert_ok(tutti_iterator_next(iterator, NULL, &more, &err));
  assert_int_equal(more, 1);
  const tutti_tensor *batch = tutti_iterator_get_component(iterator, 0);
  assert_int_equal(tutti_tensor_get_dtype(batch), TUTTI_DTYPE_I64);
  assert_int_equal(tutti_tensor_get_size_bytes(batch), sizeof expected);
  assert_memory_equal(tutti_tensor_get_data(batch), expected, sizeof expected);
  tutti_iterator_unref(iterator);
  tutti_dataset_unref(numbers);
}

static void test_mistakes(void **state) {
  (void)state;
  tutti_dataset *words = words_of_corpus(), *numbers = counting_dataset(3);
  tutti_tensor *texts = NULL, *counts = NULL;
#define COUNT(dataset, component, most, least, bytes, cancel) \
  tutti_dataset_count_texts(dataset, component, most, least, bytes, cancel, &texts, &counts, &err)
  assert_error(TUTTI_INVALID_ARGUMENT, "'component' is NULL", COUNT(words, NULL, 0, 0, 0, NULL));
  assert_error(TUTTI_INVALID_ARGUMENT, "no component 'z'", COUNT(words, "z", 0, 0, 0, NULL));
  assert_error(TUTTI_INVALID_ARGUMENT, "component 'x': expected texts, which are of dtype bytes, got x: f32[]",
               COUNT(numbers, "x", 0, 0, 0, NULL));
  assert_error(TUTTI_INVALID_ARGUMENT, "'most_texts' must be 0 or more, got -1", COUNT(words, "text", -1, 0, 0, NULL));
  assert_error(TUTTI_INVALID_ARGUMENT, "'least_count' must be 0 or more, got -2", COUNT(words, "text", 0, -2, 0, NULL));
  assert_error(TUTTI_INVALID_ARGUMENT, "'memory_bytes' must be 0 or more, got -3",
               COUNT(words, "text", 0, 0, -3, NULL));
  assert_error(TUTTI_RESOURCE_EXHAUSTED,
               "need more than 332 bytes (memory_bytes; each needs its length and 64): there are 4",
               COUNT(words, "text", 1, 0, 5 * 64 + 12, NULL));
  assert_error(TUTTI_INVALID_ARGUMENT, "'texts' is NULL",
               tutti_dataset_count_texts(words, "text", 0, 0, 0, NULL, NULL, &counts, &err));
  tutti_cancel *cancel = NULL;
  assert_ok(tutti_cancel_create(&cancel, &err));
  assert_ok(tutti_cancel_set_deadline(cancel, 0, &err));
  assert_error(TUTTI_DEADLINE_EXCEEDED, "deadline", COUNT(words, "text", 0, 0, 0, cancel));
  assert_ok(tutti_cancel_request(cancel, TUTTI_CANCEL_STOP, &err));
  assert_error(TUTTI_CANCELLED, "", COUNT(words, "text", 0, 0, 0, cancel));
  tutti_cancel_unref(cancel);
  tutti_dataset_unref(words), tutti_dataset_unref(numbers);
  struct {
    int64_t offsets[2];
    char text;
  } one = {{16, 17}, 'a'};
  const int64_t dims[] = {1};
  tutti_pipeline *pipeline = NULL;
  tutti_tensor *slice = NULL;
  assert_ok(tutti_tensor_from_data(TUTTI_DTYPE_BYTES, dims, 1, &one, 17, &slice, &err));
  assert_ok(tutti_pipeline_create(NULL, &pipeline, &err));
  tutti_pipeline_add_slices(pipeline, "text", TUTTI_ROLE_FEATURE, slice);
  tutti_tensor_unref(slice);
  tutti_pipeline_repeat(pipeline, NULL);
  words = build(pipeline);
  assert_error(TUTTI_INVALID_ARGUMENT, "no end; count its texts before repeat", COUNT(words, "text", 0, 0, 0, NULL));
  tutti_dataset_unref(words);
  assert_null(texts), assert_null(counts);
}

static int begin(void **state) {
  make_directory(folder);
  join_path(path, sizeof path, folder, "corpus.txt");
  FILE *file = fopen(path, "w");
  if (file == NULL || fputs(corpus, file) < 0 || fclose(file) != 0) return -1;
  return remember_live_objects(state);
}

static int end(void **state) {
  remove_directory(folder);
  return assert_nothing_left(state);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_texts_are_counted),
    cmocka_unit_test(test_a_vocabulary_is_made_from_a_corpus),
    cmocka_unit_test(test_mistakes),
};

int main(void) { return cmocka_run_group_tests(tests, begin, end); }
