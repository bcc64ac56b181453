// SPDX-License-Identifier: Apache-2.0
#include "distribute/train/gradient_buckets.h"

namespace tutti::impl::distribute {

using base::Status;
using collective::Operation;

void GradientBuckets::plan(std::span<const Contributor> contributors) {
  const bool sums_in_finish = rank_.programs().sums_in_finish;
  const std::vector<Bucket> &buckets = rank_.plan().buckets();
  buffers_.resize(buckets.size());
  for (const Bucket &bucket : buckets)
    whole_.push_back({0, bucket.elements, 0});
  for (size_t b = 0; b < buckets.size(); ++b) {
    if (sums_in_finish && buckets[b].sliced) continue;
    for (const Contributor &contributor : contributors) {
      auto *base = static_cast<std::byte *>(contributor.partials.device_pointer());
      buffers_[b].push_back(base + buckets[b].offset);
    }
    operations_.push_back(operation_of(b));
  }
  if (operations_.empty() && sums_in_finish) {
    // Finish reads what all have written.
    Operation barrier;
    barrier.kind = collective::Kind::barrier;
    barrier.label = "gradients";
    operations_.push_back(barrier);
  }
}

Operation GradientBuckets::operation_of(size_t bucket) {
  const Bucket &reduced = rank_.plan().buckets()[bucket];
  const bool is_central = rank_.programs().is_central;
  const std::span<const collective::Slice> slices =
      is_central ? std::span(whole_).subspan(bucket, 1) : std::span(rank_.plan().slices(bucket));
  Operation operation;
  operation.kind = reduced.sliced || is_central ? collective::Kind::reduce_scatter : collective::Kind::all_reduce;
  operation.dtype = reduced.dtype;
  operation.buffers = buffers_[bucket].data();
  operation.count = reduced.elements;
  operation.slices = slices.data();
  operation.slice_count = static_cast<int32_t>(slices.size());
  operation.label = reduced.sliced ? "gradient bucket" : "sums";
  operation.stream = rank_.device_stream();
  return operation;
}

Status GradientBuckets::begin(int32_t end) {
  if (rank_.programs().contributors == 1 || next_ >= end) return Status();
  if (rank_.device_stream() == nullptr) TUTTI_TRY(rank_.stream().synchronize());
  for (; next_ < end; ++next_) {
    TUTTI_TRY(recording_.go_on());
    TUTTI_ASSIGN(last_ticket_, rank_.group().begin(operations_[static_cast<size_t>(next_)]));
  }
  return Status();
}

Status GradientBuckets::begin_gathering() {
  const TrainProgramSet &programs = rank_.programs();
  if (factors_ == nullptr || !programs.gathers_factors) return Status();
  if (rank_.device_stream() == nullptr) TUTTI_TRY(rank_.stream().synchronize());
  factor_buffers_.assign(static_cast<size_t>(rank_.group().parts()), factors_->data());
  Operation operation;
  operation.kind = collective::Kind::all_gather;
  operation.dtype = tensor::DType::u8;
  operation.buffers = factor_buffers_.data();
  operation.count = factors_->bytes();
  operation.slices = factors_->slices().data();
  operation.slice_count = static_cast<int32_t>(factors_->slices().size());
  operation.label = "gradients of rows";
  operation.stream = rank_.device_stream();
  TUTTI_ASSIGN(last_ticket_, rank_.group().begin(operation));
  return Status();
}

Status GradientBuckets::reduce(StepFeeder &feeder) {
  if (rank_.programs().contributors == 1) return finish(feeder);
  return clock_.wait_for_group([&] { return finish(feeder); });
}

Status GradientBuckets::finish(StepFeeder &feeder) {
  collective::Group &group = rank_.group();
  if (rank_.device_stream() != nullptr && !rank_.programs().finish.empty() && !rank_.is_on_devices()) {
    // Only now it shows what was wrong with the data of this rank; nobody updates without its last operation.
    TUTTI_TRY(begin(early()));
    if (last_ticket_ >= 0) TUTTI_TRY(group.wait(last_ticket_));
    TUTTI_TRY(group.settle());  // the stream waits for other ranks, and only that wait has an end
    TUTTI_TRY(rank_.stream().synchronize());
  }
  TUTTI_TRY(begin_all());
  TUTTI_TRY(begin_gathering());
  if (last_ticket_ < 0) return Status();
  if (group.would_wait(last_ticket_)) feeder.read_ahead();
  TUTTI_TRY(group.wait(last_ticket_));
  return rank_.is_on_devices() ? Status() : group.settle();
}

}  // namespace tutti::impl::distribute
