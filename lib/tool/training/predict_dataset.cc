// SPDX-License-Identifier: Apache-2.0
//
// Predictions of a trained model for the examples in files. Where a launcher has started the command several times
// (`tutti run`, torchrun, mpirun, srun, TF_CONFIG), the processes share the work, and the first one writes the file.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <tutti/tutti.hpp>

#include "tool/command/command_list.h"
#include "tool/console/progress.h"
#include "tool/console/table.h"
#include "tool/console/usage_error.h"
#include "tool/dataset/dataset_source.h"
#include "tool/dataset/preparation.h"
#include "tool/training/data_config.h"
#include "tool/training/prediction_file.h"
#include "tool/training/run_config.h"
#include "tool/training/source_config.h"

namespace tutti::tool {

namespace {

struct PredictRequest {
  std::string model, target, backend;
  SourceRequest source;
  Preparation preparation;
  int64_t batch = 64, devices = 0, first = -1;
};

/// Takes the words that are no options.
void take_paths(PredictRequest &request, const std::vector<std::string> &words) {
  if (words.size() < 3) throw UsageError{"predict needs a model, a source and a target"};
  request.model = words.front();
  request.target = words.back();
  request.source.paths.assign(words.begin() + 1, words.end() - 1);
  if (!is_prediction_file(request.target))
    throw UsageError{"predict writes .csv or .jsonl, got '" + request.target + "'"};
}

/// Of the processes that a launcher has started, or all devices of this one.
Strategy strategy_of(const Context &context) {
  try {
    return Strategy::multi_worker_from_environment(nullptr, context);
  } catch (const Error &error) {
    if (error.code() != TUTTI_NOT_FOUND) throw;
    return Strategy::mirrored(context);
  }
}

Dataset batches_of(const PredictRequest &request, const SourceRequest &source, const Context &context) {
  Pipeline pipeline(context);
  pipeline.dataset(prepare(open_source(source, context), request.preparation, context));
  if (request.first >= 0) pipeline.take(request.first);
  return pipeline.batch(request.batch).build();
}

std::vector<std::string> outputs_of(const Predictor &predictor) {
  const nlohmann::json signature = nlohmann::json::parse(tutti_predictor_get_signature(predictor));
  std::vector<std::string> names;
  for (const nlohmann::json &output : signature["outputs"])
    names.push_back(output["name"]);
  return names;
}

/// The types of CSV columns where nothing tells them but the model: those of its inputs, if each is one value of a row.
SourceRequest typed_source(const PredictRequest &request, const Predictor &predictor) {
  SourceRequest source = request.source;
  const bool is_told = std::any_of(source.settings.begin(), source.settings.end(),
                                   [](const auto &setting) { return setting.first == "columns"; });
  const bool is_prepared = !request.preparation.maps.empty() || !request.preparation.selected.empty();
  if (is_told || is_prepared || format_of(source) != "csv") return source;
  const nlohmann::json signature = nlohmann::json::parse(tutti_predictor_get_signature(predictor));
  for (const nlohmann::json &input : signature["inputs"]) {
    if (input["dims"].size() != 1) return request.source;
    source.settings.emplace_back("columns",
                                 input["name"].get<std::string>() + ": " + input["dtype"].get<std::string>());
  }
  return source;
}

/// Examples are prepared for the model of a run as they were for its training, unless options say otherwise.
void prepare_as_trained(PredictRequest &request) {
  const SourceRequest &source = request.source;
  const bool is_told = !request.preparation.maps.empty() || !request.preparation.selected.empty() ||
                       !source.settings.empty() || !source.features.empty();
  if (is_told || !is_run_folder(request.model)) return;
  ConfigNode config = read_config(request.model);
  complete_config(config, "");
  UnlabelledData data = unlabelled_data(config, has_data(config, "evaluate") ? "evaluate" : "train");
  request.preparation.maps = std::move(data.preparation.maps);
  request.preparation.selected = std::move(data.preparation.selected);
  if (source.format.empty() && format_of(source) == "text_lines") request.source.format = data.source.format;
  if (format_of(source) != data.source.format) return;
  request.source.settings = std::move(data.source.settings);
  request.source.features = std::move(data.source.features);
  // Without maps they are those of the model's inputs.
  if (data.types && !request.preparation.maps.empty())
    request.source = typed_columns(request.source, &*data.types, Context());
}

int predict_dataset(const PredictRequest &request) {
  Options devices("context");
  devices.set("backend", request.backend);
  devices.set("logical_devices", request.devices);
  Context context(devices);
  tell_warnings(context);
  const Strategy strategy = strategy_of(context);
  const Predictor predictor(request.model, strategy, context);
  const Dataset dataset = batches_of(request, typed_source(request, predictor), context);
  std::unique_ptr<PredictionFile> file;
  if (strategy.worker_index() == 0) file = make_prediction_file(request.target, outputs_of(predictor));
  int64_t rows = 0;
  {
    PredictionStream stream(predictor, dataset);
    Progress progress(-1);
    for (Batch batch = stream.next(); batch.get() != nullptr; batch = stream.next()) {
      if (file != nullptr && batch.row_count() > 0) file->add(batch);
      rows += batch.row_count();
      if (file != nullptr) progress.at(rows);
    }
  }
  if (file == nullptr) return EXIT_SUCCESS;
  file->close();
  std::printf("%s: %s predictions of step %lld\n", request.target.c_str(), with_commas(rows).c_str(),
              static_cast<long long>(predictor.step()));
  return EXIT_SUCCESS;
}

}  // namespace

Command predict_command() {
  const auto request = std::make_shared<PredictRequest>();
  Command command("predict", "writes what a trained model predicts for files of examples");
  command.set_details(
      "The file has a line for each example, in the order of the source. Where the model is the folder of a run "
      "('tutti train'), its configuration says how examples are read and prepared, but for labels, unless an option "
      "about that is given. Under 'tutti run' and other launchers the "
      "processes share the batches, and the first one writes the file.");
  command.add_argument(
      {"MODEL", "the folder of a run, a checkpoint, or a directory of checkpoints (the newest is used)"});
  command.add_argument(
      {"SOURCE...",
       source_description() +
           ". Components that --map and --select leave are the model's features by name; columns of CSV files have the "
           "types of the model's inputs, unless --set columns or one of these options is given"});
  command.add_argument(
      {"TARGET",
       "the file to write: .csv with a column for each output, or NAME_0, NAME_1, ... for one of several numbers; "
       ".jsonl with an object for each example"});
  command.add_option(request->batch, {"--batch", "N", "batch size"}, 1);
  command.add_option(request->backend, {"--backend", "NAMES", "whose devices predict, such as cuda or cuda,cpu",
                                        "the GPUs, or else the processors"});
  command.add_option(request->devices,
                     {"--devices", "N", "logical devices of each process and backend", "as many as cores, or GPUs"});
  command.add_option(request->first, {"--first", "N", "examples to read", "all"});
  add_preparation_options(command, request->preparation);
  add_source_options(command, request->source);
  command.set_example("tutti predict model/ test.npy predictions.csv --batch 256");
  command.set_run([request](const std::vector<std::string> &words) {
    take_paths(*request, words);
    prepare_as_trained(*request);
    return predict_dataset(*request);
  });
  return command;
}

}  // namespace tutti::tool
