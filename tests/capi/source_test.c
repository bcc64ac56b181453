/* SPDX-License-Identifier: Apache-2.0
 * Sources of the registry through the C interface. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dataset_fixtures.h"

static char folder[64];

static const char *path_of(const char *name) {
  static char paths[4][80];
  static int next;
  char *path = paths[next++ % 4];
  join_path(path, sizeof paths[0], folder, name);
  return path;
}

static void write_text(const char *name, const char *text) {
  FILE *file = fopen(path_of(name), "wb");
  assert_non_null(file);
  assert_true(fputs(text, file) >= 0);
  assert_int_equal(fclose(file), 0);
}

static tutti_pipeline *new_pipeline(void) {
  tutti_pipeline *pipeline = NULL;
  assert_ok(tutti_pipeline_create(NULL, &pipeline, &err));
  return pipeline;
}

/* The elements of a dataset of one text each, joined by commas. */
static const char *texts_of(tutti_dataset *dataset) {
  static char all[256];
  size_t used = 0;
  tutti_iterator *iterator = NULL;
  assert_ok(tutti_iterator_create(dataset, 0, &iterator, &err));
  for (uint8_t more = 1; more;) {
    assert_ok(tutti_iterator_next(iterator, NULL, &more, &err));
    if (!more) break;
    tutti_tensor *text = tutti_iterator_get_component(iterator, 0);
    for (int64_t i = 0; i < tutti_tensor_get_element_count(text); i++) {
      int64_t size = tutti_tensor_get_element_size(text, i);
      assert_in_range(size, 0, 100);
      used += (size_t)snprintf(all + used, sizeof all - used, "%.*s,", (int)size,
                               (const char *)tutti_tensor_get_element_data(text, i));
    }
  }
  tutti_iterator_unref(iterator);
  tutti_dataset_unref(dataset);
  all[used] = 0;
  return all;
}

static void test_range(void **state) {
  (void)state;
  tutti_pipeline *pipeline = new_pipeline();
  tutti_source_range_attrs attrs = {.start = 3, .has_step = 1, .step = -1, .name = "n"};
  tutti_source_range(pipeline, 0, &attrs);
  tutti_pipeline_batch(pipeline, 8, NULL);
  tutti_dataset *dataset = build(pipeline);
  assert_string_equal(tutti_dataset_get_component_name(dataset, 0), "n");
  tutti_iterator *iterator = NULL;
  uint8_t more = 0;
  assert_ok(tutti_iterator_create(dataset, 0, &iterator, &err));
  assert_ok(tutti_iterator_next(iterator, NULL, &more, &err));
  static const int64_t expected[] = {3, 2, 1};
  assert_memory_equal(tutti_tensor_get_data(tutti_iterator_get_component(iterator, 0)), expected, sizeof expected);
  tutti_iterator_unref(iterator);
  tutti_dataset_unref(dataset);
  assert_true(tutti_has_feature("source:range"));
  assert_false(tutti_has_feature("source:shuffle"));
}

static void test_text_lines(void **state) {
  (void)state;
  write_text("1.txt", "a\nb\n");
  write_text("2.txt", "c");
  tutti_pipeline *pipeline = new_pipeline();
  const char *paths[] = {path_of("2.txt"), path_of("*.txt")};
  tutti_source_text_lines(pipeline, paths, 2, NULL);
  assert_string_equal(texts_of(build(pipeline)), "c,a,b,c,");
  pipeline = new_pipeline();
  tutti_source_text_lines_attrs attrs = {.skip_lines = 1, .name = "line"};
  tutti_source_text_lines(pipeline, paths + 1, 1, &attrs);
  tutti_pipeline_batch(pipeline, 3, NULL);
  assert_string_equal(texts_of(build(pipeline)), "b,");
}

/* Refuses the line "bad". */
static int32_t refuse_bad(void *user, tutti_tensor *const *inputs, tutti_tensor **outputs, int64_t count,
                          tutti_error **callback_err) {
  (void)user;
  assert_int_equal(count, 1);
  if (tutti_tensor_get_element_size(inputs[0], 0) == 3) {
    return tutti_error_set(callback_err, TUTTI_DATA_LOSS, "this line is torn");
  }
  tutti_tensor_ref(inputs[0]);
  outputs[0] = inputs[0];
  return TUTTI_OK;
}

static const char *detail_of(const tutti_error *error, const char *key) {
  for (int64_t i = 0; i < tutti_error_get_detail_count(error); i++) {
    if (strcmp(tutti_error_get_detail_key(error, i), key) == 0) return tutti_error_get_detail_value(error, i);
  }
  return "";
}

/* The error of an element says which one it was, where it came from and which stage failed. */
static void test_error_details(void **state) {
  (void)state;
  write_text("1.lines", "a\nb\n");
  write_text("2.lines", "c\nbad\n");
  const char *paths[] = {path_of("*.lines")};
  for (int64_t parallelism = 1; parallelism <= 4; parallelism += 3) {
    tutti_pipeline *pipeline = new_pipeline();
    tutti_source_text_lines(pipeline, paths, 1, NULL);
    tutti_pipeline_shuffle(pipeline, 3, NULL);
    tutti_pipeline_map(pipeline, refuse_bad, NULL, NULL, parallelism);
    tutti_pipeline_batch(pipeline, 4, NULL);
    tutti_pipeline_prefetch(pipeline, NULL);
    tutti_dataset *dataset = build(pipeline);
    tutti_iterator *iterator = NULL;
    uint8_t more = 0;
    tutti_error *error = NULL;
    assert_ok(tutti_iterator_create(dataset, 0, &iterator, &err));
    assert_int_equal(tutti_iterator_next(iterator, NULL, &more, &error), TUTTI_DATA_LOSS);
    assert_string_equal(detail_of(error, "element"), "3");
    assert_string_equal(detail_of(error, "epoch"), "0");
    assert_string_equal(detail_of(error, "file"), path_of("2.lines"));
    assert_string_equal(detail_of(error, "stage"), "map_callback");
    const tutti_error *cause = tutti_error_get_cause(tutti_error_get_cause(error));
    assert_string_equal(tutti_error_get_message(cause), "this line is torn");
    assert_string_equal(tutti_error_get_domain(cause), "user");
    tutti_error_unref(error);
    tutti_iterator_unref(iterator);
    tutti_dataset_unref(dataset);
  }
}

static void test_mistakes(void **state) {
  (void)state;
  tutti_pipeline *pipeline = new_pipeline();
  tutti_source_text_lines(pipeline, NULL, 0, NULL);
  assert_build_error(TUTTI_INVALID_ARGUMENT, "parameter 'paths' is missing", pipeline);
  const char *none[] = {NULL}, *missing[] = {path_of("missing-*")};
  pipeline = new_pipeline();
  tutti_source_text_lines(pipeline, none, 1, NULL);
  assert_build_error(TUTTI_INVALID_ARGUMENT, "parameter 'paths': argument 'value' is NULL", pipeline);
  pipeline = new_pipeline();
  tutti_source_text_lines(pipeline, missing, 1, NULL);
  assert_build_error(TUTTI_NOT_FOUND, "missing-*", pipeline);
  pipeline = new_pipeline();
  tutti_pipeline_begin(pipeline, "text_line", 1);
  tutti_pipeline_end(pipeline);
  assert_build_error(TUTTI_INVALID_ARGUMENT, "did you mean 'text_lines'?", pipeline);
  pipeline = new_pipeline();
  tutti_pipeline_cache(pipeline, NULL);
  assert_build_error(TUTTI_FAILED_PRECONDITION, "has no source yet", pipeline);
  pipeline = count_to(3);
  tutti_source_range(pipeline, 3, NULL);
  assert_build_error(TUTTI_FAILED_PRECONDITION, "has one already", pipeline);
  pipeline = new_pipeline();
  tutti_source_range(pipeline, 3, NULL);
  tutti_pipeline_add_idx(pipeline, "x", TUTTI_ROLE_FEATURE, "x");
  assert_build_error(TUTTI_FAILED_PRECONDITION, "cannot be added after", pipeline);
  pipeline = new_pipeline();
  tutti_pipeline_begin(pipeline, "text_lines", 1);
  tutti_pipeline_set_i64(pipeline, "paths", 3);
  tutti_pipeline_end(pipeline);
  assert_build_error(TUTTI_INVALID_ARGUMENT, "expected strings", pipeline);
}

/* Nobody ever opens the other end: an error at once instead of waiting for it. */
static void test_pipes(void **state) {
  (void)state;
  const char *pipe = path_of("pipe.1");
  assert_int_equal(mkfifo(pipe, 0600), 0);
  const char *paths[] = {pipe}, *pattern[] = {path_of("pipe.*")};
  const char *told = "pipe.1' is a FIFO, expected a regular file";
  tutti_pipeline *pipeline = new_pipeline();
  tutti_source_text_lines(pipeline, paths, 1, NULL);
  assert_build_error(TUTTI_INVALID_ARGUMENT, told, pipeline);
  pipeline = new_pipeline();
  tutti_source_csv(pipeline, pattern, 1, NULL);
  assert_build_error(TUTTI_INVALID_ARGUMENT, told, pipeline);
  pipeline = new_pipeline();
  tutti_source_npz(pipeline, pipe, NULL);
  assert_build_error(TUTTI_INVALID_ARGUMENT, told, pipeline);
  pipeline = new_pipeline();
  tutti_source_element_files(pipeline, paths, 1);
  assert_build_error(TUTTI_INVALID_ARGUMENT, told, pipeline);
  pipeline = new_pipeline();
  tutti_pipeline_add_idx(pipeline, "x", TUTTI_ROLE_FEATURE, pipe);
  assert_build_error(TUTTI_INVALID_ARGUMENT, told, pipeline);
  assert_int_equal(unlink(pipe), 0);
}

static int32_t look_up_in_file(tutti_graph *g, void *user, tutti_error **graph_err) {
  const tutti_lookup_attrs attrs = {.path = user};
  tutti_graph_set_output(g, "index", tutti_lookup(g, tutti_graph_get_feature(g, "text"), &attrs));
  return tutti_graph_check(g, graph_err);
}

static void test_a_pipe_as_vocabulary(void **state) {
  (void)state;
  const char *pipe = path_of("words");
  assert_int_equal(mkfifo(pipe, 0600), 0);
  write_text("line.txt", "a\n");
  const char *paths[] = {path_of("line.txt")};
  tutti_pipeline *pipeline = new_pipeline();
  tutti_source_text_lines(pipeline, paths, 1, NULL);
  tutti_pipeline_map_graph(pipeline, look_up_in_file, (void *)(uintptr_t)pipe, 1);
  assert_build_error(TUTTI_INVALID_ARGUMENT, "words' is a FIFO, expected a regular file", pipeline);
  assert_int_equal(unlink(pipe), 0);
}

/* An error of its element, behind those before it. */
static void test_a_pipe_as_picture(void **state) {
  (void)state;
  assert_int_equal(mkdir(path_of("pipes"), 0700), 0);
  assert_int_equal(mkdir(path_of("pipes/kind"), 0700), 0);
  write_text("pipes/kind/a.jpg", "a");
  assert_int_equal(mkfifo(path_of("pipes/kind/b.jpg"), 0600), 0);
  tutti_pipeline *pipeline = new_pipeline();
  tutti_source_image_folder(pipeline, path_of("pipes"), NULL);
  tutti_dataset *dataset = build(pipeline);
  tutti_iterator *iterator = NULL;
  uint8_t more = 0;
  assert_ok(tutti_iterator_create(dataset, 0, &iterator, &err));
  assert_ok(tutti_iterator_next(iterator, NULL, &more, &err));
  assert_true(more);
  assert_error(TUTTI_INVALID_ARGUMENT, "b.jpg' is a FIFO, expected a regular file",
               tutti_iterator_next(iterator, NULL, &more, &err));
  tutti_iterator_unref(iterator), tutti_dataset_unref(dataset);
}

/* A compressed array says how large it is before memory is taken for it. */
static void test_large_arrays(void **state) {
  (void)state;
  const char *testdata = getenv("TUTTI_TESTDATA");
  if (testdata == NULL) test_skip();
  char path[512];
  join_path(path, sizeof path, testdata, "../data/golden/both_compressed.npz");
  tutti_pipeline *pipeline = new_pipeline();
  tutti_source_npz_attrs attrs = {.maximum_array_bytes = 100};
  tutti_source_npz(pipeline, path, &attrs);
  assert_build_error(TUTTI_DATA_LOSS, "more than maximum_array_bytes = 100", pipeline);
}

static void count_left_out(void *user, int32_t severity, const char *message) {
  if (severity == TUTTI_LOG_WARNING && strstr(message, "leaves out: 2 webp (") != NULL) ++*(int *)user;
}

static void test_left_out_pictures(void **state) {
  (void)state;
  static const char *const names[] = {"pictures/kind/a.jpg", "pictures/kind/b.webp", "pictures/kind/c.webp",
                                      "pictures/kind/.d.webp"};
  assert_int_equal(mkdir(path_of("pictures"), 0700), 0);
  assert_int_equal(mkdir(path_of("pictures/kind"), 0700), 0);
  for (int i = 0; i < 4; i++)
    write_text(names[i], names[i]);
  tutti_context *context = NULL;
  tutti_pipeline *pipeline = NULL;
  int lines = 0;
  assert_ok(tutti_context_create(NULL, &context, &err));
  assert_ok(tutti_context_set_log(context, count_left_out, &lines, NULL, TUTTI_LOG_INFO, &err));
  assert_ok(tutti_pipeline_create(context, &pipeline, &err));
  tutti_source_image_folder(pipeline, path_of("pictures"), NULL);
  tutti_dataset *dataset = build(pipeline);
  assert_int_equal(lines, 1);
  assert_string_equal(texts_of(dataset), "pictures/kind/a.jpg,");
  assert_int_equal(lines, 1);
  tutti_context_unref(context);
}

/* An archive that tar has written. */
static void test_tar(void **state) {
  (void)state;
  static const char *const names[][2] = {
      {"0001.txt", "one"}, {"0001.cls", "7"}, {"0002.txt", "two"}, {"0002.cls", "-3"}};
  char command[512];
  assert_int_equal(mkdir(path_of("samples"), 0700), 0);
  for (int i = 0; i < 4; i++) {
    char name[32];
    snprintf(name, sizeof name, "samples/%s", names[i][0]);
    write_text(name, names[i][1]);
  }
  snprintf(command, sizeof command,
           "tar -C '%s' -cf '%s' samples/0001.txt samples/0001.cls samples/0002.cls samples/0002.txt", folder,
           path_of("samples.tar"));
  assert_int_equal(system(command), 0);
  const char *path = path_of("samples.tar"), *text[] = {"txt: bytes"}, *key[] = {"__key__: bytes"},
             *label[] = {"cls: i64"};
  tutti_pipeline *pipeline = new_pipeline();
  tutti_source_tar(pipeline, &path, 1, text, 1, NULL);
  assert_string_equal(texts_of(build(pipeline)), "one,two,");
  pipeline = new_pipeline();
  tutti_source_tar(pipeline, &path, 1, key, 1, NULL);
  assert_string_equal(texts_of(build(pipeline)), "samples/0001,samples/0002,");
  pipeline = new_pipeline();
  const tutti_source_tar_attrs labels = {.labels = (const char *const[]){"cls"}, .labels_count = 1};
  tutti_source_tar(pipeline, &path, 1, label, 1, &labels);
  tutti_dataset *dataset = build(pipeline);
  tutti_iterator *iterator = NULL;
  assert_int_equal(tutti_dataset_get_component_role(dataset, 0), TUTTI_ROLE_LABEL);
  assert_ok(tutti_iterator_create(dataset, 0, &iterator, &err));
  for (int i = 0; i < 2; i++) {
    uint8_t more = 0;
    assert_ok(tutti_iterator_next(iterator, NULL, &more, &err));
    assert_true(more);
    const int64_t *number = tutti_tensor_get_data(tutti_iterator_get_component(iterator, 0));
    assert_int_equal(*number, i == 0 ? 7 : -3);
  }
  tutti_iterator_unref(iterator), tutti_dataset_unref(dataset);
}

static int make_folder(void **state) {
  make_directory(folder);
  return remember_live_objects(state);
}

static int remove_folder(void **state) {
  remove_directory(folder);
  return assert_nothing_left(state);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_range),
      cmocka_unit_test(test_text_lines),
      cmocka_unit_test(test_error_details),
      cmocka_unit_test(test_mistakes),
      cmocka_unit_test(test_pipes),
      cmocka_unit_test(test_a_pipe_as_vocabulary),
      cmocka_unit_test(test_a_pipe_as_picture),
      cmocka_unit_test(test_large_arrays),
      cmocka_unit_test(test_left_out_pictures),
      cmocka_unit_test(test_tar),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
