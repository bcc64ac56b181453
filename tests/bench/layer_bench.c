/* SPDX-License-Identifier: Apache-2.0
 * Training steps of single layers over sequences: processor time of a step, the least of several runs, one thread.
 * layer_peer.py does the same in PyTorch, and prints lines of the same form.
 *
 *   layer_bench [CASE...]        lstm, gru: two layers of 256 units, 32 sequences of 64; transformer: 256 channels, 8
 *                                heads, 1024 hidden units, 16 sequences of 128; all by default */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "step_timing.h"

enum { WIDTH = 256 };

struct layer_case {
  const char *name;
  int64_t batch, length;
};

static const struct layer_case cases[] = {{"lstm", 32, 64}, {"gru", 32, 64}, {"transformer", 16, 128}};

static tutti_value add_layer(tutti_graph *g, const char *name, tutti_value x) {
  tutti_layer_lstm_attrs lstm = {.layers = 2};
  tutti_layer_gru_attrs gru = {.layers = 2};
  tutti_value more[2];
  if (strcmp(name, "lstm") == 0) return tutti_layer_lstm(g, x, WIDTH, &lstm, more);
  if (strcmp(name, "gru") == 0) return tutti_layer_gru(g, x, WIDTH, &gru, more);
  return tutti_layer_transformer_encoder(g, x, 8, 4 * WIDTH, NULL);
}

static int32_t model(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  const struct layer_case *one = user;
  tutti_value y = add_layer(g, one->name, tutti_graph_get_feature(g, "x"));
  tutti_graph_set_output(g, "y", y);
  if (mode == TUTTI_MODE_PREDICT) return tutti_graph_check(g, err);
  tutti_graph_set_loss(g, tutti_reduce_mean(g, tutti_square(g, y), NULL));
  tutti_optimizer_sgd(g, tutti_schedule_constant(g, 0.01), NULL);
  return tutti_graph_check(g, err);
}

static tutti_dataset *make_data(tutti_context *context, const struct layer_case *one) {
  const int64_t dims[] = {one->batch, one->length, WIDTH}, count = one->batch * one->length * WIDTH;
  float *const values = malloc((size_t)count * sizeof *values);
  for (int64_t i = 0; i < count; i++)
    values[i] = 2 * (float)rand() / (float)RAND_MAX - 1;
  tutti_error *err = NULL;
  tutti_tensor *tensor = NULL;
  must(tutti_tensor_from_data(TUTTI_DTYPE_F32, dims, 3, values, count * (int64_t)sizeof *values, &tensor, &err), err);
  free(values);
  return same_batch(context, "x", tensor);
}

int main(int count, char **arguments) {
  tutti_context *context = one_thread();
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    int is_asked = count < 2;
    for (int a = 1; a < count; a++)
      is_asked = is_asked || strcmp(arguments[a], cases[i].name) == 0;
    if (is_asked)
      printf("tutti    %-12s %9.2f ms of processor time a step\n", cases[i].name,
             step_ms(context, model, (void *)&cases[i], make_data(context, &cases[i]), 10, 2));
    fflush(stdout);
  }
  tutti_context_unref(context);
  return 0;
}
