// SPDX-License-Identifier: Apache-2.0
//
// The newest numbers of a training as Prometheus reads them: its text format 0.0.4.
//
//   page->set({.step = 120, .values = values, .is_running = true});
//   std::string text = page->text();          // for GET /metrics
//
// Metrics of a model are label values of one metric, tutti_metric{name="..."}, so that any name is one. What is not
// known is left out.
//
// Threads: all functions may be called from any thread.
#ifndef TUTTI_MONITOR_PROMETHEUS_H_
#define TUTTI_MONITOR_PROMETHEUS_H_

#include <cstdint>
#include <limits>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "base/object.h"
#include "base/thread.h"

namespace tutti::impl::monitor {

/// Numbers by name: "loss", metrics of the model.
using NumbersByName = std::map<std::string, double, std::less<>>;

class PrometheusPage : public base::Object {
 public:
  static constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

  struct Training {
    bool has_begun = false, is_running = false, has_failed = false;
    int64_t step = 0, epoch = 0;
    int64_t examples = 0;     ///< of this training
    int64_t checkpoint = -1;  ///< step of the newest one that it saved; -1: none
    int64_t time_ns = 0;      ///< since 1970: of the newest values
    double steps_per_second = kUnknown, examples_per_second = kUnknown, remaining_seconds = kUnknown;
    NumbersByName values{};
  };
  struct Evaluation {
    int64_t step = -1;  ///< of the weights; -1: there was none
    NumbersByName values{};
  };

  /// `change(training, evaluation)` sets what is new.
  void change(base::FunctionRef<void(Training &, Evaluation &)> change);
  std::string text() const;

 private:
  mutable std::mutex mutex_;
  // Guarded by mutex_:
  Training training_;
  Evaluation evaluation_;
};

/// A number as the format has it: "NaN", "+Inf", "-Inf", or as few digits as give this number again.
std::string prometheus_number(double number);
/// A label's value, without the quotes around it.
std::string prometheus_label(std::string_view value);

}  // namespace tutti::impl::monitor

#endif  // TUTTI_MONITOR_PROMETHEUS_H_
