/* SPDX-License-Identifier: Apache-2.0
 *
 * Real images: a small network of convolutions on Fashion-MNIST (Xiao, Rasul and Vollgraf, 2017), against PyTorch with
 * the same weights, images and optimizer (real_images_peer.py, whose numbers are below), on one device and on several.
 *
 * usage: real_images_test DATASET_DIRECTORY       skipped where it is not there
 */
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "estimator_fixtures.h"

enum { TRAIN_IMAGES = 3000, TEST_IMAGES = 2000, BATCH = 100, CLASSES = 10 };

static const char *directory;

/* What PyTorch got in double precision. In single precision it was within 0.0002 of each loss, and equally accurate. */
static const struct {
  int64_t step;
  double loss, tolerance;
} peer_losses[] = {{1, 2.307176, 1e-5}, {10, 1.930503, 1e-4}, {60, 0.801409, 2e-3}, {120, 0.606342, 2e-3}};
enum { REPORTS = sizeof peer_losses / sizeof *peer_losses };
static const double peer_test_loss = 0.571889, peer_test_accuracy = 0.7855;

static int32_t network(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  (void)user;
  tutti_layer_conv2d_attrs relu = {.activation = TUTTI_LAYER_CONV2D_ACTIVATION_RELU};
  tutti_value x = tutti_graph_get_feature(g, "image");
  x = tutti_layer_max_pool2d(g, tutti_layer_conv2d(g, x, 8, 3, &relu), 2, NULL);
  x = tutti_layer_max_pool2d(g, tutti_layer_conv2d(g, x, 16, 3, &relu), 2, NULL);
  tutti_value logits = tutti_layer_dense(g, tutti_layer_flatten(g, x), CLASSES, NULL);
  tutti_graph_set_output(g, "class", tutti_argmax(g, logits, NULL));
  if (mode != TUTTI_MODE_PREDICT) {
    tutti_value y = tutti_graph_get_label(g, "label");
    tutti_metric_accuracy(g, "accuracy", logits, y, NULL);
    tutti_graph_set_loss(g, tutti_loss_sparse_softmax_cross_entropy(g, logits, y, NULL));
    tutti_optimizer_adam(g, tutti_schedule_constant(g, 2e-3), NULL);
  }
  return tutti_graph_check(g, err);
}

/* Bytes [28, 28] become numbers [28, 28, 1] from 0 to 1. */
static int32_t scale(tutti_graph *g, void *user, tutti_error **err) {
  (void)user;
  tutti_value pixels = tutti_cast(g, tutti_graph_get_feature(g, "image"), TUTTI_DTYPE_F32);
  tutti_value scaled = tutti_mul(g, pixels, tutti_graph_constant(g, TUTTI_DTYPE_F32, 1.0 / 255));
  tutti_graph_set_output(g, "image", tutti_reshape(g, scaled, (int64_t[]){-1, 28, 28, 1}, 4));
  return tutti_graph_check(g, err);
}

/* The first images of a part of the data set, in order. */
static tutti_dataset *images(tutti_context *context, const char *part, int64_t count, int repeats) {
  char name[64], path[512];
  tutti_pipeline *pipeline = NULL;
  tutti_dataset *dataset = NULL;
  assert_ok(tutti_pipeline_create(context, &pipeline, &err));
  snprintf(name, sizeof name, "%s-images-idx3-ubyte.gz", part);
  join_path(path, sizeof path, directory, name);
  tutti_pipeline_add_idx(pipeline, "image", TUTTI_ROLE_FEATURE, path);
  snprintf(name, sizeof name, "%s-labels-idx1-ubyte.gz", part);
  join_path(path, sizeof path, directory, name);
  tutti_pipeline_add_idx(pipeline, "label", TUTTI_ROLE_LABEL, path);
  tutti_pipeline_take(pipeline, count);
  if (repeats) tutti_pipeline_repeat(pipeline, NULL);
  tutti_pipeline_batch(pipeline, BATCH, NULL);
  tutti_pipeline_map_graph(pipeline, scale, NULL, 1);
  assert_ok(tutti_pipeline_build(pipeline, &dataset, &err));
  tutti_pipeline_unref(pipeline);
  return dataset;
}

/* Weights of a line of numbers that the peer makes, too, uniform within the limit of Glorot and Bengio (2010). */
static void write_weights(tutti_estimator *estimator, const char *name, uint32_t seed, double fans) {
  tutti_tensor *tensor = NULL;
  void *data = NULL;
  assert_ok(tutti_estimator_read_variable(estimator, name, &tensor, &err));
  assert_ok(tutti_tensor_get_mutable_data(tensor, &data, &err));
  float *values = data;
  for (int64_t i = 0; i < tutti_tensor_get_element_count(tensor); i++) {
    seed = seed * 1664525u + 1013904223u;
    values[i] = (float)(sqrt(6 / fans) * (2 * (double)(seed >> 8) / 16777216 - 1));
  }
  assert_ok(tutti_estimator_write_variable(estimator, name, tensor, &err));
  tutti_tensor_unref(tensor);
}

struct training {
  tutti_context *context;
  tutti_estimator *estimator;
  tutti_dataset *dataset;
};

static struct training begin(int64_t devices, const char *run) {
  struct training t = {NULL, NULL, NULL};
  tutti_strategy *strategy = NULL;
  tutti_options *options = make_options("context", "{}"), *run_options = make_options("run", run);
  tutti_options_set_i64(options, "logical_devices", devices);
  assert_ok(tutti_context_create(options, &t.context, &err));
  assert_ok(tutti_strategy_create_mirrored(t.context, NULL, 0, &strategy, &err));
  assert_int_equal(tutti_strategy_get_replica_count(strategy), devices);
  assert_ok(tutti_estimator_create(t.context, network, NULL, NULL, strategy, run_options, &t.estimator, &err));
  t.dataset = images(t.context, "train", TRAIN_IMAGES, 1);
  assert_ok(tutti_estimator_initialize(t.estimator, t.dataset, NULL, NULL, &err));
  write_weights(t.estimator, "conv2d/kernel", 1, 9 + 72);
  write_weights(t.estimator, "conv2d_1/kernel", 2, 72 + 144);
  write_weights(t.estimator, "dense/kernel", 3, 784 + 10);
  tutti_options_unref(options), tutti_options_unref(run_options), tutti_strategy_unref(strategy);
  return t;
}

static void end(struct training t) {
  tutti_estimator_unref(t.estimator), tutti_dataset_unref(t.dataset), tutti_context_unref(t.context);
}

/* Up to this step; the loss of the last one. */
static double train_until(struct training t, int64_t step) {
  char options[32];
  snprintf(options, sizeof options, "{\"max_steps\": %d}", (int)step);
  struct outcome done = train(t.estimator, t.dataset, options);
  assert_int_equal(done.step, step);
  return done.loss;
}

static void expect_what_the_peer_got(int64_t devices) {
  struct training t = begin(devices, "{\"seed\": 1}");
  for (int i = 0; i < REPORTS; i++)
    assert_float_equal(train_until(t, peer_losses[i].step), peer_losses[i].loss, peer_losses[i].tolerance);
  tutti_dataset *test = images(t.context, "t10k", TEST_IMAGES, 0);
  struct outcome got = evaluate(t.estimator, test, 0);
  print_message("%d devices: loss %.6f, accuracy %.4f of %d images\n", (int)devices, got.loss, got.accuracy,
                (int)got.examples);
  assert_int_equal(got.examples, TEST_IMAGES);
  assert_float_equal(got.loss, peer_test_loss, 2e-3);
  assert_float_equal(got.accuracy, peer_test_accuracy, 0.005);
  tutti_dataset_unref(test);
  end(t);
}

static void test_as_accurate_as_the_peer(void **state) {
  (void)state;
  expect_what_the_peer_got(1);
}

/* 100 images do not divide by 3. */
static void test_three_devices_are_as_accurate(void **state) {
  (void)state;
  expect_what_the_peer_got(3);
}

/* With the determinism that promises it, to the last bit. */
static void test_two_devices_are_one(void **state) {
  (void)state;
  static const char *const names[] = {"conv2d/kernel", "conv2d/bias", "conv2d_1/kernel", "dense/kernel", "dense/bias"};
  const char *run = "{\"seed\": 1, \"determinism\": \"invariant\", \"logical_replicas\": 2}";
  struct training one = begin(1, run), two = begin(2, run);
  const double loss = train_until(one, 12);
  assert_true(loss == train_until(two, 12));
  assert_true(loss < 2);
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    tutti_tensor *a = NULL, *b = NULL;
    assert_ok(tutti_estimator_read_variable(one.estimator, names[i], &a, &err));
    assert_ok(tutti_estimator_read_variable(two.estimator, names[i], &b, &err));
    assert_int_equal(tutti_tensor_get_size_bytes(a), tutti_tensor_get_size_bytes(b));
    assert_memory_equal(tutti_tensor_get_data(a), tutti_tensor_get_data(b), (size_t)tutti_tensor_get_size_bytes(a));
    tutti_tensor_unref(a), tutti_tensor_unref(b);
  }
  end(one), end(two);
}

int main(int argc, char **argv) {
  static const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_as_accurate_as_the_peer),
      cmocka_unit_test(test_three_devices_are_as_accurate),
      cmocka_unit_test(test_two_devices_are_one),
  };
  directory = argc > 1 ? argv[1] : "";
  if (access(directory, R_OK) != 0) {
    print_message("no data set in '%s': packaging/install-deps.sh test installs it\n", directory);
    return TEST_IS_SKIPPED;
  }
  return cmocka_run_group_tests(tests, remember_live_objects, assert_nothing_left);
}
