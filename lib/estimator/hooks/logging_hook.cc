// SPDX-License-Identifier: Apache-2.0
#include "estimator/hooks/logging_hook.h"

#include <cmath>
#include <memory>
#include <utility>

#include "base/trace.h"
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
        mark(event);
        return;
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
  void mark(const Event &event) {
    step_ = event.step;
    examples_ = event.examples;
    time_ns_ = base::now_ns();
  }

  void line(const Event &event) {
    const double secs = static_cast<double>(base::now_ns() - time_ns_) * 1e-9;
    const double steps_per_sec = secs > 0 ? static_cast<double>(event.step - step_) / secs : 0;
    const double examples_per_sec = secs > 0 ? static_cast<double>(event.examples - examples_) / secs : 0;
    std::string text = base::concat("step ", event.step);
    if (event.goal_step >= 0) text += base::concat(" of ", event.goal_step);
    text += base::concat(": ", values_text(event.values, ", "), ", ", short_number(examples_per_sec), " examples/s, ",
                         short_number(steps_per_sec), " steps/s");
    if (event.goal_step >= event.step && steps_per_sec > 0) {
      const double left = static_cast<double>(event.goal_step - event.step) / steps_per_sec;
      text += base::concat(", ", static_cast<int64_t>(rounded(left, 1)), " s left");
    }
    logger_->info(text);
    mark(event);
  }

  const Ref<base::Logger> logger_;
  int64_t step_ = 0;
  int64_t examples_ = 0;
  int64_t time_ns_ = 0;
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
