// SPDX-License-Identifier: Apache-2.0
#include "tool/report/run_record.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <stdexcept>

namespace tutti::tool {

namespace {

namespace fs = std::filesystem;
using json = nlohmann::ordered_json;

const json kNull;

bool makes_steps(const json &training) { return number_at(training, {"step"}) > number_at(training, {"first_step"}); }

/// Of a training that is not the one looked at, its results alone are kept: there may be thousands.
void shorten(json &training) {
  for (const char *const part :
       {"input_report", "options", "settings", "environment", "variables", "memory", "execution"})
    training.erase(part);
}

/// The newest that made steps, or the newest of all where none has, stays whole.
void add_training(json line, json &trainings) {
  const auto newest = std::find_if(trainings.rbegin(), trainings.rend(), makes_steps);
  if (newest != trainings.rend() && !makes_steps(line)) {
    shorten(line);
  } else {
    for (auto former = trainings.rbegin(); former != trainings.rend(); ++former) {
      shorten(*former);
      if (former == newest) break;
    }
  }
  trainings.push_back(std::move(line));
}

/// The newest matrices stay.
void add_evaluation(json line, json &evaluations) {
  const json &tensors = value_at(line, {"tensors"});
  if (!evaluations.empty() && tensors.is_object() && !tensors.empty())
    for (auto former = evaluations.rbegin(); former != evaluations.rend() && former->erase("tensors") > 0;)
      ++former;
  evaluations.push_back(std::move(line));
}

/// False where there is no such file.
bool read_record(const std::string &path, RunRecord &run) {
  std::ifstream file(path);
  if (!file) return false;
  int64_t number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    json object = json::parse(line, nullptr, false);
    const std::string event = text_at(object, {"event"});
    if (event == "training") {
      add_training(std::move(object), run.trainings);
    } else if (event == "evaluation") {
      add_evaluation(std::move(object), run.evaluations);
    } else if (object.is_discarded() || event.empty()) {
      run.notes.push_back("line " + std::to_string(number) +
                          " of run.jsonl is left out: it is not a whole JSON object");
    }
  }
  return true;
}

void read_profile(const std::string &path, RunRecord &run) {
  std::ifstream file(path);
  if (!file) return;
  json profile = json::parse(std::string(std::istreambuf_iterator<char>(file), {}), nullptr, false);
  if (profile.is_object() && value_at(profile, {"layers"}).is_array()) {
    run.profile = std::move(profile);
  } else {
    run.notes.emplace_back("profile.json is left out: it is not the JSON of tutti_context_stop_profile");
  }
}

/// Folders below that have a record: people name the folder above.
std::string runs_below(const std::string &folder) {
  std::vector<std::string> found;
  std::error_code error;
  for (const auto &entry : fs::directory_iterator(folder, error))
    if (fs::exists(entry.path() / "run.jsonl", error)) found.push_back(entry.path().string());
  std::sort(found.begin(), found.end());
  std::string text;
  for (const std::string &path : found)
    text += (text.empty() ? "" : ", ") + path;
  return text;
}

[[noreturn]] void refuse_folder(const std::string &folder) {
  std::error_code error;
  if (!fs::is_directory(folder, error)) throw std::runtime_error("there is no folder '" + folder + "'");
  const std::string below = runs_below(folder);
  if (!below.empty()) throw std::runtime_error("'" + folder + "' is not the folder of a run; these are: " + below);
  throw std::runtime_error(
      "'" + folder +
      "' has no run.jsonl and no event files (events.out.tfevents.*): a training writes both into its summary_dir, or "
      "model_dir where that is empty, if the run option save_summary_steps is above 0");
}

/// The last `parts` parts of a path.
std::string end_of(const fs::path &path, size_t parts) {
  std::vector<std::string> names;
  for (const fs::path &part : path)
    if (!part.empty() && part != "/") names.push_back(part.string());
  std::string text;
  for (size_t i = names.size() > parts ? names.size() - parts : 0; i < names.size(); ++i)
    text += (text.empty() ? "" : "/") + names[i];
  return text;
}

void name_runs(std::vector<RunRecord> &runs) {
  for (size_t parts = 1; parts < 8; ++parts) {
    std::set<std::string> names;
    for (RunRecord &run : runs) {
      run.name = end_of(fs::absolute(run.folder).lexically_normal(), parts);
      names.insert(run.name);
    }
    if (names.size() == runs.size()) return;
  }
  for (size_t i = 0; i < runs.size(); ++i)
    runs[i].name += " #" + std::to_string(i + 1);
}

}  // namespace

const json &RunRecord::last_training() const {
  for (auto line = trainings.rbegin(); line != trainings.rend(); ++line)
    if (makes_steps(*line)) return *line;
  return trainings.empty() ? kNull : trainings.back();
}

const json &RunRecord::last_evaluation() const { return evaluations.empty() ? kNull : evaluations.back(); }

RunRecord read_run(const std::string &folder) {
  RunRecord run;
  run.folder = folder;
  run.trainings = run.evaluations = json::array();
  const bool has_record = read_record(folder + "/run.jsonl", run);
  EventCurves training = read_event_curves(folder), evaluation = read_event_curves(folder + "/eval");
  if (!has_record && training.files == 0 && evaluation.files == 0) refuse_folder(folder);
  if (!has_record)
    run.notes.emplace_back(
        "there is no run.jsonl: trainings write to it when they end, so that only the curves of the event files are "
        "shown");
  if (training.files == 0) run.notes.emplace_back("there are no event files of a training: curves of it are missing");
  for (EventCurves *const files : {&training, &evaluation})
    std::move(files->damages.begin(), files->damages.end(), std::back_inserter(run.notes));
  run.training = std::move(training.curves);
  run.evaluation = std::move(evaluation.curves);
  read_profile(folder + "/profile.json", run);
  std::vector<RunRecord> one;
  one.push_back(std::move(run));
  name_runs(one);
  return std::move(one.front());
}

std::vector<RunRecord> read_runs(const std::vector<std::string> &folders) {
  std::vector<RunRecord> runs;
  for (const std::string &folder : folders)
    runs.push_back(read_run(folder));
  name_runs(runs);
  return runs;
}

const json &value_at(const json &object, std::initializer_list<const char *> keys) {
  const json *value = &object;
  for (const char *const key : keys) {
    if (!value->is_object()) return kNull;
    const auto found = value->find(key);
    if (found == value->end()) return kNull;
    value = &*found;
  }
  return *value;
}

double number_at(const json &object, std::initializer_list<const char *> keys, double otherwise) {
  const json &value = value_at(object, keys);
  return value.is_number() ? value.get<double>() : otherwise;
}

std::string text_at(const json &object, std::initializer_list<const char *> keys) {
  const json &value = value_at(object, keys);
  return value.is_string() ? value.get<std::string>() : std::string();
}

}  // namespace tutti::tool
