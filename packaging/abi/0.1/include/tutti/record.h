/* SPDX-License-Identifier: Apache-2.0
 *
 * Writing record files for the sources of ops.h: TFRecord files, byte for byte as TensorFlow writes them.
 *
 *   tutti_record_writer_create(NULL, "train.tfrecord.gz", "gzip", &writer, &err);
 *   for each example:
 *     tutti_record_writer_add_feature(writer, "image", encoded, &err);
 *     tutti_record_writer_add_feature(writer, "label", label, &err);
 *     tutti_record_writer_write_example(writer, &err);
 *   tutti_record_writer_close(writer, &err);
 *   tutti_record_writer_unref(writer);
 *
 * The file exists, and is complete, only after close has succeeded. Without close, or after an error, there is no file.
 *
 * Threads: a writer serves one thread at a time; a second one gets TUTTI_FAILED_PRECONDITION.
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
 * and truth values an int64 list; the shape is not stored. Adding a feature under an existing name replaces it. */
TUTTI_API int32_t tutti_record_writer_add_feature(tutti_record_writer *writer, const char *name,
                                                  const tutti_tensor *tensor, tutti_error **err);
/* Writes the features added since the last example as one record, with their names in the order of their bytes.
 * TUTTI_FAILED_PRECONDITION if feature lists were added, too. */
TUTTI_API int32_t tutti_record_writer_write_example(tutti_record_writer *writer, tutti_error **err);

/* Adds a feature list to the tf.train.SequenceExample that is written next: each row of the tensor is a step. If the
 * steps have different numbers of values, `lengths` (otherwise NULL) are integers with the number of rows of each step;
 * the tensor is then as long as the longest step, and the rest of shorter steps is ignored. Adding a list under an
 * existing name replaces it. Tensors that do not fit together are an error when the example is written. */
TUTTI_API int32_t tutti_record_writer_add_feature_list(tutti_record_writer *writer, const char *name,
                                                       const tutti_tensor *tensor, const tutti_tensor *lengths,
                                                       tutti_error **err);
/* Writes one record of the feature lists added since the last one, with the features as its context. */
TUTTI_API int32_t tutti_record_writer_write_sequence_example(tutti_record_writer *writer, tutti_error **err);

/* Writes the remaining data and moves the file to its path. Call it once; afterwards the writer accepts no records. */
TUTTI_API int32_t tutti_record_writer_close(tutti_record_writer *writer, tutti_error **err);

#ifdef __cplusplus
}
#endif

#endif /* TUTTI_RECORD_H_ */
