/* SPDX-License-Identifier: Apache-2.0
 * How many threads a training keeps busy: the context's `threads` is shared out over the devices first, then the input
 * pipeline. Counted by the names of the process's threads while steps run. */
#define _GNU_SOURCE
#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <time.h>

#include "capi_testing.h"

/* Threads of this process whose name begins so. */
static int threads_named(const char *begin) {
  DIR *tasks = opendir("/proc/self/task");
  int count = 0;
  for (struct dirent *task = readdir(tasks); task != NULL; task = readdir(tasks)) {
    char path[300], name[64] = "";
    snprintf(path, sizeof(path), "/proc/self/task/%s/comm", task->d_name);
    FILE *file = fopen(path, "r");
    if (file == NULL) continue; /* "..", or it has ended */
    if (fgets(name, sizeof(name), file) != NULL && strncmp(name, begin, strlen(begin)) == 0) ++count;
    fclose(file);
  }
  closedir(tasks);
  return count;
}

struct counts {
  int team, data;
};

/* Threads name themselves when they first run, which may be after they were started: so there may be fewer for a
 * moment than are expected. */
struct watch {
  struct counts expected, seen;
};

static int32_t count_threads(void *user, const tutti_hook_event *event, tutti_error **err) {
  struct watch *watch = user;
  (void)event, (void)err;
  for (int i = 0; i < 1000; ++i) {
    watch->seen = (struct counts){threads_named("tutti-team"), threads_named("tutti-data")};
    if (watch->seen.team >= watch->expected.team && watch->seen.data >= watch->expected.data) break;
    nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
  }
  return TUTTI_OK;
}

static int32_t halve(tutti_graph *g, void *user, tutti_error **err) {
  (void)user;
  tutti_value half = tutti_graph_constant(g, TUTTI_DTYPE_F32, 0.5);
  tutti_graph_set_output(g, "x", tutti_mul(g, tutti_graph_get_feature(g, "x"), half));
  return tutti_graph_check(g, err);
}

/* Rows through a map with parallelism 0: as much as there is. */
static tutti_dataset *mapped_rows(tutti_context *context) {
  tutti_pipeline *pipeline = toy_rows(context, 4096);
  tutti_dataset *dataset = NULL;
  tutti_pipeline_map_graph(pipeline, halve, NULL, 0);
  tutti_pipeline_batch(pipeline, 512, NULL);
  assert_ok(tutti_pipeline_build(pipeline, &dataset, &err));
  tutti_pipeline_unref(pipeline);
  return dataset;
}

static struct counts train_on(int devices, int threads, int threads_per_replica, struct counts expected) {
  char text[100];
  tutti_context *context = NULL;
  tutti_strategy *strategy = NULL;
  tutti_estimator *estimator = NULL;
  tutti_hooks *hooks = NULL;
  struct watch watch = {expected, {-1, -1}};
  snprintf(text, sizeof(text), "{\"logical_devices\": %d, \"threads\": %d}", devices, threads);
  tutti_options *options = make_options("context", text);
  assert_ok(tutti_context_create(options, &context, &err));
  tutti_options_unref(options);
  assert_ok(tutti_strategy_create_mirrored(context, NULL, 0, &strategy, &err));
  assert_int_equal(tutti_strategy_get_replica_count(strategy), devices);
  snprintf(text, sizeof(text), "{\"threads_per_replica\": %d}", threads_per_replica);
  options = make_options("run", text);
  assert_ok(tutti_estimator_create(context, toy_model, NULL, NULL, strategy, options, &estimator, &err));
  tutti_options_unref(options);
  options = make_options("train", "{\"steps\": 3}");
  tutti_dataset *dataset = mapped_rows(context);
  assert_ok(tutti_hooks_create(&hooks, &err));
  assert_ok(tutti_hooks_add(hooks, count_threads, &watch, NULL, 1, &err));
  assert_ok(tutti_estimator_train(estimator, dataset, options, hooks, NULL, NULL, &err));
  tutti_options_unref(options), tutti_hooks_unref(hooks), tutti_dataset_unref(dataset);
  tutti_estimator_unref(estimator), tutti_strategy_unref(strategy), tutti_context_unref(context);
  /* Threads end with what they belong to; the system may show them a moment longer. */
  for (int i = 0; i < 1000 && threads_named("tutti-") > 0; ++i)
    nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
  assert_int_equal(threads_named("tutti-"), 0);
  return watch.seen;
}

static int first_core(const cpu_set_t *cores) {
  int core = 0;
  while (core < CPU_SETSIZE - 1 && !CPU_ISSET(core, cores))
    ++core;
  return core;
}

static void expect(int devices, int threads, int threads_per_replica, int team, int data) {
  const struct counts expected = {tutti_has_feature("backend:cpu") ? team : 0, data};
  const struct counts counts = train_on(devices, threads, threads_per_replica, expected);
  assert_int_equal(counts.team, expected.team);
  assert_int_equal(counts.data, expected.data);
}

static void test_shares(void **state) {
  (void)state;
  /* Each device has a thread of its own, which is in no team, and the pipeline one that is not in its pool. */
  expect(1, 1, 1, 0, 0);
  expect(2, 1, 8, 0, 0);
  expect(1, 4, 1, 0, 2);
  expect(1, 4, 3, 2, 0);
  expect(2, 6, 2, 2, 1);
  expect(2, 6, 8, 4, 0);
}

/* By default there are as many as the process may use cores: one here. */
static void test_default_is_the_cores(void **state) {
  (void)state;
  cpu_set_t before, one;
  assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
  CPU_ZERO(&one);
  CPU_SET(first_core(&before), &one);
  assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
  const struct counts counts = train_on(1, 0, 1024, (struct counts){0, 0});
  assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
  assert_int_equal(counts.team, 0);
  assert_int_equal(counts.data, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_shares),
      cmocka_unit_test(test_default_is_the_cores),
  };
  return cmocka_run_group_tests(tests, remember_live_objects, assert_nothing_left);
}
