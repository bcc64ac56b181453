/* SPDX-License-Identifier: Apache-2.0
 *
 * Summaries that a program writes for TensorBoard: curves, histograms, images, texts, embeddings and others, in event
 * files of a folder.
 *
 *   tutti_summary_writer_create(NULL, "runs/7", 10, &writer, &err);
 *   tutti_summary_writer_add_scalar(writer, "reward", reward, step, &err);
 *   tutti_summary_writer_unref(writer);
 *
 * Trainings write their own (run option save_summary_steps); a hook adds to these with the writer of its event
 * (tutti_hook_event_get_summary_writer). Models say what is shown of their values with tutti_summary_scalar() and
 * others (graph.h).
 *
 * `name` is what TensorBoard shows, with "/" between groups; a name has values of one kind only. A value has the time
 * of its call. The folder is one of the machine itself, and is made with the first value. What is written is readable
 * even if the program is killed. Writing is no error of a call: if it fails, as on a full disk, the log says so once,
 * up to 1 MiB waits, and writing is tried again.
 *
 * Threads: any number may use a writer at the same time.
 */
#ifndef TUTTI_SUMMARY_H_
#define TUTTI_SUMMARY_H_

#include <tutti/context.h>
#include <tutti/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tutti_summary_writer tutti_summary_writer;

/* A writer into a new event file of the folder. `flush_secs`: how long a value may wait to be written while others
 * come; 0 = not at all. */
TUTTI_API int32_t tutti_summary_writer_create(tutti_context *context, const char *folder, int64_t flush_secs,
                                              tutti_summary_writer **out, tutti_error **err);
TUTTI_API void tutti_summary_writer_ref(tutti_summary_writer *writer);
/* The last one writes what waits. */
TUTTI_API void tutti_summary_writer_unref(tutti_summary_writer *writer);
/* Lent while the writer lives. NULL when `writer` is not a writer handle. */
TUTTI_API const char *tutti_summary_writer_get_folder(const tutti_summary_writer *writer);
/* Writes what waits. */
TUTTI_API int32_t tutti_summary_writer_flush(tutti_summary_writer *writer, tutti_error **err);

/* A point of a curve, stored as f32. */
TUTTI_API int32_t tutti_summary_writer_add_scalar(tutti_summary_writer *writer, const char *name, double value,
                                                  int64_t step, tutti_error **err);
/* How the elements of a tensor of numbers or truth values are distributed. */
TUTTI_API int32_t tutti_summary_writer_add_histogram(tutti_summary_writer *writer, const char *name,
                                                     const tutti_tensor *values, int64_t step, tutti_error **err);
/* The first `max_images` (0 = 3) of [images, height, width, channels] with 1, 3 or 4 channels, of u8, or of floating
 * point numbers from 0 to 1. TUTTI_UNIMPLEMENTED if the library was built without libspng. */
TUTTI_API int32_t tutti_summary_writer_add_image(tutti_summary_writer *writer, const char *name,
                                                 const tutti_tensor *images, int64_t max_images, int64_t step,
                                                 tutti_error **err);
/* A text in Markdown. */
TUTTI_API int32_t tutti_summary_writer_add_text(tutti_summary_writer *writer, const char *name, const char *text,
                                                int64_t step, tutti_error **err);
/* A curve of precision and recall over `thresholds` (0 = 201) from 0 to 1: `labels` are truth values, `predictions`
 * numbers from 0 to 1, and `weights` (NULL = 1 each) those of the examples; as many of each. */
TUTTI_API int32_t tutti_summary_writer_add_pr_curve(tutti_summary_writer *writer, const char *name,
                                                    const tutti_tensor *labels, const tutti_tensor *predictions,
                                                    const tutti_tensor *weights, int64_t thresholds, int64_t step,
                                                    tutti_error **err);
/* Points [points, dimensions] for TensorBoard's projector, in place of those of that name: files in the folder, which
 * are there when the call returns. `metadata` (NULL or "" = none) says what each point is: a line for each, or a table
 * with tabs between columns, whose first line has their names. An error if a file cannot be written. */
TUTTI_API int32_t tutti_summary_writer_add_embedding(tutti_summary_writer *writer, const char *name,
                                                     const tutti_tensor *points, const char *metadata,
                                                     tutti_error **err);
/* Settings of a run as TensorBoard's page of hyper-parameters shows them, a row for each run: a JSON object of numbers,
 * truth values and texts; `metrics_json` (NULL or "" = none) is an array of the names of curves whose newest value
 * stands beside them. Once for a folder. A training writes its own. */
TUTTI_API int32_t tutti_summary_writer_add_hyperparameters(tutti_summary_writer *writer, const char *settings_json,
                                                           const char *metrics_json, tutti_error **err);

#ifdef __cplusplus
}
#endif

#endif /* TUTTI_SUMMARY_H_ */
