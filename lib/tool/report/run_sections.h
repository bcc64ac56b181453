// SPDX-License-Identifier: Apache-2.0
//
// Parts of a report that are about one run, as HTML; "" where the run has nothing to show.
#ifndef TUTTI_TOOL_REPORT_RUN_SECTIONS_H_
#define TUTTI_TOOL_REPORT_RUN_SECTIONS_H_

#include <string>

#include "tool/report/run_record.h"

namespace tutti::tool {

/// What limits it, and what to try.
std::string limits_html(const RunRecord &run);
/// Matrices and other tensors of the newest evaluation that has some.
std::string tensors_html(const RunRecord &run);
/// The time of steps, by device.
std::string steps_html(const RunRecord &run);
/// The input pipeline, by stage.
std::string input_html(const RunRecord &run);
/// Devices, replicas and layers of the profile.
std::string profile_html(const RunRecord &run);
std::string memory_html(const RunRecord &run);
/// Each training, with how it ended.
std::string trainings_html(const RunRecord &run);
std::string variables_html(const RunRecord &run);

}  // namespace tutti::tool

#endif  // TUTTI_TOOL_REPORT_RUN_SECTIONS_H_
