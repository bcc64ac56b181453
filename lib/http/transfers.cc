// SPDX-License-Identifier: Apache-2.0
#include "http/transfers.h"

#include <signal.h>
#include <tutti/status.h>

#include <algorithm>
#include <chrono>
#include <new>
#include <stdexcept>
#include <utility>

#include "http/request.h"

namespace tutti::impl::http {
namespace {

constexpr int kLongestWaitMs = 1000;
constexpr std::chrono::milliseconds kAskEvery(5);  // whether a wait was cancelled

// Signals are for the threads of the program.
std::thread start_without_signals(const std::function<void()> &body) {
  sigset_t all, before;
  (void)sigfillset(&all);
  (void)pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread;
  try {
    thread = std::thread(body);
  } catch (...) {
    (void)pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
  (void)pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

}  // namespace

Transfers::Transfers(Settings settings) : settings_(std::move(settings)), multi_(curl_multi_init()) {
  if (multi_ == nullptr) throw std::bad_alloc();
  (void)curl_multi_setopt(multi_, CURLMOPT_MAX_TOTAL_CONNECTIONS, static_cast<long>(settings_.connections));
  for (const std::string &header : settings_.headers) {
    curl_slist *const longer = curl_slist_append(headers_, header.c_str());
    if (longer == nullptr) throw std::bad_alloc();
    headers_ = longer;
  }
  thread_ = start_without_signals([this] { run(); });
}

Transfers::~Transfers() {
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
  }
  (void)curl_multi_wakeup(multi_);
  thread_.join();
  for (const auto &request : running_)
    (void)curl_multi_remove_handle(multi_, request->handle());
  running_.clear();
  (void)curl_multi_cleanup(multi_);
  curl_slist_free_all(headers_);
}

std::shared_ptr<Request> Transfers::start(const std::string &url, int64_t first, int64_t size) {
  auto request = std::make_shared<Request>(settings_, url, first, size);
  {
    const std::lock_guard lock(mutex_);
    new_.push_back(request);
  }
  (void)curl_multi_wakeup(multi_);
  return request;
}

void Transfers::abandon(const std::shared_ptr<Request> &request) {
  request->is_abandoned = true;
  (void)curl_multi_wakeup(multi_);
}

bool Transfers::wait(const std::shared_ptr<Request> &request, const std::function<bool()> &is_cancelled) {
  std::unique_lock lock(mutex_);
  while (!request->is_done) {
    lock.unlock();
    if (is_cancelled()) return false;
    lock.lock();
    ended_.wait_for(lock, kAskEvery, [&] { return request->is_done; });
  }
  return true;
}

const Result &Transfers::result(const Request &request) const { return request.result; }

void Transfers::run() {
  std::vector<std::shared_ptr<Request>> waiting;
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      if (stops_) return;
      std::move(new_.begin(), new_.end(), std::back_inserter(waiting));
      new_.clear();
    }
    begin_due(waiting);
    int running = 0;
    (void)curl_multi_perform(multi_, &running);
    end_finished();
    end_idle_and_abandoned();
    (void)curl_multi_poll(multi_, nullptr, 0, next_wait_ms(), nullptr);
  }
}

void Transfers::begin_due(std::vector<std::shared_ptr<Request>> &waiting) {
  const auto now = Clock::now();
  std::move(waiting.begin(), waiting.end(), std::back_inserter(delayed_));
  waiting.clear();
  // The oldest first, no more than may run at a time: what waits inside libcurl would look silent.
  for (size_t i = 0; i < delayed_.size();) {
    const bool begins = delayed_[i]->due <= now && static_cast<int64_t>(running_.size()) < settings_.connections;
    if (!begins) {
      ++i;
      continue;
    }
    const std::shared_ptr<Request> request = delayed_[i];
    delayed_.erase(delayed_.begin() + static_cast<std::ptrdiff_t>(i));
    begin(request);
  }
}

void Transfers::begin(const std::shared_ptr<Request> &request) {
  CURL *const handle = request->open(headers_);
  if (handle != nullptr && curl_multi_add_handle(multi_, handle) == CURLM_OK) {
    running_.push_back(request);
    return;
  }
  request->fail(TUTTI_RESOURCE_EXHAUSTED, "out of memory for a request");
  const std::lock_guard lock(mutex_);
  request->is_done = true;
  ended_.notify_all();
}

void Transfers::end_finished() {
  int left = 0;
  while (const CURLMsg *const message = curl_multi_info_read(multi_, &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    const CURLcode outcome = message->data.result;
    const auto found = std::find_if(running_.begin(), running_.end(),
                                    [&](const auto &request) { return request->handle() == message->easy_handle; });
    if (found != running_.end()) end(*found, outcome);
  }
}

void Transfers::end_idle_and_abandoned() {
  const auto now = Clock::now();
  const auto limit = std::chrono::milliseconds(settings_.timeout_ms);
  const std::vector<std::shared_ptr<Request>> running = running_;
  for (const auto &request : running) {
    if (request->is_abandoned) {
      end(request, CURLE_ABORTED_BY_CALLBACK);
    } else if (now - request->last_byte > limit) {
      end(request, CURLE_OPERATION_TIMEDOUT);
    }
  }
  std::erase_if(delayed_, [](const auto &request) { return request->is_abandoned.load(); });
}

void Transfers::end(const std::shared_ptr<Request> &request, CURLcode outcome) {
  const std::shared_ptr<Request> kept = request;  // the list's own goes
  (void)curl_multi_remove_handle(multi_, kept->handle());
  std::erase(running_, kept);
  if (!kept->finish(outcome) && !kept->is_abandoned) {
    delayed_.push_back(kept);
    return;
  }
  const std::lock_guard lock(mutex_);
  kept->is_done = true;
  ended_.notify_all();
}

int Transfers::next_wait_ms() const {
  const auto now = Clock::now();
  int64_t wait = kLongestWaitMs;
  const auto until = [&](Clock::time_point time) {
    wait = std::clamp<int64_t>(std::chrono::duration_cast<std::chrono::milliseconds>(time - now).count() + 1, 0, wait);
  };
  for (const auto &request : running_)
    until(request->last_byte + std::chrono::milliseconds(settings_.timeout_ms));
  if (static_cast<int64_t>(running_.size()) >= settings_.connections) return static_cast<int>(wait);
  for (const auto &request : delayed_)
    until(request->due);
  return static_cast<int>(wait);
}

}  // namespace tutti::impl::http
