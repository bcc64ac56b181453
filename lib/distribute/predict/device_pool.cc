// SPDX-License-Identifier: Apache-2.0
#include "distribute/predict/device_pool.h"

#include <algorithm>
#include <chrono>
#include <string>

namespace tutti::impl::distribute {

using base::Result;
using base::Status;

DevicePool::DevicePool(const std::vector<int32_t> &lanes_of_devices) : speeds_(lanes_of_devices) {
  const int32_t most = std::ranges::max(lanes_of_devices);
  for (int32_t order = 0; order < most; ++order) {
    for (size_t device = 0; device < lanes_of_devices.size(); ++device) {
      if (order < lanes_of_devices[device])
        lanes_.push_back({static_cast<int32_t>(device), static_cast<size_t>(order)});
    }
    idle_.push_back(
        static_cast<int32_t>(std::ranges::count_if(lanes_of_devices, [&](int32_t n) { return n > order; })));
  }
}

Result<std::unique_ptr<DevicePool>> DevicePool::create(const std::vector<int32_t> &lanes_of_devices) {
  std::unique_ptr<DevicePool> pool(new DevicePool(lanes_of_devices));
  DevicePool *self = pool.get();
  // A thread that has no place to be kept in could not be told to end.
  pool->threads_.reserve(static_cast<size_t>(pool->lane_count()));
  for (int32_t lane = 0; lane < pool->lane_count(); ++lane) {
    TUTTI_ASSIGN(base::Thread thread, base::Thread::start("tutti-device" + std::to_string(pool->device_of(lane)),
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

void DevicePool::submit_rows(int64_t rows, RowQueue::Job job) {
  {
    std::lock_guard lock(mutex_);
    rows_.add(rows, std::move(job), speeds_);
  }
  changed_.notify_all();
}

DevicePool::Queue::iterator DevicePool::next_job(int32_t lane) {
  const Lane &own = lanes_[static_cast<size_t>(lane)];
  // A second lane leaves jobs for any device to first lanes that wait.
  const bool takes_any = closing_ || std::all_of(idle_.begin(), idle_.begin() + static_cast<std::ptrdiff_t>(own.order),
                                                 [](int32_t waiting) { return waiting == 0; });
  return std::find_if(queue_.begin(), queue_.end(), [&](const Queued &queued) {
    return queued.device == any_device ? takes_any : queued.device == own.device;
  });
}

void DevicePool::wait(std::unique_lock<std::mutex> &lock, int32_t lane) {
  if (rows_.empty()) return changed_.wait(lock);
  // Rows that it has left to others.
  changed_.wait_for(lock, std::chrono::duration<double>(rows_.patience_seconds(device_of(lane), speeds_)));
}

void DevicePool::loop(int32_t lane) {
  int32_t &idle = idle_[lanes_[static_cast<size_t>(lane)].order];
  std::unique_lock lock(mutex_);
  for (;;) {
    const auto found = next_job(lane);
    RowQueue::Piece piece;
    if (found == queue_.end()) piece = rows_.take(device_of(lane), speeds_, closing_);
    if (found == queue_.end() && piece.job == nullptr) {
      if (closing_) return;
      wait(lock, lane);
      continue;
    }
    --idle;
    Job job;
    if (piece.job == nullptr) {
      job = std::move(found->job);
      queue_.erase(found);
    }
    lock.unlock();
    // The lanes that left work to this one.
    if (idle_.size() > 1 || piece.job != nullptr) changed_.notify_all();
    if (job) job(lane);
    if (piece.job != nullptr) (*piece.job)(lane, piece.rows);
    job = nullptr;
    piece = {};
    lock.lock();
    ++idle;
  }
}

void JobGroup::add(int64_t jobs) {
  std::lock_guard lock(mutex_);
  pending_ += jobs;
}

void JobGroup::done(const Status &status, int64_t jobs) {
  std::lock_guard lock(mutex_);
  pending_ -= jobs;
  if (failure_.ok()) failure_ = status;
  changed_.notify_all();
}

Status JobGroup::wait(const base::CancelToken *cancel) { return wait_below(0, cancel); }

bool JobGroup::is_done() {
  std::lock_guard lock(mutex_);
  return pending_ == 0;
}

Status JobGroup::wait_below(int64_t limit, const base::CancelToken *cancel) {
  std::unique_lock lock(mutex_);
  TUTTI_TRY(base::wait_until(changed_, lock, cancel, base::Deadline::never(), [&] { return pending_ <= limit; }));
  return failure_;
}

}  // namespace tutti::impl::distribute
