// SPDX-License-Identifier: Apache-2.0
//
// Work that is asked again and again though nobody waits for it.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "host_call.h"
#include "streams.h"

namespace tutti_gpu_emulator {

namespace {

/// Asks streams again and again.
class Pump {
 public:
  Pump() : thread_([this] { run(); }) {}
  ~Pump() {
    is_ending_.store(true);
    thread_.join();
  }
  /// Under work_lock().
  void add(const std::shared_ptr<Lane> &lane) {
    for (const std::weak_ptr<Lane> &known : lanes_) {
      if (known.lock() == lane) return;
    }
    lanes_.push_back(lane);
  }

 private:
  void run() {
    while (!is_ending_.load()) {
      std::this_thread::sleep_for(std::chrono::microseconds(500));
      const std::unique_lock lock(work_lock(), std::try_to_lock);
      if (!lock.owns_lock()) continue;
      std::erase_if(lanes_, [](const std::weak_ptr<Lane> &lane) { return lane.expired(); });
      const std::vector<std::weak_ptr<Lane>> lanes = lanes_;
      for (const std::weak_ptr<Lane> &weak : lanes) {
        if (const std::shared_ptr<Lane> lane = weak.lock()) (void)lane->advance_to(lane->issued);
      }
      work_changed().notify_all();
    }
  }

  std::vector<std::weak_ptr<Lane>> lanes_;
  std::atomic<bool> is_ending_{false};
  std::thread thread_;
};

}  // namespace

void keep_going(const std::shared_ptr<Lane> &lane) {
  (void)registered_memory();  // outlives the pump, as the lock does
  (void)work_changed();
  static Pump pump;
  pump.add(lane);
}

/// The first question comes late where TUTTI_EMULATED_LATE_QUESTION says "NUMBER MILLISECONDS", if it is that one.
static Work be_late(Work question) {
  static int64_t asked = 0;
  const char *const order = std::getenv("TUTTI_EMULATED_LATE_QUESTION");
  long long number = 0, late_ms = 0;
  if (order == nullptr || std::sscanf(order, "%lld %lld", &number, &late_ms) != 2 || asked++ != number) return question;
  return [question = std::move(question), begin = std::chrono::steady_clock::time_point(), late_ms]() mutable {
    const auto now = std::chrono::steady_clock::now();
    if (begin == std::chrono::steady_clock::time_point()) begin = now;
    return now - begin >= std::chrono::milliseconds(late_ms) && question();
  };
}

/// The host may do something else meanwhile than wait for the stream.
gpuError_t launch_until(const std::function<std::function<bool()>()> &make_question, gpuStream_t stream) {
  if (is_refused()) return gpuErrorMemoryAllocation;
  const HostCall host;
  const std::lock_guard guard(work_lock());
  const LaunchedWork launched = [make_question](const std::shared_ptr<Lane> &lane) {
    keep_going(lane);
    return be_late(make_question());
  };
  if (stream->capture) {
    add_to_capture(*stream, launched);
  } else {
    issue(stream, launched(stream->lane));
  }
  return gpuSuccess;
}

}  // namespace tutti_gpu_emulator
