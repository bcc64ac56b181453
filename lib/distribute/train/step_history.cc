// SPDX-License-Identifier: Apache-2.0
#include "distribute/train/step_history.h"

#include <algorithm>

namespace tutti::impl::distribute {

std::vector<ReportEntry> report_entries(const StatePlan &plan) {
  std::vector<ReportEntry> found;
  for (const backend::StateEntry &entry : plan.entries()) {
    if (entry.arena != static_cast<int32_t>(Arena::report) || entry.name.starts_with("report/coefficient/")) continue;
    std::string name = entry.name.substr(std::string_view("report/").size());
    if (name == "ok" || entry.name == fault_entry) continue;
    constexpr std::string_view metric = "metric/", summary = "summary/";
    const bool is_summary = name.starts_with(summary);
    if (is_summary) name = name.substr(summary.size());
    if (name.starts_with(metric) && !is_summary) name = name.substr(metric.size());
    found.push_back({std::move(name), is_summary, &entry});
  }
  return found;
}

void StepSamples::start(int64_t first, int64_t every) {
  next_ = first;
  every_ = every;
  clear();
  if (every == 0) return;
  moments_.reserve(kCapacity);
  values_.reserve(kCapacity * names_.size());
}

int64_t StepSamples::steps_until_full(int64_t step) const {
  if (every_ == 0) return INT64_MAX;
  if (moments_.size() == kCapacity) return 1;
  const auto more = static_cast<int64_t>(kCapacity - moments_.size()) - 1;
  const int64_t until_next = std::max<int64_t>(1, next_ - step);
  return more > (INT64_MAX - until_next) / every_ ? INT64_MAX : until_next + more * every_;
}

void StepSamples::clear() {
  moments_.clear();
  values_.clear();
}

std::span<double> StepSamples::add(const SampleMoment &moment) {
  next_ += every_ * std::max<int64_t>(1, (moment.step - next_) / every_ + 1);
  moments_.push_back(moment);
  values_.resize(values_.size() + names_.size());
  return {values_.data() + values_.size() - names_.size(), names_.size()};
}

std::vector<double> StepHistory::losses() const {
  std::vector<double> losses;
  const size_t kept = std::min(count_, losses_.size());
  for (size_t i = count_ - kept; i < count_; ++i)
    losses.push_back(losses_[i % losses_.size()]);
  return losses;
}

}  // namespace tutti::impl::distribute
