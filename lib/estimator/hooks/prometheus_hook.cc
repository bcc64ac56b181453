// SPDX-License-Identifier: Apache-2.0
#include "estimator/hooks/prometheus_hook.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "estimator/hooks/event_rate.h"
#include "monitor/event_file.h"

namespace tutti::impl::estimator::hooks {

using monitor::NumbersByName;
using monitor::PrometheusPage;

namespace {

NumbersByName event_numbers(const Event &event) {
  NumbersByName numbers;
  for (const NamedNumber &value : event.values)
    if (value.is_number()) numbers.insert_or_assign(value.name, value.value);
  return numbers;
}

void set_speed(const Event &event, EventRate &rate, PrometheusPage::Training &training) {
  if (const std::optional<Speed> speed = rate.since_mark(event)) {
    training.steps_per_second = speed->steps_per_second;
    training.examples_per_second = speed->examples_per_second;
    training.remaining_seconds = event.goal_step < 0
                                     ? PrometheusPage::kUnknown
                                     : static_cast<double>(event.goal_step - event.step) / speed->steps_per_second;
  }
  rate.mark(event);
}

void take(const Event &event, EventRate &rate, PrometheusPage::Training &training,
          PrometheusPage::Evaluation &evaluation) {
  if (event.kind == EventKind::begin) training = {.has_begun = true, .is_running = true};
  if (event.kind == EventKind::evaluated) {
    evaluation = {event.step, event_numbers(event)};
    return;
  }
  if (event.kind == EventKind::checkpoint_saved) {
    training.checkpoint = event.step;
    return;
  }
  training.step = event.step;
  training.epoch = event.epoch;
  training.examples = event.examples;
  training.time_ns = monitor::wall_time_ns();
  if (event.kind == EventKind::begin) rate.mark(event);
  if (event.kind == EventKind::step) set_speed(event, rate, training);
  if (!event.values.empty()) training.values = event_numbers(event);
  if (event.kind != EventKind::end && event.kind != EventKind::error) return;
  training.is_running = false;
  training.has_failed = event.kind == EventKind::error;
  training.remaining_seconds = PrometheusPage::kUnknown;
}

}  // namespace

Hook prometheus_hook(base::Ref<PrometheusPage> page, int64_t every_steps) {
  Hook hook;
  hook.name = "prometheus";
  hook.every_steps = every_steps;
  if (every_steps > 0) hook.values = {std::string(kAllValues)};
  const auto rate = std::make_shared<EventRate>();
  hook.function = [page = std::move(page), rate](const Event &event) -> base::Result<Answer> {
    page->change([&](PrometheusPage::Training &training, PrometheusPage::Evaluation &evaluation) {
      take(event, *rate, training, evaluation);
    });
    return Answer::go_on;
  };
  return hook;
}

}  // namespace tutti::impl::estimator::hooks
