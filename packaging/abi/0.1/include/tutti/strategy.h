/* SPDX-License-Identifier: Apache-2.0
 *
 * Strategies: on which devices a model runs. The trained model does not depend on the strategy, for any number of
 * replicas and any batch size (up to floating-point rounding); only the training time does.
 *
 * There are strategies for one device, for replicas on several devices of a process (mirrored, or with central storage)
 * and for replicas of several processes. All of them divide the rows of a batch, and make one update of all gradients.
 * Two other ways to train on several devices are no goals of this library:
 *   parameter servers    Workers train asynchronously: each computes gradients with weights that others have already
 *                        replaced. The model then depends on the number of workers and on their speeds, and no two runs
 *                        are alike, so what the first sentence promises cannot hold. Workers that wait for each other
 *                        are tutti_strategy_create_multi_worker; variables in one place are
 *                        tutti_strategy_create_central_storage.
 *   model parallelism    Parts of one model are on different devices. Every model then needs a division of its own,
 *                        for a certain number of devices, and no longer runs unchanged on one device or many. A model
 *                        must therefore fit in the memory of one device; central storage and the run option
 *                        accumulation_steps reduce what it needs.
 *
 * Threads: immutable; may be shared.
 */
#ifndef TUTTI_STRATEGY_H_
#define TUTTI_STRATEGY_H_

#include <tutti/cluster_resolver.h>
#include <tutti/context.h>
#include <tutti/options.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tutti_strategy tutti_strategy;

/* Runs everything on one device, such as "cpu:0"; NULL = the first device of the context. */
TUTTI_API int32_t tutti_strategy_create_one_device(tutti_context *context, const char *device, tutti_strategy **out,
                                                   tutti_error **err);

/* The devices that train fastest, as far as the library can tell: one replica on each GPU, TPU or other device with
 * memory of its own that the context has; without such devices, one replica with one thread on each processor core that
 * the option threads of the context allows, or, if a batch has fewer than 32 rows for each of them, fewer replicas with
 * more threads each (unless the run option threads_per_replica is set). `batch_size` is the number of rows of a global
 * batch; 0 = not known. The choice is logged with its reason.
 *
 * This is the default strategy of estimators and predictors, with batch_size 0. Predictors also use the other devices
 * of a context that has several backends. */
TUTTI_API int32_t tutti_strategy_create_auto(tutti_context *context, int64_t batch_size, tutti_strategy **out,
                                             tutti_error **err);

/* One replica per device, kept equal. `count` 0 = every device of the context. Naming a device twice is an error.
 *
 * Devices may belong to several backends, such as "cuda:0" and "cpu:0" of a context that has both. They predict and
 * evaluate together, each with its own programs and its own copy of the weights; rows are returned in order. Training
 * is TUTTI_FAILED_PRECONDITION: replicas keep weights that are bit-identical, and backends round differently.
 *
 * Devices that predict or evaluate need not be equally fast: each takes parts of the work in proportion to its speed,
 * which is measured while they run, so that all finish at the same time; a device that is too slow for a call leaves it
 * to the others. In which part, and on which device, a row is computed then differs from run to run, and with it, at
 * determinism "fast", its last digits. With "repeatable" each device gets a fixed part, even if it is slow; "invariant"
 * is TUTTI_INVALID_ARGUMENT for devices that round differently. */
TUTTI_API int32_t tutti_strategy_create_mirrored(tutti_context *context, const char *const *devices, int64_t count,
                                                 tutti_strategy **out, tutti_error **err);

/* One replica per device, as mirrored; but variables, slots of the optimizer and moving averages are stored in one
 * place, and updated there once per step. `storage`: a device of the context, such as "cpu:0"; NULL = the first of
 * `devices`. `count` 0 = every GPU of the context, or every device if it has none. Naming a device twice is an error.
 * If the storage device is one of `devices`, it becomes the first replica; otherwise it only stores and updates.
 *
 * The memory that this saves: mirrored, every device has a full copy of variables, slots and averages. Here all but the
 * storage device are without slots and averages (for Adam, twice the size of the variables); they have the variables to
 * compute with, gradients, and what is computed in between. If the storage device computes nothing, that holds for all
 * replicas, and the storage device has variables, slots and averages, and the sums of the gradients.
 *
 * What a step costs: every gradient goes from each device to the storage device, and every variable that is trained
 * goes from there to each device, after the update; the devices wait meanwhile. The update is made by one device
 * instead of by all at the same time, and the host waits for the devices before and after it, where mirrored GPUs are
 * given the next step while they compute one. Training is therefore slower than mirrored; use it if memory is short. A
 * storage device that computes nothing is reached through the host, and so are all devices that NCCL or RCCL do not
 * connect.
 *
 * Devices that use the host's memory (cpu) have one copy of everything anyway, which all of them update in parts. With
 * a storage device of that kind, this is the same as mirrored, and neither saves nor costs anything. Only with the run
 * option all_reduce "host" does each have a copy of its own.
 *
 * The weights are those of mirrored replicas, bit for bit if the storage device is of the same backend and gradients
 * are summed in the same order; a storage device of another backend rounds the updates in its own way. All optimizers
 * and run options work as with mirrored, except that all_reduce must be automatic, device or host. Checkpoints are the
 * same files: a training can continue with any other strategy, and the reverse. Evaluation and prediction use all
 * `devices`, each with its own copy of the weights. */
TUTTI_API int32_t tutti_strategy_create_central_storage(tutti_context *context, const char *storage,
                                                        const char *const *devices, int64_t count, tutti_strategy **out,
                                                        tutti_error **err);

/* Several processes ("workers"), on one machine or many, train one model: P workers with k devices each give the
 * weights that one process gives with P * k. Each worker creates the same strategy, with its own index. All need the
 * same number of devices, the same build of the library, and the engine that carries messages between processes (the
 * plug-in tutti-gloo). `options`, of the schema "cluster":
 *   workers             "host:port,host:port": the address of each worker, the same list on all
 *   worker              the index of this worker in the list, starting at 0
 *   devices             "cpu:0,cpu:1": devices of this worker; empty = every device of the context
 *   worker_input        "whole": every worker gets the same dataset, with GLOBAL batch sizes, reads all of it and
 *                       computes its rows of each batch; a program then needs no change. "auto", "file", "data": the
 *                       same, but the library divides the dataset among the workers (below). "own": every worker gets
 *                       its own data (see tutti_strategy_get_input_pipeline_count), and a global batch consists of the
 *                       batches of all workers: use batches of the worker's part of the global size. Numbers of rows
 *                       may differ, and a worker without data continues until all workers are done
 *   connect_timeout_ms  how long to wait for the other workers
 *   job_secret          a secret shared by all workers of the job; empty = the environment variable TUTTI_JOB_SECRET,
 *                       or none if it is not set
 *
 * Datasets that the library divides are those of one process: batch sizes are global, and a worker's batches have its
 * share of the rows. Each element is used exactly once in a pass over the dataset. The log says how, and why.
 *   "data"  Each worker keeps its rows of each batch. It leaves out those of others before the batch, and before maps
 *           that follow the last shuffle, filter or source. All workers read everything, but compute only what is
 *           needed for their rows; datasets that can be read by position are. Batches have the same rows in the same
 *           order as in one process, so P workers with k devices give the weights of one process with P * k. If the
 *           rows of a batch depend on one another (padded_batch, bucket_by_length, mixup), or if a function of the
 *           program maps batches, each worker makes the whole batch and keeps its rows of it.
 *   "file"  Each worker reads every P-th file of a source of files (text_lines, csv, tfrecord, tar, fixed_records if
 *           they are compressed), of several such sources behind interleave or concatenate, or of the list from which
 *           flat_map or interleave_callback make datasets, and opens no other. The order of elements, and which of them
 *           make a batch, is not that of one process. The last batches of a pass are smaller, since workers have
 *           different numbers of elements, and drop_remainder drops rows of each worker. TUTTI_FAILED_PRECONDITION if
 *           there are fewer files than workers, if a batch has fewer rows than there are workers, or if the pipeline
 *           has a transform that counts or compares elements of several files, such as take, skip, shard, repeat,
 *           enumerate or zip. Use the train option epochs instead of repeat.
 *   "auto"  "file" if that is possible, otherwise "data".
 * Functions of the program must give the same for the same element on all workers, and a generator or feed must give
 * all workers the same elements: these are divided as "data". Building a pipeline opens no files of the machine and
 * none that a pattern finds, except the first one of csv. tutti_strategy_distribute_dataset returns the part of a
 * worker.
 *
 * The function opens no connection. When a training starts, worker 0 listens at its address, and the others connect to
 * it. An error names a worker that does not connect, cannot be reached or does not belong to the job.
 *
 * Before they exchange anything else, each worker and worker 0 prove to each other that they have the same job_secret
 * (HMAC-SHA-256 over random numbers of both; the secret is not sent). A worker with another secret gets an error. Any
 * two workers prove the same on the connection between them. Worker 0 drops other connections, such as those of a port
 * scanner, and logs their addresses. If such a connection reaches a port before the worker for which the port was
 * opened, all workers connect again, a few times. The same applies without a secret.
 *
 * There is no other protection. Later messages between workers are neither encrypted nor signed: anyone who can read
 * the network can read gradients and weights, and anyone who can modify its traffic can change them without being
 * noticed. Connections that NCCL or RCCL make between GPUs are not authenticated. The network must be trusted
 * accordingly.
 *
 * The GPUs of all workers reduce gradients directly, by NCCL or RCCL, if all workers have it in the same version;
 * otherwise through the hosts, with messages between them. The log says which, and why. The run option all_reduce can
 * request one of them; if that is "automatic", so can the environment variable TUTTI_GROUP: "device", which is an error
 * if it is not possible, or "staged", through the hosts, also with one worker. Workers with one GPU each launch a step,
 * with the reduction by NCCL and the update, as a whole, if NCCL supports that; so does a single process with one GPU.
 * Steps are launched in pieces if their shapes occur for the first time, if they have fewer micro-batches than the
 * others (the last step of a pass), micro-batches of different shapes, or more than 16 of them, and while a profile is
 * taken. All steps are launched in pieces if CUDA_LAUNCH_BLOCKING is set, or if the environment variable
 * TUTTI_RECORD_STEPS is 0 on any worker.
 *
 * Training: every worker calls the same functions with the same model, options and, for "whole", data and seeds. All
 * start from the same checkpoint, in a model_dir that all can read, or from the same seed; only worker 0 writes
 * checkpoints. If one worker reaches a goal, is stopped or cancelled, or has an error in its data, the training of all
 * workers ends at the same step. If a worker dies, or does not answer within the run option collective_timeout_ms, the
 * others return an error that names it; when all are started again, they continue from the last checkpoint.
 *
 * A training continues on any number of workers, and on a strategy of one process: a checkpoint contains the state of
 * the model for all of them. With "whole" and "data" the pass over the dataset continues where it was, so that the
 * result is that of a training without interruption, up to rounding. With "file" it continues if the number of workers
 * is the same, each of which reads its files again up to there; otherwise, and always with "own", a new pass begins.
 * One also begins if worker_input has changed, unless the position in the dataset means the same to both. The log says
 * so.
 *
 * Evaluating, also within tutti_estimator_train_and_evaluate: every worker calls it with the same arguments except, for
 * "own", its own data, and gets the report of one process over all of it. With "whole" all workers read the data, and
 * each computes every n-th batch of n workers; with "own" `steps` counts the batches of each worker, and if the library
 * divides the dataset, batches of all workers. The workers connect again, as for a training, and must have the same
 * weights and options. If a worker does not connect in time, dies, does not answer within collective_timeout_ms, or has
 * read different data, the others return an error that names it. Statistics that are per replica are per worker here.
 * The evaluator of a cluster (TF_CONFIG) runs alone, with a strategy for its own machine.
 *
 * Predicting a dataset, in a stream or as a whole, works likewise: every worker opens the same stream, and each
 * computes its share (predictor.h). Datasets are not divided for it, because rows are returned in the order of the
 * dataset: "auto", "file" and "data" are as "whole". Single batches (tutti_predictor_run) are predicted by this process
 * alone.
 *
 * Devices of a worker may belong to several backends, or to other backends than those of other workers, with the same
 * number on each worker: they predict and evaluate, and every worker distributes its rows to its devices by their
 * speed, as above. Training is TUTTI_FAILED_PRECONDITION, and so is determinism "invariant" on workers whose devices
 * round differently.
 *
 * Several trainings, evaluations and predictions of one strategy must be started in the same order on all workers, one
 * after the other. */
TUTTI_API int32_t tutti_strategy_create_multi_worker(tutti_context *context, const tutti_options *options,
                                                     tutti_strategy **out, tutti_error **err);

/* The same, with the workers given by the launcher: by TF_CONFIG, by MASTER_ADDR, MASTER_PORT, RANK and WORLD_SIZE
 * (torchrun), by OMPI_COMM_WORLD_RANK and _SIZE (mpirun; also MASTER_ADDR unless all run on one machine), by
 * SLURM_PROCID and the node list of the step (srun), or by TPU_WORKER_HOSTNAMES and TPU_WORKER_ID (GKE): the first of
 * these that is set. `options` as above, without workers and worker; NULL = defaults. NOT_FOUND if none is set,
 * otherwise errors name variable and key. */
TUTTI_API int32_t tutti_strategy_create_multi_worker_from_environment(tutti_context *context,
                                                                      const tutti_options *options,
                                                                      tutti_strategy **out, tutti_error **err);

/* The same, with the workers of a cluster resolver. `options` as above, without workers and worker; if the resolver is
 * connected, also without connect_timeout_ms and job_secret, which tutti_cluster_resolver_connect got. */
TUTTI_API int32_t tutti_strategy_create_multi_worker_from_resolver(tutti_context *context,
                                                                   tutti_cluster_resolver *resolver,
                                                                   const tutti_options *options, tutti_strategy **out,
                                                                   tutti_error **err);

/* TPUs, or other devices with a PJRT plug-in: mirrored over the devices of this worker, and over the workers of the
 * resolver. TUTTI_FAILED_PRECONDITION, which says what to call first, unless the resolver was connected and
 * initialized. Batch sizes are global, as everywhere. */
TUTTI_API int32_t tutti_strategy_create_tpu(tutti_cluster_resolver *resolver, tutti_strategy **out, tutti_error **err);

TUTTI_API void tutti_strategy_ref(tutti_strategy *strategy);
TUTTI_API void tutti_strategy_unref(tutti_strategy *strategy);

/* The number of replicas, of all workers; -1 when `strategy` is not a strategy handle. */
TUTTI_API int64_t tutti_strategy_get_replica_count(const tutti_strategy *strategy);
/* The number of workers, 1 for a strategy of one process, and of this process among them; -1 when `strategy` is not a
 * strategy handle. */
TUTTI_API int64_t tutti_strategy_get_worker_count(const tutti_strategy *strategy);
TUTTI_API int64_t tutti_strategy_get_worker_index(const tutti_strategy *strategy);
/* For input that is divided among processes: the number of inputs that the run reads, and the index of the one that
 * this process reads; -1 when `strategy` is not a strategy handle. All replicas of a process share the input of the
 * process, so
 *   tutti_pipeline_shard(pipeline, tutti_strategy_get_input_pipeline_count(strategy),
 *                        tutti_strategy_get_input_pipeline_id(strategy));
 * before shuffle and batch gives each element to exactly one process, for any number of devices. Do not shard by the
 * number of replicas: with several replicas in a process, elements would be lost. 1 and 0 except for strategies of
 * several workers whose option worker_input is "own": there the number of workers, and the index of this one. Not for
 * "auto", "file" and "data", where the library divides the dataset. */
TUTTI_API int64_t tutti_strategy_get_input_pipeline_count(const tutti_strategy *strategy);
TUTTI_API int64_t tutti_strategy_get_input_pipeline_id(const tutti_strategy *strategy);
/* The most rows of a batch of `global_batch_size` rows that a replica gets: replicas get numbers of rows that differ by
 * one at most, so any batch size is fine. -1 when `strategy` is not a strategy handle, or the size is negative. */
TUTTI_API int64_t tutti_strategy_get_per_replica_batch_size(const tutti_strategy *strategy, int64_t global_batch_size);
/* The device of a replica of this process; NULL when out of range. */
TUTTI_API const char *tutti_strategy_get_device(const tutti_strategy *strategy, int64_t replica);

/* The scope of the strategy: a context, lent, whose default strategy is this one, so that objects created from it use
 * the strategy. Creating a strategy in a scope is TUTTI_FAILED_PRECONDITION; an estimator or a predictor of a scope
 * with another strategy is TUTTI_INVALID_ARGUMENT. */
TUTTI_API tutti_context *tutti_strategy_get_context(tutti_strategy *strategy);

#ifdef __cplusplus
}
#endif

#endif /* TUTTI_STRATEGY_H_ */
