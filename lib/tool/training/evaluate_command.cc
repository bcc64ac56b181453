// SPDX-License-Identifier: Apache-2.0
//
// `tutti evaluate`: loss and metrics of a trained model.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>

#include "tool/command/command_list.h"
#include "tool/console/usage_error.h"
#include "tool/training/config_flags.h"
#include "tool/training/data_config.h"
#include "tool/training/device_config.h"
#include "tool/training/result_table.h"
#include "tool/training/run_config.h"

namespace tutti::tool {

namespace {

struct EvaluateRequest {
  ConfigRequest config;
  std::vector<std::string> data;
  int64_t steps = 0;
  bool as_json = false;
};

int evaluate(const EvaluateRequest &request) {
  ConfigNode config = load_config(request.config);
  write_no_summaries(config);
  if (!has_data(config, "evaluate"))
    throw UsageError{"the configuration has no data.evaluate; --data names files", false};
  const std::string folder = model_dir_of(config);
  if (newest_checkpoint(folder).empty())
    throw std::runtime_error("'" + folder + "': there is no checkpoint here; 'tutti train' leaves them");
  const Context context = make_context(config);
  const Dataset data = open_data(config, "evaluate", context);
  const int64_t batch = integer_in(*config.find("data")->find("evaluate"), "batch", 0);
  const Strategy strategy = make_strategy(config, context, batch);
  ConfiguredEstimator estimator(config, data, strategy, context);
  const nlohmann::ordered_json result =
      estimator.told([&](Estimator &trained) { return result_json(trained.evaluate(data, request.steps)); });
  if (strategy.worker_index() != 0) return EXIT_SUCCESS;
  if (request.as_json) {
    std::printf("%s\n", result.dump(1).c_str());
  } else {
    print_results(nullptr, result);
  }
  return EXIT_SUCCESS;
}

}  // namespace

Command evaluate_command() {
  const auto request = std::make_shared<EvaluateRequest>();
  Command command("evaluate", "measures loss and metrics of a trained model");
  command.set_details(
      "The newest checkpoint of the run is evaluated on data.evaluate of its configuration ('tutti train --help'): the "
      "whole of it, whatever the batch size and the devices.");
  command.add_argument({"RUN", "the folder of a run, or its configuration"});
  command.add_option(
      [request](const std::string &path) {
        request->data.push_back(path);
        request->config.changes.emplace_back(
            [request](ConfigNode &config) { replace_source(config, "evaluate", request->data, "--data"); });
      },
      {"--data", "FILES", "files in place of those of data.evaluate; may be repeated"});
  command.add_option(request->steps, {"--steps", "N", "batches to evaluate", "all"});
  add_device_options(command, request->config, "evaluate");
  add_set_option(command, request->config);
  command.add_flag(request->as_json, {"--json", "", "print JSON instead of a table"});
  command.set_exit_status(
      "0 when the model has been evaluated, 1 when that failed, 2 when the arguments or the configuration are wrong");
  command.set_example("tutti evaluate runs/first --data csv:new.csv");
  command.set_run([request](const std::vector<std::string> &words) {
    if (words.empty()) throw UsageError{"no folder of a run given"};
    request->config.path = words.front();
    return evaluate(*request);
  });
  return command;
}

}  // namespace tutti::tool
