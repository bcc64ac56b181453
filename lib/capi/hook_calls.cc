// SPDX-License-Identifier: Apache-2.0
//
// Calls of the host's hooks: an event becomes a handle that lives during the call, the answer a decision.
#include <chrono>
#include <limits>
#include <memory>

#include "base/text.h"
#include "capi/estimator_c.h"
#include "capi/guard.h"
#include "capi/host_call.h"

namespace tutti::impl::capi {
namespace {

/// How fast a run goes, between the events that one hook sees.
class Speed {
 public:
  void fill(const estimator::Event &event, HookEventObject &object) {
    const auto now = std::chrono::steady_clock::now();
    object.examples_per_second = object.remaining_seconds = kNotANumber;
    if (event.kind == estimator::EventKind::step && started_) {
      const double seconds = std::chrono::duration<double>(now - time_).count();
      if (seconds > 0) object.examples_per_second = double(event.examples - examples_) / seconds;
      if (event.goal_step >= 0 && event.step > step_)
        object.remaining_seconds = seconds / double(event.step - step_) * double(event.goal_step - event.step);
    }
    started_ = true;
    time_ = now;
    examples_ = event.examples;
    step_ = event.step;
  }

 private:
  bool started_ = false;
  std::chrono::steady_clock::time_point time_;
  int64_t examples_ = 0, step_ = 0;
};

Ref<HookEventObject> to_object(const estimator::Event &event, Speed &speed) {
  Ref<HookEventObject> object = base::make_ref<HookEventObject>();
  object->kind = static_cast<int32_t>(event.kind);
  object->step = event.step;
  object->epoch = event.epoch;
  object->loss = kNotANumber;
  for (const estimator::NamedNumber &value : event.values) {
    if (value.name == "loss") object->loss = value.value;
    if (value.is_number()) object->metrics.emplace(value.name, value.value);
  }
  object->checkpoint = event.checkpoint_path;
  speed.fill(event, *object);
  return object;
}

Result<estimator::Answer> call(const HookEntry &entry, Speed &speed, const estimator::Event &event) {
  LentHandle handle;
  TUTTI_TRY(handle.set(to_object(event, speed), hook_event_handles));
  bool stops = false;
  TUTTI_TRY(call_host("a hook", [&](tutti_error **error) {
    const int32_t answer = entry.function(entry.user->get(), static_cast<tutti_hook_event *>(handle.get()), error);
    stops = answer == TUTTI_HOOK_STOP;
    return stops ? TUTTI_OK : answer;
  }));
  return stops ? estimator::Answer::stop : estimator::Answer::go_on;
}

}  // namespace

std::vector<estimator::Hook> to_hooks(const std::vector<HookEntry> &entries, const Ref<base::Logger> &logger) {
  std::vector<estimator::Hook> hooks;
  for (const HookEntry &entry : entries) {
    if (entry.make_ready) {
      hooks.push_back(entry.make_ready(logger));
      continue;
    }
    estimator::Hook hook;
    hook.name = base::concat("host hook ", hooks.size());
    hook.every_steps = entry.every_steps;
    if (entry.every_steps > 0) hook.values = {std::string(estimator::kAllValues)};
    const auto speed = std::make_shared<Speed>();
    hook.function = [entry, speed](const estimator::Event &event) { return call(entry, *speed, event); };
    hooks.push_back(std::move(hook));
  }
  return hooks;
}

}  // namespace tutti::impl::capi
