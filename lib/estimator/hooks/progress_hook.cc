// SPDX-License-Identifier: Apache-2.0
#include "estimator/hooks/progress_hook.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/text.h"
#include "base/trace.h"
#include "estimator/hooks/event_rate.h"
#include "estimator/hooks/progress_line.h"

namespace tutti::impl::estimator::hooks {

using base::Result;

namespace {

constexpr double kSecsOnTerminal = 0.25, kSecsElsewhere = 10;
constexpr int kUsualColumns = 80;
// Of the speed that is shown, the share of what was measured last.
constexpr double kNewShare = 0.3;
// To the beginning of the line, and to its end nothing.
constexpr std::string_view kOverwrite = "\r\033[K";

bool understands_control_characters_from_environment() {
  const char *const terminal = secure_getenv("TERM");
  return terminal != nullptr && std::string_view(terminal) != "dumb";
}

int columns_of_standard_error() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kUsualColumns;
}

class ProgressDisplay {
 public:
  explicit ProgressDisplay(TextOutput output) : output_(std::move(output)) {}

  void handle(const Event &event) {
    switch (event.kind) {
      case EventKind::begin:
        return begin(event);
      case EventKind::step:
        return show(event);
      case EventKind::evaluated:
        return say(base::concat("evaluation at step ", event.step, ": ", values_text(event.values, ", ")));
      case EventKind::end:
        return end(event);
      case EventKind::error:  // the caller gets it: what is there stays
        if (std::exchange(has_line_, false)) output_.write("\n");
        return;
      case EventKind::checkpoint_saved:
      case EventKind::epoch_end:
        return;
    }
  }

 private:
  void begin(const Event &event) {
    begin_ns_ = base::now_ns();
    first_step_ = last_step_ = event.step;
    rate_.mark(event);
  }

  ProgressFacts facts_of(const Event &event) const {
    return {.step = event.step, .goal_step = event.goal_step, .epoch = event.epoch, .values = event.values};
  }

  void measure(const Event &event) {
    const std::optional<Speed> speed = rate_.since_mark(event);
    if (!speed) return;
    const auto mix = [](double &shown, double measured) {
      shown = shown < 0 ? measured : (1 - kNewShare) * shown + kNewShare * measured;
    };
    // The first step compiles: no speed is made of it.
    if (last_step_ > first_step_) {
      mix(examples_per_second_, speed->examples_per_second);
      mix(steps_per_second_, speed->steps_per_second);
    }
    last_step_ = event.step;
    rate_.mark(event);
  }

  void show(const Event &event) {
    measure(event);
    ProgressFacts facts = facts_of(event);
    facts.examples_per_second = examples_per_second_;
    if (event.goal_step >= event.step && steps_per_second_ > 0)
      facts.seconds_left = static_cast<double>(event.goal_step - event.step) / steps_per_second_;
    write(facts);
  }

  void end(const Event &event) {
    ProgressFacts facts = facts_of(event);
    facts.seconds_taken = 1e-9 * static_cast<double>(base::now_ns() - begin_ns_);
    if (event.step > first_step_ && facts.seconds_taken > 0)
      facts.examples_per_second = static_cast<double>(event.examples) / facts.seconds_taken;
    write(facts);
    if (std::exchange(has_line_, false)) output_.write("\n");
  }

  void write(const ProgressFacts &facts) {
    if (!output_.is_terminal) return output_.write(progress_sentence(facts) + "\n");
    output_.write(base::concat(kOverwrite, progress_bar(facts, output_.columns())));
    has_line_ = true;
  }

  /// A line that stays; the next one is written below it.
  void say(const std::string &line) {
    output_.write(base::concat(std::exchange(has_line_, false) ? kOverwrite : "", line, "\n"));
  }

  const TextOutput output_;
  bool has_line_ = false;  // that is not ended
  int64_t begin_ns_ = 0, first_step_ = 0, last_step_ = 0;
  EventRate rate_;
  double examples_per_second_ = -1, steps_per_second_ = -1;
};

}  // namespace

TextOutput standard_error() {
  return {
      .write =
          [](std::string_view text) {
            fwrite(text.data(), 1, text.size(), stderr);
            fflush(stderr);
          },
      .is_terminal = isatty(STDERR_FILENO) != 0 && understands_control_characters_from_environment(),
      .columns = columns_of_standard_error,
  };
}

Hook progress_hook(TextOutput output) {
  Hook hook;
  hook.name = "progress";
  hook.every_secs = output.is_terminal ? kSecsOnTerminal : kSecsElsewhere;
  hook.values = {std::string(kAllValues)};
  hook.function = [progress =
                       std::make_shared<ProgressDisplay>(std::move(output))](const Event &event) -> Result<Answer> {
    progress->handle(event);
    return Answer::go_on;
  };
  return hook;
}

}  // namespace tutti::impl::estimator::hooks
