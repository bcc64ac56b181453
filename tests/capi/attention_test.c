/* SPDX-License-Identifier: Apache-2.0
 * A network with attention, which forgets some of what it sees while it learns, trained on one and on several replicas:
 * each learns what one replica learns. */
#include <math.h>

#include "dense_fixtures.h"
#include "estimator_fixtures.h"

enum { ROWS = 48, BATCH = 12, CHANNELS = 8, STEPS = 40 };

/* The four numbers of toy_row() as four positions. Some rows see no position at all, which must not harm the others. */
static int32_t attention_model(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  (void)user;
  int64_t positions[] = {-1, 4, 1}, flat[] = {-1, 4 * CHANNELS};
  tutti_value rows = tutti_graph_get_feature(g, "x"), lengths = tutti_argmax(g, rows, NULL);
  tutti_value x = tutti_layer_dense(g, tutti_reshape(g, rows, positions, 3), CHANNELS, NULL);
  tutti_layer_multi_head_attention_attrs causal = {.causal = 1, .key_heads = 1};
  tutti_layer_multi_head_attention_attrs some = {.lengths = lengths, .dropout = 0.2};
  x = tutti_add(g, x, tutti_layer_multi_head_attention(g, tutti_layer_layer_norm(g, x, NULL), 2, &causal));
  x = tutti_add(g, x, tutti_layer_multi_head_attention(g, tutti_layer_layer_norm(g, x, NULL), 4, &some));
  tutti_value logits = tutti_layer_dense(g, tutti_reshape(g, x, flat, 2), 2, NULL);
  tutti_graph_set_output(g, "logits", logits);
  if (mode == TUTTI_MODE_PREDICT) return tutti_graph_check(g, err);
  tutti_value y = tutti_graph_get_label(g, "y");
  tutti_graph_set_loss(g, tutti_loss_sparse_softmax_cross_entropy(g, logits, y, NULL));
  tutti_optimizer_sgd(g, tutti_schedule_constant(g, 0.1), NULL);
  return tutti_graph_check(g, err);
}

/* The same with blocks that forget, one of them with the other's result as its memory. `user`: how much they forget. */
static int32_t block_model(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  int64_t positions[] = {-1, 4, 1}, flat[] = {-1, 4 * CHANNELS};
  const double dropout = *(const double *)user;
  const tutti_value rows = tutti_reshape(g, tutti_graph_get_feature(g, "x"), positions, 3);
  const tutti_value x = tutti_layer_dense(g, rows, CHANNELS, NULL);
  const tutti_layer_transformer_encoder_attrs encoder = {.dropout = dropout, .pre_norm = 1};
  tutti_layer_transformer_decoder_attrs decoder = {.dropout = dropout};
  decoder.memory = tutti_layer_transformer_encoder(g, x, 2, 12, &encoder);
  tutti_value cache[2];
  const tutti_value y = tutti_layer_transformer_decoder(g, x, 4, 12, &decoder, cache);
  const tutti_value logits = tutti_layer_dense(g, tutti_reshape(g, y, flat, 2), 2, NULL);
  tutti_graph_set_output(g, "logits", logits);
  if (mode == TUTTI_MODE_PREDICT) return tutti_graph_check(g, err);
  tutti_graph_set_loss(g, tutti_loss_sparse_softmax_cross_entropy(g, logits, tutti_graph_get_label(g, "y"), NULL));
  tutti_optimizer_sgd(g, tutti_schedule_constant(g, 0.1), NULL);
  return tutti_graph_check(g, err);
}

/* The losses of the last step and of all rows after it. */
static void train_on(tutti_model_fn model, void *user, int replicas, double losses[2]) {
  tutti_context *context = NULL;
  tutti_estimator *estimator = dense_estimator(model, user, replicas, "{\"seed\": 5}", &context);
  tutti_dataset *endless = dense_dataset(context, ROWS, BATCH, 1), *once = dense_dataset(context, ROWS, BATCH, 0);
  char steps[32];
  snprintf(steps, sizeof steps, "{\"steps\": %d}", STEPS);
  losses[0] = train(estimator, endless, steps).loss;
  losses[1] = evaluate(estimator, once, 0).loss;
  tutti_dataset_unref(endless), tutti_dataset_unref(once);
  tutti_estimator_unref(estimator), tutti_context_unref(context);
}

static void check_replicas(tutti_model_fn model, void *user, double expected[2]) {
  double got[2];
  train_on(model, user, 1, expected);
  if (!(expected[1] < 0.5)) fail_msg("it has learnt nothing: loss %g", expected[1]);
  for (int replicas = 2; replicas <= 3; replicas++) {
    train_on(model, user, replicas, got);
    for (int i = 0; i < 2; i++) {
      const double off = got[i] - expected[i];
      if (!(off < 1e-3 && off > -1e-3)) fail_msg("%d replicas: loss %g, expected %g", replicas, got[i], expected[i]);
    }
  }
}

static void test_replicas_train_the_model_of_one(void **state) {
  (void)state;
  double losses[2];
  check_replicas(attention_model, NULL, losses);
}

static void test_blocks_forget_on_replicas(void **state) {
  (void)state;
  double some = 0.2, nothing = 0, losses[2], others[2];
  check_replicas(block_model, &some, losses);
  check_replicas(block_model, &nothing, others);
  assert_true(fabs(losses[1] - others[1]) > 1e-4);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_replicas_train_the_model_of_one),
    cmocka_unit_test(test_blocks_forget_on_replicas),
};

CAPI_TEST_MAIN(tests)
