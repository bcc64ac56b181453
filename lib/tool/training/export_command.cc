// SPDX-License-Identifier: Apache-2.0
//
// `tutti export`: a trained model for others: its weights as a file, or a folder from which it predicts anywhere.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <tutti/tutti.hpp>

#include "tool/command/command_list.h"
#include "tool/console/table.h"
#include "tool/console/usage_error.h"
#include "tool/model/checkpoint_files.h"
#include "tool/training/array_files.h"
#include "tool/training/data_config.h"
#include "tool/training/device_config.h"
#include "tool/training/run_config.h"

namespace tutti::tool {

namespace {

namespace filesystem = std::filesystem;

struct ExportRequest {
  std::string model, target;
  bool is_raw = false;
};

bool has_file(const CheckpointContent &checkpoint, const std::string &name) {
  return std::any_of(checkpoint.files.begin(), checkpoint.files.end(),
                     [&](const CheckpointFile &file) { return file.name == name; });
}

/// The weights, or in their place the moving averages that predictions use.
std::vector<NamedArray> weights_of(const CheckpointContent &checkpoint, bool is_raw) {
  if (checkpoint.manifest.is_null()) return read_safetensors(checkpoint.path);
  std::vector<NamedArray> weights = read_safetensors(checkpoint.path + "/weights.safetensors");
  if (is_raw || !has_file(checkpoint, "averages.safetensors")) return weights;
  for (NamedArray &average : read_safetensors(checkpoint.path + "/averages.safetensors")) {
    for (NamedArray &weight : weights) {
      if (weight.name + "/average" == average.name) weight.bytes = std::move(average.bytes);
    }
  }
  return weights;
}

/// Reads the checkpoint as a predictor does, which compares its checksums.
void check_whole(const CheckpointContent &checkpoint) {
  if (checkpoint.manifest.is_null() || !has_signature(checkpoint)) return;
  const Context context;
  Predictor(checkpoint.path, Strategy::one_device(context), context);
}

void export_weights(const ExportRequest &request) {
  const CheckpointContent checkpoint = read_checkpoint(request.model);
  check_whole(checkpoint);
  const std::vector<NamedArray> weights = weights_of(checkpoint, request.is_raw);
  if (filesystem::path(request.target).extension() == ".npz") {
    write_npz(request.target, weights);
  } else {
    write_safetensors(request.target, weights);
  }
  size_t bytes = 0;
  for (const NamedArray &weight : weights)
    bytes += weight.bytes.size();
  std::printf("%s: %zu variables, %s, of %s\n", request.target.c_str(), weights.size(),
              readable_bytes(static_cast<double>(bytes)).c_str(), checkpoint.path.c_str());
}

/// A checkpoint of the model without what only training needs.
void export_folder(const ExportRequest &request) {
  if (!is_run_folder(request.model)) {
    throw std::runtime_error("'" + request.model +
                             "': a folder is written of a run that 'tutti train' made; of other " +
                             "checkpoints .safetensors or .npz can be written");
  }
  const CheckpointContent checkpoint = read_checkpoint(request.model);
  ConfigNode config = read_config(request.model);
  complete_config(config, "");
  write_no_summaries(config);
  const Context context = make_context(config);
  const std::string name = has_data(config, "evaluate") ? "evaluate" : "train";
  const Dataset data = open_data(config, name, context);
  ConfiguredEstimator estimator(config, data, Strategy::one_device(context), context);
  estimator.told([&](Estimator &trained) {
    // It writes a model of which it knows the examples.
    trained.evaluate(data, 1);
    trained.save(request.target);
  });
  const std::string written = newest_checkpoint(request.target);
  std::printf("%s: %s, of %s\n", written.c_str(),
              readable_bytes(static_cast<double>(read_checkpoint(written).bytes_of(""))).c_str(),
              checkpoint.path.c_str());
}

int export_model(const ExportRequest &request) {
  const std::string ending = filesystem::path(request.target).extension().string();
  if (ending == ".safetensors" || ending == ".npz") {
    export_weights(request);
  } else {
    export_folder(request);
  }
  return EXIT_SUCCESS;
}

}  // namespace

Command export_command() {
  const auto request = std::make_shared<ExportRequest>();
  Command command("export", "writes a trained model, or its weights, for other programs");
  command.set_details(
      "Weights are those of the newest checkpoint, and where the optimizer keeps moving averages, as predictions use "
      "them, these. A folder has the model and its weights without the state of the optimizer: 'tutti predict', "
      "tutti_predictor_open and 'tutti compile' take it. To write it, one batch of the run's data is read.");
  command.add_argument({"MODEL", "the folder of a run, or, for weights, any checkpoint"});
  command.add_argument({"TARGET", "a file .safetensors or .npz (NumPy) for the weights, else a folder for the model"});
  command.add_flag(request->is_raw, {"--raw-weights", "", "write the weights also where there are averages of them"});
  command.set_example("tutti export runs/first weights.npz");
  command.set_run([request](const std::vector<std::string> &words) {
    if (words.size() < 2) throw UsageError{"export needs a model and a target"};
    request->model = words[0];
    request->target = words[1];
    return export_model(*request);
  });
  return command;
}

}  // namespace tutti::tool
