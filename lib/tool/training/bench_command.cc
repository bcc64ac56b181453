// SPDX-License-Identifier: Apache-2.0
//
// `tutti bench`: how fast a model trains and predicts, by batch size and devices.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <stdexcept>

#include "tool/command/command_list.h"
#include "tool/config/config_path.h"
#include "tool/console/table.h"
#include "tool/console/tensor_values.h"
#include "tool/console/usage_error.h"
#include "tool/dataset/op_signature.h"
#include "tool/training/config_flags.h"
#include "tool/training/data_config.h"
#include "tool/training/device_config.h"
#include "tool/training/latency.h"
#include "tool/training/result_table.h"
#include "tool/training/run_config.h"

namespace tutti::tool {

namespace {

using json = nlohmann::ordered_json;

/// Batches that training reads again and again, from memory.
constexpr int64_t kKeptBatches = 8;

struct BenchRequest {
  ConfigRequest config;
  std::string batches = "1,64", devices, seconds = "2";
  bool as_json = false;
};

/// "1,8,64".
std::vector<int64_t> sizes_of(const std::string &option, const std::string &list) {
  std::vector<int64_t> sizes;
  for (size_t begin = 0; begin <= list.size();) {
    const size_t end = std::min(list.find(',', begin), list.size());
    ConfigNode number = text_node(list.substr(begin, end - begin));
    number.is_quoted = false;
    if (!is_integer(number) || integer_of(number) < 1)
      throw UsageError{option + " takes numbers above 0 with commas between, got '" + list + "'"};
    sizes.push_back(integer_of(number));
    begin = end + 1;
  }
  return sizes;
}

double seconds_of(const BenchRequest &request) {
  ConfigNode number = text_node(request.seconds);
  number.is_quoted = false;
  if (!is_number(number) || !(number_of(number) > 0))
    throw UsageError{"--seconds takes a number above 0, got '" + request.seconds + "'"};
  return number_of(number);
}

json latency_json(const Latency &latency, double rows) {
  return {{"runs", latency.runs},        {"mean_ms", 1e3 * latency.mean}, {"p50_ms", 1e3 * latency.p50},
          {"p90_ms", 1e3 * latency.p90}, {"p99_ms", 1e3 * latency.p99},   {"examples_per_second", rows / latency.mean}};
}

/// Zeros like an input of the model, for so many rows.
Tensor zeros_like(const json &input, int64_t rows) {
  const std::string name = input["name"], dtype = input["dtype"];
  std::vector<int64_t> dims;
  int64_t elements = 1;
  for (const json &dim : input["dims"]) {
    if (!dim.is_number() && dim != "batch")
      throw std::runtime_error("the input '" + name + "' has a dimension that only data tell: " + dim.dump());
    dims.push_back(dim.is_number() ? dim.get<int64_t>() : rows);
    elements *= dims.back();
  }
  const int32_t type = find_dtype(dtype);
  if (type == TUTTI_DTYPE_BYTES) throw std::runtime_error("the input '" + name + "' is texts, which are not made up");
  const std::string zeros(static_cast<size_t>(elements * dtype_bytes(type)), '\0');
  return Tensor(type, dims, zeros.data(), static_cast<int64_t>(zeros.size()));
}

json time_predictions(Predictor &predictor, int64_t rows, double seconds) {
  const json signature = json::parse(predictor.signature());
  std::vector<std::pair<std::string, Tensor>> inputs;
  for (const json &input : signature["inputs"])
    inputs.emplace_back(input["name"].get<std::string>(), zeros_like(input, rows));
  return latency_json(measure(seconds, [&] { predictor.run(inputs); }), static_cast<double>(rows));
}

/// One row of the table.
json time_one(const ConfigNode &config, int64_t batch, double seconds) {
  const Context context = make_context(config);
  Pipeline pipeline(context);
  pipeline.dataset(open_data(config, "train", context)).take(kKeptBatches).cache().repeat();
  const Dataset data = pipeline.build();
  const Strategy strategy = make_strategy(config, context, batch);
  ConfiguredEstimator estimator(config, data, strategy, context, false);
  json row = {{"devices", strategy.replica_count()}, {"batch", batch}};
  estimator.told([&](Estimator &trained) {
    Session session(trained, data);
    int64_t examples = 0, steps = 0;
    const Latency step = measure(seconds, [&] {
      examples += session.run(1).examples();
      ++steps;
    });
    // Data may have fewer rows than a batch.
    row["training"] = latency_json(step, static_cast<double>(examples) / static_cast<double>(steps));
    Predictor predictor(trained);
    row["prediction"] = time_predictions(predictor, batch, seconds);
  });
  return row;
}

/// Of a checkpoint, which says nothing of data and training.
json time_checkpoint(const std::string &path, int64_t devices, int64_t batch, double seconds) {
  Options options("context");
  if (devices > 0) options.set("logical_devices", devices);
  const Context context(options);
  const Strategy strategy = Strategy::mirrored(context);
  Predictor predictor(path, strategy, context);
  return {{"devices", strategy.replica_count()},
          {"batch", batch},
          {"training", json()},
          {"prediction", time_predictions(predictor, batch, seconds)}};
}

ConfigNode config_for(const BenchRequest &request, int64_t devices, int64_t batch) {
  ConfigRequest changed = request.config;
  changed.changes.emplace_back([=](ConfigNode &config) {
    ConfigNode number = number_node(batch);
    number.at = {"--batch"};
    set_path(config, "data.train.batch", std::move(number));
    if (devices > 0) set_devices(config, std::to_string(devices), "--devices");
  });
  return load_config(changed);
}

std::string cell(const json &values, const char *key) {
  return values.is_null() ? "" : readable(values[key].get<double>());
}

void print_rows(const json &rows) {
  Table table({">devices", ">batch", ">trained/s", ">step p50 ms", ">p90", ">p99", ">predicted/s", ">run p50 ms",
               ">p90 ", ">p99 "});
  for (const json &row : rows) {
    const json &training = row["training"], &prediction = row["prediction"];
    table.add({row["devices"].dump(), row["batch"].dump(), cell(training, "examples_per_second"),
               cell(training, "p50_ms"), cell(training, "p90_ms"), cell(training, "p99_ms"),
               cell(prediction, "examples_per_second"), cell(prediction, "p50_ms"), cell(prediction, "p90_ms"),
               cell(prediction, "p99_ms")});
  }
  table.print();
}

int bench(const BenchRequest &request) {
  const double seconds = seconds_of(request);
  const std::vector<int64_t> batches = sizes_of("--batch", request.batches);
  const std::vector<int64_t> devices =
      request.devices.empty() ? std::vector<int64_t>{0} : sizes_of("--devices", request.devices);
  const std::string &path = request.config.path;
  const bool is_checkpoint = std::filesystem::is_directory(path) && !is_run_folder(path);
  json rows = json::array();
  for (const int64_t count : devices) {
    for (const int64_t batch : batches) {
      rows.push_back(is_checkpoint ? time_checkpoint(path, count, batch, seconds)
                                   : time_one(config_for(request, count, batch), batch, seconds));
    }
  }
  if (request.as_json) {
    std::printf("%s\n", rows.dump(1).c_str());
  } else {
    print_rows(rows);
  }
  return EXIT_SUCCESS;
}

}  // namespace

Command bench_command() {
  const auto request = std::make_shared<BenchRequest>();
  Command command("bench", "measures how fast a model trains and predicts");
  command.set_details(
      "For each number of devices and each batch size: the examples that are trained in a second and the times of a "
      "step, "
      "and the examples that are predicted in a second and the times of a call, as the percentiles 50, 90 and 99.\n\n"
      "Training reads a few batches of data.train again and again from memory, so the input pipeline does not count; "
      "nothing is written. Predictions are of zeros. Of a checkpoint that 'tutti train' did not make, only predictions "
      "are measured.");
  command.add_argument({"MODEL", "a configuration, the folder of a run, or a checkpoint"});
  command.add_option(request->batches, {"--batch", "N,...", "batch sizes, of all devices together"});
  command.add_option(request->devices,
                     {"--devices", "N,...", "numbers of devices", "the strategy of the configuration"});
  command.add_option(request->seconds, {"--seconds", "SECONDS", "time for each measurement"});
  add_set_option(command, request->config);
  command.add_flag(request->as_json, {"--json", "", "print JSON instead of a table"});
  command.set_example("tutti bench fashion_mnist.yaml --batch 1,64,256 --devices 1,2");
  command.set_run([request](const std::vector<std::string> &words) {
    if (words.empty()) throw UsageError{"no configuration, run or checkpoint given"};
    request->config.path = words.front();
    return bench(*request);
  });
  return command;
}

}  // namespace tutti::tool
