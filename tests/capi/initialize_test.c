/* SPDX-License-Identifier: Apache-2.0
 * Variables before the first training: initial values by the seed, weights of a checkpoint or a file; what is evaluated
 * and predicted with them, and the training that follows. */
#include "dense_fixtures.h"

enum { ROWS = 24, BATCH = 6 };

static int32_t model(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  const struct dense_model dense = build_dense(g, mode);
  if (user != NULL) tutti_graph_variable(g, "more", TUTTI_DTYPE_F32, NULL, 0, "ones", 0, 1);
  if (mode == TUTTI_MODE_TRAIN) tutti_optimizer_sgd(g, tutti_graph_constant(g, TUTTI_DTYPE_F32, 0.25), NULL);
  (void)dense;
  return tutti_graph_check(g, err);
}

struct made {
  tutti_context *context;
  tutti_estimator *estimator;
  tutti_dataset *dataset;
};

static struct made make(int replicas, const char *run, void *user) {
  struct made made;
  made.estimator = dense_estimator(model, user, replicas, run, &made.context);
  made.dataset = dense_dataset(made.context, ROWS, BATCH, 0);
  return made;
}

static void drop(struct made made) {
  tutti_estimator_unref(made.estimator), tutti_dataset_unref(made.dataset), tutti_context_unref(made.context);
}

static void expect_trainable(struct made made, const char *const *names, int64_t count) {
  assert_int_equal(tutti_estimator_get_trainable_count(made.estimator), count);
  for (int64_t i = 0; i < count; i++)
    assert_string_equal(tutti_estimator_get_trainable_name(made.estimator, i), names[i]);
  assert_null(tutti_estimator_get_trainable_name(made.estimator, count));
  assert_null(tutti_estimator_get_trainable_name(made.estimator, -1));
}

static void initialize(struct made made, const char *weights) {
  assert_ok(tutti_estimator_initialize(made.estimator, made.dataset, weights, NULL, &err));
}

static void train_steps(struct made made, int64_t steps) {
  tutti_options *options = make_options("train", "{}");
  tutti_options_set_i64(options, "steps", steps);
  assert_ok(tutti_estimator_train(made.estimator, made.dataset, options, NULL, NULL, NULL, &err));
  tutti_options_unref(options);
}

static double loss_of(struct made made) {
  tutti_result *result = NULL;
  assert_ok(tutti_estimator_evaluate(made.estimator, made.dataset, 0, NULL, &result, &err));
  const double loss = tutti_result_get_loss(result);
  tutti_result_unref(result);
  return loss;
}

static void check_loss(struct made made, const float parameters[DENSE_PARAMETERS]) {
  double gradient[DENSE_PARAMETERS];
  assert_float_equal(loss_of(made), dense_gradient(parameters, 0, ROWS, gradient), 1e-5);
}

/* Evaluated against the loss worked out here, on one device and several; the training that follows is the one that
 * there would have been without. */
static void test_initial_values(void **state) {
  (void)state;
  for (int replicas = 1; replicas <= 3; replicas++) {
    struct made made = make(replicas, "{\"seed\": 3}", NULL), plain = make(replicas, "{\"seed\": 3}", NULL);
    float parameters[DENSE_PARAMETERS], trained[DENSE_PARAMETERS], expected[DENSE_PARAMETERS];
    assert_int_equal(tutti_estimator_get_variable_count(made.estimator), 0);
    expect_trainable(made, NULL, 0);
    initialize(made, NULL);
    expect_trainable(made, (const char *const[]){"kernel", "bias"}, 2);
    assert_int_equal(tutti_estimator_get_global_step(made.estimator), 0);
    assert_int_equal(tutti_estimator_get_variable_count(made.estimator), 2);
    read_dense(made.estimator, parameters);
    check_loss(made, parameters);
    train_steps(made, 3), train_steps(plain, 3);
    read_dense(made.estimator, trained), read_dense(plain.estimator, expected);
    assert_memory_equal(trained, expected, sizeof trained);
    drop(made), drop(plain);
  }
}

static void test_what_is_written_counts(void **state) {
  (void)state;
  struct made made = make(2, "{}", NULL);
  initialize(made, "");
  float values[DENSE_PARAMETERS] = {1, -1, 0.5f, 2, 0, 1, -2, 0.25f, 0.5f, -0.5f}, parameters[DENSE_PARAMETERS];
  int64_t kernel_dims[] = {DENSE_FEATURES, DENSE_CLASSES}, bias_dims[] = {DENSE_CLASSES};
  tutti_tensor *kernel = make_tensor(TUTTI_DTYPE_F32, 2, kernel_dims, values),
               *bias = make_tensor(TUTTI_DTYPE_F32, 1, bias_dims, values + DENSE_KERNEL);
  assert_ok(tutti_estimator_write_variable(made.estimator, "kernel", kernel, &err));
  assert_ok(tutti_estimator_write_variable(made.estimator, "bias", bias, &err));
  read_dense(made.estimator, parameters);
  assert_memory_equal(parameters, values, sizeof values);
  check_loss(made, values);
  tutti_tensor_unref(kernel), tutti_tensor_unref(bias);
  drop(made);
}

/* A predictor of a model function and weights: no training, no checkpoint of its own. */
static void check_predictor(struct made made, struct made trained) {
  tutti_predictor *predictors[2] = {NULL, NULL};
  tutti_batch *batches[2] = {NULL, NULL};
  for (int i = 0; i < 2; i++) {
    tutti_estimator *const estimator = i == 0 ? made.estimator : trained.estimator;
    assert_ok(tutti_predictor_from_estimator(estimator, NULL, &predictors[i], &err));
    assert_ok(tutti_predictor_run_all(predictors[i], i == 0 ? made.dataset : trained.dataset, NULL, &batches[i], &err));
  }
  const tutti_tensor *const got = tutti_batch_get_output(batches[0], "logits"), *const expected =
                                                                                    tutti_batch_get_output(batches[1],
                                                                                                           "logits");
  assert_int_equal(tutti_tensor_get_element_count(got), ROWS * DENSE_CLASSES);
  check_near(tutti_tensor_get_data(got), tutti_tensor_get_data(expected), ROWS * DENSE_CLASSES, 1e-6f, "logits");
  for (int i = 0; i < 2; i++)
    tutti_batch_unref(batches[i]), tutti_predictor_unref(predictors[i]);
}

static void test_weights_that_were_trained(void **state) {
  (void)state;
  char folder[64], file[256], checkpoint[128];
  make_directory(folder);
  struct made trained = make(1, "{}", NULL);
  train_steps(trained, 4);
  assert_ok(tutti_estimator_save(trained.estimator, folder, NULL, &err));
  float expected[DENSE_PARAMETERS], got[DENSE_PARAMETERS];
  read_dense(trained.estimator, expected);
  join_path(checkpoint, sizeof checkpoint, folder, "checkpoint-4");
  join_path(file, sizeof file, checkpoint, "weights.safetensors");
  const char *const paths[] = {folder, checkpoint, file};
  for (int i = 0; i < 3; i++) {
    struct made made = make(2, "{}", NULL);
    initialize(made, paths[i]);
    assert_int_equal(tutti_estimator_get_global_step(made.estimator), 0);
    read_dense(made.estimator, got);
    assert_memory_equal(got, expected, sizeof got);
    check_predictor(made, trained);
    train_steps(made, 1);
    read_dense(made.estimator, got);
    assert_true(memcmp(got, expected, sizeof got) != 0);
    drop(made);
  }
  drop(trained);
  remove_directory(folder);
}

/* With a model_dir: what is there goes before initial values, and what was made is there for the next process. */
static void test_beside_checkpoints(void **state) {
  (void)state;
  char folder[64], run[128];
  make_directory(folder);
  snprintf(run, sizeof run, "{\"model_dir\": \"%s\", \"seed\": 9}", folder);
  float made_first[DENSE_PARAMETERS], got[DENSE_PARAMETERS];
  struct made first = make(1, run, NULL);
  initialize(first, NULL);
  read_dense(first.estimator, made_first);
  drop(first);
  struct made second = make(1, run, NULL);
  read_dense(second.estimator, got);
  assert_memory_equal(got, made_first, sizeof got);
  train_steps(second, 2);
  read_dense(second.estimator, made_first);
  drop(second);
  struct made third = make(1, run, NULL);
  initialize(third, NULL);
  assert_int_equal(tutti_estimator_get_global_step(third.estimator), 2);
  read_dense(third.estimator, got);
  assert_memory_equal(got, made_first, sizeof got);
  drop(third);
  remove_directory(folder);
}

/* Weights that were given are what the next process finds. */
static void test_given_weights_are_kept(void **state) {
  (void)state;
  char others[64], folder[64], run[128];
  make_directory(others), make_directory(folder);
  snprintf(run, sizeof run, "{\"model_dir\": \"%s\", \"seed\": 9}", folder);
  float expected[DENSE_PARAMETERS], got[DENSE_PARAMETERS];
  struct made trained = make(1, "{}", NULL);
  train_steps(trained, 4);
  assert_ok(tutti_estimator_save(trained.estimator, others, NULL, &err));
  read_dense(trained.estimator, expected);
  drop(trained);
  for (int trains_before = 0; trains_before <= 1; trains_before++) {
    struct made first = make(1, run, NULL);
    if (trains_before) train_steps(first, 1);
    initialize(first, others);
    drop(first);
    struct made second = make(1, run, NULL);
    read_dense(second.estimator, got);
    assert_memory_equal(got, expected, sizeof got);
    assert_int_equal(tutti_estimator_get_global_step(second.estimator), trains_before);
    initialize(second, NULL);
    read_dense(second.estimator, got);
    assert_memory_equal(got, expected, sizeof got);
    drop(second);
  }
  remove_directory(others), remove_directory(folder);
}

static int32_t stop_at_six(void *user, const tutti_hook_event *event, tutti_error **err) {
  return tutti_hook_event_get_step(event) == 6 ? tutti_cancel_request(user, TUTTI_CANCEL_STOP, err) : TUTTI_OK;
}

/* A run over passes that was stopped in the middle goes on to the end that it had: 4 steps a pass. */
static void test_an_interrupted_run_stays_one(void **state) {
  (void)state;
  char folder[64], run[128];
  make_directory(folder);
  snprintf(run, sizeof run, "{\"model_dir\": \"%s\"}", folder);
  tutti_options *options = make_options("train", "{\"epochs\": 3}");
  tutti_hooks *hooks = NULL;
  tutti_cancel *cancel = NULL;
  assert_ok(tutti_cancel_create(&cancel, &err));
  assert_ok(tutti_hooks_create(&hooks, &err));
  assert_ok(tutti_hooks_add(hooks, stop_at_six, cancel, NULL, 1, &err));
  struct made first = make(1, run, NULL);
  assert_ok(tutti_estimator_train(first.estimator, first.dataset, options, hooks, cancel, NULL, &err));
  assert_int_equal(tutti_estimator_get_global_step(first.estimator), 6);
  initialize(first, NULL);
  drop(first);
  struct made second = make(1, run, NULL);
  initialize(second, NULL);
  assert_ok(tutti_estimator_train(second.estimator, second.dataset, options, NULL, NULL, NULL, &err));
  assert_int_equal(tutti_estimator_get_global_step(second.estimator), 12);
  drop(second);
  tutti_hooks_unref(hooks), tutti_cancel_unref(cancel), tutti_options_unref(options);
  remove_directory(folder);
}

static void test_a_feed_is_left_as_it_is(void **state) {
  (void)state;
  struct made made = make(1, "{}", NULL);
  tutti_feed *feed = NULL;
  tutti_pipeline *pipeline = NULL;
  tutti_dataset *fed = NULL;
  const int64_t features[] = {DENSE_FEATURES};
  assert_ok(tutti_feed_create(made.context, 8, &feed, &err));
  assert_ok(tutti_feed_declare(feed, "x", TUTTI_ROLE_FEATURE, TUTTI_DTYPE_F32, features, 1, &err));
  assert_ok(tutti_feed_declare(feed, "y", TUTTI_ROLE_LABEL, TUTTI_DTYPE_I32, NULL, 0, &err));
  assert_ok(tutti_pipeline_create(made.context, &pipeline, &err));
  tutti_pipeline_add_feed(pipeline, feed);
  tutti_pipeline_batch(pipeline, 2, NULL);
  assert_ok(tutti_pipeline_build(pipeline, &fed, &err));
  for (int i = 0; i < 4; i++) {
    float x[DENSE_FEATURES] = {1, 0, (float)i, 2};
    const int32_t y = i % DENSE_CLASSES;
    tutti_tensor *parts[] = {make_tensor(TUTTI_DTYPE_F32, 1, features, x), make_tensor(TUTTI_DTYPE_I32, 0, NULL, &y)};
    assert_ok(tutti_feed_push(feed, parts, 2, NULL, &err));
    tutti_tensor_unref(parts[0]), tutti_tensor_unref(parts[1]);
  }
  assert_ok(tutti_feed_finish(feed, &err));
  assert_ok(tutti_estimator_initialize(made.estimator, fed, NULL, NULL, &err));
  assert_ok(tutti_estimator_train(made.estimator, fed, NULL, NULL, NULL, NULL, &err));
  assert_int_equal(tutti_estimator_get_global_step(made.estimator), 2);
  tutti_dataset_unref(fed), tutti_pipeline_unref(pipeline), tutti_feed_unref(feed);
  drop(made);
}

static void test_mistakes(void **state) {
  (void)state;
  char folder[64], file[128];
  make_directory(folder);
  join_path(file, sizeof file, folder, "odd.safetensors");
  FILE *odd = fopen(file, "w");
  fputs("no safetensors", odd);
  fclose(odd);
  int more = 1;
  struct made made = make(1, "{}", NULL), larger = make(1, "{}", &more);
  assert_error(TUTTI_NOT_FOUND, "no-such",
               tutti_estimator_initialize(made.estimator, made.dataset, "/tmp/no-such-weights", NULL, &err));
  assert_error(TUTTI_DATA_LOSS, "odd.safetensors",
               tutti_estimator_initialize(made.estimator, made.dataset, file, NULL, &err));
  assert_error(TUTTI_INVALID_ARGUMENT, "dataset", tutti_estimator_initialize(made.estimator, NULL, NULL, NULL, &err));
  assert_error(TUTTI_INVALID_ARGUMENT, "estimator", tutti_estimator_initialize(NULL, made.dataset, NULL, NULL, &err));
  /* Weights of another model. */
  initialize(made, NULL);
  assert_ok(tutti_estimator_save(made.estimator, folder, NULL, &err));
  assert_error(TUTTI_NOT_FOUND, "variable 'more' is missing",
               tutti_estimator_initialize(larger.estimator, larger.dataset, folder, NULL, &err));
  drop(made), drop(larger);
  remove_directory(folder);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_initial_values),
    cmocka_unit_test(test_what_is_written_counts),
    cmocka_unit_test(test_weights_that_were_trained),
    cmocka_unit_test(test_beside_checkpoints),
    cmocka_unit_test(test_given_weights_are_kept),
    cmocka_unit_test(test_an_interrupted_run_stays_one),
    cmocka_unit_test(test_a_feed_is_left_as_it_is),
    cmocka_unit_test(test_mistakes),
};
CAPI_TEST_MAIN(tests)
