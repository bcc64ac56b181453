/* SPDX-License-Identifier: Apache-2.0
 *
 * Cancel tokens: one object that any thread can use to end a call that is running in another.
 *
 * A token has two strengths. STOP ends training politely: all replicas finish the same step, the checkpoint is written,
 * and the call returns TUTTI_OK with the reason TUTTI_REASON_STOPPED. CANCEL ends within one step and the call returns
 * TUTTI_CANCELLED. A passed deadline acts like CANCEL and returns TUTTI_DEADLINE_EXCEEDED. Calls other than training
 * treat STOP like CANCEL.
 *
 * A wait for elements of a dataset ends between two elements of whatever stage is at work: a function of the host that
 * is running then is waited for, but not called again, however many elements a batch still needs. A function that takes
 * long asks now and then whether anybody still waits for it:
 *
 *   int32_t fetch(void *user, tutti_tensor *const *inputs, tutti_tensor **outputs, int64_t count, tutti_error **err) {
 *     tutti_cancel *const cancel = tutti_cancel_get_current();
 *     while (!arrived(user)) {
 *       if (tutti_cancel_get_state(cancel) == TUTTI_CANCEL_CANCEL) return TUTTI_CANCELLED;
 *       wait_a_little(user);
 *     }
 *     ...
 *
 * What it returns then counts as the end of the call, not as an error of its element: when the walk goes on, the
 * function gets the same element again.
 *
 * What ends is the call, not the object: an estimator, iterator or prediction stream whose call was cancelled can be
 * used again, and an iterator or stream loses nothing: the next call, with another token or a later deadline, goes on
 * where the cancelled one stood. A training session is over, like the one call that it is.
 *
 * Threads: every function is safe from any thread at any time, callbacks included.
 */
#ifndef TUTTI_CANCEL_H_
#define TUTTI_CANCEL_H_

#include <tutti/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tutti_cancel tutti_cancel;

#define TUTTI_CANCEL_NONE 0
#define TUTTI_CANCEL_STOP 1
#define TUTTI_CANCEL_CANCEL 2

/* A token that has not been asked for anything and has no deadline. */
TUTTI_API int32_t tutti_cancel_create(tutti_cancel **out, tutti_error **err);
TUTTI_API void tutti_cancel_ref(tutti_cancel *token);
TUTTI_API void tutti_cancel_unref(tutti_cancel *token);

/* Asks for TUTTI_CANCEL_STOP or TUTTI_CANCEL_CANCEL. Asking again with less changes nothing. */
TUTTI_API int32_t tutti_cancel_request(tutti_cancel *token, int32_t strength, tutti_error **err);

/* Sets the deadline to `timeout_ms` milliseconds from now; a negative value takes it away. Calls that are running heed
 * it too, so one token can serve many calls, each with a deadline set before. */
TUTTI_API int32_t tutti_cancel_set_deadline(tutti_cancel *token, int64_t timeout_ms, tutti_error **err);

/* The token of the call that the running function of the host is for (a function of a pipeline, a model function, a
 * hook, a function of a file system): lent until that function returns, for use in its thread. NULL outside of such
 * functions and where nothing can end the call. It follows the token and deadline of the call; asking it for STOP or
 * CANCEL ends nothing else. */
TUTTI_API tutti_cancel *tutti_cancel_get_current(void);

/* What has been asked for so far: TUTTI_CANCEL_NONE, _STOP or _CANCEL (also after the deadline). NONE for NULL. */
TUTTI_API int32_t tutti_cancel_get_state(const tutti_cancel *token);

#ifdef __cplusplus
}
#endif

#endif /* TUTTI_CANCEL_H_ */
