/* SPDX-License-Identifier: Apache-2.0
 *
 * What all languages share. A language's file (tutti_go.i, ...) defines the typemaps TUTTI_HANDLE(name) and those of
 * numbers, lists and text, then includes this one.
 *
 * The raw layer is flat: one function for each function of the public headers, its name without "tutti_", handles as
 * numbers of pointer size. It has no proxy classes: who closes what, and when, is the business of the layer above. A
 * new public function that keeps to the conventions of status.h gets here by itself.
 */
%define TUTTI_API
%enddef
%rename("%(strip:[tutti_])s") "";
%rename("%(regex:/^tutti_swig_(.*)/\\1/)s", regexmatch$name="^tutti_swig_") "";
%rename("%(strip:[TUTTI_])s", %$isconstant) "";

TUTTI_HANDLE(batch)
TUTTI_HANDLE(cancel)
TUTTI_HANDLE(cluster_resolver)
TUTTI_HANDLE(context)
TUTTI_HANDLE(dataset)
TUTTI_HANDLE(error)
TUTTI_HANDLE(estimator)
TUTTI_HANDLE(feed)
TUTTI_HANDLE(graph)
TUTTI_HANDLE(hook_event)
TUTTI_HANDLE(hooks)
TUTTI_HANDLE(iterator)
TUTTI_HANDLE(options)
TUTTI_HANDLE(pipeline)
TUTTI_HANDLE(prediction_stream)
TUTTI_HANDLE(predictor)
TUTTI_HANDLE(prometheus)
TUTTI_HANDLE(record_writer)
TUTTI_HANDLE(replica_values)
TUTTI_HANDLE(result)
TUTTI_HANDLE(session)
TUTTI_HANDLE(strategy)
TUTTI_HANDLE(summary_writer)
TUTTI_HANDLE(tensor)

/* Constants that are no numbers of their own. */
%ignore TUTTI_DIM_BATCH;
%constant int64_t DIM_BATCH = INT64_MIN;
%ignore tutti_value;
%ignore tutti_no_value;
%ignore TUTTI_STATUS_H_;

/* Function pointers and lists of text: the functions of handle_layer.h, element_calls.h, file_calls.h and
 * lent_memory.h stand for these. */
%ignore tutti_context_add_file_system;
%ignore tutti_context_set_log;
%ignore tutti_context_stop_profile;
%ignore tutti_estimator_add_step_function;
%ignore tutti_estimator_create;
%ignore tutti_estimator_estimate_memory;
%ignore tutti_estimator_evaluate_fn;
%ignore tutti_estimator_find_batch_size;
%ignore tutti_estimator_train_fn;
%ignore tutti_hooks_add;
%ignore tutti_iterator_get_report;
%ignore tutti_iterator_save;
%ignore tutti_pipeline_add_generator;
%ignore tutti_pipeline_filter_graph;
%ignore tutti_pipeline_map;
%ignore tutti_pipeline_map_graph;
%ignore tutti_pipeline_set_expand;
%ignore tutti_pipeline_set_graph;
%ignore tutti_pipeline_set_map;
%ignore tutti_pipeline_set_predicate;
%ignore tutti_pipeline_set_scan;
%ignore tutti_predictor_describe_plan;
%ignore tutti_predictor_run;
%ignore tutti_serve_map;
%ignore tutti_graph_name_classes;
%ignore tutti_strategy_create_central_storage;
%ignore tutti_strategy_create_mirrored;
%ignore tutti_tensor_take_memory;

%include <tutti/status.h>
%include <tutti/version.h>
%include <tutti/cancel.h>
%include <tutti/options.h>
%include <tutti/context.h>
%include <tutti/file_system.h>
%include <tutti/tensor.h>
%include <tutti/graph.h>
%include <tutti/dataset.h>
%include <tutti/map_process.h>
%include <tutti/cluster_resolver.h>
%include <tutti/strategy.h>
%include <tutti/summary.h>
%include <tutti/hook.h>
%include <tutti/estimator.h>
%include <tutti/predictor.h>
%include <tutti/record.h>
%include <tutti/step_function.h>

int64_t tutti_swig_callback_take_released(int64_t *values, int64_t count);
int32_t tutti_swig_estimator_create(tutti_context *context, int64_t token, const tutti_strategy *strategy,
                                    const tutti_options *run_options, tutti_estimator **out, tutti_error **err);
int32_t tutti_swig_estimator_add_step_function(tutti_estimator *estimator, const char *name, int32_t mode,
                                               int64_t token, const tutti_dataset *input, tutti_error **err);
int32_t tutti_swig_hooks_add(tutti_hooks *hooks, int64_t token, int64_t every_steps, tutti_error **err);
int32_t tutti_swig_context_set_log(tutti_context *context, int64_t token, int32_t minimum_severity, tutti_error **err);
void tutti_swig_pipeline_map_graph(tutti_pipeline *pipeline, int64_t token, int64_t parallelism);
void tutti_swig_pipeline_filter_graph(tutti_pipeline *pipeline, int64_t token);
void tutti_swig_pipeline_set_graph(tutti_pipeline *pipeline, int64_t token);
void tutti_swig_graph_name_classes(tutti_graph *graph, const char *metric, const char *texts, int64_t size,
                                   int64_t count);
int32_t tutti_swig_strategy_create_central_storage(tutti_context *context, const char *storage, const char *texts,
                                                   int64_t size, int64_t count, tutti_strategy **out,
                                                   tutti_error **err);
int32_t tutti_swig_strategy_create_mirrored(tutti_context *context, const char *texts, int64_t size, int64_t count,
                                            tutti_strategy **out, tutti_error **err);
int32_t tutti_swig_tensor_take_memory(int64_t token, int32_t dtype, const int64_t *dims, int64_t rank,
                                      const void *data, int64_t size_bytes, tutti_tensor **out, tutti_error **err);
int64_t tutti_swig_memory_take_returned(void);
int32_t tutti_swig_predictor_run(tutti_predictor *predictor, const char *texts, int64_t size,
                                 tutti_tensor *const *tensors, int64_t count, tutti_cancel *cancel, tutti_batch **out,
                                 tutti_error **err);
struct tutti_call_queue *tutti_swig_pipeline_set_map(tutti_pipeline *pipeline);
struct tutti_call_queue *tutti_swig_pipeline_set_predicate(tutti_pipeline *pipeline);
struct tutti_call_queue *tutti_swig_pipeline_set_scan(tutti_pipeline *pipeline);
struct tutti_call_queue *tutti_swig_pipeline_set_expand(tutti_pipeline *pipeline);
struct tutti_call_queue *tutti_swig_pipeline_add_generator(tutti_pipeline *pipeline);
struct tutti_call_queue *tutti_swig_call_queue_create(void);
int32_t tutti_swig_serve_map(struct tutti_call_queue *queue, tutti_cancel *cancel, tutti_error **err);
void tutti_swig_call_queue_unref(struct tutti_call_queue *queue);
struct tutti_call *tutti_swig_call_queue_take(struct tutti_call_queue *queue);
tutti_cancel *tutti_swig_call_get_cancel(const struct tutti_call *call);
int64_t tutti_swig_element_call_get_state_count(const struct tutti_call *call);
int64_t tutti_swig_element_call_get_count(const struct tutti_call *call);
tutti_tensor *tutti_swig_element_call_get_tensor(const struct tutti_call *call, int64_t index);
int64_t tutti_swig_element_call_get_pass(const struct tutti_call *call);
int64_t tutti_swig_element_call_get_index(const struct tutti_call *call);
void tutti_swig_element_call_finish(struct tutti_call_queue *queue, struct tutti_call *call,
                                    tutti_tensor *const *tensors, int64_t count, uint8_t answer,
                                    tutti_dataset *dataset, int32_t code, tutti_error *taken);
%constant int32_t FILE_OPEN = 1;
%constant int32_t FILE_READ = 2;
%constant int32_t FILE_CLOSE = 3;
%constant int32_t FILE_LIST = 4;
struct tutti_call_queue *tutti_swig_context_add_file_system(tutti_context *context, const char *scheme, uint8_t lists,
                                                            tutti_error **err);
int32_t tutti_swig_file_call_get_kind(const struct tutti_call *call);
const char *tutti_swig_file_call_get_path(const struct tutti_call *call);
int64_t tutti_swig_file_call_get_file(const struct tutti_call *call);
int64_t tutti_swig_file_call_get_offset(const struct tutti_call *call);
int64_t tutti_swig_file_call_get_size(const struct tutti_call *call);
const void *tutti_swig_file_call_get_target(const struct tutti_call *call);
void tutti_swig_file_call_add_name(struct tutti_call *call, const char *name);
void tutti_swig_file_call_finish(struct tutti_call_queue *queue, struct tutti_call *call, int64_t file, int64_t number,
                                 const char *version, int32_t code, tutti_error *taken);
const char *tutti_swig_context_stop_profile(tutti_context *context, tutti_error **err);
const char *tutti_swig_estimator_estimate_memory(tutti_estimator *estimator, const tutti_dataset *dataset,
                                                 int64_t batch_size, tutti_error **err);
int64_t tutti_swig_estimator_find_batch_size(tutti_estimator *estimator, const tutti_dataset *dataset, int64_t most,
                                             tutti_error **err);
const char *tutti_swig_iterator_save(tutti_iterator *iterator, tutti_error **err);
const char *tutti_swig_iterator_get_report(tutti_iterator *iterator, tutti_error **err);
const char *tutti_swig_predictor_describe_plan(tutti_predictor *predictor, int64_t rows, int64_t timed_runs,
                                               tutti_cancel *cancel, tutti_error **err);
