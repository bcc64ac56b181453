// SPDX-License-Identifier: Apache-2.0
//
// Calls of the host's hooks: an event becomes a handle that lives during the call, the answer a decision.
#include <limits>
#include <memory>

#include "base/text.h"
#include "capi/estimator_c.h"
#include "capi/guard.h"
#include "capi/host_call.h"
#include "estimator/hooks/event_rate.h"

namespace tutti::impl::capi {
namespace {

using estimator::hooks::EventRate;

/// The speed between the events that one hook sees.
void set_speed(const estimator::Event &event, EventRate &rate, HookEventObject &object) {
  object.examples_per_second = object.remaining_seconds = kNotANumber;
  const auto speed = event.kind == estimator::EventKind::step ? rate.since_mark(event) : std::nullopt;
  rate.mark(event);
  if (!speed) return;
  object.examples_per_second = speed->examples_per_second;
  if (event.goal_step >= 0) object.remaining_seconds = double(event.goal_step - event.step) / speed->steps_per_second;
}

Ref<HookEventObject> to_object(const estimator::Event &event, EventRate &rate) {
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
  if (event.control != nullptr) object->summaries = event.control->summary_writer();
  set_speed(event, rate, *object);
  return object;
}

Result<estimator::Answer> call(const HookEntry &entry, EventRate &rate, const estimator::Event &event) {
  LentHandle handle;
  TUTTI_TRY(handle.set(to_object(event, rate), hook_event_handles));
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
    const auto rate = std::make_shared<EventRate>();
    hook.function = [entry, rate](const estimator::Event &event) { return call(entry, *rate, event); };
    hooks.push_back(std::move(hook));
  }
  return hooks;
}

}  // namespace tutti::impl::capi
