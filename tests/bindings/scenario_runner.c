/* SPDX-License-Identifier: Apache-2.0
 *
 * scenario_runner FILE: does what the scenarios say and prints them with their results (scenarios.txt, workers.txt). */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "scenario.h"
#include "scenario_loops.h"
#include "scenario_models.h"
#include "scenario_pipelines.h"
#include "scenario_workers.h"

struct words {
  char *at[MAXIMUM_WORDS];
  int count;
};

static struct words split(char *line) {
  struct words words = {.count = 0};
  for (char *word = strtok(line, " \n"); word != NULL && words.count < MAXIMUM_WORDS; word = strtok(NULL, " \n"))
    words.at[words.count++] = word;
  return words;
}

static int64_t integer_at(const struct words *words, int i) {
  return i < words->count ? strtoll(words->at[i], NULL, 10) : 0;
}

static void print_failure(int32_t code, tutti_error *err) {
  if (code == TUTTI_OK) return;
  printf("= %s", tutti_code_get_name(code));
  for (tutti_error *one = err; one != NULL; one = tutti_error_get_cause(one))
    printf(": %s", tutti_error_get_message(one));
  printf("\n");
  tutti_error_unref(err);
}

/* --- set up ------------------------------------------------------------------------------------------------------- */

static void forget_estimator(struct scenario *s) {
  tutti_estimator_unref(s->estimator), tutti_dataset_unref(s->training);
  s->estimator = NULL, s->training = NULL;
}

static void forget(struct scenario *s) {
  forget_estimator(s);
  tutti_tensor_unref(s->x), tutti_tensor_unref(s->y), tutti_strategy_unref(s->strategy), tutti_options_unref(s->run);
  tutti_context_unref(s->context);
  char command[128];
  if (s->folder[0] != 0 && snprintf(command, sizeof command, "rm -r '%s'", s->folder) > 0 && system(command) != 0)
    exit(1);
  memset(s, 0, sizeof *s);
}

int32_t scenario_use_context(struct scenario *s, int64_t devices, tutti_error **err) {
  tutti_strategy_unref(s->strategy), tutti_context_unref(s->context);
  s->strategy = NULL, s->context = NULL;
  tutti_options *options = NULL;
  int32_t code = tutti_options_create("context", &options, err);
  if (code != TUTTI_OK) return code;
  tutti_options_set_string(options, "backend", "reference");
  tutti_options_set_i64(options, "logical_devices", devices);
  code = tutti_context_create(options, &s->context, err);
  tutti_options_unref(options);
  return code;
}

static int32_t use_devices(struct scenario *s, int64_t count, tutti_error **err) {
  int32_t code = scenario_use_context(s, count, err);
  return code == TUTTI_OK ? tutti_strategy_create_mirrored(s->context, NULL, 0, &s->strategy, err) : code;
}

static int32_t begin(struct scenario *s, tutti_error **err) {
  forget(s);
  int32_t code = tutti_options_create("run", &s->run, err);
  return code == TUTTI_OK ? use_devices(s, 1, err) : code;
}

static void set_option(struct scenario *s, const struct words *words) {
  if (words->count < 3) return;
  if (strcmp(words->at[1], "determinism") == 0 || strcmp(words->at[1], "all_reduce") == 0 ||
      strcmp(words->at[1], "params") == 0) {
    tutti_options_set_string(s->run, words->at[1], words->at[2]);
  } else if (strcmp(words->at[1], "raw_weights") == 0 || strcmp(words->at[1], "keep_outputs") == 0) {
    tutti_options_set_bool(s->run, words->at[1], 1);
  } else {
    tutti_options_set_i64(s->run, words->at[1], integer_at(words, 2));
  }
}

static void set_fault(struct scenario *s, const struct words *words) {
  s->fault.worker = integer_at(words, 1);
  s->fault.step = integer_at(words, 2);
  snprintf(s->fault.kind, sizeof s->fault.kind, "%s", words->count > 3 ? words->at[3] : "");
}

/* Transforms until the end of the words; each takes its own. Batches of a part of the data are of that of the size. */
static void add_transforms(tutti_pipeline *pipeline, const struct words *words, const tutti_strategy *strategy) {
  int64_t parts = 1;
  for (int i = 1; i < words->count; i++) {
    const char *name = words->at[i];
    if (strcmp(name, "shard") == 0) {
      parts = tutti_strategy_get_input_pipeline_count(strategy);
      tutti_pipeline_shard(pipeline, parts, tutti_strategy_get_input_pipeline_id(strategy));
      continue;
    }
    if (strcmp(name, "repeat") == 0) {
      tutti_pipeline_repeat(pipeline, NULL);
      continue;
    }
    int64_t count = integer_at(words, ++i);
    if (strcmp(name, "shuffle") == 0) tutti_pipeline_shuffle(pipeline, count, NULL);
    if (strcmp(name, "take") == 0) tutti_pipeline_take(pipeline, count);
    if (strcmp(name, "skip") == 0) tutti_pipeline_skip(pipeline, count);
    if (strcmp(name, "batch") == 0) tutti_pipeline_batch(pipeline, count < parts ? count : count / parts, NULL);
  }
}

int32_t scenario_dataset(struct scenario *s, const char *transforms, tutti_dataset **out, tutti_error **err) {
  char line[MAXIMUM_LINE];
  snprintf(line, sizeof line, "%s", transforms);
  struct words words = split(line);
  tutti_pipeline *pipeline = NULL;
  int32_t code = tutti_pipeline_create(s->context, &pipeline, err);
  if (code != TUTTI_OK) return code;
  tutti_pipeline_add_slices(pipeline, "x", TUTTI_ROLE_FEATURE, s->x);
  tutti_pipeline_add_slices(pipeline, "y", TUTTI_ROLE_LABEL, s->y);
  add_transforms(pipeline, &words, s->strategy);
  code = tutti_pipeline_build(pipeline, out, err);
  tutti_pipeline_unref(pipeline);
  return code;
}

int32_t scenario_need_estimator(struct scenario *s, tutti_error **err) {
  int32_t code = TUTTI_OK;
  if (s->training == NULL) code = scenario_dataset(s, s->pipeline, &s->training, err);
  if (code != TUTTI_OK || s->estimator != NULL) return code;
  return tutti_estimator_create(s->context, s->model, NULL, NULL, s->strategy, s->run, &s->estimator, err);
}

/* --- results ------------------------------------------------------------------------------------------------------ */

static int32_t make_fault(struct scenario *s, tutti_hooks **out, tutti_error **err) {
  if (s->fault.kind[0] == 0) return TUTTI_OK;
  int32_t code = tutti_hooks_create(out, err);
  return code == TUTTI_OK ? tutti_hooks_add(*out, scenario_fault, s, NULL, 1, err) : code;
}

/* plateau METRIC HIGHER EVERY PATIENCE COOLDOWN FACTOR THRESHOLD MINIMUM */
static void set_plateau(tutti_options *options, const char *line) {
  static const char *const counts[] = {"plateau_every_steps", "plateau_patience", "plateau_cooldown"},
                           *const parts[] = {"plateau_factor", "plateau_threshold", "plateau_minimum_factor"};
  char copy[MAXIMUM_LINE];
  snprintf(copy, sizeof copy, "%s", line);
  const struct words words = split(copy);
  if (words.count < 9) return;
  tutti_options_set_string(options, "plateau_metric", words.at[1]);
  tutti_options_set_bool(options, "plateau_higher_is_better", integer_at(&words, 2) != 0);
  for (int i = 0; i < 3; i++) {
    tutti_options_set_i64(options, counts[i], integer_at(&words, 3 + i));
    tutti_options_set_f64(options, parts[i], strtod(words.at[6 + i], NULL));
  }
}

int32_t scenario_train_options(struct scenario *s, int64_t steps, tutti_options **out, tutti_error **err) {
  const int32_t code = tutti_options_create("train", out, err);
  if (code == TUTTI_OK && steps > 0) tutti_options_set_i64(*out, "steps", steps);
  if (code == TUTTI_OK) set_plateau(*out, s->plateau);
  return code;
}

static int32_t train(struct scenario *s, int64_t steps, tutti_error **err) {
  tutti_options *options = NULL;
  tutti_hooks *hooks = NULL;
  tutti_result *result = NULL;
  int32_t code = scenario_need_estimator(s, err);
  if (code == TUTTI_OK) code = scenario_train_options(s, steps, &options, err);
  if (code == TUTTI_OK) code = make_fault(s, &hooks, err);
  if (code == TUTTI_OK) code = tutti_estimator_train(s->estimator, s->training, options, hooks, NULL, &result, err);
  if (code == TUTTI_OK) {
    printf("= step %" PRId64 " loss %.5f\n", tutti_result_get_step(result), tutti_result_get_loss(result));
  }
  tutti_result_unref(result), tutti_hooks_unref(hooks), tutti_options_unref(options);
  return code;
}

static int compare_names(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int32_t print_metric(const tutti_result *result, const char *name, tutti_error **err) {
  tutti_tensor *value = NULL;
  int32_t code = tutti_result_read_metric(result, name, &value, err);
  if (code != TUTTI_OK) return code;
  printf("= %s", name);
  const double *numbers = tutti_tensor_get_data(value);
  for (int64_t i = 0; i < tutti_tensor_get_element_count(value); i++)
    printf(" %.5f", numbers[i]);
  puts("");
  tutti_tensor_unref(value);
  return TUTTI_OK;
}

int32_t scenario_evaluate(struct scenario *s, int64_t batch, tutti_error **err) {
  char transforms[64];
  snprintf(transforms, sizeof transforms, "pipeline %sbatch %" PRId64, s->has_own_input ? "shard " : "", batch);
  tutti_dataset *dataset = NULL;
  tutti_result *result = NULL;
  int32_t code = scenario_need_estimator(s, err);
  if (code == TUTTI_OK) code = scenario_dataset(s, transforms, &dataset, err);
  if (code == TUTTI_OK) code = tutti_estimator_evaluate(s->estimator, dataset, 0, NULL, &result, err);
  if (code == TUTTI_OK) {
    printf("= loss %.5f\n", tutti_result_get_loss(result));
    const char *names[MAXIMUM_NAMES];
    int64_t count = tutti_result_get_metric_count(result);
    if (count > MAXIMUM_NAMES) exit(1);
    for (int64_t i = 0; i < count; i++)
      names[i] = tutti_result_get_metric_name(result, i);
    qsort(names, (size_t)count, sizeof *names, compare_names);
    for (int64_t i = 0; i < count && code == TUTTI_OK; i++)
      code = print_metric(result, names[i], err);
  }
  tutti_result_unref(result), tutti_dataset_unref(dataset);
  return code;
}

void scenario_print_row(const tutti_tensor *tensor, int64_t row) {
  int64_t width = tutti_tensor_get_rank(tensor) > 1 ? tutti_tensor_get_dim(tensor, 1) : 1;
  for (int64_t i = row * width; i < (row + 1) * width; i++) {
    if (tutti_tensor_get_dtype(tensor) == TUTTI_DTYPE_I64) {
      printf(" %" PRId64, ((const int64_t *)tutti_tensor_get_data(tensor))[i]);
    } else {
      printf(" %.5f", (double)((const float *)tutti_tensor_get_data(tensor))[i]);
    }
  }
  printf("\n");
}

int64_t scenario_output_names(tutti_batch *batch, const char **names) {
  int64_t count = tutti_batch_get_output_count(batch);
  if (count > MAXIMUM_NAMES) count = MAXIMUM_NAMES;
  for (int64_t i = 0; i < count; i++)
    names[i] = tutti_batch_get_output_name(batch, i);
  qsort(names, (size_t)count, sizeof *names, compare_names);
  return count;
}

int32_t scenario_predict(struct scenario *s, int64_t rows, tutti_error **err) {
  char transforms[64];
  snprintf(transforms, sizeof transforms, "pipeline take %" PRId64 " %sbatch 3", rows,
           s->has_own_input ? "shard " : "");
  tutti_dataset *dataset = NULL;
  tutti_predictor *predictor = NULL;
  tutti_batch *batch = NULL;
  int32_t code = scenario_need_estimator(s, err);
  if (code == TUTTI_OK) code = scenario_dataset(s, transforms, &dataset, err);
  if (code == TUTTI_OK) code = tutti_predictor_from_estimator(s->estimator, NULL, &predictor, err);
  if (code == TUTTI_OK) code = tutti_predictor_run_all(predictor, dataset, NULL, &batch, err);
  if (code == TUTTI_OK) {
    const char *names[MAXIMUM_NAMES];
    const int64_t count = scenario_output_names(batch, names);
    for (int64_t i = 0; i < count; i++) {
      for (int64_t row = 0; row < tutti_batch_get_row_count(batch); row++) {
        printf("= %s", names[i]);
        scenario_print_row(tutti_batch_get_output(batch, names[i]), row);
      }
    }
  }
  tutti_batch_unref(batch), tutti_predictor_unref(predictor), tutti_dataset_unref(dataset);
  return code;
}

static int32_t print_variable(struct scenario *s, const char *name, tutti_error **err) {
  tutti_tensor *tensor = NULL;
  int32_t code = scenario_need_estimator(s, err);
  if (code == TUTTI_OK) code = tutti_estimator_read_variable(s->estimator, name, &tensor, err);
  if (code != TUTTI_OK) return code;
  double sum = 0;
  for (int64_t i = 0; i < tutti_tensor_get_element_count(tensor); i++)
    sum += (double)((const float *)tutti_tensor_get_data(tensor))[i];
  printf("= shape");
  for (int64_t i = 0; i < tutti_tensor_get_rank(tensor); i++)
    printf(" %" PRId64, tutti_tensor_get_dim(tensor, i));
  printf(" sum %.5f\n", sum);
  tutti_tensor_unref(tensor);
  return TUTTI_OK;
}

static int32_t need_folder(struct scenario *s, tutti_error **err) {
  if (s->folder[0] != 0) return TUTTI_OK;
  snprintf(s->folder, sizeof s->folder, "/tmp/tutti-scenario-XXXXXX");
  if (mkdtemp(s->folder) != NULL) return TUTTI_OK;
  s->folder[0] = 0;
  return tutti_error_set(err, TUTTI_UNAVAILABLE, "no temporary folder");
}

int32_t scenario_save(struct scenario *s, tutti_error **err) {
  int32_t code = need_folder(s, err);
  if (code != TUTTI_OK) return code;
  tutti_options_set_string(s->run, "model_dir", s->folder);
  return tutti_estimator_save(s->estimator, s->folder, NULL, err);
}

static int32_t restore(struct scenario *s, tutti_error **err) {
  forget_estimator(s);
  int32_t code = scenario_need_estimator(s, err);
  if (code == TUTTI_OK) printf("= step %" PRId64 "\n", tutti_estimator_get_global_step(s->estimator));
  return code;
}

static int32_t print_integer(int64_t value, tutti_error **err) {
  tutti_tensor *tensor = NULL;
  int32_t code = tutti_tensor_from_data(TUTTI_DTYPE_I64, &(int64_t){1}, 1, &value, sizeof value, &tensor, err);
  if (code != TUTTI_OK) return code;
  printf("= %" PRId64 "\n", *(const int64_t *)tutti_tensor_get_data(tensor));
  tutti_tensor_unref(tensor);
  return TUTTI_OK;
}

static int32_t print_text(struct scenario *s, const char *name, tutti_error **err) {
  tutti_tensor *tensor = NULL;
  tutti_pipeline *pipeline = NULL;
  tutti_dataset *dataset = NULL;
  int32_t code = tutti_tensor_from_data(TUTTI_DTYPE_I64, &(int64_t){1}, 1, &(int64_t){0}, 8, &tensor, err);
  if (code == TUTTI_OK) code = tutti_pipeline_create(s->context, &pipeline, err);
  if (code == TUTTI_OK) tutti_pipeline_add_slices(pipeline, name, TUTTI_ROLE_FEATURE, tensor);
  if (code == TUTTI_OK) code = tutti_pipeline_build(pipeline, &dataset, err);
  if (code == TUTTI_OK) printf("= %s\n", tutti_dataset_get_component_name(dataset, 0));
  tutti_dataset_unref(dataset), tutti_pipeline_unref(pipeline), tutti_tensor_unref(tensor);
  return code;
}

/* A file of the scenario's folder, its bytes in hexadecimal digits. */
static int32_t write_file(struct scenario *s, const char *name, const char *digits, tutti_error **err) {
  char path[256];
  int32_t code = need_folder(s, err);
  if (code != TUTTI_OK) return code;
  snprintf(path, sizeof path, "%s/%s", s->folder, name);
  FILE *file = fopen(path, "wb");
  if (file == NULL) return tutti_error_set(err, TUTTI_UNAVAILABLE, "the file cannot be written");
  unsigned byte = 0;
  for (; sscanf(digits, "%2x", &byte) == 1; digits += 2)
    fputc((int)byte, file);
  fclose(file);
  return TUTTI_OK;
}

static int32_t read_pipeline(struct scenario *s, const char *name, int64_t seed, tutti_error **err) {
  tutti_dataset *dataset = NULL;
  int32_t code = scenario_pipeline(s->context, name, s->folder, &dataset, err);
  if (code == TUTTI_OK) code = scenario_read(dataset, seed, err);
  tutti_dataset_unref(dataset);
  return code;
}

static int32_t loop(struct scenario *s, const struct words *words, tutti_error **err) {
  int64_t sizes[MAXIMUM_WORDS];
  for (int i = 2; i < words->count; i++)
    sizes[i - 2] = integer_at(words, i);
  return scenario_loop(s, integer_at(words, 1), sizes, words->count - 2, err);
}

/* --- lines -------------------------------------------------------------------------------------------------------- */

static int32_t prepare(struct scenario *s, const char *line, const struct words *words, tutti_error **err) {
  const char *command = words->at[0];
  if (strcmp(command, "scenario") == 0) return begin(s, err);
  if (strcmp(command, "devices") == 0) return use_devices(s, integer_at(words, 1), err);
  if (strcmp(command, "workers") == 0)
    return scenario_use_workers(s, integer_at(words, 1), integer_at(words, 2), words->count > 3, err);
  if (strcmp(command, "fault") == 0) set_fault(s, words);
  if (strcmp(command, "data") == 0) {
    return scenario_data(integer_at(words, 1), integer_at(words, 2), integer_at(words, 3),
                         (uint32_t)integer_at(words, 4), &s->x, &s->y, err);
  }
  if (strcmp(command, "pipeline") == 0 || strcmp(command, "model") == 0) forget_estimator(s);
  if (strcmp(command, "pipeline") == 0) snprintf(s->pipeline, sizeof s->pipeline, "%s", line);
  if (strcmp(command, "plateau") == 0) snprintf(s->plateau, sizeof s->plateau, "%s", line);
  if (strcmp(command, "model") == 0) s->model = scenario_model(words->count > 1 ? words->at[1] : "");
  if (strcmp(command, "run") == 0) forget_estimator(s), set_option(s, words);
  return TUTTI_OK;
}

static int32_t show(struct scenario *s, const struct words *words, tutti_error **err) {
  const char *command = words->at[0], *name = words->count > 1 ? words->at[1] : "";
  if (strcmp(command, "train") == 0) return train(s, integer_at(words, 1), err);
  if (strcmp(command, "loop") == 0) return loop(s, words, err);
  if (strcmp(command, "evaluate") == 0) return scenario_evaluate(s, integer_at(words, 1), err);
  if (strcmp(command, "predict") == 0) return scenario_predict(s, integer_at(words, 1), err);
  if (strcmp(command, "variable") == 0) return print_variable(s, name, err);
  if (strcmp(command, "cluster") == 0) return scenario_print_cluster(s);
  if (strcmp(command, "predict_own") == 0) return scenario_predict_own(s, integer_at(words, 1), err);
  if (strcmp(command, "checksum") == 0) return scenario_print_checksum(s, name, err);
  if (strcmp(command, "leave") == 0)
    return scenario_leave(s, integer_at(words, 1), integer_at(words, 2), integer_at(words, 3), err);
  if (strcmp(command, "save") == 0) return scenario_save(s, err);
  if (strcmp(command, "restore") == 0) return restore(s, err);
  if (strcmp(command, "read") == 0) return read_pipeline(s, name, integer_at(words, 2), err);
  if (strcmp(command, "file") == 0) return write_file(s, name, words->count > 2 ? words->at[2] : "", err);
  if (strcmp(command, "integer") == 0) return print_integer(integer_at(words, 1), err);
  if (strcmp(command, "text") == 0) return print_text(s, name, err);
  return TUTTI_OK;
}

int main(int argc, char **argv) {
  FILE *file = argc == 2 ? fopen(argv[1], "r") : NULL;
  if (file == NULL) {
    fprintf(stderr, "usage: scenario_runner FILE\n");
    return 2;
  }
  struct scenario s;
  memset(&s, 0, sizeof s);
  for (char line[MAXIMUM_LINE], copy[MAXIMUM_LINE]; fgets(line, sizeof line, file) != NULL;) {
    if (line[0] == '=') continue;
    fputs(line, stdout);
    snprintf(copy, sizeof copy, "%s", line);
    struct words words = split(copy);
    if (line[0] == '#' || words.count == 0) continue;
    fflush(stdout); /* of a process that is killed, too */
    tutti_error *err = NULL;
    int32_t code = prepare(&s, line, &words, &err);
    if (code == TUTTI_OK) code = show(&s, &words, &err);
    print_failure(code, err);
    fflush(stdout);
  }
  forget(&s);
  fclose(file);
  return 0;
}
