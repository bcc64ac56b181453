// SPDX-License-Identifier: Apache-2.0
#include "tool/model/inspect_checkpoint.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <numeric>

#include "tool/command/command_list.h"
#include "tool/console/table.h"
#include "tool/console/usage_error.h"

namespace tutti::tool {

namespace {

using json = nlohmann::ordered_json;

int64_t element_count(const Variable &variable) {
  return std::accumulate(variable.shape.begin(), variable.shape.end(), int64_t{1}, std::multiplies<>());
}

/// Variables of one kind.
struct Total {
  std::string kind;
  int64_t variables = 0, elements = 0, bytes = 0;
};

/// In the order of the variables, which stand together by kind.
std::vector<Total> totals_of(const CheckpointContent &checkpoint) {
  std::vector<Total> totals;
  for (const Variable &variable : checkpoint.variables) {
    if (totals.empty() || totals.back().kind != variable.kind) totals.push_back({variable.kind});
    ++totals.back().variables;
    totals.back().elements += element_count(variable);
    totals.back().bytes += variable.bytes;
  }
  return totals;
}

json totals_json(const CheckpointContent &checkpoint) {
  json totals = json::object();
  for (const Total &total : totals_of(checkpoint))
    totals[total.kind] = {{"variables", total.variables}, {"elements", total.elements}, {"bytes", total.bytes}};
  return totals;
}

json variables_json(const CheckpointContent &checkpoint) {
  json variables = json::array();
  for (const Variable &variable : checkpoint.variables) {
    variables.push_back({{"name", variable.name},
                         {"kind", variable.kind},
                         {"dtype", variable.dtype},
                         {"shape", variable.shape},
                         {"bytes", variable.bytes}});
  }
  return variables;
}

json files_json(const CheckpointContent &checkpoint) {
  json files = json::array();
  for (const CheckpointFile &file : checkpoint.files)
    files.push_back({{"name", file.name}, {"bytes", file.bytes}});
  return files;
}

/// Nothing where the manifest is silent about it.
json of_run(const CheckpointContent &checkpoint, const char *key) {
  const json run = checkpoint.manifest.value("run", json());
  return run.is_object() ? run.value(key, json()) : json();
}

void print_variables(const CheckpointContent &checkpoint) {
  Table table({"variable", "kind", "dtype", "shape", ">elements", ">bytes"});
  for (const Variable &variable : checkpoint.variables) {
    table.add({variable.name, variable.kind, variable.dtype, shape_text(variable.shape),
               with_commas(element_count(variable)), with_commas(variable.bytes)});
  }
  for (const Total &total : totals_of(checkpoint)) {
    table.add({"total of " + with_commas(total.variables), total.kind, "", "", with_commas(total.elements),
               with_commas(total.bytes)});
  }
  table.print();
}

/// The members of an object, a line for each; nothing for what is no object.
void print_members(const char *title, const json &object) {
  if (!object.is_object() || object.empty()) return;
  std::printf("\n%s\n", title);
  size_t width = 0;
  for (const auto &[name, value] : object.items())
    width = std::max(width, name.size());
  for (const auto &[name, value] : object.items()) {
    std::printf("  %-*s  %s\n", static_cast<int>(width), name.c_str(),
                value.is_string() ? value.get<std::string>().c_str() : value.dump().c_str());
  }
}

/// The run options by name, "(default)" behind those that the program has not set; of older checkpoints, or of programs
/// that said nothing of them, what decides how a training goes on.
json options_of(const json &manifest) {
  const json kept = manifest.value("options", json::object());
  if (!kept.contains("options")) return kept;
  json shown = json::object();
  for (const auto &[name, option] : kept["options"].items()) {
    const json &value = option["value"];
    const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
    shown[name] = option["origin"] == "set" ? text : (text + " (default)");
  }
  return shown;
}

int inspect_checkpoint(const std::string &path, bool as_json) {
  const CheckpointContent checkpoint = read_checkpoint(path);
  if (as_json) {
    print_json(checkpoint_json(checkpoint));
  } else {
    print_checkpoint(checkpoint);
  }
  return EXIT_SUCCESS;
}

}  // namespace

std::string shape_text(const json &shape) {
  std::string text;
  for (const json &dim : shape)
    text += (text.empty() ? "" : ", ") + (dim.is_string() ? dim.get<std::string>() : dim.dump());
  return "[" + text + "]";
}

void print_json(const json &value) {
  std::printf("%s\n", value.dump(1, ' ', false, json::error_handler_t::replace).c_str());
}

json checkpoint_json(const CheckpointContent &checkpoint) {
  json all = {{"path", checkpoint.path}};
  const bool has_manifest = checkpoint.manifest.is_object();
  if (has_manifest) {
    all["step"] = checkpoint.manifest.at("step");
    all["epoch"] = of_run(checkpoint, "epoch");
    all["examples"] = of_run(checkpoint, "examples");
  }
  all["bytes"] = checkpoint.bytes_of("");
  all["totals"] = totals_json(checkpoint);
  all["variables"] = variables_json(checkpoint);
  if (has_manifest) {
    for (const char *key : {"options", "metrics", "run"})
      all[key] = checkpoint.manifest.value(key, json());
  }
  all["files"] = files_json(checkpoint);
  return all;
}

void print_checkpoint(const CheckpointContent &checkpoint) {
  std::string line = checkpoint.path;
  if (checkpoint.manifest.is_object()) {
    line += ": step " + checkpoint.manifest.at("step").dump();
    if (const json epoch = of_run(checkpoint, "epoch"); !epoch.is_null()) line += ", epoch " + epoch.dump();
    if (const json examples = of_run(checkpoint, "examples"); examples.is_number_integer())
      line += ", " + with_commas(examples.get<int64_t>()) + " examples";
  }
  std::printf("%s\n", line.c_str());
  print_variables(checkpoint);
  if (!checkpoint.manifest.is_object()) return;
  print_members("options", options_of(checkpoint.manifest));
  print_members("metrics", checkpoint.manifest.value("metrics", json()));
}

Command inspect_checkpoint_command() {
  const auto as_json = std::make_shared<bool>(false);
  Command command("inspect checkpoint", "lists the variables of a checkpoint");
  command.set_details(
      "Shown are names, types, shapes and bytes, the step, and the options and metrics of the training. Weights are "
      "what "
      "a model predicts with; slots are what its optimizer keeps for each of them; averages are "
      "moving "
      "averages of weights. The sizes of files are checked, their checksums are not.");
  command.add_argument({"PATH",
                        "a checkpoint, a directory of them (the one with the highest step), or a file in the "
                        "safetensors format"});
  command.add_flag(*as_json, {"--json", "", "print JSON instead of tables"});
  command.set_example("tutti inspect checkpoint model/checkpoint-1200");
  command.set_run([as_json](const std::vector<std::string> &words) {
    if (words.empty()) throw UsageError{"no checkpoint given"};
    return inspect_checkpoint(words.front(), *as_json);
  });
  return command;
}

}  // namespace tutti::tool
