/* SPDX-License-Identifier: Apache-2.0
 * Checkpoints that releases have written, kept in tests/testdata/checkpoint/<release>/trained: every later library must
 * predict the same from them, and go on training from where they are.
 *
 *   released_checkpoint_test                      the tests
 *   released_checkpoint_test write DIRECTORY      writes one for a new release: keep checkpoint-6 and expected.txt
 *
 * The model has convolution, batch normalization, dropout and Adam: weights, running statistics and slots. */
#define _DEFAULT_SOURCE
#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "estimator_fixtures.h"

enum { ROWS = 5, STEPS = 6, STEPS_AFTER = 2, NUMBERS = ROWS * 2 + 1 };

static int32_t model(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  (void)user;
  int64_t image[] = {-1, 2, 2, 1};
  tutti_layer_dense_attrs relu = {.activation = TUTTI_LAYER_DENSE_ACTIVATION_RELU};
  tutti_value x = tutti_reshape(g, tutti_graph_get_feature(g, "x"), image, 4);
  x = tutti_layer_batch_norm(g, tutti_layer_conv2d(g, x, 3, 2, NULL), NULL);
  x = tutti_layer_dense(g, tutti_layer_flatten(g, x), 4, &relu);
  if (mode == TUTTI_MODE_TRAIN) x = tutti_layer_dropout(g, x, 0.1);
  tutti_value logits = tutti_layer_dense(g, x, 2, NULL);
  tutti_graph_set_output(g, "logits", logits);
  if (mode != TUTTI_MODE_PREDICT) {
    tutti_graph_set_loss(g, tutti_loss_sparse_softmax_cross_entropy(g, logits, tutti_graph_get_label(g, "y"), NULL));
    tutti_optimizer_adam(g, tutti_schedule_constant(g, 1e-2), NULL);
  }
  return tutti_graph_check(g, err);
}

static tutti_estimator *estimator_in(const char *directory) {
  char run[512];
  snprintf(run, sizeof run, "{\"seed\": 11, \"determinism\": \"repeatable\", \"model_dir\": \"%s\"}", directory);
  tutti_options *options = make_options("run", run);
  tutti_estimator *estimator = NULL;
  assert_ok(tutti_estimator_create(NULL, model, NULL, NULL, NULL, options, &estimator, &err));
  tutti_options_unref(options);
  return estimator;
}

/* Four steps make an epoch: the checkpoint is in the middle of the second. */
static tutti_dataset *training_data(void) {
  tutti_dataset *rows = toy_dataset(32, 8, 0);
  tutti_pipeline *pipeline = NULL;
  tutti_dataset *dataset = NULL;
  assert_ok(tutti_pipeline_create(NULL, &pipeline, &err));
  tutti_pipeline_add_dataset(pipeline, rows);
  tutti_pipeline_shuffle(pipeline, 3, NULL);
  assert_ok(tutti_pipeline_build(pipeline, &dataset, &err));
  tutti_pipeline_unref(pipeline);
  tutti_dataset_unref(rows);
  return dataset;
}

static void predict(const char *directory, double numbers[ROWS * 2]) {
  tutti_predictor *predictor = NULL;
  tutti_batch *batch = NULL;
  float x[ROWS][4];
  int32_t label;
  for (int i = 0; i < ROWS; i++)
    toy_row(1000 + i, x[i], &label);
  int64_t dims[] = {ROWS, 4};
  tutti_tensor *rows = make_tensor(TUTTI_DTYPE_F32, 2, dims, x);
  const char *name = "x";
  assert_ok(tutti_predictor_open(NULL, directory, NULL, NULL, &predictor, &err));
  assert_int_equal(tutti_predictor_get_step(predictor), STEPS);
  assert_ok(tutti_predictor_run(predictor, &name, &rows, 1, NULL, &batch, &err));
  const float *logits = tutti_tensor_get_data(tutti_batch_get_output(batch, "logits"));
  for (int i = 0; i < ROWS * 2; i++)
    numbers[i] = logits[i];
  tutti_batch_unref(batch), tutti_predictor_unref(predictor), tutti_tensor_unref(rows);
}

/* Goes on for two steps; the loss of the last one. */
static double train_on(const char *directory) {
  tutti_dataset *dataset = training_data();
  tutti_estimator *estimator = estimator_in(directory);
  struct outcome outcome = train(estimator, dataset, "{\"steps\": 2}");
  assert_int_equal(outcome.step, STEPS + STEPS_AFTER);
  tutti_estimator_unref(estimator);
  tutti_dataset_unref(dataset);
  return outcome.loss;
}

static void copy_file(const char *from, const char *to) {
  char buffer[4096];
  FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
  assert_non_null(in);
  assert_non_null(out);
  for (size_t count = 0; (count = fread(buffer, 1, sizeof buffer, in)) > 0;)
    assert_int_equal(fwrite(buffer, 1, count, out), count);
  fclose(in);
  assert_int_equal(fclose(out), 0);
}

/* Copies the checkpoint into a directory in which training may go on. */
static void copy_checkpoint(const char *from, const char *to) {
  char source[512], target[512], file_from[1024], file_to[1024];
  join_path(source, sizeof source, from, "checkpoint-6");
  join_path(target, sizeof target, to, "checkpoint-6");
  assert_int_equal(mkdir(target, 0755), 0);
  DIR *entries = opendir(source);
  assert_non_null(entries);
  for (struct dirent *entry = readdir(entries); entry != NULL; entry = readdir(entries)) {
    if (entry->d_name[0] == '.') continue;
    join_path(file_from, sizeof file_from, source, entry->d_name);
    join_path(file_to, sizeof file_to, target, entry->d_name);
    copy_file(file_from, file_to);
  }
  closedir(entries);
}

static void check_close(const char *what, int index, double got, double expected) {
  if (fabs(got - expected) <= 1e-4 * fmax(1, fabs(expected))) return;
  print_error("%s, number %d: got %.9g, expected %.9g\n", what, index, got, expected);
  assert_true(0);
}

static void check_release(const char *directory) {
  double expected[NUMBERS], got[ROWS * 2];
  char path[512], copy[64];
  join_path(path, sizeof path, directory, "expected.txt");
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  for (int i = 0; i < NUMBERS; i++)
    assert_int_equal(fscanf(file, "%lf", &expected[i]), 1);
  fclose(file);
  predict(directory, got);
  for (int i = 0; i < ROWS * 2; i++)
    check_close(directory, i, got[i], expected[i]);
  make_directory(copy);
  copy_checkpoint(directory, copy);
  check_close(directory, ROWS * 2, train_on(copy), expected[ROWS * 2]);
  remove_directory(copy);
}

static void test_every_release(void **state) {
  (void)state;
  const char *testdata = getenv("TUTTI_TESTDATA");
  if (testdata == NULL) test_skip();
  char folder[512], directory[1024];
  join_path(folder, sizeof folder, testdata, "checkpoint");
  DIR *releases = opendir(folder);
  assert_non_null(releases);
  int count = 0;
  for (struct dirent *entry = readdir(releases); entry != NULL; entry = readdir(releases)) {
    struct stat status;
    char name[300];
    snprintf(name, sizeof name, "%s/trained", entry->d_name);
    join_path(directory, sizeof directory, folder, name);
    if (entry->d_name[0] == '.' || stat(directory, &status) != 0) continue;
    check_release(directory);
    count++;
  }
  closedir(releases);
  assert_true(count >= 1);
}

static void write_release(void **state) {
  const char *directory = *state;
  char path[512], copy[64];
  double numbers[NUMBERS];
  tutti_dataset *dataset = training_data();
  tutti_estimator *estimator = estimator_in(directory);
  assert_int_equal(train(estimator, dataset, "{\"steps\": 6}").step, STEPS);
  tutti_estimator_unref(estimator);
  tutti_dataset_unref(dataset);
  predict(directory, numbers);
  make_directory(copy);
  copy_checkpoint(directory, copy);
  numbers[ROWS * 2] = train_on(copy);
  remove_directory(copy);
  join_path(path, sizeof path, directory, "expected.txt");
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  for (int i = 0; i < NUMBERS; i++)
    fprintf(file, "%.9g\n", numbers[i]);
  fclose(file);
}

int main(int argc, char **argv) {
  if (argc == 3 && strcmp(argv[1], "write") == 0) {
    const struct CMUnitTest writing[] = {cmocka_unit_test_prestate(write_release, argv[2])};
    return cmocka_run_group_tests(writing, NULL, NULL);
  }
  static const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_release)};
  return cmocka_run_group_tests(tests, remember_live_objects, assert_nothing_left);
}
