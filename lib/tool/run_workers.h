// SPDX-License-Identifier: Apache-2.0
//
// `tutti run`: starts a program several times on this machine, as the workers of a strategy that takes them from the
// environment (tutti_strategy_create_multi_worker_from_environment).
#ifndef TUTTI_TOOL_RUN_WORKERS_H_
#define TUTTI_TOOL_RUN_WORKERS_H_

#include <string>
#include <vector>

#include "tool/arguments.h"

namespace tutti::tool {

/// What follows "run" on the command line; the exit status: that of the first worker that failed, 128 + the signal for
/// one that was killed. Wrong arguments throw UsageError, a program that cannot be started std::runtime_error.
int run_workers(const std::vector<std::string> &arguments);

/// The lines of its help.
extern const char *const kRunWorkersUsage;

}  // namespace tutti::tool

#endif  // TUTTI_TOOL_RUN_WORKERS_H_
