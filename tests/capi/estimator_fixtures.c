/* SPDX-License-Identifier: Apache-2.0 */
#include "estimator_fixtures.h"

#include <math.h>

struct outcome take(tutti_result *result) {
  struct outcome outcome = {tutti_result_get_reason(result), tutti_result_get_step(result),
                            tutti_result_get_examples(result), tutti_result_get_loss(result),
                            tutti_result_get_metric(result, "accuracy")};
  tutti_result_unref(result);
  return outcome;
}

struct outcome train(tutti_estimator *estimator, const tutti_dataset *dataset, const char *options) {
  tutti_options *train_options = options != NULL ? make_options("train", options) : NULL;
  tutti_result *result = NULL;
  assert_ok(tutti_estimator_train(estimator, dataset, train_options, NULL, NULL, &result, &err));
  tutti_options_unref(train_options);
  return take(result);
}

struct outcome evaluate(tutti_estimator *estimator, const tutti_dataset *dataset, int64_t steps) {
  tutti_result *result = NULL;
  assert_ok(tutti_estimator_evaluate(estimator, dataset, steps, NULL, &result, &err));
  return take(result);
}

int32_t line_model(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  const struct line *line = user;
  int64_t one = 1;
  tutti_value x = tutti_graph_get_feature(g, "x");
  tutti_value w = tutti_graph_variable(g, "w", TUTTI_DTYPE_F32, &one, 1, "constant", 2.0, 1);
  tutti_value y = tutti_mul(g, x, w);
  tutti_graph_set_output(g, "y", y);
  if (mode != TUTTI_MODE_PREDICT) {
    tutti_loss_mean_squared_error_attrs attrs = {.reduction = line->reduction};
    if (line->use_weights) attrs.weights = tutti_graph_get_sample_weight(g, "weight");
    tutti_value loss = tutti_loss_mean_squared_error(g, y, tutti_graph_get_label(g, "y"), &attrs);
    tutti_graph_set_loss(g, loss);
    tutti_optimizer_sgd(g, tutti_graph_host_scalar(g, "rate", 0.1), NULL);
    if (line->clip) tutti_graph_set_gradient_clip_norm(g, 1.0);
    if (line->apply_twice_the_gradient) {
      tutti_value gradient;
      tutti_gradients(g, loss, &w, 1, &gradient);
      gradient = tutti_mul(g, gradient, tutti_graph_constant(g, TUTTI_DTYPE_F32, 2));
      tutti_apply_gradients(g, &w, &gradient, 1);
    }
  }
  return tutti_graph_check(g, err);
}

tutti_dataset *line_dataset(int64_t batch) {
  static const float x[] = {1, 2, 3}, y[] = {1, 2, 0}, weight[] = {1, 0, 2};
  tutti_pipeline *pipeline = NULL;
  tutti_dataset *dataset = NULL;
  tutti_tensor *xs = make_vector(TUTTI_DTYPE_F32, 3, x), *ys = make_vector(TUTTI_DTYPE_F32, 3, y),
               *weights = make_vector(TUTTI_DTYPE_F32, 3, weight);
  assert_ok(tutti_pipeline_create(NULL, &pipeline, &err));
  tutti_pipeline_add_slices(pipeline, "x", TUTTI_ROLE_FEATURE, xs);
  tutti_pipeline_add_slices(pipeline, "y", TUTTI_ROLE_LABEL, ys);
  tutti_pipeline_add_slices(pipeline, "weight", TUTTI_ROLE_WEIGHT, weights);
  tutti_pipeline_batch(pipeline, batch, NULL);
  assert_ok(tutti_pipeline_build(pipeline, &dataset, &err));
  tutti_pipeline_unref(pipeline);
  tutti_tensor_unref(xs), tutti_tensor_unref(ys), tutti_tensor_unref(weights);
  return dataset;
}

tutti_estimator *line_estimator(struct line *line) {
  tutti_estimator *estimator = NULL;
  assert_ok(tutti_estimator_create(NULL, line_model, line, NULL, NULL, NULL, &estimator, &err));
  return estimator;
}

double read_scalar(tutti_estimator *estimator, const char *name) {
  tutti_tensor *tensor = NULL;
  assert_ok(tutti_estimator_read_variable(estimator, name, &tensor, &err));
  assert_int_equal(tutti_tensor_get_dtype(tensor), TUTTI_DTYPE_F32);
  double value = ((const float *)tutti_tensor_get_data(tensor))[0];
  tutti_tensor_unref(tensor);
  return value;
}

void assert_close(double got, double expected) {
  if (!(fabs(got - expected) <= 1e-5 * fmax(1, fabs(expected)))) {
    print_error("got %.9g, expected %.9g\n", got, expected);
    assert_true(0);
  }
}

int32_t record_event(void *user, const tutti_hook_event *event, tutti_error **err) {
  struct hook_record *r = user;
  int32_t kind = tutti_hook_event_get_kind(event);
  int64_t step = tutti_hook_event_get_step(event);
  if (r->count < 128) r->kinds[r->count] = kind, r->steps[r->count] = step, r->count++;
  if (!pthread_equal(pthread_self(), r->thread)) r->wrong_thread = 1;
  if (kind != TUTTI_EVENT_STEP) return TUTTI_OK;
  r->loss = tutti_hook_event_get_loss(event);
  r->accuracy = tutti_hook_event_get_metric(event, "accuracy");
  if (r->train_again != NULL)
    r->again_code = tutti_estimator_train(r->train_again, r->dataset, NULL, NULL, NULL, NULL, NULL);
  if (r->cancel_at == step) return tutti_cancel_request(r->cancel, r->strength, err);
  if (r->fail_at == step) return tutti_error_set(err, TUTTI_DATA_LOSS, "the hook has seen enough");
  return r->stop_at == step ? TUTTI_HOOK_STOP : TUTTI_OK;
}

void count_destroy(void *user) { ((struct hook_record *)user)->destroyed++; }

struct hook_record new_record(void) {
  struct hook_record record = {.stop_at = -1, .fail_at = -1, .cancel_at = -1};
  record.thread = pthread_self();
  return record;
}

tutti_hooks *hooks_of(struct hook_record *record, int64_t every) {
  tutti_hooks *hooks = NULL;
  assert_ok(tutti_hooks_create(&hooks, &err));
  assert_ok(tutti_hooks_add(hooks, record_event, record, count_destroy, every, &err));
  return hooks;
}
