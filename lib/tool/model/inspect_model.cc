// SPDX-License-Identifier: Apache-2.0
//
// What is in the directory of a model: its checkpoints, and of the newest what goes in, what comes out and its sizes.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>

#include "tool/command/command_list.h"
#include "tool/console/name_suggestions.h"
#include "tool/console/table.h"
#include "tool/console/usage_error.h"
#include "tool/model/inspect_checkpoint.h"

namespace tutti::tool {

namespace {

using json = nlohmann::ordered_json;

struct Model {
  std::vector<CheckpointPlace> checkpoints;  // none where the path is one itself
  CheckpointContent newest;
  bool is_predicting = false;  // has a graph of predictions
  Signature signature;         // where it is predicting
};

Model read_model(const std::string &path) {
  Model model;
  model.newest = read_checkpoint(path);
  if (!model.newest.manifest.is_object())
    throw std::runtime_error("'" + path + "' is a file of variables; `tutti inspect checkpoint` lists them");
  if (model.newest.path != path) model.checkpoints = find_checkpoints(path);
  model.is_predicting = has_signature(model.newest);
  if (model.is_predicting) model.signature = read_signature(model.newest);
  return model;
}

json entries_json(const std::vector<SignatureEntry> &entries) {
  json all = json::array();
  for (const SignatureEntry &entry : entries)
    all.push_back({{"name", entry.name}, {"dtype", entry.dtype}, {"shape", entry.shape}});
  return all;
}

json model_json(const std::string &path, const Model &model) {
  json checkpoints = json::array();
  for (const CheckpointPlace &place : model.checkpoints)
    checkpoints.push_back({{"step", place.step}, {"path", place.path}});
  return {{"path", path},
          {"checkpoints", checkpoints},
          {"inputs", model.is_predicting ? entries_json(model.signature.inputs) : json()},
          {"outputs", model.is_predicting ? entries_json(model.signature.outputs) : json()},
          {"newest", checkpoint_json(model.newest)}};
}

void print_signature(const Signature &signature) {
  Table table({"signature", "name", "dtype", "shape"});
  for (const SignatureEntry &entry : signature.inputs)
    table.add({"input", entry.name, entry.dtype, shape_text(entry.shape)});
  for (const SignatureEntry &entry : signature.outputs)
    table.add({"output", entry.name, entry.dtype, shape_text(entry.shape)});
  table.print();
}

void print_model(const std::string &path, const Model &model) {
  if (!model.checkpoints.empty()) {
    std::vector<std::string> steps;
    for (const CheckpointPlace &place : model.checkpoints)
      steps.push_back(std::to_string(place.step));
    std::printf("%s: checkpoints of steps %s\n\n", path.c_str(), listed(steps).c_str());
  }
  if (model.is_predicting) {
    print_signature(model.signature);
  } else {
    std::printf("The model was saved without a graph of predictions.\n");
  }
  std::printf("\n");
  print_checkpoint(model.newest);
}

int inspect_model(const std::string &path, bool as_json) {
  const Model model = read_model(path);
  if (as_json) {
    print_json(model_json(path, model));
  } else {
    print_model(path, model);
  }
  return EXIT_SUCCESS;
}

}  // namespace

Command inspect_model_command() {
  const auto as_json = std::make_shared<bool>(false);
  Command command("inspect model", "shows inputs, outputs and the newest checkpoint of a model");
  command.set_details("What is shown of the newest checkpoint is described by 'tutti inspect checkpoint --help'.");
  command.add_argument({"PATH", "the directory of a model, or one of its checkpoints"});
  command.add_flag(*as_json, {"--json", "", "print JSON instead of tables"});
  command.set_example("tutti inspect model model/");
  command.set_run([as_json](const std::vector<std::string> &words) {
    if (words.empty()) throw UsageError{"no model directory given"};
    return inspect_model(words.front(), *as_json);
  });
  return command;
}

}  // namespace tutti::tool
