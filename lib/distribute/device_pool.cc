// SPDX-License-Identifier: Apache-2.0
#include "distribute/device_pool.h"

#include <algorithm>
#include <string>

namespace tutti::impl::distribute {

using base::Result;
using base::Status;

Result<std::unique_ptr<DevicePool>> DevicePool::create(int32_t devices, int32_t lanes_per_device) {
  std::unique_ptr<DevicePool> pool(new DevicePool(devices, lanes_per_device));
  DevicePool *self = pool.get();
  for (int32_t lane = 0; lane < devices * lanes_per_device; ++lane) {
    TUTTI_ASSIGN(base::Thread thread, base::Thread::start("tutti-device" + std::to_string(lane % devices),
                                                          [self, lane] { self->loop(lane); }));
    pool->threads_.push_back(std::move(thread));
  }
  return pool;
}

DevicePool::~DevicePool() {
  {
    std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  for (base::Thread &thread : threads_)
    thread.join();
}

void DevicePool::submit(int32_t device, Job job) {
  {
    std::lock_guard lock(mutex_);
    queue_.push_back({device, std::move(job)});
  }
  if (device == any_device && idle_.size() == 1) {
    changed_.notify_one();
  } else {
    changed_.notify_all();
  }
}

DevicePool::Queue::iterator DevicePool::next_job(int32_t lane) {
  // A second lane leaves jobs for any device to first lanes that wait.
  const auto order = static_cast<size_t>(lane / devices_);
  const bool takes_any = closing_ || std::all_of(idle_.begin(), idle_.begin() + static_cast<std::ptrdiff_t>(order),
                                                 [](int32_t waiting) { return waiting == 0; });
  return std::find_if(queue_.begin(), queue_.end(), [&](const Queued &queued) {
    return queued.device == any_device ? takes_any : queued.device == lane % devices_;
  });
}

void DevicePool::loop(int32_t lane) {
  int32_t &idle = idle_[static_cast<size_t>(lane / devices_)];
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return closing_ || next_job(lane) != queue_.end(); });
    const auto found = next_job(lane);
    if (found == queue_.end()) return;
    --idle;
    Job job = std::move(found->job);
    queue_.erase(found);
    lock.unlock();
    if (idle_.size() > 1) changed_.notify_all();  // the lanes that left jobs to this one
    job(lane);
    job = nullptr;
    lock.lock();
    ++idle;
  }
}

void JobGroup::add(int32_t jobs) {
  std::lock_guard lock(mutex_);
  pending_ += jobs;
}

void JobGroup::done(const Status &status) {
  std::lock_guard lock(mutex_);
  --pending_;
  if (failure_.ok()) failure_ = status;
  changed_.notify_all();
}

Status JobGroup::wait(const base::CancelToken *cancel) { return wait_below(0, cancel); }

bool JobGroup::is_done() {
  std::lock_guard lock(mutex_);
  return pending_ == 0;
}

Status JobGroup::wait_below(int32_t limit, const base::CancelToken *cancel) {
  std::unique_lock lock(mutex_);
  TUTTI_TRY(base::wait_until(changed_, lock, cancel, base::Deadline::never(), [&] { return pending_ <= limit; }));
  return failure_;
}

}  // namespace tutti::impl::distribute
