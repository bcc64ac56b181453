// SPDX-License-Identifier: Apache-2.0
#include "monitor/prometheus.h"

#include <charconv>
#include <cmath>

#include "base/text.h"
#include "monitor/event_messages.h"

namespace tutti::impl::monitor {

namespace {

/// A metric with its samples, which stand together.
class Text {
 public:
  void begin(std::string_view name, std::string_view type, std::string_view help) {
    name_ = base::concat("tutti_", name);
    all_ += base::concat("# HELP ", name_, " ", help, "\n# TYPE ", name_, " ", type, "\n");
  }
  void add(double number) { all_ += base::concat(name_, " ", prometheus_number(number), "\n"); }
  void add(std::string_view label, double number) {
    all_ += base::concat(name_, "{name=\"", prometheus_label(label), "\"} ", prometheus_number(number), "\n");
  }
  void add_gauge(std::string_view name, std::string_view help, double number) {
    begin(name, "gauge", help);
    add(number);
  }
  /// Left out where it is not known.
  void add_known(std::string_view name, std::string_view help, double number) {
    if (!std::isnan(number)) add_gauge(name, help, number);
  }
  std::string take() { return std::move(all_); }

 private:
  std::string name_, all_;
};

/// The loss, and what else there is by name.
void add_values(Text &text, const NumbersByName &values, std::string_view prefix, std::string_view what) {
  const auto loss = values.find("loss");
  if (loss != values.end())
    text.add_gauge(base::concat(prefix, "loss"), base::concat("The loss of ", what), loss->second);
  if (values.size() == (loss != values.end() ? 1U : 0U)) return;
  text.begin(base::concat(prefix, "metric"), "gauge", base::concat("Values of the model by name, of ", what));
  for (const auto &[name, number] : values)
    if (name != "loss") text.add(name, number);
}

}  // namespace

std::string prometheus_number(double number) {
  if (std::isnan(number)) return "NaN";
  if (std::isinf(number)) return number > 0 ? "+Inf" : "-Inf";
  char digits[32];
  const auto end = std::to_chars(digits, digits + sizeof(digits), number);
  return std::string(digits, end.ptr);
}

std::string prometheus_label(std::string_view value) {
  std::string all;
  for (const char c : message::as_utf8(value)) {
    if (c == '\n') {
      all += "\\n";
      continue;
    }
    if (c == '\\' || c == '"') all += '\\';
    all += c;
  }
  return all;
}

void PrometheusPage::change(base::FunctionRef<void(Training &, Evaluation &)> change) {
  const std::lock_guard lock(mutex_);
  change(training_, evaluation_);
}

std::string PrometheusPage::text() const {
  const std::lock_guard lock(mutex_);
  Text text;
  text.add_gauge("training_running", "1 while a training runs, else 0", training_.is_running ? 1 : 0);
  text.add_gauge("training_failed", "1 if the last training ended with an error, else 0", training_.has_failed ? 1 : 0);
  if (training_.has_begun) {
    text.add_gauge("step", "Completed steps of the model", static_cast<double>(training_.step));
    text.add_gauge("epoch", "The pass over the dataset, from 0", static_cast<double>(training_.epoch));
    text.begin("examples_total", "counter", "Examples that this training has used");
    text.add(static_cast<double>(training_.examples));
    text.add_gauge("last_update_timestamp_seconds", "When the newest values of the training came, since 1970",
                   1e-9 * static_cast<double>(training_.time_ns));
  }
  text.add_known("steps_per_second", "The present speed in steps", training_.steps_per_second);
  text.add_known("examples_per_second", "The present speed in examples", training_.examples_per_second);
  text.add_known("remaining_seconds", "Until the end at the present speed", training_.remaining_seconds);
  if (training_.checkpoint >= 0)
    text.add_gauge("checkpoint_step", "The step of the newest checkpoint", static_cast<double>(training_.checkpoint));
  add_values(text, training_.values, "", "the newest step that was looked at");
  if (evaluation_.step < 0) return text.take();
  text.add_gauge("evaluation_step", "The step of the weights that were evaluated last",
                 static_cast<double>(evaluation_.step));
  add_values(text, evaluation_.values, "evaluation_", "the newest evaluation");
  return text.take();
}

}  // namespace tutti::impl::monitor
