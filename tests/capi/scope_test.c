/* SPDX-License-Identifier: Apache-2.0
 * Scopes of strategies, and datasets that a strategy has distributed. */
#include <string.h>

#include "capi_testing.h"

enum { REPLICAS = 3, ROWS = 20, BATCH = 8, FEATURES = 4 };

static tutti_context *three_devices(void) {
  tutti_options *options = make_options("context", "{\"backend\": \"reference\", \"logical_devices\": 3}");
  tutti_context *context = NULL;
  assert_ok(tutti_context_create(options, &context, &err));
  tutti_options_unref(options);
  return context;
}

static tutti_strategy *all_of(tutti_context *context) {
  tutti_strategy *strategy = NULL;
  assert_ok(tutti_strategy_create_mirrored(context, NULL, 0, &strategy, &err));
  return strategy;
}

static tutti_dataset *batches(tutti_context *context, int64_t batch) {
  tutti_pipeline *pipeline = toy_rows(context, ROWS);
  tutti_dataset *dataset = NULL;
  if (batch > 0) tutti_pipeline_batch(pipeline, batch, NULL);
  assert_ok(tutti_pipeline_build(pipeline, &dataset, &err));
  tutti_pipeline_unref(pipeline);
  return dataset;
}

/* Trains for two passes and reads the weights. */
static void train(tutti_context *context, tutti_strategy *strategy, const tutti_dataset *dataset, float *kernel,
                  int64_t replicas) {
  tutti_options *run = make_options("run", "{\"seed\": 4}"), *options = make_options("train", "{\"epochs\": 2}");
  tutti_estimator *estimator = NULL;
  tutti_result *result = NULL;
  tutti_tensor *tensor = NULL;
  char needle[32];
  assert_ok(tutti_estimator_create(context, toy_model, NULL, NULL, strategy, run, &estimator, &err));
  assert_ok(tutti_estimator_train(estimator, dataset, options, NULL, NULL, &result, &err));
  snprintf(needle, sizeof needle, "\"replicas\":%d", (int)replicas);
  assert_contains(tutti_result_get_step_report(result), needle);
  assert_ok(tutti_estimator_read_variable(estimator, "dense/kernel", &tensor, &err));
  memcpy(kernel, tutti_tensor_get_data(tensor), 32 * sizeof(float));
  tutti_tensor_unref(tensor), tutti_result_unref(result), tutti_estimator_unref(estimator);
  tutti_options_unref(run), tutti_options_unref(options);
}

static void test_c7_a29_what_is_made_in_a_scope_is_the_strategys(void **state) {
  (void)state;
  tutti_context *context = three_devices();
  tutti_strategy *all = all_of(context), *one = NULL, *nested = NULL;
  assert_ok(tutti_strategy_create_one_device(context, NULL, &one, &err));
  tutti_context *scope = tutti_strategy_get_context(all);
  tutti_dataset *dataset = batches(scope, BATCH);
  float kernel[32], with_name[32], alone[32];
  train(scope, NULL, dataset, kernel, REPLICAS);
  train(scope, all, dataset, with_name, REPLICAS);
  train(context, one, dataset, alone, 1);
  assert_memory_equal(kernel, with_name, sizeof kernel);
  for (int i = 0; i < 32; i++)
    assert_float_equal(kernel[i], alone[i], 1e-5f);
  /* No other strategy comes in. */
  tutti_estimator *estimator = NULL;
  assert_error(TUTTI_INVALID_ARGUMENT, "another strategy than that of the context",
               tutti_estimator_create(scope, toy_model, NULL, NULL, one, NULL, &estimator, &err));
  assert_error(TUTTI_FAILED_PRECONDITION, "in which no other one can be created",
               tutti_strategy_create_one_device(scope, NULL, &nested, &err));
  assert_error(TUTTI_FAILED_PRECONDITION, "in which no other one can be created",
               tutti_strategy_create_mirrored(scope, NULL, 0, &nested, &err));
  assert_error(TUTTI_FAILED_PRECONDITION, "in which no other one can be created",
               tutti_strategy_create_auto(scope, 0, &nested, &err));
  assert_null(nested);
  assert_null(estimator);
  tutti_dataset_unref(dataset), tutti_strategy_unref(all), tutti_strategy_unref(one), tutti_context_unref(context);
}

static void test_c35_sizes_of_batches(void **state) {
  (void)state;
  tutti_context *context = three_devices();
  tutti_strategy *strategy = all_of(context);
  static const int64_t sizes[][2] = {{0, 0}, {1, 1}, {3, 1}, {8, 3}, {9, 3}, {10, 4}, {INT64_MAX, INT64_MAX / 3 + 1}};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    assert_int_equal(tutti_strategy_get_per_replica_batch_size(strategy, sizes[i][0]), sizes[i][1]);
  assert_int_equal(tutti_strategy_get_per_replica_batch_size(strategy, -1), -1);
  assert_int_equal(tutti_strategy_get_per_replica_batch_size(NULL, 8), -1);
  tutti_strategy_unref(strategy), tutti_context_unref(context);
}

static void test_c9_pieces_are_the_rows_of_the_replicas(void **state) {
  (void)state;
  tutti_context *context = three_devices();
  tutti_strategy *strategy = all_of(context);
  tutti_dataset *dataset = batches(context, BATCH), *distributed = NULL;
  tutti_iterator *iterator = NULL;
  assert_ok(tutti_strategy_distribute_dataset(strategy, dataset, &distributed, &err));
  assert_ok(tutti_iterator_create(distributed, 0, &iterator, &err));
  assert_null(tutti_iterator_get_piece(iterator, 0, 0));
  static const int64_t expected[][REPLICAS] = {{3, 3, 2}, {3, 3, 2}, {2, 1, 1}};
  uint8_t more = 0;
  for (int batch = 0; batch < 3; batch++) {
    assert_ok(tutti_iterator_next(iterator, NULL, &more, &err));
    const float *x = tutti_tensor_get_data(tutti_iterator_get_component(iterator, 0));
    int64_t row = 0;
    for (int64_t replica = 0; replica < REPLICAS; replica++) {
      tutti_tensor *piece = tutti_iterator_get_piece(iterator, replica, 0);
      assert_int_equal(tutti_tensor_get_dim(piece, 0), expected[batch][replica]);
      assert_ptr_equal(tutti_tensor_get_data(piece), x + row * FEATURES); /* not copied */
      assert_int_equal(tutti_tensor_get_dim(tutti_iterator_get_piece(iterator, replica, 1), 0),
                       expected[batch][replica]);
      row += expected[batch][replica];
    }
    assert_null(tutti_iterator_get_piece(iterator, REPLICAS, 0));
    assert_null(tutti_iterator_get_piece(iterator, -1, 0));
    assert_null(tutti_iterator_get_piece(iterator, 0, 2));
  }
  assert_ok(tutti_iterator_next(iterator, NULL, &more, &err));
  assert_int_equal(more, 0);
  assert_null(tutti_iterator_get_piece(iterator, 0, 0));
  assert_null(tutti_iterator_get_piece(NULL, 0, 0));
  tutti_iterator_unref(iterator);
  /* Without a strategy there are no pieces. */
  assert_ok(tutti_iterator_create(dataset, 0, &iterator, &err));
  assert_ok(tutti_iterator_next(iterator, NULL, &more, &err));
  assert_null(tutti_iterator_get_piece(iterator, 0, 0));
  tutti_iterator_unref(iterator), tutti_dataset_unref(dataset), tutti_dataset_unref(distributed);
  tutti_strategy_unref(strategy), tutti_context_unref(context);
}

static void test_a30_a_distributed_dataset_trains_once(void **state) {
  (void)state;
  tutti_context *context = three_devices();
  tutti_strategy *strategy = all_of(context), *other = all_of(context);
  tutti_dataset *dataset = batches(context, BATCH), *single = batches(context, 0), *distributed = NULL, *again = NULL;
  float kernel[32], expected[32];
  assert_ok(tutti_strategy_distribute_dataset(strategy, dataset, &distributed, &err));
  assert_ok(tutti_strategy_distribute_dataset(strategy, distributed, &again, &err));
  train(context, strategy, dataset, expected, REPLICAS);
  train(context, strategy, again, kernel, REPLICAS);
  assert_memory_equal(kernel, expected, sizeof kernel);
  tutti_estimator *estimator = NULL;
  assert_ok(tutti_estimator_create(context, toy_model, NULL, NULL, other, NULL, &estimator, &err));
  assert_error(TUTTI_INVALID_ARGUMENT, "is distributed by another strategy",
               tutti_estimator_train(estimator, distributed, NULL, NULL, NULL, NULL, &err));
  tutti_dataset *none = NULL;
  assert_error(TUTTI_INVALID_ARGUMENT, "is distributed by another strategy",
               tutti_strategy_distribute_dataset(other, distributed, &none, &err));
  assert_error(TUTTI_INVALID_ARGUMENT, "call batch first",
               tutti_strategy_distribute_dataset(strategy, single, &none, &err));
  assert_null(none);
  tutti_estimator_unref(estimator), tutti_dataset_unref(dataset), tutti_dataset_unref(single);
  tutti_dataset_unref(distributed), tutti_dataset_unref(again), tutti_strategy_unref(strategy);
  tutti_strategy_unref(other), tutti_context_unref(context);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_c7_a29_what_is_made_in_a_scope_is_the_strategys),
    cmocka_unit_test(test_c35_sizes_of_batches),
    cmocka_unit_test(test_c9_pieces_are_the_rows_of_the_replicas),
    cmocka_unit_test(test_a30_a_distributed_dataset_trains_once),
};

int main(void) { return cmocka_run_group_tests(tests, remember_live_objects, assert_nothing_left); }
