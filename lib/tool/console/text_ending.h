// SPDX-License-Identifier: Apache-2.0
//
// Whether a text, such as the path of a file, has an ending; the standard library says so from C++20 on.
#ifndef TUTTI_TOOL_CONSOLE_TEXT_ENDING_H_
#define TUTTI_TOOL_CONSOLE_TEXT_ENDING_H_

#include <string_view>

namespace tutti::tool {

inline bool has_ending(std::string_view text, std::string_view ending) {
  return text.size() >= ending.size() && text.substr(text.size() - ending.size()) == ending;
}

}  // namespace tutti::tool

#endif  // TUTTI_TOOL_CONSOLE_TEXT_ENDING_H_
