/* SPDX-License-Identifier: Apache-2.0
 *
 * Arrow C streams in and out. The producer here is written from the specification alone: tables of columns below, one
 * record batch for each length. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dataset_fixtures.h"

/* --- a producer --------------------------------------------------------------------------------------------------- */

/* A column of all rows of the table; `offset` values lie before those of the first row. */
struct column {
  const char *name, *format;
  const void *values;   /* the second buffer */
  const void *data;     /* the third */
  const void *validity; /* NULL = no nulls */
  int64_t offset;
  const struct column *item; /* of a list */
  int64_t list_size;         /* of a fixed-size list; of another one the items of all rows */
};

struct table {
  const struct column *columns;
  int64_t count;
  int64_t lengths[4]; /* of the batches, ended by -1 */
  int64_t struct_offset;
  int fail_schema, fail_batch; /* errno to fail with; fail_batch at the second batch */
  const char *root_format;
  int with_dictionary;
  int next;
  int64_t row;
  int streams_released, schemas_released, arrays_made, arrays_released;
};

static void release_schema(struct ArrowSchema *schema) {
  for (int64_t i = 0; i < schema->n_children; i++) {
    if (schema->children[i]->release != NULL) schema->children[i]->release(schema->children[i]);
    free(schema->children[i]);
  }
  free(schema->children);
  if (schema->private_data != NULL) ((struct table *)schema->private_data)->schemas_released++;
  schema->release = NULL;
}

static void fill_schema(const struct column *column, struct ArrowSchema *out) {
  *out = (struct ArrowSchema){.format = column->format, .name = column->name, .flags = ARROW_FLAG_NULLABLE};
  out->release = release_schema;
  if (column->item == NULL) return;
  out->n_children = 1;
  out->children = malloc(sizeof *out->children);
  out->children[0] = malloc(sizeof **out->children);
  fill_schema(column->item, out->children[0]);
}

static int get_schema(struct ArrowArrayStream *stream, struct ArrowSchema *out) {
  struct table *table = stream->private_data;
  if (table->fail_schema != 0) return table->fail_schema;
  static struct ArrowSchema dictionary;
  *out = (struct ArrowSchema){.format = table->root_format != NULL ? table->root_format : "+s",
                              .n_children = table->count};
  out->release = release_schema;
  out->private_data = table;
  out->children = malloc((size_t)table->count * sizeof *out->children);
  for (int64_t i = 0; i < table->count; i++) {
    out->children[i] = malloc(sizeof **out->children);
    fill_schema(&table->columns[i], out->children[i]);
    if (table->with_dictionary) out->children[i]->dictionary = &dictionary;
  }
  return 0;
}

static void release_array(struct ArrowArray *array) {
  for (int64_t i = 0; i < array->n_children; i++) {
    array->children[i]->release(array->children[i]);
    free(array->children[i]);
  }
  free(array->children);
  free((void *)array->buffers);
  if (array->private_data != NULL) ((struct table *)array->private_data)->arrays_released++;
  array->release = NULL;
}

/* `length` values from `first` on. */
static void fill_array(const struct column *column, int64_t first, int64_t length, struct ArrowArray *out) {
  int is_text = column->data != NULL, is_fixed = column->item != NULL && column->values == NULL;
  *out = (struct ArrowArray){.length = length, .offset = column->offset + first, .release = release_array};
  out->null_count = column->validity != NULL ? -1 : 0;
  out->n_buffers = is_fixed ? 1 : is_text ? 3 : 2;
  out->buffers = malloc(3 * sizeof *out->buffers);
  out->buffers[0] = column->validity;
  out->buffers[1] = column->values;
  out->buffers[2] = column->data;
  if (column->item == NULL) return;
  out->n_children = 1;
  out->children = malloc(sizeof *out->children);
  out->children[0] = malloc(sizeof **out->children);
  fill_array(column->item, 0, is_fixed ? (out->offset + length) * column->list_size : column->list_size,
             out->children[0]);
}

static int get_next(struct ArrowArrayStream *stream, struct ArrowArray *out) {
  struct table *table = stream->private_data;
  if (table->fail_batch != 0 && table->next == 1) return table->fail_batch;
  int64_t length = table->lengths[table->next];
  *out = (struct ArrowArray){0};
  if (length < 0) return 0;
  *out =
      (struct ArrowArray){.length = length, .offset = table->struct_offset, .n_children = table->count, .n_buffers = 1};
  out->release = release_array;
  out->private_data = table;
  out->buffers = calloc(1, sizeof *out->buffers);
  out->children = malloc((size_t)table->count * sizeof *out->children);
  for (int64_t i = 0; i < table->count; i++) {
    out->children[i] = malloc(sizeof **out->children);
    fill_array(&table->columns[i], table->row - table->struct_offset, length + table->struct_offset, out->children[i]);
  }
  table->row += length;
  table->next++;
  table->arrays_made++;
  return 0;
}

static const char *get_last_error(struct ArrowArrayStream *stream) {
  (void)stream;
  return "the producer is tired";
}

static void release_stream(struct ArrowArrayStream *stream) {
  ((struct table *)stream->private_data)->streams_released++;
  stream->release = NULL;
}

static tutti_pipeline *pipeline_of(struct table *table, const char *columns, const char *labels) {
  struct ArrowArrayStream stream = {get_schema, get_next, get_last_error, release_stream, table};
  tutti_pipeline *pipeline = NULL;
  assert_ok(tutti_pipeline_create(NULL, &pipeline, &err));
  tutti_pipeline_set_arrow_stream(pipeline, &stream);
  assert_null(stream.release); /* moved */
  tutti_pipeline_begin(pipeline, "arrow", 1);
  if (columns != NULL) tutti_pipeline_set_string(pipeline, "columns", columns);
  if (labels != NULL) tutti_pipeline_set_string(pipeline, "labels", labels);
  tutti_pipeline_end(pipeline);
  return pipeline;
}

static void assert_released(const struct table *table) {
  assert_int_equal(table->streams_released, 1);
  assert_int_equal(table->arrays_made, table->arrays_released);
  if (table->fail_schema == 0) assert_int_equal(table->schemas_released, 1);
}

static void assert_stream_error(int32_t code, const char *needle, struct table *table, const char *columns) {
  tutti_pipeline *pipeline = pipeline_of(table, columns, NULL);
  assert_build_error(code, needle, pipeline);
  assert_released(table);
}

/* --- in ----------------------------------------------------------------------------------------------------------- */

static const float floats[] = {-9, 0, 1, 2, 3, 4};
static const uint8_t bytes[] = {99, 10, 11, 12, 13, 14};
static const uint8_t bits[] = {0x1a}; /* from bit 1 on: 1 0 1 1 0 */
static const int32_t offsets[] = {0, 0, 1, 1, 3, 3, 6};
static const int64_t large_offsets[] = {0, 0, 0, 2, 4, 6, 8};
static const int16_t pairs[] = {-1, -1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
static const uint8_t third_missing[] = {0xf7}; /* the bit of value 3, row 2 behind an offset of 1 */
static const struct column pair_item = {.name = "item", .format = "s", .values = pairs};

static const int32_t list_offsets[] = {0, 1, 3, 3, 4, 7, 7};
static const struct column list_item = {.name = "item", .format = "s", .values = pairs, .offset = 1};

static const struct column columns[] = {
    {.name = "f", .format = "f", .values = floats, .offset = 1},
    {.name = "c", .format = "C", .values = bytes, .offset = 1},
    {.name = "b", .format = "b", .values = bits, .offset = 1},
    {.name = "u", .format = "u", .values = offsets, .data = "abcdef", .offset = 1},
    {.name = "Z", .format = "Z", .values = large_offsets, .data = "AABBCCDD", .offset = 1},
    {.name = "w", .format = "w:2", .values = "xxiijjkkllmm", .offset = 1},
    {.name = "p", .format = "+w:2", .offset = 1, .item = &pair_item, .list_size = 2},
    {.name = "l", .format = "+l", .values = list_offsets, .offset = 1, .item = &list_item, .list_size = 7},
};
enum { COLUMNS = sizeof columns / sizeof *columns };

static void check_text(tutti_tensor *tensor, const char *expected) {
  assert_int_equal(tutti_tensor_get_element_size(tensor, 0), strlen(expected));
  assert_memory_equal(tutti_tensor_get_element_data(tensor, 0), expected, strlen(expected));
}

/* Row `row` of the table above. */
static void check_row(tutti_iterator *iterator, int64_t row) {
  static const uint8_t truths[] = {1, 0, 1, 1, 0};
  static const char *const words[] = {"a", "", "bc", "", "def"};
  static const char *const larger[] = {"", "AA", "BB", "CC", "DD"};
  static const char *const fixed[] = {"ii", "jj", "kk", "ll", "mm"};
  tutti_tensor *values[COLUMNS];
  for (int i = 0; i < COLUMNS; i++)
    values[i] = tutti_iterator_get_component(iterator, i);
  assert_true(*(const float *)tutti_tensor_get_data(values[0]) == floats[row + 1]);
  assert_int_equal(*(const uint8_t *)tutti_tensor_get_data(values[1]), bytes[row + 1]);
  assert_int_equal(*(const uint8_t *)tutti_tensor_get_data(values[2]), truths[row]);
  check_text(values[3], words[row]);
  check_text(values[4], larger[row]);
  check_text(values[5], fixed[row]);
  assert_int_equal(tutti_tensor_get_rank(values[6]), 1);
  assert_memory_equal(tutti_tensor_get_data(values[6]), pairs + 2 * (row + 1), 4);
  int64_t count = list_offsets[row + 2] - list_offsets[row + 1];
  assert_int_equal(tutti_tensor_get_rank(values[7]), 1);
  assert_int_equal(tutti_tensor_get_dim(values[7], 0), count);
  assert_memory_equal(tutti_tensor_get_data(values[7]), pairs + 1 + list_offsets[row + 1], 2 * (size_t)count);
}

static void check_rows(tutti_dataset *dataset, int64_t rows) {
  tutti_iterator *iterator = NULL;
  uint8_t more = 0;
  assert_ok(tutti_iterator_create(dataset, 0, &iterator, &err));
  for (int64_t row = 0; row < rows; row++) {
    assert_ok(tutti_iterator_next(iterator, NULL, &more, &err));
    assert_int_equal(more, 1);
    check_row(iterator, row);
  }
  assert_ok(tutti_iterator_next(iterator, NULL, &more, &err));
  assert_int_equal(more, 0);
  tutti_iterator_unref(iterator);
}

static void test_columns_of_every_layout(void **state) {
  (void)state;
  static const int64_t cuts[][4] = {{5, -1}, {2, 3, -1}, {0, 1, 4, -1}};
  for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
    for (int64_t struct_offset = 0; struct_offset < 2; struct_offset++) {
      struct table table = {.columns = columns, .count = COLUMNS, .struct_offset = struct_offset};
      memcpy(table.lengths, cuts[i], sizeof table.lengths);
      tutti_dataset *dataset = build(pipeline_of(&table, NULL, "b"));
      assert_int_equal(table.streams_released, 1);
      assert_int_equal(tutti_dataset_get_cardinality(dataset), 5);
      assert_int_equal(tutti_dataset_get_component_role(dataset, 2), TUTTI_ROLE_LABEL);
      check_rows(dataset, 5);
      check_rows(dataset, 5); /* as often as one likes */
      assert_true(table.arrays_released < table.arrays_made);
      tutti_dataset_unref(dataset);
      assert_released(&table);
    }
  }
  struct table table = {.columns = columns, .count = COLUMNS, .lengths = {-1}};
  tutti_dataset *dataset = build(pipeline_of(&table, NULL, NULL));
  check_rows(dataset, 0);
  tutti_dataset_unref(dataset);
  assert_released(&table);
}

/* An element of numbers lies where the producer has it, as long as somebody looks at it. */
static void test_numbers_are_not_copied(void **state) {
  (void)state;
  struct table table = {.columns = columns, .count = COLUMNS, .lengths = {2, 3, -1}};
  tutti_dataset *dataset = build(pipeline_of(&table, "f", NULL));
  tutti_iterator *iterator = NULL;
  uint8_t more = 0;
  assert_ok(tutti_iterator_create(dataset, 0, &iterator, &err));
  for (int row = 0; row < 3; row++)
    assert_ok(tutti_iterator_next(iterator, NULL, &more, &err));
  tutti_tensor *third = tutti_iterator_get_component(iterator, 0);
  assert_ptr_equal(tutti_tensor_get_data(third), floats + 3);
  tutti_tensor_ref(third);
  tutti_iterator_unref(iterator);
  tutti_dataset_unref(dataset);
  assert_int_equal(table.arrays_released, 1); /* the other batch */
  assert_true(*(const float *)tutti_tensor_get_data(third) == 2);
  tutti_tensor_unref(third);
  assert_released(&table);

  /* Where they lie badly, they are copied. */
  static char memory[24];
  for (int i = 0; i < 5; i++)
    memcpy(memory + 1 + 4 * i, floats + i, 4);
  const struct column askew = {.name = "f", .format = "f", .values = memory + 1};
  table = (struct table){.columns = &askew, .count = 1, .lengths = {5, -1}};
  dataset = build(pipeline_of(&table, NULL, NULL));
  assert_walk(dataset, floats, 5);
  tutti_dataset_unref(dataset);
  assert_released(&table);
}

static void test_nulls(void **state) {
  (void)state;
  struct column some[2] = {columns[0], columns[6]};
  some[0].validity = third_missing;
  struct table table = {.columns = some, .count = 2, .lengths = {1, 4, -1}};
  assert_stream_error(TUTTI_INVALID_ARGUMENT, "column 'f', row 2: the value is null", &table, NULL);
  table = (struct table){.columns = some, .count = 2, .lengths = {1, 4, -1}};
  assert_stream_error(TUTTI_INVALID_ARGUMENT, "expected f32 to fill nulls with, got 'x'", &table, "f = x");
  table = (struct table){.columns = some, .count = 2, .lengths = {1, 4, -1}};
  tutti_dataset *dataset = build(pipeline_of(&table, "f = -7.5", NULL));
  static const float filled[] = {0, 1, -7.5F, 3, 4};
  assert_walk(dataset, filled, 5);
  tutti_dataset_unref(dataset);
  assert_released(&table);

  /* Missing lists, and missing values inside a list. */
  static const uint8_t items[] = {0xdf, 0xff}; /* value 5, the second one of row 1 */
  struct column item = pair_item, words = columns[3];
  item.validity = items;
  some[1].item = &item;
  table = (struct table){.columns = some + 1, .count = 1, .lengths = {5, -1}};
  assert_stream_error(TUTTI_INVALID_ARGUMENT, "column 'p', row 1: the value is null", &table, NULL);
  some[1].validity = third_missing;
  table = (struct table){.columns = some + 1, .count = 1, .lengths = {5, -1}};
  dataset = build(pipeline_of(&table, "p=100", NULL));
  static const int16_t expected[] = {0, 1, 2, 100, 100, 100, 6, 7, 8, 9};
  tutti_iterator *iterator = NULL;
  uint8_t more = 0;
  assert_ok(tutti_iterator_create(dataset, 0, &iterator, &err));
  for (int row = 0; row < 5; row++) {
    assert_ok(tutti_iterator_next(iterator, NULL, &more, &err));
    assert_memory_equal(tutti_tensor_get_data(tutti_iterator_get_component(iterator, 0)), expected + 2 * row, 4);
  }
  tutti_iterator_unref(iterator);
  tutti_dataset_unref(dataset);
  assert_released(&table);

  words.validity = third_missing;
  table = (struct table){.columns = &words, .count = 1, .lengths = {5, -1}};
  dataset = build(pipeline_of(&table, "u = none", NULL));
  assert_ok(tutti_iterator_create(dataset, 0, &iterator, &err));
  for (int row = 0; row < 3; row++)
    assert_ok(tutti_iterator_next(iterator, NULL, &more, &err));
  check_text(tutti_iterator_get_component(iterator, 0), "none");
  tutti_iterator_unref(iterator);
  tutti_dataset_unref(dataset);
  assert_released(&table);
}

static void test_streams_that_fail(void **state) {
  (void)state;
  struct table table = {.columns = columns, .count = COLUMNS, .lengths = {2, 3, -1}, .fail_schema = EIO};
  assert_stream_error(TUTTI_DATA_LOSS,
                      "get_schema of the Arrow stream failed; caused by: DATA_LOSS: the producer is tired", &table,
                      NULL);
  table = (struct table){.columns = columns, .count = COLUMNS, .lengths = {2, 3, -1}, .fail_batch = ENOMEM};
  assert_stream_error(TUTTI_RESOURCE_EXHAUSTED, "get_next of the Arrow stream failed", &table, NULL);
  table = (struct table){.columns = columns, .count = COLUMNS, .lengths = {2, 3, -1}, .root_format = "i"};
  assert_stream_error(TUTTI_INVALID_ARGUMENT, "expected record batches", &table, NULL);
  table = (struct table){.columns = columns, .count = COLUMNS, .lengths = {5, -1}, .with_dictionary = 1};
  assert_stream_error(TUTTI_UNIMPLEMENTED, "column 'f': expected numbers, texts", &table, NULL);
  table = (struct table){.columns = columns, .count = COLUMNS, .lengths = {5, -1}};
  assert_stream_error(TUTTI_INVALID_ARGUMENT, "no column 'ff', did you mean 'f'?", &table, "ff");
  const struct column twice[] = {columns[0], columns[0]};
  table = (struct table){.columns = twice, .count = 2, .lengths = {5, -1}};
  assert_stream_error(TUTTI_INVALID_ARGUMENT, "the Arrow stream has several columns 'f'", &table, "f");
  table = (struct table){.columns = columns, .count = COLUMNS, .lengths = {5, -1}};
  tutti_pipeline *pipeline = pipeline_of(&table, " = 1", NULL);
  assert_build_error(TUTTI_INVALID_ARGUMENT, "expected NAME", pipeline);
  assert_int_equal(table.streams_released, 1);

  static const int32_t falling[] = {0, 3, 1, 3, 3, 6};
  struct column odd = {.name = "odd", .format = "u", .values = falling, .data = "abcdef"};
  table = (struct table){.columns = &odd, .count = 1, .lengths = {5, -1}};
  assert_stream_error(TUTTI_INVALID_ARGUMENT, "column 'odd', batch at row 0: the offsets of its texts decrease", &table,
                      NULL);
  static const char *const formats[] = {"n", "d:10,2", "+m", "+s", "+ud:0", "+w:x", "w:-1", ""};
  for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
    odd.format = formats[i];
    table = (struct table){.columns = &odd, .count = 1, .lengths = {5, -1}};
    assert_stream_error(TUTTI_UNIMPLEMENTED, "column 'odd'", &table, NULL);
  }
  odd = (struct column){.name = "odd", .format = "f"};
  table = (struct table){.columns = &odd, .count = 1, .lengths = {5, -1}};
  assert_stream_error(TUTTI_INVALID_ARGUMENT, "the buffer of its values is NULL", &table, NULL);
  odd = (struct column){.name = "odd", .format = "f", .values = floats, .data = floats};
  table = (struct table){.columns = &odd, .count = 1, .lengths = {5, -1}};
  assert_stream_error(TUTTI_INVALID_ARGUMENT, "expected 2 buffers, got 3", &table, NULL);
}

static void test_mistakes_with_streams(void **state) {
  (void)state;
  tutti_pipeline *pipeline = NULL;
  assert_ok(tutti_pipeline_create(NULL, &pipeline, &err));
  tutti_source_arrow(pipeline, NULL);
  assert_build_error(TUTTI_FAILED_PRECONDITION, "it must be set before the source", pipeline);
  assert_ok(tutti_pipeline_create(NULL, &pipeline, &err));
  tutti_pipeline_set_arrow_stream(pipeline, NULL);
  assert_build_error(TUTTI_INVALID_ARGUMENT, "'stream' is NULL", pipeline);
  /* One that nobody reads is released all the same. */
  struct table table = {.columns = columns, .count = COLUMNS, .lengths = {5, -1}};
  struct ArrowArrayStream stream = {get_schema, get_next, get_last_error, release_stream, &table};
  assert_ok(tutti_pipeline_create(NULL, &pipeline, &err));
  tutti_pipeline_set_arrow_stream(pipeline, &stream);
  tutti_pipeline_unref(pipeline);
  assert_int_equal(table.streams_released, 1);
  table.streams_released = 0;
  stream = (struct ArrowArrayStream){get_schema, get_next, get_last_error, release_stream, &table};
  tutti_pipeline_set_arrow_stream(NULL, &stream);
  assert_int_equal(table.streams_released, 1);
}

/* --- out ---------------------------------------------------------------------------------------------------------- */

static void test_out_and_in_again(void **state) {
  (void)state;
  for (int64_t batch_rows = 1; batch_rows < 7; batch_rows++) {
    struct table table = {.columns = columns, .count = COLUMNS, .lengths = {2, 3, -1}};
    tutti_dataset *dataset = build(pipeline_of(&table, NULL, NULL));
    struct ArrowArrayStream stream;
    assert_ok(tutti_dataset_to_arrow(dataset, 0, batch_rows, NULL, &stream, &err));
    tutti_dataset_unref(dataset);
    tutti_pipeline *pipeline = NULL;
    assert_ok(tutti_pipeline_create(NULL, &pipeline, &err));
    tutti_pipeline_set_arrow_stream(pipeline, &stream);
    tutti_source_arrow(pipeline, NULL);
    dataset = build(pipeline);
    check_rows(dataset, 5);
    tutti_dataset_unref(dataset);
    assert_released(&table);
  }
}

/* What a consumer sees, field by field. */
static void test_layout_of_what_is_given(void **state) {
  (void)state;
  struct table table = {.columns = columns, .count = COLUMNS, .lengths = {5, -1}};
  tutti_dataset *dataset = build(pipeline_of(&table, NULL, NULL));
  struct ArrowArrayStream stream;
  struct ArrowSchema schema;
  struct ArrowArray array, end;
  assert_ok(tutti_dataset_to_arrow(dataset, 0, 5, NULL, &stream, &err));
  tutti_dataset_unref(dataset);
  assert_int_equal(stream.get_schema(&stream, &schema), 0);
  assert_int_equal(stream.get_next(&stream, &array), 0);
  assert_int_equal(stream.get_next(&stream, &end), 0);
  assert_null(end.release);
  assert_null(stream.get_last_error(&stream));
  stream.release(&stream);
  assert_null(stream.release);

  static const char *const formats[] = {"f", "C", "b", "Z", "Z", "Z", "+w:2", "+L"};
  assert_string_equal(schema.format, "+s");
  assert_int_equal(schema.n_children, COLUMNS);
  assert_int_equal(array.length, 5);
  assert_int_equal(array.n_children, COLUMNS);
  for (int i = 0; i < COLUMNS; i++) {
    assert_string_equal(schema.children[i]->format, formats[i]);
    assert_string_equal(schema.children[i]->name, columns[i].name);
    assert_int_equal(array.children[i]->length, 5);
    assert_int_equal(array.children[i]->null_count, 0);
  }
  assert_string_equal(schema.children[6]->children[0]->format, "s");
  assert_int_equal(array.children[6]->n_buffers, 1);
  assert_int_equal(array.children[6]->children[0]->length, 10);
  assert_memory_equal(array.children[6]->children[0]->buffers[1], pairs + 2, 20);
  static const int64_t list_starts[] = {0, 2, 2, 3, 6, 6};
  assert_string_equal(schema.children[7]->children[0]->format, "s");
  assert_int_equal(array.children[7]->n_buffers, 2);
  assert_memory_equal(array.children[7]->buffers[1], list_starts, sizeof list_starts);
  assert_int_equal(array.children[7]->children[0]->length, 6);
  assert_memory_equal(array.children[7]->children[0]->buffers[1], pairs + 2, 12);
  assert_int_equal(*(const uint8_t *)array.children[2]->buffers[1], 0x0d);
  const int64_t *starts = array.children[3]->buffers[1];
  const char *data = array.children[3]->buffers[2];
  assert_int_equal(starts[5] - starts[0], 6);
  assert_memory_equal(data + starts[0], "abcdef", 6);

  /* A child that was moved away outlives its parent. */
  struct ArrowArray moved = *array.children[0];
  array.children[0]->release = NULL;
  array.release(&array);
  assert_memory_equal(moved.buffers[1], floats + 1, 20);
  moved.release(&moved);
  schema.release(&schema);
  assert_null(schema.release);
  assert_released(&table);
}

static void test_out_that_fails(void **state) {
  (void)state;
  struct ArrowArrayStream stream;
  tutti_dataset *dataset = counting_dataset(5);
  assert_error(TUTTI_INVALID_ARGUMENT, "'out' is NULL", tutti_dataset_to_arrow(dataset, 0, 5, NULL, NULL, &err));
  assert_error(TUTTI_INVALID_ARGUMENT, "batch_rows", tutti_dataset_to_arrow(dataset, 0, 0, NULL, &stream, &err));
  assert_null(stream.release);
  tutti_cancel *cancel = NULL;
  struct ArrowArray array;
  assert_ok(tutti_cancel_create(&cancel, &err));
  assert_ok(tutti_dataset_to_arrow(dataset, 0, 2, cancel, &stream, &err));
  tutti_dataset_unref(dataset);
  assert_int_equal(stream.get_next(&stream, &array), 0);
  array.release(&array);
  assert_ok(tutti_cancel_request(cancel, TUTTI_CANCEL_CANCEL, &err));
  tutti_cancel_unref(cancel);
  assert_int_equal(stream.get_next(&stream, &array), ECANCELED);
  assert_non_null(strstr(stream.get_last_error(&stream), "CANCELLED"));
  stream.release(&stream);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_columns_of_every_layout),
    cmocka_unit_test(test_numbers_are_not_copied),
    cmocka_unit_test(test_nulls),
    cmocka_unit_test(test_streams_that_fail),
    cmocka_unit_test(test_mistakes_with_streams),
    cmocka_unit_test(test_out_and_in_again),
    cmocka_unit_test(test_layout_of_what_is_given),
    cmocka_unit_test(test_out_that_fails),
};
CAPI_TEST_MAIN(tests)
