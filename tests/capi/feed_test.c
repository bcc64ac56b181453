/* SPDX-License-Identifier: Apache-2.0
 * Feeds through the C interface: pushing from another thread, failing, and waiting. */
#include <pthread.h>

#include "dataset_fixtures.h"

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

/* Waits for so long at most. */
static int32_t push_within(tutti_feed *feed, float value, int64_t timeout_ms, tutti_error **err) {
  tutti_cancel *cancel = NULL;
  tutti_tensor *tensor = make_tensor(TUTTI_DTYPE_F32, 0, NULL, &value);
  int32_t code = tutti_cancel_create(&cancel, err);
  if (code == TUTTI_OK) code = tutti_cancel_set_deadline(cancel, timeout_ms, err);
  if (code == TUTTI_OK) code = tutti_feed_push(feed, &tensor, 1, cancel, err);
  tutti_cancel_unref(cancel);
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
  assert_error(TUTTI_DEADLINE_EXCEEDED, "", push_within(feed, 1, 20, &err)); /* full */
  assert_ok(tutti_feed_finish(feed, &err));
  assert_error(TUTTI_FAILED_PRECONDITION, "", push(feed, 2, &err));
  assert_error(TUTTI_INVALID_ARGUMENT, "'code'", tutti_feed_fail(feed, TUTTI_OK, "x", &err));
  tutti_dataset_unref(dataset);
  tutti_feed_unref(feed);
}

/* A tensor that is missing is named by its component. */
static void test_missing_tensors_are_named(void **state) {
  (void)state;
  tutti_feed *feed = NULL;
  tutti_tensor *element[] = {make_tensor(TUTTI_DTYPE_F32, 0, NULL, &(float){1}), NULL, NULL};
  assert_ok(tutti_feed_create(NULL, 1, &feed, &err));
  assert_ok(tutti_feed_declare(feed, "x", TUTTI_ROLE_FEATURE, TUTTI_DTYPE_F32, NULL, 0, &err));
  assert_ok(tutti_feed_declare(feed, "y", TUTTI_ROLE_LABEL, TUTTI_DTYPE_F32, NULL, 0, &err));
  assert_error(TUTTI_INVALID_ARGUMENT, "component 'y'", tutti_feed_push(feed, element, 2, NULL, &err));
  assert_error(TUTTI_INVALID_ARGUMENT, "component 'x'", tutti_feed_push(feed, element + 1, 1, NULL, &err));
  element[1] = element[0];
  assert_error(TUTTI_INVALID_ARGUMENT, "component ''", tutti_feed_push(feed, element, 3, NULL, &err));
  tutti_tensor_unref(element[0]);
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
  /* Nobody knows that it waits for itself: its token ends it. */
  assert_error(TUTTI_DEADLINE_EXCEEDED, "", push_within(feed, 3, 20, &err));
  assert_ok(tutti_iterator_next(iterator, NULL, &more, &err));
  assert_ok(push_within(feed, 3, 20, &err));
  tutti_iterator_unref(iterator);
  tutti_dataset_unref(dataset);
  tutti_feed_unref(feed);
}

struct generator_record {
  int destroyed;
  int64_t first_index; /* of the latest walk */
};

/* Element i of pass p: a vector of i + 1 times 10 p + i; there are four; the second of pass 1 fails. */
static int32_t give(void *user, int64_t pass, int64_t index, tutti_tensor **outputs, int64_t count,
                    uint8_t *has_element, tutti_error **error) {
  struct generator_record *record = user;
  if (record->first_index < 0) record->first_index = index;
  if (count != 1) return tutti_error_set(error, TUTTI_INTERNAL, "expected one component");
  if (index == 4) return TUTTI_OK;
  if (pass == 1 && index == 1) return tutti_error_set(error, TUTTI_DATA_LOSS, "line 1 is torn");
  float values[4];
  int64_t rows = index + 1;
  for (int64_t i = 0; i < rows; i++)
    values[i] = (float)(10 * pass + index);
  *has_element = 1;
  return tutti_tensor_from_data(TUTTI_DTYPE_F32, &rows, 1, values, rows * (int64_t)sizeof *values, &outputs[0], error);
}

static void forget(void *user) { ((struct generator_record *)user)->destroyed++; }

static tutti_pipeline *generate(struct generator_record *record) {
  static const int64_t unknown = -1;
  tutti_pipeline *pipeline = NULL;
  assert_ok(tutti_pipeline_create(NULL, &pipeline, &err));
  tutti_pipeline_declare(pipeline, "x", TUTTI_ROLE_FEATURE, TUTTI_DTYPE_F32, &unknown, 1);
  tutti_pipeline_add_generator(pipeline, give, record, forget);
  return pipeline;
}

static void test_generator(void **state) {
  (void)state;
  struct generator_record record = {0, -1};
  tutti_pipeline *pipeline = generate(&record);
  tutti_pipeline_repeat_attrs twice = {.has_count = 1, .count = 2};
  tutti_pipeline_repeat(pipeline, &twice);
  tutti_dataset *dataset = build(pipeline);
  assert_int_equal(tutti_dataset_get_cardinality(dataset), TUTTI_CARDINALITY_UNKNOWN);
  tutti_iterator *iterator = NULL, *later = NULL;
  assert_ok(tutti_iterator_create(dataset, 0, &iterator, &err));
  uint8_t more = 0;
  for (int64_t i = 0; i < 2; i++) {
    assert_ok(tutti_iterator_next(iterator, NULL, &more, &err));
    assert_int_equal(tutti_tensor_get_dim(tutti_iterator_get_component(iterator, 0), 0), i + 1);
  }
  const char *position = NULL;
  assert_ok(tutti_iterator_save(iterator, &position, &err));
  assert_ok(tutti_iterator_create(dataset, 0, &later, &err));
  assert_ok(tutti_iterator_restore(later, position, &err));
  record.first_index = -1;
  static const float expected[] = {2, 3, 10};
  for (int i = 0; i < 3; i++) {
    assert_ok(tutti_iterator_next(later, NULL, &more, &err));
    assert_true(*(const float *)tutti_tensor_get_data(tutti_iterator_get_component(later, 0)) == expected[i]);
  }
  assert_int_equal(record.first_index, 2);
  assert_error(TUTTI_DATA_LOSS, "line 1 is torn", tutti_iterator_next(later, NULL, &more, &err));
  assert_ok(tutti_iterator_next(later, NULL, &more, &err));
  tutti_iterator_unref(later);
  tutti_iterator_unref(iterator);
  tutti_dataset_unref(dataset);
  assert_int_equal(record.destroyed, 1);
}

static void test_generator_mistakes(void **state) {
  (void)state;
  struct generator_record record = {0, -1};
  tutti_pipeline *pipeline = NULL;
  assert_ok(tutti_pipeline_create(NULL, &pipeline, &err));
  tutti_pipeline_add_generator(pipeline, give, &record, forget);
  assert_build_error(TUTTI_INVALID_ARGUMENT, "at least one component", pipeline);
  assert_int_equal(record.destroyed, 1);
  assert_ok(tutti_pipeline_create(NULL, &pipeline, &err));
  tutti_pipeline_add_generator(pipeline, NULL, NULL, NULL);
  assert_build_error(TUTTI_INVALID_ARGUMENT, "argument 'next' is NULL", pipeline);
  assert_ok(tutti_pipeline_create(NULL, &pipeline, &err));
  tutti_pipeline_declare(pipeline, "x", TUTTI_ROLE_FEATURE, TUTTI_DTYPE_F32, NULL, 1);
  assert_build_error(TUTTI_INVALID_ARGUMENT, "'dims' not NULL", pipeline);
  assert_ok(tutti_pipeline_create(NULL, &pipeline, &err));
  tutti_pipeline_declare(pipeline, "x", 9, TUTTI_DTYPE_F32, NULL, 0);
  assert_build_error(TUTTI_INVALID_ARGUMENT, "'role'", pipeline);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_generator),
    cmocka_unit_test(test_generator_mistakes),
    cmocka_unit_test(test_feed),
    cmocka_unit_test(test_feed_fails),
    cmocka_unit_test(test_feed_mistakes),
    cmocka_unit_test(test_full_feed_on_its_own_reader),
    cmocka_unit_test(test_missing_tensors_are_named),
};
CAPI_TEST_MAIN(tests)
