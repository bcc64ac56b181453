/* SPDX-License-Identifier: Apache-2.0 */
#define _XOPEN_SOURCE 700 /* clocks */
#include "step_timing.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

void must(int32_t code, tutti_error *err) {
  if (code == TUTTI_OK) return;
  fprintf(stderr, "%s\n", tutti_error_get_text(err));
  exit(1);
}

tutti_context *one_thread(void) {
  tutti_error *err = NULL;
  tutti_options *options = NULL;
  tutti_context *context = NULL;
  must(tutti_options_create("context", &options, &err), err);
  tutti_options_set_i64(options, "threads", 1);
  tutti_options_set_i64(options, "logical_devices", 1);
  must(tutti_context_create(options, &context, &err), err);
  tutti_options_unref(options);
  return context;
}

tutti_dataset *same_batch(tutti_context *context, const char *feature, tutti_tensor *rows) {
  tutti_error *err = NULL;
  tutti_pipeline *pipeline = NULL;
  tutti_dataset *dataset = NULL;
  must(tutti_pipeline_create(context, &pipeline, &err), err);
  tutti_pipeline_add_slices(pipeline, feature, TUTTI_ROLE_FEATURE, rows);
  tutti_pipeline_batch(pipeline, tutti_tensor_get_dim(rows, 0), NULL);
  tutti_pipeline_cache(pipeline, NULL);
  tutti_pipeline_repeat(pipeline, NULL);
  must(tutti_pipeline_build(pipeline, &dataset, &err), err);
  tutti_pipeline_unref(pipeline);
  tutti_tensor_unref(rows);
  return dataset;
}

static double processor_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* The kernels of some steps, as a table. */
static void print_profile(tutti_context *context, tutti_session *session, int steps) {
  tutti_error *err = NULL;
  const char *report = NULL;
  must(tutti_context_start_profile(context, NULL, &err), err);
  must(tutti_session_run(session, steps, NULL, &err), err);
  must(tutti_context_stop_profile(context, &report, &err), err);
  puts(report);
}

double step_ms(tutti_context *context, tutti_model_fn model, void *user, tutti_dataset *dataset, int runs, int steps) {
  tutti_error *err = NULL;
  tutti_strategy *strategy = NULL;
  tutti_estimator *estimator = NULL;
  tutti_session *session = NULL;
  must(tutti_strategy_create_mirrored(context, NULL, 0, &strategy, &err), err);
  must(tutti_estimator_create(context, model, user, NULL, strategy, NULL, &estimator, &err), err);
  must(tutti_session_open(estimator, dataset, NULL, NULL, NULL, &session, &err), err);
  must(tutti_session_run(session, 2, NULL, &err), err);
  double best = 1e30;
  for (int run = 0; run < runs; run++) {
    const double begin = processor_ms();
    must(tutti_session_run(session, steps, NULL, &err), err);
    const double each = (processor_ms() - begin) / steps;
    best = each < best ? each : best;
  }
  if (getenv("TUTTI_BENCH_PROFILE") != NULL) print_profile(context, session, steps);
  tutti_session_unref(session);
  tutti_estimator_unref(estimator);
  tutti_strategy_unref(strategy);
  tutti_dataset_unref(dataset);
  return best;
}
