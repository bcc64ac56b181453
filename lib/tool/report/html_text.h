// SPDX-License-Identifier: Apache-2.0
//
// Pieces of an HTML page, as texts. What comes from runs (names, options, errors) goes through escaped() or
// json_text().
//
//   HtmlTable table("layers", {"layer", ">ms"});             // '>' in front: a column of numbers
//   table.add({cell(name), number_cell(1.5, "1.50")});
//   page += section("layers", "Layers", table.text());
#ifndef TUTTI_TOOL_REPORT_HTML_TEXT_H_
#define TUTTI_TOOL_REPORT_HTML_TEXT_H_

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace tutti::tool {

/// As text and as a value in quotes of either kind. Control characters, which HTML lacks, become U+FFFD.
std::string escaped(std::string_view text);
/// JSON that is safe in a script element.
std::string json_text(const nlohmann::ordered_json &value);

/// <td>text</td>, the text escaped.
std::string cell(std::string_view text);
/// A cell of a number: what people read, and the number itself in data-value.
std::string number_cell(double value, std::string_view text);
std::string number_cell(double value);
/// For "no value".
std::string empty_cell();
/// A share as a bar with its percentage behind it.
std::string bar_cell(double share);

class HtmlTable {
 public:
  /// Titles of the columns, escaped; `caption` is for who does not see the page.
  HtmlTable(std::string_view caption, std::vector<std::string> columns);
  /// Cells, as above. `row_class`: "" = none.
  void add(const std::vector<std::string> &cells, std::string_view row_class = "");
  bool is_empty() const { return rows_.empty(); }
  /// In a box that scrolls sideways by itself.
  std::string text() const;

 private:
  std::string head_, rows_;
};

std::string paragraph(std::string_view text, std::string_view html_class = "");
/// A part of the page with an anchor; `html` as it is, nothing where that is empty.
std::string section(std::string_view id, std::string_view title, const std::string &html);
/// What is folded away at first.
std::string details(std::string_view title, const std::string &html);

}  // namespace tutti::tool

#endif  // TUTTI_TOOL_REPORT_HTML_TEXT_H_
