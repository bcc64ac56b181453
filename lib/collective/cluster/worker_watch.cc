// SPDX-License-Identifier: Apache-2.0
#include "collective/cluster/worker_watch.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "collective/cluster/worker_mesh.h"

namespace tutti::impl::collective::cluster {

using base::Result;
using base::Status;

namespace {

constexpr int64_t kLongestRestMs = 250, kShortestRestMs = 5;
/// Between the end of a connection and the word of it.
constexpr int64_t kMomentMs = 500;

}  // namespace

Result<std::unique_ptr<WorkerWatch>> WorkerWatch::start(const ClusterGroupOptions &options, Lost lost) {
  std::unique_ptr<WorkerWatch> watch(new WorkerWatch(options, std::move(lost)));
  TUTTI_TRY(watch->open());
  return watch;
}

WorkerWatch::~WorkerWatch() {
  leave();
  thread_.join();
}

void WorkerWatch::leave() {
  const std::lock_guard lock(mutex_);
  is_leaving_ = true;
  if (mesh_ != nullptr) mesh_->interrupt();
  changed_.notify_all();
}

Status WorkerWatch::open() {
  TUTTI_ASSIGN(thread_, base::Thread::start("tutti-watch", [this] { run(); }));
  std::unique_lock lock(mutex_);
  // The engine's own limit ends it.
  TUTTI_TRY(base::wait_until(changed_, lock, nullptr, base::Deadline::never(), [&] { return opened_.has_value(); }));
  return *opened_;
}

void WorkerWatch::run() {
  Result<std::unique_ptr<Mesh>> mesh = connect_mesh(options_, "watch");
  {
    const std::lock_guard lock(mutex_);
    opened_ = mesh.status();
    if (mesh.ok()) mesh_ = mesh->get();
    changed_.notify_all();
  }
  if (!mesh.ok()) return;
  look_round(**mesh);
  const std::lock_guard lock(mutex_);
  mesh_ = nullptr;
}

bool WorkerWatch::rest(int64_t ms) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, std::chrono::milliseconds(ms), [this] { return is_leaving_; });
}

void WorkerWatch::look_round(Mesh &mesh) {
  const int64_t rest_ms =
      options_.timeout_ms < 0 ? kLongestRestMs : std::clamp(options_.timeout_ms / 8, kShortestRestMs, kLongestRestMs);
  char own = 1;
  std::vector<char> others(options_.names.size());
  std::vector<tutti_message> sends, receives;
  for (uint32_t round = 0; !rest(rest_ms); ++round) {
    sends.clear();
    receives.clear();
    for (size_t w = 0; w < others.size(); ++w) {
      if (static_cast<int32_t>(w) == options_.worker) continue;
      sends.push_back({static_cast<int32_t>(w), round, &own, 1});
      receives.push_back({static_cast<int32_t>(w), round, &others[w], 1});
    }
    const Status seen = mesh.exchange({.sends = sends, .receives = receives, .timeout_ms = options_.timeout_ms});
    if (seen.ok()) continue;
    const bool has_ended = seen.code() == base::Code::unavailable;
    if (rest(has_ended ? kMomentMs : 0)) return;
    return lost_(name_peer(seen, options_.names, options_.worker, options_.timeout_ms, "the watch on it"));
  }
}

}  // namespace tutti::impl::collective::cluster
