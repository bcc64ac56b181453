// SPDX-License-Identifier: Apache-2.0
//
// A strategy: which devices work together, and how. An immutable description; it opens nothing until somebody trains or
// predicts with it, and one strategy serves any number of trainers and predictors at the same time.
//
//   TUTTI_ASSIGN(auto one, Strategy::one_device({cpu, 0}));
//   TUTTI_ASSIGN(auto all, Strategy::mirrored_all(cpu));           // every device of the backend
//   TUTTI_ASSIGN(auto two, Strategy::mirrored({{cpu, 0}, {cpu, 3}}));
//   TUTTI_ASSIGN(auto mix, Strategy::mirrored({{cuda, 0}, {cpu, 0}}));   // predicts and evaluates, does not train
//   TUTTI_ASSIGN(auto central, Strategy::central_storage({cpu, 0}, {{cuda, 0}, {cuda, 1}}));
//
// A strategy of several processes (multi_worker_strategy.h) is described by each of them: its devices are those of the
// own process, and every process has the same number of them.
//
// Threads: may be shared.
#ifndef TUTTI_DISTRIBUTE_STRATEGY_STRATEGY_H_
#define TUTTI_DISTRIBUTE_STRATEGY_STRATEGY_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend/backend.h"
#include "backend/executable.h"
#include "base/cancel.h"
#include "base/json.h"
#include "base/status.h"
#include "collective/group.h"
#include "distribute/strategy/all_reduce_choice.h"

namespace tutti::impl::distribute {

/// A device that need not be open yet.
struct DeviceChoice {
  backend::BackendRef backend;
  int32_t index = 0;

  friend bool operator==(const DeviceChoice &, const DeviceChoice &) = default;
};

class Strategy;
using StrategyRef = std::shared_ptr<const Strategy>;

/// The groups of one training run: one handle per local replica, in order.
struct ReplicaGroups {
  std::vector<std::unique_ptr<collective::Group>> ranks;
  /// How they combine, for people: "host memory", "connected devices", "copies on the host: <why>", and how it was
  /// asked for.
  std::string description;
};

/// What a training run asks of its groups.
struct GroupOptions {
  int32_t parts = 1;  ///< contributors of each replica
  int64_t timeout_ms = 600000;
  backend::Level level = backend::Level::fast;
  AllReduceChoice all_reduce = AllReduceChoice::automatic;
  /// Null, or a byte that devices read: groups that end operations on them clear it before, and those of several
  /// processes where a step is not settled (DeviceGroupOptions).
  std::atomic<uint8_t> *alive = nullptr;
  /// Ends the wait for other processes. Null: nothing does but their limit.
  const base::CancelToken *cancel = nullptr;
};

/// The processes of a run.
struct Workers {
  int32_t count = 1;
  int32_t index = 0;  ///< of this one; 0 leads
};

/// What the workers of a run are given as their dataset.
enum class WorkerInput {
  whole,      ///< all the same; each takes its rows of each batch
  own,        ///< each one of its own, a part that the user made
  automatic,  ///< all the same; who trains or evaluates divides it among them, as suits it best,
  file,       ///< by files,
  data,       ///< or by elements
};

/// "whole", "own", "auto", "file", "data".
std::string_view name(WorkerInput input);

/// Which of the inputs of a training run is read here. An input is one walk over the data, whatever the number of
/// replicas that share its batches: data is divided by this, never by replicas.
struct InputPipeline {
  int32_t id = 0;  ///< 0 .. count-1
  int32_t count = 1;
};

class Strategy {
 public:
  virtual ~Strategy() = default;

  static base::Result<StrategyRef> one_device(DeviceChoice device);
  /// Devices may be of several backends (check_trains). Listing one twice is INVALID_ARGUMENT naming it.
  /// `threads_per_replica`: of those who do not say how many they want; 0 = none in particular.
  static base::Result<StrategyRef> mirrored(std::vector<DeviceChoice> devices, int32_t threads_per_replica = 0);
  static base::Result<StrategyRef> mirrored_all(const backend::BackendRef &backend);
  /// Variables and what belongs to them lie with `storage`, which makes the updates; `devices` compute, as mirrored.
  /// Where it is one of them it becomes the first replica.
  static base::Result<StrategyRef> central_storage(DeviceChoice storage, std::vector<DeviceChoice> devices);

  /// "one_device", "mirrored", "central_storage".
  const std::string &name() const { return name_; }
  /// The devices of this process, in replica order.
  const std::vector<DeviceChoice> &devices() const { return devices_; }
  int32_t replica_count() const { return static_cast<int32_t>(devices_.size()); }
  /// How many threads each replica is to have where nobody says; 0 = none in particular.
  int32_t threads_per_replica() const { return threads_per_replica_; }
  /// Where variables are kept, if that is one place; none: every replica keeps them.
  const std::optional<DeviceChoice> &storage() const { return storage_; }
  /// Whether it is a device apart from devices(); else it is the first of them.
  bool stores_apart() const;
  const Workers &workers() const { return workers_; }
  /// Of all processes.
  int32_t replicas_in_all() const { return workers_.count * replica_count(); }
  /// Of the first device: of all where the strategy trains.
  const backend::BackendRef &backend() const { return devices_.front().backend; }
  /// The input of this process, among those of all processes of the run. Where processes have inputs of their own, the
  /// rows of all of them make a global batch; else every process reads the same batches and takes its rows of them.
  const InputPipeline &input_pipeline() const { return input_pipeline_; }
  WorkerInput worker_input() const { return worker_input_; }
  /// {"strategy": "mirrored", "devices": ["cpu:0", ...]}; with several workers "workers" and "worker", too; with a
  /// place for variables "storage".
  base::Json describe() const;

  /// A new group over the replicas. `devices`: those of the strategy, open; operations may be on memory of theirs where
  /// the host does not reach it. Such devices are connected where their backend does that, else the host combines
  /// copies; the options may ask for one or the other, and for what the host does (all_reduce_choice.h). Where they do
  /// not, the environment's TUTTI_GROUP decides: "staged" takes copies, "device" makes it an error that devices cannot
  /// be connected.
  virtual base::Result<ReplicaGroups> make_groups(std::span<const backend::DeviceRef> devices,
                                                  const GroupOptions &options) const = 0;
  /// A new group of the processes, one rank for each, over memory of the host: for what they tell each other while they
  /// evaluate or predict. All of them call it. UNIMPLEMENTED for a strategy of one process.
  virtual base::Result<std::unique_ptr<collective::Group>> make_worker_group(const GroupOptions &options) const;

 protected:
  Strategy(std::string name, std::vector<DeviceChoice> devices, WorkerInput worker_input = WorkerInput::whole,
           Workers workers = {}, int32_t threads_per_replica = 0)
      : name_(std::move(name)),
        devices_(std::move(devices)),
        worker_input_(worker_input),
        input_pipeline_(worker_input == WorkerInput::whole ? InputPipeline{}
                                                           : InputPipeline{workers.index, workers.count}),
        workers_(workers),
        threads_per_replica_(threads_per_replica) {}

  void store_with(DeviceChoice storage) { storage_ = std::move(storage); }

 private:
  std::string name_;
  std::vector<DeviceChoice> devices_;
  WorkerInput worker_input_;
  std::optional<DeviceChoice> storage_;
  InputPipeline input_pipeline_;
  Workers workers_;
  int32_t threads_per_replica_;
};

/// May a batch without rows be a worker's part of one that has some? Where the library divides datasets.
inline bool may_be_empty_part(const Strategy &strategy) {
  return strategy.worker_input() != WorkerInput::whole && strategy.worker_input() != WorkerInput::own;
}

/// INVALID_ARGUMENT naming what is wrong with the devices of a process: none, one twice.
base::Status check_devices(const std::vector<DeviceChoice> &devices);

/// FAILED_PRECONDITION naming two devices of different backends: replicas keep weights that are equal bit by bit, and
/// backends round differently. Predictions and evaluations need no such thing.
base::Status check_trains(const std::vector<DeviceChoice> &devices);

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_STRATEGY_STRATEGY_H_
