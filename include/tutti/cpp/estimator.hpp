// SPDX-License-Identifier: Apache-2.0
//
// Strategies, estimators and sessions in C++.
#ifndef TUTTI_CPP_ESTIMATOR_HPP_
#define TUTTI_CPP_ESTIMATOR_HPP_

#include <tutti/step_function.h>
#include <tutti/cpp/dataset.hpp>
#include <tutti/cpp/summary.hpp>

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace tutti {

/// Which processes train a model together, and which of them this one is.
class ClusterResolver
    : public detail::Handle<tutti_cluster_resolver, tutti_cluster_resolver_ref, tutti_cluster_resolver_unref> {
 public:
  using Handle::Handle;
  /// "host:port,host:port", and the index of this worker.
  static ClusterResolver of(const std::string &workers, int64_t worker) {
    return detail::make<ClusterResolver>(
        [&](auto **out, auto **err) { return tutti_cluster_resolver_create_list(workers.c_str(), worker, out, err); });
  }
  /// The text of a TF_CONFIG variable.
  static ClusterResolver of_tf_config(const std::string &text) {
    return detail::make<ClusterResolver>(
        [&](auto **out, auto **err) { return tutti_cluster_resolver_create_tf_config(text.c_str(), out, err); });
  }
  /// Null: the first launcher whose variables are there.
  static ClusterResolver from_environment(const char *launcher = nullptr) {
    return detail::make<ClusterResolver>(
        [&](auto **out, auto **err) { return tutti_cluster_resolver_create_from_environment(launcher, out, err); });
  }
  /// "local", addresses, or a name with the metadata of its machines.
  static ClusterResolver of_tpu(const std::string &tpu, const std::string &metadata = "") {
    return detail::make<ClusterResolver>([&](auto **out, auto **err) {
      return tutti_cluster_resolver_create_tpu(tpu.c_str(), metadata.c_str(), out, err);
    });
  }
  int64_t worker_count() const { return tutti_cluster_resolver_get_worker_count(get()); }
  int64_t worker_index() const { return tutti_cluster_resolver_get_worker_index(get()); }
  std::string address(int64_t worker) const {
    return detail::copied(tutti_cluster_resolver_get_address(get(), worker));
  }
  std::string json() const { return detail::copied(tutti_cluster_resolver_get_json(get())); }
  /// With the devices of this worker, lent; null before initialize().
  tutti_context *context() const { return tutti_cluster_resolver_get_context(get()); }
  /// Returns when all workers have called it.
  void connect(const tutti_options *options = nullptr) {
    detail::check([&](tutti_error **err) { return tutti_cluster_resolver_connect(get(), options, err); });
  }
  /// Opens the library that pjrt_plugin names, and finds the devices of this worker.
  void initialize(const tutti_options *options) {
    detail::check([&](tutti_error **err) { return tutti_cluster_resolver_initialize(get(), options, err); });
  }
};

/// On which devices a model runs.
class Strategy : public detail::Handle<tutti_strategy, tutti_strategy_ref, tutti_strategy_unref> {
 public:
  using Handle::Handle;
  static Strategy one_device(tutti_context *context = nullptr, const char *device = nullptr) {
    return detail::make<Strategy>(
        [&](auto **out, auto **err) { return tutti_strategy_create_one_device(context, device, out, err); });
  }
  /// Over the devices that train fastest, for batches of so many rows (0 = not known).
  static Strategy automatic(tutti_context *context = nullptr, int64_t batch_size = 0) {
    return detail::make<Strategy>(
        [&](auto **out, auto **err) { return tutti_strategy_create_auto(context, batch_size, out, err); });
  }
  /// Over all devices of the context.
  static Strategy mirrored(tutti_context *context = nullptr) {
    return detail::make<Strategy>(
        [&](auto **out, auto **err) { return tutti_strategy_create_mirrored(context, nullptr, 0, out, err); });
  }
  /// Over these devices.
  static Strategy mirrored(const std::vector<std::string> &devices, tutti_context *context = nullptr) {
    std::vector<const char *> names;
    for (const std::string &device : devices)
      names.push_back(device.c_str());
    const int64_t count = static_cast<int64_t>(names.size());
    return detail::make<Strategy>(
        [&](auto **out, auto **err) { return tutti_strategy_create_mirrored(context, names.data(), count, out, err); });
  }
  /// As mirrored, but variables and slots are stored with the device `storage` and updated there; null: the first of
  /// `devices`. Without devices over every GPU of the context, or every device if it has none.
  static Strategy central_storage(const char *storage = nullptr, const std::vector<std::string> &devices = {},
                                  tutti_context *context = nullptr) {
    std::vector<const char *> names;
    for (const std::string &device : devices)
      names.push_back(device.c_str());
    const int64_t count = static_cast<int64_t>(names.size());
    return detail::make<Strategy>([&](auto **out, auto **err) {
      return tutti_strategy_create_central_storage(context, storage, names.data(), count, out, err);
    });
  }
  /// Over several processes; `options` of the schema "cluster".
  static Strategy multi_worker(const Options &options, tutti_context *context = nullptr) {
    return detail::make<Strategy>(
        [&](auto **out, auto **err) { return tutti_strategy_create_multi_worker(context, options.get(), out, err); });
  }
  /// The same as the launcher has said in the environment; `options` may be null.
  static Strategy multi_worker_from_environment(const tutti_options *options = nullptr,
                                                tutti_context *context = nullptr) {
    return detail::make<Strategy>([&](auto **out, auto **err) {
      return tutti_strategy_create_multi_worker_from_environment(context, options, out, err);
    });
  }
  /// The same with the workers of a resolver; `options` without them, or null.
  static Strategy multi_worker(const ClusterResolver &resolver, const tutti_options *options = nullptr,
                               tutti_context *context = nullptr) {
    return detail::make<Strategy>([&](auto **out, auto **err) {
      return tutti_strategy_create_multi_worker_from_resolver(context, resolver.get(), options, out, err);
    });
  }
  /// Over the TPUs of a resolver that was connected and initialized.
  static Strategy tpu(const ClusterResolver &resolver) {
    return detail::make<Strategy>(
        [&](auto **out, auto **err) { return tutti_strategy_create_tpu(resolver.get(), out, err); });
  }
  /// Of all workers.
  int64_t replica_count() const { return tutti_strategy_get_replica_count(get()); }
  int64_t worker_count() const { return tutti_strategy_get_worker_count(get()); }
  int64_t worker_index() const { return tutti_strategy_get_worker_index(get()); }
  /// The most rows of a batch of so many that a replica gets.
  int64_t per_replica_batch_size(int64_t global_batch_size) const {
    return tutti_strategy_get_per_replica_batch_size(get(), global_batch_size);
  }
  /// Batches for the replicas of this strategy; its estimators take it like `dataset`.
  Dataset distribute(const Dataset &dataset) const {
    return detail::make<Dataset>(
        [&](auto **out, auto **err) { return tutti_strategy_distribute_dataset(get(), dataset, out, err); });
  }
  /// What to divide input by where several processes train together; never by replicas.
  int64_t input_pipeline_count() const { return tutti_strategy_get_input_pipeline_count(get()); }
  int64_t input_pipeline_id() const { return tutti_strategy_get_input_pipeline_id(get()); }
  /// Of the replicas of this process, in order.
  std::vector<std::string> devices() const {
    std::vector<std::string> names;
    while (const char *name = tutti_strategy_get_device(get(), static_cast<int64_t>(names.size())))
      names.push_back(name);
    return names;
  }
  /// Whose default strategy is this one.
  Context context() const {
    tutti_context *const lent = tutti_strategy_get_context(get());
    tutti_context_ref(lent);
    return Context(lent);
  }
};

/// What training or evaluating gave.
class Result : public detail::Handle<tutti_result, tutti_result_ref, tutti_result_unref> {
 public:
  using Handle::Handle;
  int32_t reason() const { return tutti_result_get_reason(get()); }
  int64_t step() const { return tutti_result_get_step(get()); }
  int64_t examples() const { return tutti_result_get_examples(get()); }
  double seconds() const { return tutti_result_get_seconds(get()); }
  /// Seconds that training steps waited for their input, and what the walk over it has cost, as JSON.
  double input_wait() const { return tutti_result_get_input_wait(get()); }
  std::string input_report() const { return detail::copied(tutti_result_get_input_report(get())); }
  /// Where the time of training steps went and how idle each device was, as JSON.
  std::string step_report() const { return detail::copied(tutti_result_get_step_report(get())); }
  double loss() const { return tutti_result_get_loss(get()); }
  double metric(const char *name) const { return tutti_result_get_metric(get(), name); }
  /// Also of metrics that are no single number, such as a confusion matrix.
  Tensor read_metric(const char *name) const {
    return detail::make<Tensor>(
        [&](auto **out, auto **err) { return tutti_result_read_metric(get(), name, out, err); });
  }
  std::vector<std::string> metric_names() const {
    std::vector<std::string> names;
    for (int64_t i = 0; i < tutti_result_get_metric_count(get()); ++i)
      names.push_back(detail::copied(tutti_result_get_metric_name(get(), i)));
    return names;
  }
};

/// What wants to see the events of a training.
class Hooks : public detail::Handle<tutti_hooks, tutti_hooks_ref, tutti_hooks_unref> {
 public:
  /// Returns TUTTI_OK or TUTTI_HOOK_STOP, or throws.
  using Function = std::function<int32_t(const tutti_hook_event *)>;

  Hooks() {
    detail::check([&](tutti_error **err) { return tutti_hooks_create(out(), err); });
  }
  Hooks &add(Function function, int64_t every_steps) {
    auto *const user = new Function(std::move(function));
    const auto call = [](void *raw, const tutti_hook_event *event, tutti_error **err) {
      int32_t answer = TUTTI_OK;
      const int32_t code = detail::shield(err, [&] { answer = (*static_cast<Function *>(raw))(event); });
      return code != TUTTI_OK ? code : answer;
    };
    const auto destroy = [](void *raw) { delete static_cast<Function *>(raw); };
    detail::check([&](tutti_error **err) { return tutti_hooks_add(get(), call, user, destroy, every_steps, err); });
    return *this;
  }
  /// Shows on standard error how far the training is.
  Hooks &add_progress(int32_t style = TUTTI_PROGRESS_AUTO) {
    detail::check([&](tutti_error **err) { return tutti_hooks_add_progress(get(), style, err); });
    return *this;
  }
  /// Keeps the newest values.
  Hooks &add_prometheus(tutti_prometheus *prometheus, int64_t every_steps) {
    detail::check([&](tutti_error **err) { return tutti_hooks_add_prometheus(get(), prometheus, every_steps, err); });
    return *this;
  }
  /// Writes losses and metrics to a file, TUTTI_METRICS_CSV or TUTTI_METRICS_JSON_LINES.
  Hooks &add_metrics_file(const std::string &path, int32_t format, int64_t every_steps) {
    detail::check(
        [&](tutti_error **err) { return tutti_hooks_add_metrics_file(get(), path.c_str(), format, every_steps, err); });
    return *this;
  }
};

/// A model and its run options, to be trained and asked.
class Estimator : public detail::Handle<tutti_estimator, tutti_estimator_ref, tutti_estimator_unref> {
 public:
  using ModelFunction = std::function<void(Graph graph, int32_t mode)>;
  /// What a function that makes a dataset gets: the run option params, and which input this process reads.
  struct InputContext {
    std::string params;
    int64_t input_pipeline_id, input_pipeline_count;
  };
  using InputFunction = std::function<Dataset(const InputContext &context)>;

  explicit Estimator(ModelFunction model, const Options &run = Options("run"), tutti_strategy *strategy = nullptr,
                     tutti_context *context = nullptr) {
    auto *const user = new ModelFunction(std::move(model));
    const auto call = [](tutti_graph *graph, int32_t mode, void *raw, tutti_error **err) {
      return detail::shield(err, [&] { (*static_cast<ModelFunction *>(raw))(Graph(graph), mode); });
    };
    const auto destroy = [](void *raw) { delete static_cast<ModelFunction *>(raw); };
    detail::check([&](tutti_error **err) {
      return tutti_estimator_create(context, call, user, destroy, strategy, run, out(), err);
    });
  }
  /// A function that sessions run besides the model's own steps; before the first training. `input`: batches like those
  /// that it gets; null = those of the session.
  Estimator &add_step_function(const std::string &name, int32_t mode, ModelFunction function,
                               const tutti_dataset *input = nullptr) {
    auto *const user = new ModelFunction(std::move(function));
    const auto call = [](tutti_graph *graph, int32_t built_for, void *raw, tutti_error **err) {
      return detail::shield(err, [&] { (*static_cast<ModelFunction *>(raw))(Graph(graph), built_for); });
    };
    const auto destroy = [](void *raw) { delete static_cast<ModelFunction *>(raw); };
    detail::check([&](tutti_error **err) {
      return tutti_estimator_add_step_function(get(), name.c_str(), mode, call, user, destroy, input, err);
    });
    return *this;
  }
  Result train(const Dataset &dataset, const Options &options = Options("train"), tutti_hooks *hooks = nullptr,
               tutti_cancel *cancel = nullptr) {
    return detail::make<Result>([&](auto **out, auto **err) {
      return tutti_estimator_train(get(), dataset, options, hooks, cancel, out, err);
    });
  }
  /// On the dataset that a function makes, which is called once.
  Result train(const InputFunction &input, const Options &options = Options("train"), tutti_hooks *hooks = nullptr,
               tutti_cancel *cancel = nullptr) {
    return train(input(input_context(TUTTI_MODE_TRAIN)), options, hooks, cancel);
  }
  Result evaluate(const InputFunction &input, int64_t steps = 0, tutti_cancel *cancel = nullptr) {
    return evaluate(input(input_context(TUTTI_MODE_EVAL)), steps, cancel);
  }
  /// What such a function gets in a mode.
  InputContext input_context(int32_t mode) const {
    return {detail::copied(tutti_estimator_get_params(get())), tutti_estimator_get_input_pipeline_id(get(), mode),
            tutti_estimator_get_input_pipeline_count(get(), mode)};
  }
  /// Evaluations use other devices from the next one on; null: those that train.
  void set_evaluation_strategy(const tutti_strategy *strategy) {
    detail::check([&](tutti_error **err) { return tutti_estimator_set_evaluation_strategy(get(), strategy, err); });
  }
  /// Makes the variables without a step; unless the path is empty, with the weights of a checkpoint or a file of
  /// safetensors.
  void initialize(const Dataset &dataset, const std::string &weights = "", tutti_cancel *cancel = nullptr) {
    detail::check(
        [&](tutti_error **err) { return tutti_estimator_initialize(get(), dataset, weights.c_str(), cancel, err); });
  }
  Result evaluate(const Dataset &dataset, int64_t steps = 0, tutti_cancel *cancel = nullptr) {
    return detail::make<Result>(
        [&](auto **out, auto **err) { return tutti_estimator_evaluate(get(), dataset, steps, cancel, out, err); });
  }
  Result train_and_evaluate(const Dataset &dataset, const Dataset &evaluation, int64_t every_steps,
                            const Options &options = Options("train"), tutti_hooks *hooks = nullptr,
                            tutti_cancel *cancel = nullptr) {
    return detail::make<Result>([&](auto **out, auto **err) {
      return tutti_estimator_train_and_evaluate(get(), dataset, evaluation, every_steps, options, hooks, cancel, out,
                                                err);
    });
  }
  /// Writes a checkpoint of the present weights into the directory.
  void save(const std::string &directory, tutti_cancel *cancel = nullptr) {
    detail::check([&](tutti_error **err) { return tutti_estimator_save(get(), directory.c_str(), cancel, err); });
  }
  int64_t global_step() const { return tutti_estimator_get_global_step(get()); }
  std::vector<std::string> variable_names() const {
    std::vector<std::string> names;
    for (int64_t i = 0; i < tutti_estimator_get_variable_count(get()); ++i)
      names.push_back(detail::copied(tutti_estimator_get_variable_name(get(), i)));
    return names;
  }
  /// Those of them that the optimizer changes; empty until the model was built for training.
  std::vector<std::string> trainable_names() const {
    std::vector<std::string> names;
    for (int64_t i = 0; i < tutti_estimator_get_trainable_count(get()); ++i)
      names.push_back(detail::copied(tutti_estimator_get_trainable_name(get(), i)));
    return names;
  }
  Tensor read_variable(const std::string &name) {
    return detail::make<Tensor>(
        [&](auto **out, auto **err) { return tutti_estimator_read_variable(get(), name.c_str(), out, err); });
  }
  /// Of the last step, before clips; run option keep_gradients.
  Tensor read_gradient(const std::string &variable) {
    return detail::make<Tensor>(
        [&](auto **out, auto **err) { return tutti_estimator_read_gradient(get(), variable.c_str(), out, err); });
  }
  /// For each row of the last step, what the model set as this output in TUTTI_MODE_TRAIN; run option keep_outputs.
  Tensor read_output(const std::string &name) {
    return detail::make<Tensor>(
        [&](auto **out, auto **err) { return tutti_estimator_read_output(get(), name.c_str(), out, err); });
  }
  void write_variable(const std::string &name, const Tensor &value) {
    detail::check([&](tutti_error **err) { return tutti_estimator_write_variable(get(), name.c_str(), value, err); });
  }
  /// What training on batches of so many rows (0 = the dataset's) will take of the devices' memory, as JSON.
  std::string estimate_memory(const Dataset &dataset, int64_t batch_size = 0) {
    const char *text = nullptr;
    detail::check(
        [&](tutti_error **err) { return tutti_estimator_estimate_memory(get(), dataset, batch_size, &text, err); });
    return detail::copied(text);
  }
  /// The largest batch size from 1 to `most` that fits by that estimate.
  int64_t find_batch_size(const Dataset &dataset, int64_t most) {
    int64_t rows = 0;
    detail::check([&](tutti_error **err) { return tutti_estimator_find_batch_size(get(), dataset, most, &rows, err); });
    return rows;
  }
  /// For names that match a pattern with * and ?; before the first training.
  Estimator &set_trainable(const std::string &pattern, bool trainable) {
    detail::check(
        [&](tutti_error **err) { return tutti_estimator_set_trainable(get(), pattern.c_str(), trainable, err); });
    return *this;
  }
};

/// What a step function gave in one step, for each output the rows of each replica.
class ReplicaValues
    : public detail::Handle<tutti_replica_values, tutti_replica_values_ref, tutti_replica_values_unref> {
 public:
  using Handle::Handle;
  int64_t replica_count() const { return tutti_replica_values_get_replica_count(get()); }
  std::vector<std::string> output_names() const {
    std::vector<std::string> names;
    for (int64_t i = 0; i < tutti_replica_values_get_output_count(get()); ++i)
      names.push_back(detail::copied(tutti_replica_values_get_output_name(get(), i)));
    return names;
  }
  /// Of a replica of this process; empty when it had no rows.
  Tensor local(const char *output, int64_t replica) const {
    return Tensor::shared(tutti_replica_values_get_local(get(), output, replica));
  }
  /// Of all replicas of all workers, concatenated along an axis.
  Tensor gather(const char *output, int64_t axis = 0) {
    return detail::make<Tensor>(
        [&](auto **out, auto **err) { return tutti_replica_values_gather(get(), output, axis, out, err); });
  }
  /// TUTTI_REDUCE_..., over an axis and the replicas, or TUTTI_ACROSS_REPLICAS.
  Tensor reduce(const char *output, int32_t reduction, int64_t axis) {
    return detail::make<Tensor>(
        [&](auto **out, auto **err) { return tutti_replica_values_reduce(get(), output, reduction, axis, out, err); });
  }
};

/// Training, one piece at a time. What was not closed is discarded.
class Session : public detail::Handle<tutti_session, tutti_session_ref, tutti_session_unref> {
 public:
  Session(const Estimator &estimator, const Dataset &dataset, const Options &options = Options("train"),
          tutti_hooks *hooks = nullptr, tutti_cancel *cancel = nullptr) {
    detail::check(
        [&](tutti_error **err) { return tutti_session_open(estimator, dataset, options, hooks, cancel, out(), err); });
  }
  /// The result's reason is 0 while there is more to do; loss and metrics are of the last step, examples of all steps.
  Result run(int64_t steps) {
    return detail::make<Result>([&](auto **out, auto **err) { return tutti_session_run(get(), steps, out, err); });
  }
  /// One step of a step function on a batch: its loss and metrics, and its outputs.
  std::pair<Result, ReplicaValues> run_step_function(const std::string &name, const std::vector<Tensor> &batch) {
    std::vector<tutti_tensor *> tensors(batch.begin(), batch.end());
    tutti_result *result = nullptr;
    auto values = detail::make<ReplicaValues>([&](auto **out, auto **err) {
      return tutti_session_run_step_function(get(), name.c_str(), tensors.data(), static_cast<int64_t>(tensors.size()),
                                             &result, out, err);
    });
    return {Result(result), std::move(values)};
  }
  Session &set_scalar(const char *name, double value) {
    detail::check([&](tutti_error **err) { return tutti_session_set_scalar(get(), name, value, err); });
    return *this;
  }
  Result close() {
    return detail::make<Result>([&](auto **out, auto **err) { return tutti_session_close(get(), out, err); });
  }
};

}  // namespace tutti

#endif  // TUTTI_CPP_ESTIMATOR_HPP_
