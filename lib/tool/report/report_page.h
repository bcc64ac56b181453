// SPDX-License-Identifier: Apache-2.0
//
// The report of one or several runs as one HTML page that needs nothing else: its style, its script and the points of
// its curves are in it.
#ifndef TUTTI_TOOL_REPORT_REPORT_PAGE_H_
#define TUTTI_TOOL_REPORT_REPORT_PAGE_H_

#include <string>
#include <vector>

#include "tool/report/run_record.h"

namespace tutti::tool {

std::string report_page(const std::vector<RunRecord> &runs);

/// The style and the script of the page: page/report.css and page/report.js (generate_page_parts.py).
extern const char *const kPageStyle;
extern const char *const kPageScript;

}  // namespace tutti::tool

#endif  // TUTTI_TOOL_REPORT_REPORT_PAGE_H_
