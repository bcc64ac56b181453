// SPDX-License-Identifier: Apache-2.0
#include "distribute/device_pool.h"

#include <algorithm>
#include <string>

namespace tutti::impl::distribute {

using base::Result;
using base::Status;

Result<std::unique_ptr<DevicePool>> DevicePool::create(int32_t devices) {
  std::unique_ptr<DevicePool> pool(new DevicePool);
  DevicePool *self = pool.get();
  for (int32_t d = 0; d < devices; ++d) {
    TUTTI_ASSIGN(base::Thread thread,
                 base::Thread::start("tutti-device" + std::to_string(d), [self, d] { self->loop(d); }));
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
  if (device == any_device) {
    changed_.notify_one();
  } else {
    changed_.notify_all();
  }
}

void DevicePool::loop(int32_t device) {
  std::unique_lock lock(mutex_);
  for (;;) {
    const auto mine = [&] {
      return std::find_if(queue_.begin(), queue_.end(),
                          [&](const Queued &queued) { return queued.device == any_device || queued.device == device; });
    };
    changed_.wait(lock, [&] { return closing_ || mine() != queue_.end(); });
    const auto found = mine();
    if (found == queue_.end()) return;
    Job job = std::move(found->job);
    queue_.erase(found);
    lock.unlock();
    job(device);
    job = nullptr;
    lock.lock();
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
