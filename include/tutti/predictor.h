/* SPDX-License-Identifier: Apache-2.0
 *
 * Predictors: a trained model that predicts. Weights are loaded once and do not change during a call. Every device of
 * the strategy works on every call, according to its speed (strategy.h). Rows are returned in the order of the input,
 * each exactly once.
 *
 * With a strategy of several workers (strategy.h), streams and tutti_predictor_run_all involve all workers: every
 * worker makes the same calls in the same order, with the same weights and options and, if worker_input is "whole", the
 * same dataset. All workers read it, and each computes every n-th batch of n workers. With "own" each worker predicts
 * its own data, and a batch combines one batch of each worker, one row of each in turn: after tutti_pipeline_shard
 * before batch that is the order of the undivided data. Every worker gets all rows, in order; with the option
 * worker_rows "own" it gets the rows that it computed itself, with their positions. The workers process their streams
 * together, at most a few batches apart, so all must read to the end. If a worker leaves its stream early, fails, dies,
 * or does not request its next batch within collective_timeout_ms, the streams of the others end with an error that
 * names it; batches already returned stay valid. tutti_predictor_run needs no other worker.
 *
 * The first call with a new number of rows builds a program. CPUs use one program for each number. On GPUs the number
 * is rounded up to 1, 2, 3, 4, 6, 8, 12, 16, ... rows, so up to one third of the rows is computed in vain; whole
 * batches of a dataset, and numbers that tutti_predictor_run gets repeatedly, are not rounded. A call that is large for
 * its devices is split into several parts for each GPU, so that some rows are copied while others are computed.
 *
 * While a process trains on several connected GPUs (strategy.h), other calls of the process may predict, evaluate and
 * train on the same GPUs. Operations that allocate or free GPU memory or load code there, such as building a program,
 * wait until no operation between the GPUs is partly started, and the next such operation waits for them; otherwise the
 * driver could deadlock. So the first call with a new number of rows delays the training, usually by milliseconds, and
 * by seconds if algorithms are tried for it; collective_timeout_ms continues to count. Memory that the process
 * allocates on these GPUs by its own calls, to CUDA for instance, is not protected in this way.
 *
 * Threads: any number of threads may call one predictor at the same time. Streams and batches serve one thread each.
 */
#ifndef TUTTI_PREDICTOR_H_
#define TUTTI_PREDICTOR_H_

#include <tutti/estimator.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tutti_predictor tutti_predictor;
typedef struct tutti_prediction_stream tutti_prediction_stream;
typedef struct tutti_batch tutti_batch;

/* From a checkpoint directory, or the newest good checkpoint of a model_dir; no model function needed. `strategy` NULL
 * = all devices of the context. Options of schema "predictor" or NULL. */
TUTTI_API int32_t tutti_predictor_open(tutti_context *context, const char *path, const tutti_strategy *strategy,
                                       const tutti_options *options, tutti_predictor **out, tutti_error **err);
/* From the current weights of an estimator, those that tutti_estimator_evaluate would use, on its strategy. */
TUTTI_API int32_t tutti_predictor_from_estimator(tutti_estimator *estimator, const tutti_options *options,
                                                 tutti_predictor **out, tutti_error **err);
TUTTI_API void tutti_predictor_ref(tutti_predictor *predictor);
TUTTI_API void tutti_predictor_unref(tutti_predictor *predictor);

/* Switches to the weights of another checkpoint of the same model, or of the newest good checkpoint of a directory.
 * `path` NULL or "" = the newest weights of the origin of the predictor: its estimator, or the path that it was opened
 * with. Calls in progress finish with the old weights. After a failure the old weights stay in use;
 * TUTTI_FAILED_PRECONDITION if the model of the checkpoint has other inputs or outputs. */
TUTTI_API int32_t tutti_predictor_reload(tutti_predictor *predictor, const char *path, tutti_cancel *cancel,
                                         tutti_error **err);
/* The training step of the weights in use; -1 when `predictor` is not a predictor handle. */
TUTTI_API int64_t tutti_predictor_get_step(const tutti_predictor *predictor);
/* A JSON object: {"inputs": [{"name", "dtype", "dims"}, ...], "outputs": [...], with the same}. A dim is a number, or
 * where only data tell it a name, such as "batch". */
TUTTI_API const char *tutti_predictor_get_signature(const tutti_predictor *predictor);

/* The plan for `rows` rows on the first device, as JSON: {"step", "rows", "device", "computed_rows", "workspace_bytes",
 * "kernels": [{"node", "op", "kernel", "layout", "bytes"}, ...]}: "computed_rows" is the rounded number of rows;
 * kernels are in the order of execution, and "kernel" names the implementation. On GPUs "library" lists the libraries
 * that are used, with their versions, or why one is missing. If devices of other kinds are involved, "others" has the
 * same for one device of each kind. With the backend pjrt "programs" lists what the library says of each compiled
 * program: {"node", "code_bytes", "argument_bytes", "result_bytes", "in_place_bytes", "temporary_bytes", "operations"},
 * -1 for what it does not tell; kernels are its own affair. With `timed_runs` > 0 each kernel, and the whole plan, has
 * "seconds", the time of the fastest of that many runs over zeros. For people and tools: names and layouts may change
 * with any release. Lent until the next call of this function on the predictor. */
TUTTI_API int32_t tutti_predictor_describe_plan(tutti_predictor *predictor, int64_t rows, int64_t timed_runs,
                                                tutti_cancel *cancel, const char **out, tutti_error **err);

/* Predicts the rows of named tensors, which have the same first dimension. */
TUTTI_API int32_t tutti_predictor_run(tutti_predictor *predictor, const char *const *names, tutti_tensor *const *inputs,
                                      int64_t count, tutti_cancel *cancel, tutti_batch **out, tutti_error **err);
/* Predicts a whole dataset into one batch, with the rows of all workers if there are several. */
TUTTI_API int32_t tutti_predictor_run_all(tutti_predictor *predictor, const tutti_dataset *dataset,
                                          tutti_cancel *cancel, tutti_batch **out, tutti_error **err);

/* Predicts a dataset batch by batch, in order, a few batches ahead of the reader. */
TUTTI_API int32_t tutti_prediction_stream_open(tutti_predictor *predictor, const tutti_dataset *dataset,
                                               tutti_prediction_stream **out, tutti_error **err);
/* The next batch; NULL with TUTTI_OK at the end. After TUTTI_DEADLINE_EXCEEDED and TUTTI_CANCELLED the next call
 * continues and no row is lost; any other error ends the stream, after all batches before it. Meanwhile a call from a
 * second thread gets TUTTI_FAILED_PRECONDITION. */
TUTTI_API int32_t tutti_prediction_stream_next(tutti_prediction_stream *stream, tutti_cancel *cancel, tutti_batch **out,
                                               tutti_error **err);
/* Ends the stream early; allowed at any time, and not needed at the end. */
TUTTI_API int32_t tutti_prediction_stream_close(tutti_prediction_stream *stream, tutti_cancel *cancel,
                                                tutti_error **err);
TUTTI_API void tutti_prediction_stream_ref(tutti_prediction_stream *stream);
TUTTI_API void tutti_prediction_stream_unref(tutti_prediction_stream *stream);

/* A batch of results: named tensors with the same number of rows. Immutable. */
TUTTI_API void tutti_batch_ref(tutti_batch *batch);
TUTTI_API void tutti_batch_unref(tutti_batch *batch);
/* The position of the first row in the dataset (among the rows of all workers, if there are several; among the own rows
 * if worker_input and worker_rows are both "own"), and the number of rows; -1 when `batch` is not a batch handle. */
TUTTI_API int64_t tutti_batch_get_first_row(const tutti_batch *batch);
TUTTI_API int64_t tutti_batch_get_row_count(const tutti_batch *batch);
TUTTI_API int64_t tutti_batch_get_output_count(const tutti_batch *batch);
TUTTI_API const char *tutti_batch_get_output_name(const tutti_batch *batch, int64_t index);
/* An output by name, lent while the batch lives; NULL if there is no such output. */
TUTTI_API tutti_tensor *tutti_batch_get_output(const tutti_batch *batch, const char *name);

#ifdef __cplusplus
}
#endif

#endif /* TUTTI_PREDICTOR_H_ */
