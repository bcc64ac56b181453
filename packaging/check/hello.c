/* SPDX-License-Identifier: Apache-2.0
 * hello train DIR:   trains on two devices, saves to DIR, predicts on both.
 * hello predict DIR: predicts from what is in DIR.
 * hello workers DIR: trains as one of several processes (tutti run).
 * hello build:       prints how the library was built.
 * Prints how many of 512 rows are right and a sum of all logits, which are to be the same in both processes. */
#include <stdio.h>
#include <string.h>
#include <tutti/tutti.h>

enum { ROWS = 512, FEATURES = 4 };

struct all {
  tutti_context *context;
  tutti_strategy *strategy;
  tutti_tensor *x, *y;
  tutti_dataset *dataset;
  tutti_estimator *estimator;
  tutti_predictor *predictor;
  tutti_error *err;
};

#define TRY(call)                        \
  do {                                   \
    const int32_t code_ = (call);        \
    if (code_ != TUTTI_OK) return code_; \
  } while (0)

static float rows[ROWS][FEATURES];
static int32_t labels[ROWS];

/* Whether the first two numbers are more than one together. */
static void make_rows(void) {
  unsigned state = 1;
  for (int i = 0; i < ROWS; i++) {
    for (int j = 0; j < FEATURES; j++) {
      state = state * 1664525u + 1013904223u;
      rows[i][j] = (float)(state >> 8) / (float)(1 << 24);
    }
    labels[i] = rows[i][0] + rows[i][1] > 1.0f;
  }
}

static int32_t model(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  (void)user;
  const tutti_layer_dense_attrs relu = {.activation = TUTTI_LAYER_DENSE_ACTIVATION_RELU};
  tutti_value logits = tutti_layer_dense(g, tutti_layer_dense(g, tutti_graph_get_feature(g, "x"), 16, &relu), 2, NULL);
  tutti_graph_set_output(g, "logits", logits);
  if (mode != TUTTI_MODE_PREDICT) {
    tutti_graph_set_loss(g, tutti_loss_sparse_softmax_cross_entropy(g, logits, tutti_graph_get_label(g, "y"), NULL));
    tutti_optimizer_adam(g, tutti_schedule_constant(g, 0.02), NULL);
  }
  return tutti_graph_check(g, err);
}

static int32_t open_context(struct all *all) {
  tutti_options *options = NULL;
  TRY(tutti_options_create("context", &options, &all->err));
  tutti_options_set_i64(options, "logical_devices", 2);
  const int32_t code = tutti_context_create(options, &all->context, &all->err);
  tutti_options_unref(options);
  TRY(code);
  TRY(tutti_tensor_from_data(TUTTI_DTYPE_F32, (int64_t[]){ROWS, FEATURES}, 2, rows, sizeof rows, &all->x, &all->err));
  return tutti_tensor_from_data(TUTTI_DTYPE_I32, (int64_t[]){ROWS}, 1, labels, sizeof labels, &all->y, &all->err);
}

static int32_t make_dataset(struct all *all) {
  tutti_pipeline *pipeline = NULL;
  TRY(tutti_pipeline_create(all->context, &pipeline, &all->err));
  tutti_pipeline_add_slices(pipeline, "x", TUTTI_ROLE_FEATURE, all->x);
  tutti_pipeline_add_slices(pipeline, "y", TUTTI_ROLE_LABEL, all->y);
  tutti_pipeline_repeat(pipeline, NULL);
  tutti_pipeline_batch(pipeline, 64, NULL);
  const int32_t code = tutti_pipeline_build(pipeline, &all->dataset, &all->err);
  tutti_pipeline_unref(pipeline);
  return code;
}

static int32_t train(struct all *all, const char *directory) {
  tutti_options *run = NULL, *steps = NULL;
  tutti_result *result = NULL;
  TRY(make_dataset(all));
  TRY(tutti_options_create("run", &run, &all->err));
  tutti_options_set_string(run, "model_dir", directory);
  int32_t code =
      tutti_estimator_create(all->context, model, NULL, NULL, all->strategy, run, &all->estimator, &all->err);
  tutti_options_unref(run);
  TRY(code);
  TRY(tutti_options_create("train", &steps, &all->err));
  tutti_options_set_i64(steps, "steps", 300);
  code = tutti_estimator_train(all->estimator, all->dataset, steps, NULL, NULL, &result, &all->err);
  tutti_options_unref(steps), tutti_result_unref(result);
  return code;
}

static int32_t predict(struct all *all) {
  tutti_batch *batch = NULL;
  TRY(tutti_predictor_run(all->predictor, (const char *[]){"x"}, &all->x, 1, NULL, &batch, &all->err));
  const float *const logits = tutti_tensor_get_data(tutti_batch_get_output(batch, "logits"));
  int right = 0;
  double sum = 0;
  for (int i = 0; i < ROWS; i++) {
    right += (logits[2 * i + 1] > logits[2 * i]) == labels[i];
    sum += logits[2 * i] + logits[2 * i + 1];
  }
  tutti_batch_unref(batch);
  printf("%d of %d right, sum %.3f\n", right, ROWS, sum);
  return right > ROWS * 9 / 10 ? TUTTI_OK : TUTTI_INTERNAL;
}

static int32_t run(struct all *all, const char *what, const char *directory) {
  TRY(open_context(all));
  if (strcmp(what, "workers") == 0)
    TRY(tutti_strategy_create_multi_worker_from_environment(all->context, NULL, &all->strategy, &all->err));
  else
    TRY(tutti_strategy_create_mirrored(all->context, NULL, 0, &all->strategy, &all->err));
  if (strcmp(what, "predict") == 0) {
    TRY(tutti_predictor_open(all->context, directory, all->strategy, NULL, &all->predictor, &all->err));
  } else {
    TRY(train(all, directory));
    TRY(tutti_predictor_from_estimator(all->estimator, NULL, &all->predictor, &all->err));
  }
  return predict(all);
}

int main(int argc, char **argv) {
  if (argc == 2 && strcmp(argv[1], "build") == 0) return puts(tutti_build_info()) < 0;
  if (argc != 3) return 2;
  struct all all = {0};
  make_rows();
  const int32_t code = run(&all, argv[1], argv[2]);
  if (code != TUTTI_OK) fprintf(stderr, "hello: %s\n", all.err != NULL ? tutti_error_get_text(all.err) : "wrong rows");
  tutti_predictor_unref(all.predictor), tutti_estimator_unref(all.estimator), tutti_dataset_unref(all.dataset);
  tutti_tensor_unref(all.x), tutti_tensor_unref(all.y), tutti_strategy_unref(all.strategy);
  tutti_context_unref(all.context), tutti_error_unref(all.err);
  return code != TUTTI_OK;
}
