/* SPDX-License-Identifier: Apache-2.0
 *
 * The toy of the bindings' tests, in C. It prints what each language must reach to the last digit: the loss of every
 * step, then loss and accuracy of the evaluation, then each predicted class.
 */
#include <stdio.h>
#include <stdlib.h>
#include <tutti/tutti.h>

enum { ROWS = 200, COLUMNS = 5, BATCH = 32, STEPS = 20 };

static void must(int32_t code, tutti_error *err) {
  if (code == TUTTI_OK) return;
  fprintf(stderr, "%s\n", tutti_error_get_text(err));
  exit(1);
}

static int32_t model(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  (void)user;
  tutti_layer_dense_attrs relu = {.activation = TUTTI_LAYER_DENSE_ACTIVATION_RELU};
  tutti_value x = tutti_graph_get_feature(g, "x");
  tutti_value logits = tutti_layer_dense(g, tutti_layer_dense(g, x, 8, &relu), 3, NULL);
  tutti_graph_set_output(g, "class", tutti_argmax(g, logits, NULL));
  if (mode != TUTTI_MODE_PREDICT) {
    tutti_value y = tutti_graph_get_label(g, "y");
    tutti_metric_accuracy(g, "accuracy", logits, y, NULL);
    tutti_graph_set_loss(g, tutti_loss_sparse_softmax_cross_entropy(g, logits, y, NULL));
    tutti_optimizer_adam(g, tutti_schedule_constant(g, 0.01), NULL);
  }
  return tutti_graph_check(g, err);
}

static int32_t print_loss(void *user, const tutti_hook_event *event, tutti_error **err) {
  (void)user, (void)err;
  if (tutti_hook_event_get_kind(event) == TUTTI_EVENT_STEP) printf("%.17g\n", tutti_hook_event_get_loss(event));
  return TUTTI_OK;
}

static tutti_dataset *dataset(int for_training) {
  static float x[ROWS][COLUMNS];
  static int32_t y[ROWS];
  uint32_t state = 7;
  for (int i = 0; i < ROWS; i++) {
    y[i] = i % 3;
    for (int j = 0; j < COLUMNS; j++) {
      state = state * 1664525u + 1013904223u;
      x[i][j] = (float)(state >> 8) / (float)(1 << 24) + (j == y[i] ? 0.5f : 0.0f);
    }
  }
  tutti_error *err = NULL;
  tutti_tensor *features = NULL, *labels = NULL;
  tutti_pipeline *pipeline = NULL;
  tutti_dataset *out = NULL;
  must(tutti_tensor_from_data(TUTTI_DTYPE_F32, (int64_t[]){ROWS, COLUMNS}, 2, x, sizeof x, &features, &err), err);
  must(tutti_tensor_from_data(TUTTI_DTYPE_I32, (int64_t[]){ROWS}, 1, y, sizeof y, &labels, &err), err);
  must(tutti_pipeline_create(NULL, &pipeline, &err), err);
  tutti_pipeline_add_slices(pipeline, "x", TUTTI_ROLE_FEATURE, features);
  tutti_pipeline_add_slices(pipeline, "y", TUTTI_ROLE_LABEL, labels);
  if (for_training) tutti_pipeline_shuffle(pipeline, ROWS, NULL), tutti_pipeline_repeat(pipeline, NULL);
  tutti_pipeline_batch(pipeline, BATCH, NULL);
  must(tutti_pipeline_build(pipeline, &out, &err), err);
  tutti_pipeline_unref(pipeline), tutti_tensor_unref(features), tutti_tensor_unref(labels);
  return out;
}

int main(void) {
  tutti_error *err = NULL;
  tutti_options *run = NULL, *steps = NULL;
  tutti_strategy *strategy = NULL;
  tutti_hooks *hooks = NULL;
  tutti_estimator *estimator = NULL;
  tutti_result *evaluated = NULL;
  tutti_predictor *predictor = NULL;
  tutti_batch *batch = NULL;
  tutti_dataset *train = dataset(1), *test = dataset(0);
  must(tutti_options_create("run", &run, &err), err);
  tutti_options_set_i64(run, "seed", 3), tutti_options_set_string(run, "determinism", "invariant");
  must(tutti_options_create("train", &steps, &err), err);
  tutti_options_set_i64(steps, "steps", STEPS);
  must(tutti_strategy_create_mirrored(NULL, NULL, 0, &strategy, &err), err);
  must(tutti_hooks_create(&hooks, &err), err);
  must(tutti_hooks_add(hooks, print_loss, NULL, NULL, 1, &err), err);
  must(tutti_estimator_create(NULL, model, NULL, NULL, strategy, run, &estimator, &err), err);
  must(tutti_estimator_train(estimator, train, steps, hooks, NULL, NULL, &err), err);
  must(tutti_estimator_evaluate(estimator, test, 0, NULL, &evaluated, &err), err);
  printf("%.17g\n%.17g\n", tutti_result_get_loss(evaluated), tutti_result_get_metric(evaluated, "accuracy"));
  must(tutti_predictor_from_estimator(estimator, NULL, &predictor, &err), err);
  must(tutti_predictor_run_all(predictor, test, NULL, &batch, &err), err);
  const int64_t *classes = tutti_tensor_get_data(tutti_batch_get_output(batch, "class"));
  for (int64_t i = 0; i < tutti_batch_get_row_count(batch); i++)
    printf("%lld\n", (long long)classes[i]);
  tutti_batch_unref(batch), tutti_predictor_unref(predictor), tutti_result_unref(evaluated);
  tutti_estimator_unref(estimator), tutti_hooks_unref(hooks), tutti_strategy_unref(strategy);
  tutti_options_unref(run), tutti_options_unref(steps), tutti_dataset_unref(train), tutti_dataset_unref(test);
  return 0;
}
