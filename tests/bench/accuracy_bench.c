/* SPDX-License-Identifier: Apache-2.0
 *
 * Trains a known network on Fashion-MNIST over all devices of a backend and prints the test accuracy it ends with as a
 * JSON object: whether kernels, optimizers and the input pipeline learn what they should.
 *
 *   accuracy_bench DATASET_DIRECTORY mlp|cnn|resnet20 [EPOCHS [BACKEND [SEED]]]      0 epochs: as many as it needs
 *
 * mlp       784-256-128-100-10, Adam
 * cnn       3x3x32, pool, 3x3x64, pool, dense 128, dropout 0.4, Adam
 * resnet20  He et al., 2016, section 4.2, on 28x28: mirrored images, Nesterov momentum, weight decay, cosine schedule
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/tutti.h>

enum { CLASS_COUNT = 10, TRAIN_IMAGES = 60000, SIDE = 28 };

struct network {
  const char *name;
  tutti_value (*logits)(tutti_graph *g, tutti_value x, int32_t mode);
  void (*optimizer)(tutti_graph *g, int64_t steps);
  int64_t batch, epochs;
  double floor; /* the accuracy expected of it */
};

struct run {
  const struct network *network;
  int64_t steps;
};

/* NULL: the default one. */
static tutti_context *context;

/* `err` by its address: arguments are made in any order. */
static void check(int32_t code, const char *what, tutti_error **err) {
  if (code == TUTTI_OK) return;
  fprintf(stderr, "%s: %s\n", what, tutti_error_get_text(*err));
  exit(1);
}

static tutti_value mlp_logits(tutti_graph *g, tutti_value x, int32_t mode) {
  (void)mode;
  tutti_layer_dense_attrs relu = {.activation = TUTTI_LAYER_DENSE_ACTIVATION_RELU};
  x = tutti_layer_flatten(g, x);
  const int64_t widths[] = {256, 128, 100};
  for (int i = 0; i < 3; i++)
    x = tutti_layer_dense(g, x, widths[i], &relu);
  return tutti_layer_dense(g, x, CLASS_COUNT, NULL);
}

static tutti_value cnn_logits(tutti_graph *g, tutti_value x, int32_t mode) {
  tutti_layer_conv2d_attrs conv = {.activation = TUTTI_LAYER_CONV2D_ACTIVATION_RELU};
  tutti_layer_dense_attrs relu = {.activation = TUTTI_LAYER_DENSE_ACTIVATION_RELU};
  x = tutti_layer_max_pool2d(g, tutti_layer_conv2d(g, x, 32, 3, &conv), 2, NULL);
  x = tutti_layer_max_pool2d(g, tutti_layer_conv2d(g, x, 64, 3, &conv), 2, NULL);
  x = tutti_layer_dense(g, tutti_layer_flatten(g, x), 128, &relu);
  if (mode == TUTTI_MODE_TRAIN) x = tutti_layer_dropout(g, x, 0.4);
  return tutti_layer_dense(g, x, CLASS_COUNT, NULL);
}

static tutti_value conv_norm(tutti_graph *g, tutti_value x, int64_t filters, int64_t size, int64_t stride) {
  tutti_layer_conv2d_attrs conv = {.stride = stride, .without_bias = 1, .kernel_initializer = "he_normal"};
  tutti_layer_batch_norm_attrs norm = {.has_momentum = 1, .momentum = 0.9};
  return tutti_layer_batch_norm(g, tutti_layer_conv2d(g, x, filters, size, &conv), &norm);
}

static tutti_value resnet20_logits(tutti_graph *g, tutti_value x, int32_t mode) {
  (void)mode;
  x = tutti_relu(g, conv_norm(g, x, 16, 3, 1));
  for (int64_t stage = 0; stage < 3; stage++) {
    for (int64_t block = 0; block < 3; block++) {
      const int64_t filters = 16 << stage, stride = stage > 0 && block == 0 ? 2 : 1;
      tutti_value shortcut = stride == 1 ? x : conv_norm(g, x, filters, 1, stride);
      tutti_value branch = conv_norm(g, tutti_relu(g, conv_norm(g, x, filters, 3, stride)), filters, 3, 1);
      x = tutti_relu(g, tutti_add(g, branch, shortcut));
    }
  }
  return tutti_layer_dense(g, tutti_layer_global_average_pool2d(g, x), CLASS_COUNT, NULL);
}

static void adam(tutti_graph *g, int64_t steps) {
  tutti_optimizer_adam(g, tutti_schedule_cosine(g, 2e-3, steps, NULL), NULL);
}

static void momentum(tutti_graph *g, int64_t steps) {
  tutti_schedule_cosine_attrs warm = {.warmup_steps = steps / 20};
  tutti_optimizer_sgd_attrs attrs = {.momentum = 0.9, .nesterov = 1, .weight_decay = 5e-4};
  tutti_optimizer_sgd(g, tutti_schedule_cosine(g, 0.1, steps, &warm), &attrs);
}

static const struct network networks[] = {
    {"mlp", mlp_logits, adam, 128, 10, 0.88},
    {"cnn", cnn_logits, adam, 128, 8, 0.915},
    {"resnet20", resnet20_logits, momentum, 128, 10, 0.93},
};

static int32_t model(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  const struct run *run = user;
  tutti_value logits = run->network->logits(g, tutti_graph_get_feature(g, "image"), mode);
  tutti_graph_set_output(g, "class", tutti_argmax(g, logits, NULL));
  if (mode != TUTTI_MODE_PREDICT) {
    tutti_value y = tutti_graph_get_label(g, "label");
    tutti_metric_accuracy(g, "accuracy", logits, y, NULL);
    tutti_graph_set_loss(g, tutti_loss_sparse_softmax_cross_entropy(g, logits, y, NULL));
    run->network->optimizer(g, run->steps);
  }
  return tutti_graph_check(g, err);
}

/* Pixels to [0, 1] as [batch, 28, 28, 1]. */
static tutti_value scaled_images(tutti_graph *g) {
  tutti_value pixels = tutti_cast(g, tutti_graph_get_feature(g, "image"), TUTTI_DTYPE_F32);
  int64_t shape[] = {-1, SIDE, SIDE, 1};
  return tutti_reshape(g, tutti_mul(g, pixels, tutti_graph_constant(g, TUTTI_DTYPE_F32, 1.0 / 255)), shape, 4);
}

static int32_t scale(tutti_graph *g, void *user, tutti_error **err) {
  (void)user;
  tutti_graph_set_output(g, "image", scaled_images(g));
  return tutti_graph_check(g, err);
}

/* Half of the images mirrored. */
static int32_t scale_and_mirror(tutti_graph *g, void *user, tutti_error **err) {
  tutti_value x = scaled_images(g), columns = tutti_graph_constant_tensor(g, user);
  tutti_gather_attrs along_width = {.axis = 2};
  int64_t one_each[] = {TUTTI_DIM_BATCH, 1, 1, 1};
  tutti_value half = tutti_graph_constant(g, TUTTI_DTYPE_F32, 0.5);
  tutti_value mirror = tutti_less(g, tutti_random_uniform(g, one_each, 4, NULL), half);
  tutti_graph_set_output(g, "image", tutti_select(g, mirror, tutti_gather(g, x, columns, &along_width), x));
  return tutti_graph_check(g, err);
}

static tutti_dataset *open_dataset(const char *directory, const char *prefix, const struct network *network,
                                   int64_t epochs, tutti_tensor *mirrored_columns) {
  char images[4096], labels[4096];
  snprintf(images, sizeof images, "%s/%s-images-idx3-ubyte.gz", directory, prefix);
  snprintf(labels, sizeof labels, "%s/%s-labels-idx1-ubyte.gz", directory, prefix);
  tutti_error *err = NULL;
  tutti_pipeline *pipeline = NULL;
  tutti_dataset *dataset = NULL;
  check(tutti_pipeline_create(context, &pipeline, &err), "pipeline", &err);
  tutti_pipeline_add_idx(pipeline, "image", TUTTI_ROLE_FEATURE, images);
  tutti_pipeline_add_idx(pipeline, "label", TUTTI_ROLE_LABEL, labels);
  const int augment = epochs > 0 && network->logits == resnet20_logits;
  if (epochs > 0) {
    tutti_pipeline_shuffle(pipeline, TRAIN_IMAGES, NULL);
    tutti_pipeline_repeat_attrs passes = {.has_count = 1, .count = epochs};
    tutti_pipeline_repeat(pipeline, &passes);
  }
  tutti_pipeline_batch(pipeline, network->batch, NULL);
  tutti_pipeline_map_graph(pipeline, augment ? scale_and_mirror : scale, mirrored_columns, 1);
  tutti_pipeline_prefetch(pipeline, NULL);
  check(tutti_pipeline_build(pipeline, &dataset, &err), "dataset", &err);
  tutti_pipeline_unref(pipeline);
  return dataset;
}

static int32_t show_progress(void *user, const tutti_hook_event *event, tutti_error **err) {
  (void)err, (void)user;
  if (tutti_hook_event_get_kind(event) != TUTTI_EVENT_STEP) return TUTTI_OK;
  fprintf(stderr, "step %6lld  loss %.4f  %8.0f examples/s  %4.0f s left\n",
          (long long)tutti_hook_event_get_step(event), tutti_hook_event_get_loss(event),
          tutti_hook_event_get_examples_per_second(event), tutti_hook_event_get_remaining_seconds(event));
  return TUTTI_OK;
}

static tutti_tensor *mirrored_columns(void) {
  int64_t columns[SIDE], dims[] = {SIDE};
  for (int64_t i = 0; i < SIDE; i++)
    columns[i] = SIDE - 1 - i;
  tutti_tensor *tensor = NULL;
  tutti_error *err = NULL;
  check(tutti_tensor_from_data(TUTTI_DTYPE_I64, dims, 1, columns, sizeof columns, &tensor, &err), "tensor", &err);
  return tensor;
}

/* Trains, evaluates and prints; whether the network reached its floor. */
static int measure(const char *directory, const struct network *network, int64_t epochs, int64_t seed) {
  struct run run = {network, (epochs * TRAIN_IMAGES + network->batch - 1) / network->batch};
  tutti_error *err = NULL;
  tutti_strategy *strategy = NULL;
  tutti_options *options = NULL;
  tutti_hooks *hooks = NULL;
  tutti_estimator *estimator = NULL;
  tutti_result *trained = NULL, *evaluated = NULL;
  tutti_tensor *columns = mirrored_columns();
  tutti_dataset *train = open_dataset(directory, "train", network, epochs, columns);
  tutti_dataset *test = open_dataset(directory, "t10k", network, 0, columns);
  check(tutti_strategy_create_mirrored(context, NULL, 0, &strategy, &err), "strategy", &err);
  check(tutti_options_create("run", &options, &err), "options", &err);
  tutti_options_set_i64(options, "seed", seed);
  check(tutti_hooks_create(&hooks, &err), "hooks", &err);
  check(tutti_hooks_add(hooks, show_progress, NULL, NULL, 200, &err), "hooks", &err);
  check(tutti_estimator_create(context, model, &run, NULL, strategy, options, &estimator, &err), "estimator", &err);
  check(tutti_estimator_train(estimator, train, NULL, hooks, NULL, &trained, &err), "train", &err);
  check(tutti_estimator_evaluate(estimator, test, 0, NULL, &evaluated, &err), "evaluate", &err);
  const double accuracy = tutti_result_get_metric(evaluated, "accuracy");
  printf(
      "{\"network\": \"%s\", \"test_accuracy\": %.4f, \"floor\": %.3f, \"test_loss\": %.4f, \"epochs\": %lld, "
      "\"examples_per_second\": %.0f, \"seconds\": %.1f, \"replicas\": %lld, \"global_step\": %lld}\n",
      network->name, accuracy, network->floor, tutti_result_get_loss(evaluated), (long long)epochs,
      (double)tutti_result_get_examples(trained) / tutti_result_get_seconds(trained), tutti_result_get_seconds(trained),
      (long long)tutti_strategy_get_replica_count(strategy), (long long)tutti_result_get_step(trained));
  tutti_result_unref(evaluated), tutti_result_unref(trained);
  tutti_estimator_unref(estimator), tutti_hooks_unref(hooks), tutti_options_unref(options);
  tutti_strategy_unref(strategy), tutti_dataset_unref(train), tutti_dataset_unref(test);
  tutti_tensor_unref(columns);
  return accuracy >= network->floor;
}

static int32_t open_backend(const char *backend, tutti_error **err) {
  tutti_options *options = NULL;
  check(tutti_options_create("context", &options, err), "options", *&err);
  tutti_options_set_string(options, "backend", backend);
  const int32_t code = tutti_context_create(options, &context, err);
  tutti_options_unref(options);
  return code;
}

int main(int argc, char **argv) {
  enum { SKIPPED = 77 };
  const struct network *network = NULL;
  for (size_t i = 0; argc > 2 && i < sizeof networks / sizeof *networks; i++)
    if (strcmp(argv[2], networks[i].name) == 0) network = &networks[i];
  if (network == NULL) {
    fprintf(stderr, "usage: %s DATASET_DIRECTORY mlp|cnn|resnet20 [EPOCHS [BACKEND [SEED]]]\n", argv[0]);
    return 2;
  }
  tutti_error *err = NULL;
  if (argc > 4 && open_backend(argv[4], &err) != TUTTI_OK) {
    const int is_missing = tutti_error_get_code(err) == TUTTI_UNAVAILABLE;
    fprintf(stderr, "%s%s\n", is_missing ? "skipped: " : "", tutti_error_get_text(err));
    tutti_error_unref(err);
    return is_missing ? SKIPPED : 1;
  }
  const int64_t epochs = argc > 3 ? atoll(argv[3]) : 0;
  const int has_learnt =
      measure(argv[1], network, epochs > 0 ? epochs : network->epochs, argc > 5 ? atoll(argv[5]) : 1);
  tutti_context_unref(context);
  return !has_learnt;
}
