// SPDX-License-Identifier: Apache-2.0
//
// Which matrix products are faster with factors rounded to bfloat16: one table for the whole process, filled from the
// plan cache and by timing, each shape once. Only asked where rounding is permitted.
//
//   ProductTimes &table = ProductTimes::of_process();
//   table.measure(questions, cache, log);                       // where layouts of state are planned
//   if (table.pays(question)) ...                               // anywhere: never times anything
//
// A question is a ProductRequest with bf16. What was measured for other numbers of rows is scaled; what was not
// measured does not pay. An answer once given stays, so that two compilations of one process agree.
//
// Threads: all functions may be called from any thread; who asks while another measures waits.
#ifndef TUTTI_BACKEND_CPU_LOWER_PRODUCT_TIMES_H_
#define TUTTI_BACKEND_CPU_LOWER_PRODUCT_TIMES_H_

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <span>
#include <string>

#include "backend/cpu/dnnl/dnnl_product.h"
#include "backend/plan_cache.h"

namespace tutti::impl::backend::cpu {

class ProductTimes {
 public:
  using Log = std::function<void(const std::string &line)>;

  /// Processor time that one call of measure may spend.
  static constexpr double kBudgetSeconds = 0.6;

  static ProductTimes &of_process();

  /// Fills in what is missing, the largest first, while the budget lasts; reads the cache first and adds to it.
  void measure(std::span<const ProductRequest> questions, const PlanCache &cache, const Log &log);
  /// Is rounding, copies of both factors included, faster than the best in f32?
  bool pays(const ProductRequest &question);
  /// Products that were timed in this process.
  int64_t measured_count();
  /// For tests: as in a new process.
  void forget();

 private:
  void load(const PlanCache &cache, const Log &log);
  bool compare(const ProductRequest &question) const;

  std::mutex mutex_;
  std::map<std::string, std::map<int64_t, TimesByCandidate>, std::less<>> table_;  // by all but the rows; by rows
  std::map<std::string, bool, std::less<>> answers_;
  std::set<std::string> loaded_;  // paths of caches
  int64_t measured_ = 0;
};

}  // namespace tutti::impl::backend::cpu

#endif  // TUTTI_BACKEND_CPU_LOWER_PRODUCT_TIMES_H_
