/* SPDX-License-Identifier: Apache-2.0
 *
 * File systems written in a language: what the library asks of one goes through a queue (call_queue.h), from which
 * threads of the language take calls, several at a time. A file is a number that the language gives when it opens one,
 * with what tells its version. Header-only C, behind call_queue.h.
 */
#ifndef TUTTI_BINDINGS_FILE_CALLS_H_
#define TUTTI_BINDINGS_FILE_CALLS_H_

#include <string.h>
#include <tutti/file_system.h>

#define TUTTI_FILE_OPEN 1
#define TUTTI_FILE_READ 2
#define TUTTI_FILE_CLOSE 3
#define TUTTI_FILE_LIST 4

/* What a call is about, and where its results go; NULL and 0 for what it has not. */
struct tutti_file_call {
  struct tutti_call call;
  int32_t kind;
  const char *path; /* of a file or a directory, as the program wrote it */
  int64_t file, offset, size;
  void *target;
  int64_t *number; /* the size of a file; how many bytes were read */
  char *version;   /* of a file that was opened, from malloc */
  tutti_list_fn add;
  void *listing;
};

/* What the library holds of an open file. */
struct tutti_language_file {
  int64_t number;
  char *version; /* NULL = not known */
};

/* --- what the library calls --------------------------------------------------------------------------------------- */

static inline int64_t tutti_file_number(const void *file) { return ((const struct tutti_language_file *)file)->number; }

static inline void tutti_file_close(void *user, void *file) {
  struct tutti_language_file *open = file;
  struct tutti_file_call call = {.kind = TUTTI_FILE_CLOSE, .file = open->number};
  tutti_call_queue_run(user, &call.call, NULL);
  free(open->version);
  free(open);
}

static inline int32_t tutti_file_open(void *user, const char *path, tutti_cancel *cancel, void **file,
                                      int64_t *size_bytes, tutti_error **err) {
  (void)cancel;
  struct tutti_language_file *open = calloc(1, sizeof *open);
  if (open == NULL) return tutti_error_set(err, TUTTI_RESOURCE_EXHAUSTED, "no memory for an open file");
  struct tutti_file_call call = {.kind = TUTTI_FILE_OPEN, .path = path, .number = size_bytes};
  int32_t code = tutti_call_queue_run(user, &call.call, err);
  if (code != TUTTI_OK) {
    free(call.version);
    free(open);
    return code;
  }
  *open = (struct tutti_language_file){.number = call.file, .version = call.version};
  *file = open;
  return TUTTI_OK;
}

static inline const char *tutti_file_version(void *user, void *file) {
  (void)user;
  return ((const struct tutti_language_file *)file)->version;
}

static inline int32_t tutti_file_read(void *user, void *file, int64_t offset, void *target, int64_t size,
                                      tutti_cancel *cancel, int64_t *read_bytes, tutti_error **err) {
  (void)cancel;
  struct tutti_file_call call = {.kind = TUTTI_FILE_READ,
                                 .file = tutti_file_number(file),
                                 .offset = offset,
                                 .size = size,
                                 .target = target,
                                 .number = read_bytes};
  return tutti_call_queue_run(user, &call.call, err);
}

static inline int32_t tutti_file_list(void *user, const char *directory, tutti_cancel *cancel, tutti_list_fn add,
                                      void *listing, tutti_error **err) {
  (void)cancel;
  struct tutti_file_call call = {.kind = TUTTI_FILE_LIST, .path = directory, .add = add, .listing = listing};
  return tutti_call_queue_run(user, &call.call, err);
}

/* tutti_context_add_file_system by a queue, which the caller holds; NULL after an error. */
static inline struct tutti_call_queue *tutti_swig_context_add_file_system(tutti_context *context, const char *scheme,
                                                                          uint8_t lists, tutti_error **err) {
  struct tutti_call_queue *queue = tutti_call_queue_create();
  if (queue == NULL) {
    tutti_error_create(TUTTI_RESOURCE_EXHAUSTED, "tutti", "no memory for a file system", NULL, err, NULL);
    return NULL;
  }
  tutti_file_system functions = {.struct_size = sizeof functions,
                                 .open = tutti_file_open,
                                 .read = tutti_file_read,
                                 .close = tutti_file_close,
                                 .list = lists ? tutti_file_list : NULL,
                                 .version = tutti_file_version};
  if (tutti_context_add_file_system(context, scheme, &functions, queue, tutti_call_queue_release, err) == TUTTI_OK) {
    return queue;
  }
  tutti_swig_call_queue_unref(queue);
  return NULL;
}

/* --- a call that was taken ---------------------------------------------------------------------------------------- */

static inline int32_t tutti_swig_file_call_get_kind(const struct tutti_call *call) {
  return ((const struct tutti_file_call *)call)->kind;
}
static inline const char *tutti_swig_file_call_get_path(const struct tutti_call *call) {
  return ((const struct tutti_file_call *)call)->path;
}
static inline int64_t tutti_swig_file_call_get_file(const struct tutti_call *call) {
  return ((const struct tutti_file_call *)call)->file;
}
static inline int64_t tutti_swig_file_call_get_offset(const struct tutti_call *call) {
  return ((const struct tutti_file_call *)call)->offset;
}
static inline int64_t tutti_swig_file_call_get_size(const struct tutti_call *call) {
  return ((const struct tutti_file_call *)call)->size;
}
/* Where the bytes of a read go, lent until finish. */
static inline const void *tutti_swig_file_call_get_target(const struct tutti_call *call) {
  return ((const struct tutti_file_call *)call)->target;
}

/* A name of a directory that is being listed; those of directories end in "/". */
static inline void tutti_swig_file_call_add_name(struct tutti_call *call, const char *name) {
  struct tutti_file_call *of = (struct tutti_file_call *)call;
  size_t size = strlen(name);
  bool is_directory = size > 1 && name[size - 1] == '/';
  char *part = malloc(size + 1);
  if (part == NULL) return;
  memcpy(part, name, size + 1);
  if (is_directory) part[size - 1] = 0;
  of->add(of->listing, part, is_directory);
  free(part);
}

/* Ends a call: with TUTTI_OK, the number of the file that was opened, its size and its version (NULL or "" = not
 * known), or how many bytes were read; or with a code and the error, which is taken. */
static inline void tutti_swig_file_call_finish(struct tutti_call_queue *queue, struct tutti_call *call, int64_t file,
                                               int64_t number, const char *version, int32_t code, tutti_error *taken) {
  struct tutti_file_call *of = (struct tutti_file_call *)call;
  if (of->kind == TUTTI_FILE_OPEN) {
    of->file = file;
    /* Without memory it is not known, which is always safe. */
    if (version != NULL && *version != 0) of->version = strdup(version);
  }
  if (of->number != NULL) *of->number = number;
  tutti_call_queue_finish(queue, call, code, taken);
}

#endif /* TUTTI_BINDINGS_FILE_CALLS_H_ */
