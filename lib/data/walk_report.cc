// SPDX-License-Identifier: Apache-2.0
#include "data/walk_report.h"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace tutti::impl::data {

using base::JsonArray;
using base::JsonObject;
using base::Result;
using base::Status;
using Clock = std::chrono::steady_clock;

namespace {

// The first calls are all timed, later ones now and then.
constexpr int64_t kAllTimed = 256;
constexpr int64_t kTimedDistance = 8;
constexpr size_t kMostErrors = 8;
// A pipeline that answers within this share of the time is not what limits.
constexpr double kSmallShare = 0.1;

int64_t bytes_of(const Element &element) {
  int64_t bytes = 0;
  for (const tensor::Tensor &component : element.components)
    bytes += component.size_bytes();
  return bytes;
}

// Times a call, if the counters want it.
class Timed {
 public:
  explicit Timed(const StageCounters &counters) : is_timed_(counters.wants_time()) {
    if (is_timed_) start_ = Clock::now();
  }
  int64_t elapsed_ns() const {
    if (!is_timed_) return -1;
    return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start_).count();
  }

 private:
  const bool is_timed_;
  Clock::time_point start_;
};

class CountedStage : public Stage {
 public:
  CountedStage(std::unique_ptr<Stage> stage, StageCounters &counters) : stage_(std::move(stage)), counters_(counters) {}

  Result<bool> next(Element &element) override {
    const Timed timed(counters_);
    Result<bool> more = stage_->next(element);
    const bool is_given = more.ok() && *more;
    const bool has_failed = !more.ok() && !base::is_interrupt(more.status());
    counters_.add_call(is_given || has_failed ? 1 : 0, is_given ? bytes_of(element) : 0, timed.elapsed_ns());
    if (has_failed) counters_.add_failure();
    return more;
  }
  Status next_rows(std::span<const RowTarget> targets, int64_t count, int64_t &done) override {
    const Timed timed(counters_);
    done = 0;
    Status status = stage_->next_rows(targets, count, done);
    int64_t bytes = 0;
    for (const RowTarget &target : targets)
      bytes += target.row_bytes * done;
    counters_.add_call(done, bytes, timed.elapsed_ns());
    if (!status.ok() && !base::is_interrupt(status)) counters_.add_failure();
    return status;
  }
  bool next_view(int64_t count, Element &batch) override {
    const Timed timed(counters_);
    const bool any = stage_->next_view(count, batch);
    if (any) counters_.add_call(batch.rows(), bytes_of(batch), timed.elapsed_ns());
    return any;
  }
  const std::string *file() const override { return stage_->file(); }
  void save(State &state) const override { stage_->save(state); }
  Status restore(const base::JsonReader &state) override { return stage_->restore(state); }

 private:
  const std::unique_ptr<Stage> stage_;
  StageCounters &counters_;
};

std::string milliseconds(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f ms", value);
  return text;
}

}  // namespace

void StageCounters::add_call(int64_t elements, int64_t bytes, int64_t timed_ns) {
  add(calls_, 1);
  add(elements_, elements);
  add(bytes_, bytes);
  if (timed_ns < 0) return;
  add(timed_calls_, 1);
  add(timed_ns_, timed_ns);
}

void StageCounters::add_depth(int64_t waiting) {
  add(depths_, 1);
  add(depth_sum_, waiting);
}

void StageCounters::add_ignored(const Status &status) {
  add(ignored_, 1);
  const std::lock_guard lock(mutex_);
  if (ignored_errors_.size() < kMostErrors) ignored_errors_.push_back(status.to_string());
}

bool StageCounters::wants_time() const {
  const int64_t calls = calls_.load(std::memory_order_relaxed);
  return calls < kAllTimed || calls % kTimedDistance == 0;
}

int64_t StageCounters::time_ns() const {
  const int64_t calls = calls_.load(std::memory_order_relaxed);
  const int64_t timed = timed_calls_.load(std::memory_order_relaxed);
  const int64_t all_ns = timed_ns_.load(std::memory_order_relaxed);
  if (timed == 0 || calls <= timed) return all_ns;
  return static_cast<int64_t>(static_cast<double>(all_ns) * static_cast<double>(calls) / static_cast<double>(timed));
}

JsonObject StageCounters::to_json() const {
  JsonObject object{
      {"calls", calls_.load(std::memory_order_relaxed)},       {"elements", elements()},
      {"failures", failures_.load(std::memory_order_relaxed)}, {"bytes", bytes_.load(std::memory_order_relaxed)},
      {"time_ms", static_cast<double>(time_ns()) * 1e-6},      {"threads", threads()}};
  if (const int64_t depths = depths_.load(std::memory_order_relaxed); depths > 0) {
    const auto sum = static_cast<double>(depth_sum_.load(std::memory_order_relaxed));
    object.emplace_back("mean_depth", sum / static_cast<double>(depths));
  }
  const std::lock_guard lock(mutex_);
  if (!ignored_errors_.empty()) {
    JsonArray errors;
    for (const std::string &error : ignored_errors_)
      errors.emplace_back(error);
    object.emplace_back("ignored", ignored_.load(std::memory_order_relaxed));
    object.emplace_back("ignored_errors", std::move(errors));
  }
  return object;
}

StageCounters &WalkReport::counters_of(const Dataset &dataset) {
  const std::lock_guard lock(mutex_);
  std::unique_ptr<StageCounters> &counters = counters_[&dataset];
  if (counters == nullptr) counters = std::make_unique<StageCounters>();
  return *counters;
}

std::unique_ptr<Stage> WalkReport::counted(const Dataset &dataset, std::unique_ptr<Stage> stage) {
  return std::make_unique<CountedStage>(std::move(stage), counters_of(dataset));
}

const StageCounters *WalkReport::find(const Dataset &dataset) const {
  const std::lock_guard lock(mutex_);
  const auto found = counters_.find(&dataset);
  return found == counters_.end() ? nullptr : found->second.get();
}

double WalkReport::time_ms(const Dataset &dataset) const {
  const StageCounters *const counters = find(dataset);
  return counters == nullptr ? 0 : static_cast<double>(counters->time_ns()) * 1e-6;
}

bool WalkReport::runs_ahead(const Dataset &dataset) const {
  const StageCounters *const counters = find(dataset);
  return counters != nullptr && counters->threads() > 0;
}

// Of a stage with threads of its own: the work of one of them.
double WalkReport::self_ms(const Dataset &dataset) const {
  if (runs_ahead(dataset)) {
    const StageCounters &counters = *find(dataset);
    return static_cast<double>(counters.work_ns()) * 1e-6 / static_cast<double>(counters.threads());
  }
  double self = time_ms(dataset);
  for (const DatasetRef &input : dataset.inputs())
    self -= time_ms(*input);
  return std::max(self, 0.0);
}

void WalkReport::add_stages(const Dataset &dataset, int64_t level, JsonArray &stages, std::string &text) const {
  const StageCounters *const counters = find(dataset);
  if (counters == nullptr) {  // part of the stage before it, or not reached
    stages.emplace_back(JsonObject{{"stage", dataset.kind()}, {"level", level}, {"is_counted", false}});
  } else {
    JsonObject object{{"stage", dataset.kind()}, {"level", level}, {"is_counted", true}};
    for (auto &member : counters->to_json())
      object.push_back(std::move(member));
    object.emplace_back("self_ms", self_ms(dataset));
    stages.emplace_back(std::move(object));
    text += base::concat(std::string(static_cast<size_t>(2 * level), ' '), dataset.kind(), ": ", counters->elements(),
                         " elements, own work ", milliseconds(self_ms(dataset)));
    if (runs_ahead(dataset)) text += base::concat(" in each of ", counters->threads(), " threads");
    text += base::concat(", waited for during ", milliseconds(time_ms(dataset)), "\n");
  }
  for (const DatasetRef &input : dataset.inputs())
    add_stages(*input, level + 1, stages, text);
}

// From the end towards the sources: a stage whose own work is at least half of its time limits; what lies before a
// stage that runs ahead works while the consumer waits.
std::pair<std::string, std::string> WalkReport::limit(const Dataset &last, double elapsed_ms) const {
  if (time_ms(last) <= kSmallShare * elapsed_ms) {
    return {"consumer", base::concat("the pipeline was waited for during ", milliseconds(time_ms(last)), " of ",
                                     milliseconds(elapsed_ms), " only")};
  }
  const Dataset *stage = &last;
  for (;;) {
    const Dataset *slowest = nullptr;
    for (const DatasetRef &input : stage->inputs()) {
      if (find(*input) == nullptr) continue;
      if (slowest == nullptr || time_ms(*input) > time_ms(*slowest)) slowest = input.get();
    }
    const double enough_ms = runs_ahead(*stage) ? elapsed_ms : time_ms(*stage);
    const bool is_limit = 2 * self_ms(*stage) >= enough_ms;
    if (is_limit || slowest == nullptr) break;
    stage = slowest;
  }
  return {stage->kind(),
          base::concat("its own work took ", milliseconds(self_ms(*stage)), " of ", milliseconds(elapsed_ms),
                       ", while the consumer waited ", milliseconds(time_ms(last)))};
}

base::Json WalkReport::to_json(const Dataset &last) const {
  const double elapsed_ms = std::chrono::duration<double, std::milli>(Clock::now() - started_).count();
  JsonArray stages;
  std::string text;
  add_stages(last, 0, stages, text);
  auto [stage, reason] = limit(last, elapsed_ms);
  text += base::concat("limit: ", stage, ", ", reason, "\n");
  return JsonObject{{"elapsed_ms", elapsed_ms},
                    {"stages", std::move(stages)},
                    {"limit", JsonObject{{"stage", std::move(stage)}, {"reason", std::move(reason)}}},
                    {"text", std::move(text)}};
}

}  // namespace tutti::impl::data
