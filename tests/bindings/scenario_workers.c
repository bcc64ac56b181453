/* SPDX-License-Identifier: Apache-2.0 */
#include "scenario_workers.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CONNECT_TIMEOUT_MS = 30000, HANG_SECONDS = 100, MAXIMUM_BATCHES = 64 };

int32_t scenario_use_workers(struct scenario *s, int64_t workers, int64_t devices, bool own_input, tutti_error **err) {
  const bool is_alone = getenv("TF_CONFIG") == NULL;
  tutti_options *cluster = NULL;
  s->has_own_input = own_input;
  int32_t code = scenario_use_context(s, is_alone ? workers * devices : devices, err);
  if (code == TUTTI_OK && is_alone) return tutti_strategy_create_mirrored(s->context, NULL, 0, &s->strategy, err);
  if (code == TUTTI_OK) code = tutti_options_create("cluster", &cluster, err);
  if (code == TUTTI_OK) {
    tutti_options_set_i64(cluster, "connect_timeout_ms", CONNECT_TIMEOUT_MS);
    tutti_options_set_string(cluster, "worker_input", own_input ? "own" : "whole");
    code = tutti_strategy_create_multi_worker_from_environment(s->context, cluster, &s->strategy, err);
  }
  tutti_options_unref(cluster);
  return code;
}

int32_t scenario_print_cluster(const struct scenario *s) {
  printf("= worker %" PRId64 " of %" PRId64 ", replicas %" PRId64 ", input %" PRId64 " of %" PRId64 "\n",
         tutti_strategy_get_worker_index(s->strategy), tutti_strategy_get_worker_count(s->strategy),
         tutti_strategy_get_replica_count(s->strategy), tutti_strategy_get_input_pipeline_id(s->strategy),
         tutti_strategy_get_input_pipeline_count(s->strategy));
  return TUTTI_OK;
}

static int32_t open_stream(struct scenario *s, const char *worker_rows, int64_t rows, tutti_prediction_stream **out,
                           tutti_error **err) {
  char transforms[64];
  snprintf(transforms, sizeof transforms, "pipeline take %" PRId64 " batch 3", rows);
  tutti_dataset *dataset = NULL;
  tutti_options *options = NULL;
  tutti_predictor *predictor = NULL;
  int32_t code = scenario_need_estimator(s, err);
  if (code == TUTTI_OK) code = scenario_dataset(s, transforms, &dataset, err);
  if (code == TUTTI_OK) code = tutti_options_create("predictor", &options, err);
  if (code == TUTTI_OK) tutti_options_set_string(options, "worker_rows", worker_rows);
  if (code == TUTTI_OK) code = tutti_predictor_from_estimator(s->estimator, options, &predictor, err);
  if (code == TUTTI_OK) code = tutti_prediction_stream_open(predictor, dataset, out, err);
  tutti_predictor_unref(predictor), tutti_options_unref(options), tutti_dataset_unref(dataset);
  return code;
}

/* Every output of all batches, by name. */
static void print_batches(tutti_batch *const *batches, int64_t count) {
  const char *names[MAXIMUM_NAMES];
  const int64_t outputs = count > 0 ? scenario_output_names(batches[0], names) : 0;
  for (int64_t o = 0; o < outputs; o++) {
    for (int64_t b = 0; b < count; b++) {
      for (int64_t row = 0; row < tutti_batch_get_row_count(batches[b]); row++) {
        printf("= %s %" PRId64, names[o], tutti_batch_get_first_row(batches[b]) + row);
        scenario_print_row(tutti_batch_get_output(batches[b], names[o]), row);
      }
    }
  }
}

int32_t scenario_predict_own(struct scenario *s, int64_t rows, tutti_error **err) {
  tutti_prediction_stream *stream = NULL;
  tutti_batch *batches[MAXIMUM_BATCHES];
  int64_t count = 0;
  int32_t code = open_stream(s, "own", rows, &stream, err);
  while (code == TUTTI_OK && count < MAXIMUM_BATCHES) {
    code = tutti_prediction_stream_next(stream, NULL, &batches[count], err);
    if (code != TUTTI_OK || batches[count] == NULL) break;
    count++;
  }
  if (code == TUTTI_OK) print_batches(batches, count);
  while (count > 0)
    tutti_batch_unref(batches[--count]);
  tutti_prediction_stream_unref(stream);
  return code;
}

int32_t scenario_leave(struct scenario *s, int64_t worker, int64_t batches, int64_t rows, tutti_error **err) {
  tutti_prediction_stream *stream = NULL;
  int64_t seen = 0;
  int32_t code = open_stream(s, "all", rows, &stream, err);
  for (int64_t read = 0; code == TUTTI_OK; read++) {
    tutti_batch *batch = NULL;
    if (read == batches && tutti_strategy_get_worker_index(s->strategy) == worker) break;
    code = tutti_prediction_stream_next(stream, NULL, &batch, err);
    if (batch == NULL) break;
    seen += tutti_batch_get_row_count(batch);
    tutti_batch_unref(batch);
  }
  printf("= rows %" PRId64 "\n", seen);
  tutti_prediction_stream_unref(stream);
  return code;
}

int32_t scenario_print_checksum(struct scenario *s, const char *name, tutti_error **err) {
  tutti_tensor *tensor = NULL;
  int32_t code = scenario_need_estimator(s, err);
  if (code == TUTTI_OK) code = tutti_estimator_read_variable(s->estimator, name, &tensor, err);
  if (code != TUTTI_OK) return code;
  uint64_t sum = 0;
  for (int64_t i = 0; i < tutti_tensor_get_element_count(tensor); i++) {
    uint32_t bits;
    memcpy(&bits, (const float *)tutti_tensor_get_data(tensor) + i, sizeof bits);
    sum = sum * 1000003 + bits;
  }
  printf("= bits %016" PRIx64 "\n", sum);
  tutti_tensor_unref(tensor);
  return TUTTI_OK;
}

int32_t scenario_fault(void *user, const tutti_hook_event *event, tutti_error **err) {
  const struct scenario *s = user;
  if (tutti_hook_event_get_kind(event) != TUTTI_EVENT_STEP || tutti_hook_event_get_step(event) != s->fault.step ||
      tutti_strategy_get_worker_index(s->strategy) != s->fault.worker)
    return TUTTI_OK;
  if (strcmp(s->fault.kind, "kill") == 0) raise(SIGKILL);
  if (strcmp(s->fault.kind, "hang") == 0) sleep(HANG_SECONDS);
  return tutti_error_set(err, TUTTI_DATA_LOSS, "the hook is broken");
}
