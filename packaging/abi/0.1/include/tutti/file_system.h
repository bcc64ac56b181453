/* SPDX-License-Identifier: Apache-2.0
 *
 * File systems: give sources access to files whose paths have a scheme, such as "store://bucket/part-1.csv". Paths
 * without a scheme are local files. A file system is a table of functions (plugin/file_system.h), of the program or of
 * a shared module, and belongs to a context.
 *
 * Threads: every function is safe from any thread. Sources look for a file system when they are added to a pipeline.
 */
#ifndef TUTTI_FILE_SYSTEM_H_
#define TUTTI_FILE_SYSTEM_H_

#include <tutti/plugin/file_system.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Adds a file system for the scheme (lower-case letters, digits, "+", "-" and "."; "store" for "store://..."). The
 * table is copied, `user` is passed to its functions, and `destroy` (NULL = nothing) is called with it once: when the
 * context and everything created with it is gone, or before the call returns if it fails. TUTTI_ALREADY_EXISTS if the
 * context has a file system for the scheme. */
TUTTI_API int32_t tutti_context_add_file_system(tutti_context *context, const char *scheme,
                                                const tutti_file_system *functions, void *user,
                                                tutti_destroy_fn destroy, tutti_error **err);

/* Adds the file systems of a shared module: the absolute path of one, or the name of one of those that come with tutti
 * ("http", for http:// and https://). `settings` is a JSON object that the module defines; NULL = its defaults.
 * TUTTI_NOT_FOUND if the module does not exist, TUTTI_UNAVAILABLE if it cannot be used. A module is never unloaded.
 *
 * Settings of "http": block_bytes (of one range request), blocks_ahead (fetched before they are asked for),
 * connections, connect_timeout_ms, timeout_ms (without a byte), retries, retry_delay_ms (before the first of them),
 * redirects, largest_download_bytes (of a file whose server gives no ranges; it is kept in memory), headers (a list of
 * "Name: value", sent with each request; Authorization and Cookie not to another host), ca_file, proxy. Certificates
 * are always checked. */
TUTTI_API int32_t tutti_context_load_file_system(tutti_context *context, const char *module, const char *settings,
                                                 tutti_error **err);

#ifdef __cplusplus
}
#endif

#endif /* TUTTI_FILE_SYSTEM_H_ */
