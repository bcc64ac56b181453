// SPDX-License-Identifier: Apache-2.0
//
// Files that the build installs beside the command: manual pages, and completions of shells.
#ifndef TUTTI_TOOL_DOCUMENTATION_DOCUMENTATION_H_
#define TUTTI_TOOL_DOCUMENTATION_DOCUMENTATION_H_

#include <string>
#include <vector>

#include "tool/command/command.h"

namespace tutti::tool {

/// Writes each file with what its name asks for. `paths` must have all that there are, so that a command that was added
/// is not forgotten where they are installed. Throws std::runtime_error.
void write_documentation(const Command &all, const std::vector<std::string> &paths);

}  // namespace tutti::tool

#endif  // TUTTI_TOOL_DOCUMENTATION_DOCUMENTATION_H_
