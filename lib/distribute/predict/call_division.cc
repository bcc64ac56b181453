// SPDX-License-Identifier: Apache-2.0
#include "distribute/predict/call_division.h"

#include <algorithm>

#include "distribute/plan/row_buckets.h"

namespace tutti::impl::distribute {

CallDivision::Rule CallDivision::rule_for(const PredictCall &call) const {
  // A map on devices is compiled for whole batches.
  if (programs_.device_count() == 1 || call.map != nullptr) return Rule::equal;
  const bool is_fast = level_ == backend::Level::fast;
  if (programs_.kinds().count() > 1) return is_fast ? Rule::by_speed : Rule::fixed;
  return is_fast && pool_.speeds().are_uneven() ? Rule::by_speed : Rule::equal;
}

void CallDivision::submit(const std::shared_ptr<PredictCall> &shared_call,
                          const std::shared_ptr<const InputBinding> &binding, CallParts parts) {
  PredictCall &call = *shared_call;
  const Rule rule = rule_for(call);
  if (rule == Rule::by_speed) {
    call.jobs.add(call.rows);
    pool_.submit_rows(call.rows, [job = RowJob(computation_, shared_call, binding)](int32_t lane, RowRange rows) {
      job(lane, rows, rows.rows());
    });
    return;
  }
  const int64_t cut = rule == Rule::equal && parts.is_alone ? rows_of_part(call) : 0;
  const auto count =
      static_cast<int32_t>(cut > 0 ? (call.rows + cut - 1) / cut : std::min<int64_t>(parts.count, call.rows));
  call.jobs.add(count);
  for (int32_t part = 0; part < count; ++part) {
    const RowRange rows =
        cut > 0 ? RowRange{part * cut, std::min(call.rows, (part + 1) * cut)} : share_of_rows(call.rows, part, count);
    const auto device = static_cast<int32_t>((parts.first_device + part) % programs_.device_count());
    pool_.submit(rule == Rule::fixed ? device : DevicePool::any_device,
                 [job = RowJob(computation_, shared_call, binding), rows](int32_t lane) { job(lane, rows, 1); });
  }
}

int64_t CallDivision::rows_of_part(const PredictCall &call) const {
  if (pool_.lane_count() == programs_.device_count() || !programs_.rows_stand_alone()) return 0;
  int64_t bytes = call.batch.size_bytes();
  for (const tensor::Tensor &output : call.outputs)
    bytes += output.size_bytes();
  return distribute::rows_of_part(call.rows, bytes, programs_.device_count());
}

}  // namespace tutti::impl::distribute
