/* SPDX-License-Identifier: Apache-2.0
 * Graphs through the C interface: numbers, attributes, deferred errors, values and handles out of place. The graphs are
 * those of dataset maps: the smallest callback that is given one. */
#include <math.h>
#include <pthread.h>

#include "capi_testing.h"

/* Two rows: x = {{1, -2, 3}, {0.5, 0, -1}}. */
static const float rows[2][3] = {{1, -2, 3}, {0.5f, 0, -1}};

static int32_t build_map(tutti_map_graph_fn function, void *user, tutti_dataset **dataset, tutti_error **err) {
  int64_t dims[] = {2, 3};
  tutti_tensor *tensor = make_tensor(TUTTI_DTYPE_F32, 2, dims, rows);
  tutti_pipeline *pipeline = NULL;
  int32_t code = tutti_pipeline_create(NULL, &pipeline, err);
  if (code == TUTTI_OK) {
    tutti_pipeline_add_slices(pipeline, "x", TUTTI_ROLE_FEATURE, tensor);
    tutti_pipeline_batch(pipeline, 2, NULL);
    tutti_pipeline_map_graph(pipeline, function, user, 1);
    code = tutti_pipeline_build(pipeline, dataset, err);
  }
  tutti_pipeline_unref(pipeline);
  tutti_tensor_unref(tensor);
  return code;
}

/* Runs a map on the two rows and copies component `name` as floats; returns how many there are. */
static int64_t run_map(tutti_map_graph_fn function, void *user, const char *name, float *out, int64_t capacity) {
  tutti_dataset *dataset = NULL;
  tutti_iterator *iterator = NULL;
  uint8_t more = 0;
  int64_t count = -1;
  assert_ok(build_map(function, user, &dataset, &err));
  assert_ok(tutti_iterator_create(dataset, 0, &iterator, &err));
  assert_ok(tutti_iterator_next(iterator, NULL, &more, &err));
  assert_true(more);
  for (int64_t i = 0; i < tutti_dataset_get_component_count(dataset); i++) {
    if (strcmp(tutti_dataset_get_component_name(dataset, i), name) != 0) continue;
    tutti_tensor *tensor = tutti_iterator_get_component(iterator, i);
    assert_int_equal(tutti_tensor_get_dtype(tensor), TUTTI_DTYPE_F32);
    count = tutti_tensor_get_element_count(tensor);
    assert_true(count <= capacity);
    memcpy(out, tutti_tensor_get_data(tensor), (size_t)count * sizeof *out);
  }
  tutti_iterator_unref(iterator);
  tutti_dataset_unref(dataset);
  return count;
}

static void assert_floats(const float *got, const float *expected, int64_t count) {
  for (int64_t i = 0; i < count; i++) {
    if (!(fabsf(got[i] - expected[i]) <= 1e-5f * fmaxf(1, fabsf(expected[i])))) {
      print_error("element %d: got %g, expected %g\n", (int)i, (double)got[i], (double)expected[i]);
      assert_true(0);
    }
  }
}

/* --- numbers ------------------------------------------------------------------------------------------------------ */

static int32_t affine(tutti_graph *g, void *user, tutti_error **err) {
  (void)user;
  static const float matrix[] = {1, 2, 0, 1, -1, 0};
  int64_t dims[] = {3, 2};
  tutti_tensor *kernel = NULL;
  int32_t code = tutti_tensor_from_data(TUTTI_DTYPE_F32, dims, 2, matrix, sizeof matrix, &kernel, err);
  if (code != TUTTI_OK) return code;
  tutti_value product = tutti_matmul(g, tutti_graph_get_feature(g, "x"), tutti_graph_constant_tensor(g, kernel), NULL);
  tutti_tensor_unref(kernel);
  tutti_graph_set_output(g, "y", tutti_add(g, product, tutti_graph_constant(g, TUTTI_DTYPE_F32, 10)));
  return tutti_graph_check(g, err);
}

static void test_numbers(void **state) {
  (void)state;
  float y[8];
  static const float expected[] = {8, 10, 11.5, 11};
  assert_int_equal(run_map(affine, NULL, "y", y, 8), 4);
  assert_floats(y, expected, 4);
}

static int32_t shapes(tutti_graph *g, void *user, tutti_error **err) {
  int64_t *seen = user;
  tutti_value x = tutti_graph_get_feature(g, "x"), none = tutti_no_value();
  seen[0] = tutti_graph_get_rank(g, x);
  seen[1] = tutti_graph_get_dim(g, x, 0);
  seen[2] = tutti_graph_get_dim(g, x, 1);
  seen[3] = tutti_graph_get_dtype(g, x);
  seen[4] = tutti_graph_get_rank(g, none);
  seen[5] = tutti_graph_get_dim(g, x, 2);
  seen[6] = tutti_graph_get_mode(g);
  tutti_value equal = tutti_equal(g, x, x);
  seen[7] = tutti_graph_get_dtype(g, equal);
  seen[8] = x.id > 0 && equal.id > 0 && x.id != equal.id;
  tutti_graph_set_output(g, "x", tutti_neg(g, x));
  return tutti_graph_check(g, err);
}

static void test_shapes(void **state) {
  (void)state;
  int64_t seen[9];
  float x[6];
  assert_int_equal(run_map(shapes, seen, "x", x, 6), 6);
  static const int64_t expected[] = {2, -1, 3, TUTTI_DTYPE_F32, -1, -1, 0, TUTTI_DTYPE_BOOL, 1};
  for (int i = 0; i < 9; i++)
    assert_int_equal(seen[i], expected[i]);
  static const float negated[] = {-1, 2, -3, -0.5f, 0, 1}; /* "x" is replaced */
  assert_floats(x, negated, 6);
}

/* --- the same op without attributes, with zeros, and with the defaults spelled out -------------------------------- */

static tutti_value apply(tutti_graph *g, tutti_value x, int form, int which) {
  switch (which) {
    case 0: {
      tutti_softmax_attrs zero = {0}, full = {.has_axis = 1, .axis = -1};
      return tutti_softmax(g, x, form == 0 ? NULL : form == 1 ? &zero : &full);
    }
    case 1: {
      tutti_elu_attrs zero = {0}, full = {.has_alpha = 1, .alpha = 1};
      return tutti_elu(g, x, form == 0 ? NULL : form == 1 ? &zero : &full);
    }
    case 2: {
      tutti_gelu_attrs zero = {0}, full = {.approximate = 0};
      return tutti_gelu(g, x, form == 0 ? NULL : form == 1 ? &zero : &full);
    }
    case 3: {
      static const int64_t axes[] = {1};
      tutti_reduce_sum_attrs keep = {.axes = axes, .axes_count = 1, .keep_dims = 1};
      tutti_value sum = tutti_reduce_sum(g, x, &keep);
      tutti_value both[] = {x, sum};
      tutti_concat_attrs zero = {.axis = 1}, full = {.axis = -1};
      return tutti_concat(g, both, 2, form == 1 ? &zero : &full);
    }
    case 4: {
      tutti_value indices = tutti_argmax(g, x, NULL);
      tutti_one_hot_attrs zero = {0}, full = {.has_on = 1, .on = 1, .off = 0, .dtype = TUTTI_DTYPE_F32};
      return tutti_one_hot(g, indices, 3, form == 0 ? NULL : form == 1 ? &zero : &full);
    }
    default: {
      tutti_leaky_relu_attrs zero = {0}, full = {.has_alpha = 1, .alpha = 0.01};
      return tutti_leaky_relu(g, x, form == 0 ? NULL : form == 1 ? &zero : &full);
    }
  }
}

static int32_t apply_forms(tutti_graph *g, void *user, tutti_error **err) {
  static const char *const names[] = {"null", "zero", "full"};
  for (int form = 0; form < 3; form++)
    tutti_graph_set_output(g, names[form], apply(g, tutti_graph_get_feature(g, "x"), form, *(int *)user));
  return tutti_graph_check(g, err);
}

static void test_attribute_forms(void **state) {
  (void)state;
  for (int which = 0; which < 6; which++) {
    float null[16], zero[16], full[16];
    int64_t count = run_map(apply_forms, &which, "null", null, 16);
    assert_true(count >= 6);
    assert_int_equal(run_map(apply_forms, &which, "zero", zero, 16), count);
    assert_int_equal(run_map(apply_forms, &which, "full", full, 16), count);
    assert_memory_equal(null, zero, (size_t)count * sizeof *null);
    assert_memory_equal(null, full, (size_t)count * sizeof *null);
  }
}

static int32_t zero_that_counts(tutti_graph *g, void *user, tutti_error **err) {
  (void)user;
  tutti_leaky_relu_attrs flat = {.has_alpha = 1, .alpha = 0};
  tutti_graph_set_output(g, "y", tutti_leaky_relu(g, tutti_graph_get_feature(g, "x"), &flat));
  return tutti_graph_check(g, err);
}

static void test_a_zero_with_its_flag_counts(void **state) {
  (void)state;
  float y[6];
  static const float expected[] = {1, 0, 3, 0.5f, 0, 0};
  assert_int_equal(run_map(zero_that_counts, NULL, "y", y, 6), 6);
  assert_floats(y, expected, 6);
}

/* --- deferred errors ---------------------------------------------------------------------------------------------- */

struct mistake {
  int which;
  int answer_ok;       /* the callback returns TUTTI_OK although the graph has an error */
  int64_t after_error; /* id of a value made after the mistake */
};

static int32_t make_mistake(tutti_graph *g, void *user, tutti_error **err) {
  struct mistake *m = user;
  tutti_value x = tutti_graph_get_feature(g, "x"), y = x;
  tutti_graph_push_scope(g, "tower");
  switch (m->which) {
    case 0:
      y = tutti_matmul(g, x, x, NULL);
      break;
    case 1:
      y = tutti_graph_get_feature(g, "pixels");
      break;
    case 2:
      tutti_graph_begin(g, "matmull", 1);
      tutti_graph_add_input(g, x);
      y = tutti_graph_end(g, NULL, 0);
      break;
    case 3:
      tutti_graph_begin(g, "softmax", 1);
      tutti_graph_add_input(g, x);
      tutti_graph_set_i64(g, "axes", 1);
      y = tutti_graph_end(g, NULL, 0);
      break;
    case 4:
      tutti_graph_begin(g, "softmax", 1);
      tutti_graph_add_input(g, x);
      tutti_graph_set_string(g, "axis", "last");
      y = tutti_graph_end(g, NULL, 0);
      break;
    case 5:
      tutti_graph_begin(g, "softmax", 1);
      y = tutti_neg(g, x); /* begun before the first was ended */
      break;
    case 6:
      y = tutti_graph_end(g, NULL, 0);
      break;
    case 7:
      tutti_graph_set_i64(g, "axis", 1);
      break;
    case 8:
      tutti_graph_pop_scope(g);
      tutti_graph_pop_scope(g);
      break;
    case 9:
      y = tutti_layer_dense(g, x, 0, NULL);
      break;
    case 10:
      y = tutti_matmul(g, x, tutti_no_value(), NULL);
      break;
    case 11:
      tutti_graph_set_output(g, NULL, x);
      break;
    case 12: {
      int64_t dims[] = {7, -1};
      y = tutti_reshape(g, tutti_graph_constant(g, TUTTI_DTYPE_F32, 1), dims, 2);
      break;
    }
    case 13:
      y = tutti_add(g, x, tutti_graph_constant(g, TUTTI_DTYPE_I32, 1));
      break;
    case 14: {
      tutti_value foreign = {INT64_C(0x7000000000000001)};
      y = tutti_neg(g, foreign);
      break;
    }
    case 15:
      tutti_graph_begin(g, "state_read", 1);
      y = tutti_graph_end(g, NULL, 0);
      break;
    case 16:
      tutti_graph_begin(g, "softmax", 99);
      tutti_graph_add_input(g, x);
      y = tutti_graph_end(g, NULL, 0);
      break;
    case 17:
      tutti_graph_begin(g, "softmax", 1); /* and the callback returns */
      return TUTTI_OK;
    case 18:
      tutti_graph_set_i64s(g, "dims", NULL, 3);
      break;
    case 19: {
      tutti_layer_dense_attrs attrs = {.activation = 77};
      y = tutti_layer_dense(g, x, 2, &attrs);
      break;
    }
    default:
      break;
  }
  tutti_value later = tutti_relu(g, y);
  m->after_error = later.id;
  tutti_graph_set_output(g, "y", tutti_matmul(g, later, later, NULL)); /* a later mistake is not what is reported */
  return m->answer_ok ? TUTTI_OK : tutti_graph_check(g, err);
}

static void test_deferred_errors(void **state) {
  (void)state;
  static const struct {
    int32_t code;
    const char *messages[3];
  } expected[] = {
      {TUTTI_INVALID_ARGUMENT, {"tower/matmul", "[batch, 3]", NULL}},
      {TUTTI_NOT_FOUND, {"no feature 'pixels'", "it has x", NULL}},
      {TUTTI_UNIMPLEMENTED, {"matmull", "did you mean 'matmul'?", NULL}},
      {TUTTI_INVALID_ARGUMENT, {"tower/softmax", "axes", "axis"}},
      {TUTTI_INVALID_ARGUMENT, {"tower/softmax", "axis", NULL}},
      {TUTTI_FAILED_PRECONDITION, {"'neg' was begun before op 'softmax' was ended", NULL, NULL}},
      {TUTTI_FAILED_PRECONDITION, {"ended, but none was begun", NULL, NULL}},
      {TUTTI_FAILED_PRECONDITION, {"attribute 'axis' was set, but no op was begun", NULL, NULL}},
      {TUTTI_FAILED_PRECONDITION, {"popped", NULL, NULL}},
      {TUTTI_INVALID_ARGUMENT, {"tower: layer_dense: attribute 'units': expected at least 1", NULL, NULL}},
      {TUTTI_INVALID_ARGUMENT, {"tower/matmul", "got 1 inputs, expected 2", "'b' is missing"}},
      {TUTTI_INVALID_ARGUMENT, {"'name' is NULL", NULL, NULL}},
      {TUTTI_INVALID_ARGUMENT, {"tower/reshape", "7", NULL}},
      {TUTTI_INVALID_ARGUMENT, {"tower/add", "f32", "i32"}},
      {TUTTI_INVALID_ARGUMENT, {"a value of another graph was used as an input of 'neg'", NULL, NULL}},
      {TUTTI_INVALID_ARGUMENT, {"state_read", NULL, NULL}},
      {TUTTI_UNIMPLEMENTED, {"softmax", "99", NULL}},
      {TUTTI_FAILED_PRECONDITION, {"'softmax' was begun but not ended", NULL, NULL}},
      {TUTTI_INVALID_ARGUMENT, {"expected an array, got NULL with a count of", NULL, NULL}},
      {TUTTI_INVALID_ARGUMENT, {"tower: layer_dense: attribute 'activation' ", "one of", "gelu_tanh"}},
  };
  int failures = 0;
  for (int which = 0; which < (int)(sizeof expected / sizeof *expected); which++) {
    for (int answer_ok = 0; answer_ok < 2; answer_ok++) {
      struct mistake m = {which, answer_ok, 0};
      tutti_dataset *dataset = (tutti_dataset *)(uintptr_t)1;
      tutti_error *err = NULL;
      int32_t code = build_map(make_mistake, &m, &dataset, &err);
      const char *text = tutti_error_get_text(err);
      int good = code == expected[which].code && dataset == NULL && m.after_error <= 0;
      for (int i = 0; i < 3 && expected[which].messages[i] != NULL; i++)
        good = good && strstr(text, expected[which].messages[i]) != NULL;
      if (!good) {
        print_error("mistake %d: code %d, dataset %p, later value %lld, %s\n", which, (int)code, (void *)dataset,
                    (long long)m.after_error, text);
        failures++;
      }
      tutti_error_unref(err);
    }
  }
  assert_int_equal(failures, 0);
}

static int32_t answer_user_error(tutti_graph *g, void *user, tutti_error **err) {
  (void)user;
  tutti_graph_set_output(g, "y", tutti_graph_get_feature(g, "x"));
  return tutti_error_set(err, TUTTI_DATA_LOSS, "the recipe is torn");
}

static int32_t answer_bare_code(tutti_graph *g, void *user, tutti_error **err) {
  (void)g, (void)user, (void)err;
  return TUTTI_UNAVAILABLE;
}

static void test_errors_of_the_callback(void **state) {
  (void)state;
  tutti_dataset *dataset = NULL;
  assert_error(TUTTI_DATA_LOSS, "the recipe is torn", build_map(answer_user_error, NULL, &dataset, &err));
  assert_error(TUTTI_UNAVAILABLE, "code 14", build_map(answer_bare_code, NULL, &dataset, &err));
  tutti_error *err = NULL;
  assert_int_equal(build_map(answer_user_error, NULL, &dataset, &err), TUTTI_DATA_LOSS);
  int user_errors = 0;
  for (tutti_error *e = err; e != NULL; e = tutti_error_get_cause(e))
    user_errors +=
        strcmp(tutti_error_get_domain(e), "user") == 0 && strcmp(tutti_error_get_message(e), "the recipe is torn") == 0;
  assert_int_equal(user_errors, 1); /* untouched, somewhere in the chain */
  tutti_error_unref(err);
}

/* --- values and handles out of place ------------------------------------------------------------------------------ */

static tutti_value kept_value;
static tutti_graph *kept_graph;

static int32_t keep(tutti_graph *g, void *user, tutti_error **err) {
  (void)user;
  kept_graph = g;
  kept_value = tutti_graph_get_feature(g, "x");
  tutti_graph_set_output(g, "y", tutti_neg(g, kept_value));
  return tutti_graph_check(g, err);
}

static int32_t use_kept(tutti_graph *g, void *user, tutti_error **err) {
  (void)user;
  tutti_value x = tutti_graph_get_feature(g, "x");
  tutti_graph_set_output(g, "y", tutti_add(g, x, kept_value));
  return tutti_graph_check(g, err);
}

static void test_value_of_another_graph(void **state) {
  (void)state;
  tutti_dataset *dataset = NULL;
  assert_ok(build_map(keep, NULL, &dataset, &err));
  tutti_dataset_unref(dataset);
  assert_true(kept_value.id > 0);
  assert_error(TUTTI_INVALID_ARGUMENT, "a value of another graph was used as an input of 'add'",
               build_map(use_kept, NULL, &dataset, &err));
}

/* What another thread was told. */
struct helper {
  tutti_graph *graph;
  tutti_value value;
  int32_t mode, code;
};

static void *help(void *user) {
  struct helper *helper = user;
  helper->value = tutti_graph_constant(helper->graph, TUTTI_DTYPE_F32, 1);
  tutti_graph_set_output(helper->graph, "one", helper->value);
  helper->mode = tutti_graph_get_mode(helper->graph);
  helper->code = tutti_graph_check(helper->graph, NULL);
  return NULL;
}

static int32_t let_help(tutti_graph *g, void *user, tutti_error **err) {
  (void)err;
  struct helper *helper = user;
  pthread_t thread;
  helper->graph = g;
  if (pthread_create(&thread, NULL, help, helper) != 0) return TUTTI_INTERNAL;
  pthread_join(thread, NULL);
  tutti_graph_set_output(g, "x", tutti_graph_get_feature(g, "x"));
  return TUTTI_OK;
}

static int32_t model_with_help(tutti_graph *g, int32_t mode, void *user, tutti_error **err) {
  return toy_model(g, mode, NULL, err) != TUTTI_OK ? TUTTI_INTERNAL : let_help(g, user, err);
}

static void check_help(const struct helper *helper) {
  assert_true(helper->value.id < 0);
  assert_int_equal(helper->mode, 0);
  assert_int_equal(helper->code, TUTTI_FAILED_PRECONDITION);
}

static void test_graph_on_another_thread(void **state) {
  (void)state;
  struct helper helper = {.code = TUTTI_OK}, model_helper = {.code = TUTTI_OK, .mode = 1};
  tutti_dataset *dataset = NULL;
  assert_error(TUTTI_FAILED_PRECONDITION, "used on another thread", build_map(let_help, &helper, &dataset, &err));
  assert_null(dataset);
  check_help(&helper);
  tutti_estimator *estimator = NULL;
  dataset = toy_dataset(8, 4, 1);
  assert_ok(tutti_estimator_create(NULL, model_with_help, &model_helper, NULL, NULL, NULL, &estimator, &err));
  assert_error(TUTTI_FAILED_PRECONDITION, "used on another thread",
               tutti_estimator_train(estimator, dataset, NULL, NULL, NULL, NULL, &err));
  check_help(&model_helper);
  tutti_estimator_unref(estimator);
  tutti_dataset_unref(dataset);
}

static void test_graph_after_its_callback(void **state) {
  (void)state;
  tutti_dataset *dataset = NULL;
  assert_ok(build_map(keep, NULL, &dataset, &err));
  assert_error(TUTTI_INVALID_ARGUMENT, "graph", tutti_graph_check(kept_graph, &err));
  assert_int_equal(tutti_graph_get_mode(kept_graph), 0);
  assert_true(tutti_graph_constant(kept_graph, TUTTI_DTYPE_F32, 1).id < 0);
  assert_true(tutti_neg(kept_graph, kept_value).id < 0);
  assert_int_equal(tutti_graph_get_rank(kept_graph, kept_value), -1);
  tutti_graph_set_output(kept_graph, "y", kept_value);
  tutti_graph_push_scope(kept_graph, "late");
  tutti_dataset_unref(dataset);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_numbers),
    cmocka_unit_test(test_shapes),
    cmocka_unit_test(test_attribute_forms),
    cmocka_unit_test(test_a_zero_with_its_flag_counts),
    cmocka_unit_test(test_deferred_errors),
    cmocka_unit_test(test_errors_of_the_callback),
    cmocka_unit_test(test_value_of_another_graph),
    cmocka_unit_test(test_graph_on_another_thread),
    cmocka_unit_test(test_graph_after_its_callback),
};
CAPI_TEST_MAIN(tests)
