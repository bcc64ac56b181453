// SPDX-License-Identifier: Apache-2.0
//
// A rank of the group as all parts of its replica see it: its device and stream, the group of the runs to come, and
// what all replicas of the trainer run.
//
// Threads: the replica's. Internal to this folder.
#ifndef TUTTI_DISTRIBUTE_TRAIN_RANK_H_
#define TUTTI_DISTRIBUTE_TRAIN_RANK_H_

#include <cstddef>
#include <memory>
#include <utility>

#include "backend/backend.h"
#include "base/status.h"
#include "base/trace.h"
#include "collective/group.h"
#include "distribute/plan/state_plan.h"
#include "distribute/train/train_program_set.h"

namespace tutti::impl::distribute {

class Rank {
 public:
  /// `place`: its position among the replicas of this process. Programs and plan outlive it.
  Rank(const TrainProgramSet &programs, const StatePlan &plan, backend::DeviceRef device, backend::Stream stream,
       size_t place)
      : programs_(programs), plan_(plan), device_(std::move(device)), stream_(std::move(stream)), place_(place) {}

  const TrainProgramSet &programs() const { return programs_; }
  const StatePlan &plan() const { return plan_; }
  size_t place() const { return place_; }
  bool has_other_workers() const { return programs_.workers.count > 1; }
  /// Whether it sees to updates: all ranks do, or with central storage the first one.
  bool updates() const { return !programs_.is_central || place_ == 0; }

  const backend::DeviceRef &device() const { return device_; }
  backend::Stream &stream() { return stream_; }
  /// The stream for operations of the group on memory of the device; null where that is the host's.
  backend::Stream *device_stream() { return device_->backend().has_host_memory() ? nullptr : &stream_; }

  /// Null: the old one is dropped.
  void set_group(std::unique_ptr<collective::Group> group) { group_ = std::move(group); }
  collective::Group &group() const { return *group_; }
  /// Nobody has to wait for the devices between reduction and update: finish is guarded, and hears from the group.
  bool is_on_devices() const { return group_->signals_end() && !programs_.finish.empty() && !programs_.is_central; }
  /// Ranks wait for each other before and after one builds programs, where devices combine by themselves. Those of
  /// other workers do not, which may have batches of other shapes: what they build keeps no device here waiting for
  /// good.
  base::Status settle_building() { return has_other_workers() ? group_->settle_own() : group_->settle(); }

  bool is_traced() const { return is_traced_; }
  void set_traced(bool traced) { is_traced_ = traced; }
  /// What spans of steps go to; null while nothing is traced.
  base::Tracer *tracer() const { return is_traced_ ? programs_.tracer.get() : nullptr; }

 private:
  const TrainProgramSet &programs_;
  const StatePlan &plan_;
  const backend::DeviceRef device_;
  backend::Stream stream_;
  const size_t place_;
  std::unique_ptr<collective::Group> group_;
  bool is_traced_ = false;
};

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_TRAIN_RANK_H_
