// SPDX-License-Identifier: Apache-2.0
//
// Parts of a report that have a column for each run, as HTML.
#ifndef TUTTI_TOOL_REPORT_COMPARISON_H_
#define TUTTI_TOOL_REPORT_COMPARISON_H_

#include <string>
#include <vector>

#include "tool/report/run_record.h"

namespace tutti::tool {

/// The figures that people ask for first, of a run alone.
std::string tiles_html(const RunRecord &run);
/// Loss and metrics of the newest training and evaluation of each run.
std::string results_html(const std::vector<RunRecord> &runs);
/// Options with their origin; those that differ between runs are marked.
std::string options_html(const std::vector<RunRecord> &runs);
/// Batches, optimizer, library, devices.
std::string environment_html(const std::vector<RunRecord> &runs);

}  // namespace tutti::tool

#endif  // TUTTI_TOOL_REPORT_COMPARISON_H_
