/* SPDX-License-Identifier: Apache-2.0
 *
 * Functions over the elements of a dataset, written in a language: maps, predicates, scans, functions that give the
 * dataset of an element, and generators. Each is set with a queue (call_queue.h), from which threads of the language
 * take calls. Of a map there are several at a time, of the others one for each iterator. The functions that set one
 * give the queue, which the caller holds; NULL when there is no memory. Header-only C, behind call_queue.h.
 */
#ifndef TUTTI_BINDINGS_ELEMENT_CALLS_H_
#define TUTTI_BINDINGS_ELEMENT_CALLS_H_

#include <tutti/map_process.h>

#include <stdio.h>

/* What a function gets, and where its results go; NULL and 0 for what it has not. */
struct tutti_element_call {
  struct tutti_call call;
  tutti_tensor *const *state;  /* of a scan */
  tutti_tensor *const *inputs; /* the element */
  int64_t state_count, count;
  int64_t pass, index; /* which element a generator is asked for */
  tutti_tensor **new_state, **outputs;
  int64_t output_count;
  uint8_t *answer; /* of a predicate; whether a generator has the element */
  tutti_dataset **dataset;
};

/* --- what the library calls --------------------------------------------------------------------------------------- */

static inline int32_t tutti_element_map(void *user, tutti_tensor *const *inputs, int64_t count, tutti_tensor **outputs,
                                        int64_t output_count, tutti_error **err) {
  struct tutti_element_call call = {.inputs = inputs, .count = count, .outputs = outputs, .output_count = output_count};
  return tutti_call_queue_run(user, &call.call, err);
}

static inline int32_t tutti_element_predicate(void *user, tutti_tensor *const *inputs, int64_t count, uint8_t *answer,
                                              tutti_error **err) {
  struct tutti_element_call call = {.inputs = inputs, .count = count, .answer = answer};
  return tutti_call_queue_run(user, &call.call, err);
}

static inline int32_t tutti_element_scan(void *user, tutti_tensor *const *state, tutti_tensor **new_state,
                                         int64_t state_count, tutti_tensor *const *inputs, int64_t count,
                                         tutti_tensor **outputs, int64_t output_count, tutti_error **err) {
  struct tutti_element_call call = {.state = state,
                                    .new_state = new_state,
                                    .state_count = state_count,
                                    .inputs = inputs,
                                    .count = count,
                                    .outputs = outputs,
                                    .output_count = output_count};
  return tutti_call_queue_run(user, &call.call, err);
}

static inline int32_t tutti_element_expand(void *user, tutti_tensor *const *inputs, int64_t count,
                                           tutti_dataset **dataset, tutti_error **err) {
  struct tutti_element_call call = {.inputs = inputs, .count = count, .dataset = dataset};
  return tutti_call_queue_run(user, &call.call, err);
}

static inline int32_t tutti_element_generate(void *user, int64_t pass, int64_t index, tutti_tensor **outputs,
                                             int64_t count, uint8_t *has_element, tutti_error **err) {
  struct tutti_element_call call = {
      .pass = pass, .index = index, .outputs = outputs, .output_count = count, .answer = has_element};
  return tutti_call_queue_run(user, &call.call, err);
}

/* --- setting a function ------------------------------------------------------------------------------------------- */

static inline struct tutti_call_queue *tutti_swig_pipeline_set_map(tutti_pipeline *pipeline) {
  struct tutti_call_queue *queue = tutti_call_queue_create();
  if (queue != NULL) tutti_pipeline_set_map(pipeline, tutti_element_map, queue, tutti_call_queue_release);
  return queue;
}

static inline struct tutti_call_queue *tutti_swig_pipeline_set_predicate(tutti_pipeline *pipeline) {
  struct tutti_call_queue *queue = tutti_call_queue_create();
  if (queue != NULL) tutti_pipeline_set_predicate(pipeline, tutti_element_predicate, queue, tutti_call_queue_release);
  return queue;
}

static inline struct tutti_call_queue *tutti_swig_pipeline_set_scan(tutti_pipeline *pipeline) {
  struct tutti_call_queue *queue = tutti_call_queue_create();
  if (queue != NULL) tutti_pipeline_set_scan(pipeline, tutti_element_scan, queue, tutti_call_queue_release);
  return queue;
}

static inline struct tutti_call_queue *tutti_swig_pipeline_set_expand(tutti_pipeline *pipeline) {
  struct tutti_call_queue *queue = tutti_call_queue_create();
  if (queue != NULL) tutti_pipeline_set_expand(pipeline, tutti_element_expand, queue, tutti_call_queue_release);
  return queue;
}

static inline struct tutti_call_queue *tutti_swig_pipeline_add_generator(tutti_pipeline *pipeline) {
  struct tutti_call_queue *queue = tutti_call_queue_create();
  if (queue != NULL) tutti_pipeline_add_generator(pipeline, tutti_element_generate, queue, tutti_call_queue_release);
  return queue;
}

/* --- a worker process --------------------------------------------------------------------------------------------- */

/* A queue for tutti_swig_serve_map, which the caller holds. */
static inline struct tutti_call_queue *tutti_swig_call_queue_create(void) { return tutti_call_queue_create(); }

/* Serves until the input ends, by calls of the queue; releases the function then. */
static inline int32_t tutti_swig_serve_map(struct tutti_call_queue *queue, tutti_cancel *cancel, tutti_error **err) {
  int32_t code = tutti_serve_map(tutti_element_map, queue, cancel, err);
  tutti_call_queue_release(queue);
  return code;
}

/* --- a call that was taken ---------------------------------------------------------------------------------------- */

static inline int64_t tutti_swig_element_call_get_state_count(const struct tutti_call *call) {
  return ((const struct tutti_element_call *)call)->state_count;
}

/* How many tensors the call has: those of the state, then those of the element. */
static inline int64_t tutti_swig_element_call_get_count(const struct tutti_call *call) {
  const struct tutti_element_call *of = (const struct tutti_element_call *)call;
  return of->state_count + of->count;
}

/* One of them, lent until finish. */
static inline tutti_tensor *tutti_swig_element_call_get_tensor(const struct tutti_call *call, int64_t index) {
  const struct tutti_element_call *of = (const struct tutti_element_call *)call;
  if (index < 0 || index >= of->state_count + of->count) return NULL;
  return index < of->state_count ? of->state[index] : of->inputs[index - of->state_count];
}

/* Which element a generator is asked for: the pass, and its place there. */
static inline int64_t tutti_swig_element_call_get_pass(const struct tutti_call *call) {
  return ((const struct tutti_element_call *)call)->pass;
}

static inline int64_t tutti_swig_element_call_get_index(const struct tutti_call *call) {
  return ((const struct tutti_element_call *)call)->index;
}

/* The new state and the outputs, of which the library takes new references; gives the code. */
static inline int32_t tutti_element_call_store(struct tutti_element_call *call, tutti_tensor *const *tensors,
                                               int64_t count, tutti_error **err) {
  int64_t places = call->new_state != NULL ? call->state_count : 0;
  if (count != places + call->output_count) {
    char text[96];
    snprintf(text, sizeof text, "the function gives %lld tensors; expected %lld", (long long)count,
             (long long)(places + call->output_count));
    return tutti_error_set(err, TUTTI_INVALID_ARGUMENT, text);
  }
  for (int64_t i = 0; i < count; i++) {
    tutti_tensor_ref(tensors[i]);
    *(i < places ? &call->new_state[i] : &call->outputs[i - places]) = tensors[i];
  }
  return TUTTI_OK;
}

/* Ends a call: with TUTTI_OK and what the function has to give (the tensors of the new state and of the outputs, the
 * answer, the dataset; the library takes new references), or with a code and the error, which is taken. A generator
 * gives the answer false, and no tensors, behind its last element. */
static inline void tutti_swig_element_call_finish(struct tutti_call_queue *queue, struct tutti_call *call,
                                                  tutti_tensor *const *tensors, int64_t count, uint8_t answer,
                                                  tutti_dataset *dataset, int32_t code, tutti_error *taken) {
  struct tutti_element_call *of = (struct tutti_element_call *)call;
  bool has_end = of->answer != NULL && !answer;
  if (code == TUTTI_OK && !has_end) code = tutti_element_call_store(of, tensors, count, &taken);
  if (code == TUTTI_OK && of->answer != NULL) *of->answer = answer;
  if (code == TUTTI_OK && of->dataset != NULL) {
    tutti_dataset_ref(dataset);
    *of->dataset = dataset;
  }
  tutti_call_queue_finish(queue, call, code, taken);
}

#endif /* TUTTI_BINDINGS_ELEMENT_CALLS_H_ */
