// SPDX-License-Identifier: Apache-2.0
//
// Numbers as people read them in reports.
#ifndef TUTTI_TOOL_REPORT_NUMBER_TEXT_H_
#define TUTTI_TOOL_REPORT_NUMBER_TEXT_H_

#include <string>

namespace tutti::tool {

/// "12.3 %"; of 0.123.
std::string percent_text(double share);
/// "1 h 3 min", "2 min 5 s", "12.3 s", "4.20 ms", "17.0 µs".
std::string seconds_text(double seconds);
std::string milliseconds_text(double milliseconds);
/// "12,345", of a number without a fraction.
std::string whole_text(double number);
/// "1 step", "12 steps".
std::string counted_text(double number, const std::string &thing);
/// Four digits that count, "0.0001234" or "1.234e-09"; from 1,000 to 15 digits the whole number.
std::string value_text(double number);
/// "2026-11-29 23:12 UTC"; of seconds since 1970.
std::string date_text(double seconds);

}  // namespace tutti::tool

#endif  // TUTTI_TOOL_REPORT_NUMBER_TEXT_H_
