// SPDX-License-Identifier: Apache-2.0
//
// Tables for a terminal: columns as wide as their widest text, empty columns left out.
#ifndef TUTTI_TOOL_CONSOLE_TABLE_H_
#define TUTTI_TOOL_CONSOLE_TABLE_H_

#include <cstdint>
#include <string>
#include <vector>

namespace tutti::tool {

class Table {
 public:
  /// The names of the columns; those marked by '>' in front hold numbers, which end where their column ends.
  explicit Table(std::vector<std::string> columns);
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  /// To standard output.
  void print() const;

 private:
  std::vector<bool> is_number_;
  std::vector<std::vector<std::string>> rows_;  // the names first
};

/// "1,234,567".
std::string with_commas(int64_t number);
/// A number with so many digits that it can be told from its neighbours: "0.2861", "12.5", "1.2e+09".
std::string readable(double number);
/// "12.3 MB".
std::string readable_bytes(double bytes);

}  // namespace tutti::tool

#endif  // TUTTI_TOOL_CONSOLE_TABLE_H_
