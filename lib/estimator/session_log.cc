// SPDX-License-Identifier: Apache-2.0
#include "estimator/session_log.h"

#include "base/json.h"
#include "base/text.h"

namespace tutti::impl::estimator {

using base::Json;

void SessionLog::begin(const distribute::Trainer &trainer, const distribute::Strategy &strategy, int64_t batch_size) {
  const bool is_own = strategy.worker_input() == distribute::WorkerInput::own;
  const int32_t inputs = is_own ? strategy.workers().count : 1, replicas = strategy.replicas_in_all();
  const int64_t sharing = replicas / inputs;
  const std::string of_workers =
      strategy.workers().count == 1 ? "" : base::concat(" of ", strategy.workers().count, " workers");
  logger_.info("training from step ", trainer.step(), " on ", replicas, replicas == 1 ? " replica" : " replicas",
               of_workers, ": global batch size ", batch_size * inputs, ", at most ",
               (batch_size + sharing - 1) / sharing, " rows per replica");
  const Json how = trainer.describe();
  const Json *gradients = how.is_object() ? how.find("gradients") : nullptr;
  if (replicas > 1 && gradients != nullptr)
    logger_.info("gradients of ", replicas, " replicas are summed: ", gradients->string());
  if (strategy.storage() && how.is_object()) logger_.info("variables are ", how.find("variables")->string());
  // Where the host reaches all memory there is nothing to know.
  if (replicas == 1 || !how.is_object() || strategy.backend()->has_host_memory()) return;
  how_steps_run_ = how.find("steps")->string();
  logger_.info("steps: ", how_steps_run_, "; memory of gradients: ", how.find("registration")->string());
}

void SessionLog::end(const distribute::Trainer &trainer, const SessionStatistics &statistics) const {
  log_input_wait(trainer, statistics);
  log_how_steps_ran(trainer);
  log_step_shares(statistics.shares(trainer));
}

// Worth a line: a second and a tenth of the time.
void SessionLog::log_input_wait(const distribute::Trainer &trainer, const SessionStatistics &statistics) const {
  const int64_t waited_ns = statistics.input_wait_ns();
  if (waited_ns < 1'000'000'000 || waited_ns < statistics.run_ns() / 10) return;
  const Json report = trainer.input_report();
  if (report.is_null()) return;
  logger_.info("training waited for input ", 100 * waited_ns / statistics.run_ns(), " % of the time\n",
               base::JsonReader(report, "report").get_string("text").value_or(""));
}

// Where that is not what was said at the start: it may turn out later that steps cannot be launched at once.
void SessionLog::log_how_steps_ran(const distribute::Trainer &trainer) const {
  if (how_steps_run_.empty() || how_steps_run_.starts_with("in pieces")) return;
  const std::string how = trainer.describe().find("steps")->string();
  if (how.starts_with("in pieces")) logger_.info("steps: ", how);
}

// How replicas scale, where they worked for a second.
void SessionLog::log_step_shares(const distribute::StepShares &shares) const {
  if (shares.replicas < 2 || shares.step_seconds * static_cast<double>(shares.steps) < 1) return;
  logger_.info(shares.replicas, " replicas: ", shares.text());
}

}  // namespace tutti::impl::estimator
