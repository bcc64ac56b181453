/* SPDX-License-Identifier: Apache-2.0
 * Input that is divided among processes: sharded by the input pipelines of the strategy, a training sees each element
 * exactly once in each pass, whatever the number of replicas. */
#include <pthread.h>
#include <string.h>

#include "dataset_fixtures.h"

enum { ELEMENTS = 23, PASSES = 3, MOST_REPLICAS = 4 };

/* How often the function has seen each element. */
struct seen {
  pthread_mutex_t mutex;
  int times[ELEMENTS];
};

static int32_t see(void *user, tutti_tensor *const *inputs, tutti_tensor **outputs, int64_t count, tutti_error **err) {
  struct seen *seen = user;
  const float number = ((const float *)tutti_tensor_get_data(inputs[0]))[0];
  if (count != 1 || number < 0 || number >= ELEMENTS) return tutti_error_set(err, TUTTI_DATA_LOSS, "no such element");
  pthread_mutex_lock(&seen->mutex);
  seen->times[(int)number]++;
  pthread_mutex_unlock(&seen->mutex);
  tutti_tensor_ref(outputs[0] = inputs[0]);
  return TUTTI_OK;
}

static int32_t model(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  (void)user;
  tutti_value x = tutti_graph_get_feature(g, "x");
  int64_t one = 1;
  tutti_value w = tutti_graph_variable(g, "w", TUTTI_DTYPE_F32, &one, 1, "zeros", 0, 1);
  tutti_value y = tutti_mul(g, x, w);
  tutti_graph_set_output(g, "y", y);
  if (mode != TUTTI_MODE_PREDICT) {
    tutti_graph_set_loss(g, tutti_loss_mean_squared_error(g, y, x, NULL));
    tutti_optimizer_sgd(g, tutti_graph_constant(g, TUTTI_DTYPE_F32, 1e-4), NULL);
  }
  return tutti_graph_check(g, err);
}

/* Trains over the elements, of which a process takes shard `index` of `shards`; gives how many rows the model saw. */
static int64_t train_on_shard(tutti_context *context, tutti_strategy *strategy, int64_t shards, int64_t index,
                              struct seen *seen) {
  float numbers[ELEMENTS];
  for (int i = 0; i < ELEMENTS; i++)
    numbers[i] = (float)i;
  tutti_tensor *tensor = make_vector(TUTTI_DTYPE_F32, ELEMENTS, numbers);
  tutti_pipeline *pipeline = NULL;
  assert_ok(tutti_pipeline_create(context, &pipeline, &err));
  tutti_pipeline_add_slices(pipeline, "x", TUTTI_ROLE_FEATURE, tensor);
  tutti_tensor_unref(tensor);
  tutti_pipeline_shard(pipeline, shards, index);
  tutti_pipeline_shuffle(pipeline, ELEMENTS, NULL);
  tutti_pipeline_map(pipeline, see, seen, NULL, 2);
  tutti_pipeline_batch(pipeline, 5, NULL);
  tutti_pipeline_prefetch(pipeline, NULL);
  tutti_dataset *dataset = build(pipeline);
  tutti_estimator *estimator = NULL;
  tutti_result *result = NULL;
  char json[32];
  snprintf(json, sizeof json, "{\"epochs\": %d}", PASSES);
  tutti_options *options = make_options("train", json);
  assert_ok(tutti_estimator_create(context, model, NULL, NULL, strategy, NULL, &estimator, &err));
  assert_ok(tutti_estimator_train(estimator, dataset, options, NULL, NULL, &result, &err));
  const int64_t examples = tutti_result_get_examples(result);
  tutti_result_unref(result);
  tutti_options_unref(options);
  tutti_estimator_unref(estimator);
  tutti_dataset_unref(dataset);
  return examples;
}

static void test_each_element_comes_once(void **state) {
  (void)state;
  for (int replicas = 1; replicas <= MOST_REPLICAS; replicas++) {
    char json[32];
    snprintf(json, sizeof json, "{\"logical_devices\": %d}", replicas);
    tutti_options *options = make_options("context", json);
    tutti_context *context = NULL;
    tutti_strategy *strategy = NULL;
    assert_ok(tutti_context_create(options, &context, &err));
    assert_ok(tutti_strategy_create_mirrored(context, NULL, 0, &strategy, &err));
    assert_int_equal(tutti_strategy_get_replica_count(strategy), replicas);
    const int64_t count = tutti_strategy_get_input_pipeline_count(strategy),
                  id = tutti_strategy_get_input_pipeline_id(strategy);
    assert_int_equal(count, 1);
    assert_int_equal(id, 0);
    struct seen seen = {PTHREAD_MUTEX_INITIALIZER, {0}};
    assert_int_equal(train_on_shard(context, strategy, count, id, &seen), PASSES * ELEMENTS);
    for (int i = 0; i < ELEMENTS; i++)
      assert_int_equal(seen.times[i], PASSES);
    /* By replicas, all but the first one's share would be lost. */
    memset(seen.times, 0, sizeof seen.times);
    const int64_t share = (ELEMENTS + replicas - 1) / replicas;
    assert_int_equal(train_on_shard(context, strategy, replicas, 0, &seen), PASSES * share);
    for (int i = 0; i < ELEMENTS; i++)
      assert_int_equal(seen.times[i], i % replicas == 0 ? PASSES : 0);
    tutti_strategy_unref(strategy);
    tutti_context_unref(context);
    tutti_options_unref(options);
  }
}

static void test_one_device_reads_all(void **state) {
  (void)state;
  tutti_strategy *strategy = NULL;
  assert_ok(tutti_strategy_create_one_device(NULL, NULL, &strategy, &err));
  assert_int_equal(tutti_strategy_get_input_pipeline_count(strategy), 1);
  assert_int_equal(tutti_strategy_get_input_pipeline_id(strategy), 0);
  tutti_strategy_unref(strategy);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_each_element_comes_once),
    cmocka_unit_test(test_one_device_reads_all),
};
CAPI_TEST_MAIN(tests)
