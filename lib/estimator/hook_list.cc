// SPDX-License-Identifier: Apache-2.0
#include "estimator/hook_list.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/name_suggestions.h"

namespace tutti::impl::estimator {

using base::invalid_argument;
using base::Result;
using base::Status;

namespace {

Status name_hook(const Status &status, const Hook &hook, const Event &event) {
  return status.wrap(
      base::concat("hook '", hook.name, "' failed on event '", name(event.kind), "' at step ", event.step));
}

const double *find_value(std::span<const NamedNumber> values, std::string_view value_name) {
  for (const NamedNumber &number : values) {
    if (number.name == value_name && number.is_number()) return &number.value;
  }
  return nullptr;
}

}  // namespace

std::string_view name(EventKind kind) {
  switch (kind) {
    case EventKind::begin:
      return "begin";
    case EventKind::step:
      return "step";
    case EventKind::checkpoint_saved:
      return "checkpoint_saved";
    case EventKind::epoch_end:
      return "epoch_end";
    case EventKind::evaluated:
      return "evaluated";
    case EventKind::end:
      return "end";
    case EventKind::error:
      return "error";
  }
  return "unknown";
}

const double *Event::find(std::string_view value_name) const { return find_value(values, value_name); }

Result<HookList> HookList::make(std::vector<Hook> hooks) {
  HookList list;
  for (Hook &hook : hooks) {
    if (!hook.function) return invalid_argument("hook '", hook.name, "' has no function");
    if (hook.every_steps < 0) {
      return invalid_argument("hook '", hook.name, "': every_steps is ", hook.every_steps, ", expected at least 0");
    }
    if (!(hook.every_secs >= 0 && std::isfinite(hook.every_secs))) {
      return invalid_argument("hook '", hook.name, "': every_secs is ", hook.every_secs, ", expected at least 0");
    }
    if (hook.every_steps > 0 && hook.every_secs > 0) {
      return invalid_argument("hook '", hook.name, "' has a cadence in steps and one in seconds: set only one of them");
    }
    if (!hook.values.empty() && hook.every_steps == 0 && hook.every_secs == 0) {
      return invalid_argument("hook '", hook.name, "' requests step values but has no cadence");
    }
    list.hooks_.push_back({std::move(hook)});
  }
  return list;
}

Status HookList::check_values(const std::vector<std::string> &available) const {
  for (const Registered &registered : hooks_) {
    for (const std::string &value : registered.hook.values) {
      if (value == kAllValues || std::find(available.begin(), available.end(), value) != available.end()) continue;
      return invalid_argument("hook '", registered.hook.name, "' requests the value '", value,
                              "', which a step does not have", base::but_there_are(value, available));
    }
  }
  return Status();
}

int64_t HookList::steps_until_due(int64_t step) const {
  int64_t steps = std::numeric_limits<int64_t>::max();
  for (const Registered &registered : hooks_) {
    const int64_t every = registered.hook.every_steps;
    if (every > 0) steps = std::min(steps, every - step % every);
    if (registered.hook.every_secs > 0 && !registered.started) steps = std::min<int64_t>(steps, 1);
  }
  return steps;
}

double HookList::secs_until_due(double now_secs) const {
  double secs = std::numeric_limits<double>::infinity();
  for (const Registered &registered : hooks_) {
    if (registered.hook.every_secs <= 0) continue;
    const double passed = registered.started ? now_secs - registered.last_secs : registered.hook.every_secs;
    secs = std::min(secs, std::max(0.0, registered.hook.every_secs - passed));
  }
  return secs;
}

bool HookList::is_due(const Registered &registered, int64_t step, double now_secs) const {
  if (registered.last_step == step) return false;
  if (registered.hook.every_steps > 0) return step > 0 && step % registered.hook.every_steps == 0;
  if (registered.hook.every_secs <= 0) return false;
  return !registered.started || now_secs - registered.last_secs >= registered.hook.every_secs;
}

Result<bool> HookList::send_step(const Event &event, double now_secs) {
  bool stop = false;
  for (Registered &registered : hooks_) {
    if (!is_due(registered, event.step, now_secs)) continue;
    registered.last_step = event.step;
    registered.last_secs = now_secs;
    registered.started = true;
    wanted_.clear();
    for (const std::string &value : registered.hook.values) {
      if (value == kAllValues) {
        wanted_.insert(wanted_.end(), event.values.begin(), event.values.end());
        continue;
      }
      const double *found = find_value(event.values, value);
      wanted_.push_back({value, found ? *found : std::numeric_limits<double>::quiet_NaN()});
    }
    Event mine = event;
    mine.values = wanted_;
    const Result<Answer> answer = registered.hook.function(mine);
    if (!answer.ok()) return name_hook(answer.status(), registered.hook, event);
    stop |= *answer == Answer::stop;
  }
  return stop;
}

Result<bool> HookList::send(const Event &event) {
  bool stop = false;
  Status first_error;
  for (Registered &registered : hooks_) {
    const Result<Answer> answer = registered.hook.function(event);
    if (!answer.ok() && first_error.ok()) first_error = name_hook(answer.status(), registered.hook, event);
    stop |= answer.ok() && *answer == Answer::stop;
  }
  TUTTI_TRY(first_error);
  return stop;
}

base::Json HookList::save() const {
  base::Json state;
  for (const Registered &registered : hooks_) {
    if (registered.hook.save) state.set(registered.hook.name, registered.hook.save());
  }
  return state;
}

Status HookList::restore(const base::Json &state) {
  for (Registered &registered : hooks_) {
    const base::Json *mine = state.find(registered.hook.name);
    if (mine == nullptr || !registered.hook.restore) continue;
    const Status status = registered.hook.restore(*mine);
    if (!status.ok()) return status.wrap(base::concat("hook '", registered.hook.name, "' cannot restore its state"));
  }
  return Status();
}

}  // namespace tutti::impl::estimator
