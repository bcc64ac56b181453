// SPDX-License-Identifier: Apache-2.0
#include "tool/report/run_sections.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "tool/console/table.h"
#include "tool/report/html_text.h"
#include "tool/report/input_advice.h"
#include "tool/report/number_text.h"
#include "tool/report/run_limits.h"

namespace tutti::tool {

namespace {

using json = nlohmann::ordered_json;

constexpr size_t kMostTrainings = 50;  // in the table

constexpr struct {
  const char *key, *title;
} kShares[] = {
    {"compute", "Compute"}, {"input", "Input"}, {"communication", "Communication"}, {"imbalance", "Imbalance"}};

std::string share_bar(const std::string &name, const double (&shares)[4]) {
  std::string bar, words;
  for (size_t i = 0; i < 4; ++i) {
    char width[32];
    std::snprintf(width, sizeof width, "%.2f", 100 * std::clamp(shares[i], 0.0, 1.0));
    words += (i == 0 ? "" : ", ") + std::string(kShares[i].title) + " " + percent_text(shares[i]);
    if (shares[i] > 0) bar += "<i class=\"p" + std::to_string(i) + "\" style=\"width:" + width + "%\"></i>";
  }
  return "<div class=\"split\"><span>" + escaped(name) + "</span><div role=\"img\" aria-label=\"" +
         escaped(name + ": " + words) + "\">" + bar + "</div></div>\n";
}

std::string share_legend() {
  std::string text = "<p class=\"legend\">";
  for (size_t i = 0; i < 4; ++i)
    text += "<span><i class=\"p" + std::to_string(i) + "\"></i>" + kShares[i].title + "</span>";
  return text + "</p>\n";
}

std::vector<std::string> share_cells(const std::string &name, const double (&shares)[4]) {
  std::vector<std::string> cells = {cell(name)};
  for (const double share : shares)
    cells.push_back(number_cell(share, percent_text(share)));
  return cells;
}

double compute_of(const json &device) {
  return std::max(
      0.0, 1 - number_at(device, {"input"}) - number_at(device, {"communication"}) - number_at(device, {"imbalance"}));
}

}  // namespace

std::string limits_html(const RunRecord &run) {
  const RunLimits all = limits_of(run);
  std::string html = paragraph(all.summary);
  for (const Limit &limit : all.limits) {
    html += "<article class=\"limit\"><h4>" + escaped(limit.title) + " <span class=\"badge " + name(limit.confidence) +
            "\">" + name(limit.confidence) + "</span></h4>\n" + paragraph(limit.explanation) + "<ul>";
    for (const std::string &advice : limit.advice)
      html += "<li>" + escaped(advice) + "</li>";
    html += "</ul></article>\n";
  }
  return html;
}

std::string steps_html(const RunRecord &run) {
  const json &report = value_at(run.last_training(), {"step_report"});
  if (number_at(report, {"steps"}) == 0) return "";
  const double mean[] = {number_at(report, {"compute"}), number_at(report, {"input"}),
                         number_at(report, {"communication"}), number_at(report, {"imbalance"})};
  HtmlTable table("Shares of the time of steps", {"Device", ">Compute", ">Input", ">Communication", ">Imbalance"});
  std::string bars = share_bar("all", mean);
  table.add(share_cells("all, mean", mean), "strong");
  for (const json &device : value_at(report, {"devices"})) {
    const double shares[] = {compute_of(device), number_at(device, {"input"}), number_at(device, {"communication"}),
                             number_at(device, {"imbalance"})};
    bars += share_bar(text_at(device, {"device"}), shares);
    table.add(share_cells(text_at(device, {"device"}), shares));
  }
  std::string text = "A step took " + milliseconds_text(1e3 * number_at(report, {"step_seconds"})) +
                     " on average over " + counted_text(number_at(report, {"steps"}), "step") +
                     " of the newest training. Input, communication and imbalance are waits: for batches, for other "
                     "replicas' gradients, and for the slowest replica.";
  return paragraph(text) + share_legend() + "<div class=\"splits\">\n" + bars + "</div>\n" + table.text();
}

std::string input_html(const RunRecord &run) {
  const json &report = value_at(run.last_training(), {"input_report"});
  if (!value_at(report, {"stages"}).is_array()) return "";
  const std::string limit = text_at(report, {"limit", "stage"});
  HtmlTable table("Stages of the input pipeline", {"Stage", ">Elements", ">Own work", ">Waited for input",
                                                   ">Waited for consumer", ">Threads", ">Elements ready"});
  for (const json &stage : value_at(report, {"stages"})) {
    const std::string name = text_at(stage, {"stage"});
    const auto level = static_cast<int>(std::clamp(number_at(stage, {"level"}), 0.0, 12.0));
    std::vector<std::string> cells = {
        "<td><span style=\"padding-left:" + std::to_string(level) + "em\">" + escaped(name) +
        (name == limit ? "</span> <span class=\"badge sure\">limits</span></td>" : "</span></td>")};
    if (value_at(stage, {"is_counted"}) == true) {
      cells.push_back(number_cell(number_at(stage, {"elements"})));
      for (const char *const key : {"busy_ms", "wait_in_ms", "wait_out_ms"})
        cells.push_back(number_cell(number_at(stage, {key}), milliseconds_text(number_at(stage, {key}))));
      cells.push_back(number_at(stage, {"threads"}) > 0 ? number_cell(number_at(stage, {"threads"})) : empty_cell());
      cells.push_back(value_at(stage, {"mean_depth"}).is_number() ? number_cell(number_at(stage, {"mean_depth"}))
                                                                  : empty_cell());
    } else {
      cells.insert(cells.end(), 6, empty_cell());
    }
    table.add(cells, name == limit ? "strong" : "");
  }
  return paragraph(input_sentence(report)) + table.text() +
         paragraph(
             "Newest pass over the data, from the last transform to the sources; a stage draws from what is indented "
             "below it. Times of a stage with threads are those of each.",
             "note");
}

std::string profile_html(const RunRecord &run) {
  if (run.profile.is_null()) return "";
  HtmlTable devices("Devices in the profile", {"Device", ">Busy", ">Idle", ">Kernels"});
  for (const json &device : value_at(run.profile, {"devices"}))
    devices.add({cell(text_at(device, {"device"})), bar_cell(number_at(device, {"utilisation"})),
                 number_cell(number_at(device, {"idle"}), percent_text(number_at(device, {"idle"}))),
                 number_cell(number_at(device, {"kernels"}))});
  HtmlTable replicas("Steps by replica",
                     {"Replica", ">Steps", ">Step", ">Compute", ">Input", ">Communication", ">Host"});
  for (const json &replica : value_at(run.profile, {"replicas"})) {
    std::vector<std::string> cells = {cell(text_at(replica, {"replica"})), number_cell(number_at(replica, {"steps"}))};
    for (const char *const key : {"step_ms", "compute_ms", "input_ms", "communication_ms", "host_ms"})
      cells.push_back(number_cell(number_at(replica, {key}), milliseconds_text(number_at(replica, {key}))));
    replicas.add(cells);
  }
  HtmlTable layers("Time of a step by layer", {"Layer", ">Forward", ">Backward", ">Update", ">Share"});
  for (const json &layer : value_at(run.profile, {"layers"})) {
    std::vector<std::string> cells = {cell(text_at(layer, {"layer"}))};
    for (const char *const key : {"forward_ms", "backward_ms", "update_ms"})
      cells.push_back(number_cell(number_at(layer, {key}), milliseconds_text(number_at(layer, {key}))));
    cells.push_back(bar_cell(number_at(layer, {"share"})));
    layers.add(cells);
  }
  const std::string text = "Profile of " + counted_text(number_at(run.profile, {"steps"}), "step") + " in " +
                           seconds_text(number_at(run.profile, {"seconds"})) +
                           ": times are means of a step, the most expensive layer first.";
  return paragraph(text) + layers.text() + devices.text() + replicas.text();
}

std::string memory_html(const RunRecord &run) {
  constexpr struct {
    const char *key, *title;
  } kRows[] = {{"resident", "Process, now"},
               {"most_resident", "Process, at most"},
               {"weights", "Weights, each copy"},
               {"slots", "Optimizer's slots, each copy"},
               {"partials", "Gradients and other sums of a step"},
               {"workspace", "Intermediate results of a replica, at most"}};
  HtmlTable table("Bytes of the process, and of the model on the devices", {"What", ">Bytes"});
  const json &memory = value_at(run.last_training(), {"memory"});
  for (const auto &[key, title] : kRows)
    if (value_at(memory, {key}).is_number())
      table.add({cell(title), number_cell(number_at(memory, {key}), readable_bytes(number_at(memory, {key})))});
  return table.text();
}

std::string trainings_html(const RunRecord &run) {
  HtmlTable table("Each training in this folder",
                  {"Ended", "Reason", ">From step", ">To step", ">Time", ">Examples per second", ">Loss"});
  std::string errors;
  const size_t first = run.trainings.size() - std::min(run.trainings.size(), kMostTrainings);
  for (size_t i = first; i < run.trainings.size(); ++i) {
    const json &training = run.trainings[i];
    const double seconds = number_at(training, {"seconds"}), examples = number_at(training, {"examples"});
    std::string reason = text_at(training, {"reason"});
    std::transform(reason.begin(), reason.end(), reason.begin(),
                   [](unsigned char c) { return c == '_' ? ' ' : static_cast<char>(std::tolower(c)); });
    table.add({cell(date_text(number_at(training, {"time"}))), cell(reason),
               number_cell(number_at(training, {"first_step"})), number_cell(number_at(training, {"step"})),
               number_cell(seconds, seconds_text(seconds)),
               seconds > 0 ? number_cell(examples / seconds) : empty_cell(),
               value_at(training, {"loss"}).is_number() ? number_cell(number_at(training, {"loss"})) : empty_cell()});
    if (!text_at(training, {"error"}).empty()) errors = text_at(training, {"error"});
  }
  if (!errors.empty()) errors = "<pre class=\"error\">" + escaped(errors) + "</pre>\n";
  const std::string more =
      first == 0 ? "" : counted_text(static_cast<double>(first), "earlier training") + " in the record.";
  return paragraph(more, "note") + table.text() + errors;
}

std::string variables_html(const RunRecord &run) {
  HtmlTable table("Variables", {"Variable", "Type", "Shape", ">Parameters", "Trained"});
  const json &variables = value_at(run.last_training(), {"variables"});
  double parameters = 0;
  for (const json &variable : variables) {
    std::string shape;
    for (const json &dim : value_at(variable, {"shape"}))
      shape += (shape.empty() ? "" : " × ") + dim.dump();
    parameters += number_at(variable, {"parameters"});
    table.add({cell(text_at(variable, {"name"})), cell(text_at(variable, {"dtype"})),
               cell(shape.empty() ? "scalar" : shape), number_cell(number_at(variable, {"parameters"})),
               cell(value_at(variable, {"trainable"}) == true ? "yes" : "no")});
  }
  if (table.is_empty()) return "";
  return details(
      counted_text(static_cast<double>(variables.size()), "variable") + ", " + counted_text(parameters, "parameter"),
      table.text());
}

}  // namespace tutti::tool
