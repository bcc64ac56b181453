// SPDX-License-Identifier: Apache-2.0
//
// Manual pages in the language man of roff: the texts of the help, under the headings that such pages have. They name
// no day, so equal sources give equal pages.
#ifndef TUTTI_TOOL_DOCUMENTATION_MANUAL_PAGE_H_
#define TUTTI_TOOL_DOCUMENTATION_MANUAL_PAGE_H_

#include <string>

#include "tool/command/command.h"

namespace tutti::tool {

/// "tutti-dataset-convert".
std::string manual_name(const Command &command);

/// `all`: the command that has all others, for what is worth reading too.
std::string manual_page(const Command &command, const Command &all);

}  // namespace tutti::tool

#endif  // TUTTI_TOOL_DOCUMENTATION_MANUAL_PAGE_H_
