// SPDX-License-Identifier: Apache-2.0
//
// The C++17 face of tutti: owning handles and chainable builders over the C interface, header-only. Failures throw
// tutti::Error; callbacks may throw anything, and what they throw comes back as the cause of the call that failed.
//
//   tutti::Pipeline pipeline;
//   pipeline.slices("x", TUTTI_ROLE_FEATURE, x).slices("y", TUTTI_ROLE_LABEL, y);
//   tutti_pipeline_batch(pipeline, 64, nullptr);                  // the C helpers take these objects as they are
//   tutti::Dataset dataset = pipeline.build();
//   tutti::Estimator estimator([](tutti::Graph g, int32_t mode) { ... }, tutti::Options("run").set("seed", 7));
//   tutti::Result result = estimator.train(dataset, tutti::Options("train").set("steps", 100));
//
// Threads, ownership and meaning are those of the C functions. A moved-from object is empty.
#ifndef TUTTI_TUTTI_HPP_
#define TUTTI_TUTTI_HPP_

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <tutti/tutti.h>

namespace tutti {

/// A failed call. what() is the whole story; code() and message() are those of the outermost error.
class Error : public std::exception {
 public:
  explicit Error(tutti_error *error) : error_(error, tutti_error_unref), text_(tutti_error_get_text(error)) {}
  const char *what() const noexcept override { return text_.c_str(); }
  int32_t code() const noexcept { return tutti_error_get_code(error_.get()); }
  std::string message() const { return tutti_error_get_message(error_.get()); }
  tutti_error *get() const noexcept { return error_.get(); }

 private:
  std::shared_ptr<tutti_error> error_;
  std::string text_;
};

namespace detail {

/// Throws when a call failed: check([&](tutti_error **err) { return tutti_x(..., err); }).
template <typename Call>
void check(Call &&call) {
  tutti_error *error = nullptr;
  if (call(&error) != TUTTI_OK) throw Error(error);
}

/// Runs a C++ callback behind a C function pointer: an exception becomes the error of the call.
template <typename Body>
int32_t shield(tutti_error **err, Body &&body) noexcept {
  try {
    body();
    return TUTTI_OK;
  } catch (const Error &error) {
    return tutti_error_set(err, error.code(), error.what());
  } catch (const std::exception &exception) {
    return tutti_error_set(err, TUTTI_UNKNOWN, exception.what());
  } catch (...) {
    return tutti_error_set(err, TUTTI_UNKNOWN, "unknown exception");
  }
}

/// One reference to a handle.
template <typename T, void (*Ref)(T *), void (*Unref)(T *)>
class Handle {
 public:
  Handle() = default;
  /// Takes over a reference.
  explicit Handle(T *handle) : handle_(handle) {}
  Handle(const Handle &other) : handle_(other.handle_) {
    if (handle_ != nullptr) Ref(handle_);
  }
  Handle(Handle &&other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Handle &operator=(Handle other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Handle() { Unref(handle_); }

  T *get() const noexcept { return handle_; }
  operator T *() const noexcept { return handle_; }

 protected:
  T **out() noexcept { return &handle_; }

 private:
  T *handle_ = nullptr;
};

}  // namespace detail

class Options : public detail::Handle<tutti_options, tutti_options_ref, tutti_options_unref> {
 public:
  explicit Options(const std::string &schema) {
    detail::check([&](tutti_error **err) { return tutti_options_create(schema.c_str(), out(), err); });
  }
  Options &set(const char *key, bool value) { return tutti_options_set_bool(get(), key, value), *this; }
  Options &set(const char *key, int value) { return set(key, static_cast<int64_t>(value)); }
  Options &set(const char *key, int64_t value) { return tutti_options_set_i64(get(), key, value), *this; }
  Options &set(const char *key, double value) { return tutti_options_set_f64(get(), key, value), *this; }
  Options &set(const char *key, const char *value) { return tutti_options_set_string(get(), key, value), *this; }
  Options &set(const char *key, const std::string &value) { return set(key, value.c_str()); }
};

class Cancel : public detail::Handle<tutti_cancel, tutti_cancel_ref, tutti_cancel_unref> {
 public:
  Cancel() {
    detail::check([&](tutti_error **err) { return tutti_cancel_create(out(), err); });
  }
  void stop() { request(TUTTI_CANCEL_STOP); }
  void cancel() { request(TUTTI_CANCEL_CANCEL); }
  /// A negative number takes the deadline away.
  void deadline_ms(int64_t timeout_ms) {
    detail::check([&](tutti_error **err) { return tutti_cancel_set_deadline(get(), timeout_ms, err); });
  }

 private:
  void request(int32_t strength) {
    detail::check([&](tutti_error **err) { return tutti_cancel_request(get(), strength, err); });
  }
};

class Context : public detail::Handle<tutti_context, tutti_context_ref, tutti_context_unref> {
 public:
  explicit Context(const Options &options = Options("context")) {
    detail::check([&](tutti_error **err) { return tutti_context_create(options, out(), err); });
  }
};

class Tensor : public detail::Handle<tutti_tensor, tutti_tensor_ref, tutti_tensor_unref> {
 public:
  using Handle::Handle;
  Tensor(int32_t dtype, const std::vector<int64_t> &dims) {
    const int64_t rank = static_cast<int64_t>(dims.size());
    detail::check([&](tutti_error **err) { return tutti_tensor_create(dtype, dims.data(), rank, out(), err); });
  }
  Tensor(int32_t dtype, const std::vector<int64_t> &dims, const void *data, int64_t size_bytes) {
    const int64_t rank = static_cast<int64_t>(dims.size());
    detail::check([&](tutti_error **err) {
      return tutti_tensor_from_data(dtype, dims.data(), rank, data, size_bytes, out(), err);
    });
  }
  template <typename T>
  const T *data() const {
    return static_cast<const T *>(tutti_tensor_get_data(get()));
  }
  int64_t element_count() const { return tutti_tensor_get_element_count(get()); }
};

/// A graph lent to a callback; valid during it.
class Graph {
 public:
  explicit Graph(tutti_graph *graph) : graph_(graph) {}
  operator tutti_graph *() const noexcept { return graph_; }
  tutti_value feature(const char *name) const { return tutti_graph_get_feature(graph_, name); }
  tutti_value label(const char *name) const { return tutti_graph_get_label(graph_, name); }
  const Graph &output(const char *name, tutti_value value) const {
    return tutti_graph_set_output(graph_, name, value), *this;
  }
  const Graph &loss(tutti_value value) const { return tutti_graph_set_loss(graph_, value), *this; }

 private:
  tutti_graph *graph_;
};

class Dataset : public detail::Handle<tutti_dataset, tutti_dataset_ref, tutti_dataset_unref> {
 public:
  using Handle::Handle;
  int64_t cardinality() const { return tutti_dataset_get_cardinality(get()); }
};

class Pipeline : public detail::Handle<tutti_pipeline, tutti_pipeline_ref, tutti_pipeline_unref> {
 public:
  explicit Pipeline(tutti_context *context = nullptr) {
    detail::check([&](tutti_error **err) { return tutti_pipeline_create(context, out(), err); });
  }
  Pipeline &slices(const char *name, int32_t role, const Tensor &tensor) {
    return tutti_pipeline_add_slices(get(), name, role, tensor), *this;
  }
  Pipeline &idx(const char *name, int32_t role, const std::string &path) {
    return tutti_pipeline_add_idx(get(), name, role, path.c_str()), *this;
  }
  Pipeline &batch(int64_t size) { return tutti_pipeline_batch(get(), size, nullptr), *this; }
  Pipeline &shuffle(int64_t buffer_size) { return tutti_pipeline_shuffle(get(), buffer_size, nullptr), *this; }
  Pipeline &repeat() { return tutti_pipeline_repeat(get(), nullptr), *this; }
  Pipeline &prefetch() { return tutti_pipeline_prefetch(get(), nullptr), *this; }
  /// `build(Graph)` writes the map; it runs once, before this returns.
  template <typename Build>
  Pipeline &map(Build &&build, int64_t parallelism = 1) {
    const auto call = [](tutti_graph *graph, void *user, tutti_error **err) {
      return detail::shield(err, [&] { (*static_cast<std::remove_reference_t<Build> *>(user))(Graph(graph)); });
    };
    return tutti_pipeline_map_graph(get(), call, &build, parallelism), *this;
  }
  Dataset build() {
    tutti_dataset *dataset = nullptr;
    detail::check([&](tutti_error **err) { return tutti_pipeline_build(get(), &dataset, err); });
    return Dataset(dataset);
  }
};

class Strategy : public detail::Handle<tutti_strategy, tutti_strategy_ref, tutti_strategy_unref> {
 public:
  using Handle::Handle;
  static Strategy one_device(tutti_context *context = nullptr, const char *device = nullptr) {
    tutti_strategy *strategy = nullptr;
    detail::check([&](tutti_error **err) { return tutti_strategy_create_one_device(context, device, &strategy, err); });
    return Strategy(strategy);
  }
  /// Over all devices of the context.
  static Strategy mirrored(tutti_context *context = nullptr) {
    tutti_strategy *strategy = nullptr;
    detail::check(
        [&](tutti_error **err) { return tutti_strategy_create_mirrored(context, nullptr, 0, &strategy, err); });
    return Strategy(strategy);
  }
  int64_t replica_count() const { return tutti_strategy_get_replica_count(get()); }
};

class Result : public detail::Handle<tutti_result, tutti_result_ref, tutti_result_unref> {
 public:
  using Handle::Handle;
  int32_t reason() const { return tutti_result_get_reason(get()); }
  int64_t step() const { return tutti_result_get_step(get()); }
  double loss() const { return tutti_result_get_loss(get()); }
  double metric(const char *name) const { return tutti_result_get_metric(get(), name); }
};

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
};

class Estimator : public detail::Handle<tutti_estimator, tutti_estimator_ref, tutti_estimator_unref> {
 public:
  using ModelFunction = std::function<void(Graph graph, int32_t mode)>;

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
  Result train(const Dataset &dataset, const Options &options = Options("train"), tutti_hooks *hooks = nullptr,
               tutti_cancel *cancel = nullptr) {
    tutti_result *result = nullptr;
    detail::check(
        [&](tutti_error **err) { return tutti_estimator_train(get(), dataset, options, hooks, cancel, &result, err); });
    return Result(result);
  }
  Result evaluate(const Dataset &dataset, int64_t steps = 0, tutti_cancel *cancel = nullptr) {
    tutti_result *result = nullptr;
    detail::check(
        [&](tutti_error **err) { return tutti_estimator_evaluate(get(), dataset, steps, cancel, &result, err); });
    return Result(result);
  }
  int64_t global_step() const { return tutti_estimator_get_global_step(get()); }
};

/// A batch of results.
class Batch : public detail::Handle<tutti_batch, tutti_batch_ref, tutti_batch_unref> {
 public:
  using Handle::Handle;
  int64_t first_row() const { return tutti_batch_get_first_row(get()); }
  int64_t row_count() const { return tutti_batch_get_row_count(get()); }
  /// Empty when there is no such output.
  Tensor output(const char *name) const {
    tutti_tensor *const tensor = tutti_batch_get_output(get(), name);
    tutti_tensor_ref(tensor);
    return Tensor(tensor);
  }
};

class Predictor : public detail::Handle<tutti_predictor, tutti_predictor_ref, tutti_predictor_unref> {
 public:
  explicit Predictor(const Estimator &estimator) {
    detail::check([&](tutti_error **err) { return tutti_predictor_from_estimator(estimator, nullptr, out(), err); });
  }
  /// From a checkpoint or a model directory.
  explicit Predictor(const std::string &path, tutti_strategy *strategy = nullptr, tutti_context *context = nullptr) {
    detail::check(
        [&](tutti_error **err) { return tutti_predictor_open(context, path.c_str(), strategy, nullptr, out(), err); });
  }
  Batch run_all(const Dataset &dataset, tutti_cancel *cancel = nullptr) {
    tutti_batch *batch = nullptr;
    detail::check([&](tutti_error **err) { return tutti_predictor_run_all(get(), dataset, cancel, &batch, err); });
    return Batch(batch);
  }
};

}  // namespace tutti

#endif  // TUTTI_TUTTI_HPP_
