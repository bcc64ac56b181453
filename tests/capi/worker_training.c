/* SPDX-License-Identifier: Apache-2.0 */
#include "worker_training.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const int rows_of_file[FILES] = {3, 17, 1, 9, 20, 4, 7};

static int first_row_of(int file) {
  int first = 0;
  for (int i = 0; i < file; i++)
    first += rows_of_file[i];
  return first;
}

void text_of_file(int file, char text[200]) {
  text[0] = '\0';
  for (int i = 0; i < rows_of_file[file]; i++)
    sprintf(text + strlen(text), "%d\n", first_row_of(file) + i);
}

int number_at(const tutti_tensor *lines, int64_t index) {
  char digits[16];
  snprintf(digits, sizeof digits, "%.*s", (int)tutti_tensor_get_element_size(lines, index),
           (const char *)tutti_tensor_get_element_data(lines, index));
  const int number = atoi(digits);
  assert_in_range(number, 0, ROWS - 1);
  return number;
}

/* Makes a row of its number, and counts it. */
static int32_t make_row(void *user, tutti_tensor *const *inputs, int64_t count, tutti_tensor **outputs,
                        int64_t output_count, tutti_error **err) {
  struct trained *trained = user;
  float values[4];
  int32_t label = 0;
  assert_int_equal(count, 1);
  assert_int_equal(output_count, 2);
  const int row = number_at(inputs[0], 0);
  trained->seen[row]++;
  toy_row(row, values, &label);
  int32_t code = tutti_tensor_from_data(TUTTI_DTYPE_F32, (int64_t[]){4}, 1, values, sizeof values, &outputs[0], err);
  if (code == TUTTI_OK) code = tutti_tensor_from_data(TUTTI_DTYPE_I32, NULL, 0, &label, 4, &outputs[1], err);
  return code;
}

static void keep_line(void *user, int32_t severity, const char *text) {
  struct trained *trained = user;
  (void)severity;
  if (strstr(text, "worker_input") == NULL && strstr(text, "pass") == NULL && strstr(text, "trained on") == NULL)
    return;
  const size_t used = strlen(trained->log);
  if (used + strlen(text) + 2 < sizeof trained->log) strcat(strcat(trained->log, text), "\n");
}

static tutti_dataset *dataset_of(tutti_context *context, const char *source, const char *directory,
                                 struct trained *trained) {
  tutti_pipeline *pipeline = NULL;
  if (strcmp(source, "files") != 0) {
    pipeline = toy_rows(context, ROWS);
    tutti_pipeline_shuffle(pipeline, ROWS, NULL);
    tutti_pipeline_batch(pipeline, BATCH, NULL);
    return build(pipeline);
  }
  tutti_dataset *like = build(toy_rows(context, 1));
  char pattern[200];
  snprintf(pattern, sizeof pattern, "%s/rows-*.txt", directory);
  const char *paths = pattern;
  assert_ok(tutti_pipeline_create(context, &pipeline, &err));
  tutti_source_text_lines(pipeline, &paths, 1, NULL);
  tutti_pipeline_shuffle(pipeline, 20, NULL);
  tutti_pipeline_begin(pipeline, "map_callback", 1);
  tutti_pipeline_set_i64(pipeline, "parallelism", 2);
  tutti_pipeline_set_dataset(pipeline, "like", like);
  tutti_pipeline_set_map(pipeline, make_row, trained, NULL);
  tutti_pipeline_end(pipeline);
  tutti_pipeline_batch(pipeline, BATCH, NULL);
  tutti_pipeline_prefetch(pipeline, NULL);
  tutti_dataset_unref(like);
  return build(pipeline);
}

struct watch {
  const char *action, *model_dir;
  int64_t worker, workers;
};

static int32_t at_step(void *user, const tutti_hook_event *event, tutti_error **err) {
  const struct watch *watch = user;
  (void)err;
  const int is_time = tutti_hook_event_get_kind(event) == TUTTI_EVENT_STEP && strcmp(watch->action, "kill") == 0 &&
                      tutti_hook_event_get_step(event) == KILL_STEP;
  if (!is_time || watch->worker != watch->workers - 1) return TUTTI_OK;
  /* The newest one before may still be on its way to the disk. */
  char checkpoint[220];
  snprintf(checkpoint, sizeof checkpoint, "%s/checkpoint-%d", watch->model_dir, KILL_STEP - SAVE_STEPS);
  for (int i = 0; i < 10000 && access(checkpoint, F_OK) != 0; i++)
    sleep_microseconds(2000);
  raise(SIGKILL);
  return TUTTI_OK;
}

static void keep_error(struct trained *trained, tutti_error *failure) {
  if (failure != NULL) snprintf(trained->error, sizeof trained->error, "%s", tutti_error_get_text(failure));
  tutti_error_unref(failure);
}

static int32_t evaluate_trained(tutti_estimator *estimator, const tutti_dataset *dataset, struct trained *trained,
                                tutti_error **failure) {
  tutti_result *result = NULL;
  const int32_t code = tutti_estimator_evaluate(estimator, dataset, 0, NULL, &result, failure);
  if (code == TUTTI_OK) {
    assert_int_equal(tutti_result_get_examples(result), ROWS);
    trained->loss = tutti_result_get_loss(result);
    trained->accuracy = tutti_result_get_metric(result, "accuracy");
  }
  tutti_result_unref(result);
  return code;
}

static int32_t train_on(tutti_strategy *strategy, const char *source, const char *action, const char *directory,
                        const char *model_dir, struct trained *trained) {
  struct watch watch = {action, model_dir, tutti_strategy_get_worker_index(strategy),
                        tutti_strategy_get_worker_count(strategy)};
  char json[200];
  snprintf(json, sizeof json,
           "{\"seed\": 5, \"model_dir\": \"%s\", \"save_checkpoints_steps\": %d, \"collective_timeout_ms\": 60000}",
           model_dir, model_dir[0] != '\0' ? SAVE_STEPS : 0);
  tutti_options *run = make_options("run", json);
  snprintf(json, sizeof json, "{\"epochs\": %d}", EPOCHS);
  tutti_options *options = make_options("train", json);
  tutti_hooks *hooks = NULL;
  tutti_error *failure = NULL;
  tutti_estimator *estimator = NULL;
  tutti_result *result = NULL;
  tutti_context *context = tutti_strategy_get_context(strategy);
  tutti_dataset *dataset = dataset_of(context, source, directory, trained), *part = NULL;
  int32_t code = tutti_context_set_log(context, keep_line, trained, NULL, TUTTI_LOG_INFO, &failure);
  if (code == TUTTI_OK && strcmp(action, "part") == 0)
    code = tutti_strategy_distribute_dataset(strategy, dataset, &part, &failure);
  if (code == TUTTI_OK) code = tutti_hooks_create(&hooks, &failure);
  if (code == TUTTI_OK) code = tutti_hooks_add(hooks, at_step, &watch, NULL, 1, &failure);
  if (code == TUTTI_OK)
    code = tutti_estimator_create(context, toy_model, NULL, NULL, strategy, run, &estimator, &failure);
  if (code == TUTTI_OK && strcmp(action, "evaluate") != 0) {
    const tutti_dataset *trained_on = part != NULL ? part : dataset;
    if (strcmp(action, "both") == 0)
      code = tutti_estimator_train_and_evaluate(estimator, trained_on, dataset, 5, options, hooks, NULL, &result,
                                                &failure);
    else
      code = tutti_estimator_train(estimator, trained_on, options, hooks, NULL, &result, &failure);
    int seen[ROWS];
    for (int i = 0; i < ROWS; i++)
      seen[i] = trained->seen[i];
    if (code == TUTTI_OK) {
      trained->reason = tutti_result_get_reason(result);
      trained->step = tutti_result_get_step(result);
      trained->examples = tutti_result_get_examples(result);
      code = read_numbers(estimator, "dense/kernel", trained->kernel, 32, &failure);
    }
    if (code == TUTTI_OK) code = evaluate_trained(estimator, dataset, trained, &failure);
    for (int i = 0; i < ROWS; i++)
      trained->seen[i] = seen[i];
  } else if (code == TUTTI_OK) {
    code = evaluate_trained(estimator, dataset, trained, &failure);
  }
  tutti_context_set_log(context, NULL, NULL, NULL, TUTTI_LOG_INFO, NULL);
  trained->code = code;
  keep_error(trained, failure);
  tutti_result_unref(result);
  tutti_estimator_unref(estimator);
  tutti_hooks_unref(hooks);
  tutti_options_unref(run);
  tutti_options_unref(options);
  tutti_dataset_unref(part);
  tutti_dataset_unref(dataset);
  return code;
}

int train_as_worker(const char *scenario, const char *directory) {
  struct trained trained = {0};
  char input[16], source[16], action[16], cluster[80], model_dir[200];
  if (sscanf(scenario, "%15[^:]:%15[^:]:%15s", input, source, action) != 3) return 2;
  snprintf(cluster, sizeof cluster, "{\"connect_timeout_ms\": 60000, \"worker_input\": \"%s\"}", input);
  snprintf(model_dir, sizeof model_dir, "%s/model", directory);
  tutti_context *context = NULL;
  tutti_strategy *strategy = NULL;
  tutti_error *failure = NULL;
  int32_t code = join_workers(cluster, &context, &strategy, &failure);
  trained.code = code;
  keep_error(&trained, failure);
  if (code == TUTTI_OK) code = train_on(strategy, source, action, directory, model_dir, &trained);
  tutti_strategy_unref(strategy);
  tutti_context_unref(context);
  return leave_answer(directory, &trained, sizeof trained, code);
}

void make_files(char directory[64]) {
  make_directory(directory);
  for (int i = 0; i < FILES; i++) {
    char path[200], text[200];
    snprintf(path, sizeof path, "%s/rows-%d.txt", directory, i);
    text_of_file(i, text);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0 && fclose(file) == 0);
  }
}

void run_trainings(const char *scenario, const char *directory, int count, int *codes, struct trained *all) {
  run_workers(scenario, directory, count, 2, codes, all, sizeof *all);
}

void run_well(const char *scenario, const char *directory, int count, struct trained *all) {
  int codes[MOST_WORKERS];
  run_trainings(scenario, directory, count, codes, all);
  for (int w = 0; w < count; w++) {
    assert_string_equal(all[w].error, "");
    assert_int_equal(codes[w], 0);
    assert_memory_equal(all[w].kernel, all[0].kernel, sizeof all[0].kernel);
  }
}

void train_alone(int replicas, const char *source, const char *action, const char *directory, const char *model_dir,
                 struct trained *trained) {
  char json[80];
  snprintf(json, sizeof json, "{\"logical_devices\": %d, \"backend\": \"reference\"}", replicas);
  tutti_options *devices = make_options("context", json);
  tutti_context *context = NULL;
  tutti_strategy *strategy = NULL;
  assert_ok(tutti_context_create(devices, &context, &err));
  assert_ok(tutti_strategy_create_mirrored(context, NULL, 0, &strategy, &err));
  memset(trained, 0, sizeof *trained);
  assert_int_equal(train_on(strategy, source, action, directory, model_dir, trained), TUTTI_OK);
  tutti_strategy_unref(strategy);
  tutti_context_unref(context);
  tutti_options_unref(devices);
}

static void assert_same_weights(const struct trained *got, const struct trained *expected) {
  for (int i = 0; i < 32; i++)
    assert_true(fabsf(got->kernel[i] - expected->kernel[i]) <= 1e-4f * (1 + fabsf(expected->kernel[i])));
}

void assert_same_training(const struct trained *got, const struct trained *expected) {
  assert_int_equal(got->reason, expected->reason);
  assert_int_equal(got->step, expected->step);
  assert_same_weights(got, expected);
  assert_true(fabs(got->loss - expected->loss) <= 1e-4);
}

void assert_seen(const struct trained *all, int count, int times) {
  for (int row = 0; row < ROWS; row++) {
    int seen = 0;
    for (int w = 0; w < count; w++)
      seen += all[w].seen[row];
    assert_int_equal(seen, times);
  }
}
