// SPDX-License-Identifier: Apache-2.0
//
// The configuration of a run: what `tutti train`, `evaluate` and `bench` read, and what a run's folder keeps.
//
//   data, model, outputs, loss, metrics, optimizer, parameters, gradient_clip_norm      data_config.h, model_config.h
//   context, strategy                                                                   device_config.h
//   run          options of the schemas "run" and "train": model_dir, max_steps, seed, ...
//   weights      a checkpoint or file of safetensors that a new training begins with
//   frozen       patterns of variables that are not trained
//   evaluation   {every_steps: N, steps: N}: when, and on how many batches of `data.evaluate`; 0 = after each pass, all
//   profile      {steps: N, trace: FILE or FOLDER/}: steps N + 1 to 2 N are profiled; 0 = none
#ifndef TUTTI_TOOL_TRAINING_RUN_CONFIG_H_
#define TUTTI_TOOL_TRAINING_RUN_CONFIG_H_

#include <memory>
#include <string>
#include <tutti/tutti.hpp>
#include <vector>

#include "tool/config/config_node.h"
#include "tool/training/model_config.h"

namespace tutti::tool {

/// The file in the folder of a run.
inline constexpr char kConfigFile[] = "config.yaml";

/// Whether `path` is the folder of a run, with a configuration in it.
bool is_run_folder(const std::string &path);

/// The configuration of a file; of the folder of a run, whose `run.model_dir` is that folder; empty for "".
ConfigNode read_config(const std::string &path);

/// Checks everything that can be checked without data, and fills in what is not written. `name` is that of the folder
/// of a run that names none: runs/<name>.
void complete_config(ConfigNode &config, const std::string &name);

/// Writes the completed configuration into the folder of the run.
void write_config(const ConfigNode &config);

/// An evaluation beside a training adds nothing to its curves.
void write_no_summaries(ConfigNode &config);

std::string model_dir_of(const ConfigNode &config);
/// The newest checkpoint there; "" = none.
std::string newest_checkpoint(const std::string &directory);

/// An estimator of the configuration's model. What is wrong with the model is found by a call that builds it, whose
/// error told() replaces by the UsageError with the place.
class ConfiguredEstimator {
 public:
  /// Without `keeps_files` the run writes nothing.
  ConfiguredEstimator(const ConfigNode &config, const Dataset &dataset, const Strategy &strategy,
                      const Context &context, bool keeps_files = true)
      : ConfiguredEstimator(config, components_of(dataset), strategy, context, keeps_files) {}
  ConfiguredEstimator(const ConfigNode &config, const ModelComponents &components, const Strategy &strategy,
                      const Context &context, bool keeps_files = true);

  /// Calls `call(estimator)`.
  template <typename Call>
  auto told(Call &&call) {
    try {
      return call(estimator_);
    } catch (const Error &) {
      throw_wrong();
      throw;
    }
  }

  /// Whether the model function has refused the configuration.
  bool is_wrong() const;

 private:
  void throw_wrong() const;

  struct Shared;
  static Estimator make(const std::shared_ptr<Shared> &shared, const Strategy &strategy, const Context &context,
                        bool keeps_files);

  std::shared_ptr<Shared> shared_;
  Estimator estimator_;
};

}  // namespace tutti::tool

#endif  // TUTTI_TOOL_TRAINING_RUN_CONFIG_H_
