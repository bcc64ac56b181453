// SPDX-License-Identifier: Apache-2.0
//
// Completion of commands, options and values in shells, made of the texts of the commands: scripts that the shells read
// from the directories of their vendors, under the names tutti (bash), _tutti (zsh) and tutti.fish.
#ifndef TUTTI_TOOL_DOCUMENTATION_COMPLETION_H_
#define TUTTI_TOOL_DOCUMENTATION_COMPLETION_H_

#include <string>
#include <vector>

#include "tool/command/command.h"

namespace tutti::tool {

/// `all`: the command that has all others.
std::string bash_completion(const Command &all);
std::string zsh_completion(const Command &all);
std::string fish_completion(const Command &all);

/// What shells show beside a word: the beginning of a description, up to its first stop, in one line.
std::string short_description(const std::string &description);
/// Whether the option's value is the name of a file.
bool takes_file(const OptionText &option);
/// "fast repeatable invariant".
std::string word_list(const std::vector<std::string> &words);

}  // namespace tutti::tool

#endif  // TUTTI_TOOL_DOCUMENTATION_COMPLETION_H_
