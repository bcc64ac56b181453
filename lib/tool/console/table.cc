// SPDX-License-Identifier: Apache-2.0
#include "tool/console/table.h"

#include <algorithm>
#include <cstdio>

namespace tutti::tool {

namespace {

/// Characters of a UTF-8 text, as a terminal counts them (wide ones aside).
size_t width(const std::string &text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

}  // namespace

Table::Table(std::vector<std::string> columns) {
  for (std::string &name : columns) {
    is_number_.push_back(!name.empty() && name.front() == '>');
    if (is_number_.back()) name.erase(0, 1);
  }
  rows_.push_back(std::move(columns));
}

void Table::print() const {
  std::vector<size_t> widths(is_number_.size());
  for (const auto &row : rows_) {
    for (size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], width(row[i]));
  }
  for (const auto &row : rows_) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      if (widths[i] == 0) continue;
      const std::string padding(widths[i] - width(row[i]), ' ');
      line += (is_number_[i] ? padding + row[i] : row[i] + padding) + "  ";
    }
    line.erase(line.find_last_not_of(' ') + 1);
    std::printf("%s\n", line.c_str());
  }
}

std::string with_commas(int64_t number) {
  std::string text = std::to_string(number);
  const size_t first = text.front() == '-' ? 1 : 0;
  for (size_t i = text.size(); i > first + 3; i -= 3)
    text.insert(i - 3, ",");
  return text;
}

std::string readable(double number) {
  char text[40];
  std::snprintf(text, sizeof text, "%.4g", number);
  return text;
}

std::string readable_bytes(double bytes) {
  static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB"};
  size_t unit = 0;
  for (; bytes >= 1000 && unit + 1 < std::size(units); ++unit)
    bytes /= 1000;
  char text[40];
  std::snprintf(text, sizeof text, bytes < 10 && unit > 0 ? "%.1f %s" : "%.0f %s", bytes, units[unit]);
  return text;
}

}  // namespace tutti::tool
