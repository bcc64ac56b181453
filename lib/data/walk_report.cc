// SPDX-License-Identifier: Apache-2.0
#include "data/walk_report.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "data/bytes_rows.h"

namespace tutti::impl::data {

using base::JsonArray;
using base::JsonObject;
using base::Result;
using base::Status;

namespace {

// The first calls are all timed, later ones now and then.
constexpr int64_t kAllTimed = 256;
constexpr int64_t kTimedDistance = 8;
constexpr size_t kMostErrors = 8;
// A pipeline that answers within this share of the time is not what limits.
constexpr double kSmallShare = 0.1;

// Times a call, if the counters want it.
class Timed {
 public:
  explicit Timed(StageCounters &counters) : is_timed_(counters.wants_time()) {
    if (!is_timed_) return;
    start_ns_ = base::now_ns();
    if (!counters.has_begun()) counters.mark_begin(start_ns_);
  }
  int64_t elapsed_ns() const { return is_timed_ ? base::now_ns() - start_ns_ : -1; }

 private:
  const bool is_timed_;
  int64_t start_ns_ = 0;
};

class CountedStage : public Stage {
 public:
  CountedStage(std::unique_ptr<Stage> stage, StageCounters &counters) : stage_(std::move(stage)), counters_(counters) {}

  Result<bool> next(Element &element) override {
    const Timed timed(counters_);
    Result<bool> more = stage_->next(element);
    const bool is_given = more.ok() && *more;
    const bool has_failed = !more.ok() && !base::is_interrupt(more.status());
    counters_.add_call(is_given || has_failed ? 1 : 0, is_given ? element.size_bytes() : 0, timed.elapsed_ns());
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
  Lineage last_row() const override { return stage_->last_row(); }
  bool next_view(int64_t count, Element &batch) override {
    const Timed timed(counters_);
    const bool any = stage_->next_view(count, batch);
    if (any) counters_.add_call(batch.rows(), batch.size_bytes(), timed.elapsed_ns());
    return any;
  }
  bool gives_texts() const override { return stage_->gives_texts(); }
  Status next_texts(BytesRows &rows, int64_t count, int64_t &done) override {
    const Timed timed(counters_);
    const int64_t before = rows.bytes();
    Status status = stage_->next_texts(rows, count, done);
    counters_.add_call(done, rows.bytes() - before, timed.elapsed_ns());
    if (!status.ok() && !base::is_interrupt(status)) counters_.add_failure();
    return status;
  }
  void save(State &state) const override { stage_->save(state); }
  Status restore(const base::JsonReader &state) override { return stage_->restore(state); }

 private:
  const std::unique_ptr<Stage> stage_;
  StageCounters &counters_;
};

std::string decimal(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", value);
  return text;
}

std::string milliseconds(double value) { return decimal(value) + " ms"; }

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

int64_t StageCounters::weight_of(int64_t number) {
  if (number < kAllTimed) return 1;
  return number % kTimedDistance == 0 ? kTimedDistance : 0;
}

int64_t StageCounters::time_ns() const {
  const int64_t calls = calls_.load(std::memory_order_relaxed);
  const int64_t timed = timed_calls_.load(std::memory_order_relaxed);
  const int64_t all_ns = timed_ns_.load(std::memory_order_relaxed);
  if (timed == 0 || calls <= timed) return all_ns;
  return static_cast<int64_t>(static_cast<double>(all_ns) * static_cast<double>(calls) / static_cast<double>(timed));
}

int64_t StageCounters::wait_out_ns(int64_t now_ns) const {
  if (threads() > 0) return full_ns_.load(std::memory_order_relaxed) / threads();
  return has_begun() ? std::max<int64_t>(0, now_ns - begin_ns_.load(std::memory_order_relaxed) - time_ns()) : 0;
}

double StageCounters::mean_depth() const {
  const auto sum = static_cast<double>(depth_sum_.load(std::memory_order_relaxed));
  return sum / static_cast<double>(std::max<int64_t>(1, depths_.load(std::memory_order_relaxed)));
}

JsonObject StageCounters::to_json() const {
  JsonObject object{
      {"calls", calls_.load(std::memory_order_relaxed)},       {"elements", elements()},
      {"failures", failures_.load(std::memory_order_relaxed)}, {"bytes", bytes_.load(std::memory_order_relaxed)},
      {"time_ms", static_cast<double>(time_ns()) * 1e-6},      {"threads", threads()}};
  if (has_depth()) object.emplace_back("mean_depth", mean_depth());
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

std::vector<const Dataset *> WalkReport::inputs_of(const Dataset &dataset) const {
  std::vector<const Dataset *> inputs;
  for (const DatasetRef &input : dataset.inputs()) {
    if (find(*input) != nullptr) {
      inputs.push_back(input.get());
      continue;
    }
    for (const Dataset *behind : inputs_of(*input))
      inputs.push_back(behind);
  }
  return inputs;
}

double WalkReport::wait_in_ms(const Dataset &dataset) const {
  const StageCounters *const counters = find(dataset);
  double wait = counters == nullptr ? 0 : static_cast<double>(counters->arrival_ns()) * 1e-6;
  for (const Dataset *input : inputs_of(dataset))
    wait += time_ms(*input);
  return wait;
}

double WalkReport::busy_ms(const Dataset &dataset) const {
  if (!runs_ahead(dataset)) return std::max(time_ms(dataset) - wait_in_ms(dataset), 0.0);
  const StageCounters &counters = *find(dataset);
  return static_cast<double>(counters.work_ns()) * 1e-6 / static_cast<double>(counters.threads());
}

void WalkReport::add_stage(const Dataset &dataset, const StageCounters &counters, JsonObject &object,
                           std::string &text) const {
  const double busy = busy_ms(dataset), wait_in = wait_in_ms(dataset);
  const double wait_out = static_cast<double>(counters.wait_out_ns(now_())) * 1e-6;
  for (auto &member : counters.to_json())
    object.push_back(std::move(member));
  object.emplace_back("busy_ms", busy);
  object.emplace_back("wait_in_ms", wait_in);
  object.emplace_back("wait_out_ms", wait_out);
  text += base::concat(dataset.kind(), ": ", counters.elements(), " elements, own work ", milliseconds(busy));
  if (runs_ahead(dataset)) text += base::concat(" in each of ", counters.threads(), " threads");
  text += base::concat(", waited ", milliseconds(wait_in), " for its input and ", milliseconds(wait_out),
                       " for who takes it, waited for during ", milliseconds(time_ms(dataset)));
  if (counters.has_depth()) text += base::concat(", ", decimal(counters.mean_depth()), " elements ready");
  text += "\n";
}

void WalkReport::add_stages(const Dataset &dataset, int64_t level, JsonArray &stages, std::string &text) const {
  const StageCounters *const counters = find(dataset);
  // Without counters it is part of the stage before it, or was not reached.
  JsonObject object{{"stage", dataset.kind()}, {"level", level}, {"is_counted", counters != nullptr}};
  if (counters != nullptr) {
    text += std::string(static_cast<size_t>(2 * level), ' ');
    add_stage(dataset, *counters, object, text);
  }
  stages.emplace_back(std::move(object));
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
    for (const Dataset *input : inputs_of(*stage)) {
      if (slowest == nullptr || time_ms(*input) > time_ms(*slowest)) slowest = input;
    }
    const double enough_ms = runs_ahead(*stage) ? elapsed_ms : time_ms(*stage);
    const bool is_limit = 2 * busy_ms(*stage) >= enough_ms;
    if (is_limit || slowest == nullptr) break;
    stage = slowest;
  }
  const StageCounters &counters = *find(*stage);
  const double arrival_ms = static_cast<double>(counters.arrival_ns()) * 1e-6;
  std::string reason = base::concat("its own work took ", milliseconds(busy_ms(*stage)));
  if (runs_ahead(*stage)) reason += base::concat(" in each of ", counters.threads(), " threads");
  if (arrival_ms > busy_ms(*stage)) reason = base::concat("nothing had been pushed during ", milliseconds(arrival_ms));
  return {stage->kind(), base::concat(reason, " of ", milliseconds(elapsed_ms), ", while the consumer waited ",
                                      milliseconds(time_ms(last)))};
}

base::Json WalkReport::to_json(const Dataset &last) const {
  const double elapsed_ms = static_cast<double>(now_() - started_ns_) * 1e-6;
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
