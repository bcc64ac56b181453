// SPDX-License-Identifier: Apache-2.0
//
// Threads of devices and a queue of jobs, each for a certain device or for whichever is free first. A device has as
// many lanes as jobs may be under way on it, each a thread: with two, one copies while the other computes. Jobs for any
// device go to where the fewest are under way. Internal to this folder. Threads: submit() from any thread.
#ifndef TUTTI_DISTRIBUTE_DEVICE_POOL_H_
#define TUTTI_DISTRIBUTE_DEVICE_POOL_H_

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "base/cancel.h"
#include "base/status.h"
#include "base/thread.h"

namespace tutti::impl::distribute {

class DevicePool {
 public:
  static constexpr int32_t any_device = -1;
  /// Gets the number of the lane whose thread runs it: lane % devices is the device.
  using Job = std::function<void(int32_t lane)>;

  static base::Result<std::unique_ptr<DevicePool>> create(int32_t devices, int32_t lanes_per_device = 1);
  /// Runs what was submitted, then joins.
  ~DevicePool();

  void submit(int32_t device, Job job);

 private:
  struct Queued {
    int32_t device;
    Job job;
  };

  using Queue = std::deque<Queued>;

  DevicePool(int32_t devices, int32_t lanes_per_device)
      : devices_(devices), idle_(static_cast<size_t>(lanes_per_device), devices) {}
  void loop(int32_t lane);
  /// The first job that the lane is to do now. With the mutex held.
  Queue::iterator next_job(int32_t lane);

  std::mutex mutex_;
  std::condition_variable changed_;
  const int32_t devices_;
  Queue queue_;                // guarded by mutex_
  std::vector<int32_t> idle_;  // first, second, ... lanes without a job; guarded by mutex_
  bool closing_ = false;       // guarded by mutex_
  std::vector<base::Thread> threads_;
};

/// Counts jobs under way and keeps the first error. Threads: any.
class JobGroup {
 public:
  void add(int32_t jobs);
  void done(const base::Status &status);
  /// Waits for all jobs; CANCELLED or DEADLINE_EXCEEDED when the token says so first.
  base::Status wait(const base::CancelToken *cancel);
  /// Are all jobs done?
  bool is_done();
  /// Waits until at most `limit` jobs are under way.
  base::Status wait_below(int32_t limit, const base::CancelToken *cancel);

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int32_t pending_ = 0;   // guarded by mutex_
  base::Status failure_;  // guarded by mutex_
};

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_DEVICE_POOL_H_
