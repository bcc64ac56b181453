/* SPDX-License-Identifier: Apache-2.0
 *
 * The part of the DLPack exchange format (https://dmlc.github.io/dlpack, version 1) that tutti uses, for systems
 * without a header of version 1. Names and memory layout are those of the format.
 *
 * Together with <dlpack/dlpack.h>:
 *   - version 1 included before: this header adds nothing;
 *   - version 0.6 to 0.8 included before: this header adds the versioned structs;
 *   - included after this header: it is skipped, since its names are all taken. Include it first to have its extras.
 *
 * Ownership: a DLManagedTensorVersioned belongs to its consumer until the consumer calls its deleter, exactly once and
 * on any thread; the deleter frees the struct itself too. A null deleter means there is nothing to free. A consumer
 * that does not know the major version calls the deleter and reads nothing after `flags`.
 */
#ifndef TUTTI_DLPACK_H_
#define TUTTI_DLPACK_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#define TUTTI_DLPACK_ENUM_TYPE_ : int32_t
#else
#define TUTTI_DLPACK_ENUM_TYPE_
#endif

#if !defined(DLPACK_MAJOR_VERSION) && !defined(DLPACK_VERSION)
#define DLPACK_DLPACK_H_

/** Where memory lies. tutti reads kDLCPU, kDLCUDAHost, kDLROCMHost and kDLCUDAManaged. */
typedef enum TUTTI_DLPACK_ENUM_TYPE_ {
  kDLCPU = 1,
  kDLCUDA = 2,
  kDLCUDAHost = 3,
  kDLOpenCL = 4,
  kDLVulkan = 7,
  kDLMetal = 8,
  kDLVPI = 9,
  kDLROCM = 10,
  kDLROCMHost = 11,
  kDLExtDev = 12,
  kDLCUDAManaged = 13,
  kDLOneAPI = 14,
  kDLWebGPU = 15,
  kDLHexagon = 16,
  kDLMAIA = 17,
} DLDeviceType;

/** A device by type and number; the number is 0 for host memory. */
typedef struct {
  DLDeviceType device_type;
  int32_t device_id;
} DLDevice;

/** Kinds of elements; the number of bits stands beside it. */
typedef enum {
  kDLInt = 0U,
  kDLUInt = 1U,
  kDLFloat = 2U,
  kDLOpaqueHandle = 3U,
  kDLBfloat = 4U,
  kDLComplex = 5U,
  kDLBool = 6U,
} DLDataTypeCode;

/** An element: float is {kDLFloat, 32, 1}, bool is {kDLBool, 8, 1}. */
typedef struct {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
} DLDataType;

/** A tensor without ownership. */
typedef struct {
  /** Start of the memory; null is legal when there are no elements. */
  void *data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  /** ndim extents. */
  int64_t *shape;
  /** ndim distances in elements, or null for a compact row-major tensor. */
  int64_t *strides;
  /** From `data` to the first element. */
  uint64_t byte_offset;
} DLTensor;

/** The form before version 1, without version and flags. tutti does not take it. */
typedef struct DLManagedTensor {
  DLTensor dl_tensor;
  void *manager_ctx;
  void (*deleter)(struct DLManagedTensor *self);
} DLManagedTensor;
#endif

#ifndef DLPACK_MAJOR_VERSION
#define DLPACK_MAJOR_VERSION 1
#define DLPACK_MINOR_VERSION 0

/** The elements must not be written. */
#define DLPACK_FLAG_BITMASK_READ_ONLY (1UL << 0UL)
/** The producer made a copy that only the consumer sees. */
#define DLPACK_FLAG_BITMASK_IS_COPIED (1UL << 1UL)

/** Which layout follows (major) and which enumeration values may occur (minor). */
typedef struct {
  uint32_t major;
  uint32_t minor;
} DLPackVersion;

/** A tensor that its consumer gives back; see the head of this file. */
typedef struct DLManagedTensorVersioned {
  DLPackVersion version;
  /** The producer's own. */
  void *manager_ctx;
  void (*deleter)(struct DLManagedTensorVersioned *self);
  /** DLPACK_FLAG_BITMASK_... */
  uint64_t flags;
  DLTensor dl_tensor;
} DLManagedTensorVersioned;
#endif

#undef TUTTI_DLPACK_ENUM_TYPE_

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* TUTTI_DLPACK_H_ */
