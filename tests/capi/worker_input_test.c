/* SPDX-License-Identifier: Apache-2.0
 * Datasets that the library divides among workers. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "worker_training.h"

/* ---- parts, without other workers ---- */

/* The files, behind "mem://f/"; counts who opens which. */
struct opened {
  int times[FILES];
};

static int32_t open_file(void *user, const char *path, tutti_cancel *cancel, void **file, int64_t *size_bytes,
                         tutti_error **error) {
  struct opened *opened = user;
  char text[200];
  int number = 0;
  (void)cancel, (void)error;
  assert_int_equal(sscanf(path, "mem://f/rows-%d.txt", &number), 1);
  opened->times[number]++;
  text_of_file(number, text);
  *file = (void *)(uintptr_t)(number + 1);
  *size_bytes = (int64_t)strlen(text);
  return TUTTI_OK;
}

static int32_t read_file(void *user, void *file, int64_t offset, void *target, int64_t size, tutti_cancel *cancel,
                         int64_t *read_bytes, tutti_error **error) {
  char text[200];
  (void)user, (void)cancel, (void)error;
  text_of_file((int)(uintptr_t)file - 1, text);
  const int64_t length = (int64_t)strlen(text), left = length - offset;
  *read_bytes = left < size ? left : size;
  memcpy(target, text + offset, (size_t)*read_bytes);
  return TUTTI_OK;
}

static void close_file(void *user, void *file) { (void)user, (void)file; }

static int32_t list_files(void *user, const char *directory, tutti_cancel *cancel, tutti_list_fn add, void *listing,
                          tutti_error **error) {
  (void)user, (void)directory, (void)cancel, (void)error;
  for (int i = 0; i < FILES; i++) {
    char name[16];
    snprintf(name, sizeof name, "rows-%d.txt", i);
    add(listing, name, 0);
  }
  return TUTTI_OK;
}

static tutti_context *context_with_files(struct opened *opened) {
  static const tutti_file_system functions = {
      .struct_size = sizeof functions, .open = open_file, .read = read_file, .close = close_file, .list = list_files};
  tutti_context *context = NULL;
  assert_ok(tutti_context_create(NULL, &context, &err));
  assert_ok(tutti_context_add_file_system(context, "mem", &functions, opened, NULL, &err));
  return context;
}

/* Worker `index` of `count`, none of which is there. */
static tutti_strategy *strategy_of(tutti_context *context, const char *input, int index, int count) {
  char json[200] = "{\"workers\": \"127.0.0.1:1";
  for (int w = 1; w < count; w++)
    sprintf(json + strlen(json), ",127.0.0.1:%d", w + 1);
  sprintf(json + strlen(json), "\", \"worker\": %d, \"worker_input\": \"%s\", \"connect_timeout_ms\": 50}", index,
          input);
  tutti_options *options = make_options("cluster", json);
  tutti_strategy *strategy = NULL;
  assert_ok(tutti_strategy_create_multi_worker(context, options, &strategy, &err));
  tutti_options_unref(options);
  return strategy;
}

static tutti_dataset *part_of(tutti_strategy *strategy, const tutti_dataset *dataset) {
  tutti_dataset *part = NULL;
  assert_ok(tutti_strategy_distribute_dataset(strategy, dataset, &part, &err));
  return part;
}

/* The rows of the lines of the dataset; counts each, and gives the rows of the largest batch. */
static int64_t count_lines(const tutti_dataset *dataset, int seen[ROWS]) {
  tutti_iterator *iterator = NULL;
  int64_t largest = 0;
  assert_ok(tutti_iterator_create(dataset, 3, &iterator, &err));
  for (;;) {
    uint8_t more = 0;
    assert_ok(tutti_iterator_next(iterator, NULL, &more, &err));
    if (!more) break;
    const tutti_tensor *lines = tutti_iterator_get_component(iterator, 0);
    const int64_t rows = tutti_tensor_get_dim(lines, 0);
    if (rows > largest) largest = rows;
    for (int64_t row = 0; row < rows; row++)
      seen[number_at(lines, row)]++;
  }
  tutti_iterator_unref(iterator);
  return largest;
}

static void test_c30_a_worker_opens_only_its_own_files(void **state) {
  (void)state;
  struct opened opened = {{0}};
  tutti_context *context = context_with_files(&opened);
  for (int count = 1; count <= FILES; count++) {
    const char *pattern = "mem://f/rows-*.txt";
    tutti_pipeline *pipeline = NULL;
    int seen[ROWS] = {0}, opened_by[FILES] = {0};
    int64_t rows = 0;
    assert_ok(tutti_pipeline_create(context, &pipeline, &err));
    tutti_source_text_lines(pipeline, &pattern, 1, NULL);
    tutti_pipeline_shuffle(pipeline, 10, NULL);
    tutti_pipeline_batch(pipeline, BATCH, NULL);
    tutti_dataset *dataset = build(pipeline);
    for (int w = 0; w < count; w++) {
      tutti_strategy *strategy = strategy_of(context, "auto", w, count);
      assert_int_equal(tutti_strategy_get_input_pipeline_count(strategy), 1);
      assert_int_equal(tutti_strategy_get_input_pipeline_id(strategy), 0);
      tutti_dataset *part = part_of(strategy, dataset);
      rows += count_lines(part, seen);
      for (int i = 0; i < FILES; i++) {
        assert_int_equal(opened.times[i], i % count == w);
        opened_by[i] += opened.times[i];
        opened.times[i] = 0;
      }
      tutti_dataset_unref(part);
      tutti_strategy_unref(strategy);
    }
    for (int row = 0; row < ROWS; row++)
      assert_int_equal(seen[row], 1);
    for (int i = 0; i < FILES; i++)
      assert_int_equal(opened_by[i], 1);
    assert_true(rows <= BATCH);
    tutti_dataset_unref(dataset);
  }
  tutti_context_unref(context);
}

/* Batch by batch, one worker's rows behind the other's. */
static void test_c30_parts_by_data_make_the_batches_of_one_process(void **state) {
  (void)state;
  tutti_pipeline *pipeline = count_to(ROWS);
  tutti_pipeline_shuffle(pipeline, 13, NULL);
  tutti_pipeline_batch(pipeline, BATCH, NULL);
  tutti_dataset *dataset = build(pipeline);
  float whole[ROWS], own[3][ROWS];
  assert_int_equal(walk(dataset, 9, 0, whole, ROWS), ROWS);
  for (int count = 1; count <= 3; count++) {
    int64_t rows[3] = {0}, all = 0;
    int64_t at[3] = {0};
    for (int w = 0; w < count; w++) {
      tutti_strategy *strategy = strategy_of(NULL, w % 2 == 0 ? "auto" : "data", w, count);
      tutti_dataset *part = part_of(strategy, dataset);
      rows[w] = walk(part, 9, 0, own[w], ROWS);
      all += rows[w];
      tutti_dataset_unref(part);
      tutti_strategy_unref(strategy);
    }
    assert_int_equal(all, ROWS);
    for (int first = 0; first < ROWS; first += BATCH) {
      int row = first;
      for (int w = 0; w < count; w++) {
        for (int r = 0; r < BATCH / count + (w < BATCH % count) && at[w] < rows[w]; r++)
          assert_true(own[w][at[w]++] == whole[row++]);
      }
    }
    for (int w = 0; w < count; w++)
      assert_int_equal(at[w], rows[w]);
  }
  tutti_dataset_unref(dataset);
}

static void expect_training_error(tutti_strategy *strategy, const tutti_dataset *dataset, int32_t code,
                                  const char *needle) {
  tutti_context *context = tutti_strategy_get_context(strategy);
  tutti_estimator *estimator = NULL;
  assert_ok(tutti_estimator_create(context, toy_model, NULL, NULL, strategy, NULL, &estimator, &err));
  assert_error(code, needle, tutti_estimator_train(estimator, dataset, NULL, NULL, NULL, NULL, &err));
  assert_error(code, needle, tutti_estimator_evaluate(estimator, dataset, 0, NULL, NULL, &err));
  tutti_estimator_unref(estimator);
}

static void test_a30_a_distributed_dataset_is_not_distributed_twice(void **state) {
  (void)state;
  tutti_pipeline *pipeline = count_to(ROWS);
  tutti_pipeline_batch(pipeline, BATCH, NULL);
  tutti_dataset *dataset = build(pipeline), *none = NULL;
  tutti_strategy *data = strategy_of(NULL, "data", 1, 2), *other = strategy_of(NULL, "auto", 0, 2),
                 *whole = strategy_of(NULL, "whole", 1, 2), *own = strategy_of(NULL, "own", 1, 2), *one = NULL;
  assert_ok(tutti_strategy_create_one_device(NULL, NULL, &one, &err));
  tutti_dataset *part = part_of(data, dataset), *again = part_of(data, part);
  float rows[ROWS], same[ROWS];
  const int64_t count = walk(part, 1, 0, rows, ROWS);
  assert_int_equal(count, 29); /* 7 times 4, and 1 of the last 5 rows */
  assert_int_equal(walk(again, 1, 0, same, ROWS), count);
  assert_memory_equal(rows, same, (size_t)count * sizeof *rows);
  /* What has nothing to divide gives the dataset. */
  tutti_strategy *plain[] = {whole, own, one};
  for (int i = 0; i < 3; i++) {
    tutti_dataset *all = part_of(plain[i], dataset);
    assert_int_equal(walk(all, 1, 0, same, ROWS), ROWS);
    tutti_dataset_unref(all);
  }
  assert_error(TUTTI_FAILED_PRECONDITION, "is the part of worker 1 of 2, but this is worker 0 of 2",
               tutti_strategy_distribute_dataset(other, part, &none, &err));
  expect_training_error(whole, part, TUTTI_FAILED_PRECONDITION, "all workers need the same dataset");
  expect_training_error(one, part, TUTTI_FAILED_PRECONDITION, "the strategy has one worker");
  tutti_dataset_unref(part), tutti_dataset_unref(again), tutti_dataset_unref(dataset);
  tutti_strategy_unref(data), tutti_strategy_unref(other), tutti_strategy_unref(whole), tutti_strategy_unref(own);
  tutti_strategy_unref(one);
}

/* Before it waits for the others. */
static void test_what_cannot_be_divided(void **state) {
  (void)state;
  tutti_options *options = NULL;
  assert_ok(tutti_options_create("cluster", &options, &err));
  tutti_options_set_string(options, "worker_input", "rows");
  assert_error(TUTTI_INVALID_ARGUMENT, "worker_input", tutti_options_check(options, &err));
  tutti_options_unref(options);
  tutti_strategy *file = strategy_of(NULL, "file", 0, 2), *automatic = strategy_of(NULL, "auto", 0, 2);
  tutti_pipeline *pipeline = count_to(ROWS);
  tutti_pipeline_batch(pipeline, BATCH, NULL);
  tutti_dataset *batches = build(pipeline), *rows = build(count_to(ROWS)), *none = NULL;
  expect_training_error(file, batches, TUTTI_FAILED_PRECONDITION,
                        "worker_input is file; caused by: FAILED_PRECONDITION: the dataset cannot be divided among "
                        "workers by files: the source 'slices' does not read a list of files");
  assert_error(TUTTI_INVALID_ARGUMENT, "call batch first",
               tutti_strategy_distribute_dataset(automatic, rows, &none, &err));
  assert_null(none);
  tutti_dataset_unref(batches), tutti_dataset_unref(rows);
  tutti_strategy_unref(file), tutti_strategy_unref(automatic);
}

/* ---- trainings of several workers ---- */

static void test_c30_workers_train_on_their_own_files(void **state) {
  (void)state;
  for (int count = 2; count <= 3; count++) {
    char directory[64], model_dir[80];
    make_files(directory);
    static struct trained all[MOST_WORKERS], alone;
    run_well("auto:files:train", directory, count, all);
    assert_seen(all, count, EPOCHS);
    snprintf(model_dir, sizeof model_dir, "%s/model", directory);
    train_alone(1, "files", "evaluate", directory, model_dir, &alone);
    for (int w = 0; w < count; w++) {
      char line[120];
      snprintf(line, sizeof line, "worker_input auto: the dataset is divided by files: worker %d of %d reads %d of 7",
               w, count, (FILES - w + count - 1) / count);
      const char *first = strstr(all[w].log, line);
      assert_contains(all[w].log, line);
      assert_null(strstr(first + 1, line)); /* once, though it trains three passes and evaluates */
      assert_int_equal(all[w].examples, EPOCHS * ROWS);
      assert_true(fabs(all[w].loss - alone.loss) <= 1e-5 && fabs(all[w].accuracy - alone.accuracy) <= 1e-9);
    }
    remove_directory(directory);
  }
}

static void test_c30_workers_with_divided_data_train_as_one_process(void **state) {
  (void)state;
  static const char *const scenarios[] = {"data:files:train", "auto:memory:train", "data:memory:both"};
  for (int count = 2; count <= 3; count++) {
    for (int i = 0; i < 3; i++) {
      char directory[64];
      make_files(directory);
      static struct trained all[MOST_WORKERS], alone;
      const char *source = i == 0 ? "files" : "memory";
      train_alone(2 * count, source, "train", directory, "", &alone);
      run_well(scenarios[i], directory, count, all);
      /* Rows of others are read, and not mapped. */
      if (i == 0) assert_seen(all, count, EPOCHS);
      for (int w = 0; w < count; w++) {
        assert_same_training(&all[w], &alone);
        if (i < 2) assert_int_equal(all[w].examples, EPOCHS * ROWS);
        assert_contains(all[w].log, "the dataset is divided by elements");
      }
      remove_directory(directory);
    }
  }
}

static void test_a30_workers_train_on_distributed_datasets(void **state) {
  (void)state;
  static const char *const pairs[][2] = {{"auto:files:train", "auto:files:part"},
                                         {"data:files:train", "data:files:part"}};
  for (int i = 0; i < 2; i++) {
    static struct trained whole[MOST_WORKERS], parts[MOST_WORKERS];
    for (int is_part = 0; is_part < 2; is_part++) {
      char directory[64];
      make_files(directory);
      run_well(pairs[i][is_part], directory, 2, is_part ? parts : whole);
      remove_directory(directory);
    }
    assert_seen(parts, 2, EPOCHS);
    for (int w = 0; w < 2; w++)
      assert_same_training(&parts[w], &whole[w]);
  }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_c30_a_worker_opens_only_its_own_files),
    cmocka_unit_test(test_c30_parts_by_data_make_the_batches_of_one_process),
    cmocka_unit_test(test_a30_a_distributed_dataset_is_not_distributed_twice),
    cmocka_unit_test(test_what_cannot_be_divided),
    cmocka_unit_test(test_c30_workers_train_on_their_own_files),
    cmocka_unit_test(test_c30_workers_with_divided_data_train_as_one_process),
    cmocka_unit_test(test_a30_workers_train_on_distributed_datasets),
};

int main(int count, char **arguments) {
  if (count == WORKER_ARGUMENTS) return train_as_worker(arguments[1], arguments[2]);
  return cmocka_run_group_tests(tests, remember_live_objects, assert_nothing_left);
}
