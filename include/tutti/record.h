/* SPDX-License-Identifier: Apache-2.0
 *
 * Writing files of records, as the sources of ops.h read them: TFRecord files, byte by byte what TensorFlow writes.
 *
 *   tutti_record_writer_create(NULL, "train.tfrecord.gz", "gzip", &writer, &err);
 *   for each example:
 *     tutti_record_writer_add_feature(writer, "image", encoded, &err);
 *     tutti_record_writer_add_feature(writer, "label", label, &err);
 *     tutti_record_writer_write_example(writer, &err);
 *   tutti_record_writer_close(writer, &err);
 *   tutti_record_writer_unref(writer);
 *
 * The file is there, complete, once close has succeeded. Without close, or after an error, there is none.
 *
 * Threads: a writer serves one thread at a time; a second gets TUTTI_FAILED_PRECONDITION meanwhile.
 */
#ifndef TUTTI_RECORD_H_
#define TUTTI_RECORD_H_

#include <tutti/context.h>
#include <tutti/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tutti_record_writer tutti_record_writer;

/* `compression` is "none", "gzip" or "zlib"; NULL and "" mean none. A file at `path` is replaced by close. */
TUTTI_API int32_t tutti_record_writer_create(tutti_context *context, const char *path, const char *compression,
                                             tutti_record_writer **out, tutti_error **err);
TUTTI_API void tutti_record_writer_ref(tutti_record_writer *writer);
TUTTI_API void tutti_record_writer_unref(tutti_record_writer *writer);

/* Writes a record of any bytes; `data` may be NULL when there are none. */
TUTTI_API int32_t tutti_record_writer_write(tutti_record_writer *writer, const void *data, int64_t size_bytes,
                                            tutti_error **err);

/* Adds a feature to the tf.train.Example that is written next: texts become a bytes list, floats a float list, integers
 * and truth values an int64 list; the shape is not kept. A feature added under a name again replaces the first. */
TUTTI_API int32_t tutti_record_writer_add_feature(tutti_record_writer *writer, const char *name,
                                                  const tutti_tensor *tensor, tutti_error **err);
/* Writes the features added since the last example as one record; their names in the order of their bytes.
 * TUTTI_FAILED_PRECONDITION when feature lists were added, too. */
TUTTI_API int32_t tutti_record_writer_write_example(tutti_record_writer *writer, tutti_error **err);

/* Adds a feature list to the tf.train.SequenceExample that is written next: each row of the tensor is a step. Where the
 * steps have different numbers of values, `lengths` (else NULL) are integers that say how many rows of its own each
 * step has; the tensor is as long as the longest then, and what lies behind is left out. One added under a name again
 * replaces the first. Tensors that do not fit together are told when the example is written. */
TUTTI_API int32_t tutti_record_writer_add_feature_list(tutti_record_writer *writer, const char *name,
                                                       const tutti_tensor *tensor, const tutti_tensor *lengths,
                                                       tutti_error **err);
/* Writes one record of the feature lists added since the last one, with the features as its context. */
TUTTI_API int32_t tutti_record_writer_write_sequence_example(tutti_record_writer *writer, tutti_error **err);

/* Writes what is left and puts the file into place. Once; the writer takes no records afterwards. */
TUTTI_API int32_t tutti_record_writer_close(tutti_record_writer *writer, tutti_error **err);

#ifdef __cplusplus
}
#endif

#endif /* TUTTI_RECORD_H_ */
