/* SPDX-License-Identifier: Apache-2.0
 *
 * Cancel tokens: an object with which any thread can end a call that runs in another thread.
 *
 * A token has two strengths. STOP ends training gracefully: all replicas finish the same step, the checkpoint is
 * written, and the call returns TUTTI_OK with the reason TUTTI_REASON_STOPPED. CANCEL ends it within one step and the
 * call returns TUTTI_CANCELLED. A deadline that has passed acts like CANCEL and returns TUTTI_DEADLINE_EXCEEDED. Calls
 * other than training treat STOP like CANCEL.
 *
 * A wait for elements of a dataset ends between two elements of the active stage: a running function of the host is
 * waited for, but not called again, even if a batch still needs elements. A function that takes long should check now
 * and then whether its result is still needed:
 *
 *   int32_t fetch(void *user, tutti_tensor *const *inputs, tutti_tensor **outputs, int64_t count, tutti_error **err) {
 *     tutti_cancel *const cancel = tutti_cancel_get_current();
 *     while (!arrived(user)) {
 *       if (tutti_cancel_get_state(cancel) == TUTTI_CANCEL_CANCEL) return TUTTI_CANCELLED;
 *       wait_a_little(user);
 *     }
 *     ...
 *
 * Its result then counts as the end of the call, not as an error of its element: when the iteration continues, the
 * function gets the same element again.
 *
 * A token ends the call, not the object: an estimator, iterator or prediction stream whose call was cancelled can be
 * used again, and an iterator or stream loses nothing: the next call, with another token or a later deadline, continues
 * where the cancelled call ended. A training session is ended, since it counts as one call.
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

/* Creates a token without a request and without a deadline. */
TUTTI_API int32_t tutti_cancel_create(tutti_cancel **out, tutti_error **err);
TUTTI_API void tutti_cancel_ref(tutti_cancel *token);
TUTTI_API void tutti_cancel_unref(tutti_cancel *token);

/* Requests TUTTI_CANCEL_STOP or TUTTI_CANCEL_CANCEL. A later, weaker request changes nothing. */
TUTTI_API int32_t tutti_cancel_request(tutti_cancel *token, int32_t strength, tutti_error **err);

/* Sets the deadline to `timeout_ms` milliseconds from now; a negative value removes it. It also applies to running
 * calls, so one token can serve many calls, each with its own deadline set before the call. */
TUTTI_API int32_t tutti_cancel_set_deadline(tutti_cancel *token, int64_t timeout_ms, tutti_error **err);

/* The token of the call that the running function of the host belongs to (a function of a pipeline, a model function, a
 * hook, a function of a file system): lent until that function returns, for use in its thread. NULL outside of such
 * functions and if nothing can end the call. It follows the token and deadline of the call; requesting STOP or CANCEL
 * on it ends nothing else. */
TUTTI_API tutti_cancel *tutti_cancel_get_current(void);

/* The strongest request so far: TUTTI_CANCEL_NONE, _STOP or _CANCEL (also after the deadline). NONE for NULL. */
TUTTI_API int32_t tutti_cancel_get_state(const tutti_cancel *token);

#ifdef __cplusplus
}
#endif

#endif /* TUTTI_CANCEL_H_ */
