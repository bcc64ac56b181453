// SPDX-License-Identifier: Apache-2.0
//
// Threads of devices and a queue of jobs, each for a certain device or for whichever is free first. A device has as
// many lanes as jobs may be under way on it, each a thread: with two, one copies while the other computes. Jobs for any
// device go to where the fewest are under way. Rows that are submitted are cut into pieces as lanes come to take them,
// each as large as suits its device (device_speeds.h). Internal to this folder. Threads: submit from any thread.
#ifndef TUTTI_DISTRIBUTE_PREDICT_DEVICE_POOL_H_
#define TUTTI_DISTRIBUTE_PREDICT_DEVICE_POOL_H_

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "base/cancel.h"
#include "base/status.h"
#include "base/thread.h"
#include "distribute/predict/device_speeds.h"
#include "distribute/predict/row_queue.h"

namespace tutti::impl::distribute {

class DevicePool {
 public:
  static constexpr int32_t any_device = -1;
  /// Gets the number of the lane whose thread runs it.
  using Job = std::function<void(int32_t lane)>;

  /// So many lanes for each device, at least one. Lanes are counted with the first ones of all devices first.
  static base::Result<std::unique_ptr<DevicePool>> create(const std::vector<int32_t> &lanes_of_devices);
  /// Runs what was submitted, then joins.
  ~DevicePool();

  int32_t lane_count() const { return static_cast<int32_t>(lanes_.size()); }
  int32_t device_of(int32_t lane) const { return lanes_[static_cast<size_t>(lane)].device; }
  /// What rows are dealt by: the jobs say how long they took.
  DeviceSpeeds &speeds() { return speeds_; }

  void submit(int32_t device, Job job);
  /// Runs the job for all of the rows [0, rows), in pieces, several at a time.
  void submit_rows(int64_t rows, RowQueue::Job job);

 private:
  struct Lane {
    int32_t device;
    size_t order;  // among those of the device
  };
  struct Queued {
    int32_t device;
    Job job;
  };
  using Queue = std::deque<Queued>;

  explicit DevicePool(const std::vector<int32_t> &lanes_of_devices);
  void loop(int32_t lane);
  // With the mutex held:
  /// The first job that the lane is to do now.
  Queue::iterator next_job(int32_t lane);
  void wait(std::unique_lock<std::mutex> &lock, int32_t lane);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Lane> lanes_;
  DeviceSpeeds speeds_;
  Queue queue_;                // guarded by mutex_
  RowQueue rows_;              // guarded by mutex_
  std::vector<int32_t> idle_;  // first, second, ... lanes without a job; guarded by mutex_
  bool closing_ = false;       // guarded by mutex_
  std::vector<base::Thread> threads_;
};

/// Counts jobs under way, or rows, and keeps the first error. Threads: any.
class JobGroup {
 public:
  void add(int64_t jobs);
  void done(const base::Status &status, int64_t jobs = 1);
  /// Waits for all jobs; CANCELLED or DEADLINE_EXCEEDED when the token says so first.
  base::Status wait(const base::CancelToken *cancel);
  /// Are all jobs done?
  bool is_done();
  /// Waits until at most `limit` jobs are under way.
  base::Status wait_below(int64_t limit, const base::CancelToken *cancel);

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int64_t pending_ = 0;   // guarded by mutex_
  base::Status failure_;  // guarded by mutex_
};

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_PREDICT_DEVICE_POOL_H_
