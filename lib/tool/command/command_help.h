// SPDX-License-Identifier: Apache-2.0
//
// The help of a command, for a terminal of 80 columns: its usage, what it is about, its arguments and options, or the
// commands that it has, and an example.
#ifndef TUTTI_TOOL_COMMAND_COMMAND_HELP_H_
#define TUTTI_TOOL_COMMAND_COMMAND_HELP_H_

#include <string>
#include <vector>

#include "tool/command/command.h"

namespace tutti::tool {

std::string help_text(const Command &command);

/// "  --rows N            rows of the batch": names, and what they are, in lines.
std::string help_entry(const std::string &names, const std::string &description);
/// The description of an option with the words of its value and its default, as manual pages have it too.
std::string described(const OptionText &option);
/// The titles of a command's sections, in order.
std::vector<std::string> section_titles(const Command &command);
/// The parts of a text between its empty lines.
std::vector<std::string> paragraphs_of(const std::string &text);
/// Whether a paragraph is to be shown as it is.
bool is_verbatim(const std::string &paragraph);

}  // namespace tutti::tool

#endif  // TUTTI_TOOL_COMMAND_COMMAND_HELP_H_
