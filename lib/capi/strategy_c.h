// SPDX-License-Identifier: Apache-2.0
//
// Strategies behind handles.
#ifndef TUTTI_CAPI_STRATEGY_C_H_
#define TUTTI_CAPI_STRATEGY_C_H_

#include <tutti/strategy.h>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "capi/context_c.h"

namespace tutti::impl::capi {

class StrategyObject : public base::Object {
 public:
  StrategyObject(std::shared_ptr<ContextCore> core, distribute::StrategyRef strategy);

  const std::shared_ptr<ContextCore> &core() const { return core_; }
  const distribute::StrategyRef &strategy() const { return strategy_; }
  const std::vector<std::string> &device_names() const { return device_names_; }
  /// The lent handle of the context whose default strategy this is.
  Result<void *> context();

 private:
  const std::shared_ptr<ContextCore> core_;
  const distribute::StrategyRef strategy_;
  std::vector<std::string> device_names_;
  std::mutex mutex_;
  LentHandle context_;  // guarded by mutex_
};

extern constinit HandleType<StrategyObject> strategy_handles;

/// Which data the program is to bring: that of all workers, unless each has its own.
distribute::InputPipeline input_of_user(const distribute::Strategy &strategy);
/// As tutti_strategy_create_auto, with a number of replicas that divides the logical ones (0 = no matter); what was
/// chosen, and why, is logged.
Result<distribute::StrategyRef> automatic_strategy(const ContextCore &core, int64_t batch_size,
                                                   int64_t logical_replicas);
/// The strategy of an optional argument, of the same context; else the context's default one, else the automatic one.
Result<distribute::StrategyRef> choose_strategy(const ContextObject &context, const tutti_strategy *strategy,
                                                int64_t logical_replicas = 0);
/// Mirrored over the first `count` GPUs (devices with memory of their own) of a context that is no strategy's scope;
/// INVALID_ARGUMENT where it has fewer.
Result<distribute::StrategyRef> strategy_over_gpus(const ContextObject &context, int64_t count);

}  // namespace tutti::impl::capi

#endif  // TUTTI_CAPI_STRATEGY_C_H_
