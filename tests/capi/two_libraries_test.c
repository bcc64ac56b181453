/* SPDX-License-Identifier: Apache-2.0
 * Two copies of the library in one process, as when two packages of a program each bring their own: they train at the
 * same time, and neither sees the other's objects.
 *
 *   two_libraries_test LIBTUTTI */
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <tutti/tutti.h>
#include <unistd.h>

#include "testing.h"

enum { ROWS = 40, COLUMNS = 3, STEPS = 2000 };

/* The functions that are used here, of one copy. */
#define FUNCTIONS(F)           \
  F(tutti_debug_live_objects)  \
  F(tutti_error_get_text)      \
  F(tutti_tensor_from_data)    \
  F(tutti_tensor_unref)        \
  F(tutti_pipeline_create)     \
  F(tutti_pipeline_unref)      \
  F(tutti_pipeline_add_slices) \
  F(tutti_pipeline_begin)      \
  F(tutti_pipeline_set_i64)    \
  F(tutti_pipeline_end)        \
  F(tutti_pipeline_build)      \
  F(tutti_dataset_unref)       \
  F(tutti_options_create)      \
  F(tutti_options_set_i64)     \
  F(tutti_options_unref)       \
  F(tutti_graph_get_feature)   \
  F(tutti_graph_get_label)     \
  F(tutti_graph_begin)         \
  F(tutti_graph_add_input)     \
  F(tutti_graph_set_i64)       \
  F(tutti_graph_set_f64)       \
  F(tutti_graph_end)           \
  F(tutti_graph_set_loss)      \
  F(tutti_graph_check)         \
  F(tutti_estimator_create)    \
  F(tutti_estimator_train)     \
  F(tutti_estimator_unref)     \
  F(tutti_result_get_step)     \
  F(tutti_result_get_loss)     \
  F(tutti_result_unref)

struct library {
  void *handle;
  int32_t code;
  int64_t step;
  double loss;
#define MEMBER(name) __typeof__(&name) name;
  FUNCTIONS(MEMBER)
};

static const char *original;

static void open_copy(const char *path, struct library *library) {
  library->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library->handle == NULL) print_error("%s\n", dlerror());
  assert_non_null(library->handle);
  void *symbol = NULL;
/* POSIX says that a function pointer fits into the void * of dlsym; C does not. */
#define FIND(name)                        \
  symbol = dlsym(library->handle, #name); \
  assert_non_null(symbol);                \
  memcpy(&library->name, &symbol, sizeof symbol);
  FUNCTIONS(FIND)
}

static void copy_file(const char *path) {
  FILE *from = fopen(original, "rb"), *to = fopen(path, "wb");
  assert_true(from != NULL && to != NULL);
  static char bytes[1 << 16];
  for (size_t count; (count = fread(bytes, 1, sizeof bytes, from)) > 0;)
    assert_int_equal(fwrite(bytes, 1, count, to), count);
  assert_int_equal(fclose(to), 0);
  fclose(from);
}

static int32_t model(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  struct library *l = user;
  l->tutti_graph_begin(g, "layer_dense", 1);
  l->tutti_graph_add_input(g, l->tutti_graph_get_feature(g, "x"));
  l->tutti_graph_set_i64(g, "units", 1);
  tutti_value line = l->tutti_graph_end(g, NULL, 0);
  if (mode != TUTTI_MODE_PREDICT) {
    l->tutti_graph_begin(g, "loss_mean_squared_error", 1);
    l->tutti_graph_add_input(g, line);
    l->tutti_graph_add_input(g, l->tutti_graph_get_label(g, "y"));
    l->tutti_graph_set_loss(g, l->tutti_graph_end(g, NULL, 0));
    l->tutti_graph_begin(g, "schedule_constant", 1);
    l->tutti_graph_set_f64(g, "value", 0.1);
    tutti_value rate = l->tutti_graph_end(g, NULL, 0);
    l->tutti_graph_begin(g, "optimizer_sgd", 1);
    l->tutti_graph_add_input(g, rate);
    l->tutti_graph_end(g, NULL, 0);
  }
  return l->tutti_graph_check(g, err);
}

static int32_t make_dataset(struct library *l, tutti_dataset **out, tutti_error **err) {
  float x[ROWS][COLUMNS], y[ROWS][1];
  for (int i = 0; i < ROWS; i++) {
    for (int j = 0; j < COLUMNS; j++)
      x[i][j] = (float)((i * 7 + j * 3) % 11) / 11.0f;
    y[i][0] = x[i][0] - 2 * x[i][1] + 0.5f;
  }
  tutti_tensor *features = NULL, *labels = NULL;
  tutti_pipeline *pipeline = NULL;
  int32_t code = l->tutti_tensor_from_data(TUTTI_DTYPE_F32, (int64_t[]){ROWS, COLUMNS}, 2, x, sizeof x, &features, err);
  if (code == TUTTI_OK)
    code = l->tutti_tensor_from_data(TUTTI_DTYPE_F32, (int64_t[]){ROWS, 1}, 2, y, sizeof y, &labels, err);
  if (code == TUTTI_OK) code = l->tutti_pipeline_create(NULL, &pipeline, err);
  if (code == TUTTI_OK) {
    l->tutti_pipeline_add_slices(pipeline, "x", TUTTI_ROLE_FEATURE, features);
    l->tutti_pipeline_add_slices(pipeline, "y", TUTTI_ROLE_LABEL, labels);
    l->tutti_pipeline_begin(pipeline, "repeat", 1), l->tutti_pipeline_end(pipeline);
    l->tutti_pipeline_begin(pipeline, "batch", 1);
    l->tutti_pipeline_set_i64(pipeline, "batch_size", 8), l->tutti_pipeline_end(pipeline);
    code = l->tutti_pipeline_build(pipeline, out, err);
  }
  l->tutti_pipeline_unref(pipeline), l->tutti_tensor_unref(features), l->tutti_tensor_unref(labels);
  return code;
}

static void *train(void *user) {
  struct library *l = user;
  tutti_error *err = NULL;
  tutti_dataset *dataset = NULL;
  tutti_options *options = NULL;
  tutti_estimator *estimator = NULL;
  tutti_result *result = NULL;
  l->code = make_dataset(l, &dataset, &err);
  if (l->code == TUTTI_OK) l->code = l->tutti_options_create("train", &options, &err);
  if (l->code == TUTTI_OK) l->tutti_options_set_i64(options, "steps", STEPS);
  if (l->code == TUTTI_OK) l->code = l->tutti_estimator_create(NULL, model, l, NULL, NULL, NULL, &estimator, &err);
  if (l->code == TUTTI_OK) l->code = l->tutti_estimator_train(estimator, dataset, options, NULL, NULL, &result, &err);
  if (l->code == TUTTI_OK) {
    l->step = l->tutti_result_get_step(result);
    l->loss = l->tutti_result_get_loss(result);
  } else {
    print_error("%s\n", l->tutti_error_get_text(err));
  }
  l->tutti_result_unref(result), l->tutti_estimator_unref(estimator), l->tutti_options_unref(options);
  l->tutti_dataset_unref(dataset);
  return NULL;
}

static void test_both_train(void **state) {
  (void)state;
  char path[] = "/tmp/tutti-copy-XXXXXX";
  int file = mkstemp(path);
  assert_true(file >= 0);
  close(file);
  copy_file(path);
  static struct library libraries[2];
  open_copy(original, &libraries[0]);
  open_copy(path, &libraries[1]);
  assert_int_equal(unlink(path), 0);
  assert_ptr_not_equal(libraries[0].handle, libraries[1].handle);
  assert_true(libraries[0].tutti_tensor_unref != libraries[1].tutti_tensor_unref);
  pthread_t threads[2];
  for (int i = 0; i < 2; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, train, &libraries[i]), 0);
  for (int i = 0; i < 2; i++)
    assert_int_equal(pthread_join(threads[i], NULL), 0);
  for (int i = 0; i < 2; i++) {
    assert_int_equal(libraries[i].code, TUTTI_OK);
    assert_int_equal(libraries[i].step, STEPS);
    assert_true(libraries[i].loss == libraries[0].loss && libraries[i].loss < 1e-3);
  }
  /* What one makes the other does not count. */
  tutti_tensor *tensor = NULL;
  assert_int_equal(
      libraries[0].tutti_tensor_from_data(TUTTI_DTYPE_F32, (int64_t[]){1}, 1, &(float){1}, 4, &tensor, NULL), TUTTI_OK);
  assert_int_equal(libraries[0].tutti_debug_live_objects("tensor"), 1);
  assert_int_equal(libraries[1].tutti_debug_live_objects("tensor"), 0);
  libraries[0].tutti_tensor_unref(tensor);
  assert_int_equal(libraries[1].tutti_debug_live_objects("estimator"), 0);
}

int main(int argc, char **argv) {
  if (argc != 2) return 2;
  original = argv[1];
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_both_train)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
