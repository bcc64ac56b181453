// SPDX-License-Identifier: Apache-2.0
#include "collective/device/operation_board.h"

namespace tutti::impl::collective::device {

using base::Status;

void OperationBoard::Entry::write(int64_t new_number, const Operation &operation) {
  number.store(-1);
  count.store(operation.count);
  kind.store(static_cast<int32_t>(operation.kind));
  reduction.store(static_cast<int32_t>(operation.reduction));
  dtype.store(static_cast<int32_t>(operation.dtype));
  root.store(operation.root);
  slice_count.store(operation.slice_count);
  number.store(new_number);
}

bool OperationBoard::Entry::read(int64_t expected, Operation &operation) const {
  if (number.load() != expected) return false;
  operation.count = count.load();
  operation.kind = static_cast<Kind>(kind.load());
  operation.reduction = static_cast<Reduction>(reduction.load());
  operation.dtype = static_cast<tensor::DType>(dtype.load());
  operation.root = root.load();
  operation.slice_count = slice_count.load();
  return number.load() == expected;
}

Status OperationBoard::post(int32_t rank, int64_t number, const Operation &operation) {
  const auto place = static_cast<size_t>(number % max_pending_operations);
  Rank &own = ranks_[static_cast<size_t>(rank - first_rank_)];
  own.ring[place].write(number, operation);
  own.begun.store(number + 1);
  for (size_t r = 0; r < ranks_.size(); ++r) {
    Operation other;
    if (!ranks_[r].ring[place].read(number, other)) continue;
    if (other.kind == operation.kind && other.count == operation.count && other.dtype == operation.dtype &&
        other.reduction == operation.reduction && other.root == operation.root &&
        other.slice_count == operation.slice_count) {
      continue;
    }
    return base::invalid_argument("rank ", rank, " called ", name(operation.kind), " '", operation.label, "' of ",
                                  operation.count, " ", tensor::name(operation.dtype), " elements where rank ",
                                  first_rank_ + static_cast<int32_t>(r), " called ", name(other.kind), " of ",
                                  other.count, " ", tensor::name(other.dtype), " elements");
  }
  return Status();
}

std::string OperationBoard::missing(int64_t number) const {
  std::string listed;
  for (size_t r = 0; r < ranks_.size(); ++r) {
    if (ranks_[r].begun.load() <= number)
      listed += (listed.empty() ? "" : ", ") + std::to_string(first_rank_ + static_cast<int32_t>(r));
  }
  return listed;
}

}  // namespace tutti::impl::collective::device
