/* SPDX-License-Identifier: Apache-2.0
 *
 * Maps written in a language: the library's threads never enter it. What the library calls is C code that puts the
 * element into a queue and waits; a thread of the language takes elements from there, computes, and finishes them.
 *
 *   library thread                    language
 *   tutti_map_queue_run ── work ──►   take ... input, input, ... ── finish ──►   run returns
 *
 * So many elements are in the queue or under way as the library has threads in the map, which bounds both.
 *
 * Threads    Every function is safe from any thread. An element belongs to its taker until finish.
 * Lifetime   The library holds the queue from pipeline_map to the release of the map, then takes give NULL. Who took
 *            an element holds it until finish, and pipeline_map's caller until unref. Each taken element must be
 *            finished, or a thread of the library waits for ever.
 */
#ifndef TUTTI_BINDINGS_MAP_QUEUE_H_
#define TUTTI_BINDINGS_MAP_QUEUE_H_

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <tutti/dataset.h>

/* One element, on the stack of the thread that waits for it. */
struct tutti_map_work {
  tutti_tensor *const *inputs;
  tutti_tensor **outputs;
  int64_t count;
  int32_t code;
  tutti_error *error;
  bool done;
  struct tutti_map_work *next;
};

struct tutti_map_queue {
  pthread_mutex_t mutex;
  pthread_cond_t has_work, has_result;
  struct tutti_map_work *first, *last;
  bool released, closed;
  int64_t holders;
};

/* Drops a holder with the mutex locked; unlocks it. */
static inline void tutti_map_queue_leave(struct tutti_map_queue *queue) {
  bool last = --queue->holders == 0;
  pthread_mutex_unlock(&queue->mutex);
  if (!last) return;
  pthread_cond_destroy(&queue->has_work);
  pthread_cond_destroy(&queue->has_result);
  pthread_mutex_destroy(&queue->mutex);
  free(queue);
}

/* What the library calls for an element. */
static inline int32_t tutti_map_queue_run(void *user, tutti_tensor *const *inputs, tutti_tensor **outputs,
                                          int64_t count, tutti_error **err) {
  struct tutti_map_queue *queue = user;
  struct tutti_map_work work = {inputs, outputs, count, TUTTI_OK, NULL, false, NULL};
  pthread_mutex_lock(&queue->mutex);
  if (queue->closed) {
    pthread_mutex_unlock(&queue->mutex);
    return tutti_error_set(err, TUTTI_ABORTED, "nobody computes this map any more");
  }
  if (queue->last != NULL) {
    queue->last->next = &work;
  } else {
    queue->first = &work;
  }
  queue->last = &work;
  pthread_cond_signal(&queue->has_work);
  while (!work.done)
    pthread_cond_wait(&queue->has_result, &queue->mutex);
  pthread_mutex_unlock(&queue->mutex);
  if (err != NULL) {
    *err = work.error;
  } else {
    tutti_error_unref(work.error);
  }
  return work.code;
}

/* What the library calls when it is done with the map. */
static inline void tutti_map_queue_release(void *user) {
  struct tutti_map_queue *queue = user;
  pthread_mutex_lock(&queue->mutex);
  queue->released = true;
  pthread_cond_broadcast(&queue->has_work);
  tutti_map_queue_leave(queue);
}

/* tutti_pipeline_map by a queue, which the caller holds; NULL when there is no memory. */
static inline struct tutti_map_queue *tutti_swig_pipeline_map(tutti_pipeline *pipeline, int64_t parallelism) {
  struct tutti_map_queue *queue = calloc(1, sizeof *queue);
  if (queue == NULL) return NULL;
  pthread_mutex_init(&queue->mutex, NULL);
  pthread_cond_init(&queue->has_work, NULL);
  pthread_cond_init(&queue->has_result, NULL);
  queue->holders = 2;
  tutti_pipeline_map(pipeline, tutti_map_queue_run, queue, tutti_map_queue_release, parallelism);
  return queue;
}

static inline void tutti_swig_map_queue_unref(struct tutti_map_queue *queue) {
  pthread_mutex_lock(&queue->mutex);
  tutti_map_queue_leave(queue);
}

/* Nobody takes elements any more: those that wait, and all to come, fail. Those that were taken are still finished. */
static inline void tutti_swig_map_queue_close(struct tutti_map_queue *queue) {
  pthread_mutex_lock(&queue->mutex);
  queue->closed = true;
  for (struct tutti_map_work *work = queue->first; work != NULL; work = work->next) {
    work->code = tutti_error_set(&work->error, TUTTI_ABORTED, "nobody computes this map any more");
    work->done = true;
  }
  queue->first = queue->last = NULL;
  pthread_cond_broadcast(&queue->has_work);
  pthread_cond_broadcast(&queue->has_result);
  pthread_mutex_unlock(&queue->mutex);
}

/* Waits for an element; NULL when the library has released the map, or the queue is closed. */
static inline struct tutti_map_work *tutti_swig_map_queue_take(struct tutti_map_queue *queue) {
  pthread_mutex_lock(&queue->mutex);
  while (queue->first == NULL && !queue->released && !queue->closed)
    pthread_cond_wait(&queue->has_work, &queue->mutex);
  struct tutti_map_work *work = queue->first;
  if (work != NULL) {
    queue->first = work->next;
    if (queue->first == NULL) queue->last = NULL;
    queue->holders++;
  }
  pthread_mutex_unlock(&queue->mutex);
  return work;
}

static inline int64_t tutti_swig_map_work_get_count(const struct tutti_map_work *work) { return work->count; }

/* A tensor of the element, lent until finish. */
static inline tutti_tensor *tutti_swig_map_work_get_input(const struct tutti_map_work *work, int64_t index) {
  return index >= 0 && index < work->count ? work->inputs[index] : NULL;
}

/* Ends an element: with TUTTI_OK and as many tensors as it had, of which the library takes new references; or with a
 * code and the error, which is taken. */
static inline void tutti_swig_map_queue_finish(struct tutti_map_queue *queue, struct tutti_map_work *work,
                                               tutti_tensor *const *tensors, int64_t count, int32_t code,
                                               tutti_error *taken) {
  if (code == TUTTI_OK && count != work->count) {
    code = tutti_error_set(&taken, TUTTI_INVALID_ARGUMENT, "the map gives another number of tensors than it got");
  }
  for (int64_t i = 0; code == TUTTI_OK && i < count; i++) {
    tutti_tensor_ref(tensors[i]);
    work->outputs[i] = tensors[i];
  }
  pthread_mutex_lock(&queue->mutex);
  work->code = code;
  work->error = taken;
  work->done = true;
  pthread_cond_broadcast(&queue->has_result);
  tutti_map_queue_leave(queue);
}

#endif /* TUTTI_BINDINGS_MAP_QUEUE_H_ */
