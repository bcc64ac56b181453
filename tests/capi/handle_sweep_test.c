/* SPDX-License-Identifier: Apache-2.0
 * Every public function with NULL, stale, foreign and wrong handles; the calls are generated from the headers. */
#include <stdlib.h>
#include <string.h>
#include <tutti/tutti.h>

#include "testing.h"

/* Of the headers of a release, or of today. */
#ifndef HANDLE_SWEEP
#define HANDLE_SWEEP "handle_sweep.inc"
#endif
#include HANDLE_SWEEP

static int sweep_failures;

static void *sweep_scratch(void) {
  static void *scratch[512];
  memset(scratch, 0, sizeof scratch);
  return scratch;
}

static void sweep_check(const char *function, const struct bad_handles *bad, int32_t code, tutti_error *err) {
  if (code != TUTTI_INVALID_ARGUMENT || err == NULL) {
    print_error("%s with %s handles: code %d (%s), expected INVALID_ARGUMENT\n", function, bad->kind, (int)code,
                err != NULL ? tutti_error_get_text(err) : "no error");
    sweep_failures++;
  }
  tutti_error_unref(err);
}

static void sweep(const char *kind, void *handle, void *for_cancel) {
  struct bad_handles bad = {.kind = kind, .is_null = handle == NULL};
  fill_bad_handles(&bad, handle, for_cancel);
  int64_t before = tutti_debug_live_objects(NULL);
  for (size_t i = 0; i < sizeof sweeps / sizeof *sweeps; i++)
    sweeps[i](&bad);
  assert_int_equal(sweep_failures, 0);
  assert_int_equal(tutti_debug_live_objects(NULL), before);
}

static void test_null(void **state) {
  (void)state;
  sweep("NULL", NULL, NULL);
}

static void test_foreign(void **state) {
  (void)state;
  static char memory[64];
  sweep("foreign", memory, memory);
  sweep("foreign", (void *)(uintptr_t)0xdeadbeef, (void *)(uintptr_t)0xdeadbeef);
}

static void test_stale(void **state) {
  (void)state;
  tutti_cancel *stale = NULL;
  assert_int_equal(tutti_cancel_create(&stale, NULL), TUTTI_OK);
  tutti_cancel_unref(stale);
  sweep("stale", stale, stale);
}

static void test_wrong_type(void **state) {
  (void)state;
  tutti_cancel *cancel = NULL;
  tutti_tensor *tensor = NULL;
  int64_t dims[] = {1};
  assert_int_equal(tutti_cancel_create(&cancel, NULL), TUTTI_OK);
  assert_int_equal(tutti_tensor_create(TUTTI_DTYPE_F32, dims, 1, &tensor, NULL), TUTTI_OK);
  /* Functions of the type itself would succeed: they are swept with the others' handles above. */
  struct bad_handles bad = {.kind = "wrong", .is_null = 0};
  fill_bad_handles(&bad, cancel, tensor);
  for (size_t i = 0; i < sizeof sweeps / sizeof *sweeps; i++) {
    /* _unref of a wrong type must not drop the reference. */
    sweeps[i](&bad);
  }
  assert_int_equal(sweep_failures, 0);
  assert_int_equal(tutti_cancel_get_state(cancel), TUTTI_CANCEL_NONE);
  assert_int_equal(tutti_tensor_get_rank(tensor), 1);
  tutti_cancel_unref(cancel);
  tutti_tensor_unref(tensor);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_null),
    cmocka_unit_test(test_foreign),
    cmocka_unit_test(test_stale),
    cmocka_unit_test(test_wrong_type),
};
TEST_MAIN(tests)
