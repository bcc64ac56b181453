/* SPDX-License-Identifier: Apache-2.0
 *
 * Trains a small convolutional network on Fashion-MNIST over every device of this machine, evaluates it, and predicts
 * the test images (10,000) on all devices. Writes a checkpoint, and the record of the run that `tutti report` makes a
 * page of.
 *
 *   fashion_mnist DATASET_DIRECTORY OUTPUT_DIRECTORY [EPOCHS]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/tutti.h>

enum { CLASS_COUNT = 10, SHUFFLE_BUFFER = 60000, BATCH = 128 };

static const char *const class_names[CLASS_COUNT] = {"T-shirt", "Trouser", "Pullover", "Dress", "Coat",
                                                     "Sandal",  "Shirt",   "Sneaker",  "Bag",   "Ankle boot"};

static void fail(const char *what, tutti_error *err) {
  fprintf(stderr, "%s: %s\n", what, tutti_error_get_text(err));
  exit(1);
}

static int32_t model(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  double *steps = user;
  tutti_layer_conv2d_attrs conv = {.activation = TUTTI_LAYER_CONV2D_ACTIVATION_RELU};
  tutti_layer_dense_attrs dense = {.activation = TUTTI_LAYER_DENSE_ACTIVATION_RELU};
  tutti_value x = tutti_graph_get_feature(g, "image");
  x = tutti_layer_max_pool2d(g, tutti_layer_conv2d(g, x, 32, 3, &conv), 2, NULL);
  x = tutti_layer_max_pool2d(g, tutti_layer_conv2d(g, x, 64, 3, &conv), 2, NULL);
  x = tutti_layer_dense(g, tutti_layer_flatten(g, x), 128, &dense);
  if (mode == TUTTI_MODE_TRAIN) x = tutti_layer_dropout(g, x, 0.4);
  tutti_value logits = tutti_layer_dense(g, x, CLASS_COUNT, NULL);
  tutti_graph_set_output(g, "class", tutti_argmax(g, logits, NULL));
  if (mode != TUTTI_MODE_PREDICT) {
    tutti_value y = tutti_graph_get_label(g, "label");
    tutti_metric_accuracy(g, "accuracy", logits, y, NULL);
    if (mode == TUTTI_MODE_EVAL) tutti_metric_confusion_matrix(g, "confusion_matrix", logits, y, NULL);
    tutti_graph_set_loss(g, tutti_loss_sparse_softmax_cross_entropy(g, logits, y, NULL));
    tutti_optimizer_adam(g, tutti_schedule_cosine(g, 2e-3, (int64_t)*steps, NULL), NULL);
  }
  return tutti_graph_check(g, err);
}

/* u8 images [28, 28] become float images [28, 28, 1] in [0, 1]. */
static int32_t normalize(tutti_graph *g, void *user, tutti_error **err) {
  (void)user;
  tutti_value pixels = tutti_cast(g, tutti_graph_get_feature(g, "image"), TUTTI_DTYPE_F32);
  tutti_value scaled = tutti_mul(g, pixels, tutti_graph_constant(g, TUTTI_DTYPE_F32, 1.0 / 255));
  int64_t shape[] = {-1, 28, 28, 1};
  tutti_graph_set_output(g, "image", tutti_reshape(g, scaled, shape, 4));
  return tutti_graph_check(g, err);
}

static tutti_dataset *open_dataset(const char *directory, const char *prefix, int epochs) {
  char images[4096], labels[4096];
  snprintf(images, sizeof images, "%s/%s-images-idx3-ubyte.gz", directory, prefix);
  snprintf(labels, sizeof labels, "%s/%s-labels-idx1-ubyte.gz", directory, prefix);
  tutti_error *err = NULL;
  tutti_pipeline *pipeline = NULL;
  tutti_dataset *dataset = NULL;
  if (tutti_pipeline_create(NULL, &pipeline, &err)) fail("pipeline", err);
  tutti_pipeline_add_idx(pipeline, "image", TUTTI_ROLE_FEATURE, images);
  tutti_pipeline_add_idx(pipeline, "label", TUTTI_ROLE_LABEL, labels);
  if (epochs > 0) {
    tutti_pipeline_shuffle(pipeline, SHUFFLE_BUFFER, NULL);
    tutti_pipeline_repeat_attrs passes = {.has_count = 1, .count = epochs};
    tutti_pipeline_repeat(pipeline, &passes);
  }
  tutti_pipeline_batch(pipeline, BATCH, NULL);
  tutti_pipeline_map_graph(pipeline, normalize, NULL, 1);
  tutti_pipeline_prefetch(pipeline, NULL);
  if (tutti_pipeline_build(pipeline, &dataset, &err)) fail("dataset", err);
  tutti_pipeline_unref(pipeline);
  return dataset;
}

/* Predicts every test image, compares with the labels and prints the accuracy per class. */
static double predict_and_compare(tutti_estimator *estimator, tutti_dataset *test, const char *directory) {
  tutti_error *err = NULL;
  tutti_predictor *predictor = NULL;
  tutti_batch *batch = NULL;
  if (tutti_predictor_from_estimator(estimator, NULL, &predictor, &err) ||
      tutti_predictor_run_all(predictor, test, NULL, &batch, &err))
    fail("predict", err);
  const int64_t *predicted = tutti_tensor_get_data(tutti_batch_get_output(batch, "class"));
  int64_t images = tutti_batch_get_row_count(batch);

  char path[4096];
  snprintf(path, sizeof path, "%s/t10k-labels-idx1-ubyte.gz", directory);
  tutti_pipeline *pipeline = NULL;
  tutti_dataset *labels = NULL;
  tutti_iterator *iterator = NULL;
  if (tutti_pipeline_create(NULL, &pipeline, &err)) fail("pipeline", err);
  tutti_pipeline_add_idx(pipeline, "label", TUTTI_ROLE_LABEL, path);
  tutti_pipeline_batch(pipeline, images, NULL);
  uint8_t more = 0;
  if (tutti_pipeline_build(pipeline, &labels, &err) || tutti_iterator_create(labels, 0, &iterator, &err) ||
      tutti_iterator_next(iterator, NULL, &more, &err))
    fail("labels", err);
  const uint8_t *truth = tutti_tensor_get_data(tutti_iterator_get_component(iterator, 0));

  int total[CLASS_COUNT] = {0}, right[CLASS_COUNT] = {0}, all_right = 0;
  for (int64_t i = 0; i < images; i++) {
    total[truth[i]]++;
    right[truth[i]] += predicted[i] == truth[i];
    all_right += predicted[i] == truth[i];
  }
  printf("\n%-12s %8s %8s\n", "class", "images", "right");
  for (int c = 0; c < CLASS_COUNT; c++)
    printf("%-12s %8d %7.1f%%\n", class_names[c], total[c], total[c] > 0 ? 100.0 * right[c] / total[c] : 0);

  tutti_iterator_unref(iterator);
  tutti_dataset_unref(labels);
  tutti_pipeline_unref(pipeline);
  tutti_batch_unref(batch);
  tutti_predictor_unref(predictor);
  return (double)all_right / (double)images;
}

int main(int argc, char **argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: %s DATASET_DIRECTORY OUTPUT_DIRECTORY [EPOCHS]\n", argv[0]);
    return 2;
  }
  const char *directory = argv[1], *output = argv[2];
  int epochs = argc > 3 ? atoi(argv[3]) : 8;
  tutti_error *err = NULL;
  tutti_strategy *strategy = NULL;
  tutti_options *run = NULL, *train_options = NULL;
  tutti_hooks *hooks = NULL;
  tutti_estimator *estimator = NULL;
  tutti_result *trained = NULL, *evaluated = NULL;
  tutti_dataset *train = open_dataset(directory, "train", epochs), *test = open_dataset(directory, "t10k", 0);
  double steps = (double)tutti_dataset_get_cardinality(train);

  if (tutti_strategy_create_mirrored(NULL, NULL, 0, &strategy, &err)) fail("strategy", err);
  if (tutti_options_create("run", &run, &err) || tutti_options_create("train", &train_options, &err))
    fail("options", err);
  tutti_options_set_i64(train_options, "max_steps", (int64_t)steps);
  tutti_options_set_i64(run, "seed", 1);
  tutti_options_set_i64(run, "save_summary_steps", 20);
  tutti_options_set_string(run, "model_dir", output);
  if (tutti_hooks_create(&hooks, &err) || tutti_hooks_add_progress(hooks, TUTTI_PROGRESS_AUTO, &err))
    fail("hooks", err);
  if (tutti_estimator_create(NULL, model, &steps, NULL, strategy, run, &estimator, &err)) fail("estimator", err);
  printf("training on %lld replicas, batches of %d images\n", (long long)tutti_strategy_get_replica_count(strategy),
         BATCH);
  if (tutti_estimator_train(estimator, train, train_options, hooks, NULL, &trained, &err)) fail("train", err);
  if (tutti_estimator_evaluate(estimator, test, 0, NULL, &evaluated, &err)) fail("evaluate", err);
  double accuracy = predict_and_compare(estimator, test, directory);

  printf(
      "{\"test_accuracy\": %.4f, \"evaluated_accuracy\": %.4f, \"test_loss\": %.4f, \"examples_per_second\": %.0f, "
      "\"replicas\": %lld, \"global_step\": %lld}\n",
      accuracy, tutti_result_get_metric(evaluated, "accuracy"), tutti_result_get_loss(evaluated),
      (double)tutti_result_get_examples(trained) / tutti_result_get_seconds(trained),
      (long long)tutti_strategy_get_replica_count(strategy), (long long)tutti_result_get_step(trained));

  tutti_result_unref(evaluated), tutti_result_unref(trained);
  tutti_estimator_unref(estimator), tutti_hooks_unref(hooks), tutti_options_unref(run),
      tutti_options_unref(train_options), tutti_strategy_unref(strategy);
  tutti_dataset_unref(train), tutti_dataset_unref(test);
  return 0;
}
