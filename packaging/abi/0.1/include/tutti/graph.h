/* SPDX-License-Identifier: Apache-2.0
 *
 * Graphs: the definition of a model. A model function receives a graph, adds ops, layers, a loss and an optimizer, and
 * returns; the library compiles and differentiates the graph. The typed helpers are in ops.h (generated); this header
 * contains the functions that they call.
 *
 * A graph describes the global batch: write one model for one batch, for any number of replicas.
 *
 * A schedule (tutti_schedule_...) is an ordinary scalar of the graph. A learning rate may be any floating point scalar
 * that ops compute from schedules, constants and host scalars, such as the product of two schedules. It must not depend
 * on data or variables.
 *
 * Denormal numbers are not 0 and smaller than the smallest normal number of their type (1.2e-38 for f32, 2.2e-308 for
 * f64). On x86 the backend "cpu" treats them as 0 in all arithmetic, and returns 0 for them; ops that only move
 * elements (reshape, transpose, slice, concat, gather, ...) keep them. The backend "reference" keeps them everywhere,
 * and so does "cpu" on other processors. On GPUs it depends on the libraries that compute a product or a convolution.
 *
 * Errors are deferred. A call that fails returns an invalid value (id < 0), which later calls pass through. The caller
 * of the model function reports the first error, with the scoped name of the node, the argument and the shapes.
 *
 * Threads: a graph is built by the thread that it was given to, and is valid only during the callback. Calls on another
 * thread change nothing and return invalid values, and the caller of the function fails with
 * TUTTI_FAILED_PRECONDITION.
 */
#ifndef TUTTI_GRAPH_H_
#define TUTTI_GRAPH_H_

#include <tutti/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tutti_graph tutti_graph;

/* A value of one graph: an output of an op. 0 = no value, negative = invalid because of an earlier error. */
typedef struct {
  int64_t id;
} tutti_value;

/* What the model is built for. */
#define TUTTI_MODE_TRAIN 1
#define TUTTI_MODE_EVAL 2
#define TUTTI_MODE_PREDICT 3

/* In a shape: the number of rows of the batch. */
#define TUTTI_DIM_BATCH INT64_MIN

/* No value: for an optional input that is not given. */
static inline tutti_value tutti_no_value(void) {
  tutti_value none;
  none.id = 0;
  return none;
}

/* --- inputs and outputs of the model ------------------------------------------------------------------------------ */

/* A component of the dataset by name, with the batch as first dimension. Dimensions that depend on the data are equal
 * in all rows of a batch and may differ from batch to batch. The first such dimension of each component has the same
 * size for all components, further ones if an op requires it; a batch that violates this is an error of the run, which
 * names it. */
TUTTI_API tutti_value tutti_graph_get_feature(tutti_graph *graph, const char *name);
TUTTI_API tutti_value tutti_graph_get_label(tutti_graph *graph, const char *name);
/* A component of weights, one per example; no value if the dataset has none of that name, and in mode PREDICT. */
TUTTI_API tutti_value tutti_graph_get_sample_weight(tutti_graph *graph, const char *name);
/* The mode: TUTTI_MODE_TRAIN, _EVAL or _PREDICT; 0 when `graph` is not a graph handle. */
TUTTI_API int32_t tutti_graph_get_mode(const tutti_graph *graph);
/* The run option params of the estimator whose model this is, "" for graphs of pipelines; lent during the call. NULL
 * when `graph` is not a graph handle. */
TUTTI_API const char *tutti_graph_get_params(const tutti_graph *graph);

/* A named prediction: what predict returns for each row. */
TUTTI_API void tutti_graph_set_output(tutti_graph *graph, const char *name, tutti_value value);
/* The scalar to minimize. If a batch is computed in parts (on several replicas, over micro-batches, or with determinism
 * "invariant"), and in every evaluation, it must be composed of sums and means over independent rows, like the loss of
 * each tutti_loss_ function with each reduction to a scalar; anything may be computed from these sums and means. A loss
 * that mixes rows, such as one that compares the rows of a batch with each other, can be trained on one device with
 * accumulation_steps 1, and cannot be evaluated: do not set it in mode TUTTI_MODE_EVAL. */
TUTTI_API void tutti_graph_set_loss(tutti_graph *graph, tutti_value loss);
/* A named scalar that train and evaluate report, exact over all examples: composed of sums and means over the rows, and
 * anything computed from these. */
TUTTI_API void tutti_graph_add_metric(tutti_graph *graph, const char *name, tutti_value value);
/* Names the classes of a metric that is a tensor and was added before: its elements become metrics, too, scalars that
 * results, hooks, logs and summaries have by these names. Of a tensor [classes], such as the recall of each class,
 * they are "recall/cat" and so on; of a tensor [classes, classes], such as a confusion matrix, "confusion/cat/dog" for
 * the row cat and the column dog. `classes` are `count` different names, one for each index, and are copied; at most
 * 4096 elements. */
TUTTI_API void tutti_graph_name_classes(tutti_graph *graph, const char *metric, const char *const *classes,
                                        int64_t count);
/* What a training and evaluations show of the model in TensorBoard, beside loss and metrics: in mode TRAIN at the steps
 * of the run option save_summary_steps, in mode EVAL for each evaluation, in its folder "eval"; in mode PREDICT and in
 * step functions (step_function.h) nothing. `name` is what TensorBoard shows, with "/" between groups; scopes are not
 * added. It must differ from the names of all other summaries and metrics of the model and of the run's own curves,
 * such as "loss".
 *   scalar      a number. As a metric it must be composed of sums and means over rows, and is exact over all of them.
 *   histogram   how elements are distributed: of the whole batch, for an evaluation of all of its rows
 *   image       [images, height, width, channels] with 1, 3 or 4 channels, of u8, or of floating point numbers from 0
 *               to 1; the first `max_images` of the batch (0 = 3), for an evaluation of its last batch. It needs a
 *               library that was built with libspng.
 *   text        in Markdown, the same in all steps: written when a training begins
 * Histograms and images of rows of values, and of weights, cost nothing in steps that show none: these run other
 * programs. Numbers, and others that are computed from several rows, are computed in every step, as a metric is;
 * without summaries (save_summary_steps 0, or no directory) nothing is. With several workers histograms are of the rows
 * of all; evaluations take images from the first worker. */
TUTTI_API void tutti_summary_scalar(tutti_graph *graph, const char *name, tutti_value value);
TUTTI_API void tutti_summary_histogram(tutti_graph *graph, const char *name, tutti_value value);
TUTTI_API void tutti_summary_image(tutti_graph *graph, const char *name, tutti_value images, int64_t max_images);
TUTTI_API void tutti_summary_text(tutti_graph *graph, const char *name, const char *text);
/* Limits the global norm of all gradients before the update: each gradient is multiplied by norm / max(global norm,
 * norm). The attributes clip_value and clip_norm of the optimizers limit single elements, and the norm of the gradient
 * of each variable. All three can be combined: first by value, then by the norm of each variable, then by the global
 * norm of the result. All apply to the gradient of the global batch, over all replicas and micro-batches. */
TUTTI_API void tutti_graph_set_gradient_clip_norm(tutti_graph *graph, double norm);

/* --- ops, layers, losses, optimizers by name ---------------------------------------------------------------------- */

/* One op is written as begin, inputs and attributes in any order, end. `revision` selects the meaning of the op (the
 * revision that a helper was generated from). */
TUTTI_API void tutti_graph_begin(tutti_graph *graph, const char *op, int32_t revision);
TUTTI_API void tutti_graph_add_input(tutti_graph *graph, tutti_value value);
TUTTI_API void tutti_graph_set_bool(tutti_graph *graph, const char *key, uint8_t value);
TUTTI_API void tutti_graph_set_i64(tutti_graph *graph, const char *key, int64_t value);
TUTTI_API void tutti_graph_set_f64(tutti_graph *graph, const char *key, double value);
TUTTI_API void tutti_graph_set_string(tutti_graph *graph, const char *key, const char *value);
TUTTI_API void tutti_graph_set_i64s(tutti_graph *graph, const char *key, const int64_t *values, int64_t count);
TUTTI_API void tutti_graph_set_f64s(tutti_graph *graph, const char *key, const double *values, int64_t count);
TUTTI_API void tutti_graph_set_tensor(tutti_graph *graph, const char *key, const tutti_tensor *value);
/* Adds the op and returns its first output. `more` (may be NULL) receives outputs 1, 2, ... up to `more_count`. */
TUTTI_API tutti_value tutti_graph_end(tutti_graph *graph, tutti_value *more, int64_t more_count);

/* Ops with regions: small graphs that the op runs, built by the same calls. Between begin and end, after inputs and
 * attributes, each region is begun, written and ended, in the order of the op; ops within it are begun and ended as
 * outside. Values from outside may be used in it, except in those of custom_gradient. region.h has a helper for each:
 *   call              one region, whose parameters are like the inputs. The backward pass computes it again instead of
 *                     keeping its values.
 *   scan              one region, run for each index of an axis of the sequences, one after the other
 *   cond              two regions without parameters; input 0, a boolean scalar, says which one runs
 *   custom_gradient   the region, and its gradient
 * `parameters` receives the values that the region gets; `count` must be their number. `results` are what it gives. */
TUTTI_API void tutti_graph_begin_region(tutti_graph *graph, tutti_value *parameters, int64_t count);
TUTTI_API void tutti_graph_end_region(tutti_graph *graph, const tutti_value *results, int64_t count);

/* Names: everything added until the matching pop is called "<name>/...". */
TUTTI_API void tutti_graph_push_scope(tutti_graph *graph, const char *name);
TUTTI_API void tutti_graph_pop_scope(tutti_graph *graph);

/* --- variables and gradients -------------------------------------------------------------------------------------- */

/* A scalar constant. */
TUTTI_API tutti_value tutti_graph_constant(tutti_graph *graph, int32_t dtype, double value);
/* A constant with the tensor's contents. */
TUTTI_API tutti_value tutti_graph_constant_tensor(tutti_graph *graph, const tutti_tensor *tensor);
/* A scalar that the host can change while training with tutti_session_set_scalar. */
TUTTI_API tutti_value tutti_graph_host_scalar(tutti_graph *graph, const char *name, double initial_value);

/* The number of completed steps, an f32 scalar: 0 in the first step, and beyond 2^24 the nearest f32. A learning rate
 * may be computed from it; schedules count exactly up to 2^53. */
TUTTI_API tutti_value tutti_graph_get_completed_steps(tutti_graph *graph);

/* A variable. `initializer` is a name, or a name with arguments, as in the layers: "zeros", "ones", "constant(value)",
 * "random_normal(stddev, mean)", "truncated_normal(stddev, mean)", "random_uniform(high, low)", "orthogonal(gain)"
 * (Saxe et al., 2014), "identity(gain)", "variance_scaling(scale, mode, distribution)" with mode fan_in, fan_out or
 * fan_avg and distribution truncated_normal, normal or uniform, and its special cases "glorot_uniform",
 * "glorot_normal", "he_uniform", "he_normal", "lecun_uniform" and "lecun_normal". Arguments may be named,
 * "variance_scaling(mode=fan_out)". Without arguments, `parameter` is the constant, standard deviation, bound or gain.
 * `name` is appended to the scope; using a name twice is an error. */
TUTTI_API tutti_value tutti_graph_variable(tutti_graph *graph, const char *name, int32_t dtype, const int64_t *dims,
                                           int64_t rank, const char *initializer, double parameter, uint8_t trainable);
/* The values that a variable made before begins with, in place of its initializer: those of the tensor, which has its
 * dtype and shape. `variable` is its full name, with scopes, so that it may be one of a layer, such as "dense/kernel".
 * The tensor still belongs to the caller, who must not change it. */
TUTTI_API void tutti_graph_set_initial_value(tutti_graph *graph, const char *variable, const tutti_tensor *value);
/* A saved model as a part of this one, such as for training it on: the output of that name (NULL = the only one, or the
 * only one of floating point) as a checkpoint predicts it, of a directory of checkpoints the newest one. It is computed
 * from features of this graph with the names and shapes of the saved ones; `input`, unless it is no value, stands for
 * the one called `feature` (NULL = the only one). Its variables are those of the checkpoint, in the scope "model",
 * "model_1" and so on, as in "model/dense/kernel"; they begin with the saved weights, with their moving averages where
 * the optimizer kept some, and are trained unless they are statistics (tutti_estimator_set_trainable freezes them). Of
 * layers there is what they do in predictions: no dropout, and batch normalization by its averages, which stay. The
 * checkpoint is a part of the model function: it is read each time a graph is built, to evaluate and to resume, too,
 * so it has to stay where and as it is. Only predictions from checkpoints of this model need it no more. */
TUTTI_API tutti_value tutti_graph_add_saved_model(tutti_graph *graph, const char *path, const char *feature,
                                                  tutti_value input, const char *output);
/* The next value of the variable, stored when the step is complete; the mean over micro-batches and replicas, weighted
 * by rows. */
TUTTI_API void tutti_graph_assign(tutti_graph *graph, tutti_value variable, tutti_value value);

/* d(target)/d(wrt[i]) for each i; invalid where there is no path. */
TUTTI_API void tutti_gradients(tutti_graph *graph, tutti_value target, const tutti_value *wrt, int64_t count,
                               tutti_value *out);
/* Passes these gradients, each shaped like its variable, to the optimizer instead of those of the loss; before or after
 * the optimizer, once per model. Variables that are not in the list are not trained. A gradient is that of the global
 * batch, no matter how it is computed: clip it, mask it, or add to it as on one device. Operations that are not linear
 * in the rows (such as a clip by value) make the replicas wait for each other within the step, and do not work with
 * accumulation_steps above 1. */
TUTTI_API void tutti_apply_gradients(tutti_graph *graph, const tutti_value *variables, const tutti_value *gradients,
                                     int64_t count);

/* --- inspecting values -------------------------------------------------------------------------------------------- */

/* Type and shape as far as they are known: -1 for the batch or another unknown size; rank -1 for an invalid value. */
TUTTI_API int32_t tutti_graph_get_dtype(const tutti_graph *graph, tutti_value value);
TUTTI_API int64_t tutti_graph_get_rank(const tutti_graph *graph, tutti_value value);
TUTTI_API int64_t tutti_graph_get_dim(const tutti_graph *graph, tutti_value value, int64_t axis);

/* The first error so far, or TUTTI_OK. A model function may return it as its result. */
TUTTI_API int32_t tutti_graph_check(const tutti_graph *graph, tutti_error **err);

#ifdef __cplusplus
}
#endif

#endif /* TUTTI_GRAPH_H_ */
