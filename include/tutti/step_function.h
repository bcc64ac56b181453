/* SPDX-License-Identifier: Apache-2.0
 *
 * Step functions: a training loop of the program that runs several functions over one set of variables, such as the two
 * halves of an adversarial training, or a step that trains and one that only computes.
 *
 *   tutti_estimator_add_step_function(estimator, "critic", TUTTI_MODE_TRAIN, critic, NULL, NULL, NULL, &err);
 *   tutti_session_open(estimator, dataset, NULL, NULL, NULL, &session, &err);
 *   tutti_session_run_step_function(session, "critic", batch, 2, &result, &values, &err);     one step on that batch
 *   tutti_replica_values_reduce(values, "score", TUTTI_REDUCE_MEAN, 0, &mean, &err);     over the rows of all replicas
 *
 * A step function is a model function of its own. Its variables must be among those that the model function of the
 * estimator makes in mode TRAIN, by name, type and shape. It is compiled once for each shape of a batch; the "programs"
 * of the step report count that. Its batch is divided among the replicas like a batch of the dataset.
 *
 * Every function that trains has slots of its own, and counts its own steps for its schedule and its optimizer; all of
 * them count as steps of the estimator. Checkpoints keep both, the slots as "<variable>/<function>/<slot>". The moving
 * averages of average_decay belong to the model function of the estimator; a step function with them is an error.
 *
 * Threads: those of the session.
 */
#ifndef TUTTI_STEP_FUNCTION_H_
#define TUTTI_STEP_FUNCTION_H_

#include <tutti/estimator.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tutti_replica_values tutti_replica_values;

/* Adds a step function to an estimator, before its first training and while no session is open, otherwise
 * TUTTI_FAILED_PRECONDITION. In TUTTI_MODE_TRAIN it sets a loss and an optimizer, and changes the variables that it
 * trains: those that its loss depends on and that are not frozen, or those of tutti_apply_gradients. In TUTTI_MODE_EVAL
 * and TUTTI_MODE_PREDICT it computes outputs, a loss or metrics, and changes nothing. `input`: a dataset with batches
 * like those that it gets, of which no element is read; NULL = the dataset of the session. `step_fn` is called when a
 * session opens; its errors are errors of that call. */
TUTTI_API int32_t tutti_estimator_add_step_function(tutti_estimator *estimator, const char *name, int32_t mode,
                                                    tutti_model_fn step_fn, void *user, tutti_destroy_fn destroy,
                                                    const tutti_dataset *input, tutti_error **err);

/* Runs one step of a step function on a batch: `count` tensors, one for each component of its input, in order, with any
 * number of rows. The tensors may be changed after the call. With several workers, all workers make this call at the
 * same point, each with the batch that its dataset would give. `result` (may be NULL): loss, metrics, examples, and the
 * step of the estimator. `values` (may be NULL): its outputs. After an error, the variables are those of the last
 * complete step and the session can be used further. Hooks are not called. */
TUTTI_API int32_t tutti_session_run_step_function(tutti_session *session, const char *name,
                                                  tutti_tensor *const *tensors, int64_t count, tutti_result **result,
                                                  tutti_replica_values **values, tutti_error **err);

/* --- values of the replicas --------------------------------------------------------------------------------------- */

/* What each replica computed in one step, computed with the weights before it: for each output of the function the rows
 * of its piece of the batch. They do not change with later steps. */
TUTTI_API void tutti_replica_values_ref(tutti_replica_values *values);
TUTTI_API void tutti_replica_values_unref(tutti_replica_values *values);
/* The replicas of this process; -1 when `values` is not a handle of replica values. */
TUTTI_API int64_t tutti_replica_values_get_replica_count(const tutti_replica_values *values);
/* The outputs by name, which is lent while the values live. */
TUTTI_API int64_t tutti_replica_values_get_output_count(const tutti_replica_values *values);
TUTTI_API const char *tutti_replica_values_get_output_name(const tutti_replica_values *values, int64_t index);
/* The rows of one replica of this process, lent while the values live; NULL if it had none, and if there is no such
 * replica or output. */
TUTTI_API tutti_tensor *tutti_replica_values_get_local(const tutti_replica_values *values, const char *output,
                                                       int64_t replica);

#define TUTTI_REDUCE_SUM 1
#define TUTTI_REDUCE_MEAN 2
/* As an axis: no axis; the values of the replicas, which must have equal shapes, are combined element by element. */
#define TUTTI_ACROSS_REPLICAS (-1)

/* The values of all replicas of all workers, concatenated along an axis, in the order of the batch. With
 * several workers, all of them make this call and that of reduce at the same point, before the session is closed.
 * TUTTI_FAILED_PRECONDITION if no replica had rows. */
TUTTI_API int32_t tutti_replica_values_gather(tutti_replica_values *values, const char *output, int64_t axis,
                                              tutti_tensor **out, tutti_error **err);
/* Their sum or mean over an axis, which the result does not have any more, and over the replicas: TUTTI_REDUCE_MEAN
 * over axis 0 counts every row once, however the rows are divided. The result has the type of the output; a mean of
 * integers is f64. */
TUTTI_API int32_t tutti_replica_values_reduce(tutti_replica_values *values, const char *output, int32_t reduction,
                                              int64_t axis, tutti_tensor **out, tutti_error **err);

#ifdef __cplusplus
}
#endif

#endif /* TUTTI_STEP_FUNCTION_H_ */
