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

/* In batches of so many, in which the elements are as large as the largest of each axis. */
static tutti_dataset *in_batches(tutti_context *context, struct elements *elements, int64_t rows) {
  static const char *const names[2][2] = {{"image", NULL}, {"near", "node"}};
  static const int64_t dims[2][2][3] = {{{-1, -1, CHANNELS}, {0}}, {{-1, -1}, {-1, CHANNELS}}};
  const int64_t which = elements->count - 1;
  tutti_pipeline *pipeline = NULL;
  tutti_dataset *dataset = NULL;
  assert_ok(tutti_pipeline_create(context, &pipeline, &err));
  for (int64_t i = 0; i < elements->count; i++)
    tutti_pipeline_declare(pipeline, names[which][i], TUTTI_ROLE_FEATURE, TUTTI_DTYPE_F32, dims[which][i],
                           elements->ranks[i]);
  tutti_pipeline_add_generator(pipeline, make_element, elements, NULL);
  tutti_pipeline_padded_batch(pipeline, rows, NULL);
  assert_ok(tutti_pipeline_build(pipeline, &dataset, &err));
  tutti_pipeline_unref(pipeline);
  return dataset;
}

static struct loop open_loop(tutti_model_fn model, int replicas, struct elements *elements) {
  struct loop loop = {0};
  char json[64];
  snprintf(json, sizeof json, "{\"logical_devices\": %d}", replicas);
  tutti_options *devices = make_options("context", json), *run = make_options("run", "{\"keep_outputs\": true}");
  tutti_strategy *strategy = NULL;
  assert_ok(tutti_context_create(devices, &loop.context, &err));
  assert_ok(tutti_strategy_create_mirrored(loop.context, NULL, 0, &strategy, &err));
  assert_ok(tutti_estimator_create(loop.context, model, NULL, NULL, strategy, run, &loop.estimator, &err));
  tutti_dataset *dataset = in_batches(loop.context, elements, ROWS);
  assert_ok(tutti_session_open(loop.estimator, dataset, NULL, NULL, NULL, &loop.session, &err));
  tutti_dataset_unref(dataset), tutti_strategy_unref(strategy);
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

/* --- predictions -------------------------------------------------------------------------------------------------- */

static const int64_t image_shapes[][2][3] = {{{3, 5, CHANNELS}}, {{9, 2, CHANNELS}}, {{1, 31, CHANNELS}}};
static struct elements images = {image_shapes, sizeof image_shapes / sizeof *image_shapes, 1, {3}};

/* Of elements first, first + 1, ... as one batch, in which there are zeros behind the smaller ones. */
static void means_of_batch(int64_t first, int64_t rows, float *means) {
  int64_t height = 0, width = 0;
  for (int64_t i = first; i < first + rows; i++) {
    const int64_t *dims = image_shapes[i / ROWS][0];
    height = dims[0] > height ? dims[0] : height, width = dims[1] > width ? dims[1] : width;
  }
  for (int64_t i = first; i < first + rows; i++) {
    const int64_t *dims = image_shapes[i / ROWS][0], size = dims[0] * dims[1] * CHANNELS;
    double sum = 0;
    for (int64_t k = 0; k < size; k++)
      sum += (double)number(i % ROWS * size + k);
    means[i - first] = (float)(0.5 * sum / (double)(height * width * CHANNELS));
  }
}

static void check_prediction(tutti_batch *batch, int64_t first, int64_t rows, const float *means) {
  tutti_tensor *got = tutti_batch_get_output(batch, "mean");
  assert_int_equal(tutti_batch_get_first_row(batch), first);
  assert_int_equal(tutti_batch_get_row_count(batch), rows);
  assert_int_equal(tutti_tensor_get_element_count(got), rows);
  check_near(tutti_tensor_get_data(got), means, rows, 1e-5f, "mean");
  tutti_batch_unref(batch);
}

/* The dataset in batches of each size, as a stream and as a whole. */
static void predict_datasets(tutti_context *context, tutti_predictor *predictor) {
  static const int64_t sizes[] = {ROWS, 1, 3, 5, 100};
  const int64_t all = images.batches * ROWS;
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
    float means[3 * ROWS];
    tutti_dataset *dataset = in_batches(context, &images, sizes[s]);
    tutti_prediction_stream *stream = NULL;
    tutti_batch *batch = NULL;
    assert_ok(tutti_prediction_stream_open(predictor, dataset, &stream, &err));
    for (int64_t first = 0; first < all; first += sizes[s]) {
      const int64_t rows = all - first < sizes[s] ? all - first : sizes[s];
      means_of_batch(first, rows, means + first);
      assert_ok(tutti_prediction_stream_next(stream, NULL, &batch, &err));
      check_prediction(batch, first, rows, means + first);
    }
    assert_ok(tutti_prediction_stream_next(stream, NULL, &batch, &err));
    assert_null(batch);
    assert_ok(tutti_predictor_run_all(predictor, dataset, NULL, &batch, &err));
    check_prediction(batch, 0, all, means);
    tutti_prediction_stream_unref(stream), tutti_dataset_unref(dataset);
  }
}

static void predict_images(tutti_predictor *predictor) {
  static const int64_t dims[][4] = {
      {4, 3, 5, CHANNELS}, {1, 9, 2, CHANNELS}, {2, 1, 31, CHANNELS}, {7, 2, 3, CHANNELS}, {3, 1, 1, CHANNELS}};
  const char *name = "image";
  for (size_t i = 0; i < sizeof dims / sizeof *dims; i++) {
    const int64_t rows = dims[i][0], size = dims[i][1] * dims[i][2] * CHANNELS;
    float values[MOST_NUMBERS], means[8] = {0};
    for (int64_t k = 0; k < rows * size; k++)
      values[k] = number(k), means[k / size] += 0.5f * values[k] / (float)size;
    tutti_tensor *image = make_tensor(TUTTI_DTYPE_F32, 4, dims[i], values);
    tutti_batch *batch = NULL;
    assert_ok(tutti_predictor_run(predictor, &name, &image, 1, NULL, &batch, &err));
    check_prediction(batch, 0, rows, means);
    tutti_tensor_unref(image);
  }
}

/* In an open session, and of what it saved, without the model function. */
static void test_predictions_of_images(void **state) {
  (void)state;
  for (int replicas = 1; replicas <= 3; replicas++) {
    const struct loop loop = open_loop(image_model, replicas, &images);
    char directory[64];
    tutti_predictor *predictors[2] = {NULL};
    make_directory(directory);
    assert_ok(tutti_session_run(loop.session, 1, NULL, &err));
    assert_ok(tutti_estimator_save(loop.estimator, directory, NULL, &err));
    assert_ok(tutti_predictor_from_estimator(loop.estimator, NULL, &predictors[0], &err));
    assert_ok(tutti_predictor_open(loop.context, directory, NULL, NULL, &predictors[1], &err));
    for (int i = 0; i < 2; i++) {
      predict_images(predictors[i]);
      predict_datasets(loop.context, predictors[i]);
      tutti_predictor_unref(predictors[i]);
    }
    remove_directory(directory);
    close_loop(loop);
  }
}

/* Of several inputs, whose sizes belong together. */
static void test_predictions_of_neighbours(void **state) {
  (void)state;
  static const int64_t shapes[][2][3] = {{{2, 2}, {2, CHANNELS}}}, sizes[][2] = {{2, 4}, {5, 1}, {1, 7}, {3, 3}};
  static const char *const names[] = {"near", "node"};
  struct elements elements = {shapes, 1, 2, {2, 2}};
  for (int replicas = 1; replicas <= 2; replicas++) {
    const struct loop loop = open_loop(graph_model, replicas, &elements);
    tutti_predictor *predictor = NULL;
    assert_ok(tutti_session_run(loop.session, 1, NULL, &err));
    assert_ok(tutti_predictor_from_estimator(loop.estimator, NULL, &predictor, &err));
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
      const int64_t n = sizes[s][0], rows = sizes[s][1];
      const int64_t near_dims[] = {rows, n, n}, node_dims[] = {rows, n, CHANNELS};
      float near[MOST_NUMBERS], node[MOST_NUMBERS], sums[MOST_NUMBERS];
      for (int64_t k = 0; k < rows * n * n; k++)
        near[k] = number(k);
      for (int64_t k = 0; k < rows * n * CHANNELS; k++)
        node[k] = number(1000 + k);
      for (int64_t k = 0; k < rows * n * CHANNELS; k++) {
        double sum = 0;
        for (int64_t j = 0; j < n; j++)
          sum +=
              (double)near[k / CHANNELS * n + j] * (double)node[(k / CHANNELS / n * n + j) * CHANNELS + k % CHANNELS];
        sums[k] = (float)sum;
      }
      tutti_tensor *inputs[] = {make_tensor(TUTTI_DTYPE_F32, 3, near_dims, near),
                                make_tensor(TUTTI_DTYPE_F32, 3, node_dims, node)};
      tutti_batch *batch = NULL;
      assert_ok(tutti_predictor_run(predictor, names, inputs, 2, NULL, &batch, &err));
      tutti_tensor *got = tutti_batch_get_output(batch, "sums");
      assert_int_equal(tutti_tensor_get_element_count(got), rows * n * CHANNELS);
      check_near(tutti_tensor_get_data(got), sums, rows * n * CHANNELS, 1e-5f, "sums");
      tutti_batch_unref(batch), tutti_tensor_unref(inputs[0]), tutti_tensor_unref(inputs[1]);
    }
    tutti_predictor_unref(predictor);
    close_loop(loop);
  }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_batches_that_are_pushed),
    cmocka_unit_test(test_images),
    cmocka_unit_test(test_neighbours),
    cmocka_unit_test(test_predictions_of_images),
    cmocka_unit_test(test_predictions_of_neighbours),
};
CAPI_TEST_MAIN(tests)
