// SPDX-License-Identifier: Apache-2.0
#include "estimator/run_config.h"

#include <cmath>
#include <initializer_list>

namespace tutti::impl::estimator {

using base::invalid_argument;
using base::Json;
using base::JsonObject;
using base::Status;

namespace {

constexpr double kDefaultCheckpointSecs = 600;

struct Bound {
  const char *field;
  int64_t value;
  int64_t lowest;
  int64_t highest;
};

std::string_view name_of(backend::Level level) {
  switch (level) {
    case backend::Level::fast:
      return "fast";
    case backend::Level::repeatable:
      return "repeatable";
    case backend::Level::invariant:
      return "invariant";
  }
  return "unknown";
}

}  // namespace

Status RunConfig::check() const {
  const Bound bounds[] = {
      {"save_checkpoints_steps", save_checkpoints_steps.value_or(0), 0, INT64_MAX},
      {"keep_checkpoint_max", keep_checkpoint_max, 0, INT64_MAX},
      {"log_step_count_steps", log_step_count_steps, 0, INT64_MAX},
      {"save_summary_steps", save_summary_steps, 0, INT64_MAX},
      {"save_histogram_steps", save_histogram_steps, 0, INT64_MAX},
      {"summary_flush_secs", summary_flush_secs, 0, INT64_MAX},
      {"metrics_file_steps", metrics_file_steps, 0, INT64_MAX},
      {"accumulation", accumulation, 1, 1 << 20},
      {"logical_replicas", logical_replicas, 1, 1 << 10},
      {"device_prefetch", device_prefetch, 1, distribute::kMostDevicePrefetch},
      {"threads_per_replica", threads_per_replica, 1, 1 << 12},
      {"program_cache_size", program_cache_size, 1, 1 << 20},
      {"collective_timeout_ms", collective_timeout_ms, 1, INT64_MAX},
  };
  for (const Bound &bound : bounds) {
    if (bound.value >= bound.lowest && bound.value <= bound.highest) continue;
    return invalid_argument(bound.field, " is ", bound.value, ", expected ",
                            bound.highest == INT64_MAX ? base::concat("at least ", bound.lowest)
                                                       : base::concat(bound.lowest, " to ", bound.highest));
  }
  if (save_checkpoints_secs && !(*save_checkpoints_secs >= 0 && std::isfinite(*save_checkpoints_secs))) {
    return invalid_argument("save_checkpoints_secs is ", *save_checkpoints_secs, ", expected at least 0");
  }
  if (save_checkpoints_steps.value_or(0) > 0 && save_checkpoints_secs.value_or(0) > 0) {
    return invalid_argument("save_checkpoints_steps is ", *save_checkpoints_steps, " and save_checkpoints_secs is ",
                            *save_checkpoints_secs, ": set only one of them");
  }
  if (!(clip_norm >= 0 && std::isfinite(clip_norm))) {
    return invalid_argument("clip_norm is ", clip_norm, ", expected at least 0");
  }
  TUTTI_TRY(distribute::check(trainer_options()));
  for (const auto &[field, path] : {std::pair("model_dir", &model_dir), std::pair("summary_dir", &summary_dir),
                                    std::pair("metrics_file", &metrics_file)})
    if (path->find('\0') != std::string::npos) return invalid_argument(field, " contains a NUL character");
  return Status();
}

double RunConfig::resolved_checkpoint_secs() const {
  if (save_checkpoints_secs) return *save_checkpoints_secs;
  return save_checkpoints_steps ? 0 : kDefaultCheckpointSecs;
}

std::string RunConfig::summary_folder() const {
  if (save_summary_steps == 0) return {};
  return summary_dir.empty() ? model_dir : summary_dir;
}

bool RunConfig::saves_checkpoints() const {
  return !model_dir.empty() && (resolved_checkpoint_steps() > 0 || resolved_checkpoint_secs() > 0);
}

distribute::TrainerOptions RunConfig::trainer_options() const {
  distribute::TrainerOptions options;
  options.seed = seed;
  options.level = level;
  options.accumulation = static_cast<int32_t>(accumulation);
  options.clip_norm = clip_norm;
  options.lowering = lowering;
  options.all_reduce = all_reduce;
  options.logical_replicas = static_cast<int32_t>(logical_replicas);
  options.device_prefetch = static_cast<int32_t>(device_prefetch);
  options.threads_per_replica = static_cast<int32_t>(threads_per_replica);
  options.precision = precision;
  options.program_cache_size = static_cast<int32_t>(program_cache_size);
  options.keep_gradients = keep_gradients || (save_histogram_steps > 0 && !summary_folder().empty());
  options.keep_outputs = keep_outputs;
  options.gradient_dtype = gradient_dtype;
  options.collective_timeout_ms = collective_timeout_ms;
  return options;
}

Json RunConfig::to_json() const {
  JsonObject object{
      {"seed", seed}, {"level", std::string(name_of(level))}, {"accumulation", accumulation}, {"clip_norm", clip_norm}};
  if (level == backend::Level::invariant) object.emplace_back("logical_replicas", logical_replicas);
  if (precision != backend::Precision::f32) object.emplace_back("precision", std::string(name(precision)));
  if (all_reduce != distribute::AllReduceChoice::automatic) {
    object.emplace_back("all_reduce", std::string(name(all_reduce)));
  }
  if (gradient_dtype == tensor::DType::bf16) object.emplace_back("gradient_dtype", "bf16");
  return object;
}

Json RunConfig::described() const {
  Json all = to_json();
  if (!options.object().empty()) all.set("options", options);
  return all;
}

}  // namespace tutti::impl::estimator
