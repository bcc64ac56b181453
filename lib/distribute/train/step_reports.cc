// SPDX-License-Identifier: Apache-2.0
#include "distribute/train/step_reports.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "base/memory.h"

namespace tutti::impl::distribute {

using base::Result;
using base::Status;

double number_at(const void *address, tensor::DType dtype) {
  double value = 0;
  tensor::visit_dtype(dtype, [&]<typename T>(T) {
    if constexpr (std::is_arithmetic_v<T>) value = static_cast<double>(*static_cast<const T *>(address));
  });
  return value;
}

Result<tensor::Tensor> read_entry(const backend::Buffer &buffer, const backend::StateEntry &entry) {
  TUTTI_ASSIGN(const tensor::Shape shape, tensor::Shape::make(entry.dims));
  TUTTI_ASSIGN(tensor::Tensor value, tensor::Tensor::allocate(entry.dtype, shape));
  TUTTI_TRY(buffer.read(entry.offset, value.mutable_data(), value.size_bytes()));
  return value;
}

Status StepReports::open(const StatePlan &plan, backend::Device &device, int32_t in_flight) {
  loss_ = plan.find("report/loss");
  ok_ = plan.find("report/ok");
  faults_ = plan.find(fault_entry);
  offset_ = plan.arena_bytes(Arena::report);
  int64_t end = 0;
  for (const backend::StateEntry *entry : {loss_, ok_, faults_}) {
    if (entry == nullptr) continue;
    offset_ = std::min(offset_, entry->offset);
    end = std::max(end, entry->offset + entry->storage_bytes);
  }
  bytes_ = static_cast<int64_t>(base::round_up(static_cast<size_t>(end - offset_), base::kAlignment));
  bytes_ = std::min(bytes_, plan.arena_bytes(Arena::report) - offset_);
  in_flight_ = 1;
  if (in_flight > 1 || faults_ != nullptr) {
    Result<backend::HostMemory> memory = device.allocate_host(in_flight * bytes_);
    if (!memory.ok() && faults_ != nullptr) return memory.status();
    if (memory.ok()) {
      page_locked_ = std::move(*memory);
      in_flight_ = in_flight;
    }
  }
  if (page_locked_.data() == nullptr) alone_.resize(static_cast<size_t>(bytes_));
  for (int32_t i = 0; alone_.empty() && i < in_flight_; ++i) {
    TUTTI_ASSIGN(copied_[static_cast<size_t>(i)], device.create_event());
  }
  return Status();
}

Status StepReports::begin(backend::Buffer &report) {
  failure_ = Status();
  const std::byte yes{1};
  return report.write(ok_->offset, &yes, sizeof(yes));
}

std::byte *StepReports::copy_of(int64_t step) {
  return !alone_.empty() ? alone_.data() : page_locked_.data() + static_cast<int64_t>(place_of(step)) * bytes_;
}

Status StepReports::issue(int64_t step, const backend::Buffer &report, backend::Stream &stream) {
  last_issued_ = step;
  TUTTI_TRY(report.read(offset_, copy_of(step), bytes_, &stream));
  return !alone_.empty() ? Status() : copied_[place_of(step)].record(stream);
}

Result<StepReport> StepReports::wait(int64_t step, backend::Stream &stream) {
  if (!alone_.empty()) {
    TUTTI_TRY(stream.synchronize());
    return read(step);
  }
  TUTTI_TRY(copied_[place_of(step)].synchronize());
  if (faults_ != nullptr) return read(step);
  if (failure_.ok() && stream.has_failed()) failure_ = stream.synchronize();
  const StepReport report = read(step);
  if (failure_.ok()) return report;
  // The step behind may be that far; then it is not ok.
  const bool is_of_the_next = report.is_ok && last_issued_ > step && !read(last_issued_).is_ok;
  if (is_of_the_next) return report;
  return std::exchange(failure_, Status());
}

StepReport StepReports::read(int64_t step) const {
  const std::byte *const copy = copy_of(step) - offset_;
  const auto number = [&](const backend::StateEntry &entry) { return number_at(copy + entry.offset, entry.dtype); };
  return {number(*loss_), number(*ok_) != 0, faults_ != nullptr && number(*faults_) != 0};
}

}  // namespace tutti::impl::distribute
