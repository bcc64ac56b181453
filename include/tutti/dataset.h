/* SPDX-License-Identifier: Apache-2.0
 *
 * Datasets: where examples come from. A pipeline is written step by step and built into a dataset, which is an
 * immutable description; an iterator owns all progress. Typed helpers for sources (tutti_source_range, ...) and
 * transforms (tutti_pipeline_shuffle, ...) are in ops.h (generated).
 *
 * Elements are ordered, named tensors: features, labels and optional weights. Order is the same in every run, whatever
 * the number of threads. Batch sizes are global: the strategy divides each batch over its replicas.
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

/* --- writing a pipeline: errors are kept and reported by build ---------------------------------------------------- */

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
/* Adds a component from an IDX file (plain or gzip), as the MNIST family uses. */
TUTTI_API void tutti_pipeline_add_idx(tutti_pipeline *pipeline, const char *name, int32_t role, const char *path);
/* Starts from what a function in C gives. First its components are declared, each with the shape of one element, in
 * which a negative extent is one that differs between elements.
 *
 * The function stores new references to the tensors of element `index` of pass `pass` in `outputs` and sets
 * *has_element to 1, or leaves it 0 behind the last element. It is asked for 0, 1, 2, ..., in each pass anew; a walk
 * that was restored begins with the number that comes next, so what can only be read forward starts again and skips to
 * it. An error consumes its element, but for TUTTI_CANCELLED and TUTTI_DEADLINE_EXCEEDED. Compute callback: runs on a
 * library thread, one call at a time for each iterator. */
typedef int32_t (*tutti_generator_fn)(void *user, int64_t pass, int64_t index, tutti_tensor **outputs, int64_t count,
                                      uint8_t *has_element, tutti_error **err);
TUTTI_API void tutti_pipeline_declare(tutti_pipeline *pipeline, const char *name, int32_t role, int32_t dtype,
                                      const int64_t *dims, int64_t rank);
TUTTI_API void tutti_pipeline_add_generator(tutti_pipeline *pipeline, tutti_generator_fn next, void *user,
                                            tutti_destroy_fn destroy);
/* What the source "arrow" (tutti_source_arrow) reads, set before it is begun: an Arrow C stream of record batches.
 * Takes the stream in every case: it is released when it was read, or with the pipeline. Compute callbacks: arrays are
 * released on the thread that drops the last tensor over them. */
TUTTI_API void tutti_pipeline_set_arrow_stream(tutti_pipeline *pipeline, struct ArrowArrayStream *stream);
/* Starts from what a feed receives, or from an existing dataset. */
TUTTI_API void tutti_pipeline_add_feed(tutti_pipeline *pipeline, tutti_feed *feed);
TUTTI_API void tutti_pipeline_add_dataset(tutti_pipeline *pipeline, const tutti_dataset *dataset);

/* The token that ends the looking at files from now on, until the pipeline is built; NULL takes it away. Sources look
 * at their files when they are added (or, IDX files, with what follows): they list directories, open each file, read
 * headers, and npy, npz and IDX files whole; a cache in a file asks for the sizes of what it was filled from. When
 * the token ends that, the build gives TUTTI_CANCELLED or TUTTI_DEADLINE_EXCEEDED; as after any other error, the
 * pipeline is empty then. Walks do not follow this token. */
TUTTI_API void tutti_pipeline_set_cancel(tutti_pipeline *pipeline, tutti_cancel *cancel);

/* One transform is written as begin, parameters, end: begin("shuffle", 1), set_i64("buffer_size", 1000), end. On a
 * pipeline without a source it must be a source instead: begin("text_lines", 1), set_string("paths", "part-*.txt"),
 * end. A parameter that takes several texts gets one more with each set_string. */
TUTTI_API void tutti_pipeline_begin(tutti_pipeline *pipeline, const char *transform, int32_t revision);
TUTTI_API void tutti_pipeline_set_bool(tutti_pipeline *pipeline, const char *key, uint8_t value);
TUTTI_API void tutti_pipeline_set_i64(tutti_pipeline *pipeline, const char *key, int64_t value);
TUTTI_API void tutti_pipeline_set_f64(tutti_pipeline *pipeline, const char *key, double value);
TUTTI_API void tutti_pipeline_set_string(tutti_pipeline *pipeline, const char *key, const char *value);
/* Lists of numbers. */
TUTTI_API void tutti_pipeline_set_i64s(tutti_pipeline *pipeline, const char *key, const int64_t *values, int64_t count);
TUTTI_API void tutti_pipeline_set_f64s(tutti_pipeline *pipeline, const char *key, const double *values, int64_t count);
/* For zip, concatenate, interleave and sample_from, once for each dataset behind the own one. The key "like" says
 * what map_callback, map_process and scan_callback give, and what the datasets of flat_map and interleave_callback are
 * like: only its components count. Other transforms refuse it. */
TUTTI_API void tutti_pipeline_set_dataset(tutti_pipeline *pipeline, const char *key, const tutti_dataset *dataset);
TUTTI_API void tutti_pipeline_end(tutti_pipeline *pipeline);

/* Builds a map or filter: reads components with tutti_graph_get_feature/_label and gives components with
 * tutti_graph_set_output (a name that exists is replaced, a new one is added as a feature; for a filter the one output
 * is a truth value). Control callback: runs once, on the calling thread. */
typedef int32_t (*tutti_map_graph_fn)(tutti_graph *graph, void *user, tutti_error **err);
TUTTI_API void tutti_pipeline_map_graph(tutti_pipeline *pipeline, tutti_map_graph_fn build, void *user,
                                        int64_t parallelism);
TUTTI_API void tutti_pipeline_filter_graph(tutti_pipeline *pipeline, tutti_map_graph_fn build, void *user);

/* The graph of a transform written with begin and end that takes one: "take_while" (also "map" and "filter").
 *
 * A "map" whose key "on_device" (bool) is 1 asks that devices with memory of their own run it: they get what goes into
 * it, such as images of u8, in place of what comes out. It comes behind batch, with nothing but prefetch and options
 * behind it, its graph's inputs begin with the batch, and rows do not depend on each other, but by mixup and cutmix.
 * Training, evaluation and prediction then leave it to the devices; a walk of the program's own, devices that read the
 * host's memory, and an op that is not made on devices (decoding, rotate, random_resized_crop, windows that the data
 * tells, contrast and colours) leave it to the host. Results are the same either way, those of random ops too, and so
 * are saved positions. Where it was asked for and cannot be, the log says why, once, and tutti_dataset_get_lint too. */
TUTTI_API void tutti_pipeline_set_graph(tutti_pipeline *pipeline, tutti_map_graph_fn build, void *user);

/* A question about an element in C: gets the element's `count` tensors and sets *answer to 1 for yes; 0 otherwise. For
 * the transforms "filter_callback" (yes: keep the element) and "take_while_callback" (no: end before it), written with
 * begin and end. Compute callback: runs on a library thread, one call at a time for each iterator. */
typedef int32_t (*tutti_predicate_fn)(void *user, tutti_tensor *const *inputs, int64_t count, uint8_t *answer,
                                      tutti_error **err);
TUTTI_API void tutti_pipeline_set_predicate(tutti_pipeline *pipeline, tutti_predicate_fn predicate, void *user,
                                            tutti_destroy_fn destroy);

/* A dataset for an element in C: gets the element's `count` tensors and stores a new reference in *dataset, which must
 * have the components of the pipeline, or those of the dataset set as "like". For the transforms "flat_map" and
 * "interleave_callback", written with begin and end. Compute callback: runs on a library thread, one call at a time for
 * each iterator; called again for the same element when a walk is resumed. */
typedef int32_t (*tutti_expand_fn)(void *user, tutti_tensor *const *inputs, int64_t count, tutti_dataset **dataset,
                                   tutti_error **err);
TUTTI_API void tutti_pipeline_set_expand(tutti_pipeline *pipeline, tutti_expand_fn expand, void *user,
                                         tutti_destroy_fn destroy);

/* A component of the state of a transform that carries one from element to element, "scan" or "scan_callback", written
 * with begin and end: its name, and its value before the first element of each pass. Numbers of a fixed shape, at most
 * 64 KiB in all, since it is saved with every position of an iterator; the tensor is shared, not copied. The graph of
 * "scan" reads the state like a feature (so it is set before the graph) and gives it anew under its name; what it does
 * not give anew stays. */
TUTTI_API void tutti_pipeline_set_state(tutti_pipeline *pipeline, const char *name, const tutti_tensor *initial);

/* A step of a scan in C: gets the `state_count` tensors of the state and the element's `count` tensors, and must store
 * new references in all of `new_state` and `outputs` (those it got, with a reference added, are allowed). An error
 * consumes the element and leaves the state as it was. For the transform "scan_callback", written with begin and end.
 * The dataset set as "like" says what it yields, and thereby how many outputs there are; without one they are as the
 * inputs. Compute callback: runs on a library thread, one call at a time for each iterator. */
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

/* A map in C that may give other components than it gets: gets the element's `count` tensors and must store new
 * references in all `output_count` places of `outputs` (those it got, with a reference added, are allowed). For the
 * transform "map_callback", written with begin and end, whose "parallelism" (i64) says how many calls there may be at a
 * time: 1, or 0 = automatic. The dataset set as "like" says what the map gives, and thereby how many outputs there are;
 * its elements are not read. Without one they are as the inputs. An element that does not fit is an error which names
 * the component, what was expected and what came. Compute callback: runs on library threads. */
typedef int32_t (*tutti_map_to_fn)(void *user, tutti_tensor *const *inputs, int64_t count, tutti_tensor **outputs,
                                   int64_t output_count, tutti_error **err);
TUTTI_API void tutti_pipeline_set_map(tutti_pipeline *pipeline, tutti_map_to_fn map, void *user,
                                      tutti_destroy_fn destroy);

/* The dataset, or the first error the pipeline met. The pipeline is empty afterwards. */
TUTTI_API int32_t tutti_pipeline_build(tutti_pipeline *pipeline, tutti_dataset **out, tutti_error **err);

/* --- datasets ----------------------------------------------------------------------------------------------------- */

TUTTI_API void tutti_dataset_ref(tutti_dataset *dataset);
TUTTI_API void tutti_dataset_unref(tutti_dataset *dataset);

/* How many elements one pass gives; TUTTI_CARDINALITY_INFINITE or _UNKNOWN. */
TUTTI_API int64_t tutti_dataset_get_cardinality(const tutti_dataset *dataset);
/* The element's components: count, name, role (0 when out of range), and the whole spec as JSON. */
TUTTI_API int64_t tutti_dataset_get_component_count(const tutti_dataset *dataset);
TUTTI_API const char *tutti_dataset_get_component_name(const tutti_dataset *dataset, int64_t index);
TUTTI_API int32_t tutti_dataset_get_component_role(const tutti_dataset *dataset, int64_t index);
TUTTI_API const char *tutti_dataset_get_spec(const tutti_dataset *dataset);
/* Well-known mistakes in the order of transforms, one per line, each with what is better; empty when there are none. No
 * prefetch at the end; cache after what is random (shuffle, map) or after repeat, or before take and split; shuffle
 * after batch or repeat; shard after shuffle; batch before a map that sees its rows one after the other, or whose
 * random ops draw once for all. */
TUTTI_API const char *tutti_dataset_get_lint(const tutti_dataset *dataset);

/* Two datasets: the first `count` elements, and the rest. */
TUTTI_API int32_t tutti_dataset_split(const tutti_dataset *dataset, int64_t count, tutti_dataset **first,
                                      tutti_dataset **rest, tutti_error **err);

/* How often each class comes: walks over the dataset once, with the seed 0, and sets counts[0 .. class_count - 1].
 * `component` is the label: a single integer of any type for each element, or for each row of a batch; a label outside
 * of 0 .. class_count - 1 is TUTTI_OUT_OF_RANGE, which names element, component, value and range, and labels that are
 * one-hot are TUTTI_INVALID_ARGUMENT, as is a dataset without an end. *needed becomes one more than the largest label,
 * 0 without elements; NULL = not wanted. `counts` NULL and class_count 0 ask for that number alone, which may be up to
 * 2^24 then; the walk takes as long. After an error counts are undefined. tutti_pipeline_class_weights (ops.h) takes
 * them. */
TUTTI_API int32_t tutti_dataset_count_classes(const tutti_dataset *dataset, const char *component, int64_t class_count,
                                              tutti_cancel *cancel, int64_t *counts, int64_t *needed,
                                              tutti_error **err);

/* How often each text comes: walks over the dataset once, with the seed 0, and makes *texts, bytes[n], and *counts,
 * i64[n] (NULL = not wanted), which the caller owns: the most frequent text first, texts of one count in the order of
 * their bytes, so neither the order of elements nor threads make a difference. `component` is of dtype bytes and any
 * shape, which may differ between elements; empty texts, as those that fill up rows, are texts like others.
 *
 * most_texts: so many of the most frequent ones; 0 = all. least_count: only texts that came so often; 0 and 1 = all.
 * memory_bytes: what all different texts may take, each its length and 64 bytes; 0 = 1 GiB. An element that goes beyond
 * is TUTTI_RESOURCE_EXHAUSTED, for rare texts count for it too. Another component, and a dataset that is known to have
 * no end, are TUTTI_INVALID_ARGUMENT.
 *
 * *texts is a vocabulary for tutti_lookup (ops.h), by tutti_graph_constant_tensor: 0 is the index of the most frequent
 * text. lookup(text) + 2 leaves 1 for what is not in it (its `missing` is -1) and 0 for the padding of a batch. */
TUTTI_API int32_t tutti_dataset_count_texts(const tutti_dataset *dataset, const char *component, int64_t most_texts,
                                            int64_t least_count, int64_t memory_bytes, tutti_cancel *cancel,
                                            tutti_tensor **texts, tutti_tensor **counts, tutti_error **err);

/* A walk over the dataset as an Arrow C stream of record batches: those of the dataset, or `batch_rows` elements at a
 * time where elements are single examples. Dimensions become fixed-size lists, those that differ between elements large
 * lists, texts large binary. Numbers and texts are not copied, except out of elements whose shapes differ. `cancel` may
 * be NULL; it is kept as long as the stream and ends its get_next, which may be called from one thread at a time. *out
 * is overwritten and belongs to the caller, who releases it; nothing is to be released after a failure. */
TUTTI_API int32_t tutti_dataset_to_arrow(const tutti_dataset *dataset, int64_t seed, int64_t batch_rows,
                                         tutti_cancel *cancel, struct ArrowArrayStream *out, tutti_error **err);

/* --- iterators ---------------------------------------------------------------------------------------------------- */

TUTTI_API int32_t tutti_iterator_create(const tutti_dataset *dataset, int64_t seed, tutti_iterator **out,
                                        tutti_error **err);
TUTTI_API void tutti_iterator_ref(tutti_iterator *iterator);
TUTTI_API void tutti_iterator_unref(tutti_iterator *iterator);

/* Moves to the next element. *has_element is 0 at the end. After TUTTI_DEADLINE_EXCEEDED and TUTTI_CANCELLED, which
 * come at the latest when the call of a function of the host, or what a graph computes at once, is done, the next call
 * goes on: what was read of a batch is part of what it gives, and no element is lost. After any other error it goes on
 * behind the element that failed. A second thread gets TUTTI_FAILED_PRECONDITION meanwhile. Details of an error:
 * "stage", what failed, as the report calls it; of an element "element" and "epoch", its number and pass, and "file",
 * what it was read from, where that is known. Where several elements were computed together, "element" may be the last
 * of them and "elements" their number. */
TUTTI_API int32_t tutti_iterator_next(tutti_iterator *iterator, tutti_cancel *cancel, uint8_t *has_element,
                                      tutti_error **err);
/* A component of the element last moved to; lent until the next call of next. NULL before the first and after the last.
 */
TUTTI_API tutti_tensor *tutti_iterator_get_component(tutti_iterator *iterator, int64_t index);
/* The position after the element last given, as JSON; lent until the next call on the iterator. */
TUTTI_API int32_t tutti_iterator_save(tutti_iterator *iterator, const char **out, tutti_error **err);
/* What the walk has cost until now, as JSON; lent until the next call of this function on the iterator. "elapsed_ms";
 * "stages", from the last transform to the sources, each with its name as "stage": what the transform or source is
 * called, "map #2 of 3" (counted from the sources) where there are several of a kind, "flat_map/map" in the datasets
 * that a function made, which are counted together; "limit", the "stage" that limits the walk, and the "reason";
 * "text", all that for people. Of a stage: elements, failures, bytes; time_ms, how long it was waited for, its inputs
 * included; busy_ms, its own work; wait_in_ms, how long it waited for its inputs (a feed: for a push); wait_out_ms, how
 * long it stood still since nobody asked or its buffer was full; threads of its own (the times of work and of a full
 * buffer are those of one); mean_depth, elements that lay ready when one was taken, where others than who takes them
 * fill a buffer (prefetch, feed, maps and interleaves with threads); of ignore_errors what was ignored. A stage whose
 * work another one does in one go with its own (tensors in memory that are shuffled) has is_counted false and none of
 * these. */
TUTTI_API int32_t tutti_iterator_get_report(tutti_iterator *iterator, const char **out, tutti_error **err);
TUTTI_API int32_t tutti_iterator_restore(tutti_iterator *iterator, const char *state, tutti_error **err);

/* --- feeds -------------------------------------------------------------------------------------------------------- */

/* A bounded queue the host pushes elements into; single pass. Holds at most `capacity` elements. */
TUTTI_API int32_t tutti_feed_create(tutti_context *context, int64_t capacity, tutti_feed **out, tutti_error **err);
TUTTI_API void tutti_feed_ref(tutti_feed *feed);
TUTTI_API void tutti_feed_unref(tutti_feed *feed);
/* Declares a component before the feed is used: name, role, type and the shape of one element, in which a negative
 * extent is one that differs between elements; between the rows of a batch that is pushed none does. */
TUTTI_API int32_t tutti_feed_declare(tutti_feed *feed, const char *name, int32_t role, int32_t dtype,
                                     const int64_t *dims, int64_t rank, tutti_error **err);
/* Makes each element a batch, of 1 to `most_rows` rows, which may differ from push to push: behind their first
 * dimension, the rows, tensors have the shapes that were declared. The dataset needs no "batch" then: what is pushed is
 * what a step of training takes, its rows split over the replicas. Before the feed is used. */
TUTTI_API int32_t tutti_feed_set_batch_size(tutti_feed *feed, int64_t most_rows, tutti_error **err);
/* Adds one element; waits while the feed is full, as long as `cancel` allows: what takes elements out must be able to
 * run meanwhile, and a call on the thread that would do so next ends by its token alone. */
TUTTI_API int32_t tutti_feed_push(tutti_feed *feed, tutti_tensor *const *components, int64_t count,
                                  tutti_cancel *cancel, tutti_error **err);
/* No more elements will come; or: the reader shall fail with this error. */
TUTTI_API int32_t tutti_feed_finish(tutti_feed *feed, tutti_error **err);
TUTTI_API int32_t tutti_feed_fail(tutti_feed *feed, int32_t code, const char *message, tutti_error **err);
/* The number of the first element that the reader needs: 0, or where a resumed training goes on, which is known when
 * its hooks get TUTTI_EVENT_BEGIN. Training from a checkpoint fails where elements were pushed before that. */
TUTTI_API int64_t tutti_feed_get_position(const tutti_feed *feed);

#ifdef __cplusplus
}
#endif

#endif /* TUTTI_DATASET_H_ */
