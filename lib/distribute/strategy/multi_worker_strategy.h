// SPDX-License-Identifier: Apache-2.0
//
// The strategy of several processes, on one machine or many, that train one model: P processes with k devices give the
// weights of one process with P * k. Every process makes the same strategy but for its number in the cluster.
//
//   TUTTI_ASSIGN(Cluster cluster, Cluster::from_environment());
//   TUTTI_ASSIGN(auto all, multi_worker(cluster, {{cpu, 0}, {cpu, 1}}, options));
//
// Nothing is opened before a trainer asks for groups: then the workers meet at the address of worker 0, who listens
// there as long as its strategy lives. They meet again for each evaluation and stream of predictions. All of these are
// to be begun in the same order on all workers.
//
// Devices that a library connects over processes (NCCL, RCCL) combine their memory from one to the other, where all
// workers have it, in the same version, and want to (collective/device/connected_workers.h). Before an update the host,
// or in a step that is launched at once the device, waits until all workers have passed the last operation, as without:
// the next step begins on the devices while the one before is judged, but no update does before all may make it.
//
// Else replicas of a process add up in memory of the host; between processes an engine carries the sums, on a thread of
// its own (collective/cluster). Devices with memory of their own get there by way of copies. Level invariant keeps its
// promise: additions are in the order of the logical replicas, whatever the number of processes.
//
// The devices of a worker may be of several backends, and those of one worker others than those of another: then they
// predict and evaluate. What is between workers is in memory of the host, and each deals its own rows to its devices
// (predict_engine.h). Such a strategy does not train (check_trains; Trainer::check_workers).
#ifndef TUTTI_DISTRIBUTE_STRATEGY_MULTI_WORKER_STRATEGY_H_
#define TUTTI_DISTRIBUTE_STRATEGY_MULTI_WORKER_STRATEGY_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "collective/engine.h"
#include "distribute/strategy/cluster.h"
#include "distribute/strategy/meeting_point.h"
#include "distribute/strategy/strategy.h"

namespace tutti::impl::distribute {

struct MultiWorkerOptions : MeetingOptions {
  /// What carries messages between processes; called when the workers first meet.
  std::function<base::Result<collective::EngineRef>()> open_engine;
  /// Where the workers of this cluster have met before, with its options in place of those above; null: a place of the
  /// strategy's own.
  std::shared_ptr<MeetingPoint> place;
  WorkerInput worker_input = WorkerInput::whole;
};

/// That of TUTTI_JOB_SECRET, or none.
std::string job_secret_from_environment();

/// Errors of check_devices; INVALID_ARGUMENT for an evaluator, which does not train with the others.
base::Result<StrategyRef> multi_worker(Cluster cluster, std::vector<DeviceChoice> devices, MultiWorkerOptions options);

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_STRATEGY_MULTI_WORKER_STRATEGY_H_
