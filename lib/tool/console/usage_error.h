// SPDX-License-Identifier: Apache-2.0
//
// What is thrown where a command line is wrong: the command ends with status 2.
#ifndef TUTTI_TOOL_CONSOLE_USAGE_ERROR_H_
#define TUTTI_TOOL_CONSOLE_USAGE_ERROR_H_

#include <string>

namespace tutti::tool {

/// Wrong arguments: `text` says how.
struct UsageError {
  std::string text;
  bool wants_usage = true;  // the command's usage is printed behind it
};

}  // namespace tutti::tool

#endif  // TUTTI_TOOL_CONSOLE_USAGE_ERROR_H_
