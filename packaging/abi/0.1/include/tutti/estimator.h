/* SPDX-License-Identifier: Apache-2.0
 *
 * Estimators: a model function and run options, trained on datasets by a strategy.
 *
 * Threads: one train at a time (a second one gets TUTTI_FAILED_PRECONDITION), concurrently with any number of evaluate
 * and predict calls.
 */
#ifndef TUTTI_ESTIMATOR_H_
#define TUTTI_ESTIMATOR_H_

#include <tutti/dataset.h>
#include <tutti/hook.h>
#include <tutti/strategy.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tutti_estimator tutti_estimator;
typedef struct tutti_session tutti_session;
typedef struct tutti_result tutti_result;

/* Builds the model for one mode; see graph.h. Called once per mode, on the thread whose call needs it. The variables of
 * EVAL and PREDICT must be among those of TRAIN. */
typedef int32_t (*tutti_model_fn)(tutti_graph *graph, int32_t mode, void *user, tutti_error **err);

/* Why training returned. */
#define TUTTI_REASON_MAX_STEPS 1
#define TUTTI_REASON_EPOCHS 2
#define TUTTI_REASON_END_OF_INPUT 3
#define TUTTI_REASON_STOPPED 4
#define TUTTI_REASON_MAX_SECONDS 5

/* An estimator. `strategy` NULL = the default strategy of the context (that of a strategy's context, otherwise
 * tutti_strategy_create_auto: all GPUs, or all processor cores), or a mirrored strategy over num_gpus GPUs. Without a
 * strategy a model that mixes rows (graph.h) trains on one of these devices. Options of schema "run" (NULL = defaults):
 * model_dir, num_gpus, params, seed, save_checkpoints_steps, save_checkpoints_secs, keep_checkpoint_max,
 * log_step_count_steps, save_summary_steps, summary_dir, save_histogram_steps, summary_flush_secs, metrics_file,
 * metrics_file_steps, determinism, logical_replicas, precision, accumulation_steps, device_prefetch,
 * threads_per_replica, all_reduce, gradient_dtype, raw_weights, without_predictions, keep_gradients, keep_outputs,
 * collective_timeout_ms. tutti_options_describe_key describes each option. Their values are logged, and checkpoints
 * keep them with their origin, set or default, except model_dir, summary_dir and metrics_file.
 *
 * Where summaries are written (save_summary_steps above 0, and a summary_dir or model_dir) there is also the record of
 * the run: run.jsonl, to which each training (from tutti_estimator_train or the opening to the closing of a session,
 * also if it ends with an error or a cancel) and each evaluation appends one line with a JSON object. Only the first of
 * several workers writes. The commands "tutti report" and "tutti explain" read it. Both kinds have "event", "time"
 * (seconds since 1970), "seconds", "step", "examples", "loss" (null if it is NaN or there is none), "metrics" (numbers
 * by name) and "tensors" (other metrics of up to 65,536 elements, as nested arrays).
 *   "training"   first_step, reason (as TUTTI_REASON_..., or ERROR or CANCELLED with "error", the text), input_report
 *                and step_report (tutti_result_get_input_report and _step_report), input_wait_seconds, options
 *                ({name: {"value", "origin"}}), settings (batch_size, replicas, optimizer and its attributes),
 *                environment ({"version", "strategy", "replicas", "workers", "threads", "devices"}), variables
 *                ([{"name", "dtype", "shape", "parameters", "trainable"}]), memory (bytes: of the process now and at
 *                most, of one copy of weights, slots and gradients, of intermediate results) and execution (how steps
 *                were computed, for people)
 *   "evaluation" batches; "step" is that of the weights
 * Numbers that are not finite are texts, "NaN" or "Infinity". Keys may be added. A half line of a process that was
 * killed is ended before the next one; readers skip it. */
TUTTI_API int32_t tutti_estimator_create(tutti_context *context, tutti_model_fn model_fn, void *user,
                                         tutti_destroy_fn destroy, const tutti_strategy *strategy,
                                         const tutti_options *run_options, tutti_estimator **out, tutti_error **err);
TUTTI_API void tutti_estimator_ref(tutti_estimator *estimator);
TUTTI_API void tutti_estimator_unref(tutti_estimator *estimator);

/* Trains. Options of schema "train": steps (additional), max_steps (in total) or epochs; none = until the input ends;
 * max_seconds, after which training ends with the step that is running (TUTTI_REASON_MAX_SECONDS); and early_stopping,
 * the name of a value: training ends earlier (TUTTI_REASON_STOPPED) if it has not improved for
 * early_stopping_patience_steps (early_stopping_higher_is_better, _min_steps, _every_steps). Continues from the newest
 * checkpoint in model_dir, in the middle of an epoch if necessary. `hooks` and `result` may be NULL. */
TUTTI_API int32_t tutti_estimator_train(tutti_estimator *estimator, const tutti_dataset *dataset,
                                        const tutti_options *options, const tutti_hooks *hooks, tutti_cancel *cancel,
                                        tutti_result **result, tutti_error **err);

/* Creates the variables before the first training, without a step: with initial values from the seed, or the values of
 * the newest checkpoint in model_dir. They can then be listed, read, written, and used to evaluate and predict;
 * training continues from them. `dataset` gives the input of the model, including batches, as for training; no elements
 * are read from it or taken from a feed. `weights` is NULL, or a checkpoint, a directory of checkpoints (its newest
 * good one is used) or a file in the safetensors format. Its tensors must have the names, types and shapes of the
 * variables of the model: all of them, and no others; moving averages are reset to them. With a model_dir they are then
 * also in a checkpoint. Otherwise a model that was trained, and an interrupted run, stay unchanged. With several
 * workers, all workers make this call. */
TUTTI_API int32_t tutti_estimator_initialize(tutti_estimator *estimator, const tutti_dataset *dataset,
                                             const char *weights, tutti_cancel *cancel, tutti_error **err);

/* Metrics, loss (the mean over examples), step and examples over the dataset, or over its first `steps` batches (0 =
 * all). If the optimizer keeps moving averages of the weights (average_decay), these are evaluated unless the run
 * option raw_weights is set. With a strategy of several workers, each of them calls this function (strategy.h). The
 * weights are those of the last complete step, also in a hook, while a session is open, and from another thread while
 * steps run; then the call waits for the next step boundary. Before any training they are those of the newest
 * checkpoint, or TUTTI_FAILED_PRECONDITION if there is none. */
TUTTI_API int32_t tutti_estimator_evaluate(tutti_estimator *estimator, const tutti_dataset *dataset, int64_t steps,
                                           tutti_cancel *cancel, tutti_result **result, tutti_error **err);

/* Evaluations, also those of tutti_estimator_train_and_evaluate, use this strategy from the next one on, of the same
 * context; NULL = the strategy that trains. An evaluation that is running keeps its devices. */
TUTTI_API int32_t tutti_estimator_set_evaluation_strategy(tutti_estimator *estimator, const tutti_strategy *strategy,
                                                          tutti_error **err);

/* Trains, and evaluates on `evaluation` after every `every_steps` steps (0 = after each pass) and at the end. The
 * result is that of the last evaluation, its reason that of the training. An evaluation that fails ends the training
 * like a step that fails: the last checkpoint is written, hooks get the error. A model that cannot be evaluated on
 * these elements is reported before the first step. */
TUTTI_API int32_t tutti_estimator_train_and_evaluate(tutti_estimator *estimator, const tutti_dataset *dataset,
                                                     const tutti_dataset *evaluation, int64_t every_steps,
                                                     const tutti_options *options, const tutti_hooks *hooks,
                                                     tutti_cancel *cancel, tutti_result **result, tutti_error **err);

/* Makes the dataset of one call, on the thread of the call. `params` is the run option of the estimator.
 * `input_pipeline_id` and `input_pipeline_count` say which input this process reads and how many the run has, for
 * tutti_pipeline_shard (strategy.h); 0 and 1 unless workers have input of their own. The library takes over the
 * reference in *out. */
typedef int32_t (*tutti_input_fn)(void *user, const char *params, int64_t input_pipeline_id,
                                  int64_t input_pipeline_count, tutti_dataset **out, tutti_error **err);

/* tutti_estimator_train and tutti_estimator_evaluate with the dataset that `input_fn` makes; it is called once. */
TUTTI_API int32_t tutti_estimator_train_fn(tutti_estimator *estimator, tutti_input_fn input_fn, void *user,
                                           const tutti_options *options, const tutti_hooks *hooks, tutti_cancel *cancel,
                                           tutti_result **result, tutti_error **err);
TUTTI_API int32_t tutti_estimator_evaluate_fn(tutti_estimator *estimator, tutti_input_fn input_fn, void *user,
                                              int64_t steps, tutti_cancel *cancel, tutti_result **result,
                                              tutti_error **err);
/* What such a function gets: the run option params, lent while the estimator lives, and the two numbers, for
 * TUTTI_MODE_TRAIN or TUTTI_MODE_EVAL. NULL and -1 when `estimator` is not an estimator handle. */
TUTTI_API const char *tutti_estimator_get_params(const tutti_estimator *estimator);
TUTTI_API int64_t tutti_estimator_get_input_pipeline_count(const tutti_estimator *estimator, int32_t mode);
TUTTI_API int64_t tutti_estimator_get_input_pipeline_id(const tutti_estimator *estimator, int32_t mode);

/* Writes a checkpoint into `directory`/checkpoint-<step>. After a training it contains everything that another
 * estimator with this model_dir needs to continue exactly as this one would. While a training runs or a session is open
 * it contains the weights of the last complete step, and if nothing was trained, those of the newest checkpoint, both
 * without the slots of the optimizer. With several workers, each worker that calls this function writes, and one is
 * enough; if they write into the same directory, the last one wins. */
TUTTI_API int32_t tutti_estimator_save(tutti_estimator *estimator, const char *directory, tutti_cancel *cancel,
                                       tutti_error **err);

/* The number of completed steps; -1 when `estimator` is not an estimator handle. Safe at any time. */
TUTTI_API int64_t tutti_estimator_get_global_step(const tutti_estimator *estimator);

/* Variables: weights, running statistics and, named "<variable>/<slot>" (such as "dense/kernel/velocity"), the slots of
 * the optimizer. Once the estimator has trained, or has a session open, they are those of the training at its last
 * complete step, also from another thread or a hook while steps run; then a call waits for the next step boundary.
 * Before that, they are the weights of the newest checkpoint; without one, tutti_estimator_initialize creates them. The
 * names are lent until the list changes. */
TUTTI_API int64_t tutti_estimator_get_variable_count(const tutti_estimator *estimator);
TUTTI_API const char *tutti_estimator_get_variable_name(const tutti_estimator *estimator, int64_t index);
/* Those of them that the optimizer changes, in the order in which the model makes them: not running statistics, what is
 * frozen, and what a model that gives gradients itself leaves out. They are known once the model was built for training
 * (train, a session, tutti_estimator_initialize); before, the count is 0. Names are lent while the estimator lives. */
TUTTI_API int64_t tutti_estimator_get_trainable_count(const tutti_estimator *estimator);
TUTTI_API const char *tutti_estimator_get_trainable_name(const tutti_estimator *estimator, int64_t index);
/* A copy of the variable's value. */
TUTTI_API int32_t tutti_estimator_read_variable(tutti_estimator *estimator, const char *name, tutti_tensor **out,
                                                tutti_error **err);
/* The value must have the same type and shape. Training continues with it from the next step. Evaluate and predict use
 * it immediately unless they use moving averages; to change those, write "<variable>/average". */
TUTTI_API int32_t tutti_estimator_write_variable(tutti_estimator *estimator, const char *name,
                                                 const tutti_tensor *value, tutti_error **err);
/* A copy of the gradient of the last step for one variable: over all rows of the step, as the optimizer got it, but
 * without clipping. TUTTI_FAILED_PRECONDITION without the run option keep_gradients and before the first step,
 * TUTTI_NOT_FOUND if the variable is not trained. */
TUTTI_API int32_t tutti_estimator_read_gradient(tutti_estimator *estimator, const char *variable, tutti_tensor **out,
                                                tutti_error **err);
/* The output `name` that the model set (tutti_graph_set_output) in mode TRAIN, for each row of the last step: the rows
 * of all replicas of this process in the order of the batch, those of several micro-batches one after the other. They
 * were computed with the weights before the step. TUTTI_FAILED_PRECONDITION without the run option keep_outputs, before
 * the first step and after a run that failed, TUTTI_NOT_FOUND if there is no such output. */
TUTTI_API int32_t tutti_estimator_read_output(tutti_estimator *estimator, const char *name, tutti_tensor **out,
                                              tutti_error **err);
/* Estimates the device memory for training on batches of `batch_size` rows of `dataset` (0 = its own batch size), as
 * JSON: {"batch_size", "devices": [{"device", "weights", "slots", "gradients", "workspace", "input", "outputs",
 * "total", "memory", "available"}, ...], "total", "fits"}. Numbers of a device are bytes: "outputs" is for
 * keep_outputs, "available" is what is free now; "memory" is the name of the memory, which devices may share. Programs
 * are compiled for the estimate, which takes as long as before a first step, but no memory is allocated for them and
 * nothing is trained. Memory that drivers and libraries allocate is not counted. With the backend pjrt, "programs"
 * lists what the library says of each compiled program (see tutti_predictor_describe_plan); in a context with
 * pjrt_topology, this tells whether a training compiles for devices that are not in the machine, and fits into them.
 * TUTTI_INVALID_ARGUMENT for a dataset without batches, or with shapes that depend on the data. `*out` is lent until
 * the next call for the estimator. */
TUTTI_API int32_t tutti_estimator_estimate_memory(tutti_estimator *estimator, const tutti_dataset *dataset,
                                                  int64_t batch_size, const char **out, tutti_error **err);
/* The largest batch size from 1 to `most` (2^30 at most) that fits by that estimate; a size larger by 1/32 does not
 * fit. TUTTI_RESOURCE_EXHAUSTED, which names what one row needs and how much is missing, if not even one row fits. */
TUTTI_API int32_t tutti_estimator_find_batch_size(tutti_estimator *estimator, const tutti_dataset *dataset,
                                                  int64_t most, int64_t *batch_size, tutti_error **err);

/* Freezes (0) or unfreezes (1) the variables whose name matches a pattern with * and ?. Call it before the first train.
 */
TUTTI_API int32_t tutti_estimator_set_trainable(tutti_estimator *estimator, const char *pattern, uint8_t trainable,
                                                tutti_error **err);

/* --- distributed datasets ----------------------------------------------------------------------------------------- */

/* A dataset of batches for the replicas of a strategy of the same context: what training and evaluating use, and for
 * loops of the program. If the strategy divides datasets among workers (worker_input "auto", "file" or "data", see
 * strategy.h), it is the part of this worker, whose batches have the rows of this worker; otherwise it has the elements
 * of `dataset`. Estimators and sessions of the strategy take it like `dataset` and do not distribute it twice; those of
 * another strategy return TUTTI_INVALID_ARGUMENT, and TUTTI_FAILED_PRECONDITION for the part of another worker. Its
 * iterators also give the pieces of the replicas. `dataset` is unchanged, and no connection is opened.
 * TUTTI_INVALID_ARGUMENT if its elements are not batches, TUTTI_FAILED_PRECONDITION, with the reason, if it cannot be
 * divided. */
TUTTI_API int32_t tutti_strategy_distribute_dataset(const tutti_strategy *strategy, const tutti_dataset *dataset,
                                                    tutti_dataset **out, tutti_error **err);
/* The rows of a component of the current element that a replica of this process gets: consecutive ones, of which the
 * first replicas have one more where the rows are not a multiple. They are in host memory and not copied. Lent until
 * the next call of next. NULL where tutti_iterator_get_component is NULL, when `replica` is out of range, and for
 * datasets that are not distributed. */
TUTTI_API tutti_tensor *tutti_iterator_get_piece(tutti_iterator *iterator, int64_t replica, int64_t index);

/* --- session form: train, one piece at a time --------------------------------------------------------------------- */

/* A custom training loop: the model function is the step function, compiled once for each shape of a batch. The dataset
 * of the session is distributed to the replicas ahead of the steps: R replicas get consecutive rows of a batch, the
 * first (rows % R) of them one row more than the others. Batches that the program creates itself are passed by a feed
 * of batches (tutti_feed_set_batch_size):
 *   tutti_feed_push(feed, tensors, 2, NULL, &err);
 *   tutti_session_run(session, 1, &result, &err);                  one step, on that batch
 *   tutti_result_get_metric(result, "accuracy");                   reduced over all replicas
 *   tutti_estimator_read_output(estimator, "logits", &out, &err);  gathered from them, a row for each row
 * A step function without training needs no variables; it still needs a loss, which can be any number that it computes,
 * and tutti_optimizer_sgd with a learning rate of 0. step_function.h is for loops of several functions, and for batches
 * that the program passes with each step.
 */

/* Opens a training session on the dataset, which is the estimator's only training until it is closed. Options of schema
 * "train". `hooks` and `cancel` apply to the whole session. */
TUTTI_API int32_t tutti_session_open(tutti_estimator *estimator, const tutti_dataset *dataset,
                                     const tutti_options *options, const tutti_hooks *hooks, tutti_cancel *cancel,
                                     tutti_session **out, tutti_error **err);
TUTTI_API void tutti_session_ref(tutti_session *session);
TUTTI_API void tutti_session_unref(tutti_session *session);
/* Runs up to `steps` steps, in which hooks are called. The reason of the result is 0 while there is more to do; its
 * loss and metrics are those of the last step, its examples those of all steps of the call. `result` may be NULL. */
TUTTI_API int32_t tutti_session_run(tutti_session *session, int64_t steps, tutti_result **result, tutti_error **err);
/* Sets a host scalar of the model, between two runs; it takes effect with the next step. */
TUTTI_API int32_t tutti_session_set_scalar(tutti_session *session, const char *name, double value, tutti_error **err);
/* Ends the session: writes the last checkpoint and joins its threads. The result (may be NULL) is that of the whole
 * session. Dropping the last reference without close also ends the session, but writes nothing. Its steps are kept:
 * variables, evaluate, predictors and the next session of this estimator are at its last complete step. */
TUTTI_API int32_t tutti_session_close(tutti_session *session, tutti_result **result, tutti_error **err);

/* --- results ------------------------------------------------------------------------------------------------------ */

TUTTI_API void tutti_result_ref(tutti_result *result);
TUTTI_API void tutti_result_unref(tutti_result *result);
/* TUTTI_REASON_...; 0 for an evaluation. */
TUTTI_API int32_t tutti_result_get_reason(const tutti_result *result);
TUTTI_API int64_t tutti_result_get_step(const tutti_result *result);
TUTTI_API int64_t tutti_result_get_examples(const tutti_result *result);
TUTTI_API double tutti_result_get_seconds(const tutti_result *result);
/* Seconds that training steps waited for their input; 0 for an evaluation. */
TUTTI_API double tutti_result_get_input_wait(const tutti_result *result);
/* Statistics of the latest iteration over the training data, stage by stage, and which stage limits it: the JSON of
 * tutti_iterator_get_report. Empty for an evaluation and for a run of a session; the result of tutti_session_close has
 * it. Lent while the result lives. */
TUTTI_API const char *tutti_result_get_input_report(const tutti_result *result);
/* How the time of training steps was spent, as JSON: {"steps", "replicas", "programs", "step_seconds", "compute",
 * "input", "communication", "imbalance", "efficiency", "devices"}: the time of a step, and its shares of computing and
 * of waiting for input, for communication, and for slower replicas. "efficiency" (with several replicas) is their speed
 * relative to that of the same number of replicas that never wait; a warning is logged when it stays below one half.
 * With several workers, each reports its own replicas: "replicas" is the total number, and waiting for slower workers
 * is communication. "devices" has for each device of this process {"device", "utilisation", "idle", "input",
 * "communication", "imbalance"}: idle is the sum of the last three; only a profile shows the gaps between the kernels
 * of a GPU. Steps for which programs were built do not count; "programs" is the number of programs that the estimator
 * has built for training on this process: it grows only when a shape occurs for the first time. Empty if the input
 * report is; lent while the result lives. */
TUTTI_API const char *tutti_result_get_step_report(const tutti_result *result);
/* The loss of the last step for train, of the whole dataset for evaluate: the loss that the model would have for one
 * batch of all examples, for any batch size and number of replicas. NaN if the model has no loss. */
TUTTI_API double tutti_result_get_loss(const tutti_result *result);
/* Metrics by index, and by name (NaN when there is none, or for a tensor); "loss" is the loss. */
TUTTI_API int64_t tutti_result_get_metric_count(const tutti_result *result);
TUTTI_API const char *tutti_result_get_metric_name(const tutti_result *result, int64_t index);
TUTTI_API double tutti_result_get_metric(const tutti_result *result, const char *name);
/* A metric as a tensor: a scalar for a number, [classes, classes] for a confusion matrix, [classes] for a metric of
 * each class. NOT_FOUND where there is none. The caller drops the tensor. */
TUTTI_API int32_t tutti_result_read_metric(const tutti_result *result, const char *name, tutti_tensor **out,
                                           tutti_error **err);

#ifdef __cplusplus
}
#endif

#endif /* TUTTI_ESTIMATOR_H_ */
