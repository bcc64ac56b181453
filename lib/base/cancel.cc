// SPDX-License-Identifier: Apache-2.0
#include "base/cancel.h"

#include <algorithm>

namespace tutti::impl::base {

Deadline Deadline::after_ms(int64_t milliseconds) {
  if (milliseconds < 0) return never();
  const Clock::time_point now = Clock::now();
  const auto most = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::time_point::max() - now).count();
  return milliseconds >= most ? never() : Deadline(now + std::chrono::milliseconds(milliseconds));
}

int64_t Deadline::remaining_ms() const {
  if (is_never()) return INT64_MAX;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(time_ - Clock::now()).count();
  return std::max<int64_t>(0, left);
}

Ref<CancelToken> CancelToken::create(Deadline deadline) { return make_ref<CancelToken>(deadline); }

Ref<CancelToken> CancelToken::create_child(Ref<CancelToken> parent, Deadline deadline) {
  return create_below(std::move(parent), deadline, Listener::Hears::levels_and_deadlines);
}

Ref<CancelToken> CancelToken::create_worker(Ref<CancelToken> parent) {
  return create_below(std::move(parent), Deadline::never(), Listener::Hears::levels);
}

Ref<CancelToken> CancelToken::create_below(Ref<CancelToken> parent, Deadline deadline, Listener::Hears hears) {
  Ref<CancelToken> child = create(deadline);
  if (parent == nullptr) return child;
  child->parent_ = std::move(parent);
  child->has_parents_deadline_ = hears == Listener::Hears::levels_and_deadlines;
  CancelToken *self = child.get();
  child->parent_listener_ = std::make_unique<Listener>(
      child->parent_.get(), [self] { self->follow_parent(); }, Listener::Start::call_if_raised, hears);
  return child;
}

CancelToken::~CancelToken() = default;

void CancelToken::follow_parent() {
  // The last reference may be gone already; the listener then waits in the destructor for this call to end.
  if (!try_ref()) return;
  const Ref<CancelToken> keep = Ref<CancelToken>::adopt(this);
  const CancelLevel level = parent_->level();
  Status reason;
  if (level == CancelLevel::cancel) {
    std::lock_guard lock(parent_->mutex_);
    reason = parent_->reason_;
  }
  raise(level, std::move(reason));
  if (has_parents_deadline_) deadline_came_closer();
}

Deadline CancelToken::deadline() const {
  const Deadline own = Deadline::at(deadline_.load(std::memory_order_acquire));
  return has_parents_deadline_ ? earlier(own, parent_->deadline()) : own;
}

void CancelToken::set_deadline(Deadline deadline) {
  const Deadline::Clock::time_point before = deadline_.exchange(deadline.time());
  if (deadline.time() < before) deadline_came_closer();
}

void CancelToken::deadline_came_closer() {
  const Ref<CancelToken> keep = Ref<CancelToken>::share(this);
  std::unique_lock lock(mutex_);
  ++closer_deadlines_;
  call_listeners(lock);
}

// Marks what a token says, so that it can be told from what others say under the same code.
constexpr int64_t kInterrupt = 1;

bool is_interrupt(const Status &status) {
  return (status.code() == Code::cancelled || status.code() == Code::deadline_exceeded) &&
         status.error()->domain() == "tutti" && status.error()->subcode() == kInterrupt;
}

Status CancelToken::check() const {
  if (level() == CancelLevel::cancel) {
    std::lock_guard lock(mutex_);
    return cancelled("the operation was cancelled").with_domain("tutti", kInterrupt).with_cause(reason_);
  }
  if (!deadline().passed()) return Status();
  return deadline_exceeded("the deadline of the operation has passed").with_domain("tutti", kInterrupt);
}

Status wait_timed_out() { return deadline_exceeded("timed out waiting"); }

void CancelToken::raise(CancelLevel level, Status reason) {
  const Ref<CancelToken> keep = Ref<CancelToken>::share(this);
  std::unique_lock lock(mutex_);
  if (this->level() >= level) return;
  if (level == CancelLevel::cancel) reason_ = std::move(reason);
  level_.store(static_cast<int32_t>(level), std::memory_order_release);
  call_listeners(lock);
}

int64_t CancelToken::news(Listener::Hears hears) const {
  const int64_t level = level_.load(std::memory_order_relaxed);
  return hears == Listener::Hears::levels ? level : level + closer_deadlines_;
}

void CancelToken::call_listeners(std::unique_lock<std::mutex> &lock) const {
  // Whoever is at it already goes round again and sees the new level.
  if (raising_) return;
  raising_ = true;
  calling_thread_ = std::this_thread::get_id();
  for (Listener *listener = first_; listener != nullptr;) {
    const int64_t now = news(listener->hears_);
    if (listener->seen_ >= now) {
      listener = listener->next_;
      continue;
    }
    listener->seen_ = now;
    calling_ = listener;
    lock.unlock();
    listener->function_();
    lock.lock();
    calling_ = nullptr;
    call_ended_.notify_all();
    // The list may have changed altogether.
    listener = first_;
  }
  raising_ = false;
}

CancelToken::Listener::Listener(const CancelToken *token, std::function<void()> function, Start start, Hears hears)
    : token_(Ref<const CancelToken>::share(token)), function_(std::move(function)), hears_(hears) {
  add();
  if (token_ == nullptr || start == Start::later_only || token_->level() == CancelLevel::none) return;
  std::unique_lock lock(token_->mutex_);
  seen_ = -1;
  token_->call_listeners(lock);
}

void CancelToken::Listener::add() {
  if (token_ == nullptr) return;
  std::lock_guard lock(token_->mutex_);
  if (added_) return;
  added_ = true;
  seen_ = token_->news(hears_);
  previous_ = nullptr;
  next_ = token_->first_;
  if (next_ != nullptr) next_->previous_ = this;
  token_->first_ = this;
}

void CancelToken::unlink(Listener *listener) const {
  if (!listener->added_) return;
  listener->added_ = false;
  (listener->previous_ != nullptr ? listener->previous_->next_ : first_) = listener->next_;
  if (listener->next_ != nullptr) listener->next_->previous_ = listener->previous_;
}

bool CancelToken::called_by_other(const Listener *listener) const {
  return calling_ == listener && calling_thread_ != std::this_thread::get_id();
}

void CancelToken::Listener::remove() {
  if (token_ == nullptr) return;
  std::unique_lock lock(token_->mutex_);
  token_->unlink(this);
  token_->call_ended_.wait(lock, [this] { return !token_->called_by_other(this); });
}

bool CancelToken::Listener::try_remove() {
  if (token_ == nullptr) return true;
  std::lock_guard lock(token_->mutex_);
  if (token_->called_by_other(this)) return false;
  token_->unlink(this);
  return true;
}

}  // namespace tutti::impl::base
