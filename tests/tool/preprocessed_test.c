/* SPDX-License-Identifier: Apache-2.0
 * What `tutti dataset convert --map` has written is what the same map gives in a pipeline, and trains the same model.
 * usage: preprocessed_test PHOTOS RECORDS ELEMENTS CROPS SEED; photos decoded and resized as RECORDS and ELEMENTS, and
 * a random crop of each, drawn with the seed, as CROPS (dataset_test.py makes all of them). */
#include <stdlib.h>
#include <string.h>

#include "capi_testing.h"

enum { SIDE = 8, PIXELS = SIDE * SIDE * 3, CLASSES = 3, BATCH = 5, STEPS = 30 };

static const char *photos, *records, *elements, *crops;
static int64_t seed;

static const int64_t size[] = {SIDE, SIDE};

static int32_t decode_and_resize(tutti_graph *g, void *user, tutti_error **err) {
  (void)user;
  tutti_value image = tutti_decode_image(g, tutti_graph_get_feature(g, "image"), NULL);
  tutti_graph_set_output(g, "image", tutti_resize(g, image, size, NULL));
  return tutti_graph_check(g, err);
}

static int32_t decode_and_crop(tutti_graph *g, void *user, tutti_error **err) {
  (void)user;
  tutti_value image = tutti_decode_image(g, tutti_graph_get_feature(g, "image"), NULL);
  tutti_graph_set_output(g, "image", tutti_random_crop(g, image, size, NULL));
  return tutti_graph_check(g, err);
}

static tutti_pipeline *create(void) {
  tutti_pipeline *pipeline = NULL;
  assert_ok(tutti_pipeline_create(NULL, &pipeline, &err));
  return pipeline;
}

static tutti_dataset *in_batches(tutti_pipeline *pipeline, int endless) {
  tutti_dataset *dataset = NULL;
  tutti_pipeline_batch(pipeline, BATCH, NULL);
  if (endless) tutti_pipeline_repeat(pipeline, NULL);
  assert_ok(tutti_pipeline_build(pipeline, &dataset, &err));
  tutti_pipeline_unref(pipeline);
  return dataset;
}

static tutti_dataset *with_ops(tutti_map_graph_fn map, int endless) {
  tutti_pipeline *pipeline = create();
  tutti_source_image_folder(pipeline, photos, NULL);
  tutti_pipeline_map_graph(pipeline, map, NULL, 1);
  return in_batches(pipeline, endless);
}

static tutti_dataset *from_records(int endless) {
  static const char *const features[] = {"image: u8[8, 8, 3]", "label: i32"}, *const labels[] = {"label"};
  tutti_pipeline *pipeline = create();
  tutti_source_tfrecord(pipeline, &records, 1, NULL);
  tutti_pipeline_parse_example_attrs attrs = {.labels = labels, .labels_count = 1};
  tutti_pipeline_parse_example(pipeline, features, 2, &attrs);
  return in_batches(pipeline, endless);
}

static tutti_dataset *from_elements(const char *path, int endless) {
  tutti_pipeline *pipeline = create();
  tutti_source_element_files(pipeline, &path, 1);
  return in_batches(pipeline, endless);
}

/* Equal batches, bit for bit, until both end. Drops the datasets. */
static void assert_equal(tutti_dataset *a, tutti_dataset *b) {
  tutti_iterator *in_a = NULL, *in_b = NULL;
  assert_string_equal(tutti_dataset_get_spec(a), tutti_dataset_get_spec(b));
  assert_ok(tutti_iterator_create(a, seed, &in_a, &err));
  assert_ok(tutti_iterator_create(b, 0, &in_b, &err));
  int64_t batches = 0;
  for (uint8_t more = 1, also = 1; more; batches++) {
    assert_ok(tutti_iterator_next(in_a, NULL, &more, &err));
    assert_ok(tutti_iterator_next(in_b, NULL, &also, &err));
    assert_int_equal(more, also);
    for (int64_t i = 0; more && i < tutti_dataset_get_component_count(a); i++) {
      const tutti_tensor *x = tutti_iterator_get_component(in_a, i), *y = tutti_iterator_get_component(in_b, i);
      assert_int_equal(tutti_tensor_get_size_bytes(x), tutti_tensor_get_size_bytes(y));
      assert_memory_equal(tutti_tensor_get_data(x), tutti_tensor_get_data(y), (size_t)tutti_tensor_get_size_bytes(x));
    }
  }
  assert_in_range(batches, 3, 100);
  tutti_iterator_unref(in_a), tutti_iterator_unref(in_b);
  tutti_dataset_unref(a), tutti_dataset_unref(b);
}

static int32_t model(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  (void)user;
  const int64_t flat[] = {TUTTI_DIM_BATCH, PIXELS};
  tutti_value x = tutti_cast(g, tutti_graph_get_feature(g, "image"), TUTTI_DTYPE_F32);
  x = tutti_div(g, tutti_reshape(g, x, flat, 2), tutti_graph_constant(g, TUTTI_DTYPE_F32, 255));
  tutti_value logits = tutti_layer_dense(g, x, CLASSES, NULL);
  tutti_graph_set_output(g, "logits", logits);
  if (mode != TUTTI_MODE_PREDICT) {
    tutti_value label = tutti_graph_get_label(g, "label");
    tutti_graph_set_loss(g, tutti_loss_sparse_softmax_cross_entropy(g, logits, label, NULL));
    tutti_optimizer_sgd(g, tutti_graph_constant(g, TUTTI_DTYPE_F32, 0.1), NULL);
  }
  return tutti_graph_check(g, err);
}

/* The kernel after training; drops the dataset. */
static tutti_tensor *trained(tutti_dataset *dataset) {
  char steps[32];
  snprintf(steps, sizeof steps, "{\"steps\": %d}", STEPS);
  tutti_options *run = make_options("run", "{\"seed\": 7}"), *options = make_options("train", steps);
  tutti_estimator *estimator = NULL;
  tutti_tensor *kernel = NULL;
  assert_ok(tutti_estimator_create(NULL, model, NULL, NULL, NULL, run, &estimator, &err));
  assert_ok(tutti_estimator_train(estimator, dataset, options, NULL, NULL, NULL, &err));
  assert_ok(tutti_estimator_read_variable(estimator, "dense/kernel", &kernel, &err));
  tutti_estimator_unref(estimator), tutti_dataset_unref(dataset);
  tutti_options_unref(run), tutti_options_unref(options);
  return kernel;
}

static void batches_are_those_of_the_pipeline(void **state) {
  (void)state;
  assert_equal(with_ops(decode_and_resize, 0), from_records(0));
  assert_equal(with_ops(decode_and_resize, 0), from_elements(elements, 0));
  assert_equal(with_ops(decode_and_crop, 0), from_elements(crops, 0));
}

static void the_model_is_that_of_the_pipeline(void **state) {
  (void)state;
  tutti_tensor *kernel = trained(with_ops(decode_and_resize, 1));
  tutti_tensor *others[] = {trained(from_records(1)), trained(from_elements(elements, 1))};
  assert_int_equal(tutti_tensor_get_element_count(kernel), PIXELS * CLASSES);
  for (int i = 0; i < 2; i++) {
    assert_memory_equal(tutti_tensor_get_data(kernel), tutti_tensor_get_data(others[i]),
                        PIXELS * CLASSES * sizeof(float));
    tutti_tensor_unref(others[i]);
  }
  tutti_tensor_unref(kernel);
}

int main(int argc, char **argv) {
  if (argc != 6) return 2;
  photos = argv[1], records = argv[2], elements = argv[3], crops = argv[4];
  seed = strtoll(argv[5], NULL, 10);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(batches_are_those_of_the_pipeline),
      cmocka_unit_test(the_model_is_that_of_the_pipeline),
  };
  return cmocka_run_group_tests(tests, remember_live_objects, assert_nothing_left);
}
