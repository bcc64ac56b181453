// SPDX-License-Identifier: Apache-2.0
//
// What a training leaves in the folder of its run beside checkpoints and event files: config.yaml, metrics.jsonl,
// profile.json and result.json. Where several processes train together, the first one does.
#ifndef TUTTI_TOOL_TRAINING_RUN_FOLDER_H_
#define TUTTI_TOOL_TRAINING_RUN_FOLDER_H_

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <tutti/tutti.hpp>
#include <vector>

#include "tool/config/config_node.h"

namespace tutti::tool {

class RunFolder {
 public:
  /// `folder`: "" = nothing is written. All three live as long as the hooks.
  RunFolder(const ConfigNode &config, const Context &context, std::string folder);

  /// Adds what writes the files, and what notes the training's own results.
  void add_hooks(Hooks &hooks);

  /// The step that the training began with; -1 = it did not.
  int64_t first_step() const { return first_step_; }
  /// As result_json(), of the steps of this training, without the number of examples; the seconds are with
  /// evaluations, the examples per second without.
  nlohmann::ordered_json training() const { return training_; }
  /// Writes `value` to a file of the folder.
  void write(const std::string &name, const nlohmann::ordered_json &value) const;

 private:
  void begin(const tutti_hook_event *event);
  void note_speed(const tutti_hook_event *event);
  void note_end(const tutti_hook_event *event);
  void profile(const tutti_hook_event *event);
  void end_profile();

  const ConfigNode &config_;
  const Context &context_;
  const std::string folder_;
  const std::vector<std::string> metrics_;
  int64_t first_step_ = -1;
  std::chrono::steady_clock::time_point begin_;
  double seconds_per_example_ = 0;
  int64_t speeds_ = 0;
  nlohmann::ordered_json training_;
  bool is_profiling_ = false, was_profiled_ = false;
};

}  // namespace tutti::tool

#endif  // TUTTI_TOOL_TRAINING_RUN_FOLDER_H_
