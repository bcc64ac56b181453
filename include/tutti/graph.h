/* SPDX-License-Identifier: Apache-2.0
 *
 * Graphs: how a model is written down. A model function receives a graph, adds ops, layers, a loss and an optimizer,
 * and returns; the library compiles and differentiates what it wrote. The typed helpers are in ops.h (generated); this
 * header holds the calls beneath them.
 *
 * A graph means the global batch: write one model for one batch, whatever the number of replicas.
 *
 * A schedule (tutti_schedule_...) is an ordinary scalar of the graph, and a learning rate may be any floating point
 * scalar: what ops compute from schedules, constants and host scalars, such as the product of two schedules. It may not
 * depend on data or variables.
 *
 * Denormal numbers, which are not 0 and smaller than the smallest normal one of their type (1.2e-38 for f32, 2.2e-308
 * for f64): on x86 the backend "cpu" takes them for 0 in all arithmetic, and gives 0 for them; ops that only move
 * elements (reshape, transpose, slice, concat, gather, ...) keep them. The backend "reference" keeps them everywhere,
 * and so does "cpu" on other processors. What GPUs do is up to the libraries that compute a product or a convolution.
 *
 * Errors are deferred. A call that cannot work gives an invalid value (id < 0), which later calls pass through; the
 * first error, with the node's scoped name, the argument and the shapes, is what the model function's caller reports.
 *
 * Threads: a graph is built by the thread that was given it and is valid during the callback only. Calls on another
 * thread change nothing and give invalid values, and what called the function fails with TUTTI_FAILED_PRECONDITION.
 */
#ifndef TUTTI_GRAPH_H_
#define TUTTI_GRAPH_H_

#include <tutti/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tutti_graph tutti_graph;

/* A value of one graph: an op's output. 0 = no value, negative = invalid because of an error before. */
typedef struct {
  int64_t id;
} tutti_value;

/* What the model is built for. */
#define TUTTI_MODE_TRAIN 1
#define TUTTI_MODE_EVAL 2
#define TUTTI_MODE_PREDICT 3

/* In a shape: the number of rows of the batch. */
#define TUTTI_DIM_BATCH INT64_MIN

/* No value: an optional input left out. */
static inline tutti_value tutti_no_value(void) {
  tutti_value none;
  none.id = 0;
  return none;
}

/* --- what the model reads and gives ------------------------------------------------------------------------------- */

/* A component of the dataset by name, with the batch as first dimension. Dimensions that only the data tells are equal
 * in all rows of a batch and may differ from batch to batch. The first one of each component is the same number for all
 * components, further ones where an op needs it; a batch in which it is not is an error of the run that names it. */
TUTTI_API tutti_value tutti_graph_get_feature(tutti_graph *graph, const char *name);
TUTTI_API tutti_value tutti_graph_get_label(tutti_graph *graph, const char *name);
/* A component of weights, one per example; no value when the dataset has none of that name, and when predicting. */
TUTTI_API tutti_value tutti_graph_get_sample_weight(tutti_graph *graph, const char *name);
/* The mode: TUTTI_MODE_TRAIN, _EVAL or _PREDICT; 0 when `graph` is not a graph handle. */
TUTTI_API int32_t tutti_graph_get_mode(const tutti_graph *graph);

/* A named prediction: what predict gives for each row. */
TUTTI_API void tutti_graph_set_output(tutti_graph *graph, const char *name, tutti_value value);
/* The scalar to make small. Where a batch is computed in pieces, on several replicas, over micro-batches, or with
 * determinism "invariant", and in every evaluation, it has to be made of sums and means over rows of what each row
 * gives by itself, as the loss of each tutti_loss_ function is, with all of its reductions; anything may be computed
 * from these sums and means. A loss that mixes rows, such as one that compares the rows of a batch with each other,
 * trains on one device with accumulation_steps 1, and cannot be evaluated: set none in mode TUTTI_MODE_EVAL. */
TUTTI_API void tutti_graph_set_loss(tutti_graph *graph, tutti_value loss);
/* A named scalar that train and evaluate report, exact over all examples: of sums and means over the rows, and of
 * anything that is computed from these. */
TUTTI_API void tutti_graph_add_metric(tutti_graph *graph, const char *name, tutti_value value);
/* Limits the global norm of all gradients before the update: each is multiplied by norm / max(global norm, norm). The
 * optimizers' attributes clip_value and clip_norm limit single elements, and the norm of each variable's gradient. Any
 * of the three may be combined: by value first, then by each norm, then by the global one, of what is left. All are
 * about the gradient of the global batch, of all replicas and micro-batches. */
TUTTI_API void tutti_graph_set_gradient_clip_norm(tutti_graph *graph, double norm);

/* --- ops, layers, losses, optimizers by name ---------------------------------------------------------------------- */

/* One op is written as begin, inputs and attributes in any order, end. `revision` says which meaning is wanted (the one
 * a helper was generated from). */
TUTTI_API void tutti_graph_begin(tutti_graph *graph, const char *op, int32_t revision);
TUTTI_API void tutti_graph_add_input(tutti_graph *graph, tutti_value value);
TUTTI_API void tutti_graph_set_bool(tutti_graph *graph, const char *key, uint8_t value);
TUTTI_API void tutti_graph_set_i64(tutti_graph *graph, const char *key, int64_t value);
TUTTI_API void tutti_graph_set_f64(tutti_graph *graph, const char *key, double value);
TUTTI_API void tutti_graph_set_string(tutti_graph *graph, const char *key, const char *value);
TUTTI_API void tutti_graph_set_i64s(tutti_graph *graph, const char *key, const int64_t *values, int64_t count);
TUTTI_API void tutti_graph_set_f64s(tutti_graph *graph, const char *key, const double *values, int64_t count);
TUTTI_API void tutti_graph_set_tensor(tutti_graph *graph, const char *key, const tutti_tensor *value);
/* Adds the op and gives its first output. `more` (may be NULL) receives outputs 1, 2, ... up to `more_count`. */
TUTTI_API tutti_value tutti_graph_end(tutti_graph *graph, tutti_value *more, int64_t more_count);

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

/* A variable. `initializer` is "zeros", "ones", "constant", "glorot_uniform", "glorot_normal", "he_uniform",
 * "he_normal", "random_normal", "random_uniform" or "truncated_normal", with its `parameter` (the constant, the
 * standard deviation, the bound; ignored by the others). `name` is put behind the scope; reusing one is an error. */
TUTTI_API tutti_value tutti_graph_variable(tutti_graph *graph, const char *name, int32_t dtype, const int64_t *dims,
                                           int64_t rank, const char *initializer, double parameter, uint8_t trainable);
/* The variable's next value, stored when the step is complete; the mean over micro-batches and replicas by rows. */
TUTTI_API void tutti_graph_assign(tutti_graph *graph, tutti_value variable, tutti_value value);

/* d(target)/d(wrt[i]) for each i; invalid where there is no path. */
TUTTI_API void tutti_gradients(tutti_graph *graph, tutti_value target, const tutti_value *wrt, int64_t count,
                               tutti_value *out);
/* Gives the optimizer these gradients, each shaped like its variable, in place of those of the loss; before or after
 * the optimizer, once per model. Variables that are not in the list are not trained. A gradient is that of the global
 * batch, whatever it is computed from: clip it, mask it, add to it as you would on one device. What is not linear in
 * the rows (such as a clip by value) makes the replicas wait for each other in mid-step, and does not go with
 * accumulation_steps above 1. */
TUTTI_API void tutti_apply_gradients(tutti_graph *graph, const tutti_value *variables, const tutti_value *gradients,
                                     int64_t count);

/* --- looking at values -------------------------------------------------------------------------------------------- */

/* Type and shape as far as known: -1 stands for the batch or another unknown size; rank -1 for an invalid value. */
TUTTI_API int32_t tutti_graph_get_dtype(const tutti_graph *graph, tutti_value value);
TUTTI_API int64_t tutti_graph_get_rank(const tutti_graph *graph, tutti_value value);
TUTTI_API int64_t tutti_graph_get_dim(const tutti_graph *graph, tutti_value value, int64_t axis);

/* The first error so far, or TUTTI_OK. A model function may return this as its result. */
TUTTI_API int32_t tutti_graph_check(const tutti_graph *graph, tutti_error **err);

#ifdef __cplusplus
}
#endif

#endif /* TUTTI_GRAPH_H_ */
