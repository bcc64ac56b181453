/* SPDX-License-Identifier: Apache-2.0
 *
 * tutti/dlpack.h as C, beside the header of the DLPack package in either order (DLPACK_FIRST, DLPACK_AFTER).
 */
#ifdef DLPACK_FIRST
#include <dlpack/dlpack.h>
#endif

#include <tutti/dlpack.h>

#ifdef DLPACK_AFTER
#include <dlpack/dlpack.h>
#endif

#include "testing.h"

static void names_are_usable(void **state) {
  (void)state;
  DLManagedTensorVersioned managed = {{DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION}, NULL, NULL, 0, {0}};
  DLManagedTensor old = {{0}, NULL, NULL};
  managed.flags = DLPACK_FLAG_BITMASK_READ_ONLY | DLPACK_FLAG_BITMASK_IS_COPIED;
  managed.dl_tensor.device.device_type = kDLCPU;
  managed.dl_tensor.dtype.code = kDLFloat;
  assert_int_equal(managed.version.major, 1);
  assert_int_equal(managed.flags, 3);
  assert_int_equal(sizeof(managed), 32 + sizeof(DLTensor));
  assert_null(old.deleter);
}

static const struct CMUnitTest tests[] = {cmocka_unit_test(names_are_usable)};

TEST_MAIN(tests)
