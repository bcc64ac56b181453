/* SPDX-License-Identifier: Apache-2.0
 * Maps in worker processes through the C interface. The processes are this program again, which serves when it has an
 * argument. */
#include "dataset_fixtures.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- the worker --------------------------------------------------------------------------------------------------- */

/* x becomes -x and its text; three fails, four gives something else. */
static int32_t describe(void *user, tutti_tensor *const *inputs, int64_t count, tutti_tensor **outputs,
                        int64_t output_count, tutti_error **error) {
  if (count != 1 || output_count != 2) return tutti_error_set(error, TUTTI_INTERNAL, "expected one and two components");
  float value = *(const float *)tutti_tensor_get_data(inputs[0]), negative = -value;
  (*(int *)user)++;
  printf("element %d\n", (int)value); /* goes to standard error, where it harms nobody */
  fflush(stdout);
  if (value == 3) return tutti_error_set(error, TUTTI_DATA_LOSS, "row is torn");
  if (value == 5) abort();
  struct {
    int64_t offsets[2];
    char text[32];
  } text;
  int length = snprintf(text.text, sizeof text.text, "%g", (double)value);
  text.offsets[0] = sizeof text.offsets;
  text.offsets[1] = (int64_t)sizeof text.offsets + length;
  int32_t type = value == 4 ? TUTTI_DTYPE_I32 : TUTTI_DTYPE_F32;
  int32_t code = tutti_tensor_from_data(type, NULL, 0, &negative, sizeof negative, &outputs[0], error);
  if (code != TUTTI_OK || value == 6) return code; /* of six there is no text */
  return tutti_tensor_from_data(TUTTI_DTYPE_BYTES, NULL, 0, &text, text.offsets[1], &outputs[1], error);
}

static int32_t negate(void *user, tutti_tensor *const *inputs, int64_t count, tutti_tensor **outputs,
                      int64_t output_count, tutti_error **error) {
  (void)user;
  float value = -*(const float *)tutti_tensor_get_data(inputs[0]);
  if (count != output_count) return tutti_error_set(error, TUTTI_INTERNAL, "expected as many outputs");
  return tutti_tensor_from_data(TUTTI_DTYPE_F32, NULL, 0, &value, sizeof value, &outputs[0], error);
}

static int serve(const char *what) {
  int calls = 0;
  tutti_error *error = NULL;
  int32_t code = strcmp(what, "describe") == 0 ? tutti_serve_map(describe, &calls, NULL, &error)
                                               : tutti_serve_map(negate, NULL, NULL, &error);
  if (error != NULL) fprintf(stderr, "%s\n", tutti_error_get_text(error));
  tutti_error_unref(error);
  return code == TUTTI_OK ? 0 : 1;
}

/* --- the tests ---------------------------------------------------------------------------------------------------- */

static char program[4096];

static void find_program(void) {
  ssize_t size = readlink("/proc/self/exe", program, sizeof program - 1);
  assert_true(size > 0);
  program[size] = 0;
}

static tutti_dataset *described(void) {
  static const float zero = 0;
  static const struct { int64_t offsets[2]; } empty = {{16, 16}};
  tutti_pipeline *pipeline = NULL;
  assert_ok(tutti_pipeline_create(NULL, &pipeline, &err));
  tutti_tensor *number = make_tensor(TUTTI_DTYPE_F32, 0, NULL, &zero), *text = NULL;
  assert_ok(tutti_tensor_from_data(TUTTI_DTYPE_BYTES, NULL, 0, &empty, sizeof empty, &text, &err));
  tutti_pipeline_add_tensor(pipeline, "negative", TUTTI_ROLE_FEATURE, number);
  tutti_pipeline_add_tensor(pipeline, "text", TUTTI_ROLE_LABEL, text);
  tutti_tensor_unref(number);
  tutti_tensor_unref(text);
  return build(pipeline);
}

static void assert_described(tutti_iterator *iterator, float value, const char *text) {
  uint8_t more = 0;
  assert_ok(tutti_iterator_next(iterator, NULL, &more, &err));
  assert_int_equal(more, 1);
  assert_true(*(const float *)tutti_tensor_get_data(tutti_iterator_get_component(iterator, 0)) == -value);
  const tutti_tensor *given = tutti_iterator_get_component(iterator, 1);
  assert_int_equal(tutti_tensor_get_element_size(given, 0), (int64_t)strlen(text));
  assert_memory_equal(tutti_tensor_get_element_data(given, 0), text, strlen(text));
}

static void test_map_by_processes(void **state) {
  (void)state;
  const char *command[] = {program, "negate"};
  static const float expected[] = {0, -1, -2, -3, -4, -5, -6, -7};
  for (int64_t processes = 0; processes <= 8; processes += 2) {
    tutti_pipeline *pipeline = count_to(8);
    tutti_pipeline_map_process_attrs attrs = {.processes = processes};
    tutti_pipeline_map_process(pipeline, command, 2, &attrs);
    tutti_dataset *dataset = build(pipeline);
    assert_walk(dataset, expected, 8);
    tutti_dataset_unref(dataset);
  }
}

static void test_other_components_and_errors(void **state) {
  (void)state;
  const char *command[] = {program, "describe"};
  tutti_dataset *like = described();
  tutti_pipeline *pipeline = count_to(8);
  tutti_pipeline_map_process_attrs attrs = {.processes = 2, .like = like};
  tutti_pipeline_map_process(pipeline, command, 2, &attrs);
  tutti_dataset *dataset = build(pipeline);
  assert_string_equal(tutti_dataset_get_spec(dataset), tutti_dataset_get_spec(like));
  tutti_iterator *iterator = NULL;
  assert_ok(tutti_iterator_create(dataset, 0, &iterator, &err));
  uint8_t more = 0;
  assert_described(iterator, 0, "0");
  assert_described(iterator, 1, "1");
  assert_described(iterator, 2, "2");
  assert_error(TUTTI_DATA_LOSS, "row is torn", tutti_iterator_next(iterator, NULL, &more, &err));
  assert_error(TUTTI_INVALID_ARGUMENT, "component 'negative': expected f32[], got i32 []",
               tutti_iterator_next(iterator, NULL, &more, &err));
  assert_error(TUTTI_UNAVAILABLE, "was terminated by signal 6 (Aborted) while it computed element 5",
               tutti_iterator_next(iterator, NULL, &more, &err));
  assert_error(TUTTI_INVALID_ARGUMENT, "left an output without a tensor",
               tutti_iterator_next(iterator, NULL, &more, &err));
  assert_described(iterator, 7, "7");
  assert_ok(tutti_iterator_next(iterator, NULL, &more, &err));
  assert_int_equal(more, 0);
  tutti_iterator_unref(iterator);
  tutti_dataset_unref(dataset);
  tutti_dataset_unref(like);
}

static void test_mistakes(void **state) {
  (void)state;
  assert_error(TUTTI_INVALID_ARGUMENT, "argument 'map' is NULL", tutti_serve_map(NULL, NULL, NULL, &err));
  tutti_pipeline *pipeline = count_to(3);
  tutti_pipeline_map_process(pipeline, NULL, 0, NULL);
  assert_build_error(TUTTI_INVALID_ARGUMENT, "parameter 'command' is missing", pipeline);
  pipeline = count_to(3);
  const char *nothing[] = {""};
  tutti_pipeline_map_process(pipeline, nothing, 1, NULL);
  assert_build_error(TUTTI_INVALID_ARGUMENT, "expected a program and its arguments, got none", pipeline);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_map_by_processes),
    cmocka_unit_test(test_other_components_and_errors),
    cmocka_unit_test(test_mistakes),
};

int main(int count, char **arguments) {
  if (count > 1) return serve(arguments[1]);
  find_program();
  return cmocka_run_group_tests(tests, remember_live_objects, assert_nothing_left);
}
