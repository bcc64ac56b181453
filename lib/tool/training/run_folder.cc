// SPDX-License-Identifier: Apache-2.0
#include "tool/training/run_folder.h"

#include <cstdio>
#include <filesystem>

#include "tool/console/text_file.h"
#include "tool/training/result_table.h"
#include "tool/training/run_config.h"

namespace tutti::tool {

namespace {

using json = nlohmann::ordered_json;

constexpr int64_t kMetricSteps = 100;

}  // namespace

RunFolder::RunFolder(const ConfigNode &config, const Context &context, std::string folder)
    : config_(config), context_(context), folder_(std::move(folder)), metrics_(metric_names(config)) {}

void RunFolder::add_hooks(Hooks &hooks) {
  const int64_t every = integer_in(*config_.find("run"), "log_step_count_steps", kMetricSteps);
  hooks.add(
      [this](const tutti_hook_event *event) {
        const int32_t kind = tutti_hook_event_get_kind(event);
        if (kind == TUTTI_EVENT_BEGIN) begin(event);
        if (kind == TUTTI_EVENT_STEP) note_speed(event);
        if (kind == TUTTI_EVENT_END) note_end(event);
        return TUTTI_OK;
      },
      every);
  if (folder_.empty()) return;
  hooks.add_metrics_file(folder_ + "/metrics.jsonl", TUTTI_METRICS_JSON_LINES, every);
  const int64_t profiled = integer_in(*config_.find("profile"), "steps", 0);
  if (profiled == 0) return;
  hooks.add(
      [this](const tutti_hook_event *event) {
        profile(event);
        return TUTTI_OK;
      },
      profiled);
}

/// The model has been built by now, so the configuration is a good one.
void RunFolder::begin(const tutti_hook_event *event) {
  first_step_ = tutti_hook_event_get_step(event);
  begin_ = std::chrono::steady_clock::now();
  if (!folder_.empty()) write_config(config_);
}

/// Intervals have equally many steps, so the mean is that of the time for an example.
void RunFolder::note_speed(const tutti_hook_event *event) {
  const double speed = tutti_hook_event_get_examples_per_second(event);
  if (!(speed > 0)) return;
  seconds_per_example_ += 1 / speed;
  ++speeds_;
}

void RunFolder::note_end(const tutti_hook_event *event) {
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin_;
  training_ = {{"step", tutti_hook_event_get_step(event)},
               {"seconds", seconds.count()},
               {"examples_per_second", number_json(static_cast<double>(speeds_) / seconds_per_example_)},
               {"loss", number_json(tutti_hook_event_get_loss(event))},
               {"metrics", json::object()}};
  for (const std::string &name : metrics_)
    training_["metrics"][name] = number_json(tutti_hook_event_get_metric(event, name.c_str()));
}

namespace {

/// A profile that cannot be written is no reason to lose the training: it is told, and there is none.
template <typename Call>
bool keeps_going(Call call) {
  try {
    detail::check(call);
    return true;
  } catch (const Error &error) {
    std::fprintf(stderr, "tutti: profile.trace: %s\n", error.what());
    return false;
  }
}

}  // namespace

/// The first event of a step comes after as many steps as the profile is to have, the second one at its end.
void RunFolder::profile(const tutti_hook_event *event) {
  const int32_t kind = tutti_hook_event_get_kind(event);
  if (kind == TUTTI_EVENT_END || kind == TUTTI_EVENT_ERROR || (kind == TUTTI_EVENT_STEP && is_profiling_))
    return end_profile();
  if (kind != TUTTI_EVENT_STEP || was_profiled_) return;
  const std::string trace = text_in(*config_.find("profile"), "trace");
  was_profiled_ = true;
  is_profiling_ = keeps_going([&](tutti_error **err) {
    return tutti_context_start_profile(context_, trace.empty() ? nullptr : trace.c_str(), err);
  });
}

void RunFolder::end_profile() {
  if (!is_profiling_) return;
  is_profiling_ = false;
  const char *text = nullptr;
  if (keeps_going([&](tutti_error **err) { return tutti_context_stop_profile(context_, &text, err); }))
    write("profile.json", json::parse(text));
}

/// A record that cannot be written is no reason to lose the training.
void RunFolder::write(const std::string &name, const nlohmann::ordered_json &value) const {
  if (folder_.empty()) return;
  try {
    TextFile file(folder_ + "/" + name);
    file.write(value.dump(1) + "\n");
    file.close();
  } catch (const std::exception &error) {
    std::fprintf(stderr, "tutti: %s\n", error.what());
  }
}

}  // namespace tutti::tool
