/* SPDX-License-Identifier: Apache-2.0
 *
 * Trains a small model and leaves its checkpoints in a directory, for the tests of `tutti inspect`, which work out for
 * themselves what must be in them, and of `tutti predict`. usage: write_model DIRECTORY RUN_OPTIONS [columns]
 *
 * Feature "x" f32[4], label "y"; dense 4 -> 5 -> 3, and a variable "seen" i64[2, 3] that is not trained; outputs
 * "logits" f32[3] and "class" i64[]; Adam with moving averages. 4 steps with 5 rows each, then 3 more; there is a
 * checkpoint before the first step and behind both.
 *
 * With `columns`: features "a" f32[] and "b" i64[], output "sum" = weight a + b, where the weight is 1 and stays so. */
#include "capi_testing.h"

enum { ROWS = 20, BATCH = 5, HIDDEN = 5, CLASSES = 3 };

static int32_t model(tutti_graph *g, int32_t mode, void *user, tutti_error **error) {
  (void)user;
  const int64_t dims[] = {2, 3};
  tutti_value seen = tutti_graph_variable(g, "seen", TUTTI_DTYPE_I64, dims, 2, "zeros", 0, 0);
  tutti_value hidden = tutti_layer_dense(g, tutti_graph_get_feature(g, "x"), HIDDEN, NULL);
  tutti_value logits = tutti_layer_dense(g, tutti_relu(g, hidden), CLASSES, NULL);
  tutti_graph_set_output(g, "logits", logits);
  tutti_graph_set_output(g, "class", tutti_argmax(g, logits, NULL));
  if (mode == TUTTI_MODE_TRAIN)
    tutti_graph_assign(g, seen, tutti_add(g, seen, tutti_graph_constant(g, TUTTI_DTYPE_I64, 1)));
  if (mode != TUTTI_MODE_PREDICT) {
    tutti_value y = tutti_graph_get_label(g, "y");
    tutti_graph_set_loss(g, tutti_loss_sparse_softmax_cross_entropy(g, logits, y, NULL));
    const tutti_optimizer_adam_attrs adam = {.average_decay = 0.5};
    tutti_optimizer_adam(g, tutti_graph_constant(g, TUTTI_DTYPE_F32, 0.01), &adam);
  }
  return tutti_graph_check(g, error);
}

static void train_steps(tutti_estimator *estimator, const tutti_dataset *dataset, const char *steps) {
  tutti_options *options = make_options("train", steps);
  assert_ok(tutti_estimator_train(estimator, dataset, options, NULL, NULL, NULL, &err));
  tutti_options_unref(options);
}

static int32_t model_of_columns(tutti_graph *g, int32_t mode, void *user, tutti_error **error) {
  (void)user;
  tutti_value weight = tutti_graph_variable(g, "weight", TUTTI_DTYPE_F32, NULL, 0, "ones", 0, 1);
  tutti_value b = tutti_cast(g, tutti_graph_get_feature(g, "b"), TUTTI_DTYPE_F32);
  tutti_value sum = tutti_add(g, tutti_mul(g, tutti_graph_get_feature(g, "a"), weight), b);
  tutti_graph_set_output(g, "sum", sum);
  if (mode != TUTTI_MODE_PREDICT) {
    tutti_graph_set_loss(g, tutti_loss_mean_squared_error(g, sum, sum, NULL));
    tutti_optimizer_sgd(g, tutti_graph_constant(g, TUTTI_DTYPE_F32, 0.01), NULL);
  }
  return tutti_graph_check(g, error);
}

static void train_on_columns(tutti_options *run) {
  const float a[] = {1, 2};
  const int64_t b[] = {3, 4}, dims[] = {2};
  tutti_pipeline *pipeline = NULL;
  tutti_dataset *dataset = NULL;
  tutti_estimator *estimator = NULL;
  tutti_tensor *first = make_tensor(TUTTI_DTYPE_F32, 1, dims, a), *second = make_tensor(TUTTI_DTYPE_I64, 1, dims, b);
  assert_ok(tutti_pipeline_create(NULL, &pipeline, &err));
  tutti_pipeline_add_slices(pipeline, "a", TUTTI_ROLE_FEATURE, first);
  tutti_pipeline_add_slices(pipeline, "b", TUTTI_ROLE_FEATURE, second);
  tutti_pipeline_batch(pipeline, 2, NULL);
  assert_ok(tutti_pipeline_build(pipeline, &dataset, &err));
  assert_ok(tutti_estimator_create(NULL, model_of_columns, NULL, NULL, NULL, run, &estimator, &err));
  train_steps(estimator, dataset, "{\"steps\": 1}");
  tutti_estimator_unref(estimator), tutti_dataset_unref(dataset), tutti_pipeline_unref(pipeline);
  tutti_tensor_unref(first), tutti_tensor_unref(second);
}

int main(int argc, char **argv) {
  if (argc != 3 && argc != 4) return 2;
  tutti_options *run = make_options("run", argv[2]);
  tutti_options_set_string(run, "model_dir", argv[1]);
  if (argc == 4) {
    train_on_columns(run);
    tutti_options_unref(run);
    return 0;
  }
  tutti_dataset *dataset = toy_dataset(ROWS, BATCH, 0);
  tutti_estimator *estimator = NULL;
  assert_ok(tutti_estimator_create(NULL, model, NULL, NULL, NULL, run, &estimator, &err));
  train_steps(estimator, dataset, "{\"steps\": 4}");
  train_steps(estimator, dataset, "{\"steps\": 3}");
  tutti_estimator_unref(estimator), tutti_dataset_unref(dataset), tutti_options_unref(run);
  return 0;
}
