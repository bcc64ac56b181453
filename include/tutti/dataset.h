/* SPDX-License-Identifier: Apache-2.0
 *
 * Datasets: where examples come from. A pipeline is written step by step and built into a dataset, which is an
 * immutable description; an iterator holds all progress. Typed helpers for sources (tutti_source_range, ...) and
 * transforms (tutti_pipeline_shuffle, ...) are in ops.h (generated).
 *
 * Elements are ordered, named tensors: features, labels and optional weights. The order is the same in every run, for
 * any number of threads. Batch sizes are global: the strategy divides each batch over its replicas.
 *
 * Threads: a dataset may be shared; a pipeline and an iterator serve one thread at a time; a feed may be pushed to by
 * several threads.
 */
#ifndef TUTTI_DATASET_H_
#define TUTTI_DATASET_H_

#include <tutti/arrow.h>
#include <tutti/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tutti_pipeline tutti_pipeline;
typedef struct tutti_dataset tutti_dataset;
typedef struct tutti_iterator tutti_iterator;
typedef struct tutti_feed tutti_feed;

#define TUTTI_ROLE_FEATURE 1
#define TUTTI_ROLE_LABEL 2
#define TUTTI_ROLE_WEIGHT 3

#define TUTTI_CARDINALITY_INFINITE (-1)
#define TUTTI_CARDINALITY_UNKNOWN (-2)

/* --- writing a pipeline: errors are stored and reported by build -------------------------------------------------- */

TUTTI_API int32_t tutti_pipeline_create(tutti_context *context, tutti_pipeline **out, tutti_error **err);
TUTTI_API void tutti_pipeline_ref(tutti_pipeline *pipeline);
TUTTI_API void tutti_pipeline_unref(tutti_pipeline *pipeline);

/* Adds a component to the source: element i is row i of every tensor added, so all must have the same first dimension.
 * The tensor is shared, not copied. */
TUTTI_API void tutti_pipeline_add_slices(tutti_pipeline *pipeline, const char *name, int32_t role,
                                         const tutti_tensor *tensor);
/* Adds a component to a source of exactly one element: the tensor as a whole, a scalar too. The tensor is shared, not
 * copied. */
TUTTI_API void tutti_pipeline_add_tensor(tutti_pipeline *pipeline, const char *name, int32_t role,
                                         const tutti_tensor *tensor);
/* Adds a component from an IDX file (plain, or gzip of at most 4 GiB), the format of the MNIST family. */
TUTTI_API void tutti_pipeline_add_idx(tutti_pipeline *pipeline, const char *name, int32_t role, const char *path);
/* Starts from the elements that a function in C returns. Declare its components first, each with the shape of one
 * element; a negative extent means that the extent differs between elements.
 *
 * The function stores new references to the tensors of element `index` of pass `pass` in `outputs` and sets
 * *has_element to 1, or leaves it 0 after the last element. It is called for 0, 1, 2, ..., starting again in each pass.
 * A restored iterator begins with the next index, so a source that can only be read forward must start again and skip
 * to it. An error consumes its element, except for TUTTI_CANCELLED and TUTTI_DEADLINE_EXCEEDED. Compute callback: runs
 * on a library thread, one call at a time for each iterator. */
typedef int32_t (*tutti_generator_fn)(void *user, int64_t pass, int64_t index, tutti_tensor **outputs, int64_t count,
                                      uint8_t *has_element, tutti_error **err);
TUTTI_API void tutti_pipeline_declare(tutti_pipeline *pipeline, const char *name, int32_t role, int32_t dtype,
                                      const int64_t *dims, int64_t rank);
TUTTI_API void tutti_pipeline_add_generator(tutti_pipeline *pipeline, tutti_generator_fn next, void *user,
                                            tutti_destroy_fn destroy);
/* The input of the source "arrow" (tutti_source_arrow): an Arrow C stream of record batches. Set it before the source
 * is begun. Takes ownership of the stream in every case: it is released after it was read, or with the pipeline.
 * Compute callbacks: arrays are released on the thread that drops the last tensor over them. */
TUTTI_API void tutti_pipeline_set_arrow_stream(tutti_pipeline *pipeline, struct ArrowArrayStream *stream);
/* Starts from the elements of a feed, or from an existing dataset. */
TUTTI_API void tutti_pipeline_add_feed(tutti_pipeline *pipeline, tutti_feed *feed);
TUTTI_API void tutti_pipeline_add_dataset(tutti_pipeline *pipeline, const tutti_dataset *dataset);

/* The token that cancels file access from now on, until the pipeline is built; NULL removes it. Sources inspect their
 * files when they are added (IDX files: at the latest with the next step). They list directories, open each file and
 * read headers; npy, npz and IDX files are read completely; a cache in a file checks the sizes of the files that it was
 * filled from. If the token ends that, the build fails with TUTTI_CANCELLED or TUTTI_DEADLINE_EXCEEDED and, as after
 * any other error, the pipeline is empty. Iterators do not use this token. */
TUTTI_API void tutti_pipeline_set_cancel(tutti_pipeline *pipeline, tutti_cancel *cancel);

/* One transform is written as begin, parameters, end: begin("shuffle", 1), set_i64("buffer_size", 1000), end. On a
 * pipeline without a source it must be a source instead: begin("text_lines", 1), set_string("paths", "part-*.txt"),
 * end. For a parameter that is a list of texts, each set_string appends one. */
TUTTI_API void tutti_pipeline_begin(tutti_pipeline *pipeline, const char *transform, int32_t revision);
TUTTI_API void tutti_pipeline_set_bool(tutti_pipeline *pipeline, const char *key, uint8_t value);
TUTTI_API void tutti_pipeline_set_i64(tutti_pipeline *pipeline, const char *key, int64_t value);
TUTTI_API void tutti_pipeline_set_f64(tutti_pipeline *pipeline, const char *key, double value);
TUTTI_API void tutti_pipeline_set_string(tutti_pipeline *pipeline, const char *key, const char *value);
/* Lists of numbers. */
TUTTI_API void tutti_pipeline_set_i64s(tutti_pipeline *pipeline, const char *key, const int64_t *values, int64_t count);
TUTTI_API void tutti_pipeline_set_f64s(tutti_pipeline *pipeline, const char *key, const double *values, int64_t count);
/* For zip, concatenate, interleave and sample_from: once for each dataset after the pipeline's own. The key "like"
 * gives the components of the results of map_callback, map_process and scan_callback, and of the datasets of flat_map
 * and interleave_callback; only the components of that dataset are used. Other transforms reject it. */
TUTTI_API void tutti_pipeline_set_dataset(tutti_pipeline *pipeline, const char *key, const tutti_dataset *dataset);
TUTTI_API void tutti_pipeline_end(tutti_pipeline *pipeline);

/* Builds a map or filter: reads components with tutti_graph_get_feature/_label and returns components with
 * tutti_graph_set_output. An existing name is replaced; a new name is added as a feature; the only output of a filter
 * is a truth value. Control callback: runs once, on the calling thread. */
typedef int32_t (*tutti_map_graph_fn)(tutti_graph *graph, void *user, tutti_error **err);
TUTTI_API void tutti_pipeline_map_graph(tutti_pipeline *pipeline, tutti_map_graph_fn build, void *user,
                                        int64_t parallelism);
TUTTI_API void tutti_pipeline_filter_graph(tutti_pipeline *pipeline, tutti_map_graph_fn build, void *user);

/* The graph of a transform that has one and is written with begin and end: "take_while" (also "map" and "filter").
 *
 * A "map" with the key "on_device" (bool) set to 1 runs on devices that have their own memory: the inputs of the map,
 * such as images of u8, are copied to the device instead of its results. The map must come after batch and be followed
 * only by prefetch and options, the inputs of its graph must begin with the batch, and its rows must be independent,
 * except for mixup and cutmix. Training, evaluation and prediction then run it on the devices. It runs on the host for
 * an iterator of the program, for devices that use host memory, and if it contains an op that devices do not support
 * (decoding, rotate, random_resized_crop, windows given by the data, contrast and colours). Results, including those of
 * random ops, and saved positions are the same either way. If a requested map cannot run on the devices, the log says
 * why, once, and so does tutti_dataset_get_lint. */
TUTTI_API void tutti_pipeline_set_graph(tutti_pipeline *pipeline, tutti_map_graph_fn build, void *user);

/* A predicate in C: gets the element's `count` tensors and sets *answer to 1 for true, otherwise 0. For the transforms
 * "filter_callback" (true: keep the element) and "take_while_callback" (false: end before it), written with begin and
 * end. Compute callback: runs on a library thread, one call at a time for each iterator. */
typedef int32_t (*tutti_predicate_fn)(void *user, tutti_tensor *const *inputs, int64_t count, uint8_t *answer,
                                      tutti_error **err);
TUTTI_API void tutti_pipeline_set_predicate(tutti_pipeline *pipeline, tutti_predicate_fn predicate, void *user,
                                            tutti_destroy_fn destroy);

/* A function in C that returns a dataset for an element: gets the element's `count` tensors and stores a new reference
 * in *dataset, which must have the components of the pipeline, or those of the dataset set as "like". For the
 * transforms "flat_map" and "interleave_callback", written with begin and end. Compute callback: runs on a library
 * thread, one call at a time for each iterator; called again for the same element when an iterator is restored. */
typedef int32_t (*tutti_expand_fn)(void *user, tutti_tensor *const *inputs, int64_t count, tutti_dataset **dataset,
                                   tutti_error **err);
TUTTI_API void tutti_pipeline_set_expand(tutti_pipeline *pipeline, tutti_expand_fn expand, void *user,
                                         tutti_destroy_fn destroy);

/* A component of the state that "scan" or "scan_callback", written with begin and end, passes from element to element:
 * its name, and its value before the first element of each pass. Numbers of a fixed shape, at most 64 KiB in total,
 * since the state is saved with every position of an iterator. The tensor is shared, not copied. The graph of "scan"
 * reads the state like a feature (so set the state before the graph) and returns its new value under the same name;
 * components that it does not return are unchanged. */
TUTTI_API void tutti_pipeline_set_state(tutti_pipeline *pipeline, const char *name, const tutti_tensor *initial);

/* A step of a scan in C: gets the `state_count` tensors of the state and the element's `count` tensors, and must store
 * new references in all of `new_state` and `outputs` (the tensors that it got, with a reference added, are allowed). An
 * error consumes the element and leaves the state unchanged. For the transform "scan_callback", written with begin and
 * end. The dataset set as "like" gives the components of the result, and thereby the number of outputs; without it they
 * are those of the input. Compute callback: runs on a library thread, one call at a time for each iterator. */
typedef int32_t (*tutti_scan_fn)(void *user, tutti_tensor *const *state, tutti_tensor **new_state, int64_t state_count,
                                 tutti_tensor *const *inputs, int64_t count, tutti_tensor **outputs,
                                 int64_t output_count, tutti_error **err);
TUTTI_API void tutti_pipeline_set_scan(tutti_pipeline *pipeline, tutti_scan_fn scan, void *user,
                                       tutti_destroy_fn destroy);

/* A map in C: gets the element's `count` tensors and must store `count` new references in `outputs` (the inputs, with a
 * reference added, are allowed). Compute callback: runs on library threads, several at a time when parallelism > 1. */
typedef int32_t (*tutti_map_fn)(void *user, tutti_tensor *const *inputs, tutti_tensor **outputs, int64_t count,
                                tutti_error **err);
TUTTI_API void tutti_pipeline_map(tutti_pipeline *pipeline, tutti_map_fn map, void *user, tutti_destroy_fn destroy,
                                  int64_t parallelism);

/* A map in C that may return other components than it gets: gets the element's `count` tensors and must store new
 * references in all `output_count` places of `outputs` (the tensors that it got, with a reference added, are allowed).
 * For the transform "map_callback", written with begin and end; its "parallelism" (i64) is the number of concurrent
 * calls: 1, or 0 = automatic. The dataset set as "like" gives the components of the result, and thereby the number of
 * outputs; its elements are not read. Without it they are those of the input. An element that does not fit is an error
 * that names the component, what was expected and what came. Compute callback: runs on library threads. */
typedef int32_t (*tutti_map_to_fn)(void *user, tutti_tensor *const *inputs, int64_t count, tutti_tensor **outputs,
                                   int64_t output_count, tutti_error **err);
TUTTI_API void tutti_pipeline_set_map(tutti_pipeline *pipeline, tutti_map_to_fn map, void *user,
                                      tutti_destroy_fn destroy);

/* The dataset, or the first error of the pipeline. The pipeline is empty afterwards. */
TUTTI_API int32_t tutti_pipeline_build(tutti_pipeline *pipeline, tutti_dataset **out, tutti_error **err);

/* --- datasets ----------------------------------------------------------------------------------------------------- */

TUTTI_API void tutti_dataset_ref(tutti_dataset *dataset);
TUTTI_API void tutti_dataset_unref(tutti_dataset *dataset);

/* The number of elements of one pass; TUTTI_CARDINALITY_INFINITE or _UNKNOWN. */
TUTTI_API int64_t tutti_dataset_get_cardinality(const tutti_dataset *dataset);
/* The element's components: count, name, role (0 when out of range), and the whole spec as JSON. */
TUTTI_API int64_t tutti_dataset_get_component_count(const tutti_dataset *dataset);
TUTTI_API const char *tutti_dataset_get_component_name(const tutti_dataset *dataset, int64_t index);
TUTTI_API int32_t tutti_dataset_get_component_role(const tutti_dataset *dataset, int64_t index);
TUTTI_API const char *tutti_dataset_get_spec(const tutti_dataset *dataset);
/* Common mistakes in the order of transforms, one per line, each with a suggestion; empty if there are none: no
 * prefetch at the end; cache after random transforms (shuffle, map), after repeat, or before take and split; shuffle
 * after batch or repeat; shard after shuffle; batch before a map that processes its rows one after the other, or whose
 * random ops draw once for all rows. */
TUTTI_API const char *tutti_dataset_get_lint(const tutti_dataset *dataset);

/* Splits into two datasets: the first `count` elements, and the rest. TUTTI_INVALID_ARGUMENT if the dataset is known to
 * have fewer elements. */
TUTTI_API int32_t tutti_dataset_split(const tutti_dataset *dataset, int64_t count, tutti_dataset **first,
                                      tutti_dataset **rest, tutti_error **err);

/* Counts the elements of each class: iterates over the dataset once, with the seed 0, and sets counts[0 .. class_count
 * - 1]. `component` is the label: a single integer of any type for each element, or for each row of a batch. A label
 * outside of 0 .. class_count - 1 is TUTTI_OUT_OF_RANGE, which names element, component, value and range. One-hot
 * labels, and an infinite dataset, are TUTTI_INVALID_ARGUMENT. *needed becomes the largest label plus one, 0 without
 * elements; NULL = not wanted. With `counts` NULL and class_count 0 only that number is determined, which may then be
 * up to 2^24; the iteration takes as long. After an error counts are undefined. tutti_pipeline_class_weights (ops.h)
 * uses the counts. */
TUTTI_API int32_t tutti_dataset_count_classes(const tutti_dataset *dataset, const char *component, int64_t class_count,
                                              tutti_cancel *cancel, int64_t *counts, int64_t *needed,
                                              tutti_error **err);

/* Counts the texts of a component: iterates over the dataset once, with the seed 0, and creates *texts, bytes[n], and
 * *counts, i64[n] (NULL = not wanted), which the caller owns. The most frequent text is first; texts with equal counts
 * are ordered by their bytes, so the result depends neither on the order of elements nor on threads. `component` has
 * dtype bytes and any shape, which may differ between elements; empty texts, such as padding, are counted like others.
 *
 * most_texts: keep only this many of the most frequent texts; 0 = all. least_count: keep only texts that occur at least
 * this often; 0 and 1 = all. memory_bytes: limit for all different texts, each its length and 64 bytes; 0 = 1 GiB. An
 * element that exceeds it is TUTTI_RESOURCE_EXHAUSTED, since rare texts count, too. A component of another dtype, and a
 * dataset that is known to be infinite, are TUTTI_INVALID_ARGUMENT.
 *
 * *texts is a vocabulary for tutti_lookup (ops.h), by tutti_graph_constant_tensor: 0 is the index of the most frequent
 * text. lookup(text) + 2 leaves 1 for texts that are not in it (its `missing` is -1) and 0 for the padding of a batch.
 */
TUTTI_API int32_t tutti_dataset_count_texts(const tutti_dataset *dataset, const char *component, int64_t most_texts,
                                            int64_t least_count, int64_t memory_bytes, tutti_cancel *cancel,
                                            tutti_tensor **texts, tutti_tensor **counts, tutti_error **err);

/* The elements of the dataset as an Arrow C stream of record batches: the batches of the dataset, or `batch_rows`
 * elements at a time if elements are single examples. Dimensions become fixed-size lists, dimensions that differ
 * between elements large lists, texts large binary. Numbers and texts are not copied, except from elements whose shapes
 * differ. `cancel` may be NULL; the stream keeps it, and it ends get_next, which may be called from one thread at a
 * time. *out is overwritten and belongs to the caller, who releases it; nothing is to be released after a failure. */
TUTTI_API int32_t tutti_dataset_to_arrow(const tutti_dataset *dataset, int64_t seed, int64_t batch_rows,
                                         tutti_cancel *cancel, struct ArrowArrayStream *out, tutti_error **err);

/* --- iterators ---------------------------------------------------------------------------------------------------- */

TUTTI_API int32_t tutti_iterator_create(const tutti_dataset *dataset, int64_t seed, tutti_iterator **out,
                                        tutti_error **err);
TUTTI_API void tutti_iterator_ref(tutti_iterator *iterator);
TUTTI_API void tutti_iterator_unref(tutti_iterator *iterator);

/* Moves to the next element. *has_element is 0 at the end. TUTTI_DEADLINE_EXCEEDED and TUTTI_CANCELLED are returned at
 * the latest when the current call of a function of the host, or the current run of a graph, is done. The next call
 * then continues: rows already read become part of its batch, and no element is lost. After any other error the next
 * call continues after the failed element. Meanwhile a call from a second thread gets TUTTI_FAILED_PRECONDITION.
 * Details of an error: "stage", the transform or source that failed, named as in the report; for an element "element"
 * and "epoch", its number and pass, and "file", the file that it was read from, if known. If several elements were
 * computed together, "element" may be the last of them and "elements" their number. */
TUTTI_API int32_t tutti_iterator_next(tutti_iterator *iterator, tutti_cancel *cancel, uint8_t *has_element,
                                      tutti_error **err);
/* A component of the current element; lent until the next call of next. NULL before the first element and after the
 * last. */
TUTTI_API tutti_tensor *tutti_iterator_get_component(tutti_iterator *iterator, int64_t index);
/* The position after the current element, as JSON; lent until the next call on the iterator. Later versions of the
 * library can restore it, too. */
TUTTI_API int32_t tutti_iterator_save(tutti_iterator *iterator, const char **out, tutti_error **err);
/* Statistics of the iteration so far, as JSON; lent until the next call of this function on the iterator. "elapsed_ms";
 * "stages", from the last transform to the sources; "limit", the "stage" that limits the throughput, and the "reason";
 * "text", all of it for people. The name of a stage is in "stage": the name of the transform or source, "map #2 of 3"
 * (counted from the sources) if there are several of a kind, "flat_map/map" for the datasets that a function returned,
 * which are counted together. Each stage has: elements, failures, bytes; time_ms, how long its consumer waited for it,
 * including its inputs; busy_ms, its own work; wait_in_ms, how long it waited for its inputs (a feed: for a push);
 * wait_out_ms, how long it was idle because there was no request or its buffer was full; threads, the number of its own
 * threads (busy_ms and wait_out_ms are per thread); mean_depth, the mean number of buffered elements when one was
 * taken, for stages with a buffer (prefetch, feed, maps and interleaves with threads); for ignore_errors, what was
 * ignored. If one stage does the work of another one (shuffled tensors in memory), the other one has is_counted false
 * and none of these. */
TUTTI_API int32_t tutti_iterator_get_report(tutti_iterator *iterator, const char **out, tutti_error **err);
TUTTI_API int32_t tutti_iterator_restore(tutti_iterator *iterator, const char *state, tutti_error **err);

/* --- feeds -------------------------------------------------------------------------------------------------------- */

/* A bounded queue that the host pushes elements into; single pass. Holds at most `capacity` elements. */
TUTTI_API int32_t tutti_feed_create(tutti_context *context, int64_t capacity, tutti_feed **out, tutti_error **err);
TUTTI_API void tutti_feed_ref(tutti_feed *feed);
TUTTI_API void tutti_feed_unref(tutti_feed *feed);
/* Declares a component before the feed is used: name, role, type and the shape of one element. A negative extent means
 * that the extent differs between elements; within a pushed batch all rows have the same shape. */
TUTTI_API int32_t tutti_feed_declare(tutti_feed *feed, const char *name, int32_t role, int32_t dtype,
                                     const int64_t *dims, int64_t rank, tutti_error **err);
/* Makes each element a batch of 1 to `most_rows` rows, which may differ from push to push: after the first dimension,
 * the rows, tensors have the declared shapes. The dataset then needs no "batch": each pushed batch is the batch of one
 * training step, with its rows split over the replicas. Call it before the feed is used. */
TUTTI_API int32_t tutti_feed_set_batch_size(tutti_feed *feed, int64_t most_rows, tutti_error **err);
/* Adds one element. Waits while the feed is full, until `cancel` ends the wait. The consumer must be able to run
 * meanwhile: if it would run on the thread of this call, only the token ends the call. */
TUTTI_API int32_t tutti_feed_push(tutti_feed *feed, tutti_tensor *const *components, int64_t count,
                                  tutti_cancel *cancel, tutti_error **err);
/* Ends the feed: there are no more elements; or: the reader fails with this error. */
TUTTI_API int32_t tutti_feed_finish(tutti_feed *feed, tutti_error **err);
TUTTI_API int32_t tutti_feed_fail(tutti_feed *feed, int32_t code, const char *message, tutti_error **err);
/* The number of the first element that the reader needs: 0, or the position at which a resumed training continues,
 * which is known when its hooks get TUTTI_EVENT_BEGIN. Training from a checkpoint fails if elements were pushed before
 * that. */
TUTTI_API int64_t tutti_feed_get_position(const tutti_feed *feed);

#ifdef __cplusplus
}
#endif

#endif /* TUTTI_DATASET_H_ */
