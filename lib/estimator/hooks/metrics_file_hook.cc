// SPDX-License-Identifier: Apache-2.0
#include "estimator/hooks/metrics_file_hook.h"

#include <memory>
#include <optional>
#include <utility>

#include "estimator/hooks/event_rate.h"
#include "monitor/event_file.h"

namespace tutti::impl::estimator::hooks {

using base::Ref;
using base::Result;
using base::Status;

namespace {

class MetricsWriter {
 public:
  MetricsWriter(std::string path, MetricsFormat format, Ref<base::Logger> logger)
      : path_(std::move(path)), format_(format), logger_(std::move(logger)) {}

  Status handle(const Event &event) {
    switch (event.kind) {
      case EventKind::begin: {
        TUTTI_ASSIGN(file_, MetricsFile::open(path_, format_, event.step));
        rate_.mark(event);
        return Status();
      }
      case EventKind::step:
        add("step", event);
        rate_.mark(event);
        break;
      case EventKind::epoch_end:
        add("epoch", event);
        break;
      case EventKind::evaluated:
        add("evaluation", event);
        break;
      case EventKind::end:
        add("end", event);
        break;
      case EventKind::checkpoint_saved:
      case EventKind::error:
        break;
    }
    return Status();
  }

 private:
  void add(std::string_view name, const Event &event) {
    if (!file_) return;
    MetricsLine line;
    line.event = name;
    line.time = 1e-9 * static_cast<double>(monitor::wall_time_ns());
    line.step = event.step;
    line.epoch = event.epoch;
    const std::optional<Speed> speed = event.kind == EventKind::step ? rate_.since_mark(event) : std::nullopt;
    line.examples_per_second = speed ? speed->examples_per_second : -1;
    line.values = event.values;
    const Status status = file_->add(line);
    if (status.ok()) return;
    if (logger_) logger_->warning("metrics are written no more: ", status.to_string());
    file_.reset();
  }

  const std::string path_;
  const MetricsFormat format_;
  const Ref<base::Logger> logger_;
  std::optional<MetricsFile> file_;
  EventRate rate_;
};

}  // namespace

Hook metrics_file_hook(std::string path, MetricsFormat format, int64_t every_steps, Ref<base::Logger> logger) {
  Hook hook;
  hook.name = "metrics file";
  hook.every_steps = every_steps;
  if (every_steps > 0) hook.values = {std::string(kAllValues)};
  const auto writer = std::make_shared<MetricsWriter>(std::move(path), format, std::move(logger));
  hook.function = [writer](const Event &event) -> Result<Answer> {
    TUTTI_TRY(writer->handle(event));
    return Answer::go_on;
  };
  return hook;
}

}  // namespace tutti::impl::estimator::hooks
