// SPDX-License-Identifier: Apache-2.0
#include "estimator/estimator.h"

#include <utility>

#include "base/thread.h"
#include "base/trace.h"
#include "checkpoint/averaged_version.h"

namespace tutti::impl::estimator {

using base::invalid_argument;
using base::Ref;
using base::Result;
using base::Status;

namespace {

Status check_request(const EvaluateRequest &request) {
  if (!request.dataset) return invalid_argument("there is no dataset to evaluate on");
  if (request.steps && *request.steps <= 0) {
    return invalid_argument("steps is ", *request.steps, ", expected at least 1");
  }
  if (!request.steps && request.dataset->cardinality().is_infinite()) {
    return invalid_argument("the dataset to evaluate on never ends: leave out repeat() or set steps");
  }
  return base::check_not_forked();
}

}  // namespace

Result<Ref<Estimator>> Estimator::create(ModelFunction function, RunConfig config, distribute::StrategyRef strategy,
                                         Environment environment, std::vector<Hook> standing_hooks,
                                         distribute::StrategyRef whole_batches) {
  if (!function) return invalid_argument("an estimator needs a model function");
  if (!strategy) return invalid_argument("an estimator needs a strategy");
  if (const Status status = config.check(); !status.ok()) return status.wrap("the run configuration is not valid");
  TUTTI_TRY(HookList::make(standing_hooks));
  return base::make_ref<Estimator>(base::make_ref<EstimatorState>(std::move(function), std::move(config),
                                                                  std::move(strategy), std::move(whole_batches),
                                                                  std::move(environment), std::move(standing_hooks)));
}

Result<std::unique_ptr<TrainSession>> Estimator::open_session(TrainRequest request) {
  return TrainSession::open(state_, std::move(request));
}

Result<TrainResult> Estimator::train(TrainRequest request) {
  const bool is_endless = request.dataset && request.dataset->cardinality().is_infinite() && !request.steps &&
                          !request.max_steps && !request.epochs;
  TUTTI_ASSIGN(const std::unique_ptr<TrainSession> session, open_session(std::move(request)));
  if (is_endless) {
    state_->logger().info(
        "the dataset has no end, and none of steps, max_steps and epochs is set: training continues until "
        "a hook, early stopping or a cancel token ends it");
  }
  TUTTI_TRY(session->run({}));
  return session->close();
}

int64_t Estimator::global_step() const {
  const int64_t completed = state_->completed_steps.load(std::memory_order_relaxed);
  if (completed >= 0) return completed;
  const Result<Ref<checkpoint::WeightVersion>> version = state_->weights("");
  return version.ok() ? (*version)->step() : 0;
}

Result<EvaluateResult> Estimator::evaluate(const EvaluateRequest &request) {
  TUTTI_TRY(check_request(request));
  TUTTI_TRY(state_->parts.of(request.dataset, evaluation_strategy(), state_->logger()));
  TUTTI_ASSIGN(const Ref<checkpoint::WeightVersion> version, state_->weights(request.checkpoint_path));
  return evaluate_version(version, request);
}

Result<EvaluateResult> Estimator::evaluate_version(const Ref<checkpoint::WeightVersion> &version,
                                                   const EvaluateRequest &request) {
  const int64_t begin_ns = base::now_ns();
  const Ref<checkpoint::WeightVersion> used = config().raw_weights ? version : checkpoint::with_averages(version);
  TUTTI_ASSIGN(Evaluating evaluating, take_evaluator(request.dataset->spec()));
  TUTTI_ASSIGN(const data::DatasetRef part, state_->parts.of(request.dataset, evaluating.strategy, state_->logger()));
  distribute::Evaluator &evaluator = *evaluating.evaluator;
  data::IteratorContext context = state_->iterator_context(request.cancel, 0);
  state_->warn_once(evaluator.leave_map(*part, context));
  TUTTI_ASSIGN(const auto iterator, part->make_iterator(std::move(context)));
  const Result<distribute::EvaluateReport> report =
      evaluator.run(*used, *iterator, request.steps.value_or(-1), request.cancel.get());
  if (!report.ok())
    return report.status().wrap(base::concat("evaluating the weights of step ", used->step(), " failed"));
  give_back(std::move(evaluating));
  EvaluateResult result;
  for (size_t i = 0; i < report->names.size(); ++i)
    result.values.push_back({report->names[i], report->values[i], report->elements[i]});
  result.global_step = report->step;
  result.examples = report->examples;
  result.batches = report->batches;
  write_summary(result, report->summaries, begin_ns);
  return result;
}

void Estimator::write_summary(const EvaluateResult &result, std::span<const monitor::ShownSummary> shown,
                              int64_t begin_ns) {
  if (!state_->summaries.is_on()) return;
  std::vector<monitor::TaggedValue> numbers;
  for (const NamedNumber &value : result.values)
    if (value.is_number()) numbers.emplace_back(value.name, value.value);
  state_->summaries.add_evaluation(result.global_step, numbers, shown);
  base::Json record = result.to_json();
  record.set("seconds", 1e-9 * static_cast<double>(base::now_ns() - begin_ns));
  state_->summaries.add_record("evaluation", record);
}

// Evaluations at the same time each have their own; one is kept for the next.
Result<Estimator::Evaluating> Estimator::take_evaluator(const data::ElementSpec &spec) {
  Evaluating taken;
  {
    std::lock_guard lock(mutex_);
    taken.strategy = evaluation_strategy_ ? evaluation_strategy_ : state_->strategy();
    if (taken.strategy == evaluator_strategy_) taken.evaluator = std::move(evaluator_);
  }
  if (taken.evaluator) return taken;
  TUTTI_ASSIGN(const ModelRef model, state_->models.get(Mode::evaluate, spec));
  TUTTI_ASSIGN(taken.evaluator, distribute::Evaluator::open(state_->as_looked_at(*model), taken.strategy,
                                                            state_->predict_options(*taken.strategy)));
  return taken;
}

void Estimator::give_back(Evaluating evaluating) {
  std::lock_guard lock(mutex_);
  evaluator_strategy_ = std::move(evaluating.strategy);
  evaluator_.swap(evaluating.evaluator);
}

void Estimator::set_evaluation_strategy(distribute::StrategyRef strategy) {
  std::lock_guard lock(mutex_);
  evaluation_strategy_ = std::move(strategy);
}

distribute::StrategyRef Estimator::evaluation_strategy() const {
  std::lock_guard lock(mutex_);
  return evaluation_strategy_ ? evaluation_strategy_ : state_->strategy();
}

Result<TrainAndEvaluateResult> Estimator::train_and_evaluate(TrainAndEvaluateRequest request) {
  TUTTI_TRY(check_request(request.evaluate));
  if (!request.evaluate.checkpoint_path.empty()) {
    return invalid_argument("train_and_evaluate evaluates what it trains: checkpoint_path must be empty");
  }
  if (request.every_steps < 0) return invalid_argument("every_steps is ", request.every_steps, ", expected at least 0");
  RunLimit limit;
  limit.steps = request.every_steps > 0 ? request.every_steps : -1;
  limit.until_epoch_end = request.every_steps == 0;
  if (!request.evaluate.cancel) request.evaluate.cancel = request.train.cancel;
  TUTTI_ASSIGN(const std::unique_ptr<TrainSession> session, open_session(std::move(request.train)));
  // What cannot be evaluated is told before the first step.
  if (const auto part = state_->parts.of(request.evaluate.dataset, evaluation_strategy(), state_->logger()); !part.ok())
    return session->fail(part.status());
  Result<Evaluating> evaluating = take_evaluator(request.evaluate.dataset->spec());
  if (!evaluating.ok()) return session->fail(evaluating.status());
  give_back(evaluating.take());
  TrainAndEvaluateResult result;
  for (bool done = false; !done;) {
    TUTTI_ASSIGN(const SessionReport report, session->run(limit));
    done = report.reason.has_value();
    // A run that had nothing left to do ended at weights that are evaluated already.
    if (report.steps == 0 && !result.evaluate.values.empty()) continue;
    TUTTI_ASSIGN(const Ref<checkpoint::WeightVersion> version, session->publish());
    Result<EvaluateResult> evaluated = evaluate_version(version, request.evaluate);
    if (!evaluated.ok()) return session->fail(evaluated.status());
    result.evaluate = evaluated.take();
    TUTTI_TRY(session->send_evaluated(result.evaluate));
  }
  TUTTI_ASSIGN(result.train, session->close());
  return result;
}

}  // namespace tutti::impl::estimator
