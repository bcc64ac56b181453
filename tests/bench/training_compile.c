/* SPDX-License-Identifier: Apache-2.0
 *
 * Compiles the training steps of the benchmark networks for devices that need not be here, and prints what they need,
 * as the library of the devices counts it: a line for each network.
 *
 *   training_compile LIBRARY TOPOLOGY [NETWORK...]
 *
 * LIBRARY has the C interface of PJRT; the steps are those of one replica on each device of TOPOLOGY, with 32 rows for
 * each. +bf16 behind the name of a network permits factors rounded to bfloat16. The exit status is the number of
 * networks that do not compile.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "replica_networks.h"

enum { ROWS_OF_REPLICA = 32 };

static const char *const usual[] = {"mlp", "cnn", "resnet20", "resnet18", "resnet50"};

static int failed(const char *network, tutti_error *err) {
  printf("%-10s %s\n", network, tutti_error_get_text(err));
  tutti_error_unref(err);
  return 1;
}

/* A batch of zeros. */
static int32_t make_dataset(tutti_context *context, const struct replica_network *network, int64_t rows,
                            tutti_dataset **out, tutti_error **err) {
  const int64_t dims[] = {rows, network->image[0], network->image[1], network->image[2]};
  const int64_t rank = network->image[1] == 0 ? 2 : 4;
  tutti_tensor *x = NULL, *y = NULL;
  tutti_pipeline *pipeline = NULL;
  int32_t code = tutti_tensor_create(TUTTI_DTYPE_F32, dims, rank, &x, err);
  if (code == TUTTI_OK) code = tutti_tensor_create(TUTTI_DTYPE_I32, dims, 1, &y, err);
  if (code == TUTTI_OK) code = tutti_pipeline_create(context, &pipeline, err);
  if (code == TUTTI_OK) {
    tutti_pipeline_add_slices(pipeline, "image", TUTTI_ROLE_FEATURE, x);
    tutti_pipeline_add_slices(pipeline, "label", TUTTI_ROLE_LABEL, y);
    tutti_pipeline_batch(pipeline, rows, NULL);
    code = tutti_pipeline_build(pipeline, out, err);
  }
  tutti_tensor_unref(x), tutti_tensor_unref(y), tutti_pipeline_unref(pipeline);
  return code;
}

static int32_t run_options(const char *permitted, tutti_options **out, tutti_error **err) {
  const int32_t code = tutti_options_create("run", out, err);
  if (code == TUTTI_OK && strcmp(permitted, "+bf16") == 0)
    tutti_options_set_string(*out, "precision", "bf16_where_faster");
  return code;
}

static double seconds(void) {
  struct timespec now;
  timespec_get(&now, TIME_UTC);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int compile(tutti_context *context, const char *name) {
  char plain[32] = "";
  const size_t length = strcspn(name, "+");
  if (length < sizeof plain) memcpy(plain, name, length);
  const struct replica_network *network = replica_network_find(plain);
  if (network == NULL) return printf("%-10s there is no such network\n", name), 1;
  const int64_t replicas = tutti_context_get_device_count(context);
  tutti_error *err = NULL;
  tutti_strategy *all = NULL;
  tutti_options *options = NULL;
  tutti_dataset *dataset = NULL;
  tutti_estimator *estimator = NULL;
  const char *estimate = NULL;
  const double begin = seconds();
  int32_t code = tutti_strategy_create_mirrored(context, NULL, 0, &all, &err);
  if (code == TUTTI_OK) code = make_dataset(context, network, replicas * ROWS_OF_REPLICA, &dataset, &err);
  if (code == TUTTI_OK) code = run_options(name + length, &options, &err);
  if (code == TUTTI_OK)
    code =
        tutti_estimator_create(context, replica_network_model, (void *)network, NULL, all, options, &estimator, &err);
  if (code == TUTTI_OK) code = tutti_estimator_estimate_memory(estimator, dataset, 0, &estimate, &err);
  if (code == TUTTI_OK) printf("%-14s %6.1f s %s\n", name, seconds() - begin, estimate);
  tutti_estimator_unref(estimator), tutti_dataset_unref(dataset), tutti_options_unref(options);
  tutti_strategy_unref(all);
  return code == TUTTI_OK ? 0 : failed(name, err);
}

int main(int count, char **arguments) {
  if (count < 3) return fprintf(stderr, "usage: training_compile LIBRARY TOPOLOGY [NETWORK...]\n"), 2;
  tutti_error *err = NULL;
  tutti_options *options = NULL;
  tutti_context *context = NULL;
  int32_t code = tutti_options_create("context", &options, &err);
  if (code == TUTTI_OK) {
    tutti_options_set_string(options, "backend", "pjrt");
    tutti_options_set_string(options, "pjrt_plugin", arguments[1]);
    tutti_options_set_string(options, "pjrt_topology", arguments[2]);
    code = tutti_context_create(options, &context, &err);
  }
  tutti_options_unref(options);
  if (code != TUTTI_OK) return failed(arguments[2], err);
  const int named = count - 3, networks = named > 0 ? named : (int)(sizeof usual / sizeof *usual);
  int failures = 0;
  for (int n = 0; n < networks; n++)
    failures += compile(context, named > 0 ? arguments[3 + n] : usual[n]), fflush(stdout);
  tutti_context_unref(context);
  return failures;
}
