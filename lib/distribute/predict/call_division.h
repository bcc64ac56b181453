// SPDX-License-Identifier: Apache-2.0
//
// How the rows of calls are divided among the devices that predict (predict_engine.h says by which rules), and given to
// their threads. Internal to this folder.
//
// Threads: any.
#ifndef TUTTI_DISTRIBUTE_PREDICT_CALL_DIVISION_H_
#define TUTTI_DISTRIBUTE_PREDICT_CALL_DIVISION_H_

#include <cstdint>
#include <memory>

#include "backend/executable.h"
#include "distribute/input/input_binding.h"
#include "distribute/predict/device_pool.h"
#include "distribute/predict/predict_call.h"
#include "distribute/predict/predict_programs.h"
#include "distribute/predict/row_computation.h"

namespace tutti::impl::distribute {

class CallDivision {
 public:
  /// All of them outlive it.
  CallDivision(const PredictPrograms &programs, backend::Level level, RowComputation &computation, DevicePool &pool)
      : programs_(programs), level_(level), computation_(computation), pool_(pool) {}

  /// Has all rows of the call computed, which has its batch, of `binding`, and its outputs.
  void submit(const std::shared_ptr<PredictCall> &call, const std::shared_ptr<const InputBinding> &binding,
              CallParts parts);

 private:
  enum class Rule : uint8_t {
    equal,     ///< a part for each device, or a whole batch of a stream, to whichever is free
    fixed,     ///< the same parts, each to a certain device: the bits of a row do not depend on which is free
    by_speed,  ///< pieces as large as suits who takes them
  };

  Rule rule_for(const PredictCall &call) const;
  /// 0 unless devices get several parts each.
  int64_t rows_of_part(const PredictCall &call) const;

  const PredictPrograms &programs_;
  const backend::Level level_;
  RowComputation &computation_;
  DevicePool &pool_;
};

}  // namespace tutti::impl::distribute

#endif  // TUTTI_DISTRIBUTE_PREDICT_CALL_DIVISION_H_
