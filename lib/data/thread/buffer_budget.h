// SPDX-License-Identifier: Apache-2.0
//
// Memory that the stages of one iterator may fill with elements ahead of the consumer, where they choose themselves how
// many: automatic buffers grow as long as the budget has room. What was set by hand is not counted.
//
// Threads: all functions may be called from any thread.
#ifndef TUTTI_DATA_THREAD_BUFFER_BUDGET_H_
#define TUTTI_DATA_THREAD_BUFFER_BUDGET_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include "base/memory.h"

namespace tutti::impl::data {

class BufferBudget {
 public:
  /// 0 = an eighth of what the process may still allocate when a stage first asks.
  explicit BufferBudget(int64_t bytes) : bytes_(bytes) {}

  /// A stage's part of the budget, given back with it.
  class Share {
   public:
    explicit Share(std::shared_ptr<BufferBudget> budget) : budget_(std::move(budget)) {}
    ~Share() {
      if (budget_ != nullptr) budget_->free_bytes_.fetch_add(bytes_);
    }
    Share(const Share &) = delete;
    Share &operator=(const Share &) = delete;

    bool is_limited() const { return budget_ != nullptr; }
    /// Makes the part so large, if there is room; a smaller one always. Without a budget there is always room.
    bool resize(int64_t bytes) {
      if (budget_ == nullptr) return true;
      std::call_once(budget_->looked_, [this] {
        budget_->free_bytes_.fetch_add(budget_->bytes_ > 0 ? budget_->bytes_ : base::available_memory() / 8);
      });
      const int64_t more = bytes - bytes_;
      if (budget_->free_bytes_.fetch_sub(more) < more && more > 0) {
        budget_->free_bytes_.fetch_add(more);
        return false;
      }
      bytes_ = bytes;
      return true;
    }

   private:
    std::shared_ptr<BufferBudget> budget_;
    int64_t bytes_ = 0;
  };

 private:
  const int64_t bytes_;
  std::once_flag looked_;
  std::atomic<int64_t> free_bytes_{0};
};

}  // namespace tutti::impl::data

#endif  // TUTTI_DATA_THREAD_BUFFER_BUDGET_H_
