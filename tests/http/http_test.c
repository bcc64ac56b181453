/* SPDX-License-Identifier: Apache-2.0
 *
 * Sources that read from a server: what comes, and what happens when it does not. run_http.py is the server.
 * Arguments: the module, the addresses of the server, its certificate. */
#include <stdio.h>
#include <string.h>
#include <tutti/tutti.h>

#include "dataset_fixtures.h"

static const char *module, *address, *secure_address, *certificate;

/* Small blocks, so that a file takes many, and quick repetitions. */
#define SMALL "\"block_bytes\": 10000, \"retry_delay_ms\": 1"

static tutti_context *new_context(const char *settings) {
  tutti_context *context = NULL;
  assert_ok(tutti_context_create(NULL, &context, &err));
  assert_ok(tutti_context_load_file_system(context, module, settings, &err));
  return context;
}

static tutti_pipeline *lines_of(const char *settings, const char *server, const char *name) {
  char path[200];
  const char *paths = path;
  snprintf(path, sizeof path, "%s/%s", server, name);
  tutti_context *context = new_context(settings);
  tutti_pipeline *pipeline = NULL;
  assert_ok(tutti_pipeline_create(context, &pipeline, &err));
  tutti_context_unref(context);
  tutti_source_text_lines(pipeline, &paths, 1, NULL);
  return pipeline;
}

/* The iterator must give "line <first>" and so on until `end`; then the walk ends, or fails with *error. */
static void check_lines(tutti_iterator *iterator, int64_t first, int64_t end, tutti_error **error) {
  for (int64_t i = first;; i++) {
    uint8_t more = 0;
    int32_t code = tutti_iterator_next(iterator, NULL, &more, error);
    if (code != TUTTI_OK || !more) {
      if (i != end) fail_msg("%lld lines: %s", (long long)i, code != 0 ? tutti_error_get_text(*error) : "end");
      return;
    }
    char expected[32];
    int length = snprintf(expected, sizeof expected, "line %lld", (long long)i);
    tutti_tensor *text = tutti_iterator_get_component(iterator, 0);
    assert_int_equal(tutti_tensor_get_element_size(text, 0), length);
    assert_memory_equal(tutti_tensor_get_element_data(text, 0), expected, (size_t)length);
  }
}

static void assert_lines(int64_t count, const char *settings, const char *server, const char *name) {
  tutti_dataset *dataset = build(lines_of(settings, server, name));
  tutti_iterator *iterator = NULL;
  tutti_error *error = NULL;
  assert_ok(tutti_iterator_create(dataset, 0, &iterator, &err));
  check_lines(iterator, 0, count, &error);
  assert_null(error);
  tutti_iterator_unref(iterator);
  tutti_dataset_unref(dataset);
}

static void assert_lines_error(int32_t code, const char *needle, const char *settings, const char *server,
                               const char *name) {
  tutti_pipeline *pipeline = lines_of(settings, server, name);
  assert_build_error(code, needle, pipeline);
}

static void test_ranges(void **state) {
  (void)state;
  assert_lines(20000, NULL, address, "lines.txt");
  assert_lines(20000, "{" SMALL "}", address, "lines.txt");
  assert_lines(20000, "{" SMALL ", \"blocks_ahead\": 0, \"connections\": 1}", address, "lines.txt");
  assert_lines(20000, "{" SMALL ", \"blocks_ahead\": 20, \"connections\": 3}", address, "lines.txt?a=*[1]");
  assert_lines(0, NULL, address, "empty.txt");
  assert_lines(20000, "{" SMALL "}", address, "moved");
}

/* Positions in a remote file are saved and found again. */
static void test_resume(void **state) {
  (void)state;
  tutti_dataset *dataset = build(lines_of("{" SMALL "}", address, "lines.txt"));
  tutti_iterator *iterator = NULL, *later = NULL;
  tutti_error *error = NULL;
  const char *position = NULL;
  uint8_t more = 0;
  assert_ok(tutti_iterator_create(dataset, 0, &iterator, &err));
  for (int i = 0; i < 7777; i++)
    assert_ok(tutti_iterator_next(iterator, NULL, &more, &err));
  assert_ok(tutti_iterator_save(iterator, &position, &err));
  assert_ok(tutti_iterator_create(dataset, 0, &later, &err));
  assert_ok(tutti_iterator_restore(later, position, &err));
  check_lines(later, 7777, 20000, &error);
  assert_null(error);
  tutti_iterator_unref(later);
  tutti_iterator_unref(iterator);
  tutti_dataset_unref(dataset);
}

static void test_servers_without_ranges(void **state) {
  (void)state;
  assert_lines(3, "{" SMALL "}", address, "no_ranges.txt");
  assert_lines(3, "{\"block_bytes\": 4, \"retry_delay_ms\": 1}", address, "no_ranges_truncated.txt");
  assert_lines(20000, "{" SMALL "}", address, "no_ranges_large.txt");
  assert_lines_error(TUTTI_RESOURCE_EXHAUSTED,
                     "the server does not support range requests, and the whole file is larger than",
                     "{\"largest_download_bytes\": 100000}", address, "no_ranges_large.txt");
}

static void test_what_may_pass_is_tried_again(void **state) {
  (void)state;
  assert_lines(20000, "{" SMALL "}", address, "flaky.txt");
  assert_lines(20000, "{" SMALL "}", address, "reset.txt");
  assert_lines(20000, "{" SMALL "}", address, "truncated.txt");
  assert_lines_error(TUTTI_UNAVAILABLE, "status 500, after 3 attempts", "{\"retries\": 2, \"retry_delay_ms\": 1}",
                     address, "broken.txt");
  assert_lines_error(TUTTI_UNAVAILABLE, "after 2 attempts", "{" SMALL ", \"retries\": 1}", address,
                     "always_truncated.txt");
  assert_lines_error(TUTTI_UNAVAILABLE, "(bytes 0 to 9999)", "{" SMALL ", \"retries\": 1}", "http://127.0.0.1:1", "x");
  assert_lines_error(TUTTI_UNAVAILABLE, "after 2 attempts", "{\"retries\": 1, \"timeout_ms\": 50}", address,
                     "silent.txt");
}

static void test_what_stays_wrong(void **state) {
  (void)state;
  assert_lines_error(TUTTI_NOT_FOUND, "status 404", NULL, address, "missing.txt");
  assert_lines_error(TUTTI_PERMISSION_DENIED, "status 403", NULL, address, "forbidden.txt");
  assert_lines_error(TUTTI_UNAUTHENTICATED, "status 401", NULL, address, "secret.txt");
  assert_lines(3, "{\"headers\": [\"Authorization: Bearer abc\"]}", address, "secret.txt");
  assert_lines_error(TUTTI_FAILED_PRECONDITION, "redirects", NULL, address, "circle");
  assert_lines_error(TUTTI_INVALID_ARGUMENT, "rotocol", NULL, address, "to_file");
  assert_lines_error(TUTTI_DATA_LOSS, "another range: 'bytes 7-10006/", "{" SMALL "}", address, "other_range.txt");
  assert_lines_error(TUTTI_INVALID_ARGUMENT, "", NULL, "http://", "");

  tutti_dataset *dataset = build(lines_of("{" SMALL "}", address, "changing.txt"));
  tutti_iterator *iterator = NULL;
  tutti_error *error = NULL;
  assert_ok(tutti_iterator_create(dataset, 0, &iterator, &err));
  check_lines(iterator, 0, 1111, &error);
  assert_int_equal(tutti_error_get_code(error), TUTTI_ABORTED);
  assert_non_null(strstr(tutti_error_get_text(error), "has changed since it was opened"));
  assert_non_null(strstr(tutti_error_get_text(error), "at offset 10000 of"));
  tutti_error_unref(error);
  tutti_iterator_unref(iterator);
  tutti_dataset_unref(dataset);
}

/* A deadline ends the call, not the walk: what comes late is there when it is asked for again. */
static void test_deadlines(void **state) {
  (void)state;
  tutti_dataset *dataset = build(lines_of("{" SMALL ", \"blocks_ahead\": 0}", address, "slow.txt"));
  tutti_iterator *iterator = NULL;
  tutti_cancel *cancel = NULL;
  tutti_error *error = NULL;
  uint8_t more = 0;
  int interrupts = 0;
  assert_ok(tutti_iterator_create(dataset, 0, &iterator, &err));
  assert_ok(tutti_cancel_create(&cancel, &err));
  for (int line = 0; line < 2000;) {
    assert_ok(tutti_cancel_set_deadline(cancel, 50, &err));
    int32_t code = tutti_iterator_next(iterator, cancel, &more, &error);
    if (code == TUTTI_DEADLINE_EXCEEDED) {
      interrupts++;
      tutti_error_unref(error);
      error = NULL;
      continue;
    }
    assert_int_equal(code, TUTTI_OK);
    line++;
  }
  assert_in_range(interrupts, 1, 100);
  assert_ok(tutti_cancel_request(cancel, TUTTI_CANCEL_CANCEL, &err));
  assert_error(TUTTI_CANCELLED, "", tutti_iterator_next(iterator, cancel, &more, &err));
  tutti_cancel_unref(cancel);
  /* Left while requests are under way. */
  tutti_iterator_unref(iterator);
  tutti_dataset_unref(dataset);
}

static void test_certificates_are_checked(void **state) {
  (void)state;
  char trusting[600];
  snprintf(trusting, sizeof trusting, "{" SMALL ", \"ca_file\": \"%s\"}", certificate);
  assert_lines(20000, trusting, secure_address, "lines.txt");
  assert_lines_error(TUTTI_UNAUTHENTICATED, "certificate", NULL, secure_address, "lines.txt");
  assert_lines_error(TUTTI_UNAUTHENTICATED, "", "{\"ca_file\": \"/nowhere\"}", secure_address, "lines.txt");
}

static void test_settings(void **state) {
  (void)state;
  tutti_context *context = NULL;
  assert_ok(tutti_context_create(NULL, &context, &err));
  static const struct {
    const char *settings, *needle;
  } bad[] = {
      {"[1]", "a JSON object"},
      {"{", "a JSON object"},
      {"{\"retry\": 1}", "unknown setting 'retry'"},
      {"{\"retries\": -1}", "'retries': expected a whole number from 0 to 100"},
      {"{\"retries\": 1.5}", "'retries'"},
      {"{\"headers\": \"a: b\"}", "'headers': expected a list"},
      {"{\"headers\": [\"a: b\\r\\nc: d\"]}", "text of one line"},
      {"{\"proxy\": 1}", "'proxy': expected text"},
  };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    assert_error(TUTTI_INVALID_ARGUMENT, bad[i].needle,
                 tutti_context_load_file_system(context, module, bad[i].settings, &err));
  assert_ok(tutti_context_load_file_system(context, module, "{}", &err));
  assert_error(TUTTI_ALREADY_EXISTS, "http://", tutti_context_load_file_system(context, module, NULL, &err));
  tutti_context_unref(context);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_ranges),
    cmocka_unit_test(test_resume),
    cmocka_unit_test(test_servers_without_ranges),
    cmocka_unit_test(test_what_may_pass_is_tried_again),
    cmocka_unit_test(test_what_stays_wrong),
    cmocka_unit_test(test_deadlines),
    cmocka_unit_test(test_certificates_are_checked),
    cmocka_unit_test(test_settings),
};

int main(int argc, char **argv) {
  if (argc != 5) return 2;
  module = argv[1];
  address = argv[2];
  secure_address = argv[3];
  certificate = argv[4];
  return cmocka_run_group_tests(tests, remember_live_objects, assert_nothing_left);
}
