/* SPDX-License-Identifier: Apache-2.0
 *
 * Estimators: a model function and run options, trained on datasets by a strategy.
 *
 * Threads: one train at a time (a second gets TUTTI_FAILED_PRECONDITION), beside any number of evaluate and predict.
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

/* An estimator. `strategy` NULL = the context's default one (one device). Options of schema "run" (NULL = defaults):
 * model_dir, seed, save_checkpoints_steps, save_checkpoints_secs, keep_checkpoint_max, log_step_count_steps,
 * determinism, logical_replicas, precision, accumulation_steps, device_prefetch, threads_per_replica, all_reduce,
 * gradient_dtype, raw_weights, without_predictions, keep_gradients, keep_outputs, collective_timeout_ms.
 * tutti_options_describe_key tells what each means. */
TUTTI_API int32_t tutti_estimator_create(tutti_context *context, tutti_model_fn model_fn, void *user,
                                         tutti_destroy_fn destroy, const tutti_strategy *strategy,
                                         const tutti_options *run_options, tutti_estimator **out, tutti_error **err);
TUTTI_API void tutti_estimator_ref(tutti_estimator *estimator);
TUTTI_API void tutti_estimator_unref(tutti_estimator *estimator);

/* Trains. Options of schema "train": steps (more), max_steps (in all) or epochs; none = until the input ends; and
 * early_stopping, the name of a value, which ends it before (TUTTI_REASON_STOPPED) when that has not become better for
 * early_stopping_patience_steps (early_stopping_higher_is_better, _min_steps, _every_steps). Goes on from the newest
 * checkpoint in model_dir, in the middle of an epoch if need be. `hooks` and `result` may be NULL. */
TUTTI_API int32_t tutti_estimator_train(tutti_estimator *estimator, const tutti_dataset *dataset,
                                        const tutti_options *options, const tutti_hooks *hooks, tutti_cancel *cancel,
                                        tutti_result **result, tutti_error **err);

/* Makes the variables before the first training, without a step: initial values by the seed, or those of the newest
 * checkpoint in model_dir. They can then be listed, read and written, evaluated and predicted with, and training goes
 * on from them. `dataset` says what the model gets, batches included, as for training; nothing is read of it, and none
 * of a feed taken out. `weights` NULL, or a checkpoint, a directory of checkpoints (its newest good one) or a file in
 * the safetensors format, whose tensors have the names, types and shapes of the model's variables: all of them, and no
 * others; moving averages begin anew with them. With a model_dir they are in a checkpoint afterwards. A model that has
 * trained, and a run that was interrupted, are otherwise left as they are. With several workers all make the call. */
TUTTI_API int32_t tutti_estimator_initialize(tutti_estimator *estimator, const tutti_dataset *dataset,
                                             const char *weights, tutti_cancel *cancel, tutti_error **err);

/* Metrics, loss (the mean over examples), step and examples over the dataset, or over its first
 * `steps` batches (0 = all). Where the optimizer keeps moving averages of the weights (average_decay) it is they that
 * are evaluated, unless the run option raw_weights is set. With a strategy of several workers each of them calls it
 * (strategy.h). The weights are those of the last complete step, also in a hook, while a session is open and from
 * another thread while steps run: then the call waits for the next step boundary; before any training those of the
 * newest checkpoint. TUTTI_FAILED_PRECONDITION when there are none. */
TUTTI_API int32_t tutti_estimator_evaluate(tutti_estimator *estimator, const tutti_dataset *dataset, int64_t steps,
                                           tutti_cancel *cancel, tutti_result **result, tutti_error **err);

/* Trains, and evaluates on `evaluation` after every `every_steps` steps (0 = after each pass) and at the end; the
 * result is of the last evaluation, its reason that of the training. An evaluation that fails ends the training as a
 * step that fails does: the last checkpoint is written, hooks see the error. A model that cannot be evaluated on these
 * elements is told before the first step. */
TUTTI_API int32_t tutti_estimator_train_and_evaluate(tutti_estimator *estimator, const tutti_dataset *dataset,
                                                     const tutti_dataset *evaluation, int64_t every_steps,
                                                     const tutti_options *options, const tutti_hooks *hooks,
                                                     tutti_cancel *cancel, tutti_result **result, tutti_error **err);

/* Writes a checkpoint into `directory`/checkpoint-<step>. After a training it holds all that another estimator with
 * this model_dir needs to go on exactly as this one would. While a training runs or a session is open it holds the
 * weights of the last complete step, and where nothing was trained those of the newest checkpoint, both without the
 * optimizer's slots. Of several workers each that calls it writes, and one is enough; where they write into one
 * directory, the last one's stays. */
TUTTI_API int32_t tutti_estimator_save(tutti_estimator *estimator, const char *directory, tutti_cancel *cancel,
                                       tutti_error **err);

/* The number of completed steps; -1 when `estimator` is not an estimator handle. Safe at any time. */
TUTTI_API int64_t tutti_estimator_get_global_step(const tutti_estimator *estimator);

/* Variables: weights, running statistics and, named "<variable>/<slot>" (such as "dense/kernel/velocity"), the slots of
 * the optimizer. Once the estimator has trained, or has a session open, they are those of training at its last complete
 * step, also from another thread or a hook while steps run: then a call waits for the next step boundary. Before, they
 * are the weights of the newest checkpoint; where there is none, tutti_estimator_initialize makes them. The names are
 * lent until the list changes. */
TUTTI_API int64_t tutti_estimator_get_variable_count(const tutti_estimator *estimator);
TUTTI_API const char *tutti_estimator_get_variable_name(const tutti_estimator *estimator, int64_t index);
/* A copy of the variable's value. */
TUTTI_API int32_t tutti_estimator_read_variable(tutti_estimator *estimator, const char *name, tutti_tensor **out,
                                                tutti_error **err);
/* Same type and shape. Training goes on with it from the next step; evaluate and predict use it at once, but where they
 * use moving averages: of those "<variable>/average" is the one to write. */
TUTTI_API int32_t tutti_estimator_write_variable(tutti_estimator *estimator, const char *name,
                                                 const tutti_tensor *value, tutti_error **err);
/* A copy of the gradient of the last step for one variable: over all rows of the step, as the optimizer got it but for
 * clips. TUTTI_FAILED_PRECONDITION without the run option keep_gradients and before the first step,
 * TUTTI_NOT_FOUND when the variable is not trained. */
TUTTI_API int32_t tutti_estimator_read_gradient(tutti_estimator *estimator, const char *variable, tutti_tensor **out,
                                                tutti_error **err);
/* What the model set as output `name` (tutti_graph_set_output) in mode TRAIN, for each row of the last step: the rows
 * of all replicas of this process in the order of the batch, those of several micro-batches one behind the other. They
 * were computed with the weights before the step. TUTTI_FAILED_PRECONDITION without the run option keep_outputs, before
 * the first step and behind a run that failed, TUTTI_NOT_FOUND when there is no such output. */
TUTTI_API int32_t tutti_estimator_read_output(tutti_estimator *estimator, const char *name, tutti_tensor **out,
                                              tutti_error **err);
/* What training on batches of `batch_size` rows of `dataset` (0 = its own batch size) will take of the devices' memory,
 * as JSON: {"batch_size", "devices": [{"device", "weights", "slots", "gradients", "workspace", "input", "outputs",
 * "total", "memory", "available"}, ...], "total", "fits"}. All but the first of each are bytes: "outputs" of what
 * keep_outputs keeps, "memory" is the name of what devices may share, "available" what is free there now. Programs are
 * compiled for it, which takes as long as before a first step, but nothing is allocated for them and nothing is
 * trained. What drivers and libraries take for themselves is not counted. TUTTI_INVALID_ARGUMENT for a dataset without
 * batches, or whose shapes only the data tells. `*out` is lent until the next call for the estimator. */
TUTTI_API int32_t tutti_estimator_estimate_memory(tutti_estimator *estimator, const tutti_dataset *dataset,
                                                  int64_t batch_size, const char **out, tutti_error **err);
/* The largest batch size from 1 to `most` (2^30 at most) that fits by that estimate; one that is larger by a
 * thirty-second does not. TUTTI_RESOURCE_EXHAUSTED, which names what one row needs and what lacks, when not even that
 * fits. */
TUTTI_API int32_t tutti_estimator_find_batch_size(tutti_estimator *estimator, const tutti_dataset *dataset,
                                                  int64_t most, int64_t *batch_size, tutti_error **err);

/* Freezes (0) or frees (1) the variables whose name matches a pattern with * and ?. Before the first train. */
TUTTI_API int32_t tutti_estimator_set_trainable(tutti_estimator *estimator, const char *pattern, uint8_t trainable,
                                                tutti_error **err);

/* --- session form: train, one piece at a time --------------------------------------------------------------------- */

/* A loop of one's own: the model function is the step function, compiled once for each shape of a batch. The session's
 * dataset is distributed to the replicas, ahead of the steps: R replicas get the rows of a batch one behind the other,
 * the first (rows % R) of them one row more than the others. Batches that the program makes itself come by a feed of
 * batches (tutti_feed_set_batch_size):
 *   tutti_feed_push(feed, tensors, 2, NULL, &err);
 *   tutti_session_run(session, 1, &result, &err);                  one step, on that batch
 *   tutti_result_get_metric(result, "accuracy");                   reduced over all replicas
 *   tutti_estimator_read_output(estimator, "logits", &out, &err);  gathered from them, a row for each row
 * A step function that learns nothing needs no variables; it has a loss all the same, any number that it computes, and
 * tutti_optimizer_sgd with a rate of 0.
 */

/* Opens a training session on the dataset; the estimator's one train until it is closed. Options of schema "train".
 * `hooks` and `cancel` hold for the whole session. */
TUTTI_API int32_t tutti_session_open(tutti_estimator *estimator, const tutti_dataset *dataset,
                                     const tutti_options *options, const tutti_hooks *hooks, tutti_cancel *cancel,
                                     tutti_session **out, tutti_error **err);
TUTTI_API void tutti_session_ref(tutti_session *session);
TUTTI_API void tutti_session_unref(tutti_session *session);
/* Runs up to `steps` steps, in which hooks are called; the result's reason is 0 while there is more to do, its loss and
 * metrics are of the last step, its examples of all of them. `result` may be NULL. */
TUTTI_API int32_t tutti_session_run(tutti_session *session, int64_t steps, tutti_result **result, tutti_error **err);
/* Sets a host scalar of the model, between two runs; it holds from the next step on. */
TUTTI_API int32_t tutti_session_set_scalar(tutti_session *session, const char *name, double value, tutti_error **err);
/* Ends the session: writes the last checkpoint and joins. The result (may be NULL) is of the whole session. Dropping
 * the last reference without close ends it, too, but writes nothing; its steps stay: variables, evaluate, predictors
 * and the next session of this estimator are at its last complete step. */
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
/* What the newest walk over the training data has cost, stage by stage, and which stage limits it: the JSON of
 * tutti_iterator_get_report. Empty for an evaluation and for a run of a session, for which the result of
 * tutti_session_close has it; lent while the result lives. */
TUTTI_API const char *tutti_result_get_input_report(const tutti_result *result);
/* Where the time of training steps went, as JSON: {"steps", "replicas", "step_seconds", "compute", "input",
 * "communication", "imbalance", "efficiency", "devices"}: the time of a step, and shares of it: computing, waiting for
 * input, for communication, and for slower replicas. "efficiency" (with several replicas) is their speed over that of
 * as many which wait for nothing; a warning is logged when it stays below a half. Of several workers each tells what
 * its own replicas do: "replicas" are those of all, and waiting for slower workers is communication. "devices" has for
 * each device of this process {"device", "utilisation", "idle", "input", "communication", "imbalance"}: idle is the sum
 * of the three behind it; what a GPU waits for between two kernels only a profile tells. Steps that programs were built
 * for do not count.
 * Empty where the input report is; lent while the result lives. */
TUTTI_API const char *tutti_result_get_step_report(const tutti_result *result);
/* Of the last step for train, of the whole dataset for evaluate: the loss as the model would have it for one batch of
 * all examples, whatever the batch size and the number of replicas. NaN when the model has no loss. */
TUTTI_API double tutti_result_get_loss(const tutti_result *result);
/* Metrics by index, and by name (NaN when there is none); "loss" is the loss. */
TUTTI_API int64_t tutti_result_get_metric_count(const tutti_result *result);
TUTTI_API const char *tutti_result_get_metric_name(const tutti_result *result, int64_t index);
TUTTI_API double tutti_result_get_metric(const tutti_result *result, const char *name);

#ifdef __cplusplus
}
#endif

#endif /* TUTTI_ESTIMATOR_H_ */
