/* SPDX-License-Identifier: Apache-2.0
 *
 * A training as a user writes it, for so many steps: images that are shuffled, mapped and batched with an odd last
 * batch, several logical devices, checkpoints of which some are kept. After every tenth of the steps a line with what
 * the process holds of the host's memory; tests/gpu/soak.py looks at the device's then. At the end one with the loss.
 *
 *   estimator_soak BACKEND STEPS DEVICES FOLDER [IMAGES BATCH]      FOLDER: of the checkpoints; 1003 images, 64 of them
 *                                                                   a batch
 *
 *   {"step": 100, "resident_bytes": 123456789}
 *   {"done": 1000, "loss": 0.123, "checkpoints": 2}
 */
#define _XOPEN_SOURCE 700 /* directories, page sizes */

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "replica_networks.h"

enum { KEPT = 2, MISSING = 77 };

static int64_t images_in_all = 1003, batch = 64;

/* `err` by its address: arguments are made in any order. */
static void check(int32_t code, const char *what, tutti_error **err) {
  if (code == TUTTI_OK) return;
  const int is_missing = tutti_error_get_code(*err) == TUTTI_UNAVAILABLE && strcmp(what, "context") == 0;
  printf("%s%s: %s\n", is_missing ? "skipped: " : "", what, tutti_error_get_text(*err));
  exit(is_missing ? MISSING : 1);
}

static int64_t resident_bytes(void) {
  long long pages = 0, resident = 0;
  FILE *const file = fopen("/proc/self/statm", "r");
  if (file != NULL && fscanf(file, "%lld %lld", &pages, &resident) != 2) resident = 0;
  if (file != NULL) fclose(file);
  return resident * sysconf(_SC_PAGESIZE);
}

static int64_t checkpoints_in(const char *folder) {
  int64_t count = 0;
  DIR *const directory = opendir(folder);
  if (directory == NULL) return -1;
  for (struct dirent *entry = readdir(directory); entry != NULL; entry = readdir(directory))
    count += strncmp(entry->d_name, "checkpoint-", strlen("checkpoint-")) == 0;
  closedir(directory);
  return count;
}

static int32_t scale(tutti_graph *g, void *user, tutti_error **err) {
  (void)user;
  tutti_value x = tutti_graph_get_feature(g, "image");
  tutti_graph_set_output(g, "image", tutti_mul(g, x, tutti_graph_constant(g, TUTTI_DTYPE_F32, 0.5)));
  return tutti_graph_check(g, err);
}

static tutti_dataset *make_dataset(tutti_context *context, const struct replica_network *network) {
  const int64_t dims[] = {images_in_all, network->image[0], network->image[1], network->image[2]};
  tutti_tensor *images = NULL, *labels = NULL;
  tutti_pipeline *pipeline = NULL;
  tutti_dataset *dataset = NULL;
  tutti_error *err = NULL;
  void *values = NULL;
  check(tutti_tensor_create(TUTTI_DTYPE_F32, dims, 4, &images, &err), "images", &err);
  check(tutti_tensor_create(TUTTI_DTYPE_I64, dims, 1, &labels, &err), "labels", &err);
  check(tutti_tensor_get_mutable_data(images, &values, &err), "images", &err);
  for (int64_t i = 0; i < tutti_tensor_get_element_count(images); i++)
    ((float *)values)[i] = (float)(i * 2654435761u % 2048) / 1024 - 1;
  check(tutti_tensor_get_mutable_data(labels, &values, &err), "labels", &err);
  for (int64_t i = 0; i < images_in_all; i++)
    ((int64_t *)values)[i] = i * 7919 % network->classes;
  check(tutti_pipeline_create(context, &pipeline, &err), "pipeline", &err);
  tutti_pipeline_add_slices(pipeline, "image", TUTTI_ROLE_FEATURE, images);
  tutti_pipeline_add_slices(pipeline, "label", TUTTI_ROLE_LABEL, labels);
  tutti_pipeline_shuffle(pipeline, images_in_all, NULL);
  tutti_pipeline_batch(pipeline, batch, NULL);
  tutti_pipeline_map_graph(pipeline, scale, NULL, 1);
  tutti_pipeline_repeat(pipeline, NULL);
  tutti_pipeline_prefetch(pipeline, NULL);
  check(tutti_pipeline_build(pipeline, &dataset, &err), "dataset", &err);
  tutti_pipeline_unref(pipeline), tutti_tensor_unref(images), tutti_tensor_unref(labels);
  return dataset;
}

static int32_t report(void *user, const tutti_hook_event *event, tutti_error **err) {
  (void)err, (void)user;
  if (tutti_hook_event_get_kind(event) != TUTTI_EVENT_STEP) return TUTTI_OK;
  printf("{\"step\": %lld, \"resident_bytes\": %lld}\n", (long long)tutti_hook_event_get_step(event),
         (long long)resident_bytes());
  return TUTTI_OK;
}

int main(int argc, char **argv) {
  if (argc != 5 && argc != 7) {
    fprintf(stderr, "usage: %s BACKEND STEPS DEVICES FOLDER [IMAGES BATCH]\n", argv[0]);
    return 2;
  }
  if (argc == 7) images_in_all = atoll(argv[5]), batch = atoll(argv[6]);
  setvbuf(stdout, NULL, _IOLBF, 0);
  const int64_t steps = atoll(argv[2]), tenth = steps >= 10 ? steps / 10 : 1;
  const struct replica_network *network = replica_network_find("cnn");
  tutti_error *err = NULL;
  tutti_options *options = NULL, *run = NULL, *train = NULL;
  tutti_context *context = NULL;
  tutti_strategy *strategy = NULL;
  tutti_estimator *estimator = NULL;
  tutti_hooks *hooks = NULL;
  tutti_result *result = NULL;
  check(tutti_options_create("context", &options, &err), "options", &err);
  tutti_options_set_string(options, "backend", argv[1]);
  tutti_options_set_i64(options, "logical_devices", atoll(argv[3]));
  check(tutti_context_create(options, &context, &err), "context", &err);
  check(tutti_strategy_create_mirrored(context, NULL, 0, &strategy, &err), "strategy", &err);
  check(tutti_options_create("run", &run, &err), "options", &err);
  tutti_options_set_string(run, "model_dir", argv[4]);
  tutti_options_set_i64(run, "save_checkpoints_steps", tenth);
  tutti_options_set_i64(run, "keep_checkpoint_max", KEPT);
  check(tutti_options_create("train", &train, &err), "options", &err);
  tutti_options_set_i64(train, "steps", steps);
  check(tutti_hooks_create(&hooks, &err), "hooks", &err);
  check(tutti_hooks_add(hooks, report, NULL, NULL, tenth, &err), "hooks", &err);
  check(tutti_estimator_create(context, replica_network_model, (void *)(uintptr_t)network, NULL, strategy, run,
                               &estimator, &err),
        "estimator", &err);
  tutti_dataset *dataset = make_dataset(context, network);
  check(tutti_estimator_train(estimator, dataset, train, hooks, NULL, &result, &err), "train", &err);
  const double loss = tutti_result_get_loss(result);
  const int64_t done = tutti_result_get_step(result), checkpoints = checkpoints_in(argv[4]);
  printf("{\"done\": %lld, \"loss\": %.6g, \"checkpoints\": %lld}\n", (long long)done, loss, (long long)checkpoints);
  tutti_result_unref(result), tutti_hooks_unref(hooks), tutti_estimator_unref(estimator);
  tutti_dataset_unref(dataset), tutti_strategy_unref(strategy), tutti_context_unref(context);
  tutti_options_unref(options), tutti_options_unref(run), tutti_options_unref(train);
  return !(isfinite(loss) && done == steps && checkpoints == KEPT);
}
