// SPDX-License-Identifier: Apache-2.0
#include "distribute/recorded_steps.h"

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

RecordedStep *RecordedSteps::find(std::span<const int64_t> programs) {
  const auto found = std::ranges::find_if(
      steps_, [&](const RecordedStep &step) { return std::ranges::equal(step.programs, programs); });
  return found == steps_.end() ? nullptr : &*found;
}

RecordedStep &RecordedSteps::add(RecordedStep step) {
  if (steps_.size() == kMost) steps_.pop_front();
  steps_.push_back(std::move(step));
  return steps_.back();
}

std::string RecordedSteps::describe() const {
  if (!may_.ok()) return base::concat("in pieces: ", may_.message());
  return base::concat("launched at once, with the operations between workers: ", steps_.size(), " recorded");
}

Status recording_from_environment() {
  const char *const value = secure_getenv("TUTTI_RECORD_STEPS");
  if (value == nullptr || std::string_view(value) != "0") return Status();
  return base::unavailable("TUTTI_RECORD_STEPS is 0");
}

}  // namespace tutti::impl::distribute
