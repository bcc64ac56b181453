/* SPDX-License-Identifier: Apache-2.0
 * Models that releases have saved (tests/testdata/released/<release>/model): every later library reads them, predicts
 * with them, and trains on from where they are. What is in them is worked out here: the gradient of the model is the
 * same in every step, so a few lines follow Adam, its slots, and the moving average. A file of a newer release is
 * refused by name.
 *
 *   released_model_test                      the tests
 *   released_model_test write DIRECTORY      saves the model for a new release */
#include <math.h>
#include <stdlib.h>

#include "estimator_fixtures.h"
#include "released_fixtures.h"

enum { SAVED_STEP = 3, SIZE = 3, ROWS = 16, BATCH = 2 };

/* What every row of "x" is, and with the loss below the gradient of every step. */
static const float slopes[SIZE] = {1, -2, 4};

/* Variables that training leaves alone, one of each type. Halves are given by their bits: 1, -2, 0.5. */
static const double f64s[SIZE] = {0.1, -1e300, 5e-324};
static const int32_t i32s[SIZE] = {INT32_MIN, -1, INT32_MAX};
static const int64_t i64s[SIZE] = {INT64_MIN, 1ll << 53, INT64_MAX};
static const uint8_t u8s[SIZE] = {0, 128, 255}, bools[SIZE] = {1, 0, 1};
static const uint16_t f16s[SIZE] = {0x3c00, 0xc000, 0x3800}, bf16s[SIZE] = {0x3f80, 0xc000, 0x3f00};
static const struct {
  const char *name;
  int32_t dtype;
  const void *values;
  size_t bytes;
} kept[] = {
    {"kept/f64", TUTTI_DTYPE_F64, f64s, sizeof f64s},     {"kept/i32", TUTTI_DTYPE_I32, i32s, sizeof i32s},
    {"kept/i64", TUTTI_DTYPE_I64, i64s, sizeof i64s},     {"kept/u8", TUTTI_DTYPE_U8, u8s, sizeof u8s},
    {"kept/bool", TUTTI_DTYPE_BOOL, bools, sizeof bools}, {"kept/f16", TUTTI_DTYPE_F16, f16s, sizeof f16s},
    {"kept/bf16", TUTTI_DTYPE_BF16, bf16s, sizeof bf16s},
};
enum { KEPT = sizeof kept / sizeof *kept };

/* --- what is expected --------------------------------------------------------------------------------------------- */

struct state {
  double weight[SIZE], m[SIZE], v[SIZE], average[SIZE], seen;
};

static double rate_of(int step) { return step == 0 ? 0.125 : 0.25; }

/* After so many steps. Corrected for their beginning at 0, m and the root of v are the gradient and its size. */
static struct state state_after(int steps) {
  struct state state = {.weight = {1, 1, 1}, .average = {1, 1, 1}};
  for (int step = 0; step < steps; step++) {
    for (int i = 0; i < SIZE; i++) {
      const double gradient = slopes[i];
      state.weight[i] -= rate_of(step) * (gradient > 0 ? 1 : -1);
      state.m[i] = 0.5 * state.m[i] + 0.5 * gradient;
      state.v[i] = 0.75 * state.v[i] + 0.25 * gradient * gradient;
      state.average[i] = 0.5 * state.average[i] + 0.5 * state.weight[i];
    }
    state.seen += BATCH * step + 0.5 * (BATCH - 1); /* the mean of this batch's numbers */
  }
  return state;
}

static double loss_of(const double weight[SIZE]) {
  double sum = 0;
  for (int i = 0; i < SIZE; i++)
    sum += slopes[i] * weight[i];
  return sum;
}

/* --- the model ---------------------------------------------------------------------------------------------------- */

static int32_t model(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  (void)user;
  const int64_t size = SIZE, last = -1;
  tutti_value weight = tutti_graph_variable(g, "weight", TUTTI_DTYPE_F32, &size, 1, "ones", 0, 1);
  tutti_value seen = tutti_graph_variable(g, "seen", TUTTI_DTYPE_F32, NULL, 0, "zeros", 0, 0);
  for (int i = 0; i < KEPT; i++)
    tutti_graph_variable(g, kept[i].name, kept[i].dtype, &size, 1, "zeros", 0, 0);
  tutti_reduce_sum_attrs over_last = {.axes = &last, .axes_count = 1};
  tutti_value y = tutti_reduce_sum(g, tutti_mul(g, tutti_graph_get_feature(g, "x"), weight), &over_last);
  tutti_graph_set_output(g, "y", y);
  if (mode != TUTTI_MODE_PREDICT) {
    tutti_optimizer_adam_attrs adam = {
        .has_beta1 = 1, .beta1 = 0.5, .has_beta2 = 1, .beta2 = 0.75, .average_decay = 0.5};
    tutti_value number = tutti_reduce_mean(g, tutti_graph_get_label(g, "number"), NULL);
    if (mode == TUTTI_MODE_TRAIN) tutti_graph_assign(g, seen, tutti_add(g, seen, number));
    tutti_graph_set_loss(g, tutti_reduce_mean(g, y, NULL));
    tutti_optimizer_adam(g, tutti_graph_host_scalar(g, "rate", rate_of(0)), &adam);
  }
  return tutti_graph_check(g, err);
}

static tutti_dataset *training_data(void) {
  float x[ROWS][SIZE], number[ROWS];
  for (int i = 0; i < ROWS; i++)
    memcpy(x[i], slopes, sizeof slopes), number[i] = (float)i;
  const int64_t dims[] = {ROWS, SIZE};
  tutti_tensor *xs = make_tensor(TUTTI_DTYPE_F32, 2, dims, x), *numbers = make_vector(TUTTI_DTYPE_F32, ROWS, number);
  tutti_pipeline *pipeline = NULL;
  tutti_dataset *dataset = NULL;
  assert_ok(tutti_pipeline_create(NULL, &pipeline, &err));
  tutti_pipeline_add_slices(pipeline, "x", TUTTI_ROLE_FEATURE, xs);
  tutti_pipeline_add_slices(pipeline, "number", TUTTI_ROLE_LABEL, numbers);
  tutti_pipeline_batch(pipeline, BATCH, NULL);
  assert_ok(tutti_pipeline_build(pipeline, &dataset, &err));
  tutti_pipeline_unref(pipeline), tutti_tensor_unref(xs), tutti_tensor_unref(numbers);
  return dataset;
}

/* `directory` NULL = none. */
static tutti_estimator *new_estimator(const char *directory) {
  char json[600] = "{\"seed\": 7}";
  if (directory != NULL) snprintf(json, sizeof json, "{\"seed\": 7, \"model_dir\": \"%s\"}", directory);
  tutti_options *options = make_options("run", json);
  tutti_estimator *estimator = NULL;
  assert_ok(tutti_estimator_create(NULL, model, NULL, NULL, NULL, options, &estimator, &err));
  tutti_options_unref(options);
  return estimator;
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

static void assert_numbers(tutti_estimator *estimator, const char *name, const double *expected, int count) {
  tutti_tensor *tensor = NULL;
  assert_ok(tutti_estimator_read_variable(estimator, name, &tensor, &err));
  assert_int_equal(tutti_tensor_get_dtype(tensor), TUTTI_DTYPE_F32);
  assert_int_equal(tutti_tensor_get_element_count(tensor), count);
  const float *got = tutti_tensor_get_data(tensor);
  for (int i = 0; i < count; i++) {
    if (fabs(got[i] - expected[i]) <= 1e-5) continue;
    print_error("%s[%d]: got %.9g, expected %.9g\n", name, i, (double)got[i], expected[i]);
    assert_true(0);
  }
  tutti_tensor_unref(tensor);
}

static void assert_kept(tutti_estimator *estimator) {
  for (int i = 0; i < KEPT; i++) {
    tutti_tensor *tensor = NULL;
    assert_ok(tutti_estimator_read_variable(estimator, kept[i].name, &tensor, &err));
    assert_int_equal(tutti_tensor_get_dtype(tensor), kept[i].dtype);
    assert_int_equal(tutti_tensor_get_size_bytes(tensor), kept[i].bytes);
    assert_memory_equal(tutti_tensor_get_data(tensor), kept[i].values, kept[i].bytes);
    tutti_tensor_unref(tensor);
  }
}

/* y of a row of `slopes`. */
static double predicted(const char *path, const char *json) {
  const int64_t dims[] = {1, SIZE};
  const char *name = "x";
  tutti_tensor *x = make_tensor(TUTTI_DTYPE_F32, 2, dims, slopes);
  tutti_options *options = make_options("predictor", json);
  tutti_predictor *predictor = NULL;
  tutti_batch *batch = NULL;
  assert_ok(tutti_predictor_open(NULL, path, NULL, options, &predictor, &err));
  assert_int_equal(tutti_predictor_get_step(predictor), SAVED_STEP);
  assert_ok(tutti_predictor_run(predictor, &name, &x, 1, NULL, &batch, &err));
  const double y = ((const float *)tutti_tensor_get_data(tutti_batch_get_output(batch, "y")))[0];
  tutti_batch_unref(batch), tutti_predictor_unref(predictor), tutti_tensor_unref(x), tutti_options_unref(options);
  return y;
}

static void predict_with(const char *release) {
  char path[1024];
  join_path(path, sizeof path, release, "model");
  const struct state saved = state_after(SAVED_STEP);
  assert_close(predicted(path, "{}"), loss_of(saved.average));
  assert_close(predicted(path, "{\"raw_weights\": true}"), loss_of(saved.weight));
}

static void test_predictions(void **state) {
  (void)state;
  for_each_release("model", predict_with);
}

/* A copy of the checkpoint, from which training may go on: `path` is that of the checkpoint, `directory` is removed by
 * the caller. */
static void copy_model(const char *release, char directory[64], char path[128]) {
  char source[1024];
  make_directory(directory);
  join_path(source, sizeof source, release, "model/checkpoint-3");
  join_path(path, 128, directory, "checkpoint-3");
  copy_folder(source, path);
}

static void train_on(const char *release) {
  char directory[64], path[128];
  copy_model(release, directory, path);
  const struct state saved = state_after(SAVED_STEP), next = state_after(SAVED_STEP + 1);
  tutti_dataset *dataset = training_data();
  tutti_estimator *estimator = new_estimator(directory);
  assert_int_equal(tutti_estimator_get_global_step(estimator), SAVED_STEP);
  assert_numbers(estimator, "weight", saved.weight, SIZE);
  assert_numbers(estimator, "seen", &saved.seen, 1);
  assert_kept(estimator);
  const struct outcome outcome = train(estimator, dataset, "{\"steps\": 1}");
  assert_int_equal(outcome.step, SAVED_STEP + 1);
  assert_close(outcome.loss, loss_of(saved.weight));
  assert_numbers(estimator, "weight", next.weight, SIZE);
  assert_numbers(estimator, "weight/m", next.m, SIZE);
  assert_numbers(estimator, "weight/v", next.v, SIZE);
  assert_numbers(estimator, "weight/average", next.average, SIZE);
  assert_numbers(estimator, "seen", &next.seen, 1); /* the input went on with the batch after those it had given */
  assert_kept(estimator);
  tutti_estimator_unref(estimator), tutti_dataset_unref(dataset);
  remove_directory(directory);
}

static void test_training_goes_on(void **state) {
  (void)state;
  for_each_release("model", train_on);
}

/* --- files of newer releases -------------------------------------------------------------------------------------- */

/* Puts the right checksum under a manifest that was changed: of the text of the value of "manifest". */
static void seal_manifest(const char *path) {
  static const char head[] = "{\"manifest\": ", middle[] = ",\n \"crc32c\": \"";
  size_t size;
  char *text = read_bytes(path, &size), *end = strstr(text, middle);
  assert_non_null(end);
  char digits[9];
  const char *const begin = text + strlen(head);
  snprintf(digits, sizeof digits, "%08x", (unsigned)checksum_of(begin, (size_t)(end - begin)));
  memcpy(end + strlen(middle), digits, 8);
  write_bytes(path, text, size);
  free(text);
}

/* Opening must fail, and say which file, what it is and what could be read. */
static void assert_refused(int32_t code, const char *path, const char *file, const char *version, const char *known) {
  tutti_predictor *predictor = NULL;
  assert_error(code, file, tutti_predictor_open(NULL, path, NULL, NULL, &predictor, &err));
  assert_error(code, version, tutti_predictor_open(NULL, path, NULL, NULL, &predictor, &err));
  assert_error(code, known, tutti_predictor_open(NULL, path, NULL, NULL, &predictor, &err));
  assert_null(predictor);
}

static void meet_newer_manifest(const char *release) {
  char directory[64], path[128], manifest[256], older[128];
  copy_model(release, directory, path);
  join_path(older, sizeof older, directory, "checkpoint-1");
  copy_folder(path, older);
  join_path(manifest, sizeof manifest, older, "manifest.json");
  replace_in_file(manifest, "\"step\": 3", "\"step\": 1");
  seal_manifest(manifest);
  join_path(manifest, sizeof manifest, path, "manifest.json");
  replace_in_file(manifest, "\"format_version\": 1", "\"format_version\": 2");
  seal_manifest(manifest);
  assert_refused(TUTTI_FAILED_PRECONDITION, path, manifest, "version 2", "reads up to 1");

  /* It is not damaged: the good one before it does not stand in, so nothing is trained again and written over it. */
  assert_refused(TUTTI_FAILED_PRECONDITION, directory, manifest, "version 2", "reads up to 1");
  tutti_dataset *dataset = training_data();
  tutti_estimator *estimator = new_estimator(directory);
  assert_error(TUTTI_FAILED_PRECONDITION, "version 2",
               tutti_estimator_train(estimator, dataset, NULL, NULL, NULL, NULL, &err));
  tutti_estimator_unref(estimator), tutti_dataset_unref(dataset);
  remove_directory(directory);
}

/* The checksum of a file as the manifest has it. */
static void write_checksum(char digits[16], const char *path) {
  size_t size;
  char *text = read_bytes(path, &size);
  snprintf(digits, 16, "%08x", (unsigned)checksum_of(text, size));
  free(text);
}

/* Replaces texts of graph.json, and its checksum in the manifest. */
static void change_graph(const char *path, const char *const changes[4]) {
  char graph[256], manifest[256], before[16], after[16];
  join_path(graph, sizeof graph, path, "graph.json");
  join_path(manifest, sizeof manifest, path, "manifest.json");
  write_checksum(before, graph);
  for (int i = 0; i < 4 && changes[i] != NULL; i += 2)
    replace_in_file(graph, changes[i], changes[i + 1]);
  write_checksum(after, graph);
  replace_in_file(manifest, before, after);
  seal_manifest(manifest);
}

static void meet_newer_graph(const char *release) {
  static const struct {
    const char *changes[4], *version, *known;
  } cases[] = {
      {{"tutti-model\",\"version\":1", "tutti-model\",\"version\":2"}, "model.version: is 2", "reads version 1"},
      {{"tutti-graph\",\"version\":1", "tutti-graph\",\"version\":2"}, "graph.version: is 2", "reads version 1"},
      /* The version is told, not what else is strange in it. */
      {{"tutti-model\",\"version\":1", "tutti-model\",\"version\":3", "\"host_scalars\"", "\"host_vectors\""},
       "model.version: is 3",
       "reads version 1"},
      {{"tutti-graph\",\"version\":1", "tutti-graph\",\"version\":3", "\"values\"", "\"volume\""},
       "graph.version: is 3",
       "reads version 1"},
      /* An op that a newer release has. */
      {{"\"op\":\"mul\"", "\"op\":\"mux\""}, "unknown op 'mux'", "did you mean"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char directory[64], path[128], graph[256];
    copy_model(release, directory, path);
    join_path(graph, sizeof graph, path, "graph.json");
    change_graph(path, cases[i].changes);
    assert_refused(TUTTI_UNIMPLEMENTED, path, graph, cases[i].version, cases[i].known);
    remove_directory(directory);
  }
}

static void test_newer_releases(void **state) {
  (void)state;
  for_each_release("model", meet_newer_manifest);
  for_each_release("model", meet_newer_graph);
}

/* --- writing ------------------------------------------------------------------------------------------------------ */

static void write_model(void **state) {
  char path[1024];
  join_path(path, sizeof path, *state, "model");
  tutti_dataset *dataset = training_data();
  tutti_estimator *estimator = new_estimator(NULL);
  tutti_session *session = NULL;
  assert_ok(tutti_estimator_initialize(estimator, dataset, NULL, NULL, &err));
  for (int i = 0; i < KEPT; i++) {
    tutti_tensor *values = make_vector(kept[i].dtype, SIZE, kept[i].values);
    assert_ok(tutti_estimator_write_variable(estimator, kept[i].name, values, &err));
    tutti_tensor_unref(values);
  }
  assert_ok(tutti_session_open(estimator, dataset, NULL, NULL, NULL, &session, &err));
  assert_ok(tutti_session_run(session, 1, NULL, &err));
  assert_ok(tutti_session_set_scalar(session, "rate", rate_of(1), &err));
  assert_ok(tutti_session_run(session, SAVED_STEP - 1, NULL, &err));
  assert_ok(tutti_session_close(session, NULL, &err));
  tutti_session_unref(session);
  assert_ok(tutti_estimator_save(estimator, path, NULL, &err));
  tutti_estimator_unref(estimator), tutti_dataset_unref(dataset);
}

int main(int argc, char **argv) {
  static const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_predictions),
      cmocka_unit_test(test_training_goes_on),
      cmocka_unit_test(test_newer_releases),
  };
  return run_or_write(argc, argv, tests, sizeof tests / sizeof *tests, write_model);
}
