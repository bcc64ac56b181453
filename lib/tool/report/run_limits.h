// SPDX-License-Identifier: Apache-2.0
//
// What limits the speed of a run, and what to try, from its newest training. Each finding has the figures that it is
// based on; how sure it is follows from how much of the time they explain, and from how long the training was.
#ifndef TUTTI_TOOL_REPORT_RUN_LIMITS_H_
#define TUTTI_TOOL_REPORT_RUN_LIMITS_H_

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tool/report/run_record.h"

namespace tutti::tool {

enum class Confidence { possible, likely, sure };
/// "possible", "likely", "sure".
const char *name(Confidence confidence);

struct Limit {
  std::string kind;   ///< "input", "transfer", "communication", "slow_device", "host", "programs", "small_batch"
  std::string title;  ///< a short sentence
  Confidence confidence = Confidence::possible;
  double share = 0;         ///< of the time of steps, that it costs at most
  std::string explanation;  ///< sentences with the figures
  std::vector<std::string> advice;
  nlohmann::ordered_json figures;  ///< by name
};

struct RunLimits {
  std::string summary;        ///< what was trained, how long, and whether anything limits it
  std::vector<Limit> limits;  ///< the greatest share first
};

RunLimits limits_of(const RunRecord &run);
nlohmann::ordered_json to_json(const RunRecord &run, const RunLimits &limits);

}  // namespace tutti::tool

#endif  // TUTTI_TOOL_REPORT_RUN_LIMITS_H_
