/* SPDX-License-Identifier: Apache-2.0
 *
 * Hooks: functions of the host that observe and control a running training.
 *
 * A hook is one function that receives events. It is registered for one call of train with a cadence, and runs on the
 * thread that called train, with no lock held; the library does not wait for steps that no hook requested. A hook may
 * use getters of the session and request cancellation; training again from inside a hook is
 * TUTTI_FAILED_PRECONDITION.
 *
 *   begin -> (step | checkpoint_saved | epoch_end | evaluated)* -> end            normal end or STOP
 *   begin -> ... -> error                                             train is about to return this error
 */
#ifndef TUTTI_HOOK_H_
#define TUTTI_HOOK_H_

#include <tutti/summary.h>
#include <tutti/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tutti_hook_event tutti_hook_event;
typedef struct tutti_hooks tutti_hooks;

/* Event kinds. New kinds may be appended: return TUTTI_OK for unknown ones. */
#define TUTTI_EVENT_BEGIN 1
#define TUTTI_EVENT_STEP 2
#define TUTTI_EVENT_CHECKPOINT_SAVED 3
#define TUTTI_EVENT_EPOCH_END 4
#define TUTTI_EVENT_EVALUATED 5
#define TUTTI_EVENT_END 6
#define TUTTI_EVENT_ERROR 7

/* What a hook may return besides TUTTI_OK and an error code: end training gracefully after this step. */
#define TUTTI_HOOK_STOP (-1)

/* `event` is valid during the call. An error becomes the cause of the error that train returns. */
typedef int32_t (*tutti_hook_fn)(void *user, const tutti_hook_event *event, tutti_error **err);

/* A list of hooks, called in the order in which they were added. */
TUTTI_API int32_t tutti_hooks_create(tutti_hooks **out, tutti_error **err);
TUTTI_API void tutti_hooks_ref(tutti_hooks *hooks);
TUTTI_API void tutti_hooks_unref(tutti_hooks *hooks);

/* Adds a hook that gets a step event every `every_steps` steps (0 = none, only the other events). */
TUTTI_API int32_t tutti_hooks_add(tutti_hooks *hooks, tutti_hook_fn hook, void *user, tutti_destroy_fn destroy,
                                  int64_t every_steps, tutti_error **err);

/* How tutti_hooks_add_progress() shows a training. */
#define TUTTI_PROGRESS_AUTO 0  /* BAR where standard error is a terminal that can, LINES elsewhere */
#define TUTTI_PROGRESS_BAR 1   /* a line with a bar, written again four times a second by control characters */
#define TUTTI_PROGRESS_LINES 2 /* a line every ten seconds */

/* Adds a hook of the library that shows on standard error how far the training is: step, loss, metrics, examples per
 * second, time left; also each evaluation, and how long all took. */
TUTTI_API int32_t tutti_hooks_add_progress(tutti_hooks *hooks, int32_t style, tutti_error **err);

/* What tutti_hooks_add_metrics_file() writes. */
#define TUTTI_METRICS_CSV 1        /* the first line names the columns */
#define TUTTI_METRICS_JSON_LINES 2 /* an object in each line */

/* Adds a hook of the library that writes losses and metrics to a file: a line every `every_steps` steps (0 = none), for
 * each evaluation and pass, and one at the end, each with
 *
 *   event ("step", "evaluation", "epoch", "end"), time (seconds since 1970), step, epoch (from 0), examples_per_second,
 *   loss, and each metric by its name
 *
 * A file that is there goes on, without what it has of later steps than the training begins with: one that is resumed
 * writes no step twice, and one from step 0 begins anew. FAILED_PRECONDITION, when the training begins, if the file
 * holds something else. If the file cannot be written later, the log says so and the training goes on. */
TUTTI_API int32_t tutti_hooks_add_metrics_file(tutti_hooks *hooks, const char *path, int32_t format,
                                               int64_t every_steps, tutti_error **err);

/* The newest values of a training for monitoring by Prometheus: a program gives their text to whoever asks for it, for
 * example at /metrics. Losses, steps, speed and others are metrics of their own, such as tutti_loss; metrics of the
 * model are tutti_metric{name="accuracy"}, those of the newest evaluation tutti_evaluation_metric{name="accuracy"}. */
typedef struct tutti_prometheus tutti_prometheus;
TUTTI_API int32_t tutti_prometheus_create(tutti_prometheus **out, tutti_error **err);
TUTTI_API void tutti_prometheus_ref(tutti_prometheus *prometheus);
TUTTI_API void tutti_prometheus_unref(tutti_prometheus *prometheus);
/* Adds a hook of the library that keeps them: of every `every_steps` steps (0 = none), each evaluation and pass, and
 * the end. `prometheus` may be of several trainings, one after the other. */
TUTTI_API int32_t tutti_hooks_add_prometheus(tutti_hooks *hooks, tutti_prometheus *prometheus, int64_t every_steps,
                                             tutti_error **err);
/* The text in Prometheus' format 0.0.4 ("text/plain; version=0.0.4"), its bytes as u8 [bytes]. Safe on any thread at
 * any time, also while a training runs. */
TUTTI_API int32_t tutti_prometheus_read(tutti_prometheus *prometheus, tutti_tensor **out, tutti_error **err);

/* The contents of an event; getters return 0, NULL or NaN for what it does not have. */
TUTTI_API int32_t tutti_hook_event_get_kind(const tutti_hook_event *event);
TUTTI_API int64_t tutti_hook_event_get_step(const tutti_hook_event *event);
/* The pass over the dataset, counted from 0, in which the event happened; between two passes, for example at
 * TUTTI_EVENT_EPOCH_END, the one that has ended. */
TUTTI_API int64_t tutti_hook_event_get_epoch(const tutti_hook_event *event);
/* The loss of the step for a step event, of the evaluation for TUTTI_EVENT_EVALUATED, and of the last step for
 * TUTTI_EVENT_EPOCH_END and TUTTI_EVENT_END; likewise the metrics. */
TUTTI_API double tutti_hook_event_get_loss(const tutti_hook_event *event);
TUTTI_API double tutti_hook_event_get_examples_per_second(const tutti_hook_event *event);
/* Seconds until the end at the current speed; NaN if the end is not known. If the length of the dataset is unknown,
 * each pass is assumed to be as long as the previous one, from the second pass on. */
TUTTI_API double tutti_hook_event_get_remaining_seconds(const tutti_hook_event *event);
/* A named metric of the model. */
TUTTI_API double tutti_hook_event_get_metric(const tutti_hook_event *event, const char *name);
/* The directory of the checkpoint just saved. */
TUTTI_API const char *tutti_hook_event_get_checkpoint(const tutti_hook_event *event);
/* Writes among the run's own summaries for TensorBoard (summary.h); lent during the call, and may be kept by a
 * reference. NULL where the run writes none: without save_summary_steps or a directory, and on all workers but the
 * first; also at TUTTI_EVENT_ERROR. */
TUTTI_API tutti_summary_writer *tutti_hook_event_get_summary_writer(const tutti_hook_event *event);

#ifdef __cplusplus
}
#endif

#endif /* TUTTI_HOOK_H_ */
