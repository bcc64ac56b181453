/* SPDX-License-Identifier: Apache-2.0
 * Cluster resolvers, and the four calls that give a strategy over TPUs: in place of those, the devices of a plug-in
 * that computes nothing and, where TUTTI_PJRT_PLUGIN names one, of a plug-in that does. The program starts itself as
 * workers.
 *
 * usage: cluster_resolver_test TUTTI_PJRT TUTTI_GLOO FAKE_PLUGIN */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "worker_fixtures.h"

enum { KERNEL = 4 * 8 };

/* What a worker leaves. */
struct answer {
  int64_t replicas, workers, worker, devices;
  int32_t code;
  float kernel[KERNEL];
  char error[500];
};

static tutti_options *library_options(const char *library) {
  char json[PATH_MAX + 100];
  snprintf(json, sizeof json, "{\"pjrt_plugin\": \"%s\", \"logical_devices\": 2}", library);
  return make_options("context", json);
}

static int32_t train_toy(tutti_strategy *strategy, float *kernel, tutti_error **err) {
  tutti_context *context = tutti_strategy_get_context(strategy);
  tutti_options *run = make_options("run", "{\"seed\": 5}"), *train = make_options("train", "{\"epochs\": 2}");
  tutti_pipeline *pipeline = toy_rows(context, 61);
  tutti_dataset *dataset = NULL;
  tutti_estimator *estimator = NULL;
  tutti_pipeline_batch(pipeline, 9, NULL);
  int32_t code = tutti_pipeline_build(pipeline, &dataset, err);
  /* The context is the strategy's scope: no strategy is named. */
  if (code == TUTTI_OK) code = tutti_estimator_create(context, toy_model, NULL, NULL, NULL, run, &estimator, err);
  if (code == TUTTI_OK) code = tutti_estimator_train(estimator, dataset, train, NULL, NULL, NULL, err);
  if (code == TUTTI_OK) code = read_numbers(estimator, "dense/kernel", kernel, KERNEL, err);
  tutti_estimator_unref(estimator), tutti_dataset_unref(dataset);
  tutti_pipeline_unref(pipeline), tutti_options_unref(run), tutti_options_unref(train);
  return code;
}

/* ---- a worker: cluster_resolver_test SCENARIO DIRECTORY ---- */

static int worker_main(const char *scenario, const char *directory) {
  struct answer answer = {0};
  const int trains = strcmp(scenario, "train") == 0;
  char how[32];
  snprintf(how, sizeof how, "worker=%d", worker_tested());
  if (strcmp(scenario, "fail") == 0) snprintf(how, sizeof how, "%s", worker_tested() == 1 ? "no_devices" : "");
  setenv("TUTTI_FAKE_PJRT", how, 1);
  tutti_cluster_resolver *resolver = NULL;
  tutti_strategy *strategy = NULL;
  tutti_error *err = NULL;
  tutti_options *cluster = make_options("cluster", "{\"connect_timeout_ms\": 30000, \"job_secret\": \"swordfish\"}");
  tutti_options *library = library_options(getenv(trains ? "TUTTI_PJRT_PLUGIN" : "FAKE_PLUGIN_TESTED"));
  int32_t code = tutti_cluster_resolver_create_from_environment(NULL, &resolver, &err);
  if (code == TUTTI_OK) code = tutti_cluster_resolver_connect(resolver, cluster, &err);
  if (code == TUTTI_OK) code = tutti_cluster_resolver_initialize(resolver, library, &err);
  if (code == TUTTI_OK) code = tutti_strategy_create_tpu(resolver, &strategy, &err);
  tutti_cluster_resolver_unref(resolver); /* the strategy keeps what it needs */
  if (code == TUTTI_OK) {
    answer.replicas = tutti_strategy_get_replica_count(strategy);
    answer.workers = tutti_strategy_get_worker_count(strategy);
    answer.worker = tutti_strategy_get_worker_index(strategy);
    answer.devices = tutti_context_get_device_count(tutti_strategy_get_context(strategy));
    if (trains) code = train_toy(strategy, answer.kernel, &err);
  }
  answer.code = code;
  if (err != NULL) snprintf(answer.error, sizeof answer.error, "%s", tutti_error_get_text(err));
  tutti_error_unref(err), tutti_strategy_unref(strategy), tutti_options_unref(cluster), tutti_options_unref(library);
  return leave_answer(directory, &answer, sizeof answer, code);
}

/* ---- the test ---- */

static const char *fake_plugin;
static char plugin_folder[64];

static tutti_cluster_resolver *tpu(const char *name, const char *metadata) {
  tutti_cluster_resolver *resolver = NULL;
  assert_ok(tutti_cluster_resolver_create_tpu(name, metadata, &resolver, &err));
  return resolver;
}

static void assert_json(tutti_cluster_resolver *resolver, const char *expected) {
  assert_string_equal(tutti_cluster_resolver_get_json(resolver), expected);
  tutti_cluster_resolver_unref(resolver);
}

static void test_c17_every_source_gives_a_resolver(void **state) {
  (void)state;
  tutti_cluster_resolver *resolver = NULL;
  assert_ok(tutti_cluster_resolver_create_list("a:2222, b:2223", 1, &resolver, &err));
  assert_int_equal(tutti_cluster_resolver_get_worker_count(resolver), 2);
  assert_int_equal(tutti_cluster_resolver_get_worker_index(resolver), 1);
  assert_string_equal(tutti_cluster_resolver_get_address(resolver, 0), "a:2222");
  assert_null(tutti_cluster_resolver_get_address(resolver, 2));
  assert_null(tutti_cluster_resolver_get_address(resolver, -1));
  assert_json(resolver,
              "{\"workers\":[\"a:2222\",\"b:2223\"],\"index\":1,\"task\":\"worker\",\"origin\":\"explicit\"}");
  const char *const config = "{\"cluster\": {\"worker\": [\"c:1\"]}, \"task\": {\"type\": \"worker\", \"index\": 0}}";
  assert_ok(tutti_cluster_resolver_create_tf_config(config, &resolver, &err));
  assert_json(resolver, "{\"workers\":[\"c:1\"],\"index\":0,\"task\":\"worker\",\"origin\":\"TF_CONFIG\"}");
  setenv("TF_CONFIG", config, 1);
  setenv("TPU_WORKER_HOSTNAMES", "d,e", 1), setenv("TPU_WORKER_ID", "1", 1);
  assert_ok(tutti_cluster_resolver_create_from_environment(NULL, &resolver, &err));
  assert_string_equal(tutti_cluster_resolver_get_address(resolver, 0), "c:1");
  tutti_cluster_resolver_unref(resolver);
  assert_ok(tutti_cluster_resolver_create_from_environment("GKE", &resolver, &err));
  assert_json(resolver, "{\"workers\":[\"d:8482\",\"e:8482\"],\"index\":1,\"task\":\"worker\",\"origin\":\"GKE\"}");
  unsetenv("TF_CONFIG"), unsetenv("TPU_WORKER_HOSTNAMES"), unsetenv("TPU_WORKER_ID");
  assert_json(tpu("local", NULL),
              "{\"workers\":[\"localhost:8482\"],\"index\":0,\"task\":\"worker\",\"origin\":\"local\"}");
  assert_json(tpu("grpc://192.0.2.2:8470", ""),
              "{\"workers\":[\"192.0.2.2:8470\"],\"index\":0,\"task\":\"worker\",\"origin\":\"explicit\"}");
  assert_json(tpu("mine",
                  "NODE_ID: 'mine'\nACCELERATOR_TYPE: 'v5litepod-8'\nWORKER_ID: '1'\n"
                  "CHIPS_PER_HOST_BOUNDS: '2,2,1'\nworker-network-endpoints: x:y:192.0.2.2,x:y:192.0.2.3\n"),
              "{\"workers\":[\"192.0.2.2:8482\",\"192.0.2.3:8482\"],\"index\":1,\"task\":\"worker\",\"origin\":"
              "\"metadata\",\"accelerator_type\":\"v5litepod-8\",\"chips_per_worker\":4}");
}

static void test_c17_mistakes_are_named(void **state) {
  (void)state;
  tutti_cluster_resolver *resolver = NULL;
  assert_error(TUTTI_INVALID_ARGUMENT, "listed twice",
               tutti_cluster_resolver_create_list("a:1,a:1", 0, &resolver, &err));
  assert_error(TUTTI_INVALID_ARGUMENT, "expected 0 to 0",
               tutti_cluster_resolver_create_list("a:1", INT64_MAX, &resolver, &err));
  assert_error(TUTTI_INVALID_ARGUMENT, "TF_CONFIG is not JSON",
               tutti_cluster_resolver_create_tf_config("{", &resolver, &err));
  assert_error(TUTTI_NOT_FOUND, "describes no cluster",
               tutti_cluster_resolver_create_from_environment(NULL, &resolver, &err));
  assert_error(TUTTI_NOT_FOUND, "no variables of Slurm",
               tutti_cluster_resolver_create_from_environment("Slurm", &resolver, &err));
  assert_error(TUTTI_INVALID_ARGUMENT, "no launcher is called 'slurm'",
               tutti_cluster_resolver_create_from_environment("slurm", &resolver, &err));
  assert_error(TUTTI_INVALID_ARGUMENT, "the TPU 'mine' is a name",
               tutti_cluster_resolver_create_tpu("mine", NULL, &resolver, &err));
  assert_error(TUTTI_NOT_FOUND, "belongs to the TPU 'other'",
               tutti_cluster_resolver_create_tpu("mine", "NODE_ID: 'other'", &resolver, &err));
  assert_null(resolver);
  assert_int_equal(tutti_cluster_resolver_get_worker_count(NULL), -1);
  assert_int_equal(tutti_cluster_resolver_get_worker_index(NULL), -1);
  assert_null(tutti_cluster_resolver_get_json(NULL));
  assert_null(tutti_cluster_resolver_get_context(NULL));
}

static void test_c18_what_to_call_first_is_said(void **state) {
  (void)state;
  tutti_cluster_resolver *resolver = tpu("local", NULL);
  tutti_options *library = library_options(fake_plugin);
  tutti_strategy *strategy = NULL;
  assert_error(TUTTI_FAILED_PRECONDITION, "call tutti_cluster_resolver_connect first",
               tutti_strategy_create_tpu(resolver, &strategy, &err));
  assert_error(TUTTI_FAILED_PRECONDITION, "call tutti_cluster_resolver_connect first",
               tutti_cluster_resolver_initialize(resolver, library, &err));
  assert_ok(tutti_cluster_resolver_connect(resolver, NULL, &err));
  assert_null(tutti_cluster_resolver_get_context(resolver));
  assert_error(TUTTI_FAILED_PRECONDITION, "call tutti_cluster_resolver_initialize first",
               tutti_strategy_create_tpu(resolver, &strategy, &err));
  assert_null(strategy);
  assert_error(TUTTI_FAILED_PRECONDITION, "are connected", tutti_cluster_resolver_connect(resolver, NULL, &err));
  assert_ok(tutti_cluster_resolver_initialize(resolver, library, &err));
  assert_error(TUTTI_FAILED_PRECONDITION, "are initialized",
               tutti_cluster_resolver_initialize(resolver, library, &err));
  tutti_context *context = tutti_cluster_resolver_get_context(resolver);
  assert_ptr_equal(context, tutti_cluster_resolver_get_context(resolver));
  assert_string_equal(tutti_context_get_device_name(context, 1), "pjrt:1");
  assert_ok(tutti_strategy_create_tpu(resolver, &strategy, &err));
  tutti_cluster_resolver_unref(resolver); /* the strategy keeps the devices */
  assert_int_equal(tutti_strategy_get_replica_count(strategy), 2);
  assert_string_equal(tutti_strategy_get_device(strategy, 0), "pjrt:0");
  tutti_strategy_unref(strategy), tutti_options_unref(library);
}

static void test_options_of_the_calls(void **state) {
  (void)state;
  tutti_cluster_resolver *resolver = tpu("local", NULL);
  tutti_options *cluster = make_options("cluster", "{\"worker\": 0}");
  assert_error(TUTTI_INVALID_ARGUMENT, "worker must not be set where the cluster resolver lists the workers",
               tutti_cluster_resolver_connect(resolver, cluster, &err));
  tutti_options_unref(cluster);
  cluster = make_options("cluster", "{\"devices\": \"pjrt:1\"}");
  assert_ok(tutti_cluster_resolver_connect(resolver, cluster, &err));
  tutti_options *library = library_options(fake_plugin);
  tutti_options_set_string(library, "backend", "cpu");
  assert_error(TUTTI_INVALID_ARGUMENT, "option 'backend' is 'cpu'",
               tutti_cluster_resolver_initialize(resolver, library, &err));
  tutti_options_set_string(library, "backend", "pjrt");
  assert_ok(tutti_cluster_resolver_initialize(resolver, library, &err));
  tutti_strategy *strategy = NULL;
  assert_ok(tutti_strategy_create_tpu(resolver, &strategy, &err));
  assert_int_equal(tutti_strategy_get_replica_count(strategy), 1);
  assert_string_equal(tutti_strategy_get_device(strategy, 0), "pjrt:1");
  tutti_strategy_unref(strategy);
  /* Any strategy of several workers takes a resolver. */
  assert_error(TUTTI_INVALID_ARGUMENT, "schema 'cluster'",
               tutti_strategy_create_multi_worker_from_resolver(NULL, resolver, library, &strategy, &err));
  tutti_options *late = make_options("cluster", "{\"connect_timeout_ms\": 5}");
  assert_error(TUTTI_INVALID_ARGUMENT, "connect_timeout_ms was given to tutti_cluster_resolver_connect",
               tutti_strategy_create_multi_worker_from_resolver(NULL, resolver, late, &strategy, &err));
  assert_ok(tutti_strategy_create_multi_worker_from_resolver(NULL, resolver, NULL, &strategy, &err));
  assert_int_equal(tutti_strategy_get_worker_count(strategy), 1);
  assert_int_equal(tutti_strategy_get_replica_count(strategy), tutti_context_get_device_count(NULL));
  tutti_strategy_unref(strategy), tutti_options_unref(late), tutti_options_unref(library);
  tutti_options_unref(cluster), tutti_cluster_resolver_unref(resolver);
}

static void expect_no_tpu(tutti_cluster_resolver *resolver, const char *library, const char *needle) {
  tutti_options *options = library != NULL ? library_options(library) : NULL;
  tutti_error *failure = NULL;
  assert_int_equal(tutti_cluster_resolver_initialize(resolver, options, &failure), TUTTI_UNAVAILABLE);
  const char *text = tutti_error_get_text(failure);
  assert_contains(text, needle);
  assert_contains(text, "this machine has ");
  assert_contains(text, "the default context has ");
  assert_contains(text, tutti_context_get_device_name(NULL, 0));
  tutti_error_unref(failure), tutti_options_unref(options);
}

static void test_c16_without_a_tpu_there_is_something_else(void **state) {
  (void)state;
  tutti_cluster_resolver *resolver = tpu("local", NULL);
  assert_ok(tutti_cluster_resolver_connect(resolver, NULL, &err));
  expect_no_tpu(resolver, NULL, "set the option pjrt_plugin, or TPU_LIBRARY_PATH");
  expect_no_tpu(resolver, "/nonexistent/libtpu.so", "/nonexistent/libtpu.so");
  setenv("TUTTI_FAKE_PJRT", "no_devices", 1);
  expect_no_tpu(resolver, fake_plugin, "no TPU in this machine");
  unsetenv("TUTTI_FAKE_PJRT");
  tutti_cluster_resolver_unref(resolver);
}

static void test_the_library_of_the_environment(void **state) {
  (void)state;
  tutti_options *options = make_options("context", "{}");
  setenv("TPU_LIBRARY_PATH", fake_plugin, 1);
  assert_contains(tutti_options_get_json(options), "\"pjrt_plugin\":{\"value\":\"\",\"origin\":\"default\"}");
  tutti_options_set_from_environment(options);
  assert_contains(tutti_options_get_json(options), "fake_pjrt.so\",\"origin\":\"environment\"}");
  int64_t key = 0;
  while (strstr(tutti_options_describe_key("context", key), "\"pjrt_plugin\"") == NULL)
    key++;
  assert_contains(tutti_options_describe_key("context", key), "\"environment\": \"TPU_LIBRARY_PATH\"");
  /* Contexts of other backends take no notice. */
  tutti_context *context = NULL;
  assert_ok(tutti_context_create(options, &context, &err));
  assert_string_equal(tutti_context_get_device_name(context, 0), tutti_context_get_device_name(NULL, 0));
  tutti_context_unref(context);
  tutti_cluster_resolver *resolver = tpu("local", NULL);
  assert_ok(tutti_cluster_resolver_connect(resolver, NULL, &err));
  assert_ok(tutti_cluster_resolver_initialize(resolver, options, &err));
  assert_int_equal(tutti_context_get_device_count(tutti_cluster_resolver_get_context(resolver)), 2);
  /* What was set stays, and what is set afterwards is no longer the environment's. */
  tutti_options_set_string(options, "pjrt_plugin", "/a");
  tutti_options_set_from_environment(options);
  assert_contains(tutti_options_get_json(options), "\"pjrt_plugin\":{\"value\":\"/a\",\"origin\":\"set\"}");
  unsetenv("TPU_LIBRARY_PATH");
  tutti_options_set_from_environment(NULL);
  tutti_cluster_resolver_unref(resolver), tutti_options_unref(options);
}

/* Their plug-ins exchange values while they find their devices. */
static void test_two_workers_meet(void **state) {
  (void)state;
  char directory[64];
  make_directory(directory);
  struct answer all[2];
  int codes[2];
  run_workers("meet", directory, 2, 2, codes, all, sizeof all[0]);
  for (int w = 0; w < 2; w++) {
    assert_string_equal(all[w].error, "");
    assert_int_equal(codes[w], 0);
    assert_int_equal(all[w].replicas, 4);
    assert_int_equal(all[w].workers, 2);
    assert_int_equal(all[w].worker, w);
    assert_int_equal(all[w].devices, 2);
  }
  remove_directory(directory);
}

/* One of them has no device: the other one says whose fault it is. */
static void test_who_fails_is_named(void **state) {
  (void)state;
  char directory[64];
  make_directory(directory);
  struct answer all[2];
  int codes[2];
  run_workers("fail", directory, 2, 2, codes, all, sizeof all[0]);
  assert_int_equal(all[0].code, TUTTI_UNAVAILABLE);
  assert_contains(all[0].error, "worker 1 (127.0.0.1:");
  assert_contains(all[0].error, "no TPU in this machine");
  assert_int_equal(all[1].code, TUTTI_UNAVAILABLE);
  assert_contains(all[1].error, "no TPU in this machine");
  remove_directory(directory);
}

static void test_who_does_not_come_is_named(void **state) {
  (void)state;
  char workers[80];
  snprintf(workers, sizeof workers, "127.0.0.1:%d,host2.invalid:2222", free_port());
  tutti_cluster_resolver *resolver = NULL;
  tutti_options *cluster = make_options("cluster", "{\"connect_timeout_ms\": 200}");
  assert_ok(tutti_cluster_resolver_create_list(workers, 0, &resolver, &err));
  for (int attempt = 0; attempt < 2; attempt++) {
    assert_error(TUTTI_DEADLINE_EXCEEDED, "worker 1 (host2.invalid:2222)",
                 tutti_cluster_resolver_connect(resolver, cluster, &err));
  }
  tutti_cluster_resolver_unref(resolver), tutti_options_unref(cluster);
}

static void train_alone(float *kernel) {
  tutti_context *context = NULL;
  tutti_strategy *strategy = NULL;
  tutti_options *options = make_options("context", "{\"backend\": \"reference\", \"logical_devices\": 1}");
  assert_ok(tutti_context_create(options, &context, &err));
  assert_ok(tutti_strategy_create_one_device(context, NULL, &strategy, &err));
  assert_ok(train_toy(strategy, kernel, &err));
  tutti_strategy_unref(strategy), tutti_context_unref(context), tutti_options_unref(options);
}

static void test_c16_two_workers_train_as_one_device(void **state) {
  (void)state;
  if (getenv("TUTTI_PJRT_PLUGIN") == NULL) {
    print_message("TUTTI_PJRT_PLUGIN names no library with PJRT's C interface\n");
    skip();
  }
  char directory[64];
  make_directory(directory);
  struct answer all[2];
  int codes[2];
  float alone[KERNEL];
  train_alone(alone);
  run_workers("train", directory, 2, 2, codes, all, sizeof all[0]);
  for (int w = 0; w < 2; w++) {
    assert_string_equal(all[w].error, "");
    assert_int_equal(all[w].replicas, 4);
    assert_memory_equal(all[w].kernel, all[0].kernel, sizeof all[0].kernel);
    for (int i = 0; i < KERNEL; i++)
      assert_true(fabsf(all[w].kernel[i] - alone[i]) <= 1e-4f * (1 + fabsf(alone[i])));
  }
  remove_directory(directory);
}

int main(int count, char **arguments) {
  if (count == WORKER_ARGUMENTS) return worker_main(arguments[1], arguments[2]);
  if (count != 4 || link_plugins(plugin_folder, arguments[1], arguments[2]) != 0) return 2;
  fake_plugin = arguments[3];
  setenv("FAKE_PLUGIN_TESTED", fake_plugin, 1);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_c17_every_source_gives_a_resolver),
      cmocka_unit_test(test_c17_mistakes_are_named),
      cmocka_unit_test(test_c18_what_to_call_first_is_said),
      cmocka_unit_test(test_options_of_the_calls),
      cmocka_unit_test(test_c16_without_a_tpu_there_is_something_else),
      cmocka_unit_test(test_the_library_of_the_environment),
      cmocka_unit_test(test_two_workers_meet),
      cmocka_unit_test(test_who_fails_is_named),
      cmocka_unit_test(test_who_does_not_come_is_named),
      cmocka_unit_test(test_c16_two_workers_train_as_one_device),
  };
  const int failed = cmocka_run_group_tests(tests, remember_live_objects, assert_nothing_left);
  remove_directory(plugin_folder);
  return failed;
}
