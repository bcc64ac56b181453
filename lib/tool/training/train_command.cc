// SPDX-License-Identifier: Apache-2.0
//
// `tutti train`: a model as a configuration describes it, trained.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>

#include "tool/command/command_list.h"
#include "tool/console/usage_error.h"
#include "tool/model/checkpoint_files.h"
#include "tool/training/config_flags.h"
#include "tool/training/data_config.h"
#include "tool/training/device_config.h"
#include "tool/training/model_zoo.h"
#include "tool/training/option_config.h"
#include "tool/training/result_table.h"
#include "tool/training/run_config.h"
#include "tool/training/run_folder.h"
#include "tool/training/stop_signals.h"

namespace tutti::tool {

namespace {

using json = nlohmann::ordered_json;

struct TrainRequest {
  ConfigRequest config;
  bool as_json = false, is_quiet = false;
};

class Training {
 public:
  Training(const TrainRequest &request, const ConfigNode &config, const StopSignals &signals)
      : request_(request),
        config_(config),
        signals_(signals),
        context_(make_context(config)),
        data_(open_data(config, "train", context_)),
        strategy_(make_strategy(config, context_, integer_in(*config.find("data")->find("train"), "batch", 0))),
        is_first_(strategy_.worker_index() == 0),
        folder_(model_dir_of(config)),
        run_folder_(config, context_, is_first_ ? folder_ : "") {
    if (has_data(config, "evaluate")) evaluation_ = first_batches(open_data(config, "evaluate", context_));
  }

  int run() {
    ConfiguredEstimator estimator(config_, data_, strategy_, context_);
    resumed_from_ = newest_checkpoint(folder_);
    if (!resumed_from_.empty() && is_first_) std::fprintf(stderr, "tutti: resuming from %s\n", resumed_from_.c_str());
    begin_with_weights(estimator);
    const bool is_new = !folder_.empty() && !std::filesystem::exists(folder_);
    const Result result = estimator.told([&](Estimator &trained) {
      try {
        return train(trained);
      } catch (const Error &error) {
        if (run_folder_.first_step() >= 0) throw;
        if (is_new && is_first_) remove_empty_folder();
        // What does not go together, such as two limits, and patterns that match nothing.
        const bool is_refused = error.code() == TUTTI_INVALID_ARGUMENT || error.code() == TUTTI_NOT_FOUND;
        if (is_refused && !estimator.is_wrong()) throw UsageError{error.what(), false};
        throw;
      }
    });
    if (is_first_) tell(result);
    const bool was_stopped = result.reason() == TUTTI_REASON_STOPPED && signals_.exit_status() != 0;
    return was_stopped ? signals_.exit_status() : EXIT_SUCCESS;
  }

 private:
  /// Of as many as an evaluation shall read.
  Dataset first_batches(const Dataset &data) const {
    const int64_t steps = integer_in(*config_.find("evaluation"), "steps", 0);
    if (steps == 0) return data;
    Pipeline pipeline(context_);
    return pipeline.dataset(data).take(steps).build();
  }

  void begin_with_weights(ConfiguredEstimator &estimator) const {
    const std::string weights = text_in(config_, "weights");
    if (weights.empty() || !resumed_from_.empty()) return;
    estimator.told([&](Estimator &begun) { begun.initialize(data_, weights, signals_.cancel()); });
  }

  /// The library locks the folder before it builds the model.
  void remove_empty_folder() const {
    std::error_code error;
    std::filesystem::remove(std::filesystem::path(folder_) / "training.lock", error);
    std::filesystem::remove(folder_, error);
  }

  Result train(Estimator &estimator) {
    Hooks hooks;
    run_folder_.add_hooks(hooks);
    if (!request_.is_quiet && is_first_) hooks.add_progress();
    const Options options = options_of(config_.find("run"), "train");
    if (!evaluation_) return estimator.train(data_, options, hooks, signals_.cancel());
    const ConfigNode &evaluation = *config_.find("evaluation");
    return estimator.train_and_evaluate(data_, *evaluation_, integer_in(evaluation, "every_steps", 0), options, hooks,
                                        signals_.cancel());
  }

  /// That a checkpoint has seen; 0 without one.
  static int64_t examples_of(const std::string &checkpoint) {
    return checkpoint.empty() ? 0 : read_checkpoint(checkpoint).manifest.at("run").value("examples", int64_t{0});
  }

  /// Null where there is no report.
  static json parsed(const std::string &text) {
    json report = json::parse(text, nullptr, false);
    return report.is_discarded() ? json() : report;
  }

  void tell(const Result &result) const {
    json all = {{"model_dir", folder_}, {"reason", reason_name(result.reason())}, {"resumed_from", resumed_from_}};
    all["checkpoint"] = newest_checkpoint(folder_);
    all["training"] = evaluation_ ? run_folder_.training() : result_json(result);
    if (all["training"].is_null())  // there was nothing left to do
      all["training"] = {{"step", result.step()}, {"loss", nullptr}, {"metrics", json::object()}};
    all["evaluation"] = json();
    if (evaluation_) {
      if (!folder_.empty()) all["training"]["examples"] = examples_of(all["checkpoint"]) - examples_of(resumed_from_);
      all["evaluation"] = result_json(result);
      // Of all evaluations and steps together.
      for (const char *const key : {"seconds", "examples_per_second"})
        all["evaluation"].erase(key);
    }
    json kept = all;
    if (!evaluation_) {
      kept["input_report"] = parsed(result.input_report());
      kept["step_report"] = parsed(result.step_report());
    }
    run_folder_.write("result.json", kept);
    if (request_.as_json) {
      std::printf("%s\n", all.dump(1).c_str());
      return;
    }
    print_results(all["training"], all["evaluation"]);
    std::printf("%s at step %lld%s%s\n", all["reason"].get<std::string>().c_str(),
                static_cast<long long>(all["training"]["step"].get<int64_t>()),
                folder_.empty() ? "" : "; the run is in ", folder_.c_str());
  }

  const TrainRequest &request_;
  const ConfigNode &config_;
  const StopSignals &signals_;
  Context context_;
  const Dataset data_;
  const Strategy strategy_;
  const bool is_first_;
  const std::string folder_;
  RunFolder run_folder_;
  std::optional<Dataset> evaluation_;
  std::string resumed_from_;
};

int train(const TrainRequest &request) {
  // Before there is any thread.
  const StopSignals signals;
  const ConfigNode config = load_config(request.config);
  return Training(request, config, signals).run();
}

std::string details() {
  std::string text =
      "CONFIG is a file in YAML or JSON. This is a whole one:\n\n"
      "  data:\n"
      "    train: {source: csv:train.csv, label: y, batch: 32}\n"
      "    evaluate: {source: csv:test.csv}     # or {fraction: 0.1}\n"
      "  model:\n"
      "    - stack: {inputs: '*', axis: 1}      # all features\n"
      "    - dense: {units: 16, activation: relu}\n"
      "    - dense: 3\n"
      "  loss: sparse_softmax_cross_entropy\n"
      "  metrics: [accuracy]\n"
      "  optimizer: {adam: {learning_rate: 0.01}}\n"
      "  run: {model_dir: runs/first, epochs: 5}\n\n"
      "data: the source, its settings, map, select and shuffle are those of 'tutti dataset'; types, as "
      "in {y: i64, '*': f32}, are those of columns of CSV files, by name or pattern: without them a column of numbers "
      "is f32, a label of whole numbers i64, and any other one text; label and weight name "
      "components, all others are features. Batches have 64 examples and training data are shuffled in a buffer of "
      "10,000 unless batch and shuffle say otherwise; with max_steps or steps they come again and again. data.evaluate "
      "has the keys of data.train that it does not "
      "set.\n\n"
      "model: a list of layers and functions of the library by name, each with the result of the one before it as its "
      "first input. Attributes, and other inputs, go by name; as: NAME beside a layer names its result, as in\n\n"
      "  - conv2d: {filters: 16, size: 3}\n"
      "    as: skip\n"
      "  - conv2d: {filters: 16, size: 3}\n"
      "  - add: skip\n\n"
      "Or {zoo: NAME, ...} with the sizes of a model (and input: [28, 28, 1], the shape of an example, where data have "
      "another):\n\n";
  for (const std::string &model : zoo_descriptions())
    text += "  " + model + "\n";
  return text +
         "\nOr {saved_model: PATH}, what a checkpoint or the newest one of a run predicts, to be trained on; also as "
         "one layer of a list, with {path: PATH, output: NAME, feature: NAME} where it has several. It is read "
         "whenever the model is built, to evaluate and to resume, too, so it has to stay.\n\n"
         "loss, metrics, optimizer: entries of the library by name, with their attributes; a learning rate is a "
         "number or a schedule, as in {cosine: {value: 0.1, steps: max_steps}}, where max_steps is that of run. "
         "parameters lists group and constraint "
         "entries, frozen patterns of variables, outputs names of predictions, weights a checkpoint to begin with.\n\n"
         "strategy is auto, one_device, mirrored, central_storage or multi_worker; context has the options of that "
         "schema, and run those of the schemas run and train ('tutti options'). evaluation: {every_steps: N} says when "
         "data.evaluate is used, else after each pass that ends, and at the end.\n\n"
         "The folder of the run (runs/NAME of CONFIG unless run.model_dir is set) keeps checkpoints, event files for "
         "TensorBoard, config.yaml with every default, metrics.jsonl, result.json, and profile.json of the steps that "
         "profile: {steps: N} names, N + 1 to 2 N; with trace: FOLDER/ TensorBoard's profile page shows them, too. "
         "Where it has a "
         "checkpoint, training goes on from there.\n\n"
         "Ctrl-C ends the training after its step, or an evaluation that is running, with a checkpoint; a second one "
         "at "
         "once.";
}

}  // namespace

Command train_command() {
  const auto request = std::make_shared<TrainRequest>();
  Command command("train", "trains the model of a configuration");
  command.set_details(details());
  command.set_exit_status(
      "0 when the training has ended as configured, 1 when it failed, 2 when the arguments or the configuration are "
      "wrong; 130 after Ctrl-C and 143 after SIGTERM, when a checkpoint has been written");
  command.add_argument({"[CONFIG]", "a file, or the folder of a run that shall go on; none = options say everything"});
  add_training_options(command, request->config);
  add_device_options(command, request->config, "train");
  add_set_option(command, request->config);
  command.add_flag(request->as_json, {"--json", "", "print the results as JSON instead of a table"});
  command.add_flag(request->is_quiet, {"--quiet", "", "show no progress on standard error"});
  command.set_example("tutti train fashion_mnist.yaml --devices 2 --set run.seed=7");
  command.set_run([request](const std::vector<std::string> &words) {
    if (!words.empty()) request->config.path = words.front();
    if (words.empty() && request->config.changes.empty())
      throw UsageError{"no configuration given: a file, or options such as --data"};
    return train(*request);
  });
  return command;
}

}  // namespace tutti::tool
