// SPDX-License-Identifier: Apache-2.0
//
// Names in messages: those that there are, and the one that was probably meant.
#ifndef TUTTI_TOOL_CONSOLE_NAME_SUGGESTIONS_H_
#define TUTTI_TOOL_CONSOLE_NAME_SUGGESTIONS_H_

#include <string>
#include <vector>

namespace tutti::tool {

/// ", did you mean 'resize'?" when one of the names is near; else "".
std::string did_you_mean(const std::string &name, const std::vector<std::string> &names);
/// The same, or "; known: a, b, c" when none is near.
std::string nearest_or_all(const std::string &name, const std::vector<std::string> &names);
bool is_among(const std::string &name, const std::vector<std::string> &names);
/// "a, b, c".
std::string listed(const std::vector<std::string> &names);
/// "a, b or c".
std::string alternatives(const std::vector<std::string> &names);

}  // namespace tutti::tool

#endif  // TUTTI_TOOL_CONSOLE_NAME_SUGGESTIONS_H_
