/* SPDX-License-Identifier: Apache-2.0
 * Errors as objects, version and feature queries. */
#include <tutti/status.h>
#include <tutti/version.h>

#include "capi_testing.h"

static void test_codes(void **state) {
  (void)state;
  static const char *const names[] = {
      "OK",        "CANCELLED",      "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
      "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
      "ABORTED",   "OUT_OF_RANGE",   "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
      "DATA_LOSS", "UNAUTHENTICATED"};
  for (int32_t code = 0; code <= 16; code++)
    assert_string_equal(tutti_code_get_name(code), names[code]);
  assert_string_equal(tutti_code_get_name(17), "UNKNOWN");
  assert_string_equal(tutti_code_get_name(-1), "UNKNOWN");
  assert_string_equal(tutti_code_get_name(INT32_MAX), "UNKNOWN");
}

static void test_error_with_cause(void **state) {
  (void)state;
  tutti_error *inner = NULL, *outer = NULL;
  assert_ok(tutti_error_create(TUTTI_DATA_LOSS, "disk", "sector 7 is unreadable", NULL, &inner, &err));
  assert_ok(tutti_error_create(TUTTI_ABORTED, NULL, "reading stopped", inner, &outer, &err));
  tutti_error_unref(inner); /* the cause keeps it alive */
  assert_int_equal(tutti_error_get_code(outer), TUTTI_ABORTED);
  assert_string_equal(tutti_error_get_domain(outer), "user");
  assert_string_equal(tutti_error_get_message(outer), "reading stopped");
  tutti_error *cause = tutti_error_get_cause(outer);
  assert_non_null(cause);
  assert_int_equal(tutti_error_get_code(cause), TUTTI_DATA_LOSS);
  assert_string_equal(tutti_error_get_domain(cause), "disk");
  assert_null(tutti_error_get_cause(cause));
  assert_contains(tutti_error_get_text(outer), "reading stopped");
  assert_contains(tutti_error_get_text(outer), "sector 7 is unreadable");
  assert_null(strchr(tutti_error_get_text(outer), '\n'));
  tutti_error_ref(cause); /* a lent one may be kept */
  tutti_error_unref(outer);
  assert_string_equal(tutti_error_get_message(cause), "sector 7 is unreadable");
  tutti_error_unref(cause);
}

static void test_errors_as_json(void **state) {
  (void)state;
  tutti_error *inner = NULL, *outer = NULL;
  assert_ok(tutti_error_create(TUTTI_DATA_LOSS, "disk", "sector \"7\"\\\x01 is unreadable", NULL, &inner, &err));
  assert_ok(tutti_error_create(TUTTI_ABORTED, NULL, "reading stopped", inner, &outer, &err));
  assert_string_equal(
      tutti_error_get_json(outer),
      "{\"code\":\"ABORTED\",\"domain\":\"user\",\"message\":\"reading stopped\",\"subcode\":10,\"cause\":{"
      "\"code\":\"DATA_LOSS\",\"domain\":\"disk\","
      "\"message\":\"sector \\\"7\\\"\\\\\\u0001 is unreadable\",\"subcode\":15}}");
  assert_true(tutti_error_get_json(outer) == tutti_error_get_json(outer));
  tutti_error_unref(inner), tutti_error_unref(outer);
  /* An error of the library, with details and the number of the operating system. */
  tutti_pipeline *pipeline = NULL;
  tutti_dataset *dataset = NULL;
  tutti_error *failure = NULL;
  assert_ok(tutti_pipeline_create(NULL, &pipeline, &err));
  tutti_pipeline_add_idx(pipeline, "x", TUTTI_ROLE_FEATURE, "/no/such/place");
  assert_int_equal(tutti_pipeline_build(pipeline, &dataset, &failure), TUTTI_NOT_FOUND);
  tutti_pipeline_unref(pipeline);
  const char *json = tutti_error_get_json(failure);
  assert_contains(json, "{\"code\":\"NOT_FOUND\",\"domain\":\"");
  assert_contains(json, "\"details\":{");
  assert_contains(json, "/no/such/place");
  assert_null(strchr(json, '\n'));
  tutti_error_unref(failure);
  assert_string_equal(tutti_error_get_json(NULL), "");
}

static void test_error_arguments(void **state) {
  (void)state;
  tutti_error *error = (tutti_error *)(uintptr_t)1;
  assert_error(TUTTI_INVALID_ARGUMENT, "'code' is TUTTI_OK",
               tutti_error_create(TUTTI_OK, NULL, "x", NULL, &error, &err));
  assert_null(error); /* outputs are NULL after a failure */
  assert_error(TUTTI_INVALID_ARGUMENT, "'message' is NULL",
               tutti_error_create(TUTTI_ABORTED, NULL, NULL, NULL, &error, &err));
  assert_error(TUTTI_INVALID_ARGUMENT, "'out' is NULL", tutti_error_create(TUTTI_ABORTED, NULL, "x", NULL, NULL, &err));
  assert_int_equal(tutti_error_create(TUTTI_OK, NULL, "x", NULL, &error, NULL), TUTTI_INVALID_ARGUMENT);
}

static void test_error_set(void **state) {
  (void)state;
  tutti_error *error = NULL;
  assert_int_equal(tutti_error_set(&error, TUTTI_OUT_OF_RANGE, "too far"), TUTTI_OUT_OF_RANGE);
  assert_int_equal(tutti_error_get_code(error), TUTTI_OUT_OF_RANGE);
  assert_string_equal(tutti_error_get_domain(error), "user");
  assert_string_equal(tutti_error_get_message(error), "too far");
  tutti_error_unref(error);
  assert_int_equal(tutti_error_set(NULL, TUTTI_ABORTED, "nobody listens"), TUTTI_ABORTED);
  error = NULL;
  assert_int_equal(tutti_error_set(&error, TUTTI_OK, "fine"), TUTTI_OK);
  assert_null(error);
}

static void test_getters_of_no_error(void **state) {
  (void)state;
  assert_int_equal(tutti_error_get_code(NULL), TUTTI_INVALID_ARGUMENT);
  assert_int_equal(tutti_error_get_subcode(NULL), 0);
  assert_string_equal(tutti_error_get_domain(NULL), "");
  assert_string_equal(tutti_error_get_message(NULL), "");
  assert_string_equal(tutti_error_get_text(NULL), "");
  assert_null(tutti_error_get_cause(NULL));
  assert_int_equal(tutti_error_get_detail_count(NULL), 0);
  assert_null(tutti_error_get_detail_key(NULL, 0));
  assert_null(tutti_error_get_detail_value(NULL, 0));
  tutti_error_unref(NULL);
  tutti_error_ref(NULL);
}

static void test_references(void **state) {
  (void)state;
  int64_t before = tutti_debug_live_objects("error");
  tutti_error *error = NULL;
  assert_ok(tutti_error_create(TUTTI_ABORTED, NULL, "x", NULL, &error, &err));
  tutti_error_ref(error);
  assert_int_equal(tutti_debug_live_objects("error"), before + 1);
  tutti_error_unref(error);
  assert_int_equal(tutti_debug_live_objects("error"), before + 1);
  assert_string_equal(tutti_error_get_message(error), "x");
  tutti_error_unref(error);
  assert_int_equal(tutti_debug_live_objects("error"), before);
  /* Stale from here on: harmless, and never another object. */
  tutti_error_unref(error);
  tutti_error_ref(error);
  assert_int_equal(tutti_error_get_code(error), TUTTI_INVALID_ARGUMENT);
  assert_string_equal(tutti_error_get_message(error), "");
}

static void test_version(void **state) {
  (void)state;
  char expected[32];
  snprintf(expected, sizeof expected, "%d.%d.%d", TUTTI_VERSION_MAJOR, TUTTI_VERSION_MINOR, TUTTI_VERSION_PATCH);
  assert_string_equal(tutti_version(), expected);
  assert_int_equal(tutti_abi_version(), TUTTI_ABI_MAJOR * 65536 + TUTTI_ABI_MINOR);
  assert_contains(tutti_build_info(), expected);
  assert_contains(tutti_build_info(), "\"compiler\"");
  assert_contains(tutti_build_info(), "\"reference\"");
}

static void test_features(void **state) {
  (void)state;
  static const char *const present[] = {"backend:reference",  "format:idx",        "op:conv2d",  "op:matmul",
                                        "op:layer_dense",     "transform:shuffle", "source:csv", "format:csv",
                                        "format:safetensors", "format:gzip",       "format:npz", "format:tfrecord",
                                        "format:arrow",       "format:npy",        "format:tar", "format:zlib"};
  for (size_t i = 0; i < sizeof present / sizeof *present; i++) {
    if (!tutti_has_feature(present[i])) {
      print_error("%s is missing\n", present[i]);
      assert_true(0);
    }
  }
  static const char *const absent[] = {"", ":", "backend:", "backend:tpu", "op:no_such", "conv2d", "format:tiff"};
  for (size_t i = 0; i < sizeof absent / sizeof *absent; i++)
    assert_false(tutti_has_feature(absent[i]));
  assert_false(tutti_has_feature(NULL));
#ifdef READS_JPEG /* of a library of its own each; the program of a release does not know of which */
  assert_int_equal(tutti_has_feature("format:jpeg"), READS_JPEG);
  assert_int_equal(tutti_has_feature("format:png"), READS_PNG);
#endif
}

static void test_why_unavailable(void **state) {
  (void)state;
  assert_null(tutti_why_unavailable("reference"));
  assert_int_equal(tutti_why_unavailable("cpu") == NULL, tutti_has_feature("backend:cpu"));
  assert_contains(tutti_why_unavailable("no_such_backend"), "no_such_backend");
  assert_non_null(tutti_why_unavailable(NULL));
}

static void test_live_objects(void **state) {
  (void)state;
  assert_int_equal(tutti_debug_live_objects("no_such_type"), -1);
  assert_true(tutti_debug_live_objects(NULL) >= 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_codes),          cmocka_unit_test(test_error_with_cause),
    cmocka_unit_test(test_errors_as_json), cmocka_unit_test(test_error_arguments),
    cmocka_unit_test(test_error_set),      cmocka_unit_test(test_getters_of_no_error),
    cmocka_unit_test(test_references),     cmocka_unit_test(test_version),
    cmocka_unit_test(test_features),       cmocka_unit_test(test_why_unavailable),
    cmocka_unit_test(test_live_objects),
};
CAPI_TEST_MAIN(tests)
