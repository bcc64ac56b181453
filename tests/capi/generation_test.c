/* SPDX-License-Identifier: Apache-2.0
 * Transformers that generate: blocks that get the keys and values of earlier positions make of one position after
 * another what they make of all of them at once. One block turns queries and keys by their positions, the one behind it
 * has a memory. */
#include <math.h>
#include <string.h>

#include "dense_fixtures.h"

enum { ROWS = 3, LENGTH = 7, CHANNELS = 8, HEADS = 4, KEY_HEADS = 2, SIZE = CHANNELS / HEADS, MEMORY = 5, BLOCKS = 2 };
enum { HIDDEN = 6, CACHES = 2 * BLOCKS };

static const char *const caches[CACHES] = {"keys0", "values0", "keys1", "values1"};
static const int64_t cache_heads[CACHES] = {KEY_HEADS, KEY_HEADS, HEADS, HEADS};

/* `user`: whether there is a past. */
static int32_t model(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  const int has_past = *(const int *)user;
  tutti_layer_sinusoidal_positions_attrs at = {0};
  tutti_layer_transformer_decoder_attrs first = {.pre_norm = 1,
                                                 .activation = TUTTI_LAYER_TRANSFORMER_DECODER_ACTIVATION_GELU,
                                                 .key_heads = KEY_HEADS,
                                                 .rotary_base = 100};
  tutti_layer_transformer_decoder_attrs second = {.memory = tutti_graph_get_feature(g, "memory")};
  if (has_past) {
    at.positions = tutti_graph_get_feature(g, "at");
    first.past_keys = tutti_graph_get_feature(g, caches[0]), first.past_values = tutti_graph_get_feature(g, caches[1]);
    second.past_keys = tutti_graph_get_feature(g, caches[2]),
    second.past_values = tutti_graph_get_feature(g, caches[3]);
  }
  tutti_value x = tutti_layer_sinusoidal_positions(g, tutti_graph_get_feature(g, "x"), &at), made[CACHES];
  x = tutti_layer_transformer_decoder(g, x, HEADS, HIDDEN, &first, made);
  x = tutti_layer_transformer_decoder(g, x, HEADS, HIDDEN, &second, made + 2);
  tutti_graph_set_output(g, "y", x);
  for (int i = 0; i < CACHES; i++)
    tutti_graph_set_output(g, caches[i], made[i]);
  if (mode == TUTTI_MODE_PREDICT) return tutti_graph_check(g, err);
  const int64_t axes[] = {1, 2};
  const tutti_reduce_sum_attrs sums = {.axes = axes, .axes_count = 2};
  tutti_graph_set_loss(g, tutti_reduce_mean(g, tutti_reduce_sum(g, tutti_square(g, x), &sums), NULL));
  tutti_optimizer_sgd(g, tutti_schedule_constant(g, 0.1), NULL);
  return tutti_graph_check(g, err);
}

struct generator {
  tutti_feed *feed;
  tutti_dataset *dataset;
  tutti_estimator *estimator;
};

/* Dims behind the rows; -1 is a length that only the data tells. */
static void declare(tutti_feed *feed, const char *name, int32_t dtype, int64_t rank, int64_t length, int64_t heads) {
  const int64_t dims[] = {length, heads > 0 ? heads : CHANNELS, SIZE};
  assert_ok(tutti_feed_declare(feed, name, TUTTI_ROLE_FEATURE, dtype, dims, rank, &err));
}

/* Of so many positions at once, behind any number of others. */
static struct generator make_generator(int64_t count, int *has_past) {
  struct generator made = {0};
  tutti_pipeline *pipeline = NULL;
  assert_ok(tutti_feed_create(NULL, 4, &made.feed, &err));
  declare(made.feed, "x", TUTTI_DTYPE_F32, 2, count, 0);
  declare(made.feed, "memory", TUTTI_DTYPE_F32, 2, MEMORY, 0);
  if (*has_past) declare(made.feed, "at", TUTTI_DTYPE_I32, 1, count, 0);
  for (int i = 0; *has_past && i < CACHES; i++)
    declare(made.feed, caches[i], TUTTI_DTYPE_F32, 3, -1, cache_heads[i]);
  assert_ok(tutti_feed_set_batch_size(made.feed, ROWS, &err));
  assert_ok(tutti_pipeline_create(NULL, &pipeline, &err));
  tutti_pipeline_add_feed(pipeline, made.feed);
  assert_ok(tutti_pipeline_build(pipeline, &made.dataset, &err));
  assert_ok(tutti_estimator_create(NULL, model, has_past, NULL, NULL, NULL, &made.estimator, &err));
  assert_ok(tutti_estimator_initialize(made.estimator, made.dataset, NULL, NULL, &err));
  tutti_pipeline_unref(pipeline);
  return made;
}

static void drop_generator(struct generator made) {
  tutti_estimator_unref(made.estimator), tutti_dataset_unref(made.dataset), tutti_feed_unref(made.feed);
}

/* Biases and offsets, too, are not zeros then. */
static void change_weights(tutti_estimator *estimator) {
  for (int64_t i = 0; i < tutti_estimator_get_variable_count(estimator); i++) {
    const char *const name = tutti_estimator_get_variable_name(estimator, i);
    tutti_tensor *value = NULL;
    void *data = NULL;
    assert_ok(tutti_estimator_read_variable(estimator, name, &value, &err));
    assert_ok(tutti_tensor_get_mutable_data(value, &data, &err));
    for (int64_t k = 0; k < tutti_tensor_get_element_count(value); k++)
      ((float *)data)[k] += 0.3f * (float)sin((double)(7 * i + k));
    assert_ok(tutti_estimator_write_variable(estimator, name, value, &err));
    tutti_tensor_unref(value);
  }
}

static void copy_weights(tutti_estimator *from, tutti_estimator *to) {
  for (int64_t i = 0; i < tutti_estimator_get_variable_count(from); i++) {
    const char *const name = tutti_estimator_get_variable_name(from, i);
    tutti_tensor *value = NULL;
    assert_ok(tutti_estimator_read_variable(from, name, &value, &err));
    assert_ok(tutti_estimator_write_variable(to, name, value, &err));
    tutti_tensor_unref(value);
  }
}

static float element(int64_t row, int64_t position, int64_t channel) {
  return (float)cos((double)(5 * row + 3 * position) + 1.7 * (double)channel);
}

/* Positions `first` to `first + count` of all rows. */
static tutti_tensor *part_of_x(int64_t first, int64_t count) {
  const int64_t dims[] = {ROWS, count, CHANNELS};
  float values[ROWS * LENGTH * CHANNELS];
  for (int64_t i = 0; i < ROWS * count * CHANNELS; i++)
    values[i] = element(i / CHANNELS / count, first + i / CHANNELS % count, i % CHANNELS);
  return make_tensor(TUTTI_DTYPE_F32, 3, dims, values);
}

static tutti_tensor *make_memory(void) {
  const int64_t dims[] = {ROWS, MEMORY, CHANNELS};
  float values[ROWS * MEMORY * CHANNELS];
  for (int64_t i = 0; i < ROWS * MEMORY * CHANNELS; i++)
    values[i] = (float)sin(0.9 * (double)i);
  return make_tensor(TUTTI_DTYPE_F32, 3, dims, values);
}

static tutti_tensor *positions_from(int64_t first, int64_t count) {
  const int64_t dims[] = {ROWS, count};
  int32_t values[ROWS * LENGTH];
  for (int64_t i = 0; i < ROWS * count; i++)
    values[i] = (int32_t)(first + i % count);
  return make_tensor(TUTTI_DTYPE_I32, 2, dims, values);
}

static tutti_tensor *output_of(const tutti_batch *batch, const char *name) {
  tutti_tensor *const lent = tutti_batch_get_output(batch, name);
  tutti_tensor_ref(lent);
  return lent;
}

/* y of `count` positions; the past is replaced by what has been seen then. */
static tutti_tensor *generate(tutti_predictor *predictor, int64_t first, int64_t count, tutti_tensor *past[CACHES]) {
  const char *names[] = {"x", "memory", "at", caches[0], caches[1], caches[2], caches[3]};
  tutti_tensor *inputs[] = {
      part_of_x(first, count), make_memory(), positions_from(first, count), past[0], past[1], past[2], past[3]};
  tutti_batch *batch = NULL;
  assert_ok(tutti_predictor_run(predictor, names, inputs, 3 + CACHES, NULL, &batch, &err));
  for (int i = 0; i < 3 + CACHES; i++)
    tutti_tensor_unref(inputs[i]);
  for (int i = 0; i < CACHES; i++)
    past[i] = output_of(batch, caches[i]);
  tutti_tensor *const y = output_of(batch, "y");
  tutti_batch_unref(batch);
  return y;
}

static void compare(const tutti_tensor *got, const tutti_tensor *expected, int64_t first, int64_t count) {
  const float *const a = tutti_tensor_get_data(got), *const b = tutti_tensor_get_data(expected);
  for (int64_t i = 0; i < ROWS * count * CHANNELS; i++) {
    const int64_t row = i / CHANNELS / count, position = first + i / CHANNELS % count;
    const float whole = b[(row * LENGTH + position) * CHANNELS + i % CHANNELS];
    if (!(fabsf(a[i] - whole) <= 1e-5f))
      fail_msg("row %d, position %d is %.8g, expected %.8g", (int)row, (int)position, (double)a[i], (double)whole);
  }
}

static tutti_tensor *predict_whole(tutti_estimator *estimator, tutti_tensor *seen[CACHES]) {
  const char *const names[] = {"x", "memory"};
  tutti_tensor *inputs[] = {part_of_x(0, LENGTH), make_memory()};
  tutti_predictor *predictor = NULL;
  tutti_batch *batch = NULL;
  assert_ok(tutti_predictor_from_estimator(estimator, NULL, &predictor, &err));
  assert_ok(tutti_predictor_run(predictor, names, inputs, 2, NULL, &batch, &err));
  tutti_tensor *const y = output_of(batch, "y");
  for (int i = 0; i < CACHES; i++)
    seen[i] = output_of(batch, caches[i]);
  tutti_tensor_unref(inputs[0]), tutti_tensor_unref(inputs[1]);
  tutti_batch_unref(batch), tutti_predictor_unref(predictor);
  return y;
}

enum { MOST = 3 };

/* `by_count` predictors make 1, 2, ... positions. */
static void check_steps(tutti_predictor *const by_count[MOST], const tutti_tensor *expected, tutti_tensor *seen[CACHES],
                        const int64_t *counts) {
  tutti_tensor *past[CACHES];
  for (int i = 0; i < CACHES; i++)
    past[i] = make_tensor(TUTTI_DTYPE_F32, 4, (const int64_t[]){ROWS, 0, cache_heads[i], SIZE}, "");
  for (int64_t first = 0; first < LENGTH; first += *counts++) {
    tutti_tensor *const y = generate(by_count[*counts - 1], first, *counts, past);
    compare(y, expected, first, *counts);
    tutti_tensor_unref(y);
  }
  for (int i = 0; i < CACHES; i++) {
    const int64_t elements = tutti_tensor_get_element_count(seen[i]);
    assert_int_equal(tutti_tensor_get_element_count(past[i]), elements);
    check_near(tutti_tensor_get_data(past[i]), tutti_tensor_get_data(seen[i]), elements, 1e-5f, caches[i]);
    tutti_tensor_unref(past[i]);
  }
}

static void test_generation_is_the_whole_sequence(void **state) {
  (void)state;
  int no = 0, yes = 1;
  struct generator whole = make_generator(LENGTH, &no), steps[MOST];
  tutti_tensor *seen[CACHES];
  tutti_predictor *by_count[MOST];
  change_weights(whole.estimator);
  tutti_tensor *const y = predict_whole(whole.estimator, seen);
  for (int i = 0; i < MOST; i++) {
    steps[i] = make_generator(i + 1, &yes);
    copy_weights(whole.estimator, steps[i].estimator);
    assert_ok(tutti_predictor_from_estimator(steps[i].estimator, NULL, &by_count[i], &err));
  }
  check_steps(by_count, y, seen, (const int64_t[]){1, 1, 1, 1, 1, 1, 1});
  check_steps(by_count, y, seen, (const int64_t[]){3, 1, 2, 1});
  for (int i = 0; i < CACHES; i++)
    tutti_tensor_unref(seen[i]);
  for (int i = 0; i < MOST; i++)
    tutti_predictor_unref(by_count[i]), drop_generator(steps[i]);
  tutti_tensor_unref(y);
  drop_generator(whole);
}

/* --- what cannot be ----------------------------------------------------------------------------------------------- */

typedef tutti_value (*layer_function)(tutti_graph *g, tutti_value x, tutti_value at);

static tutti_value half_a_past(tutti_graph *g, tutti_value x, tutti_value at) {
  (void)at;
  const int64_t dims[] = {-1, LENGTH, HEADS, SIZE};
  const tutti_layer_transformer_decoder_attrs attrs = {.past_keys = tutti_reshape(g, x, dims, 4)};
  tutti_value made[2];
  return tutti_layer_transformer_decoder(g, x, HEADS, HIDDEN, &attrs, made);
}

static tutti_value past_of_other_heads(tutti_graph *g, tutti_value x, tutti_value at) {
  (void)at;
  const int64_t dims[] = {-1, LENGTH, HEADS / 2, 2 * SIZE};
  const tutti_value past = tutti_reshape(g, x, dims, 4);
  const tutti_layer_transformer_decoder_attrs attrs = {.past_keys = past, .past_values = past};
  tutti_value made[2];
  return tutti_layer_transformer_decoder(g, x, HEADS, HIDDEN, &attrs, made);
}

static tutti_value lengths_of_no_memory(tutti_graph *g, tutti_value x, tutti_value at) {
  const tutti_layer_transformer_decoder_attrs attrs = {.memory_lengths = tutti_reduce_max(g, at, NULL)};
  tutti_value made[2];
  return tutti_layer_transformer_decoder(g, x, HEADS, HIDDEN, &attrs, made);
}

static tutti_value three_heads(tutti_graph *g, tutti_value x, tutti_value at) {
  (void)at;
  return tutti_layer_transformer_encoder(g, x, 3, HIDDEN, NULL);
}

static tutti_value all_forgotten(tutti_graph *g, tutti_value x, tutti_value at) {
  (void)at;
  const tutti_layer_transformer_encoder_attrs attrs = {.dropout = 1};
  return tutti_layer_transformer_encoder(g, x, HEADS, HIDDEN, &attrs);
}

static tutti_value turned_single_channels(tutti_graph *g, tutti_value x, tutti_value at) {
  (void)at;
  const tutti_layer_transformer_encoder_attrs attrs = {.rotary_base = 10};
  return tutti_layer_transformer_encoder(g, x, CHANNELS, HIDDEN, &attrs);
}

static tutti_value too_few_positions(tutti_graph *g, tutti_value x, tutti_value at) {
  (void)at;
  return tutti_layer_learned_positions(g, x, LENGTH - 1, NULL);
}

static tutti_value positions_of_floats(tutti_graph *g, tutti_value x, tutti_value at) {
  const tutti_layer_sinusoidal_positions_attrs attrs = {.positions = tutti_cast(g, at, TUTTI_DTYPE_F32)};
  return tutti_layer_sinusoidal_positions(g, x, &attrs);
}

static tutti_value turned_odd_channels(tutti_graph *g, tutti_value x, tutti_value at) {
  (void)at;
  const int64_t dims[] = {-1, LENGTH * CHANNELS, 1};
  return tutti_layer_rotary_positions(g, tutti_reshape(g, x, dims, 3), NULL);
}

static int32_t wrong_model(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  (void)mode;
  const layer_function layer = *(const layer_function *)user;
  tutti_graph_set_output(g, "y", layer(g, tutti_graph_get_feature(g, "x"), tutti_graph_get_feature(g, "at")));
  return tutti_graph_check(g, err);
}

static tutti_dataset *sequences(void) {
  tutti_tensor *x = part_of_x(0, LENGTH), *at = positions_from(0, LENGTH);
  tutti_pipeline *pipeline = NULL;
  tutti_dataset *dataset = NULL;
  assert_ok(tutti_pipeline_create(NULL, &pipeline, &err));
  tutti_pipeline_add_slices(pipeline, "x", TUTTI_ROLE_FEATURE, x);
  tutti_pipeline_add_slices(pipeline, "at", TUTTI_ROLE_FEATURE, at);
  tutti_pipeline_batch(pipeline, ROWS, NULL);
  assert_ok(tutti_pipeline_build(pipeline, &dataset, &err));
  tutti_pipeline_unref(pipeline), tutti_tensor_unref(x), tutti_tensor_unref(at);
  return dataset;
}

static void test_mistakes(void **state) {
  (void)state;
  const struct {
    layer_function layer;
    const char *needle;
  } wrong[] = {
      {half_a_past, "expected both past_keys and past_values"},
      {past_of_other_heads, "expected [batch, past length, key heads, channels of a head]"},
      {lengths_of_no_memory, "there are memory_lengths, but no memory"},
      {three_heads, "8 channels cannot be divided among 3 heads"},
      {all_forgotten, "'dropout' must be below 1"},
      {turned_single_channels, "'rotary_base' turns pairs of channels, and a head has 1"},
      {too_few_positions, "x has 7 positions, and attribute 'count' is 6"},
      {positions_of_floats, "expected positions of integers, [length] or [batch, length]"},
      {turned_odd_channels, "an even number of channels"},
  };
  tutti_dataset *const dataset = sequences();
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    layer_function layer = wrong[i].layer;
    tutti_estimator *estimator = NULL;
    assert_ok(tutti_estimator_create(NULL, wrong_model, (void *)&layer, NULL, NULL, NULL, &estimator, &err));
    assert_error(TUTTI_INVALID_ARGUMENT, wrong[i].needle,
                 tutti_estimator_initialize(estimator, dataset, NULL, NULL, &err));
    tutti_estimator_unref(estimator);
  }
  tutti_dataset_unref(dataset);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_generation_is_the_whole_sequence),
    cmocka_unit_test(test_mistakes),
};
CAPI_TEST_MAIN(tests)
