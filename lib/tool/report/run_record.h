// SPDX-License-Identifier: Apache-2.0
//
// What a run has left in its folder: the record (run.jsonl), curves in event files, and a profile where a program has
// written one (profile.json, the text of tutti_context_stop_profile).
#ifndef TUTTI_TOOL_REPORT_RUN_RECORD_H_
#define TUTTI_TOOL_REPORT_RUN_RECORD_H_

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tool/report/event_curves.h"

namespace tutti::tool {

struct RunRecord {
  std::string folder;
  std::string name;  ///< the last parts of the folder's path that tell it from other runs
  /// Lines of the record (tutti/estimator.h), arrays: last_training() as it came, of others what they came to; of
  /// evaluations the newest tensors alone.
  nlohmann::ordered_json trainings, evaluations;
  nlohmann::ordered_json profile;  ///< null: there is none
  Curves training, evaluation;
  /// What is missing or could not be read, a sentence for each.
  std::vector<std::string> notes;

  /// The newest training that made steps, else the newest; null without any.
  const nlohmann::ordered_json &last_training() const;
  const nlohmann::ordered_json &last_evaluation() const;
};

/// Throws std::runtime_error where the folder has neither record nor event files, with what to do about it.
RunRecord read_run(const std::string &folder);
/// In that order; names are made different.
std::vector<RunRecord> read_runs(const std::vector<std::string> &folders);

/// The number at a path of keys; `otherwise` where there is none.
double number_at(const nlohmann::ordered_json &object, std::initializer_list<const char *> keys, double otherwise = 0);
std::string text_at(const nlohmann::ordered_json &object, std::initializer_list<const char *> keys);
/// The value at a path of keys; null where there is none.
const nlohmann::ordered_json &value_at(const nlohmann::ordered_json &object, std::initializer_list<const char *> keys);

}  // namespace tutti::tool

#endif  // TUTTI_TOOL_REPORT_RUN_RECORD_H_
