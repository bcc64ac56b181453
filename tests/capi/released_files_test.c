/* SPDX-License-Identifier: Apache-2.0
 * Data that releases have written (tests/testdata/released/<release>): element files, caches, snapshots, records, and
 * the position of an iterator. Every later library reads them. What is in them are functions of a row's number, so that
 * a reader is not compared with itself. A file of a newer release is refused by name, or written again where it is a
 * cache.
 *
 *   released_files_test                      the tests
 *   released_files_test write DIRECTORY      writes the files for a new release */
#include <stdlib.h>
#include <sys/stat.h>

#include "dataset_fixtures.h"
#include "released_fixtures.h"

enum { ROWS = 5, BATCH = 3, RECORDS = 4 };

/* --- what is expected --------------------------------------------------------------------------------------------- */

static float number_of(int row, int place) { return 0.25f * (float)row - (float)place; }
static int64_t label_of(int row) { return INT64_MAX - row; }
/* 2 to the power of the row as bfloat16: the sign, eight bits of the exponent and seven of the fraction, all 0. */
static uint16_t half_of(int row) { return (uint16_t)((127 + row) << 7); }
static uint8_t flag_of(int row) { return row % 2 == 0; }

/* Row 0 has no texts, row 1 one, and so on: "", "b", "cc". */
static int64_t text_count(int row) { return row % 4; }
static int64_t text_length(int place) { return place; }
static char text_letter(int row, int place) { return (char)('a' + row + place); }

/* --- pipelines ---------------------------------------------------------------------------------------------------- */

/* What the functions of a pipeline did; with `forbidden` they fail. */
struct calls {
  int count, forbidden;
};

static int32_t note_call(struct calls *calls, tutti_error **err) {
  calls->count++;
  return calls->forbidden ? tutti_error_set(err, TUTTI_INTERNAL, "the file is not used") : TUTTI_OK;
}

static int32_t pass_on(void *user, tutti_tensor *const *inputs, tutti_tensor **outputs, int64_t count,
                       tutti_error **err) {
  for (int64_t i = 0; i < count; i++)
    tutti_tensor_ref(outputs[i] = inputs[i]);
  return note_call(user, err);
}

/* "number" is a quarter of what is in the source. */
static int32_t quarter(tutti_graph *g, void *user, tutti_error **err) {
  (void)user;
  tutti_value quarter = tutti_graph_constant(g, TUTTI_DTYPE_F32, 0.25);
  tutti_graph_set_output(g, "number", tutti_mul(g, tutti_graph_get_feature(g, "number"), quarter));
  return tutti_graph_check(g, err);
}

/* Rows of one shape, by a graph and a function. */
static tutti_pipeline *rows_pipeline(struct calls *calls) {
  float numbers[ROWS][2];
  int64_t labels[ROWS];
  uint16_t halves[ROWS];
  uint8_t flags[ROWS];
  for (int row = 0; row < ROWS; row++) {
    for (int place = 0; place < 2; place++)
      numbers[row][place] = 4 * number_of(row, place);
    labels[row] = label_of(row), halves[row] = half_of(row), flags[row] = flag_of(row);
  }
  const int64_t dims[] = {ROWS, 2};
  tutti_tensor *tensors[] = {make_tensor(TUTTI_DTYPE_F32, 2, dims, numbers), make_vector(TUTTI_DTYPE_I64, ROWS, labels),
                             make_vector(TUTTI_DTYPE_BF16, ROWS, halves), make_vector(TUTTI_DTYPE_BOOL, ROWS, flags)};
  tutti_pipeline *pipeline = NULL;
  assert_ok(tutti_pipeline_create(NULL, &pipeline, &err));
  tutti_pipeline_add_slices(pipeline, "number", TUTTI_ROLE_FEATURE, tensors[0]);
  tutti_pipeline_add_slices(pipeline, "label", TUTTI_ROLE_LABEL, tensors[1]);
  tutti_pipeline_add_slices(pipeline, "half", TUTTI_ROLE_FEATURE, tensors[2]);
  tutti_pipeline_add_slices(pipeline, "flag", TUTTI_ROLE_WEIGHT, tensors[3]);
  for (int i = 0; i < 4; i++)
    tutti_tensor_unref(tensors[i]);
  tutti_pipeline_map_graph(pipeline, quarter, NULL, 1);
  tutti_pipeline_map(pipeline, pass_on, calls, NULL, 1);
  return pipeline;
}

/* A row of texts, and as many numbers. */
static int32_t next_texts(void *user, int64_t pass, int64_t index, tutti_tensor **outputs, int64_t count,
                          uint8_t *has_element, tutti_error **err) {
  (void)pass, (void)count;
  const int row = (int)index;
  const int64_t texts = text_count(row), dims[] = {texts, 1};
  int64_t offsets[16] = {(texts + 1) * 8};
  float numbers[8];
  int64_t bytes = offsets[0];
  for (int place = 0; place < texts; place++) {
    memset((char *)offsets + bytes, text_letter(row, place), (size_t)text_length(place));
    offsets[place + 1] = bytes += text_length(place);
    numbers[place] = number_of(row, place);
  }
  *has_element = row < ROWS;
  if (!*has_element) return TUTTI_OK;
  int32_t code = tutti_tensor_from_data(TUTTI_DTYPE_BYTES, dims, 1, offsets, bytes, &outputs[0], err);
  if (code == TUTTI_OK) code = tutti_tensor_from_data(TUTTI_DTYPE_F32, dims, 2, numbers, texts * 4, &outputs[1], err);
  return code == TUTTI_OK ? note_call(user, err) : code;
}

static tutti_pipeline *texts_pipeline(struct calls *calls) {
  const int64_t unknown[] = {-1, 1};
  tutti_pipeline *pipeline = NULL;
  assert_ok(tutti_pipeline_create(NULL, &pipeline, &err));
  tutti_pipeline_declare(pipeline, "text", TUTTI_ROLE_FEATURE, TUTTI_DTYPE_BYTES, unknown, 1);
  tutti_pipeline_declare(pipeline, "number", TUTTI_ROLE_LABEL, TUTTI_DTYPE_F32, unknown, 2);
  tutti_pipeline_add_generator(pipeline, next_texts, calls, NULL);
  return pipeline;
}

static tutti_dataset *cached(tutti_pipeline *pipeline, const char *path) {
  const tutti_pipeline_cache_attrs attrs = {.path = path, .key = "1"};
  tutti_pipeline_cache(pipeline, &attrs);
  return build(pipeline);
}

static tutti_dataset *kept_in_folder(tutti_pipeline *pipeline, const char *path) {
  const tutti_pipeline_snapshot_attrs attrs = {.key = "1"};
  tutti_pipeline_snapshot(pipeline, path, &attrs);
  return build(pipeline);
}

static tutti_pipeline *element_files(const char *path) {
  tutti_pipeline *pipeline = NULL;
  assert_ok(tutti_pipeline_create(NULL, &pipeline, &err));
  tutti_source_element_files(pipeline, &path, 1);
  return pipeline;
}

/* Numbers 0 to 9 twice, in batches of three. */
static tutti_dataset *position_dataset(void) {
  const tutti_pipeline_repeat_attrs twice = {.has_count = 1, .count = 2};
  tutti_pipeline *pipeline = count_to(10);
  tutti_pipeline_repeat(pipeline, &twice);
  tutti_pipeline_batch(pipeline, BATCH, NULL);
  return build(pipeline);
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

static tutti_iterator *iterate(const tutti_dataset *dataset) {
  tutti_iterator *iterator = NULL;
  assert_ok(tutti_iterator_create(dataset, 0, &iterator, &err));
  return iterator;
}

static int has_next(tutti_iterator *iterator) {
  uint8_t more = 0;
  assert_ok(tutti_iterator_next(iterator, NULL, &more, &err));
  return more;
}

static void assert_component(tutti_iterator *iterator, int64_t index, int32_t dtype, const void *values, size_t bytes) {
  const tutti_tensor *tensor = tutti_iterator_get_component(iterator, index);
  assert_int_equal(tutti_tensor_get_dtype(tensor), dtype);
  assert_int_equal(tutti_tensor_get_size_bytes(tensor), bytes);
  assert_memory_equal(tutti_tensor_get_data(tensor), values, bytes);
}

static void assert_described(const tutti_dataset *dataset, int count, const char *const *names, const int32_t *roles) {
  assert_int_equal(tutti_dataset_get_component_count(dataset), count);
  for (int i = 0; i < count; i++) {
    assert_string_equal(tutti_dataset_get_component_name(dataset, i), names[i]);
    assert_int_equal(tutti_dataset_get_component_role(dataset, i), roles[i]);
  }
}

static void assert_rows(tutti_dataset *dataset) {
  static const char *const names[] = {"number", "label", "half", "flag"};
  static const int32_t roles[] = {TUTTI_ROLE_FEATURE, TUTTI_ROLE_LABEL, TUTTI_ROLE_FEATURE, TUTTI_ROLE_WEIGHT};
  assert_described(dataset, 4, names, roles);
  tutti_iterator *iterator = iterate(dataset);
  for (int row = 0; row < ROWS; row++) {
    const float numbers[] = {number_of(row, 0), number_of(row, 1)};
    const int64_t label = label_of(row);
    const uint16_t half = half_of(row);
    const uint8_t flag = flag_of(row);
    assert_true(has_next(iterator));
    assert_component(iterator, 0, TUTTI_DTYPE_F32, numbers, sizeof numbers);
    assert_component(iterator, 1, TUTTI_DTYPE_I64, &label, sizeof label);
    assert_component(iterator, 2, TUTTI_DTYPE_BF16, &half, sizeof half);
    assert_component(iterator, 3, TUTTI_DTYPE_BOOL, &flag, sizeof flag);
  }
  assert_false(has_next(iterator));
  tutti_iterator_unref(iterator), tutti_dataset_unref(dataset);
}

static void assert_texts(tutti_dataset *dataset) {
  static const char *const names[] = {"text", "number"};
  static const int32_t roles[] = {TUTTI_ROLE_FEATURE, TUTTI_ROLE_LABEL};
  assert_described(dataset, 2, names, roles);
  tutti_iterator *iterator = iterate(dataset);
  for (int row = 0; row < ROWS; row++) {
    assert_true(has_next(iterator));
    const tutti_tensor *texts = tutti_iterator_get_component(iterator, 0);
    assert_int_equal(tutti_tensor_get_dtype(texts), TUTTI_DTYPE_BYTES);
    assert_int_equal(tutti_tensor_get_element_count(texts), text_count(row));
    float numbers[8];
    for (int place = 0; place < text_count(row); place++) {
      const char *text = tutti_tensor_get_element_data(texts, place);
      assert_int_equal(tutti_tensor_get_element_size(texts, place), text_length(place));
      for (int i = 0; i < text_length(place); i++)
        assert_int_equal(text[i], text_letter(row, place));
      numbers[place] = number_of(row, place);
    }
    const tutti_tensor *read = tutti_iterator_get_component(iterator, 1);
    assert_int_equal(tutti_tensor_get_dim(read, 0), text_count(row));
    if (text_count(row) > 0) assert_component(iterator, 1, TUTTI_DTYPE_F32, numbers, (size_t)text_count(row) * 4);
  }
  assert_false(has_next(iterator));
  tutti_iterator_unref(iterator), tutti_dataset_unref(dataset);
}

static void read_element_files(const char *release) {
  char path[1024];
  join_path(path, sizeof path, release, "rows.elements");
  assert_rows(build(element_files(path)));
  join_path(path, sizeof path, release, "texts.elements");
  assert_texts(build(element_files(path)));
}

static void test_element_files(void **state) {
  (void)state;
  for_each_release("rows.elements", read_element_files);
}

/* A copy, for what may be written. */
static void copy_release(const char *release, char directory[64], char path[128]) {
  char folder[1024], target[160];
  make_directory(directory);
  join_path(path, 128, directory, "files");
  assert_int_equal(mkdir(path, 0755), 0);
  for (int i = 0; i < 2; i++) {
    size_t size;
    const char *name = i == 0 ? "rows.elements" : "texts.elements";
    join_path(folder, sizeof folder, release, name);
    join_path(target, sizeof target, path, name);
    char *bytes = read_bytes(folder, &size);
    write_bytes(target, bytes, size);
    free(bytes);
  }
  join_path(folder, sizeof folder, release, "snapshot");
  join_path(target, sizeof target, path, "snapshot");
  copy_folder(folder, target);
}

/* The elements come from the file: the pipeline before it is never asked. */
static void read_caches(const char *release) {
  char directory[64], files[128], path[160];
  struct calls calls = {.forbidden = 1};
  copy_release(release, directory, files);
  join_path(path, sizeof path, files, "rows.elements");
  assert_rows(cached(rows_pipeline(&calls), path));
  join_path(path, sizeof path, files, "texts.elements");
  assert_texts(cached(texts_pipeline(&calls), path));
  join_path(path, sizeof path, files, "snapshot");
  assert_rows(kept_in_folder(rows_pipeline(&calls), path));
  assert_int_equal(calls.count, 0);
  remove_directory(directory);
}

static void test_caches(void **state) {
  (void)state;
  for_each_release("snapshot", read_caches);
}

static void read_position(const char *release) {
  char path[1024];
  size_t size;
  join_path(path, sizeof path, release, "position.json");
  char *position = read_bytes(path, &size);
  tutti_dataset *dataset = position_dataset();
  tutti_iterator *iterator = iterate(dataset);
  assert_ok(tutti_iterator_restore(iterator, position, &err));
  /* Three batches were taken: what comes next is number 9 of all. */
  for (int first = 3 * BATCH; first < 20; first += BATCH) {
    float expected[BATCH];
    const int count = 20 - first < BATCH ? 20 - first : BATCH;
    for (int i = 0; i < count; i++)
      expected[i] = (float)((first + i) % 10);
    assert_true(has_next(iterator));
    assert_component(iterator, 0, TUTTI_DTYPE_F32, expected, (size_t)count * sizeof *expected);
  }
  assert_false(has_next(iterator));
  tutti_iterator_unref(iterator), tutti_dataset_unref(dataset);
  free(position);
}

static void test_positions(void **state) {
  (void)state;
  for_each_release("position.json", read_position);
}

static void read_records(const char *release) {
  char path[1024];
  join_path(path, sizeof path, release, "records.tfrecord.gz");
  const char *paths[] = {path}, *features[] = {"x: f32[2]", "y: i64", "name: bytes"};
  tutti_pipeline *pipeline = NULL;
  assert_ok(tutti_pipeline_create(NULL, &pipeline, &err));
  tutti_source_tfrecord(pipeline, paths, 1, NULL);
  tutti_pipeline_parse_example(pipeline, features, 3, NULL);
  tutti_dataset *dataset = build(pipeline);
  tutti_iterator *iterator = iterate(dataset);
  for (int row = 0; row < RECORDS; row++) {
    const float x[] = {number_of(row, 0), number_of(row, 1)};
    const int64_t y = label_of(row);
    assert_true(has_next(iterator));
    assert_component(iterator, 0, TUTTI_DTYPE_F32, x, sizeof x);
    assert_component(iterator, 1, TUTTI_DTYPE_I64, &y, sizeof y);
    const tutti_tensor *name = tutti_iterator_get_component(iterator, 2);
    assert_int_equal(tutti_tensor_get_element_size(name, 0), 1);
    assert_int_equal(*(const char *)tutti_tensor_get_element_data(name, 0), text_letter(row, 0));
  }
  assert_false(has_next(iterator));
  tutti_iterator_unref(iterator), tutti_dataset_unref(dataset);
}

static void test_records(void **state) {
  (void)state;
  for_each_release("records.tfrecord.gz", read_records);
}

/* --- files of newer releases -------------------------------------------------------------------------------------- */

static void set_element_file_version(const char *path, uint8_t version) {
  size_t size;
  char *bytes = read_bytes(path, &size);
  assert_memory_equal(bytes, "TUTTIELM\1\0\0\0", 12);
  bytes[8] = (char)version;
  write_bytes(path, bytes, size);
  free(bytes);
}

static void meet_newer_elements(const char *release) {
  char directory[64], files[128], path[160], expected[256];
  struct calls calls = {0};
  copy_release(release, directory, files);
  join_path(path, sizeof path, files, "rows.elements");
  set_element_file_version(path, 2);
  snprintf(expected, sizeof expected, "'%s' is of version 2; this library reads version 1", path);
  tutti_pipeline *pipeline = element_files(path);
  assert_build_error(TUTTI_UNIMPLEMENTED, expected, pipeline);
  /* A cache can be filled again. */
  assert_rows(cached(rows_pipeline(&calls), path));
  assert_int_equal(calls.count, ROWS);
  assert_rows(cached(rows_pipeline(&calls), path));
  assert_int_equal(calls.count, ROWS);
  remove_directory(directory);
}

static void test_newer_element_files(void **state) {
  (void)state;
  for_each_release("rows.elements", meet_newer_elements);
}

static void test_newer_positions(void **state) {
  (void)state;
  tutti_dataset *dataset = position_dataset();
  tutti_iterator *iterator = iterate(dataset);
  assert_error(TUTTI_UNIMPLEMENTED, "is of version 2; this library reads version 1",
               tutti_iterator_restore(iterator, "{\"version\": 2, \"kind\": \"batch\"}", &err));
  /* It can still be read from the beginning. */
  assert_true(has_next(iterator));
  tutti_iterator_unref(iterator), tutti_dataset_unref(dataset);
}

/* --- writing ------------------------------------------------------------------------------------------------------ */

static void write_position(const char *directory) {
  char path[1024];
  const char *position = NULL;
  tutti_dataset *dataset = position_dataset();
  tutti_iterator *iterator = iterate(dataset);
  for (int i = 0; i < 3; i++)
    assert_true(has_next(iterator));
  assert_ok(tutti_iterator_save(iterator, &position, &err));
  join_path(path, sizeof path, directory, "position.json");
  write_bytes(path, position, strlen(position));
  tutti_iterator_unref(iterator), tutti_dataset_unref(dataset);
}

static void write_records(const char *directory) {
  char path[1024];
  tutti_record_writer *writer = NULL;
  join_path(path, sizeof path, directory, "records.tfrecord.gz");
  assert_ok(tutti_record_writer_create(NULL, path, "gzip", &writer, &err));
  for (int row = 0; row < RECORDS; row++) {
    const float x[] = {number_of(row, 0), number_of(row, 1)};
    const int64_t y = label_of(row);
    const struct {
      int64_t offsets[2];
      char letter[8];
    } name = {{16, 17}, {text_letter(row, 0)}};
    tutti_tensor *numbers = make_vector(TUTTI_DTYPE_F32, 2, x), *label = make_tensor(TUTTI_DTYPE_I64, 0, NULL, &y);
    tutti_tensor *text = NULL;
    assert_ok(tutti_tensor_from_data(TUTTI_DTYPE_BYTES, NULL, 0, &name, sizeof name.offsets + 1, &text, &err));
    assert_ok(tutti_record_writer_add_feature(writer, "x", numbers, &err));
    assert_ok(tutti_record_writer_add_feature(writer, "y", label, &err));
    assert_ok(tutti_record_writer_add_feature(writer, "name", text, &err));
    assert_ok(tutti_record_writer_write_example(writer, &err));
    tutti_tensor_unref(numbers), tutti_tensor_unref(label), tutti_tensor_unref(text);
  }
  assert_ok(tutti_record_writer_close(writer, &err));
  tutti_record_writer_unref(writer);
}

static void write_files(void **state) {
  char path[1024];
  struct calls calls = {0};
  join_path(path, sizeof path, *state, "rows.elements");
  assert_rows(cached(rows_pipeline(&calls), path));
  join_path(path, sizeof path, *state, "texts.elements");
  assert_texts(cached(texts_pipeline(&calls), path));
  join_path(path, sizeof path, *state, "snapshot");
  assert_rows(kept_in_folder(rows_pipeline(&calls), path));
  write_position(*state);
  write_records(*state);
}

int main(int argc, char **argv) {
  static const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_element_files),   cmocka_unit_test(test_caches),
      cmocka_unit_test(test_positions),       cmocka_unit_test(test_records),
      cmocka_unit_test(test_newer_positions), cmocka_unit_test(test_newer_element_files),
  };
  return run_or_write(argc, argv, tests, sizeof tests / sizeof *tests, write_files);
}
