/* SPDX-License-Identifier: Apache-2.0
 * Training steps of single layers over sequences: processor time of a step, the least of several runs, one thread.
 * layer_peer.py does the same in PyTorch, and prints lines of the same form.
 *
 *   layer_bench [CASE...]        lstm, gru: two layers of 256 units, 32 sequences of 64; transformer: 256 channels, 8
 *                                heads, 1024 hidden units, 16 sequences of 128; all by default */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <tutti/tutti.h>

enum { WIDTH = 256 };

struct layer_case {
  const char *name;
  int64_t batch, length;
};

static const struct layer_case cases[] = {{"lstm", 32, 64}, {"gru", 32, 64}, {"transformer", 16, 128}};

static void must(int32_t code, tutti_error *err) {
  if (code == TUTTI_OK) return;
  fprintf(stderr, "%s\n", tutti_error_get_text(err));
  exit(1);
}

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
  tutti_pipeline *pipeline = NULL;
  tutti_dataset *dataset = NULL;
  must(tutti_tensor_from_data(TUTTI_DTYPE_F32, dims, 3, values, count * (int64_t)sizeof *values, &tensor, &err), err);
  must(tutti_pipeline_create(context, &pipeline, &err), err);
  tutti_pipeline_add_slices(pipeline, "x", TUTTI_ROLE_FEATURE, tensor);
  tutti_pipeline_batch(pipeline, one->batch, NULL);
  tutti_pipeline_cache(pipeline, NULL);
  tutti_pipeline_repeat(pipeline, NULL);
  must(tutti_pipeline_build(pipeline, &dataset, &err), err);
  tutti_pipeline_unref(pipeline);
  tutti_tensor_unref(tensor);
  free(values);
  return dataset;
}

static double processor_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static double measure(tutti_context *context, const struct layer_case *one) {
  tutti_error *err = NULL;
  tutti_strategy *strategy = NULL;
  tutti_estimator *estimator = NULL;
  tutti_session *session = NULL;
  tutti_dataset *dataset = make_data(context, one);
  must(tutti_strategy_create_mirrored(context, NULL, 0, &strategy, &err), err);
  must(tutti_estimator_create(context, model, (void *)one, NULL, strategy, NULL, &estimator, &err), err);
  must(tutti_session_open(estimator, dataset, NULL, NULL, NULL, &session, &err), err);
  must(tutti_session_run(session, 2, NULL, &err), err);
  double best = 1e30;
  for (int run = 0; run < 10; run++) {
    const double begin = processor_ms();
    must(tutti_session_run(session, 2, NULL, &err), err);
    const double each = (processor_ms() - begin) / 2;
    best = each < best ? each : best;
  }
  tutti_session_unref(session);
  tutti_estimator_unref(estimator);
  tutti_strategy_unref(strategy);
  tutti_dataset_unref(dataset);
  return best;
}

int main(int count, char **arguments) {
  tutti_error *err = NULL;
  tutti_options *options = NULL;
  tutti_context *context = NULL;
  must(tutti_options_create("context", &options, &err), err);
  tutti_options_set_i64(options, "threads", 1);
  must(tutti_context_create(options, &context, &err), err);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    int is_asked = count < 2;
    for (int a = 1; a < count; a++)
      is_asked = is_asked || strcmp(arguments[a], cases[i].name) == 0;
    if (is_asked)
      printf("tutti    %-12s %9.2f ms of processor time a step\n", cases[i].name, measure(context, &cases[i]));
    fflush(stdout);
  }
  tutti_context_unref(context);
  tutti_options_unref(options);
  return 0;
}
