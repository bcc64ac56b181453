/* SPDX-License-Identifier: Apache-2.0
 *
 * In C what programs of other languages are compared with (language_bench.py).
 *
 *   language_bench fashion_mnist DATASET_DIRECTORY OUTPUT_DIRECTORY EPOCHS     examples/<language>/fashion_mnist
 *   language_bench push             1 MB batches through a feed, as many copied into a ring of the same size, and
 *                                   batches of 4 bytes through a feed, which is the wake-up of its reader
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <tutti/tutti.h>

enum { FLOATS = 1 << 18, CAPACITY = 4, WARM = 100, BATCHES = 2000 };

static void must(int32_t code, tutti_error *err) {
  if (code == TUTTI_OK) return;
  fprintf(stderr, "%s\n", tutti_error_get_text(err));
  exit(1);
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static int32_t model(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  (void)user;
  tutti_layer_conv2d_attrs conv = {.activation = TUTTI_LAYER_CONV2D_ACTIVATION_RELU};
  tutti_layer_dense_attrs dense = {.activation = TUTTI_LAYER_DENSE_ACTIVATION_RELU};
  tutti_value x = tutti_graph_get_feature(g, "image");
  x = tutti_layer_max_pool2d(g, tutti_layer_conv2d(g, x, 32, 3, &conv), 2, NULL);
  x = tutti_layer_max_pool2d(g, tutti_layer_conv2d(g, x, 64, 3, &conv), 2, NULL);
  x = tutti_layer_dense(g, tutti_layer_flatten(g, x), 128, &dense);
  tutti_value logits = tutti_layer_dense(g, x, 10, NULL);
  tutti_graph_set_output(g, "class", tutti_argmax(g, logits, NULL));
  if (mode != TUTTI_MODE_PREDICT) {
    tutti_value y = tutti_graph_get_label(g, "label");
    tutti_metric_accuracy(g, "accuracy", logits, y, NULL);
    tutti_graph_set_loss(g, tutti_loss_sparse_softmax_cross_entropy(g, logits, y, NULL));
    tutti_optimizer_adam(g, tutti_schedule_constant(g, 1e-3), NULL);
  }
  return tutti_graph_check(g, err);
}

static int32_t normalize(tutti_graph *g, void *user, tutti_error **err) {
  (void)user;
  tutti_value pixels = tutti_cast(g, tutti_graph_get_feature(g, "image"), TUTTI_DTYPE_F32);
  pixels = tutti_reshape(g, pixels, (int64_t[]){-1, 28, 28, 1}, 4);
  tutti_graph_set_output(g, "image", tutti_mul(g, pixels, tutti_graph_constant(g, TUTTI_DTYPE_F32, 1.0 / 255)));
  return tutti_graph_check(g, err);
}

static tutti_dataset *images(const char *folder, const char *prefix, int64_t shuffle, int64_t epochs) {
  char path[4096];
  tutti_error *err = NULL;
  tutti_pipeline *pipeline = NULL;
  tutti_dataset *out = NULL;
  tutti_pipeline_repeat_attrs passes = {.has_count = 1, .count = epochs};
  must(tutti_pipeline_create(NULL, &pipeline, &err), err);
  snprintf(path, sizeof path, "%s/%s-images-idx3-ubyte.gz", folder, prefix);
  tutti_pipeline_add_idx(pipeline, "image", TUTTI_ROLE_FEATURE, path);
  snprintf(path, sizeof path, "%s/%s-labels-idx1-ubyte.gz", folder, prefix);
  tutti_pipeline_add_idx(pipeline, "label", TUTTI_ROLE_LABEL, path);
  tutti_pipeline_shuffle(pipeline, shuffle, NULL);
  tutti_pipeline_repeat(pipeline, &passes);
  tutti_pipeline_batch(pipeline, 128, NULL);
  tutti_pipeline_map_graph(pipeline, normalize, NULL, 1);
  tutti_pipeline_prefetch(pipeline, NULL);
  must(tutti_pipeline_build(pipeline, &out, &err), err);
  tutti_pipeline_unref(pipeline);
  return out;
}

static void fashion_mnist(char **arguments) {
  tutti_error *err = NULL;
  tutti_strategy *all = NULL;
  tutti_options *run = NULL;
  tutti_estimator *estimator = NULL;
  tutti_result *trained = NULL, *evaluated = NULL;
  tutti_predictor *predictor = NULL;
  tutti_batch *batch = NULL;
  must(tutti_strategy_create_mirrored(NULL, NULL, 0, &all, &err), err);
  tutti_dataset *train = images(arguments[0], "train", 60000, atoll(arguments[2]));
  tutti_dataset *test = images(arguments[0], "t10k", 1, 1);
  must(tutti_options_create("run", &run, &err), err);
  tutti_options_set_string(run, "model_dir", arguments[1]), tutti_options_set_i64(run, "seed", 1);
  must(tutti_estimator_create(NULL, model, NULL, NULL, all, run, &estimator, &err), err);
  must(tutti_estimator_train(estimator, train, NULL, NULL, NULL, &trained, &err), err);
  must(tutti_estimator_evaluate(estimator, test, 0, NULL, &evaluated, &err), err);
  must(tutti_predictor_from_estimator(estimator, NULL, &predictor, &err), err);
  must(tutti_predictor_run_all(predictor, test, NULL, &batch, &err), err);
  printf("{\"test_accuracy\": %.4f, \"examples_per_second\": %.0f}\n", tutti_result_get_metric(evaluated, "accuracy"),
         (double)tutti_result_get_examples(trained) / tutti_result_get_seconds(trained));
}

static void *drain(void *user) {
  tutti_error *err = NULL;
  uint8_t has_element = 1;
  while (has_element)
    must(tutti_iterator_next(user, NULL, &has_element, &err), err);
  return NULL;
}

static double push_seconds(const float *data, int64_t floats, tutti_feed *feed) {
  tutti_error *err = NULL;
  double begin = 0;
  for (int i = -WARM; i < BATCHES; i++) {
    if (i == 0) begin = now();
    tutti_tensor *tensor = NULL;
    must(tutti_tensor_from_data(TUTTI_DTYPE_F32, &floats, 1, data, floats * (int64_t)sizeof *data, &tensor, &err), err);
    must(tutti_feed_push(feed, &tensor, 1, NULL, &err), err);
    tutti_tensor_unref(tensor);
  }
  return now() - begin;
}

/* Into one place of a ring after the other, as a feed's batches lie. */
static double copy_seconds(const float *data) {
  float *ring = malloc((CAPACITY + 2) * FLOATS * sizeof *ring);
  double begin = 0;
  for (int i = -WARM; i < BATCHES; i++) {
    if (i == 0) begin = now();
    memcpy(ring + (size_t)(i + WARM) % (CAPACITY + 2) * FLOATS, data, FLOATS * sizeof *data);
  }
  double seconds = now() - begin;
  free(ring);
  return seconds;
}

/* Pushes batches of so many floats while another thread reads them. */
static double seconds_through_feed(const float *data, int64_t floats) {
  tutti_error *err = NULL;
  tutti_feed *feed = NULL;
  tutti_pipeline *pipeline = NULL;
  tutti_dataset *dataset = NULL;
  tutti_iterator *iterator = NULL;
  must(tutti_feed_create(NULL, CAPACITY, &feed, &err), err);
  must(tutti_feed_declare(feed, "x", TUTTI_ROLE_FEATURE, TUTTI_DTYPE_F32, &floats, 1, &err), err);
  must(tutti_pipeline_create(NULL, &pipeline, &err), err);
  tutti_pipeline_add_feed(pipeline, feed);
  must(tutti_pipeline_build(pipeline, &dataset, &err), err);
  must(tutti_iterator_create(dataset, 0, &iterator, &err), err);
  pthread_t reader;
  if (pthread_create(&reader, NULL, drain, iterator) != 0) exit(1);
  double seconds = push_seconds(data, floats, feed);
  must(tutti_feed_finish(feed, &err), err);
  pthread_join(reader, NULL);
  tutti_iterator_unref(iterator), tutti_dataset_unref(dataset), tutti_pipeline_unref(pipeline), tutti_feed_unref(feed);
  return seconds;
}

static void push(void) {
  float *data = malloc(FLOATS * sizeof *data);
  for (int i = 0; i < FLOATS; i++)
    data[i] = (float)i;
  for (int round = 0; round < 5; round++) {
    double pushed = seconds_through_feed(data, FLOATS), copied = copy_seconds(data);
    double woken = seconds_through_feed(data, 1);
    printf("{\"push_microseconds\": %.2f, \"copy_microseconds\": %.2f, \"push_of_4_bytes_microseconds\": %.2f}\n",
           1e6 * pushed / BATCHES, 1e6 * copied / BATCHES, 1e6 * woken / BATCHES);
  }
  free(data);
}

int main(int argc, char **argv) {
  if (argc == 5 && strcmp(argv[1], "fashion_mnist") == 0) return fashion_mnist(argv + 2), 0;
  if (argc == 2 && strcmp(argv[1], "push") == 0) return push(), 0;
  fprintf(stderr, "usage: language_bench fashion_mnist DATASET OUTPUT EPOCHS | push\n");
  return 2;
}
