/* SPDX-License-Identifier: Apache-2.0
 *
 * The structs of the Arrow C data interface and C stream interface, for exchange with libraries that support Arrow.
 * Names, layout and guards are those of the specification (https://arrow.apache.org/docs/format/CDataInterface.html and
 * CStreamInterface.html), so this header can be combined with any other that defines them.
 *
 * Ownership: whoever holds a struct whose `release` is not NULL calls it once, and a struct that was moved elsewhere
 * has its `release` set to NULL. Children are released with their parent. Arrays outlive the stream they came from.
 */
#ifndef TUTTI_ARROW_H_
#define TUTTI_ARROW_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE

#define ARROW_FLAG_DICTIONARY_ORDERED 1
#define ARROW_FLAG_NULLABLE 2
#define ARROW_FLAG_MAP_KEYS_SORTED 4

/* What arrays hold: a type, its name and children. */
struct ArrowSchema {
  const char *format;
  const char *name;
  const char *metadata;
  int64_t flags;
  int64_t n_children;
  struct ArrowSchema **children;
  struct ArrowSchema *dictionary;
  void (*release)(struct ArrowSchema *);
  void *private_data;
};

/* Values of such a type; a record batch is an array of a struct. */
struct ArrowArray {
  int64_t length;
  int64_t null_count;
  int64_t offset;
  int64_t n_buffers;
  int64_t n_children;
  const void **buffers;
  struct ArrowArray **children;
  struct ArrowArray *dictionary;
  void (*release)(struct ArrowArray *);
  void *private_data;
};

#endif /* ARROW_C_DATA_INTERFACE */

#ifndef ARROW_C_STREAM_INTERFACE
#define ARROW_C_STREAM_INTERFACE

/* Record batches of one schema, one after the other; the last one is followed by an array whose `release` is NULL. The
 * functions return 0 or an errno; the text of get_last_error is valid until the next call. */
struct ArrowArrayStream {
  int (*get_schema)(struct ArrowArrayStream *, struct ArrowSchema *out);
  int (*get_next)(struct ArrowArrayStream *, struct ArrowArray *out);
  const char *(*get_last_error)(struct ArrowArrayStream *);
  void (*release)(struct ArrowArrayStream *);
  void *private_data;
};

#endif /* ARROW_C_STREAM_INTERFACE */

#ifdef __cplusplus
}
#endif

#endif /* TUTTI_ARROW_H_ */
