// SPDX-License-Identifier: Apache-2.0
#include "tool/report/html_text.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "tool/report/number_text.h"

namespace tutti::tool {

namespace {

using json = nlohmann::ordered_json;

/// The length of the UTF-8 sequence at the beginning of a text; 0 where there is none that is whole.
size_t sequence_length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const size_t length = byte(0) < 0x80                      ? 1
                        : byte(0) >= 0xC2 && byte(0) < 0xE0 ? 2
                        : byte(0) >= 0xE0 && byte(0) < 0xF0 ? 3
                        : byte(0) >= 0xF0 && byte(0) < 0xF5 ? 4
                                                            : 0;
  if (length == 0 || length > text.size()) return 0;
  for (size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xC0) != 0x80) return 0;
  return length;
}

bool is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return (byte < 0x20 && c != '\n' && c != '\t') || byte == 0x7F;
}

std::string with_class(std::string_view html_class) {
  return html_class.empty() ? std::string() : " class=\"" + std::string(html_class) + "\"";
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string all;
  while (!text.empty()) {
    const size_t length = sequence_length(text);
    const char c = text.front();
    if (length == 0 || is_control(c)) {
      all += "\xEF\xBF\xBD";
    } else if (c == '&') {
      all += "&amp;";
    } else if (c == '<') {
      all += "&lt;";
    } else if (c == '>') {
      all += "&gt;";
    } else if (c == '"') {
      all += "&quot;";
    } else if (c == '\'') {
      all += "&#39;";
    } else {
      all += text.substr(0, length);
    }
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return all;
}

std::string json_text(const json &value) {
  std::string all;
  for (const char c : value.dump(-1, ' ', true, json::error_handler_t::replace)) {  // ASCII alone
    if (c == '<' || c == '>' || c == '&') {
      char code[8];
      std::snprintf(code, sizeof code, "\\u%04x", static_cast<unsigned>(c));
      all += code;
    } else {
      all += c;
    }
  }
  return all;
}

std::string cell(std::string_view text) { return "<td>" + escaped(text) + "</td>"; }

std::string number_cell(double value, std::string_view text) {
  const std::string exact = std::isfinite(value) ? json(value).dump()
                            : std::isnan(value)  ? "NaN"
                            : value > 0          ? "Infinity"
                                                 : "-Infinity";
  return "<td class=\"n\" data-value=\"" + exact + "\">" + escaped(text) + "</td>";
}

std::string number_cell(double value) { return number_cell(value, value_text(value)); }

std::string empty_cell() { return "<td class=\"n none\">–</td>"; }

std::string bar_cell(double share) {
  char width[32];
  std::snprintf(width, sizeof width, "%.1f", 100 * std::clamp(share, 0.0, 1.0));
  return "<td class=\"n share\" data-value=\"" + json(share).dump() +
         "\"><span class=\"bar\"><i style=\"width:" + width + "%\"></i></span><span class=\"percent\">" +
         percent_text(share) + "</span>" + "</td>";
}

HtmlTable::HtmlTable(std::string_view caption, std::vector<std::string> columns) {
  head_ = "<caption>" + escaped(caption) + "</caption><thead><tr>";
  for (const std::string &column : columns) {
    const bool is_number = !column.empty() && column.front() == '>';
    head_ += "<th scope=\"col\"" + with_class(is_number ? "n" : "") + ">" +
             escaped(std::string_view(column).substr(is_number ? 1 : 0)) + "</th>";
  }
  head_ += "</tr></thead>\n";
}

void HtmlTable::add(const std::vector<std::string> &cells, std::string_view row_class) {
  rows_ += "<tr" + with_class(row_class) + ">";
  for (const std::string &cell : cells)
    rows_ += cell;
  rows_ += "</tr>\n";
}

std::string HtmlTable::text() const {
  if (rows_.empty()) return "";
  return "<div class=\"scroll\"><table>" + head_ + "<tbody>\n" + rows_ + "</tbody></table></div>\n";
}

std::string paragraph(std::string_view text, std::string_view html_class) {
  return text.empty() ? std::string() : "<p" + with_class(html_class) + ">" + escaped(text) + "</p>\n";
}

std::string section(std::string_view id, std::string_view title, const std::string &html) {
  if (html.empty()) return "";
  return "<section id=\"" + std::string(id) + "\">\n<h2>" + escaped(title) + "</h2>\n" + html + "</section>\n";
}

std::string details(std::string_view title, const std::string &html) {
  if (html.empty()) return "";
  return "<details><summary>" + escaped(title) + "</summary>\n" + html + "</details>\n";
}

}  // namespace tutti::tool
