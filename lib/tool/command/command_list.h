// SPDX-License-Identifier: Apache-2.0
//
// All commands: one function for each, and the command `tutti` that has them.
#ifndef TUTTI_TOOL_COMMAND_COMMAND_LIST_H_
#define TUTTI_TOOL_COMMAND_COMMAND_LIST_H_

#include "tool/command/command.h"

namespace tutti::tool {

/// The command `tutti`, with all others.
Command all_commands();

Command bench_command();
Command dataset_command();
Command devices_command();
Command evaluate_command();
Command export_command();
Command explain_command();
Command inspect_checkpoint_command();
Command inspect_model_command();
Command compile_command();
Command inspect_plan_command();
Command options_command();
Command predict_command();
Command report_command();
Command run_command();
Command train_command();

}  // namespace tutti::tool

#endif  // TUTTI_TOOL_COMMAND_COMMAND_LIST_H_
