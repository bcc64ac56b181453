/* SPDX-License-Identifier: Apache-2.0
 * What a host does with the library, in small: for run_faults.py, which lets one system call of it fail
 * (fault_injector.c).
 *
 *   faulted_program pipeline FOLDER              reads a CSV file of FOLDER through maps, shuffle and batch
 *   faulted_program train FOLDER [BACKEND]       trains, evaluates and predicts
 *   faulted_program checkpoint FOLDER [BACKEND]  trains with checkpoints in FOLDER/model, resumes, predicts from them
 *
 * Prints results, or the error of the first call that gives one. Status: 0 all worked, 3 an error, 4 objects were left
 * behind, 5 a call failed without an error, 2 wrong arguments. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/tutti.h>

enum { ROWS = 24, FEATURES = 3, BATCH = 5 };
enum { WRONG = 2, ERROR = 3, LEFT = 4, SILENT = 5 };

/* What is printed at the end, when nothing fails any more. */
static char said[1 << 16];
static size_t length;

#define SAY(...) \
  (length += (size_t)snprintf(said + length, length < sizeof said ? sizeof said - length : 0, __VA_ARGS__))

struct run {
  const char *folder, *backend;
  tutti_context *context;
  tutti_dataset *dataset;
  tutti_strategy *strategy;
  tutti_estimator *estimator;
  tutti_predictor *predictor;
  tutti_error *err;
};

#define TRY(call)                        \
  do {                                   \
    const int32_t code_ = (call);        \
    if (code_ != TUTTI_OK) return code_; \
  } while (0)

static int32_t double_x(tutti_graph *g, void *user, tutti_error **err) {
  (void)user;
  const tutti_value x = tutti_graph_get_feature(g, "x");
  tutti_graph_set_output(g, "x", tutti_add(g, x, x));
  return tutti_graph_check(g, err);
}

static int32_t model(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  (void)user;
  tutti_layer_dense_attrs hidden = {.activation = TUTTI_LAYER_DENSE_ACTIVATION_RELU};
  tutti_value x = tutti_layer_dense(g, tutti_graph_get_feature(g, "x"), 4, &hidden);
  x = tutti_layer_dense(g, tutti_layer_batch_norm(g, x, NULL), 1, NULL);
  tutti_graph_set_output(g, "y", x);
  if (mode != TUTTI_MODE_PREDICT) {
    const tutti_value y = tutti_graph_get_label(g, "y");
    tutti_graph_set_loss(g, tutti_loss_mean_squared_error(g, x, y, NULL));
    tutti_graph_add_metric(g, "error", tutti_reduce_mean(g, tutti_abs(g, tutti_sub(g, x, y)), NULL));
    tutti_optimizer_adam(g, tutti_schedule_constant(g, 0.01), NULL);
  }
  return tutti_graph_check(g, err);
}

static int32_t make_options(const char *schema, const char *json, tutti_options **out, struct run *run) {
  TRY(tutti_options_create(schema, out, &run->err));
  tutti_options_set_json(*out, json);
  return TUTTI_OK;
}

/* An older checkpoint may stand in for one that cannot be read, but never without a word. */
static void note_line(void *user, int32_t severity, const char *text) {
  (void)user, (void)severity;
  if (strstr(text, "falling back") != NULL) SAY("told: %.400s\n", text);
}

static int32_t open_context(struct run *run) {
  tutti_options *options = NULL;
  char json[4200];
  snprintf(json, sizeof json, "{\"backend\": \"%s\", \"logical_devices\": 2}", run->backend);
  int32_t code = make_options("context", json, &options, run);
  if (code == TUTTI_OK) code = tutti_context_create(options, &run->context, &run->err);
  tutti_options_unref(options);
  if (code != TUTTI_OK) return code;
  return tutti_context_set_log(run->context, note_line, NULL, NULL, TUTTI_LOG_WARNING, &run->err);
}

static int32_t add_slices(tutti_pipeline *pipeline, struct run *run) {
  float x[ROWS][FEATURES], y[ROWS][1];
  for (int i = 0; i < ROWS; i++) {
    for (int j = 0; j < FEATURES; j++)
      x[i][j] = (float)((i * 7 + j * 3) % 11) / 11;
    y[i][0] = x[i][0] - x[i][1] + 2 * x[i][2];
  }
  tutti_tensor *features = NULL, *labels = NULL;
  int32_t code =
      tutti_tensor_from_data(TUTTI_DTYPE_F32, (int64_t[]){ROWS, FEATURES}, 2, x, sizeof x, &features, &run->err);
  if (code == TUTTI_OK)
    code = tutti_tensor_from_data(TUTTI_DTYPE_F32, (int64_t[]){ROWS, 1}, 2, y, sizeof y, &labels, &run->err);
  if (code == TUTTI_OK) {
    tutti_pipeline_add_slices(pipeline, "x", TUTTI_ROLE_FEATURE, features);
    tutti_pipeline_add_slices(pipeline, "y", TUTTI_ROLE_LABEL, labels);
  }
  tutti_tensor_unref(features), tutti_tensor_unref(labels);
  return code;
}

static void transform(tutti_pipeline *pipeline) {
  const tutti_pipeline_shuffle_attrs seeded = {.has_seed = 1, .seed = 7};
  tutti_pipeline_map_graph(pipeline, double_x, NULL, 2);
  tutti_pipeline_shuffle(pipeline, ROWS, &seeded);
  tutti_pipeline_repeat(pipeline, &(tutti_pipeline_repeat_attrs){.has_count = 1, .count = 2});
  tutti_pipeline_batch(pipeline, BATCH, NULL);
  tutti_pipeline_prefetch(pipeline, &(tutti_pipeline_prefetch_attrs){.buffer_size = 2});
}

static int32_t make_dataset(struct run *run, int32_t (*source)(tutti_pipeline *, struct run *)) {
  tutti_pipeline *pipeline = NULL;
  int32_t code = tutti_pipeline_create(run->context, &pipeline, &run->err);
  if (code == TUTTI_OK) code = source(pipeline, run);
  if (code == TUTTI_OK) {
    transform(pipeline);
    code = tutti_pipeline_build(pipeline, &run->dataset, &run->err);
  }
  tutti_pipeline_unref(pipeline);
  return code;
}

static int32_t add_file(tutti_pipeline *pipeline, struct run *run) {
  static const char *const columns[] = {"x: f32", "y: f32"}, *const labels[] = {"y"};
  const tutti_source_csv_attrs attrs = {.columns = columns, .columns_count = 2, .labels = labels, .labels_count = 1};
  char path[4200];
  snprintf(path, sizeof path, "%s/rows-*.csv", run->folder);
  const char *const paths[] = {path};
  tutti_source_csv(pipeline, paths, 1, &attrs);
  return TUTTI_OK;
}

static void say_numbers(const char *what, const tutti_tensor *tensor) {
  const float *const numbers = tutti_tensor_get_data(tensor);
  SAY("%s", what);
  for (int64_t i = 0; i < tutti_tensor_get_element_count(tensor); i++)
    SAY(" %.5f", (double)numbers[i]);
  SAY("\n");
}

static int32_t walk(struct run *run) {
  tutti_iterator *iterator = NULL;
  TRY(tutti_iterator_create(run->dataset, 0, &iterator, &run->err));
  uint8_t more = 1;
  int32_t code = TUTTI_OK;
  while (code == TUTTI_OK && more) {
    code = tutti_iterator_next(iterator, NULL, &more, &run->err);
    if (code != TUTTI_OK || !more) break;
    say_numbers("x", tutti_iterator_get_component(iterator, 0));
    say_numbers("y", tutti_iterator_get_component(iterator, 1));
  }
  tutti_iterator_unref(iterator);
  return code;
}

static int32_t pipeline(struct run *run) {
  TRY(open_context(run));
  TRY(make_dataset(run, add_file));
  return walk(run);
}

static void say_result(const char *what, tutti_result *result) {
  SAY("%s: step %lld, loss %.5f, error %.5f\n", what, (long long)tutti_result_get_step(result),
      tutti_result_get_loss(result), tutti_result_get_metric(result, "error"));
  tutti_result_unref(result);
}

static int32_t make_estimator(struct run *run, const char *json) {
  tutti_options *options = NULL;
  TRY(tutti_strategy_create_mirrored(run->context, NULL, 0, &run->strategy, &run->err));
  int32_t code = make_options("run", json, &options, run);
  if (code == TUTTI_OK)
    code = tutti_estimator_create(run->context, model, NULL, NULL, run->strategy, options, &run->estimator, &run->err);
  tutti_options_unref(options);
  return code;
}

static int32_t train(struct run *run, const char *json) {
  tutti_options *options = NULL;
  tutti_result *result = NULL;
  int32_t code = make_options("train", json, &options, run);
  if (code == TUTTI_OK)
    code = tutti_estimator_train(run->estimator, run->dataset, options, NULL, NULL, &result, &run->err);
  tutti_options_unref(options);
  if (code == TUTTI_OK) say_result("train", result);
  return code;
}

static int32_t evaluate(struct run *run) {
  tutti_result *result = NULL;
  TRY(tutti_estimator_evaluate(run->estimator, run->dataset, 0, NULL, &result, &run->err));
  say_result("evaluate", result);
  return TUTTI_OK;
}

static int32_t predict(struct run *run) {
  tutti_batch *batch = NULL;
  TRY(tutti_predictor_run_all(run->predictor, run->dataset, NULL, &batch, &run->err));
  const tutti_tensor *const y = tutti_batch_get_output(batch, "y");
  if (y == NULL) return TUTTI_INTERNAL;
  say_numbers("predict", y);
  tutti_batch_unref(batch);
  return TUTTI_OK;
}

static int32_t training(struct run *run) {
  TRY(open_context(run));
  TRY(make_dataset(run, add_slices));
  TRY(make_estimator(run, "{\"seed\": 5}"));
  TRY(train(run, "{\"max_steps\": 4}"));
  TRY(evaluate(run));
  TRY(tutti_predictor_from_estimator(run->estimator, NULL, &run->predictor, &run->err));
  return predict(run);
}

static int32_t checkpoints(struct run *run) {
  char folder[4200], json[4300];
  snprintf(folder, sizeof folder, "%s/model", run->folder);
  snprintf(json, sizeof json, "{\"seed\": 5, \"model_dir\": \"%s\", \"save_checkpoints_steps\": 2}", folder);
  TRY(open_context(run));
  TRY(make_dataset(run, add_slices));
  TRY(make_estimator(run, json));
  TRY(train(run, "{\"max_steps\": 3}"));
  tutti_estimator_unref(run->estimator), tutti_strategy_unref(run->strategy);
  run->estimator = NULL, run->strategy = NULL;
  TRY(make_estimator(run, json));
  TRY(train(run, "{\"max_steps\": 5}"));
  TRY(tutti_predictor_open(run->context, folder, NULL, NULL, &run->predictor, &run->err));
  return predict(run);
}

static void call_injector(const char *name) {
  void (*function)(void) = (void (*)(void))dlsym(RTLD_DEFAULT, name);
  if (function != NULL) function();
}

int main(int argc, char **argv) {
  if (argc < 3) return WRONG;
  struct run run = {.folder = argv[2], .backend = argc > 3 ? argv[3] : "reference"};
  int32_t (*const body)(struct run *) = strcmp(argv[1], "pipeline") == 0     ? pipeline
                                        : strcmp(argv[1], "train") == 0      ? training
                                        : strcmp(argv[1], "checkpoint") == 0 ? checkpoints
                                                                             : NULL;
  if (body == NULL) return WRONG;
  call_injector("fault_injector_begin");
  const int32_t code = body(&run);
  int status = code == TUTTI_OK ? 0 : ERROR;
  if (code != TUTTI_OK) {
    const char *const text = run.err != NULL ? tutti_error_get_text(run.err) : NULL;
    // Without memory there may be no text, but a code there is.
    SAY("error %s: %s\n", tutti_code_get_name(code), text != NULL ? text : "no text");
    if (run.err == NULL && code != TUTTI_RESOURCE_EXHAUSTED) status = SILENT;
  }
  tutti_predictor_unref(run.predictor), tutti_estimator_unref(run.estimator), tutti_strategy_unref(run.strategy);
  tutti_dataset_unref(run.dataset), tutti_error_unref(run.err), tutti_context_unref(run.context);
  call_injector("fault_injector_end");
  if (tutti_debug_live_objects(NULL) != 0) {
    SAY("%lld objects are alive\n", (long long)tutti_debug_live_objects(NULL));
    status = LEFT;
  }
  fputs(said, stdout);
  return status;
}
