// SPDX-License-Identifier: Apache-2.0
#include "distribute/predict/row_queue.h"

namespace tutti::impl::distribute {

void RowQueue::add(int64_t rows, Job job, const DeviceSpeeds &speeds) {
  if (rows > 0) calls_.push_back({std::make_shared<const Job>(std::move(job)), rows, {0, rows}, speeds.now()});
}

RowQueue::Piece RowQueue::take_of(size_t call, int64_t rows, double now_seconds) {
  Call &of = calls_[call];
  const Piece piece{of.job, {of.left.begin, of.left.begin + rows}};
  of.left.begin += rows;
  of.touched_seconds = now_seconds;
  if (of.left.rows() == 0) calls_.erase(calls_.begin() + static_cast<std::ptrdiff_t>(call));
  return piece;
}

RowQueue::Piece RowQueue::take(int32_t device, const DeviceSpeeds &speeds, bool must) {
  if (calls_.empty()) return {};
  const double now_seconds = speeds.now();
  if (must) return take_of(0, calls_.front().left.rows(), now_seconds);
  int64_t waiting = 0;
  for (const Call &call : calls_)
    waiting += call.left.rows();
  const bool is_fast = speeds.is_fast(device);
  int64_t passed = 0;
  for (size_t i = 0; i < calls_.size(); ++i) {
    const size_t number = is_fast ? i : calls_.size() - 1 - i;
    const Call &call = calls_[number];
    const int64_t rest = waiting - passed - call.left.rows();
    const int64_t rows = speeds.piece(device, {.rows = call.left.rows(),
                                               .ahead = is_fast ? passed : rest,
                                               .behind = is_fast ? rest : passed,
                                               .call_rows = call.all,
                                               .waited_seconds = now_seconds - call.touched_seconds});
    if (rows > 0) return take_of(number, rows, now_seconds);
    passed += call.left.rows();
  }
  return {};
}

double RowQueue::patience_seconds(int32_t device, const DeviceSpeeds &speeds) const {
  return speeds.patience_seconds(device, calls_.back().all);
}

}  // namespace tutti::impl::distribute
