/* SPDX-License-Identifier: Apache-2.0
 *
 * The C table between tutti and a file system of the host or of a plug-in. A file system is added to a context for a
 * scheme (tutti_context_add_file_system); every source that reads files then reads "scheme://..." paths through it.
 *
 * Life of a file, in calls:
 *
 *   functions->list(user, "store://bucket", ...)                 // for patterns: "store://bucket/part-*.csv"
 *   functions->open(user, "store://bucket/part-1.csv", cancel, &file, &size_bytes, err)
 *     functions->read(user, file, 0, target, 262144, cancel, &read_bytes, err)     // any offsets, any number of times
 *   functions->close(user, file)
 *   destroy(user)                              // once, when the context and all that was made with it is gone
 *
 * Conventions
 *  * The struct begins with `struct_size`, set by whoever fills it in. A field beyond struct_size is absent and NULL.
 *    Fields are only appended.
 *  * All functions are compute callbacks: they run on threads of the library, SEVERAL AT ONCE, also for one file.
 *  * Paths are whole, with their scheme, as the program wrote them.
 *  * `cancel` is lent for the call, NULL where nothing can end it. A function that waits asks it now and then:
 *    tutti_cancel_get_state is TUTTI_CANCEL_CANCEL once the walk was cancelled or its deadline has passed. Then it
 *    returns any error, at best TUTTI_CANCELLED (or what it has read), and the same call is made again if the walk goes
 *    on; what it keeps until then, it need not read twice. At TUTTI_CANCEL_STOP, which a training finishes its step
 *    for, it goes on. Waits that nothing can end need a limit of their own.
 *  * A function that fails returns a code other than TUTTI_OK and stores an error in *err (tutti_error_set), which
 *    becomes the cause of what the caller of the walk gets, under an error that names path and offset. An element whose
 *    file fails is lost for the walk: what may get better by itself should be tried again inside.
 *  * Functions must not call the library but for errors and `cancel`.
 */
#ifndef TUTTI_PLUGIN_FILE_SYSTEM_H_
#define TUTTI_PLUGIN_FILE_SYSTEM_H_

#include <tutti/context.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One name in a directory, given to `listing` as often as there are names, in any order. `name` is copied; it is one
 * part of a path, without "/". */
typedef void (*tutti_list_fn)(void *listing, const char *name, uint8_t is_directory);

typedef struct tutti_file_system {
  uint64_t struct_size;

  /* Opens a file for reading: stores what stands for it in *file (may be NULL) and its size in *size_bytes. The size is
   * that of the bytes that read gives, now and as long as the file is open. TUTTI_NOT_FOUND where there is no file. */
  int32_t (*open)(void *user, const char *path, tutti_cancel *cancel, void **file, int64_t *size_bytes,
                  tutti_error **err);

  /* Writes up to `size` bytes of the file from `offset` on to `target` and their number to *read_bytes. Fewer than
   * `size` are fine, none is an error: offset + size never goes beyond the file's size, and size is 1 or more. */
  int32_t (*read)(void *user, void *file, int64_t offset, void *target, int64_t size, tutti_cancel *cancel,
                  int64_t *read_bytes, tutti_error **err);

  /* Ends the use of a file; nothing else runs for it then. */
  void (*close)(void *user, void *file);

  /* (optional) Gives every name in a directory ("store://", "store://bucket/folder"; no "/" at the end but that of the
   * scheme) by calls of add(listing, name, is_directory) before it returns. TUTTI_NOT_FOUND where there is no
   * directory. Needed by patterns and by the source image_folder; without it, "*", "?" and "[" in paths stand for
   * themselves. */
  int32_t (*list)(void *user, const char *directory, tutti_cancel *cancel, tutti_list_fn add, void *listing,
                  tutti_error **err);

  /* (optional) Tells the contents of an open file from others that were under its path: an entity tag, a generation, a
   * time of change. Lent until the next call for the file. NULL or "" when that is not known; then caches in files,
   * which may not be used for what has changed, want a key of the program (transforms "cache" and "snapshot"). */
  const char *(*version)(void *user, void *file);
} tutti_file_system;

/* Name of the one symbol that a shared module of file systems exports (tutti_context_load_file_system). */
#define TUTTI_FILE_SYSTEM_ENTRY_NAME "tutti_file_system_entry"

/* What that symbol is: adds the module's file systems to the context. `settings` is a JSON object in the module's own
 * words, or NULL; an unknown key is an error. */
typedef int32_t (*tutti_file_system_entry_fn)(tutti_context *context, const char *settings, tutti_error **err);

#ifdef __cplusplus
}
#endif

#endif /* TUTTI_PLUGIN_FILE_SYSTEM_H_ */
