// SPDX-License-Identifier: Apache-2.0
#include "estimator/session_statistics.h"

#include <algorithm>
#include <limits>

namespace tutti::impl::estimator {

using base::Json;
using base::Status;

void SessionStatistics::begin(const distribute::Trainer &trainer, int64_t replicas) {
  first_step_ = trainer.step();
  counted_examples_ = trainer.counters().examples;
  efficiency_.set_replicas(replicas);
}

Status SessionStatistics::restore(const RunState &run) {
  former_examples_ = run.examples;
  for (const auto &[metric, value] : run.metrics.is_object() ? run.metrics.object() : base::JsonObject()) {
    TUTTI_ASSIGN(const double number, base::JsonReader(value, metric).as_double());
    values_.push_back({metric, number});
  }
  return Status();
}

void SessionStatistics::save(RunState &run) const {
  run.examples = former_examples_ + examples_;
  run.metrics = Json();
  for (const NamedNumber &number : values_)
    if (number.is_number()) run.metrics.set(number.name, number.value);
}

Status SessionStatistics::add(const distribute::Trainer &trainer, const distribute::RunReport *report) {
  const int64_t examples = trainer.counters().examples - counted_examples_;
  counted_examples_ += examples;
  examples_ += examples;
  warning_.clear();
  if (report != nullptr) {
    input_wait_ns_ += report->input_wait_ns;
    run_ns_ += report->total_ns;
  }
  if (report != nullptr && report->steps > 0) {
    warning_ = efficiency_.add(report->times);
    secs_per_step_ = std::max(1e-9, static_cast<double>(report->total_ns) * 1e-9 / static_cast<double>(report->steps));
  }
  if (examples == 0 || (report != nullptr && report->steps == 0)) return Status();
  TUTTI_ASSIGN(values_, trainer.report());
  return Status();
}

double SessionStatistics::loss() const {
  for (const NamedNumber &number : values_) {
    if (number.name == "loss") return number.value;
  }
  return std::numeric_limits<double>::quiet_NaN();
}

TrainResult SessionStatistics::result(const distribute::Trainer &trainer, EndReason reason) const {
  TrainResult all;
  all.reason = reason;
  all.step = trainer.step();
  all.steps = all.step - first_step_;
  all.examples = examples_;
  all.loss = loss();
  all.metrics = values_;
  all.input_wait_seconds = 1e-9 * static_cast<double>(input_wait_ns_);
  all.input_report = trainer.input_report();
  all.step_shares = shares(trainer);
  return all;
}

}  // namespace tutti::impl::estimator
