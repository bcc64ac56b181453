/* SPDX-License-Identifier: Apache-2.0 */
#define _XOPEN_SOURCE 700
#include "capi_testing.h"

#include <ftw.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

void check_error(int32_t code, const char *needle, int32_t answer, tutti_error *err, const char *call, const char *file,
                 int line) {
  const char *text = err != NULL ? tutti_error_get_text(err) : "no error object";
  int right = answer == code && err != NULL && tutti_error_get_code(err) == code && strstr(text, needle) != NULL;
  if (!right) {
    print_error("%s\n  expected %s with \"%s\"\n  got %s: %s\n", call, tutti_code_get_name(code), needle,
                tutti_code_get_name(answer), text);
  }
  tutti_error_unref(err);
  if (!right) _fail(file, line);
}

void sleep_microseconds(long microseconds) {
  const struct timespec pause = {.tv_sec = microseconds / 1000000, .tv_nsec = microseconds % 1000000 * 1000};
  nanosleep(&pause, NULL);
}

static int64_t live_objects_before;

int remember_live_objects(void **state) {
  (void)state;
  /* The default context lives for ever: it is made here, so that it does not count. */
  (void)tutti_context_get_device_count(NULL);
  live_objects_before = tutti_debug_live_objects(NULL);
  return 0;
}

int assert_nothing_left(void **state) {
  (void)state;
  int64_t now = tutti_debug_live_objects(NULL);
  if (now == live_objects_before) return 0;
  static const char *const types[] = {"error",    "cancel",    "options",           "context",   "tensor",
                                      "graph",    "pipeline",  "dataset",           "iterator",  "feed",
                                      "strategy", "hooks",     "hook_event",        "estimator", "session",
                                      "result",   "predictor", "prediction_stream", "batch"};
  print_error("%lld objects are alive, %lld before the tests:\n", (long long)now, (long long)live_objects_before);
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    if (tutti_debug_live_objects(types[i]) != 0)
      print_error("  %s: %lld\n", types[i], (long long)tutti_debug_live_objects(types[i]));
  return 1;
}

tutti_tensor *make_tensor(int32_t dtype, int64_t rank, const int64_t *dims, const void *values) {
  static const int sizes[] = {0, 4, 8, 4, 8, 1, 1, 2, 2, 1, 2, 2, 4, 8};
  int64_t bytes = sizes[dtype];
  for (int64_t i = 0; i < rank; i++)
    bytes *= dims[i];
  tutti_tensor *tensor = NULL;
  assert_ok(tutti_tensor_from_data(dtype, dims, rank, values, bytes, &tensor, &err));
  return tensor;
}

tutti_tensor *make_vector(int32_t dtype, int64_t count, const void *values) {
  return make_tensor(dtype, 1, &count, values);
}

tutti_dataset *counting_dataset(int64_t rows) {
  float *values = malloc((size_t)rows * sizeof *values + 1);
  for (int64_t i = 0; i < rows; i++)
    values[i] = (float)i;
  tutti_tensor *tensor = make_vector(TUTTI_DTYPE_F32, rows, values);
  free(values);
  tutti_pipeline *pipeline = NULL;
  tutti_dataset *dataset = NULL;
  assert_ok(tutti_pipeline_create(NULL, &pipeline, &err));
  tutti_pipeline_add_slices(pipeline, "x", TUTTI_ROLE_FEATURE, tensor);
  assert_ok(tutti_pipeline_build(pipeline, &dataset, &err));
  tutti_pipeline_unref(pipeline);
  tutti_tensor_unref(tensor);
  return dataset;
}

void toy_row(int64_t row, float values[4], int32_t *label) {
  uint32_t state = (uint32_t)row * 2654435761u + 12345u;
  for (int i = 0; i < 4; i++) {
    state = state * 1664525u + 1013904223u;
    values[i] = (float)(state >> 8) / 16777216.0f;
  }
  *label = values[0] + values[1] > values[2] + values[3];
}

tutti_pipeline *toy_rows(tutti_context *context, int64_t rows) {
  float(*values)[4] = malloc((size_t)rows * sizeof *values + 1);
  int32_t *labels = malloc((size_t)rows * sizeof *labels + 1);
  for (int64_t i = 0; i < rows; i++)
    toy_row(i, values[i], &labels[i]);
  int64_t dims[] = {rows, 4};
  tutti_tensor *x = make_tensor(TUTTI_DTYPE_F32, 2, dims, values), *y = make_vector(TUTTI_DTYPE_I32, rows, labels);
  free(values);
  free(labels);
  tutti_pipeline *pipeline = NULL;
  assert_ok(tutti_pipeline_create(context, &pipeline, &err));
  tutti_pipeline_add_slices(pipeline, "x", TUTTI_ROLE_FEATURE, x);
  tutti_pipeline_add_slices(pipeline, "y", TUTTI_ROLE_LABEL, y);
  tutti_tensor_unref(x);
  tutti_tensor_unref(y);
  return pipeline;
}

tutti_dataset *toy_dataset(int64_t rows, int64_t batch, int64_t passes) {
  tutti_pipeline *pipeline = toy_rows(NULL, rows);
  tutti_dataset *dataset = NULL;
  if (passes != 1) {
    tutti_pipeline_repeat_attrs attrs = {.has_count = passes > 0, .count = passes};
    tutti_pipeline_repeat(pipeline, &attrs);
  }
  tutti_pipeline_batch(pipeline, batch, NULL);
  assert_ok(tutti_pipeline_build(pipeline, &dataset, &err));
  tutti_pipeline_unref(pipeline);
  return dataset;
}

int32_t toy_model(tutti_graph *graph, int32_t mode, void *user, tutti_error **err) {
  double rate = user != NULL ? *(double *)user : 1e-2;
  tutti_layer_dense_attrs relu = {.activation = TUTTI_LAYER_DENSE_ACTIVATION_RELU};
  tutti_value hidden = tutti_layer_dense(graph, tutti_graph_get_feature(graph, "x"), 16, &relu);
  tutti_value logits = tutti_layer_dense(graph, hidden, 2, NULL);
  tutti_graph_set_output(graph, "class", tutti_argmax(graph, logits, NULL));
  tutti_graph_set_output(graph, "logits", logits);
  if (mode != TUTTI_MODE_PREDICT) {
    tutti_value label = tutti_graph_get_label(graph, "y");
    tutti_metric_accuracy(graph, "accuracy", logits, label, NULL);
    tutti_graph_set_loss(graph, tutti_loss_sparse_softmax_cross_entropy(graph, logits, label, NULL));
    tutti_optimizer_adam(graph, tutti_schedule_constant(graph, rate), NULL);
  }
  return tutti_graph_check(graph, err);
}

tutti_options *make_options(const char *schema, const char *json) {
  tutti_options *options = NULL;
  assert_ok(tutti_options_create(schema, &options, &err));
  tutti_options_set_json(options, json);
  assert_ok(tutti_options_check(options, &err));
  return options;
}

tutti_estimator *toy_estimator(const char *run) {
  tutti_options *options = run != NULL ? make_options("run", run) : NULL;
  tutti_estimator *estimator = NULL;
  assert_ok(tutti_estimator_create(NULL, toy_model, NULL, NULL, NULL, options, &estimator, &err));
  tutti_options_unref(options);
  return estimator;
}

void make_directory(char path[64]) {
  strcpy(path, "/tmp/tutti-capi-test-XXXXXX");
  assert_non_null(mkdtemp(path));
}

static int remove_entry(const char *path, const struct stat *status, int kind, struct FTW *walk) {
  (void)status, (void)kind, (void)walk;
  return remove(path);
}

void remove_directory(const char *path) { nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS); }

void join_path(char *out, size_t size, const char *directory, const char *name) {
  int length = snprintf(out, size, "%s/%s", directory, name);
  assert_true(length > 0 && (size_t)length < size);
}
