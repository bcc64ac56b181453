// SPDX-License-Identifier: Apache-2.0
//
// A stage's loops over rows, on its own thread or spread over a pool; where the parallelism is automatic, as is faster.
//
// Threads: an object belongs to one thread at a time.
#ifndef TUTTI_DATA_THREAD_ROW_LOOPS_H_
#define TUTTI_DATA_THREAD_ROW_LOOPS_H_

#include <algorithm>
#include <cstdint>

#include "base/status.h"
#include "base/thread.h"
#include "base/trace.h"
#include "data/thread/parallel_choice.h"
#include "data/thread/worker_threads.h"

namespace tutti::impl::data {

class RowLoops {
 public:
  explicit RowLoops(const LoopThreads &threads) : pool_(threads.pool), is_automatic_(threads.is_automatic) {}

  /// Threads that a loop may use, the caller's included.
  int32_t threads() const { return pool_ == nullptr ? 1 : pool_->thread_count() + 1; }
  bool is_parallel() const { return pool_ != nullptr; }
  /// Of the loop that runs: how many ranges on a thread's next one probably lies.
  int64_t distance() const { return distance_; }

  /// body(from, to) for consecutive ranges of at most `grain` covering [begin, end). An error ends the loop; of several
  /// that of the first range is given.
  base::Status run(int64_t begin, int64_t end, int64_t grain, base::FunctionRef<base::Status(int64_t, int64_t)> body) {
    if (pool_ == nullptr || end - begin <= grain) return run_in_order(begin, end, grain, body);
    if (!is_automatic_) return run_spread(begin, end, grain, body);
    const bool is_spread = choice_.next();
    const int64_t began = base::now_ns();
    const base::Status status = is_spread ? run_spread(begin, end, grain, body) : run_in_order(begin, end, grain, body);
    choice_.took(is_spread, end - begin, base::now_ns() - began);
    return status;
  }

 private:
  base::Status run_spread(int64_t begin, int64_t end, int64_t grain,
                          base::FunctionRef<base::Status(int64_t, int64_t)> body) {
    distance_ = threads();
    return pool_->parallel_for(begin, end, grain, body);
  }
  base::Status run_in_order(int64_t begin, int64_t end, int64_t grain,
                            base::FunctionRef<base::Status(int64_t, int64_t)> body) {
    distance_ = 1;
    for (int64_t from = begin; from < end; from += grain) {
      TUTTI_TRY(body(from, std::min(end, from + grain)));
    }
    return base::Status();
  }

  base::ThreadPool *const pool_;
  const bool is_automatic_;
  ParallelChoice choice_;
  int64_t distance_ = 1;
};

}  // namespace tutti::impl::data

#endif  // TUTTI_DATA_THREAD_ROW_LOOPS_H_
