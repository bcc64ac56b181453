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
#include "tool/console/tensor_values.h"
#include "tool/console/text_file.h"
#include "tool/console/usage_error.h"
#include "tool/dataset/dataset_source.h"
#include "tool/dataset/preparation.h"

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
  const std::string &target = request.target;
  if (target.size() < 4 || target.compare(target.size() - 4, 4, ".csv") != 0)
    throw UsageError{"predict writes .csv, got '" + target + "'"};
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

/// One output of a batch, as columns.
struct Columns {
  Tensor tensor;
  std::vector<double> numbers;  // where it is floating
  int64_t width = 1;

  Columns(Tensor of_batch, int64_t rows) : tensor(std::move(of_batch)), width(tensor.element_count() / rows) {
    if (is_floating(tensor.dtype())) read_numbers(tensor, numbers);
  }
  std::string text(int64_t index) const {
    if (!is_floating(tensor.dtype())) return value_text(tensor, index);
    return exact_number(numbers[static_cast<size_t>(index)], tensor.dtype());
  }
};

class PredictionFile {
 public:
  PredictionFile(const std::string &path, std::vector<std::string> outputs)
      : file_(path), outputs_(std::move(outputs)) {}

  void add(const Batch &batch) {
    std::vector<Columns> all;
    for (const std::string &name : outputs_)
      all.emplace_back(batch.output(name.c_str()), batch.row_count());
    write_header(all);
    std::string lines;
    for (int64_t row = 0; row < batch.row_count(); ++row) {
      std::string line;
      for (const Columns &columns : all) {
        for (int64_t i = 0; i < columns.width; ++i)
          line += "," + columns.text(row * columns.width + i);
      }
      lines += line.substr(1) + "\r\n";
    }
    file_.write(lines);
  }
  void close() {
    write_header({});
    file_.close();
  }

 private:
  /// Without rows: nobody knows how many numbers an output has.
  void write_header(const std::vector<Columns> &all) {
    if (has_header_) return;
    std::string line;
    for (size_t o = 0; o < outputs_.size(); ++o) {
      const int64_t width = o < all.size() ? all[o].width : 1;
      for (int64_t i = 0; i < width; ++i)
        line += "," + outputs_[o] + (width > 1 ? "_" + std::to_string(i) : "");
    }
    file_.write(line.substr(1) + "\r\n");
    has_header_ = true;
  }

  TextFile file_;
  const std::vector<std::string> outputs_;
  bool has_header_ = false;
};

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
  if (strategy.worker_index() == 0) file = std::make_unique<PredictionFile>(request.target, outputs_of(predictor));
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
      "The file has a line for each example, in the order of the source. Under 'tutti run' and other launchers the "
      "processes share the batches, and the first one writes the file.");
  command.add_argument({"MODEL", "a checkpoint, or a directory of checkpoints (the newest is used)"});
  command.add_argument(
      {"SOURCE...",
       source_description() +
           ". Components that --map and --select leave are the model's features by name; columns of CSV files have the "
           "types of the model's inputs, unless --set columns or one of these options is given"});
  command.add_argument(
      {"TARGET.csv", "the file to write: a column for each output, or NAME_0, NAME_1, ... for one of several numbers"});
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
    return predict_dataset(*request);
  });
  return command;
}

}  // namespace tutti::tool
