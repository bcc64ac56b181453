// SPDX-License-Identifier: Apache-2.0
//
// How an estimator runs: where it keeps its state, how often it saves and logs, how exactly it repeats itself. A value;
// check() it before use. What is not set gets the documented default.
#ifndef TUTTI_ESTIMATOR_RUN_CONFIG_H_
#define TUTTI_ESTIMATOR_RUN_CONFIG_H_

#include <cstdint>
#include <optional>
#include <string>

#include "backend/executable.h"
#include "base/json.h"
#include "base/status.h"
#include "distribute/train/trainer.h"

namespace tutti::impl::estimator {

struct RunConfig {
  /// The options that the program has made it of: {"seed": {"value": 7, "origin": "set" or "default"}, ...}. They are
  /// kept in checkpoints, where people look for them. Empty: not known.
  base::Json options = base::JsonObject{};

  /// Directory of the checkpoints, made when training starts. Empty: nothing is kept on disk.
  std::string model_dir;
  /// Seed of initial values, dropout, shuffling.
  int64_t seed = 0;

  /// A checkpoint every so many steps or seconds, and always at the start and at the end. At most one of the two may be
  /// set; neither set means every 600 seconds; 0 turns checkpoints off, those at the start and the end included.
  std::optional<int64_t> save_checkpoints_steps;
  std::optional<double> save_checkpoints_secs;
  /// Newest checkpoints that are kept; 0 keeps all.
  int64_t keep_checkpoint_max = 5;
  /// Loss and speed go to the log every so many steps; 0 never.
  int64_t log_step_count_steps = 100;
  /// Summaries for TensorBoard of the first step of a training and of every so many behind it; 0 = none, also of
  /// evaluations. They are written into this directory, that of the checkpoints where it is empty.
  int64_t save_summary_steps = 100;
  std::string summary_dir;
  /// The same with distributions of weights and gradients, which are copied to the host for it; more than 0 keeps
  /// gradients.
  int64_t save_histogram_steps = 0;
  /// How long summaries may wait to be written.
  int64_t summary_flush_secs = 10;
  /// Losses and metrics every so many steps (0: of evaluations, passes and the end only), in a file (metrics_file.h):
  /// CSV where its name ends in ".csv", else JSON lines. Empty: none.
  std::string metrics_file;
  int64_t metrics_file_steps = 100;

  /// fast, repeatable (same bytes run to run), invariant (also whatever the number of replicas).
  backend::Level level = backend::Level::fast;
  /// Batches of the dataset that make one step.
  int64_t accumulation = 1;
  /// Steps whose batches are read, and copied to devices, ahead of the step that runs (TrainerOptions).
  int64_t device_prefetch = 1;
  /// Gradients are clipped by their global norm; 0 = what the model says.
  double clip_norm = 0;
  distribute::Lowering lowering = distribute::Lowering::automatic;
  /// How gradients are added up over devices (TrainerOptions).
  distribute::AllReduceChoice all_reduce = distribute::AllReduceChoice::automatic;
  /// Level invariant: logical replicas. The number of replicas must divide it.
  int64_t logical_replicas = 4;
  int64_t threads_per_replica = 1;
  /// What may be rounded while computing; other than f32 only at level fast.
  backend::Precision precision = backend::Precision::f32;
  /// Programs kept per device, by shape of the batch.
  int64_t program_cache_size = 16;
  bool keep_gradients = false;
  bool keep_outputs = false;
  /// Evaluations and predictions use the weights themselves where the optimizer keeps moving averages of them.
  bool raw_weights = false;
  /// Checkpoints have no graph to predict with; else the model function must build mode PREDICT where some are written.
  bool without_predictions = false;
  /// What f32 gradients are rounded to before they are added up over devices: f32 or bf16 (TrainerOptions).
  tensor::DType gradient_dtype = tensor::DType::f32;
  /// How long a replica waits for another before it says so and gives up.
  int64_t collective_timeout_ms = 600000;

  /// INVALID_ARGUMENT naming the field, its value and what is accepted.
  base::Status check() const;
  /// Are checkpoints written at all?
  bool saves_checkpoints() const;
  /// The cadence that holds: steps, else seconds; 0 = not by this one.
  int64_t resolved_checkpoint_steps() const { return save_checkpoints_steps.value_or(0); }
  double resolved_checkpoint_secs() const;
  /// Where summaries are written; empty: nowhere.
  std::string summary_folder() const;

  distribute::TrainerOptions trainer_options() const;
  /// What decides the result of training, on which all workers agree: no paths, no devices.
  base::Json to_json() const;
  /// The same with "options", for the manifest.
  base::Json described() const;
};

}  // namespace tutti::impl::estimator

#endif  // TUTTI_ESTIMATOR_RUN_CONFIG_H_
