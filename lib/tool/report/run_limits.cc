// SPDX-License-Identifier: Apache-2.0
#include "tool/report/run_limits.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <stdexcept>

#include "tool/console/table.h"
#include "tool/report/input_advice.h"
#include "tool/report/number_text.h"

namespace tutti::tool {

namespace {

using json = nlohmann::ordered_json;

// Below these shares of the time of steps nothing is said.
constexpr double kLeastWait = 0.15, kLeastImbalance = 0.1, kLeastHost = 0.2;
constexpr double kSureShare = 0.35;
// Waits of less time in all may be chance.
constexpr double kLeastSeconds = 0.01;
// A training of fewer steps, or of less time, tells little.
constexpr double kFewSteps = 20, kLittleSeconds = 0.2;
// Shapes of batches from which on programs are many, and steps of each that pay for building one.
constexpr double kManyShapes = 5, kStepsOfShape = 50;

double steps_in(const json &training) { return number_at(training, {"step"}) - number_at(training, {"first_step"}); }

/// How many steps the programs that are counted have served: an estimator counts on from training to training.
double steps_since_programs(const json &trainings) {
  double steps = 0, programs = HUGE_VAL;
  for (auto training = trainings.rbegin(); training != trainings.rend(); ++training) {
    const double counted = number_at(*training, {"step_report", "programs"});
    if (counted > programs) break;
    programs = counted;
    steps += steps_in(*training);
  }
  return steps;
}

/// The figures of the newest training.
struct Figures {
  explicit Figures(const RunRecord &run)
      : training(run.last_training()), profile(run.profile), steps_report(value_at(training, {"step_report"})) {
    steps = number_at(steps_report, {"steps"});
    replicas = std::max(1.0, number_at(steps_report, {"replicas"}, 1));
    step_seconds = number_at(steps_report, {"step_seconds"});
    seconds = number_at(training, {"seconds"});
    input = number_at(steps_report, {"input"});
    batch = number_at(training, {"settings", "batch_size"}) *
            std::max(1.0, number_at(training, {"options", "accumulation_steps", "value"}, 1));
    steps_of_programs = steps_since_programs(run.trainings);
    // Without a step that was timed: of the whole training.
    if (steps == 0 && seconds > 0) input = number_at(training, {"input_wait_seconds"}) / seconds;
  }

  const json &training, &profile, &steps_report;
  double steps = 0, replicas = 1, step_seconds = 0, seconds = 0, input = 0, batch = 0, steps_of_programs = 0;

  bool is_short() const { return steps < kFewSteps || steps * step_seconds < kLittleSeconds; }
  /// Is a wait of this share of steps worth a word?
  bool matters(double share, double least) const {
    const double waited = steps > 0 ? share * steps * step_seconds : number_at(training, {"input_wait_seconds"});
    return share >= least && waited >= kLeastSeconds;
  }
  Confidence confidence(double share) const {
    const int level = (share >= kSureShare ? 2 : 1) - (is_short() ? 1 : 0);
    return static_cast<Confidence>(std::clamp(level, 0, 2));
  }
  bool copies_input() const { return value_at(training, {"execution", "copies_input"}) == true; }
};

std::string of_steps(double share) { return percent_text(share) + " of the time of steps"; }

/// The pipeline gives its elements in time, but they come late to the devices.
bool is_transfer(const Figures &run) {
  const bool is_pipeline_fast = text_at(run.training, {"input_report", "limit", "stage"}) == "consumer";
  return is_pipeline_fast && run.copies_input();
}

void add_input(const Figures &run, std::vector<Limit> &limits) {
  if (!run.matters(run.input, kLeastWait) || is_transfer(run)) return;
  const json &report = value_at(run.training, {"input_report"});
  const std::string stage = text_at(report, {"limit", "stage"});
  Limit limit{"input", "Steps wait for their input.", run.confidence(run.input), run.input, "", {}, {}};
  limit.explanation = "Steps waited " + percent_text(run.input) + " of their time for the input pipeline (" +
                      seconds_text(number_at(run.training, {"input_wait_seconds"})) + " in all).";
  limit.figures = {{"input", run.input}, {"input_wait_seconds", number_at(run.training, {"input_wait_seconds"})}};
  if (stage.empty() || stage == "consumer") {
    limit.confidence = Confidence::possible;
    limit.explanation += " The newest pass over the data was not slow itself, so single elements came late.";
    limit.advice = {
        "prefetch more elements at the end of the pipeline (prefetch with a buffer_size), so that late ones do not "
        "stop a step",
        "raise the run option device_prefetch"};
  } else {
    limit.explanation += " Stage " + stage + " is the slow one: " + text_at(report, {"limit", "reason"}) + ".";
    limit.figures["stage"] = stage;
    limit.advice = input_advice(report, stage);
  }
  limits.push_back(std::move(limit));
}

void add_transfer(const Figures &run, std::vector<Limit> &limits) {
  const json &execution = value_at(run.training, {"execution"});
  const double copied = number_at(execution, {"input_batches_copied"});
  if (!run.matters(run.input, kLeastWait) || !is_transfer(run) || copied == 0) return;
  const double in_time = number_at(execution, {"input_batches_in_time"}),
               bytes = number_at(execution, {"input_bytes_copied"});
  Limit limit{"transfer", "Batches come late to the devices' memory.", run.confidence(run.input), run.input, "", {},
              {}};
  limit.explanation = "Steps waited " + percent_text(run.input) +
                      " of their time for batches that the pipeline had ready: " + whole_text(copied - in_time) +
                      " of " + whole_text(copied) + " copies to the devices, " + readable_bytes(bytes / copied) +
                      " each, were not there when their step began.";
  limit.figures = {{"input", run.input},
                   {"input_batches_copied", copied},
                   {"input_batches_in_time", in_time},
                   {"input_bytes_copied", bytes}};
  limit.advice = {"raise the run option device_prefetch, so that more batches are on their way",
                  "send smaller elements: bytes (u8) in place of floats, with the conversion in a map with on_device",
                  "check that the device is on a fast link: 'tutti devices' shows the links"};
  limits.push_back(std::move(limit));
}

void add_communication(const Figures &run, std::vector<Limit> &limits) {
  const double share = number_at(run.steps_report, {"communication"});
  if (run.replicas < 2 || !run.matters(share, kLeastWait)) return;
  const double workers = number_at(run.training, {"environment", "workers"}, 1);
  Limit limit{"communication", "Replicas wait for the sums of gradients.", run.confidence(share), share, "", {}, {}};
  limit.explanation =
      "Communication, as far as it was not hidden behind computing, took " + of_steps(share) + " of " +
      whole_text(run.replicas) + " replicas" +
      (workers > 1 ? " on " + whole_text(workers) + " workers; waiting for slower workers is part of it" : "") + ".";
  limit.figures = {{"communication", share}, {"replicas", run.replicas}, {"workers", workers}};
  limit.advice = {"use larger batches, or more accumulation_steps: each sum of gradients then serves more rows"};
  if (value_at(run.training, {"execution", "shared_weights"}) == true) {
    limit.advice.emplace_back(
        "leave each replica a core of its own: a replica that another program interrupts holds up all others");
  } else {
    limit.advice.emplace_back("set the run option gradient_dtype to bf16, for half the bytes");
    limit.advice.emplace_back("try other values of the run option all_reduce, or fewer devices");
  }
  limits.push_back(std::move(limit));
}

/// The device that others wait for: it waits least itself.
const json *slowest_device(const json &devices) {
  const json *slowest = nullptr;
  for (const json &device : devices)
    if (slowest == nullptr || number_at(device, {"imbalance"}) < number_at(*slowest, {"imbalance"})) slowest = &device;
  return slowest;
}

void add_slow_device(const Figures &run, std::vector<Limit> &limits) {
  const double share = number_at(run.steps_report, {"imbalance"});
  if (run.replicas < 2 || !run.matters(share, kLeastImbalance)) return;
  const json *const slowest = slowest_device(value_at(run.steps_report, {"devices"}));
  const std::string device = slowest != nullptr ? text_at(*slowest, {"device"}) : "one of them";
  Limit limit{"slow_device", "Replicas wait for the slowest of them.", run.confidence(share), share, "", {}, {}};
  limit.explanation = "Replicas had nothing to do for " + of_steps(share) +
                      " on average while the slowest computed, which is " + device + ".";
  limit.figures = {{"imbalance", share}, {"device", device}, {"batch_size", run.batch}, {"replicas", run.replicas}};
  const double rows = run.batch / run.replicas;
  if (run.batch > 0 && rows != std::floor(rows) && rows < 8) {
    limit.explanation += " A batch of " + whole_text(run.batch) + " rows does not divide by " +
                         whole_text(run.replicas) + " replicas: some compute " + whole_text(std::ceil(rows)) +
                         " rows, others " + whole_text(std::floor(rows)) + ".";
    limit.advice.push_back("use a batch size that is a multiple of " + whole_text(run.replicas));
  }
  limit.advice.push_back("look for other programs that use " + device + ", and for lower clocks or slower links of it");
  limit.advice.emplace_back("train on devices of equal speed: leave the slow one out of the strategy, and compare");
  limits.push_back(std::move(limit));
}

void add_host(const Figures &run, std::vector<Limit> &limits) {
  double step = 0, host = 0;
  for (const json &replica : value_at(run.profile, {"replicas"})) {
    step += number_at(replica, {"step_ms"});
    host += number_at(replica, {"host_ms"});
  }
  const double share = step > 0 ? host / step : 0;
  if (share < kLeastHost) return;
  Limit limit{"host",
              "Devices wait for the host between kernels.",
              share >= kSureShare ? Confidence::likely : Confidence::possible,
              share,
              "",
              {},
              {}};
  limit.explanation = "In the profile, " + of_steps(share) +
                      " was neither computing of the device nor a wait for input or other replicas: " +
                      "it is the host's, for launching kernels and for what is done once a step. A profile launches "
                      "kernels one by one, which makes this share larger than without it.";
  limit.figures = {{"host", share}, {"step_ms", step}, {"host_ms", host}};
  limit.advice = {"use larger batches: the host's work of a step does not grow with them",
                  "look at hooks and callbacks that run at each step", "give the process cores that nothing else uses"};
  limits.push_back(std::move(limit));
}

void add_programs(const Figures &run, std::vector<Limit> &limits) {
  const double programs = number_at(run.steps_report, {"programs"}), shapes = programs / run.replicas;
  const double steps = run.steps_of_programs;
  if (shapes < kManyShapes || steps > kStepsOfShape * shapes) return;
  const double kept = number_at(run.training, {"options", "program_cache_size", "value"}, 16);
  const double elsewhere = run.seconds > 0 ? std::max(0.0, 1 - run.steps * run.step_seconds / run.seconds) : 0;
  Limit limit{"programs",
              "Many programs were built.",
              shapes > 2 * kManyShapes ? Confidence::sure : Confidence::likely,
              elsewhere,
              "",
              {},
              {}};
  limit.explanation = whole_text(programs) + " programs were built for " + whole_text(steps) + " steps on " +
                      whole_text(run.replicas) + (run.replicas == 1 ? " replica" : " replicas") +
                      ": a new one for each new shape of a batch. Steps that build programs, with all else outside of "
                      "steps, took at most " +
                      percent_text(elsewhere) + " of the training.";
  limit.figures = {{"programs", programs}, {"steps", steps}, {"outside_of_steps", elsewhere}};
  limit.advice = {
      "give batches few shapes: padded_batch to fixed lengths, or bucket_by_length with few boundaries that rows are "
      "padded to",
      "drop the smaller last batch of each pass (drop_remainder)"};
  if (shapes > kept)
    limit.advice.push_back("more shapes occur than the " + whole_text(kept) +
                           " that are kept, so that programs are built again");
  limits.push_back(std::move(limit));
}

void add_small_batch(const Figures &run, std::vector<Limit> &limits) {
  const double rows = run.batch / run.replicas;
  if (run.batch == 0 || run.steps == 0 || rows >= 16 || run.step_seconds >= 1e-3) return;
  Limit limit{"small_batch", "Batches are small.", Confidence::possible, 0, "", {}, {}};
  limit.explanation =
      "Each replica has " + readable(rows) + (rows == 1 ? " row" : " rows") + " of a batch, and a step takes " +
      milliseconds_text(1e3 * run.step_seconds) +
      ": much of that is spent on starting kernels and on what is done once a step, whatever the number of rows.";
  limit.figures = {{"batch_size", run.batch}, {"replicas", run.replicas}, {"step_seconds", run.step_seconds}};
  limit.advice = {"use larger batches, with a learning rate that suits them",
                  "train on fewer devices, so that each has more rows"};
  if (run.replicas == 1) limit.advice.pop_back();
  limits.push_back(std::move(limit));
}

std::string summary_of(const Figures &run, bool is_limited) {
  const double steps = steps_in(run.training);
  std::string text = "The newest training made " + counted_text(steps, "step") + " of " + whole_text(run.batch) +
                     " rows on " + counted_text(run.replicas, "replica") + " in " + seconds_text(run.seconds);
  if (run.step_seconds > 0) text += "; a step took " + milliseconds_text(1e3 * run.step_seconds);
  text += ".";
  const double compute = number_at(run.steps_report, {"compute"});
  if (run.replicas > 1 && run.steps > 0)
    text += " The " + whole_text(run.replicas) + " replicas train at " + percent_text(compute) + " of " +
            whole_text(run.replicas) + " times the speed of one that never waits.";
  if (run.is_short()) text += " That is little to go by.";
  if (is_limited) return text;
  if (run.steps == 0) return text + " No step was timed, so nothing can be said of what limits it.";
  return text + " Nothing limits it but computing, which took " + of_steps(compute) +
         ": faster devices, more of them, a lower precision or a smaller model would make it faster.";
}

}  // namespace

const char *name(Confidence confidence) {
  return confidence == Confidence::sure ? "sure" : confidence == Confidence::likely ? "likely" : "possible";
}

RunLimits limits_of(const RunRecord &run) {
  if (run.last_training().is_null()) return {"There is no training in the record of the run yet.", {}};
  const Figures figures(run);
  RunLimits all;
  for (const auto add :
       {add_input, add_transfer, add_communication, add_slow_device, add_host, add_programs, add_small_batch})
    add(figures, all.limits);
  std::stable_sort(all.limits.begin(), all.limits.end(), [](const Limit &a, const Limit &b) {
    return a.confidence != b.confidence ? a.confidence > b.confidence : a.share > b.share;
  });
  all.summary = summary_of(figures, !all.limits.empty());
  return all;
}

json to_json(const RunRecord &run, const RunLimits &limits) {
  json list = json::array();
  for (const Limit &limit : limits.limits)
    list.push_back({{"limit", limit.kind},
                    {"confidence", name(limit.confidence)},
                    {"share", limit.share},
                    {"title", limit.title},
                    {"explanation", limit.explanation},
                    {"figures", limit.figures},
                    {"try", limit.advice}});
  return {{"run", run.folder}, {"summary", limits.summary}, {"limits", std::move(list)}};
}

}  // namespace tutti::tool
