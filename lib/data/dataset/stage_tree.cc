// SPDX-License-Identifier: Apache-2.0
#include "data/dataset/stage_tree.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "base/text.h"

namespace tutti::impl::data {

using base::JsonArray;
using base::JsonObject;

namespace {

// A pipeline that answers within this share of the time is not what limits.
constexpr double kSmallShare = 0.1;

std::string decimal(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", value);
  return text;
}

std::string milliseconds(double value) { return decimal(value) + " ms"; }

double ms(int64_t nanoseconds) { return static_cast<double>(nanoseconds) * 1e-6; }

bool runs_ahead(const StageTree &stage) { return stage.sums.threads > 0; }

double time_ms(const StageTree &stage) { return ms(stage.sums.time_ns); }

// The stages that a stage draws from: its inputs, and behind those that are part of it, theirs.
std::vector<const StageTree *> inputs_of(const StageTree &stage) {
  std::vector<const StageTree *> inputs;
  for (const StageTree &input : stage.inputs) {
    if (input.is_counted) {
      inputs.push_back(&input);
      continue;
    }
    for (const StageTree *behind : inputs_of(input))
      inputs.push_back(behind);
  }
  return inputs;
}

double wait_in_ms(const StageTree &stage) {
  double wait = ms(stage.sums.arrival_ns);
  for (const StageTree *input : inputs_of(stage))
    wait += time_ms(*input);
  return wait;
}

double busy_ms(const StageTree &stage) {
  if (!runs_ahead(stage)) return std::max(time_ms(stage) - wait_in_ms(stage), 0.0);
  return ms(stage.sums.work_ns) / static_cast<double>(stage.sums.threads);
}

double wait_out_ms(const StageTree &stage) {
  return runs_ahead(stage) ? ms(stage.sums.full_ns / stage.sums.threads) : ms(stage.sums.idle_ns);
}

double mean_depth(const StageTree &stage) {
  return static_cast<double>(stage.sums.depth_sum) / static_cast<double>(std::max<int64_t>(1, stage.sums.depths));
}

void add_sums(const StageSums &sums, JsonObject &object) {
  object.emplace_back("calls", sums.calls);
  object.emplace_back("elements", sums.elements);
  object.emplace_back("failures", sums.failures);
  object.emplace_back("bytes", sums.bytes);
  object.emplace_back("time_ms", ms(sums.time_ns));
  object.emplace_back("threads", sums.threads);
}

void add_ignored(const StageSums &sums, JsonObject &object) {
  if (sums.ignored_errors.empty()) return;
  JsonArray errors;
  for (const std::string &error : sums.ignored_errors)
    errors.emplace_back(error);
  object.emplace_back("ignored", sums.ignored);
  object.emplace_back("ignored_errors", std::move(errors));
}

void add_stage(const StageTree &stage, JsonObject &object, std::string &text) {
  const StageSums &sums = stage.sums;
  const double busy = busy_ms(stage), wait_in = wait_in_ms(stage), wait_out = wait_out_ms(stage);
  add_sums(sums, object);
  if (sums.depths > 0) object.emplace_back("mean_depth", mean_depth(stage));
  add_ignored(sums, object);
  object.emplace_back("busy_ms", busy);
  object.emplace_back("wait_in_ms", wait_in);
  object.emplace_back("wait_out_ms", wait_out);
  text += base::concat(stage.name, ": ", sums.elements, " elements, own work ", milliseconds(busy));
  if (runs_ahead(stage)) text += base::concat(" in each of ", sums.threads, " threads");
  text += base::concat(", waited ", milliseconds(wait_in), " for its input and ", milliseconds(wait_out),
                       " for its consumer, which waited ", milliseconds(time_ms(stage)));
  if (sums.depths > 0) text += base::concat(", ", decimal(mean_depth(stage)), " elements ready");
  text += "\n";
}

void add_stages(const StageTree &stage, int64_t level, JsonArray &stages, std::string &text) {
  JsonObject object{{"stage", stage.name}, {"level", level}, {"is_counted", stage.is_counted}};
  if (stage.is_counted) {
    text += std::string(static_cast<size_t>(2 * level), ' ');
    add_stage(stage, object, text);
  }
  stages.emplace_back(std::move(object));
  for (const StageTree &input : stage.inputs)
    add_stages(input, level + 1, stages, text);
}

// From the end towards the sources: a stage whose own work is at least half of its time limits; what lies before a
// stage that runs ahead works while the consumer waits.
std::pair<std::string, std::string> limit(const StageTree &last, double elapsed_ms) {
  if (time_ms(last) <= kSmallShare * elapsed_ms) {
    return {"consumer", base::concat("it waited for the pipeline only ", milliseconds(time_ms(last)), " of ",
                                     milliseconds(elapsed_ms))};
  }
  const StageTree *stage = &last;
  for (;;) {
    const StageTree *slowest = nullptr;
    for (const StageTree *input : inputs_of(*stage)) {
      if (slowest == nullptr || time_ms(*input) > time_ms(*slowest)) slowest = input;
    }
    const double enough_ms = runs_ahead(*stage) ? elapsed_ms : time_ms(*stage);
    const bool is_limit = 2 * busy_ms(*stage) >= enough_ms;
    if (is_limit || slowest == nullptr) break;
    stage = slowest;
  }
  const double arrival_ms = ms(stage->sums.arrival_ns);
  std::string reason = base::concat("its own work took ", milliseconds(busy_ms(*stage)));
  if (runs_ahead(*stage)) reason += base::concat(" in each of ", stage->sums.threads, " threads");
  if (arrival_ms > busy_ms(*stage)) reason = base::concat("nothing was pushed for ", milliseconds(arrival_ms));
  return {stage->name, base::concat(reason, " of ", milliseconds(elapsed_ms), ", while the consumer waited ",
                                    milliseconds(time_ms(last)))};
}

}  // namespace

void StageTree::add(const StageTree &other, int64_t &room) {
  is_counted = is_counted || other.is_counted;
  sums.add(other.sums);
  for (const StageTree &input : other.inputs)
    add(inputs, input, room);
}

void StageTree::add(std::vector<StageTree> &to, const StageTree &other, int64_t &room) {
  auto equal = std::find_if(to.begin(), to.end(), [&](const StageTree &one) { return one.name == other.name; });
  if (equal == to.end()) {
    if (room-- <= 0) return;
    equal = to.insert(to.end(), {other.name, false, {}, {}});
  }
  equal->add(other, room);
}

base::Json StageTree::to_json(double elapsed_ms) const {
  JsonArray stages;
  std::string text;
  add_stages(*this, 0, stages, text);
  auto [stage, reason] = limit(*this, elapsed_ms);
  text += base::concat("limit: ", stage, ", ", reason, "\n");
  return JsonObject{{"elapsed_ms", elapsed_ms},
                    {"stages", std::move(stages)},
                    {"limit", JsonObject{{"stage", std::move(stage)}, {"reason", std::move(reason)}}},
                    {"text", std::move(text)}};
}

}  // namespace tutti::impl::data
