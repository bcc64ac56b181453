/* SPDX-License-Identifier: Apache-2.0
 *
 * Strategies: on which devices a model runs. The model that training gives does not depend on the strategy, for any
 * number of replicas and any batch size (up to floating-point rounding); only the time it takes does.
 *
 * Threads: immutable; may be shared.
 */
#ifndef TUTTI_STRATEGY_H_
#define TUTTI_STRATEGY_H_

#include <tutti/context.h>
#include <tutti/options.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tutti_strategy tutti_strategy;

/* Everything on one device, such as "cpu:0"; NULL = the context's first. */
TUTTI_API int32_t tutti_strategy_create_one_device(tutti_context *context, const char *device, tutti_strategy **out,
                                                   tutti_error **err);

/* One replica per device, kept equal. `count` 0 = every device of the context. Naming a device twice is an error.
 *
 * Devices may be of several backends, such as "cuda:0" and "cpu:0" of a context that has both. They predict and
 * evaluate together, each with its own programs and its own copy of the weights; rows come back in order. Training is
 * TUTTI_FAILED_PRECONDITION: replicas keep weights that are equal bit by bit, and backends round differently.
 *
 * Devices that predict or evaluate need not be equally fast: each takes pieces of what there is to do as large as it
 * has time for, by the speed that is measured as they work, so that all end together, and one that is too slow for a
 * call leaves it to the others. In which piece, and on which device, a row is computed differs from run to run then,
 * and with it, at determinism "fast", its last digits. With "repeatable" each device gets a fixed part, however slow it
 * is; "invariant" is TUTTI_INVALID_ARGUMENT for devices that round differently. */
TUTTI_API int32_t tutti_strategy_create_mirrored(tutti_context *context, const char *const *devices, int64_t count,
                                                 tutti_strategy **out, tutti_error **err);

/* Several processes ("workers"), on one machine or many, train one model: P workers with k devices each give the
 * weights that one process gives with P * k. Each makes the same strategy, with its own number. All need the same
 * number of devices, the same build of the library, and the engine that carries messages between processes (the plug-in
 * tutti-gloo). `options`, of the schema "cluster":
 *   workers             "host:port,host:port": the address of each worker, the same list on all
 *   worker              the number of this one in the list, from 0 on
 *   devices             "cpu:0,cpu:1": of this worker; empty = every device of the context
 *   worker_input        "whole": every worker is given the same dataset, with GLOBAL batch sizes, and computes its rows
 *                       of each batch; a program then needs no change. "own": every worker is given data of its own
 *                       (see tutti_strategy_get_input_pipeline_count), and a global batch is the rows of all workers'
 *                       batches: give each batches of its part of the global size. Rows may be uneven, and a worker
 *                       without data goes on until all are through
 *   connect_timeout_ms  how long to wait for the other workers
 *   job_secret          a text that all workers of the job have and nobody else knows; empty = the environment's
 *                       TUTTI_JOB_SECRET, or none where that is not set
 * The function opens nothing. When a training starts, worker 0 listens at its address, and the others meet there; who
 * does not come, cannot be reached or does not belong is named in the error.
 *
 * Before it is told anything else, each worker and worker 0 prove to each other that they have the same job_secret
 * (HMAC-SHA-256 over random numbers of both; the secret is not sent). A worker that has another one gets an error. Each
 * two workers prove the same on the connection between them. Strangers, such as a program that tries all ports, are
 * dropped by worker 0, and the log has their addresses; where one has called at a port before the worker did for which
 * another one had opened it, all connect again, a few times. All that is so without a secret, too.
 *
 * No more than that is protected. What workers send each other afterwards is neither encrypted nor signed: who can read
 * the network reads gradients and weights, and who can change what passes over it changes them without being noticed.
 * Connections that NCCL or RCCL make between GPUs prove nothing. The network must be one that is trusted so far.
 *
 * GPUs of all workers add up gradients from one to the other, by NCCL or RCCL, where all workers have that in the same
 * version; else by way of the hosts and messages between these. The log says which, and
 * why, and the run's option all_reduce may ask for one; where that is "automatic", so may the environment's
 * TUTTI_GROUP: "device", which is an error where it cannot be had, or "staged", by way of the hosts, also with one
 * worker. Workers with one GPU each launch a step at once, with what NCCL adds up and the update, where NCCL allows
 * that; so does a process alone with one GPU. In pieces are steps whose shapes come for the first time, or with fewer
 * micro-batches than the others (the last of a pass), with micro-batches of different shapes or more than 16 of them,
 * and while a profile is taken; all where CUDA_LAUNCH_BLOCKING is set, and where the environment's TUTTI_RECORD_STEPS
 * is 0 on any worker.
 *
 * Training: every worker calls the same functions with the same model, options and, for "whole", data and seeds. All
 * begin from the same checkpoint, in a model_dir that all can read, or from the same seed; worker 0 alone writes
 * checkpoints. A goal, a stop or a cancel on one worker, and an error of its data, end the training of all at the same
 * step. A worker that dies, or does not answer for as long as the run's option collective_timeout_ms says, is named in
 * the error that the others return; when all are started again, they go on from the last checkpoint. With worker_input
 * "own" they begin a new pass over it then.
 *
 * Evaluating, also within tutti_estimator_train_and_evaluate: every worker calls it with the same arguments but, for
 * "own", its own data, and gets the report of one process over all of it. With "whole" all read the data, and each
 * computes one of as many batches as there are workers; with "own" `steps` counts the batches of each. The workers meet
 * anew, as for a training, and are held to the same weights and options; who does not come in time, dies, does not
 * answer for as long as collective_timeout_ms says, or has read something else, is named in the error of the others.
 * Statistics that are each replica's own are each worker's own here. What a cluster's evaluator (TF_CONFIG) does it
 * does alone, with a strategy of its own machine.
 *
 * Predicting a dataset, in a stream or at once, likewise: every worker opens the same stream, and each computes its
 * share (predictor.h). Requests of single batches (tutti_predictor_run) are answered by this process alone.
 *
 * Devices of a worker may be of several backends, or of another than those of other workers, equally many on each:
 * they predict and evaluate, every worker dealing its rows to its devices by their speed, as above. Training is
 * TUTTI_FAILED_PRECONDITION, and so is determinism "invariant" on workers whose devices round differently.
 *
 * Several trainings, evaluations and predictions of one strategy are begun in the same order on all workers, one after
 * the other. */
TUTTI_API int32_t tutti_strategy_create_multi_worker(tutti_context *context, const tutti_options *options,
                                                     tutti_strategy **out, tutti_error **err);

/* The same, where the launcher says who the workers are: by TF_CONFIG, by MASTER_ADDR, MASTER_PORT, RANK and WORLD_SIZE
 * (torchrun), by OMPI_COMM_WORLD_RANK and _SIZE (mpirun; MASTER_ADDR too unless all run on one machine), or by
 * SLURM_PROCID and the step's node list (srun), the first of these that is set. `options` as above, without workers and
 * worker; NULL = as they are by default. NOT_FOUND where nothing is set, else an error that names variable and key. */
TUTTI_API int32_t tutti_strategy_create_multi_worker_from_environment(tutti_context *context,
                                                                      const tutti_options *options,
                                                                      tutti_strategy **out, tutti_error **err);

TUTTI_API void tutti_strategy_ref(tutti_strategy *strategy);
TUTTI_API void tutti_strategy_unref(tutti_strategy *strategy);

/* The number of replicas, of all workers; -1 when `strategy` is not a strategy handle. */
TUTTI_API int64_t tutti_strategy_get_replica_count(const tutti_strategy *strategy);
/* The number of workers, 1 for a strategy of one process, and of this process among them; -1 when `strategy` is not a
 * strategy handle. */
TUTTI_API int64_t tutti_strategy_get_worker_count(const tutti_strategy *strategy);
TUTTI_API int64_t tutti_strategy_get_worker_index(const tutti_strategy *strategy);
/* For input that is divided among processes: how many inputs the run reads, and the number of the one that this process
 * reads; -1 when `strategy` is not a strategy handle. What a process reads is shared among all of its replicas, so
 *   tutti_pipeline_shard(pipeline, tutti_strategy_get_input_pipeline_count(strategy),
 *                        tutti_strategy_get_input_pipeline_id(strategy));
 * before shuffle and batch gives each element to exactly one process, for any number of devices. Do not shard by the
 * number of replicas: with several of them in a process, elements would be lost. 1 and 0 but for strategies of several
 * workers whose option worker_input is "own": there the number of workers, and of this one. */
TUTTI_API int64_t tutti_strategy_get_input_pipeline_count(const tutti_strategy *strategy);
TUTTI_API int64_t tutti_strategy_get_input_pipeline_id(const tutti_strategy *strategy);
/* The device of a replica of this process; NULL when out of range. */
TUTTI_API const char *tutti_strategy_get_device(const tutti_strategy *strategy, int64_t replica);

/* A context, lent, whose default strategy is this one: what is made from it uses the strategy without being told. */
TUTTI_API tutti_context *tutti_strategy_get_context(tutti_strategy *strategy);

#ifdef __cplusplus
}
#endif

#endif /* TUTTI_STRATEGY_H_ */
