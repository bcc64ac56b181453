/* SPDX-License-Identifier: Apache-2.0
 *
 * Cluster resolvers: which processes ("workers") train a model together, and which of them this one is. All sources
 * give the same object: a list, TF_CONFIG, the variables of a launcher, or what a machine with TPUs knows of its slice.
 * A strategy of several workers takes it (tutti_strategy_create_multi_worker_from_resolver).
 *
 * TPUs are used in four calls, each of which returns an error before the one in front of it was made:
 *   tutti_cluster_resolver_create_tpu(...)      which machines the TPUs are attached to; opens nothing
 *   tutti_cluster_resolver_connect(...)         the workers meet
 *   tutti_cluster_resolver_initialize(...)      opens the library for TPUs and finds their devices
 *   tutti_strategy_create_tpu(...)              a strategy over them; its context has them (tutti_strategy_get_context)
 *
 * Threads: every function is safe from any thread.
 */
#ifndef TUTTI_CLUSTER_RESOLVER_H_
#define TUTTI_CLUSTER_RESOLVER_H_

#include <tutti/context.h>
#include <tutti/options.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tutti_cluster_resolver tutti_cluster_resolver;

/* The address of each worker, "host:port,host:port", and the index of this worker in the list, starting at 0. */
TUTTI_API int32_t tutti_cluster_resolver_create_list(const char *workers, int64_t worker, tutti_cluster_resolver **out,
                                                     tutti_error **err);

/* The text of a TF_CONFIG variable. Errors name the key. Parameter servers are TUTTI_UNIMPLEMENTED. */
TUTTI_API int32_t tutti_cluster_resolver_create_tf_config(const char *text, tutti_cluster_resolver **out,
                                                          tutti_error **err);

/* What a launcher has set in the environment: "TF_CONFIG", "torchrun", "mpirun", "Slurm" or "GKE" (TPU_WORKER_HOSTNAMES
 * with TPU_WORKER_ID, or TPU_PROCESS_ADDRESSES with CLOUD_TPU_TASK_ID); NULL or "" = the first of these that is
 * there, in this order. TUTTI_NOT_FOUND if there is none; other errors name the variable. */
TUTTI_API int32_t tutti_cluster_resolver_create_from_environment(const char *launcher, tutti_cluster_resolver **out,
                                                                 tutti_error **err);

/* The workers of a TPU. `tpu` is one of
 *   "local"                     the chips that are attached to this machine
 *   "grpc://192.0.2.2:8470"     addresses, separated by commas; the scheme may be omitted. The ports are those at
 *                               which the workers of tutti meet
 *   a name                      its workers are listed in `metadata`
 * `metadata` (NULL or "" = none) is text of lines KEY: 'value', as the metadata server of Compute Engine has it for its
 * machines. Nothing is requested over the network; a script can get it by
 *   M=http://metadata.google.internal/computeMetadata/v1/instance/attributes
 *   curl -sH 'Metadata-Flavor: Google' $M/tpu-env
 *   echo "worker-network-endpoints: $(curl -sH 'Metadata-Flavor: Google' $M/worker-network-endpoints)"
 * Keys that are used: NODE_ID, which must be the name, WORKER_ID, HOST_BOUNDS, CHIPS_PER_HOST_BOUNDS, ACCELERATOR_TYPE,
 * worker-network-endpoints. */
TUTTI_API int32_t tutti_cluster_resolver_create_tpu(const char *tpu, const char *metadata, tutti_cluster_resolver **out,
                                                    tutti_error **err);

TUTTI_API void tutti_cluster_resolver_ref(tutti_cluster_resolver *resolver);
TUTTI_API void tutti_cluster_resolver_unref(tutti_cluster_resolver *resolver);

/* The number of workers, and the index of this one, 0 for an evaluator; -1 when `resolver` is not a resolver handle. */
TUTTI_API int64_t tutti_cluster_resolver_get_worker_count(const tutti_cluster_resolver *resolver);
TUTTI_API int64_t tutti_cluster_resolver_get_worker_index(const tutti_cluster_resolver *resolver);
/* The address of a worker, "host:port"; "" where the launcher tells only that of worker 0; NULL when out of range. */
TUTTI_API const char *tutti_cluster_resolver_get_address(const tutti_cluster_resolver *resolver, int64_t worker);
/* {"workers": ["a:2222", ...], "index": 1, "task": "worker", "origin": "TF_CONFIG"}; of TPUs also "accelerator_type"
 * and "chips_per_worker", if known. Valid as long as the resolver; NULL when `resolver` is not a resolver handle. */
TUTTI_API const char *tutti_cluster_resolver_get_json(const tutti_cluster_resolver *resolver);

/* The workers meet: each calls it, and it returns when all have. Worker 0 listens at its address as long as the
 * resolver or a strategy made from it lives. `options` of schema "cluster" (NULL = defaults), without workers and
 * worker: connect_timeout_ms and job_secret, also for all later connections; devices and worker_input of
 * tutti_strategy_create_tpu. An error names the worker that does not come, and the call can be repeated. A worker alone
 * opens no connection. Connections of strangers are dropped as for a strategy, but not logged, for there is no context
 * yet. TUTTI_FAILED_PRECONDITION if the resolver is connected already. */
TUTTI_API int32_t tutti_cluster_resolver_connect(tutti_cluster_resolver *resolver, const tutti_options *options,
                                                 tutti_error **err);

/* Opens the library with the C interface of PJRT that `options`, of schema "context", name by pjrt_plugin, such as the
 * absolute path of libtpu.so (tutti_options_set_from_environment takes it from TPU_LIBRARY_PATH), and finds the devices
 * of this worker. All workers call it, and it returns when all have; if one fails, the others return an error that
 * names it, and all call it again. Libraries whose processes exchange values while they find their devices do so
 * through worker 0. The option backend must be empty or "pjrt". Libraries for devices other than TPUs work likewise.
 *
 * TUTTI_FAILED_PRECONDITION before tutti_cluster_resolver_connect, and if called twice. TUTTI_UNAVAILABLE without a
 * TPU, or without its library: the error says which TPU chips the machine has, and which devices it has instead. */
TUTTI_API int32_t tutti_cluster_resolver_initialize(tutti_cluster_resolver *resolver, const tutti_options *options,
                                                    tutti_error **err);

/* The context with the devices of this worker, lent; NULL before tutti_cluster_resolver_initialize. */
TUTTI_API tutti_context *tutti_cluster_resolver_get_context(tutti_cluster_resolver *resolver);

#ifdef __cplusplus
}
#endif

#endif /* TUTTI_CLUSTER_RESOLVER_H_ */
