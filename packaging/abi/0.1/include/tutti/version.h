/* SPDX-License-Identifier: Apache-2.0
 *
 * Which library this is, what it was built with, and what it can do. All functions may be called at any time from any
 * thread, before a context exists; none allocates for the caller.
 */
#ifndef TUTTI_VERSION_H_
#define TUTTI_VERSION_H_

#include <tutti/status.h>

/* The version of these headers. */
#define TUTTI_VERSION_MAJOR 0
#define TUTTI_VERSION_MINOR 1
#define TUTTI_VERSION_PATCH 0

/* The binary interface that these headers describe: a program built with them runs with a library of the same major
 * number and the same or a larger minor number. */
#define TUTTI_ABI_MAJOR 0
#define TUTTI_ABI_MINOR 1

#ifdef __cplusplus
extern "C" {
#endif

/* The library's version, such as "0.1.0". */
TUTTI_API const char *tutti_version(void);

/* The library's binary interface as major * 65536 + minor. */
TUTTI_API int32_t tutti_abi_version(void);

/* A JSON object: version, compiler, build type, backends linked in and the versions of the libraries they use. */
TUTTI_API const char *tutti_build_info(void);

/* 1 if the library was built with the feature, 0 otherwise and for NULL: "backend:cpu", "op:conv2d", "source:csv",
 * "transform:shuffle", or a file format that it reads: "format:" and arrow, csv, gzip, idx, jpeg, npy, npz, png,
 * safetensors, tar, tfrecord or zlib. */
TUTTI_API uint8_t tutti_has_feature(const char *feature);

/* One sentence with the reason why a backend cannot be used here, or NULL if it can. */
TUTTI_API const char *tutti_why_unavailable(const char *backend);

/* The number of live objects with handles, for leak tests. `type` is a handle type without its prefix ("dataset"); NULL
 * counts all of them. */
TUTTI_API int64_t tutti_debug_live_objects(const char *type);

#ifdef __cplusplus
}
#endif

#endif /* TUTTI_VERSION_H_ */
