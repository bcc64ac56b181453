// SPDX-License-Identifier: Apache-2.0
//
// Metrics that are tensors: confusion matrices with what is confused most, and values by class.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "tool/report/html_text.h"
#include "tool/report/number_text.h"
#include "tool/report/run_sections.h"

namespace tutti::tool {

namespace {

using json = nlohmann::ordered_json;
using Matrix = std::vector<std::vector<double>>;

// More classes are not shown cell by cell.
constexpr size_t kMostClasses = 40, kMostConfusions = 10, kMostValues = 200;

/// Empty where it is no matrix of numbers.
Matrix matrix_of(const json &tensor) {
  Matrix rows;
  if (!tensor.is_array()) return {};
  for (const json &row : tensor) {
    if (!row.is_array() || row.size() != tensor.size()) return {};
    rows.emplace_back();
    for (const json &element : row) {
      if (!element.is_number() || element.get<double>() < 0) return {};
      rows.back().push_back(element.get<double>());
    }
  }
  return rows;
}

double sum_of(const std::vector<double> &row) {
  double sum = 0;
  for (const double element : row)
    sum += element;
  return sum;
}

std::string shaded_cell(double value, double row_sum, bool is_right) {
  char share_text[32];
  const double share = row_sum > 0 ? value / row_sum : 0;
  std::snprintf(share_text, sizeof share_text, "%.3f", share);
  const std::string kind = share == 0 ? "zero" : is_right ? "right" : "wrong";
  return "<td class=\"n " + kind + "\" style=\"--a:" + share_text + "\" data-value=\"" + json(value).dump() +
         "\" title=\"" + percent_text(share) + "\">" + escaped(value_text(value)) + "</td>";
}

std::string matrix_table(const Matrix &matrix, const std::string &name) {
  std::string html = "<div class=\"scroll\"><table class=\"matrix\"><caption>" + escaped(name) +
                     ": rows are the true classes, columns the predicted ones</caption><thead><tr><th scope=\"col\" "
                     "class=\"n\">true \\ predicted</th>";
  for (size_t j = 0; j < matrix.size(); ++j)
    html += "<th scope=\"col\" class=\"n\">" + std::to_string(j) + "</th>";
  html += "<th scope=\"col\" class=\"n\">Recall</th></tr></thead>\n<tbody>\n";
  for (size_t i = 0; i < matrix.size(); ++i) {
    const double sum = sum_of(matrix[i]);
    html += "<tr><th scope=\"row\" class=\"n\">" + std::to_string(i) + "</th>";
    for (size_t j = 0; j < matrix.size(); ++j)
      html += shaded_cell(matrix[i][j], sum, i == j);
    html += sum > 0 ? number_cell(matrix[i][i] / sum, percent_text(matrix[i][i] / sum)) : empty_cell();
    html += "</tr>\n";
  }
  return html + "</tbody></table></div>\n";
}

std::string most_confused(const Matrix &matrix) {
  struct Pair {
    double value;
    size_t target, prediction;
  };
  std::vector<Pair> pairs;
  for (size_t i = 0; i < matrix.size(); ++i)
    for (size_t j = 0; j < matrix.size(); ++j)
      if (i != j && matrix[i][j] > 0) pairs.push_back({matrix[i][j], i, j});
  std::stable_sort(pairs.begin(), pairs.end(), [](const Pair &a, const Pair &b) { return a.value > b.value; });
  if (pairs.size() > kMostConfusions) pairs.resize(kMostConfusions);
  HtmlTable table("Classes confused most", {">True class", ">Predicted class", ">Count", ">Share of the true class"});
  for (const Pair &pair : pairs) {
    const double share = pair.value / sum_of(matrix[pair.target]);
    table.add({number_cell(static_cast<double>(pair.target)), number_cell(static_cast<double>(pair.prediction)),
               number_cell(pair.value), number_cell(share, percent_text(share))});
  }
  return table.text();
}

std::string values_table(const json &tensor, const std::string &name) {
  HtmlTable table(name, {">Index", ">Value"});
  for (size_t i = 0; i < std::min(tensor.size(), kMostValues); ++i) {
    if (!tensor[i].is_number()) return "";
    table.add({number_cell(static_cast<double>(i)), number_cell(tensor[i].get<double>())});
  }
  return table.text();
}

std::string tensor_html(const json &tensor, const std::string &name) {
  const Matrix matrix = matrix_of(tensor);
  if (matrix.size() < 2)
    return tensor.is_array() ? "<h4>" + escaped(name) + "</h4>\n" + values_table(tensor, name) : "";
  std::string html = "<h4>" + escaped(name) + "</h4>\n";
  if (matrix.size() <= kMostClasses)
    html += matrix_table(matrix, name);
  else
    html += paragraph(std::to_string(matrix.size()) + " classes are too many for a table; these are confused most:");
  return html + most_confused(matrix);
}

}  // namespace

std::string tensors_html(const RunRecord &run) {
  for (auto line = run.evaluations.rbegin(); line != run.evaluations.rend(); ++line) {
    const json &tensors = value_at(*line, {"tensors"});
    if (!tensors.is_object() || tensors.empty()) continue;
    std::string html;
    for (const auto &[name, tensor] : tensors.items())
      html += tensor_html(tensor, name);
    if (!html.empty())
      return paragraph("Evaluation of step " + whole_text(number_at(*line, {"step"})) + " over " +
                       counted_text(number_at(*line, {"examples"}), "example") + ".") +
             html;
  }
  return "";
}

}  // namespace tutti::tool
