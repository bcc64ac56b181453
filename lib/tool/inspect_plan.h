// SPDX-License-Identifier: Apache-2.0
//
// `tutti inspect plan`: which kernels compute a trained model, in which layouts, how many bytes they touch, and how
// long they take.
#ifndef TUTTI_TOOL_INSPECT_PLAN_H_
#define TUTTI_TOOL_INSPECT_PLAN_H_

#include <string>
#include <vector>

#include "tool/arguments.h"

namespace tutti::tool {

/// What follows "inspect plan" on the command line; the exit status. Wrong arguments throw UsageError, failures
/// tutti::Error.
int inspect_plan(const std::vector<std::string> &arguments);

/// The lines of its help.
extern const char *const kInspectPlanUsage;

}  // namespace tutti::tool

#endif  // TUTTI_TOOL_INSPECT_PLAN_H_
