/* SPDX-License-Identifier: Apache-2.0
 * Tensors: copies, borrowed memory, DLPack in and out. */
#include <stdlib.h>

#include "capi_testing.h"

static const int64_t two_by_three[] = {2, 3};
static const float six[] = {1, 2, 3, 4, 5, 6};

static void test_create(void **state) {
  (void)state;
  tutti_tensor *tensor = NULL;
  assert_ok(tutti_tensor_create(TUTTI_DTYPE_F32, two_by_three, 2, &tensor, &err));
  assert_int_equal(tutti_tensor_get_dtype(tensor), TUTTI_DTYPE_F32);
  assert_int_equal(tutti_tensor_get_rank(tensor), 2);
  assert_int_equal(tutti_tensor_get_dim(tensor, 0), 2);
  assert_int_equal(tutti_tensor_get_dim(tensor, 1), 3);
  assert_int_equal(tutti_tensor_get_dim(tensor, 2), -1);
  assert_int_equal(tutti_tensor_get_dim(tensor, -1), -1);
  assert_int_equal(tutti_tensor_get_element_count(tensor), 6);
  assert_int_equal(tutti_tensor_get_size_bytes(tensor), 24);
  const float *data = tutti_tensor_get_data(tensor);
  for (int i = 0; i < 6; i++)
    assert_true(data[i] == 0);
  void *writable = NULL;
  assert_ok(tutti_tensor_get_mutable_data(tensor, &writable, &err));
  ((float *)writable)[4] = 7;
  assert_true(((const float *)tutti_tensor_get_data(tensor))[4] == 7);
  tutti_tensor_unref(tensor);
}

static void test_every_dtype(void **state) {
  (void)state;
  static const int bytes[] = {0, 4, 8, 4, 8, 1, 1, 2, 2, 1, 2, 2, 4, 8};
  int64_t count = 5;
  for (int32_t dtype = TUTTI_DTYPE_F32; dtype <= TUTTI_DTYPE_U64; dtype++) {
    tutti_tensor *tensor = NULL;
    assert_ok(tutti_tensor_create(dtype, &count, 1, &tensor, &err));
    assert_int_equal(tutti_tensor_get_dtype(tensor), dtype);
    assert_int_equal(tutti_tensor_get_size_bytes(tensor), 5 * bytes[dtype]);
    tutti_tensor_unref(tensor);
  }
  tutti_tensor *tensor = NULL;
  assert_error(TUTTI_INVALID_ARGUMENT, "", tutti_tensor_create(0, &count, 1, &tensor, &err));
  assert_error(TUTTI_INVALID_ARGUMENT, "", tutti_tensor_create(15, &count, 1, &tensor, &err));
  assert_error(TUTTI_INVALID_ARGUMENT, "", tutti_tensor_create(-1, &count, 1, &tensor, &err));
}

static void test_bytes(void **state) {
  (void)state;
  struct {
    int64_t offsets[4];
    char text[8];
  } block = {{32, 35, 35, 40}, "abcde123"};
  int64_t count = 3;
  tutti_tensor *tensor = NULL;
  assert_ok(tutti_tensor_from_data(TUTTI_DTYPE_BYTES, &count, 1, &block, 40, &tensor, &err));
  memset(&block, 0, sizeof block);
  assert_int_equal(tutti_tensor_get_dtype(tensor), TUTTI_DTYPE_BYTES);
  assert_int_equal(tutti_tensor_get_element_size(tensor, 0), 3);
  assert_int_equal(tutti_tensor_get_element_size(tensor, 1), 0);
  assert_int_equal(tutti_tensor_get_element_size(tensor, 2), 5);
  assert_memory_equal(tutti_tensor_get_element_data(tensor, 0), "abc", 3);
  assert_memory_equal(tutti_tensor_get_element_data(tensor, 2), "de123", 5);
  assert_int_equal(tutti_tensor_get_element_size(tensor, 3), -1);
  assert_int_equal(tutti_tensor_get_element_size(tensor, -1), -1);
  assert_null(tutti_tensor_get_element_data(tensor, 3));
  void *writable = NULL;
  assert_error(TUTTI_FAILED_PRECONDITION, "", tutti_tensor_get_mutable_data(tensor, &writable, &err));
  tutti_tensor_unref(tensor);
  tensor = make_tensor(TUTTI_DTYPE_F32, 2, two_by_three, six);
  assert_int_equal(tutti_tensor_get_element_size(tensor, 5), 4);
  assert_true(*(const float *)tutti_tensor_get_element_data(tensor, 5) == 6);
  assert_null(tutti_tensor_get_element_data(tensor, 6));
  tutti_tensor_unref(tensor);
  static const int64_t bad[][4] = {{40, 35, 35, 40}, {32, 35, 34, 40}, {32, 35, 35, 41}, {-1, 35, 35, 40}};
  for (int i = 0; i < 4; i++) {
    memcpy(block.offsets, bad[i], sizeof bad[i]);
    assert_error(TUTTI_INVALID_ARGUMENT, "offset",
                 tutti_tensor_from_data(TUTTI_DTYPE_BYTES, &count, 1, &block, 40, &tensor, &err));
  }
  assert_error(TUTTI_OUT_OF_RANGE, "needs 32 bytes",
               tutti_tensor_from_data(TUTTI_DTYPE_BYTES, &count, 1, &block, 24, &tensor, &err));
  assert_error(TUTTI_INVALID_ARGUMENT, "begins with offsets",
               tutti_tensor_from_data(TUTTI_DTYPE_BYTES, &count, 1, &block, -1, &tensor, &err));
  assert_null(tensor);
}

static void test_scalar_and_empty(void **state) {
  (void)state;
  double pi = 3.25;
  tutti_tensor *scalar = make_tensor(TUTTI_DTYPE_F64, 0, NULL, &pi);
  assert_int_equal(tutti_tensor_get_rank(scalar), 0);
  assert_int_equal(tutti_tensor_get_element_count(scalar), 1);
  assert_true(*(const double *)tutti_tensor_get_data(scalar) == 3.25);
  tutti_tensor_unref(scalar);
  int64_t dims[] = {0, 3};
  tutti_tensor *empty = NULL;
  assert_ok(tutti_tensor_from_data(TUTTI_DTYPE_F32, dims, 2, NULL, 0, &empty, &err));
  assert_int_equal(tutti_tensor_get_element_count(empty), 0);
  assert_null(tutti_tensor_get_data(empty));
  tutti_tensor_unref(empty);
}

static void test_from_data_copies(void **state) {
  (void)state;
  float values[6];
  memcpy(values, six, sizeof values);
  tutti_tensor *tensor = make_tensor(TUTTI_DTYPE_F32, 2, two_by_three, values);
  values[0] = -1;
  assert_memory_equal(tutti_tensor_get_data(tensor), six, sizeof six);
  tutti_tensor_unref(tensor);
}

static void test_bad_arguments(void **state) {
  (void)state;
  tutti_tensor *tensor = NULL;
  int64_t negative[] = {2, -3}, huge[] = {INT64_MAX / 2, 4}, nine[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
  assert_error(TUTTI_INVALID_ARGUMENT, "needs 24 bytes, got 20 (6 elements, got 5)",
               tutti_tensor_from_data(TUTTI_DTYPE_F32, two_by_three, 2, six, 20, &tensor, &err));
  assert_error(TUTTI_INVALID_ARGUMENT, "'data' is NULL",
               tutti_tensor_from_data(TUTTI_DTYPE_F32, two_by_three, 2, NULL, 24, &tensor, &err));
  assert_error(TUTTI_INVALID_ARGUMENT, "-3", tutti_tensor_create(TUTTI_DTYPE_F32, negative, 2, &tensor, &err));
  assert_error(TUTTI_INVALID_ARGUMENT, "", tutti_tensor_create(TUTTI_DTYPE_F32, huge, 2, &tensor, &err));
  assert_error(TUTTI_INVALID_ARGUMENT, "", tutti_tensor_create(TUTTI_DTYPE_F32, nine, 9, &tensor, &err));
  assert_error(TUTTI_INVALID_ARGUMENT, "'rank'", tutti_tensor_create(TUTTI_DTYPE_F32, nine, -1, &tensor, &err));
  assert_error(TUTTI_INVALID_ARGUMENT, "'dims' is NULL", tutti_tensor_create(TUTTI_DTYPE_F32, NULL, 1, &tensor, &err));
  assert_error(TUTTI_INVALID_ARGUMENT, "'out' is NULL", tutti_tensor_create(TUTTI_DTYPE_F32, NULL, 0, NULL, &err));
  assert_null(tensor);
}

static void count_release(void *user) { ++*(int *)user; }

static void test_borrowed_memory_is_released_once(void **state) {
  (void)state;
  int released = 0;
  tutti_tensor *tensor = NULL;
  assert_ok(tutti_tensor_take_memory(TUTTI_DTYPE_F32, two_by_three, 2, six, sizeof six, count_release, &released,
                                     &tensor, &err));
  assert_ptr_equal(tutti_tensor_get_data(tensor), six); /* no copy */
  void *writable = NULL;
  assert_error(TUTTI_FAILED_PRECONDITION, "borrowed", tutti_tensor_get_mutable_data(tensor, &writable, &err));
  assert_null(writable);
  tutti_tensor_ref(tensor);
  tutti_tensor_unref(tensor);
  assert_int_equal(released, 0);
  tutti_tensor_unref(tensor);
  assert_int_equal(released, 1);
  tutti_tensor_unref(tensor); /* stale */
  assert_int_equal(released, 1);
}

static void test_borrowed_memory_is_released_on_failure(void **state) {
  (void)state;
  int released = 0;
  tutti_tensor *tensor = NULL;
  assert_error(
      TUTTI_INVALID_ARGUMENT, "needs 24 bytes",
      tutti_tensor_take_memory(TUTTI_DTYPE_F32, two_by_three, 2, six, 4, count_release, &released, &tensor, &err));
  assert_int_equal(released, 1);
  assert_error(TUTTI_INVALID_ARGUMENT, "'out' is NULL",
               tutti_tensor_take_memory(TUTTI_DTYPE_F32, two_by_three, 2, six, sizeof six, count_release, &released,
                                        NULL, &err));
  assert_int_equal(released, 2);
  assert_error(TUTTI_INVALID_ARGUMENT, "",
               tutti_tensor_take_memory(99, two_by_three, 2, six, sizeof six, count_release, &released, &tensor, &err));
  assert_int_equal(released, 3);
  assert_ok(tutti_tensor_take_memory(TUTTI_DTYPE_F32, two_by_three, 2, six, sizeof six, NULL, NULL, &tensor, &err));
  tutti_tensor_unref(tensor);
}

static void test_misaligned_memory(void **state) {
  (void)state;
  char raw[32] = {0};
  int released = 0;
  tutti_tensor *tensor = NULL;
  char *odd = raw + (((uintptr_t)raw % 2) == 0 ? 1 : 0);
  int32_t code =
      tutti_tensor_take_memory(TUTTI_DTYPE_F32, two_by_three, 2, odd, 24, count_release, &released, &tensor, NULL);
  if (code != TUTTI_OK) assert_int_equal(code, TUTTI_INVALID_ARGUMENT);
  tutti_tensor_unref(tensor);
  assert_int_equal(released, 1);
}

static void test_borrowed_memory_lives_as_long_as_a_dataset_needs_it(void **state) {
  (void)state;
  int released = 0;
  tutti_tensor *tensor = NULL;
  tutti_pipeline *pipeline = NULL;
  tutti_dataset *dataset = NULL;
  tutti_iterator *iterator = NULL;
  assert_ok(tutti_tensor_take_memory(TUTTI_DTYPE_F32, two_by_three, 2, six, sizeof six, count_release, &released,
                                     &tensor, &err));
  assert_ok(tutti_pipeline_create(NULL, &pipeline, &err));
  tutti_pipeline_add_slices(pipeline, "x", TUTTI_ROLE_FEATURE, tensor);
  tutti_tensor_unref(tensor);
  assert_ok(tutti_pipeline_build(pipeline, &dataset, &err));
  tutti_pipeline_unref(pipeline);
  assert_ok(tutti_iterator_create(dataset, 0, &iterator, &err));
  tutti_dataset_unref(dataset);
  uint8_t more = 0;
  assert_ok(tutti_iterator_next(iterator, NULL, &more, &err));
  tutti_tensor *row = tutti_iterator_get_component(iterator, 0);
  assert_ptr_equal(tutti_tensor_get_data(row), six); /* still no copy */
  tutti_tensor_ref(row);
  tutti_iterator_unref(iterator);
  assert_int_equal(released, 0);
  tutti_tensor_unref(row);
  assert_int_equal(released, 1);
}

/* --- DLPack ------------------------------------------------------------------------------------------------------- */

struct producer {
  DLManagedTensorVersioned managed;
  int64_t shape[2], strides[2];
  float data[6];
  int deleted;
};

static void delete_producer(DLManagedTensorVersioned *self) { ((struct producer *)self->manager_ctx)->deleted++; }

static void fill_producer(struct producer *p) {
  memset(p, 0, sizeof *p);
  memcpy(p->data, six, sizeof six);
  p->shape[0] = 2, p->shape[1] = 3, p->strides[0] = 3, p->strides[1] = 1;
  p->managed.version.major = DLPACK_MAJOR_VERSION;
  p->managed.version.minor = DLPACK_MINOR_VERSION;
  p->managed.manager_ctx = p;
  p->managed.deleter = delete_producer;
  p->managed.dl_tensor.data = p->data;
  p->managed.dl_tensor.device.device_type = kDLCPU;
  p->managed.dl_tensor.ndim = 2;
  p->managed.dl_tensor.dtype.code = kDLFloat;
  p->managed.dl_tensor.dtype.bits = 32;
  p->managed.dl_tensor.dtype.lanes = 1;
  p->managed.dl_tensor.shape = p->shape;
  p->managed.dl_tensor.strides = p->strides;
}

static void test_dlpack_in(void **state) {
  (void)state;
  struct producer p;
  fill_producer(&p);
  tutti_tensor *tensor = NULL;
  assert_ok(tutti_tensor_take_dlpack(&p.managed, &tensor, &err));
  assert_int_equal(tutti_tensor_get_dtype(tensor), TUTTI_DTYPE_F32);
  assert_int_equal(tutti_tensor_get_dim(tensor, 1), 3);
  assert_memory_equal(tutti_tensor_get_data(tensor), six, sizeof six);
  assert_int_equal(p.deleted, 0);
  tutti_tensor_unref(tensor);
  assert_int_equal(p.deleted, 1);
}

static void test_dlpack_in_strided(void **state) {
  (void)state;
  struct producer p;
  fill_producer(&p);
  p.shape[0] = 3, p.shape[1] = 2, p.strides[0] = 1, p.strides[1] = 3; /* the transpose */
  tutti_tensor *tensor = NULL;
  assert_ok(tutti_tensor_take_dlpack(&p.managed, &tensor, &err));
  static const float transposed[] = {1, 4, 2, 5, 3, 6};
  assert_memory_equal(tutti_tensor_get_data(tensor), transposed, sizeof transposed);
  tutti_tensor_unref(tensor);
  assert_int_equal(p.deleted, 1);
}

static void test_dlpack_in_without_strides_and_with_offset(void **state) {
  (void)state;
  struct producer p;
  fill_producer(&p);
  p.managed.dl_tensor.strides = NULL;
  p.managed.dl_tensor.byte_offset = 8;
  p.shape[0] = 2, p.shape[1] = 2;
  tutti_tensor *tensor = NULL;
  assert_ok(tutti_tensor_take_dlpack(&p.managed, &tensor, &err));
  assert_memory_equal(tutti_tensor_get_data(tensor), six + 2, 4 * sizeof(float));
  tutti_tensor_unref(tensor);
  assert_int_equal(p.deleted, 1);
}

static void test_dlpack_in_refused(void **state) {
  (void)state;
  struct producer p;
  tutti_tensor *tensor = NULL;
  fill_producer(&p);
  p.managed.version.major = 2;
  assert_error(TUTTI_INVALID_ARGUMENT, "version", tutti_tensor_take_dlpack(&p.managed, &tensor, &err));
  assert_int_equal(p.deleted, 1); /* taken in every case */
  fill_producer(&p);
  p.managed.dl_tensor.device.device_type = kDLCUDA;
  assert_error(TUTTI_UNIMPLEMENTED, "copy it to the host first", tutti_tensor_take_dlpack(&p.managed, &tensor, &err));
  assert_int_equal(p.deleted, 1);
  fill_producer(&p);
  p.managed.dl_tensor.dtype.lanes = 4;
  assert_error(TUTTI_UNIMPLEMENTED, "lanes", tutti_tensor_take_dlpack(&p.managed, &tensor, &err));
  assert_int_equal(p.deleted, 1);
  fill_producer(&p);
  p.shape[1] = -3;
  assert_error(TUTTI_INVALID_ARGUMENT, "", tutti_tensor_take_dlpack(&p.managed, &tensor, &err));
  assert_int_equal(p.deleted, 1);
  fill_producer(&p);
  assert_error(TUTTI_INVALID_ARGUMENT, "'out' is NULL", tutti_tensor_take_dlpack(&p.managed, NULL, &err));
  assert_int_equal(p.deleted, 1);
  assert_error(TUTTI_INVALID_ARGUMENT, "'managed' is NULL", tutti_tensor_take_dlpack(NULL, &tensor, &err));
}

static void test_dlpack_out(void **state) {
  (void)state;
  tutti_tensor *tensor = make_tensor(TUTTI_DTYPE_F32, 2, two_by_three, six);
  DLManagedTensorVersioned *managed = NULL;
  assert_ok(tutti_tensor_to_dlpack(tensor, &managed, &err));
  assert_int_equal(managed->version.major, DLPACK_MAJOR_VERSION);
  assert_ptr_equal(managed->dl_tensor.data, tutti_tensor_get_data(tensor)); /* no copy */
  assert_int_equal(managed->dl_tensor.ndim, 2);
  assert_int_equal(managed->dl_tensor.shape[0], 2);
  assert_int_equal(managed->dl_tensor.strides[0], 3); /* always given */
  assert_int_equal(managed->dl_tensor.strides[1], 1);
  assert_int_equal(managed->dl_tensor.dtype.code, kDLFloat);
  assert_int_equal(managed->dl_tensor.dtype.bits, 32);
  void *writable = NULL;
  assert_error(TUTTI_FAILED_PRECONDITION, "shared", tutti_tensor_get_mutable_data(tensor, &writable, &err));
  tutti_tensor_unref(tensor); /* the export keeps the memory */
  assert_memory_equal(managed->dl_tensor.data, six, sizeof six);
  managed->deleter(managed);
}

static void test_dlpack_out_of_borrowed_memory(void **state) {
  (void)state;
  int released = 0;
  tutti_tensor *tensor = NULL;
  DLManagedTensorVersioned *managed = NULL;
  assert_ok(tutti_tensor_take_memory(TUTTI_DTYPE_F32, two_by_three, 2, six, sizeof six, count_release, &released,
                                     &tensor, &err));
  assert_ok(tutti_tensor_to_dlpack(tensor, &managed, &err));
  assert_true((managed->flags & DLPACK_FLAG_BITMASK_READ_ONLY) != 0);
  tutti_tensor_unref(tensor);
  assert_int_equal(released, 0);
  tutti_tensor *again = NULL;
  assert_ok(tutti_tensor_take_dlpack(managed, &again, &err)); /* and back in */
  assert_ptr_equal(tutti_tensor_get_data(again), six);
  tutti_tensor_unref(again);
  assert_int_equal(released, 1);
}

static void test_getters_of_no_tensor(void **state) {
  (void)state;
  assert_int_equal(tutti_tensor_get_dtype(NULL), 0);
  assert_int_equal(tutti_tensor_get_rank(NULL), -1);
  assert_int_equal(tutti_tensor_get_dim(NULL, 0), -1);
  assert_int_equal(tutti_tensor_get_element_count(NULL), -1);
  assert_int_equal(tutti_tensor_get_size_bytes(NULL), -1);
  assert_null(tutti_tensor_get_data(NULL));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_create),
    cmocka_unit_test(test_every_dtype),
    cmocka_unit_test(test_bytes),
    cmocka_unit_test(test_scalar_and_empty),
    cmocka_unit_test(test_from_data_copies),
    cmocka_unit_test(test_bad_arguments),
    cmocka_unit_test(test_borrowed_memory_is_released_once),
    cmocka_unit_test(test_borrowed_memory_is_released_on_failure),
    cmocka_unit_test(test_misaligned_memory),
    cmocka_unit_test(test_borrowed_memory_lives_as_long_as_a_dataset_needs_it),
    cmocka_unit_test(test_dlpack_in),
    cmocka_unit_test(test_dlpack_in_strided),
    cmocka_unit_test(test_dlpack_in_without_strides_and_with_offset),
    cmocka_unit_test(test_dlpack_in_refused),
    cmocka_unit_test(test_dlpack_out),
    cmocka_unit_test(test_dlpack_out_of_borrowed_memory),
    cmocka_unit_test(test_getters_of_no_tensor),
};
CAPI_TEST_MAIN(tests)
