// SPDX-License-Identifier: Apache-2.0
//
// The workers of a slice of TPUs: the machines that its chips are attached to, each of which runs a worker. From the
// variables that GKE sets, the metadata of a Compute Engine machine, or an address.
//
//   TUTTI_ASSIGN(Cluster cluster, tpu_cluster("local", ""));                          // the chips of this machine
//   TUTTI_ASSIGN(Cluster cluster, tpu_cluster("grpc://192.0.2.2:8470", ""));
//   TUTTI_ASSIGN(Cluster cluster, tpu_cluster("my-tpu", metadata_text));
//
// Nothing is asked for over the network. Workers meet at a port of their own, which is not one of libtpu's.
//
// Sources: TensorFlow, tensorflow/python/distribute/cluster_resolver/tpu; JAX, jax/_src/clusters/cloud_tpu_cluster.py;
// Google Cloud, "TPU environment variables" and "VM metadata".
#ifndef TUTTI_DISTRIBUTE_STRATEGY_TPU_CLUSTER_H_
#define TUTTI_DISTRIBUTE_STRATEGY_TPU_CLUSTER_H_

#include <string_view>

#include "base/status.h"
#include "distribute/strategy/cluster.h"

namespace tutti::impl::distribute {

/// Where worker 0 of TPUs listens if nothing says another port.
inline constexpr int32_t kTpuPort = 8482;

/// TPU_WORKER_HOSTNAMES with TPU_WORKER_ID, or TPU_PROCESS_ADDRESSES with CLOUD_TPU_TASK_ID, which goes first: it lists
/// processes, several of which may be on one machine. MASTER_PORT, where it is set, is the port of worker 0. Also
/// TPU_ACCELERATOR_TYPE and TPU_CHIPS_PER_HOST_BOUNDS. Errors name the variable.
base::Result<Cluster> tpu_cluster_from_variables(const Cluster::Variables &variables);

/// `tpu`: "local", for the chips of this machine; addresses with commas between them, such as "grpc://192.0.2.2:8470",
/// whose ports are those of the workers; else the name of a TPU, whose workers are in `metadata`. `metadata` may be
/// empty with the first two: lines of a key and a value, as the attribute tpu-env has them
///
///   ACCELERATOR_TYPE: 'v5litepod-16'
///   WORKER_ID: '1'
///   worker-network-endpoints: unknown:unknown:192.0.2.2,unknown:unknown:192.0.2.3
///
/// with other attributes of the machine added under their own names. INVALID_ARGUMENT names the key that is missing or
/// malformed.
base::Result<Cluster> tpu_cluster(std::string_view tpu, std::string_view metadata);

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_STRATEGY_TPU_CLUSTER_H_
