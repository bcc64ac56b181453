/* SPDX-License-Identifier: Apache-2.0
 * One model on several processes: each is told by its launcher who it is, and all run the same program. They train
 * together, each on its rows of every batch, evaluate together, and predict together; worker 0 writes the checkpoints
 * and says what came of it.
 *
 *   tutti run -n 2 ./workers MODEL_DIR [MILLISECONDS]     on one machine; examples/launchers has job files for clusters
 *
 * MODEL_DIR lies in storage that all workers reach. A worker that does not answer for so many milliseconds (60000) is
 * given up with an error that names it. A job that was interrupted is started again in the same way, with
 * as many workers as there are then, and goes on from the last checkpoint. */
#include <stdio.h>
#include <stdlib.h>
#include <tutti/tutti.h>

enum { ROWS = 4096, WIDTH = 4, BATCH = 128 /* of all workers together */, EPOCHS = 12 };

static int32_t model(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  (void)user;
  tutti_layer_dense_attrs relu = {.activation = TUTTI_LAYER_DENSE_ACTIVATION_RELU};
  tutti_value hidden = tutti_layer_dense(g, tutti_graph_get_feature(g, "x"), 16, &relu);
  tutti_value logits = tutti_layer_dense(g, hidden, 2, NULL);
  tutti_graph_set_output(g, "class", tutti_argmax(g, logits, NULL));
  if (mode != TUTTI_MODE_PREDICT) {
    tutti_value y = tutti_graph_get_label(g, "y");
    tutti_metric_accuracy(g, "accuracy", logits, y, NULL);
    tutti_graph_set_loss(g, tutti_loss_sparse_softmax_cross_entropy(g, logits, y, NULL));
    tutti_optimizer_adam(g, tutti_schedule_constant(g, 1e-2), NULL);
  }
  return tutti_graph_check(g, err);
}

/* The same rows on every worker: is the sum of the first two numbers the larger one? */
static int32_t make_dataset(tutti_context *context, tutti_dataset **out, tutti_error **err) {
  static float rows[ROWS][WIDTH];
  static int32_t labels[ROWS];
  srand(1);
  for (int i = 0; i < ROWS; i++) {
    for (int j = 0; j < WIDTH; j++)
      rows[i][j] = (float)rand() / (float)RAND_MAX;
    labels[i] = rows[i][0] + rows[i][1] > rows[i][2] + rows[i][3];
  }
  tutti_tensor *x = NULL, *y = NULL;
  tutti_pipeline *pipeline = NULL;
  int32_t code = tutti_tensor_from_data(TUTTI_DTYPE_F32, (int64_t[]){ROWS, WIDTH}, 2, rows, sizeof rows, &x, err);
  if (!code) code = tutti_tensor_from_data(TUTTI_DTYPE_I32, (int64_t[]){ROWS}, 1, labels, sizeof labels, &y, err);
  if (!code) code = tutti_pipeline_create(context, &pipeline, err);
  tutti_pipeline_add_slices(pipeline, "x", TUTTI_ROLE_FEATURE, x);
  tutti_pipeline_add_slices(pipeline, "y", TUTTI_ROLE_LABEL, y);
  tutti_pipeline_batch(pipeline, BATCH, NULL);
  if (!code) code = tutti_pipeline_build(pipeline, out, err);
  tutti_pipeline_unref(pipeline), tutti_tensor_unref(x), tutti_tensor_unref(y);
  return code;
}

int main(int argc, char **argv) {
  tutti_error *err = NULL;
  tutti_strategy *workers = NULL;
  tutti_dataset *dataset = NULL;
  tutti_options *run = NULL, *training = NULL;
  tutti_estimator *estimator = NULL;
  tutti_predictor *predictor = NULL;
  tutti_result *evaluated = NULL;
  tutti_batch *classes = NULL;
  tutti_context *context = NULL; /* the strategy's, lent */
  if (argc != 2 && argc != 3) return fprintf(stderr, "usage: workers MODEL_DIR [MILLISECONDS]\n"), 2;
  int failed = tutti_options_create("run", &run, &err) || tutti_options_create("train", &training, &err) ||
               tutti_strategy_create_multi_worker_from_environment(NULL, NULL, &workers, &err);
  if (!failed) {
    tutti_options_set_string(run, "model_dir", argv[1]);
    tutti_options_set_i64(run, "collective_timeout_ms", argc == 3 ? atoll(argv[2]) : 60000);
    tutti_options_set_i64(training, "epochs", EPOCHS);
    context = tutti_strategy_get_context(workers);
    failed = make_dataset(context, &dataset, &err) ||
             tutti_estimator_create(context, model, NULL, NULL, workers, run, &estimator, &err);
  }
  failed = failed || tutti_estimator_train(estimator, dataset, training, NULL, NULL, NULL, &err) ||
           tutti_estimator_evaluate(estimator, dataset, 0, NULL, &evaluated, &err) ||
           tutti_predictor_from_estimator(estimator, NULL, &predictor, &err) ||
           tutti_predictor_run_all(predictor, dataset, NULL, &classes, &err);
  if (failed) fprintf(stderr, "%s\n", tutti_error_get_text(err));
  if (!failed && tutti_strategy_get_worker_index(workers) == 0)
    printf("workers %lld, replicas %lld, step %lld, accuracy %.3f, predictions %lld\n",
           (long long)tutti_strategy_get_worker_count(workers), (long long)tutti_strategy_get_replica_count(workers),
           (long long)tutti_result_get_step(evaluated), tutti_result_get_metric(evaluated, "accuracy"),
           (long long)tutti_batch_get_row_count(classes));
  tutti_batch_unref(classes), tutti_predictor_unref(predictor), tutti_result_unref(evaluated);
  tutti_estimator_unref(estimator), tutti_dataset_unref(dataset), tutti_strategy_unref(workers);
  return tutti_options_unref(run), tutti_options_unref(training), tutti_error_unref(err), failed != 0;
}
