// SPDX-License-Identifier: Apache-2.0
#include "estimator/hooks/logging_hook.h"

#include <cmath>
#include <memory>
#include <utility>

#include "estimator/hooks/event_rate.h"
#include "estimator/hooks/progress_line.h"

namespace tutti::impl::estimator::hooks {

using base::Ref;
using base::Result;

namespace {

double rounded(double value, double unit) { return std::round(value / unit) * unit; }

class Progress {
 public:
  explicit Progress(Ref<base::Logger> logger) : logger_(std::move(logger)) {}

  void handle(const Event &event) {
    switch (event.kind) {
      case EventKind::begin:
        return rate_.mark(event);
      case EventKind::step:
        return line(event);
      case EventKind::epoch_end:
        return logger_->info("pass ", event.epoch + 1, " over the dataset is complete at step ", event.step);
      case EventKind::checkpoint_saved:
        return logger_->info("checkpoint of step ", event.step, " is in '", event.checkpoint_path, "'");
      case EventKind::evaluated:
        return logger_->info("evaluation at step ", event.step, ": ", values_text(event.values, ", "));
      case EventKind::end:
        return logger_->info("training ended at step ", event.step, ": ", values_text(event.values, ", "));
      case EventKind::error:
        return logger_->error("training failed at step ", event.step, ": ", event.error.message());
    }
  }

 private:
  void line(const Event &event) {
    const Speed speed = rate_.since_mark(event).value_or(Speed());
    std::string text = base::concat("step ", event.step);
    if (event.goal_step >= 0) text += base::concat(" of ", event.goal_step);
    text += base::concat(": ", values_text(event.values, ", "), ", ", short_number(speed.examples_per_second),
                         " examples/s, ", short_number(speed.steps_per_second), " steps/s");
    if (event.goal_step >= event.step && speed.steps_per_second > 0) {
      const double left = static_cast<double>(event.goal_step - event.step) / speed.steps_per_second;
      text += base::concat(", ", static_cast<int64_t>(rounded(left, 1)), " s left");
    }
    logger_->info(text);
    rate_.mark(event);
  }

  const Ref<base::Logger> logger_;
  EventRate rate_;
};

}  // namespace

Hook logging_hook(Ref<base::Logger> logger, int64_t every_steps) {
  Hook hook;
  hook.name = "logging";
  hook.every_steps = every_steps;
  hook.values = {"loss"};
  hook.function = [progress = std::make_shared<Progress>(std::move(logger))](const Event &event) -> Result<Answer> {
    progress->handle(event);
    return Answer::go_on;
  };
  return hook;
}

}  // namespace tutti::impl::estimator::hooks
