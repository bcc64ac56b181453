/* SPDX-License-Identifier: Apache-2.0
 * Rows that layers cannot take: lengths beyond the sequence or below 0, and indices that a table does not have. The
 * error tells the place in the model, the value and its row in the batch, whatever the number of replicas. */
#include "capi_testing.h"

enum { ROWS = 7, LENGTH = 5, CHANNELS = 4, COUNT = 6, BAD_ROW = 4 };

enum layer { RNN, LSTM, GRU, ATTENTION, ENCODER, DECODER, MEMORY, BAG, TABLE, LAYERS };

/* Where the error is found. */
static const char *const places[LAYERS] = {"rnn/lengths/gather",
                                           "lstm/lengths/gather",
                                           "gru/lengths/gather",
                                           "multi_head_attention/lengths/gather",
                                           "self_attention/lengths/gather",
                                           "self_attention/lengths/gather",
                                           "cross_attention/lengths/gather",
                                           "embedding_bag/lengths/gather",
                                           "embedding/gather"};

static tutti_value layer_of(tutti_graph *g, enum layer layer, tutti_value x, tutti_value lengths) {
  const tutti_value ids = tutti_cast(
      g, tutti_reduce_mean(g, x, &(tutti_reduce_mean_attrs){.axes = (int64_t[]){2}, .axes_count = 1}), TUTTI_DTYPE_I32);
  switch (layer) {
    case RNN:
      return tutti_layer_rnn(g, x, 2, &(tutti_layer_rnn_attrs){.lengths = lengths}, NULL);
    case LSTM:
      return tutti_layer_lstm(g, x, 2, &(tutti_layer_lstm_attrs){.lengths = lengths}, NULL);
    case GRU:
      return tutti_layer_gru(g, x, 2, &(tutti_layer_gru_attrs){.lengths = lengths}, NULL);
    case ATTENTION:
      return tutti_layer_multi_head_attention(g, x, 2, &(tutti_layer_multi_head_attention_attrs){.lengths = lengths});
    case ENCODER:
      return tutti_layer_transformer_encoder(g, x, 2, 8, &(tutti_layer_transformer_encoder_attrs){.lengths = lengths});
    case DECODER:
      return tutti_layer_transformer_decoder(g, x, 2, 8, &(tutti_layer_transformer_decoder_attrs){.lengths = lengths},
                                             NULL);
    case MEMORY:
      return tutti_layer_transformer_decoder(
          g, x, 2, 8, &(tutti_layer_transformer_decoder_attrs){.memory = x, .memory_lengths = lengths}, NULL);
    case BAG:
      return tutti_layer_embedding_bag(g, ids, COUNT, 2, &(tutti_layer_embedding_bag_attrs){.lengths = lengths});
    default:
      return tutti_layer_embedding(g, lengths, COUNT, 2, NULL);
  }
}

static int32_t model(tutti_graph *g, int32_t mode, void *user, tutti_error **error) {
  const tutti_value y =
      layer_of(g, *(const enum layer *)user, tutti_graph_get_feature(g, "x"), tutti_graph_get_feature(g, "length"));
  tutti_graph_set_output(g, "y", y);
  if (mode != TUTTI_MODE_PREDICT) {
    tutti_graph_set_loss(g, tutti_reduce_mean(g, y, NULL));
    tutti_optimizer_sgd(g, tutti_graph_constant(g, TUTTI_DTYPE_F32, 0.1), NULL);
  }
  return tutti_graph_check(g, error);
}

/* One batch whose lengths are 0 to LENGTH, but for that of BAD_ROW. */
static tutti_dataset *make_dataset(tutti_context *context, int64_t bad) {
  float x[ROWS * LENGTH * CHANNELS];
  int64_t lengths[ROWS];
  for (int i = 0; i < ROWS * LENGTH * CHANNELS; i++)
    x[i] = (float)(i % 7) / 7;
  for (int i = 0; i < ROWS; i++)
    lengths[i] = i == BAD_ROW ? bad : i % (LENGTH + 1);
  tutti_tensor *inputs = NULL, *counts = NULL;
  tutti_pipeline *pipeline = NULL;
  tutti_dataset *dataset = NULL;
  assert_ok(
      tutti_tensor_from_data(TUTTI_DTYPE_F32, (int64_t[]){ROWS, LENGTH, CHANNELS}, 3, x, sizeof x, &inputs, &err));
  assert_ok(tutti_tensor_from_data(TUTTI_DTYPE_I64, (int64_t[]){ROWS}, 1, lengths, sizeof lengths, &counts, &err));
  assert_ok(tutti_pipeline_create(context, &pipeline, &err));
  tutti_pipeline_add_slices(pipeline, "x", TUTTI_ROLE_FEATURE, inputs);
  tutti_pipeline_add_slices(pipeline, "length", TUTTI_ROLE_FEATURE, counts);
  tutti_pipeline_batch(pipeline, ROWS, NULL);
  assert_ok(tutti_pipeline_build(pipeline, &dataset, &err));
  tutti_pipeline_unref(pipeline), tutti_tensor_unref(inputs), tutti_tensor_unref(counts);
  return dataset;
}

static void check(tutti_context *context, tutti_strategy *strategy, enum layer layer, int64_t bad) {
  char expected[160];
  snprintf(expected, sizeof expected, "%s' (gather): index %d in row %d is outside [0, %d)", places[layer], (int)bad,
           BAD_ROW, COUNT);
  tutti_estimator *estimator = NULL;
  assert_ok(tutti_estimator_create(context, model, &layer, NULL, strategy, NULL, &estimator, &err));
  tutti_dataset *good = make_dataset(context, LENGTH), *damaged = make_dataset(context, bad);
  assert_ok(tutti_estimator_train(estimator, good, NULL, NULL, NULL, NULL, &err));
  assert_error(TUTTI_INVALID_ARGUMENT, expected,
               tutti_estimator_train(estimator, damaged, NULL, NULL, NULL, NULL, &err));
  assert_error(TUTTI_INVALID_ARGUMENT, expected, tutti_estimator_evaluate(estimator, damaged, 0, NULL, NULL, &err));
  assert_ok(tutti_estimator_evaluate(estimator, good, 0, NULL, NULL, &err)); /* nothing is lost by it */
  tutti_dataset_unref(good), tutti_dataset_unref(damaged), tutti_estimator_unref(estimator);
}

static void test_lengths_and_indices(void **state) {
  (void)state;
  for (int replicas = 1; replicas <= 3; replicas++) {
    tutti_options *devices = NULL;
    tutti_context *context = NULL;
    tutti_strategy *strategy = NULL;
    assert_ok(tutti_options_create("context", &devices, &err));
    tutti_options_set_i64(devices, "logical_devices", replicas);
    assert_ok(tutti_context_create(devices, &context, &err));
    assert_ok(tutti_strategy_create_mirrored(context, NULL, 0, &strategy, &err));
    for (int layer = 0; layer < LAYERS; layer++) {
      check(context, strategy, (enum layer)layer, LENGTH + 1);
      check(context, strategy, (enum layer)layer, -1);
    }
    tutti_strategy_unref(strategy), tutti_context_unref(context), tutti_options_unref(devices);
  }
}

static const struct CMUnitTest tests[] = {cmocka_unit_test(test_lengths_and_indices)};

CAPI_TEST_MAIN(tests)
