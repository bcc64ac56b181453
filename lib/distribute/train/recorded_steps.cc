// SPDX-License-Identifier: Apache-2.0
#include "distribute/train/recorded_steps.h"

#include <cstdlib>

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/text.h"

namespace tutti::impl::distribute {

using base::Status;

void RecordedSteps::open(Status may) {
  clear();
  is_connected_ = false;
  may_ = std::move(may);
}

static auto with(std::span<const int64_t> programs) {
  return [programs](const auto &step) { return std::ranges::equal(step.programs, programs); };
}

RecordedStepRef RecordedSteps::find(std::span<const int64_t> programs, size_t turn) const {
  const auto found = std::ranges::find_if(steps_, with(programs));
  return found == steps_.end() ? nullptr : found->by_turn[turn];
}

void RecordedSteps::add(std::span<const int64_t> programs, size_t turn, RecordedStepRef step) {
  auto found = std::ranges::find_if(steps_, with(programs));
  if (found == steps_.end()) {
    if (steps_.size() == kMost) steps_.pop_front();
    found = steps_.insert(steps_.end(), {{programs.begin(), programs.end()}, {}});
  }
  found->by_turn[turn] = std::move(step);
}

std::string RecordedSteps::describe() const {
  if (!may_.ok()) return base::concat("in pieces: ", may_.message());
  return base::concat("launched at once, updates included: ", steps_.size(), " recorded");
}

Status recording_from_environment() {
  const char *const value = secure_getenv("TUTTI_RECORD_STEPS");
  if (value == nullptr || std::string_view(value) != "0") return Status();
  return base::unavailable("TUTTI_RECORD_STEPS is 0");
}

}  // namespace tutti::impl::distribute
