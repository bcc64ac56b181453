/* SPDX-License-Identifier: Apache-2.0
 * What people get wrong most often, and whether the message names the thing. One row for each mistake.
 *
 *   bad_input_test                    the tests
 *   bad_input_test full-disk DIR      a program whose files may not grow: what a full disk looks like */
#define _DEFAULT_SOURCE
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "estimator_fixtures.h"

static const char *own_path;

/* --- models ------------------------------------------------------------------------------------------------------- */

enum mistake {
  WRONG_DTYPE,
  WRONG_RANK,
  TOO_FEW_INPUTS,
  NULL_INPUTS,
  NO_SUCH_CHOICE,
  INTEGERS,
  MIXED_ROWS,
  VECTOR_LOSS,
  NO_PREDICTIONS,
  NAN_LOSS,
  NONE
};

static int32_t model(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  enum mistake mistake = *(enum mistake *)user;
  tutti_value x = tutti_graph_get_feature(g, "x");
  tutti_graph_push_scope(g, "tower");
  tutti_value logits = tutti_layer_dense(g, x, 2, NULL);
  if (mistake == WRONG_DTYPE) logits = tutti_add(g, logits, tutti_graph_constant(g, TUTTI_DTYPE_I32, 1));
  if (mistake == WRONG_RANK) logits = tutti_layer_conv2d(g, logits, 8, 3, NULL);
  if (mistake == TOO_FEW_INPUTS) logits = tutti_concat(g, NULL, 0, NULL);
  if (mistake == NULL_INPUTS) logits = tutti_concat(g, NULL, 2, NULL);
  if (mistake == NO_SUCH_CHOICE) {
    tutti_layer_dense_attrs attrs = {.activation = 77};
    logits = tutti_layer_dense(g, x, 2, &attrs);
  }
  if (mistake == INTEGERS) logits = tutti_layer_dense(g, tutti_cast(g, x, TUTTI_DTYPE_I32), 2, NULL);
  if (mistake == MIXED_ROWS) {
    tutti_softmax_attrs over_rows = {.has_axis = 1, .axis = 0};
    logits = tutti_softmax(g, logits, &over_rows);
  }
  tutti_graph_pop_scope(g);
  if (mistake != NO_PREDICTIONS) tutti_graph_set_output(g, "logits", logits);
  if (mode == TUTTI_MODE_PREDICT) return tutti_graph_check(g, err);
  tutti_value losses = tutti_sparse_softmax_cross_entropy(g, logits, tutti_graph_get_label(g, "y"), NULL);
  tutti_value loss = mistake == VECTOR_LOSS ? losses : tutti_reduce_mean(g, losses, NULL);
  if (mistake == NAN_LOSS) loss = tutti_mul(g, loss, tutti_graph_host_scalar(g, "nan", (double)NAN));
  tutti_graph_set_loss(g, loss);
  tutti_optimizer_sgd(g, tutti_schedule_constant(g, 0.1), NULL);
  return tutti_graph_check(g, err);
}

/* Trains for two steps; where that works, predicts. */
static int32_t try_model(enum mistake mistake, int64_t replicas, const char *run, tutti_error **err) {
  tutti_options *devices = make_options("context", "{\"logical_devices\": 3}");
  tutti_options *options = make_options("run", run != NULL ? run : "{}");
  tutti_options *steps = make_options("train", "{\"steps\": 2}");
  tutti_context *context = NULL;
  tutti_strategy *strategy = NULL;
  tutti_estimator *estimator = NULL;
  tutti_predictor *predictor = NULL;
  tutti_pipeline *pipeline = NULL;
  tutti_dataset *dataset = NULL;
  float x[8][4];
  int32_t y[8];
  for (int i = 0; i < 8; i++)
    toy_row(i, x[i], &y[i]);
  int64_t dims[] = {8, 4};
  tutti_tensor *xs = make_tensor(TUTTI_DTYPE_F32, 2, dims, x), *ys = make_vector(TUTTI_DTYPE_I32, 8, y);
  assert_ok(tutti_context_create(devices, &context, &err));
  const char *names[3];
  for (int64_t i = 0; i < replicas; i++)
    names[i] = tutti_context_get_device_name(context, i);
  assert_ok(tutti_strategy_create_mirrored(context, names, replicas, &strategy, &err));
  assert_ok(tutti_pipeline_create(context, &pipeline, &err));
  tutti_pipeline_add_slices(pipeline, "x", TUTTI_ROLE_FEATURE, xs);
  tutti_pipeline_add_slices(pipeline, "y", TUTTI_ROLE_LABEL, ys);
  tutti_pipeline_batch(pipeline, 4, NULL);
  assert_ok(tutti_pipeline_build(pipeline, &dataset, &err));
  assert_ok(tutti_estimator_create(context, model, &mistake, NULL, strategy, options, &estimator, &err));
  int32_t code = tutti_estimator_train(estimator, dataset, steps, NULL, NULL, NULL, err);
  if (code == TUTTI_OK) code = tutti_predictor_from_estimator(estimator, NULL, &predictor, err);
  tutti_predictor_unref(predictor), tutti_estimator_unref(estimator), tutti_dataset_unref(dataset);
  tutti_pipeline_unref(pipeline), tutti_strategy_unref(strategy), tutti_context_unref(context);
  tutti_tensor_unref(xs), tutti_tensor_unref(ys);
  tutti_options_unref(devices), tutti_options_unref(options), tutti_options_unref(steps);
  return code;
}

static int32_t wrong_dtype(tutti_error **err) { return try_model(WRONG_DTYPE, 1, NULL, err); }
static int32_t wrong_rank(tutti_error **err) { return try_model(WRONG_RANK, 1, NULL, err); }
static int32_t too_few_inputs(tutti_error **err) { return try_model(TOO_FEW_INPUTS, 1, NULL, err); }
static int32_t null_inputs(tutti_error **err) { return try_model(NULL_INPUTS, 1, NULL, err); }
static int32_t no_such_choice(tutti_error **err) { return try_model(NO_SUCH_CHOICE, 1, NULL, err); }
static int32_t integers(tutti_error **err) { return try_model(INTEGERS, 1, NULL, err); }
static int32_t mixed_rows(tutti_error **err) { return try_model(MIXED_ROWS, 3, NULL, err); }
static int32_t vector_loss(tutti_error **err) { return try_model(VECTOR_LOSS, 1, NULL, err); }
static int32_t no_predictions(tutti_error **err) { return try_model(NO_PREDICTIONS, 1, NULL, err); }
static int32_t nan_loss(tutti_error **err) { return try_model(NAN_LOSS, 2, NULL, err); }

/* --- data --------------------------------------------------------------------------------------------------------- */

static int32_t slices_of_different_length(tutti_error **err) {
  static const float numbers[] = {1, 2, 3, 4};
  tutti_tensor *four = make_vector(TUTTI_DTYPE_F32, 4, numbers), *three = make_vector(TUTTI_DTYPE_F32, 3, numbers);
  tutti_pipeline *pipeline = NULL;
  tutti_dataset *dataset = NULL;
  assert_ok(tutti_pipeline_create(NULL, &pipeline, &err));
  tutti_pipeline_add_slices(pipeline, "image", TUTTI_ROLE_FEATURE, four);
  tutti_pipeline_add_slices(pipeline, "label", TUTTI_ROLE_LABEL, three);
  int32_t code = tutti_pipeline_build(pipeline, &dataset, err);
  tutti_pipeline_unref(pipeline), tutti_tensor_unref(four), tutti_tensor_unref(three);
  return code;
}

static int32_t corrupt_idx(tutti_error **err) {
  char directory[64], path[128];
  make_directory(directory);
  join_path(path, sizeof path, directory, "train-labels");
  static const unsigned char bytes[] = {0, 0, 0x08, 1, 0, 0, 0, 2, 1}; /* says two labels, has one */
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(bytes, 1, sizeof bytes, file), sizeof bytes);
  fclose(file);
  tutti_pipeline *pipeline = NULL;
  tutti_dataset *dataset = NULL;
  assert_ok(tutti_pipeline_create(NULL, &pipeline, &err));
  tutti_pipeline_add_idx(pipeline, "label", TUTTI_ROLE_LABEL, path);
  int32_t code = tutti_pipeline_build(pipeline, &dataset, err);
  tutti_pipeline_unref(pipeline);
  remove_directory(directory);
  return code;
}

static int32_t label_out_of_range(tutti_error **err) {
  static float x[20][4];
  static int32_t y[20];
  y[13] = 9; /* row 5 of the second batch */
  int64_t dims[] = {20, 4};
  tutti_tensor *xs = make_tensor(TUTTI_DTYPE_F32, 2, dims, x), *ys = make_vector(TUTTI_DTYPE_I32, 20, y);
  tutti_pipeline *pipeline = NULL;
  tutti_dataset *dataset = NULL;
  assert_ok(tutti_pipeline_create(NULL, &pipeline, &err));
  tutti_pipeline_add_slices(pipeline, "x", TUTTI_ROLE_FEATURE, xs);
  tutti_pipeline_add_slices(pipeline, "y", TUTTI_ROLE_LABEL, ys);
  tutti_pipeline_batch(pipeline, 8, NULL);
  assert_ok(tutti_pipeline_build(pipeline, &dataset, &err));
  tutti_estimator *estimator = toy_estimator(NULL);
  int32_t code = tutti_estimator_train(estimator, dataset, NULL, NULL, NULL, NULL, err);
  tutti_estimator_unref(estimator), tutti_dataset_unref(dataset), tutti_pipeline_unref(pipeline);
  tutti_tensor_unref(xs), tutti_tensor_unref(ys);
  return code;
}

/* NULL for an array that is said to have items. */
static int32_t null_paths(tutti_error **err) {
  tutti_pipeline *pipeline = NULL;
  tutti_dataset *dataset = NULL;
  assert_ok(tutti_pipeline_create(NULL, &pipeline, &err));
  tutti_source_csv(pipeline, NULL, 1, NULL);
  int32_t code = tutti_pipeline_build(pipeline, &dataset, err);
  tutti_pipeline_unref(pipeline);
  return code;
}

static int32_t null_columns(tutti_error **err) {
  const char *path = "some.csv";
  const tutti_source_csv_attrs attrs = {.columns_count = 2};
  tutti_pipeline *pipeline = NULL;
  tutti_dataset *dataset = NULL;
  assert_ok(tutti_pipeline_create(NULL, &pipeline, &err));
  tutti_source_csv(pipeline, &path, 1, &attrs);
  int32_t code = tutti_pipeline_build(pipeline, &dataset, err);
  tutti_pipeline_unref(pipeline);
  return code;
}

static int32_t null_datasets(tutti_error **err) {
  tutti_pipeline *pipeline = NULL;
  tutti_dataset *dataset = NULL;
  assert_ok(tutti_pipeline_create(NULL, &pipeline, &err));
  tutti_source_range(pipeline, 3, NULL);
  tutti_pipeline_interleave(pipeline, NULL, 1, NULL);
  int32_t code = tutti_pipeline_build(pipeline, &dataset, err);
  tutti_pipeline_unref(pipeline);
  return code;
}

/* --- options and files -------------------------------------------------------------------------------------------- */

static int32_t unknown_option(tutti_error **err) {
  tutti_options *options = NULL;
  tutti_estimator *estimator = NULL;
  assert_ok(tutti_options_create("run", &options, &err));
  tutti_options_set_i64(options, "save_checkpoint_steps", 10);
  int32_t code = tutti_estimator_create(NULL, toy_model, NULL, NULL, NULL, options, &estimator, err);
  tutti_options_unref(options);
  return code;
}

static int32_t unwritable_model_dir(tutti_error **err) {
  char directory[64], file[128], run[256];
  make_directory(directory);
  join_path(file, sizeof file, directory, "occupied"); /* a file where a directory is wanted: holds for root too */
  FILE *out = fopen(file, "w");
  assert_non_null(out);
  fclose(out);
  snprintf(run, sizeof run, "{\"model_dir\": \"%s/models\"}", file);
  int32_t code = try_model(NONE, 1, run, err);
  remove_directory(directory);
  return code;
}

static const struct bad_input {
  const char *name;
  int32_t (*try_it)(tutti_error **err);
  int32_t code;
  const char *named[3];
} bad_inputs[] = {
    {"slices of different length", slices_of_different_length, TUTTI_INVALID_ARGUMENT, {"'label'", "3", "4"}},
    {"wrong dtype", wrong_dtype, TUTTI_INVALID_ARGUMENT, {"tower/add", "f32", "i32"}},
    {"wrong rank", wrong_rank, TUTTI_INVALID_ARGUMENT, {"tower/conv2d", "[batch, 2]", "expected images"}},
    {"too few inputs", too_few_inputs, TUTTI_INVALID_ARGUMENT, {"tower/concat", "input 'inputs' is missing", ""}},
    {"NULL for inputs",
     null_inputs,
     TUTTI_INVALID_ARGUMENT,
     {"'inputs': expected an array, got NULL with a count", "", ""}},
    {"no such choice",
     no_such_choice,
     TUTTI_INVALID_ARGUMENT,
     {"layer_dense: attribute 'activation' is 77, expected one of 1 (none), 2 (relu), ", "", ""}},
    {"a layer of integers",
     integers,
     TUTTI_INVALID_ARGUMENT,
     {"layer_dense: input 'x' is i32, expected floating", "", ""}},
    {"NULL for paths", null_paths, TUTTI_INVALID_ARGUMENT, {"parameter 'paths': argument 'value' is NULL", "", ""}},
    {"NULL for columns",
     null_columns,
     TUTTI_INVALID_ARGUMENT,
     {"parameter 'columns': argument 'value' is NULL", "", ""}},
    {"NULL for datasets",
     null_datasets,
     TUTTI_INVALID_ARGUMENT,
     {"argument 'others': expected a dataset handle, got NULL", "", ""}},
    {"no meaning for a global batch",
     mixed_rows,
     TUTTI_INVALID_ARGUMENT,
     {"tower/softmax", "rows of the batch", "replica"}},
    {"loss is not a scalar", vector_loss, TUTTI_INVALID_ARGUMENT, {"loss", "[batch]", "scalar"}},
    {"no predictions", no_predictions, TUTTI_INVALID_ARGUMENT, {"predictions", "outputs", ""}},
    {"NaN loss", nan_loss, TUTTI_OUT_OF_RANGE, {"loss", "not finite", "step 1"}},
    {"corrupt IDX", corrupt_idx, TUTTI_DATA_LOSS, {"train-labels", "corrupt IDX", ""}},
    {"label out of range", label_out_of_range, TUTTI_INVALID_ARGUMENT, {"row 5", "9", "label"}},
    {"unknown option",
     unknown_option,
     TUTTI_INVALID_ARGUMENT,
     {"'save_checkpoint_steps'", "'save_checkpoints_steps'", ""}},
    {"unwritable model_dir",
     unwritable_model_dir,
     TUTTI_FAILED_PRECONDITION,
     {"occupied' is a file, expected a directory", "", ""}},
};

static void test_messages_name_the_thing(void **state) {
  (void)state;
  int failures = 0;
  for (size_t i = 0; i < sizeof bad_inputs / sizeof *bad_inputs; i++) {
    const struct bad_input *bad = &bad_inputs[i];
    tutti_error *error = NULL;
    int32_t code = bad->try_it(&error);
    const char *text = error != NULL ? tutti_error_get_text(error) : "no error";
    int right = code == bad->code && error != NULL;
    for (int n = 0; n < 3; n++)
      right &= strstr(text, bad->named[n]) != NULL;
    print_message("%s%s: %s\n", right ? "" : "WRONG ", bad->name, text);
    failures += !right;
    tutti_error_unref(error);
  }
  assert_int_equal(failures, 0);
}

/* --- full disk ---------------------------------------------------------------------------------------------------- */

/* Files may have 64 bytes: writing a checkpoint fails, the message names the file, and nothing half-written is left. */
static int train_on_a_full_disk(const char *directory) {
  signal(SIGXFSZ, SIG_IGN);
  char run[160];
  snprintf(run, sizeof run, "{\"model_dir\": \"%s\"}", directory);
  tutti_dataset *dataset = toy_dataset(16, 8, 1);
  tutti_estimator *estimator = toy_estimator(run);
  struct rlimit limit = {64, 64};
  if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return 2;
  tutti_error *error = NULL;
  int32_t code = tutti_estimator_train(estimator, dataset, NULL, NULL, NULL, NULL, &error);
  const char *text = tutti_error_get_text(error);
  int right = code != TUTTI_OK && strstr(text, directory) != NULL && strstr(text, "File too large") != NULL;
  if (!right) fprintf(stderr, "code %d: %s\n", (int)code, text);
  tutti_error_unref(error), tutti_estimator_unref(estimator), tutti_dataset_unref(dataset);
  return right ? 0 : 1;
}

static void test_full_disk(void **state) {
  (void)state;
  char directory[64], path[128];
  struct stat status;
  make_directory(directory);
  fflush(NULL);
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    execl(own_path, own_path, "full-disk", directory, (char *)NULL);
    _exit(9);
  }
  int ended = 0;
  assert_int_equal(waitpid(child, &ended, 0), child);
  assert_true(WIFEXITED(ended));
  assert_int_equal(WEXITSTATUS(ended), 0);
  join_path(path, sizeof path, directory, "checkpoint-2");
  assert_int_not_equal(stat(path, &status), 0);
  remove_directory(directory);
}

int main(int argc, char **argv) {
  if (argc == 3 && strcmp(argv[1], "full-disk") == 0) return train_on_a_full_disk(argv[2]);
  own_path = argv[0];
  static const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_messages_name_the_thing),
      cmocka_unit_test(test_full_disk),
  };
  return cmocka_run_group_tests(tests, remember_live_objects, assert_nothing_left);
}
