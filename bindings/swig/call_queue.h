/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions of data written in a language: the library's threads never enter it. What the library calls is C code that
 * puts the call into a queue and waits; a thread of the language takes it from there, computes, and finishes it.
 *
 *   library thread             language
 *   tutti_call_queue_run ── call ──►   take ... compute ... finish ──►   run returns
 *
 * So many calls are in the queue or under way as the library makes at a time, which bounds both. What a call is for,
 * element_calls.h says.
 *
 * Threads    Every function is safe from any thread. A call belongs to its taker until it is finished.
 * Lifetime   The library holds the queue until it releases the function, then takes give NULL. Who took a call holds it
 *            until finish, and who made the queue until unref. Each taken call must be finished, or a thread of the
 *            library waits for ever.
 */
#ifndef TUTTI_BINDINGS_CALL_QUEUE_H_
#define TUTTI_BINDINGS_CALL_QUEUE_H_

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <tutti/cancel.h>

/* A call, the beginning of a struct on the stack of the thread that waits for it. */
struct tutti_call {
  tutti_cancel *cancel; /* ends what the function is for; lent until finish, NULL = nothing does */
  int32_t code;
  tutti_error *error;
  bool done;
  struct tutti_call *next;
};

struct tutti_call_queue {
  pthread_mutex_t mutex;
  pthread_cond_t has_call, has_result;
  struct tutti_call *first, *last;
  bool released, closed;
  int64_t holders;
};

/* A queue that its maker and the library hold; NULL when there is no memory. */
static inline struct tutti_call_queue *tutti_call_queue_create(void) {
  struct tutti_call_queue *queue = calloc(1, sizeof *queue);
  if (queue == NULL) return NULL;
  pthread_mutex_init(&queue->mutex, NULL);
  pthread_cond_init(&queue->has_call, NULL);
  pthread_cond_init(&queue->has_result, NULL);
  queue->holders = 2;
  return queue;
}

/* Drops a holder with the mutex locked; unlocks it. */
static inline void tutti_call_queue_leave(struct tutti_call_queue *queue) {
  bool last = --queue->holders == 0;
  pthread_mutex_unlock(&queue->mutex);
  if (!last) return;
  pthread_cond_destroy(&queue->has_call);
  pthread_cond_destroy(&queue->has_result);
  pthread_mutex_destroy(&queue->mutex);
  free(queue);
}

/* What the library's thread does: hands the call over and waits for its end; gives its code, and its error in *err. */
static inline int32_t tutti_call_queue_run(struct tutti_call_queue *queue, struct tutti_call *call, tutti_error **err) {
  call->cancel = tutti_cancel_get_current();
  pthread_mutex_lock(&queue->mutex);
  if (queue->closed) {
    pthread_mutex_unlock(&queue->mutex);
    return tutti_error_set(err, TUTTI_ABORTED, "nobody computes this function any more");
  }
  if (queue->last != NULL) {
    queue->last->next = call;
  } else {
    queue->first = call;
  }
  queue->last = call;
  pthread_cond_signal(&queue->has_call);
  while (!call->done)
    pthread_cond_wait(&queue->has_result, &queue->mutex);
  pthread_mutex_unlock(&queue->mutex);
  if (err != NULL) {
    *err = call->error;
  } else {
    tutti_error_unref(call->error);
  }
  return call->code;
}

/* What the library calls when it is done with the function. */
static inline void tutti_call_queue_release(void *user) {
  struct tutti_call_queue *queue = user;
  pthread_mutex_lock(&queue->mutex);
  queue->released = true;
  pthread_cond_broadcast(&queue->has_call);
  tutti_call_queue_leave(queue);
}

static inline void tutti_swig_call_queue_unref(struct tutti_call_queue *queue) {
  pthread_mutex_lock(&queue->mutex);
  tutti_call_queue_leave(queue);
}

/* Nobody takes calls any more: those that wait, and all to come, fail. Those that were taken are still finished. */
static inline void tutti_swig_call_queue_close(struct tutti_call_queue *queue) {
  pthread_mutex_lock(&queue->mutex);
  queue->closed = true;
  for (struct tutti_call *call = queue->first; call != NULL; call = call->next) {
    call->code = tutti_error_set(&call->error, TUTTI_ABORTED, "nobody computes this function any more");
    call->done = true;
  }
  queue->first = queue->last = NULL;
  pthread_cond_broadcast(&queue->has_call);
  pthread_cond_broadcast(&queue->has_result);
  pthread_mutex_unlock(&queue->mutex);
}

/* Waits for a call; NULL when the library has released the function, or the queue is closed. */
static inline struct tutti_call *tutti_swig_call_queue_take(struct tutti_call_queue *queue) {
  pthread_mutex_lock(&queue->mutex);
  while (queue->first == NULL && !queue->released && !queue->closed)
    pthread_cond_wait(&queue->has_call, &queue->mutex);
  struct tutti_call *call = queue->first;
  if (call != NULL) {
    queue->first = call->next;
    if (queue->first == NULL) queue->last = NULL;
    queue->holders++;
  }
  pthread_mutex_unlock(&queue->mutex);
  return call;
}

/* The token of what a call that was taken is for. */
static inline tutti_cancel *tutti_swig_call_get_cancel(const struct tutti_call *call) { return call->cancel; }

/* Ends a call that was taken, with TUTTI_OK or a code and its error, which is taken. */
static inline void tutti_call_queue_finish(struct tutti_call_queue *queue, struct tutti_call *call, int32_t code,
                                           tutti_error *taken) {
  pthread_mutex_lock(&queue->mutex);
  call->code = code;
  call->error = taken;
  call->done = true;
  pthread_cond_broadcast(&queue->has_result);
  tutti_call_queue_leave(queue);
}

#endif /* TUTTI_BINDINGS_CALL_QUEUE_H_ */
