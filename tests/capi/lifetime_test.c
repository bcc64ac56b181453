/* SPDX-License-Identifier: Apache-2.0
 * Handles in any order of release, in loops, and from many threads: nothing is left over. With the address sanitizer
 * this is the leak test too. */
#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capi_testing.h"

/* Of 1,000 rounds, of which allocators keep some more or less: what 3 KB forgotten in each would take. */
#define MOST_GROWTH_BYTES 3000000

static char record_directory[64], record_path[128];

/* One of each, depending on each other. */
enum kind {
  CONTEXT,
  STRATEGY,
  TENSOR,
  PIPELINE,
  DATASET,
  ITERATOR,
  ESTIMATOR,
  PREDICTOR,
  STREAM,
  BATCH,
  OUTPUT,
  RESULT,
  SESSION,
  OPTIONS,
  CANCEL,
  HOOKS,
  FEED,
  WRITER,
  ERROR,
  RESOLVER,
  VALUES,
  PIECE, /* of the values */
  STEP_RESULT,
  KINDS /* a prime: each stride below it visits all of them in another order */
};

struct everything {
  void *handles[KINDS];
};

static tutti_context *small_context(int64_t devices) {
  tutti_options *options = make_options("context", "{}");
  tutti_options_set_i64(options, "logical_devices", devices);
  tutti_context *context = NULL;
  assert_ok(tutti_context_create(options, &context, &err));
  tutti_options_unref(options);
  return context;
}

/* Next to nothing to compile. */
static int32_t small_model(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  (void)user;
  tutti_layer_dense_attrs plain = {.without_bias = 1};
  tutti_value logits = tutti_layer_dense(g, tutti_graph_get_feature(g, "x"), 2, &plain);
  tutti_graph_set_output(g, "logits", logits);
  if (mode != TUTTI_MODE_PREDICT) {
    tutti_graph_set_loss(g, tutti_loss_sparse_softmax_cross_entropy(g, logits, tutti_graph_get_label(g, "y"), NULL));
    tutti_optimizer_sgd(g, tutti_schedule_constant(g, 0.1), NULL);
  }
  return tutti_graph_check(g, err);
}

/* Changes nothing. */
static int32_t small_step(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  (void)mode, (void)user;
  tutti_graph_set_output(g, "squares", tutti_square(g, tutti_graph_get_feature(g, "x")));
  return tutti_graph_check(g, err);
}

static tutti_dataset *small_dataset(tutti_context *context, tutti_tensor **tensor, tutti_pipeline **pipeline) {
  float x[12][4];
  int32_t y[12];
  for (int i = 0; i < 12; i++)
    toy_row(i, x[i], &y[i]);
  int64_t dims[] = {12, 4};
  *tensor = make_tensor(TUTTI_DTYPE_F32, 2, dims, x);
  tutti_tensor *labels = make_vector(TUTTI_DTYPE_I32, 12, y);
  tutti_dataset *dataset = NULL;
  assert_ok(tutti_pipeline_create(context, pipeline, &err));
  tutti_pipeline_add_slices(*pipeline, "x", TUTTI_ROLE_FEATURE, *tensor);
  tutti_pipeline_add_slices(*pipeline, "y", TUTTI_ROLE_LABEL, labels);
  tutti_pipeline_shuffle(*pipeline, 4, NULL);
  tutti_pipeline_batch(*pipeline, 4, NULL);
  tutti_pipeline_prefetch(*pipeline, NULL);
  assert_ok(tutti_pipeline_build(*pipeline, &dataset, &err));
  tutti_tensor_unref(labels);
  return dataset;
}

/* What stands for itself. */
static void add_everything_else(struct everything *all) {
  tutti_cancel *cancel = NULL;
  tutti_hooks *hooks = NULL;
  tutti_feed *feed = NULL;
  tutti_record_writer *writer = NULL;
  tutti_error *error = NULL;
  tutti_cluster_resolver *resolver = NULL;
  assert_ok(tutti_cluster_resolver_create_list("a:2222,b:2223", 1, &resolver, &err));
  assert_ok(tutti_cancel_create(&cancel, &err));
  assert_ok(tutti_hooks_create(&hooks, &err));
  assert_ok(tutti_feed_create(all->handles[CONTEXT], 3, &feed, &err));
  assert_ok(tutti_record_writer_create(all->handles[CONTEXT], record_path, "gzip", &writer, &err));
  assert_int_equal(tutti_cancel_create(NULL, &error), TUTTI_INVALID_ARGUMENT);
  all->handles[OPTIONS] = make_options("run", "{\"seed\": 1}");
  all->handles[CANCEL] = cancel, all->handles[HOOKS] = hooks, all->handles[FEED] = feed;
  all->handles[WRITER] = writer, all->handles[ERROR] = error;
  all->handles[RESOLVER] = resolver;
}

/* What a step function gives on an element of the iterator. */
static void add_values(struct everything *all) {
  tutti_iterator *iterator = all->handles[ITERATOR];
  tutti_tensor *batch[] = {tutti_iterator_get_component(iterator, 0), tutti_iterator_get_component(iterator, 1)};
  tutti_replica_values *values = NULL;
  tutti_result *result = NULL;
  assert_ok(tutti_session_run_step_function(all->handles[SESSION], "step", batch, 2, &result, &values, &err));
  tutti_tensor *piece = tutti_replica_values_get_local(values, "squares", 0);
  tutti_tensor_ref(piece);
  all->handles[VALUES] = values, all->handles[PIECE] = piece, all->handles[STEP_RESULT] = result;
}

static struct everything make_everything(int64_t devices) {
  tutti_context *context = small_context(devices);
  tutti_strategy *strategy = NULL;
  tutti_tensor *tensor = NULL;
  tutti_pipeline *pipeline = NULL;
  tutti_iterator *iterator = NULL;
  tutti_estimator *estimator = NULL;
  tutti_predictor *predictor = NULL;
  tutti_prediction_stream *stream = NULL;
  tutti_batch *batch = NULL;
  tutti_session *session = NULL;
  tutti_result *result = NULL;
  uint8_t more = 0;
  assert_ok(tutti_strategy_create_mirrored(context, NULL, 0, &strategy, &err));
  tutti_dataset *dataset = small_dataset(context, &tensor, &pipeline);
  assert_ok(tutti_iterator_create(dataset, 1, &iterator, &err));
  assert_ok(tutti_iterator_next(iterator, NULL, &more, &err));
  assert_ok(tutti_estimator_create(context, small_model, NULL, NULL, strategy, NULL, &estimator, &err));
  assert_ok(
      tutti_estimator_add_step_function(estimator, "step", TUTTI_MODE_PREDICT, small_step, NULL, NULL, NULL, &err));
  assert_ok(tutti_session_open(estimator, dataset, NULL, NULL, NULL, &session, &err));
  assert_ok(tutti_session_run(session, 1, &result, &err));
  assert_ok(tutti_predictor_from_estimator(estimator, NULL, &predictor, &err));
  assert_ok(tutti_prediction_stream_open(predictor, dataset, &stream, &err));
  assert_ok(tutti_prediction_stream_next(stream, NULL, &batch, &err));
  tutti_tensor *output = tutti_batch_get_output(batch, "logits");
  tutti_tensor_ref(output);
  struct everything all = {.handles = {[CONTEXT] = context,
                                       [STRATEGY] = strategy,
                                       [TENSOR] = tensor,
                                       [PIPELINE] = pipeline,
                                       [DATASET] = dataset,
                                       [ITERATOR] = iterator,
                                       [ESTIMATOR] = estimator,
                                       [PREDICTOR] = predictor,
                                       [STREAM] = stream,
                                       [BATCH] = batch,
                                       [OUTPUT] = output,
                                       [RESULT] = result,
                                       [SESSION] = session}};
  add_everything_else(&all);
  add_values(&all);
  return all;
}

static void drop(struct everything *all, enum kind kind) {
  void *handle = all->handles[kind];
  switch (kind) {
    case CONTEXT:
      tutti_context_unref(handle);
      break;
    case STRATEGY:
      tutti_strategy_unref(handle);
      break;
    case TENSOR:
    case OUTPUT:
    case PIECE:
      tutti_tensor_unref(handle);
      break;
    case PIPELINE:
      tutti_pipeline_unref(handle);
      break;
    case DATASET:
      tutti_dataset_unref(handle);
      break;
    case ITERATOR:
      tutti_iterator_unref(handle);
      break;
    case ESTIMATOR:
      tutti_estimator_unref(handle);
      break;
    case PREDICTOR:
      tutti_predictor_unref(handle);
      break;
    case STREAM:
      tutti_prediction_stream_unref(handle);
      break;
    case BATCH:
      tutti_batch_unref(handle);
      break;
    case RESULT:
    case STEP_RESULT:
      tutti_result_unref(handle);
      break;
    case SESSION:
      tutti_session_unref(handle);
      break;
    case OPTIONS:
      tutti_options_unref(handle);
      break;
    case CANCEL:
      tutti_cancel_unref(handle);
      break;
    case HOOKS:
      tutti_hooks_unref(handle);
      break;
    case FEED:
      tutti_feed_unref(handle);
      break;
    case WRITER:
      tutti_record_writer_unref(handle);
      break;
    case ERROR:
      tutti_error_unref(handle);
      break;
    case RESOLVER:
      tutti_cluster_resolver_unref(handle);
      break;
    case VALUES:
      tutti_replica_values_unref(handle);
      break;
    case KINDS:
      break;
  }
}

/* By the names of their types; those that are lent are counted as well. */
static void test_every_type_is_counted(void **state) {
  (void)state;
  static const struct {
    const char *type;
    int count;
  } types[] = {{"context", 1},       {"strategy", 1},
               {"pipeline", 1},      {"dataset", 1},
               {"iterator", 1},      {"estimator", 1},
               {"predictor", 1},     {"prediction_stream", 1},
               {"batch", 1},         {"result", 2},
               {"session", 1},       {"options", 1},
               {"cancel", 1},        {"hooks", 1},
               {"feed", 1},          {"record_writer", 1},
               {"error", 1},         {"cluster_resolver", 1},
               {"replica_values", 1}};
  int64_t before[sizeof types / sizeof *types];
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    before[i] = tutti_debug_live_objects(types[i].type);
  struct everything all = make_everything(1);
  for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
    if (tutti_debug_live_objects(types[i].type) != before[i] + types[i].count) print_error("%s\n", types[i].type);
    assert_int_equal(tutti_debug_live_objects(types[i].type), before[i] + types[i].count);
  }
  assert_true(tutti_debug_live_objects("tensor") >= 3);
  for (int kind = 0; kind < KINDS; kind++)
    drop(&all, (enum kind)kind);
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    assert_int_equal(tutti_debug_live_objects(types[i].type), before[i]);
}

static void test_any_order_of_release(void **state) {
  (void)state;
  int64_t before = tutti_debug_live_objects(NULL);
  static const int strides[] = {1, 5, 7, 11};
  for (int order = 0; order < 8; order++) {
    struct everything all = make_everything(2);
    for (int i = 0; i < KINDS; i++)
      drop(&all, (enum kind)((i * strides[order % 4] + order) % KINDS));
    assert_int_equal(tutti_debug_live_objects(NULL), before);
  }
}

static void test_downstream_works_without_upstream(void **state) {
  (void)state;
  struct everything all = make_everything(2);
  static const enum kind upstream[] = {CONTEXT, STRATEGY, TENSOR, PIPELINE, DATASET, ESTIMATOR, PREDICTOR, BATCH};
  for (int i = 0; i < 8; i++)
    drop(&all, upstream[i]);
  uint8_t more = 0;
  tutti_batch *batch = NULL;
  assert_ok(tutti_iterator_next(all.handles[ITERATOR], NULL, &more, &err));
  assert_true(more);
  assert_int_equal(tutti_tensor_get_dim(tutti_iterator_get_component(all.handles[ITERATOR], 0), 1), 4);
  assert_ok(tutti_prediction_stream_next(all.handles[STREAM], NULL, &batch, &err));
  assert_int_equal(tutti_batch_get_row_count(batch), 4);
  tutti_batch_unref(batch);
  assert_int_equal(tutti_tensor_get_dim(all.handles[OUTPUT], 0), 4);
  tutti_tensor *whole = NULL;
  assert_ok(tutti_replica_values_gather(all.handles[VALUES], "squares", 0, &whole, &err));
  assert_int_equal(tutti_tensor_get_dim(whole, 0), 4);
  tutti_tensor_unref(whole);
  for (int kind = 0; kind < KINDS; kind++) {
    int is_gone = 0;
    for (int i = 0; i < 8; i++)
      is_gone |= upstream[i] == (enum kind)kind;
    if (!is_gone) drop(&all, (enum kind)kind);
  }
}

/* What the process holds beside objects of the library. */
struct holdings {
  long long resident_bytes;
  int descriptors, threads;
};

static int count_entries(const char *path) {
  int count = 0;
  DIR *directory = opendir(path);
  assert_non_null(directory);
  for (struct dirent *entry = readdir(directory); entry != NULL; entry = readdir(directory))
    count += entry->d_name[0] != '.';
  closedir(directory);
  return count;
}

static struct holdings holdings_now(void) {
  long long pages = 0, resident = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  assert_non_null(file);
  assert_int_equal(fscanf(file, "%lld %lld", &pages, &resident), 2);
  fclose(file);
  struct holdings now = {resident * sysconf(_SC_PAGESIZE), count_entries("/proc/self/fd"),
                         count_entries("/proc/self/task")};
  return now;
}

/* Threads that were told to end may take a moment; no more than 10 s. */
static struct holdings holdings_with_threads(int threads) {
  struct holdings now = holdings_now();
  for (int i = 0; now.threads > threads && i < 1000; i++) {
    sleep_microseconds(10000);
    now = holdings_now();
  }
  return now;
}

/* Sanitizers and valgrind keep what was freed. */
static int gives_memory_back(void) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return 0;
#else
  const char *loaded = getenv("LD_PRELOAD");
  return loaded == NULL || strstr(loaded, "vgpreload") == NULL;
#endif
}

enum { FIRST_ROUNDS = 100, MORE_ROUNDS = 1000 };

/* One of every type in each round, released in other orders. Whatever the library keeps for later, it has by then. */
static void make_and_release(int rounds) {
  for (int round = 0; round < rounds; round++) {
    struct everything all = make_everything(1);
    for (int i = 0; i < KINDS; i++)
      drop(&all, (enum kind)((i * (1 + round % (KINDS - 1)) + round) % KINDS));
  }
}

static void test_a_thousand_of_every_type(void **state) {
  (void)state;
  int64_t objects = tutti_debug_live_objects(NULL);
  make_and_release(FIRST_ROUNDS);
  struct holdings before = holdings_now();
  make_and_release(MORE_ROUNDS);
  assert_int_equal(tutti_debug_live_objects(NULL), objects);
  struct holdings after = holdings_with_threads(before.threads);
  assert_in_range(after.threads, 1, before.threads);
  assert_int_equal(after.descriptors, before.descriptors);
  print_message("%d rounds: %lld bytes more\n", MORE_ROUNDS, after.resident_bytes - before.resident_bytes);
  if (gives_memory_back()) assert_true(after.resident_bytes - before.resident_bytes < MOST_GROWTH_BYTES);
}

enum { THREADS = 4, ROUNDS = 3000 };

static void *count_references(void *user) {
  for (int i = 0; i < ROUNDS; i++) {
    tutti_tensor_ref(user);
    if (tutti_tensor_get_rank(user) != 2) return user; /* a failure */
    tutti_tensor_unref(user);
    tutti_cancel *own = NULL;
    if (tutti_cancel_create(&own, NULL) != TUTTI_OK) return user;
    tutti_cancel_unref(own);
    if (tutti_cancel_get_state(own) != TUTTI_CANCEL_NONE) return user; /* stale: harmless */
  }
  return NULL;
}

static void test_references_from_many_threads(void **state) {
  (void)state;
  int64_t dims[] = {2, 2};
  tutti_tensor *tensor = NULL;
  assert_ok(tutti_tensor_create(TUTTI_DTYPE_F32, dims, 2, &tensor, &err));
  pthread_t threads[THREADS];
  for (int i = 0; i < THREADS; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, count_references, tensor), 0);
  for (int i = 0; i < THREADS; i++) {
    void *failure = NULL;
    assert_int_equal(pthread_join(threads[i], &failure), 0);
    assert_null(failure);
  }
  assert_int_equal(tutti_tensor_get_rank(tensor), 2);
  tutti_tensor_unref(tensor);
  assert_int_equal(tutti_tensor_get_rank(tensor), -1);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_every_type_is_counted),
    cmocka_unit_test(test_any_order_of_release),
    cmocka_unit_test(test_downstream_works_without_upstream),
    cmocka_unit_test(test_a_thousand_of_every_type),
    cmocka_unit_test(test_references_from_many_threads),
};
static int make_record_directory(void **state) {
  make_directory(record_directory);
  join_path(record_path, sizeof record_path, record_directory, "records.gz");
  return remember_live_objects(state);
}

static int remove_record_directory(void **state) {
  remove_directory(record_directory);
  return assert_nothing_left(state);
}

int main(void) { return cmocka_run_group_tests(tests, make_record_directory, remove_record_directory); }
