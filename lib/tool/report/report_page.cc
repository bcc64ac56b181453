// SPDX-License-Identifier: Apache-2.0
#include "tool/report/report_page.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include "tool/report/comparison.h"
#include "tool/report/html_text.h"
#include "tool/report/number_text.h"
#include "tool/report/run_sections.h"

namespace tutti::tool {

namespace {

using json = nlohmann::ordered_json;

// Points of all curves together, of which each has an equal part, but not more than so many.
constexpr size_t kMostPoints = 24000, kMostOfCurve = 1000, kLeastOfCurve = 40;

/// The number that the fewest digits tell: an f32 as a double has many that mean nothing.
json number_in_json(float value) {
  if (!std::isfinite(value)) return std::isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity";
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  double number = 0;
  std::from_chars(text, end, number);
  return number;
}

json curves_of(const Curves &curves, size_t most) {
  json all = json::object();
  for (const auto &[tag, points] : curves) {
    json steps = json::array(), values = json::array();
    for (const CurvePoint &point : thinned(points, most)) {
      steps.push_back(point.step);
      values.push_back(number_in_json(point.value));
    }
    all[tag] = {std::move(steps), std::move(values)};
  }
  return all;
}

json page_data(const std::vector<RunRecord> &runs) {
  size_t curves = 0;
  for (const RunRecord &run : runs)
    curves += run.training.size() + run.evaluation.size();
  const size_t most = std::clamp(kMostPoints / std::max<size_t>(1, curves), kLeastOfCurve, kMostOfCurve);
  json all = json::array();
  for (const RunRecord &run : runs)
    all.push_back({{"name", run.name},
                   {"training", curves_of(run.training, most)},
                   {"evaluation", curves_of(run.evaluation, most)}});
  return {{"runs", std::move(all)}};
}

std::string page_heading(const std::vector<RunRecord> &runs) {
  std::string html = "<header>\n<p class=\"kind\">tutti " +
                     std::string(runs.size() == 1 ? "run report" : "comparison of runs") + "</p>\n<h1>";
  for (size_t i = 0; i < runs.size(); ++i)
    html += (i == 0 ? "" : " <span class=\"versus\">·</span> ") + std::string("<span") +
            (runs.size() > 1 ? " class=\"run s" + std::to_string(i % 8) + "\"" : "") + ">" + escaped(runs[i].name) +
            "</span>";
  html += "</h1>\n";
  if (runs.size() == 1) {
    const json &training = runs.front().last_training();
    std::string text = runs.front().folder;
    if (number_at(training, {"time"}) > 0) text += " · trained " + date_text(number_at(training, {"time"}));
    if (!text_at(training, {"environment", "version"}).empty())
      text += " · tutti " + text_at(training, {"environment", "version"});
    html += paragraph(text, "sub");
  }
  return html + "</header>\n";
}

/// Of each run that has something, below its name where there are several.
std::string of_each(const std::vector<RunRecord> &runs, std::string (*part)(const RunRecord &)) {
  std::string html;
  for (size_t i = 0; i < runs.size(); ++i) {
    const std::string own = part(runs[i]);
    if (own.empty()) continue;
    if (runs.size() > 1)
      html += "<h3 class=\"run s" + std::to_string(i % 8) + "\">" + escaped(runs[i].name) + "</h3>\n";
    html += own;
  }
  return html;
}

std::string notes_html(const RunRecord &run) {
  std::string html;
  for (const std::string &note : run.notes)
    html += "<li>" + escaped(note) + "</li>\n";
  return html.empty() ? html : "<ul class=\"notes\">\n" + html + "</ul>\n";
}

std::string curves_html(const std::vector<RunRecord> &runs) {
  const bool any = std::any_of(runs.begin(), runs.end(),
                               [](const RunRecord &run) { return !run.training.empty() || !run.evaluation.empty(); });
  if (!any) return "";
  return "<div class=\"tools\"><label>Smoothing <input id=\"smoothing\" type=\"range\" min=\"0\" max=\"0.99\" "
         "step=\"0.01\" value=\"0.6\"> <output id=\"smoothed\">0.60</output></label>\n"
         "<label><input id=\"logarithmic\" type=\"checkbox\"> Logarithmic scale</label></div>\n"
         "<p class=\"legend\" id=\"legend\"></p>\n<div class=\"charts\" id=\"charts\"></div>\n"
         "<noscript><p>The curves are drawn by a script in this page, which this browser does not "
         "run.</p></noscript>\n";
}

struct PagePart {
  const char *id, *title;
  std::string html;
};

std::vector<PagePart> parts_of(const std::vector<RunRecord> &runs) {
  return {{"curves", "Curves", curves_html(runs)},
          {"results", "Results", results_html(runs)},
          {"confusion", "Classes", of_each(runs, tensors_html)},
          {"limits", "What limits the run", of_each(runs, limits_html)},
          {"steps", "Where the time of steps goes", of_each(runs, steps_html)},
          {"input", "Input pipeline", of_each(runs, input_html)},
          {"layers", "Layers", of_each(runs, profile_html)},
          {"memory", "Memory", of_each(runs, memory_html)},
          {"trainings", "Trainings", of_each(runs, trainings_html)},
          {"options", "Options", options_html(runs)},
          {"environment", "Model and environment", environment_html(runs) + of_each(runs, variables_html)},
          {"notes", "Notes", of_each(runs, notes_html)}};
}

}  // namespace

std::string report_page(const std::vector<RunRecord> &runs) {
  std::string title, navigation, sections;
  for (const RunRecord &run : runs)
    title += (title.empty() ? "" : ", ") + run.name;
  for (const PagePart &part : parts_of(runs)) {
    if (part.html.empty()) continue;
    navigation += "<a href=\"#" + std::string(part.id) + "\">" + part.title + "</a>\n";
    sections += section(part.id, part.title, part.html);
  }
  return "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
         "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
         "script-src "
         "'unsafe-inline'\">\n"
         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
         "<meta name=\"color-scheme\" content=\"light dark\">\n<title>" +
         escaped(title) + " – tutti report</title>\n<style>\n" + kPageStyle + "</style>\n</head>\n<body>\n" +
         page_heading(runs) + (runs.size() == 1 ? tiles_html(runs.front()) : "") + "<nav>\n" + navigation +
         "</nav>\n<main>\n" + sections + "</main>\n<script type=\"application/json\" id=\"data\">" +
         json_text(page_data(runs)) + "</script>\n<script>\n" + kPageScript + "</script>\n</body>\n</html>\n";
}

}  // namespace tutti::tool
