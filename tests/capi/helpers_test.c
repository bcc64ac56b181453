/* SPDX-License-Identifier: Apache-2.0
 * Every helper of ops.h: called without attributes, with an all-zero struct, with every field set and with NULL for
 * arrays, it must make just the generic calls that the registry asks for. The generic calls are defined here and write
 * down what they are given; the calls of the helpers are generated. */
#include <tutti/ops.h>

#include "testing.h"

static char recorded[4096];

static void record(const char *format, ...) {
  size_t used = strlen(recorded);
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(recorded + used, sizeof recorded - used, format, arguments);
  va_end(arguments);
}

/* --- the generic calls -------------------------------------------------------------------------------------------- */

void tutti_graph_begin(tutti_graph *g, const char *op, int32_t revision) {
  (void)g;
  record("begin %s %d\n", op, (int)revision);
}
void tutti_graph_add_input(tutti_graph *g, tutti_value value) {
  (void)g;
  record("input %lld\n", (long long)value.id);
}
void tutti_graph_set_bool(tutti_graph *g, const char *key, uint8_t value) {
  (void)g;
  record("bool %s %d\n", key, value);
}
void tutti_graph_set_i64(tutti_graph *g, const char *key, int64_t value) {
  (void)g;
  record("i64 %s %lld\n", key, (long long)value);
}
void tutti_graph_set_f64(tutti_graph *g, const char *key, double value) {
  (void)g;
  record("f64 %s %g\n", key, value);
}
void tutti_graph_set_string(tutti_graph *g, const char *key, const char *value) {
  (void)g;
  record("string %s %s\n", key, value != NULL ? value : "NULL");
}
void tutti_graph_set_i64s(tutti_graph *g, const char *key, const int64_t *values, int64_t count) {
  (void)g;
  record("i64s %s%s", key, values == NULL ? " NULL" : "");
  for (int64_t i = 0; values != NULL && i < count; i++)
    record(" %lld", (long long)values[i]);
  record("\n");
}
void tutti_graph_set_f64s(tutti_graph *g, const char *key, const double *values, int64_t count) {
  (void)g;
  record("f64s %s%s", key, values == NULL ? " NULL" : "");
  for (int64_t i = 0; values != NULL && i < count; i++)
    record(" %g", values[i]);
  record("\n");
}
tutti_value tutti_graph_end(tutti_graph *g, tutti_value *more, int64_t more_count) {
  (void)g;
  record("end %lld\n", (long long)more_count);
  for (int64_t i = 0; i < more_count; i++)
    more[i].id = i + 1;
  tutti_value result = {99};
  return result;
}
void tutti_pipeline_begin(tutti_pipeline *p, const char *transform, int32_t revision) {
  (void)p;
  record("begin %s %d\n", transform, (int)revision);
}
void tutti_pipeline_set_bool(tutti_pipeline *p, const char *key, uint8_t value) {
  (void)p;
  record("bool %s %d\n", key, value);
}
void tutti_pipeline_set_i64(tutti_pipeline *p, const char *key, int64_t value) {
  (void)p;
  record("i64 %s %lld\n", key, (long long)value);
}
void tutti_pipeline_set_f64(tutti_pipeline *p, const char *key, double value) {
  (void)p;
  record("f64 %s %g\n", key, value);
}
void tutti_pipeline_set_string(tutti_pipeline *p, const char *key, const char *value) {
  (void)p;
  record("string %s %s\n", key, value != NULL ? value : "NULL");
}
void tutti_pipeline_set_i64s(tutti_pipeline *p, const char *key, const int64_t *values, int64_t count) {
  (void)p;
  tutti_graph_set_i64s(NULL, key, values, count);
}
void tutti_pipeline_set_f64s(tutti_pipeline *p, const char *key, const double *values, int64_t count) {
  (void)p;
  tutti_graph_set_f64s(NULL, key, values, count);
}
void tutti_pipeline_set_dataset(tutti_pipeline *p, const char *key, const tutti_dataset *dataset) {
  (void)p;
  record("dataset %s%s\n", key, dataset == NULL ? " NULL" : "");
}
void tutti_pipeline_end(tutti_pipeline *p) {
  (void)p;
  record("end\n");
}

/* --- the calls of the helpers ------------------------------------------------------------------------------------- */

/* The forms: NULL, all zeros, everything set, NULL for every array that has a count. */
enum { NULL_ARRAYS = 3, FORMS };

struct helper {
  const char *name;
  void (*call)(int form);
  const char *expected[FORMS];
};

static tutti_graph *const graph = NULL;
static tutti_pipeline *const pipeline = NULL;
/* Never looked at. */
static const tutti_dataset *const dataset = (const tutti_dataset *)&dataset;

#include "helper_calls.inc"

static void test_helpers(void **state) {
  (void)state;
  int failures = 0;
  for (size_t i = 0; i < sizeof helpers / sizeof *helpers; i++) {
    for (int form = 0; form < FORMS; form++) {
      recorded[0] = '\0';
      helpers[i].call(form);
      if (strcmp(recorded, helpers[i].expected[form]) == 0) continue;
      print_error("tutti_%s, form %d\nexpected:\n%sgot:\n%s", helpers[i].name, form, helpers[i].expected[form],
                  recorded);
      failures++;
    }
  }
  assert_int_equal(failures, 0);
  assert_true(sizeof helpers / sizeof *helpers > 100);
}

static const struct CMUnitTest tests[] = {cmocka_unit_test(test_helpers)};
TEST_MAIN(tests)
