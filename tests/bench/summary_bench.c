/* SPDX-License-Identifier: Apache-2.0
 *
 * What summaries cost: processor time and wall time of training steps with them over those without, in one process.
 *
 *   summary_bench FOLDER [MODEL:BATCH:STEPS[:shown]]...      default: toy:64:10000 cnn:64:10
 *   summary_bench --train MODEL:BATCH:STEPS[:shown] [FOLDER]
 *
 * Two sessions of the same network on one device take turns, A B B A, of STEPS steps each, PAIRS times; one of them
 * writes a summary every 10 steps into FOLDER; "shown": with what the model shows of itself, a number and the
 * distribution of its input. Printed: the processor time of a step, and the medians of the ratios of
 * neighbours with their quartiles. "--train": so many steps and nothing else, without summaries where no folder is
 * named, for summary_gate.py, which counts instructions. */
#define _XOPEN_SOURCE 700 /* clocks */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "replica_networks.h"
#include "step_timing.h"

enum { PAIRS = 100, SUMMARY_STEPS = 10, WARM_UP_STEPS = 20 };

/* A training that is measured. */
struct training {
  tutti_estimator *estimator;
  tutti_session *session;
};

/* Seconds that a step took, by two clocks. */
struct times {
  double processor, wall;
};

static double seconds(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static tutti_dataset *make_dataset(tutti_context *context, const struct replica_network *network, int64_t batch) {
  const int64_t *image = network->image;
  const int64_t dims[] = {batch, image[0], image[1], image[2]}, rank = image[1] > 0 ? 4 : 2;
  tutti_tensor *images = NULL, *labels = NULL;
  tutti_pipeline *pipeline = NULL;
  tutti_dataset *dataset = NULL;
  tutti_error *err = NULL;
  void *values = NULL;
  must(tutti_tensor_create(TUTTI_DTYPE_F32, dims, rank, &images, &err), err);
  must(tutti_tensor_get_mutable_data(images, &values, &err), err);
  for (int64_t i = 0; i < tutti_tensor_get_element_count(images); i++)
    ((float *)values)[i] = (float)(i * 2654435761u % 2048) / 1024 - 1;
  must(tutti_tensor_create(TUTTI_DTYPE_I64, dims, 1, &labels, &err), err);
  must(tutti_tensor_get_mutable_data(labels, &values, &err), err);
  for (int64_t i = 0; i < batch; i++)
    ((int64_t *)values)[i] = i * 7919 % network->classes;
  must(tutti_pipeline_create(context, &pipeline, &err), err);
  tutti_pipeline_add_slices(pipeline, "image", TUTTI_ROLE_FEATURE, images);
  tutti_pipeline_add_slices(pipeline, "label", TUTTI_ROLE_LABEL, labels);
  tutti_pipeline_batch(pipeline, batch, NULL);
  tutti_pipeline_cache(pipeline, NULL);
  tutti_pipeline_repeat(pipeline, NULL);
  must(tutti_pipeline_build(pipeline, &dataset, &err), err);
  tutti_pipeline_unref(pipeline), tutti_tensor_unref(images), tutti_tensor_unref(labels);
  return dataset;
}

/* The network, and what it shows of itself. */
static int32_t shown_model(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  const int32_t code = replica_network_model(g, mode, user, err);
  const tutti_value image = tutti_graph_get_feature(g, "image");
  tutti_summary_scalar(g, "shown/mean", tutti_reduce_mean(g, image, NULL));
  tutti_summary_histogram(g, "shown/image", image);
  return code;
}

static struct training start(tutti_context *context, const struct replica_network *network, tutti_model_fn model,
                             const tutti_dataset *dataset, const char *folder) {
  struct training training = {NULL, NULL};
  tutti_error *err = NULL;
  tutti_options *run = NULL;
  must(tutti_options_create("run", &run, &err), err);
  tutti_options_set_i64(run, "save_summary_steps", folder != NULL ? SUMMARY_STEPS : 0);
  if (folder != NULL) tutti_options_set_string(run, "summary_dir", folder);
  must(tutti_estimator_create(context, model, (void *)(uintptr_t)network, NULL, NULL, run, &training.estimator, &err),
       err);
  must(tutti_session_open(training.estimator, dataset, NULL, NULL, NULL, &training.session, &err), err);
  must(tutti_session_run(training.session, WARM_UP_STEPS, NULL, &err), err);
  tutti_options_unref(run);
  return training;
}

static struct times turn(const struct training *training, int64_t steps) {
  tutti_error *err = NULL;
  const struct times begin = {seconds(CLOCK_PROCESS_CPUTIME_ID), seconds(CLOCK_MONOTONIC)};
  must(tutti_session_run(training->session, steps, NULL, &err), err);
  const struct times each = {(seconds(CLOCK_PROCESS_CPUTIME_ID) - begin.processor) / (double)steps,
                             (seconds(CLOCK_MONOTONIC) - begin.wall) / (double)steps};
  return each;
}

static int ascending(const void *a, const void *b) {
  return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b);
}

static void print_ratios(const char *what, double ratios[PAIRS]) {
  qsort(ratios, PAIRS, sizeof *ratios, ascending);
  printf("; %s %.4f (%.4f..%.4f)", what, ratios[PAIRS / 2], ratios[PAIRS / 4], ratios[3 * PAIRS / 4]);
}

/* What an argument asks for. */
struct request {
  char model[32];
  int32_t batch, steps, is_shown;
};

static struct request read_request(const char *text) {
  struct request request = {"", 0, 0, 0};
  char shown[8] = "";
  if (sscanf(text, "%31[^:]:%d:%d:%7s", request.model, &request.batch, &request.steps, shown) < 3) {
    fprintf(stderr, "'%s' is not MODEL:BATCH:STEPS[:shown]\n", text);
    exit(1);
  }
  request.is_shown = strcmp(shown, "shown") == 0;
  return request;
}

static const struct replica_network *find_network(const char *model) {
  const struct replica_network *network = replica_network_find(model);
  if (network == NULL) {
    fprintf(stderr, "there is no network '%s'\n", model);
    exit(1);
  }
  return network;
}

static void train(tutti_context *context, const struct request *request, const char *folder) {
  const struct replica_network *network = find_network(request->model);
  tutti_dataset *dataset = make_dataset(context, network, request->batch);
  const struct training training =
      start(context, network, request->is_shown ? shown_model : replica_network_model, dataset, folder);
  (void)turn(&training, request->steps);
  tutti_session_unref(training.session), tutti_estimator_unref(training.estimator), tutti_dataset_unref(dataset);
}

static void measure(tutti_context *context, const struct request *request, const char *folder) {
  const struct replica_network *network = find_network(request->model);
  const int64_t steps = request->steps;
  tutti_dataset *dataset = make_dataset(context, network, request->batch);
  const tutti_model_fn function = request->is_shown ? shown_model : replica_network_model;
  const struct training without = start(context, network, function, dataset, NULL),
                        with = start(context, network, function, dataset, folder);
  double processor[PAIRS], wall[PAIRS], plain[PAIRS];
  for (int i = 0; i < PAIRS; i++) {
    const struct times first = turn(i % 2 == 0 ? &without : &with, steps),
                       second = turn(i % 2 == 0 ? &with : &without, steps);
    const struct times *const none = i % 2 == 0 ? &first : &second, *const some = i % 2 == 0 ? &second : &first;
    plain[i] = none->processor;
    processor[i] = some->processor / none->processor, wall[i] = some->wall / none->wall;
  }
  qsort(plain, PAIRS, sizeof *plain, ascending);
  printf("%s b%d%s: %.2f us a step; with a summary every %d steps times", request->model, request->batch,
         request->is_shown ? " shown" : "", 1e6 * plain[PAIRS / 2], SUMMARY_STEPS);
  print_ratios("processor", processor), print_ratios("wall", wall);
  printf("\n");
  fflush(stdout);
  tutti_session_unref(without.session), tutti_session_unref(with.session);
  tutti_estimator_unref(without.estimator), tutti_estimator_unref(with.estimator);
  tutti_dataset_unref(dataset);
}

int main(int count, char **arguments) {
  static const char *const usual[] = {"toy:64:10000", "cnn:64:10"};
  const int is_training = count > 1 && strcmp(arguments[1], "--train") == 0;
  if (count < (is_training ? 3 : 2)) {
    fprintf(stderr,
            "usage: summary_bench FOLDER [MODEL:BATCH:STEPS[:shown]]...\n"
            "       summary_bench --train MODEL:BATCH:STEPS[:shown] [FOLDER]\n");
    return 1;
  }
  tutti_context *context = one_thread();
  if (is_training) {
    const struct request request = read_request(arguments[2]);
    train(context, &request, count > 3 ? arguments[3] : NULL);
  } else {
    for (int i = 0; i < (count > 2 ? count - 2 : 2); i++) {
      const struct request request = read_request(count > 2 ? arguments[i + 2] : usual[i]);
      measure(context, &request, arguments[1]);
    }
  }
  tutti_context_unref(context);
  return 0;
}
