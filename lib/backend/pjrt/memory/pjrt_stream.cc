// SPDX-License-Identifier: Apache-2.0
#include "backend/pjrt/memory/pjrt_stream.h"

#include <algorithm>
#include <utility>

namespace tutti::impl::backend::pjrt {

using base::Status;

namespace {
/// So many are kept before ended ones are looked for.
constexpr size_t kMostPending = 64;
}  // namespace

Status PendingWork::wait() {
  std::lock_guard lock(mutex_);
  if (has_ended_) return status_;
  status_ = done_.wait();
  if (status_.ok() && then_) status_ = then_();
  then_ = nullptr;
  has_ended_ = true;
  return status_;
}

bool PendingWork::is_done() {
  std::unique_lock lock(mutex_, std::try_to_lock);
  return lock.owns_lock() && (has_ended_ || done_.is_ready());
}

void StreamState::add(Completion done, std::function<Status()> then) {
  if (pending_.size() >= kMostPending) drop_ended();
  pending_.push_back(std::make_shared<PendingWork>(std::move(done), std::move(then)));
}

void StreamState::add(const PendingList &list) {
  if (pending_.size() >= kMostPending) drop_ended();
  // Of streams that wait for each other in turn, each would double what the other one has.
  for (const std::shared_ptr<PendingWork> &work : list) {
    if (std::ranges::find(pending_, work) == pending_.end()) pending_.push_back(work);
  }
}

void StreamState::drop_ended() {
  PendingList left;
  for (std::shared_ptr<PendingWork> &work : pending_) {
    if (!work->is_done()) {
      left.push_back(std::move(work));
    } else if (Status status = work->wait(); failed_.ok()) {
      failed_ = std::move(status);
    }
  }
  pending_ = std::move(left);
}

Status StreamState::synchronize() {
  Status first = std::exchange(failed_, Status());
  for (const std::shared_ptr<PendingWork> &work : std::exchange(pending_, {})) {
    Status status = work->wait();
    if (first.ok()) first = std::move(status);
  }
  return first;
}

bool StreamState::has_failed() {
  drop_ended();
  return !failed_.ok();
}

void EventState::record(const StreamState &stream) {
  std::lock_guard lock(mutex_);
  pending_ = stream.pending();
}

PendingList EventState::pending() {
  std::lock_guard lock(mutex_);
  return pending_;
}

Status EventState::synchronize() {
  for (const std::shared_ptr<PendingWork> &work : pending())
    (void)work->wait();  // whose error the stream tells
  return Status();
}

bool EventState::is_done() {
  for (const std::shared_ptr<PendingWork> &work : pending()) {
    if (!work->is_done()) return false;
  }
  return true;
}

}  // namespace tutti::impl::backend::pjrt
