/* SPDX-License-Identifier: Apache-2.0
 *
 * A module of file systems as a user writes it, for tests: the file "letters://a,b,c" holds the lines a, b and c. It
 * has no settings. */
#include <stdlib.h>
#include <string.h>
#include <tutti/file_system.h>

static const char scheme[] = "letters://";

static int32_t open_file(void *user, const char *path, tutti_cancel *cancel, void **file, int64_t *size_bytes,
                         tutti_error **err) {
  (void)user, (void)cancel;
  const char *letters = path + sizeof scheme - 1;
  if (*letters == 0) return tutti_error_set(err, TUTTI_NOT_FOUND, "a file without letters");
  char *text = malloc(strlen(letters) + 1);
  if (text == NULL) return tutti_error_set(err, TUTTI_RESOURCE_EXHAUSTED, "no memory for a file");
  strcpy(text, letters);
  for (char *at = strchr(text, ','); at != NULL; at = strchr(at, ','))
    *at = '\n';
  *file = text;
  *size_bytes = (int64_t)strlen(text);
  return TUTTI_OK;
}

static int32_t read_file(void *user, void *file, int64_t offset, void *target, int64_t size, tutti_cancel *cancel,
                         int64_t *read_bytes, tutti_error **err) {
  (void)user, (void)cancel, (void)err;
  memcpy(target, (const char *)file + offset, (size_t)size);
  *read_bytes = size;
  return TUTTI_OK;
}

static void close_file(void *user, void *file) {
  (void)user;
  free(file);
}

TUTTI_API int32_t tutti_file_system_entry(tutti_context *context, const char *settings, tutti_error **err) {
  if (settings != NULL && strcmp(settings, "{}") != 0) {
    return tutti_error_set(err, TUTTI_INVALID_ARGUMENT, "letters have no settings");
  }
  tutti_file_system functions = {
      .struct_size = sizeof functions, .open = open_file, .read = read_file, .close = close_file};
  return tutti_context_add_file_system(context, "letters", &functions, NULL, NULL, err);
}
