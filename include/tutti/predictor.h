/* SPDX-License-Identifier: Apache-2.0
 *
 * Predictors: a trained model that answers. Weights are read once and never change under a call; every device of the
 * strategy works on every call, as much as suits its speed (strategy.h); rows come back in the order in which they went
 * in, each exactly once.
 *
 * With a strategy of several workers (strategy.h) streams and tutti_predictor_run_all are of all of them: every worker
 * makes the same calls in the same order, with the same weights and options and, where worker_input is "whole", the
 * same dataset. All read it, and each computes one of as many batches as there are workers. With "own" each predicts
 * its data, and a batch is made of one of each worker, a row of each in turn: after tutti_pipeline_shard before batch
 * that is the order of the undivided data. Every worker gets all rows, in order; with the option worker_rows "own"
 * those that it has computed itself, with their positions. The workers go through their streams together, none more
 * than a few batches ahead, so all read to the end. One that leaves its stream before the end, fails, dies, or does not
 * ask for its next batch for as long as collective_timeout_ms says, ends the streams of the others: they get an error
 * that names it, and what they had before stands. tutti_predictor_run needs no other worker.
 *
 * A number of rows that comes for the first time costs the building of a program. On processors each has its own. On
 * GPUs numbers are rounded up to 1, 2, 3, 4, 6, 8, 12, 16, ... rows, of which up to a third is computed for nothing;
 * whole batches of a dataset, and what tutti_predictor_run gets again and again, are not. A call that is large for its
 * devices is cut into several parts for each GPU, so that some rows are copied while others are computed.
 *
 * While a process trains on several GPUs that are connected (strategy.h), others of it may predict, evaluate and train
 * on the same ones. What takes or gives back memory of a GPU or loads code there, such as building a program, waits
 * until no operation between the GPUs is half begun, and the next operation waits for that: the driver could keep both
 * waiting for each other. So a number of rows that comes for the first time holds the training up, mostly by
 * milliseconds, and by seconds where algorithms are tried for it; collective_timeout_ms goes on meanwhile. Where the
 * process takes memory of these GPUs by calls of its own, to CUDA for instance, nothing keeps that apart.
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
/* From an estimator's present weights, those that tutti_estimator_evaluate would use, on its strategy. */
TUTTI_API int32_t tutti_predictor_from_estimator(tutti_estimator *estimator, const tutti_options *options,
                                                 tutti_predictor **out, tutti_error **err);
TUTTI_API void tutti_predictor_ref(tutti_predictor *predictor);
TUTTI_API void tutti_predictor_unref(tutti_predictor *predictor);

/* Changes to the weights of another checkpoint of the same model, or of the newest good checkpoint of a directory.
 * `path` NULL or "" = the newest weights of where the predictor came from: its estimator, or the path that it was
 * opened with. Calls in flight finish on the old ones. On failure those stay; TUTTI_FAILED_PRECONDITION when the
 * checkpoint's model has other inputs or outputs. */
TUTTI_API int32_t tutti_predictor_reload(tutti_predictor *predictor, const char *path, tutti_cancel *cancel,
                                         tutti_error **err);
/* The training step of the weights in use; -1 when `predictor` is not a predictor handle. */
TUTTI_API int64_t tutti_predictor_get_step(const tutti_predictor *predictor);
/* A JSON object: inputs and outputs with names, types and shapes. */
TUTTI_API const char *tutti_predictor_get_signature(const tutti_predictor *predictor);

/* How `rows` rows are computed on the first device, as JSON: {"step", "rows", "device", "computed_rows",
 * "workspace_bytes", "kernels": [{"node", "op", "kernel", "layout", "bytes"}, ...]}, "computed_rows" what they are
 * rounded up to, kernels in the order in which they run, "kernel" naming the implementation; on GPUs
 * "library": which libraries were asked for kernels, in what version, or why one is missing; where devices of other
 * kinds work with it, "others" has the same of one of each. With `timed_runs` > 0 each kernel, and the whole, has
 * "seconds", those of the fastest of so many runs over zeros. For people and tools: names and layouts may change with
 * any release. Lent until the next call of this function on the predictor. */
TUTTI_API int32_t tutti_predictor_describe_plan(tutti_predictor *predictor, int64_t rows, int64_t timed_runs,
                                                tutti_cancel *cancel, const char **out, tutti_error **err);

/* Predicts the rows of named tensors, which share their first dimension. */
TUTTI_API int32_t tutti_predictor_run(tutti_predictor *predictor, const char *const *names, tutti_tensor *const *inputs,
                                      int64_t count, tutti_cancel *cancel, tutti_batch **out, tutti_error **err);
/* Predicts a whole dataset into one batch, of all workers where there are several. */
TUTTI_API int32_t tutti_predictor_run_all(tutti_predictor *predictor, const tutti_dataset *dataset,
                                          tutti_cancel *cancel, tutti_batch **out, tutti_error **err);

/* Predicts a dataset batch by batch, in order, a few batches ahead of the reader. */
TUTTI_API int32_t tutti_prediction_stream_open(tutti_predictor *predictor, const tutti_dataset *dataset,
                                               tutti_prediction_stream **out, tutti_error **err);
/* The next batch; NULL with TUTTI_OK at the end. After TUTTI_DEADLINE_EXCEEDED and TUTTI_CANCELLED the next call goes
 * on and no row is lost; any other error ends the stream, behind all batches that stand before it. A second thread gets
 * TUTTI_FAILED_PRECONDITION meanwhile. */
TUTTI_API int32_t tutti_prediction_stream_next(tutti_prediction_stream *stream, tutti_cancel *cancel, tutti_batch **out,
                                               tutti_error **err);
/* Ends the stream early; legal at any time, and not needed at the end. */
TUTTI_API int32_t tutti_prediction_stream_close(tutti_prediction_stream *stream, tutti_cancel *cancel,
                                                tutti_error **err);
TUTTI_API void tutti_prediction_stream_ref(tutti_prediction_stream *stream);
TUTTI_API void tutti_prediction_stream_unref(tutti_prediction_stream *stream);

/* A batch of results: named tensors with the same number of rows. Immutable. */
TUTTI_API void tutti_batch_ref(tutti_batch *batch);
TUTTI_API void tutti_batch_unref(tutti_batch *batch);
/* The position of the first row in the dataset (of all workers' rows, where there are several; among the own ones with
 * both worker_input and worker_rows "own"), and the number of rows; -1 when `batch` is not a batch handle. */
TUTTI_API int64_t tutti_batch_get_first_row(const tutti_batch *batch);
TUTTI_API int64_t tutti_batch_get_row_count(const tutti_batch *batch);
TUTTI_API int64_t tutti_batch_get_output_count(const tutti_batch *batch);
TUTTI_API const char *tutti_batch_get_output_name(const tutti_batch *batch, int64_t index);
/* An output by name, lent while the batch lives; NULL when there is none. */
TUTTI_API tutti_tensor *tutti_batch_get_output(const tutti_batch *batch, const char *name);

#ifdef __cplusplus
}
#endif

#endif /* TUTTI_PREDICTOR_H_ */
