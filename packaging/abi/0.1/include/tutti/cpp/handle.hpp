// SPDX-License-Identifier: Apache-2.0
//
// What the C++ face rests on: errors as exceptions, exceptions as errors, and owning handles; then options, cancel
// tokens, contexts, tensors and graphs.
#ifndef TUTTI_CPP_HANDLE_HPP_
#define TUTTI_CPP_HANDLE_HPP_

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <tutti/tutti.h>

namespace tutti {

/// A failed call. what() is the whole story; code(), domain() and message() are those of the outermost error.
class Error : public std::exception {
 public:
  /// Takes over the reference. `code` counts when there was no memory for an error.
  explicit Error(tutti_error *error, int32_t code = TUTTI_UNKNOWN)
      : error_(error, tutti_error_unref),
        code_(error != nullptr ? tutti_error_get_code(error) : code),
        text_(error != nullptr ? tutti_error_get_text(error) : tutti_code_get_name(code)) {}
  const char *what() const noexcept override { return text_.c_str(); }
  int32_t code() const noexcept { return code_; }
  /// A number that means something in the domain; 0 = none.
  int64_t subcode() const { return tutti_error_get_subcode(error_.get()); }
  std::string domain() const { return tutti_error_get_domain(error_.get()); }
  std::string message() const { return tutti_error_get_message(error_.get()); }
  /// The whole story as JSON on one line.
  std::string json() const { return tutti_error_get_json(error_.get()); }
  bool has_cause() const noexcept { return tutti_error_get_cause(error_.get()) != nullptr; }
  /// The error that led to this one; only when has_cause().
  Error cause() const {
    tutti_error *const cause = tutti_error_get_cause(error_.get());
    tutti_error_ref(cause);
    return Error(cause);
  }
  /// Pairs such as ("step", "120").
  std::vector<std::pair<std::string, std::string>> details() const {
    std::vector<std::pair<std::string, std::string>> pairs;
    for (int64_t i = 0; i < tutti_error_get_detail_count(error_.get()); ++i)
      pairs.emplace_back(tutti_error_get_detail_key(error_.get(), i), tutti_error_get_detail_value(error_.get(), i));
    return pairs;
  }
  tutti_error *get() const noexcept { return error_.get(); }

 private:
  std::shared_ptr<tutti_error> error_;
  int32_t code_;
  std::string text_;
};

namespace detail {

/// A text that the library lends, empty for NULL.
inline std::string copied(const char *text) { return text != nullptr ? text : ""; }

/// Throws when a call failed: check([&](tutti_error **err) { return tutti_x(..., err); }).
template <typename Call>
void check(Call &&call) {
  tutti_error *error = nullptr;
  const int32_t code = call(&error);
  if (code != TUTTI_OK) throw Error(error, code);
}

/// As check(), for a call with an output handle: make<Result>([&](auto **out, auto **err) { return tutti_x(..., out,
/// err); }).
template <typename Owner, typename Call>
Owner make(Call &&call) {
  typename Owner::handle_type *handle = nullptr;
  check([&](tutti_error **err) { return call(&handle, err); });
  return Owner(handle);
}

/// Runs a C++ callback behind a C function pointer: an exception becomes the error of the call.
template <typename Body>
int32_t shield(tutti_error **err, Body &&body) noexcept {
  try {
    body();
    return TUTTI_OK;
  } catch (const Error &error) {
    // The object itself, with its causes.
    if (error.get() == nullptr || err == nullptr) return tutti_error_set(err, error.code(), error.what());
    tutti_error_ref(error.get());
    *err = error.get();
    return error.code();
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
  using handle_type = T;
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

/// Named values of a schema; a wrong one is reported by the call that takes the options.
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
  /// Every member of a JSON object.
  Options &set_json(const std::string &text) { return tutti_options_set_json(get(), text.c_str()), *this; }
  /// What has a variable in the environment and was not set before.
  Options &set_from_environment() { return tutti_options_set_from_environment(get()), *this; }
  /// All keys with the value in force and where it came from, as JSON.
  std::string json() const { return detail::copied(tutti_options_get_json(get())); }
  /// Throws what a setter met; consumers do so too.
  const Options &check() const {
    detail::check([&](tutti_error **err) { return tutti_options_check(get(), err); });
    return *this;
  }
};

/// Ends a call that runs in another thread.
class Cancel : public detail::Handle<tutti_cancel, tutti_cancel_ref, tutti_cancel_unref> {
 public:
  Cancel() {
    detail::check([&](tutti_error **err) { return tutti_cancel_create(out(), err); });
  }
  void stop() { request(TUTTI_CANCEL_STOP); }
  void cancel() { request(TUTTI_CANCEL_CANCEL); }
  /// TUTTI_CANCEL_NONE, _STOP or _CANCEL.
  int32_t state() const { return tutti_cancel_get_state(get()); }
  /// That of the call which the running function (a model, a hook) is for; NONE outside of such functions.
  static int32_t current_state() { return tutti_cancel_get_state(tutti_cancel_get_current()); }
  /// A negative number takes the deadline away.
  void deadline_ms(int64_t timeout_ms) {
    detail::check([&](tutti_error **err) { return tutti_cancel_set_deadline(get(), timeout_ms, err); });
  }

 private:
  void request(int32_t strength) {
    detail::check([&](tutti_error **err) { return tutti_cancel_request(get(), strength, err); });
  }
};

/// Devices, threads and log; most programs use the default one, a null pointer.
class Context : public detail::Handle<tutti_context, tutti_context_ref, tutti_context_unref> {
 public:
  using Handle::Handle;
  explicit Context(const Options &options = Options("context")) {
    detail::check([&](tutti_error **err) { return tutti_context_create(options, out(), err); });
  }
  int64_t device_count() const { return tutti_context_get_device_count(get()); }
  std::string device_name(int64_t index) const { return detail::copied(tutti_context_get_device_name(get(), index)); }
  /// Gets lines of TUTTI_LOG_... severities from any thread of the library, one at a time; must not call the library.
  using Log = std::function<void(int32_t severity, const char *text)>;
  /// Replaces the log before; an empty function ends it.
  Context &set_log(Log log, int32_t minimum_severity = TUTTI_LOG_INFO) {
    if (!log) {
      detail::check([&](tutti_error **err) {
        return tutti_context_set_log(get(), nullptr, nullptr, nullptr, minimum_severity, err);
      });
      return *this;
    }
    auto *const user = new Log(std::move(log));
    const auto call = [](void *raw, int32_t severity, const char *text) {
      try {
        (*static_cast<Log *>(raw))(severity, text);
      } catch (...) {  // nobody to tell
      }
    };
    const auto destroy = [](void *raw) { delete static_cast<Log *>(raw); };
    detail::check(
        [&](tutti_error **err) { return tutti_context_set_log(get(), call, user, destroy, minimum_severity, err); });
    return *this;
  }
  /// What is known of a device, as JSON.
  std::string describe_device(int64_t index) const {
    return detail::copied(tutti_context_describe_device(get(), index));
  }
  /// Records what trainings, evaluations and predictions do until stop_profile(), which reports as JSON and writes the
  /// trace where there is a path.
  void start_profile(const std::string &trace_path = "") {
    detail::check([&](tutti_error **err) { return tutti_context_start_profile(get(), trace_path.c_str(), err); });
  }
  std::string stop_profile() {
    const char *text = nullptr;
    detail::check([&](tutti_error **err) { return tutti_context_stop_profile(get(), &text, err); });
    return detail::copied(text);
  }
};

/// A dense array in host memory.
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
  /// Another reference to a tensor that is lent.
  static Tensor shared(tutti_tensor *lent) {
    tutti_tensor_ref(lent);
    return Tensor(lent);
  }
  template <typename T>
  const T *data() const {
    return static_cast<const T *>(tutti_tensor_get_data(get()));
  }
  /// An element by its row-major index: of TUTTI_DTYPE_BYTES its bytes; empty when there is none.
  std::string element(int64_t index) const {
    const int64_t size = tutti_tensor_get_element_size(get(), index);
    if (size <= 0) return std::string();
    return {static_cast<const char *>(tutti_tensor_get_element_data(get(), index)), static_cast<size_t>(size)};
  }
  /// Only memory that nobody else holds can be written to.
  template <typename T>
  T *mutable_data() {
    void *data = nullptr;
    detail::check([&](tutti_error **err) { return tutti_tensor_get_mutable_data(get(), &data, err); });
    return static_cast<T *>(data);
  }
  int32_t dtype() const { return tutti_tensor_get_dtype(get()); }
  int64_t rank() const { return tutti_tensor_get_rank(get()); }
  int64_t dim(int64_t axis) const { return tutti_tensor_get_dim(get(), axis); }
  int64_t element_count() const { return tutti_tensor_get_element_count(get()); }
  int64_t size_bytes() const { return tutti_tensor_get_size_bytes(get()); }
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
  /// tutti_graph_add_saved_model().
  tutti_value saved_model(const char *path, const char *output = nullptr, tutti_value input = tutti_no_value(),
                          const char *feature = nullptr) const {
    return tutti_graph_add_saved_model(graph_, path, feature, input, output);
  }
  /// What TensorBoard shows of the model.
  const Graph &summary_scalar(const char *name, tutti_value value) const {
    return tutti_summary_scalar(graph_, name, value), *this;
  }
  const Graph &summary_histogram(const char *name, tutti_value value) const {
    return tutti_summary_histogram(graph_, name, value), *this;
  }
  const Graph &summary_image(const char *name, tutti_value images, int64_t max_images = 3) const {
    return tutti_summary_image(graph_, name, images, max_images), *this;
  }
  const Graph &summary_text(const char *name, const char *text) const {
    return tutti_summary_text(graph_, name, text), *this;
  }

 private:
  tutti_graph *graph_;
};

}  // namespace tutti

#endif  // TUTTI_CPP_HANDLE_HPP_
