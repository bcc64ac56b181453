/* SPDX-License-Identifier: Apache-2.0
 * Inputs of a model with several dimensions that only the data tells: images of any height and width, and the
 * neighbours of nodes beside what the nodes are; from a batch to the next they change. Against what is worked out here,
 * on any number of replicas. */
#include <math.h>

#include "dense_fixtures.h"
#include "estimator_fixtures.h"

enum { CHANNELS = 2, ROWS = 4, MOST_NUMBERS = 256 };

/* w times the mean over the channels, heights and widths of each image. */
static int32_t image_model(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  (void)user;
  const int64_t one = 1, axes[] = {1, 2, 3};
  tutti_value w = tutti_graph_variable(g, "w", TUTTI_DTYPE_F32, &one, 1, "constant", 0.5, 1);
  tutti_reduce_mean_attrs attrs = {.axes = axes, .axes_count = 3};
  tutti_value mean = tutti_mul(g, w, tutti_reduce_mean(g, tutti_graph_get_feature(g, "image"), &attrs));
  tutti_graph_set_output(g, "mean", mean);
  if (mode == TUTTI_MODE_PREDICT) return tutti_graph_check(g, err);
  tutti_graph_set_loss(g, tutti_reduce_mean(g, mean, NULL));
  tutti_optimizer_sgd(g, tutti_schedule_constant(g, 0), NULL);
  return tutti_graph_check(g, err);
}

/* Sums over the neighbours of each node [batch, n, n] of what these are [batch, n, CHANNELS]. */
static int32_t graph_model(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  (void)user, (void)mode;
  tutti_value sums = tutti_matmul(g, tutti_graph_get_feature(g, "near"), tutti_graph_get_feature(g, "node"), NULL);
  tutti_graph_set_output(g, "sums", sums);
  tutti_graph_set_loss(g, tutti_reduce_mean(g, sums, NULL));
  tutti_optimizer_sgd(g, tutti_schedule_constant(g, 0), NULL);
  return tutti_graph_check(g, err);
}

static float number(int64_t i) { return (float)sin((double)i); }

/* Elements of up to two components; ROWS elements of each shape in turn. */
struct elements {
  const int64_t (*shapes)[2][3]; /* of each batch and component */
  int64_t batches, count;
  int64_t ranks[2];
};

/* Numbers that go on from row to row of a batch. */
static int32_t make_element(void *user, int64_t pass, int64_t index, tutti_tensor **outputs, int64_t count,
                            uint8_t *has_element, tutti_error **err) {
  const struct elements *elements = user;
  (void)pass;
  if (index >= elements->batches * ROWS) return TUTTI_OK;
  for (int64_t i = 0; i < count; i++) {
    const int64_t *dims = elements->shapes[index / ROWS][i];
    float values[MOST_NUMBERS];
    int64_t size = 1;
    for (int64_t axis = 0; axis < elements->ranks[i]; axis++)
      size *= dims[axis];
    for (int64_t k = 0; k < size; k++)
      values[k] = number(index % ROWS * size + k);
    const int32_t code = tutti_tensor_from_data(TUTTI_DTYPE_F32, dims, elements->ranks[i], values,
                                                size * (int64_t)sizeof *values, &outputs[i], err);
    if (code != TUTTI_OK) return code;
  }
  *has_element = 1;
  return TUTTI_OK;
}

struct loop {
  tutti_context *context;
  tutti_estimator *estimator;
  tutti_session *session;
};

static struct loop open_loop(tutti_model_fn model, int replicas, struct elements *elements) {
  static const char *const names[2][2] = {{"image", NULL}, {"near", "node"}};
  static const int64_t dims[2][2][3] = {{{-1, -1, CHANNELS}, {0}}, {{-1, -1}, {-1, CHANNELS}}};
  const int64_t which = elements->count - 1;
  struct loop loop = {0};
  char json[64];
  snprintf(json, sizeof json, "{\"logical_devices\": %d}", replicas);
  tutti_options *devices = make_options("context", json), *run = make_options("run", "{\"keep_outputs\": true}");
  tutti_strategy *strategy = NULL;
  tutti_pipeline *pipeline = NULL;
  tutti_dataset *dataset = NULL;
  assert_ok(tutti_context_create(devices, &loop.context, &err));
  assert_ok(tutti_strategy_create_mirrored(loop.context, NULL, 0, &strategy, &err));
  assert_ok(tutti_estimator_create(loop.context, model, NULL, NULL, strategy, run, &loop.estimator, &err));
  assert_ok(tutti_pipeline_create(loop.context, &pipeline, &err));
  for (int64_t i = 0; i < elements->count; i++)
    tutti_pipeline_declare(pipeline, names[which][i], TUTTI_ROLE_FEATURE, TUTTI_DTYPE_F32, dims[which][i],
                           elements->ranks[i]);
  tutti_pipeline_add_generator(pipeline, make_element, elements, NULL);
  tutti_pipeline_padded_batch(pipeline, ROWS, NULL);
  assert_ok(tutti_pipeline_build(pipeline, &dataset, &err));
  assert_ok(tutti_session_open(loop.estimator, dataset, NULL, NULL, NULL, &loop.session, &err));
  tutti_pipeline_unref(pipeline), tutti_dataset_unref(dataset), tutti_strategy_unref(strategy);
  tutti_options_unref(devices), tutti_options_unref(run);
  return loop;
}

static void close_loop(struct loop loop) {
  tutti_session_unref(loop.session), tutti_estimator_unref(loop.estimator), tutti_context_unref(loop.context);
}

static void check_output(struct loop loop, const char *name, const float *expected, int64_t count) {
  tutti_tensor *got = NULL;
  assert_ok(tutti_session_run(loop.session, 1, NULL, &err));
  assert_ok(tutti_estimator_read_output(loop.estimator, name, &got, &err));
  assert_int_equal(tutti_tensor_get_element_count(got), count);
  check_near(tutti_tensor_get_data(got), expected, count, 1e-5f, name);
  tutti_tensor_unref(got);
}

static void test_images(void **state) {
  (void)state;
  static const int64_t shapes[][2][3] = {
      {{3, 5, CHANNELS}}, {{9, 2, CHANNELS}}, {{4, 4, CHANNELS}}, {{1, 31, CHANNELS}}, {{3, 5, CHANNELS}}};
  struct elements elements = {shapes, sizeof shapes / sizeof *shapes, 1, {3}};
  for (int replicas = 1; replicas <= 3; replicas++) {
    const struct loop loop = open_loop(image_model, replicas, &elements);
    for (int64_t i = 0; i < elements.batches; i++) {
      const int64_t size = shapes[i][0][0] * shapes[i][0][1] * CHANNELS;
      float means[ROWS];
      for (int64_t row = 0; row < ROWS; row++) {
        double sum = 0;
        for (int64_t k = 0; k < size; k++)
          sum += (double)number(row * size + k);
        means[row] = (float)(0.5 * sum / (double)size);
      }
      check_output(loop, "mean", means, ROWS);
    }
    close_loop(loop);
  }
}

static void test_neighbours(void **state) {
  (void)state;
  static const int64_t shapes[][2][3] = {
      {{2, 2}, {2, CHANNELS}}, {{5, 5}, {5, CHANNELS}}, {{3, 3}, {3, CHANNELS}}, {{4, 7}, {4, CHANNELS}}};
  struct elements elements = {shapes, sizeof shapes / sizeof *shapes, 2, {2, 2}};
  for (int replicas = 1; replicas <= 2; replicas++) {
    const struct loop loop = open_loop(graph_model, replicas, &elements);
    for (int64_t i = 0; i + 1 < elements.batches; i++) {
      const int64_t n = shapes[i][0][0], size = ROWS * n * CHANNELS;
      float sums[MOST_NUMBERS];
      for (int64_t k = 0; k < size; k++) {
        const int64_t node = k / CHANNELS, row = node / n;
        double sum = 0;
        for (int64_t j = 0; j < n; j++)
          sum += (double)number(node * n + j) * (double)number((row * n + j) * CHANNELS + k % CHANNELS);
        sums[k] = (float)sum;
      }
      check_output(loop, "sums", sums, size);
    }
    /* What the model multiplies must be of one length. */
    assert_error(TUTTI_INVALID_ARGUMENT, "input 'near' has dims [batch, unknown, unknown]; a batch of 4 rows has",
                 tutti_session_run(loop.session, 1, NULL, &err));
    close_loop(loop);
  }
}

/* Batches that the program makes, of any number of rows and any shape. */
static void test_batches_that_are_pushed(void **state) {
  (void)state;
  static const int64_t shapes[][4] = {{4, 3, 5, CHANNELS}, {1, 9, 2, CHANNELS}, {2, 1, 31, CHANNELS}};
  const int64_t dims[] = {-1, -1, CHANNELS}, too_many[16] = {0};
  tutti_feed *feed = NULL;
  tutti_pipeline *pipeline = NULL;
  tutti_dataset *dataset = NULL;
  tutti_estimator *estimator = NULL;
  tutti_options *run = make_options("run", "{\"keep_outputs\": true}");
  struct loop loop = {0};
  assert_ok(tutti_feed_create(NULL, 4, &feed, &err));
  assert_error(TUTTI_INVALID_ARGUMENT, "",
               tutti_feed_declare(feed, "x", TUTTI_ROLE_FEATURE, TUTTI_DTYPE_F32, too_many, 16, &err));
  assert_error(TUTTI_INVALID_ARGUMENT, "'dims'",
               tutti_feed_declare(feed, "x", TUTTI_ROLE_FEATURE, TUTTI_DTYPE_F32, NULL, 2, &err));
  assert_ok(tutti_feed_declare(feed, "image", TUTTI_ROLE_FEATURE, TUTTI_DTYPE_F32, dims, 3, &err));
  assert_ok(tutti_feed_set_batch_size(feed, ROWS, &err));
  assert_ok(tutti_pipeline_create(NULL, &pipeline, &err));
  tutti_pipeline_add_feed(pipeline, feed);
  assert_ok(tutti_pipeline_build(pipeline, &dataset, &err));
  assert_ok(tutti_estimator_create(NULL, image_model, NULL, NULL, NULL, run, &estimator, &err));
  assert_ok(tutti_session_open(estimator, dataset, NULL, NULL, NULL, &loop.session, &err));
  loop.estimator = estimator;
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    const int64_t size = shapes[i][1] * shapes[i][2] * CHANNELS;
    float values[MOST_NUMBERS], means[ROWS] = {0};
    for (int64_t k = 0; k < shapes[i][0] * size; k++)
      values[k] = number(k), means[k / size] += 0.5f * values[k] / (float)size;
    tutti_tensor *batch = make_tensor(TUTTI_DTYPE_F32, 4, shapes[i], values);
    assert_ok(tutti_feed_push(feed, &batch, 1, NULL, &err));
    tutti_tensor_unref(batch);
    check_output(loop, "mean", means, shapes[i][0]);
  }
  tutti_session_unref(loop.session), tutti_estimator_unref(estimator), tutti_feed_unref(feed);
  tutti_dataset_unref(dataset), tutti_pipeline_unref(pipeline), tutti_options_unref(run);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_batches_that_are_pushed),
    cmocka_unit_test(test_images),
    cmocka_unit_test(test_neighbours),
};
CAPI_TEST_MAIN(tests)
