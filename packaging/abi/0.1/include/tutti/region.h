/* SPDX-License-Identifier: Apache-2.0
 *
 * Helpers for ops with regions (graph.h): recurrence, choice, rematerialisation and gradients of one's own.
 *
 *   tutti_value step[2];                                              the state, and one element of the sequence
 *   tutti_begin_scan(g, &h0, 1, &x, 1, &(tutti_scan_attrs){.axis = 1}, step);
 *   const tutti_value h = tutti_tanh(g, tutti_add(g, tutti_matmul(g, step[0], w, NULL), step[1]));
 *   const tutti_value results[] = {h, h};                             the new state, and what is stacked
 *   tutti_value all;
 *   const tutti_value last = tutti_end_scan(g, results, 2, &all, 1);
 *
 * A region is compiled once, whatever the number of its runs. All of them have gradients, on every backend.
 */
#ifndef TUTTI_REGION_H_
#define TUTTI_REGION_H_

#include <tutti/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  int64_t axis;    /* of the sequences and of what is stacked; 0 */
  uint8_t reverse; /* from the last index to the first */
} tutti_scan_attrs;

/* A loop over an axis of the sequences, all of which have the same length there. That may be known from the data alone.
 * `parameters` receives the states and then one element of each sequence, without the axis. */
static inline void tutti_begin_scan(tutti_graph *graph, const tutti_value *states, int64_t state_count,
                                    const tutti_value *sequences, int64_t sequence_count, const tutti_scan_attrs *attrs,
                                    tutti_value *parameters) {
  tutti_graph_begin(graph, "scan", 1);
  for (int64_t i = 0; i < state_count; i++)
    tutti_graph_add_input(graph, states[i]);
  for (int64_t i = 0; i < sequence_count; i++)
    tutti_graph_add_input(graph, sequences[i]);
  tutti_graph_set_i64(graph, "states", state_count);
  tutti_graph_set_i64(graph, "sequences", sequence_count);
  if (attrs != NULL && attrs->axis != 0) tutti_graph_set_i64(graph, "axis", attrs->axis);
  if (attrs != NULL && attrs->reverse) tutti_graph_set_bool(graph, "reverse", 1);
  tutti_graph_begin_region(graph, parameters, state_count + sequence_count);
}

/* `results`: the new states, like the states, and then elements of stacked results. Returns the first output; `more`
 * (may be NULL) receives the others: last states, then the elements of all indices along the axis. */
static inline tutti_value tutti_end_scan(tutti_graph *graph, const tutti_value *results, int64_t count,
                                         tutti_value *more, int64_t more_count) {
  tutti_graph_end_region(graph, results, count);
  return tutti_graph_end(graph, more, more_count);
}

/* A choice: what is written next runs if the boolean scalar is true, what follows tutti_else_cond otherwise. Both
 * give results of the same types and shapes. */
static inline void tutti_begin_cond(tutti_graph *graph, tutti_value predicate) {
  tutti_graph_begin(graph, "cond", 1);
  tutti_graph_add_input(graph, predicate);
  tutti_graph_begin_region(graph, NULL, 0);
}
static inline void tutti_else_cond(tutti_graph *graph, const tutti_value *results, int64_t count) {
  tutti_graph_end_region(graph, results, count);
  tutti_graph_begin_region(graph, NULL, 0);
}
static inline tutti_value tutti_end_cond(tutti_graph *graph, const tutti_value *results, int64_t count,
                                         tutti_value *more, int64_t more_count) {
  tutti_graph_end_region(graph, results, count);
  return tutti_graph_end(graph, more, more_count);
}

/* A part of the model that the backward pass computes again: its values need no memory in between. `parameters` (may be
 * NULL when `count` is 0) receives what stands for the inputs. Values from outside may be used without being inputs. */
static inline void tutti_begin_call(tutti_graph *graph, const tutti_value *inputs, int64_t count,
                                    tutti_value *parameters) {
  tutti_graph_begin(graph, "call", 1);
  for (int64_t i = 0; i < count; i++)
    tutti_graph_add_input(graph, inputs[i]);
  tutti_graph_begin_region(graph, parameters, count);
}
static inline tutti_value tutti_end_call(tutti_graph *graph, const tutti_value *results, int64_t count,
                                         tutti_value *more, int64_t more_count) {
  tutti_graph_end_region(graph, results, count);
  return tutti_graph_end(graph, more, more_count);
}

/* A function with a gradient of its own. What is written next computes the outputs from `parameters`, which stand for
 * the inputs; no other values may be used. */
static inline void tutti_begin_custom_gradient(tutti_graph *graph, const tutti_value *inputs, int64_t count,
                                               tutti_value *parameters) {
  tutti_graph_begin(graph, "custom_gradient", 1);
  for (int64_t i = 0; i < count; i++)
    tutti_graph_add_input(graph, inputs[i]);
  tutti_graph_begin_region(graph, parameters, count);
}
/* What is written next computes the gradients. `parameters` receives `parameter_count` values: the inputs, the outputs,
 * and the gradients of the outputs. */
static inline void tutti_backward_custom_gradient(tutti_graph *graph, const tutti_value *outputs, int64_t count,
                                                  tutti_value *parameters, int64_t parameter_count) {
  tutti_graph_end_region(graph, outputs, count);
  tutti_graph_begin_region(graph, parameters, parameter_count);
}
/* `gradients`: one for each input, like it; no value where there is none. */
static inline tutti_value tutti_end_custom_gradient(tutti_graph *graph, const tutti_value *gradients, int64_t count,
                                                    tutti_value *more, int64_t more_count) {
  tutti_graph_end_region(graph, gradients, count);
  return tutti_graph_end(graph, more, more_count);
}

typedef struct {
  const char *slots;     /* what is kept of each variable from update to update, "m, v"; NULL = nothing */
  const char *slots_per; /* what each slot has a value for, "row, column, element"; NULL = each element */
  const double *initial; /* the first value of each slot; NULL = 0 */
  int64_t initial_count;
  double weight_decay; /* given to the rule, for variables whose parameter group has none of its own */
  int32_t dtype;       /* of the variables it is for; 0 = TUTTI_DTYPE_F32, which is also for f16 and bf16 ones */
  uint8_t matrices;    /* only for variables with two axes or more, as matrices whose columns are the last axis */
  uint8_t stacks;      /* for the same, instead: a matrix of the last two axes for each index of the others */
  /* A variable that the model only looks up rows of, by indices of the batch, is updated in the rows that a step looks
   * up: lazy: whatever the rule does to the others; keeps_unreached: since it changes nothing where the gradient and
   * the weight decay are 0. Not for rules that need more than an element at a time. */
  uint8_t lazy;
  uint8_t keeps_unreached;
  /* As of all optimizers (ops.h): */
  double clip_value;
  double clip_norm;
  double average_decay;
  uint8_t average_ramp;
  int64_t average_start;
} tutti_update_rule_attrs;

/* An optimizer of one's own. What is written next computes a variable's new value, once for all variables: they come as
 * arrays of one axis, whose length only the variable tells. `parameters` receives weight, gradient, learning rate,
 * weight decay, the number of the update (an i64 scalar, from 1), and the slots. Other values may be used if they are
 * computed from constants, schedules and host scalars. A further rule is for variables of another dtype, or for
 * matrices; the learning rate, limits and averages are those of the first. Matrices come as [rows, columns], stacks as
 * [matrices, rows, columns]; with stacks, slots that have a value for each row or column are [matrices, rows] or
 * [matrices, columns], and of the variable's shape without its last or its second last axis to those who read them. */
static inline void tutti_begin_update_rule(tutti_graph *graph, tutti_value learning_rate,
                                           const tutti_update_rule_attrs *attrs, tutti_value *parameters,
                                           int64_t parameter_count) {
  tutti_graph_begin(graph, "update_rule", 1);
  tutti_graph_add_input(graph, learning_rate);
  if (attrs != NULL) {
    if (attrs->slots != NULL) tutti_graph_set_string(graph, "slots", attrs->slots);
    if (attrs->slots_per != NULL) tutti_graph_set_string(graph, "slots_per", attrs->slots_per);
    if (attrs->initial != NULL) tutti_graph_set_f64s(graph, "initial", attrs->initial, attrs->initial_count);
    if (attrs->weight_decay != 0) tutti_graph_set_f64(graph, "weight_decay", attrs->weight_decay);
    if (attrs->dtype != 0) tutti_graph_set_i64(graph, "dtype", attrs->dtype);
    if (attrs->matrices || attrs->stacks) tutti_graph_set_string(graph, "view", attrs->stacks ? "stack" : "matrix");
    if (attrs->lazy) tutti_graph_set_bool(graph, "lazy", 1);
    if (attrs->keeps_unreached) tutti_graph_set_bool(graph, "keeps_unreached", 1);
    if (attrs->clip_value != 0) tutti_graph_set_f64(graph, "clip_value", attrs->clip_value);
    if (attrs->clip_norm != 0) tutti_graph_set_f64(graph, "clip_norm", attrs->clip_norm);
    if (attrs->average_decay != 0) tutti_graph_set_f64(graph, "average_decay", attrs->average_decay);
    if (attrs->average_ramp) tutti_graph_set_bool(graph, "average_ramp", 1);
    if (attrs->average_start != 0) tutti_graph_set_i64(graph, "average_start", attrs->average_start);
  }
  tutti_graph_begin_region(graph, parameters, parameter_count);
}
/* `results`: the new weight, and the new value of each slot. */
static inline void tutti_end_update_rule(tutti_graph *graph, const tutti_value *results, int64_t count) {
  tutti_graph_end_region(graph, results, count);
  tutti_graph_end(graph, NULL, 0);
}

#ifdef __cplusplus
}
#endif

#endif /* TUTTI_REGION_H_ */
