/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensors: dense, row-major arrays in host memory, used for all input data and results of the library.
 *
 * Threads: the type and shape of a tensor never change; several threads may read a tensor, a writer must be alone.
 */
#ifndef TUTTI_TENSOR_H_
#define TUTTI_TENSOR_H_

#include <tutti/context.h>
#include <tutti/dlpack.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tutti_tensor tutti_tensor;

/* Element types. */
#define TUTTI_DTYPE_F32 1
#define TUTTI_DTYPE_F64 2
#define TUTTI_DTYPE_I32 3
#define TUTTI_DTYPE_I64 4
#define TUTTI_DTYPE_U8 5
#define TUTTI_DTYPE_BOOL 6
#define TUTTI_DTYPE_F16 7
#define TUTTI_DTYPE_BF16 8
#define TUTTI_DTYPE_I8 9
#define TUTTI_DTYPE_I16 10
#define TUTTI_DTYPE_U16 11
#define TUTTI_DTYPE_U32 12
#define TUTTI_DTYPE_U64 13
#define TUTTI_DTYPE_BYTES 14

/* Called once when the library no longer needs borrowed memory, from any thread. Must not call the library. */
typedef void (*tutti_release_fn)(void *user);

/* A new tensor filled with zeros. `dims` holds `rank` sizes >= 0; rank 0 is a scalar. */
TUTTI_API int32_t tutti_tensor_create(int32_t dtype, const int64_t *dims, int64_t rank, tutti_tensor **out,
                                      tutti_error **err);

/* A new tensor with a copy of `data`, which has `size_bytes` bytes, exactly as many as the shape requires. For
 * TUTTI_DTYPE_BYTES it begins with one int64_t more than there are elements, the offsets, followed by the elements
 * themselves: element i is the bytes from offset i to offset i + 1, counted from the beginning of `data`. */
TUTTI_API int32_t tutti_tensor_from_data(int32_t dtype, const int64_t *dims, int64_t rank, const void *data,
                                         int64_t size_bytes, tutti_tensor **out, tutti_error **err);

/* A tensor over the caller's memory, without a copy. The memory must stay valid and unchanged until `release(user)` is
 * called; `release` may be NULL. It is called once in every case, also when this function fails. */
TUTTI_API int32_t tutti_tensor_take_memory(int32_t dtype, const int64_t *dims, int64_t rank, const void *data,
                                           int64_t size_bytes, tutti_release_fn release, void *user, tutti_tensor **out,
                                           tutti_error **err);

/* A tensor over a DLPack 1.x tensor in host memory. Takes ownership in every case: the deleter is called when the
 * tensor is freed, or immediately on failure. Without a copy if it is compact and row-major. */
TUTTI_API int32_t tutti_tensor_take_dlpack(DLManagedTensorVersioned *managed, tutti_tensor **out, tutti_error **err);

/* The tensor as DLPack 1.x, without a copy. The caller must call its deleter. Marked read-only when the memory is
 * shared. */
TUTTI_API int32_t tutti_tensor_to_dlpack(tutti_tensor *tensor, DLManagedTensorVersioned **out, tutti_error **err);

TUTTI_API void tutti_tensor_ref(tutti_tensor *tensor);
TUTTI_API void tutti_tensor_unref(tutti_tensor *tensor);

/* 0, -1, -1, -1, -1 when `tensor` is not a tensor handle (or `axis` is out of range). */
TUTTI_API int32_t tutti_tensor_get_dtype(const tutti_tensor *tensor);
TUTTI_API int64_t tutti_tensor_get_rank(const tutti_tensor *tensor);
TUTTI_API int64_t tutti_tensor_get_dim(const tutti_tensor *tensor, int64_t axis);
TUTTI_API int64_t tutti_tensor_get_element_count(const tutti_tensor *tensor);
TUTTI_API int64_t tutti_tensor_get_size_bytes(const tutti_tensor *tensor);

/* The elements, row-major; lent while the tensor lives. NULL for an empty tensor or a wrong handle. For
 * TUTTI_DTYPE_BYTES see tutti_tensor_get_element_data. */
TUTTI_API const void *tutti_tensor_get_data(const tutti_tensor *tensor);

/* One element, by its row-major index; lent while the tensor lives. For TUTTI_DTYPE_BYTES these are its bytes, possibly
 * none. NULL and -1 for a wrong handle or index. */
TUTTI_API const void *tutti_tensor_get_element_data(const tutti_tensor *tensor, int64_t index);
TUTTI_API int64_t tutti_tensor_get_element_size(const tutti_tensor *tensor, int64_t index);

/* The elements for writing; TUTTI_FAILED_PRECONDITION when the memory is borrowed or shared with the library. */
TUTTI_API int32_t tutti_tensor_get_mutable_data(tutti_tensor *tensor, void **out, tutti_error **err);

#ifdef __cplusplus
}
#endif

#endif /* TUTTI_TENSOR_H_ */
