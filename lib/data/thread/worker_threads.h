// SPDX-License-Identifier: Apache-2.0
//
// Threads for the computing parts of one iterator (maps by graph), started when first wanted and shared by its stages
// over all passes. Callbacks of users, which may block, have threads of their own instead.
//
// Threads: belongs to the thread of the iterator; several background stages of one iterator may ask concurrently.
#ifndef TUTTI_DATA_THREAD_WORKER_THREADS_H_
#define TUTTI_DATA_THREAD_WORKER_THREADS_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "base/status.h"
#include "base/thread.h"

namespace tutti::impl::data {

/// The threads for a stage's loops over rows: a pool beside the caller, null for none. Automatic: the stage uses them
/// where that is faster (row_loops.h).
struct LoopThreads {
  base::ThreadPool *pool = nullptr;
  bool is_automatic = false;
};

class WorkerThreads {
 public:
  /// `budget` is what automatic parallelism means; 0 = the cores of the process.
  explicit WorkerThreads(int32_t budget) : budget_(budget > 0 ? budget : base::available_cores()) {}

  /// The parallelism that a parameter stands for: itself, or the budget when it is 0.
  int32_t resolve(int64_t parallelism) const {
    return parallelism > 0 ? static_cast<int32_t>(parallelism < kMost ? parallelism : kMost) : budget_;
  }
  /// A pool that together with its caller makes `parallelism` threads; null for 1.
  base::Result<base::ThreadPool *> pool(int32_t parallelism) {
    if (parallelism <= 1) return static_cast<base::ThreadPool *>(nullptr);
    std::lock_guard lock(mutex_);
    std::unique_ptr<base::ThreadPool> &pool = pools_[parallelism];
    if (pool == nullptr) {
      TUTTI_ASSIGN(pool, base::ThreadPool::create("tutti-data", parallelism - 1));
    }
    return pool.get();
  }
  /// What a parameter `parallelism` means for loops over rows.
  base::Result<LoopThreads> for_loops(int64_t parallelism) {
    TUTTI_ASSIGN(base::ThreadPool *const found, pool(resolve(parallelism)));
    return LoopThreads{found, parallelism <= 0 && found != nullptr};
  }

  /// May one more thread read a file ahead? There are never more of them than threads of the budget beside one. Who got
  /// a yes gives it back.
  bool take_reader() {
    if (readers_.fetch_add(1) + 1 < budget_) return true;
    readers_.fetch_sub(1);
    return false;
  }
  void give_back_reader() { readers_.fetch_sub(1); }

  /// Those of a part of the pipeline with a budget of its own; they live as long as these.
  WorkerThreads &of_budget(int32_t budget) {
    std::lock_guard lock(mutex_);
    std::unique_ptr<WorkerThreads> &part = parts_[budget];
    if (part == nullptr) part = std::make_unique<WorkerThreads>(budget);
    return *part;
  }

  /// No transform gets more threads than this.
  static constexpr int64_t kMost = 256;

 private:
  const int32_t budget_;
  std::atomic<int32_t> readers_{0};
  std::mutex mutex_;
  // Guarded by mutex_:
  std::map<int32_t, std::unique_ptr<base::ThreadPool>> pools_;
  std::map<int32_t, std::unique_ptr<WorkerThreads>> parts_;
};

}  // namespace tutti::impl::data

#endif  // TUTTI_DATA_THREAD_WORKER_THREADS_H_
