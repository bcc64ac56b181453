/* SPDX-License-Identifier: Apache-2.0
 *
 * Training steps through the C API on one or more devices, with Adam on a fixed batch from memory, and predictions of
 * such a batch over and over, as a stream; answers requests as step_server.h says:
 *
 *   replica_bench [BACKEND]
 *
 *   measure FORM MODEL BATCH THREADS CONFIGURATION SECONDS   {"cpu_ms", "thread_ms", "wall_ms", "steps", "peak_mb"}
 *   steps FORM MODEL BATCH THREADS CONFIGURATION COUNT       the same of so many steps
 *   report                                                   where the time of the training went, which ends, as
 *                                                            tutti_result_get_step_report has it
 *   drop                                                     {}
 *
 * FORM training or inference. CONFIGURATION one_device: a device with THREADS threads; two_devices: THREADS devices
 * with one thread each; worker: a device with THREADS threads, as one of the workers that the environment names
 * (tutti_strategy_create_multi_worker_from_environment), the GPU whose number LOCAL_RANK says where that is set; all of
 * them are asked the same at the same time, for so many steps. +bf16 behind it permits factors rounded to bfloat16.
 * BATCH is that of a step on all of them together. Times are of a step: cpu_ms what all threads took of the processors,
 * thread_ms the one that took most, -1 where that cannot be told.
 */
#define _XOPEN_SOURCE 700 /* clocks and resource usage */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "replica_networks.h"
#include "thread_clocks.h"

/* How long a worker waits for another, and its first steps. */
enum { WORKER_TIMEOUT_MS = 60000, WARM_UP_STEPS = 10 };

struct request {
  char form[32], model[32], configuration[32];
  int64_t batch, devices, threads_each;
};

/* Of the command line; NULL: what the library thinks best. */
static const char *backend;

/* What is kept between requests; zeros when there is none. */
struct running {
  struct request request;
  tutti_context *context;
  tutti_dataset *dataset;
  tutti_strategy *strategy;
  tutti_estimator *estimator;
  tutti_session *session;     /* of training */
  tutti_predictor *predictor; /* else */
  tutti_prediction_stream *stream;
};

static double seconds_of(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* `err` by its address: arguments are made in any order. */
static void check(int32_t code, tutti_error **err) {
  if (code == TUTTI_OK) return;
  printf("{\"error\": \"");
  for (const char *at = tutti_error_get_text(*err); *at != '\0'; at++)
    putchar(*at == '"' || *at == '\\' || (unsigned char)*at < ' ' ? '\'' : *at);
  printf("\"}\n");
  exit(1);
}

/* One batch, over and over. */
static tutti_dataset *make_dataset(tutti_context *context, const struct replica_network *network, int64_t batch) {
  const int64_t *image = network->image;
  const int64_t dims[] = {batch, image[0], image[1], image[2]}, rank = image[1] > 0 ? 4 : 2;
  tutti_tensor *images = NULL, *labels = NULL;
  tutti_pipeline *pipeline = NULL;
  tutti_dataset *dataset = NULL;
  tutti_error *err = NULL;
  check(tutti_tensor_create(TUTTI_DTYPE_F32, dims, rank, &images, &err), &err);
  check(tutti_tensor_create(TUTTI_DTYPE_I64, dims, 1, &labels, &err), &err);
  void *values = NULL;
  check(tutti_tensor_get_mutable_data(images, &values, &err), &err);
  for (int64_t i = 0; i < tutti_tensor_get_element_count(images); i++)
    ((float *)values)[i] = (float)(i * 2654435761u % 2048) / 1024 - 1;
  check(tutti_tensor_get_mutable_data(labels, &values, &err), &err);
  for (int64_t i = 0; i < batch; i++)
    ((int64_t *)values)[i] = i * 7919 % network->classes;
  check(tutti_pipeline_create(context, &pipeline, &err), &err);
  tutti_pipeline_add_slices(pipeline, "image", TUTTI_ROLE_FEATURE, images);
  tutti_pipeline_add_slices(pipeline, "label", TUTTI_ROLE_LABEL, labels);
  tutti_pipeline_batch(pipeline, batch, NULL);
  tutti_pipeline_cache(pipeline, NULL);
  tutti_pipeline_repeat(pipeline, NULL);
  check(tutti_pipeline_build(pipeline, &dataset, &err), &err);
  tutti_pipeline_unref(pipeline), tutti_tensor_unref(images), tutti_tensor_unref(labels);
  return dataset;
}

static int is_worker(const struct request *request) {
  return strncmp(request->configuration, "worker", strlen("worker")) == 0;
}

static void make_strategy(struct running *running) {
  const struct request *request = &running->request;
  tutti_error *err = NULL;
  tutti_options *options = NULL;
  check(tutti_options_create("context", &options, &err), &err);
  if (backend != NULL) tutti_options_set_string(options, "backend", backend);
  tutti_options_set_from_environment(options); /* TPU_LIBRARY_PATH, for pjrt */
  tutti_options_set_i64(options, "logical_devices", request->devices);
  const char *const gpu = getenv("LOCAL_RANK");
  if (is_worker(request) && gpu != NULL) tutti_options_set_string(options, "gpus", gpu);
  check(tutti_context_create(options, &running->context, &err), &err);
  tutti_options_unref(options);
  const int32_t code =
      is_worker(request)
          ? tutti_strategy_create_multi_worker_from_environment(running->context, NULL, &running->strategy, &err)
          : tutti_strategy_create_mirrored(running->context, NULL, 0, &running->strategy, &err);
  check(code, &err);
}

static void drop(struct running *running) {
  tutti_prediction_stream_unref(running->stream), tutti_predictor_unref(running->predictor);
  tutti_session_unref(running->session), tutti_estimator_unref(running->estimator);
  tutti_strategy_unref(running->strategy), tutti_dataset_unref(running->dataset);
  tutti_context_unref(running->context);
  memset(running, 0, sizeof *running);
}

static void start(struct running *running, const struct replica_network *network) {
  const struct request *request = &running->request;
  tutti_error *err = NULL;
  tutti_options *run = NULL;
  make_strategy(running);
  check(tutti_options_create("run", &run, &err), &err);
  tutti_options_set_i64(run, "threads_per_replica", request->threads_each);
  if (is_worker(request)) tutti_options_set_i64(run, "collective_timeout_ms", WORKER_TIMEOUT_MS);
  if (strstr(request->configuration, "+bf16") != NULL) tutti_options_set_string(run, "precision", "bf16_where_faster");
  check(tutti_estimator_create(running->context, replica_network_model, (void *)(uintptr_t)network, NULL,
                               running->strategy, run, &running->estimator, &err),
        &err);
  running->dataset = make_dataset(running->context, network, request->batch);
  tutti_options_unref(run);
  check(tutti_session_open(running->estimator, running->dataset, NULL, NULL, NULL, &running->session, &err), &err);
  if (strcmp(request->form, "training") == 0) return;
  /* A step makes the weights; its memory goes. */
  check(tutti_session_run(running->session, 1, NULL, &err), &err);
  check(tutti_predictor_from_estimator(running->estimator, NULL, &running->predictor, &err), &err);
  tutti_session_unref(running->session);
  running->session = NULL;
  check(tutti_prediction_stream_open(running->predictor, running->dataset, &running->stream, &err), &err);
}

static void run_steps(struct running *running, int64_t count) {
  tutti_error *err = NULL;
  if (running->session != NULL) {
    check(tutti_session_run(running->session, count, NULL, &err), &err);
    return;
  }
  for (int64_t i = 0; i < count; i++) {
    tutti_batch *batch = NULL;
    check(tutti_prediction_stream_next(running->stream, NULL, &batch, &err), &err);
    if (tutti_batch_get_row_count(batch) != running->request.batch) {
      printf("{\"error\": \"%lld rows were predicted\"}\n", (long long)tutti_batch_get_row_count(batch));
      exit(1);
    }
    tutti_batch_unref(batch);
  }
}

/* For so long, and at least so many; how many it was. */
static int64_t run_for(struct running *running, double seconds, int64_t least) {
  const double begin = seconds_of(CLOCK_MONOTONIC);
  int64_t steps = 0, stretch = 1;
  for (double last = begin; steps < least || last - begin < seconds;) {
    run_steps(running, stretch);
    steps += stretch;
    const double now = seconds_of(CLOCK_MONOTONIC);
    if (now - last < 0.01) stretch *= 2;
    last = now;
  }
  return steps;
}

/* So many steps, or, for 0, as many as there are in so many seconds. */
static void measure(struct running *running, double seconds, int64_t steps) {
  struct thread_clocks threads;
  thread_clocks_read(&threads);
  const double cpu = seconds_of(CLOCK_PROCESS_CPUTIME_ID), wall = seconds_of(CLOCK_MONOTONIC);
  if (steps > 0) {
    run_steps(running, steps);
  } else {
    steps = run_for(running, seconds, 1);
  }
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  const double cpu_ms = 1e3 * (seconds_of(CLOCK_PROCESS_CPUTIME_ID) - cpu) / (double)steps;
  const double wall_ms = 1e3 * (seconds_of(CLOCK_MONOTONIC) - wall) / (double)steps;
  const double most = thread_clocks_most_since(&threads);
  printf("{\"cpu_ms\": %.6f, \"thread_ms\": %.6f, \"wall_ms\": %.6f, \"steps\": %lld, \"peak_mb\": %.3f}\n", cpu_ms,
         most < 0 ? -1 : 1e3 * most / (double)steps, wall_ms, (long long)steps, (double)usage.ru_maxrss * 1.024e-3);
}

static void report(struct running *running) {
  tutti_error *err = NULL;
  tutti_result *result = NULL;
  if (running->session == NULL) {
    printf("{\"error\": \"there is no training\"}\n");
    return;
  }
  check(tutti_session_close(running->session, &result, &err), &err);
  printf("%s\n", tutti_result_get_step_report(result));
  tutti_result_unref(result);
  drop(running);
}

/* Makes what is asked for, unless it is there already, and does its first steps. */
static void make_ready(struct running *running, const struct request *request, const struct replica_network *network) {
  if (running->context != NULL && memcmp(request, &running->request, sizeof *request) == 0) return;
  drop(running);
  running->request = *request;
  start(running, network);
  if (is_worker(request)) {
    run_steps(running, WARM_UP_STEPS);
  } else {
    (void)run_for(running, 0.2, 2);
  }
}

static void answer(struct running *running, const char *line) {
  struct request request;
  memset(&request, 0, sizeof request);
  char verb[16] = "";
  long long batch = 0, threads = 0;
  double amount = 0;
  const int read = sscanf(line, "%15s %31s %31s %lld %lld %31s %lf", verb, request.form, request.model, &batch,
                          &threads, request.configuration, &amount);
  if (strcmp(verb, "drop") == 0) {
    drop(running);
    printf("{}\n");
    return;
  }
  if (strcmp(verb, "report") == 0) {
    report(running);
    return;
  }
  const int counts = strcmp(verb, "steps") == 0 && amount >= 1;
  const int is_known = counts || strcmp(verb, "measure") == 0;
  const struct replica_network *network = read == 7 && is_known ? replica_network_find(request.model) : NULL;
  if (network == NULL || (strcmp(request.form, "training") != 0 && strcmp(request.form, "inference") != 0)) {
    printf("{\"error\": \"not a request this program knows\"}\n");
    return;
  }
  const int several = strncmp(request.configuration, "two_devices", strlen("two_devices")) == 0;
  request.batch = batch;
  request.devices = several ? threads : 1;
  request.threads_each = several ? 1 : threads;
  make_ready(running, &request, network);
  measure(running, amount, counts ? (int64_t)amount : 0);
}

int main(int argc, char **argv) {
  if (argc > 1) backend = argv[1];
  struct running running;
  memset(&running, 0, sizeof running);
  setvbuf(stdout, NULL, _IOLBF, 0);
  printf("{\"name\": \"tutti through the C API\"}\n");
  char line[256];
  while (fgets(line, sizeof line, stdin) != NULL)
    answer(&running, line);
  drop(&running);
  return 0;
}
