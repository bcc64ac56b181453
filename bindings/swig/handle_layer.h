/* SPDX-License-Identifier: Apache-2.0
 *
 * The private layer between the C interface and SWIG, for what SWIG cannot say by typemaps: callbacks and lists of
 * text. Everything else is wrapped as the public headers declare it. Header-only C, part of each language's wrapper; no
 * program sees it.
 *
 * Callbacks  A language hands over a token, a number > 0 that means something to it alone. The trampolines here are
 *            what the library calls; they call the language's `language_upcalls` with the token. What a language's
 *            function throws must not leave it: it stores the error in *err and returns its code.
 * Release    The library's release of a callback is C code that runs on any thread and puts the token on a list; the
 *            language takes it from there, on a thread of its own, when it next calls. It never enters the language.
 * Lists      Texts come as one piece of memory in which a zero byte ends each.
 * Threads    Every function is safe from any thread; the threads of upcalls are those the public headers state.
 */
#ifndef TUTTI_BINDINGS_HANDLE_LAYER_H_
#define TUTTI_BINDINGS_HANDLE_LAYER_H_

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/file_system.h>
#include <tutti/predictor.h>
#include <tutti/record.h>
#include <tutti/step_function.h>
#include <tutti/version.h>

/* What a language defines, once, behind this header. */
struct tutti_upcalls {
  int32_t (*model)(int64_t token, tutti_graph *graph, int32_t mode, tutti_error **err);
  int32_t (*map)(int64_t token, tutti_graph *graph, tutti_error **err);
  int32_t (*hook)(int64_t token, const tutti_hook_event *event, tutti_error **err);
  void (*log)(int64_t token, int32_t severity, const char *text);
};
static const struct tutti_upcalls language_upcalls;

/* --- callbacks that the library keeps ----------------------------------------------------------------------------- */

/* The user pointer of a kept callback; on the list of released ones from its release until the language takes it. */
struct tutti_callback {
  int64_t token;
  struct tutti_callback *next;
};
static _Atomic(struct tutti_callback *) tutti_released_callbacks;

static inline void tutti_callback_release(void *user) {
  struct tutti_callback *callback = user;
  callback->next = atomic_load(&tutti_released_callbacks);
  while (!atomic_compare_exchange_weak(&tutti_released_callbacks, &callback->next, callback)) {
  }
}

/* A new user pointer; NULL, with the error set, when there is no memory. */
static inline struct tutti_callback *tutti_callback_create(int64_t token, tutti_error **err) {
  struct tutti_callback *callback = malloc(sizeof *callback);
  if (callback == NULL) {
    tutti_error_create(TUTTI_RESOURCE_EXHAUSTED, "tutti", "no memory for a callback", NULL, err, NULL);
    return NULL;
  }
  callback->token = token;
  callback->next = NULL;
  return callback;
}

/* Takes up to `count` tokens whose callbacks are released; gives how many. Each comes exactly once. */
static inline int64_t tutti_swig_callback_take_released(int64_t *values, int64_t count) {
  int64_t taken = 0;
  struct tutti_callback *list = atomic_exchange(&tutti_released_callbacks, NULL);
  while (list != NULL) {
    struct tutti_callback *callback = list;
    list = callback->next;
    if (taken < count) {
      values[taken++] = callback->token;
      free(callback);
    } else {
      tutti_callback_release(callback);
    }
  }
  return taken;
}

static inline int32_t tutti_callback_model(tutti_graph *graph, int32_t mode, void *user, tutti_error **err) {
  return language_upcalls.model(((struct tutti_callback *)user)->token, graph, mode, err);
}

static inline int32_t tutti_callback_hook(void *user, const tutti_hook_event *event, tutti_error **err) {
  return language_upcalls.hook(((struct tutti_callback *)user)->token, event, err);
}

static inline void tutti_callback_log(void *user, int32_t severity, const char *text) {
  language_upcalls.log(((struct tutti_callback *)user)->token, severity, text);
}

/* tutti_estimator_create with the token of a model function. The token is released in every case but for want of
 * memory for it. */
static inline int32_t tutti_swig_estimator_create(tutti_context *context, int64_t token, const tutti_strategy *strategy,
                                                  const tutti_options *run_options, tutti_estimator **out,
                                                  tutti_error **err) {
  struct tutti_callback *callback = tutti_callback_create(token, err);
  if (callback == NULL) return TUTTI_RESOURCE_EXHAUSTED;
  return tutti_estimator_create(context, tutti_callback_model, callback, tutti_callback_release, strategy, run_options,
                                out, err);
}

/* tutti_estimator_add_step_function likewise. */
static inline int32_t tutti_swig_estimator_add_step_function(tutti_estimator *estimator, const char *name, int32_t mode,
                                                             int64_t token, const tutti_dataset *input,
                                                             tutti_error **err) {
  struct tutti_callback *callback = tutti_callback_create(token, err);
  if (callback == NULL) return TUTTI_RESOURCE_EXHAUSTED;
  return tutti_estimator_add_step_function(estimator, name, mode, tutti_callback_model, callback,
                                           tutti_callback_release, input, err);
}

/* tutti_hooks_add with the token of a hook. */
static inline int32_t tutti_swig_hooks_add(tutti_hooks *hooks, int64_t token, int64_t every_steps, tutti_error **err) {
  struct tutti_callback *callback = tutti_callback_create(token, err);
  if (callback == NULL) return TUTTI_RESOURCE_EXHAUSTED;
  return tutti_hooks_add(hooks, tutti_callback_hook, callback, tutti_callback_release, every_steps, err);
}

/* tutti_context_set_log with the token of a sink; 0 = no sink. */
static inline int32_t tutti_swig_context_set_log(tutti_context *context, int64_t token, int32_t minimum_severity,
                                                 tutti_error **err) {
  if (token == 0) return tutti_context_set_log(context, NULL, NULL, NULL, minimum_severity, err);
  struct tutti_callback *callback = tutti_callback_create(token, err);
  if (callback == NULL) return TUTTI_RESOURCE_EXHAUSTED;
  return tutti_context_set_log(context, tutti_callback_log, callback, tutti_callback_release, minimum_severity, err);
}

/* --- callbacks of one call: the token stays the language's -------------------------------------------------------- */

static inline int32_t tutti_callback_map(tutti_graph *graph, void *user, tutti_error **err) {
  return language_upcalls.map(*(int64_t *)user, graph, err);
}

static inline void tutti_swig_pipeline_map_graph(tutti_pipeline *pipeline, int64_t token, int64_t parallelism) {
  tutti_pipeline_map_graph(pipeline, tutti_callback_map, &token, parallelism);
}

static inline void tutti_swig_pipeline_filter_graph(tutti_pipeline *pipeline, int64_t token) {
  tutti_pipeline_filter_graph(pipeline, tutti_callback_map, &token);
}

static inline void tutti_swig_pipeline_set_graph(tutti_pipeline *pipeline, int64_t token) {
  tutti_pipeline_set_graph(pipeline, tutti_callback_map, &token);
}

/* --- text --------------------------------------------------------------------------------------------------------- */

/* The address of each of `count` texts in memory of `size` bytes; NULL when there are fewer, or no memory. */
static inline const char **tutti_swig_split(const char *texts, int64_t size, int64_t count) {
  const char **list = malloc(sizeof *list * (size_t)(count + 1));
  const char *end = texts + size;
  for (int64_t i = 0; list != NULL && i < count; i++) {
    const char *zero = texts < end ? memchr(texts, 0, (size_t)(end - texts)) : NULL;
    if (zero == NULL) {
      free(list);
      return NULL;
    }
    list[i] = texts;
    texts = zero + 1;
  }
  return list;
}

static inline int32_t tutti_swig_bad_list(tutti_error **err) {
  tutti_error_create(TUTTI_INVALID_ARGUMENT, "tutti", "the list of texts is shorter than its count", NULL, err, NULL);
  return TUTTI_INVALID_ARGUMENT;
}

/* A list that is too short is an error of the graph. */
static inline void tutti_swig_graph_name_classes(tutti_graph *graph, const char *metric, const char *texts,
                                                 int64_t size, int64_t count) {
  const char **classes = tutti_swig_split(texts, size, count);
  tutti_graph_name_classes(graph, metric, classes, count);
  free(classes);
}

static inline int32_t tutti_swig_strategy_create_mirrored(tutti_context *context, const char *texts, int64_t size,
                                                          int64_t count, tutti_strategy **out, tutti_error **err) {
  const char **devices = tutti_swig_split(texts, size, count);
  if (devices == NULL) return tutti_swig_bad_list(err);
  int32_t code = tutti_strategy_create_mirrored(context, devices, count, out, err);
  free(devices);
  return code;
}

static inline int32_t tutti_swig_strategy_create_central_storage(tutti_context *context, const char *storage,
                                                                 const char *texts, int64_t size, int64_t count,
                                                                 tutti_strategy **out, tutti_error **err) {
  const char **devices = tutti_swig_split(texts, size, count);
  if (devices == NULL) return tutti_swig_bad_list(err);
  int32_t code = tutti_strategy_create_central_storage(context, storage, devices, count, out, err);
  free(devices);
  return code;
}

static inline int32_t tutti_swig_predictor_run(tutti_predictor *predictor, const char *texts, int64_t size,
                                               tutti_tensor *const *tensors, int64_t count, tutti_cancel *cancel,
                                               tutti_batch **out, tutti_error **err) {
  const char **names = tutti_swig_split(texts, size, count);
  if (names == NULL) return tutti_swig_bad_list(err);
  int32_t code = tutti_predictor_run(predictor, names, tensors, count, cancel, out, err);
  free(names);
  return code;
}

/* Text that the library lends until the next call is returned, so that the wrapper copies it; NULL after an error. */
static inline const char *tutti_swig_context_stop_profile(tutti_context *context, tutti_error **err) {
  const char *text = NULL;
  return tutti_context_stop_profile(context, &text, err) == TUTTI_OK ? text : NULL;
}

static inline const char *tutti_swig_estimator_estimate_memory(tutti_estimator *estimator, const tutti_dataset *dataset,
                                                               int64_t batch_size, tutti_error **err) {
  const char *text = NULL;
  return tutti_estimator_estimate_memory(estimator, dataset, batch_size, &text, err) == TUTTI_OK ? text : NULL;
}

/* 0 after an error. */
static inline int64_t tutti_swig_estimator_find_batch_size(tutti_estimator *estimator, const tutti_dataset *dataset,
                                                           int64_t most, tutti_error **err) {
  int64_t batch_size = 0;
  return tutti_estimator_find_batch_size(estimator, dataset, most, &batch_size, err) == TUTTI_OK ? batch_size : 0;
}

static inline const char *tutti_swig_iterator_save(tutti_iterator *iterator, tutti_error **err) {
  const char *text = NULL;
  return tutti_iterator_save(iterator, &text, err) == TUTTI_OK ? text : NULL;
}

static inline const char *tutti_swig_iterator_get_report(tutti_iterator *iterator, tutti_error **err) {
  const char *text = NULL;
  return tutti_iterator_get_report(iterator, &text, err) == TUTTI_OK ? text : NULL;
}

static inline const char *tutti_swig_predictor_describe_plan(tutti_predictor *predictor, int64_t rows,
                                                             int64_t timed_runs, tutti_cancel *cancel,
                                                             tutti_error **err) {
  const char *text = NULL;
  return tutti_predictor_describe_plan(predictor, rows, timed_runs, cancel, &text, err) == TUTTI_OK ? text : NULL;
}

#endif /* TUTTI_BINDINGS_HANDLE_LAYER_H_ */
