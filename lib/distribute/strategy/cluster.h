// SPDX-License-Identifier: Apache-2.0
//
// A cluster: the processes that train one model together, and which of them this one is. An immutable description; it
// opens no connection.
//
//   TUTTI_ASSIGN(Cluster cluster, Cluster::from_environment());       // TF_CONFIG, torchrun, mpirun or Slurm
//   TUTTI_ASSIGN(cluster, Cluster::make({"a:2222", "b:2222"}, 1));    // this process is b
//
// Workers are numbered from 0. Worker 0 leads: the others meet at its address, it writes checkpoints. Launchers that
// tell no more than the leader's address give a cluster whose other addresses are empty; the workers learn them when
// they meet.
//
// Sources: TensorFlow, tensorflow/python/distribute/cluster_resolver (TF_CONFIG, Slurm); PyTorch, torch.distributed.run
// (MASTER_ADDR, MASTER_PORT, RANK, WORLD_SIZE); Open MPI, mpirun(1); Slurm, srun(1) "OUTPUT ENVIRONMENT VARIABLES".
//
// Threads: a value; may be shared.
#ifndef TUTTI_DISTRIBUTE_STRATEGY_CLUSTER_H_
#define TUTTI_DISTRIBUTE_STRATEGY_CLUSTER_H_

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/status.h"

namespace tutti::impl::distribute {

/// What a process does in its cluster. An evaluator takes no part in training and is none of the workers.
enum class TaskType : int32_t { worker = 1, chief, evaluator };

/// "worker", "chief", "evaluator".
const char *name(TaskType type);

class Cluster {
 public:
  /// The value of an environment variable, or null.
  using Variables = std::function<const char *(const char *name)>;

  /// Workers at most.
  static constexpr int32_t kMostWorkers = 1024;
  /// Where worker 0 listens if the launcher says nothing: the base port of TensorFlow's Slurm resolver.
  static constexpr int32_t kDefaultPort = 8888;

  /// "host:port" or "[IPv6]:port" of each worker, and which of them this process is. INVALID_ARGUMENT naming the
  /// address that is malformed or listed twice, or an index that is out of range.
  static base::Result<Cluster> make(std::vector<std::string> addresses, int32_t index);
  /// `count` workers of which only the leader's address is known.
  static base::Result<Cluster> with_leader(const std::string &leader_address, int32_t count, int32_t index);
  /// The text of a TF_CONFIG variable: {"cluster": {"chief": [..], "worker": [..]}, "task": {"type": .., "index": ..}}.
  /// The chief, if there is one, is worker 0, before those of "worker". Parameter servers are refused. Errors name the
  /// key.
  static base::Result<Cluster> from_tf_config(std::string_view text);

  /// The workers of a slice of TPUs (tpu_cluster.h), with what is known of it: the type, such as "v5litepod-16", and
  /// how many chips each worker has; "" and 0 = not known.
  static base::Result<Cluster> of_tpus(std::vector<std::string> addresses, int32_t index, std::string origin,
                                       std::string accelerator_type, int32_t chips_per_worker);

  /// What the launcher has said, by the first of these that is there: TF_CONFIG; MASTER_ADDR, MASTER_PORT, RANK and
  /// WORLD_SIZE (torchrun, which has MASTER_PORT for itself where TORCHELASTIC_USE_AGENT_STORE is "True": then the next
  /// port counts; the PyTorch operator of Kubernetes); OMPI_COMM_WORLD_RANK and _SIZE (mpirun), with
  /// MASTER_ADDR unless all run on one machine; SLURM_PROCID with the step's node list and tasks per node (srun);
  /// TPU_WORKER_HOSTNAMES or TPU_PROCESS_ADDRESSES (GKE). NOT_FOUND when there is none, else an error that names the
  /// variable.
  static base::Result<Cluster> from_environment();
  static base::Result<Cluster> from_variables(const Variables &variables);
  /// As from_variables, by one launcher alone: "TF_CONFIG", "torchrun", "mpirun", "Slurm" or "GKE". NOT_FOUND where
  /// there is nothing of it.
  static base::Result<Cluster> from_launcher(std::string_view launcher, const Variables &variables);

  int32_t worker_count() const { return static_cast<int32_t>(addresses_.size()); }
  /// Number of this process among the workers; 0 for an evaluator.
  int32_t worker_index() const { return index_; }
  TaskType task_type() const { return type_; }
  /// Of a worker; empty where it is not known.
  const std::string &address(int32_t worker) const { return addresses_[static_cast<size_t>(worker)]; }
  const std::string &leader_address() const { return addresses_.front(); }
  /// Where the description is from: "TF_CONFIG", "torchrun", "mpirun", "Slurm", "GKE", "metadata", "local", "explicit".
  const std::string &origin() const { return origin_; }
  /// {"workers": ["a:2222", ...], "index": 1, "task": "worker", "origin": "TF_CONFIG"}; of TPUs, where they are known,
  /// "accelerator_type" and "chips_per_worker", too.
  base::Json describe() const;

 private:
  Cluster(std::vector<std::string> addresses, int32_t index, TaskType type, std::string origin)
      : addresses_(std::move(addresses)), index_(index), type_(type), origin_(std::move(origin)) {}
  struct Launcher;
  /// In the order in which they are asked.
  static std::span<const Launcher> launchers();
  static base::Result<Cluster> from_torchrun(const Variables &variables);
  static base::Result<Cluster> from_open_mpi(const Variables &variables);
  static base::Result<Cluster> from_slurm(const Variables &variables);

  std::vector<std::string> addresses_;
  int32_t index_;
  TaskType type_;
  std::string origin_;
  std::string accelerator_type_;
  int32_t chips_per_worker_ = 0;
};

/// "host:port", with brackets around the host of an IPv6 address.
std::string with_port(const std::string &host, int64_t port);

/// Those of this process; none in set-user-ID programs.
Cluster::Variables variables_from_environment();

/// A Slurm host list: "gpu[01-03,7],login" -> gpu01 gpu02 gpu03 gpu7 login; at most Cluster::kMostWorkers hosts.
base::Result<std::vector<std::string>> expand_host_list(std::string_view text);
/// Slurm's tasks per node: "2(x3),1" -> 2 2 2 1.
base::Result<std::vector<int32_t>> expand_task_counts(std::string_view text);

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_STRATEGY_CLUSTER_H_
