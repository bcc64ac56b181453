/* SPDX-License-Identifier: Apache-2.0
 * Datasets through the C interface: sources, transforms, maps, feeds, saved iterators, and mistakes. */
#include <pthread.h>
#include <stdlib.h>

#include "capi_testing.h"

/* --- walking ------------------------------------------------------------------------------------------------------ */

/* All numbers of an f32 component, in order; -1 when the walk fails. */
static int64_t walk(const tutti_dataset *dataset, int64_t seed, int64_t component, float *out, int64_t capacity) {
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

static void assert_walk(const tutti_dataset *dataset, const float *expected, int64_t count) {
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

/* A pipeline that starts from 0, 1, ... `rows` - 1. */
static tutti_pipeline *count_to(int64_t rows) {
  tutti_dataset *source = counting_dataset(rows);
  tutti_pipeline *pipeline = NULL;
  assert_ok(tutti_pipeline_create(NULL, &pipeline, &err));
  tutti_pipeline_add_dataset(pipeline, source);
  tutti_dataset_unref(source);
  return pipeline;
}

static tutti_dataset *build(tutti_pipeline *pipeline) {
  tutti_dataset *dataset = NULL;
  assert_ok(tutti_pipeline_build(pipeline, &dataset, &err));
  tutti_pipeline_unref(pipeline);
  return dataset;
}

#define assert_build_error(code, needle, pipeline)                           \
  do {                                                                       \
    tutti_dataset *none = (tutti_dataset *)(uintptr_t)1;                     \
    assert_error(code, needle, tutti_pipeline_build(pipeline, &none, &err)); \
    assert_null(none);                                                       \
    tutti_pipeline_unref(pipeline);                                          \
  } while (0)

/* --- sources ------------------------------------------------------------------------------------------------------ */

static void test_slices(void **state) {
  (void)state;
  static const float x[] = {1, 2, 3, 4, 5, 6};
  static const int32_t y[] = {7, 8, 9};
  static const float w[] = {0.5f, 1, 2};
  int64_t dims[] = {3, 2};
  tutti_tensor *images = make_tensor(TUTTI_DTYPE_F32, 2, dims, x), *labels = make_vector(TUTTI_DTYPE_I32, 3, y),
               *weights = make_vector(TUTTI_DTYPE_F32, 3, w);
  tutti_pipeline *pipeline = NULL;
  assert_ok(tutti_pipeline_create(NULL, &pipeline, &err));
  tutti_pipeline_add_slices(pipeline, "image", TUTTI_ROLE_FEATURE, images);
  tutti_pipeline_add_slices(pipeline, "label", TUTTI_ROLE_LABEL, labels);
  tutti_pipeline_add_slices(pipeline, "weight", TUTTI_ROLE_WEIGHT, weights);
  tutti_tensor_unref(images), tutti_tensor_unref(labels), tutti_tensor_unref(weights);
  tutti_dataset *dataset = build(pipeline);
  assert_int_equal(tutti_dataset_get_cardinality(dataset), 3);
  assert_int_equal(tutti_dataset_get_component_count(dataset), 3);
  assert_string_equal(tutti_dataset_get_component_name(dataset, 1), "label");
  assert_int_equal(tutti_dataset_get_component_role(dataset, 0), TUTTI_ROLE_FEATURE);
  assert_int_equal(tutti_dataset_get_component_role(dataset, 1), TUTTI_ROLE_LABEL);
  assert_int_equal(tutti_dataset_get_component_role(dataset, 2), TUTTI_ROLE_WEIGHT);
  assert_int_equal(tutti_dataset_get_component_role(dataset, 3), 0);
  assert_null(tutti_dataset_get_component_name(dataset, -1));
  assert_contains(tutti_dataset_get_spec(dataset), "\"image\"");
  assert_contains(tutti_dataset_get_lint(dataset), "no prefetch at the end");
  assert_walk(dataset, x, 6);
  tutti_iterator *iterator = NULL;
  assert_ok(tutti_iterator_create(dataset, 0, &iterator, &err));
  assert_null(tutti_iterator_get_component(iterator, 0)); /* before the first */
  uint8_t more = 0;
  assert_ok(tutti_iterator_next(iterator, NULL, &more, &err));
  assert_ok(tutti_iterator_next(iterator, NULL, &more, &err));
  assert_int_equal(*(const int32_t *)tutti_tensor_get_data(tutti_iterator_get_component(iterator, 1)), 8);
  assert_int_equal(tutti_tensor_get_rank(tutti_iterator_get_component(iterator, 1)), 0);
  assert_int_equal(tutti_tensor_get_dim(tutti_iterator_get_component(iterator, 0), 0), 2);
  assert_null(tutti_iterator_get_component(iterator, 3));
  tutti_iterator_unref(iterator);
  tutti_dataset_unref(dataset);
}

static void test_slices_of_different_length(void **state) {
  (void)state;
  static const float numbers[] = {1, 2, 3, 4};
  tutti_tensor *four = make_vector(TUTTI_DTYPE_F32, 4, numbers), *three = make_vector(TUTTI_DTYPE_F32, 3, numbers);
  tutti_pipeline *pipeline = NULL;
  assert_ok(tutti_pipeline_create(NULL, &pipeline, &err));
  tutti_pipeline_add_slices(pipeline, "image", TUTTI_ROLE_FEATURE, four);
  tutti_pipeline_add_slices(pipeline, "label", TUTTI_ROLE_LABEL, three);
  tutti_pipeline_batch(pipeline, 2, NULL);
  tutti_dataset *dataset = NULL;
  tutti_error *err = NULL;
  assert_int_equal(tutti_pipeline_build(pipeline, &dataset, &err), TUTTI_INVALID_ARGUMENT);
  assert_contains(tutti_error_get_text(err), "'label'");
  assert_contains(tutti_error_get_text(err), "3");
  assert_contains(tutti_error_get_text(err), "4");
  tutti_error_unref(err);
  /* The pipeline is empty afterwards and can be used again. */
  tutti_pipeline_add_slices(pipeline, "label", TUTTI_ROLE_LABEL, three);
  assert_ok(tutti_pipeline_build(pipeline, &dataset, &err));
  tutti_dataset_unref(dataset);
  tutti_pipeline_unref(pipeline);
  tutti_tensor_unref(four), tutti_tensor_unref(three);
}

static void write_file(const char *path, const void *bytes, size_t size) {
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(bytes, 1, size, file), size);
  fclose(file);
}

static void test_idx(void **state) {
  (void)state;
  char directory[64], path[128];
  make_directory(directory);
  join_path(path, sizeof path, directory, "labels.idx");
  static const unsigned char good[] = {0, 0, 0x0D, 1, 0, 0, 0, 2, 0x3F, 0x80, 0, 0, 0xC0, 0, 0, 0}; /* f32 {1, -2} */
  write_file(path, good, sizeof good);
  tutti_pipeline *pipeline = NULL;
  assert_ok(tutti_pipeline_create(NULL, &pipeline, &err));
  tutti_pipeline_add_idx(pipeline, "x", TUTTI_ROLE_FEATURE, path);
  tutti_dataset *dataset = build(pipeline);
  static const float expected[] = {1, -2};
  assert_walk(dataset, expected, 2);
  tutti_dataset_unref(dataset);

  static const struct {
    size_t size;
    unsigned char bytes[20];
  } corrupt[] = {
      {0, {0}},
      {3, {0, 0, 8}},
      {8, {1, 2, 3, 4, 5, 6, 7, 8}},                                         /* no magic */
      {10, {0, 0, 0x07, 1, 0, 0, 0, 2, 1, 2}},                               /* no such type */
      {9, {0, 0, 0x08, 1, 0, 0, 0, 2, 1}},                                   /* too short */
      {11, {0, 0, 0x08, 1, 0, 0, 0, 2, 1, 2, 3}},                            /* too long */
      {12, {0, 0, 0x08, 2, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF}}, /* huge */
      {12, {0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 0, 9, 9}},                      /* torn gzip */
  };
  for (size_t i = 0; i < sizeof corrupt / sizeof *corrupt; i++) {
    write_file(path, corrupt[i].bytes, corrupt[i].size);
    assert_ok(tutti_pipeline_create(NULL, &pipeline, &err));
    tutti_pipeline_add_idx(pipeline, "x", TUTTI_ROLE_FEATURE, path);
    assert_build_error(TUTTI_DATA_LOSS, "labels.idx", pipeline);
  }
  join_path(path, sizeof path, directory, "missing.idx");
  assert_ok(tutti_pipeline_create(NULL, &pipeline, &err));
  tutti_pipeline_add_idx(pipeline, "x", TUTTI_ROLE_FEATURE, path);
  assert_build_error(TUTTI_NOT_FOUND, "missing.idx", pipeline);
  remove_directory(directory);
}

/* --- transforms --------------------------------------------------------------------------------------------------- */

static void test_batch(void **state) {
  (void)state;
  tutti_pipeline *pipeline = count_to(5);
  tutti_pipeline_batch(pipeline, 2, NULL);
  tutti_dataset *dataset = build(pipeline);
  assert_int_equal(tutti_dataset_get_cardinality(dataset), 3);
  tutti_iterator *iterator = NULL;
  assert_ok(tutti_iterator_create(dataset, 0, &iterator, &err));
  static const int64_t rows[] = {2, 2, 1};
  for (int i = 0; i < 3; i++) {
    uint8_t more = 0;
    assert_ok(tutti_iterator_next(iterator, NULL, &more, &err));
    assert_true(more);
    assert_int_equal(tutti_tensor_get_dim(tutti_iterator_get_component(iterator, 0), 0), rows[i]);
  }
  tutti_iterator_unref(iterator);
  tutti_dataset_unref(dataset);

  pipeline = count_to(5);
  tutti_pipeline_batch_attrs drop = {.drop_remainder = TUTTI_TRUE};
  tutti_pipeline_batch(pipeline, 2, &drop);
  dataset = build(pipeline);
  assert_int_equal(tutti_dataset_get_cardinality(dataset), 2);
  static const float four[] = {0, 1, 2, 3};
  assert_walk(dataset, four, 4);
  tutti_dataset_unref(dataset);
}

static int by_value(const void *a, const void *b) {
  float x = *(const float *)a, y = *(const float *)b;
  return (x > y) - (x < y);
}

static void test_shuffle(void **state) {
  (void)state;
  tutti_pipeline *pipeline = count_to(50);
  tutti_pipeline_shuffle(pipeline, 50, NULL);
  tutti_pipeline_repeat_attrs twice = {.has_count = 1, .count = 2};
  tutti_pipeline_repeat(pipeline, &twice);
  tutti_dataset *dataset = build(pipeline);
  float first[100], again[100], other[100];
  assert_int_equal(walk(dataset, 7, 0, first, 100), 100);
  assert_int_equal(walk(dataset, 7, 0, again, 100), 100);
  assert_int_equal(walk(dataset, 8, 0, other, 100), 100);
  assert_memory_equal(first, again, sizeof first); /* the seed decides */
  assert_memory_not_equal(first, other, sizeof first);
  assert_memory_not_equal(first, first + 50, 50 * sizeof *first); /* another order in every pass */
  for (int pass = 0; pass < 2; pass++) {
    qsort(first + pass * 50, 50, sizeof *first, by_value);
    for (int i = 0; i < 50; i++)
      assert_true(first[pass * 50 + i] == (float)i); /* every row once in each pass */
  }
  tutti_dataset_unref(dataset);
}

static void test_take_skip_shard_repeat(void **state) {
  (void)state;
  tutti_pipeline *pipeline = count_to(10);
  tutti_pipeline_skip(pipeline, 1);
  tutti_pipeline_shard(pipeline, 3, 1);
  tutti_pipeline_take(pipeline, 2);
  tutti_pipeline_repeat_attrs twice = {.has_count = 1, .count = 2};
  tutti_pipeline_repeat(pipeline, &twice);
  tutti_pipeline_prefetch(pipeline, NULL);
  tutti_dataset *dataset = build(pipeline);
  static const float expected[] = {2, 5, 2, 5};
  assert_int_equal(tutti_dataset_get_cardinality(dataset), 4);
  assert_walk(dataset, expected, 4);
  tutti_dataset_unref(dataset);
  pipeline = count_to(3);
  tutti_pipeline_repeat(pipeline, NULL);
  dataset = build(pipeline);
  assert_int_equal(tutti_dataset_get_cardinality(dataset), TUTTI_CARDINALITY_INFINITE);
  tutti_dataset_unref(dataset);
}

static void test_zip_and_concatenate(void **state) {
  (void)state;
  tutti_dataset *three = counting_dataset(3);
  tutti_pipeline *pipeline = count_to(2);
  tutti_pipeline_concatenate(pipeline, three);
  tutti_dataset *joined = build(pipeline);
  static const float expected[] = {0, 1, 0, 1, 2};
  assert_walk(joined, expected, 5);
  tutti_dataset_unref(joined);

  static const float squares[] = {0, 1, 4, 9, 16};
  tutti_tensor *tensor = make_vector(TUTTI_DTYPE_F32, 5, squares);
  assert_ok(tutti_pipeline_create(NULL, &pipeline, &err));
  tutti_pipeline_add_slices(pipeline, "square", TUTTI_ROLE_LABEL, tensor);
  tutti_pipeline_zip(pipeline, three);
  tutti_dataset *zipped = build(pipeline);
  assert_int_equal(tutti_dataset_get_component_count(zipped), 2);
  assert_int_equal(tutti_dataset_get_cardinality(zipped), 3);
  float got[8];
  assert_int_equal(walk(zipped, 0, 0, got, 8), 3);
  assert_memory_equal(got, squares, 3 * sizeof *got);
  tutti_dataset_unref(zipped);

  pipeline = count_to(2); /* the name "x" twice */
  tutti_pipeline_zip(pipeline, three);
  assert_build_error(TUTTI_INVALID_ARGUMENT, "'x'", pipeline);
  assert_ok(tutti_pipeline_create(NULL, &pipeline, &err)); /* another spec */
  tutti_pipeline_add_slices(pipeline, "square", TUTTI_ROLE_LABEL, tensor);
  tutti_pipeline_concatenate(pipeline, three);
  assert_build_error(TUTTI_INVALID_ARGUMENT, "square", pipeline);
  tutti_tensor_unref(tensor);
  tutti_dataset_unref(three);
}

static void test_split(void **state) {
  (void)state;
  tutti_dataset *dataset = counting_dataset(5), *first = NULL, *rest = NULL;
  assert_ok(tutti_dataset_split(dataset, 2, &first, &rest, &err));
  static const float head[] = {0, 1}, tail[] = {2, 3, 4};
  assert_walk(first, head, 2);
  assert_walk(rest, tail, 3);
  tutti_dataset_unref(first), tutti_dataset_unref(rest);
  assert_ok(tutti_dataset_split(dataset, 9, &first, &rest, &err));
  assert_int_equal(tutti_dataset_get_cardinality(first), 5);
  assert_int_equal(tutti_dataset_get_cardinality(rest), 0);
  tutti_dataset_unref(first), tutti_dataset_unref(rest);
  assert_error(TUTTI_INVALID_ARGUMENT, "'count'", tutti_dataset_split(dataset, -1, &first, &rest, &err));
  assert_null(first);
  assert_null(rest);
  assert_error(TUTTI_INVALID_ARGUMENT, "'rest' is NULL", tutti_dataset_split(dataset, 1, &first, NULL, &err));
  assert_null(first);
  tutti_dataset_unref(dataset);
}

static void test_lint(void **state) {
  (void)state;
  tutti_pipeline *pipeline = count_to(10);
  tutti_pipeline_shuffle(pipeline, 5, NULL);
  tutti_pipeline_cache(pipeline); /* every epoch repeats the first order */
  tutti_pipeline_prefetch(pipeline, NULL);
  tutti_dataset *dataset = build(pipeline);
  assert_contains(tutti_dataset_get_lint(dataset), "cache after shuffle");
  tutti_dataset_unref(dataset);
  pipeline = count_to(10);
  tutti_pipeline_cache(pipeline);
  tutti_pipeline_shuffle(pipeline, 5, NULL);
  tutti_pipeline_prefetch(pipeline, NULL);
  dataset = build(pipeline);
  assert_string_equal(tutti_dataset_get_lint(dataset), "");
  tutti_dataset_unref(dataset);
}

/* --- maps --------------------------------------------------------------------------------------------------------- */

static int32_t add_double(tutti_graph *g, void *user, tutti_error **err) {
  (void)user;
  tutti_value x = tutti_graph_get_feature(g, "x");
  tutti_graph_set_output(g, "x", tutti_add(g, x, tutti_graph_constant(g, TUTTI_DTYPE_F32, 100)));
  tutti_graph_set_output(g, "double", tutti_mul(g, x, tutti_graph_constant(g, TUTTI_DTYPE_F32, 2)));
  return tutti_graph_check(g, err);
}

static int32_t is_above_two(tutti_graph *g, void *user, tutti_error **err) {
  (void)user;
  tutti_value two = tutti_graph_constant(g, TUTTI_DTYPE_F32, 2);
  tutti_graph_set_output(g, "keep", tutti_greater(g, tutti_graph_get_feature(g, "x"), two));
  return tutti_graph_check(g, err);
}

static int32_t is_no_truth(tutti_graph *g, void *user, tutti_error **err) {
  (void)user;
  tutti_graph_set_output(g, "keep", tutti_graph_get_feature(g, "x"));
  return tutti_graph_check(g, err);
}

static void test_map_graph(void **state) {
  (void)state;
  for (int64_t parallelism = 1; parallelism <= 4; parallelism += 3) {
    tutti_pipeline *pipeline = count_to(6);
    tutti_pipeline_map_graph(pipeline, add_double, NULL, parallelism);
    tutti_dataset *dataset = build(pipeline);
    assert_int_equal(tutti_dataset_get_component_count(dataset), 2);
    assert_string_equal(tutti_dataset_get_component_name(dataset, 1), "double");
    assert_int_equal(tutti_dataset_get_component_role(dataset, 1), TUTTI_ROLE_FEATURE);
    static const float shifted[] = {100, 101, 102, 103, 104, 105}, doubled[] = {0, 2, 4, 6, 8, 10};
    float got[6];
    assert_walk(dataset, shifted, 6);
    assert_int_equal(walk(dataset, 0, 1, got, 6), 6);
    assert_memory_equal(got, doubled, sizeof doubled);
    tutti_dataset_unref(dataset);
  }
}

static void test_filter_graph(void **state) {
  (void)state;
  tutti_pipeline *pipeline = count_to(6);
  tutti_pipeline_filter_graph(pipeline, is_above_two, NULL);
  tutti_dataset *dataset = build(pipeline);
  assert_int_equal(tutti_dataset_get_cardinality(dataset), TUTTI_CARDINALITY_UNKNOWN);
  static const float expected[] = {3, 4, 5};
  assert_walk(dataset, expected, 3);
  tutti_dataset_unref(dataset);
  pipeline = count_to(6);
  tutti_pipeline_filter_graph(pipeline, is_no_truth, NULL);
  assert_build_error(TUTTI_INVALID_ARGUMENT, "bool", pipeline);
}

struct map_record {
  float fail_at; /* < 0: never */
  int leave_empty;
  int destroyed;
};

static int32_t negate(void *user, tutti_tensor *const *inputs, tutti_tensor **outputs, int64_t count,
                      tutti_error **err) {
  struct map_record *record = user;
  if (count != 1) return tutti_error_set(err, TUTTI_INTERNAL, "expected one component");
  float value = *(const float *)tutti_tensor_get_data(inputs[0]);
  if (value == record->fail_at) return tutti_error_set(err, TUTTI_DATA_LOSS, "row is torn");
  if (record->leave_empty) return TUTTI_OK;
  if (value == 0) { /* the input itself is allowed */
    tutti_tensor_ref(inputs[0]);
    outputs[0] = inputs[0];
    return TUTTI_OK;
  }
  value = -value;
  return tutti_tensor_from_data(TUTTI_DTYPE_F32, NULL, 0, &value, sizeof value, &outputs[0], err);
}

static void count_destroy(void *user) { ((struct map_record *)user)->destroyed++; }

static void test_map_callback(void **state) {
  (void)state;
  static const float expected[] = {0, -1, -2, -3, -4, -5, -6, -7};
  for (int64_t parallelism = 1; parallelism <= 4; parallelism += 3) {
    struct map_record record = {.fail_at = -1};
    tutti_pipeline *pipeline = count_to(8);
    tutti_pipeline_map(pipeline, negate, &record, count_destroy, parallelism);
    tutti_dataset *dataset = build(pipeline);
    assert_walk(dataset, expected, 8); /* in order */
    assert_int_equal(record.destroyed, 0);
    tutti_dataset_unref(dataset);
    assert_int_equal(record.destroyed, 1);
  }
}

static void test_map_callback_errors(void **state) {
  (void)state;
  for (int leave_empty = 0; leave_empty < 2; leave_empty++) {
    struct map_record record = {.fail_at = leave_empty ? -1.0f : 2.0f, .leave_empty = leave_empty};
    tutti_pipeline *pipeline = count_to(5);
    tutti_pipeline_map(pipeline, negate, &record, count_destroy, 1);
    tutti_dataset *dataset = build(pipeline);
    tutti_iterator *iterator = NULL;
    assert_ok(tutti_iterator_create(dataset, 0, &iterator, &err));
    uint8_t more = 0;
    if (leave_empty) {
      assert_error(TUTTI_INVALID_ARGUMENT, "left an output without a tensor",
                   tutti_iterator_next(iterator, NULL, &more, &err));
    } else {
      assert_ok(tutti_iterator_next(iterator, NULL, &more, &err));
      assert_ok(tutti_iterator_next(iterator, NULL, &more, &err));
      assert_error(TUTTI_DATA_LOSS, "row is torn", tutti_iterator_next(iterator, NULL, &more, &err));
    }
    tutti_iterator_unref(iterator);
    tutti_dataset_unref(dataset);
    assert_int_equal(record.destroyed, 1);
  }
}

static void test_map_callback_is_destroyed_without_a_dataset(void **state) {
  (void)state;
  struct map_record record = {.fail_at = -1};
  tutti_pipeline *pipeline = count_to(5);
  tutti_pipeline_map(pipeline, NULL, &record, count_destroy, 1);
  assert_int_equal(record.destroyed, 1); /* also when the registration fails */
  assert_build_error(TUTTI_INVALID_ARGUMENT, "'map' is NULL", pipeline);
  pipeline = count_to(5);
  tutti_pipeline_map(pipeline, negate, &record, count_destroy, 1);
  tutti_pipeline_unref(pipeline);
  assert_int_equal(record.destroyed, 2);
  tutti_pipeline_map(NULL, negate, &record, count_destroy, 1);
  assert_int_equal(record.destroyed, 3);
}

/* --- feeds -------------------------------------------------------------------------------------------------------- */

static tutti_feed *declare_feed(int64_t capacity) {
  tutti_feed *feed = NULL;
  assert_ok(tutti_feed_create(NULL, capacity, &feed, &err));
  assert_ok(tutti_feed_declare(feed, "x", TUTTI_ROLE_FEATURE, TUTTI_DTYPE_F32, NULL, 0, &err));
  return feed;
}

static tutti_dataset *feed_dataset(tutti_feed *feed) {
  tutti_pipeline *pipeline = NULL;
  assert_ok(tutti_pipeline_create(NULL, &pipeline, &err));
  tutti_pipeline_add_feed(pipeline, feed);
  return build(pipeline);
}

static int32_t push(tutti_feed *feed, float value, tutti_error **err) {
  tutti_tensor *tensor = NULL;
  int32_t code = tutti_tensor_from_data(TUTTI_DTYPE_F32, NULL, 0, &value, sizeof value, &tensor, err);
  if (code == TUTTI_OK) code = tutti_feed_push(feed, &tensor, 1, NULL, err);
  tutti_tensor_unref(tensor);
  return code;
}

struct producer {
  tutti_feed *feed;
  int count;
  int32_t code;
};

static void *produce(void *user) {
  struct producer *producer = user;
  for (int i = 0; i < producer->count && producer->code == TUTTI_OK; i++)
    producer->code = push(producer->feed, (float)i, NULL);
  if (producer->code == TUTTI_OK) producer->code = tutti_feed_finish(producer->feed, NULL);
  return NULL;
}

static void test_feed(void **state) {
  (void)state;
  tutti_feed *feed = declare_feed(2); /* smaller than what is pushed: the producer waits */
  tutti_dataset *dataset = feed_dataset(feed);
  struct producer producer = {feed, 40, TUTTI_OK};
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, produce, &producer), 0);
  float got[64];
  int64_t count = walk(dataset, 0, 0, got, 64);
  assert_int_equal(pthread_join(thread, NULL), 0);
  assert_int_equal(producer.code, TUTTI_OK);
  assert_int_equal(count, 40);
  for (int i = 0; i < 40; i++)
    assert_true(got[i] == (float)i);
  assert_int_equal(tutti_feed_get_position(feed), 0);
  tutti_dataset_unref(dataset);
  tutti_feed_unref(feed);
}

static void test_feed_fails(void **state) {
  (void)state;
  tutti_feed *feed = declare_feed(4);
  tutti_dataset *dataset = feed_dataset(feed);
  assert_ok(push(feed, 1, &err));
  assert_ok(tutti_feed_fail(feed, TUTTI_UNAVAILABLE, "the camera is unplugged", &err));
  tutti_iterator *iterator = NULL;
  assert_ok(tutti_iterator_create(dataset, 0, &iterator, &err));
  uint8_t more = 0;
  tutti_error *err = NULL;
  int32_t code = TUTTI_OK;
  for (int i = 0; i < 2 && code == TUTTI_OK; i++)
    code = tutti_iterator_next(iterator, NULL, &more, &err);
  assert_int_equal(code, TUTTI_UNAVAILABLE);
  assert_contains(tutti_error_get_text(err), "the camera is unplugged");
  tutti_error_unref(err);
  tutti_iterator_unref(iterator);
  tutti_dataset_unref(dataset);
  tutti_feed_unref(feed);
}

static void test_feed_mistakes(void **state) {
  (void)state;
  tutti_feed *feed = NULL;
  assert_error(TUTTI_INVALID_ARGUMENT, "'capacity'", tutti_feed_create(NULL, 0, &feed, &err));
  feed = declare_feed(1);
  assert_error(TUTTI_INVALID_ARGUMENT, "x",
               tutti_feed_declare(feed, "x", TUTTI_ROLE_LABEL, TUTTI_DTYPE_I32, NULL, 0, &err));
  tutti_feed_unref(feed);
  assert_ok(tutti_feed_create(NULL, 1, &feed, &err));
  assert_error(TUTTI_FAILED_PRECONDITION, "no components", push(feed, 1, &err));
  tutti_feed_unref(feed);

  feed = declare_feed(1);
  tutti_dataset *dataset = feed_dataset(feed);
  assert_error(TUTTI_FAILED_PRECONDITION, "'y'",
               tutti_feed_declare(feed, "y", TUTTI_ROLE_LABEL, TUTTI_DTYPE_I32, NULL, 0, &err));
  float pair[] = {1, 2};
  tutti_tensor *wrong = make_vector(TUTTI_DTYPE_F32, 2, pair);
  assert_error(TUTTI_INVALID_ARGUMENT, "'x'", tutti_feed_push(feed, &wrong, 1, NULL, &err));
  assert_error(TUTTI_INVALID_ARGUMENT, "", tutti_feed_push(feed, NULL, 0, NULL, &err));
  assert_error(TUTTI_INVALID_ARGUMENT, "'components' is NULL", tutti_feed_push(feed, NULL, 1, NULL, &err));
  tutti_tensor_unref(wrong);
  assert_ok(push(feed, 1, &err));
  tutti_cancel *cancel = NULL; /* full: waits until the deadline */
  assert_ok(tutti_cancel_create(&cancel, &err));
  assert_ok(tutti_cancel_set_deadline(cancel, 20, &err));
  float one = 1;
  tutti_tensor *scalar = make_tensor(TUTTI_DTYPE_F32, 0, NULL, &one);
  assert_error(TUTTI_DEADLINE_EXCEEDED, "", tutti_feed_push(feed, &scalar, 1, cancel, &err));
  tutti_tensor_unref(scalar);
  tutti_cancel_unref(cancel);
  assert_ok(tutti_feed_finish(feed, &err));
  assert_error(TUTTI_FAILED_PRECONDITION, "", push(feed, 2, &err));
  assert_error(TUTTI_INVALID_ARGUMENT, "'code'", tutti_feed_fail(feed, TUTTI_OK, "x", &err));
  tutti_dataset_unref(dataset);
  tutti_feed_unref(feed);
}

static void test_full_feed_on_its_own_reader(void **state) {
  (void)state;
  tutti_feed *feed = declare_feed(1);
  tutti_dataset *dataset = feed_dataset(feed);
  tutti_iterator *iterator = NULL;
  assert_ok(push(feed, 1, &err));
  assert_ok(tutti_iterator_create(dataset, 0, &iterator, &err));
  uint8_t more = 0;
  assert_ok(tutti_iterator_next(iterator, NULL, &more, &err));
  assert_ok(push(feed, 2, &err));
  assert_error(TUTTI_FAILED_PRECONDITION, "", push(feed, 3, &err)); /* would wait for itself */
  tutti_iterator_unref(iterator);
  tutti_dataset_unref(dataset);
  tutti_feed_unref(feed);
}

/* --- saved iterators ---------------------------------------------------------------------------------------------- */

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

/* --- mistakes of a pipeline --------------------------------------------------------------------------------------- */

static void test_pipeline_mistakes(void **state) {
  (void)state;
  tutti_pipeline *pipeline = NULL;
  assert_ok(tutti_pipeline_create(NULL, &pipeline, &err));
  assert_build_error(TUTTI_FAILED_PRECONDITION, "no source", pipeline);
  pipeline = count_to(3);
  tutti_pipeline_batch(pipeline, 0, NULL);
  assert_build_error(TUTTI_INVALID_ARGUMENT, "batch_size", pipeline);
  pipeline = count_to(3);
  tutti_pipeline_begin(pipeline, "shufle", 1);
  tutti_pipeline_end(pipeline);
  assert_build_error(TUTTI_INVALID_ARGUMENT, "did you mean 'shuffle'?", pipeline);
  pipeline = count_to(3);
  tutti_pipeline_begin(pipeline, "shuffle", 1);
  tutti_pipeline_set_i64(pipeline, "bufer_size", 3);
  tutti_pipeline_end(pipeline);
  assert_build_error(TUTTI_INVALID_ARGUMENT, "buffer_size", pipeline);
  pipeline = count_to(3);
  tutti_pipeline_begin(pipeline, "shuffle", 1);
  tutti_pipeline_end(pipeline);
  assert_build_error(TUTTI_INVALID_ARGUMENT, "buffer_size", pipeline);
  pipeline = count_to(3);
  tutti_pipeline_begin(pipeline, "shuffle", 1);
  tutti_pipeline_set_string(pipeline, "buffer_size", "many");
  tutti_pipeline_end(pipeline);
  assert_build_error(TUTTI_INVALID_ARGUMENT, "buffer_size", pipeline);
  pipeline = count_to(3);
  tutti_pipeline_begin(pipeline, "shuffle", 1);
  assert_build_error(TUTTI_FAILED_PRECONDITION, "'shuffle' was begun but not ended", pipeline);
  pipeline = count_to(3);
  tutti_pipeline_end(pipeline);
  assert_build_error(TUTTI_FAILED_PRECONDITION, "none was begun", pipeline);
  pipeline = count_to(3);
  tutti_pipeline_set_i64(pipeline, "buffer_size", 3);
  assert_build_error(TUTTI_FAILED_PRECONDITION, "no transform was begun", pipeline);
  pipeline = count_to(3);
  tutti_pipeline_zip(pipeline, NULL);
  assert_build_error(TUTTI_INVALID_ARGUMENT, "other", pipeline);
  pipeline = count_to(3);
  tutti_pipeline_add_idx(pipeline, "x", TUTTI_ROLE_FEATURE, "x");
  assert_build_error(TUTTI_FAILED_PRECONDITION, "cannot be added after", pipeline);
  assert_ok(tutti_pipeline_create(NULL, &pipeline, &err));
  tutti_pipeline_add_slices(pipeline, "x", TUTTI_ROLE_FEATURE, NULL);
  assert_build_error(TUTTI_INVALID_ARGUMENT, "'tensor'", pipeline);
  assert_ok(tutti_pipeline_create(NULL, &pipeline, &err));
  tutti_tensor *scalar = NULL;
  assert_ok(tutti_tensor_create(TUTTI_DTYPE_F32, NULL, 0, &scalar, &err));
  tutti_pipeline_add_slices(pipeline, "x", 4, scalar);
  assert_build_error(TUTTI_INVALID_ARGUMENT, "'role'", pipeline);
  assert_ok(tutti_pipeline_create(NULL, &pipeline, &err));
  tutti_pipeline_add_slices(pipeline, "x", TUTTI_ROLE_FEATURE, scalar); /* no first dimension */
  assert_build_error(TUTTI_INVALID_ARGUMENT, "'x'", pipeline);
  tutti_tensor_unref(scalar);
}

static void test_contexts_do_not_mix(void **state) {
  (void)state;
  tutti_options *options = make_options("context", "{\"backend\": \"reference\"}");
  tutti_context *other = NULL;
  tutti_pipeline *pipeline = NULL;
  assert_ok(tutti_context_create(options, &other, &err));
  assert_ok(tutti_pipeline_create(other, &pipeline, &err));
  tutti_dataset *dataset = counting_dataset(3); /* of the default context */
  tutti_pipeline_add_dataset(pipeline, dataset);
  assert_build_error(TUTTI_INVALID_ARGUMENT, "'dataset' belongs to another context", pipeline);
  tutti_dataset_unref(dataset);
  tutti_context_unref(other);
  tutti_options_unref(options);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_slices),
    cmocka_unit_test(test_slices_of_different_length),
    cmocka_unit_test(test_idx),
    cmocka_unit_test(test_batch),
    cmocka_unit_test(test_shuffle),
    cmocka_unit_test(test_take_skip_shard_repeat),
    cmocka_unit_test(test_zip_and_concatenate),
    cmocka_unit_test(test_split),
    cmocka_unit_test(test_lint),
    cmocka_unit_test(test_map_graph),
    cmocka_unit_test(test_filter_graph),
    cmocka_unit_test(test_map_callback),
    cmocka_unit_test(test_map_callback_errors),
    cmocka_unit_test(test_map_callback_is_destroyed_without_a_dataset),
    cmocka_unit_test(test_feed),
    cmocka_unit_test(test_feed_fails),
    cmocka_unit_test(test_feed_mistakes),
    cmocka_unit_test(test_full_feed_on_its_own_reader),
    cmocka_unit_test(test_save_and_restore),
    cmocka_unit_test(test_restore_of_nonsense),
    cmocka_unit_test(test_pipeline_mistakes),
    cmocka_unit_test(test_contexts_do_not_mix),
};
CAPI_TEST_MAIN(tests)
