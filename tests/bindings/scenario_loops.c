/* SPDX-License-Identifier: Apache-2.0 */
#include "scenario_loops.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Rows first, first + 1, ... of a tensor, over again from the first behind the last. */
static int32_t rows_of(tutti_tensor *all, int64_t first, int64_t rows, tutti_tensor **out, tutti_error **err) {
  const int64_t total = tutti_tensor_get_dim(all, 0), rank = tutti_tensor_get_rank(all);
  const int64_t width = tutti_tensor_get_element_count(all) / total;
  const size_t size = 4 * (size_t)width; /* f32, i32 */
  char *data = malloc((size_t)(rows + 1) * size);
  if (data == NULL) return tutti_error_set(err, TUTTI_RESOURCE_EXHAUSTED, "no memory for a batch");
  for (int64_t i = 0; i < rows; i++)
    memcpy(data + (size_t)i * size, (const char *)tutti_tensor_get_data(all) + (size_t)((first + i) % total) * size,
           size);
  const int64_t dims[] = {rows, width};
  int32_t code = tutti_tensor_from_data(tutti_tensor_get_dtype(all), dims, rank, data, rows * (int64_t)size, out, err);
  free(data);
  return code;
}

static int32_t push(struct scenario *s, tutti_feed *feed, int64_t first, int64_t rows, tutti_error **err) {
  tutti_tensor *batch[] = {NULL, NULL};
  int32_t code = rows_of(s->x, first, rows, &batch[0], err);
  if (code == TUTTI_OK) code = rows_of(s->y, first, rows, &batch[1], err);
  if (code == TUTTI_OK) code = tutti_feed_push(feed, batch, 2, NULL, err);
  tutti_tensor_unref(batch[0]), tutti_tensor_unref(batch[1]);
  return code;
}

static int compare_names(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void print_step(const tutti_result *result) {
  printf("= step %" PRId64 " examples %" PRId64 " loss %.5f", tutti_result_get_step(result),
         tutti_result_get_examples(result), tutti_result_get_loss(result));
  const char *names[MAXIMUM_NAMES];
  int64_t count = tutti_result_get_metric_count(result);
  if (count > MAXIMUM_NAMES) count = MAXIMUM_NAMES;
  for (int64_t i = 0; i < count; i++)
    names[i] = tutti_result_get_metric_name(result, i);
  qsort(names, (size_t)count, sizeof *names, compare_names);
  for (int64_t i = 0; i < count; i++)
    printf(" %s %.5f", names[i], tutti_result_get_metric(result, names[i]));
  printf("\n");
}

static int32_t step(struct scenario *s, tutti_session *session, tutti_error **err) {
  tutti_result *result = NULL;
  tutti_tensor *output = NULL;
  int32_t code = tutti_session_run(session, 1, &result, err);
  if (code == TUTTI_OK) print_step(result);
  if (code == TUTTI_OK) code = tutti_estimator_read_output(s->estimator, "y", &output, err);
  for (int64_t row = 0; code == TUTTI_OK && row < tutti_tensor_get_dim(output, 0); row++) {
    printf("= y");
    scenario_print_row(output, row);
  }
  tutti_tensor_unref(output), tutti_result_unref(result);
  return code;
}

static int32_t end(tutti_session *session, tutti_feed *feed, tutti_error **err) {
  tutti_result *last = NULL, *whole = NULL;
  int32_t code = tutti_feed_finish(feed, err);
  if (code == TUTTI_OK) code = tutti_session_run(session, 1, &last, err);
  if (code == TUTTI_OK) code = tutti_session_close(session, &whole, err);
  if (code == TUTTI_OK) {
    const int is_end = tutti_result_get_reason(last) == TUTTI_REASON_END_OF_INPUT;
    printf("= %s, examples %" PRId64 " of %" PRId64 "\n", is_end ? "end of input" : "no end",
           tutti_result_get_examples(last), tutti_result_get_examples(whole));
  }
  tutti_result_unref(last), tutti_result_unref(whole);
  return code;
}

/* A hook that evaluates at the last of so many steps. */
struct evaluation {
  struct scenario *scenario;
  int64_t most;
  int steps_left;
};

static int32_t evaluate_at_last(void *user, const tutti_hook_event *event, tutti_error **err) {
  struct evaluation *evaluation = user;
  if (tutti_hook_event_get_kind(event) != TUTTI_EVENT_STEP || --evaluation->steps_left != 0) return TUTTI_OK;
  return scenario_evaluate(evaluation->scenario, evaluation->most, err);
}

/* A feed of batches, and the session that it feeds. */
static int32_t open_loop(struct evaluation *evaluation, tutti_feed **feed, tutti_session **session, tutti_error **err) {
  struct scenario *s = evaluation->scenario;
  const int64_t columns = tutti_tensor_get_dim(s->x, 1);
  tutti_pipeline *pipeline = NULL;
  tutti_dataset *dataset = NULL;
  tutti_hooks *hooks = NULL;
  tutti_options *options = NULL;
  int32_t code = scenario_need_estimator(s, err);
  if (code == TUTTI_OK) code = scenario_train_options(s, 0, &options, err);
  if (code == TUTTI_OK) code = tutti_hooks_create(&hooks, err);
  if (code == TUTTI_OK) code = tutti_hooks_add(hooks, evaluate_at_last, evaluation, NULL, 1, err);
  if (code == TUTTI_OK) code = tutti_feed_create(s->context, 2, feed, err);
  if (code == TUTTI_OK) code = tutti_feed_declare(*feed, "x", TUTTI_ROLE_FEATURE, TUTTI_DTYPE_F32, &columns, 1, err);
  if (code == TUTTI_OK) code = tutti_feed_declare(*feed, "y", TUTTI_ROLE_LABEL, TUTTI_DTYPE_I32, NULL, 0, err);
  if (code == TUTTI_OK) code = tutti_feed_set_batch_size(*feed, evaluation->most, err);
  if (code == TUTTI_OK) code = tutti_pipeline_create(s->context, &pipeline, err);
  if (code == TUTTI_OK) {
    tutti_pipeline_add_feed(pipeline, *feed);
    code = tutti_pipeline_build(pipeline, &dataset, err);
  }
  if (code == TUTTI_OK) code = tutti_session_open(s->estimator, dataset, options, hooks, NULL, session, err);
  tutti_dataset_unref(dataset), tutti_pipeline_unref(pipeline), tutti_hooks_unref(hooks), tutti_options_unref(options);
  return code;
}

int32_t scenario_loop(struct scenario *s, int64_t most, const int64_t *sizes, int count, tutti_error **err) {
  tutti_feed *feed = NULL;
  tutti_session *session = NULL;
  struct evaluation evaluation = {s, most, count};
  int32_t code = open_loop(&evaluation, &feed, &session, err);
  int64_t first = 0;
  for (int i = 0; code == TUTTI_OK && i < count; first += sizes[i++]) {
    code = push(s, feed, first, sizes[i], err);
    if (code == TUTTI_OK) code = step(s, session, err);
  }
  /* While the session is open. */
  if (code == TUTTI_OK) code = scenario_evaluate(s, most, err);
  if (code == TUTTI_OK) code = scenario_predict(s, 2, err);
  if (code == TUTTI_OK) code = scenario_save(s, err);
  if (code == TUTTI_OK) code = end(session, feed, err);
  tutti_session_unref(session), tutti_feed_unref(feed);
  return code;
}
