/* SPDX-License-Identifier: Apache-2.0
 *
 * Training from files in less memory than they have: a data set of four times the memory that the process may still
 * allocate (RLIMIT_DATA), from record files, and through a cache in a file. What a process holds must not grow with the
 * data set. The same with a cache in memory is refused, which shows that the limit is one.
 *
 * Each training is a process of its own: this program with arguments.
 *
 *   memory_limit_test records 4096 /tmp/folder
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dataset_fixtures.h"
#include "estimator_fixtures.h"

enum {
  COLUMNS = 4096, /* of f32: 16 KiB a row */
  BATCH = 64,
  LIMIT_MIB = 16,
  FEW_ROWS = LIMIT_MIB * 64,
  MANY_ROWS = 4 * FEW_ROWS,
  WARM_ROWS = 2 * BATCH,
  MOST_GROWTH_MIB = 8, /* of what MANY_ROWS need over FEW_ROWS, which have 48 MiB less */
  SMALL_STACK = 1 << 20,
  LIMIT_HELD = 42, /* exit status: refused for want of memory */
};

static char folder[64];

static void file_of(char path[128], int64_t rows) { snprintf(path, 128, "%s/%d.tfrecord", folder, (int)rows); }

static void write_rows(int64_t rows) {
  static float x[COLUMNS];
  char path[128];
  file_of(path, rows);
  tutti_record_writer *writer = NULL;
  assert_ok(tutti_record_writer_create(NULL, path, NULL, &writer, &err));
  for (int64_t row = 0; row < rows; row++) {
    int32_t y = row % 2;
    for (int i = 0; i < COLUMNS; i++)
      x[i] = (float)((row + i) % 7) - (float)y;
    tutti_tensor *numbers = make_vector(TUTTI_DTYPE_F32, COLUMNS, x),
                 *label = make_tensor(TUTTI_DTYPE_I32, 0, NULL, &y);
    assert_ok(tutti_record_writer_add_feature(writer, "x", numbers, &err));
    assert_ok(tutti_record_writer_add_feature(writer, "y", label, &err));
    assert_ok(tutti_record_writer_write_example(writer, &err));
    tutti_tensor_unref(numbers), tutti_tensor_unref(label);
  }
  assert_ok(tutti_record_writer_close(writer, &err));
  tutti_record_writer_unref(writer);
}

static int32_t model(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  (void)user;
  tutti_value logits = tutti_layer_dense(g, tutti_graph_get_feature(g, "x"), 2, NULL);
  tutti_graph_set_output(g, "logits", logits);
  if (mode != TUTTI_MODE_PREDICT) {
    tutti_graph_set_loss(g, tutti_loss_sparse_softmax_cross_entropy(g, logits, tutti_graph_get_label(g, "y"), NULL));
    tutti_optimizer_sgd(g, tutti_schedule_constant(g, 1e-3), NULL);
  }
  return tutti_graph_check(g, err);
}

/* --- the process that trains -------------------------------------------------------------------------------------- */

static tutti_dataset *dataset_of(const char *kind, int64_t rows) {
  char path[128], cache[160];
  file_of(path, rows);
  snprintf(cache, sizeof cache, "%s.elements", path);
  const char *paths[] = {path}, *features[] = {"x: f32[4096]", "y: i32"}, *labels[] = {"y"};
  tutti_pipeline *pipeline = NULL;
  assert_ok(tutti_pipeline_create(NULL, &pipeline, &err));
  tutti_source_tfrecord(pipeline, paths, 1, NULL);
  tutti_pipeline_parse_example_attrs attrs = {.labels = labels, .labels_count = 1};
  tutti_pipeline_parse_example(pipeline, features, 2, &attrs);
  if (strcmp(kind, "records") != 0) {
    tutti_pipeline_cache_attrs place = {.path = strcmp(kind, "file_cache") == 0 ? cache : NULL};
    tutti_pipeline_cache(pipeline, &place);
    tutti_pipeline_repeat(pipeline, &(tutti_pipeline_repeat_attrs){.has_count = 1, .count = 2});
  }
  tutti_pipeline_shuffle(pipeline, BATCH, NULL);
  tutti_pipeline_batch(pipeline, BATCH, NULL);
  tutti_pipeline_prefetch(pipeline, &(tutti_pipeline_prefetch_attrs){.buffer_size = 2});
  return build(pipeline);
}

/* A number of KiB that the kernel tells of a process; 0 when it is gone. */
static long status_of(const char *process, const char *key) {
  char path[64], line[256];
  long value = 0;
  snprintf(path, sizeof path, "/proc/%s/status", process);
  FILE *file = fopen(path, "r");
  if (file == NULL) return 0;
  while (fgets(line, sizeof line, file) != NULL) {
    if (strncmp(line, key, strlen(key)) == 0 && line[strlen(key)] == ':') value = atol(line + strlen(key) + 1);
  }
  fclose(file);
  return value;
}

static int train_in_little_memory(const char *kind, int64_t rows) {
  tutti_estimator *estimator = NULL;
  tutti_result *result = NULL;
  tutti_error *error = NULL;
  assert_ok(tutti_estimator_create(NULL, model, NULL, NULL, NULL, NULL, &estimator, &err));
  /* What is loaded and begun once is there before memory is limited. */
  tutti_dataset *dataset = dataset_of("records", WARM_ROWS);
  train(estimator, dataset, NULL);
  tutti_dataset_unref(dataset);
  rlim_t most = (rlim_t)status_of("self", "VmData") * 1024 + (rlim_t)LIMIT_MIB * 1024 * 1024;
  struct rlimit limit = {most, most};
  if (setrlimit(RLIMIT_DATA, &limit) != 0) return 1;
  dataset = dataset_of(kind, rows);
  int32_t code = tutti_estimator_train(estimator, dataset, NULL, NULL, NULL, &result, &error);
  tutti_dataset_unref(dataset);
  tutti_estimator_unref(estimator);
  if (code == TUTTI_RESOURCE_EXHAUSTED) return LIMIT_HELD;
  if (code != TUTTI_OK) {
    print_error("%s\n", error != NULL ? tutti_error_get_text(error) : "no error");
    return 1;
  }
  int64_t expected = rows * (strcmp(kind, "records") == 0 ? 1 : 2);
  return take(result).examples == expected ? 0 : 1;
}

/* --- the process that watches ------------------------------------------------------------------------------------- */

struct peak {
  long own_kib;      /* memory of its own, the most that was seen */
  long resident_kib; /* with files that are mapped, which the kernel may take away */
  int status;
};

static struct peak watch(const char *kind, int64_t rows) {
  char count[16], process[16];
  struct peak peak = {0, 0, -1};
  snprintf(count, sizeof count, "%d", (int)rows);
  pid_t child = fork();
  if (child == 0) {
    struct rlimit stack = {SMALL_STACK, SMALL_STACK}; /* stacks of threads count in full */
    setrlimit(RLIMIT_STACK, &stack);
    execl("/proc/self/exe", "memory_limit_test", kind, count, folder, (char *)NULL);
    _exit(1);
  }
  assert_true(child > 0);
  snprintf(process, sizeof process, "%d", (int)child);
  int status = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    long own = status_of(process, "RssAnon"), resident = status_of(process, "VmHWM");
    if (own > peak.own_kib) peak.own_kib = own;
    if (resident > peak.resident_kib) peak.resident_kib = resident;
    sleep_microseconds(1000);
  }
  peak.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  print_message("%s, %d MiB with %d MiB to allocate: peak %.1f MiB of its own, %.1f MiB resident; status %d\n", kind,
                (int)rows / 64, LIMIT_MIB, (double)peak.own_kib / 1024, (double)peak.resident_kib / 1024, peak.status);
  return peak;
}

/* The peaks of little and much data; what the process holds must be the same, nearly. */
static void check_bounded(const char *kind, struct peak *few, struct peak *many) {
  *few = watch(kind, FEW_ROWS);
  *many = watch(kind, MANY_ROWS);
  assert_int_equal(few->status, 0);
  assert_int_equal(many->status, 0);
  assert_true(few->own_kib > 0);
  assert_true(many->own_kib - few->own_kib < MOST_GROWTH_MIB * 1024L);
}

static void test_records_need_no_more_memory_than_buffers(void **state) {
  (void)state;
  struct peak few, many;
  check_bounded("records", &few, &many);
  assert_true(many.resident_kib - few.resident_kib < MOST_GROWTH_MIB * 1024L);
}

/* The pages of the file are the kernel's, to be taken away when it likes. */
static void test_a_cache_in_a_file_holds_nothing(void **state) {
  (void)state;
  struct peak few, many;
  check_bounded("file_cache", &few, &many);
}

static void test_a_cache_in_memory_is_refused(void **state) {
  (void)state;
  assert_int_equal(watch("cache", MANY_ROWS).status, LIMIT_HELD);
}

static int write_files(void **state) {
  make_directory(folder);
  write_rows(WARM_ROWS), write_rows(FEW_ROWS), write_rows(MANY_ROWS);
  return remember_live_objects(state);
}

static int remove_files(void **state) {
  remove_directory(folder);
  return assert_nothing_left(state);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_records_need_no_more_memory_than_buffers),
    cmocka_unit_test(test_a_cache_in_a_file_holds_nothing),
    cmocka_unit_test(test_a_cache_in_memory_is_refused),
};

int main(int argc, char **argv) {
  if (argc == 4) {
    snprintf(folder, sizeof folder, "%s", argv[3]);
    return train_in_little_memory(argv[1], atol(argv[2]));
  }
  return cmocka_run_group_tests(tests, write_files, remove_files);
}
