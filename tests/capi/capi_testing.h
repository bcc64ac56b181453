/* SPDX-License-Identifier: Apache-2.0
 *
 * What the tests of the C interface share. They link the shared library and nothing else of tutti.
 *
 *   assert_ok(tutti_tensor_create(TUTTI_DTYPE_F32, dims, 2, &tensor, &err));
 *   assert_error(TUTTI_INVALID_ARGUMENT, "needs 24 bytes", tutti_tensor_from_data(..., &tensor, &err));
 *
 * Both declare the `err` that the call uses. A group's teardown, assert_nothing_left, fails when objects are alive.
 * Callbacks record what they see; the test asserts afterwards.
 */
#ifndef TUTTI_TESTS_CAPI_CAPI_TESTING_H_
#define TUTTI_TESTS_CAPI_CAPI_TESTING_H_

#include <tutti/tutti.h>

#include "missing_backend.h"
#include "testing.h"

#define assert_ok(call)                                                                     \
  do {                                                                                      \
    tutti_error *err = NULL;                                                                \
    if ((call) != TUTTI_OK) {                                                               \
      print_error("%s: %s\n", #call, err != NULL ? tutti_error_get_text(err) : "no error"); \
      _fail(__FILE__, __LINE__);                                                            \
    }                                                                                       \
    assert_null(err);                                                                       \
  } while (0)

/* The text of the error and its causes must contain `needle`. */
#define assert_error(code, needle, call)                               \
  do {                                                                 \
    tutti_error *err = NULL;                                           \
    int32_t answer = (call);                                           \
    check_error(code, needle, answer, err, #call, __FILE__, __LINE__); \
  } while (0)

void check_error(int32_t code, const char *needle, int32_t answer, tutti_error *err, const char *call, const char *file,
                 int line);

/* Counts objects; `assert_nothing_left` compares. As setup and teardown of a group. */
int remember_live_objects(void **state);
int assert_nothing_left(void **state);

#define CAPI_TEST_MAIN(tests) \
  int main(void) { return cmocka_run_group_tests(tests, remember_live_objects, assert_nothing_left); }

/* Less than a second. */
void sleep_microseconds(long microseconds);

/* Tensors with a copy of the values; the test fails when they cannot be made. */
tutti_tensor *make_tensor(int32_t dtype, int64_t rank, const int64_t *dims, const void *values);
tutti_tensor *make_vector(int32_t dtype, int64_t count, const void *values);

/* One f32 feature "x" 0, 1, ... `rows` - 1, one per row. */
tutti_dataset *counting_dataset(int64_t rows);

/* A pipeline over `rows` rows of toy_row(), "x" and "y". */
tutti_pipeline *toy_rows(tutti_context *context, int64_t rows);

/* Rows of four numbers and a label, 1 when the first two sum to more than the others: something a small network
 * learns. `batch` rows at a time; `passes` times, 0 = for ever. */
tutti_dataset *toy_dataset(int64_t rows, int64_t batch, int64_t passes);
void toy_row(int64_t row, float values[4], int32_t *label);

/* A network with one hidden layer: features "x", label "y", outputs "class" and "logits", metric "accuracy", Adam.
 * `user` NULL, or a double: the learning rate. */
int32_t toy_model(tutti_graph *graph, int32_t mode, void *user, tutti_error **err);

/* Options of a schema with the members of a JSON object. */
tutti_options *make_options(const char *schema, const char *json);

/* An estimator of toy_model on the default strategy; `run` = options as JSON, or NULL. */
tutti_estimator *toy_estimator(const char *run);

/* A new empty directory; removed with what is in it by remove_directory. */
void make_directory(char path[64]);
void remove_directory(const char *path);

/* Names a file of a directory. */
void join_path(char *out, size_t size, const char *directory, const char *name);

#endif /* TUTTI_TESTS_CAPI_CAPI_TESTING_H_ */
