// SPDX-License-Identifier: Apache-2.0
#include "distribute/train/weight_handout.h"

#include <algorithm>

namespace tutti::impl::distribute {

using base::Status;
using collective::Operation;

/// Operations under way at a time: one is copied from the first device while others are being copied to the rest.
constexpr size_t kUnderWay = 3;

void WeightHandout::plan(void *weights, std::span<const Contributor> contributors) {
  const TrainProgramSet &programs = rank_.programs();
  if (!programs.is_central || programs.contributors == 1) return;
  for (const UpdatedRange &range : programs.updated)
    add_pieces(range, weights, contributors);
  for (size_t i = 0; i < operations_.size(); ++i)
    operations_[i].buffers = buffers_[i].data();
}

void WeightHandout::add_pieces(const UpdatedRange &range, void *weights, std::span<const Contributor> contributors) {
  const bool is_report = range.arena == Arena::report;
  for (int64_t at = range.offset; at < range.offset + range.bytes; at += rank_.programs().piece_bytes) {
    std::vector<void *> &buffers = buffers_.emplace_back();
    for (const Contributor &contributor : contributors) {
      void *const arena = is_report ? contributor.report.device_pointer() : weights;
      buffers.push_back(static_cast<std::byte *>(arena) + at);
    }
    Operation operation;
    operation.kind = collective::Kind::broadcast;
    operation.dtype = tensor::DType::i32;  // as bits
    operation.count = std::min(rank_.programs().piece_bytes, range.offset + range.bytes - at) / 4;
    operation.root = 0;
    operation.label = is_report ? "report" : "weights";
    operation.stream = rank_.device_stream();
    operations_.push_back(operation);
  }
}

Status WeightHandout::run() {
  if (operations_.empty()) return Status();
  const WaitClock clock(clock_.times().communication_ns, rank_.tracer(), "weights");
  return hand_out();
}

Status WeightHandout::hand_out() {
  collective::Group &group = rank_.group();
  if (rank_.device_stream() == nullptr) TUTTI_TRY(rank_.stream().synchronize());
  collective::Ticket first = 0;
  for (size_t i = 0; i < operations_.size(); ++i) {
    TUTTI_ASSIGN(const collective::Ticket ticket, group.begin(operations_[i]));
    if (i == 0) first = ticket;
    if (i >= kUnderWay) TUTTI_TRY(group.wait(first + static_cast<int64_t>(i - kUnderWay)));
  }
  TUTTI_TRY(group.wait(first + static_cast<int64_t>(operations_.size()) - 1));
  return group.settle();
}

}  // namespace tutti::impl::distribute
